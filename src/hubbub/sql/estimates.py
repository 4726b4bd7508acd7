"""One column of an answer from noisy integers: its value in every cell, and the ends of its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.sql import answers
from hubbub.sql.aggregates.formula import Floats, Formula, spread
from hubbub.sql.aggregates.order import Extreme, Target
from hubbub.sql.allocation import LEVEL, counted, factor, width
from hubbub.sql.expressions import Call, Col, Expr
from hubbub.sql.noise import SLIP, Chosen, half_width
from hubbub.sql.plan import Plan

Integers = NDArray[np.int64]

#: How many standard deviations of its noise a count must be for what is divided by it to have a narrow interval.
SURE = 4.0


@dataclass(frozen=True)
class Estimate:
    """One column over all cells, with its interval and the values it is shown as."""

    value: NDArray[Any]
    low: Floats
    high: Floats
    kind: Kind = Kind.REAL


@dataclass(frozen=True)
class Keys:
    """The keys of every cell that is answered: as they are shown, and as expressions over answers see them."""

    size: int
    shown: Mapping[str, NDArray[Any]]
    typed: answers.Columns


def estimate(plan: Plan, formula: Formula, sums: Sequence[Floats], *, raw: bool) -> Estimate:
    """Make one answer of noisy sums, with its interval."""
    places = [plan.place(measure) for measure in formula.measures]
    own = [sums[place] for place in places]
    deviations = [_deviation(plan, place) for place in places]
    steady = _counted(formula, own)
    core = formula.core or formula.value
    if formula.linear and len(places) == 1:
        half = np.full_like(own[0], width(formula, plan.measures[places[0]]))
    else:
        half = factor(plan.noise) * spread(core, steady, deviations)
    with np.errstate(all="ignore"):
        middle = core(steady)
        low, high = middle - half, middle + half
    unsure = ~_sure(formula, own, deviations)
    low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    if formula.image is not None:
        low, high = formula.image(low, high)
    least = -np.inf if formula.low is None else formula.low
    most = np.inf if formula.high is None else formula.high
    return Estimate(_value(formula, own, raw=raw), np.clip(low, least, most), np.clip(high, least, most))


def _deviation(plan: Plan, place: int) -> float:
    """Give a measure's deviation, or more where its noise takes so few whole steps that the level takes one more."""
    noised = plan.measures[place]
    return max(noised.deviation, half_width(noised.mechanism, LEVEL) / factor(plan.noise))


def _sure(formula: Formula, own: Sequence[Floats], deviations: Sequence[float]) -> NDArray[np.bool_]:
    """Say where the estimate is nearly linear in the noise: where all that is divided by is well above its own noise.

    Elsewhere its interval is all that the bounds allow.
    """
    sure = np.full(own[0].shape, fill_value=True)
    if formula.linear:
        return sure
    if formula.count is not None:
        sure &= own[formula.count] >= SURE * deviations[formula.count]
    steady = _counted(formula, own)
    for each in formula.sure:
        with np.errstate(all="ignore"):
            sure &= each(steady) >= SURE * spread(each, steady, deviations)
    return sure


def _counted(formula: Formula, own: Sequence[Floats]) -> list[Floats]:
    """Take a count of less than one row for one, where something is divided by it."""
    if formula.linear or formula.count is None:
        return list(own)
    return [np.maximum(each, 1.0) if i == formula.count else each for i, each in enumerate(own)]


def _value(formula: Formula, own: Sequence[Floats], *, raw: bool) -> Floats:
    with np.errstate(all="ignore"):
        value = formula.value(_counted(formula, own))
    if raw:
        return value
    if formula.low is not None or formula.high is not None:
        value = np.clip(value, formula.low, formula.high)
    return np.rint(value) if formula.integer else value


def choice(plan: Plan, each: Chosen, positions: Sequence[Integers], sums: Sequence[Floats]) -> Estimate:
    """Show the chosen candidates; an interval holds where the rows are surely more than a selection can miss by."""
    candidates = each.choice.candidates
    shown = candidates.shown()
    value = shown[positions[0]]
    nothing = np.full(len(value), np.nan)
    aim = each.picks[0].aim
    if not isinstance(aim, Target | Extreme):
        return Estimate(value, nothing, nothing, candidates.expr.kind)
    noised = plan.measures[plan.place(counted(each.choice))]
    fewest = sums[plan.place(noised.measure)] - half_width(noised.mechanism, 1 - SLIP)
    half = float(candidates.step) / 2
    first, last = float(shown[0]) - half, float(shown[-1]) + half
    low, high = np.full(len(value), first), np.full(len(value), last)
    if isinstance(aim, Extreme):
        sure = fewest >= aim.depth
        if aim.largest:
            low = np.where(sure, value - half, first)
        else:
            high = np.where(sure, value + half, last)
    elif len(positions) == 3:
        below, above = each.picks[1].aim, each.picks[2].aim
        if not (isinstance(below, Target) and isinstance(above, Target)):
            raise AssertionError("the ends of a quantile are quantiles")
        low = np.where(fewest * float(aim.level) >= -below.shift, shown[positions[1]] - half, first)
        high = np.where(fewest * float(1 - aim.level) >= above.shift, shown[positions[2]] + half, last)
    return Estimate(value, low, high)


def expression(
    plan: Plan,
    expr: Expr,
    keys: Keys,
    estimates: Mapping[str, Estimate],
    sums: Sequence[Floats],
) -> Estimate:
    """Compute an expression over the answers, and its interval from what each measure's noise does to it."""
    # first as it is shown, then as it fell, then with each measure moved by a deviation: a bend at zero, or a rounding,
    # would hide what the noise does
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
    (found,) = answers.evaluate(stacked, [expr])
    size, nothing = keys.size, np.full(keys.size, np.nan)
    if expr.kind not in (Kind.INTEGER, Kind.REAL):
        return Estimate(found[:size], nothing, nothing)
    numeric = np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan).reshape(len(shifts), size)
    names = mentioned(expr)
    if any(each.choice.name in names for each in plan.choices):
        return Estimate(numeric[0], nothing, nothing)
    half = factor(plan.noise) * np.sqrt((((numeric[2::2] - numeric[3::2]) / 2) ** 2).sum(axis=0))
    low, high = np.fmin(numeric[1] - half, numeric[0]), np.fmax(numeric[1] + half, numeric[0])
    used = [plan.formulas[name] for name in names if name in plan.formulas]
    if not linear(expr) or not all(each.linear for each in used):
        unsure = np.any([~_steady(plan, each, sums) for each in used], axis=0)
        low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    open_ended = np.isnan(half) | np.isnan(numeric[1])
    return Estimate(numeric[0], np.where(open_ended, -np.inf, low), np.where(open_ended, np.inf, high))


def _steady(plan: Plan, formula: Formula, sums: Sequence[Floats]) -> NDArray[np.bool_]:
    """Say where what is made of an answer is nearly linear in its noise: as for itself, and far from its bend."""
    places = [plan.place(measure) for measure in formula.measures]
    own, deviations = [sums[place] for place in places], [_deviation(plan, place) for place in places]
    sure = _sure(formula, own, deviations)
    if formula.count is not None:
        sure &= own[formula.count] >= SURE * deviations[formula.count]
    if formula.core is not None:
        steady = _counted(formula, own)
        with np.errstate(all="ignore"):
            sure &= np.abs(formula.core(steady)) >= SURE * spread(formula.core, steady, deviations)
    return sure


def mentioned(expr: Expr) -> set[str]:
    """Give the names that an expression reads."""
    if isinstance(expr, Col):
        return {expr.name}
    return set().union(*(mentioned(each) for each in expr.args)) if isinstance(expr, Call) else set()


def linear(expr: Expr) -> bool:
    """Say whether an expression is a weighted sum of what it reads."""
    if not isinstance(expr, Call):
        return True
    if expr.function in ("add", "sub", "neg"):
        return all(linear(each) for each in expr.args)
    constant = [not mentioned(each) for each in expr.args]
    if expr.function == "mul":
        return any(constant) and all(linear(each) for each in expr.args)
    return expr.function == "div" and constant[1] and linear(expr.args[0])
