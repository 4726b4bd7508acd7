"""From the engine's integers to the answer: noise on every cell, estimates, intervals, and what was asked of them.

The noise is the only step that touches the data; all after it is post-processing and costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.noise.source import Source
from hubbub.sql import answers
from hubbub.sql.aggregates.formula import Floats, Formula, spread
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.keys import domains_of
from hubbub.sql.plan import Plan, factor, width

Tables = Mapping[str, Mapping[str, NDArray[Any]]]
Integers = NDArray[np.int64]


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


def vectors(plan: Plan, tables: Tables) -> tuple[Integers, ...]:
    """Scatter what the engine gave over all declared cells: one vector for each measure, before noise."""
    found = []
    for i in range(len(plan.measures)):
        parts = []
        for statement in plan.statements:
            table = tables[statement.name]
            dense = np.zeros(statement.cells, dtype=np.int64)
            np.add.at(dense, np.asarray(table["cell"], dtype=np.int64), np.asarray(table[f"m{i}"], dtype=np.int64))
            parts.append(dense)
        found.append(np.concatenate(parts))
    return tuple(found)


def finish(plan: Plan, tables: Tables, source: Source, *, raw: bool = False) -> Answer:
    """Add the noise and make the answer; `raw` leaves estimates as they fall, unrounded and outside their range."""
    noisy = [
        noised.mechanism.sample(vector, source)
        for noised, vector in zip(plan.measures, vectors(plan, tables), strict=True)
    ]
    return present(plan, noisy, raw=raw)


def present(plan: Plan, noisy: Sequence[Integers], *, raw: bool) -> Answer:
    """Make the answer from the noisy integers alone."""
    sums = [each.astype(np.float64) for each in noisy]
    estimates = {name: _estimate(plan, name, sums, raw=raw) for name in plan.formulas}
    keys, typed = {}, {}
    for i, domain in enumerate(domains_of(plan.query)):
        codes = np.concatenate([each.codes(i) for each in plan.cells])
        keys[domain.key.name] = domain.shown[codes]
        typed[domain.key.name] = domain.typed[codes]
    shown = _arranged(plan, {**typed, **{name: value for name, (value, _, _) in estimates.items()}})
    columns, values, lows, highs = [], [], [], []
    for output, expr in plan.query.select:
        columns.append(output)
        nothing = np.full(len(shown), np.nan)
        if isinstance(expr, Col) and expr.name in keys:
            values.append(keys[expr.name][shown])
            lows.append(nothing)
            highs.append(nothing)
        elif isinstance(expr, Col):
            value, low, high = estimates[expr.name]
            whole = plan.formulas[expr.name].integer and not raw
            values.append((value.astype(np.int64) if whole else value)[shown])
            lows.append(low[shown])
            highs.append(high[shown])
        else:
            value, low, high = _expression(plan, expr, typed, estimates, sums, raw=raw)
            values.append(value[shown])
            lows.append(low[shown])
            highs.append(high[shown])
    return Answer(tuple(columns), tuple(values), tuple(lows), tuple(highs), _ratio(plan, sums)[shown])


def _estimate(plan: Plan, name: str, sums: Sequence[Floats], *, raw: bool) -> tuple[Floats, Floats, Floats]:
    formula = plan.formulas[name]
    places = plan.places(name)
    own = [sums[place] for place in places]
    deviations = [plan.measures[place].deviation for place in places]
    value = _value(formula, own, raw=raw)
    if formula.linear and len(places) == 1:
        half = np.full_like(value, width(formula, plan.measures[places[0]]))
    else:
        half = factor(plan.noise) * spread(formula, _counted(formula, own), deviations)
    with np.errstate(all="ignore"):
        low, high = formula.value(_counted(formula, own)) - half, formula.value(_counted(formula, own)) + half
    if not formula.linear and formula.count is not None:
        # the estimate is nearly linear in the noise only where the count is well above its noise
        unsure = ~(own[formula.count] >= 4 * deviations[formula.count])
        low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    least = -np.inf if formula.low is None else formula.low
    most = np.inf if formula.high is None else formula.high
    return value, np.clip(low, least, most), np.clip(high, least, most)


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
    value = np.clip(value, formula.low, formula.high) if (formula.low, formula.high) != (None, None) else value
    return np.rint(value) if formula.integer else value


def _expression(
    plan: Plan,
    expr: Expr,
    keys: Mapping[str, NDArray[Any]],
    estimates: Mapping[str, tuple[Floats, Floats, Floats]],
    sums: Sequence[Floats],
    *,
    raw: bool,
) -> tuple[NDArray[Any], Floats, Floats]:
    """Compute an expression over the answers, and its interval from what each measure's noise does to it."""
    shifts: list[list[Floats]] = [list(sums)]
    for i, noised in enumerate(plan.measures):
        for sign in (1.0, -1.0):
            moved = list(sums)
            moved[i] = sums[i] + sign * noised.deviation
            shifts.append(moved)
    stacked: dict[str, NDArray[Any]] = {name: np.concatenate([column] * len(shifts)) for name, column in keys.items()}
    for name, formula in plan.formulas.items():
        places = plan.places(name)
        parts = [estimates[name][0]]
        parts += [_value(formula, [each[place] for place in places], raw=raw) for each in shifts[1:]]
        stacked[name] = np.concatenate(parts)
    (found,) = answers.evaluate(stacked, [expr])
    size = plan.size
    value = found[:size]
    nothing = np.full(size, np.nan)
    if expr.kind not in (Kind.INTEGER, Kind.REAL):
        return value, nothing, nothing
    numeric = np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan).reshape(len(shifts), size)
    differences = (numeric[1::2] - numeric[2::2]) / 2
    half = factor(plan.noise) * np.sqrt((differences**2).sum(axis=0))
    return numeric[0], numeric[0] - half, numeric[0] + half


def _arranged(plan: Plan, table: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    query = plan.query
    if query.having is None and not query.order:
        rows = np.arange(plan.size)
        return rows if query.limit is None else rows[: query.limit]
    return answers.arrange(table, query.having, query.order, query.limit)


def _ratio(plan: Plan, sums: Sequence[Floats]) -> Floats:
    """Compare the ± of the first count with 1.96·√n, the sampling error of a count of that size."""
    for name, formula in plan.formulas.items():
        if formula.count is not None:
            place = plan.places(name)[formula.count]
            half = factor(plan.noise) * plan.measures[place].deviation
            return half / (1.96 * np.sqrt(np.maximum(sums[place], 1.0)))
    return np.full(plan.size, np.nan)
