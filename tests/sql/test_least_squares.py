"""Least squares with exact weights: unbiased to the last digit, and as exact as an independent solution."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from hubbub.sql.least_squares import PARTS, least_squares

SHAPE = (2, 3, 4)


def marginal(*axes: int) -> Any:
    """The sums of a table with the shape `SHAPE` over all axes but these, as rows over its cells."""
    cells = np.array(list(product(*map(range, SHAPE))))
    keys = list(product(*(range(SHAPE[axis]) for axis in axes)))
    return np.array(
        [[all(c[a] == k for a, k in zip(axes, key, strict=True)) for c in cells] for key in keys], dtype=int
    )


SYSTEMS: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]] = {
    "one total of two tables": (((0, 1), (1, 2)), ()),
    "a marginal of overlapping tables": (((0, 1), (1, 2), (0, 2)), (1,)),
    "the table itself, and its marginals": (((0, 1, 2), (0,), (1, 2), ()), (0, 1)),
    "the same twice": (((0,), (0,)), (0,)),
}


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_weights_are_those_of_an_independent_solution(name: str) -> None:
    """The variance is that of the conditions of Lagrange: minimize Σ v·w² where W·A = C."""
    tables, asked = SYSTEMS[name]
    measured, wanted = np.vstack([marginal(*axes) for axes in tables]), marginal(*asked)
    variances = [Fraction(3 * place + 1, 2) for place, axes in enumerate(tables) for _ in marginal(*axes)]
    found = least_squares(measured, variances, wanted)
    assert found is not None
    spread = np.array([float(each) for each in variances])
    size = measured.shape[1]
    system = np.block([[np.diag(spread), measured], [measured.T, np.zeros((size, size))]])
    for row, goal in zip(found.rows, wanted, strict=True):
        solution = np.linalg.lstsq(system, np.concatenate([np.zeros(len(spread)), goal]), rcond=1e-10)[0][: len(spread)]
        weights = np.zeros(len(spread))
        for place, weight in row:
            weights[place] = float(weight)
        assert weights == pytest.approx(solution, abs=len(spread) ** 2 / PARTS)
        assert (weights**2 * spread).sum() == pytest.approx((solution**2 * spread).sum(), rel=1e-6)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_weights_are_exactly_unbiased(name: str) -> None:
    tables, asked = SYSTEMS[name]
    measured, wanted = np.vstack([marginal(*axes) for axes in tables]), marginal(*asked)
    variances = [Fraction(place + 7, 3) for place in range(len(measured))]
    found = least_squares(measured, variances, wanted)
    assert found is not None
    for row, goal in zip(found.rows, wanted.tolist(), strict=True):
        total = [sum((weight * int(measured[place, atom]) for place, weight in row), Fraction(0)) for atom in range(24)]
        assert total == goal


def test_what_does_not_follow_has_no_weights() -> None:
    assert least_squares(marginal(0), [Fraction(1)] * 2, marginal(1)) is None
    assert least_squares(np.vstack([marginal(0, 1), marginal(1, 2)]), [Fraction(1)] * 18, marginal(0, 2)) is None
    assert least_squares(marginal(0), [Fraction(0)] * 2, marginal(0)) is None


def test_integer_weights_of_a_strategy_are_exact_too() -> None:
    """Rows of a matrix mechanism: a scaled identity, and two groups."""
    measured = np.array([[16000, 0, 0], [0, 15000, 0], [0, 0, 9001], [300, 300, 0]])
    found = least_squares(measured, [Fraction(5)] * 4, np.array([[1, 1, 0], [0, 0, 1]]))
    assert found is not None
    for row, goal in zip(found.rows, ([1, 1, 0], [0, 0, 1]), strict=True):
        assert [sum((w * int(measured[p, at]) for p, w in row), Fraction(0)) for at in range(3)] == goal
