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
from hubbub.sql.allot import counted, factor, width
from hubbub.sql.expressions import Call, Col, Expr
from hubbub.sql.noised import SLIP, Chosen, half_width
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
    deviations = [plan.measures[place].deviation for place in places]
    steady = _counted(formula, own)
    if formula.linear and len(places) == 1:
        half = np.full_like(own[0], width(formula, plan.measures[places[0]]))
    else:
        half = factor(plan.noise) * spread(formula, steady, deviations)
    with np.errstate(all="ignore"):
        middle = formula.value(steady)
        low, high = middle - half, middle + half
    if not formula.linear and formula.count is not None:
        # the estimate is nearly linear in the noise only where the count is well above its noise
        unsure = ~(own[formula.count] >= SURE * deviations[formula.count])
        low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    least = -np.inf if formula.low is None else formula.low
    most = np.inf if formula.high is None else formula.high
    return Estimate(_value(formula, own, raw=raw), np.clip(low, least, most), np.clip(high, least, most))


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
    *,
    raw: bool,
) -> Estimate:
    """Compute an expression over the answers, and its interval from what each measure's noise does to it."""
    shifts: list[list[Floats]] = [list(sums)]
    for i, noised in enumerate(plan.measures):
        for sign in (1.0, -1.0):
            moved = list(sums)
            moved[i] = sums[i] + sign * noised.deviation
            shifts.append(moved)
    stacked = {name: (np.tile(column, len(shifts)), kind) for name, (column, kind) in keys.typed.items()}
    for name, each in estimates.items():
        parts = [each.value] * len(shifts)
        if name in plan.formulas:
            formula = plan.formulas[name]
            places = [plan.place(measure) for measure in formula.measures]
            parts[1:] = [_value(formula, [shift[place] for place in places], raw=raw) for shift in shifts[1:]]
        stacked[name] = (np.concatenate(parts), each.kind)
    (found,) = answers.evaluate(stacked, [expr])
    size, nothing = keys.size, np.full(keys.size, np.nan)
    if expr.kind not in (Kind.INTEGER, Kind.REAL):
        return Estimate(found[:size], nothing, nothing)
    numeric = np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan).reshape(len(shifts), size)
    names = mentioned(expr)
    if any(each.choice.name in names for each in plan.choices):
        return Estimate(numeric[0], nothing, nothing)
    half = factor(plan.noise) * np.sqrt((((numeric[1::2] - numeric[2::2]) / 2) ** 2).sum(axis=0))
    low, high = numeric[0] - half, numeric[0] + half
    if not linear(expr) or any(not plan.formulas[name].linear for name in names if name in plan.formulas):
        # as for a single answer: what is divided by a count is near to linear only where the count is sure
        for used in (plan.formulas[name] for name in names if name in plan.formulas):
            if used.count is not None:
                place = plan.place(used.measures[used.count])
                unsure = ~(sums[place] >= SURE * plan.measures[place].deviation)
                low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    return Estimate(numeric[0], np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


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
