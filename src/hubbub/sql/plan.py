"""From a bound query and an ε to everything that will happen: the engine's SQL, the noise, the event, the errors.

Pure: no data, no randomness. The plan is what is shown before it is paid, what is charged, and what is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.schema import Table
from hubbub.core.unit import Hash, Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.top_k import TopK
from hubbub.sql import bounding, fanout, topk
from hubbub.sql import partition_selection as discover
from hubbub.sql import row_cost as work
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Formula
from hubbub.sql.allocation import LEVEL, Allotted, Task, allot, expected, reach
from hubbub.sql.bounding import Limits, Words
from hubbub.sql.candidates import Candidates
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.explain import derivation
from hubbub.sql.keys import Cells, Groups, cells
from hubbub.sql.measures import Additive, Distinct, Measure
from hubbub.sql.noise import Chosen, Noise, Noised
from hubbub.sql.query import Query
from hubbub.sql.relations import Rel
from hubbub.sql.split import concentrated


@dataclass(frozen=True, slots=True)
class Statement:
    """One text for the engine: what it fills (measures, by place, or one histogram), in which grouping set."""

    name: str
    sql: str
    place: int
    fills: Literal["measures", "histogram"]
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A priced query, ready to be charged and run."""

    query: Query
    epsilon: Fraction
    delta: Fraction
    noise: Noise
    relation: Relation
    limits: Limits | None
    groups: tuple[Groups, ...]
    statements: tuple[Statement, ...]
    measures: tuple[Noised, ...]
    choices: tuple[Chosen, ...]
    histograms: tuple[Candidates, ...]
    derived: Mapping[int, int]
    formulas: Mapping[str, Formula]
    threshold: PartitionSelection | None  #: where groups are discovered: which are shown
    top: TopK | None  #: where only the keys of the largest counts are asked for
    event: Event
    expected: tuple[Expected, ...]
    derivation: tuple[str, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that it reads."""
        return self.query.tables

    @property
    def cells(self) -> tuple[Cells, ...]:
        """The cells of each grouping set, where they are known in advance."""
        return tuple(each for each in self.groups if isinstance(each, Cells))

    @property
    def size(self) -> int:
        """How many cells are answered, where that is known in advance."""
        return sum(each.size for each in self.cells)

    def place(self, measure: Measure) -> int:
        """Say where a measure stands."""
        return next(i for i, noised in enumerate(self.measures) if noised.measure == measure)


def plan(
    query: Query,
    *,
    epsilon: Fraction,
    delta: Fraction,
    salt: str,
    groups: int | None = None,
    rows: int | None = None,
    weights: Mapping[str, Fraction] | None = None,
    noise: Noise | None = None,
    intervals: bool = True,
    hashing: Hash = "engine",
    dialect: Dialect = DUCKDB,
) -> Plan:
    """Plan a query for an ε, and a δ where one is given (0: none).

    groups, rows   tighten what the owner allows each unit
    weights        how much more exactly one aggregate is wanted than another, by name (default 1)
    noise          insist on Laplace or Gaussian noise; otherwise the one with the smaller error is taken
    intervals      spend half of a quantile's portion on the ends of its interval
    hashing        the engine's fast hash, or the one that keeps the same rows on every engine
    dialect        the words of the engine that will run it; what that cannot answer is refused here
    """
    numbers.epsilon(epsilon)
    if delta:
        numbers.delta(delta)
    relation, limits = _protection(query, groups, rows)
    words = Words(salt, hashing, dialect)
    rows_of = _bounded(query, groups, rows, words)
    if query.top:
        return _top(query, rows_of, epsilon, relation, limits, words)
    if query.keys and discover.needed(query) and delta:
        sets: tuple[Groups, ...] = (discover.groups(query),)
    else:
        sets = cells(query)
    task = Task(query, sets, tuple(reach(each, limits) for each in sets), relation, dict(weights or {}), intervals)
    rho = concentrated(epsilon, delta)
    if noise == "gaussian" and not rho > 0:
        raise ParameterError("HB553", "Gaussian noise needs a δ that leaves it room.", "Give a δ, or raise ε.")
    kinds: list[Noise] = [noise] if noise else ["laplace", "gaussian"] if rho > 0 else ["laplace"]
    found = [allot(task, kind, epsilon if kind == "laplace" else rho) for kind in kinds]
    best = min(found, key=lambda each: each.worst)
    kind = kinds[found.index(best)]
    rule = None
    if task.found:
        units = next(noised for noised in best.measures if noised.measure == discover.UNITS)
        rule = discover.threshold(units, task.reaches[0], relation, delta)
    return Plan(
        query,
        epsilon,
        delta if kind == "gaussian" or rule else Fraction(0),
        kind,
        relation,
        limits,
        sets,
        _statements(rows_of, sets, best, limits, words),
        best.measures,
        best.choices,
        best.histograms,
        best.derived,
        best.formulas,
        rule,
        None,
        _event(best, rule),
        expected(best, kind),
        derivation(rows_of, relation, limits, task.reaches, best.measures, best.choices, rule),
    )


def _top(query: Query, rows: Rel, epsilon: Fraction, relation: Relation, limits: Limits | None, words: Words) -> Plan:
    """Plan a question for the keys of the largest counts."""
    (each,) = cells(query)
    chosen_by = topk.measure(query)
    wide = None if limits is None else Limits(each.size, limits.rows)
    best = topk.selection(query, each, limits, relation, epsilon)
    text = bounding.sums(rows, each, [chosen_by], limits=wide, words=words)
    half = float(best.error(LEVEL))
    return Plan(
        query,
        epsilon,
        Fraction(0),
        "laplace",
        relation,
        wide,
        (each,),
        (Statement("sums0", text, 0, "measures", (0,)),),
        (),
        (),
        (),
        {},
        {},
        None,
        best,
        best.event,
        tuple(Expected(name, half, None, half / TYPICAL_ROWS, "rank") for name, _ in query.select[:1]),
        derivation(rows, relation, wide, (reach(each, wide),), (), (), best),
    )


def _event(allotted: Allotted, rule: PartitionSelection | None) -> Event:
    """Give the facts that are charged for all of a query's noise and selections."""
    parts: list[tuple[Event, int]] = []
    for noised in allotted.measures:
        hides = rule is not None and noised.measure == discover.UNITS
        parts.append((rule.event if rule is not None and hides else noised.mechanism.event, 1))
    for each in allotted.choices:
        parts += each.events
    return Composed(tuple(parts))


def _bounded(query: Query, groups: int | None, rows: int | None, words: Words) -> Rel:
    """Give the query's relation with what one unit and one row can make of it bounded, or refuse it."""
    part = fanout.bounded(query.relation, fanout.Bounds(groups, rows, words.salt, words.hashing))
    rel = work.shortened(part.rel, work.top(query), every=bool(part.joins))
    work.weighed(query, rel, part.joins, words.dialect)
    return rel


def _statements(
    relation: Rel, sets: Sequence[Groups], allotted: Allotted, limits: Limits | None, words: Words
) -> tuple[Statement, ...]:
    made = []
    additive: list[Additive] = []
    places: list[int] = []
    for i, noised in enumerate(allotted.measures):
        if not isinstance(noised.measure, Distinct) and i not in allotted.derived:
            additive.append(noised.measure)
            places.append(i)
    for place, each in enumerate(sets):
        if additive:
            text = bounding.sums(relation, each, additive, limits=limits, words=words)
            made.append(Statement(f"sums{place}", text, place, "measures", tuple(places)))
        for i, noised in enumerate(allotted.measures):
            if isinstance(noised.measure, Distinct):
                text = bounding.distinct(relation, each, noised.measure, limits=limits, words=words)
                made.append(Statement(f"distinct{i}_{place}", text, place, "measures", (i,)))
        for i, candidates in enumerate(allotted.histograms):
            text = bounding.buckets(relation, each, candidates, limits=limits, words=words)
            made.append(Statement(f"buckets{i}_{place}", text, place, "histogram", (i,)))
    return tuple(made)


def _protection(query: Query, groups: int | None, rows: int | None) -> tuple[Relation, Limits | None]:
    """Find the relation and the limits: of several private tables the strictest of each holds."""
    private = [table for table in query.tables if table.unit is not None]
    units = [table.unit for table in private if table.unit is not None]
    if not units:
        raise QueryError("HB554", "this query reads no private table.", "Public tables can be read as they are.")
    replaced = any(table.relation is Relation.REPLACE for table in private)
    relation = Relation.REPLACE if replaced else Relation.ADD_REMOVE
    by_row = [unit.column is None for unit in units]
    if any(by_row):
        if len(private) > 1:
            raise QueryError("HB555", "a table whose unit is the row is asked about alone.", "Leave the others out.")
        return relation, None
    most = Limits(min(unit.groups for unit in units), min(unit.rows for unit in units))
    wanted = Limits(most.groups if groups is None else groups, most.rows if rows is None else rows)
    if not (1 <= wanted.groups <= most.groups and 1 <= wanted.rows <= most.rows):
        raise ParameterError(
            "HB556",
            f"a query may tighten the owner's bounds (groups {most.groups}, rows {most.rows}) and no more.",
            "Choose smaller bounds, or leave them out.",
        )
    return relation, wanted
