"""Bind dates: intervals, date parts, units of time and date constants.

Tested in tests/sql/test_bind.py; the months between dates in tests/sql/test_spelling_calls.py.
"""

import re
from datetime import date as day_of
from fractions import Fraction

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql import dates
from hubbub.sql.bind_apply import MAX_SHIFT, apply, as_timestamp, dated_literal
from hubbub.sql.bind_scope import Context
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.nodes import DATE_PARTS
from hubbub.sql.text import quote

#: The order in which databases add the parts of an interval.
_ORDER = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def shift(ctx: Context, node: exp.Expr, date: Expr, interval: exp.Interval, sign: int) -> Expr:
    """Bind a date plus or minus an interval, such as INTERVAL 3 MONTH or INTERVAL '1 year 2 months'."""
    amount = interval.this.unnest() if isinstance(interval.this, exp.Paren) else interval.this
    unit = str(interval.args["unit"].name).lower() if interval.args.get("unit") else ""
    text = str(amount.this) if isinstance(amount, exp.Literal) else ""
    words = f"{text} {unit}".split()
    parts = {unit.removesuffix("s"): number for number, unit in zip(words[::2], words[1::2], strict=False)}
    known = len(parts) * 2 == len(words) and parts.keys() <= MAX_SHIFT.keys() and parts
    if not known or not all(_allowed(number, MAX_SHIFT[unit]) for unit, number in parts.items()):
        raise ctx.error(
            node,
            "HB508",
            "An interval must be a constant whole number of years, quarters, months, weeks, days, hours, minutes or "
            "seconds, at most 200 years.",
            "Write an interval such as d + INTERVAL 3 MONTH.",
        )
    for unit in sorted(parts, key=_ORDER.index):
        amount_and_unit: list[Expr] = [Literal(sign * int(parts[unit]), Kind.INTEGER), Literal(unit, Kind.TEXT)]
        date = apply(ctx, node, "date_shift", [date, *amount_and_unit])
    return date


def signed(ctx: Context, node: exp.Expr, amount: Expr, sign: int) -> Expr:
    """Return an amount, or its negative."""
    if isinstance(amount, Literal) and isinstance(amount.value, int):
        return Literal(sign * amount.value, amount.kind)
    return amount if sign == 1 else apply(ctx, node, "neg", [amount])


def shift_by(ctx: Context, node: exp.Expr, date: Expr, amount: Expr, interval: exp.Interval) -> Expr:
    """Bind a date plus a number of units that differs from row to row."""
    unit = str(interval.args["unit"].name).lower().removesuffix("s") if interval.args.get("unit") else ""
    whole = amount.kind is Kind.INTEGER and unit in MAX_SHIFT
    if not whole or (isinstance(amount, Literal) and not _allowed(str(amount.value), MAX_SHIFT[unit])):
        raise ctx.error(
            node,
            "HB508",
            "A date is shifted by a whole number of years, quarters, months, weeks, days, hours, minutes or seconds; "
            "a constant is at most 200 years.",
            "Round the number, as in d + CAST(n AS INTEGER) * INTERVAL 1 DAY.",
        )
    return apply(ctx, node, "date_shift", [date, amount, Literal(unit, Kind.TEXT)])


def _allowed(number: str, most: int) -> bool:
    return re.fullmatch(r"-?\d{1,10}", number, re.ASCII) is not None and abs(int(number)) <= most


def date_part(ctx: Context, node: exp.Expr, part: str, date: Expr) -> Expr:
    """Bind EXTRACT or date_part."""
    if part.lower() == "epoch":
        return apply(ctx, node, "seconds_between", [date, Literal(dates.EPOCH, Kind.TIMESTAMP)])
    if part.lower() in ("isoyear", "yearofweekiso"):
        return _iso_year(ctx, node, date)
    name = DATE_PARTS.get(part.lower())
    if name is None:
        raise ctx.error(node, "HB504", f"Unknown date part {quote(part)}.", f"Use one of: {', '.join(DATE_PARTS)}.")
    number = apply(ctx, node, name, [date])
    # PostgreSQL's date parts are not integers, so dividing one keeps the fraction
    return apply(ctx, node, "to_real", [number]) if ctx.dialect == "postgres" else number


def _iso_year(ctx: Context, node: exp.Expr, date: Expr) -> Expr:
    """Bind the year of the Thursday of a date's week."""
    day = date if date.kind is Kind.DATE else apply(ctx, node, "to_date", [date])
    to_thursday = apply(ctx, node, "sub", [Literal(4, Kind.INTEGER), apply(ctx, node, "isodow", [day])])
    return apply(ctx, node, "year", [apply(ctx, node, "day_shift", [day, to_thursday])])


def months_between(ctx: Context, node: exp.Expr, last: Expr, first: Expr) -> Expr:
    """Bind MONTHS_BETWEEN of two dates: whole months between equal days or ends of months, otherwise with days of 1/31.

    Spark rounds the result to eight digits.
    """
    if {last.kind, first.kind} != {Kind.DATE}:
        raise ctx.error(node, "HB508", "MONTHS_BETWEEN takes two dates.", "Write MONTHS_BETWEEN(CAST(a AS DATE), b).")

    def number(name: str, *args: Expr) -> Expr:
        return apply(ctx, node, name, list(args))

    def whole(value: int) -> Literal:
        return Literal(value, Kind.INTEGER)

    def ends_month(day: Expr) -> Expr:
        next_month = number("month", number("day_shift", day, whole(1)))
        changes = number("ne", next_month, number("month", day))
        # no day follows the last one that a date can have
        return number("or", changes, number("eq", day, Literal(day_of(9999, 12, 31), Kind.DATE)))

    years = number("sub", number("year", last), number("year", first))
    months = number("sub", number("month", last), number("month", first))
    together = number("add", number("mul", years, whole(12)), months)
    days = number("div", number("sub", number("day", last), number("day", first)), whole(31))
    ends = number("and", ends_month(last), ends_month(first))
    total = number("add", together, number("case", ends, Literal(Fraction(0), Kind.REAL), days))
    return number("round", total, whole(8)) if ctx.dialect == "spark" else total


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
