"""Write the statements of a plan: one for the sums of a grouping set, and one for each other measure and histogram.

Tested in tests/sql/test_plan.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hubbub.sql import bounding, bounding_values, contribution_levels, fanout, key_weights, unit_parts
from hubbub.sql.allocation import Allocation
from hubbub.sql.auto_bounds import LevelHistogram
from hubbub.sql.bounding import ContributionBounds, RenderOptions
from hubbub.sql.keys import Groups
from hubbub.sql.measures import Additive, BoundedSum, Distinct, KeyWeight, UnitCount
from hubbub.sql.owner_levels import OwnerLevels
from hubbub.sql.relations import Rel, Truncate


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement for one grouping set, and the measures (by position) or the histogram that it fills."""

    name: str
    sql: str
    place: int
    fills: Literal["measures", "histogram", "owners"]
    targets: tuple[int, ...]
    part: int = 0  #: its number, where a statement runs in parts, whose results are added up


def in_parts(
    write: Callable[[Rel], tuple[Statement, ...]], relation: Rel, allocation: Allocation, count: int
) -> tuple[Statement, ...]:
    """Write the statements of a plan in parts: those that add something up over the units, and the others whole."""
    whole = write(relation)
    if count == 1:
        return whole
    parts = [write(unit_parts.part(relation, place, count)) for place in range(count)]
    written = list[Statement]()
    for i, each in enumerate(whole):
        of_values = each.fills == "measures" and any(
            isinstance(allocation.measures[target].measure, Distinct) for target in each.targets
        )
        if of_values or each.fills == "owners":
            written.append(each)
            continue
        for place, texts in enumerate(parts):
            name = each.name if place == 0 else f"{each.name} part {place + 1}"
            written.append(replace(texts[i], name=name, part=place))
    return tuple(written)


def statements(
    relation: Rel,
    sets: Sequence[Groups],
    allocation: Allocation,
    limits: ContributionBounds | None,
    options: RenderOptions,
) -> tuple[Statement, ...]:
    """Write the statements of a plan with these contribution bounds."""
    written = []
    additive: list[Additive] = []
    places: list[int] = []
    for i, noised in enumerate(allocation.measures):
        if not isinstance(noised.measure, Distinct | KeyWeight):
            additive.append(noised.measure)
            places.append(i)
    for place, each in enumerate(sets):
        if additive:
            text = bounding.sums(relation, each, additive, limits=limits, options=options)
            written.append(Statement(f"sums{place}", text, place, "measures", tuple(places)))
        for i, noised in enumerate(allocation.measures):
            if isinstance(noised.measure, KeyWeight):
                text = key_weights.key_weights(relation, each, noised.measure, options=options)
                written.append(Statement(f"keys{place}", text, place, "measures", (i,)))
            if isinstance(noised.measure, Distinct):
                text = bounding_values.distinct(relation, each, noised.measure, limits=limits, options=options)
                written.append(Statement(f"distinct{i}_{place}", text, place, "measures", (i,)))
        for i, candidates in enumerate(allocation.histograms):
            text = bounding_values.buckets(relation, each, candidates, limits=limits, options=options)
            written.append(Statement(f"buckets{i}_{place}", text, place, "histogram", (i,)))
    return tuple(written)


def statements_at(
    relation: Rel,
    sets: Sequence[Groups],
    allocation: Allocation,
    levels: Sequence[LevelHistogram | OwnerLevels],
    bounds: Sequence[int],
    options: RenderOptions,
) -> tuple[Statement, ...]:
    """Write the statements of a plan with bounds that were found for it.

    Theorem (Clipped units). At the bound b a unit contributes at most b rows, in all cells of a grouping set together,
    to counts of rows, of distinct values and to histograms, at most b cells to counts of units, and at most b steps, in
    absolute value and over all cells together, to a sum with a bound of its own.
    Proof    Rows are cut before anything is counted (`truncation`): each row is in one cell of a set at most. Cells are
             ranked within the unit by hash, and b are kept (`bounding`). Sums fill the cells of a unit in the order of
             a hash of its own keys until b is used up (`contribution_levels`).
    Assumes  what is kept of a unit is a function of its own rows.
    Tested   tests/sql/test_auto_bounds.py::test_no_unit_contributes_more_than_the_chosen_bound
    """
    if levels and isinstance(levels[0], OwnerLevels):
        # the bounds are enforced on what the statement returns
        return (Statement("shared", levels[0].sql, 0, "owners", tuple(range(len(allocation.measures)))),)
    bound = {target: b for level, b in zip(levels, bounds, strict=True) for target in level.targets}
    alone = {target for level in levels if level.contribution == "sum" for target in level.targets}
    rows = next((b for level, b in zip(levels, bounds, strict=True) if level.contribution == "rows"), 1)
    cut = Truncate(fanout.strict(relation), rows, options.salt, options.hashing)
    others = [i for i in range(len(allocation.measures)) if i not in alone]
    written = []
    for place, each in enumerate(sets):
        for i in sorted(alone):
            measure = allocation.measures[i].measure
            if not isinstance(measure, BoundedSum):
                raise AssertionError("only sums have a bound of their own")
            text = contribution_levels.clipped_sum(relation, each, measure, bound[i], options)
            written.append(Statement(f"sum{i}_{place}", text, place, "measures", (i,)))
        for i in others:
            measure = allocation.measures[i].measure
            if isinstance(measure, KeyWeight):
                text = key_weights.key_weights(relation, each, measure, options=options)
                written.append(Statement(f"keys{place}", text, place, "measures", (i,)))
        units = [i for i in others if isinstance(allocation.measures[i].measure, UnitCount)]
        for i in units:
            limits = ContributionBounds(bound.get(i, 1), 1)
            measure = allocation.measures[i].measure
            text = bounding.sums(relation, each, _additive([measure]), limits=limits, options=options)
            written.append(Statement(f"units{i}_{place}", text, place, "measures", (i,)))
        rest = [i for i in others if i not in units]
        written += _by_rows(cut, each, place, allocation, rest, options)
    return tuple(written)


def _by_rows(
    relation: Rel, each: Groups, place: int, allocation: Allocation, targets: Sequence[int], options: RenderOptions
) -> list[Statement]:
    """Write the statements over a relation in which units are cut to their bound: rows are added up as they are."""
    measures = {i: allocation.measures[i].measure for i in targets}
    additive = [i for i, measure in measures.items() if not isinstance(measure, Distinct | KeyWeight)]
    written = []
    if additive:
        text = bounding.sums(relation, each, _additive([measures[i] for i in additive]), limits=None, options=options)
        written.append(Statement(f"sums{place}", text, place, "measures", tuple(additive)))
    for i, measure in measures.items():
        if isinstance(measure, Distinct):
            text = bounding_values.distinct(relation, each, measure, limits=None, options=options)
            written.append(Statement(f"distinct{i}_{place}", text, place, "measures", (i,)))
    for i, candidates in enumerate(allocation.histograms):
        text = bounding_values.buckets(relation, each, candidates, limits=None, options=options)
        written.append(Statement(f"buckets{i}_{place}", text, place, "histogram", (i,)))
    return written


def _additive(measures: Sequence[object]) -> list[Additive]:
    return [measure for measure in measures if isinstance(measure, Additive)]
