"""Plan a bound query for an ε: the SQL for the engine, the noise, the privacy event, and the expected errors.

Planning reads no data and uses no randomness. The same plan is shown before the charge, charged, and run.
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
from hubbub.errors import QueryError
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.top_k import TopK
from hubbub.sql import bounding, fanout, partition_selection, row_cost, topk
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Formula
from hubbub.sql.allocation import LEVEL, Allocation, Workload, allocate, expected_errors, unit_contribution
from hubbub.sql.bounding import ContributionBounds, RenderOptions
from hubbub.sql.candidates import Candidates
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.explain import derivation
from hubbub.sql.keys import Cells, Groups, cells
from hubbub.sql.measures import Additive, DistinctCount, Measure
from hubbub.sql.noise import CellSelections, Noise, NoisyMeasure
from hubbub.sql.noise_budget import noise_budgets
from hubbub.sql.query import Query
from hubbub.sql.relations import Rel


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement for one grouping set, and the measures (by position) or the histogram that it fills."""

    name: str
    sql: str
    place: int
    fills: Literal["measures", "histogram"]
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A planned query, ready to be charged and run."""

    query: Query
    epsilon: Fraction
    delta: Fraction
    noise: Noise
    relation: Relation
    limits: ContributionBounds | None
    groups: tuple[Groups, ...]
    statements: tuple[Statement, ...]
    measures: tuple[NoisyMeasure, ...]
    choices: tuple[CellSelections, ...]
    histograms: tuple[Candidates, ...]
    derived: Mapping[int, int]
    formulas: Mapping[str, Formula]
    threshold: PartitionSelection | None  #: decides which groups are shown, if groups are selected privately
    top: TopK | None  #: selects the keys, if the query returns only the keys of the largest counts
    event: Event
    expected: tuple[Expected, ...]
    derivation: tuple[str, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that the query reads."""
        return self.query.tables

    @property
    def cells(self) -> tuple[Cells, ...]:
        """The cells of each grouping set, if they are known in advance."""
        return tuple(each for each in self.groups if isinstance(each, Cells))

    @property
    def size(self) -> int:
        """The number of cells in the result, if it is known in advance."""
        return sum(each.size for each in self.cells)

    def place(self, measure: Measure) -> int:
        """Return the position of a measure."""
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
    """Plan a query for ε and δ (0: pure DP).

    groups, rows   contribution bounds, if tighter than the owner's
    weights        relative accuracy of each aggregate, by name (default 1)
    noise          Laplace or Gaussian noise; by default the one with the smaller error
    intervals      whether to spend half of a quantile's budget on the ends of its interval
    hashing        the engine's own (fast) hash, or a portable one that keeps the same rows on every engine
    dialect        the SQL dialect of the engine; raises an error for functions that the engine cannot compute safely
    """
    numbers.epsilon(epsilon)
    if delta:
        numbers.delta(delta)
    relation, limits = _privacy_terms(query, groups, rows)
    options = RenderOptions(salt, hashing, dialect)
    bounded_rows = _bound_work(query, groups, rows, options)
    if query.top:
        return _top(query, bounded_rows, epsilon, relation, limits, options)
    if query.keys and partition_selection.needed(query) and delta:
        sets: tuple[Groups, ...] = (partition_selection.groups(query),)
    else:
        sets = cells(query)
    workload = Workload(
        query, sets, tuple(unit_contribution(each, limits) for each in sets), relation, dict(weights or {}), intervals
    )
    budgets = noise_budgets(epsilon, delta, noise)
    allocations = [allocate(workload, budget.noise, budget.amount) for budget in budgets]
    best = min(allocations, key=lambda allocation: allocation.worst)
    kind = budgets[allocations.index(best)].noise
    rule = None
    if workload.selects_groups:
        units = next(noised for noised in best.measures if noised.measure == partition_selection.UNITS)
        rule = partition_selection.threshold(units, workload.contributions[0], relation, delta)
    return Plan(
        query,
        epsilon,
        delta if kind == "gaussian" or rule else Fraction(0),
        kind,
        relation,
        limits,
        sets,
        _statements(bounded_rows, sets, best, limits, options),
        best.measures,
        best.choices,
        best.histograms,
        best.derived,
        best.formulas,
        rule,
        None,
        _event(best, rule),
        expected_errors(best, kind),
        derivation(bounded_rows, relation, limits, workload.contributions, best.measures, best.choices, rule),
    )


def _top(
    query: Query,
    rows: Rel,
    epsilon: Fraction,
    relation: Relation,
    limits: ContributionBounds | None,
    options: RenderOptions,
) -> Plan:
    """Plan a query for the keys of the largest counts."""
    (each,) = cells(query)
    chosen_by = topk.measure(query)
    wide = None if limits is None else ContributionBounds(each.size, limits.rows)
    best = topk.selection(query, each, limits, relation, epsilon)
    text = bounding.sums(rows, each, [chosen_by], limits=wide, options=options)
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
        derivation(rows, relation, wide, (unit_contribution(each, wide),), (), (), best),
    )


def _event(allocation: Allocation, rule: PartitionSelection | None) -> Event:
    """Return the event to charge for all noise and selections of a query."""
    parts: list[tuple[Event, int]] = []
    for noised in allocation.measures:
        hides = rule is not None and noised.measure == partition_selection.UNITS
        parts.append((rule.event if rule is not None and hides else noised.mechanism.event, 1))
    for each in allocation.choices:
        parts += each.events
    return Composed(tuple(parts))


def _bound_work(query: Query, groups: int | None, rows: int | None, options: RenderOptions) -> Rel:
    """Return the relation of a query, truncated so that one unit and one row cost a bounded amount of work."""
    part = fanout.bound_joins(query.relation, fanout.TruncationBounds(groups, rows, options.salt, options.hashing))
    rel = row_cost.truncate_texts(part.rel, row_cost.output_expressions(query), every=bool(part.joins))
    row_cost.check_row_cost(query, rel, part.joins, options.dialect)
    return rel


def _statements(
    relation: Rel,
    sets: Sequence[Groups],
    allocation: Allocation,
    limits: ContributionBounds | None,
    options: RenderOptions,
) -> tuple[Statement, ...]:
    statements = []
    additive: list[Additive] = []
    places: list[int] = []
    for i, noised in enumerate(allocation.measures):
        if not isinstance(noised.measure, DistinctCount) and i not in allocation.derived:
            additive.append(noised.measure)
            places.append(i)
    for place, each in enumerate(sets):
        if additive:
            text = bounding.sums(relation, each, additive, limits=limits, options=options)
            statements.append(Statement(f"sums{place}", text, place, "measures", tuple(places)))
        for i, noised in enumerate(allocation.measures):
            if isinstance(noised.measure, DistinctCount):
                text = bounding.distinct(relation, each, noised.measure, limits=limits, options=options)
                statements.append(Statement(f"distinct{i}_{place}", text, place, "measures", (i,)))
        for i, candidates in enumerate(allocation.histograms):
            text = bounding.buckets(relation, each, candidates, limits=limits, options=options)
            statements.append(Statement(f"buckets{i}_{place}", text, place, "histogram", (i,)))
    return tuple(statements)


def _privacy_terms(query: Query, groups: int | None, rows: int | None) -> tuple[Relation, ContributionBounds | None]:
    """Return the neighboring relation and the contribution bounds: the strictest among the private tables."""
    private = [table for table in query.tables if table.unit is not None]
    units = [table.unit for table in private if table.unit is not None]
    if not units:
        raise QueryError("HB554", "The query reads no private table.", "Read public tables directly, without hubbub.")
    replaced = any(table.relation is Relation.REPLACE for table in private)
    relation = Relation.REPLACE if replaced else Relation.ADD_REMOVE
    by_row = [unit.column is None for unit in units]
    if any(by_row):
        if len(private) > 1:
            raise QueryError(
                "HB555",
                "A table with row-level privacy cannot be queried together with another private table.",
                "Query it on its own.",
            )
        return relation, None
    most = ContributionBounds(min(unit.groups for unit in units), min(unit.rows for unit in units))
    return relation, most.tightened(groups, rows)
