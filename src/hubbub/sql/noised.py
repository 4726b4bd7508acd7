"""A measure together with the noise that is added to it."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Literal

from hubbub.core import numbers
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measures import Measure, Sensitivity

Noise = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class Noised:
    """A measure over all cells of all grouping sets, with its noise."""

    measure: Measure
    sensitivity: Sensitivity
    portion: Fraction  #: of ε, or of ρ where the noise is Gaussian
    mechanism: Laplace | Gaussian

    @property
    def deviation(self) -> float:
        """The standard deviation of its noise, in steps."""
        if isinstance(self.mechanism, Laplace):
            return sqrt(self.mechanism.variance[1])
        return sqrt(self.mechanism.variance)


def mechanism(kind: Noise, moved: Sensitivity, portion: Fraction) -> Laplace | Gaussian:
    """Calibrate the noise of a measure to its portion of ε, or of ρ."""
    if kind == "laplace":
        scale = max(moved.l1 / portion, numbers.SCALE_MIN)
        return Laplace(sensitivity=moved.l1, scale=scale)
    variance = max(moved.l2_squared / (2 * portion), numbers.SCALE_MIN**2)
    return Gaussian(sensitivity_squared=moved.l2_squared, variance=variance)
