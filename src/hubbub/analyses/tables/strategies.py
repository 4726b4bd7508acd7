"""Strategies of the matrix mechanism: integer matrices of measured sums, with their exact sensitivity.

Noise is added to the sums A·x of the counts x, and the answers are estimated from all of them by least squares.
Correlated queries need far less noise this way (Li, Hay, Rastogi, Miklau and McGregor 2010).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.tables import strategy_search as optimize
from hubbub.analyses.tables.strategy_search import Floats, Gram
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise

Workload = Literal["ranges", "prefixes"]
Integers = NDArray[np.int64]

#: What a weight of one becomes: the strategy is rounded to integers.
STEPS = 1 << 14
#: Most bins of a workload.
MAX_BINS = 1024
#: No sum leaves this: larger counts are clamped, which brings no two of them further apart.
_MOST = 1 << 61

GRAMS: Mapping[Workload, Callable[[int], Gram]] = {
    "ranges": optimize.ranges_gram,
    "prefixes": optimize.prefixes_gram,
}


@dataclass(frozen=True, eq=False)
class Strategy:
    """The measured sums: integer weights, a row for each sum and a column for each bin.

    Theorem (Integer strategies). Let a unit add u ≥ 0 to the bins, with Σu ≤ D, and let the columns of the integer
    matrix A have L1 norms of at most c₁ and squared L2 norms of at most c₂. Then A·x moves by at most D·c₁ in L1 and
    D²·c₂ in squared L2 where a unit is added or removed; where one is replaced, by at most 2D·c₁, and by 2D²·c₂ if no
    entry of A is negative, 4D²·c₂ otherwise. The same holds of u with any signs and Σ|u| ≤ D, except that 2D²·c₂ needs
    all units to add with one sign. Least squares after integer noise on A·x cost nothing.
    Proof    ‖Au‖ ≤ Σ |uⱼ|·‖aⱼ‖ ≤ D·max‖aⱼ‖ in both norms. A replacement moves A·x by Au − Av, so by the sum of two such
             norms; with A, u, v ≥ 0 no product (Au)ᵢ(Av)ᵢ is negative, so ‖Au − Av‖₂² ≤ ‖Au‖₂² + ‖Av‖₂². The norms
             are of the rounded matrix, added up in integers, so no rounding of a float can make them too small.
    Assumes  bins are bounded by unit in the engine; large counts are clamped, coordinate by coordinate, before A.
    Tested   tests/analyses/tables/test_strategies.py::test_neighbors_move_the_measured_sums_by_no_more_than_stated
             tests/analyses/tables/test_strategies.py::test_enumerated_loss_of_a_small_strategy_is_within_its_price
    """

    name: str
    matrix: Integers

    @property
    def size(self) -> int:
        """The number of bins."""
        return int(self.matrix.shape[1])

    @cached_property
    def columns(self) -> tuple[int, int]:
        """The largest L1 norm and the largest squared L2 norm of a column, exactly."""
        return int(np.abs(self.matrix).sum(axis=0).max()), int((self.matrix**2).sum(axis=0).max())

    def sensitivity(self, *, contribution: int, relation: Relation, signed: bool = False) -> Sensitivity:
        """Bound the sensitivity of the sums to a unit that adds at most `contribution` to all bins together.

        `signed`: units add with either sign.
        """
        absolute, squared = self.columns
        if relation is Relation.ADD_REMOVE:
            return Sensitivity(contribution * absolute, contribution**2 * squared)
        crossed = 4 if signed or bool((self.matrix < 0).any()) else 2
        return Sensitivity(2 * contribution * absolute, crossed * contribution**2 * squared)

    def measured(self, counts: Integers) -> Integers:
        """Give A·x before noise; counts are clamped so that no sum overflows."""
        measured: Integers = self.matrix @ np.clip(counts, -self.largest, self.largest)
        return measured

    @cached_property
    def largest(self) -> int:
        """The largest count with which no sum overflows."""
        return _MOST // int(np.abs(self.matrix).sum(axis=1).max())

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the estimated counts for noise of variance 1 on every measured sum: (AᵀA)⁻¹."""
        weights = self.matrix.astype(np.float64)
        own, rest = np.diag(weights[: self.size]), weights[self.size :]
        if 2 * len(rest) <= self.size and np.all(own) and np.count_nonzero(weights[: self.size]) == self.size:
            # few sums beside the bins: (Q² + CᵀC)⁻¹ by the inverse of the small matrix I + CQ⁻²Cᵀ
            scaled = rest / own**2
            inner = np.linalg.solve(np.eye(len(rest)) + scaled @ rest.T, scaled)
            return np.asarray(np.diag(1 / own**2) - scaled.T @ inner, dtype=np.float64)
        pull = weights.T @ weights
        if np.array_equal(self.matrix, self.matrix[::-1, ::-1]):
            return optimize.by_halves(_inverse, pull)
        return _inverse(pull)

    def estimated(self, noisy: Integers) -> Floats:
        """Estimate the counts from noisy sums, by least squares."""
        found: Floats = self.covariance @ (self.matrix.T.astype(np.float64) @ noisy.astype(np.float64))
        return found

    def rmse(self, workload: Workload, noise: Noise) -> float:
        """Give the root mean squared error over a workload, for ε = √2 (or ρ = ½): 1 for one bin measured alone."""
        return math.sqrt(self.variance(workload)) * self._norm(noise)

    def variance(self, workload: Workload) -> float:
        """Give the mean variance over a workload, for noise of variance 1 on every measured sum."""
        return float(np.sum(self.covariance * GRAMS[workload](self.size).matrix))

    def worst(self, workload: Workload, noise: Noise) -> float:
        """Give the largest standard error over a workload, in the same measure."""
        return math.sqrt(float(self._variances(workload).max())) * self._norm(noise)

    def _norm(self, noise: Noise) -> float:
        absolute, squared = self.columns
        return absolute if noise == "laplace" else math.sqrt(squared)

    def _variances(self, workload: Workload) -> Floats:
        # of the total up to i and down to j, both without bins where i or j is 0
        totals = np.zeros((self.size + 1, self.size + 1))
        totals[1:, 1:] = np.cumsum(np.cumsum(self.covariance, axis=0), axis=1)
        own = np.diag(totals)
        return own if workload == "prefixes" else own[:, None] + own[None, :] - 2 * totals


def _inverse(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def identity(size: int) -> Strategy:
    """Measure each bin separately."""
    return Strategy("identity", np.eye(size, dtype=np.int64))


def tree(size: int) -> Strategy:
    """Measure the nodes of a binary tree over the bins."""
    rows, width = [], 1
    while width < 2 * size:
        starts = np.arange(0, size, width)
        place = np.arange(size)
        rows.append((place >= starts[:, None]) & (place < starts[:, None] + width))
        width *= 2
    return Strategy("tree", np.vstack(rows).astype(np.int64))


def groups(size: int, workload: Workload) -> Strategy:
    """Measure the bins and some overlapping groups, weighted for the workload; for Laplace noise."""
    weights = optimize.grouped(GRAMS[workload](size), max(1, round(0.75 * math.sqrt(size))))
    whole = np.vstack([np.eye(size), weights]) / (1 + weights.sum(axis=0))
    return _rounded("groups", whole)


def root(size: int) -> Strategy:
    """Measure with the square root of the prefix matrix; for Gaussian noise on running totals."""
    return _rounded("root", optimize.square_root(size))


def dense(size: int, workload: Workload) -> Strategy:
    """Measure with the optimal weights for the workload's mean error; for Gaussian noise."""
    return _rounded("dense", optimize.dense(GRAMS[workload](size)))


def _rounded(name: str, weights: Floats) -> Strategy:
    return Strategy(name, np.rint(weights * STEPS).astype(np.int64))


_BUILDERS: Mapping[str, Callable[[int, Workload], Strategy]] = {
    "identity": lambda size, _: identity(size),
    "tree": lambda size, _: tree(size),
    "groups": groups,
    "root": lambda size, _: root(size),
    "dense": dense,
}


# few, since one of 1,024 bins holds up to 25 MB, and whoever asks chooses the number of bins
@lru_cache(maxsize=8)
def strategy(name: str, size: int, workload: Workload) -> Strategy:
    """Make a strategy by its name."""
    if name not in _BUILDERS:
        raise QueryError("HB589", f"There is no strategy {name!r}.", f"Available: {', '.join(_BUILDERS)}.")
    if not 1 <= size <= MAX_BINS:
        raise QueryError("HB589", f"There are {size:,} bins; at most {MAX_BINS:,} are allowed.", "Use fewer bins.")
    return _BUILDERS[name](size, workload)


def best(size: int, workload: Workload, noise: Noise) -> Strategy:
    """Find the strategy with the smallest error: the mean for ranges, the largest for prefixes with Gaussian noise."""
    return strategy(_best(size, workload, noise), size, workload)


@lru_cache(maxsize=4096)
def _best(size: int, workload: Workload, noise: Noise) -> str:
    if noise == "laplace":
        other = "groups"
    elif workload == "prefixes":
        other = "root"
    else:
        other = "dense"
    alone = math.sqrt(float(GRAMS[workload](size).diagonal.sum())) if 1 <= size <= MAX_BINS else 0.0
    return "identity" if alone <= strategy(other, size, workload).rmse(workload, noise) else other
