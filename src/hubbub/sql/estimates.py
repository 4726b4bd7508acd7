"""Compute one column of a result from noisy integers: its value and its interval in every cell.

Tested in tests/sql/test_intervals.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.sql import postprocess
from hubbub.sql.aggregates.formula import Floats, Formula, spread
from hubbub.sql.aggregates.order_statistics import MISS
from hubbub.sql.allocation import LEVEL, deviations_at_level, linear_half_width, selection_count
from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.noise import CellSelections, half_width
from hubbub.sql.plan import Plan

Integers = NDArray[np.int64]

#: A divisor must exceed this many standard deviations of its noise, or the interval is unbounded.
_SURE = 4.0


@dataclass(frozen=True)
class ColumnEstimate:
    """One column over all cells, with its interval."""

    value: NDArray[Any]
    low: Floats
    high: Floats
    kind: Kind = Kind.REAL


@dataclass(frozen=True)
class CellKeys:
    """The keys of every cell in the result: as shown to analysts, and as post-processing expressions use them."""

    size: int
    shown: Mapping[str, NDArray[Any]]
    typed: postprocess.Columns


def estimate(plan: Plan, formula: Formula, sums: Sequence[Floats], *, raw: bool) -> ColumnEstimate:
    """Compute one aggregate from noisy sums, with its interval."""
    places = [plan.place(measure) for measure in formula.measures]
    inputs = [sums[place] for place in places]
    deviations = [_deviation(plan, place) for place in places]
    steady = _counted(formula, inputs)
    core = formula.core or formula.value
    if formula.linear and len(places) == 1:
        half = np.full_like(inputs[0], linear_half_width(formula, plan.measures[places[0]]))
    else:
        half = deviations_at_level(plan.noise) * spread(core, steady, deviations)
    with np.errstate(all="ignore"):
        middle = core(steady)
        low, high = middle - half, middle + half
    unsure = ~_sure(formula, inputs, deviations)
    low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    if formula.image is not None:
        low, high = formula.image(low, high)
    least = -np.inf if formula.low is None else formula.low
    most = np.inf if formula.high is None else formula.high
    return ColumnEstimate(_value(formula, inputs, raw=raw), np.clip(low, least, most), np.clip(high, least, most))


def _deviation(plan: Plan, place: int) -> float:
    """Return a measure's standard deviation, or more if its noise is so small that rounding to steps matters."""
    noised = plan.measures[place]
    return max(noised.deviation, half_width(noised.mechanism, LEVEL) / deviations_at_level(plan.noise))


def _sure(formula: Formula, inputs: Sequence[Floats], deviations: Sequence[float]) -> NDArray[np.bool_]:
    """Return where the estimate is nearly linear in the noise: where every divisor is well above its noise.

    Elsewhere the interval is the whole range of the result.
    """
    sure = np.full(inputs[0].shape, fill_value=True)
    if formula.linear:
        return sure
    if formula.count is not None:
        sure &= inputs[formula.count] >= _SURE * deviations[formula.count]
    steady = _counted(formula, inputs)
    for each in formula.sure:
        with np.errstate(all="ignore"):
            sure &= each(steady) >= _SURE * spread(each, steady, deviations)
    return sure


def _counted(formula: Formula, inputs: Sequence[Floats]) -> list[Floats]:
    """Raise counts below 1 to 1 if something is divided by them."""
    if formula.linear or formula.count is None:
        return list(inputs)
    return [np.maximum(each, 1.0) if i == formula.count else each for i, each in enumerate(inputs)]


def _value(formula: Formula, inputs: Sequence[Floats], *, raw: bool) -> Floats:
    with np.errstate(all="ignore"):
        value = formula.value(_counted(formula, inputs))
    if raw:
        return value
    if formula.low is not None or formula.high is not None:
        value = np.clip(value, formula.low, formula.high)
    return np.rint(value) if formula.integer else value


def choice(
    plan: Plan, selections: CellSelections, positions: Sequence[Integers], sums: Sequence[Floats]
) -> ColumnEstimate:
    """Return the selected candidates, with an interval where there are surely enough rows."""
    candidates, aggregate = selections.choice.candidates, selections.choice.aggregate
    value = candidates.shown()[positions[0]]
    noised = plan.measures[plan.place(selection_count(selections.choice))]
    fewest = sums[plan.place(noised.measure)] - half_width(noised.mechanism, 1 - MISS)
    scores = [selection.score for selection in selections.selections]
    ends = aggregate.interval(scores, candidates, positions, fewest)
    if ends is None:
        nothing = np.full(len(value), np.nan)
        return ColumnEstimate(value, nothing, nothing, candidates.expr.kind)
    return ColumnEstimate(value, *ends)


def expression(
    plan: Plan,
    expr: Expr,
    keys: CellKeys,
    estimates: Mapping[str, ColumnEstimate],
    sums: Sequence[Floats],
) -> ColumnEstimate:
    """Compute an expression over the results, with an interval from the effect of each measure's noise."""
    # evaluate the shown values, the raw values, and the raw values with each measure moved by its deviation: clamping
    # and rounding would hide the effect of the noise
    shifts: list[list[Floats]] = [list(sums), list(sums)]
    for i in range(len(plan.measures)):
        for sign in (1.0, -1.0):
            moved = list(sums)
            moved[i] = sums[i] + sign * _deviation(plan, i)
            shifts.append(moved)
    stacked = {name: (np.tile(column, len(shifts)), kind) for name, (column, kind) in keys.typed.items()}
    for name, each in estimates.items():
        parts = [each.value] * len(shifts)
        if name in plan.formulas:
            formula = plan.formulas[name]
            places = [plan.place(measure) for measure in formula.measures]
            parts[1:] = [_value(formula, [shift[place] for place in places], raw=True) for shift in shifts[1:]]
        stacked[name] = (np.concatenate(parts), each.kind)
    (values,) = postprocess.evaluate(stacked, [expr])
    size, nothing = keys.size, np.full(keys.size, np.nan)
    if expr.kind not in (Kind.INTEGER, Kind.REAL):
        return ColumnEstimate(values[:size], nothing, nothing)
    numeric = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan).reshape(len(shifts), size)
    names = mentioned(expr)
    if any(each.choice.name in names for each in plan.choices):
        return ColumnEstimate(numeric[0], nothing, nothing)
    half = deviations_at_level(plan.noise) * np.sqrt((((numeric[2::2] - numeric[3::2]) / 2) ** 2).sum(axis=0))
    low, high = np.fmin(numeric[1] - half, numeric[0]), np.fmax(numeric[1] + half, numeric[0])
    used = [plan.formulas[name] for name in names if name in plan.formulas]
    if not linear(expr) or not all(each.linear for each in used):
        unsure = np.any([~_steady(plan, each, sums) for each in used], axis=0)
        low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    open_ended = np.isnan(half) | np.isnan(numeric[1])
    return ColumnEstimate(numeric[0], np.where(open_ended, -np.inf, low), np.where(open_ended, np.inf, high))


def _steady(plan: Plan, formula: Formula, sums: Sequence[Floats]) -> NDArray[np.bool_]:
    """Return where an expression over a result is nearly linear in its noise: also away from the kink of its image."""
    places = [plan.place(measure) for measure in formula.measures]
    inputs, deviations = [sums[place] for place in places], [_deviation(plan, place) for place in places]
    sure = _sure(formula, inputs, deviations)
    if formula.count is not None:
        sure &= inputs[formula.count] >= _SURE * deviations[formula.count]
    if formula.core is not None:
        steady = _counted(formula, inputs)
        with np.errstate(all="ignore"):
            sure &= np.abs(formula.core(steady)) >= _SURE * spread(formula.core, steady, deviations)
    return sure


def mentioned(expr: Expr) -> set[str]:
    """Return the names that an expression reads."""
    if isinstance(expr, Col):
        return {expr.name}
    return set().union(*(mentioned(each) for each in expr.args)) if isinstance(expr, FunctionCall) else set()


def linear(expr: Expr) -> bool:
    """Return whether an expression is linear in the columns it reads."""
    if not isinstance(expr, FunctionCall):
        return True
    if expr.function in ("add", "sub", "neg"):
        return all(linear(each) for each in expr.args)
    constant = [not mentioned(each) for each in expr.args]
    if expr.function == "mul":
        return any(constant) and all(linear(each) for each in expr.args)
    return expr.function == "div" and constant[1] and linear(expr.args[0])
