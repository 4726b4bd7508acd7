"""The exact (ε, δ) of continuous Gaussian noise on one number, and the least variance for an (ε, δ)."""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache

from hubbub.core.interval import Interval, sqrt
from hubbub.core.normal import density, mills
from hubbub.errors import ParameterError

_SIGNIFICANT = 10**12
_ROOT, _LARGE = math.sqrt(2), 37.0  # a normal tail beyond is no double


def profile(*, epsilon: Fraction, sensitivity_squared: Fraction | int, variance: Fraction) -> Interval:
    """Enclose the smallest δ at which continuous Gaussian noise is (ε, δ)-DP.

    Theorem (Gaussian profile). If ‖f(x) − f(x′)‖₂ ≤ D, adding N(0, σ²) to each coordinate is (ε, δ)-DP exactly when
    δ ≥ Φ(a) − e^ε Φ(b), with a = D/(2σ) − εσ/D and b = a − D/σ (Balle and Wang, 2018).
    Proof    The noise is the same in all directions, so a shift counts by its length, along one line, and a longer one
    is worse. There ln dP/dQ is above ε on a half line, of probability Φ(a) under P and Φ(b) under Q.
    Here     b² = a² + 2ε, so e^ε Φ(b) = φ(a)·M(−b) with M the ratio `mills`: no exponential grows.
    Tested   tests/accounting/test_gaussian.py::test_profile_is_the_hockey_stick_integral,
    tests/accounting/test_gaussian.py::test_gaussian_figures
    """
    guard(epsilon, sensitivity_squared, variance)
    ratio = sqrt(Interval.of(Fraction(sensitivity_squared) / variance))
    a, minus_b = ratio / 2 - epsilon / ratio, ratio / 2 + epsilon / ratio
    if a.high <= 0:
        delta = density(a) * (mills(-a) - mills(minus_b))
    elif a.low >= 0:
        delta = 1 - density(a) * (mills(a) + mills(minus_b))
    else:  # a is 0 within the last digit; Φ(a) lies within |a| of ½
        delta = Fraction(1, 2) + a - density(a) * mills(minus_b)
    return delta.at_least(0)


def least_variance(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the smallest variance, rounded up in the 12th digit, at which noise for sensitivity 1 is (ε, δ)-DP."""
    return calibrated(
        lambda v: profile(epsilon=epsilon, sensitivity_squared=1, variance=v),
        delta,
        Fraction(1, 10**20),
        Fraction(10) ** 60,
        guess=_near(float(epsilon), float(delta)),
    )


def _near(epsilon: float, delta: float) -> float | None:
    """Find about the least variance with doubles, so that few exact profiles are needed; None where that fails."""
    low, high = -25.0, 70.0  # of the logarithm
    try:
        while high - low > 1e-10:
            middle = (low + high) / 2
            ratio = math.exp(-middle / 2)
            a, b = ratio / 2 - epsilon / ratio, ratio / 2 + epsilon / ratio
            other = math.exp(epsilon + math.log(math.erfc(b / _ROOT) / 2)) if b < _LARGE else 0.0
            low, high = (low, middle) if math.erfc(-a / _ROOT) / 2 - other <= delta else (middle, high)
    except (ValueError, OverflowError):
        return None
    return math.exp(high)


def guard(epsilon: Fraction, sensitivity_squared: Fraction | int, variance: Fraction) -> None:
    """Reject what is no Gaussian noise."""
    if not (epsilon >= 0 and sensitivity_squared > 0 and variance > 0):
        raise ParameterError(
            "HB103",
            "Gaussian noise requires ε ≥ 0, and a positive sensitivity and variance.",
            "Change the invalid value.",
        )


def calibrated(
    profile_at: Callable[[Fraction], Interval],
    target: Fraction,
    low: Fraction,
    high: Fraction,
    guess: float | None = None,
) -> Fraction:
    """Find the least variance, rounded up in the 12th digit, whose profile is at most a δ.

    More noise is never worse, so that a variance below one that is not enough is not either. A good `guess` makes the
    search shorter and changes nothing else.
    """
    lacking, sufficient = Fraction(0), Fraction(10) ** 80
    profile_at = cache(profile_at)

    def enough(variance: Fraction) -> bool:
        nonlocal lacking, sufficient
        if lacking < variance < sufficient:
            if profile_at(variance).high <= target:
                sufficient = variance
            else:
                lacking = variance
        return variance >= sufficient

    for near in () if guess is None else _around(profile_at, target, guess):
        if low < near < high:
            enough(near)
    if enough(low):
        return low
    if not enough(high):
        raise ParameterError("HB111", "No usable amount of noise achieves this ε and δ.", "Choose a larger ε or δ.")
    while high > 2 * low:  # first on a logarithmic scale, so that eighty powers of ten take eight steps
        middle = Fraction(math.isqrt(math.ceil(low * high * 10**40)), 10**20)
        low, high = (low, middle) if enough(middle) else (middle, high)
    step = Fraction(10) ** (len(str(low.numerator)) - len(str(low.denominator)) - 1) / _SIGNIFICANT
    bottom, top = math.floor(low / step), math.ceil(high / step)
    while top - bottom > 1:
        middle_step = (bottom + top) // 2
        bottom, top = (bottom, middle_step) if enough(middle_step * step) else (middle_step, top)
    return top * step


def _around(profile_at: Callable[[Fraction], Interval], target: Fraction, guess: float) -> Iterator[Fraction]:
    """Give variances just below and above the least one: where the logarithms of two profiles near a guess meet δ's."""
    one, other = (Fraction(guess) * (1 + Fraction(side, 10**7)) for side in (-1, 1))
    yield one
    yield other
    aim = Decimal(target.numerator) / Decimal(target.denominator)
    above, below = (float((profile_at(each).high / aim).ln()) for each in (one, other))
    if above > below > -math.inf:
        share = above / (above - below)
        meeting = one + (other - one) * Fraction(share)
        yield meeting * (1 - Fraction(1, 10 * _SIGNIFICANT))
        yield meeting * (1 + Fraction(1, 10 * _SIGNIFICANT))
