"""Noise on a fixed-point grid, for sums of real numbers.

Floating-point sums depend on the order of their terms, and floating-point noise has gaps that reveal the true value. So
reals are rounded to integers once, row by row, and stay integers until the noise is added.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Pure, Zcdp
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import Window
from hubbub.mechanisms.base import Integers
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPointNoise:
    """Noise on sums of multiples of a step, returned as exact multiples of it.

    Theorem (Grid noise). If each value is a whole number of steps, then step·(sum of those integers + noise) keeps
    the loss of the noise on the integers: it is a fixed function of the noisy integer.
    Assumes  the exact value is passed in steps; sensitivity is in steps too (`steps`).
    Charges  what the noise charges.   Error  step times that of the noise.
    Tested   tests/mechanisms/test_grid.py::test_noisy_cents_are_exact_multiples_of_a_cent
    """

    noise: Laplace | Gaussian
    step: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian):
            raise ParameterError(
                "HB155", "The noise is not Laplace or Gaussian.", "Pass a Laplace or a Gaussian mechanism."
            )
        limit = Fraction(numbers.SENSITIVITY_MAX)
        object.__setattr__(self, "step", numbers.in_range(self.step, "step", 1 / limit, limit))

    @property
    def event(self) -> events.LaplaceEvent | events.GaussianEvent:
        """The event that the ledger records, in steps."""
        return self.noise.event

    @property
    def loss(self) -> Pure | Zcdp:
        """The loss of the noise."""
        return self.noise.loss

    @overload
    def sample(self, value: int, source: RandomSource) -> Fraction: ...
    @overload
    def sample(self, value: Integers, source: RandomSource) -> NDArray[np.object_]: ...
    def sample(self, value: int | Integers, source: RandomSource) -> Fraction | NDArray[np.object_]:
        """Add noise to a number of steps, or to an array; return rationals (an object array of `Fraction`s)."""
        noisy = self.noise.sample(value, source)
        if isinstance(noisy, int):
            return noisy * self.step
        multiples: NDArray[np.object_] = noisy.astype(object) * self.step
        return multiples

    def distribution(self, value: int, window: Window | None = None) -> FiniteDistribution[Fraction]:
        """List the distribution for one number of steps; the window is in steps."""
        distribution = self.noise.distribution(value, window)
        return FiniteDistribution({z * self.step: mass for z, mass in distribution.mass.items()}, distribution.tail)

    def error(self, level: Fraction, coordinates: int = 1) -> Fraction:
        """Return the exact half-width that holds for all coordinates at once."""
        return self.noise.error(level, coordinates) * self.step


def steps(bound: numbers.Number, *, step: numbers.Number) -> int:
    """Return the number of steps that cover a bound: the sensitivity, in steps, of a value of at most that size.

    >>> steps("20000", step="0.01"), steps("0.015", step="0.01")
    (2000000, 2)
    """
    size, unit = abs(numbers.exact(bound, "bound")), numbers.exact(step, "step")
    if not unit > 0:
        raise ParameterError("HB103", "The step is not positive.", "Choose a positive step.")
    return -int(-size // unit)
