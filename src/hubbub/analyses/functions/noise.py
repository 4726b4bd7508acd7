"""How a function's value is put among those that a mechanism takes, noised and shown: numbers, points, or bits."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Published
from hubbub.answers.release import Output
from hubbub.core.events import Event
from hubbub.mechanisms.bit_flips import Flips
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.metric import Metric
from hubbub.noise.source import Source

LEVEL = Fraction(95, 100)
_MOST = 1 << 60


class Noise(Protocol):
    """How a value is put among those that a mechanism takes, noised and shown."""

    @property
    def event(self) -> Event:
        """What is charged."""
        ...

    @property
    def plus_minus(self) -> float:
        """The half width at 95%."""
        ...

    @property
    def default(self) -> Any:
        """What stands for a value that is none."""
        ...

    def read(self, value: Any) -> Any:
        """Put a function's value among those that the mechanism takes; whatever is none raises."""
        ...

    def apart(self, one: Any, other: Any) -> Fraction:
        """Say how far two such values are apart, as a share of what the mechanism is calibrated to: at most 1."""
        ...

    def release(self, value: Any, source: Source) -> Published:
        """Draw, and show."""
        ...


@dataclass(frozen=True)
class Grid:
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
        """What is charged."""
        return self.mechanism.event

    @property
    def plus_minus(self) -> float:
        """The half width of one number."""
        return float(self.mechanism.error(LEVEL) * self.step)

    @property
    def default(self) -> NDArray[np.int64]:
        """The middle of the bounds: no value within them is further away than half their width."""
        low, high = self.bounds or (Fraction(0), Fraction(0))
        return self._steps([(low + high) / 2] * self.outputs)

    def read(self, value: Any) -> NDArray[np.int64]:
        """Round down to whole steps, exactly."""
        given = np.asarray(value, dtype=np.float64).reshape(-1)
        if given.size != self.outputs or not np.isfinite(given).all():
            raise ValueError("not so many finite numbers")
        return self._steps([Fraction(each) for each in given.tolist()])

    def _steps(self, exact: Sequence[Fraction]) -> NDArray[np.int64]:
        if self.bounds is not None:
            low, high = self.bounds
            exact = [min(max(each, low), high) for each in exact]
        return np.array([min(max(each // self.step, -_MOST), _MOST) for each in exact], dtype=np.int64)

    def apart(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> Fraction:
        """Give the distance in L1, or in L2 squared, as a share of the sensitivity."""
        moved = [int(a) - int(b) for a, b in zip(one, other, strict=True)]
        if isinstance(self.mechanism, Laplace):
            return Fraction(sum(map(abs, moved)), self.mechanism.sensitivity)
        return Fraction(sum(each * each for each in moved), self.mechanism.sensitivity_squared)

    def release(self, value: NDArray[np.int64], source: Source) -> Published:
        """Add noise, and show numbers with their intervals."""
        noisy = self.mechanism.sample(value, source)
        raw = [float(int(each) * self.step) for each in noisy]
        half = self.plus_minus
        shown = raw
        if self.bounds is not None:
            low, high = map(float, self.bounds)
            shown = [min(max(each, low), high) for each in raw]
        values = Output("value", "real", shown, [each - half for each in raw], [each + half for each in raw])
        return Published(_placed(values))


@dataclass(frozen=True)
class Points:
    """A point of a finite metric space, near the true one."""

    mechanism: Metric
    names: tuple[Hashable, ...]
    default: int

    @property
    def event(self) -> Event:
        """What is charged."""
        return self.mechanism.event

    @property
    def plus_minus(self) -> float:
        """How far the shown point is from the true one, at most."""
        return float(self.mechanism.error(LEVEL))

    def read(self, value: Any) -> int:
        """Find a point by its name."""
        return self.names.index(value)

    def apart(self, one: int, other: int) -> Fraction:
        """Give the distance as a share of the sensitivity."""
        space = self.mechanism.space
        return space.distances[one][other] * space.unit / self.mechanism.sensitivity

    def release(self, value: int, source: Source) -> Published:
        """Choose a point."""
        chosen = self.names[self.mechanism.sample(value, source)]
        kind = "integer" if isinstance(chosen, int) else "text"
        return Published((Output("value", kind, [chosen if isinstance(chosen, int) else str(chosen)]),))


@dataclass(frozen=True)
class Bits:
    """A vector of bits, each flipped with one probability."""

    mechanism: Flips

    @property
    def event(self) -> Event:
        """What is charged."""
        return self.mechanism.event

    @property
    def plus_minus(self) -> float:
        """How many bits are flipped, at most."""
        return float(self.mechanism.error(LEVEL))

    @property
    def default(self) -> NDArray[np.bool_]:
        """No bit set."""
        return np.zeros(self.mechanism.bits, dtype=np.bool_)

    def read(self, value: Any) -> NDArray[np.bool_]:
        """Take so many bits."""
        given = np.asarray(value).reshape(-1)
        if given.size != self.mechanism.bits:
            raise ValueError("not so many bits")
        return given.astype(np.bool_)

    def apart(self, one: NDArray[np.bool_], other: NDArray[np.bool_]) -> Fraction:
        """Count differing bits, as a share of the sensitivity."""
        return Fraction(int((one != other).sum()), self.mechanism.distance)

    def release(self, value: NDArray[np.bool_], source: Source) -> Published:
        """Flip."""
        noisy = self.mechanism.sample(value, source)
        return Published(_placed(Output("value", "boolean", noisy.tolist())))


def _placed(values: Output) -> tuple[Output, ...]:
    places = Output("place", "integer", list(range(len(values.values))))
    return (values,) if len(values.values) == 1 else (places, values)
