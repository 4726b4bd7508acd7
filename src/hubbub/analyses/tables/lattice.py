"""Consistent estimates of the marginals of one table, and how to split a budget over them.

A marginal is a sum of orthogonal residuals, as in an analysis of variance: for each set A of axes, what it says about A
beyond every smaller set. A marginal S measures the residual of every A ⊆ S, the more accurately the fewer axes are
summed over. So the least-squares estimate of all tables is, residual by residual, a weighted mean of the measurements
(Xiao, He, Zhang and Kifer 2023), and marginals that are composed of these residuals are consistent.

Floating point; post-processing or planning only: nothing here affects privacy.

Tested in tests/analyses/tables/test_contingency.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.tables.strategy_search import descend

Floats = NDArray[np.float64]
#: A set of axes, by their positions, in order.
Axes = tuple[int, ...]

#: A marginal with a smaller share of the budget is not measured.
_LEAST = 0.01


def subsets(axes: Sequence[int]) -> list[Axes]:
    """List all subsets, the smallest first.

    >>> subsets((0, 2))
    [(), (0,), (2,), (0, 2)]
    """
    return [tuple(each) for each in chain.from_iterable(combinations(axes, k) for k in range(len(axes) + 1))]


def closure(wanted: Iterable[Axes]) -> list[Axes]:
    """List sets and all their subsets, the smallest first."""
    found = {each for axes in wanted for each in subsets(axes)}
    return sorted(found, key=lambda each: (len(each), each))


@dataclass(frozen=True)
class Lattice:
    """The sizes of the axes, and the noise variance of the cells of each measured marginal."""

    sizes: tuple[int, ...]
    variances: Mapping[Axes, float]

    def cells(self, axes: Iterable[int]) -> int:
        """Count the cells of a marginal."""
        return prod(self.sizes[place] for place in axes)

    def information(self, axes: Axes) -> float:
        """Give the inverse variance of the residual of some axes, before centering."""
        inside = set(axes)
        return sum(
            1 / (variance * self.cells(set(measured) - inside))
            for measured, variance in self.variances.items()
            if inside <= set(measured)
        )

    def variance(self, wanted: Axes) -> float:
        """Give the variance of each cell of an estimated marginal."""
        return sum(
            freedom(self.sizes, axes) / (self.information(axes) * self.cells(set(wanted) - set(axes)) ** 2)
            for axes in subsets(wanted)
        )

    def estimate(self, noisy: Mapping[Axes, Floats], wanted: Sequence[Axes]) -> dict[Axes, Floats]:
        """Estimate consistent marginals by least squares from noisy ones."""
        residuals = {axes: self._residual(noisy, axes) for axes in closure(wanted)}
        found = {}
        for each in wanted:
            total = np.zeros([self.sizes[place] for place in each])
            for axes in subsets(each):
                shape = [self.sizes[place] if place in axes else 1 for place in each]
                total = total + residuals[axes].reshape(shape) / self.cells(set(each) - set(axes))
            found[each] = total
        return found

    def _residual(self, noisy: Mapping[Axes, Floats], axes: Axes) -> Floats:
        inside, total = set(axes), np.zeros([self.sizes[place] for place in axes])
        for measured, table in noisy.items():
            if not inside <= set(measured):
                continue
            away = tuple(i for i, place in enumerate(measured) if place not in inside)
            weight = 1 / (self.variances[measured] * self.cells(set(measured) - inside))
            total = total + weight * table.sum(axis=away)
        for i in range(len(axes)):
            total = total - total.mean(axis=i, keepdims=True)
        known = self.information(axes)
        # what was not measured is taken to be evenly spread
        return total / known if known else total


def freedom(sizes: Sequence[int], axes: Axes) -> float:
    """Give the share of a cell's variance that remains after centering the table along each axis."""
    return prod((sizes[place] - 1) / sizes[place] for place in axes)


def shares(
    sizes: Sequence[int], wanted: Sequence[Axes], spreads: Mapping[Axes, float], *, power: int
) -> dict[Axes, float]:
    """Split a budget over marginals so that the mean variance over the wanted ones is small.

    spreads   the standard deviation of the noise if a marginal had the entire budget
    power     the exponent of a share in the inverse variance: 2 for Laplace noise, 1 for Gaussian
    """
    measured, parts = list(spreads), closure(wanted)
    tells = np.zeros((len(parts), len(measured)))
    for i, axes in enumerate(parts):
        for j, each in enumerate(measured):
            if set(axes) <= set(each):
                summed = prod(sizes[place] for place in set(each) - set(axes))
                tells[i, j] = 1 / (spreads[each] ** 2 * summed)
    matters = np.array(
        [
            sum(
                freedom(sizes, axes) / prod(sizes[place] for place in set(each) - set(axes)) ** 2
                for each in wanted
                if set(axes) <= set(each)
            )
            for axes in parts
        ]
    )

    def error(portions: Floats) -> float:
        known = tells @ portions**power
        with np.errstate(divide="ignore"):
            return float(np.sum(np.where(matters > 0, matters / known, 0.0)))

    def slope(root: Floats) -> tuple[float, Floats]:
        whole = float(root @ root)
        portions = root**2 / whole
        known = tells @ portions**power
        by_portion = -power * portions ** (power - 1) * ((matters / known**2) @ tells)
        # squares over their sum are non-negative and add up to one
        return float(np.sum(matters / known)), 2 * root / whole * (by_portion - by_portion @ portions)

    even = np.full(len(measured), 1 / len(measured))
    covering = [j for j in range(len(measured)) if (tells[matters > 0, j] > 0).all()]
    starts = [even] + [0.05 * even + 0.95 * (np.arange(len(measured)) == j) for j in covering]
    found = [descend(slope, np.sqrt(start)) ** 2 for start in starts]
    tried = [each / each.sum() for each in found]
    tried += [_pruned(each) for each in tried]
    tried += [(np.arange(len(measured)) == j).astype(np.float64) for j in covering]
    best = min(tried, key=lambda each: (error(each), np.count_nonzero(each)))
    return {each: float(share) for each, share in zip(measured, best, strict=True) if share > 0}


def _pruned(portions: Floats) -> Floats:
    kept: Floats = np.where(portions >= _LEAST, portions, 0.0)
    total: Floats = kept / kept.sum()
    return total
