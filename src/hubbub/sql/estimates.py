"""Compute one column of a result from noisy integers: its value and its interval in every cell.

Tested in tests/sql/test_intervals.py and tests/sql/test_interval_ends.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Bounds, Kind
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.sql import postprocess
from hubbub.sql.aggregates.formula import Floats, Formula, spread
from hubbub.sql.aggregates.order_statistics import Choice
from hubbub.sql.aggregates.scores import JointScore, ScoreFunction
from hubbub.sql.allocation import LEVEL, deviations_at_level, linear_half_width
from hubbub.sql.expected import linear
from hubbub.sql.expressions import Col, Expr, Facts, FunctionCall, facts
from hubbub.sql.functions import result_range
from hubbub.sql.left_out_margin import finds_values, margins, missing
from hubbub.sql.noise import CellSelections, half_width
from hubbub.sql.plan import Plan
from hubbub.sql.shown_counts import lower_end

Integers = NDArray[np.int64]

#: More than any result that has no range of its own: sums saturate at 2⁶¹ steps, and a step is at most 2⁵³.
_LARGEST = Fraction(2) ** 120

#: A divisor must exceed this many standard deviations of its noise, or the interval is unbounded.
_SURE = 4.0


@dataclass(frozen=True)
class ColumnEstimate:
    """One column over all cells, with its interval."""

    value: NDArray[Any]
    low: Floats
    high: Floats
    kind: Kind = Kind.REAL
    half: Floats | None = None  #: the ± of the noise before clamping


@dataclass(frozen=True)
class CellKeys:
    """The keys of every cell in the result: as shown to analysts, and as post-processing expressions use them."""

    size: int
    shown: Mapping[str, NDArray[Any]]
    typed: postprocess.Columns


def estimate(
    plan: Plan, formula: Formula, sums: Sequence[Floats], *, raw: bool, level: Fraction = LEVEL
) -> ColumnEstimate:
    """Compute one aggregate from noisy sums, with its interval."""
    places = [plan.place(measure) for measure in formula.measures]
    inputs = [sums[place] for place in places]
    deviations = [_deviation(plan, place, level) for place in places]
    steady = _counted(formula, inputs)
    core = formula.core or formula.value
    width = deviations_at_level(plan.noise, level)
    if formula.linear and len(places) == 1:
        half = np.full_like(inputs[0], linear_half_width(formula, plan.measures[places[0]], level))
    else:
        half = width * spread(core, steady, deviations)
    found = finds_values(plan, formula)
    least, most = formula.range(found=found)
    first, last = formula.range_of_core(found=found)
    with np.errstate(all="ignore"):
        low, high = ends(core(steady), half, first, last)
        down, up = margins(plan, formula, core, steady)
        low, high = low + down, high + up
    if isinstance(plan.threshold, PartitionSelection) and formula.linear and places == [plan.keys]:
        low = np.minimum(low, lower_end(plan.threshold, inputs[0], half))
    unsure = ~_sure(formula, inputs, deviations, _surely(plan, level))
    low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    if formula.image is not None:
        low, high = formula.image(low, high)
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    noise = half if formula.core is None else width * spread(formula.value, steady, deviations)
    return ColumnEstimate(_value(formula, inputs, raw=raw), low, high, half=noise)


def ends(middle: Floats, half: Floats, least: float, most: float) -> tuple[Floats, Floats]:
    """Return the ends of an interval for a number that is known to lie between two others.

    Theorem (Clamped intervals). Let T lie in [a, b], let Z be noise with Pr[|Z| > h] ≤ α, and let y be T + Z clamped
    to [a, b]. Then [y − h, y + h], clamped to [a, b], holds T with probability at least 1 − α, and is wider than a
    point wherever h > 0 and a < b.
    Proof    Clamping to an interval that holds T moves T + Z no further from T: |y − T| ≤ |Z|. So T is within h of y
             whenever |Z| ≤ h, and T is in [a, b] anyway. As y is in [a, b], so is one of y ± h or an end of [a, b].
    Assumes  the noise is independent of T.   Charges  nothing: this is post-processing.
    Tested   tests/sql/test_interval_ends.py::test_intervals_of_counts_cover_by_exact_enumeration
             tests/sql/test_interval_ends.py::test_no_interval_of_an_aggregate_is_a_point
    """
    inside = np.clip(middle, least, most)
    return np.clip(inside - half, least, most), np.clip(inside + half, least, most)


def _deviation(plan: Plan, place: int, level: Fraction = LEVEL) -> float:
    """Return a measure's standard deviation, or more if its noise is so small that rounding to steps matters."""
    noised = plan.measures[place]
    return max(noised.deviation, half_width(noised.mechanism, level) / deviations_at_level(plan.noise, level))


def _surely(plan: Plan, level: Fraction) -> float:
    """Return how many deviations a divisor must exceed at a level: the same number of half widths as at 95%."""
    return _SURE * deviations_at_level(plan.noise, level) / deviations_at_level(plan.noise)


def _sure(
    formula: Formula, inputs: Sequence[Floats], deviations: Sequence[float], least: float = _SURE
) -> NDArray[np.bool_]:
    """Return where the estimate is nearly linear in the noise: where every divisor is well above its noise.

    Elsewhere the interval is the whole range of the result.
    """
    sure = np.full(inputs[0].shape, fill_value=True)
    if formula.linear:
        return sure
    if formula.count is not None:
        # without a row there is nothing to divide, however small the noise is
        sure &= inputs[formula.count] >= max(1.0, least * deviations[formula.count])
    steady = _counted(formula, inputs)
    for each in formula.sure:
        with np.errstate(all="ignore"):
            sure &= each(steady) >= least * spread(each, steady, deviations)
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


def unclamped(formula: Formula, inputs: Sequence[Floats]) -> Floats:
    """Return the value of a formula without clamping and rounding, whose noise has the mean 0 if it is linear."""
    return _value(formula, inputs, raw=True)


def choice(plan: Plan, selections: CellSelections, outcomes: Integers) -> dict[str, ColumnEstimate]:
    """Return the selected candidates by name, with their intervals."""
    score, names = selections.score, selections.choice.names
    parts = score.parts if isinstance(score, JointScore) else (score,)
    found = selections.choice.candidates.expr in plan.clipped
    return {
        name: _selected(selections.choice, part, outcomes[:, i], found=found)
        for i, (name, part) in enumerate(zip(names, parts, strict=True))
    }


def _selected(choice: Choice, score: ScoreFunction, outcomes: Integers, *, found: bool) -> ColumnEstimate:
    candidates, aggregate = choice.candidates, choice.aggregate
    value = candidates.shown()[outcomes % candidates.count]
    ends = aggregate.interval(score, candidates, outcomes)
    if ends is None:
        nothing = np.full(len(value), np.nan)
        return ColumnEstimate(value, nothing, nothing, candidates.expr.kind)
    return ColumnEstimate(value, *(_open(*ends, facts(candidates.expr).bounds) if found else ends))


def _open(low: Floats, high: Floats, bounds: Bounds | None) -> tuple[Floats, Floats]:
    """Open intervals that end where values are clamped to a magnitude that the query found: values may lie beyond."""
    if bounds is None:
        return low, high
    reach = float(max(abs(bounds.low), abs(bounds.high)))
    return np.where(low <= -reach, -np.inf, low), np.where(high >= reach, np.inf, high)


def expression(
    plan: Plan,
    expr: Expr,
    keys: CellKeys,
    estimates: Mapping[str, ColumnEstimate],
    sums: Sequence[Floats],
    level: Fraction = LEVEL,
) -> ColumnEstimate:
    """Compute an expression over the results, with an interval from the effect of each measure's noise."""
    # evaluate the shown values, the raw values, and the raw values with each measure moved by its deviation: clamping
    # and rounding would hide the effect of the noise
    shifts: list[list[Floats]] = [list(sums), list(sums)]
    for i in range(len(plan.measures)):
        for sign in (1.0, -1.0):
            moved = list(sums)
            moved[i] = sums[i] + sign * _deviation(plan, i, level)
            shifts.append(moved)
    noisy = len(shifts)
    for i in range(len(plan.measures)):
        for by in missing(plan, i):
            shifts.append([sums[i] + by if place == i else each for place, each in enumerate(sums)])
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
    if any(name in names for each in plan.choices for name in each.choice.names):
        return ColumnEstimate(numeric[0], nothing, nothing)
    moves = (numeric[2:noisy:2] - numeric[3:noisy:2]) / 2
    half = deviations_at_level(plan.noise, level) * np.sqrt((moves**2).sum(axis=0))
    # both the clamped and the raw result: clamping parts of an expression may move the whole away from the truth
    low, high = np.fmin(*numeric[:2]) - half, np.fmax(*numeric[:2]) + half
    moved = numeric[noisy:] - numeric[1]
    low, high = low + np.fmin(moved, 0).sum(axis=0), high + np.fmax(moved, 0).sum(axis=0)
    boundless = ~np.isfinite(moved).all(axis=0)
    low, high = np.where(boundless, -np.inf, low), np.where(boundless, np.inf, high)
    used = [plan.formulas[name] for name in names if name in plan.formulas]
    if not linear(expr) or not all(each.linear for each in used):
        unsure = np.any([~_steady(plan, each, sums, level) for each in used], axis=0)
        low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    open_ended = np.isnan(half) | np.isnan(numeric[1])
    least, most = _possible(plan, expr)
    low, high = np.where(open_ended, -np.inf, low), np.where(open_ended, np.inf, high)
    return ColumnEstimate(numeric[0], np.clip(low, least, most), np.clip(high, least, most), half=half)


def _possible(plan: Plan, expr: Expr) -> tuple[float, float]:
    """Return the range of an expression over results, from those of its aggregates (at most ±2⁶¹ steps)."""

    def ranged(part: Expr) -> Expr:
        if isinstance(part, FunctionCall):
            return replace(part, args=tuple(map(ranged, part.args)))
        if not isinstance(part, Col) or part.name not in plan.formulas:
            return part
        formula = plan.formulas[part.name]
        low, high = formula.range(found=finds_values(plan, formula))
        least = -_LARGEST if np.isinf(low) else Fraction(low)
        most = _LARGEST if np.isinf(high) else Fraction(high)
        return replace(part, facts=Facts(Bounds(least, most)))

    within = result_range(ranged(expr))
    return -np.inf if within.low is None else float(within.low), np.inf if within.high is None else float(within.high)


def _steady(plan: Plan, formula: Formula, sums: Sequence[Floats], level: Fraction) -> NDArray[np.bool_]:
    """Return where an expression over a result is nearly linear in its noise: also away from the kink of its image."""
    places, needed = [plan.place(measure) for measure in formula.measures], _surely(plan, level)
    inputs, deviations = [sums[place] for place in places], [_deviation(plan, place, level) for place in places]
    sure = _sure(formula, inputs, deviations, needed)
    if formula.count is not None:
        sure &= inputs[formula.count] >= needed * deviations[formula.count]
    if formula.core is not None:
        steady = _counted(formula, inputs)
        with np.errstate(all="ignore"):
            sure &= np.abs(formula.core(steady)) >= needed * spread(formula.core, steady, deviations)
    return sure


def mentioned(expr: Expr) -> set[str]:
    """Return the names that an expression reads."""
    if isinstance(expr, Col):
        return {expr.name}
    return set().union(*(mentioned(each) for each in expr.args)) if isinstance(expr, FunctionCall) else set()
