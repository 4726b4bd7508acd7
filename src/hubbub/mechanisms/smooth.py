"""Noise by smooth sensitivity: little where the data is far from any at which one unit matters."""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hubbub.core import events, numbers, reals
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Pure
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import check_size
from hubbub.noise.polynomial import polynomial, tail
from hubbub.noise.source import RandomSource

#: The power of the noise: Pr[|Z| > z] = (1 + z)^−4, so that its variance is finite.
POWER = 4
#: Weights are whole multiples of 1/UNIT.
UNIT = 1 << 62
#: From this distance on, every dataset is taken to have the largest local sensitivity.
MAX_DISTANCE = 4096
_RANGE = 1 << 62


@dataclass(frozen=True, slots=True)
class LocalValue:
    """An exact value, and how far one unit can move it at datasets that are 0, 1, 2, … units away.

    Assumes  of a pair of neighbors x and x′: the values are at most bounds₀(x) apart, and bounds_k(x) ≤ bounds_k+1(x′).
    The bounds rise; beyond the listed ones they are the global sensitivity.
    """

    value: int
    bounds: tuple[int, ...]

    def bound(self, distance: int, largest: int) -> int:
        """Give the bound at a distance."""
        return min(self.bounds[distance], largest) if distance < len(self.bounds) else largest

    def distance(self, bound: int) -> int:
        """Count the units that must change before one more can move the value by more than `bound`; 0 if none must."""
        return next((k for k, each in enumerate(self.bounds) if each > bound), len(self.bounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothNoise:
    """Add noise with polynomial tails in proportion to the smooth sensitivity; clamp into a public range.

    Theorem (Smooth sensitivity). Let S(x) ≥ bounds₀(x) and S(x) ≤ e^β·S(x′) for all neighbors. With noise of density
    (p/2)·(1 + |z|)^−(p+1), the answer f(x) + S(x)/α·Z, rounded and clamped, is ε-private for
    ε = max((p + 1)·α + β, p·β) (Nissim, Raskhodnikova and Smith 2007, with a noise of their kind; the constants are
    ours). S(x) = max_k w_k·bounds_k(x) is such a bound for public weights 1 = w₀ ≥ w₁ ≥ … with w_k ≤ e^β·w_k+1.
    Proof    S(x) = w_k·bounds_k(x) ≤ e^β·w_k+1·bounds_k+1(x′) ≤ e^β·S(x′). Let S′ = e^λ·S and z, z′ be an outcome's
             distances from f and f′ in units of S/α and S′/α. The log-ratio of the densities of x over x′ is
             (p + 1)·ln((1 + |z′|)/(1 + |z|)) + λ. If λ ≥ 0, then |z′| ≤ |z| + α as f and f′ are at most S ≤ S′ apart,
             so it is at most (p + 1)·ln(1 + α) + β. If λ < 0, they are at most S′ apart, so |z′| ≤ e^−λ·|z| + α;
             (1 + α + e^−λ·|z|)/(1 + |z|) lies between 1 + α and e^−λ, so it is at most
             max((p + 1)·ln(1 + α), −p·λ). Swap x and x′ for the other sign. Rounding and clamping come after.
    Assumes  `LocalValue`'s conditions; exact sampling; the range does not depend on the data.
    Charges  Pure(max((p + 1)·α + β, p·β)).
    Error    proportional to S(x), which is not released; `error` is for the largest S(x).
    Tested   tests/mechanisms/test_smooth.py::test_every_dataset_of_a_small_universe_stays_within_the_loss
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    low: int
    high: int
    sensitivity: int
    power: int
    slide: Fraction
    dilation: Fraction

    def __post_init__(self) -> None:
        low = numbers.integer(self.low, "low", -_RANGE, _RANGE)
        if not low < numbers.integer(self.high, "high", -_RANGE, _RANGE):
            raise ParameterError("HB103", "The range of the answer is empty.", "Choose high above low.")
        object.__setattr__(self, "sensitivity", numbers.sensitivity(self.sensitivity))
        object.__setattr__(self, "power", numbers.integer(self.power, "power", 2, 64))
        for name in ("slide", "dilation"):
            object.__setattr__(self, name, numbers.epsilon(getattr(self, name), name))

    @classmethod
    def from_epsilon(cls, *, low: int, high: int, sensitivity: int, epsilon: numbers.Number) -> "SmoothNoise":
        """Spend ε on the tails, β = ε/p, and the same ε near the value, α = (ε − β)/(p + 1)."""
        whole = numbers.epsilon(epsilon)
        dilation = whole / POWER
        slide = (whole - dilation) / (POWER + 1)
        return cls(low=low, high=high, sensitivity=sensitivity, power=POWER, slide=slide, dilation=dilation)

    @property
    def event(self) -> events.SmoothEvent:
        """The event that the ledger records."""
        return events.SmoothEvent(self.power, self.slide, self.dilation)

    @property
    def loss(self) -> Pure:
        """The loss in the tails or near the value, whichever is larger."""
        return Pure(max((self.power + 1) * self.slide + self.dilation, self.power * self.dilation))

    @property
    def weights(self) -> tuple[int, ...]:
        """The public weights w₀, w₁, … in multiples of 1/UNIT; after the last one they stay as they are."""
        return _weights(self.dilation, self.sensitivity)

    def smooth(self, value: LocalValue) -> int:
        """Give the smooth sensitivity in multiples of 1/UNIT. It depends on the data and is never released."""
        weights = self.weights
        within = (weight * value.bound(k, self.sensitivity) for k, weight in enumerate(weights))
        return max(max(within), weights[-1] * self.sensitivity)

    def scale(self, smooth: int) -> Fraction:
        """Give the scale of the noise for a smooth sensitivity."""
        return Fraction(smooth, UNIT) / self.slide

    def sample(self, value: LocalValue, source: RandomSource) -> int:
        """Add noise to the value of `value`."""
        noise = polynomial(scale=self.scale(self.smooth(value)), power=self.power, source=source)
        return min(max(value.value + noise, self.low), self.high)

    def distribution(self, value: LocalValue) -> FiniteDistribution[int]:
        """List the distribution of the answer; every probability is rational."""
        check_size(self.high - self.low + 1)
        scale = self.scale(self.smooth(value))
        above = [self._at_least(y - value.value, scale) for y in range(self.low + 1, self.high + 1)]
        edges = [Fraction(1), *above, Fraction(0)]
        return FiniteDistribution(
            {self.low + i: (edges[i] - edges[i + 1],) * 2 for i in range(self.high - self.low + 1)}
        )

    def error(self, level: Fraction) -> Fraction:
        """Return the half width at the largest smooth sensitivity, within the range."""
        return Fraction(min(self.half_width(self.sensitivity * UNIT, level), self.high - self.low))

    def half_width(self, smooth: int, level: Fraction) -> int:
        """Return the least w with Pr[|noise| ≤ w] ≥ level for a smooth sensitivity."""
        goal, scale = numbers.confidence(level), self.scale(smooth)
        high = 1
        while 1 - tail(high + 1, scale, self.power) < goal:
            high *= 2
        low = 0
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if 1 - tail(middle + 1, scale, self.power) >= goal else (middle + 1, high)
        return low

    def pair_loss(self, one: LocalValue, two: LocalValue) -> Fraction:
        """Bound the loss between two values by the proof of the theorem, whatever they are; for audits."""
        scales = sorted((self.smooth(one), self.smooth(two)))
        widens = reals.log(Fraction(scales[1], scales[0]))[1]
        slides = self.slide * abs(one.value - two.value) * Fraction(UNIT, scales[0])
        return max((self.power + 1) * slides + widens, self.power * widens)

    def _at_least(self, least: int, scale: Fraction) -> Fraction:
        """Give Pr[noise ≥ least]; the noise is symmetric."""
        if least >= 1:
            return tail(least, scale, self.power) / 2
        return 1 - tail(1 - least, scale, self.power) / 2


@lru_cache(maxsize=64)
def _weights(dilation: Fraction, largest: int) -> tuple[int, ...]:
    """Give weights that fall by at most e^−β from one to the next, until they are too small to matter."""
    ratio = reals.exp(-dilation)[1]
    weights = [UNIT]
    while weights[-1] * largest * 1000 > UNIT and len(weights) < MAX_DISTANCE:
        weights.append(-(-weights[-1] * ratio.numerator // ratio.denominator))
    return tuple(weights)


@dataclass(frozen=True, slots=True)
class ScaleLevels:
    """Levels of the smooth sensitivity, a factor of at least e^β apart, from the least that it can be.

    Theorem (The scale has a small sensitivity). The level of S(x), the first whose bound is at least S(x), changes by
    at most 1 between neighbors.
    Proof    S(x′) ≤ T_l implies S(x) ≤ e^β·T_l ≤ T_l+1.
    Tested   tests/mechanisms/test_smooth.py::test_the_level_of_the_scale_moves_by_at_most_one
    """

    noise: SmoothNoise

    def bound(self, level: int) -> int:
        """Give the bound T of a level, in multiples of 1/UNIT; the global sensitivity bounds all."""
        bounds = _levels(self.noise.dilation, self.noise.sensitivity)
        return bounds[min(max(level, 0), len(bounds) - 1)]

    def level(self, smooth: int) -> int:
        """Give the level of a smooth sensitivity."""
        return bisect_left(_levels(self.noise.dilation, self.noise.sensitivity), smooth)


@lru_cache(maxsize=64)
def _levels(dilation: Fraction, largest: int) -> tuple[int, ...]:
    ratio = reals.exp(dilation)[1]
    bounds = [_weights(dilation, largest)[-1] * largest]
    while bounds[-1] < largest * UNIT:
        bounds.append(-(-bounds[-1] * ratio.numerator // ratio.denominator))
    return tuple(bounds)
