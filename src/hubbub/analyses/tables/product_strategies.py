"""Strategies over several columns: one strategy for each column, and every product of their sums is measured.

Nothing of size (cells × cells) is made: a product with the whole matrix is one product along each column.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.analyses.tables import strategy_search as search
from hubbub.analyses.tables.strategies import Integers, Strategy, identity
from hubbub.analyses.tables.strategy_search import DenseGram, Floats
from hubbub.core.unit import Relation
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise

#: Most bins of a column for which weights are searched; with more of them each bin is measured alone.
MAX_SEARCHED = 400
#: No sum leaves this, as in `strategies`.
_MOST = 1 << 61
#: The bits of a weight of one, of all columns together and of one column.
_BITS, _BITS_OF_ONE = 24, 14


@dataclass(frozen=True, eq=False)
class ProductStrategy:
    """Measure A₁ ⊗ A₂ ⊗ … of the cells of several columns.

    Theorem (Product strategies). The columns of A₁ ⊗ A₂ ⊗ … have L1 norms of at most Πc₁(Aᵢ) and squared L2 norms of at
    most Πc₂(Aᵢ), with the norms of each factor; so the theorem of integer strategies holds with these products. The
    least squares estimate of the cells is the product of the factors' estimates, and its covariance, for independent
    noise of one variance, is the product of theirs.
    Proof    A column of the product is a product of columns, and so are its norms: ‖a ⊗ b‖ = ‖a‖·‖b‖ in both. All
             entries and their products are integers. (A ⊗ B)ᵀ(A ⊗ B) = AᵀA ⊗ BᵀB, and the inverse of a product is the
             product of inverses.
    Assumes  bins are bounded by unit in the engine; large counts are clamped, coordinate by coordinate, before A.
    Tested   tests/analyses/tables/test_product_strategies.py::test_a_product_is_the_strategy_of_the_whole_matrix
    """

    factors: tuple[Strategy, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of bins of each column."""
        return tuple(each.size for each in self.factors)

    @property
    def sums(self) -> int:
        """The number of measured sums."""
        return math.prod(len(each.matrix) for each in self.factors)

    @cached_property
    def columns(self) -> tuple[int, int]:
        """The largest L1 norm and the largest squared L2 norm of a column, exactly."""
        norms = [each.columns for each in self.factors]
        return math.prod(each for each, _ in norms), math.prod(each for _, each in norms)

    def sensitivity(self, *, contribution: int, relation: Relation) -> Sensitivity:
        """Bound the sensitivity of the sums to a unit that adds at most `contribution` to all cells together."""
        absolute, squared = self.columns
        if relation is Relation.ADD_REMOVE:
            return Sensitivity(contribution * absolute, contribution**2 * squared)
        crossed = 4 if any(bool((each.matrix < 0).any()) for each in self.factors) else 2
        return Sensitivity(2 * contribution * absolute, crossed * contribution**2 * squared)

    def measured(self, counts: Integers) -> Integers:
        """Give the sums before noise; counts are clamped so that none overflows."""
        most = _MOST // math.prod(int(np.abs(each.matrix).sum(axis=1).max()) for each in self.factors)
        found = np.clip(counts, -most, most).reshape(self.shape)
        for axis, each in enumerate(self.factors):
            found = np.moveaxis(np.tensordot(each.matrix, found, axes=(1, axis)), 0, axis)
        return np.asarray(found, dtype=np.int64).reshape(-1)

    def estimated(self, noisy: Integers) -> Floats:
        """Estimate the cells from noisy sums, by least squares."""
        found: Floats = noisy.astype(np.float64).reshape(tuple(len(each.matrix) for each in self.factors))
        for axis, each in enumerate(self.factors):
            solve = each.covariance @ each.matrix.T.astype(np.float64)
            found = np.moveaxis(np.tensordot(solve, found, axes=(1, axis)), 0, axis)
        return np.asarray(found)

    def variances(self, matrices: Sequence[Floats]) -> Floats:
        """Give the variance of each sum of a product workload, for noise of variance 1 on every measured sum."""
        found = np.ones(1)
        for each, matrix in zip(self.factors, matrices, strict=True):
            own = np.einsum("ij,jk,ik->i", matrix, each.covariance, matrix, optimize=True)
            found = np.multiply.outer(found, np.maximum(own, 0)).reshape(-1)
        return found


def product_strategy(grams: Sequence[Floats], noise: Noise) -> ProductStrategy:
    """Find a strategy for each column, given how often two of its bins are in one query."""
    searched = sum(1 < len(gram) <= MAX_SEARCHED for gram in grams)
    steps = 1 << min(_BITS_OF_ONE, _BITS // max(1, searched))
    return ProductStrategy(tuple(_factor(gram, noise, steps) for gram in grams))


def _factor(gram: Floats, noise: Noise, steps: int) -> Strategy:
    size = len(gram)
    options = [identity(size)]
    if 1 < size <= MAX_SEARCHED:
        if noise == "gaussian":
            options.append(_rounded("dense", search.dense_of(gram), steps))
        else:
            for groups in sorted({1, max(1, round(0.75 * math.sqrt(size)))}):
                weights = search.grouped(DenseGram(gram), groups)
                whole = np.vstack([np.eye(size), weights]) / (1 + weights.sum(axis=0))
                options.append(_rounded("groups", whole, steps))
    return min((each for each in options if _full(each)), key=lambda each: _error(each, gram, noise))


def _rounded(name: str, weights: Floats, steps: int) -> Strategy:
    return Strategy(name, np.rint(weights * steps).astype(np.int64))


def _full(strategy: Strategy) -> bool:
    """Tell whether all bins can be estimated, also after rounding."""
    if strategy.name == "identity":
        return True
    own = strategy.matrix.astype(np.float64) / float(np.abs(strategy.matrix).max())
    return bool(np.linalg.cond(own) < 1e6)


def _error(strategy: Strategy, gram: Floats, noise: Noise) -> float:
    absolute, squared = strategy.columns
    norm = absolute**2 if noise == "laplace" else squared
    return float(np.sum(strategy.covariance * gram)) * norm
