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
             V·B = C, which is C·B⁺ (Gauss and Markov).
    Charges  nothing: no noisy number is read.
    Tested   tests/sql/test_least_squares.py::test_weights_are_those_of_an_independent_solution
             tests/sql/test_least_squares.py::test_weights_are_exactly_unbiased
    """
    deviations = np.sqrt(np.array([float(each) for each in variances]))
    if not measured.size or not wanted.size or not (deviations > 0).all():
        return None
    scaled = measured / deviations[:, None]
    solution, *_ = np.linalg.lstsq(scaled.T, wanted.T.astype(np.float64), rcond=1e-11)
    weights: Floats = solution.T / deviations
    if np.abs(weights @ measured - wanted).max() > 1e-6:
        return None
    order = np.argsort(deviations, kind="stable")
    basis, over = _basis(measured[order].astype(np.float64))
    chosen = order[basis]
    others = [int(row) for row in order if row not in set(chosen.tolist())]
    ties = {row: _exact(over(measured[row].astype(np.float64)), measured[row], measured[chosen]) for row in others}
    goals = [_exact(over(row.astype(np.float64)), row, measured[chosen]) for row in wanted]
    rows: list[tuple[tuple[int, Fraction], ...]] = []
    for goal, own in zip(goals, weights, strict=True):
        if goal is None:
            return None
        left = list(goal)
        found: list[tuple[int, Fraction]] = []
        for row in others:
            tie, weight = ties[row], Fraction(round(own[row] * PARTS), PARTS)
            if tie is None or not weight:
                continue  # without it the estimate is less precise, and unbiased all the same
            found.append((row, weight))
            for place, factor in enumerate(tie):
                if factor:
                    left[place] -= weight * factor
        found += [(int(row), weight) for row, weight in zip(chosen, left, strict=True) if weight]
        rows.append(tuple(sorted(found)))
    return Weights(tuple(rows))


def _basis(rows: Floats) -> tuple[list[int], "_Over"]:
    """Choose a basis among the rows, the first ones first, and return how to write vectors over it."""
    count, width = rows.shape
    echelon, change = np.zeros((0, width)), np.zeros((0, 0))
    pivots: list[int] = []
    basis: list[int] = []
    for place in range(count):
        row = rows[place]
        factors = row[pivots] if pivots else np.zeros(0)
        rest = row - factors @ echelon
        pivot = int(np.argmax(np.abs(rest)))
        if abs(rest[pivot]) <= _SMALL * max(1.0, float(np.abs(row).max())):
            continue
        own = np.append(-(factors @ change), 1.0) / rest[pivot]
        rest = rest / rest[pivot]
        change = np.pad(change, ((0, 0), (0, 1)))
        column = echelon[:, pivot].copy()
        echelon = np.vstack([echelon - np.outer(column, rest), rest])
        change = np.vstack([change - np.outer(column, own), own])
        pivots.append(pivot)
        basis.append(place)
    return basis, _Over(tuple(pivots), change)


@dataclass(frozen=True)
class _Over:
    """Writes vectors of the row space over the basis."""

    pivots: tuple[int, ...]
    change: Floats

    def __call__(self, row: Floats) -> Floats:
        """Return the coefficients."""
        found: Floats = row[list(self.pivots)] @ self.change
        return found


def _exact(coefficients: Floats, row: Integers, basis: Integers) -> tuple[Fraction, ...] | None:
    """Return the coefficients as fractions with which the basis gives the row exactly; None if there are none."""
    found = tuple(Fraction(float(each)).limit_denominator(_DENOMINATOR) for each in coefficients)
    whole = lcm(*(each.denominator for each in found))
    if whole >= 1 << 30:
        return None
    factors = [int(each * whole) for each in found]
    most = int(np.abs(basis).max(initial=0)) * sum(map(abs, factors))
    if most >= 1 << 62 or int(np.abs(row).max(initial=0)) * whole >= 1 << 62:
        return None
    used = np.array(factors, dtype=np.int64)
    return found if np.array_equal(used @ basis, row * whole) else None
