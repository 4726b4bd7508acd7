"""A program watched on two neighbors: each draw covers what moved, and a program that cheats is found."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.audit.grey_box import WATCHED, Cost, Tape, recorded, repeated, stated, within
from hubbub.core.events import Composed
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Source, system

COUNT = Laplace(sensitivity=1, scale=Fraction(10))
WIDE = Gaussian(sensitivity_squared=4, variance=Fraction(100))
PICK = Exponential(candidates=3, sensitivity=1, monotone=True, rate=Fraction(1, 10))
EVENT = Composed(((COUNT.event, 1), (WIDE.event, 1), (PICK.event, 1)))


def program(rows: int, source: Source) -> list[object]:
    """Count; ask for a multiple that depends on the noisy count; pick a third."""
    first = COUNT.sample(rows, source)
    start = int(source.words(1)[0] % np.uint64(2))
    second = WIDE.sample(np.array([first % 3 + rows, start], dtype=np.int64), source)
    third = PICK.sample(np.array([rows, rows, 0], dtype=np.int64), source)
    return [first, second.tolist(), third]


def test_a_program_that_keeps_its_promise_is_not_complained_of() -> None:
    tape = Tape()
    with recorded() as first:
        seen = program(100, tape)
    tape.rewind()
    with repeated(first) as beside:
        again = program(101, tape)
    assert again == seen
    assert beside.problems == []
    assert beside.draws == len(first) == 3
    assert within(beside.cost, EVENT)


@pytest.mark.parametrize("rows", [102, 98])
def test_a_value_that_moves_too_far_is_found(rows: int) -> None:
    tape = Tape()
    with recorded() as first:
        program(100, tape)
    tape.rewind()
    with repeated(first) as beside:
        program(rows, tape)
    assert "moved by 2, and 1 is covered" in beside.problems[0]
    tape.rewind()
    with repeated(first, units=2) as beside:
        program(rows, tape)
    assert beside.problems == []
    assert within(beside.cost, EVENT, units=2)


def test_a_path_that_depends_on_the_data_is_found() -> None:
    def leaky(rows: int) -> None:
        if rows > 100:
            COUNT.sample(rows, system())
        WIDE.sample(rows, system())

    with recorded() as first:
        leaky(100)
    with repeated(first) as beside:
        leaky(101)
    assert len(beside.problems) == 2
    with repeated([*first, *first]) as beside:
        leaky(100)
    assert beside.problems == ["it draws less often than on the neighbor"]


def test_scores_said_to_move_one_way_must_and_shapes_must_agree() -> None:
    with recorded() as first:
        PICK.sample(np.array([5, 5, 5], dtype=np.int64), system())
        COUNT.sample(np.array([1, 2], dtype=np.int64), system())
    with repeated(first) as beside:
        PICK.sample(np.array([4, 6, 5], dtype=np.int64), system())
        COUNT.sample(np.array([1], dtype=np.int64), system())
    assert ["both ways" in beside.problems[0], "another shape" in beside.problems[1]] == [True, True]


def test_draws_that_were_not_charged_cost_too_much() -> None:
    cost = Cost(pure=Fraction(3, 10), doubled=Fraction(9, 100))
    assert within(cost, Composed(((COUNT.event, 3),)))
    assert not within(cost, Composed(((COUNT.event, 2),)))
    assert stated(EVENT).gaussian
    assert not within(Cost(doubled=Fraction(1), gaussian=True), EVENT)


def test_a_watch_leaves_the_mechanisms_as_they_were() -> None:
    before = [kind.sample for kind in WATCHED]
    with pytest.raises(ZeroDivisionError), recorded():
        raise ZeroDivisionError
    assert [kind.sample for kind in WATCHED] == before


def test_a_tape_gives_the_same_words_again_and_new_ones_after_its_end() -> None:
    tape = Tape()
    first = [tape.words(3).tolist(), tape.words(2).tolist()]
    tape.rewind()
    assert [tape.words(3).tolist(), tape.words(2).tolist()] == first
    tape.rewind()
    assert tape.words(5).tolist() != first[0]
