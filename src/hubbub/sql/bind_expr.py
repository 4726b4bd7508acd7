"""Bind scalar expressions: syntax trees → expressions made of functions on the allow-list.

Tested in tests/sql/test_bind.py.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from hubbub.core import deadline
from hubbub.core.schema import Kind
from hubbub.sql import bind_dates, ranges
from hubbub.sql.bind_apply import (
    NULL,
    apply,
    boolean,
    integer_literal,
    literal,
    null,
    parameter,
)
from hubbub.sql.bind_coerce import number
from hubbub.sql.bind_numbers import is_decimal
from hubbub.sql.bind_scope import Context, NameScope, is_unit, missing_unit, resolve
from hubbub.sql.bind_text import JOINED, TEXTS, escaped_pattern
from hubbub.sql.expressions import Expr, Literal, facts
from hubbub.sql.nodes import (
    AGGREGATE_NAMES,
    AGGREGATE_NODES,
    FUNCTION_NAMES,
    FUNCTION_NODES,
    SPECIAL_AGGREGATES,
)
from hubbub.sql.parse import unsupported_function
from hubbub.sql.spelling_dates import differs
from hubbub.sql.text import quote

_FALSE = Literal(False, Kind.BOOLEAN)  # noqa: FBT003
_TRUE = Literal(True, Kind.BOOLEAN)  # noqa: FBT003

#: Nodes whose values are computed before the expressions around them.
_COMPUTED = (exp.Exists, exp.In, exp.Subquery, exp.Window)
_DType = exp.DType
_TYPES: dict[exp.DType, tuple[str, int]] = {
    _DType.TINYINT: ("to_integer", 8),
    _DType.SMALLINT: ("to_integer", 16),
    _DType.INT: ("to_integer", 32),
    _DType.BIGINT: ("to_integer", 64),
    _DType.INT128: ("to_integer", 128),
    _DType.DOUBLE: ("to_real", 0),
    _DType.FLOAT: ("to_float", 0),
    _DType.TEXT: ("to_text", 0),
    _DType.VARCHAR: ("to_text", 0),
    _DType.DATE: ("to_date", 0),
    _DType.TIMESTAMP: ("to_timestamp", 0),
    _DType.TIMESTAMPNTZ: ("to_timestamp", 0),
    _DType.DATETIME: ("to_timestamp", 0),
    _DType.BOOLEAN: ("to_boolean", 0),
    _DType.CHAR: ("to_text", 0),
    _DType.DECIMAL: ("to_decimal", 0),
}

#: Dialects in which a conversion to an integer drops the fraction.
_TRUNCATING = ("spark", "tsql")
#: Dialects in which the text of such a value is not DuckDB's.
_OTHER_TEXTS = {
    Kind.REAL: ("postgres", "bigquery", "snowflake", "tsql"),
    Kind.TIMESTAMP: ("bigquery", "snowflake", "tsql"),
    Kind.BOOLEAN: ("tsql",),
}


def scalar(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    """Bind an expression, or raise if it uses something that is not on the allow-list."""
    deadline.check()
    if ctx.values and isinstance(node, _COMPUTED) and node in ctx.values:
        return ctx.values[node]
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(ctx, scope, node)
    if type(node) in FUNCTION_NODES:
        name, arguments = FUNCTION_NODES[type(node)]
        args = [scalar(ctx, scope, child) for argument in arguments if (child := node.args.get(argument)) is not None]
        return apply(ctx, node, name, args)
    if type(node) in AGGREGATE_NODES or isinstance(node, SPECIAL_AGGREGATES):
        return _aggregate(ctx, scope, node)
    raise ctx.error(
        node,
        "HB503",
        f"{quote(node.key.upper())} is not allowed in an expression.",
        "Use columns, constants and the functions of docs/sql.md.",
    )


def condition(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    """Bind an expression that must be boolean."""
    bound = scalar(ctx, scope, node)
    if bound.kind is not Kind.BOOLEAN:
        raise ctx.error(
            node,
            "HB508",
            f"A condition must be boolean, but this expression is of type {bound.kind.value}.",
            "Add a comparison, such as x <> 0 or x IS NOT NULL.",
        )
    return bound


# --- names -------------------------------------------------------------------------------------------------------


def _column(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise ctx.error(node, "HB503", "`*` is not allowed in an expression.", "Use a column name.")
    column = resolve(ctx, scope, node)
    if column.present is not None:
        raise ctx.error(
            node,
            "HB516",
            f"After an outer join the privacy ID {quote(column.name)} of this table may be missing.",
            "Test it with IS NULL or count it; elsewhere use the privacy ID of the table that is kept, or COALESCE of "
            "the two after a full join.",
        )
    if column.col is None:
        raise ctx.error(
            node,
            "HB516",
            f"{quote(column.name)} is the privacy ID column and cannot be used in an expression.",
            "Use it only in COUNT(DISTINCT …), in a join condition, or in GROUP BY inside a subquery.",
        )
    ctx.mentions[column.col.name] = node
    return column.col


def _aggregate(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    if scope.aggregate is None:
        raise ctx.error(
            node,
            "HB512",
            f"An aggregate is not allowed in {scope.clause}.",
            "Use aggregates in SELECT, HAVING or ORDER BY. For one value per person, use a subquery that groups by the "
            "privacy ID column.",
        )
    return scope.aggregate(node)


def _named(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    name = str(node.name).lower()
    if name in AGGREGATE_NAMES:
        return _aggregate(ctx, scope, node)
    arguments = node.expressions
    if name == "date_part" and len(arguments) == 2 and isinstance(arguments[0], exp.Literal):
        return bind_dates.date_part(ctx, node, str(arguments[0].this), scalar(ctx, scope, arguments[1]))
    if name not in FUNCTION_NAMES:
        raise unsupported_function(ctx.text, node, quote(str(node.name)))
    return apply(ctx, node, FUNCTION_NAMES[name], [scalar(ctx, scope, arg) for arg in arguments])


# --- operators with special syntax -------------------------------------------------------------------------------


def _sum(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    sign = 1 if isinstance(node, exp.Add) else -1
    left, right = node.this, node.expression
    if isinstance(right, exp.Interval):
        return _shift(ctx, scope, node, left, right, sign)
    if isinstance(left, exp.Interval) and sign == 1:
        return _shift(ctx, scope, node, right, left, sign)
    a, b = scalar(ctx, scope, left), scalar(ctx, scope, right)
    if ctx.dialect == "tsql" and sign == 1 and a.kind is b.kind is Kind.TEXT:
        return apply(ctx, node, "concat", [a, b])
    if sign == 1 and a.kind is Kind.INTEGER and b.kind is Kind.DATE:
        a, b = b, a
    if a.kind is Kind.DATE and b.kind is Kind.INTEGER:
        return apply(ctx, node, "day_shift", [a, bind_dates.signed(ctx, node, b, sign)])
    if sign == -1 and {a.kind, b.kind} in ({Kind.TIMESTAMP}, {Kind.TIMESTAMP, Kind.DATE}):
        raise ctx.error(
            node,
            "HB508",
            "The difference of two timestamps is an interval, which is not supported.",
            "Write EXTRACT(EPOCH FROM a - b) for its seconds, or date_diff('day', b, a).",
        )
    if sign == -1 and a.kind is b.kind is Kind.DATE:
        return apply(ctx, node, "days_between", [a, b])
    return apply(ctx, node, "add" if sign == 1 else "sub", [a, b])


def _shift(ctx: Context, scope: NameScope, node: exp.Expr, date: exp.Expr, interval: exp.Interval, sign: int) -> Expr:
    bound, amount = scalar(ctx, scope, date), interval.this.unnest()
    if isinstance(amount, exp.Literal):
        return bind_dates.shift(ctx, node, bound, interval, sign)
    by = bind_dates.signed(ctx, node, scalar(ctx, scope, amount), sign)
    return bind_dates.shift_by(ctx, node, bound, by, interval)


def _negative(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    return apply(ctx, node, "neg", [scalar(ctx, scope, node.this)])


def _division(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    args = [scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)]
    integer = node.args.get("typed") and all(arg.kind is Kind.INTEGER for arg in args)
    return apply(ctx, node, "intdiv" if integer else "div", args)


def _log(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    if node.args.get("expression") is None:
        return apply(ctx, node, "log10", [scalar(ctx, scope, node.this)])
    base = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if base not in ("2", "10"):
        raise ctx.error(
            node, "HB504", "The base of a logarithm must be 2 or 10.", "For another base b, write ln(x) / ln(b)."
        )
    return apply(ctx, node, "log" + base, [scalar(ctx, scope, node.expression)])


def _chain(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    """Bind a AND b AND … (or OR) as one call, however long."""
    kind, parts, stack = type(node), list[exp.Expr](), [node]
    while stack:
        part = stack.pop()
        if type(part) is kind:
            stack.extend((part.expression, part.this))
        else:
            parts.append(part)
    return apply(ctx, node, "and" if kind is exp.And else "or", [condition(ctx, scope, part) for part in parts])


def _is_not_distinct(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    args = [scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)]
    return apply(ctx, node, "not", [apply(ctx, node, "is_distinct", args)])


def _is(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    against, negated = node.expression, node.args.get("negate") or isinstance(node.parent, exp.Not)
    if isinstance(against, exp.Null) and negated and is_unit(ctx, scope, node.this):
        # a row without an owner is in no relation
        return apply(ctx, node, "not", [_FALSE]) if node.args.get("negate") else _FALSE
    mark = missing_unit(ctx, scope, node.this) if isinstance(against, exp.Null) else None
    tested = scalar(ctx, scope, node.this) if mark is None else mark
    if isinstance(against, exp.Null):
        result = apply(ctx, node, "is_null", [tested])
    elif isinstance(against, exp.Boolean):
        truth = tested if against.this else apply(ctx, node, "not", [tested])
        result = apply(ctx, node, "coalesce", [truth, _FALSE])
    else:
        raise ctx.error(node, "HB503", "IS must be followed by NULL, TRUE or FALSE.", "Use = to compare other values.")
    return apply(ctx, node, "not", [result]) if node.args.get("negate") else result


def _in(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    if node.args.get("query") is not None:
        reject_subquery(ctx, scope, node)
    tested, *constants = [scalar(ctx, scope, part) for part in (node.this, *node.expressions)]
    present = [constant for constant in constants if constant != NULL]
    if len(present) in (0, len(constants)):
        return apply(ctx, node, "in", [tested, *constants])
    # a value that is not listed may equal the NULL in the list
    return apply(ctx, node, "case", [apply(ctx, node, "in", [tested, *present]), _TRUE, NULL])


def reject_subquery(ctx: Context, _: NameScope, node: exp.Expr) -> Expr:
    """Reject a subquery inside an expression."""
    raise ctx.error(
        node,
        "HB514",
        "A subquery is not supported in this clause.",
        "Move it to WHERE or SELECT, or use a join: with a public table, or on the privacy ID column.",
    )


def _reject_window(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    raise ctx.error(
        node,
        "HB742",
        f"A window function is not supported in {scope.clause}.",
        "Use it in SELECT or QUALIFY of a subquery, with PARTITION BY the privacy ID, as in SELECT … FROM (SELECT "
        "LAG(x) OVER (PARTITION BY id ORDER BY day) AS x FROM …).",
    )


def _escaped_like(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    """Bind x LIKE pattern ESCAPE sign."""
    sign = str(node.expression.this) if isinstance(node.expression, exp.Literal) else ""
    if not isinstance(node.this, exp.Like | exp.ILike) or len(sign) != 1:
        raise ctx.error(node, "HB508", "ESCAPE needs one character after LIKE.", "Write x LIKE '50!%' ESCAPE '!'.")
    return _like(ctx, scope, node.this, sign)


def _like(ctx: Context, scope: NameScope, node: exp.Expr, sign: str = "") -> Expr:
    text, pattern = scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)
    if ctx.dialect == "tsql" and isinstance(pattern, Literal) and "[" in str(pattern.value):
        raise ctx.error(
            node,
            "HB747",
            "A bracket in a LIKE pattern starts a set of characters in T-SQL.",
            "Use one LIKE for each character.",
        )
    if isinstance(node, exp.ILike):
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            if not pattern.value.isascii():
                raise ctx.error(
                    node, "HB508", "An ILIKE pattern must contain only ASCII characters.", "Use lower(x) LIKE …."
                )
            pattern = Literal(pattern.value.lower(), Kind.TEXT)
        text = apply(ctx, node, "lower", [text])
    patterns: list[Expr] = [pattern]
    if sign and isinstance(pattern, Literal) and isinstance(pattern.value, str):
        patterns = escaped_pattern(ctx, node, pattern.value, sign)
    result = apply(ctx, node, "like", [text, *patterns])
    return apply(ctx, node, "not", [result]) if node.args.get("negate") else result


def _case(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    operand = scalar(ctx, scope, node.this) if node.this is not None else None
    args: list[Expr] = []
    for branch in node.args["ifs"]:
        if operand is None:
            args.append(condition(ctx, scope, branch.this))
        else:
            args.append(apply(ctx, branch, "eq", [operand, scalar(ctx, scope, branch.this)]))
        args.append(scalar(ctx, scope, branch.args["true"]))
    default = node.args.get("default")
    return apply(ctx, node, "case", [*args, NULL if default is None else scalar(ctx, scope, default)])


def _if(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    default = node.args.get("false")
    otherwise = NULL if default is None else scalar(ctx, scope, default)
    return apply(
        ctx, node, "case", [condition(ctx, scope, node.this), scalar(ctx, scope, node.args["true"]), otherwise]
    )


def _variadic(name: str) -> Callable[[Context, NameScope, exp.Expr], Expr]:
    return lambda ctx, scope, node: apply(
        ctx, node, name, [scalar(ctx, scope, part) for part in (node.this, *node.expressions)]
    )


def _trim(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
    return apply(ctx, node, name, [scalar(ctx, scope, node.this)])


def _joined(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    return JOINED[type(node)](ctx, node, [scalar(ctx, scope, part) for part in parts])


def _cast(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    kind = node.args["to"]
    name, bits = _TYPES.get(kind.this, ("", 0))
    sizes = [int(text) for part in kind.expressions if (text := str(part.name)).isdecimal() and len(text) < 8]
    if not name or len(sizes) != len(kind.expressions) or (sizes and name not in ("to_text", "to_decimal")):
        raise ctx.error(
            node,
            "HB504",
            f"CAST to {quote(kind.sql())} is not supported.",
            "Cast to INTEGER, BIGINT, DOUBLE, DECIMAL(10, 2), VARCHAR, DATE, TIMESTAMP or BOOLEAN.",
        )
    arg = scalar(ctx, scope, node.this)
    if isinstance(arg, Literal) and isinstance(arg.value, str) and name not in ("to_text", "to_boolean"):
        if name in ("to_date", "to_timestamp"):
            return bind_dates.date_literal(ctx, node, arg.value, Kind.DATE if name == "to_date" else Kind.TIMESTAMP)
        arg = number(arg.value) or arg
    if name == "to_decimal":
        return _decimal(ctx, node, arg, sizes)
    if isinstance(arg, Literal) and isinstance(arg.value, Fraction) and name == "to_integer":
        # SQL reads the constant as a DECIMAL, which it rounds half away from zero
        whole = math.trunc(arg.value) if ctx.dialect in _TRUNCATING else ranges.round_half_away(arg.value)
        return integer_literal(ctx, node, whole)
    if name == "to_integer":
        arg = _whole(ctx, node, arg)
    if name == "to_text" and ctx.dialect in _OTHER_TEXTS.get(arg.kind, ()):
        raise differs(
            ctx.text, node, f"The text of a {arg.kind.value}", ctx.dialect, "Compare the value itself, without CAST."
        )
    bound = apply(ctx, node, name, [arg, Literal(bits, Kind.INTEGER)] if bits else [arg])
    if sizes:
        bound = apply(ctx, node, "left", [bound, Literal(sizes[0], Kind.INTEGER)])
    # the blanks that fill up a CHAR(n) count in no comparison
    return apply(ctx, node, "rtrim", [bound]) if sizes and kind.this is _DType.CHAR else bound


def _whole(ctx: Context, node: exp.Expr, arg: Expr) -> Expr:
    """Round a number as the dialect converts it to an integer; the function to_integer rounds half to even."""
    if ctx.dialect == "spark" and arg.kind is Kind.TEXT:
        arg = apply(ctx, node, "to_real", [arg])
    if arg.kind is not Kind.REAL:
        return arg
    if ctx.dialect in _TRUNCATING:
        return apply(ctx, node, "trunc", [arg])
    away = ctx.dialect in ("bigquery", "snowflake") or is_decimal(arg, ctx.dialect)
    return apply(ctx, node, "round", [arg]) if away else arg


def _decimal(ctx: Context, node: exp.Expr, arg: Expr, sizes: list[int]) -> Expr:
    """Bind CAST(x AS DECIMAL(p, s)): round to s places, half away from zero; NULL beyond p digits."""
    precision, scale = sizes
    if not 0 <= scale <= precision <= 38:
        raise ctx.error(node, "HB508", "This is no type of decimals.", "Write DECIMAL(10, 2).")
    value = arg if arg.kind is Kind.REAL else apply(ctx, node, "to_real", [arg])
    rounded = (
        apply(ctx, node, "round", [value, Literal(scale, Kind.INTEGER)])
        if scale
        else apply(ctx, node, "round", [value])
    )
    most = Fraction(10) ** (precision - scale)
    bounds = facts(rounded).bounds
    if bounds is not None and -most < bounds.low and bounds.high < most:
        return rounded
    fits = apply(ctx, node, "lt", [apply(ctx, node, "abs", [rounded]), Literal(most, Kind.REAL)])
    return apply(ctx, node, "case", [fits, rounded, NULL])


def _extract(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    part, passed = str(node.this.name).lower(), node.expression.unnest()
    if isinstance(passed, exp.Sub) and part in ("epoch", "day") and not isinstance(passed.expression, exp.Interval):
        last, first = scalar(ctx, scope, passed.this), scalar(ctx, scope, passed.expression)
        if {last.kind, first.kind} <= {Kind.DATE, Kind.TIMESTAMP}:
            seconds = apply(ctx, node, "seconds_between", [last, first])
            if part == "epoch":
                return seconds
            return apply(ctx, node, "trunc", [apply(ctx, node, "div", [seconds, Literal(86_400, Kind.INTEGER)])])
    return bind_dates.date_part(ctx, node, str(node.this.name), scalar(ctx, scope, node.expression))


def _date_trunc(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    return apply(ctx, node, "date_trunc", [bind_dates.unit_of_time(ctx, node), scalar(ctx, scope, node.this)])


def _date_diff(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    if not node.args.get("date_part_boundary"):
        raise ctx.error(
            node,
            "HB504",
            "This form of date_diff is not supported.",
            "Write date_diff('day', a, b), or subtract two dates.",
        )
    ends = [scalar(ctx, scope, node.expression), scalar(ctx, scope, node.this)]
    return apply(ctx, node, "date_diff", [bind_dates.unit_of_time(ctx, node), *ends])


def _written(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    return TEXTS[type(node)](ctx, node, scalar(ctx, scope, node.this))


_HANDLERS: dict[type[exp.Expr], Callable[[Context, NameScope, exp.Expr], Expr]] = {
    exp.Literal: literal,
    exp.Boolean: boolean,
    exp.Null: null,
    exp.Placeholder: parameter,
    exp.Parameter: parameter,
    exp.Column: _column,
    exp.Paren: lambda ctx, scope, node: scalar(ctx, scope, node.this),
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Neg: _negative,
    exp.Div: _division,
    exp.Log: _log,
    exp.And: _chain,
    exp.Or: _chain,
    exp.NullSafeEQ: _is_not_distinct,
    exp.Is: _is,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escaped_like,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _variadic("coalesce"),
    exp.Greatest: _variadic("greatest"),
    exp.Least: _variadic("least"),
    exp.Trim: _trim,
    exp.Concat: _joined,
    exp.DPipe: _joined,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
    exp.DateDiff: _date_diff,
    exp.MonthsBetween: lambda ctx, scope, node: bind_dates.months_between(
        ctx, node, scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)
    ),
    exp.Anonymous: _named,
    exp.Subquery: reject_subquery,
    exp.Exists: reject_subquery,
    exp.Window: _reject_window,
    **dict.fromkeys(TEXTS, _written),
}
