"""The metric mechanism on R^k with the Euclidean norm, on a grid: the density decays with the distance."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers, reals
from hubbub.core.binomial import incomplete_beta
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ZERO, Interval, exp, sqrt, total
from hubbub.core.loss import Pure
from hubbub.errors import MechanismError
from hubbub.mechanisms.additive import Window, check_size
from hubbub.noise.comparison import Fixed, Real, below, fixed
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import RandomSource

#: With more dimensions too many proposals are rejected: one of 11 is accepted at 10.
MAX_DIMENSIONS = 10
_PLACES = 10**12
_BAND = 2.0**-30


@dataclass(frozen=True, slots=True, kw_only=True)
class EuclideanNoise:
    """Add noise Z to an integer vector with Pr[Z = z] ∝ exp(−rate·‖z‖₂) on the grid Z^k.

    Theorem (Metric mechanism on a grid of R^k). If ‖f(x) − f(x′)‖₂ ≤ S for neighbors, the answer is rate·S-private
    (Dwork, McSherry, Nissim and Smith 2006, section 3.3, with d the Euclidean distance: h ∝ exp(−rate·d(f(x), y))). The
    grid is the same seen from each of its points, so the normalizer is constant and the rate may be ε/S, not ε/(2S).
    Proof    ‖y − f(x)‖ and ‖y − f(x′)‖ differ by at most S, by the triangle inequality. Sampling: independent two-sided
             geometric z of rate·c per step, c ≤ 1/√k rational, have Pr ∝ exp(−rate·c·‖z‖₁), and ‖z‖₂ ≥ c·‖z‖₁; so
             acceptance with probability exp(−rate(‖z‖₂ − c·‖z‖₁)) leaves exp(−rate·‖z‖₂). The number of proposals
             does not depend on which one is accepted.
    Assumes  integer vectors; S for the relation of the unit; coins are decided exactly (`noise.comparison.below`).
    Charges  Pure(rate·S), as a metric event with a constant normalizer.
    Error    ‖Z‖₂ is near to a Gamma variable of shape k and scale 1/rate: k/rate on average, where Laplace noise for
             the L1 sensitivity √k·S would have √k times as much. `error` bounds one coordinate.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_euclidean.py::test_samples_have_the_listed_distribution
             tests/mechanisms/test_euclidean.py::test_half_of_the_rate_is_not_needed_on_a_grid_without_an_end
    """

    dimensions: int
    sensitivity: int
    rate: Fraction

    def __post_init__(self) -> None:
        numbers.integer(self.dimensions, "dimensions", 1, MAX_DIMENSIONS)
        numbers.sensitivity(self.sensitivity)
        rate = numbers.in_range(self.rate, "rate", 1 / numbers.SCALE_MAX * 10, 1 / numbers.SCALE_MIN)
        object.__setattr__(self, "rate", rate)

    @classmethod
    def from_epsilon(cls, *, dimensions: int, sensitivity: int, epsilon: numbers.Number) -> "EuclideanNoise":
        """Calibrate the rate to ε/S."""
        rate = numbers.epsilon(epsilon) / numbers.sensitivity(sensitivity)
        return cls(dimensions=dimensions, sensitivity=sensitivity, rate=rate)

    @property
    def event(self) -> events.MetricEvent:
        """The event that the ledger records."""
        return events.MetricEvent(Fraction(self.sensitivity), self.rate, constant_normaliser=True)

    @property
    def loss(self) -> Pure:
        """Pure(rate·S), reached along every direction."""
        return Pure(self.rate * self.sensitivity)

    def sample(self, value: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """Add noise to an int64 vector of `dimensions` coordinates."""
        if value.shape != (self.dimensions,) or value.dtype != np.int64:
            raise MechanismError(
                "HB612", f"The value is not an int64 vector of {self.dimensions} coordinates.", "Pass such a vector."
            )
        share = _share(self.dimensions)
        while True:
            noise = discrete_laplace(scale=1 / (self.rate * share), count=self.dimensions, source=source)
            squares, absolute = sum(int(z) ** 2 for z in noise), sum(abs(int(z)) for z in noise)
            if _accepted(self.rate, squares, absolute * share, source):
                return np.asarray(value + noise)

    def distribution(
        self, value: tuple[int, ...], window: Window | None = None
    ) -> FiniteDistribution[tuple[int, ...] | None]:
        """List the probabilities around a value; with a window, all points outside of it are the one outcome None."""
        reach = _reach(self.rate, self.dimensions, 1e-34)
        check_size((2 * reach + 1) ** self.dimensions)
        weights = lru_cache(maxsize=None)(lambda squares: exp(-self.rate * sqrt(Interval.of(squares))))
        listed: dict[tuple[int, ...] | None, Interval] = {
            tuple(v + z for v, z in zip(value, noise, strict=True)): weights(sum(z * z for z in noise))
            for noise in product(range(-reach, reach + 1), repeat=self.dimensions)
        }
        whole = total(listed.values())
        beyond = _outside(self.rate, self.dimensions, reach)
        share = Interval(whole.low, (whole + beyond).high)
        if window is None:
            chances = {point: (weight / share).enclosure for point, weight in listed.items()}
            return FiniteDistribution(chances, (beyond / whole).enclosure[1])
        low, high = window
        inside: dict[tuple[int, ...] | None, Interval] = {
            point: weight for point, weight in listed.items() if point and low <= min(point) and max(point) <= high
        }
        inside[None] = total(weight for point, weight in listed.items() if point not in inside) + beyond
        return FiniteDistribution({point: (weight / share).enclosure for point, weight in inside.items()})

    def error(self, level: Fraction) -> Fraction:
        """Return a w such that one coordinate is within ±w with probability at least about `level`, as without a grid.

        ‖Z‖ is a Gamma variable R of shape k, and a coordinate is R·U, where U² has the law Beta(½, (k−1)/2).
        """
        slip = float(1 - numbers.confidence(level))
        low, high = 0.0, 60.0 * self.dimensions
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if _coordinate_tail(self.dimensions, middle) > slip else (low, middle)
        # half a cell of the grid, and half a cell for the number
        return Fraction(math.ceil(high / float(self.rate) + 0.5))


def _share(dimensions: int) -> Fraction:
    """Give a rational number just below 1/√k."""
    return Fraction(math.isqrt(_PLACES**2 // dimensions), _PLACES)


def _accepted(rate: Fraction, squares: int, least: Fraction, source: RandomSource) -> bool:
    """Accept with probability exp(−rate·(√squares − least)), exactly.

    Doubles decide where they cannot be wrong: an exponent below 2¹⁸ has an absolute error below 2⁻³², and so has its
    power; beyond that the power is below 2⁻³² in any case.
    """
    first = int(source.words(1)[0])
    chance, word = math.exp(-max(0.0, float(rate) * (math.sqrt(squares) - float(least)))), first / 2**64
    if abs(chance - word) > _BAND:
        return word < chance
    return below(_acceptance(rate, squares, least), first, source)


def _acceptance(rate: Fraction, squares: int, least: Fraction) -> Real:
    """Enclose exp(−rate·(√squares − least)), where √squares ≥ least."""

    def at(bits: int) -> Fixed:
        digits = bits * 302 // 1000 + 8 + len(str(int(rate * (math.isqrt(squares) + 1))))
        low, high = reals.sqrt(Fraction(squares), digits) if squares else (Fraction(0), Fraction(0))
        nearest, farthest = max(Fraction(0), rate * (low - least)), max(Fraction(0), rate * (high - least))
        return fixed(reals.exp(-farthest, digits)[0], min(Fraction(1), reals.exp(-nearest, digits)[1]), bits)

    return at


def _reach(rate: Fraction, dimensions: int, slip: float) -> int:
    """Find how far to list so that about `slip` of the mass is beyond."""
    reach = 1
    while float(_outside(rate, dimensions, reach).high) > slip:
        reach += 1 + reach // 8
    return reach


def _outside(rate: Fraction, dimensions: int, reach: int) -> Interval:
    """Bound the sum of exp(−rate·‖z‖₂) over all z with a coordinate beyond ±reach; the sum at 0 alone is 1.

    At most 2k·(2r + 1)^(k−1) points have the largest coordinate ±r, and ‖z‖₂ ≥ r there. From one r to the next such a
    term falls by a factor of at most exp(−rate)·((2r + 3)/(2r + 1))^(k−1), which decreases with r.
    """
    r = reach + 1
    term = 2 * dimensions * Interval.of((2 * r + 1) ** (dimensions - 1)) * exp(-rate * r)
    factor = exp(-rate) * Interval.of(Fraction(2 * r + 3, 2 * r + 1) ** (dimensions - 1))
    if factor.high >= 1:
        return Interval.of(10**9)
    return Interval(ZERO.low, (term / (1 - factor)).high)


def _coordinate_tail(dimensions: int, far: float) -> float:
    """Compute Pr[|R·U| > far] by a sum over R, for the rate 1."""
    if dimensions == 1:
        return math.exp(-far)
    steps, end = 400, 40.0 + 6 * dimensions
    width, chance = end / steps, 0.0
    for step in range(steps):
        r = (step + 0.5) * width
        if r > far:
            density = math.exp((dimensions - 1) * math.log(r) - r - math.lgamma(dimensions))
            chance += width * density * (1 - incomplete_beta(0.5, (dimensions - 1) / 2, (far / r) ** 2))
    return chance
