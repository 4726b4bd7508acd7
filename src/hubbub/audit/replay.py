"""Replay a plan on made-up neighbors: what leaves the engine moves no further than the noise was made for.

The plan is the very one that would be charged, written in DuckDB's words whatever engine the data is in.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hubbub.analyses.registry import Called
from hubbub.audit.grey_box import Tape, recorded, repeated, within
from hubbub.audit.sensitivity import check_sensitivity
from hubbub.audit.simulated_rows import EXTREME, MadeUp
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.sql.finish import Tables
from hubbub.sql.plan import Plan

_UNITS = (0, 1, 3, 8, 20)


@dataclass(slots=True)
class Replayed:
    """How many pairs of neighbors were compared, by relation, and where the plan does not cover them."""

    pairs: dict[Relation, int] = field(default_factory=lambda: dict.fromkeys(Relation, 0))
    orders: int = 0
    problems: list[str] = field(default_factory=list)

    def say(self) -> str:
        """Say it in a line."""
        added, replaced = self.pairs[Relation.ADD_REMOVE], self.pairs[Relation.REPLACE]
        return f"{added} pairs with a unit more or less, {replaced} with one replaced, {self.orders} orders of rows"


def replay(
    planned: Plan | Called,
    tables: Mapping[str, Table],
    *,
    worlds: int,
    chance: random.Random,
    until: float | None = None,
) -> Replayed:
    """Compare made-up neighbors before noise, in several made-up worlds, until a time if one is given.

    Both relations are tried. One unit replaced is one removed and one added, so under add/remove it may move twice as
    far; under replace a unit more or less moves a query's sums no further than one replaced.
    """
    found = Replayed()
    own = [tables[each.name] for each in planned.tables]
    if planned.relation is not _declared(own):
        found.problems.append("the plan is for another relation between neighbors than was declared")
    for number in range(worlds):
        if found.problems or (until is not None and time.monotonic() > until):
            break
        with MadeUp(own, units=_UNITS[-1 - number % len(_UNITS)], chance=chance) as made:
            look = _query if isinstance(planned, Plan) else _analysis
            found.problems += _first(look(planned, made, found, chance))  # type: ignore[arg-type]
    return found


def _declared(tables: Iterable[Table]) -> Relation:
    """Give the relation of several tables: the strictest."""
    replaced = any(table.relation is Relation.REPLACE for table in tables if table.unit is not None)
    return Relation.REPLACE if replaced else Relation.ADD_REMOVE


def _first(problems: Iterator[str]) -> list[str]:
    """One is enough: the rest would say the same."""
    for problem in problems:
        return [problem]
    return []


def _query(planned: Plan, made: MadeUp, found: Replayed, chance: random.Random) -> Iterator[str]:
    def seen() -> Tables:
        return {each.name: made.ask(each.sql).through(dict) for each in planned.statements}

    whole = seen()
    made.shuffle(chance)
    found.orders += 1
    if check_sensitivity(planned, whole, seen(), nothing=True):
        yield "the order of rows changes what is counted"
    for unit in _some(made, chance):
        for relation, show in _neighbors(made, unit):
            show()
            found.pairs[relation] += 1
            twice = planned.relation is Relation.ADD_REMOVE and relation is Relation.REPLACE
            yield from check_sensitivity(planned, whole, seen(), units=2 if twice else 1)
        made.show()


def _analysis(planned: Called, made: MadeUp, found: Replayed, chance: random.Random) -> Iterator[str]:
    tape = Tape()

    def run() -> None:
        tape.rewind()
        planned.run(made.ask, tape, lambda _, __: None)

    with recorded() as first:
        run()
    for unit in _some(made, chance)[:2]:
        for relation, show in _neighbors(made, unit):
            # under replace the number of units may be public: then a unit more or less is no neighbor
            if planned.relation is Relation.REPLACE and relation is not Relation.REPLACE:
                continue
            show()
            found.pairs[relation] += 1
            units = 2 if planned.relation is not relation else 1
            with repeated(first, units=units) as beside:
                run()
            yield from beside.problems
            if not within(beside.cost, planned.event, units=units):
                yield "all draws together cost more for this pair than was charged"
        made.show()


def _some(made: MadeUp, chance: random.Random) -> list[int]:
    """Choose who is missing: two of the extreme ones, and one of all."""
    extreme = chance.sample(range(min(EXTREME, made.units)), min(2, made.units))
    return list(dict.fromkeys([*extreme, *chance.sample(range(made.units), min(1, made.units))]))


def _neighbors(made: MadeUp, unit: int) -> Iterator[tuple[Relation, Callable[[], None]]]:
    yield Relation.ADD_REMOVE, lambda: made.show(gone=[unit])
    yield Relation.REPLACE, lambda: made.show(swapped=[unit])
