"""Bind scalar expressions: syntax trees → expressions made of functions on the allow-list.

Tested in tests/sql/test_bind.py.
"""

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
from hubbub.sql.bind_scope import Context, NameScope, resolve
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.nodes import (
    AGGREGATE_NAMES,
    AGGREGATE_NODES,
    FUNCTION_NAMES,
    FUNCTION_NODES,
    SPECIAL_AGGREGATES,
)
from hubbub.sql.parse import unsupported_function
from hubbub.sql.text import quote

_FALSE = Literal(False, Kind.BOOLEAN)  # noqa: FBT003
_TRUE = Literal(True, Kind.BOOLEAN)  # noqa: FBT003

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
}


def scalar(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    """Bind an expression, or raise if it uses something that is not on the allow-list."""
    deadline.check()
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
        "Use columns, constants and supported functions.",
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


def _paren(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    return scalar(ctx, scope, node.this)


def _sum(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    sign = 1 if isinstance(node, exp.Add) else -1
    left, right = node.this, node.expression
    if isinstance(right, exp.Interval):
        return bind_dates.shift(ctx, node, scalar(ctx, scope, left), right, sign)
    if isinstance(left, exp.Interval) and sign == 1:
        return bind_dates.shift(ctx, node, scalar(ctx, scope, right), left, sign)
    a, b = scalar(ctx, scope, left), scalar(ctx, scope, right)
    if a.kind is Kind.DATE and b.kind is Kind.INTEGER:
        if not (isinstance(b, Literal) and isinstance(b.value, int)):
            raise ctx.error(
                node,
                "HB508",
                "Only a constant number of days can be added to a date.",
                "Write the number, as in d + 7.",
            )
        return apply(ctx, node, "day_shift", [a, Literal(sign * b.value, Kind.INTEGER)])
    if sign == -1 and a.kind is b.kind is Kind.DATE:
        return apply(ctx, node, "days_between", [a, b])
    return apply(ctx, node, "add" if sign == 1 else "sub", [a, b])


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
    tested, against = scalar(ctx, scope, node.this), node.expression
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
        "A subquery in an expression is not supported: it would compare one person's row with other people's rows.",
        "Use a join: with a public table, or with a private table on the privacy ID column. Query an aggregate "
        "separately.",
    )


def _like(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    text, pattern = scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)
    if isinstance(node, exp.ILike):
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            if not pattern.value.isascii():
                raise ctx.error(
                    node, "HB508", "An ILIKE pattern must contain only ASCII characters.", "Use lower(x) LIKE …."
                )
            pattern = Literal(pattern.value.lower(), Kind.TEXT)
        text = apply(ctx, node, "lower", [text])
    result = apply(ctx, node, "like", [text, pattern])
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


def _concat(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    """Bind the function concat, which treats NULL as empty text (the operator || returns NULL)."""
    empty = Literal("", Kind.TEXT)
    parts = [scalar(ctx, scope, part) for part in node.expressions]
    filled = [part if isinstance(part, Literal) else apply(ctx, node, "coalesce", [part, empty]) for part in parts]
    return apply(ctx, node, "concat", filled)


def _cast(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
    kind = node.args["to"]
    name, bits = _TYPES.get(kind.this, ("", 0))
    if not name or kind.expressions:
        raise ctx.error(
            node,
            "HB504",
            f"CAST to {quote(kind.sql())} is not supported.",
            "Cast to INTEGER, BIGINT, DOUBLE, VARCHAR, DATE, TIMESTAMP or BOOLEAN. For decimals, use round(x, 2).",
        )
    arg = scalar(ctx, scope, node.this)
    if isinstance(arg, Literal) and isinstance(arg.value, Fraction) and name == "to_integer":
        # SQL reads the constant as a DECIMAL, which it rounds half away from zero
        return integer_literal(ctx, node, ranges.round_half_away(arg.value))
    if isinstance(arg, Literal) and isinstance(arg.value, str) and name in ("to_date", "to_timestamp"):
        return bind_dates.date_literal(ctx, node, arg.value, Kind.DATE if name == "to_date" else Kind.TIMESTAMP)
    return apply(ctx, node, name, [arg, Literal(bits, Kind.INTEGER)] if bits else [arg])


def _extract(ctx: Context, scope: NameScope, node: exp.Expr) -> Expr:
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


_HANDLERS: dict[type[exp.Expr], Callable[[Context, NameScope, exp.Expr], Expr]] = {
    exp.Literal: literal,
    exp.Boolean: boolean,
    exp.Null: null,
    exp.Placeholder: parameter,
    exp.Parameter: parameter,
    exp.Column: _column,
    exp.Paren: _paren,
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
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _variadic("coalesce"),
    exp.Greatest: _variadic("greatest"),
    exp.Least: _variadic("least"),
    exp.Trim: _trim,
    exp.Concat: _concat,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
    exp.DateDiff: _date_diff,
    exp.Anonymous: _named,
    exp.Subquery: reject_subquery,
    exp.Exists: reject_subquery,
}
