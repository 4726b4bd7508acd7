"""The discrete Gaussian mechanism on integers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.distributions import DiscreteGaussian, half_width
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Zcdp
from hubbub.mechanisms import additive
from hubbub.mechanisms.additive import Window
from hubbub.mechanisms.base import Integers
from hubbub.noise.gaussian import VARIANCE_MAX, VARIANCE_MIN, discrete_gaussian
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Add discrete Gaussian noise to an integer, or to each coordinate of an integer vector.

    Theorem (Discrete Gaussian mechanism). If ‖f(x) − f(x′)‖₂² ≤ D² for neighbors, then f(x) + Z with independent Z_i
    of Pr[Z_i = z] ∝ exp(−z²/2σ²) is D²/(2σ²)-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4).
    Proof    Let m = f(x)_i, k = f(x′)_i and N(c) = Σ_z exp(−(z−c)²/2σ²). Completing the square in
             Σ_z exp(−α(z−m)²/2σ² + (α−1)(z−k)²/2σ²) gives exp(α(α−1)(m−k)²/2σ²)·N(αm − (α−1)k), and N is largest at
             integers (Poisson: all its Fourier coefficients are positive), where it is the normalizer. So the Rényi
             divergence of order α is at most α(m−k)²/2σ²; over independent coordinates the divergences add up.
    Assumes  f is integer-valued; D² bounds the squared L2 distance for the relation of the unit; Z is sampled exactly.
    Charges  Zcdp(D²/2σ²); the exact (ε, δ) of a variance is a matter of accounting.
    Error    variance at most σ²; `error` is the exact half width at a confidence level.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_gaussian.py::test_renyi_divergence_is_the_line_at_every_order_of_the_grid
    """

    sensitivity_squared: int
    variance: Fraction

    def __post_init__(self) -> None:
        limit = numbers.SENSITIVITY_MAX**2
        squared = numbers.integer(self.sensitivity_squared, "sensitivity_squared", 1, limit)
        object.__setattr__(self, "sensitivity_squared", squared)
        object.__setattr__(self, "variance", numbers.in_range(self.variance, "variance", VARIANCE_MIN, VARIANCE_MAX))

    @classmethod
    def from_rho(cls, *, sensitivity_squared: int, rho: numbers.Number) -> "Gaussian":
        """Calibrate the variance to D²/(2ρ).

        >>> Gaussian.from_rho(sensitivity_squared=1, rho="0.005")
        Gaussian(sensitivity_squared=1, variance=Fraction(100, 1))
        """
        squared = numbers.integer(sensitivity_squared, "sensitivity_squared", 1, numbers.SENSITIVITY_MAX**2)
        return cls(sensitivity_squared=squared, variance=squared / (2 * numbers.epsilon(rho, "rho")))

    @property
    def event(self) -> events.GaussianEvent:
        """The event that the ledger records."""
        return events.GaussianEvent(self.sensitivity_squared, self.variance)

    @property
    def loss(self) -> Zcdp:
        """Zcdp(D²/2σ²), attained at integer orders by values that differ by D."""
        return Zcdp(self.sensitivity_squared / (2 * self.variance))

    @property
    def noise(self) -> DiscreteGaussian:
        """The noise distribution."""
        return DiscreteGaussian(self.variance)

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
        return additive.add(value, lambda count: discrete_gaussian(variance=self.variance, count=count, source=source))

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
