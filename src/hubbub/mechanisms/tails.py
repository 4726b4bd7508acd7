"""The laws of the noise that is added: each probability and each tail, enclosed; and how wide an interval must be.

Nothing is drawn here. The samplers of `hubbub.noise` have these laws exactly, by their own proofs.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from hubbub.core import reals
from hubbub.core.intervals import ONE, PRECISION, ZERO, Interval

_TWO = Interval.of(2)
_NOTHING = Decimal("1e-5000")  # a weight below this counts by its bound alone
_FINENESS = 1024  # blocks to a standard deviation, where a tail is too long to be added up one by one

#: π, to 71 places.
PI = Interval.of(
    (
        Fraction(314159265358979323846264338327950288419716939937510582097494459230781640, 10**71),
        Fraction(314159265358979323846264338327950288419716939937510582097494459230781641, 10**71),
    )
)


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """Pr[Z = z] = (1−q)/(1+q)·q^|z| on the integers, with q = e^(−1/scale)."""

    scale: Fraction
    grain: ClassVar[int] = 1

    def _power(self, z: int) -> Interval:
        return Interval.exp(-z / self.scale)

    def mass(self, z: int) -> Interval:
        """Enclose Pr[Z = z]."""
        return self._power(abs(z)) * (ONE - self._power(1)) / (ONE + self._power(1))

    def tail(self, least: int) -> Interval:
        """Enclose Pr[Z ≥ least]: q^least/(1+q) from 1 on, and what the mirror image leaves below that."""
        if least >= 1:
            return self._power(least) / (ONE + self._power(1))
        return ONE - self._power(1 - least) / (ONE + self._power(1))

    def guess(self, slip: float) -> int:
        """Guess the last z before the tail falls to `slip`: a place to start looking, never a decision."""
        scale = float(self.scale)
        return math.ceil(scale * (-math.log(slip) - math.log1p(math.exp(-1 / scale)))) - 1


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """Pr[Z = z] ∝ exp(−z²/(2·variance)) on the integers."""

    variance: Fraction

    def mass(self, z: int) -> Interval:
        """Enclose Pr[Z = z]."""
        return Interval.exp(-(z * z) / (2 * self.variance)) / _normaliser(self.variance)

    def tail(self, least: int) -> Interval:
        """Enclose Pr[Z ≥ least]; to about 40 digits up to a standard deviation of 2048, to about 6 above."""
        if least < 1:
            return ONE - self.tail(1 - least)
        return _weight_from(least, self.variance) / _normaliser(self.variance)

    def guess(self, slip: float) -> int:
        """Guess the last z before the tail falls to `slip`: a place to start looking, never a decision."""
        low, high = 0.0, 38.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) / 2 > slip else (low, middle)
        return math.ceil(low * math.sqrt(self.variance) - 0.5)

    @property
    def grain(self) -> int:
        """The width to which it is worth to know a place in the tail."""
        return max(1, _block_width(self.variance) >> 10)


NoiseLaw = LaplaceLaw | GaussianLaw


@lru_cache(maxsize=1024)
def half_width(law: NoiseLaw, level: Fraction, coordinates: int = 1) -> int:
    """Give the least w such that all of so many independent noises are within ±w with probability at least `level`.

    The least for Laplace noise and for Gaussian noise up to a standard deviation of 2048: equality with a rational
    level is impossible (e^(−1/scale) is transcendental), so enclosures decide. For wider Gaussian noise w may be
    larger than the least by one part in a million, never smaller.
    """

    def covers(w: int) -> bool:
        return ((ONE - _TWO * law.tail(w + 1)) ** coordinates).low >= level

    slip = -math.expm1(math.log(level) / coordinates) / 2
    return least(covers, law.guess(slip), law.grain)


def least(holds: Callable[[int], bool], guess: int, grain: int = 1) -> int:
    """Find the least w ≥ 0 for which a rising condition holds, from a guess; or one less than `grain` above the least.

    >>> least(lambda w: w * w >= 50, 3), least(lambda w: True, 9)
    (8, 0)
    """
    high, step = max(0, guess), grain
    while not holds(high):
        high, step = high + step, 2 * step
    low, step = high - grain, grain
    while low >= 0 and holds(low):
        high, low, step = low, low - step, 2 * step
    low = max(low, -1)
    while high - low > grain:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _block_width(variance: Fraction) -> int:
    return max(1, math.isqrt(math.floor(variance)) // _FINENESS)


@lru_cache(maxsize=256)
def _normaliser(variance: Fraction) -> Interval:
    """Enclose Σ exp(−z²/2σ²) over all integers.

    By Poisson's summation formula it is σ√(2π)·(1 + 2Σ_{k≥1} exp(−2π²σ²k²)), and for σ² ≥ 8 the inner sum is below
    2·exp(−19.739σ²), as 2π² > 19.739. Below that it is added up.
    """
    if variance < 8:
        return ONE + _TWO * _weight_from(1, variance)
    square = (_TWO * PI * Interval.of(variance)).enclosure
    root = Interval.of((reals.sqrt(square[0], PRECISION + 2)[0], reals.sqrt(square[1], PRECISION + 2)[1]))
    correction = Interval.of(4) * Interval.exp(Fraction(-19739, 1000) * variance)
    return root * Interval(ONE.low, (ONE + correction).high)


def _weights(start: Fraction, step: int, variance: Fraction) -> Iterator[Interval]:
    """Enclose exp(−x²/2σ²) at start, start + step, …: each the one before, times a shrinking ratio."""
    weight = Interval.exp(-start * start / (2 * variance))
    ratio = Interval.exp(-(2 * start * step + step * step) / (2 * variance))
    shrink = Interval.exp(-step * step / variance)
    while True:
        yield weight
        weight, ratio = weight * ratio, ratio * shrink


@lru_cache(maxsize=1024)
def _weight_from(first: int, variance: Fraction) -> Interval:
    """Enclose Σ_{z ≥ first} f(z), f(z) = exp(−z²/2σ²), for first ≥ 1.

    Integers are taken in blocks of equal width: of one integer where σ allows. The sum over a block of width B lies
    between B·f(middle) and B·(f(left) + f(right))/2, whichever is larger: f is concave below σ and convex above, and
    for a concave (convex) f the mean over evenly spaced points is at most (at least) the value at their middle and at
    least (at most) the mean of the ends. A block that holds σ is bounded by f(right) and f(left), as f falls. What is
    left from z on is at most f(z)/(1 − f(z+1)/f(z)), as the ratio of neighbours falls.
    """
    width = _block_width(variance)
    negligible = Decimal("1e-40") if width == 1 else Decimal("1e-15")
    left = _weights(Fraction(first), width, variance)
    middle = _weights(first + Fraction(width - 1, 2), width, variance)
    right = _weights(Fraction(first + width - 1), width, variance)
    wide = Interval.of(width)
    found, at = ZERO, first
    for here in left:
        bound = ONE - Interval.exp(-(2 * at + 1) / (2 * variance)) if (at - first) % (64 * width) == 0 else ZERO
        if bound.low > 0 and (here / bound).high <= max(_NOTHING, negligible * found.low):
            return Interval(found.low, (found + here / bound).high)
        if width == 1:
            found += here
        else:
            found += wide * _block(here, next(middle), next(right), at, width, variance)
        at += width
    raise AssertionError("weights never end")


def _block(left: Interval, middle: Interval, right: Interval, at: int, width: int, variance: Fraction) -> Interval:
    ends = (left + right) * Interval.of(Fraction(1, 2))
    if (at + width - 1) ** 2 <= variance:
        return Interval(ends.low, middle.high)
    if at * at >= variance:
        return Interval(middle.low, ends.high)
    return Interval(right.low, left.high)
