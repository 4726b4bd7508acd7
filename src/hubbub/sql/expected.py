"""Predict the error of each output column of a query, before the data is read.

Tested in tests/sql/test_expected.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hubbub.answers.estimate import TYPICAL_ROWS, Expected
from hubbub.core.schema import Kind
from hubbub.sql import postprocess
from hubbub.sql.aggregates.formula import Floats, Formula, secant
from hubbub.sql.allocation import LEVEL, Allocation, deviations_at_level, typical
from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.keys import Cells, Groups, domains_of
from hubbub.sql.noise import Noise, NoisyMeasure, half_width
from hubbub.sql.prune import names
from hubbub.sql.query import Query

_NUMERIC = (Kind.INTEGER, Kind.REAL)
#: Number of cells for which an expression over keys is evaluated.
_MAX_CELLS = 1000
#: Slopes are measured with steps of this many deviations: wider ones could leave the domain of a root.
_STEP = 1e-4
#: Functions that round, and functions of integers that do not.
_STEPPED = frozenset({"round", "floor", "ceil", "trunc", "sign", "intdiv", "mod"})
_EXACT = frozenset({"add", "sub", "mul", "neg", "abs", "case", "coalesce", "least", "greatest", "nullif", "if"})


def joint_level(query: Query, formulas: Mapping[str, Formula], cells: int) -> Fraction:
    """Return the level of each interval at which all intervals of an answer hold at once with 95%: 1 − 5%/K.

    Theorem (Joint intervals). Let an answer have K intervals, each of which misses with probability at most α/K. Then
    all of them hold at once with probability at least 1 − α; and with probability (1 − α/K)^K, which is more, if each
    depends on noise of its own and misses with probability α/K.
    Proof    The union bound, and the product of independent events.
    Assumes  groups and contribution bounds that are known before the query runs. K counts every cell, also those that
             HAVING or LIMIT remove.
    Charges  nothing: this is post-processing.
    Tested   tests/sql/test_joint_intervals.py::test_all_cells_of_an_answer_hold_at_once
    """
    noisy = [
        expr
        for _, expr in query.select
        if names(expr) & formulas.keys() and (isinstance(expr, Col) or expr.kind in _NUMERIC)
    ]
    return 1 - (1 - LEVEL) / max(1, len(noisy) * cells)


def output_errors(
    query: Query,
    sets: Sequence[Groups],
    allocation: Allocation,
    errors: Sequence[Expected],
    kind: Noise,
    level: Fraction = LEVEL,
) -> tuple[Expected, ...]:
    """Return the expected error of each noisy output, from those of the aggregates.

    Where the error of an expression is unknown (it is not a number, or contains a selected value), the errors of its
    aggregates are given, and their names say so.
    """
    by_name = {each.name: each for each in errors}
    outputs: list[Expected] = []
    for name, expr in query.select:
        if isinstance(expr, Col):
            outputs += [replace(by_name[expr.name], name=name)] if expr.name in by_name else []
            continue
        inside = [each for each in errors if each.name in names(expr)]
        whole = _expression_error(query, sets, allocation, expr, kind, errors, level) if inside else None
        if whole is not None:
            outputs.append(replace(whole, name=name))
            continue
        for position, each in enumerate(inside, 1):
            outputs.append(replace(each, name=f"{name} (part {position})" if len(inside) > 1 else f"in {name}"))
    used = set().union(*(names(expr) for _, expr in query.select))
    return (*outputs, *(each for each in errors if each.name not in used))


def _expression_error(
    query: Query,
    sets: Sequence[Groups],
    allocation: Allocation,
    expr: Expr,
    kind: Noise,
    errors: Sequence[Expected],
    level: Fraction,
) -> Expected | None:
    """Return the error of an expression over aggregates at the typical group: each noise moves all of them at once."""
    used = {name: formula for name, formula in allocation.formulas.items() if name in names(expr)}
    selected = {name for each in allocation.choices for name in each.choice.names}
    keys = _keys(query, sets, names(expr))
    if expr.kind not in _NUMERIC or not used or names(expr) & selected or keys is None:
        return None
    measures = [each for each in allocation.measures if any(each.measure in f.measures for f in used.values())]
    middle = {name: float(formula.value(typical(formula))[0]) for name, formula in used.items()}
    moves = [{name: _move(formula, each, kind, level) for name, formula in used.items()} for each in measures]
    sizes = [{name: formula.size if name == other else 0.0 for name in used} for other, formula in used.items()]
    # of a function with steps the slope is 0 or endless: take the change over a whole deviation
    step = 1.0 if _stepped(expr) else _STEP
    shifts = [{name: by * step for name, by in each.items()} for each in (*moves, *sizes)]
    values = _evaluate(expr, middle, shifts, keys) / step
    half = float(np.sqrt((values[: len(moves)] ** 2).sum(axis=0)).max()) * deviations_at_level(kind, level)
    magnitude = float(np.abs(values[len(moves) :]).sum(axis=0).max())
    if not (np.isfinite(half) and half > 0):
        return None
    rows = None if linear(expr) and all(formula.linear for formula in used.values()) else TYPICAL_ROWS
    inside = [each.relative for each in errors if each.name in used]
    return Expected("", half, rows, half / magnitude if magnitude > 0 else max(inside))


def _stepped(expr: Expr) -> bool:
    """Return whether an expression rounds a noisy number."""
    if not isinstance(expr, FunctionCall) or not names(expr):
        return False
    rounds = expr.function in _STEPPED or (expr.function not in _EXACT and expr.kind is Kind.INTEGER)
    return rounds or any(map(_stepped, expr.args))


def _move(formula: Formula, noised: NoisyMeasure, kind: Noise, level: Fraction) -> float:
    """Return how far one deviation of a measure moves an aggregate at the typical group."""
    if noised.measure not in formula.measures:
        return 0.0
    # exact for one noise, whose half width is then that of the mechanism
    deviation = half_width(noised.mechanism, level) / deviations_at_level(kind, level)
    place = formula.measures.index(noised.measure)
    return float(secant(formula.value, typical(formula), place, deviation * _STEP)[0]) / _STEP


def _evaluate(
    expr: Expr, middle: Mapping[str, float], shifts: Sequence[Mapping[str, float]], keys: postprocess.Columns
) -> Floats:
    """Return half of the change of an expression between shifts to both sides: (shift, cell)."""
    cells = max([1, *(len(column) for column, _ in keys.values())])
    rows = [{name: middle[name] + sign * by for name, by in shift.items()} for shift in shifts for sign in (1, -1)]
    table = {name: (np.tile(column, len(rows)), kind) for name, (column, kind) in keys.items()}
    for name in middle:
        table[name] = (np.repeat([row[name] for row in rows], cells), Kind.REAL)
    (values,) = postprocess.evaluate(table, [expr])
    numeric = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan).reshape(len(shifts), 2, cells)
    changes: Floats = (numeric[:, 0] - numeric[:, 1]) / 2
    return changes


def _keys(query: Query, sets: Sequence[Groups], used: set[str]) -> postprocess.Columns | None:
    """Return the declared keys that an expression reads, for the first cells; None if their values are not known."""
    if not any(key.name in used for key in query.keys):
        return {}
    declared = [each for each in sets if isinstance(each, Cells)]
    if len(declared) < len(sets):
        return None
    columns = {}
    for i, domain in enumerate(domains_of(query)):
        codes = np.concatenate([each.codes(i, _MAX_CELLS) for each in declared])[:_MAX_CELLS]
        columns[domain.key.name] = (domain.typed(codes), domain.kind)
    return columns


def linear(expr: Expr) -> bool:
    """Return whether an expression is linear in the columns it reads."""
    if not isinstance(expr, FunctionCall):
        return True
    if expr.function in ("add", "sub", "neg"):
        return all(linear(each) for each in expr.args)
    constant = [not names(each) for each in expr.args]
    if expr.function == "mul":
        return any(constant) and all(linear(each) for each in expr.args)
    return expr.function == "div" and constant[1] and linear(expr.args[0])
