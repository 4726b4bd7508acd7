"""Record the draws of an analysis, then repeat it on a neighboring dataset and compare the exact values draw by draw.

The later queries of an analysis depend on its earlier noisy answers. The second run therefore receives the answers of
the first. This checks the assumption of the theorem on programs with fixed events: at every draw, given the same
transcript so far, the two exact values differ by at most the sensitivity of the mechanism.

Recording replaces the mechanisms of the whole process, so run it in a process of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from hubbub.core import events
from hubbub.core.events import Event
from hubbub.mechanisms.binomial import Binomial
from hubbub.mechanisms.euclidean import EuclideanNoise
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.joint_exponential import JointExponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.propose_test_release import ProposeTestRelease
from hubbub.mechanisms.smooth import SmoothNoise
from hubbub.noise.source import Words, system

LocalMechanism = SmoothNoise | ProposeTestRelease
AddedMechanism = Laplace | Gaussian | Binomial | EuclideanNoise
ChosenMechanism = Exponential | NoisyMax | PermuteAndFlip | JointExponential
WatchedMechanism = AddedMechanism | ChosenMechanism | LocalMechanism
#: The mechanisms that analyses draw from.
WATCHED: tuple[type[Any], ...] = (
    Laplace,
    Gaussian,
    Binomial,
    EuclideanNoise,
    Exponential,
    NoisyMax,
    PermuteAndFlip,
    JointExponential,
    SmoothNoise,
    ProposeTestRelease,
)
#: Those that can choose for many cells at once; each cell is recorded as a draw of its own.
_MANY: tuple[type[Any], ...] = (Exponential, PermuteAndFlip, JointExponential)


@dataclass(frozen=True, slots=True)
class RecordedDraw:
    """One draw: its mechanism, its exact value, and its outcome."""

    mechanism: WatchedMechanism
    value: Any
    outcome: Any


@dataclass(slots=True)
class PairCost:
    """The privacy loss of all draws for one pair of neighbors: pure ε without Gaussian noise, and 2ρ."""

    pure: Fraction = Fraction(0)
    doubled: Fraction = Fraction(0)
    gaussian: bool = False


@dataclass(slots=True)
class RunComparison:
    """How a second run differs from the first: where it diverged, or changed by more than the sensitivity."""

    problems: list[str] = field(default_factory=list)
    draws: int = 0
    cost: PairCost = field(default_factory=PairCost)


class Tape:
    """A random source that repeats itself after `rewind`, for random choices that need no privacy (starts, orders).

    Watched mechanisms use another source, so that runs with different outcomes stay in step.
    """

    def __init__(self) -> None:
        self._batches: list[Words] = []
        self._next = 0

    def words(self, count: int) -> Words:
        """Return the next words: those of the last run, as far as it went."""
        if self._next == len(self._batches) or len(self._batches[self._next]) != count:
            del self._batches[self._next :]
            self._batches.append(system().words(count))
        self._next += 1
        return self._batches[self._next - 1].copy()

    def rewind(self) -> None:
        """Start again from the first word."""
        self._next = 0


@contextmanager
def record_draws() -> Iterator[list[RecordedDraw]]:
    """Record every draw made in this context."""
    draws: list[RecordedDraw] = []

    def record(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:  # noqa: ARG001
            outcome = sample(self, value, system())
            draws.append(RecordedDraw(self, _copied(value), _copied(outcome)))
            return outcome

        return draw

    with _replaced(record):
        yield draws


@contextmanager
def repeat_draws(first: Sequence[RecordedDraw], *, units: int = 1) -> Iterator[RunComparison]:
    """Return the outcomes of the first run, and compare the exact values of both runs."""
    comparison = RunComparison()

    def repeat(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:  # noqa: ARG001
            number, comparison.draws = comparison.draws, comparison.draws + 1
            if number >= len(first):
                comparison.problems.append("It draws more often than on the neighboring dataset.")
                return sample(self, value, system())
            before = first[number]
            if before.mechanism != self:
                comparison.problems.append(f"Draw {number + 1} uses another mechanism than on the neighboring dataset.")
            elif (problem := _compare(self, before.value, value, units, comparison.cost)) is not None:
                comparison.problems.append(f"Draw {number + 1} ({type(self).__name__}): {problem}")
            return _copied(before.outcome)

        return draw

    with _replaced(repeat):
        yield comparison
    if comparison.draws < len(first):
        comparison.problems.append("It draws less often than on the neighboring dataset.")


def covered_by(cost: PairCost, event: Event, *, units: int = 1) -> bool:
    """Return whether the charged event covers the cost of a pair that differs in this many units."""
    charged = charged_cost(event)
    if not charged.gaussian:
        return cost.pure <= units * charged.pure
    return cost.doubled <= units**2 * charged.doubled


def charged_cost(event: Event) -> PairCost:
    """Add up the losses that an event states, attained at its sensitivity."""
    match event:
        case events.Composed(parts):
            total = PairCost()
            for part, count in parts:
                one = charged_cost(part)
                total.pure += count * one.pure
                total.doubled += count * one.doubled
                total.gaussian |= one.gaussian
            return total
        case events.LaplaceEvent(sensitivity, scale):
            return _pure(sensitivity / scale)
        case events.GaussianEvent(sensitivity_squared, variance):
            return PairCost(doubled=sensitivity_squared / variance, gaussian=True)
        case events.SelectionEvent(_, sensitivity, monotone, rate):
            return _pure(rate * sensitivity * (1 if monotone else 2))
    return _charged_alone(event)


def _charged_alone(event: Event) -> PairCost:
    """Give the loss of an event that belongs to one kind of analysis only."""
    match event:
        case events.SmoothEvent(power, slide, dilation):
            return _pure(max((power + 1) * slide + dilation, power * dilation))
        case events.BinomialEvent(_, _, epsilon):
            return _pure(epsilon)
        case events.MetricEvent(sensitivity, rate, constant):
            return _pure(rate * sensitivity * (1 if constant else 2))
        case events.SparseVectorEvent(sensitivity, monotone, threshold_scale, query_scale, hits):
            above = hits * sensitivity * (1 if monotone else 2)
            return _pure(sensitivity / threshold_scale + above / query_scale)
        case events.ProposalEvent(test, answer, _):
            return _pure(test.sensitivity / test.scale + answer.sensitivity / answer.scale)
    return PairCost()


def _pure(loss: Fraction) -> PairCost:
    return PairCost(loss, loss * loss)


def _compare(mechanism: WatchedMechanism, one: Any, two: Any, units: int, cost: PairCost) -> str | None:
    if isinstance(mechanism, SmoothNoise | ProposeTestRelease):
        return _compare_local(mechanism, one, two, units, cost)
    a, b = np.asarray(one), np.asarray(two)
    if a.shape != b.shape:
        return "its exact value has another shape than on the neighboring dataset."
    changes = [int(x) - int(y) for x, y in zip(a[a != b].tolist(), b[a != b].tolist(), strict=True)]
    match mechanism:
        case Laplace():
            distance, limit = sum(map(abs, changes)), units * mechanism.sensitivity
            loss = _pure(distance / mechanism.scale)
        case Gaussian():
            distance, limit = sum(change * change for change in changes), units**2 * mechanism.sensitivity_squared
            loss = PairCost(doubled=distance / mechanism.variance, gaussian=True)
        case Binomial():
            distance, limit = sum(map(abs, changes)), units * mechanism.sensitivity
            # at least the loss of whole steps of its sensitivity; δ is not compared
            loss = _pure(mechanism.epsilon * -(-distance // mechanism.sensitivity))
        case EuclideanNoise():
            squares = sum(change * change for change in changes)
            distance, limit = (isqrt(squares - 1) + 1 if squares else 0), units * mechanism.sensitivity
            loss = _pure(mechanism.rate * distance)
        case _:
            distance, limit = max(map(abs, changes), default=0), units * mechanism.sensitivity
            if mechanism.monotone and units == 1 and changes and min(changes) < 0 < max(changes):
                return "monotone scores change in both directions."
            loss = _pure(mechanism.rate * distance * (1 if mechanism.monotone else 2))
    cost.pure += loss.pure
    cost.doubled += loss.doubled
    cost.gaussian |= loss.gaussian
    return None if distance <= limit else f"its value changed by {distance}; its noise covers {limit}."


def _compare_local(mechanism: LocalMechanism, one: Any, two: Any, units: int, cost: PairCost) -> str | None:
    """Compare values whose noise follows the data: their loss is bounded by the proof of the mechanism."""
    loss = mechanism.pair_loss(one, two)
    if loss is None:
        # between more than one unit, a move beyond the proposed bound is covered by δ at each step
        return "its value changed by more than was proposed, and was tested." if units == 1 else None
    cost.pure += loss
    cost.doubled += loss * loss
    whole = charged_cost(mechanism.event).pure
    return None if loss <= units * whole else f"its loss is {float(loss):.3g}; its noise covers {float(whole):.3g}."


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


@contextmanager
def _replaced(wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    originals = {kind: kind.sample for kind in WATCHED}
    many = {kind: kind.sample_each for kind in _MANY}
    inside = False

    def own(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:
            nonlocal inside
            before, inside = inside, True
            try:
                return sample(self, value, source)
            finally:
                inside = before

        return draw

    def one_by_one(sample_each: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:
            if inside:
                return sample_each(self, value, source)
            return np.array([self.sample(row, source) for row in value], dtype=np.int64)

        return draw

    try:
        for kind, sample in originals.items():
            kind.sample = wrap(own(sample))
        for kind, sample in many.items():
            kind.sample_each = one_by_one(sample)
        yield
    finally:
        for kind, sample in originals.items():
            kind.sample = sample
        for kind, sample in many.items():
            kind.sample_each = sample
