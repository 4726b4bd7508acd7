"""Bind dates: intervals, date parts, units of time and date constants.

Tested in tests/sql/test_bind.py.
"""

import re

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql import dates
from hubbub.sql.bind_apply import MAX_SHIFT, apply, as_timestamp, dated_literal
from hubbub.sql.bind_scope import Context
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.nodes import DATE_PARTS
from hubbub.sql.text import quote


def shift(ctx: Context, node: exp.Expr, date: Expr, interval: exp.Interval, sign: int) -> Expr:
    """Bind a date plus or minus an interval."""
    amount = interval.this.unnest() if isinstance(interval.this, exp.Paren) else interval.this
    unit = str(interval.args["unit"].name).lower().removesuffix("s") if interval.args.get("unit") else ""
    text = str(amount.this) if isinstance(amount, exp.Literal) else ""
    if unit not in MAX_SHIFT or not re.fullmatch(r"-?\d{1,10}", text, re.ASCII) or abs(int(text)) > MAX_SHIFT[unit]:
        raise ctx.error(
            node,
            "HB508",
            "An interval must be a constant whole number of years, quarters, months, weeks, days, hours, minutes or "
            "seconds, at most 200 years.",
            "Write an interval such as d + INTERVAL 3 MONTH.",
        )
    amount_and_unit: list[Expr] = [Literal(sign * int(text), Kind.INTEGER), Literal(unit, Kind.TEXT)]
    return apply(ctx, node, "date_shift", [date, *amount_and_unit])


def date_part(ctx: Context, node: exp.Expr, part: str, date: Expr) -> Expr:
    """Bind EXTRACT or date_part."""
    name = DATE_PARTS.get(part.lower())
    if name is None:
        raise ctx.error(node, "HB504", f"Unknown date part {quote(part)}.", f"Use one of: {', '.join(DATE_PARTS)}.")
    number = apply(ctx, node, name, [date])
    # PostgreSQL's date parts are not integers, so dividing one keeps the fraction
    return apply(ctx, node, "to_real", [number]) if ctx.dialect == "postgres" else number


def unit_of_time(ctx: Context, node: exp.Expr) -> Literal:
    """Bind the unit argument of date_trunc or date_diff."""
    unit = str(node.args["unit"].name).lower() if node.args.get("unit") is not None else ""
    if unit not in dates.UNITS:
        raise ctx.error(node, "HB504", f"Unknown unit of time {quote(unit)}.", f"Use one of: {', '.join(dates.UNITS)}.")
    return Literal(unit, Kind.TEXT)


def date_literal(ctx: Context, node: exp.Expr, text: str, kind: Kind) -> Literal:
    """Bind DATE '…' or TIMESTAMP '…'."""
    day = dated_literal(ctx, node, text, {kind})
    converted = as_timestamp(ctx, node, day) if kind is Kind.TIMESTAMP and day.kind is Kind.DATE else day
    return converted if isinstance(converted, Literal) else day
