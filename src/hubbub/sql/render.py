"""Bound expressions and relations → the engine's SQL. Nothing that an analyst typed gets here but constants, quoted.

Every text is total: whatever the rows hold, the engine does not raise. A guard is put on the argument (`sqrt` sees NULL
in the place of a negative number), never around the call, so it holds in whatever order the engine evaluates.

NaN. Arithmetic on bounded operands makes none. Elsewhere it may (inf - inf), and a NaN is passed on by arithmetic as
NULL would be, until something else uses the value: there, and at the root, it becomes NULL (`_clean`).
"""

import math
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction

from hubbub.core.schema import Column, Kind, Value
from hubbub.sql import dates
from hubbub.sql.expressions import Call, Col, Expr, Literal, facts
from hubbub.sql.relations import UNIT, Filter, Inner, Join, PerUnit, Project, Rel, Scan, Union, columns, owned

#: The engine's type of each kind.
TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN", Kind.INTEGER: "DOUBLE", Kind.REAL: "DOUBLE", Kind.TEXT: "VARCHAR", Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip
_INTEGERS = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT", 128: "HUGEINT"}
#: A float sum depends on the order of rows, so sums inside a unit are of integers: 2⁶² steps cover the bounds.
_INNER_BITS = 62


def identifier(name: str) -> str:
    """Quote a name.

    >>> identifier('we"ird')
    '"we""ird"'
    """
    return '"' + name.replace('"', '""') + '"'


def narrow(most: int) -> str:
    """Name the narrowest integer type of the engine that has every number from −most to most.

    >>> narrow(50), narrow(1_000_000), narrow(1 << 40), narrow(1 << 70)
    ('TINYINT', 'INTEGER', 'BIGINT', 'HUGEINT')
    """
    sizes = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
    return next((name for name, bits in sizes.items() if most < 1 << bits), "HUGEINT")


def number(value: int | Fraction) -> str:
    """Write a number as the nearest DOUBLE.

    >>> number(42), number(Fraction(1, 10)), number(-3)
    ('42e0', '0.1e0', '(-3e0)')
    """
    shown = repr(float(value)).removesuffix(".0").replace("e+", "e")
    text = shown if "e" in shown else shown + "e0"
    return f"({text})" if text.startswith("-") else text


def literal(value: Value | None, kind: Kind) -> str:
    """Write a constant of a kind."""
    if value is None:
        return f"CAST(NULL AS {TYPES[kind]})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | Fraction):
        return number(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'"


def expression(expr: Expr) -> str:
    """Write an expression over the columns of the relation that it is bound to.

    Theorem (Total expressions). On every row that a scan can give, the text has a value or NULL: it raises no error,
    and it is not NaN. By induction over the expression: each function of the list is total on the values of its
    arguments' kinds once the arguments that it cannot take are NULL, which the guards see to; arguments are not NaN,
    except under arithmetic, which gives NaN for NaN; and what may be NaN is made NULL before anything else sees it.
    Assumes  the engine computes each function as its totality rule says; it may evaluate in any order.
    Tested   tests/sql/test_functions.py::test_a_function_is_total_and_its_facts_hold
             tests/sql/test_functions.py::test_random_expressions_are_total_and_their_facts_hold
    """
    return _clean(expr)


def _raw(expr: Expr) -> str:
    if isinstance(expr, Col):
        return identifier(expr.name)
    if isinstance(expr, Literal):
        return literal(expr.value, expr.kind)
    spelled = SPELLINGS[expr.function]
    write = _raw if expr.function in _PASSES_NAN else _clean
    return spelled(expr, [write(arg) for arg in expr.args])


def _clean(expr: Expr) -> str:
    text = _raw(expr)
    return text if _never_nan(expr) else f"CASE WHEN isnan({text}) THEN NULL ELSE {text} END"


def _never_nan(expr: Expr) -> bool:
    """Say whether the raw text of an expression cannot be NaN: finite operands and a finite result make none.

    The bounds of the result alone do not tell: inf % 3 lies between -3 and 3, or is NaN.
    """
    if not isinstance(expr, Call) or expr.function not in _MAKES_NAN:
        return True
    finite = expr.facts.bounds is not None and all(facts(arg).bounds is not None for arg in expr.args)
    return finite and all(_never_nan(arg) for arg in expr.args)


#: Functions that give NaN for a NaN, so that it may be left to whoever uses their result.
_PASSES_NAN = frozenset({"add", "sub", "mul", "div", "mod", "neg", "abs", "floor", "ceil", "trunc", "round"})
_MAKES_NAN = _PASSES_NAN | {"power", "to_real", "exp", "to_float"}

Spelling = Callable[[Call, list[str]], str]


def _infix(sign: str) -> Spelling:
    return lambda _, a: "(" + f" {sign} ".join(a) + ")"


def _function(name: str) -> Spelling:
    return lambda _, a: f"{name}({', '.join(a)})"


def _double(name: str) -> Spelling:
    return lambda _, a: f"CAST({name}({', '.join(a)}) AS DOUBLE)"


def _nonzero(text: str) -> str:
    return f"CASE WHEN {text} <> 0 THEN {text} END"


def _positive(name: str, test: str) -> Spelling:
    return lambda _, a: f"{name}(CASE WHEN {a[0]} {test} THEN {a[0]} END)"


def _whole(expr: Expr) -> int:
    if not (isinstance(expr, Literal) and isinstance(expr.value, int)):
        raise TypeError("a constant whole number was bound here")
    return expr.value


def _word(expr: Expr) -> str:
    if not (isinstance(expr, Literal) and isinstance(expr.value, str)):
        raise TypeError("a constant word was bound here")
    return expr.value


def _round(call: Call, a: list[str]) -> str:
    return f"round({a[0]}, {_whole(call.args[1]) if len(a) > 1 else 0})"


def _power(_: Call, a: list[str]) -> str:
    x, y = a
    # elsewhere the power is infinite or NaN by IEEE, and an error under other settings of the engine
    defined = f"{x} > 0 OR ({x} = 0 AND {y} >= 0) OR ({x} < 0 AND {y} = floor({y}))"
    return f"pow(CASE WHEN {defined} THEN {x} END, {y})"


def _width_bucket(call: Call, a: list[str]) -> str:
    x, low, high, count = a[0], a[1], a[2], _whole(call.args[3])
    inside = f"least({number(count)}, floor({number(count)} * (({x} - {low}) / ({high} - {low}))) + 1)"
    return (
        f"CASE WHEN {x} IS NULL THEN NULL WHEN {x} < {low} THEN 0e0 WHEN {x} >= {high} THEN {number(count + 1)}"
        f" ELSE {inside} END"
    )


def _case(_: Call, a: list[str]) -> str:
    whens = " ".join(f"WHEN {a[i]} THEN {a[i + 1]}" for i in range(0, len(a) - 1, 2))
    return f"CASE {whens} ELSE {a[-1]} END"


def _part_of_text(name: str) -> Spelling:
    return lambda call, a: f"{name}({', '.join([a[0], *(str(_whole(n)) for n in call.args[1:])])})"


def _part_of_date(name: str) -> Spelling:
    return lambda _, a: f"CAST(date_part('{name}', {a[0]}) AS DOUBLE)"


def _date_trunc(call: Call, a: list[str]) -> str:
    # the first week of the year 1 begins on a Monday, 0001-01-01, so no truncation leaves the years that exist
    return f"CAST(date_trunc('{_word(call.args[0])}', {a[1]}) AS TIMESTAMP)"


def _date_diff(call: Call, a: list[str]) -> str:
    return f"CAST(date_diff('{_word(call.args[0])}', CAST({a[1]} AS TIMESTAMP), CAST({a[2]} AS TIMESTAMP)) AS DOUBLE)"


def _date_shift(call: Call, a: list[str]) -> str:
    amount, unit = _whole(call.args[1]), _word(call.args[2])
    return _clamped(f"CAST({a[0]} + INTERVAL ({amount}) {unit.upper()} AS TIMESTAMP)", Kind.TIMESTAMP, None)


def _to_integer(call: Call, a: list[str]) -> str:
    return f"CAST(TRY_CAST({a[0]} AS {_INTEGERS[_whole(call.args[1])]}) AS DOUBLE)"


def _one_zero(text: str) -> str:
    """Write -0 as 0: they are equal, so which of the two an engine keeps of a group may depend on the order of rows."""
    return f"CASE WHEN {text} = 0 THEN 0e0 ELSE {text} END"


def _to_text(call: Call, a: list[str]) -> str:
    kind = call.args[0].kind
    source = f"TRY_CAST({a[0]} AS HUGEINT)" if kind is Kind.INTEGER else _one_zero(a[0]) if kind is Kind.REAL else a[0]
    return f"CAST({source} AS VARCHAR)"


def _to_date(kind: Kind) -> Spelling:
    return lambda _, a: _clamped(f"TRY_CAST({a[0]} AS {TYPES[kind]})", kind, None)


def _to_boolean(call: Call, a: list[str]) -> str:
    return f"TRY_CAST({a[0]} AS BOOLEAN)" if call.args[0].kind is Kind.TEXT else f"CAST({a[0]} AS BOOLEAN)"


#: How DuckDB writes each function of the allow-list. Another engine has another such table.
SPELLINGS: dict[str, Spelling] = {
    "add": _infix("+"), "sub": _infix("-"), "mul": _infix("*"),
    "div": lambda _, a: f"({a[0]} / {_nonzero(a[1])})",
    "intdiv": lambda _, a: f"trunc({a[0]} / {_nonzero(a[1])})",
    "mod": lambda _, a: f"({a[0]} % {_nonzero(a[1])})",
    "neg": lambda _, a: f"(- {a[0]})",
    "abs": _function("abs"), "sign": _double("sign"), "floor": _function("floor"), "ceil": _function("ceil"),
    "trunc": _function("trunc"), "round": _round, "sqrt": _positive("sqrt", ">= 0"), "ln": _positive("ln", "> 0"),
    "log10": _positive("log10", "> 0"), "log2": _positive("log2", "> 0"), "exp": _function("exp"), "power": _power,
    "width_bucket": _width_bucket,
    "eq": _infix("="), "ne": _infix("<>"), "lt": _infix("<"), "le": _infix("<="), "gt": _infix(">"), "ge": _infix(">="),
    "is_distinct": _infix("IS DISTINCT FROM"),
    "in": lambda _, a: f"({a[0]} IN ({', '.join(a[1:])}))",
    "between": lambda _, a: f"({a[0]} BETWEEN {a[1]} AND {a[2]})",
    "is_null": lambda _, a: f"({a[0]} IS NULL)",
    "and": _infix("AND"), "or": _infix("OR"), "not": lambda _, a: f"(NOT {a[0]})",
    "case": _case, "coalesce": _function("coalesce"), "nullif": _function("nullif"), "greatest": _function("greatest"),
    "least": _function("least"),
    "lower": _function("lower"), "upper": _function("upper"), "trim": _function("trim"), "ltrim": _function("ltrim"),
    "rtrim": _function("rtrim"), "length": _double("length"), "concat": _infix("||"), "substr": _part_of_text("substr"),
    "left": _part_of_text("left"), "right": _part_of_text("right"), "strpos": _double("strpos"),
    "starts_with": _function("starts_with"), "ends_with": _function("suffix"), "contains": _function("contains"),
    "like": _infix("LIKE"),
    "year": _part_of_date("year"), "quarter": _part_of_date("quarter"), "month": _part_of_date("month"),
    "week": _part_of_date("week"), "day": _part_of_date("day"), "dayofyear": _part_of_date("doy"),
    "dow": _part_of_date("dow"), "isodow": _part_of_date("isodow"), "hour": _part_of_date("hour"),
    "minute": _part_of_date("minute"), "second": _part_of_date("second"),
    "date_trunc": _date_trunc, "date_diff": _date_diff, "date_shift": _date_shift,
    "day_shift": lambda call, a: _clamped(f"({a[0]} + ({_whole(call.args[1])}))", Kind.DATE, None),
    "days_between": lambda _, a: f"CAST({a[0]} - {a[1]} AS DOUBLE)",
    "to_integer": _to_integer, "to_real": lambda _, a: f"TRY_CAST({a[0]} AS DOUBLE)",
    "to_float": lambda _, a: f"CAST(TRY_CAST({a[0]} AS FLOAT) AS DOUBLE)",
    "to_text": _to_text, "to_date": _to_date(Kind.DATE), "to_timestamp": _to_date(Kind.TIMESTAMP),
    "to_boolean": _to_boolean,
}  # fmt: skip


# --- relations ---------------------------------------------------------------------------------------------------


def relation(rel: Rel) -> str:
    """Write a relation as a SELECT whose columns are its bound names and, where rows have an owner's column, UNIT.

    Theorem (One owner for each row). Taking one unit out of the data takes out of the relation exactly the rows whose
    UNIT it is (where a row is its own unit: at most that one row), and leaves all others as they were, bit by bit.
    By induction: a scan reads row by row; filters and projections are functions of one row; a join on the unit pairs
    rows of one unit, and one with public data pairs a row with public rows (with at most one, where the row is the
    unit); a union of relations that have the property has it; a sub-query grouped by the unit computes each of its
    rows from one unit's rows, by aggregates whose value does not depend on their order: counts, extremes with one form
    of zero, and sums of integers.
    Assumes  the units of joined tables are of one entity, and a unit is taken out of all tables at once.
    Tested   tests/sql/test_bind.py::test_taking_a_unit_away_takes_its_rows_away_and_changes_no_other
             tests/sql/test_render.py::test_a_sum_inside_a_unit_does_not_depend_on_the_order_of_its_rows
             tests/sql/test_render.py::test_where_rows_are_units_a_public_key_that_is_there_twice_matches_nothing
    """
    match rel:
        case Scan():
            return _scan(rel)
        case Filter():
            return f"SELECT * FROM ({relation(rel.input)}) AS f WHERE {expression(rel.predicate)}"
        case Project():
            owner = [identifier(UNIT)] if owned(rel) else []
            outputs = [f"{expression(expr)} AS {identifier(name)}" for name, expr in rel.outputs]
            return f"SELECT {_list(*owner, *outputs)} FROM ({relation(rel.input)}) AS p"
        case Join():
            return _join(rel)
        case Union():
            return _union(rel)
        case PerUnit():
            return _per_unit(rel)


def _list(*outputs: str) -> str:
    """Write a list of outputs; where nothing but the number of rows matters, a column is needed all the same."""
    return ", ".join(outputs) or f"NULL AS {identifier('$none')}"


def _scan(rel: Scan) -> str:
    table = rel.table
    outputs = [
        f"{_made_true(table_column, strict=col.name not in rel.loose)} AS {identifier(col.name)}"
        for col, source in zip(rel.columns, rel.sources, strict=True)
        for table_column in table.columns
        if table_column.name == source
    ]
    if table.unit is None or table.unit.column is None:
        return f"SELECT {_list(*outputs)} FROM {identifier(table.name)} AS s"
    owner = identifier(table.unit.column)
    kind = next((c.kind for c in table.columns if c.name == table.unit.column), None)
    # text of any engine type (an ENUM, a UUID) is one kind here, and is compared byte by byte
    unit = f"(CAST({owner} AS VARCHAR) COLLATE C)" if kind is Kind.TEXT else owner
    shown = _list(f"{unit} AS {identifier(UNIT)}", *outputs)
    return f"SELECT {shown} FROM {identifier(table.name)} AS s WHERE {owner} IS NOT NULL"


def _clamped(text: str, kind: Kind, column: Column | None) -> str:
    """Bring a value into bounds and leave NULL alone (greatest and least would not)."""
    bounds = column.bounds if column else None
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        whole = dates.all_time(kind)
        low, high = (max(bounds.low, whole.low), min(bounds.high, whole.high)) if bounds else (whole.low, whole.high)
        ends = [dates.moment(end, kind) for end in (low, high)]
        first, last = (literal(end if kind is Kind.TIMESTAMP else end.date(), kind) for end in ends)
    elif bounds is None:
        return text
    else:
        first, last = number(bounds.low), number(bounds.high)
    return f"CASE WHEN {text} < {first} THEN {first} WHEN {text} > {last} THEN {last} ELSE {text} END"


def _made_true(column: Column, *, strict: bool) -> str:
    name = identifier(column.name)
    match column.kind:
        case Kind.BOOLEAN:
            text = f"TRY_CAST({name} AS BOOLEAN)"
        case Kind.TEXT:
            text = f"(CAST({name} AS VARCHAR) COLLATE C)"
        case Kind.INTEGER | Kind.REAL:
            double = f"TRY_CAST({name} AS DOUBLE)"
            text = _clamped(double, column.kind, column)
            if column.kind is Kind.REAL:
                nan = f"CASE WHEN isnan({double}) THEN NULL"
                text = f"{nan} {text.removeprefix('CASE ')}" if column.bounds else f"{nan} ELSE {double} END"
        case Kind.DATE | Kind.TIMESTAMP:
            text = _clamped(f"TRY_CAST({name} AS {TYPES[column.kind]})", column.kind, column)
    if column.values is None or not strict:
        return text
    values = ", ".join(literal(value, column.kind) for value in column.values)
    if column.other is None:
        return f"CASE WHEN {text} IN ({values}) THEN {text} END"
    other = literal(column.other, column.kind)
    return f"CASE WHEN {text} IN ({values}) THEN {text} WHEN {text} IS NOT NULL THEN {other} END"


def _join(rel: Join) -> str:
    left, right = relation(rel.left), relation(rel.right)
    pairs = [(expression(a), expression(b)) for a, b in rel.on]
    lefts = [f"l.{identifier(c.name)}" for c in columns(rel.left)]
    rights = [f"r.{identifier(c.name)}" for c in columns(rel.right)]
    owner = [f"l.{identifier(UNIT)}"] if owned(rel.left) else []
    keys_left = "".join(f", {a} AS {identifier(f'$l{i}')}" for i, (a, _) in enumerate(pairs))
    keys_right = "".join(f", {b} AS {identifier(f'$r{i}')}" for i, (_, b) in enumerate(pairs))
    tests = [f"l.{identifier(f'$l{i}')} = r.{identifier(f'$r{i}')}" for i in range(len(pairs))]
    if rel.unit:
        tests.insert(0, f"l.{identifier(UNIT)} = r.{identifier(UNIT)}")
    right = f"SELECT *{keys_right} FROM ({right}) AS r"
    if not owned(rel.left):
        # each row is a unit of its own and must stay one row: a key that is there twice matches nothing
        keys = ", ".join(identifier(f"$r{i}") for i in range(len(pairs)))
        right = f"SELECT * FROM ({right}) AS q QUALIFY count(*) OVER (PARTITION BY {keys}) = 1"
    return (
        f"SELECT {_list(*owner, *lefts, *rights)} FROM (SELECT *{keys_left} FROM ({left}) AS l) AS l"
        f" {rel.kind.upper()} JOIN ({right}) AS r ON {' AND '.join(tests)}"
    )


def _union(rel: Union) -> str:
    parts = []
    for source in rel.inputs:
        owner = [identifier(UNIT)] if owned(source) else []
        names = [
            f"{identifier(mine.name)} AS {identifier(ours.name)}"
            for mine, ours in zip(columns(source), rel.columns, strict=True)
        ]
        parts.append(f"SELECT {_list(*owner, *names)} FROM ({relation(source)}) AS u")
    return " UNION ALL ".join(parts)


def _per_unit(rel: PerUnit) -> str:
    keys = [f"{_key(expr)} AS {identifier(name)}" for name, expr in rel.keys]
    aggregates = [f"{_inner(inner)} AS {identifier(name)}" for name, inner in rel.aggregates]
    by = ", ".join(str(i + 1) for i in range(len(keys) + 1))
    return f"SELECT {', '.join([identifier(UNIT), *keys, *aggregates])} FROM ({relation(rel.input)}) AS g GROUP BY {by}"


def _key(expr: Expr) -> str:
    return _one_zero(expression(expr)) if expr.kind.numeric else expression(expr)


def _inner(inner: Inner) -> str:
    where = f" FILTER (WHERE {expression(inner.where)})" if inner.where is not None else ""
    if inner.argument is None:
        return f"CAST(count(*){where} AS DOUBLE)"
    value = expression(inner.argument)
    match inner.function:
        case "count":
            return f"CAST(count({value}){where} AS DOUBLE)"
        case "count_distinct":
            return f"CAST(count(DISTINCT {value}){where} AS DOUBLE)"
        case "min" | "max":
            return f"{inner.function}({_key(inner.argument)}){where}"
        case "sum" | "avg":
            step = inner_step(inner)
            on_grid = f"CAST(round({_clamp_inner(inner, value)} / {number(step)}) AS HUGEINT)"
            total = f"CAST(sum({on_grid}){where} AS DOUBLE) * {number(step)}"
            if inner.function == "sum":
                return total
            # the mean of values within bounds is within them, whatever the last bit of the quotient says
            low, high = (number(end) for end in _inner_bounds(inner))
            counted = f"count({value}){where}"
            return f"CASE WHEN {counted} > 0 THEN greatest({low}, least({high}, {total} / {counted})) END"


def _inner_bounds(inner: Inner) -> tuple[Fraction, Fraction]:
    bounds = facts(inner.argument).bounds if inner.argument is not None else None
    if bounds is None:
        raise TypeError("a sum inside a unit is bound only over bounded values")
    return bounds.low, bounds.high


def inner_step(inner: Inner) -> Fraction:
    """Give the power of two on whose multiples a sum inside a unit is exact; at least 1 for whole numbers."""
    low, high = _inner_bounds(inner)
    size = max(abs(low), abs(high), Fraction(1))
    step = Fraction(2) ** (math.ceil(size).bit_length() - _INNER_BITS)
    whole = inner.argument is not None and inner.argument.kind is Kind.INTEGER
    return max(step, Fraction(1)) if whole else step


def _clamp_inner(inner: Inner, value: str) -> str:
    low, high = (number(end) for end in _inner_bounds(inner))
    return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
