"""An analysis repeated on a neighboring dataset: honest ones pass, and ones that cheat are detected."""

import importlib
import pkgutil
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import analyses
from hubbub.audit.grey_box import WATCHED, PairCost, Tape, charged_cost, covered_by, record_draws, repeat_draws
from hubbub.core.events import Composed
from hubbub.mechanisms.binomial import Binomial
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.euclidean import EuclideanNoise
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.metric import Metric
from hubbub.mechanisms.sparse_vector import SparseVector
from hubbub.noise.source import RandomSource, system

COUNT = Laplace(sensitivity=1, scale=Fraction(10))
WIDE = Gaussian(sensitivity_squared=4, variance=Fraction(100))
PICK = Exponential(candidates=3, sensitivity=1, monotone=True, rate=Fraction(1, 10))
EVENT = Composed(((COUNT.event, 1), (WIDE.event, 1), (PICK.event, 1)))


def program(rows: int, source: RandomSource) -> list[object]:
    """Count; add noise to a value that depends on the noisy count; select one of three."""
    first = COUNT.sample(rows, source)
    start = int(source.words(1)[0] % np.uint64(2))
    second = WIDE.sample(np.array([first % 3 + rows, start], dtype=np.int64), source)
    third = PICK.sample(np.array([rows, rows, 0], dtype=np.int64), source)
    return [first, second.tolist(), third]


def test_an_honest_program_passes() -> None:
    tape = Tape()
    with record_draws() as first:
        seen = program(100, tape)
    tape.rewind()
    with repeat_draws(first) as comparison:
        again = program(101, tape)
    assert again == seen
    assert comparison.problems == []
    assert comparison.draws == len(first) == 3
    assert covered_by(comparison.cost, EVENT)


@pytest.mark.parametrize("rows", [102, 98])
def test_a_value_that_exceeds_its_sensitivity_is_detected(rows: int) -> None:
    tape = Tape()
    with record_draws() as first:
        program(100, tape)
    tape.rewind()
    with repeat_draws(first) as comparison:
        program(rows, tape)
    assert "changed by 2; its noise covers 1" in comparison.problems[0]
    tape.rewind()
    with repeat_draws(first, units=2) as comparison:
        program(rows, tape)
    assert comparison.problems == []
    assert covered_by(comparison.cost, EVENT, units=2)


def test_a_path_that_depends_on_the_data_is_detected() -> None:
    def leaky(rows: int) -> None:
        if rows > 100:
            COUNT.sample(rows, system())
        WIDE.sample(rows, system())

    with record_draws() as first:
        leaky(100)
    with repeat_draws(first) as comparison:
        leaky(101)
    assert len(comparison.problems) == 2
    with repeat_draws([*first, *first]) as comparison:
        leaky(100)
    assert comparison.problems == ["It draws less often than on the neighboring dataset."]


def test_monotone_scores_and_shapes_are_checked() -> None:
    with record_draws() as first:
        PICK.sample(np.array([5, 5, 5], dtype=np.int64), system())
        COUNT.sample(np.array([1, 2], dtype=np.int64), system())
    with repeat_draws(first) as comparison:
        PICK.sample(np.array([4, 6, 5], dtype=np.int64), system())
        COUNT.sample(np.array([1], dtype=np.int64), system())
    assert ["both directions" in comparison.problems[0], "another shape" in comparison.problems[1]] == [True, True]


def test_every_mechanism_that_analyses_draw_from_is_watched() -> None:
    """But those of user-defined functions, which the ledger does not contain, and sessions, whose answers draw."""
    drawn = set()
    for module in pkgutil.walk_packages(analyses.__path__, "hubbub.analyses."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and kind.__module__.startswith("hubbub.mechanisms") and hasattr(kind, "sample"):
                drawn.add(kind)
    assert drawn - set(WATCHED) == {BitFlips, Metric, SparseVector}


@pytest.mark.parametrize(
    ("mechanism", "one", "near", "far"),
    [
        (Binomial(sensitivity=2, coins=64, epsilon=Fraction(1)), 5, 7, 8),
        (EuclideanNoise(dimensions=2, sensitivity=5, rate=Fraction(1, 5)), [0, 0], [3, -4], [4, 4]),
    ],
)
def test_other_noise_is_compared_in_its_norm(mechanism: Any, one: Any, near: Any, far: Any) -> None:
    def draw(value: Any) -> None:
        mechanism.sample(value if isinstance(value, int) else np.array(value, dtype=np.int64), system())

    with record_draws() as first:
        draw(one)
    for value, fine in ((near, True), (far, False)):
        with repeat_draws(first) as comparison:
            draw(value)
        assert (comparison.problems == []) is fine
        assert covered_by(comparison.cost, mechanism.event) is fine


def test_draws_that_were_not_charged_cost_too_much() -> None:
    cost = PairCost(pure=Fraction(3, 10), doubled=Fraction(9, 100))
    assert covered_by(cost, Composed(((COUNT.event, 3),)))
    assert not covered_by(cost, Composed(((COUNT.event, 2),)))
    assert charged_cost(EVENT).gaussian
    assert not covered_by(PairCost(doubled=Fraction(1), gaussian=True), EVENT)


def test_recording_restores_the_mechanisms() -> None:
    before = [kind.sample for kind in WATCHED]
    with pytest.raises(ZeroDivisionError), record_draws():
        raise ZeroDivisionError
    assert [kind.sample for kind in WATCHED] == before


def test_a_tape_repeats_its_words_and_continues_with_new_ones() -> None:
    tape = Tape()
    first = [tape.words(3).tolist(), tape.words(2).tolist()]
    tape.rewind()
    assert [tape.words(3).tolist(), tape.words(2).tolist()] == first
    tape.rewind()
    assert tape.words(5).tolist() != first[0]
