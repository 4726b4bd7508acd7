"""The Laplace mechanism on integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.distributions import DiscreteLaplace, half_width
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import exp
from hubbub.core.loss import Pure
from hubbub.core.reals import Enclosure
from hubbub.mechanisms import additive
from hubbub.mechanisms.additive import Window
from hubbub.mechanisms.base import Integers
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Add two-sided geometric noise to an integer, or to each coordinate of an integer vector.

    Theorem (Laplace mechanism). If ‖f(x) − f(x′)‖₁ ≤ D for neighbors, then f(x) + Z with independent Z_i of
    Pr[Z_i = z] ∝ exp(−|z|/b) is D/b-private (Dwork, McSherry, Nissim and Smith 2006, Proposition 1, on the integers).
    Proof    The ratio at y is Π exp((|y_i − f(x′)_i| − |y_i − f(x)_i|)/b) ≤ exp(‖f(x) − f(x′)‖₁/b).
    Assumes  f is integer-valued; D is its L1 sensitivity for the relation of the unit; Z is sampled exactly.
    Charges  Pure(D/b).
    Error    standard deviation √(2q)/(1−q), q = exp(−1/b), which tends to √2·b (not b); mean absolute error
             2q/(1−q²), which tends to b; `error` is the exact half width at a confidence level.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_laplace.py::test_mass_ratio_of_100_and_101_is_within_a_factor_of_two
    """

    sensitivity: int
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", numbers.sensitivity(self.sensitivity))
        object.__setattr__(self, "scale", numbers.scale(self.scale))

    @classmethod
    def from_epsilon(cls, *, sensitivity: int, epsilon: numbers.Number) -> "Laplace":
        """Calibrate the scale to D/ε.

        >>> Laplace.from_epsilon(sensitivity=2, epsilon="0.1")
        Laplace(sensitivity=2, scale=Fraction(20, 1))
        """
        return cls(sensitivity=sensitivity, scale=numbers.sensitivity(sensitivity) / numbers.epsilon(epsilon))

    @property
    def event(self) -> events.LaplaceEvent:
        """The event that the ledger records."""
        return events.LaplaceEvent(self.sensitivity, self.scale)

    @property
    def loss(self) -> Pure:
        """Pure(sensitivity/scale), attained by values that differ by the sensitivity."""
        return Pure(self.sensitivity / self.scale)

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise distribution."""
        return DiscreteLaplace(self.scale)

    @overload
    def sample(self, value: int, source: RandomSource) -> int: ...
    @overload
    def sample(self, value: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]: ...
    @overload
    def sample(self, value: NDArray[np.object_], source: RandomSource) -> NDArray[np.object_]: ...
    @overload
    def sample(self, value: int | Integers, source: RandomSource) -> int | Integers: ...
    def sample(self, value: int | Integers, source: RandomSource) -> int | Integers:
        """Add noise to an int, or to every entry of an integer array at once."""
        return additive.add(value, lambda count: discrete_laplace(scale=self.scale, count=count, source=source))

    @overload
    def distribution(self, value: int, window: Window | None = None) -> FiniteDistribution[int]: ...
    @overload
    def distribution(
        self, value: tuple[int, ...], window: Window | None = None
    ) -> FiniteDistribution[tuple[int, ...]]: ...
    def distribution(
        self, value: int | tuple[int, ...], window: Window | None = None
    ) -> FiniteDistribution[int] | FiniteDistribution[tuple[int, ...]]:
        """List the distribution for an int or a short vector, up to 10⁻³⁰ or, clamped into a window, completely."""
        return additive.distribution(self.noise, value, window)

    def error(self, level: Fraction, coordinates: int = 1) -> Fraction:
        """Return the least w with Pr[all coordinates are within ±w] ≥ level."""
        return Fraction(half_width(self.noise, numbers.confidence(level), coordinates))

    @property
    def variance(self) -> Enclosure:
        """Enclose the variance of one coordinate, 2q/(1−q)²."""
        return _variance(self.scale)

    @property
    def mean_absolute_error(self) -> Enclosure:
        """Enclose the expected |Z| of one coordinate, 2q/(1−q²)."""
        q = exp(-1 / self.scale)
        return (2 * q / (1 - q * q)).enclosure


@lru_cache(maxsize=1024)
def _variance(scale: Fraction) -> Enclosure:
    q = exp(-1 / scale)
    return (2 * q / (1 - q) ** 2).enclosure
