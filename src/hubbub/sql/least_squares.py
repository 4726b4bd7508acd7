"""Least squares with exact weights: the best linear estimate of sums of atoms from noisy sums of atoms.

Tested in tests/sql/test_least_squares.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

#: Free weights are multiples of one part in so many: the loss of precision is below a millionth.
PARTS = 1_000_000
#: The largest denominator of a coefficient by which one measured sum follows from others.
_DENOMINATOR = 1 << 15
_SMALL = 1e-9

#: Coefficients over a basis that are not 0.
_Combination = dict[int, int | Fraction]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Weights:
    """For each wanted sum, the measured sums that it is computed from, each with its weight."""

    rows: tuple[tuple[tuple[int, Fraction], ...], ...]


def least_squares(measured: Integers, variances: Sequence[Fraction], wanted: Integers) -> Weights | None:
    """Return the weights of the unbiased linear estimate with the least variance; None if there is no exact one.

    Theorem (Exact least squares). Let y = A·x + z with independent z of the given variances, A the rows of `measured`
    over atoms, and let W be what is returned. Then W·A = C exactly, for C the rows of `wanted`, so that W·y is an
    unbiased estimate of C·x whatever x is, and E[W·y] is the same for any two ways to combine releases that overlap.
    W differs from the weights of least variance by less than PARTS⁻¹ in each free coordinate.
    Proof    A basis of the rows of A is chosen, and every other row, and C, is written over the basis; each such
             equation is checked in integers, and nothing is returned where one fails. The weights of the other rows are
             rounded, and those of the basis follow from them by these equations, so that W·A = C holds for any
             rounding. With B = A divided by the deviations, the least variance is that of the shortest solution of
             V·B = C, which is C·B⁺ (Gauss and Markov); `_free_weights` computes it over the basis.
    Charges  nothing: no noisy number is read.
    Tested   tests/sql/test_least_squares.py::test_weights_are_those_of_an_independent_solution
             tests/sql/test_least_squares.py::test_weights_are_exactly_unbiased
    """
    deviations = np.sqrt(np.array([float(each) for each in variances]))
    if not measured.size or not wanted.size or not (deviations > 0).all():
        return None
    order = np.argsort(deviations, kind="stable")
    basis, over = _basis(measured[order].astype(np.float64))
    chosen = order[basis]
    goals = [_exact(over(row.astype(np.float64)), row, measured[chosen]) for row in wanted]
    aims = [goal for goal in goals if goal is not None]
    if len(aims) < len(goals):
        return None
    used = set(chosen.tolist())
    ties = [
        (int(row), tie)
        for row in order
        if row not in used
        for tie in [_exact(over(measured[row].astype(np.float64)), measured[row], measured[chosen])]
        if tie is not None  # without it the estimate is less precise, and unbiased all the same
    ]
    free = _free_weights(aims, ties, deviations[chosen], deviations[[row for row, _ in ties]])
    rows: list[tuple[tuple[int, Fraction], ...]] = []
    for goal, own in zip(aims, free, strict=True):
        left = {place: Fraction(factor) for place, factor in goal.items()}
        found: list[tuple[int, Fraction]] = []
        for (row, tie), parts in zip(ties, own, strict=True):
            if not parts:
                continue
            weight = Fraction(parts, PARTS)
            found.append((row, weight))
            for place, factor in tie.items():
                left[place] = left.get(place, Fraction(0)) - weight * factor
        found += [(int(chosen[place]), weight) for place, weight in left.items() if weight]
        rows.append(tuple(sorted(found)))
    return Weights(tuple(rows))


def _free_weights(
    goals: Sequence[_Combination], ties: Sequence[tuple[int, _Combination]], own: Floats, others: Floats
) -> list[list[int]]:
    """Return the weights of the rows outside the basis, in parts, for the least variance.

    Over the basis, A = T·B for the identity above the ties, and C = G·B. As rows of B are independent, W·A = C is
    W·T = G, and with S = T divided by the deviations the least variance is that of G·(SᵀS)⁻¹·Sᵀ. In units of the
    deviations of the basis, SᵀS is the identity and something positive: it can always be inverted well.
    """
    if not ties:
        return [[] for _ in goals]
    below = np.array([[float(tie.get(place, 0)) for place in range(len(own))] for _, tie in ties]) * own
    below /= others[:, None]
    wanted = np.array([[float(goal.get(place, 0)) for place in range(len(own))] for goal in goals]) * own
    weights = np.linalg.solve(np.eye(len(own)) + below.T @ below, wanted.T).T @ below.T / others
    return [[round(each) for each in row] for row in (weights * PARTS).tolist()]


def _basis(rows: Floats) -> tuple[list[int], "_Over"]:
    """Choose a basis among the rows, the first ones first, and return how to write vectors over it."""
    count, width = rows.shape
    most = min(count, width)
    echelon, change = np.zeros((most, width)), np.zeros((most, most))
    pivots: list[int] = []
    basis: list[int] = []
    known = set[bytes]()
    for place in range(count):
        row, size = rows[place], len(basis)
        if size == most or row.tobytes() in known:
            continue
        known.add(row.tobytes())
        factors = row[pivots]
        rest = row - factors @ echelon[:size]
        pivot = int(np.argmax(np.abs(rest)))
        if abs(rest[pivot]) <= _SMALL * max(1.0, float(np.abs(row).max())):
            continue
        own = np.zeros(size + 1)
        own[:size], own[size] = -(factors @ change[:size, :size]), 1.0
        own /= rest[pivot]
        rest /= rest[pivot]
        column = echelon[:size, pivot].copy()
        echelon[:size] -= np.outer(column, rest)
        change[:size, : size + 1] -= np.outer(column, own)
        echelon[size], change[size, : size + 1] = rest, own
        pivots.append(pivot)
        basis.append(place)
    return basis, _Over(tuple(pivots), change[: len(basis), : len(basis)])


@dataclass(frozen=True)
class _Over:
    """Writes vectors of the row space over the basis."""

    pivots: tuple[int, ...]
    change: Floats

    def __call__(self, row: Floats) -> Floats:
        """Return the coefficients."""
        found: Floats = row[list(self.pivots)] @ self.change
        return found


def _exact(coefficients: Floats, row: Integers, basis: Integers) -> _Combination | None:
    """Return the coefficients other than 0 with which the basis gives the row exactly; None if there are none."""
    places = np.flatnonzero(np.abs(coefficients) > 0.5 / _DENOMINATOR).tolist()
    found: dict[int, int | Fraction] = {}
    for place in places:
        value = float(coefficients[place])
        whole = round(value)
        found[place] = whole if abs(value - whole) < _SMALL else Fraction(value).limit_denominator(_DENOMINATOR)
    whole = lcm(*(each.denominator for each in found.values()))
    if whole >= 1 << 30:
        return None
    factors = [int(each * whole) for each in found.values()]
    most = int(np.abs(basis).max(initial=0)) * sum(map(abs, factors))
    if most >= 1 << 62 or int(np.abs(row).max(initial=0)) * whole >= 1 << 62:
        return None
    used = np.array(factors, dtype=np.int64)
    return found if np.array_equal(used @ basis[places], row * whole) else None
