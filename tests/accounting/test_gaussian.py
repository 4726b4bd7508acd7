"""The exact (ε, δ) of Gaussian noise: held against integrals, plain sums and dp-accounting."""

from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting import gaussian
from hubbub.accounting.convert import zcdp_delta
from hubbub.core.interval import Interval
from hubbub.errors import ParameterError

ONE, SMALL = Fraction(1), Fraction(1, 10**5)


def number(x: Fraction) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator


def encloses(interval: Interval, value: Any, slack: str = "0") -> bool:
    margin = mpmath.mpf(slack)
    return bool(mpmath.mpf(str(interval.low)) - margin <= value <= mpmath.mpf(str(interval.high)) + margin)


def profile(sigma: Fraction, epsilon: Fraction = ONE) -> Interval:
    return gaussian.profile(epsilon=epsilon, sensitivity_squared=1, variance=sigma * sigma)


@pytest.mark.row(2)
@pytest.mark.row(32)
def test_gaussian_figures() -> None:
    """At (1, 10⁻⁵) and L2 sensitivity 1: printed 11.5, classic 4.84, exact 3.7306.

    σ = ln(1/δ)/ε lacks a root: it is private, with three times the noise. σ² = ln(1/δ)/ε² is not: its δ is 4.3·10⁻⁵;
    at ε = 0.1 the same formula is enough.
    """
    exact = gaussian.variance_for(epsilon=ONE, delta=SMALL, sensitivity_squared=1)
    assert round(float(exact) ** 0.5, 4) == 3.7306
    classic = gaussian.classic_variance(epsilon=ONE, delta=SMALL, sensitivity_squared=1)
    assert round(float(classic) ** 0.5, 2) == 4.84
    printed = Fraction(str(mpmath.nstr(mpmath.log(10**5), 30)))
    assert round(float(printed), 1) == 11.5
    assert gaussian.profile(epsilon=ONE, sensitivity_squared=1, variance=exact).high <= SMALL
    assert gaussian.profile(epsilon=ONE, sensitivity_squared=1, variance=classic).high < SMALL / 10
    assert profile(printed).high < Fraction(1, 10**29)
    rootless = gaussian.profile(epsilon=ONE, sensitivity_squared=1, variance=printed)
    assert round(float(rootless.low), 6) == 4.3e-5
    enough = gaussian.profile(epsilon=ONE / 10, sensitivity_squared=1, variance=printed * 100)
    assert enough.high < SMALL


@pytest.mark.row(2)
@pytest.mark.parametrize(
    ("epsilon", "sigma", "shift"),
    [
        ("1", "3.7306", "1"),
        ("0", "2", "1"),
        ("0.1", "0.5", "1"),
        ("3", "1", "2"),
        ("8", "0.6", "1"),
        ("0.125", "2", "1"),
    ],
)
def test_profile_is_the_hockey_stick_integral(epsilon: str, sigma: str, shift: str) -> None:
    """∫ max(0, p − e^ε q), by quadrature from where the integrand is positive; the last case has a = 0 exactly."""
    e, s, d = (mpmath.mpf(text) for text in (epsilon, sigma, shift))
    start = e * s * s / d - d / 2
    density = lambda x: mpmath.npdf(x, 0, s) - mpmath.exp(e) * mpmath.npdf(x, -d, s)  # noqa: E731
    true = mpmath.quad(density, [start, start + s, start + 4 * s, start + 12 * s, start + 40 * s])
    found = gaussian.profile(
        epsilon=Fraction(epsilon), sensitivity_squared=Fraction(shift) ** 2, variance=Fraction(sigma) ** 2
    )
    assert encloses(found, true, "1e-40")
    assert found.high - found.low < Fraction(1, 10**30)


def test_profile_at_the_figure_is_the_delta() -> None:
    assert round(float(profile(Fraction("3.7306")).high) * 1e5, 3) == 1.0
    assert profile(Fraction("3.7306316348")).low > SMALL
    assert profile(Fraction("3.7306316349")).high < SMALL


@given(
    st.fractions(Fraction(1, 1000), 20, max_denominator=1000),
    st.sampled_from([Fraction(1, 10), SMALL, Fraction(1, 10**12)]),
)
@settings(max_examples=15, deadline=None)
def test_calibration_is_least_to_twelve_digits_and_agrees_with_dp_accounting(
    epsilon: Fraction, delta: Fraction
) -> None:
    variance = gaussian.variance_for(epsilon=epsilon, delta=delta, sensitivity_squared=1)
    assert gaussian.profile(epsilon=epsilon, sensitivity_squared=1, variance=variance).high <= delta
    less = variance * (1 - Fraction(1, 10**10))
    assert gaussian.profile(epsilon=epsilon, sensitivity_squared=1, variance=less).low > delta
    oracle = gaussian_mechanism.get_sigma_gaussian(float(epsilon), float(delta))
    assert abs(float(variance) ** 0.5 / oracle - 1) < 1e-6
    nine = gaussian.variance_for(epsilon=epsilon, delta=delta, sensitivity_squared=9)
    assert nine == 9 * variance


def distribution(variance: Fraction, reach: int) -> dict[int, Any]:
    weights = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * number(variance))) for z in range(-reach, reach + 1)}
    total = mpmath.fsum(weights.values())
    return {z: w / total for z, w in weights.items()}


def plain(variance: Fraction, shift: int, epsilon: Fraction) -> Any:
    reach = 16 * int(variance**0.5 + 1) + 2 * shift
    masses, e = distribution(variance, reach), mpmath.exp(number(epsilon))
    return mpmath.fsum(max(0, m - e * masses[z + shift]) for z, m in masses.items() if z + shift in masses)


@pytest.mark.parametrize("shift", [1, 2, 7])
@pytest.mark.parametrize("variance", ["0.2", "1", "14", "101.3", "400"])
def test_discrete_profile_equals_brute_force(variance: str, shift: int) -> None:
    v = Fraction(variance)
    for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(5)):
        found = gaussian.discrete_profile(epsilon=epsilon, sensitivity=shift, variance=v)
        assert encloses(found, plain(v, shift, epsilon), "1e-40"), epsilon
        assert found.high - found.low < Fraction(1, 10**30)


@given(
    st.integers(1, 40), st.fractions(Fraction(1, 10), 300, max_denominator=10), st.fractions(0, 6, max_denominator=10)
)
@settings(max_examples=60, deadline=None)
def test_smaller_integer_shifts_are_no_worse(shift: int, variance: Fraction, epsilon: Fraction) -> None:
    smaller = gaussian.discrete_profile(epsilon=epsilon, sensitivity=shift, variance=variance)
    larger = gaussian.discrete_profile(epsilon=epsilon, sensitivity=shift + 1, variance=variance)
    assert smaller.low <= larger.high


@given(st.fractions(Fraction(1, 5), 300, max_denominator=10), st.fractions(0, 8, max_denominator=10))
@settings(max_examples=30, deadline=None)
def test_the_concentrated_bound_holds_for_the_exact_curves(variance: Fraction, epsilon: Fraction) -> None:
    stated = zcdp_delta(1 / (2 * variance), epsilon)
    assert gaussian.discrete_profile(epsilon=epsilon, sensitivity=1, variance=variance).low <= stated
    assert gaussian.profile(epsilon=epsilon, sensitivity_squared=1, variance=variance).low <= stated


def test_a_shift_spread_over_coordinates_can_be_worse_so_vectors_are_left_out() -> None:
    """Four coordinates moved by one each have the L2 length of one moved by two, and at ε = 4, σ = 1 a larger δ."""
    alone = gaussian.discrete_profile(epsilon=Fraction(4), sensitivity=2, variance=ONE)
    masses = distribution(ONE, 7)
    spread = mpmath.mpf(0)
    sums: dict[int, Any] = {0: mpmath.mpf(1)}
    for _ in range(4):
        after: dict[int, Any] = {}
        for (total, chance), (z, mass) in product(sums.items(), masses.items()):
            after[total + z] = after.get(total + z, mpmath.mpf(0)) + chance * mass
        sums = after
    for total, chance in sums.items():
        spread += chance * max(0, 1 - mpmath.exp(4 - (2 * total + 4) / mpmath.mpf(2)))
    assert round(float(alone.high), 4) == 0.0512
    assert round(float(spread), 4) == 0.0753
    assert spread <= number(zcdp_delta(Fraction(4, 2), Fraction(4)))  # what is claimed for the vector holds


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-5"), ("0.1", "1e-6"), ("4", "1e-9")])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_discrete_calibration_is_enough_and_close_to_the_continuous_one(
    epsilon: str, delta: str, sensitivity: int
) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    variance = gaussian.discrete_variance_for(epsilon=e, delta=d, sensitivity=sensitivity)
    assert plain(variance, sensitivity, e) <= number(d)
    continuous = gaussian.variance_for(epsilon=e, delta=d, sensitivity_squared=sensitivity**2)
    assert abs(float(variance / continuous) - 1) < 0.15
    oracle = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        float(variance) ** 0.5, sensitivity=sensitivity, use_connect_dots=True
    )
    assert oracle.get_delta_for_epsilon(float(e)) == pytest.approx(float(d), rel=0.02)


def test_less_noise_would_be_seen() -> None:
    variance = gaussian.discrete_variance_for(epsilon=ONE, delta=SMALL, sensitivity=1)
    assert plain(variance * Fraction(98, 100), 1, ONE) > number(SMALL)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(10**6)], ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 10**30), Fraction(1, 2)], ids=str)
@pytest.mark.parametrize("sensitivity", [1, 10**15])
def test_hostile_sizes_are_calibrated_soon(epsilon: Fraction, delta: Fraction, sensitivity: int) -> None:
    variance = gaussian.variance_for(epsilon=epsilon, delta=delta, sensitivity_squared=sensitivity**2)
    assert gaussian.profile(epsilon=epsilon, sensitivity_squared=sensitivity**2, variance=variance).high <= delta
    discrete = gaussian.discrete_variance_for(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert gaussian.discrete_profile(epsilon=epsilon, sensitivity=sensitivity, variance=discrete).high <= delta


def test_bad_parameters_are_refused() -> None:
    good: dict[str, Any] = {"epsilon": ONE, "sensitivity_squared": 1, "variance": ONE}
    for bad in ({"epsilon": -ONE}, {"sensitivity_squared": 0}, {"variance": Fraction(0)}, {"variance": -ONE}):
        with pytest.raises(ParameterError):
            gaussian.profile(**good | bad)
    for delta in (Fraction(0), ONE, -ONE):
        with pytest.raises(ParameterError):
            gaussian.variance_for(epsilon=ONE, delta=delta, sensitivity_squared=1)
    with pytest.raises(ParameterError, match="ε ≤ 1"):
        gaussian.classic_variance(epsilon=Fraction(2), delta=SMALL, sensitivity_squared=1)
