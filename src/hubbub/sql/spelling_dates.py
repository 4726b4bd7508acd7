"""Spellings of dates: shifts, differences, parts and truncation in the dialects of other databases.

Tested in tests/sql/test_spellings.py.
"""

from collections.abc import Callable

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.sql.nodes import DATE_PARTS, Args, Node
from hubbub.sql.text import SourceText, quote

Rewriter = Callable[[exp.Expr, str, SourceText], exp.Expr | None]

#: The most nodes of an operand that a rewriting repeats.
MAX_REPEATED = 60

_SHIFT: Args = {"this": None, "expression": None, "unit": None}
_DIFFERENCE: Args = {**_SHIFT, "date_part_boundary": (True,)}
NODES: dict[Node, Args] = {
    exp.DateAdd: _SHIFT,
    exp.DateSub: _SHIFT,
    exp.DatetimeAdd: _SHIFT,
    exp.DatetimeSub: _SHIFT,
    exp.TimestampAdd: _SHIFT,
    exp.TimestampSub: _SHIFT,
    exp.TsOrDsAdd: _SHIFT,
    exp.AddMonths: {"this": None, "expression": None},
    exp.TimestampDiff: _DIFFERENCE,
    exp.DatetimeDiff: _DIFFERENCE,
    exp.DateTrunc: {"this": None, "unit": None, "input_type_preserved": (True,)},
    exp.DatetimeTrunc: {"this": None, "unit": None},
    exp.TsOrDsToDate: {"this": None, "format": None, "safe": (True,), "default_date": None},
    exp.StrToDate: {"this": None, "format": None, "default_year": None},
    exp.TimeStrToTime: {"this": None},
    exp.Date: {"this": None},
    exp.LastDay: {"this": None},
    exp.TimeToUnix: {"this": None},
    exp.DateFromParts: dict.fromkeys(("year", "month", "day", "allow_overflow")),
}

#: Other names of the parts of a date.
_PARTS = {
    "yy": "year",
    "yyyy": "year",
    "years": "year",
    "qq": "quarter",
    "quarters": "quarter",
    "mm": "month",
    "mon": "month",
    "months": "month",
    "dd": "day",
    "days": "day",
    "dayofmonth": "day",
    "dy": "dayofyear",
    "hh": "hour",
    "hours": "hour",
    "mi": "minute",
    "minutes": "minute",
    "ss": "second",
    "seconds": "second",
    "isoweek": "week",
    "iso_week": "week",
    "isowk": "week",
    "weekiso": "week",
    "week_iso": "week",
    "dayofweekiso": "isodow",
    "dayofweek_iso": "isodow",
    "dow_iso": "isodow",
}
_ISO_WEEKS = frozenset({"isoweek", "iso_week", "isowk", "weekiso", "week_iso"})
_WEEKS = frozenset({"week", "weeks", "wk", "ww"})
_SECONDS = frozenset({"second", "seconds", "ss"})
_WEEKDAYS = frozenset({"dayofweek", "dow", "weekday", "dw"})
#: All words for a unit of time or a part of a date.
UNIT_WORDS = frozenset({*DATE_PARTS, *_PARTS, *_WEEKS, *_WEEKDAYS, "epoch"})
#: Weeks start on Sunday in these dialects.
_SUNDAY = ("bigquery", "tsql")
#: The second of a timestamp has a fraction in these dialects.
_FRACTIONS = ("postgres", "spark")
#: Sunday is day 1 in these dialects; elsewhere it is day 0.
_FROM_ONE = ("bigquery", "spark", "tsql")

#: What to write instead of longer whole units that have passed.
_WHOLE = (
    "Write FLOOR(MONTHS_BETWEEN(last, first) / 12) for years, FLOOR(MONTHS_BETWEEN(last, first)) for months, or divide "
    "days by 7."
)


def differs(source: SourceText, node: exp.Expr, what: str, dialect: str, remedy: str) -> QueryError:
    """Build the error for a spelling that means something in its dialect that hubbub does not compute."""
    return source.error(node, "HB747", f"{what} has another meaning in the dialect {quote(dialect)}.", remedy)


def repeat(node: exp.Expr, source: SourceText) -> exp.Expr:
    """Copy an operand that a rewriting uses twice; a large one could double at every level."""
    if sum(1 for _ in node.walk()) > MAX_REPEATED:
        raise source.error(
            node, "HB746", "This operand is too large for the function around it.", "Compute it in a subquery first."
        )
    return node.copy()


def _unit(node: exp.Expr | None) -> str:
    """Return the unit of time in an argument that is a word, a name or a string."""
    if isinstance(node, exp.Day | exp.Month | exp.Year | exp.Hour | exp.Minute | exp.Second):
        return node.key  # INTERVAL '90' DAY (3): the number is a precision
    return "" if node is None else str(node.name).lower()


def _var(name: str) -> exp.Var:
    return exp.Var(this=name.upper())


def _known_unit(node: exp.Expr, unit: str, dialect: str, source: SourceText) -> str:
    """Translate a unit of time; weeks must start on Monday."""
    if unit in _WEEKS and dialect in _SUNDAY:
        raise differs(
            source, node, "The unit WEEK", dialect, "Weeks start on Sunday there. Use ISOWEEK, or the unit day."
        )
    return "week" if unit in _WEEKS else _PARTS.get(unit, unit)


# --- shifts ------------------------------------------------------------------------------------------------------


def _shift(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    """DATE_ADD, DATE_SUB, DATEADD and their like: a date plus or minus an interval."""
    sign = -1 if isinstance(node, exp.DateSub | exp.DatetimeSub | exp.TimestampSub) else 1
    unit = "month" if isinstance(node, exp.AddMonths) else _unit(node.args.get("unit")) or "day"
    return _shifted(node.this, node.expression, unit, sign)


def _shifted(date: exp.Expr, amount: exp.Expr, unit: str, sign: int) -> exp.Expr:
    if isinstance(amount, exp.Mul) and isinstance(amount.expression, exp.Neg):
        sign, amount = -sign, amount.this  # date_sub of Spark
    if isinstance(amount, exp.Interval):
        interval = amount
    else:
        while isinstance(amount, exp.Neg | exp.Paren):
            sign, amount = -sign if isinstance(amount, exp.Neg) else sign, amount.this
        interval = exp.Interval(this=_amount(amount), unit=_var(_PARTS.get(unit, unit)))
    if isinstance(date, exp.Literal) and date.is_string:
        date = _cast(date, exp.DType.DATE if len(str(date.this)) <= 10 else exp.DType.TIMESTAMP)
    kind = exp.Add if sign == 1 else exp.Sub
    return exp.Paren(this=kind(this=exp.Paren(this=date), expression=interval))


def _amount(amount: exp.Expr) -> exp.Expr:
    if not isinstance(amount, exp.Literal):
        return exp.Paren(this=amount)
    literal = exp.Literal.string(str(amount.this))
    literal.meta.update(amount.meta)
    return literal


def _multiple(node: exp.Expr, _: str, __: SourceText) -> exp.Expr | None:
    """Write n * INTERVAL '2 days' as an interval of n * 2 days."""
    interval, count = node.this.unnest(), node.expression
    if not isinstance(interval, exp.Interval):
        interval, count = node.expression.unnest(), node.this
    size = interval.this.unnest() if isinstance(interval, exp.Interval) else None
    if not isinstance(size, exp.Literal) or not str(size.this).isdecimal() or interval.args.get("unit") is None:
        return None
    number = exp.Literal.number(str(size.this))
    number.meta.update(size.meta)
    product = count if str(size.this) == "1" else exp.Mul(this=exp.Paren(this=count), expression=number)
    return exp.Interval(this=exp.Paren(this=product), unit=interval.args["unit"])


def _interval(node: exp.Expr, _: str, __: SourceText) -> None:
    unit = node.args.get("unit")
    if isinstance(unit, exp.Func):
        node.set("unit", _var(_unit(unit)))


# --- differences -------------------------------------------------------------------------------------------------


def _difference(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    """DATEDIFF counts the boundaries between two dates."""
    if dialect == "duckdb" and node.args.get("date_part_boundary"):
        return None
    unit = _unit(node.args.get("unit")) or "day"
    if dialect == "spark" and node.args.get("unit") is not None:
        raise differs(source, node, "DATEDIFF with a unit", dialect, "Write datediff(last, first) for days.")
    if dialect not in ("duckdb", "postgres") and unit in _WEEKS | _ISO_WEEKS:
        raise differs(source, node, "The number of weeks between two dates", dialect, "Divide the days by 7.")
    return exp.DateDiff(
        this=node.this,
        expression=node.expression,
        unit=_var(_known_unit(node, unit, dialect, source)),
        date_part_boundary=True,
    )


def _elapsed(node: exp.Expr, _: str, source: SourceText) -> exp.Expr:
    """TIMESTAMPDIFF counts the whole units that have passed."""
    unit = _PARTS.get(_unit(node.args.get("unit")), _unit(node.args.get("unit")))
    seconds = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}.get(unit)
    if seconds is None:
        raise source.error(node, "HB747", "Whole units that have passed are counted from seconds to days only.", _WHOLE)
    passed = exp.Extract(this=_var("epoch"), expression=exp.Sub(this=node.this, expression=node.expression))
    quotient = exp.Div(this=passed, expression=exp.Literal.number(str(seconds)), typed=False, safe=False)
    return exp.Cast(this=exp.Trunc(this=quotient), to=exp.DataType(this=exp.DType.BIGINT))


# --- parts -------------------------------------------------------------------------------------------------------


def _extract(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    fraction = dialect in _FRACTIONS and _unit(node.this) in _SECONDS
    if dialect in ("duckdb", "postgres") and isinstance(node.this, exp.Var) and _unit(node.this) in DATE_PARTS:
        return _part(node, "second", node.expression, dialect, source) if fraction else None
    return _part(node, _unit(node.this), node.expression, dialect, source)


def _part(node: exp.Expr, part: str, date: exp.Expr, dialect: str, source: SourceText) -> exp.Expr:
    """Translate a date part; a day of the week counts from Sunday = 0, as in DuckDB."""
    if part in _WEEKDAYS:
        day = exp.Extract(this=_var("dow"), expression=date)
        if dialect not in _FROM_ONE:
            return day
        return exp.Paren(this=exp.Add(this=day, expression=exp.Literal.number("1")))
    if part in _SECONDS and dialect in _FRACTIONS:
        minute = exp.TimestampTrunc(this=repeat(date, source), unit=_var("minute"))
        return exp.Extract(this=_var("epoch"), expression=exp.Sub(this=exp.Paren(this=date), expression=minute))
    return exp.Extract(this=_var(_known_unit(node, part, dialect, source)), expression=date)


def _week(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    if dialect in _SUNDAY:
        raise differs(source, node, "The unit WEEK", dialect, "Weeks start on Sunday there. Use ISOWEEK.")
    return None


def _weekday(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    return None if dialect not in _FROM_ONE else _part(node, "dow", node.this, dialect, source)


def _trunc(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    if dialect in ("duckdb", "postgres") and isinstance(node, exp.TimestampTrunc):
        return None
    unit = _known_unit(node, _unit(node.args.get("unit")), dialect, source)
    return exp.TimestampTrunc(this=node.this, unit=_var(unit))


def _seconds(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    return exp.Extract(this=_var("epoch"), expression=node.this)


# --- conversions -------------------------------------------------------------------------------------------------


def _cast(node: exp.Expr, kind: exp.DType) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType(this=kind))


def _to_date(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    form = node.args.get("format")
    return _cast(node.this if form is None else exp.StrToTime(this=node.this, format=form), exp.DType.DATE)


def _to_time(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    """Unwrap what sqlglot marks: it marks arguments that a dialect converts from text; columns have their type."""
    literal = isinstance(node.this, exp.Literal) and node.this.is_string
    return _cast(node.this, exp.DType.TIMESTAMP) if literal else node.this


def _last_day(node: exp.Expr, _: str, __: SourceText) -> exp.Expr:
    start: exp.Expr = exp.TimestampTrunc(this=node.this, unit=_var("month"))
    for kind, unit in ((exp.Add, "month"), (exp.Sub, "day")):
        start = kind(this=start, expression=exp.Interval(this=exp.Literal.string("1"), unit=_var(unit)))
    return _cast(start, exp.DType.DATE)


def _from_parts(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    parts = [node.args.get(name) for name in ("year", "month", "day")]
    texts = [str(part.this) if isinstance(part, exp.Literal) else "" for part in parts]
    if not all(text.isdecimal() for text in texts):
        if dialect == "snowflake":
            remedy = (
                "A month 13 is one of the next year there. Write DATEADD(month, m - 1, DATE_FROM_PARTS(2024, 1, 1))."
            )
            raise differs(source, node, "DATE_FROM_PARTS of columns", dialect, remedy)
        node.set("allow_overflow", None)
        return None
    year, month, day = texts
    literal = exp.Literal.string(f"{year:0>4}-{month:0>2}-{day:0>2}")
    return _cast(literal, exp.DType.DATE)


REWRITERS: dict[Node, Rewriter] = {
    **dict.fromkeys(
        (
            exp.DateAdd,
            exp.DateSub,
            exp.DatetimeAdd,
            exp.DatetimeSub,
            exp.TimestampAdd,
            exp.TimestampSub,
            exp.TsOrDsAdd,
            exp.AddMonths,
        ),
        _shift,
    ),
    exp.Interval: _interval,
    exp.Mul: _multiple,
    exp.DateDiff: _difference,
    exp.DatetimeDiff: _difference,
    exp.TimestampDiff: _elapsed,
    exp.Extract: _extract,
    exp.Week: _week,
    exp.DayOfWeek: _weekday,
    exp.DateTrunc: _trunc,
    exp.DatetimeTrunc: _trunc,
    exp.TimestampTrunc: _trunc,
    exp.TsOrDsToDate: _to_date,
    exp.StrToDate: _to_date,
    exp.Date: _to_date,
    exp.TimeStrToTime: _to_time,
    exp.LastDay: _last_day,
    exp.TimeToUnix: _seconds,
    exp.DateFromParts: _from_parts,
}


def _named(build: Callable[..., exp.Expr | None], count: int) -> Rewriter:
    def rewriter(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
        if len(node.expressions) != count:
            raise source.error(
                node, "HB501", f"{quote(str(node.name))} has too many or too few arguments.", "Change the arguments."
            )
        return build(node, *node.expressions, dialect, source)

    return rewriter


def _date_part(node: exp.Expr, part: exp.Expr, date: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    if isinstance(part, exp.Literal) and node.name.lower() == "date_part" and _unit(part) in DATE_PARTS:
        return None if dialect == "duckdb" else _part(node, _unit(part), date, dialect, source)
    return _part(node, _unit(part), date, dialect, source)


def _date_add(_: exp.Expr, unit: exp.Expr, amount: exp.Expr, date: exp.Expr, *__: object) -> exp.Expr:
    return _shifted(date, amount, _unit(unit), 1)


def _date_sub(_: exp.Expr, date: exp.Expr, amount: exp.Expr, *__: object) -> exp.Expr:
    return _shifted(date, amount, "day", -1)


def _date_sub_or_difference(node: exp.Expr, dialect: str, source: SourceText) -> exp.Expr | None:
    """Write DATE_SUB('day', a, b), which counts the whole units that have passed, and DATE_SUB(a, n)."""
    if len(node.expressions) != 3:
        return _named(_date_sub, 2)(node, dialect, source)
    unit, first, last = node.expressions
    return _elapsed(exp.TimestampDiff(this=last, expression=first, unit=_var(_unit(unit))), dialect, source)


#: Functions that sqlglot has no class for in some dialect, by name.
NAMED: dict[str, Rewriter] = {
    "date_part": _named(_date_part, 2),
    "datepart": _named(_date_part, 2),
    "dateadd": _named(_date_add, 3),
    "timestampadd": _named(_date_add, 3),
    "date_sub": _date_sub_or_difference,
    "datesub": _date_sub_or_difference,
}
