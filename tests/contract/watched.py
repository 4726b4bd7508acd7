"""Two neighbors under watch: what each mechanism was built with, beside how far what goes into it has moved.

A subject is anything that can be charged: an analysis, a query, a stream, an owner's function. It is run on the one
dataset with chosen words; on its neighbor every draw gives what it gave there, so that a program that chooses its
next question by its last answer asks both the same questions. At every draw the exact values of the two are compared
in the norm of the mechanism.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
from tests.fixtures.draws import (
    LOCAL,
    NO_LOSS,
    SELECTIONS,
    KeyedCounts,
    TapedDraw,
    charged_loss,
    difference,
    pair_loss,
    tape_draws,
)
from tests.fixtures.seeded_source import SeededSource

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.core.events import Composed, Event, SelectionEvent, ThresholdEvent, WeightedThresholdEvent
from hubbub.core.unit import Relation
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection as Thresholded
from hubbub.mechanisms.smooth import LocalValue
from hubbub.mechanisms.top_k import TopK
from hubbub.mechanisms.weighted_selection import WeightedSelection
from hubbub.noise.source import RandomSource

Row = tuple[Any, ...]
Unit = tuple[Row, ...]
#: Units by their place; None where one is missing.
Data = tuple[Unit | None, ...]
#: A noise of the charged event, by its place there and its kind.
Slot = tuple[int, str]


class Charged(Protocol):
    """Something planned at one price, ready to be run on any data."""

    event: Event
    epsilon: Fraction
    delta: Fraction

    def run(self, data: Data, source: RandomSource) -> None:
        """Run it, drawing from the source."""
        ...


@dataclass(slots=True)
class Looked:
    """What a pair of neighbors shows: for each noise how much of its sensitivity is used, and what is wrong."""

    shares: dict[Slot, Fraction] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def parts(event: Event) -> list[tuple[Event, int]]:
    """Take an event apart: its noises in order, each with how often it is drawn."""
    if not isinstance(event, Composed):
        return [(event.noise, 1) if isinstance(event, ThresholdEvent | WeightedThresholdEvent) else (event, 1)]
    return [(one, times * count) for part, count in event.parts for one, times in parts(part)]


def slots(event: Event) -> dict[Event, Slot]:
    """Number the noises of an event; equal ones share a place."""
    found: dict[Event, Slot] = {}
    for place, (part, _) in enumerate(parts(event)):
        found.setdefault(part, (place, type(part).__name__))
    return found


def affordable(made: Charged) -> list[str]:
    """Compare what is charged with the price that was named."""
    if admits(Budget(made.epsilon, made.delta), ZERO, privacy_cost(made.event)):
        return []
    return [f"the noises cost more than ε = {made.epsilon}, δ = {made.delta}"]


def drawn(
    made: Charged, data: Data, seed: int, given: Sequence[TapedDraw] | None = None, *, silent: bool = False
) -> list[TapedDraw]:
    """Run once, and give every draw; `silent` lets every draw give the exact value, or the best candidate.

    A promise is for every history, so also for that one; in it the data decides what is asked next.
    """
    source = SeededSource(seed)
    with ExitStack() as stack:
        for kind in (Laplace, Gaussian, *SELECTIONS, *LOCAL) if silent else ():
            stack.enter_context(patch.object(kind, "sample", _best if kind in SELECTIONS else _exactly))
        tape = stack.enter_context(tape_draws(source, given))
        made.run(data, source)
    return tape


def _exactly(_: Any, value: Any, __: Any) -> Any:
    if isinstance(value, LocalValue):
        return value.value
    return np.copy(value) if isinstance(value, np.ndarray) else value


def _best(_: Any, value: Any, __: Any) -> int:
    return int(np.argmax(value))


def noise_of(draw: TapedDraw) -> Event:
    """Give the noise of a draw as the event names it."""
    mechanism = draw.mechanism
    if isinstance(mechanism, Thresholded | WeightedSelection):
        return mechanism.noise.event
    return mechanism.one.event if isinstance(mechanism, TopK) else mechanism.event


def look(
    made: Charged, one: Sequence[TapedDraw], two: Sequence[TapedDraw], *, by_cell: bool, parted: bool = False
) -> Looked:
    """Compare the draws of two neighbors with what the mechanisms were built with, and with what is charged.

    by_cell  selections are made in many cells that share no row, and charged as one
    parted   one vector is drawn part by part, so what its parts use adds up
    """
    seen = Looked()
    if len(one) != len(two):
        seen.problems.append(f"{len(one)} draws on the one, {len(two)} on the other")
        return seen
    known, total = slots(made.event), NO_LOSS
    for place, (a, b) in enumerate(zip(one, two, strict=True)):
        noise = noise_of(a)
        if a.mechanism != b.mechanism or noise not in known:
            seen.problems.append(f"draw {place + 1} was not charged, or differs between neighbors")
            continue
        if not isinstance(a.value, KeyedCounts) and np.shape(a.value) != np.shape(b.value):
            seen.problems.append(f"draw {place + 1} has another shape on the neighbor")
            continue
        apart = pair_loss(a, b)
        total += apart
        if not apart.within:
            seen.problems.append(
                f"draw {place + 1} moves further than {a.mechanism} covers: {_brief(difference(a, b))}"
            )
        slot = known[noise]
        before = seen.shares.get(slot, Fraction(0))
        seen.shares[slot] = before + used(a, b) if parted else max(before, used(a, b))
    whole = charged_loss(made.event)
    pure = whole.pure is not None and total.pure is not None
    over = total.pure > whole.pure if pure else total.rho > whole.rho  # type: ignore[operator]
    if over:
        seen.problems.append("all draws together lose more than is charged")
    if not parted:
        seen.problems += _counted(made.event, one, by_cell=by_cell)
    return seen


def used(one: TapedDraw, two: TapedDraw) -> Fraction:
    """Give how much of its sensitivity a draw uses, in the norm of its mechanism: 1 is all of it."""
    mechanism, moved = one.mechanism, [abs(int(each)) for each in difference(one, two)]
    if isinstance(mechanism, Thresholded | WeightedSelection):
        mechanism = mechanism.noise
    if isinstance(mechanism, LOCAL):
        return Fraction(max(moved), max(one.value.bounds[0], two.value.bounds[0], 1))
    if isinstance(mechanism, Laplace):
        return Fraction(sum(moved), mechanism.sensitivity)
    if isinstance(mechanism, Gaussian):
        return Fraction(sum(each * each for each in moved), mechanism.sensitivity_squared)
    rule = mechanism.one if isinstance(mechanism, TopK) else mechanism
    return Fraction(max(moved, default=0), rule.sensitivity)


def _counted(event: Event, draws: Sequence[TapedDraw], *, by_cell: bool) -> list[str]:
    """Compare how often each noise is drawn with how often it is charged; a choice may be made in many cells."""
    wanted: Counter[Event] = Counter()
    for part, count in parts(event):
        wanted[part] += count
    made: Counter[Event] = Counter()
    for draw in draws:
        made[noise_of(draw)] += draw.mechanism.k if isinstance(draw.mechanism, TopK) else 1
    odd = [each for each in wanted | made if wanted[each] != made[each]]
    return [
        f"{each} is drawn {made[each]} times and charged {wanted[each]} times"
        for each in odd
        if not (by_cell and isinstance(each, SelectionEvent) and made[each])
    ]


def _brief(moved: Any) -> str:
    return str([int(each) for each in moved if each][:12])


def neighbors(base: Data, unit: Unit, other: Unit, relation: Relation) -> tuple[Data, Data]:
    """Give two datasets: with a unit and without it, or with another in its place."""
    return (*base, unit), (*base, other if relation is Relation.REPLACE else None)
