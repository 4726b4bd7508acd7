"""Residual bases, held against enumeration of tiny domains and against other splits of the same budget."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from hubbub.analyses.tables.residuals import ResidualBasis, contrasts
from hubbub.core.unit import Relation

TINY = ResidualBasis((2, 3, 2), 2)
CELLS = list(product(range(2), range(3), range(2)))


def _matrix(basis: ResidualBasis, subset: tuple[int, ...]) -> Any:
    """Write the measured sums of a subset over all cells, by their definition."""
    rows: Any = np.ones((1, 1), dtype=np.int64)
    for place, size in enumerate(basis.sizes):
        rows = np.kron(rows, contrasts(size).matrix if place in subset else np.ones((1, size), dtype=np.int64))
    return rows


def _marginal(subset: tuple[int, ...], x: Any) -> Any:
    return x.sum(axis=tuple(place for place in range(3) if place not in subset)).reshape(-1)


def test_contrasts_are_orthogonal_integers_that_sum_to_zero() -> None:
    for size in (2, 3, 7, 40):
        rows = contrasts(size).matrix
        assert rows.shape == (size - 1, size)
        assert not rows.sum(axis=1).any()
        gram = rows @ rows.T
        assert not (gram - np.diag(np.diag(gram))).any()


@pytest.mark.parametrize("relation", list(Relation))
def test_no_unit_of_a_tiny_domain_moves_the_parts_by_more_than_stated(relation: Relation) -> None:
    """All units of at most two rows, by the definition of the sums over all cells."""
    units = [np.zeros(12, dtype=np.int64), *np.eye(12, dtype=np.int64)]
    units += [a + b for a, b in combinations(units[1:], 2)] + [2 * each for each in units[1:13]]
    for subset in TINY.subsets:
        moved = [_matrix(TINY, subset) @ unit for unit in units]
        others = moved[:1] if relation is Relation.ADD_REMOVE else moved
        squared = max(int(((a - b) ** 2).sum()) for a in moved for b in others)
        stated = TINY.sensitivity(subset, contribution=2, relation=relation)
        assert squared <= stated.l2_squared
        if relation is Relation.ADD_REMOVE:
            assert squared == stated.l2_squared == 4 * TINY.cost(subset)


def test_all_marginals_follow_from_the_parts() -> None:
    x = np.arange(12).reshape(2, 3, 2) ** 2
    parts = {each: TINY.strategy(each).measured(_marginal(each, x)) for each in TINY.subsets}
    for subset in TINY.subsets:
        assert parts[subset].tolist() == (_matrix(TINY, subset) @ x.reshape(-1)).tolist()
        value, _ = TINY.marginal(subset, parts, dict.fromkeys(TINY.subsets, 1.0))
        assert np.allclose(value.reshape(-1), _marginal(subset, x))


def test_variances_are_those_of_the_estimates() -> None:
    """The estimate is linear in the parts: its variance is the sum of squares of what each part moves."""
    variances = {each: 1.0 + place for place, each in enumerate(TINY.subsets)}
    zeros = {each: np.zeros(TINY.strategy(each).sums, dtype=np.int64) for each in TINY.subsets}
    for wanted in TINY.subsets:
        _, stated = TINY.marginal(wanted, zeros, variances)
        total = np.zeros(stated.shape)
        for subset, part in zeros.items():
            for place in range(len(part)) if set(subset) <= set(wanted) else ():
                one = zeros | {subset: np.eye(len(part), dtype=np.int64)[place]}
                total += TINY.marginal(wanted, one, variances)[0] ** 2 * variances[subset]
        assert np.allclose(total, stated)


def _error(shares: Any) -> float:
    """Add up the squared errors of all cells of all marginals, where each part gets a share of ρ = 1/2."""
    variances = {each: TINY.cost(each) / share for each, share in zip(TINY.subsets, shares, strict=True)}
    zeros = {each: np.zeros(TINY.strategy(each).sums, dtype=np.int64) for each in TINY.subsets}
    return float(sum(TINY.marginal(each, zeros, variances)[1].sum() for each in TINY.subsets))


def test_no_other_split_has_a_smaller_squared_error() -> None:
    best = TINY.shares()
    assert best.sum() == pytest.approx(1)
    least, rng = _error(best), np.random.default_rng(3)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(50):
            other = best * np.exp(size * rng.normal(size=len(best)))
            assert _error(other / other.sum()) >= least * (1 - 1e-12)


def test_parts_are_measured_for_less_than_the_marginals_themselves() -> None:
    """The same marginals, each with Gaussian noise of its own and the best shares, at the same ρ = 1/2."""
    sizes = np.array([np.prod([TINY.sizes[place] for place in each]) for each in TINY.subsets], dtype=float)
    alone = float(np.sqrt(sizes).sum() ** 2)  # least Σ size/share
    assert _error(TINY.shares()) < 0.5 * alone
