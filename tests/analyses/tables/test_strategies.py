"""Strategies of the matrix mechanism: their figures, their sensitivity, and what least squares make of them."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.tables import strategy_search as optimize
from hubbub.analyses.tables.strategies import GRAMS, STEPS, Strategy, Workload, best, identity, strategy, tree
from hubbub.core.finite import FiniteDistribution
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.enumeration import worst_over
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.noise import Noise

NAMES = ("identity", "tree", "groups", "root", "dense")


@pytest.mark.row(62)
def test_all_ranges_of_256_bins_need_far_less_noise_than_bin_by_bin() -> None:
    """At ε = √2 noise on one bin has variance 1: the measure that `rmse` is in."""
    assert identity(256).rmse("ranges", "laplace") == pytest.approx(9.27, abs=0.005)
    found = best(256, "ranges", "laplace")
    assert found.rmse("ranges", "laplace") <= 5.70
    # the same, from the definition: all 32,896 ranges as rows, told from the sums by the pseudo-inverse
    ranges = np.array([[i <= k < j for k in range(256)] for i in range(256) for j in range(i + 1, 257)], dtype=float)
    told = ranges @ np.linalg.pinv(found.matrix.astype(float))
    scale = found.columns[0] / math.sqrt(2)  # c₁/ε
    assert math.sqrt(2 * scale**2 * (told**2).sum(axis=1).mean()) == pytest.approx(
        found.rmse("ranges", "laplace"), rel=1e-6
    )


@pytest.mark.row(62)
def test_1024_running_totals_have_a_factor_of_less_than_three_and_a_third() -> None:
    """The factor: the largest row of what tells them times the largest column of what is measured, in L2."""
    found = best(1024, "prefixes", "gaussian")
    told = np.tril(np.ones((1024, 1024))) @ np.linalg.inv(found.matrix.astype(float))
    factor = math.sqrt(float((told**2).sum(axis=1).max()) * found.columns[1])
    assert factor == pytest.approx(found.worst("prefixes", "gaussian"), rel=1e-6)
    assert factor == pytest.approx(3.27, abs=0.005)
    # a binary tree, each total the sum of its nodes: ten nodes at most, and each bin in eleven
    nodes = max(bin(total).count("1") for total in range(1, 1025))
    plain = math.sqrt(nodes * tree(1024).columns[1])
    assert plain == pytest.approx(10.5, abs=0.02)
    assert 3.3 < tree(1024).worst("prefixes", "gaussian") < plain
    assert identity(1024).worst("prefixes", "gaussian") == pytest.approx(32)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
def test_neighbors_move_the_measured_sums_by_no_more_than_stated(name: str, workload: Workload) -> None:
    """Every way in which units of at most two rows can differ, over five bins; the L1 bound is met by add/remove."""
    found, size, most = strategy(name, 5, workload), 5, 2
    units = [np.array(u) for u in product(range(most + 1), repeat=size) if sum(u) <= most]
    sums = [found.matrix @ unit for unit in units]
    for relation in Relation:
        moved = found.sensitivity(contribution=most, relation=relation)
        pairs = [(a, 0 * a) for a in sums] if relation is Relation.ADD_REMOVE else list(product(sums, sums))
        furthest = max(int(np.abs(a - b).sum()) for a, b in pairs)
        assert furthest <= moved.l1
        assert max(int(((a - b) ** 2).sum()) for a, b in pairs) <= moved.l2_squared
        if relation is Relation.ADD_REMOVE:
            assert furthest == moved.l1


def test_replacement_under_weights_of_both_signs_needs_the_wider_bound() -> None:
    crossed = Strategy("crossed", np.array([[1, -1], [1, 1]]))
    moved = crossed.sensitivity(contribution=1, relation=Relation.REPLACE)
    a, b = crossed.matrix[:, 0], crossed.matrix[:, 1]
    assert int(((a - b) ** 2).sum()) == 4
    assert moved.l2_squared == 8
    same = Strategy("same", np.array([[1, -1]]))
    assert same.sensitivity(contribution=1, relation=Relation.REPLACE).l2_squared == 4  # attained: 1 − (−1)


@pytest.mark.parametrize("relation", list(Relation))
def test_enumerated_loss_of_a_small_strategy_is_within_its_price(relation: Relation) -> None:
    """Two bins, the bins and their total measured: the exact distribution of three noisy sums, neighbor by neighbor."""
    small = Strategy("small", np.array([[1, 0], [0, 1], [1, 1]]))
    moved = small.sensitivity(contribution=1, relation=relation)
    noise = Laplace.from_epsilon(sensitivity=moved.l1, epsilon=1)

    def distribution(counts: tuple[int, int]) -> FiniteDistribution[tuple[int, ...]]:
        return noise.distribution(tuple(int(each) for each in small.measured(np.array(counts))), (-3, 5))

    base = (1, 1)
    less = [(0, 1), (1, 0)]
    pairs = [(base, other) for other in less] if relation is Relation.ADD_REMOVE else [(less[0], less[1])]
    worst = worst_over(pairs, distribution).bounds
    assert float(worst[1]) <= 1 + 1e-12
    assert privacy_cost(noise.event).pure == 1
    if relation is Relation.ADD_REMOVE:
        assert float(worst[0]) == pytest.approx(1)
        # noise that forgets one of the two sums that a row is in does not keep the promise
        planted = Laplace.from_epsilon(sensitivity=1, epsilon=1)
        broken = worst_over(
            pairs, lambda x: planted.distribution(tuple(int(v) for v in small.measured(np.array(x))), (-3, 5))
        )
        assert float(broken.bounds[0]) == pytest.approx(2)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_the_best_strategy_is_integer_and_no_worse_than_bin_by_bin(size: int, workload: Workload, noise: Noise) -> None:
    found = best(size, workload, noise)
    assert found.matrix.dtype == np.int64
    assert found.rmse(workload, noise) <= identity(size).rmse(workload, noise) + 1e-9
    counts = np.arange(size) ** 2
    assert found.estimated(found.measured(counts)) == pytest.approx(counts, abs=1e-6)


def test_counts_beyond_every_sum_are_clamped_and_do_not_wrap() -> None:
    found = strategy("groups", 8, "ranges")
    huge = found.measured(np.full(8, 1 << 61))
    assert (huge >= 0).all()
    assert int(huge.max()) <= 1 << 61


def test_rounding_to_integers_hardly_costs_accuracy() -> None:
    exact = optimize.square_root(128)
    rounded = strategy("root", 128, "prefixes").matrix / STEPS
    assert np.abs(exact - rounded).max() <= 0.5 / STEPS
    column = exact[:, 0]
    factor = float((column**2).sum())
    assert strategy("root", 128, "prefixes").worst("prefixes", "gaussian") == pytest.approx(factor, rel=1e-3)


def test_a_descent_finds_the_bottom_of_a_bowl() -> None:
    centre, shape = np.array([1.0, -2.0, 3.0]), np.diag([1.0, 10.0, 100.0])
    found = optimize.descend(
        lambda x: (float((x - centre) @ shape @ (x - centre)) + 1, 2 * shape @ (x - centre)), 0 * centre
    )
    assert found == pytest.approx(centre, abs=0.02)


def test_the_dense_strategy_beats_what_it_starts_from_and_meets_its_condition() -> None:
    """At the optimum the slope of the error is the same for every column's length."""
    declared = optimize.ranges_gram(32)
    found, gram = optimize.dense(declared), declared.matrix
    shape = found.T @ found
    inverse = np.linalg.inv(shape)
    slope = np.diag(inverse @ gram @ inverse)
    off = inverse @ gram @ inverse - np.diag(slope)
    assert np.abs(off).max() < 0.02 * slope.max()
    assert np.diag(shape) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
def test_a_gram_counts_how_often_two_bins_are_asked_for_together(size: int, workload: Workload) -> None:
    """Against the definition: the queries written out as rows of zeros and ones."""
    spans = [(i, j) for i in range(size) for j in range(i + 1, size + 1) if workload == "ranges" or i == 0]
    rows = np.array([[float(i <= k < j) for k in range(size)] for i, j in spans])
    gram = GRAMS[workload](size)
    assert gram.matrix == pytest.approx(rows.T @ rows / len(rows))
    some = np.random.default_rng(1).normal(size=(3, size))
    assert gram.right_of(some) == pytest.approx(some @ (rows.T @ rows) / len(rows))
    assert gram.diagonal == pytest.approx(np.diag(rows.T @ rows) / len(rows))


@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
def test_the_error_of_groups_and_its_slope_are_those_of_the_definition(workload: Workload) -> None:
    gram, step = GRAMS[workload](7), 1e-6
    weights = np.random.default_rng(2).uniform(0.1, 1, size=(3, 7))

    def error(groups: np.ndarray) -> float:
        whole = np.vstack([np.eye(7), groups]) / (1 + groups.sum(axis=0))
        return float(np.trace(np.linalg.inv(whole.T @ whole) @ gram.matrix))

    value, slope = optimize._grouped_error(weights, gram)
    assert value == pytest.approx(error(weights), rel=1e-9)
    for place in np.ndindex(*weights.shape):
        moved = np.zeros_like(weights)
        moved[place] = step
        measured = (error(weights + moved) - error(weights - moved)) / (2 * step)
        assert slope[place] == pytest.approx(measured, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
def test_a_matrix_that_is_its_own_mirror_image_is_inverted_by_halves(size: int) -> None:
    some = np.random.default_rng(3).normal(size=(size, size))
    matrix = some @ some.T + np.eye(size)
    mirrored = matrix + matrix[::-1, ::-1]
    assert optimize.by_halves(lambda part: np.asarray(np.linalg.inv(part)), mirrored) == pytest.approx(
        np.linalg.inv(mirrored)
    )


@pytest.mark.parametrize("size", [1, 2, 9, 150, 201])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
def test_the_covariance_is_that_of_least_squares(name: str, size: int, workload: Workload) -> None:
    """Whichever shortcut a strategy's shape allows."""
    weights = strategy(name, size, workload).matrix.astype(float)
    expected = np.linalg.inv(weights.T @ weights)
    assert strategy(name, size, workload).covariance == pytest.approx(expected, abs=1e-6 * float(expected.max()))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
def test_the_search_for_1024_bins_does_little_cubic_work(
    workload: Workload, noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Factorizations of the search, in units of one of size 1,024. It takes 0.15 to 0.27 s; 2.9 to 6 s before."""
    sizes: list[int] = []
    for name in ("eigh", "solve", "inv"):
        factorize = getattr(np.linalg, name)

        def counted(matrix: Any, *args: Any, factorize: Any = factorize) -> Any:
            sizes.append(len(matrix))
            return factorize(matrix, *args)

        monkeypatch.setattr(np.linalg, name, counted)
    strategy.cache_clear()
    strategy(best(1024, workload, noise).name, 1024, workload).rmse(workload, noise)
    assert sizes
    assert sum(size**3 for size in sizes) <= 1024**3
    assert len(sizes) <= 200


def test_strategies_are_kept_within_bounds() -> None:
    """Whoever asks chooses the number of bins: 8 of 1,024 bins hold 200 MB at most."""
    for size in range(1, 40):
        best(size, "ranges", "laplace")
    assert strategy.cache_info().currsize <= 8


@pytest.mark.parametrize(("name", "size"), [("wavelet", 8), ("identity", 0), ("identity", 1025)])
def test_strategies_that_are_not_there_are_refused(name: str, size: int) -> None:
    with pytest.raises(QueryError, match="HB589"):
        strategy(name, size, "ranges")


def test_scaled_noise_is_priced_as_asked() -> None:
    found = best(256, "ranges", "laplace")
    moved = found.sensitivity(contribution=3, relation=Relation.REPLACE)
    assert privacy_cost(Laplace.from_epsilon(sensitivity=moved.l1, epsilon="0.7").event).pure == Fraction(7, 10)
