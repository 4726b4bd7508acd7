"""Sparse vector: constants, halting, threads, copies."""

import copy
import os
import pickle
import threading
import warnings
from fractions import Fraction

import pytest

from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.mechanisms.sparse_vector import SparseVector
from hubbub.noise.source import system

LOUD = SparseVector.from_epsilon(
    sensitivity=1, monotone=False, relation=Relation.ADD_REMOVE, hits=3, queries=1000, epsilon=100
)
HIGH, LOW = 10**6, -(10**6)


def test_epsilon_is_split_by_the_published_ratio() -> None:
    """1 : (2c)^⅔ in general, 1 : c^⅔ where queries move one way; the parts always add up to ε exactly."""
    for hits, monotone, ratio in ((1, False, 2 ** (2 / 3)), (4, False, 8 ** (2 / 3)), (4, True, 4 ** (2 / 3))):
        mechanism = SparseVector.from_epsilon(
            sensitivity=3, monotone=monotone, relation=Relation.ADD_REMOVE, hits=hits, queries=10, epsilon="0.7"
        )
        first = 3 / mechanism.threshold_scale
        rest = hits * (1 if monotone else 2) * 3 / mechanism.query_scale
        assert first + rest == Fraction(7, 10) == mechanism.loss.epsilon
        assert float(rest / first) == pytest.approx(ratio, rel=0.01)


def test_monotone_queries_count_as_such_only_under_add_remove() -> None:
    replaced = SparseVector.from_epsilon(
        sensitivity=1, monotone=True, relation=Relation.REPLACE, hits=1, queries=10, epsilon=1
    )
    assert not replaced.monotone


def test_noise_that_does_not_grow_with_the_hits_breaks_the_promise() -> None:
    """Lap(2/ε) for the threshold and for each query, whatever c is: ε = 1 was claimed, and c = 3 loses more than 2."""
    hits, pushes, push = 3, 5, 14
    broken = SparseVector(
        sensitivity=1, monotone=False, threshold_scale=Fraction(2), query_scale=Fraction(2), hits=hits, queries=10
    )
    assert broken.loss.epsilon == Fraction(1, 2) + hits
    x, y = (push,) * pushes + (0,) * hits, (push + 1,) * pushes + (-1,) * hits
    assert worst_ratio(broken.distribution(x), broken.distribution(y))[0] > 2
    right = SparseVector.from_epsilon(
        sensitivity=1, monotone=False, relation=Relation.REPLACE, hits=hits, queries=10, epsilon=1
    )
    assert worst_ratio(right.distribution(x), right.distribution(y))[1] <= 1


def test_many_queries_below_cost_nothing_more() -> None:
    """40 queries below and one hit lose no more than one query below and one hit may."""
    mechanism = SparseVector.from_epsilon(
        sensitivity=1, monotone=False, relation=Relation.REPLACE, hits=1, queries=41, epsilon=2
    )
    for length in (1, 10, 40):
        x, y = (0,) * length + (1,), (1,) * length + (0,)
        assert worst_ratio(mechanism.distribution(x), mechanism.distribution(y))[1] <= 2 + Fraction(1, 10**30)


def test_clear_queries_are_answered_right_and_halt_it() -> None:
    running = LOUD.start(threshold=0, source=system())
    answers = [running.compare(query) for query in (LOW, HIGH, LOW, LOW, HIGH)]
    assert answers == [False, True, False, False, True]
    halted = [running.halted, running.compare(HIGH) and running.halted]
    assert halted == [False, True]
    for query in (HIGH, LOW):
        with pytest.raises(MechanismError, match="HB611"):
            running.compare(query)


def test_threshold_is_where_it_was_put() -> None:
    running = LOUD.start(threshold=5000, source=system())
    assert [running.compare(4900), running.compare(5100)] == [False, True]


def test_it_halts_after_its_queries_as_well() -> None:
    short = SparseVector.from_epsilon(
        sensitivity=1, monotone=False, relation=Relation.ADD_REMOVE, hits=1, queries=2, epsilon=100
    )
    running = short.start(threshold=0, source=system())
    assert not running.compare(LOW)
    assert not running.compare(LOW)
    with pytest.raises(MechanismError):
        running.compare(LOW)
    with pytest.raises(MechanismError):
        short.distribution((0, 0, 0))


def test_halted_object_refuses_also_under_many_threads() -> None:
    """16 threads ask 50 times each; exactly three hits are ever given."""
    running = LOUD.start(threshold=0, source=system())
    start, hits, refused = threading.Barrier(16), [], []

    def ask() -> None:
        start.wait()
        for _ in range(50):
            try:
                hits.append(running.compare(HIGH))
            except MechanismError:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hits == [True] * 3
    assert len(refused) == 16 * 50 - 3


def test_a_running_one_cannot_be_copied_pickled_or_forked() -> None:
    running = LOUD.start(threshold=0, source=system())
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(running)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child does next to nothing before it ends
        child = os.fork()
    if child == 0:
        try:
            running.compare(HIGH)
        except MechanismError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert running.compare(HIGH)


def test_a_failed_draw_is_not_tried_again_under_the_same_threshold() -> None:
    class Failing:
        def words(self, *_: int) -> None:
            raise OSError("no words")

    running = LOUD.start(threshold=0, source=system())
    running._source = Failing()  # type: ignore[assignment]
    with pytest.raises(OSError, match="no words"):
        running.compare(HIGH)
    assert running._queries == 1


@pytest.mark.parametrize(
    ("hits", "queries", "monotone"),
    [(0, 5, False), (6, 5, False), (True, 5, False), (1, 0, False), (1.0, 5, False), (1, 5, 1), (1, 5, None)],
)
def test_bad_counts_and_flags_are_refused(hits: int, queries: int, *, monotone: bool) -> None:
    with pytest.raises(ParameterError):
        SparseVector.from_epsilon(
            sensitivity=1, monotone=monotone, relation=Relation.REPLACE, hits=hits, queries=queries, epsilon=1
        )
