"""Cells of a cube's marginals: their values by exact contrasts, and the noise of groups by the joint law."""

from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import prod, sqrt

import numpy as np
import pytest

from hubbub.analyses.tables.residuals import contrasts
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.noise.source import system
from hubbub.sql.noise import half_width, variance_of
from hubbub.sql.residual_views import ResidualMarginal
from hubbub.sql.terms import weighted

SIZES, ORDER = (3, 4, 2), 2
SUBSETS = [each for size in range(ORDER + 1) for each in combinations(range(len(SIZES)), size)]
SCALES = tuple(tuple(int(each) for each in contrasts(size).matrix[:, 0]) for size in SIZES)
#: The total is much less exact than the rest: cells that share its draw are far from independent.
VARIANCES = {(): 4000.0, (0,): 9e5, (1,): 4e5, (2,): 7e5, (0, 1): 3e10, (0, 2): 5e10, (1, 2): 2e10}


def projections(places: tuple[int, ...]) -> dict[tuple[int, ...], np.ndarray]:
    """Give, for each subset, the matrix from its numbers to the cells of a marginal, by a numeric pseudo-inverse."""
    found = {}
    for size in range(len(places) + 1):
        for each in combinations(places, size):
            parts = [
                np.linalg.pinv(contrasts(SIZES[i]).matrix.astype(float))
                if i in each
                else np.full((SIZES[i], 1), 1 / SIZES[i])
                for i in places
            ]
            found[each] = reduce(lambda one, other: np.kron(one, other), parts, np.ones((1, 1)))
    return found


def groupings(cells: int) -> list[np.ndarray]:
    """Each cell alone, all together, some left out, and groups of several."""
    numbers = np.arange(cells)
    return [numbers, np.zeros(cells, dtype=np.int64), np.where(numbers % 3 == 0, -1, numbers % 3 - 1), numbers // 2]


def noise(subset: tuple[int, ...]) -> Gaussian:
    return Gaussian(sensitivity_squared=1, variance=Fraction(VARIANCES[subset]))


@pytest.mark.parametrize("places", [(), (1,), (0, 1), (1, 2)])
def test_variances_are_those_of_the_joint_law_by_matrices(places: tuple[int, ...]) -> None:
    marginal = ResidualMarginal(places, SCALES, ORDER)
    matrices = projections(places)
    assert [SUBSETS[each] for each in marginal.positions()] == list(matrices)
    assert SUBSETS[marginal.number] == places
    covariance = sum(VARIANCES[each] * m @ m.T for each, m in matrices.items())
    for groups in groupings(prod(SIZES[i] for i in places)):
        if groups.max() < 0 or set(range(groups.max() + 1)) - set(groups.tolist()):
            continue
        chosen = np.stack([(groups == g).astype(float) for g in range(groups.max() + 1)])
        exact = np.einsum("gi,ij,gj->g", chosen, covariance, chosen)
        squares = marginal.squares(groups)
        stated = np.array([VARIANCES[each] for each in matrices]) @ squares
        assert stated == pytest.approx(exact, rel=1e-9)
        worst = weighted(marginal.noises([noise(each) for each in SUBSETS], squares))
        assert exact.max() <= float(variance_of(worst)) <= 1.0001 * exact.max() + 1e-6
        # a covariance that is ignored is noticed: the sum of the variances of cells is another number
        if groups.max() == 0 and len(groups) > 1:
            assert abs(chosen @ np.diag(covariance) - exact)[0] > 0.2 * exact[0]


def test_intervals_of_groups_of_cells_cover() -> None:
    """2,000 draws: with a true coverage of 95%, fewer than 1,852 hits have a probability below 1e-6 (binomial)."""
    marginal, draws = ResidualMarginal((0, 1), SCALES, ORDER), 2000
    groups = np.array([0, 0, 1, 1, 0, 0, 1, 1, -1, 0, 1, -1])
    squares = marginal.squares(groups)
    width = half_width(weighted(marginal.noises([noise(each) for each in SUBSETS], squares)), Fraction(95, 100))
    source = system()
    counts = [prod(SIZES[i] - 1 for i in each) for each in SUBSETS]
    drawn = [
        noise(each).sample(np.zeros(draws * count, dtype=np.int64), source).reshape(draws, count)
        for each, count in zip(SUBSETS, counts, strict=True)
    ]
    numbers = np.concatenate(drawn, axis=1)
    cells = np.array([marginal.values(row.tolist()) for row in numbers], dtype=np.float64)
    wrong = sqrt(
        (groups == 0).sum() * sum(VARIANCES[e] * (m**2).sum(axis=1).max() for e, m in projections((0, 1)).items())
    )
    for group in (0, 1):
        sums = cells[:, groups == group].sum(axis=1)
        assert (np.abs(sums) <= width).sum() >= 1852
        # what independent cells would have is too narrow, and is noticed
        assert (np.abs(sums) <= 1.96 * wrong).sum() < 1852


def test_values_are_exact_without_noise() -> None:
    cells = np.random.default_rng(3).integers(0, 10**6, SIZES)
    sums: list[int] = []
    for each in SUBSETS:
        part = cells.sum(axis=tuple(i for i in range(3) if i not in each))
        for axis, column in enumerate(each):
            matrix = contrasts(SIZES[column]).matrix
            part = np.moveaxis(np.tensordot(matrix, part, axes=(1, axis)), 0, axis)
        sums += np.asarray(part).reshape(-1).tolist()
    for places in SUBSETS:
        exact = cells.sum(axis=tuple(i for i in range(3) if i not in places)).reshape(-1).tolist()
        assert ResidualMarginal(places, SCALES, ORDER).values(sums) == exact
