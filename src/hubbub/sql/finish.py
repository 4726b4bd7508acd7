"""From the engine's integers to the answer: noise on every cell, estimates, intervals, and what was asked of them.

Noise and selections are the only steps that touch the data; all after them is post-processing and costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.noise.source import Source
from hubbub.sql import answers, discover
from hubbub.sql.aggregates.formula import Floats, Formula, spread
from hubbub.sql.aggregates.order import Extreme, Target
from hubbub.sql.expressions import Call, Col, Expr
from hubbub.sql.keys import Found, domains_of
from hubbub.sql.noised import SLIP, Chosen, half_width
from hubbub.sql.plan import Plan, counted, factor, width

Tables = Mapping[str, Mapping[str, NDArray[Any]]]
Integers = NDArray[np.int64]

#: How many standard deviations of its noise a count must be for what is divided by it to have a narrow interval.
SURE = 4.0


@dataclass(frozen=True)
class Answer:
    """What the analyst gets: columns in order, each with the ends of its 95 % interval (NaN: it has none).

    ratio   for each row, the privacy noise against the sampling error of a count: its ± beside 1.96·√n, n being the
            noisy count; NaN where nothing was counted. Below 1 the noise is the smaller of the two.
    """

    columns: tuple[str, ...]
    values: tuple[NDArray[Any], ...]
    low: tuple[Floats, ...]
    high: tuple[Floats, ...]
    ratio: Floats

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The values, row by row."""
        return list(zip(*(column.tolist() for column in self.values), strict=True))

    @property
    def intervals(self) -> list[tuple[tuple[float, float], ...]]:
        """The intervals, row by row."""
        pairs = [zip(low.tolist(), high.tolist(), strict=True) for low, high in zip(self.low, self.high, strict=True)]
        return list(zip(*pairs, strict=True))


@dataclass(frozen=True)
class Estimate:
    """One column over all cells, with its interval and the values it is shown as."""

    value: NDArray[Any]
    low: Floats
    high: Floats
    kind: Kind = Kind.REAL


def exact(plan: Plan, tables: Tables) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """Scatter what the engine gave over all cells, before noise: measures (cell), histograms (cell, bucket)."""
    offsets = np.cumsum([0, *(each.size for each in plan.cells)])
    # the count behind a top-k is no measure: nothing is added to it
    count = max(len(plan.measures), 1 if plan.top is not None else 0)
    measures = [np.zeros(plan.size, dtype=np.int64) for _ in range(count)]
    histograms = [np.zeros((plan.size, each.count), dtype=np.int64) for each in plan.histograms]
    for statement in plan.statements:
        table = tables[statement.name]
        at = np.asarray(table["cell"], dtype=np.int64) + offsets[statement.place]
        for column, target in enumerate(statement.targets):
            found = np.asarray(table[f"m{column}"], dtype=np.int64)
            if statement.fills == "measures":
                np.add.at(measures[target], at, found)
            else:
                np.add.at(histograms[target], (at, np.asarray(table["bucket"], dtype=np.int64)), found)
    for target, histogram in plan.derived.items():
        measures[target] = histograms[histogram].sum(axis=1)
    return tuple(measures), tuple(histograms)


@dataclass(frozen=True)
class Keys:
    """The keys of every cell that is answered: as they are shown, and as expressions over answers see them."""

    size: int
    shown: Mapping[str, NDArray[Any]]
    typed: answers.Columns


def declared(plan: Plan) -> Keys:
    """Give the keys of all declared cells."""
    shown, typed = {}, {}
    for i, domain in enumerate(domains_of(plan.query)):
        codes = np.concatenate([each.codes(i) for each in plan.cells])
        shown[domain.key.name] = domain.shown[codes]
        typed[domain.key.name] = (domain.typed[codes], domain.kind)
    return Keys(plan.size, shown, typed)


def finish(plan: Plan, tables: Tables, source: Source, *, raw: bool = False) -> Answer:
    """Add the noise, make the choices and the answer; `raw` leaves estimates as they fall, outside their range."""
    if plan.top is not None:
        return _best(plan, plan.top.sample(exact(plan, tables)[0][0], source))
    if plan.threshold is not None:
        (found,) = plan.groups
        if not isinstance(found, Found):
            raise AssertionError("groups are discovered where none are declared")
        columns, noisy = discover.sample(found, plan.threshold, plan.measures, tables["sums0"], source)
        named = {key.name: column for key, column in zip(found.keys, columns, strict=True)}
        typed = {key.name: (named[key.name], key.expr.kind) for key in found.keys}
        return present(plan, Keys(len(noisy[0]), named, typed), noisy, [], raw=raw)
    measures, histograms = exact(plan, tables)
    noisy = [noised.mechanism.sample(vector, source) for noised, vector in zip(plan.measures, measures, strict=True)]
    picked = [
        [
            np.array([pick.mechanism.sample(scores, source) for scores in pick.aim.scores(histograms[each.histogram])])
            for pick in each.picks
        ]
        for each in plan.choices
    ]
    return present(plan, declared(plan), noisy, picked, raw=raw)


def _best(plan: Plan, positions: Integers) -> Answer:
    """Show the chosen keys, the best first."""
    shown = declared(plan).shown
    nothing = tuple(np.full(len(positions), np.nan) for _ in plan.query.select)
    values = tuple(shown[expr.name][positions] for _, expr in plan.query.select if isinstance(expr, Col))
    return Answer(tuple(name for name, _ in plan.query.select), values, nothing, nothing, nothing[0])


def present(
    plan: Plan, keys: Keys, noisy: Sequence[Integers], picked: Sequence[Sequence[Integers]], *, raw: bool
) -> Answer:
    """Make the answer from the noisy integers and the choices alone."""
    sums = [each.astype(np.float64) for each in noisy]
    estimates = {name: _estimate(plan, formula, sums, raw=raw) for name, formula in plan.formulas.items()}
    estimates |= {
        each.choice.name: _choice(plan, each, positions, sums)
        for each, positions in zip(plan.choices, picked, strict=True)
    }
    shown = _arranged(plan, keys, estimates)
    columns: list[Estimate] = []
    for _, expr in plan.query.select:
        nothing = np.full(keys.size, np.nan)
        if isinstance(expr, Col) and expr.name in keys.shown:
            columns.append(Estimate(keys.shown[expr.name], nothing, nothing))
        elif isinstance(expr, Col):
            each = estimates[expr.name]
            whole = expr.name in plan.formulas and plan.formulas[expr.name].integer and not raw
            columns.append(Estimate(each.value.astype(np.int64), each.low, each.high) if whole else each)
        else:
            columns.append(_expression(plan, expr, keys, estimates, sums, raw=raw))
    return Answer(
        tuple(name for name, _ in plan.query.select),
        tuple(each.value[shown] for each in columns),
        tuple(each.low[shown] for each in columns),
        tuple(each.high[shown] for each in columns),
        _ratio(plan, keys.size, sums)[shown],
    )


def _estimate(plan: Plan, formula: Formula, sums: Sequence[Floats], *, raw: bool) -> Estimate:
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


def _choice(plan: Plan, each: Chosen, positions: Sequence[Integers], sums: Sequence[Floats]) -> Estimate:
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


def _expression(
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


def _arranged(plan: Plan, keys: Keys, estimates: Mapping[str, Estimate]) -> NDArray[np.int64]:
    query = plan.query
    if query.having is None and not query.order:
        rows = np.arange(keys.size)
        return rows if query.limit is None else rows[: query.limit]
    table = {**keys.typed, **{name: (each.value, each.kind) for name, each in estimates.items()}}
    return answers.arrange(table, query.having, query.order, query.limit)


def _ratio(plan: Plan, size: int, sums: Sequence[Floats]) -> Floats:
    """Compare the ± of the first count with 1.96·√n, the sampling error of a count of that size."""
    counts = [formula.measures[formula.count] for formula in plan.formulas.values() if formula.count is not None]
    counts += [counted(each.choice) for each in plan.choices]
    if not counts:
        return np.full(size, np.nan)
    place = plan.place(counts[0])
    half = factor(plan.noise) * plan.measures[place].deviation
    return half / (1.96 * np.sqrt(np.maximum(sums[place], 1.0)))
