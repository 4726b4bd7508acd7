"""A median by local sensitivity: bounds by brute force, and what it says through the one path."""

from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest

from hubbub.analyses.programs.median import local_quantile
from hubbub.curator.session import open_session
from hubbub.errors import QueryError

TOP, MOST = 3, 4
Rows = tuple[int, ...]


def quantile(rows: Rows, level: Fraction) -> int:
    place = -(-level.numerator * len(rows) // level.denominator)
    return sorted(rows)[place - 1] if place else 0


def neighbors(rows: Rows, size: int) -> set[Rows]:
    """Add, remove or replace up to `size` rows at once: what a unit of so many rows can do."""
    known = {rows}
    for _ in range(size):
        fewer = {(*each[:i], *each[i + 1 :]) for each in known for i in range(len(each))}
        more = {tuple(sorted((*each, value))) for each in known | fewer for value in range(TOP + 1)}
        known |= fewer | more
    return known - {rows}


@pytest.mark.row(20, 113)
@pytest.mark.parametrize(("level", "size"), [(Fraction(1, 2), 1), (Fraction(9, 10), 1), (Fraction(1, 2), 2)])
def test_bounds_hold_for_all_datasets_of_a_small_universe(level: Fraction, size: int) -> None:
    universe = [rows for count in range(MOST + 1) for rows in combinations_with_replacement(range(TOP + 1), count)]
    far = max(len(rows) for rows in universe) + 3

    def bounds(rows: Rows) -> tuple[int, ...]:
        return local_quantile(np.array(rows, dtype=np.int64), level, 0, TOP, size, far).bounds

    attained = 0
    for rows in universe:
        here = bounds(rows)
        assert local_quantile(np.array(rows, dtype=np.int64), level, 0, TOP, size, far).value == quantile(rows, level)
        for other in neighbors(rows, size):
            moved = abs(quantile(rows, level) - quantile(other, level))
            assert moved <= here[0]
            attained += moved == here[0] > 0
            assert all(a <= b for a, b in zip(here[:-1], bounds(other)[1:], strict=True))
    assert attained > 50


def test_windows_that_are_too_short_are_noticed() -> None:
    """Half the window, as if a row moved a median by half a rank: a neighbor moves further."""
    rows = np.array([0, 0, 3, 3], dtype=np.int64)
    assert abs(quantile((0, 0, 3, 3), Fraction(1, 2)) - quantile((0, 3, 3), Fraction(1, 2))) == 3
    assert local_quantile(rows, Fraction(1, 2), 0, 3, 1, 4).bounds[0] == 3
    assert local_quantile(rows[[0, 0, 0, 1, 1]], Fraction(1, 2), 0, 3, 1, 4).bounds[0] == 0


def test_a_median_is_near_the_true_one_and_costs_what_it_says(town: Path) -> None:
    """At ε = 50, the noise is within 0.02 but with probability below 1e-6: 600 values spread evenly over [0, 10]."""
    with open_session(town / "hubbub.yaml", analyst="ana") as session:
        release = session.median("people", "z", epsilon=50, step="0.01")
    truth = np.median(np.loadtxt(town / "people.csv", delimiter=",", skiprows=1, usecols=2))
    (answer,) = release.outputs[0].values
    assert isinstance(answer, float)
    assert abs(answer - truth) < 0.2
    assert release.epsilon == 50
    assert release.delta == 0


def test_a_proposal_that_fails_gives_no_answer(town: Path) -> None:
    with open_session(town / "hubbub.yaml", analyst="ana") as session:
        text = "CALL median(table => 'people', column => 'z', sensitivity => 'propose', bound => 0.01)"
        release = session.query(text, epsilon=1)
    answer, holds = release.outputs
    assert holds.values == [False]
    assert answer.values == [None]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("column => 'z', bound => 1", "HB678"),
        ("column => 'z', sensitivity => 'propose'", "HB678"),
        ("column => 'z', sensitivity => 'propose', bound => 10", "HB678"),
        ("column => 'region'", "HB679"),
        ("column => 'z', step => 20", "HB679"),
    ],
)
def test_what_cannot_be_prepared_is_refused(town: Path, arguments: str, code: str) -> None:
    with open_session(town / "hubbub.yaml", analyst="ana") as session, pytest.raises(QueryError, match=code):
        session.estimate(f"CALL median(table => 'people', {arguments})", epsilon=1)
