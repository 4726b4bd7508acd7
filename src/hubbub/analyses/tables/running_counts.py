"""Running totals and sliding windows of counts over ordered keys, from sums that are chosen for them.

For running totals this is a factorization of the prefix matrix.

Noise on each count adds up: the t-th total of independent noises has t times the variance of one. Sums with the weights
of the square root of the prefix matrix (Gaussian noise), or of bins and overlapping groups of bins (Laplace noise),
give totals whose variance grows with the logarithm of t, or with its square root.

Tested in tests/curator/test_running_totals.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.analyses.base import Run
from hubbub.analyses.tables.marginals import Counts
from hubbub.analyses.tables.product_strategies import ProductStrategy, product_strategy
from hubbub.analyses.tables.shared_counts import CountedTable, SharedBlock, SharedQuestion, binned, bins_of
from hubbub.analyses.tables.strategies import Strategy, best, identity
from hubbub.analyses.tables.strategy_search import Floats
from hubbub.errors import ParameterError
from hubbub.sql.linear_counts import LinearCount, LinearQuestion, Matrix
from hubbub.sql.noise import Noise
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget

#: Most bins along the ordered key: finding and solving a strategy takes seconds from about here.
MAX_BINS = 512
#: The same for sliding windows, whose strategy is searched for the number of bins and their width.
MAX_WINDOW_BINS = 128


@dataclass(frozen=True, eq=False)
class RunningCounts:
    """Measured sums from which running totals are estimated.

    Theorem (Running totals). Let x be the counts of the cells of some columns, of which one unit moves at most T
    together, P the zero-one matrix of running totals or of sums over sliding windows, and A an integer strategy with
    P = B·A for some B. A·x with noise for the sensitivity of A at T costs what `mechanism` costs, and B·(A·x + z) is an
    unbiased estimate of P·x with variances diag(B·Bᵀ)·Var(z), whatever order the totals are read in.
    Proof    "Integer strategies" and "Product strategies" bound the move of A·x, "One bound for all cells" bounds T.
             Everything else is a function of A·x + z. A has full column rank, so B = P·(AᵀA)⁻¹Aᵀ has B·A = P.
    Assumes  the theorem "Linear counts": the cells of the query are sums of x.
    Charges  the event of `mechanism`, once.
    Tested   tests/curator/test_running_totals.py::test_no_unit_moves_the_measured_sums_by_more_than_was_charged_for
             tests/curator/test_running_totals.py::test_totals_without_noise_are_exact
             tests/curator/test_running_totals.py::test_the_stated_variances_are_those_of_the_factorization

    count      the running totals of the query's cells, as sums of bins
    variances  of each cell of the answer
    """

    block: SharedBlock
    count: LinearCount
    mechanism: AdditiveNoise
    budget: NoiseBudget
    variances: Floats

    @property
    def strategy(self) -> Strategy:
        """The strategy along the ordered key: the largest factor that is not the identity."""
        return max(self.block.strategy.factors, key=lambda each: (each.name != "identity", each.size))

    def half_widths(self) -> Floats:
        """Give the ± of each total at 95%."""
        return np.array([self.budget.half_width(math.sqrt(each)) for each in self.variances.tolist()])

    def totals(self, found: Mapping[str, Counts], run: Run) -> Floats:
        """Measure the counts of a result of the engine with noise, and estimate the totals."""
        return self.block.answer(self.block.through(found, self.mechanism, run), self.count)


def running_matrix(matrix: Matrix, ranks: Sequence[int], width: int | None = None) -> Matrix:
    """Add up the rows of a matrix from the first by rank to each row, or the last `width` of them.

    >>> running_matrix(np.eye(3), [2, 0, 1]).tolist()
    [[1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    >>> running_matrix(np.eye(3), [2, 0, 1], 2).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    order = np.asarray(ranks)
    ahead = order[:, None] - order[None, :]
    before: Matrix = ((ahead >= 0) & (ahead < (len(order) if width is None else width))).astype(np.float64)
    return before @ matrix


def running_counts(
    question: LinearQuestion,
    place: int,
    ranks: Sequence[int],
    counted: CountedTable,
    budgets: Sequence[NoiseBudget],
    width: int | None = None,
) -> RunningCounts | None:
    """Choose sums for running totals along the key at `place`, whose values have these ranks; None if there are none.

    With `width` for the sums of the last so many values up to each one.
    The noise with the smallest mean variance of all totals is chosen.
    """
    ((count,),) = question.measures
    axis = [*count.matrices][place]
    totals = LinearCount({**count.matrices, axis: running_matrix(count.matrices[axis], ranks, width)})
    bins = tuple(bins_of([totals.matrices.get(column.name)], column.size) for column in counted.columns)
    if any(not (each >= 0).any() for each in bins):
        return None
    along = next(place for place, column in enumerate(counted.columns) if column.name == axis)
    sizes = [int(each.max()) + 1 for each in bins]
    if sizes[along] > (MAX_BINS if width is None else MAX_WINDOW_BINS):
        return None
    own = replace(question, measures=((totals,),))
    workload = binned(totals.matrices[axis], bins[along])
    found = []
    for budget in budgets:
        factors = [identity(size) for size in sizes]
        factors[along] = _along(workload, budget.noise, width)
        block = SharedBlock(counted, bins, (0,), (SharedQuestion(own, (1.0,)),), ProductStrategy(tuple(factors)))
        try:
            (mechanism,) = budget.mechanisms([block.sensitivity], [1.0])
        except ParameterError:  # noise beyond the range of the samplers
            continue
        (amount,) = budget.portions([1.0])
        noise = replace(budget, amount=amount).deviation(block.sensitivity)
        found.append(RunningCounts(block, totals, mechanism, budget, _variances(block, totals) * noise**2))
    return min(found, key=lambda each: float(each.variances.mean()), default=None)


def _variances(block: SharedBlock, count: LinearCount) -> Floats:
    """Give the variance of each cell of an answer, in its order, for noise of variance 1 on every measured sum."""
    matrices = block.matrices(count)
    found = block.strategy.variances(matrices).reshape([len(each) for each in matrices])
    return block.in_order(found, count)


def _along(workload: Floats, noise: Noise, width: int | None) -> Strategy:
    """Choose the strategy along the ordered key, for totals that are these sums of bins."""
    if width is not None:
        return product_strategy((workload.T @ workload / len(workload),), noise).factors[0]
    # a bin that is in more totals comes earlier
    earlier = np.argsort(-workload.sum(axis=0), kind="stable")
    return _ordered(best(workload.shape[1], "prefixes", noise), earlier)


def _ordered(strategy: Strategy, earlier: Counts) -> Strategy:
    """Let a strategy for bins in order measure bins that are numbered otherwise."""
    matrix = np.empty_like(strategy.matrix)
    matrix[:, earlier] = strategy.matrix
    return Strategy(strategy.name, matrix)
