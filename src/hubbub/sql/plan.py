"""Plan a bound query for an ε: the SQL for the engine, the noise, the privacy event, and the expected errors.

Planning reads no data and uses no randomness. The same plan is shown before the charge, charged, and run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.schema import Table
from hubbub.core.unit import Hash, Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.top_k import TopK
from hubbub.sql import bounding, fanout, partition_selection, row_cost, several_owners, topk, unit_parts
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Formula
from hubbub.sql.aggregates.missing_rows import allowing_for
from hubbub.sql.allocation import (
    LEVEL,
    Allocation,
    Workload,
    allocate,
    expected_errors,
    selection_rule,
    unit_contribution,
)
from hubbub.sql.auto_allocation import add_histograms, adds_at_one, at_bounds
from hubbub.sql.auto_bounds import ChosenBound, LevelHistogram
from hubbub.sql.bounding import ContributionBounds, RenderOptions
from hubbub.sql.candidates import Candidates
from hubbub.sql.check_columns import check_columns
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expected import joint_level, output_errors
from hubbub.sql.explain import derivation
from hubbub.sql.expressions import Expr
from hubbub.sql.group_choice import choose_groups
from hubbub.sql.joint_keys import joint_cells
from hubbub.sql.keys import Cells, DiscoveredCells, Groups
from hubbub.sql.measures import Additive, Measure
from hubbub.sql.noise import CellSelections, Noise, NoisyMeasure
from hubbub.sql.noise_budget import noise_budgets
from hubbub.sql.owner_levels import OwnerLevels
from hubbub.sql.public_rows import rows_are_public
from hubbub.sql.query import Query
from hubbub.sql.relations import Rel, Truncate
from hubbub.sql.statements import Statement, in_parts, statements, statements_at
from hubbub.sql.unit_parts import Work


@dataclass(frozen=True)
class PlanInputs:
    """What the statements of a plan are written from, where its bounds are found when it runs."""

    relation: Rel
    workload: Workload
    options: RenderOptions


@dataclass(frozen=True, kw_only=True)
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
    formulas: Mapping[str, Formula]
    threshold: partition_selection.Rule | None  #: decides which groups are shown, if groups are selected privately
    keys: int | None  #: the position of the measure by which groups are selected, if they are
    top: TopK | None  #: selects the keys, if the query returns only the keys of the largest counts
    event: Event
    expected: tuple[Expected, ...]
    derivation: tuple[str, ...]
    levels: tuple[
        LevelHistogram | OwnerLevels, ...
    ] = ()  #: from which bounds are chosen first; `settle` then gives the statements
    adds: tuple[tuple[int, int], ...] = ()  #: what a unit adds to each measure at the bound 1, least and most
    left_out: Mapping[int, ChosenBound] = field(default_factory=dict)  #: by measure, once bounds were chosen
    clipped: Mapping[Expr, float] = field(default_factory=dict)  #: what bounds of values that were found may cut off
    inputs: "PlanInputs | None" = None  #: what `settle` needs
    outputs: tuple[Expected, ...] = ()  #: the expected errors of the output columns
    owners: tuple[OwnerLevels, ...] = ()  #: by measure, where rows have two owners
    work: Work | None = None  #: what its statements take, where the number of rows is declared

    @property
    def sql(self) -> dict[str, str]:
        """The SQL of its levels and statements, by name."""
        return {each.name: each.sql for each in self.levels} | {each.name: each.sql for each in self.statements}

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
    memory: int | None = None,
    groups: int | None = None,
    rows: int | None = None,
    weights: Mapping[str, Fraction] | None = None,
    noise: Noise | None = None,
    intervals: bool = True,
    hashing: Hash = "engine",
    dialect: Dialect = DUCKDB,
    joint: bool = False,
    sketch: bool = False,
) -> Plan:
    """Plan a query for ε and δ (0: pure DP).

    memory         MB that a statement may take; one that takes more by the declared number of rows runs in parts
    groups, rows   contribution bounds, if tighter than the owner's
    weights        relative accuracy of each aggregate, by name (default 1)
    noise          Laplace or Gaussian noise; by default the one with the smaller error
    intervals      whether quantiles are selected together with an interval
    hashing        the engine's own (fast) hash, or a portable one that keeps the same rows on every engine
    dialect        the SQL dialect of the engine; raises an error for functions that the engine cannot compute safely
    joint          whether expected errors are those of intervals that hold for the whole answer at once
    sketch         leave out statements and derivation, to compare errors at several ε; such a plan cannot be run
    """
    numbers.epsilon(epsilon)
    if delta:
        numbers.delta(delta)
    relation, limits = privacy_terms(query, groups, rows)
    options = RenderOptions(salt, hashing, dialect, memory)
    if query.top:
        top = _top(query, bound_work(query, groups, rows, options), epsilon, relation, limits, options)
        return _checked_joint(top) if joint else top
    choice = choose_groups(query, delta)
    query, sets = choice.query, choice.groups
    auto = limits is not None and limits.auto
    if limits is not None and all(each.function == "count_units" for each in query.aggregates):
        limits = replace(limits, total=None)  # a unit counts once in a group, with however many rows
    contributions = tuple(unit_contribution(each, limits) for each in sets)
    # where no grouping set has enough cells, the bound on rows in each is enough
    total = next((each.total for each in contributions if each.total is not None), None)
    limits = limits if limits is None or limits.total == total else replace(limits, total=total)
    finds_bounds = auto or (limits is not None and limits.owners > 1)
    bounded_rows = query.relation if sketch and not finds_bounds else bound_work(query, groups, rows, options, total)
    workload = Workload(
        query,
        sets,
        contributions,
        relation,
        dict(weights or {}),
        intervals,
        limits.rows if limits is not None and auto else 1,
        delta,
        rows_are_public(query),
        limits is not None and limits.owners > 1,
    )
    # bounds that are found when the query runs need pure losses, which do not depend on the bound
    if auto and noise == "gaussian":
        raise ParameterError(
            "HB553",
            "Bounds that a query finds need Laplace noise.",
            "Ask without Gaussian noise, or declare the bounds.",
        )
    budgets = noise_budgets(epsilon, delta, "laplace" if auto else noise)
    allocations = [allocate(workload, budget.noise, budget.amount) for budget in budgets]
    rules = [selection_rule(workload, allocation, delta) for allocation in allocations]
    worst = [max(allocation.worst, error) for allocation, (_, error) in zip(allocations, rules, strict=True)]
    chosen = worst.index(min(worst))
    best, rule, kind = allocations[chosen], rules[chosen][0], budgets[chosen].noise
    levels: tuple[LevelHistogram, ...] | tuple[OwnerLevels, ...] = ()
    owners: tuple[OwnerLevels, ...] = ()
    if limits is not None and limits.owners > 1:
        additive = [each.measure for each in best.measures if isinstance(each.measure, Additive)]
        shared = bounding.shared(bounded_rows, several_owners.check_groups(workload), additive, options=options)
        best, owners = several_owners.add_owner_levels(workload, best, shared)
        levels = owners
    elif auto:
        best, levels = add_histograms(workload, best, bounded_rows, options)
    settled = at_bounds(workload, best, levels, [each.typical for each in levels])
    work = None if sketch else _work(bounded_rows, sets, best, relation, limits, options)
    level = joint_level(query, best.formulas, sum(each.size for each in sets)) if joint else LEVEL
    errors = expected_errors(settled, kind, level)
    planned = Plan(
        query=query,
        epsilon=epsilon,
        delta=delta if kind == "gaussian" or rule else Fraction(0),
        noise=kind,
        relation=relation,
        limits=limits,
        groups=sets,
        statements=() if sketch else _statements(bounded_rows, sets, best, limits, levels, options, work),
        measures=best.measures,
        choices=best.choices,
        histograms=best.histograms,
        formulas=best.formulas,
        threshold=rule,
        keys=best.keys,
        top=None,
        event=_event(best, rule, levels),
        expected=errors,
        derivation=()
        if sketch
        else derivation(
            bounded_rows, relation, limits, workload.contributions, best.measures, best.choices, rule, levels
        )
        + choice.reason,
        levels=levels,
        adds=adds_at_one(best, levels),
        inputs=PlanInputs(bounded_rows, workload, options) if auto else None,
        work=work,
        outputs=output_errors(query, sets, settled, errors, kind, level),
        owners=owners,
    )
    return _checked_joint(planned) if joint else planned


def _checked_joint(plan: Plan) -> Plan:
    """Reject joint intervals where there are none."""
    why = joint_refusal(plan)
    if why is not None:
        raise QueryError(
            "HB585",
            f"The intervals of this query cannot hold for the whole answer at once: {why}.",
            "Use intervals='each'.",
        )
    return plan


def joint_refusal(plan: Plan) -> str | None:
    """Say why the intervals of a plan cannot hold for the whole answer at once; None if they can."""
    if plan.threshold is not None or plan.top is not None:
        return "its groups are selected privately"
    if plan.choices:
        return "the interval of a quantile, minimum or maximum is selected together with it"
    if (plan.limits is not None and plan.limits.auto) or plan.levels or plan.left_out or plan.clipped:
        return "it finds its bounds when it runs"
    return None


def settle(plan: Plan, chosen: Sequence[ChosenBound]) -> Plan:
    """Return the plan with bounds that were chosen from its noisy levels, one for each: its event stays the same."""
    inputs = plan.inputs
    if inputs is None:
        raise AssertionError("only a plan that finds its bounds is settled")
    allocation = Allocation(dict(plan.formulas), plan.measures, plan.choices, plan.histograms, 0.0, plan.keys)
    bounds = [each.bound for each in chosen]
    best = at_bounds(inputs.workload, allocation, plan.levels, bounds)
    left_out = {target: bound for level, bound in zip(plan.levels, chosen, strict=True) for target in level.targets}
    # intervals of measures are widened later, those of selections are part of what is selected
    choices = tuple(
        replace(each, score=allowing_for(each.score, left_out[place].most))
        for place, each in enumerate(best.choices, len(best.measures))
    )
    levels, options = plan.levels, inputs.options
    return replace(
        plan,
        statements=in_parts(
            lambda rel: statements_at(rel, plan.groups, best, levels, bounds, options),
            inputs.relation,
            best,
            1 if plan.work is None else plan.work.parts,
        ),
        measures=best.measures,
        choices=choices,
        left_out=left_out,
        levels=(),
        inputs=None,
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
    (each,) = joint_cells(query)
    chosen_by = topk.measure(query)
    wide = None if limits is None else ContributionBounds(each.size, limits.rows)
    best = topk.selection(query, each, limits, relation, epsilon)
    text = bounding.sums(rows, each, [chosen_by], limits=wide, options=options)
    half = float(best.error(LEVEL))
    expected = tuple(Expected(name, half, None, half / TYPICAL_ROWS, "rank") for name, _ in query.select[:1])
    return Plan(
        query=query,
        epsilon=epsilon,
        delta=Fraction(0),
        noise="laplace",
        relation=relation,
        limits=wide,
        groups=(each,),
        statements=(Statement("sums0", text, 0, "measures", (0,)),),
        measures=(),
        choices=(),
        histograms=(),
        formulas={},
        threshold=None,
        keys=None,
        top=best,
        event=best.event,
        expected=expected,
        derivation=derivation(rows, relation, wide, (unit_contribution(each, wide),), (), (), best),
        outputs=expected,
    )


def _statements(
    relation: Rel,
    sets: Sequence[Groups],
    allocation: Allocation,
    limits: ContributionBounds | None,
    levels: Sequence[LevelHistogram | OwnerLevels],
    options: RenderOptions,
    work: Work | None,
) -> tuple[Statement, ...]:
    """Write the statements, unless bounds have to be found first."""
    if levels:
        return ()

    def write(rel: Rel) -> tuple[Statement, ...]:
        if limits is not None and limits.auto:
            return statements_at(rel, sets, allocation, (), (), options)
        return statements(rel, sets, allocation, limits, options)

    return in_parts(write, relation, allocation, 1 if work is None else work.parts)


def _work(
    rows: Rel,
    sets: Sequence[Groups],
    allocation: Allocation,
    relation: Relation,
    limits: ContributionBounds | None,
    options: RenderOptions,
) -> Work | None:
    """Predict what the statements take, on an engine where that was measured."""
    if not options.dialect.splits_units:
        return None
    # another unit may be in another part, and each part is clamped to 64 bits
    splits = limits is not None and limits.owners == 1 and relation is Relation.ADD_REMOVE
    keys = sum(len(each.keys) for each in sets if isinstance(each, DiscoveredCells))
    numbers, memory = len(allocation.measures) + len(allocation.histograms), options.memory
    return unit_parts.predicted(
        rows, numbers=numbers, keys=keys, by_unit=limits is not None, memory=memory if splits else None
    )


def _event(
    allocation: Allocation, rule: partition_selection.Rule | None, levels: Sequence[LevelHistogram | OwnerLevels]
) -> Event:
    """Return the event to charge for all noise and selections of a query."""
    parts: list[tuple[Event, int]] = [(each.mechanism.event, 1) for each in levels]
    for i, noised in enumerate(allocation.measures):
        event = rule.event if rule is not None and i == allocation.keys else noised.event
        parts += [] if event is None else [(event, 1)]
    for each in allocation.choices:
        parts += each.events
    return Composed(tuple(parts))


def bound_work(
    query: Query, groups: int | None, rows: int | None, options: RenderOptions, total: int | None = None
) -> Rel:
    """Return the relation of a query, truncated so that one unit and one row cost a bounded amount of work.

    `total` is the number of rows to which each unit is truncated at last, if it is truncated.
    """
    part = fanout.bound_joins(query.relation, fanout.TruncationBounds(groups, rows, options.salt, options.hashing))
    # a cut to a bound that is found sorts whole rows, as a cut before a join does, so every text is shortened
    shared = several_owners.has_two_owners(query.relation)
    sorts = total is not None or (not shared and rows is None and fanout.contribution(query.relation).auto)
    rel = row_cost.truncate_texts(part.rel, row_cost.output_expressions(query), every=sorts or bool(part.joins))
    row_cost.check_row_cost(query, rel, part.joins, options.dialect)
    check_columns(query, rel)
    return rel if total is None else Truncate(fanout.strict(rel), total, options.salt, options.hashing)


def privacy_terms(query: Query, groups: int | None, rows: int | None) -> tuple[Relation, ContributionBounds | None]:
    """Return the neighboring relation, and the contribution bounds that follow from those of the private tables."""
    private = [table for table in query.tables if table.unit is not None]
    units = [table.unit for table in private if table.unit is not None]
    if not units:
        raise QueryError("HB554", "The query reads no private table.", "Read public tables directly, without hubbub.")
    replaced = any(table.relation is Relation.REPLACE for table in private)
    relation = Relation.REPLACE if replaced else Relation.ADD_REMOVE
    if any(table.others for table in private):
        return relation, several_owners.limits(query, groups, rows)
    by_row = [unit.column is None for unit in units]
    if any(by_row):
        if len(private) > 1:
            raise QueryError(
                "HB555",
                "A table with row-level privacy cannot be queried together with another private table.",
                "Query it on its own.",
            )
        return relation, None
    return relation, fanout.contribution(query.relation).tightened(groups, rows).within_total()
