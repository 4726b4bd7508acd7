"""The exact (ε, δ) of one release with Gaussian noise, and the noise for an (ε, δ): continuous and discrete.

The ledger charges Gaussian events by their Rényi curves, because those add up.
"""

import math
from fractions import Fraction

from hubbub.core import numbers
from hubbub.core.gaussian_profile import calibrated, guard, least_variance, profile
from hubbub.core.interval import Interval, exp, log
from hubbub.core.normal import discrete_tail
from hubbub.errors import ParameterError

__all__ = ["classic_variance", "discrete_profile", "discrete_variance_for", "profile", "variance_for"]


def variance_for(*, epsilon: Fraction, delta: Fraction, sensitivity_squared: Fraction | int) -> Fraction:
    """Give the smallest variance, rounded up in the 12th digit, at which continuous Gaussian noise is (ε, δ)-DP.

    >>> exact = variance_for(epsilon=Fraction(1), delta=Fraction(1, 10**5), sensitivity_squared=1)
    >>> round(float(exact) ** 0.5, 4)
    3.7306
    """
    guard(epsilon, sensitivity_squared, Fraction(1))
    return sensitivity_squared * least_variance(epsilon, _target(delta))


def classic_variance(*, epsilon: Fraction, delta: Fraction, sensitivity_squared: Fraction | int) -> Fraction:
    """Give the variance of the classic theorem, rounded up; only for comparison, since `variance_for` is smaller.

    Theorem (Classic Gaussian mechanism). For ε ≤ 1, σ² = 2 ln(1.25/δ)·D²/ε² is enough for (ε, δ)-DP (Dwork and Roth,
    2014, theorem A.1). A scale of D·ln(1/δ)/ε, without the root, is needlessly large, and D is the L2 sensitivity.
    Tested   tests/accounting/test_gaussian.py::test_gaussian_figures
    """
    if not 0 < epsilon <= 1:
        raise ParameterError("HB103", "The classic theorem holds only for ε ≤ 1.", "Use the exact calibration.")
    scaled = 2 * log(Interval.of(Fraction(5, 4) / _target(delta))) * sensitivity_squared / (epsilon * epsilon)
    return scaled.above()


def discrete_profile(*, epsilon: Fraction, sensitivity: int, variance: Fraction) -> Interval:
    """Enclose the smallest δ at which discrete Gaussian noise on one integer is (ε, δ)-DP.

    Theorem (Discrete Gaussian profile). If f is one integer and moves by at most D, f + Z with Pr[Z = z] ∝ e^(−z²/2σ²)
    is (ε, δ)-DP exactly when δ ≥ Pr[Z ≥ m] − e^ε Pr[Z ≥ m + D], m = ⌊εσ²/D − D/2⌋ + 1 (Canonne, Kamath and Steinke,
    2020, theorem 7).
    Proof    The ratio of the masses at z and at z + D is above e^ε exactly for z ≥ m. A smaller shift d is no worse:
    the best set for it is a half line {z ≥ t} as well, and Pr[Z ≥ t] − e^ε Pr[Z ≥ t + d] grows with d.
    Leaves out  vectors. A shift that is spread over several coordinates may have a larger δ than this; for a vector of
    L2 sensitivity D only the Rényi curve (zCDP) is claimed.
    Tested   tests/accounting/test_gaussian.py::test_discrete_profile_equals_brute_force,
    tests/accounting/test_gaussian.py::test_smaller_integer_shifts_are_no_worse
    """
    guard(epsilon, sensitivity, variance)
    first = math.floor(epsilon * variance / sensitivity - Fraction(sensitivity, 2)) + 1
    below, above = discrete_tail(first, variance), discrete_tail(first + sensitivity, variance)
    return (below - exp(Interval.of(epsilon)) * above).at_least(0)


def discrete_variance_for(*, epsilon: Fraction, delta: Fraction, sensitivity: int) -> Fraction:
    """Give a variance, found by bisection to the 12th digit, at which discrete noise on one integer is (ε, δ)-DP.

    It suffices by the theorem of `discrete_profile`. It need not be the smallest, because on the integers δ does not
    fall smoothly.

    >>> variance = discrete_variance_for(epsilon=Fraction(1), delta=Fraction(1, 10**5), sensitivity=1)
    >>> round(float(variance) ** 0.5, 3)
    3.74
    """
    guard(epsilon, sensitivity, Fraction(1))
    return calibrated(
        lambda v: discrete_profile(epsilon=epsilon, sensitivity=sensitivity, variance=v),
        _target(delta),
        Fraction(1, 10**6),
        Fraction(10) ** 60,
    )


def _target(delta: Fraction) -> Fraction:
    return numbers.in_range(delta, "delta", numbers.DELTA_MIN, numbers.DELTA_MAX)
