"""The search for the worst neighbors: climb, one small change after the other, towards all that a noise covers.

Each noise of a call is climbed for by itself, from hand-made beginnings (a unit with all its rows in one place, or
spread out, in an empty table and among others) and from random ones; prices and words are varied with the data, as
what a program asks next depends on both.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

from tests.contract.watched import Charged, Row, Slot, Unit, affordable, drawn, look, neighbors

from hubbub.core.unit import Relation


@dataclass(frozen=True, slots=True)
class State:
    """Two neighbors, and the history: the words that are drawn with, or no noise at all."""

    base: tuple[Unit, ...]
    unit: Unit
    other: Unit
    seed: int
    silent: bool


#: What a column of a row mostly holds, its ends first and last; and what it holds now and then.
Pool = tuple[tuple[Any, ...], tuple[Any, ...]]
#: Other units, one unit, and the one in its place.
Begin = tuple[tuple[Unit, ...], Unit, Unit]
MAX_UNITS = 6


class Make(Protocol):
    """Plans a subject at the price of a run with or without noise."""

    def __call__(self, *, silent: bool) -> Charged:
        """Plan it."""
        ...


@dataclass(frozen=True)
class Subject:
    """What is tried: how it is planned at each price, and the small universe of its rows.

    columns   what each column of a row holds mostly, and what it holds now and then
    rows      how many rows a unit has at most in this universe
    make      plans it, at a price at which noise decides what is asked next, or at one for a run without noise
    begin     where to begin: other units, one unit, and the one in its place
    by_cell, parted   see `watched.look`
    """

    name: str
    relation: Relation
    columns: tuple[Pool, ...]
    rows: int
    make: Make
    by_cell: bool = False
    begin: tuple[Begin, ...] = ()
    parted: bool = False


@dataclass(slots=True)
class Climbed:
    """What was reached: the largest share of each noise, and with which neighbors."""

    best: dict[Slot, tuple[Fraction, State]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    pairs: int = 0

    def short(self, targets: Mapping[int, Fraction]) -> list[Slot]:
        """Give the noises that were not yet used as far as they can be."""
        return [slot for slot, (share, _) in self.best.items() if share < targets.get(slot[0], Fraction(1))]


def climb(subject: Subject, targets: Mapping[int, Fraction], *, steps: int, extra: int, seed: int = 0) -> Climbed:
    """Climb until every noise is used as far as it can be and `extra` more pairs were tried, `steps` pairs at most.

    targets  how far each noise can be used, by its place in the event; 1 where nothing is said
    """
    chance, found = random.Random(f"{seed} {subject.name}"), Climbed()
    made = {silent: subject.make(silent=silent) for silent in (False, True)}
    found.problems += [each for one in made.values() for each in affordable(one)]
    queue = list(_beginnings(subject, chance))
    beginnings = queue[:]
    while not found.problems and found.pairs < steps and (extra > 0 or found.short(targets)):
        if queue:
            state = queue.pop(0)
        else:
            extra -= 1
            state = _next(subject, found, targets, chance, beginnings)
        _try(subject, made[state.silent], state, found)
    return found


def _try(subject: Subject, made: Charged, state: State, found: Climbed) -> None:
    found.pairs += 1
    one, two = neighbors(state.base, state.unit, state.other, subject.relation)
    if state.seed % 2:  # the draws of either side lead the way
        one, two = two, one
    first = drawn(made, one, state.seed, silent=state.silent)
    second = drawn(made, two, state.seed, first, silent=state.silent)
    seen = look(made, first, second, by_cell=subject.by_cell, parted=subject.parted)
    found.problems += [f"{subject.name}: {each} on {one} and {two}" for each in seen.problems]
    for slot, share in seen.shares.items():
        if slot not in found.best or share >= found.best[slot][0]:
            found.best[slot] = share, state


def _next(
    subject: Subject, found: Climbed, targets: Mapping[int, Fraction], chance: random.Random, beginnings: list[State]
) -> State:
    short = found.short(targets) or list(found.best)
    if not short or chance.random() < 0.15:
        return _changed(subject, chance.choice(beginnings), chance)
    state = found.best[chance.choice(short)][1]
    for _ in range(chance.choice((1, 1, 2, 3))):
        state = _changed(subject, state, chance)
    return state


def _beginnings(subject: Subject, chance: random.Random) -> Iterator[State]:
    for base, unit, other in subject.begin:
        yield State(base, unit, other, 0, silent=True)
        yield State(base, unit, other, 1, silent=False)
    few = tuple(_unit(subject, chance) for _ in range(3))
    for number in range(3):
        unit, other = _alike(subject, chance), _alike(subject, chance)
        yield State(few if number % 2 else (), unit, other, chance.randrange(1000), silent=number < 2)
    yield State((), (), _alike(subject, chance), 0, silent=False)  # a unit without rows, in an empty table


def _alike(subject: Subject, chance: random.Random) -> Unit:
    """Put all rows of a unit into one place, or into two."""
    one, two = _row(subject, chance), _row(subject, chance)
    return (*(one,) * (subject.rows - subject.rows // 2), *(two,) * (subject.rows // 2))


def _unit(subject: Subject, chance: random.Random) -> Unit:
    return tuple(_row(subject, chance) for _ in range(chance.randint(1, subject.rows)))


def _row(subject: Subject, chance: random.Random) -> Row:
    return tuple(_value(pool, chance) for pool in subject.columns)


def _value(pool: Pool, chance: random.Random) -> Any:
    usual, odd = pool
    return chance.choice(odd if odd and chance.random() < 0.12 else usual)


def _changed(subject: Subject, state: State, chance: random.Random) -> State:
    """Make one small change."""
    kind = chance.random()
    if kind < 0.3:
        return replace(state, unit=_other(subject, state.unit, chance))
    if kind < 0.55:
        return replace(state, other=_other(subject, state.other, chance))
    if kind < 0.65:
        return replace(state, unit=state.other, other=state.unit)
    if kind < 0.75:
        return replace(state, seed=chance.randrange(1 << 20), silent=chance.random() < 0.5)
    return replace(state, base=_others(subject, state, chance))


def _others(subject: Subject, state: State, chance: random.Random) -> tuple[Unit, ...]:
    base = list(state.base)
    kind = chance.random()
    if base and kind < 0.3:
        base.pop(chance.randrange(len(base)))
    elif base and kind < 0.6:
        place = chance.randrange(len(base))
        base[place] = _other(subject, base[place], chance)
    elif len(base) < MAX_UNITS:
        base.append(chance.choice((state.unit, state.other, _unit(subject, chance))))
    return tuple(base)


def _other(subject: Subject, unit: Unit, chance: random.Random) -> Unit:
    """Change one value, repeat a row everywhere, add one or take one away."""
    rows = list(unit)
    kind = chance.random()
    if not rows or (kind < 0.2 and len(rows) < subject.rows):
        rows.append(_row(subject, chance) if not rows or kind < 0.1 else chance.choice(rows))
    elif kind < 0.3 and subject.rows > 1:
        rows.pop(chance.randrange(len(rows)))
    elif kind < 0.45:
        rows = [chance.choice(rows)] * subject.rows
    else:
        place, column = chance.randrange(len(rows)), chance.randrange(len(subject.columns))
        values = list(rows[place])
        values[column] = _value(subject.columns[column], chance)
        rows[place] = tuple(values)
    return tuple(rows)
