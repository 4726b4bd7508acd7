"""Discrete Laplace and Gaussian distributions: enclosed probabilities, tails, and confidence half-widths.

Nothing is sampled here. The samplers in `hubbub.noise` have exactly these distributions, by their own proofs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hubbub.core.events import GaussianEvent, LaplaceEvent
from hubbub.core.interval import Interval, exp
from hubbub.core.normal import discrete_mass, discrete_tail
from hubbub.core.numbers import MAX_PLACES
from hubbub.core.reals import ceil_to


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Pr[Z = z] = (1−q)/(1+q)·q^|z| on the integers, with q = e^(−1/scale)."""

    scale: Fraction

    def _power(self, z: int) -> Interval:
        return exp(-z / self.scale)

    def mass(self, z: int) -> Interval:
        """Enclose Pr[Z = z]."""
        return self._power(abs(z)) * (1 - self._power(1)) / (1 + self._power(1))

    def tail(self, least: int) -> Interval:
        """Enclose Pr[Z ≥ least]: q^least/(1+q) from 1 on, and what the mirror image leaves below that."""
        if least >= 1:
            return self._power(least) / (1 + self._power(1))
        return 1 - self._power(1 - least) / (1 + self._power(1))

    def guess(self, slip: float) -> int:
        """Estimate the last z before the tail falls to `slip`; only a starting point for a search."""
        scale = float(self.scale)
        return math.ceil(scale * (-math.log(slip) - math.log1p(math.exp(-1 / scale)))) - 1


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Pr[Z = z] ∝ exp(−z²/(2·variance)) on the integers."""

    variance: Fraction

    def mass(self, z: int) -> Interval:
        """Enclose Pr[Z = z]."""
        return discrete_mass(z, self.variance)

    def tail(self, least: int) -> Interval:
        """Enclose Pr[Z ≥ least]."""
        return discrete_tail(least, self.variance)

    def guess(self, slip: float) -> int:
        """Estimate the last z before the tail falls to `slip`; only a starting point for a search."""
        low, high = 0.0, 38.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) / 2 > slip else (low, middle)
        return math.ceil(low * math.sqrt(self.variance) - 0.5)


NoiseDistribution = DiscreteLaplace | DiscreteGaussian


def distribution_of(noise: LaplaceEvent | GaussianEvent) -> NoiseDistribution:
    """Return the distribution of the noise of an event."""
    return DiscreteLaplace(noise.scale) if isinstance(noise, LaplaceEvent) else DiscreteGaussian(noise.variance)


def slip(distribution: NoiseDistribution, above: int, keys: int) -> Fraction:
    """Bound 1 − (1 − Pr[Z ≥ above])^keys from above, to 30 places: the chance that one of `keys` noises reaches it."""
    chance = distribution.tail(above)
    missed = (1 - chance) ** keys
    # where (1−p)^k is 1 to the last digit, k·p is the sharper bound
    return min(ceil_to(min((1 - missed).enclosure[1], keys * chance.enclosure[1]), MAX_PLACES), Fraction(1))


def weight_of_key(total: int, keys: int) -> int:
    """Return ⌊total/√keys⌋: the weight of each key of a unit with so many keys, of squared L2 norm at most total².

    >>> [weight_of_key(5040, keys) for keys in (1, 2, 4, 100)]
    [5040, 3563, 2520, 504]
    """
    return math.isqrt(total * total // keys)


@lru_cache(maxsize=1024)
def weighted_slip(distribution: NoiseDistribution, threshold: int, weight: int, keys: int) -> Fraction:
    """Bound, for every n ≤ keys, the chance that one of n keys of weight ⌊weight/√n⌋ each reaches a threshold.

    The numbers n are taken in blocks, each with the weight of its first and the count of its last member. Up to 4 each
    block is one number; in longer blocks the weights differ by a factor of at most √(4/3).
    """
    return max(
        slip(distribution, threshold - weight_of_key(weight, first), last) for first, last in blocks_of_keys(keys)
    )


def blocks_of_keys(keys: int) -> list[tuple[int, int]]:
    """Return the first and last number of each block, the largest numbers first.

    >>> blocks_of_keys(12)
    [(10, 12), (7, 9), (5, 6), (4, 4), (3, 3), (2, 2), (1, 1)]
    """
    blocks = []
    while keys:
        first = keys * 3 // 4 + 1
        blocks.append((first, keys))
        keys = first - 1
    return blocks


@lru_cache(maxsize=1024)
def half_width(distribution: NoiseDistribution, level: Fraction, coordinates: int = 1) -> int:
    """Return the least w such that all of the independent noises are within ±w with probability at least `level`.

    Equality with a rational level is impossible (e^(−1/scale) is transcendental), and what two neighboring w cover
    differs by far more than the enclosures' width, for every scale that the samplers cover. So it is the least; if the
    enclosures could not decide, it would be one more.
    """

    def covers(w: int) -> bool:
        return ((1 - 2 * distribution.tail(w + 1)) ** coordinates).low >= level

    slip = -math.expm1(math.log1p(-float(1 - level)) / coordinates) / 2
    return least(covers, distribution.guess(slip))


def least(holds: Callable[[int], bool], guess: int) -> int:
    """Return the least w ≥ 0 for which a monotone condition holds, searching from a guess.

    >>> least(lambda w: w * w >= 50, 3), least(lambda w: True, 9)
    (8, 0)
    """
    high, step = max(0, guess), 1
    while not holds(high):
        high, step = high + step, 2 * step
    low, step = high - 1, 1
    while low >= 0 and holds(low):
        high, low, step = low, low - step, 2 * step
    low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
