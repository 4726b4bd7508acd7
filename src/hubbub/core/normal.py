"""Tails of the normal and the discrete Gaussian distribution, enclosed to about 35 digits."""

import math
from fractions import Fraction
from functools import lru_cache

from hubbub.core.interval import PI, Interval, exp, sqrt

_NEAR = 4  # the series is used up to here, the continued fraction beyond
_WIDE = 100  # from this variance on, Euler–Maclaurin replaces the sum of all terms
_LAST = 16  # its last Bernoulli number has index 32


def mills(x: Interval) -> Interval:
    """Enclose e^(x²/2) ∫ₓ^∞ e^(−t²/2) dt for x ≥ 0, the ratio of the normal tail to the density.

    Near zero it is √(π/2)·e^(x²/2) − Σ x^(2n+1)/(2n+1)!!, a positive series whose rest is below a geometric one.
    Far out it is 1/(x + 1/(x + 2/(x + 3/…))): all parts are positive, so the rest n/(x + …) lies between 0 and n/x, and
    interval arithmetic carries that through.
    """
    if not x.low >= 0:
        raise ValueError("the ratio is enclosed for x ≥ 0 only")
    if x.low >= _NEAR:
        depth = 24 + int(2500 / x.low**2)
        rest = (depth / x).hull(0)
        for n in range(depth - 1, 0, -1):
            rest = n / (x + rest)
        return 1 / (x + rest)
    square = x * x
    term = total = x
    n = 1
    while n < 2 * square.high or term.high * 10**52 > total.high:
        n += 2
        term = term * square / n
        total = total + term
    ratio = square / (n + 2)  # at most a half by now
    return sqrt(PI / 2) * exp(square / 2) - total - (term * ratio / (1 - ratio)).hull(0)


def tail(x: Interval) -> Interval:
    """Enclose the probability that a standard normal variable is above x."""
    if x.low >= 0:
        return density(x) * mills(x)
    if x.high <= 0:
        return 1 - tail(-x)
    return tail(Interval(x.high, x.high)).hull(tail(Interval(x.low, x.low)))


def density(x: Interval) -> Interval:
    """Enclose the standard normal density."""
    return exp(-(x * x) / 2) / sqrt(2 * PI)


@lru_cache(maxsize=1)
def _coefficients() -> tuple[Fraction, ...]:
    """Return B₂ₖ/(2k)! for k = 1, 2, …"""
    bernoulli: list[Fraction] = []
    for n in range(2 * _LAST + 1):
        bernoulli.append(Fraction(n == 0) - sum(math.comb(n, k) * b / (n - k + 1) for k, b in enumerate(bernoulli)))
    return tuple([bernoulli[2 * k] / math.factorial(2 * k) for k in range(1, _LAST + 1)])


def _summed_weights(first: int, variance: Fraction) -> Interval:
    shrink = exp(-1 / variance)
    weight = exp(-Fraction(first * first) / (2 * variance))
    ratio = exp(-Fraction(2 * first + 1) / (2 * variance))
    total = Interval.of(0)
    for _ in range(16 * math.isqrt(math.ceil(variance)) + 16):
        total = total + weight
        weight, ratio = weight * ratio, ratio * shrink
    # the ratios decrease, so the remainder is below a geometric series
    return total + (weight / (1 - ratio)).hull(0)


def _integrated_weights(first: int, variance: Fraction) -> Interval:
    sigma = sqrt(Interval.of(variance))
    u = first / sigma
    integral = sigma * mills(u)
    factor = integral + Fraction(1, 2)
    before, hermite, power = Interval.of(1), u, 1 / sigma  # He₀, He₁ and σ^(−1)
    for k, coefficient in enumerate(_coefficients(), start=1):
        factor = factor + coefficient * power * hermite
        for n in (2 * k - 1, 2 * k):
            before, hermite = hermite, u * hermite - n * before
        power = power / variance
    # here power = σ^(−33): two more factors of σ give the bound's σ^(1−32)
    rest = abs(_coefficients()[-1]) * sqrt(2 * PI * math.factorial(2 * _LAST)) * power * variance
    weight = exp(-Fraction(first * first) / (2 * variance))
    estimate = weight * factor + rest.hull(-rest)
    # f is decreasing, so its sum lies between its integral and its integral plus f(m): sharper than `rest` far out
    return Interval(max(estimate.low, (weight * integral).low), min(estimate.high, (weight * (integral + 1)).high))


@lru_cache(maxsize=1024)
def _normalizer(variance: Fraction) -> Interval:
    if variance < _WIDE:
        return 1 + 2 * _summed_weights(1, variance)
    correction = 4 * exp(-2 * PI * PI * variance)
    return sqrt(2 * PI * variance) * (1 + correction.hull(0))


def discrete_tail(least: int, variance: Fraction) -> Interval:
    """Enclose Pr[Z ≥ least] for Pr[Z = z] ∝ f(z) = e^(−z²/2σ²) on the integers; the error is below 10⁻³⁵ absolutely.

    Theorem (Tails of the discrete Gaussian). With u = m/σ, M the ratio `mills`, He the Hermite polynomials and B the
    Bernoulli numbers, Σ_{z≥m} f(z) = f(m)·(σM(u) + ½ + Σ_{k≤q} B₂ₖ/(2k)!·σ^(1−2k)·He₂ₖ₋₁(u)) + R with
    |R| ≤ |B₂q|/(2q)!·√(2π(2q)!)·σ^(1−2q); and Σ_z f(z) = σ√(2π)(1 + 2Σ_{k≥1} e^(−2π²σ²k²)).
    Proof    Euler and Maclaurin: f⁽ⁿ⁾ = (−1)ⁿσ^(−n)·Heₙ(x/σ)·f, the integral is σ·f(m)·M(u), and the rest is
    ∫ B₂q({x})/(2q)!·f⁽²q⁾(x) dx with |B₂q({x})| ≤ |B₂q|; by Cauchy and Schwarz ∫|He₂q(t)|e^(−t²/2) dt ≤ √(2π(2q)!). The
    second is Poisson's summation formula. Below σ = 10 the terms are added up instead.
    Tested   tests/core/test_normal.py::test_discrete_tails_match_a_plain_sum_at_60_digits,
    tests/core/test_normal.py::test_both_ways_agree_where_they_meet
    """
    if least < 1:
        return 1 - discrete_tail(1 - least, variance)
    weights = _summed_weights if variance < _WIDE else _integrated_weights
    return weights(least, variance) / _normalizer(variance)


def discrete_mass(z: int, variance: Fraction) -> Interval:
    """Enclose Pr[Z = z] for the same distribution."""
    return exp(-Fraction(z * z) / (2 * variance)) / _normalizer(variance)
