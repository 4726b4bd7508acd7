"""Render bound expressions and relations as SQL. Of an analyst's text only constants get here, and they are quoted.

Every expression is total: the engine raises no error, whatever the rows contain. Guards are on the arguments (`sqrt`
gets NULL instead of a negative number), never around the call, so they hold in any order of evaluation.

NaN. Arithmetic on bounded operands never produces NaN. Other arithmetic may (inf - inf) and then passes NaN on, as it
would NULL. Where anything else uses the value, and at the root, NaN becomes NULL (`_clean`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from hubbub.core.schema import Column, Kind
from hubbub.sql import decimals, truncation, windows
from hubbub.sql.block_scan import block_conditions
from hubbub.sql.dialects.base import Canonical, Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, facts
from hubbub.sql.owner_joins import with_owners_once
from hubbub.sql.owner_path import OWNER, owned_rows, period_owner
from hubbub.sql.relations import (
    MAX_TEXT_LENGTH,
    OWNERS,
    UNIT,
    Filter,
    Join,
    PerUnit,
    Project,
    Rel,
    Scan,
    Truncate,
    Union,
    UnitAggregate,
    UnitWindow,
    columns,
    exact_columns,
    exact_name,
    owned,
    owner_columns,
    public,
)
from hubbub.sql.released_tables import is_written, rows_of

#: Floating-point sums depend on the order of rows, so sums inside a unit use integers: 2⁶² steps cover the bounds.
_INNER_BITS = 62


def expression(expr: Expr, dialect: Dialect = DUCKDB) -> str:
    """Render an expression over the columns of the relation that it is bound to.

    Theorem (Total expressions). On every row that a scan can give, the text has a value or NULL: it raises no error,
    and it is not NaN. By induction over the expression: each function of the list is total on the values of its
    arguments' kinds once the arguments that it cannot take are NULL, which the guards see to; arguments are not NaN,
    except under arithmetic, which gives NaN for NaN; and what may be NaN is made NULL before anything else sees it.
    Assumes  the engine computes each function as its totality rule says; it may evaluate in any order.
    Tested   tests/sql/test_functions.py::test_a_function_is_total_and_its_facts_hold
             tests/sql/test_functions.py::test_random_expressions_are_total_and_their_facts_hold
    """
    return _clean(expr, dialect)


def _raw(expr: Expr, dialect: Dialect) -> str:
    if isinstance(expr, Col):
        return dialect.column(expr)
    if isinstance(expr, Literal):
        return dialect.literal(expr.value, expr.kind)
    spell = dialect.spelling(expr.function)
    write = _raw if passes_nan(expr) else _clean
    return spell(expr, [write(arg, dialect) for arg in expr.args])


def repeated(call: FunctionCall, dialect: Dialect) -> tuple[int, list[int]]:
    """Return the length of a call's own text, and how often the text of each argument occurs in it."""
    marks = [f"\x01{place}\x01" for place in range(len(call.args))]
    shown = [
        f"CASE WHEN {dialect.is_nan(mark)} THEN NULL ELSE {mark} END"
        if not passes_nan(call) and not never_nan(arg)
        else mark
        for arg, mark in zip(call.args, marks, strict=True)
    ]
    text = dialect.spelling(call.function)(call, shown)
    times = [text.count(mark) for mark in marks]
    return len(text) - sum(len(mark) * count for mark, count in zip(marks, times, strict=True)), times


def _clean(expr: Expr, dialect: Dialect) -> str:
    text = _raw(expr, dialect)
    return text if never_nan(expr) else f"CASE WHEN {dialect.is_nan(text)} THEN NULL ELSE {text} END"


def never_nan(expr: Expr) -> bool:
    """Return whether the raw expression cannot be NaN: its operands and its result are finite.

    A bounded result alone is not enough: inf % 3 is between -3 and 3, or NaN.
    """
    return not isinstance(expr, FunctionCall) or call_never_nan(expr, map(never_nan, expr.args))


def call_never_nan(call: FunctionCall, arguments: Iterable[bool]) -> bool:
    """Return the same for a call, given the answers for its arguments, which are read only if they matter."""
    if call.function not in _MAKES_NAN:
        return True
    finite = call.facts.bounds is not None and all(facts(arg).bounds is not None for arg in call.args)
    return finite and all(arguments)


def passes_nan(call: FunctionCall) -> bool:
    """Return whether a call accepts NaN, so that its arguments need no guard."""
    return call.function in _PASSES_NAN


#: Functions that return NaN for NaN, so that the user of the result can handle it.
_PASSES_NAN = frozenset({"add", "sub", "mul", "div", "mod", "neg", "abs", "floor", "ceil", "trunc", "round"})
_MAKES_NAN = _PASSES_NAN | {"power", "to_real", "exp", "to_float"}


# --- relations ---------------------------------------------------------------------------------------------------


def relation(rel: Rel, dialect: Dialect = DUCKDB) -> str:
    """Render a relation as a SELECT whose columns are its bound names and, if rows have an owner, UNIT.

    Theorem (One owner for each row). Taking one unit out of the data takes out of the relation exactly the rows whose
    UNIT it is (where a row is its own unit: at most that one row), and leaves all others as they were, bit by bit.
    By induction: a scan reads row by row, and a row that belongs to the owner of another table's row comes with that
    owner ("One owner through keys"); filters and projections are functions of one row; a join on the unit pairs
    rows of one unit, and one with public data pairs a row with public rows (with at most one, where the row is the
    unit); a union of relations that have the property has it; a sub-query grouped by the unit computes each of its
    rows from one unit's rows, by aggregates whose value does not depend on their order: counts, extremes with one form
    of zero, and sums of integers; a window gives each row a value of its unit's rows ("Windows within a unit").
    Assumes  the units of joined tables are of one entity, and a unit is taken out of all tables at once.
    Tested   tests/sql/test_bind.py::test_taking_a_unit_away_takes_its_rows_away_and_changes_no_other
             tests/sql/test_render.py::test_a_sum_inside_a_unit_does_not_depend_on_the_order_of_its_rows
             tests/sql/test_render.py::test_where_rows_are_units_a_public_key_that_is_there_twice_matches_nothing
    """
    return as_it_stands(with_owners_once(rel), dialect)


def as_it_stands(rel: Rel, dialect: Dialect) -> str:
    """Render each operator of a relation as it is."""
    match rel:
        case Scan():
            return _scan(rel, dialect)
        case Filter():
            return f"SELECT * FROM ({as_it_stands(rel.input, dialect)}) AS f WHERE {expression(rel.predicate, dialect)}"
        case Project():
            owner = [dialect.identifier(name) for name in (*owner_columns(rel), *exact_columns(rel))]
            outputs = [f"{expression(expr, dialect)} AS {dialect.identifier(name)}" for name, expr in rel.outputs]
            fence = dialect.computed_once if any(isinstance(expr, FunctionCall) for _, expr in rel.outputs) else ""
            return f"SELECT {_list(dialect, *owner, *outputs)} FROM ({as_it_stands(rel.input, dialect)}) AS p{fence}"
        case Join():
            return _join(rel, dialect)
        case Union():
            return _union(rel, dialect)
        case PerUnit():
            return _per_unit(rel, dialect)
        case UnitWindow():
            return windows.render_windows(rel, as_it_stands(rel.input, dialect), dialect, _writers(dialect))
        case Truncate():
            return truncation.render_cut(rel, as_it_stands(rel.input, dialect), dialect)


def _list(dialect: Dialect, *outputs: str) -> str:
    """Write a list of outputs; SQL needs a column even if only the number of rows matters."""
    return ", ".join(outputs) or f"NULL AS {dialect.identifier('$none')}"


def _scan(rel: Scan, dialect: Dialect) -> str:
    table = rel.table
    outputs = [
        f"{_shown(table_column, col.name, rel, dialect)} AS {dialect.identifier(col.name)}"
        for col, source in zip(rel.columns, rel.sources, strict=True)
        for table_column in table.columns
        if table_column.name == source
    ]
    outputs += [
        f"{dialect.owner(dialect.identifier(source), col.kind)} AS {dialect.identifier(exact_name(col.name))}"
        for col, source in zip(rel.columns, rel.sources, strict=True)
        if col.name in rel.exact
    ]
    read = block_conditions(table, dialect)
    if rel.joined or table.unit is None or table.unit.column is None:
        source = rows_of(table, dialect) if is_written(table) else dialect.identifier(table.name)
        return f"SELECT {_list(dialect, *outputs)} FROM {source} AS s{_where(read)}"
    second = [
        f"{dialect.owner(dialect.identifier(str(unit.column)), table.owner_kind(unit))} AS {dialect.identifier(name)}"
        for unit, name in zip(table.others, OWNERS[1:], strict=False)
    ]
    present = [f"{dialect.identifier(str(unit.column))} IS NOT NULL" for unit in table.others]
    if table.unit.path is not None:
        owner = f"{dialect.identifier(OWNER)} AS {dialect.identifier(UNIT)}"
        needed = [*rel.sources, *(str(unit.column) for unit in table.others)]
        needed += [] if table.blocks is None else [table.blocks.column]
        rows = owned_rows(table.name, needed, table.unit.path.steps, table.unit.path, dialect)
        return f"SELECT {_list(dialect, owner, *second, *outputs)} FROM ({rows}) AS s{_where([*present, *read])}"
    if table.unit.period is not None:
        unit, condition = period_owner(table.unit.period, dialect)
        shown = _list(dialect, f"{unit} AS {dialect.identifier(UNIT)}", *outputs)
        return f"SELECT {shown} FROM {dialect.identifier(table.name)} AS s{_where([condition, *read])}"
    owner = dialect.identifier(table.unit.column)
    kind = next((c.kind for c in table.columns if c.name == table.unit.column), None)
    shown = _list(dialect, f"{dialect.owner(owner, kind)} AS {dialect.identifier(UNIT)}", *second, *outputs)
    part = [] if rel.part is None else [dialect.in_part(dialect.owner(owner, kind), kind or Kind.TEXT, *rel.part)]
    where = _where([f"{owner} IS NOT NULL", *part, *present, *read])
    return f"SELECT {shown} FROM {dialect.identifier(table.name)} AS s{where}"


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _shown(column: Column, name: str, rel: Scan, dialect: Dialect) -> str:
    text = _enforce_values(column, dialect, strict=name not in rel.loose and not is_written(rel.table))
    return f"left({text}, {MAX_TEXT_LENGTH})" if name in rel.short else text


def _enforce_values(column: Column, dialect: Dialect, *, strict: bool) -> str:
    if column.values is None:
        return dialect.scanned(column)
    # without bounds, which are those of the list: a number beyond them is outside of the list, not equal to its end
    text = dialect.scanned(replace(column, bounds=None))
    if not strict:
        return text
    values = ", ".join(dialect.literal(value, column.kind) for value in column.values)
    if column.other is None:
        return f"CASE WHEN {text} IN ({values}) THEN {text} END"
    other = dialect.literal(column.other, column.kind)
    return f"CASE WHEN {text} IN ({values}) THEN {text} WHEN {text} IS NOT NULL THEN {other} END"


def _join(rel: Join, dialect: Dialect) -> str:
    left, right = as_it_stands(rel.left, dialect), as_it_stands(rel.right, dialect)
    pairs = [(expression(a, dialect), expression(b, dialect)) for a, b in rel.on]
    lefts = [
        f"l.{dialect.identifier(name)}" for name in (*(c.name for c in columns(rel.left)), *exact_columns(rel.left))
    ]
    rights = [
        f"r.{dialect.identifier(name)}" for name in (*(c.name for c in columns(rel.right)), *exact_columns(rel.right))
    ]
    owner = [f"l.{dialect.identifier(name)}" for name in owner_columns(rel.left)]
    if not owner:  # a join along keys may find it on the right
        owner = [f"r.{dialect.identifier(name)}" for name in owner_columns(rel)]
    keys_left = "".join(f", {a} AS {dialect.identifier(f'$l{i}')}" for i, (a, _) in enumerate(pairs))
    keys_right = "".join(f", {b} AS {dialect.identifier(f'$r{i}')}" for i, (_, b) in enumerate(pairs))
    tests = [f"l.{dialect.identifier(f'$l{i}')} = r.{dialect.identifier(f'$r{i}')}" for i in range(len(pairs))]
    # equal where rows match, and not NULL
    same = [(exact_name(a), exact_name(b)) for a, b in rel.along] or ([(OWNERS[rel.place], UNIT)] if rel.unit else [])
    tests = [*(f"l.{dialect.identifier(a)} = r.{dialect.identifier(b)}" for a, b in same), *tests]
    right = f"SELECT *{keys_right} FROM ({right}) AS r"
    if not owned(rel.left) and not public(rel.left):
        # each row is a unit and must stay one row, so a key that occurs twice matches nothing
        keys = ", ".join(dialect.identifier(f"$r{i}") for i in range(len(pairs)))
        right = dialect.once(right, keys)
    if rel.unit and dialect.fence:
        # PostgreSQL does not read one side if the other is empty, so whether it reads the whole table could depend on
        # one person; a full join reads both, and behind a fence the planner does not simplify it
        here, there = dialect.identifier("$here"), dialect.identifier("$there")
        mine, theirs = (
            dialect.identifier(UNIT if owner_columns(side) else name)
            for side, name in zip((rel.left, rel.right), same[0], strict=True)
        )
        inner = (
            f"SELECT {', '.join([*owner, *lefts, *rights])}, l.{mine} IS NOT NULL AS {here}, r.{theirs} IS NOT NULL AS "
            f"{there} FROM (SELECT *{keys_left} FROM ({left}) AS l) AS l FULL JOIN ({right}) AS r "
            f"ON {' AND '.join(tests)}{dialect.fence}"
        )
        names = [text.partition(".")[2] for text in (*owner, *lefts, *rights)]
        both = f" AND {there}" if rel.kind == "inner" else ""
        return f"SELECT {_list(dialect, *names)} FROM ({inner}) AS j WHERE {here}{both}"
    return (
        f"SELECT {_list(dialect, *owner, *lefts, *rights)} FROM (SELECT *{keys_left} FROM ({left}) AS l) AS l"
        f" {rel.kind.upper()} JOIN ({right}) AS r ON {' AND '.join(tests)}"
    )


def _union(rel: Union, dialect: Dialect) -> str:
    parts = []
    for source in rel.inputs:
        owner = [dialect.identifier(UNIT)] if owned(source) else []
        names = [
            f"{dialect.identifier(inner.name)} AS {dialect.identifier(outer.name)}"
            for inner, outer in zip(columns(source), rel.columns, strict=True)
        ]
        parts.append(f"SELECT {_list(dialect, *owner, *names)} FROM ({as_it_stands(source, dialect)}) AS u")
    return " UNION ALL ".join(parts)


def _per_unit(rel: PerUnit, dialect: Dialect) -> str:
    keys = [f"{_reused_key(expr, dialect)} AS {dialect.identifier(name)}" for name, expr in rel.keys]
    aggregates = [f"{_inner(inner, dialect)} AS {dialect.identifier(name)}" for name, inner in rel.aggregates]
    owner = [dialect.identifier(UNIT)] if owned(rel) else []
    by = ", ".join(str(i + 1) for i in range(len(owner) + len(keys)))
    outputs = ", ".join([*owner, *keys, *aggregates])
    source = f"({as_it_stands(rel.input, dialect)}) AS g"
    if not rel.whole:
        return f"SELECT {outputs} FROM {source} GROUP BY {by}"
    # an aggregate without GROUP BY has one row, also of no rows
    return f"SELECT {outputs} FROM {source if aggregates else f'(SELECT count(*) AS n FROM {source}) AS one'}"


def key(expr: Expr, dialect: Dialect = DUCKDB) -> Canonical:
    """Render an expression that rows are grouped by, in canonical form."""
    return dialect.canonical(expression(expr, dialect), expr.kind)


def _reused_key(expr: Expr, dialect: Dialect) -> str:
    """Render a key that other expressions use; there, integers need a canonical zero as well."""
    return dialect.one_zero(expression(expr, dialect)) if expr.kind is Kind.INTEGER else key(expr, dialect)


def _inner(inner: UnitAggregate, dialect: Dialect) -> str:
    where = f" FILTER (WHERE {expression(inner.where, dialect)})" if inner.where is not None else ""
    return _aggregate(inner, where, dialect)


def _writers(dialect: Dialect) -> windows.Writers:
    return windows.Writers(
        lambda expr: expression(expr, dialect),
        lambda expr: _reused_key(expr, dialect),
        lambda inner, over: _aggregate(inner, over, dialect),
    )


def _aggregate(inner: UnitAggregate, where: str, dialect: Dialect) -> str:
    """Render an aggregate within a unit; `where` is a FILTER or an OVER clause."""
    if inner.argument is None:
        return dialect.as_double(f"count(*){where}")
    value = expression(inner.argument, dialect)
    match inner.function:
        case "count":
            return dialect.as_double(f"count({value}){where}")
        case "count_distinct":
            return dialect.as_double(f"count(DISTINCT {value}){where}")
        case "min" | "max":
            return dialect.extreme(inner.function, _reused_key(inner.argument, dialect), inner.argument.kind) + where
        case "sum" | "avg":
            step = inner_step(inner)
            low, high = (dialect.number(end) for end in _inner_bounds(inner))
            on_grid = dialect.on_grid(dialect.between(value, low, high), step)
            count = dialect.as_double(f"sum({on_grid}){where}")
            exact = Fraction(float(step)) == step
            # a part of a decimal is no double: multiply by 1 and divide by 100, not by 0.01
            factor = f"* {dialect.number(step if exact else step.numerator)}"
            total = f"{count} {factor}" if exact else f"{count} {factor} / {dialect.number(step.denominator)}"
            if inner.function == "sum":
                return total
            # clamp the mean to the bounds, because the quotient is rounded
            counted = f"count({value}){where}"
            mean = f"{total} / {dialect.as_divisor(counted)}"
            return f"CASE WHEN {counted} > 0 THEN greatest({low}, least({high}, {mean})) END"


def _inner_bounds(inner: UnitAggregate) -> tuple[Fraction, Fraction]:
    bounds = facts(inner.argument).bounds if inner.argument is not None else None
    if bounds is None:
        raise TypeError("a sum inside a unit needs bounded values")
    return bounds.low, bounds.high


def inner_step(inner: UnitAggregate) -> Fraction:
    """Return the step in which a sum inside a unit is exact: a part of a decimal, or a power of two, 1 for integers."""
    low, high = _inner_bounds(inner)
    size = max(abs(low), abs(high), Fraction(1))
    declared = None if inner.argument is None else facts(inner.argument).step
    if declared is not None and inner.argument is not None and inner.argument.kind is Kind.REAL:
        count = decimals.parts(declared, size)
        if count is not None:
            return declared / count
    step = Fraction(2) ** (math.ceil(size).bit_length() - _INNER_BITS)
    whole = inner.argument is not None and inner.argument.kind is Kind.INTEGER
    return max(step, Fraction(1)) if whole else step
