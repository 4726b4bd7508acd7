"""The discrete Gaussian mechanism: its Rényi divergences and its profile."""

import math
from fractions import Fraction

import pytest
from scipy import stats

from hubbub.core.loss import ORDERS
from hubbub.mechanisms.enumeration import delta_at, renyi
from hubbub.mechanisms.gaussian import Gaussian


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(9, 2)])
def test_renyi_divergence_is_the_line_at_every_order_of_the_grid(variance: Fraction) -> None:
    """Equal to αD²/2σ² at whole orders (the shifted normaliser sits on an integer), never above it at any."""
    mechanism = Gaussian(sensitivity_squared=4, variance=variance)
    for order in (order for order in ORDERS if order <= 16):
        edge = 2 * math.ceil(order) + 12 * math.ceil(math.sqrt(variance))
        p, q = mechanism.distribution(0, (-edge, edge)), mechanism.distribution(2, (-edge, edge))
        low, high = renyi(p, q, order)
        line = mechanism.loss.rho * order
        assert high <= line + Fraction(1, 10**30)
        if order.denominator == 1:
            assert low >= line * Fraction(999, 1000)


def test_whole_sensitivity_is_spent_over_coordinates() -> None:
    """(1, 1) is at squared distance 2: the divergence is that of two coordinates, not of one."""
    mechanism = Gaussian(sensitivity_squared=2, variance=Fraction(1))
    p, q = mechanism.distribution((0, 0), (-12, 12)), mechanism.distribution((1, 1), (-12, 12))
    low, high = renyi(p, q, Fraction(2))
    assert float(low) == pytest.approx(2 * float(mechanism.loss.rho), rel=1e-6)
    assert high <= 2 * mechanism.loss.rho + Fraction(1, 10**30)


def test_hockey_stick_of_a_wide_gaussian_is_the_analytic_one() -> None:
    """σ = 37.306, sensitivity 10: nearly the profile of the continuous Gaussian with σ = 3.7306, which is (1, 1e-5)."""
    mechanism = Gaussian(sensitivity_squared=100, variance=Fraction("1391.7376"))
    p, q = mechanism.distribution(0, (-400, 400)), mechanism.distribution(10, (-400, 400))
    sigma = math.sqrt(1391.7376) / 10
    continuous = stats.norm.cdf(0.5 / sigma - sigma) - math.e * stats.norm.cdf(-0.5 / sigma - sigma)
    low, high = delta_at(p, q, Fraction(1))
    assert float(high) == pytest.approx(continuous, rel=0.05)
    assert float(high) == pytest.approx(1e-5, rel=0.05)
    assert high - low < Fraction(1, 10**30)


def test_variance_is_never_above_the_parameter() -> None:
    for variance in (Fraction(1, 10), Fraction(1), Fraction(30)):
        distribution = Gaussian(sensitivity_squared=1, variance=variance).distribution(0)
        seen = sum(z * z * float(low) for z, (low, _) in distribution.mass.items())
        assert seen <= float(variance) * (1 + 1e-12)
