"""Syntax trees of scalar expressions → bound expressions of the allow-list."""

import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from hubbub.core import deadline as patience
from hubbub.core.schema import Kind
from hubbub.sql import dates, ranges
from hubbub.sql.bind_apply import (
    MAX_SHIFT,
    NULL,
    apply,
    as_moment,
    boolean,
    dated_literal,
    literal,
    null,
    parameter,
    whole_number,
)
from hubbub.sql.bind_scope import Context, Scope, resolve
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.nodes import AGGREGATES, NAMED, NAMED_AGGREGATES, ODD_AGGREGATES, PARTS, SPELLED
from hubbub.sql.parse import quote

_FALSE = Literal(False, Kind.BOOLEAN)  # noqa: FBT003

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


def scalar(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    """Bind an expression, or refuse what is not on the list."""
    patience.check()
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(ctx, scope, node)
    if type(node) in SPELLED:
        name, places = SPELLED[type(node)]
        args = [scalar(ctx, scope, child) for place in places if (child := node.args.get(place)) is not None]
        return apply(ctx, node, name, args)
    if type(node) in AGGREGATES or isinstance(node, ODD_AGGREGATES):
        return _aggregate(ctx, scope, node)
    raise ctx.refusal(
        node,
        "HB503",
        f"{quote(node.key.upper())} cannot stand in an expression here.",
        "Write columns, constants and functions of the list.",
    )


def condition(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    """Bind an expression that must be true or false."""
    found = scalar(ctx, scope, node)
    if found.kind is not Kind.BOOLEAN:
        raise ctx.refusal(
            node,
            "HB508",
            f"A condition is true or false; this is of kind {found.kind.value}.",
            "Compare it with something, such as x <> 0 or x IS NOT NULL.",
        )
    return found


# --- names -------------------------------------------------------------------------------------------------------


def _column(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise ctx.refusal(node, "HB503", "A star cannot stand in an expression.", "Name a column.")
    found = resolve(ctx, scope, node)
    if found.col is None:
        raise ctx.refusal(
            node,
            "HB516",
            f"{quote(found.name)} says whose a row is, so it cannot be used in an expression.",
            "It can be counted (COUNT(DISTINCT …)), joined on, and grouped by inside a sub-query.",
        )
    ctx.places[found.col.name] = node
    return found.col


def _aggregate(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if scope.aggregate is None:
        raise ctx.refusal(
            node,
            "HB512",
            f"An aggregate cannot stand in {scope.place}.",
            "Aggregates stand in SELECT, HAVING and ORDER BY; for one per person, use a sub-query grouped by the unit.",
        )
    return scope.aggregate(node)


def _named(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    name = str(node.name).lower()
    if name in NAMED_AGGREGATES:
        return _aggregate(ctx, scope, node)
    given = node.expressions
    if name == "date_part" and len(given) == 2 and isinstance(given[0], exp.Literal):
        return _part(ctx, scope, node, str(given[0].this), given[1])
    if name not in NAMED:
        raise ctx.refusal(
            node,
            "HB504",
            f"{quote(str(node.name))} is not on the list of functions.",
            "Every function on the list gives an answer or NULL on any value, never an error; see the manual.",
        )
    return apply(ctx, node, NAMED[name], [scalar(ctx, scope, arg) for arg in given])


# --- operators with a syntax of their own ------------------------------------------------------------------------


def _paren(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    return scalar(ctx, scope, node.this)


def _sum(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    sign = 1 if isinstance(node, exp.Add) else -1
    left, right = node.this, node.expression
    if isinstance(right, exp.Interval):
        return _shifted(ctx, node, scalar(ctx, scope, left), right, sign)
    if isinstance(left, exp.Interval) and sign == 1:
        return _shifted(ctx, node, scalar(ctx, scope, right), left, sign)
    a, b = scalar(ctx, scope, left), scalar(ctx, scope, right)
    if a.kind is Kind.DATE and b.kind is Kind.INTEGER:
        if not (isinstance(b, Literal) and isinstance(b.value, int)):
            raise ctx.refusal(node, "HB508", "Dates are moved by a constant number of days.", "Write the number.")
        return apply(ctx, node, "day_shift", [a, Literal(sign * b.value, Kind.INTEGER)])
    if sign == -1 and a.kind is b.kind is Kind.DATE:
        return apply(ctx, node, "days_between", [a, b])
    return apply(ctx, node, "add" if sign == 1 else "sub", [a, b])


def _shifted(ctx: Context, node: exp.Expr, moved: Expr, interval: exp.Interval, sign: int) -> Expr:
    amount = interval.this.unnest() if isinstance(interval.this, exp.Paren) else interval.this
    unit = str(interval.args["unit"].name).lower().removesuffix("s") if interval.args.get("unit") else ""
    text = str(amount.this) if isinstance(amount, exp.Literal) else ""
    if unit not in MAX_SHIFT or not re.fullmatch(r"-?\d{1,10}", text, re.ASCII) or abs(int(text)) > MAX_SHIFT[unit]:
        raise ctx.refusal(
            node,
            "HB508",
            "This interval is not a constant number of years, quarters, …, seconds up to 200 years.",
            "Write, for example, d + INTERVAL 3 MONTH.",
        )
    shift: list[Expr] = [Literal(sign * int(text), Kind.INTEGER), Literal(unit, Kind.TEXT)]
    return apply(ctx, node, "date_shift", [moved, *shift])


def _negative(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    found = scalar(ctx, scope, node.this)
    if isinstance(found, Literal) and isinstance(found.value, int | Fraction) and not isinstance(found.value, bool):
        return Literal(-found.value, found.kind)
    return apply(ctx, node, "neg", [found])


def _division(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    args = [scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)]
    whole = node.args.get("typed") and all(arg.kind is Kind.INTEGER for arg in args)
    return apply(ctx, node, "intdiv" if whole else "div", args)


def _log(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if node.args.get("expression") is None:
        return apply(ctx, node, "log10", [scalar(ctx, scope, node.this)])
    base = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if base not in ("2", "10"):
        raise ctx.refusal(node, "HB504", "Logarithms are to base e, 2 or 10.", "Write ln(x) / ln(b).")
    return apply(ctx, node, "log" + base, [scalar(ctx, scope, node.expression)])


def _chain(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    """Bind a AND b AND … (or OR) as one, however long."""
    kind, parts, stack = type(node), list[exp.Expr](), [node]
    while stack:
        part = stack.pop()
        if type(part) is kind:
            stack.extend((part.expression, part.this))
        else:
            parts.append(part)
    return apply(ctx, node, "and" if kind is exp.And else "or", [condition(ctx, scope, part) for part in parts])


def _is_not_distinct(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    args = [scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)]
    return apply(ctx, node, "not", [apply(ctx, node, "is_distinct", args)])


def _is(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    tested, against = scalar(ctx, scope, node.this), node.expression
    if isinstance(against, exp.Null):
        found = apply(ctx, node, "is_null", [tested])
    elif isinstance(against, exp.Boolean):
        truth = tested if against.this else apply(ctx, node, "not", [tested])
        found = apply(ctx, node, "coalesce", [truth, _FALSE])
    else:
        raise ctx.refusal(node, "HB503", "IS stands before NULL, TRUE or FALSE.", "Compare with =.")
    return apply(ctx, node, "not", [found]) if node.args.get("negate") else found


def _in(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if node.args.get("query") is not None:
        subquery(ctx, scope, node)
    return apply(ctx, node, "in", [scalar(ctx, scope, part) for part in (node.this, *node.expressions)])


def subquery(ctx: Context, _: Scope, node: exp.Expr) -> Expr:
    """Refuse a sub-query inside an expression."""
    raise ctx.refusal(
        node,
        "HB514",
        "A sub-query inside an expression would compare one person's row with other people's.",
        "Join with a public table or, on the unit, with a private one; what is an aggregate is asked by itself.",
    )


def _like(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    text, pattern = scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)
    if isinstance(node, exp.ILike):
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            if not pattern.value.isascii():
                raise ctx.refusal(node, "HB508", "ILIKE takes a pattern of ASCII characters.", "Use LIKE on lower(x).")
            pattern = Literal(pattern.value.lower(), Kind.TEXT)
        text = apply(ctx, node, "lower", [text])
    found = apply(ctx, node, "like", [text, pattern])
    return apply(ctx, node, "not", [found]) if node.args.get("negate") else found


def _case(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
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


def _if(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    default = node.args.get("false")
    otherwise = NULL if default is None else scalar(ctx, scope, default)
    return apply(
        ctx, node, "case", [condition(ctx, scope, node.this), scalar(ctx, scope, node.args["true"]), otherwise]
    )


def _several(name: str) -> Callable[[Context, Scope, exp.Expr], Expr]:
    return lambda ctx, scope, node: apply(
        ctx, node, name, [scalar(ctx, scope, part) for part in (node.this, *node.expressions)]
    )


def _trim(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
    return apply(ctx, node, name, [scalar(ctx, scope, node.this)])


def _concat(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    """Join texts as the function concat does: NULL counts as empty (the operator || gives NULL)."""
    empty = Literal("", Kind.TEXT)
    parts = [scalar(ctx, scope, part) for part in node.expressions]
    filled = [part if isinstance(part, Literal) else apply(ctx, node, "coalesce", [part, empty]) for part in parts]
    return apply(ctx, node, "concat", filled)


def _cast(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    kind = node.args["to"]
    name, bits = _TYPES.get(kind.this, ("", 0))
    if not name or kind.expressions:
        raise ctx.refusal(
            node,
            "HB504",
            f"CAST to {quote(kind.sql())} is not on the list.",
            "Cast to INTEGER, BIGINT, DOUBLE, VARCHAR, DATE, TIMESTAMP or BOOLEAN; use round(x, 2) for decimals.",
        )
    arg = scalar(ctx, scope, node.this)
    if isinstance(arg, Literal) and isinstance(arg.value, Fraction) and name == "to_integer":
        # a constant is a DECIMAL to SQL, which rounds half away from zero
        return whole_number(ctx, node, ranges.away(arg.value))
    if isinstance(arg, Literal) and isinstance(arg.value, str) and name in ("to_date", "to_timestamp"):
        return _constant_date(ctx, node, arg.value, Kind.DATE if name == "to_date" else Kind.TIMESTAMP)
    return apply(ctx, node, name, [arg, Literal(bits, Kind.INTEGER)] if bits else [arg])


def _constant_date(ctx: Context, node: exp.Expr, text: str, kind: Kind) -> Literal:
    found = dated_literal(ctx, node, text, {kind})
    moved = as_moment(ctx, node, found) if kind is Kind.TIMESTAMP and found.kind is Kind.DATE else found
    return moved if isinstance(moved, Literal) else found


def _extract(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    return _part(ctx, scope, node, str(node.this.name), node.expression)


def _part(ctx: Context, scope: Scope, node: exp.Expr, part: str, of: exp.Expr) -> Expr:
    name = PARTS.get(part.lower())
    if name is None:
        raise ctx.refusal(node, "HB504", f"{quote(part)} is not a known part of a date.", f"Known: {', '.join(PARTS)}.")
    found = apply(ctx, node, name, [scalar(ctx, scope, of)])
    # a part of a date is no integer to PostgreSQL, so a division of it keeps its fraction
    return apply(ctx, node, "to_real", [found]) if ctx.dialect == "postgres" else found


def _unit_of_time(ctx: Context, node: exp.Expr) -> Literal:
    unit = str(node.args["unit"].name).lower() if node.args.get("unit") is not None else ""
    if unit not in dates.UNITS:
        raise ctx.refusal(
            node, "HB504", f"{quote(unit)} is not a known unit of time.", f"Known: {', '.join(dates.UNITS)}."
        )
    return Literal(unit, Kind.TEXT)


def _date_trunc(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    return apply(ctx, node, "date_trunc", [_unit_of_time(ctx, node), scalar(ctx, scope, node.this)])


def _date_diff(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if not node.args.get("date_part_boundary"):
        raise ctx.refusal(
            node, "HB504", "date_diff is read in DuckDB's spelling alone.", "Subtract two dates for days."
        )
    ends = [scalar(ctx, scope, node.expression), scalar(ctx, scope, node.this)]
    return apply(ctx, node, "date_diff", [_unit_of_time(ctx, node), *ends])


_HANDLERS: dict[type[exp.Expr], Callable[[Context, Scope, exp.Expr], Expr]] = {
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
    exp.Coalesce: _several("coalesce"),
    exp.Greatest: _several("greatest"),
    exp.Least: _several("least"),
    exp.Trim: _trim,
    exp.Concat: _concat,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
    exp.DateDiff: _date_diff,
    exp.Anonymous: _named,
    exp.Subquery: subquery,
    exp.Exists: subquery,
}
