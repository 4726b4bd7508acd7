"""Replay a plan on simulated neighboring data, and check that exact results change by at most the sensitivity.

The plan is the one that would be charged, rendered for DuckDB whatever engine holds the data.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from hubbub.analyses.base import EngineRun, PreparedAnalysis
from hubbub.audit.grey_box import PairCost, Tape, charged_cost, covered_by, record_draws, repeat_draws
from hubbub.audit.sensitivity import at_random_bounds, check_sensitivity, queries
from hubbub.audit.simulated_rows import EXTREME, SimulatedData
from hubbub.core.events import Composed, Event
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.sql.finish import Tables
from hubbub.sql.plan import Plan

_UNITS = (0, 1, 3, 8, 20)


@dataclass(slots=True)
class ReplayResult:
    """The number of pairs of neighbors that were compared, by relation, and the problems."""

    pairs: dict[Relation, int] = field(default_factory=lambda: dict.fromkeys(Relation, 0))
    orders: int = 0
    problems: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Summarize the result in one line."""
        added, replaced = self.pairs[Relation.ADD_REMOVE], self.pairs[Relation.REPLACE]
        return f"{added} pairs with one unit added or removed, {replaced} with one replaced, {self.orders} row orders"


def replay(
    planned: PreparedAnalysis,
    tables: Mapping[str, Table],
    *,
    worlds: int,
    chance: random.Random,
    until: float | None = None,
) -> ReplayResult:
    """Compare exact results on simulated neighbors, for several simulated datasets, until a deadline if one is given.

    Both relations are tried. Replacing a unit is removing one and adding another, so under add/remove results may
    change twice as much; under replace, adding or removing a unit changes sums no more than replacing one.
    """
    result = ReplayResult()
    used = [tables[table.name] for table in planned.tables]
    if planned.relation is not _declared_relation(used):
        result.problems.append("The plan assumes another neighboring relation than the declared one.")
    for number in range(worlds):
        if result.problems or (until is not None and time.monotonic() > until):
            break
        with SimulatedData(used, units=_UNITS[-1 - number % len(_UNITS)], chance=chance) as data:
            problems: Iterator[str] = chain.from_iterable(_query(plan, data, result, chance) for plan in planned.plans)
            if not planned.plans:
                problems = _analysis(planned, data, result, chance)
            result.problems += list(islice(problems, 1))  # the rest would say the same
    return result


def _declared_relation(tables: Iterable[Table]) -> Relation:
    """Return the strictest relation of several tables."""
    replaced = any(table.relation is Relation.REPLACE for table in tables if table.unit is not None)
    return Relation.REPLACE if replaced else Relation.ADD_REMOVE


def _query(planned: Plan, data: SimulatedData, result: ReplayResult, chance: random.Random) -> Iterator[str]:
    plan = at_random_bounds(planned, chance)
    if not covered_by(_cost(plan), planned.event):
        yield "At bounds that the query could find, its draws cost more than was charged."

    def results() -> Tables:
        return {name: data.ask(sql).through(dict) for name, sql in queries(plan).items()}

    before = results()
    data.shuffle(chance)
    result.orders += 1
    if check_sensitivity(plan, before, results(), nothing=True):
        yield "The row order changes the exact results."
    for unit in _sample_units(data, chance):
        for relation, show in _neighbors(data, unit):
            show()
            result.pairs[relation] += 1
            twice = plan.relation is Relation.ADD_REMOVE and relation is Relation.REPLACE
            yield from check_sensitivity(plan, before, results(), units=2 if twice else 1)
        data.show()


def _cost(plan: Plan) -> PairCost:
    """Add up the losses of all draws of a plan at its bounds, without that of the measure that selects groups."""
    events: list[tuple[Event, int]] = [(each.mechanism.event, 1) for each in plan.levels]
    noisy = [each.event for place, each in enumerate(plan.measures) if place != plan.keys]
    events += [(event, 1) for event in noisy if event is not None]
    return charged_cost(Composed((*events, *(pair for each in plan.choices for pair in each.events))))


def _analysis(
    planned: PreparedAnalysis, data: SimulatedData, result: ReplayResult, chance: random.Random
) -> Iterator[str]:
    tape = Tape()

    def run() -> None:
        tape.rewind()
        planned.run(EngineRun(data.ask, tape, lambda _, __: None))

    with record_draws() as first:
        run()
    for unit in _sample_units(data, chance)[:2]:
        for relation, show in _neighbors(data, unit):
            # under replace the number of units may be public: adding or removing one then gives no neighbor
            if planned.relation is Relation.REPLACE and relation is not Relation.REPLACE:
                continue
            show()
            result.pairs[relation] += 1
            units = 2 if planned.relation is not relation else 1
            with repeat_draws(first, units=units) as comparison:
                run()
            yield from comparison.problems
            if not covered_by(comparison.cost, planned.event, units=units):
                yield "All draws together cost more for this pair than was charged."
        data.show()


def _sample_units(data: SimulatedData, chance: random.Random) -> list[int]:
    """Choose two of the extreme units and one of all units."""
    extreme = chance.sample(range(min(EXTREME, data.units)), min(2, data.units))
    return list(dict.fromkeys([*extreme, *chance.sample(range(data.units), min(1, data.units))]))


def _neighbors(data: SimulatedData, unit: int) -> Iterator[tuple[Relation, Callable[[], None]]]:
    for entity in data.entities:
        yield Relation.ADD_REMOVE, partial(data.show, removed=[unit], entity=entity)
        yield Relation.REPLACE, partial(data.show, replaced=[unit], entity=entity)
