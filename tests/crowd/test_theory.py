"""The paper's lemmas as numbers: exact tails, enclosed volumes, and the printed form that fails."""

import math

import numpy as np
import pytest
from scipy import stats

from hubbub.crowd.experiments import uniform
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.theory import (
    center_chance,
    chi_tail,
    lost_share,
    masses,
    random_error,
    secure,
    uniform_chance,
    volume_in_cell,
)
from hubbub.errors import CrowdError


@pytest.mark.row(80)
@pytest.mark.parametrize(("d", "c", "t"), [(1, 3, 10), (2, 3, 10), (2, 1.5, 4), (3, 2, 10), (5, 3, 10)])
def test_the_chance_in_an_even_crowd_is_what_is_seen(rng: np.random.Generator, d: int, c: float, t: int) -> None:
    """3,000 databases of 200 points, the guess at the origin of a cube wide enough: 6 deviations, below 1e-8.

    With (t in place of t − 1), the planted error, the chance of the second case would be .692 for .654: 4.4 % off.
    """
    databases = 3000
    points = uniform(200 * databases, d, rng).reshape(databases, 200, d) * 1.0
    away = np.sort(np.linalg.norm(points, axis=2), axis=1)
    inside = away[:, t - 1] <= 1  # beyond 1 the cube's corners are not even any more
    hits = (c * away[:, 0] < away[:, t - 1])[inside]
    chance = uniform_chance(c=c, t=t, d=d)
    assert inside.mean() > 0.99
    assert abs(hits.mean() - chance) < 6 * math.sqrt(chance * (1 - chance) / len(hits)) + 1e-3
    assert uniform_chance(c=1, t=t, d=d) == 1
    if d == 2:
        assert abs(hits.mean() - uniform_chance(c=c, t=t + 1, d=d)) > 0.02


@pytest.mark.row(80)
@pytest.mark.parametrize(("d", "figure"), [(2, 0.6536), (5, 0.0371), (10, 0.00049)])
def test_the_chance_of_a_first_center_is_what_is_seen(rng: np.random.Generator, d: int, figure: float) -> None:
    """4,000 databases of 1,000 points, all distances: within 6 deviations, so a false alarm is below 1e-8.

    With t − 1 in place of t − 2 in the tail, the planted error, the chance at d = 2 is .692.
    """
    chance = center_chance(n=1000, d=d, c=3, t=10)
    assert chance == pytest.approx(figure, abs=figure / 100)
    hits = 0
    for _ in range(40):
        squares = np.square(rng.random((100, 1000, d)) - 0.25).sum(axis=2)
        squares.partition((0, 9), axis=1)
        hits += int((9 * squares[:, 0] < squares[:, 9]).sum())
    assert abs(hits / 4000 - chance) < 6 * math.sqrt(chance * (1 - chance) / 4000) + 1e-4
    assert center_chance(n=1000, d=d, c=1, t=10) == 1
    if d == 2:
        assert abs(hits / 4000 - center_chance(n=1000, d=d, c=3, t=11)) > 0.02


@pytest.mark.row(81)
@pytest.mark.parametrize("t", [2, 10, 50])
@pytest.mark.parametrize("epsilon", [0.5, 0.1, 1e-3, 1e-9])
def test_a_ball_outside_of_the_masses_wins_with_at_most_epsilon(t: int, epsilon: float) -> None:
    """Exact tails of sums of binomials, one a cell, at the printed masses; at half of the second one they fail."""
    n = 4000
    needed = masses(n=n, t=t, epsilon=epsilon)
    assert needed.inside * n == pytest.approx(epsilon)
    assert needed.around * n == pytest.approx(2 * t + 8 * math.log(1 / epsilon))
    for cells in ([n], [n // 2, n // 2], [n // 4, n // 4, n // 2], [100] * 40):
        for spread in ([1.0] * len(cells), list(range(1, len(cells) + 1))):
            weights = np.array(spread) * np.array(cells)
            parts = np.minimum(1, np.array(spread) / weights.sum())
            some = -math.expm1(sum(m * math.log1p(-needed.inside * n * p) for m, p in zip(cells, parts, strict=True)))
            assert some <= epsilon * (1 + 1e-9)
            chances = np.minimum(1, needed.around * n * parts)
            assert _below(cells, chances, t) <= epsilon
    tight = stats.binom.cdf(t - 1, n, t / n)
    assert tight > 0.4  # with a mass of t/n only, fewer than t are there every other time


def _below(cells: list[int], chances: Floats, t: int) -> float:
    distribution = np.ones(1)
    for m, chance in zip(cells, chances, strict=True):
        distribution = np.convolve(distribution, stats.binom.pmf(np.arange(t), m, chance))[:t]
    return float(distribution.sum())


@pytest.mark.row(82)
def test_balls_beyond_beta_hold_the_whole_cube(rng: np.random.Generator) -> None:
    assert [round(secure(beta)) for beta in (1 / 60, 1 / 15)] == [121, 31]
    for beta in (1 / 60, 1 / 15, 0.5):
        for d in (1, 5, 40):
            radius = beta * math.sqrt(d) * (1 + 1e-9)
            touched = np.concatenate([uniform(200, d, rng), np.sign(uniform(200, d, rng))])
            away = rng.standard_normal((400, d))
            center = touched + radius * away / np.linalg.norm(away, axis=1, keepdims=True)
            farthest = np.linalg.norm(np.abs(center) + 1, axis=1)
            assert (farthest <= secure(beta) * radius * (1 + 1e-12)).all()
    corner = np.full((1, 4), 1 + 2 / 15 / 2)  # a smaller constant does not do: outside of a corner, along the diagonal
    assert np.linalg.norm(np.abs(corner) + 1, axis=1)[0] > (2 * 15 - 1) * np.linalg.norm(corner - 1, axis=1)[0]


@pytest.mark.row(82)
def test_the_share_of_the_inner_ball_falls_with_the_dimension() -> None:
    """3^{−d} inside of a cell; at its corners and walls, up to β = 1/15, still a factor below ½ for each dimension."""
    for d in (1, 2, 5, 10):
        low, high = volume_in_cell(np.full(d, 0.5), 0.1)
        exact = math.pi ** (d / 2) / math.gamma(d / 2 + 1) * 0.1**d
        assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
        assert high / low < 1.1
        assert lost_share(np.full(d, 0.5), 0.1) == pytest.approx(3.0**-d, rel=0.1)
    for place in (0.0, 0.5, -0.01):
        shares = [lost_share(np.full(d, place), math.sqrt(d) / 15, steps=1000) for d in (4, 8, 16, 32)]
        for d, share in zip((4, 8, 16, 32), shares, strict=True):
            assert share < 0.5**d
    assert volume_in_cell(np.zeros(2), 0.0) == (0.0, 0.0)
    low, high = volume_in_cell(np.full(3, 0.5), 2.0)
    assert 0.99 < low <= 1 <= high + 1e-9


@pytest.mark.row(90)
def test_the_random_error_needs_half_the_exponent() -> None:
    exact, corrected, printed = random_error(k=1, c=2)
    assert (round(exact, 4), round(printed, 4)) == (0.0455, 0.0366)
    assert exact > printed
    for k in range(1, 13):
        for c in np.linspace(0.5, 6, 12):
            exact, corrected, _ = random_error(k=k, c=float(c))
            assert exact <= corrected
            assert chi_tail(k, float(c)) == pytest.approx(float(stats.chi.sf(c, k)), rel=1e-9)


@pytest.mark.row(82)
def test_three_isolation_inside_of_a_cell_is_rare_in_high_dimension(rng: np.random.Generator) -> None:
    """Part 1 of the lemma at work: 2,000 guesses at 16 dimensions isolate nobody (expected 4e-7 of them)."""
    points = uniform(2000, 16, rng)
    assert Rate.of(isolates_point(NeighborIndex(points), uniform(2000, 16, rng) / 2, c=3, t=10)).right <= 1


def test_a_chance_of_success_is_a_chance() -> None:
    for wrong in (0, 1, float("nan")):
        with pytest.raises(CrowdError, match="HB623"):
            masses(n=10, t=2, epsilon=wrong)
