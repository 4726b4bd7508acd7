"""Noise for the value of a user-defined function: numbers, points of a metric space, or bits."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Published
from hubbub.answers.release import Output
from hubbub.core.events import Event
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.metric import Metric
from hubbub.noise.source import RandomSource

LEVEL = Fraction(95, 100)
_MAX_STEPS = 1 << 60


class FunctionNoise(Protocol):
    """Converts the value of a function for a mechanism, and releases it with noise."""

    @property
    def event(self) -> Event:
        """The privacy event that is charged."""
        ...

    @property
    def plus_minus(self) -> float:
        """Margin of error (95%)."""
        ...

    @property
    def default(self) -> Any:
        """Replacement for an invalid value."""
        ...

    def read(self, value: Any) -> Any:
        """Convert a function's value for the mechanism; raise if it is invalid."""
        ...

    def distance(self, one: Any, other: Any) -> Fraction:
        """Return the distance of two converted values, divided by the sensitivity of the mechanism."""
        ...

    def release(self, value: Any, source: RandomSource) -> Published:
        """Add noise and publish the result."""
        ...


@dataclass(frozen=True)
class GridNoise:
    """Numbers on a grid, with Laplace or Gaussian noise.

    Theorem (A grid for any function). If ‖f(x) − f(x′)‖₁ ≤ S for f with d values, then rounding each down to whole
    steps of size t moves them by at most S/t + d steps in L1, and by at most ⌈S/t⌉ where d = 1; if the L2 distance is
    at most S, the steps' is below S/t + √d.
    Proof    Rounding down moves the difference of two numbers by less than one step: d steps in L1, √d in L2. For
             d = 1: ⌊y⌋ ≤ ⌊x + ⌈s⌉⌋ = ⌊x⌋ + ⌈s⌉ for y ≤ x + s.
    Charges  Pure(ε), or Zcdp under (ε, δ) for L2.
    Tested   tests/analyses/functions/test_function.py::test_rounding_to_steps_stays_within_what_the_noise_is_for
    """

    mechanism: Laplace | Gaussian
    step: Fraction
    outputs: int
    bounds: tuple[Fraction, Fraction] | None

    @property
    def event(self) -> Event:
        """The privacy event that is charged."""
        return self.mechanism.event

    @property
    def plus_minus(self) -> float:
        """Margin of error (95%) of one number."""
        return float(self.mechanism.error(LEVEL) * self.step)

    @property
    def default(self) -> NDArray[np.int64]:
        """The midpoint of the bounds, from which no value is further than half their width."""
        low, high = self.bounds or (Fraction(0), Fraction(0))
        return self._steps([(low + high) / 2] * self.outputs)

    def read(self, value: Any) -> NDArray[np.int64]:
        """Round down to whole steps, exactly."""
        given = np.asarray(value, dtype=np.float64).reshape(-1)
        if given.size != self.outputs or not np.isfinite(given).all():
            raise ValueError("wrong number of values, or a value is not finite")
        return self._steps([Fraction(each) for each in given.tolist()])

    def _steps(self, exact: Sequence[Fraction]) -> NDArray[np.int64]:
        if self.bounds is not None:
            low, high = self.bounds
            exact = [min(max(each, low), high) for each in exact]
        return np.array([min(max(each // self.step, -_MAX_STEPS), _MAX_STEPS) for each in exact], dtype=np.int64)

    def distance(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> Fraction:
        """Return the L1 or squared L2 distance, divided by the sensitivity."""
        change = [int(a) - int(b) for a, b in zip(one, other, strict=True)]
        if isinstance(self.mechanism, Laplace):
            return Fraction(sum(map(abs, change)), self.mechanism.sensitivity)
        return Fraction(sum(each * each for each in change), self.mechanism.sensitivity_squared)

    def release(self, value: NDArray[np.int64], source: RandomSource) -> Published:
        """Add noise and publish the numbers with confidence intervals."""
        noisy = self.mechanism.sample(value, source)
        raw = [float(int(each) * self.step) for each in noisy]
        half = self.plus_minus
        shown = raw
        if self.bounds is not None:
            low, high = map(float, self.bounds)
            shown = [min(max(each, low), high) for each in raw]
        values = Output("value", "real", shown, [each - half for each in raw], [each + half for each in raw])
        return Published(_with_index(values))


@dataclass(frozen=True)
class PointNoise:
    """A point of a finite metric space, sampled near the true one."""

    mechanism: Metric
    names: tuple[Hashable, ...]
    default: int

    @property
    def event(self) -> Event:
        """The privacy event that is charged."""
        return self.mechanism.event

    @property
    def plus_minus(self) -> float:
        """Distance (95%) of the released point from the true one."""
        return float(self.mechanism.error(LEVEL))

    def read(self, value: Any) -> int:
        """Return the index of a point by its name."""
        return self.names.index(value)

    def distance(self, one: int, other: int) -> Fraction:
        """Return the distance divided by the sensitivity."""
        space = self.mechanism.space
        return space.distances[one][other] * space.unit / self.mechanism.sensitivity

    def release(self, value: int, source: RandomSource) -> Published:
        """Sample a point."""
        chosen = self.names[self.mechanism.sample(value, source)]
        kind = "integer" if isinstance(chosen, int) else "text"
        return Published((Output("value", kind, [chosen if isinstance(chosen, int) else str(chosen)]),))


@dataclass(frozen=True)
class BitNoise:
    """A vector of bits, each flipped with the same probability."""

    mechanism: BitFlips

    @property
    def event(self) -> Event:
        """The privacy event that is charged."""
        return self.mechanism.event

    @property
    def plus_minus(self) -> float:
        """Number of flipped bits (95%)."""
        return float(self.mechanism.error(LEVEL))

    @property
    def default(self) -> NDArray[np.bool_]:
        """All bits zero."""
        return np.zeros(self.mechanism.bits, dtype=np.bool_)

    def read(self, value: Any) -> NDArray[np.bool_]:
        """Convert the value to bits."""
        given = np.asarray(value).reshape(-1)
        if given.size != self.mechanism.bits:
            raise ValueError("wrong number of bits")
        return given.astype(np.bool_)

    def distance(self, one: NDArray[np.bool_], other: NDArray[np.bool_]) -> Fraction:
        """Return the number of differing bits divided by the sensitivity."""
        return Fraction(int((one != other).sum()), self.mechanism.distance)

    def release(self, value: NDArray[np.bool_], source: RandomSource) -> Published:
        """Flip bits at random and publish them."""
        noisy = self.mechanism.sample(value, source)
        return Published(_with_index(Output("value", "boolean", noisy.tolist())))


def _with_index(values: Output) -> tuple[Output, ...]:
    places = Output("place", "integer", list(range(len(values.values))))
    return (values,) if len(values.values) == 1 else (places, values)
