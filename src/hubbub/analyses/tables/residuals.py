"""Residual bases: which sums to measure so that all marginals up to an order follow with the least squared error.

Every marginal of the columns A splits into parts that belong to one subset B of A each: what B tells beyond its own
subsets. Measured once, a part serves all marginals that include B (ResidualPlanner: Xiao, He, Zhang and Kifer 2023).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from hubbub.analyses.tables.product_strategies import ProductStrategy
from hubbub.analyses.tables.strategies import Integers, Strategy
from hubbub.analyses.tables.strategy_search import Floats
from hubbub.core.unit import Relation
from hubbub.sql.measures import Sensitivity

#: Columns by their places, in order.
Subset = tuple[int, ...]

#: The length of a row of a basis, which is rounded to integers.
_LENGTH = 1 << 10


@lru_cache(maxsize=256)
def contrasts(size: int) -> Strategy:
    """Measure how the values of a column differ: size − 1 orthogonal rows of integers, each with the sum 0.

    Row j is c·(1, …, 1, −j, 0, …, 0) with j ones, and c such that it is about as long as the others.
    """
    rows = np.tril(np.ones((size - 1, size), dtype=np.int64))
    for j in range(1, size):
        rows[j - 1, j] = -j
        rows[j - 1] *= max(1, round(_LENGTH / math.sqrt(j * (j + 1))))
    return Strategy("contrasts", rows)


@lru_cache(maxsize=256)
def _inverse(size: int) -> Floats:
    """Give the pseudo-inverse of the contrasts: rows are orthogonal, so each is divided by its squared length."""
    rows = contrasts(size).matrix.astype(np.float64)
    found: Floats = (rows / (rows**2).sum(axis=1)[:, None]).T
    return found


@lru_cache(maxsize=256)
def _spread(size: int) -> Floats:
    """Give the variance of each value from contrasts with noise of variance 1."""
    found: Floats = (_inverse(size) ** 2).sum(axis=1)
    return found


@dataclass(frozen=True)
class ResidualBasis:
    """All subsets of at most `order` columns, whose sizes are the numbers of their values.

    Theorem (Residual bases). For each subset B let R_B be the product of the contrasts of the columns in B, applied to
    the marginal of B, and let y_B = R_B·x + Z_B with independent discrete Gaussian noise of variance V_B. Let a unit
    add u to the cells, Σ|u| ≤ D. Then all y_B together have the loss of Gaussian noises with the squared sensitivities
    D²·Π_{i∈B} c₂(i) and variances V_B, where c₂(i) is the largest squared L2 norm of a column of the contrasts of i;
    four times the squared sensitivities where one unit is replaced by another. For each marginal A the sum over B ⊆ A
    of (⊗_{i∈B} H_i⁺ ⊗_{i∉B} 1/m_i)·y_B is unbiased.
    Proof    R_B·u is a combination of columns of ⊗ H_i, with weights whose absolute values sum to at most D, so its
             norm is at most D·max‖column‖, and norms of columns of a product multiply; the difference of two units has
             at most twice that norm. Noises of all B are independent, so their losses add up. On the space of vectors
             over the values of a column, H⁺H is the projection onto those with the sum 0, and J/m that onto constant
             ones: their sum is the identity, and the product over the columns of A expands to one term for each B ⊆ A.
             The term is (⊗ H_i⁺ ⊗ 1/m_i) R_B x, as R_B reads the marginal of A through that of B.
             With rows of one length c₂(i) is (m_i − 1)/m_i of its square, which is the privacy cost of the published
             mechanism; there the noise is correlated by subtraction matrices. Its rows span the same space as
             contrasts, which are orthogonal, so independent noise on contrasts has the same distribution after the
             change of basis, and is exact on integers.
    Theorem (Closed form). Among all V with Σ_B cost_B/V_B = 2ρ the sum Σ_B V_B·v_B is least at
             V_B = √(cost_B/v_B)·Σ_C √(cost_C·v_C)/2ρ.
    Proof    Cauchy and Schwarz: (Σ √(cost·v))² ≤ Σ cost/V · Σ V·v, with equality where V² is in proportion to cost/v.
    Charges  one Gaussian event for each B.
    Tested   tests/analyses/tables/test_residuals.py::test_no_unit_of_a_tiny_domain_moves_the_parts_by_more_than_stated
             tests/analyses/tables/test_residuals.py::test_all_marginals_follow_from_the_parts
             tests/analyses/tables/test_residuals.py::test_no_other_split_has_a_smaller_squared_error
    """

    sizes: tuple[int, ...]
    order: int

    @property
    def subsets(self) -> tuple[Subset, ...]:
        """All subsets, the empty one first."""
        places = range(len(self.sizes))
        return tuple(subset for size in range(self.order + 1) for subset in combinations(places, size))

    def strategy(self, subset: Subset) -> ProductStrategy:
        """Give the contrasts of a subset, of its marginal."""
        return ProductStrategy(tuple(contrasts(self.sizes[place]) for place in subset))

    def cost(self, subset: Subset) -> int:
        """Give the largest squared L2 norm of a column: the squared sensitivity for D = 1."""
        return math.prod(contrasts(self.sizes[place]).columns[1] for place in subset)

    def sensitivity(self, subset: Subset, *, contribution: int, relation: Relation) -> Sensitivity:
        """Bound how far one unit moves a part."""
        absolute = math.prod(contrasts(self.sizes[place]).columns[0] for place in subset)
        units = relation.units_changed
        return Sensitivity(units * contribution * absolute, units**2 * contribution**2 * self.cost(subset))

    def shares(self) -> Floats:
        """Give the share of ρ of each subset, for the least sum of squared errors of all cells of all marginals."""
        weights = np.array([math.sqrt(self.cost(each) * self._weight(each)) for each in self.subsets])
        found: Floats = weights / weights.sum()
        return found

    def _weight(self, subset: Subset) -> float:
        """Give the sum of squared errors over all cells of all marginals that include a subset, for variance 1."""
        own = math.prod(float(_spread(self.sizes[place]).sum()) for place in subset)
        rest = [1 / size for place, size in enumerate(self.sizes) if place not in subset]
        # elementary symmetric sums: one term for each set of other columns that a marginal has besides
        sums = [1.0] + [0.0] * (self.order - len(subset))
        for each in rest:
            for k in range(len(sums) - 1, 0, -1):
                sums[k] += sums[k - 1] * each
        return own * sum(sums)

    def marginal(
        self, wanted: Subset, parts: Mapping[Subset, Integers], variances: Mapping[Subset, float]
    ) -> tuple[Floats, Floats]:
        """Estimate a marginal from the noisy parts, with the variance of each cell."""
        shape = tuple(self.sizes[place] for place in wanted)
        value, variance = np.zeros(shape), np.zeros(shape)
        for size in range(len(wanted) + 1):
            for subset in combinations(wanted, size):
                others = math.prod(self.sizes[place] for place in wanted if place not in subset)
                part, spread = self._part(subset, parts[subset])
                at = [self.sizes[place] if place in subset else 1 for place in wanted]
                value += part.reshape(at) / others
                variance += spread.reshape(at) * (variances[subset] / others**2)
        return value, variance

    def _part(self, subset: Subset, noisy: Integers) -> tuple[Floats, Floats]:
        found = noisy.astype(np.float64).reshape([self.sizes[place] - 1 for place in subset])
        spread = np.ones(())
        for axis, place in enumerate(subset):
            found = np.moveaxis(np.tensordot(_inverse(self.sizes[place]), found, axes=(1, axis)), 0, axis)
            spread = np.multiply.outer(spread, _spread(self.sizes[place]))
        return np.asarray(found), np.asarray(spread)


def largest(subsets: Sequence[Subset]) -> list[Subset]:
    """Give the subsets of the largest size: every other subset is part of one of them."""
    most = max(len(each) for each in subsets)
    return [each for each in subsets if len(each) == most]
