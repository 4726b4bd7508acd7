"""Product strategies, held against the matrix that they stand for."""

import numpy as np
import pytest

from hubbub.analyses.tables.product_strategies import ProductStrategy, product_strategy
from hubbub.analyses.tables.strategies import Strategy
from hubbub.analyses.tables.strategy_search import DenseGram, grouped
from hubbub.core.unit import Relation
from hubbub.sql.noise import Noise

FACTORS = (
    Strategy("a", np.array([[2, 0], [0, 3], [1, 1]], dtype=np.int64)),
    Strategy("b", np.array([[1, -1, 0], [0, 2, 1], [0, 0, 4]], dtype=np.int64)),
)


def test_a_product_is_the_strategy_of_the_whole_matrix() -> None:
    product, whole = ProductStrategy(FACTORS), Strategy("whole", np.kron(FACTORS[0].matrix, FACTORS[1].matrix))
    counts = np.array([5, 0, 7, 1, 2, 9], dtype=np.int64)
    assert product.measured(counts).tolist() == whole.measured(counts).tolist()
    # columns of |A|: 3 and 4 times 1, 3 and 5; of squares: 5 and 10 times 1, 5 and 17
    assert product.columns == (20, 170)
    noisy = product.measured(counts) + np.array([3, -1, 0, 2, 5, -4, 1, 0, -2])
    assert np.allclose(product.estimated(noisy).reshape(-1), whole.estimated(noisy))
    left, right = np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 0.0, 1.0]])
    rows = np.kron(left, right)
    assert np.allclose(product.variances([left, right]), np.diag(rows @ whole.covariance @ rows.T))


@pytest.mark.parametrize("relation", list(Relation))
def test_the_sensitivity_is_reached_or_above_what_any_two_units_move(relation: Relation) -> None:
    """All units that add at most 2 to six cells together."""
    product = ProductStrategy(FACTORS)
    units = [np.bincount([a, b], minlength=7)[:6].astype(np.int64) for a in range(7) for b in range(7)]
    moved = [product.measured(unit) for unit in units]
    none = np.zeros_like(moved[0])
    pairs = (
        [(one, none) for one in moved] if relation is Relation.ADD_REMOVE else [(a, b) for a in moved for b in moved]
    )
    stated = product.sensitivity(contribution=2, relation=relation)
    l1 = max(int(np.abs(a - b).sum()) for a, b in pairs)
    l2 = max(int(((a - b) ** 2).sum()) for a, b in pairs)
    assert l1 <= stated.l1
    assert l2 <= stated.l2_squared
    if relation is Relation.ADD_REMOVE:
        assert (l1, l2) == (stated.l1, stated.l2_squared)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_strategy_is_found_that_beats_bins_measured_alone(noise: Noise) -> None:
    size = 40
    ranges = np.array([[a <= i <= b for i in range(size)] for a in range(size) for b in range(a, size)], dtype=float)
    gram = ranges.T @ ranges / len(ranges)
    found = product_strategy([gram], noise)
    absolute, squared = found.columns
    norm = absolute**2 if noise == "laplace" else squared
    error = float(np.mean(found.variances([ranges]))) * norm
    alone = float(np.trace(gram))
    assert error < (0.85 if noise == "laplace" else 0.45) * alone


def test_large_counts_do_not_overflow() -> None:
    product = product_strategy([np.eye(3) + 1, np.eye(4) + 1], "laplace")
    counts = np.full(12, (1 << 62) + 12345, dtype=np.int64)
    assert (product.measured(counts) > 0).all()


@pytest.mark.parametrize("size", [5, 6])
def test_totals_that_weigh_more_than_bins_are_searched_to_an_end(size: int) -> None:
    """Totals and single bins, the first of which nobody may ask for: no step of the search may lead to no inverse."""
    for alone in (0, 1):
        bins = np.diag(np.arange(size) >= alone).astype(np.float64)
        for ratio in np.exp(np.linspace(-3, 5, 60)):
            weights = grouped(DenseGram(ratio * np.ones((size, size)) + bins), 2)
            assert np.isfinite(weights).all()
            assert weights.max() < 1e7
