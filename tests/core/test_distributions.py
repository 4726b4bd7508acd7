"""The distributions of the noise: enclosures hold the truth, and widths are the least."""

from fractions import Fraction
from math import erfc, sqrt

import pytest

from hubbub.core.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution, half_width, least
from hubbub.core.interval import ONE, exp

DISTRIBUTIONS: list[NoiseDistribution] = [
    DiscreteLaplace(Fraction(1, 10)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(7, 3)),
    DiscreteLaplace(Fraction(40)),
    DiscreteGaussian(Fraction(1, 9)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(79, 10)),
    DiscreteGaussian(Fraction(8)),
    DiscreteGaussian(Fraction(300)),
    DiscreteGaussian(Fraction(10**13, 7)),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_masses_and_tails_add_up(distribution: NoiseDistribution) -> None:
    """Pr[Z ≥ w] − Pr[Z ≥ w+1] = Pr[Z = w], and everything from −w to w with both tails is one."""
    for w in (-3, 0, 1, 2, 9):
        assert (
            abs(float((distribution.tail(w) - distribution.tail(w + 1)).low) - float(distribution.mass(w).low)) < 1e-15
        )
    inside = distribution.tail(6) + distribution.tail(6)
    for z in range(-5, 6):
        inside += distribution.mass(z)
    assert inside.holds(Fraction(1))
    assert inside.high - inside.low < Fraction(1, 10**38)


@pytest.mark.parametrize(
    "distribution", [DiscreteGaussian(Fraction(1, 10**6)), DiscreteLaplace(Fraction(1, 1000))], ids=str
)
def test_hardly_any_noise_is_no_trouble(distribution: NoiseDistribution) -> None:
    assert distribution.tail(1).low <= Fraction(1, 10**400)
    assert distribution.tail(10**6).high <= Fraction(1, 10**400)
    assert distribution.mass(0).high >= 1 - Fraction(1, 10**50)
    assert half_width(distribution, 1 - Fraction(1, 10**12), 10**8) == 0


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(79, 10), Fraction(8), Fraction(81, 10), Fraction(2500)])
def test_gaussian_normaliser_by_poisson_is_the_sum(variance: Fraction) -> None:
    distribution = DiscreteGaussian(variance)
    weights = [exp(-(z * z) / (2 * variance)) for z in range(1, int(18 * sqrt(variance)) + 20)]
    direct = ONE
    for weight in weights:
        direct += weight + weight
    assert abs(float((1 / direct).low) - float(distribution.mass(0).low)) < 1e-16
    assert (1 / direct).low <= distribution.mass(0).high
    assert distribution.mass(0).enclosure[0] <= (1 / direct).enclosure[1] + Fraction(1, 10**30)


@pytest.mark.parametrize("exponent", [7, 8, 12, 24])
def test_wide_gaussian_tails_are_close_to_the_normal_ones_and_narrow(exponent: int) -> None:
    """Against the normal tail, which the discrete one approaches, and against the half that is known exactly."""
    distribution = DiscreteGaussian(Fraction(10**exponent))
    sigma = sqrt(10**exponent)
    for multiple in (0.01, 0.5, 1.0, 3.0, 6.0):
        at = int(multiple * sigma) + 1
        tail = distribution.tail(at)
        assert float(tail.low) == pytest.approx(erfc((at - 0.5) / sigma / sqrt(2)) / 2, rel=3e-6)
        low, high = tail.enclosure
        assert low < high < low * (1 + Fraction(1, 10**20))
    # Pr[Z ≥ 1] = (1 − Pr[Z = 0])/2
    half = (1 - distribution.mass(0)) * Fraction(1, 2)
    assert distribution.tail(1).low <= half.high
    assert half.low <= distribution.tail(1).high


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("coordinates", [1, 11, 1000])
def test_half_width_is_the_least_that_covers(distribution: NoiseDistribution, coordinates: int) -> None:
    for level in (Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**9)):
        width = half_width(distribution, level, coordinates)
        covered = (1 - distribution.tail(width + 1) - distribution.tail(width + 1)) ** coordinates
        assert covered.low >= level
        if width:
            short = (1 - distribution.tail(width) - distribution.tail(width)) ** coordinates
            assert short.high < level


def test_search_finds_the_least_from_any_guess() -> None:
    for goal in (0, 1, 5, 1000):
        for guess in (-3, 0, 4, 999, 5000):
            assert least(lambda w, goal=goal: w >= goal, guess) == goal  # type: ignore[misc]
