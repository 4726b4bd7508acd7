"""Running totals and sliding windows of counts and sums over ordered keys, from sums that are chosen for them.

For running totals this is a factorization of the prefix matrix.

Noise on each value adds up: the t-th total of independent noises has t times the variance of one. Sums with the weights
of the square root of the prefix matrix (Gaussian noise), or of cells and overlapping groups of cells (Laplace noise),
give totals whose variance grows with the logarithm of t, or with its square root.

Tested in tests/curator/test_running_totals.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hubbub.analyses.base import Run
from hubbub.analyses.tables.product_strategies import product_strategy
from hubbub.analyses.tables.strategies import Integers, Strategy, best
from hubbub.analyses.tables.strategy_search import Floats
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.noise.source import RandomSource
from hubbub.sql import bounding
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.keys import Cells
from hubbub.sql.measures import BoundedSum, RowCount, Sensitivity
from hubbub.sql.noise import Noise
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget
from hubbub.sql.plan import bound_work, privacy_terms
from hubbub.sql.query import Query

#: Most values of the ordered key: finding and solving a strategy takes seconds from about here.
MAX_BINS = 512
#: The same for sliding windows, whose strategy is searched for the number of values and their width.
MAX_WINDOW_BINS = 128
#: Most cells of all keys.
MAX_CELLS = 200_000
#: Sums are weighted in two parts, of which the lower one has so many bits, so that no product overflows.
_LOW_BITS = 24


@dataclass(frozen=True, eq=False)
class CellSums:
    """The exact values of one measure in all cells, bounded by unit: the statement, and what one unit adds at most."""

    cells: Cells
    measure: RowCount | BoundedSum
    sql: str
    relation: Relation
    rows: int  #: of one unit, in all cells together
    by_row: bool  #: whether each row is its own unit

    @property
    def contribution(self) -> int:
        """The most that one unit adds to all cells together, in absolute values."""
        return self.rows * max(-self.measure.low, self.measure.high, 1)

    @property
    def signed(self) -> bool:
        """Whether rows can add with either sign."""
        return self.measure.low < 0 < self.measure.high


def cell_sums(query: Query, cells: Cells, measure: RowCount | BoundedSum, options: RenderOptions) -> CellSums:
    """Write the statement that adds up one measure in the cells of a query, with one bound on all rows of a unit.

    Theorem (One bound for all sums). With at most T rows kept of each unit, in an order that depends on its own rows
    alone, and rows that add whole steps between m and M, one unit adds u to the cells, Σ|u| ≤ T·max(−m, M); T is 1
    where each row is its own unit. No u has two signs if m ≥ 0 or M ≤ 0.
    Proof    `Truncate` keeps T rows of each unit before anything is added up, each row is in one cell at most, and the
             engine clamps what it adds.
    Assumes  the theorems "One owner for each row" and "A cut keeps neighbors".
    Tested   tests/curator/test_running_totals.py::test_neighbors_stay_within_the_sensitivity_of_running_sums
    """
    relation, limits = privacy_terms(query, None, None)
    if limits is None:
        total, rows = 1, bound_work(query, None, None, options)
    else:
        total = limits.groups * limits.rows if limits.total is None else limits.total
        rows = bound_work(query, None, None, options, total)
    sql = bounding.sums(rows, cells, [measure], limits=None, options=options)
    return CellSums(cells, measure, sql, relation, total, limits is None)


@dataclass(frozen=True, eq=False)
class RunningSums:
    """Measured sums from which running totals are estimated.

    Theorem (Running totals). Let x be the values of a measure in the cells of some keys, of which one unit moves at
    most D together, P the zero-one matrix of running totals or of sums over sliding windows along one key, and A an
    integer strategy with P = B·A for some B. A·x, for each combination of the other keys, with noise for the
    sensitivity of A at D costs what `mechanism` costs, and B·(A·x + z) is an unbiased estimate of P·x with variances
    diag(B·Bᵀ)·Var(z), whatever order the totals are read in.
    Proof    "One bound for all sums" bounds D. The columns of I ⊗ A ⊗ I have the norms of those of A, so "Integer
             strategies" bounds the move of all measured sums. A·x is exact for all |x| ≤ 2⁶¹, as A·x = 2ᵏ·A·h + A·l
             where x = 2ᵏ·h + l, and everything else is a function of A·x + z. A has full column rank, so
             B = P·(AᵀA)⁻¹Aᵀ has B·A = P.
    Assumes  the engine clamps each x to ±2⁶¹.
    Charges  the event of `mechanism`, once.
    Tested   tests/curator/test_running_totals.py::test_no_unit_moves_the_measured_sums_by_more_than_was_charged_for
             tests/curator/test_running_totals.py::test_neighbors_stay_within_the_sensitivity_of_running_sums
             tests/curator/test_running_totals.py::test_totals_without_noise_are_exact
             tests/curator/test_running_totals.py::test_large_sums_are_measured_exactly
             tests/curator/test_running_totals.py::test_the_stated_variances_are_those_of_the_factorization

    place      of the ordered key
    workload   the totals of the values of the ordered key, as sums of them
    variances  of each cell of the answer
    """

    counted: CellSums
    place: int
    workload: Floats
    strategy: Strategy
    mechanism: AdditiveNoise
    budget: NoiseBudget

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of the measured sums."""
        return running_sensitivity(self.strategy, self.counted)

    def measuring(self, counted: CellSums) -> "RunningSums | None":
        """Measure the same weighted sums of other steps; None if their noise is beyond the range of the samplers."""
        try:
            (mechanism,) = self.budget.mechanisms([running_sensitivity(self.strategy, counted)], [1.0])
        except ParameterError:
            return None
        return replace(self, counted=counted, mechanism=mechanism)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each key."""
        return tuple(domain.size for domain in self.counted.cells.domains)

    @property
    def sums(self) -> int:
        """The number of measured sums."""
        return self.counted.cells.size // self.strategy.size * len(self.strategy.matrix)

    @cached_property
    def variances(self) -> Floats:
        """The variance of the total in each cell, in squared steps."""
        own = np.maximum(np.einsum("ij,jk,ik->i", self.workload, self.strategy.covariance, self.workload), 0)
        along = [1] * len(self.shape)
        along[self.place] = -1
        (amount,) = self.budget.portions([1.0])
        noise = replace(self.budget, amount=amount).deviation(self.sensitivity)
        return np.broadcast_to(own.reshape(along), self.shape).reshape(-1) * noise**2

    def half_widths(self) -> Floats:
        """Give the ± of each total at 95%, in steps."""
        return np.array([self.budget.half_width(math.sqrt(each)) for each in self.variances.tolist()])

    def totals(self, found: Mapping[str, Integers], run: Run) -> Floats:
        """Measure the values of a result of the engine with noise, and estimate the totals."""
        return self.estimated(self.noisy(found, run.source))

    def noisy(self, found: Mapping[str, Integers], source: RandomSource) -> Floats:
        """Measure the values of a result of the engine, with noise."""
        exact = np.zeros(self.counted.cells.size, dtype=np.int64)
        at = np.asarray(found["cell"], dtype=np.int64)
        known = at >= 0
        np.add.at(exact, at[known], np.asarray(found["m0"], dtype=np.int64)[known])
        whole = exact.reshape(self.shape)
        high, low = self._measured(whole >> _LOW_BITS), self._measured(whole & ((1 << _LOW_BITS) - 1))
        # Python's integers: a sum of weighted sums can have more than 64 bits
        noisy = self.mechanism.sample(high.astype(object) * (1 << _LOW_BITS) + low.astype(object), source)
        return np.asarray(noisy, dtype=np.float64)

    def _measured(self, values: Integers) -> Integers:
        return np.moveaxis(np.tensordot(self.strategy.matrix, values, axes=(1, self.place)), 0, self.place)

    def estimated(self, noisy: Floats) -> Floats:
        """Estimate the totals from noisy sums, in the order of the cells."""
        solve = self.workload @ self.strategy.covariance @ self.strategy.matrix.T.astype(np.float64)
        found = np.moveaxis(np.tensordot(solve, noisy, axes=(1, self.place)), 0, self.place)
        return np.ascontiguousarray(found).reshape(-1)


def running_sensitivity(strategy: Strategy, counted: CellSums) -> Sensitivity:
    """Bound how far a unit moves the measured sums."""
    return strategy.sensitivity(contribution=counted.contribution, relation=counted.relation, signed=counted.signed)


def running_matrix(ranks: Sequence[int], width: int | None = None) -> Floats:
    """Add up the values of a key from the first by rank to each one, or the last `width` of them.

    >>> running_matrix([2, 0, 1]).tolist()
    [[1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    >>> running_matrix([2, 0, 1], 2).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    order = np.asarray(ranks)
    ahead = order[:, None] - order[None, :]
    found: Floats = ((ahead >= 0) & (ahead < (len(order) if width is None else width))).astype(np.float64)
    return found


def running_sums(
    counted: CellSums,
    place: int,
    ranks: Sequence[int],
    budgets: Sequence[NoiseBudget],
    width: int | None = None,
) -> RunningSums | None:
    """Choose sums for running totals along the key at `place`, whose values have these ranks; None if there are none.

    With `width` for the sums of the last so many values up to each one.
    The noise with the smallest mean variance of all totals is chosen.
    """
    if len(ranks) > (MAX_BINS if width is None else MAX_WINDOW_BINS) or counted.cells.size > MAX_CELLS:
        return None
    workload = running_matrix(ranks, width)
    found = []
    for budget in budgets:
        strategy = _along(workload, budget.noise, width)
        if strategy.largest < bounding.SATURATION >> _LOW_BITS:
            continue
        try:
            (mechanism,) = budget.mechanisms([running_sensitivity(strategy, counted)], [1.0])
        except ParameterError:  # noise beyond the range of the samplers
            continue
        found.append(RunningSums(counted, place, workload, strategy, mechanism, budget))
    return min(found, key=lambda each: float(each.variances.mean()), default=None)


def _along(workload: Floats, noise: Noise, width: int | None) -> Strategy:
    """Choose the strategy along the ordered key, for totals that are these sums of its values."""
    if width is not None:
        return product_strategy((workload.T @ workload / len(workload),), noise).factors[0]
    # a value that is in more totals comes earlier
    earlier = np.argsort(-workload.sum(axis=0), kind="stable")
    return _ordered(best(workload.shape[1], "prefixes", noise), earlier)


def _ordered(strategy: Strategy, earlier: Integers) -> Strategy:
    """Let a strategy for values in order measure values that are numbered otherwise."""
    matrix = np.empty_like(strategy.matrix)
    matrix[:, earlier] = strategy.matrix
    return replace(strategy, matrix=matrix)
