"""Lemma 5 without sampling: the factor by which the ball of the best guess must grow."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from hubbub.crowd.enlargement import enlargement_chance, enlargement_limit, enlargement_quantile, enlargement_rate
from hubbub.crowd.neighbors import Floats


def seen(d: int, trials: int, rng: np.random.Generator) -> Floats:
    """Sample factors by the closed form of a truncated normal's mean, apart from the code under test."""
    row = rng.random((trials, d))
    moved = row + rng.standard_normal((trials, d))
    density = [np.exp(-0.5 * np.square(end - moved)) / math.sqrt(2 * math.pi) for end in (0, 1)]
    guess = moved + (density[0] - density[1]) / (ndtr(1 - moved) - ndtr(-moved))
    far = np.maximum(guess, 2 - guess)
    factors: Floats = np.linalg.norm(far, axis=1) / np.linalg.norm(row - guess, axis=1)
    return factors


@pytest.mark.row(91)
def test_the_chance_is_what_is_seen(rng: np.random.Generator) -> None:
    """4,000 rows at d = 10, at three factors: within 6 deviations, so a false alarm is below 1e-7.

    A parent cell of side 3 in place of 2, the planted error, would move the middle one by 0.5.
    """
    factors = seen(10, 4000, rng)
    for factor in (5.0, 6.0, 8.0):
        chance = enlargement_chance(10, factor)
        assert abs((factors > factor).mean() - chance) < 6 * math.sqrt(chance * (1 - chance) / 4000)
    assert enlargement_chance(10, 1.0) == pytest.approx(1)


@pytest.mark.row(91)
def test_the_stated_figures_are_exact() -> None:
    """What suffices for 997 of 1,000 rows. The printed 7.2 at d = 50 suffices for 9,997 of 10,000 instead."""
    for d, figure in ((10, 10.10), (50, 6.76), (200, 6.01), (1000, 5.66)):
        assert enlargement_chance(d, figure + 0.005) < 0.003 < enlargement_chance(d, figure - 0.005)
    assert enlargement_chance(50, 7.2) == pytest.approx(3e-4, abs=1e-4)
    assert enlargement_chance(10, 10) == pytest.approx(0.0033, abs=1e-4)


@pytest.mark.row(91)
def test_the_factor_tends_to_its_limit(rng: np.random.Generator) -> None:
    """At d = 1000 the factors have a deviation below 0.1: the mean of 400 is within 0.03, false alarm below 1e-8."""
    limit = enlargement_limit()
    assert limit == pytest.approx(5.416, abs=0.001)
    assert seen(1000, 400, rng).mean() == pytest.approx(limit, abs=0.03)
    assert enlargement_quantile(20, 0.997) == pytest.approx(7.98, abs=0.01)


@pytest.mark.row(91)
def test_the_rate_bounds_the_chance_in_every_dimension() -> None:
    """Lemma 5 with its constant: ten fails with probability at most 0.669^d; below the limit there is no such rate."""
    rate = enlargement_rate(10)
    assert rate == pytest.approx(0.669, abs=0.001)
    for d in (5, 10, 20, 40):
        assert enlargement_chance(d, 10) <= rate**d + 1e-9
    assert enlargement_rate(9) < 1
    assert enlargement_rate(5) > 0.999
