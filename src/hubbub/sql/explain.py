"""Explain the sensitivity of a query, operator by operator, in lines of text.

Tested in tests/sql/test_corpus.py.
"""

from collections.abc import Sequence
from fractions import Fraction

from hubbub.core.numbers import brief
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.top_k import TopK
from hubbub.mechanisms.weighted_selection import WeightedSelection
from hubbub.sql.auto_bounds import LevelHistogram
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, released_place
from hubbub.sql.measures import DistinctCount, DistinctSum, KeyWeight, Measure, RowCount, UnitContribution, UnitCount
from hubbub.sql.noise import CellSelections, NoisyMeasure, NoNoise
from hubbub.sql.owner_levels import RESOLUTION, OwnerLevels
from hubbub.sql.relations import (
    MAX_TEXT_LENGTH,
    Filter,
    Join,
    PerUnit,
    Project,
    Rel,
    Scan,
    Truncate,
    Union,
    UnitWindow,
)
from hubbub.sql.released_tables import is_written


def derivation(
    rows: Rel,
    relation: Relation,
    limits: ContributionBounds | None,
    contributions: Sequence[UnitContribution],
    noised: Sequence[NoisyMeasure],
    selections: Sequence[CellSelections],
    rule: PartitionSelection | WeightedSelection | TopK | None,
    levels: Sequence[LevelHistogram | OwnerLevels] = (),
) -> tuple[str, ...]:
    """Return the lines: relations first, then the contribution bounds, then each measure with its noise."""
    # the line of the contribution bounds states a truncation of the whole relation
    lines = list(_relation(rows.input if isinstance(rows, Truncate) and not levels else rows))
    verb = "added or removed" if relation is Relation.ADD_REMOVE else "replaced by another"
    if limits is None:
        lines.append(f"neighbors: one row {verb}; each row is in one cell of each grouping set")
    else:
        either = " on either side" if limits.owners > 1 else ""
        lines.append(f"neighbors: all rows of one privacy unit{either} {verb}")
        lines.append(_limits(limits))
    lines += [_level(level) for level in levels]
    for i, contribution in enumerate(contributions):
        size = (
            "groups found by partition selection" if contribution.cells >= 1 << 62 else f"{contribution.cells:,} cells"
        )
        total = "" if contribution.total is None else f" and {contribution.total} in all"
        lines.append(
            f"grouping set {i}: {size}; a unit is in at most {contribution.touched}, "
            f"with {contribution.rows} rows in each{total}"
        )
    lines += [_noise(each) for each in noised]
    lines += [_choice(each) for each in selections]
    if isinstance(rule, PartitionSelection | WeightedSelection):
        what = "number of units" if isinstance(rule, PartitionSelection) else "weight"
        lines.append(f"a group is shown if its noisy {what} is at least {rule.threshold}: δ={brief(rule.delta)}")
    if isinstance(rule, TopK):
        lines.append(
            f"the {rule.k} largest of {rule.one.candidates:,} counts, each of sensitivity {rule.one.sensitivity}: "
            f"{rule.k} selections of rate {brief(rule.one.rate)}"
        )
    return tuple(lines)


def _limits(limits: ContributionBounds) -> str:
    if limits.owners > 1:
        return (
            f"bounds: chosen below; of each of the {limits.owners} owners of a row at most the bound counts in a cell; "
            "every sensitivity and noise below is for the bound 1 and is multiplied by the bound that is chosen"
        )
    if limits.auto:
        return (
            f"contribution bounds: found from noisy levels below, up to {limits.rows:,} rows of a unit; every "
            "sensitivity and noise below is for the bound 1 and is multiplied by the bound that is found"
        )
    total = "" if limits.total is None else f", and {limits.total} rows in all of them together"
    kept = f"each unit keeps at most {limits.groups} groups with {limits.rows} rows in each{total}, by hash"
    return f"contribution bounds: {kept}"


def _level(level: LevelHistogram | OwnerLevels) -> str:
    if isinstance(level, OwnerLevels):
        one = level.mechanism
        return (
            f"one of {one.candidates} bounds from {level.levels[0]:,} to {level.levels[-1]:,} (in steps): scores in "
            f"parts of 1/{RESOLUTION:,} have sensitivity {one.sensitivity:,}, ε={brief(level.portion)}: one selection "
            f"by {one.rule.replace('_', '-')} of rate {brief(one.rate)}"
        )
    what = {"rows": "rows", "cells": "groups", "sum": "total of a sum in steps"}[level.contribution]
    noise = f"ε={brief(level.portion)}: Laplace noise of scale {brief(level.mechanism.scale)}"
    return (
        f"units by their {what}, at levels {level.levels[0]:,} to {level.levels[-1]:,}: L1 sensitivity "
        f"{level.mechanism.sensitivity}, {noise}"
    )


def _owner(table: Table) -> str:
    if table.unit is None or table.unit.column is None:
        return "each row is its own unit"
    if table.others:
        return "each row belongs to both of its owners"
    if table.unit.period is not None:
        return f"each row belongs to one {table.unit.period.per} of its {table.unit.period.column}"
    if table.unit.path is None:
        return "each row belongs to its unit"
    way = " of ".join(f"the row of {step.table} that {', '.join(step.columns)} names" for step in table.unit.path.steps)
    return f"each row belongs to the unit of {way}"


def _relation(relation: Rel) -> list[str]:
    match relation:
        case Scan(table, columns, _) if table.public:
            return [_written(table) or f"scan {table.name}: public, {len(columns)} columns", *_short(relation)]
        case Scan(table, columns, _):
            owner = _owner(table)
            scan = f"scan {table.name}: {len(columns)} columns clamped to their bounds; {owner}; stability 1"
            return [scan, *_short(relation)]
        case Filter(inner, predicate):
            return [*_relation(inner), f"filter {show(predicate)}: row by row; stability 1"]
        case Project(inner, outputs):
            return [*_relation(inner), f"project {len(outputs)} columns row by row; stability 1"]
        case Join(left, right, kind, _, unit):
            how = (
                "on the unit: both rows belong to the same unit"
                if unit
                else "with a public table: each row keeps its unit"
            )
            return [*_relation(left), *_relation(right), f"{kind} join {how}; stability 1 in units"]
        case Union(inputs, _):
            parts = [line for each in inputs for line in _relation(each)]
            return [*parts, f"union of {len(inputs)}: each row keeps its unit; stability 1 in units"]
        case PerUnit(inner, keys, aggregates):
            computed = f"{len(aggregates)} aggregates" if aggregates else "distinct rows"
            return [
                *_relation(inner),
                f"per unit and {len(keys)} keys: {computed} of that unit's rows; stability 1 in units",
            ]
        case UnitWindow(inner, functions):
            listed = ", ".join(dict.fromkeys(each.function for _, each in functions))
            return [*_relation(inner), f"windows over the rows of one unit ({listed}); stability 1 in units"]
        case Truncate(inner, rows, _, _):
            kept = f"truncation before the join: each unit keeps at most {rows:,} rows, by hash; stability 1 in units"
            return [*_relation(inner), kept]


def _written(table: Table) -> str:
    """Describe a table that the statement writes itself."""
    if not is_written(table):
        return ""
    place, keys = released_place(table.name), f"{table.size or 0:,} keys"
    return f"{keys} of public rows" if place is None else f"noisy numbers of release {place + 1}, for {keys}"


def _short(scan: Scan) -> list[str]:
    shown = ", ".join(show(column) for column in scan.columns if column.name in scan.short)
    return [f"text of {shown}: truncated to its first {MAX_TEXT_LENGTH:,} characters, row by row"] if shown else []


def _noise(noisy: NoisyMeasure) -> str:
    sensitivity, mechanism = noisy.sensitivity, noisy.mechanism
    if isinstance(mechanism, NoNoise):
        return "rows: their number is public under the replace relation, and is used without noise"
    if isinstance(mechanism, Laplace):
        noise = (
            f"L1 sensitivity {sensitivity.l1}, ε={brief(noisy.portion)}: "
            f"Laplace noise of scale {brief(mechanism.scale)}"
        )
    else:
        noise = (
            f"squared L2 sensitivity {sensitivity.l2_squared}, ρ={brief(noisy.portion)}: "
            f"Gaussian noise of variance {brief(mechanism.variance)}"
        )
    return f"{describe(noisy.measure)}: {noise}"


def _choice(each: CellSelections) -> str:
    one, count, names = each.mechanism, each.choice.candidates.count, len(each.choice.names)
    shapes = one.candidates // names // count
    around = f", with one of {shapes:,} intervals around it" if shapes > 1 else ""
    several = f"{names} quantiles together, each " if names > 1 else ""
    what = f"{each.choice.function} of {show(each.choice.candidates.expr)}"
    return (
        f"{what}: {several}one of {count:,} candidates{around}; scores have sensitivity {one.sensitivity} in each of "
        f"{each.times} cells; one selection by {one.rule.replace('_', '-')} of rate {brief(one.rate)}"
    )


def describe(measure: Measure) -> str:
    """Describe a measure, and what a row (or unit) can add to it."""
    where = f" where {show(measure.where)}" if measure.where is not None else ""
    if isinstance(measure, UnitCount):
        return f"units{where}: a unit adds 0 or 1 to a cell"
    if isinstance(measure, RowCount):
        present = " and ".join(show(expr) for expr in measure.present)
        return f"rows{f' with {present}' if present else ''}{where}: a row adds 0 or 1"
    if isinstance(measure, KeyWeight) and measure.keys == 1:
        return "units by one of their groups each: a unit adds 1 to the first of its groups, by hash"
    if isinstance(measure, KeyWeight):
        return (
            f"weights of groups: a unit adds {measure.weight}/√n, rounded down, to each of its first n ≤ "
            f"{measure.keys} groups, by hash"
        )
    if isinstance(measure, DistinctCount):
        return f"distinct values of {show(measure.expr)}{where}: a row adds 0 or 1"
    if isinstance(measure, DistinctSum):
        return (
            f"over the distinct values of {show(measure.expr)}: {describe(measure.of).replace(': a row', ': a value')}"
        )
    terms = []
    for term in measure.terms:
        terms.append(f"({show(term.expr)} − {brief(term.centre)})" if term.centre else show(term.expr))
    offset = f" − {brief(measure.offset)}" if measure.offset else ""
    return (
        f"sum of {'·'.join(terms)}{offset}{where} in steps of {brief(measure.step)}: "
        f"a row adds between {measure.low} and {measure.high} steps"
    )


def show(expr: Expr) -> str:
    """Write an expression for display; the text is never run."""
    match expr:
        case Col(name, _, _):
            # binding appends a number to every name, so that names are unique
            stem, _, number = name.rpartition("_")
            return stem if stem and number.isdigit() else name
        case Literal(value, _):
            return brief(value) if isinstance(value, Fraction) else "NULL" if value is None else repr(value)
        case FunctionCall(function, args, _, _):
            return f"{function}({', '.join(show(each) for each in args)})"
