"""Compute the result of a query from its noisy integers: columns with intervals, sampling errors and joint intervals.

Everything here is post-processing. Tested in tests/sql/test_finish.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.sql import postprocess
from hubbub.sql.aggregates.formula import Floats
from hubbub.sql.allocation import LEVEL
from hubbub.sql.disclosure import as_shown, disclosed, rounds_counts_of, without_noise
from hubbub.sql.estimates import (
    CellKeys,
    ColumnEstimate,
    Integers,
    choice,
    estimate,
    expression,
    mentioned,
    unclamped,
)
from hubbub.sql.expected import joint_level
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.left_out_margin import missing
from hubbub.sql.noise import half_width, half_width_in_sums
from hubbub.sql.plan import Plan, joint_refusal
from hubbub.sql.sampling import SamplingError, sampling_error


@dataclass(frozen=True)
class Answer:
    """The result of a query: columns in order, each with the ends of its 95% interval (NaN if it has none).

    ratio     for each row, the ± of the privacy noise divided by that of the sampling error, the largest over its
              columns; NaN if no sampling error is known. Below 1 the privacy noise is smaller than the sampling error.
    sampling  the sampling error of each column, where what is released determines or bounds it
    joint     the ends of intervals that hold for all cells of all columns at once with 95%, where they are computed
    noise     of counts and sums with noise of their own, before clamping: the values, and the ± of the noise
    sums      the noisy integers of all cells that it was computed from, one vector for each measure
    kept      the columns that have intervals, where a rule of the owner may have removed them from all rows
    """

    columns: tuple[str, ...]
    values: tuple[NDArray[Any], ...]
    low: tuple[Floats, ...]
    high: tuple[Floats, ...]
    ratio: Floats
    sampling: tuple[SamplingError | None, ...] = ()
    joint: tuple[tuple[Floats, Floats], ...] = ()
    noise: tuple[tuple[Floats, Floats] | None, ...] = ()
    sums: tuple[Integers, ...] = ()
    kept: frozenset[int] = frozenset()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The values, row by row."""
        return list(zip(*(column.tolist() for column in self.values), strict=True))

    @property
    def intervals(self) -> list[tuple[tuple[float, float], ...]]:
        """The intervals, row by row."""
        pairs = [zip(low.tolist(), high.tolist(), strict=True) for low, high in zip(self.low, self.high, strict=True)]
        return list(zip(*pairs, strict=True))


def present(
    plan: Plan, keys: CellKeys, noisy: Sequence[Integers], selected: Sequence[Integers], *, raw: bool
) -> Answer:
    """Compute the result from the noisy integers and the selections alone."""
    sums = [each.astype(np.float64) for each in noisy]
    estimates = {name: estimate(plan, formula, sums, raw=raw) for name, formula in plan.formulas.items()}
    for selections, outcomes in zip(plan.choices, selected, strict=True):
        estimates |= choice(plan, selections, outcomes)
    errors = {name: sampling_error(plan, name, sums) for name in plan.formulas}
    seen = as_shown(plan, estimates, sums)
    shown = _arrange(plan, keys, seen, sums)
    columns = _columns(plan, keys, estimates, seen, sums, raw=raw)
    level = _joint_level(plan)
    joint: list[ColumnEstimate] = []
    if level is not None and level > LEVEL:
        wider = {name: estimate(plan, formula, sums, raw=raw, level=level) for name, formula in plan.formulas.items()}
        joint = _columns(plan, keys, wider, seen, sums, raw=raw, level=level)
    sampling = [_sampling(expr, keys, estimates, errors) for _, expr in plan.query.select]
    answer = Answer(
        tuple(name for name, _ in plan.query.select),
        tuple(_dated(expr, each.value[shown]) for (_, expr), each in zip(plan.query.select, columns, strict=True)),
        tuple(each.low[shown] for each in columns),
        tuple(each.high[shown] for each in columns),
        _ratio(columns, sampling, keys.size)[shown],
        tuple(None if each is None else SamplingError(each.half[shown], each.at_most) for each in sampling),
        tuple((each.low[shown], each.high[shown]) for each in joint),
        () if plan.query.after is None else _noise(plan, sums, estimates, shown),
    )
    return disclosed(plan, answer, sums, shown)


def _dated(expr: Expr, values: NDArray[Any]) -> NDArray[Any]:
    """Return dates without a time of day: they are computed as timestamps, of which every date is one."""
    return values.astype("datetime64[D]") if expr.kind is Kind.DATE and values.dtype.kind == "M" else values


def _noise(
    plan: Plan, sums: Sequence[Floats], estimates: Mapping[str, ColumnEstimate], shown: NDArray[np.int64]
) -> tuple[tuple[Floats, Floats] | None, ...]:
    """Return the unclamped values and the ± of each output with symmetric noise that no other output shares."""
    found: list[tuple[Floats, Floats] | None] = []
    used = set[int]()
    for _, expr in plan.query.select:
        formula = plan.formulas.get(expr.name) if isinstance(expr, Col) else None
        places = [] if formula is None else [plan.place(measure) for measure in formula.measures]
        plain = formula is not None and formula.linear and len(places) == 1 and plan.threshold is None
        if formula is None or not plain or places[0] in used or any(missing(plan, places[0])):
            found.append(None)
            continue
        each = estimates[expr.name] if isinstance(expr, Col) else None
        if each is None or each.half is None or plan.measures[places[0]].event is None:
            found.append(None)
            continue
        used.add(places[0])
        steps = unclamped(formula, [np.ones(1)]) - unclamped(formula, [np.zeros(1)])
        margin = float(abs(steps[0])) * half_width_in_sums(plan.measures[places[0]].mechanism, LEVEL)
        found.append((unclamped(formula, [sums[places[0]]])[shown], np.maximum(each.half, margin)[shown]))
    return tuple(found)


def _columns(
    plan: Plan,
    keys: CellKeys,
    estimates: Mapping[str, ColumnEstimate],
    seen: Mapping[str, ColumnEstimate],
    sums: Sequence[Floats],
    *,
    raw: bool,
    level: Fraction = LEVEL,
) -> list[ColumnEstimate]:
    """Compute every output column, with intervals at a level."""
    columns: list[ColumnEstimate] = []
    for _, expr in plan.query.select:
        nothing = np.full(keys.size, np.nan)
        if isinstance(expr, Col) and expr.name in keys.shown:
            columns.append(ColumnEstimate(keys.shown[expr.name], nothing, nothing))
        elif isinstance(expr, Col):
            each = estimates[expr.name]
            whole = expr.name in plan.formulas and plan.formulas[expr.name].integer and not raw
            columns.append(replace(each, value=each.value.astype(np.int64)) if whole else each)
        elif rounds_counts_of(plan, expr):
            columns.append(
                replace(expression(plan, expr, keys, seen, sums, level), low=nothing, high=nothing, half=None)
            )
        else:
            columns.append(expression(plan, expr, keys, estimates, sums, level))
        if without_noise(plan, expr):
            columns[-1] = replace(columns[-1], low=nothing, high=nothing, half=None)
    return columns


def _sampling(
    expr: Expr,
    keys: CellKeys,
    estimates: Mapping[str, ColumnEstimate],
    errors: Mapping[str, SamplingError | None],
) -> SamplingError | None:
    """Return the sampling error of an output: of one aggregate, or of an expression over one aggregate."""
    if isinstance(expr, Col):
        return errors.get(expr.name)
    inside = [name for name in estimates if name in mentioned(expr)]
    error = errors.get(inside[0]) if len(inside) == 1 else None
    if error is None or expr.kind not in (Kind.INTEGER, Kind.REAL):
        return None
    value = estimates[inside[0]].value
    table = {name: (np.tile(column, 2), kind) for name, (column, kind) in keys.typed.items()}
    table[inside[0]] = (np.concatenate([value + error.half, value - error.half]), Kind.REAL)
    (ends,) = postprocess.evaluate(table, [expr])
    up, down = np.ma.filled(np.ma.asarray(ends, dtype=np.float64), np.nan).reshape(2, -1)
    half = np.abs(up - down) / 2
    return SamplingError(np.where(half > 0, half, np.nan), error.at_most)


def _arrange(
    plan: Plan, keys: CellKeys, estimates: Mapping[str, ColumnEstimate], sums: Sequence[Floats]
) -> NDArray[np.int64]:
    query = plan.query
    if query.having is None and not query.order:
        rows = np.arange(keys.size)
    else:
        table = {**keys.typed, **{name: (each.value, each.kind) for name, each in estimates.items()}}
        rows = postprocess.arrange(table, query.having, query.order)
    if query.limit is None or query.limit >= keys.size:  # there is nothing to choose: tools add a LIMIT to every query
        return rows
    return _limited(plan, rows, sums)[: query.limit]


def _limited(plan: Plan, rows: NDArray[np.int64], sums: Sequence[Floats]) -> NDArray[np.int64]:
    """Leave out groups that may be empty, because LIMIT asks for groups that exist; keep all if all may be empty.

    A declared group is there even without rows. It surely has rows if a count of them exceeds its margin of error.
    """
    counts = {plan.place(f.measures[f.count]) for f in plan.formulas.values() if f.count is not None}
    if not plan.query.keys or not counts or plan.threshold is not None:
        return rows
    margins = {place: half_width(plan.measures[place].mechanism, LEVEL) for place in counts}
    surely = np.any([sums[place] > margin for place, margin in margins.items()], axis=0)[rows]
    return rows[surely] if surely.any() else rows


def _ratio(columns: Sequence[ColumnEstimate], sampling: Sequence[SamplingError | None], size: int) -> Floats:
    """Return the largest ratio of the ± of the noise to that of the sampling error among the columns of each row."""
    ratio = np.full(size, np.nan)
    for column, error in zip(columns, sampling, strict=True):
        if column.half is not None and error is not None:
            ratio = np.fmax(ratio, column.half / error.half)
    return ratio


def _joint_level(plan: Plan) -> Fraction | None:
    """Return the level at which all intervals of an answer hold at once with 95%; None where there is none."""
    return joint_level(plan.query, plan.formulas, plan.size) if joint_refusal(plan) is None else None
