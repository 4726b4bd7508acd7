"""Turn the engine's integers into a result: add noise to every cell, then compute estimates and intervals.

Only the noise and the selections read the data. Everything after them is post-processing.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.noise.source import RandomSource
from hubbub.sql import partition_selection
from hubbub.sql.bounding import SATURATION
from hubbub.sql.estimates import CellKeys, Integers, mentioned
from hubbub.sql.expressions import Col
from hubbub.sql.keys import DiscoveredCells, domains_of
from hubbub.sql.noise import CellSelections
from hubbub.sql.plan import Plan
from hubbub.sql.presentation import Answer, present
from hubbub.sql.query import grouping_name
from hubbub.sql.statements import Statement

Tables = Mapping[str, Mapping[str, NDArray[Any]]]

#: Number of groups whose histograms are in memory at once.
_BATCH = 1024
#: Number of scores that are in memory at once.
_SCORES = 1 << 20


def exact_results(plan: Plan, tables: Tables) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """Arrange the engine's exact integers over all cells: measures (cell), histograms (cell, bucket)."""
    offsets = np.cumsum([0, *(each.size for each in plan.cells)])
    # the count behind a top-k selection is not a measure, because it gets no noise
    count = max(len(plan.measures), 1 if plan.top is not None else 0)
    measures = [np.zeros(plan.size, dtype=np.int64) for _ in range(count)]
    histograms = [np.zeros((plan.size, each.count), dtype=np.int64) for each in plan.histograms]
    for statement in plan.statements:
        table = tables[statement.name]
        if statement.fills == "owners":
            for choice in plan.owners:
                (target,) = choice.targets
                measures[target] = choice.truncated(table, plan.left_out[target].bound)
            continue
        positions = plan.cells[statement.place].positions(np.asarray(table["cell"], dtype=np.int64))
        known = positions >= 0
        at = positions[known] + offsets[statement.place]
        for column, target in enumerate(statement.targets):
            values = np.asarray(table[f"m{column}"], dtype=np.int64)[known]
            if statement.fills == "measures":
                np.add.at(measures[target], at, values)
                if statement.part:
                    np.clip(measures[target], -SATURATION, SATURATION, out=measures[target])
            else:
                np.add.at(histograms[target], (at, np.asarray(table["bucket"], dtype=np.int64)[known]), values)
    return tuple(measures), tuple(histograms)


def public_rows(plan: Plan, tables: Tables) -> int | None:
    """Return the public number of rows, if the plan uses it; None if all counts have noise."""
    place = next((i for i, noised in enumerate(plan.measures) if noised.event is None), None)
    return None if place is None else int(exact_results(plan, tables)[0][place].sum())


def _mentioned(plan: Plan) -> set[str]:
    """Return the names that the outputs, HAVING and ORDER BY read."""
    query = plan.query
    exprs = [expr for _, expr in query.select] + [term.expr for term in query.order]
    return set().union(*(mentioned(expr) for expr in [*exprs, *([] if query.having is None else [query.having])]))


def declared_keys(plan: Plan) -> CellKeys:
    """Return the keys of all declared cells."""
    shown, typed = dict[str, NDArray[Any]](), dict[str, tuple[NDArray[Any], Kind]]()
    wanted = _mentioned(plan)
    for i, domain in enumerate(domains_of(plan.query)):
        codes = np.concatenate([each.codes(i) for each in plan.cells])
        shown[domain.key.name] = domain.shown(codes)
        typed[domain.key.name] = (domain.typed(codes), domain.kind)
        if (name := grouping_name(domain.key.name)) in wanted:
            shown[name] = (codes < 0).astype(np.int64)
            typed[name] = (shown[name].astype(np.float64), Kind.INTEGER)
    return CellKeys(plan.size, shown, typed)


def finish(plan: Plan, tables: Tables, source: RandomSource, *, raw: bool = False) -> Answer:
    """Add the noise, make the selections, and compute the result; `raw` does not clamp estimates to their range."""
    if plan.top is not None:
        return _top_keys(plan, plan.top.sample(exact_results(plan, tables)[0][0], source))
    if plan.threshold is not None:
        return _with_selected_groups(plan, plan.threshold, tables, source, raw=raw)
    measures, histograms = exact_results(plan, tables)
    noisy = [noised.mechanism.sample(vector, source) for noised, vector in zip(plan.measures, measures, strict=True)]
    outcomes = [_select(each, histograms[each.histogram], source) for each in plan.choices]
    return replace(present(plan, declared_keys(plan), noisy, outcomes, raw=raw), sums=tuple(noisy))


def _select(each: CellSelections, histogram: Integers, source: RandomSource) -> Integers:
    """Make one selection in every cell, in batches of cells; return a column for each name."""
    size, names = max(1, _SCORES // each.mechanism.candidates), len(each.choice.names)
    parts = [
        each.mechanism.sample_each(each.score.scores(histogram[start : start + size]), source).reshape(-1, names)
        for start in range(0, len(histogram), size)
    ]
    return np.concatenate([np.zeros((0, names), dtype=np.int64), *parts])


def _with_selected_groups(
    plan: Plan, rule: partition_selection.Rule, tables: Tables, source: RandomSource, *, raw: bool
) -> Answer:
    """Select the groups first. They are public from then on, and everything else is computed for them."""
    (cells,) = plan.groups
    if not isinstance(cells, DiscoveredCells):
        raise AssertionError("groups are selected only if they are not declared")
    keys = plan.keys
    if keys is None:
        raise AssertionError("groups are selected by a measure")
    statements, tables = _added_up(plan, cells, tables)
    first = next(each for each in statements if each.fills == "measures" and keys in each.targets)
    shown = partition_selection.sample(cells, rule, tables[first.name], f"m{first.targets.index(keys)}", source)
    noisy: dict[int, Integers] = {keys: shown.counts}
    for statement in statements:
        table = tables[statement.name]
        if statement.fills == "histogram":
            continue
        at = None if statement is first else shown.places(cells, table)
        for column, target in enumerate(statement.targets):
            if target == keys:
                continue
            vector = np.asarray(table[f"m{column}"], dtype=np.int64)
            if at is None:
                exact = vector[shown.positions]
            else:
                exact = np.zeros(shown.size, dtype=np.int64)
                np.add.at(exact, at[at >= 0], vector[at >= 0])
            noisy[target] = plan.measures[target].mechanism.sample(exact, source)
    outcomes = [_select_in_batches(plan, each, cells, shown, tables, source) for each in plan.choices]
    named = {
        key.name: partition_selection.shown_key(column, key.expr.kind)
        for key, column in zip(cells.keys, shown.columns, strict=True)
    }
    typed = {key.name: (named[key.name], key.expr.kind) for key in cells.keys}
    lacking = _mentioned(plan) & {grouping_name(key.name) for key in cells.keys}
    for name in lacking:  # every key is in the only grouping set
        named[name] = np.zeros(shown.size, dtype=np.int64)
        typed[name] = (np.zeros(shown.size), Kind.INTEGER)
    sums = [noisy[place] for place in range(len(plan.measures))]
    return present(plan, CellKeys(shown.size, named, typed), sums, outcomes, raw=raw)


def _added_up(plan: Plan, cells: DiscoveredCells, tables: Tables) -> tuple[list[Statement], Tables]:
    """Add up the results of statements that ran in parts: each part has groups of its own."""
    whole = [each for each in plan.statements if not each.part]
    added = dict[str, Mapping[str, NDArray[Any]]]()
    for first in whole:
        same = [each for each in plan.statements if (each.fills, each.place, each.targets) == _role(first)]
        parts = [tables[each.name] for each in same]
        added[first.name] = parts[0] if len(parts) == 1 else partition_selection.add_up(cells, parts)
    return whole, added


def _role(statement: Statement) -> tuple[str, int, tuple[int, ...]]:
    return statement.fills, statement.place, statement.targets


def _select_in_batches(
    plan: Plan,
    each: CellSelections,
    cells: DiscoveredCells,
    shown: partition_selection.ReleasedGroups,
    tables: Tables,
    source: RandomSource,
) -> Integers:
    """Make the selection of one choice in every group that is shown, in batches."""
    statement = next(s for s in plan.statements if s.fills == "histogram" and s.targets == (each.histogram,))
    table = tables[statement.name]
    at = shown.places(cells, table)
    bucket, counts = (np.asarray(table[name], dtype=np.int64) for name in ("bucket", "m0"))
    parts = [np.zeros((0, len(each.choice.names)), dtype=np.int64)]
    for start in range(0, shown.size, _BATCH):
        size = min(_BATCH, shown.size - start)
        batch = (at >= start) & (at < start + size)
        histogram = np.zeros((size, plan.histograms[each.histogram].count), dtype=np.int64)
        np.add.at(histogram, (at[batch] - start, bucket[batch]), counts[batch])
        parts.append(_select(each, histogram, source))
    return np.concatenate(parts)


def _top_keys(plan: Plan, positions: Integers) -> Answer:
    """Return the selected keys, the best first."""
    shown = declared_keys(plan).shown
    nothing = tuple(np.full(len(positions), np.nan) for _ in plan.query.select)
    values = tuple(shown[expr.name][positions] for _, expr in plan.query.select if isinstance(expr, Col))
    return Answer(tuple(name for name, _ in plan.query.select), values, nothing, nothing, nothing[0])
