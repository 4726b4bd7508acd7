"""Watch a program draw, and run it again on a neighbor with the same answers: does each draw cover what moved?

A program's later questions follow from its earlier noisy answers. So the second run is given the answers of the first,
and what is compared is what the theorem of programs with fixed events asks for: at every draw, on one and the same
transcript so far, the two true values are within the sensitivity that the mechanism was made for.

For a process of its own: while a watch is on, the mechanisms of the whole process are watched.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.core import events
from hubbub.core.events import Event
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.noise.source import Words, system

Drawing = Laplace | Gaussian | Exponential | NoisyMax | PermuteAndFlip
#: What programs draw from.
WATCHED: tuple[type[Any], ...] = (Laplace, Gaussian, Exponential, NoisyMax, PermuteAndFlip)


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw: from what, of which true value, and what came out."""

    mechanism: Drawing
    value: Any
    outcome: Any


@dataclass(slots=True)
class Cost:
    """What the draws of two runs cost for this pair: pure ε where there is no Gaussian noise, and twice ρ."""

    pure: Fraction = Fraction(0)
    doubled: Fraction = Fraction(0)
    gaussian: bool = False


@dataclass(slots=True)
class Compared:
    """How a second run went beside the first: where it left the first's path, or moved too far."""

    problems: list[str] = field(default_factory=list)
    draws: int = 0
    cost: Cost = field(default_factory=Cost)


class Tape:
    """A program's own randomness (a start at random, an order): the same words again after `rewind`.

    Draws of watched mechanisms take theirs from elsewhere, so that runs which answer them otherwise stay in step.
    """

    def __init__(self) -> None:
        self._kept: list[Words] = []
        self._at = 0

    def words(self, count: int) -> Words:
        """Give the next words: those of the last run, as far as it went."""
        if self._at == len(self._kept) or len(self._kept[self._at]) != count:
            del self._kept[self._at :]
            self._kept.append(system().words(count))
        self._at += 1
        return self._kept[self._at - 1].copy()

    def rewind(self) -> None:
        """Begin again."""
        self._at = 0


@contextmanager
def recorded() -> Iterator[list[Draw]]:
    """Keep every draw that is made meanwhile."""
    draws: list[Draw] = []

    def keep(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:  # noqa: ARG001
            outcome = sample(self, value, system())
            draws.append(Draw(self, _copied(value), _copied(outcome)))
            return outcome

        return draw

    with _swapped(keep):
        yield draws


@contextmanager
def repeated(first: Sequence[Draw], *, units: int = 1) -> Iterator[Compared]:
    """Answer every draw as it was answered the first time, and compare what it is asked of."""
    found = Compared()

    def again(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:  # noqa: ARG001
            number, found.draws = found.draws, found.draws + 1
            if number >= len(first):
                found.problems.append("it draws more often than on the neighbor")
                return sample(self, value, system())
            before = first[number]
            if before.mechanism != self:
                found.problems.append(f"draw {number + 1} is made by another mechanism than on the neighbor")
            elif (problem := _compare(self, before.value, value, units, found.cost)) is not None:
                found.problems.append(f"draw {number + 1} ({type(self).__name__}): {problem}")
            return _copied(before.outcome)

        return draw

    with _swapped(again):
        yield found
    if found.draws < len(first):
        found.problems.append("it draws less often than on the neighbor")


def within(cost: Cost, event: Event, *, units: int = 1) -> bool:
    """Say whether what a pair cost is within what was charged, for data that differs in so many units."""
    charged = stated(event)
    if not charged.gaussian:
        return cost.pure <= units * charged.pure
    return cost.doubled <= units**2 * charged.doubled


def stated(event: Event) -> Cost:
    """Add up what the facts of an event cost, for neighbors as far apart as they may be."""
    match event:
        case events.Composed(parts):
            whole = Cost()
            for part, count in parts:
                one = stated(part)
                whole.pure += count * one.pure
                whole.doubled += count * one.doubled
                whole.gaussian |= one.gaussian
            return whole
        case events.LaplaceEvent(sensitivity, scale):
            return _pure(sensitivity / scale)
        case events.GaussianEvent(sensitivity_squared, variance):
            return Cost(doubled=sensitivity_squared / variance, gaussian=True)
        case events.SelectionEvent(_, sensitivity, monotone, rate):
            return _pure(rate * sensitivity * (1 if monotone else 2))
    return Cost()


def _pure(loss: Fraction) -> Cost:
    return Cost(loss, loss * loss)


def _compare(mechanism: Drawing, one: Any, two: Any, units: int, cost: Cost) -> str | None:
    a, b = np.asarray(one), np.asarray(two)
    if a.shape != b.shape:
        return "what is asked has another shape than on the neighbor"
    moved = [int(x) - int(y) for x, y in zip(a[a != b].tolist(), b[a != b].tolist(), strict=True)]
    match mechanism:
        case Laplace():
            far, most = sum(map(abs, moved)), units * mechanism.sensitivity
            loss = _pure(far / mechanism.scale)
        case Gaussian():
            far, most = sum(m * m for m in moved), units**2 * mechanism.sensitivity_squared
            loss = Cost(doubled=far / mechanism.variance, gaussian=True)
        case _:
            far, most = max(map(abs, moved), default=0), units * mechanism.sensitivity
            if mechanism.monotone and units == 1 and moved and min(moved) < 0 < max(moved):
                return "scores that are stated to move one way move both ways"
            loss = _pure(mechanism.rate * far * (1 if mechanism.monotone else 2))
    cost.pure += loss.pure
    cost.doubled += loss.doubled
    cost.gaussian |= loss.gaussian
    return None if far <= most else f"it moved by {far}, and {most} is covered"


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


@contextmanager
def _swapped(wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    kept = {kind: kind.sample for kind in WATCHED}
    try:
        for kind, sample in kept.items():
            kind.sample = wrap(sample)
        yield
    finally:
        for kind, sample in kept.items():
            kind.sample = sample
