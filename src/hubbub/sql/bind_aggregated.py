"""What aggregates of combinations and of dates are made of: texts and numbers.

Tested in tests/sql/test_aggregated_values.py.
"""

from collections.abc import Sequence

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql import bind_dates, dates
from hubbub.sql.bind_apply import NULL, apply
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_scope import Context, NameScope, is_unit
from hubbub.sql.expressions import Expr, FunctionCall, Literal


def since_1970(ctx: Context, node: exp.Expr, date: Expr) -> Expr:
    """Return the days of a date, or the seconds of a timestamp, since 1970."""
    passed = "seconds_between" if date.kind is Kind.TIMESTAMP else "days_between"
    return apply(ctx, node, passed, [date, _start(date.kind)])


def is_since_1970(expr: Expr) -> bool:
    """Tell whether an expression is what `since_1970` returns."""
    if not isinstance(expr, FunctionCall) or expr.function not in ("seconds_between", "days_between"):
        return False
    return isinstance(expr.args[1], Literal) and expr.args[1] in (_start(Kind.DATE), _start(Kind.TIMESTAMP))


def as_date(ctx: Context, node: exp.Expr, number: Expr, kind: Kind) -> Expr:
    """Turn such a number, rounded, into a date or timestamp."""
    whole = apply(ctx, node, "to_integer", [number, Literal(64, Kind.INTEGER)])
    if kind is Kind.DATE:
        return apply(ctx, node, "day_shift", [_start(kind), whole])
    return bind_dates.shift_by(ctx, node, _start(kind), whole, exp.Interval(unit=exp.Var(this="SECOND")))


def _start(kind: Kind) -> Literal:
    return Literal(dates.EPOCH if kind is Kind.TIMESTAMP else dates.EPOCH.date(), kind)


def mean_within(ctx: Context, node: exp.Expr, total: Expr, count: Expr, bounds: Bounds) -> Expr:
    """Return the mean of values within bounds from their count and sum, from the lower bound on if it is below 0."""
    low, high = (Literal(end, Kind.REAL) for end in (bounds.low, bounds.high))
    mean = apply(ctx, node, "div", [total, count])
    mean = mean if bounds.low >= 0 else apply(ctx, node, "add", [mean, low])
    within = apply(ctx, node, "greatest", [low, apply(ctx, node, "least", [high, mean])])
    # GREATEST and LEAST pass over NULL
    return apply(ctx, node, "case", [apply(ctx, node, "is_null", [mean]), NULL, within])


def combined(ctx: Context, columns: NameScope, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expr:
    """Write a combination of values as one text, from which they can be read back.

    Each value is written with its length before it, and NULL as `-`, so that no two combinations have one text.
    COUNT(DISTINCT a, b) passes over combinations with NULL; in COUNT(DISTINCT (a, b)) NULL is a value.
    """
    row = isinstance(parts[0], exp.Tuple) and len(parts) == 1
    texts = list[Expr]()
    for part in parts[0].expressions if row else parts:
        if is_unit(ctx, columns, part):
            raise ctx.error(
                node,
                "HB512",
                "COUNT(DISTINCT …) of a combination cannot contain the privacy ID.",
                "Count the rows of a subquery: SELECT COUNT(*) FROM (SELECT DISTINCT id, year FROM visits).",
            )
        value = scalar(ctx, columns, part)
        text = value if value.kind is Kind.TEXT else apply(ctx, node, "to_text", [value])
        size = apply(ctx, node, "to_text", [apply(ctx, node, "length", [text])])
        led = apply(ctx, node, "concat", [size, Literal(":", Kind.TEXT), text])
        texts.append(apply(ctx, node, "coalesce", [led, Literal("-", Kind.TEXT)]) if row else led)
    return texts[0] if len(texts) == 1 else apply(ctx, node, "concat", texts)
