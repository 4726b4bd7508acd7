"""The dialect of Spark: its numbers, texts and dates. Casts and syntax have files of their own.

Tested in tests/sql/test_spark_functions.py.
"""

from collections.abc import Mapping
from typing import ClassVar

from hubbub.core.schema import Kind
from hubbub.sql import ranges
from hubbub.sql.dialects import shifts
from hubbub.sql.dialects.base import (
    COMMON_SPELLINGS,
    FINITE,
    Spelling,
    function,
    guarded,
    infix,
    nonzero,
    part_of_text,
    whole,
    word,
)
from hubbub.sql.dialects.case import BLANKS, simple_case
from hubbub.sql.dialects.like_patterns import like_parts, like_pattern
from hubbub.sql.dialects.spark_casts import CASTS
from hubbub.sql.dialects.spark_syntax import SYNTAX, SparkSyntax, away, ceil, floor, trunc
from hubbub.sql.expressions import FunctionCall, Literal
from hubbub.sql.rules import decimal_grid

_DAYS = 719_162  # from 0001-01-01 to 1970-01-01
_MICROS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def _double(name: str) -> Spelling:
    return lambda _, a: f"CAST({name}({', '.join(a)}) AS DOUBLE)"


def _round(call: FunctionCall, a: list[str]) -> str:
    places = whole(call.args[1]) if len(a) > 1 else 0
    if places == 0:
        return away(a[0])
    scale = SYNTAX.number(10 ** abs(places))
    there, back = ("*", "/") if places > 0 else ("/", "*")
    scaled = f"({a[0]} {there} {scale})"
    most = SYNTAX.number(ranges.LARGEST)
    # keep the number if scaling overflows; NaN compares as larger
    return f"CASE WHEN abs({scaled}) <= {most} THEN {away(scaled)} {back} {scale} ELSE {a[0]} END"


def _several(name: str) -> Spelling:
    return lambda _, a: f"{name}({', '.join(a)})" if len(a) > 1 else a[0]


def _power(_: FunctionCall, a: list[str]) -> str:
    x, y = a
    defined = f"{x} > 0 OR ({x} = 0 AND {y} >= 0) OR ({x} < 0 AND {y} = rint({y}))"
    # ±1 to the power of infinity is NaN in Java and 1 in C
    endless = f"abs({x}) = 1 AND abs({y}) > {SYNTAX.number(ranges.LARGEST)}"
    return f"CASE WHEN {endless} THEN 1e0 ELSE power(CASE WHEN {defined} THEN {x} END, {y}) END"


def _width_bucket(call: FunctionCall, a: list[str]) -> str:
    x, low, high, count = a[0], a[1], a[2], whole(call.args[3])
    place = f"({SYNTAX.number(count)} * (({x} - {low}) / ({high} - {low})))"
    return (
        f"CASE WHEN {x} IS NULL THEN NULL WHEN {x} < {low} THEN 0e0 WHEN {x} >= {high} THEN {SYNTAX.number(count + 1)}"
        f" ELSE least({SYNTAX.number(count)}, {floor(place)} + 1e0) END"
    )


def _cased(name: str) -> Spelling:
    def spelled(_: FunctionCall, a: list[str]) -> str:
        before, after = simple_case(name)
        return f"translate({a[0]}, {SYNTAX.text(before)}, {SYNTAX.text(after)})"

    return spelled


def _trimmed(side: str) -> Spelling:
    return lambda _, a: f"trim({side} {SYNTAX.text(BLANKS)} FROM {a[0]})"


def _like(call: FunctionCall, a: list[str]) -> str:
    parts = like_parts(call)
    if len(parts) > 3 or (len(parts) == 3 and (parts[0] or parts[2])):
        return f"({a[0]} RLIKE {SYNTAX.text(like_pattern(parts))})"
    if len(a) > 2:
        return f"({a[0]} LIKE {a[1]} ESCAPE {a[2]})"
    # no character is special, so use an escape that does not occur
    escape = next(sign for sign in "!#~^@&;:|" if sign not in word(call.args[1]))
    return f"({a[0]} LIKE {a[1]} ESCAPE '{escape}')"


def _boundary(unit: str, text: str) -> str:
    """Number the years, quarters, …, seconds, as `dates.boundary` does."""
    match unit:
        case "year":
            return f"year({text})"
        case "quarter":
            return f"(year({text}) * 4 + quarter({text}))"
        case "month":
            return f"(year({text}) * 12 + month({text}))"
        case "day":
            return f"unix_date(CAST({text} AS DATE))"
    return f"((unix_micros(CAST({text} AS TIMESTAMP)) + {_DAYS * 86_400_000_000}) div {_MICROS[unit]})"


def _date_diff(call: FunctionCall, a: list[str]) -> str:
    unit = word(call.args[0])
    if unit == "week":  # whole weeks, as in DuckDB
        return f"CAST(datediff({a[2]}, {a[1]}) div 7 AS DOUBLE)"
    return f"CAST({_boundary(unit, a[2])} - {_boundary(unit, a[1])} AS DOUBLE)"


def _date_shift(call: FunctionCall, a: list[str]) -> str:
    unit = word(call.args[2])
    if not isinstance(call.args[1], Literal):
        months, count = shifts.shift_parts(SYNTAX, a[1], unit)
        if months:
            shifted = f"(CAST({a[0]} AS TIMESTAMP) + make_ym_interval(0, CAST({count} AS INT)))"
        else:
            shifted = f"timestamp_micros(unix_micros(CAST({a[0]} AS TIMESTAMP)) + CAST({count} AS BIGINT))"
        return SYNTAX.clamped(shifted, Kind.TIMESTAMP, None)
    amount = whole(call.args[1])
    factor, unit = {"week": (7, "day"), "quarter": (3, "month")}.get(unit, (1, unit))
    shifted = f"(CAST({a[0]} AS TIMESTAMP) + INTERVAL '{factor * amount}' {unit.upper()})"
    return SYNTAX.clamped(shifted, Kind.TIMESTAMP, None)


def _day_shift(call: FunctionCall, a: list[str]) -> str:
    if isinstance(call.args[1], Literal):
        return SYNTAX.clamped(f"date_add({a[0]}, {whole(call.args[1])})", Kind.DATE, None)
    days = shifts.day_number(SYNTAX, f"CAST(datediff({a[0]}, {shifts.FIRST}) AS DOUBLE)", a[1])
    return f"date_add({shifts.FIRST}, CAST({days} AS INT))"


def _make_date(_: FunctionCall, a: list[str]) -> str:
    return shifts.calendar_day(
        SYNTAX, a, "INT", lambda day, count: f"date_add({day}, {count})", lambda day: f"month({day})"
    )


def _seconds(_: FunctionCall, a: list[str]) -> str:
    last, first = (f"unix_micros(CAST({text} AS TIMESTAMP))" for text in a)
    return f"(CAST({last} - {first} AS DOUBLE) / 1e6)"


class SparkDialect(SparkSyntax):
    """Spark SQL 4."""

    spellings: ClassVar[Mapping[str, Spelling]] = {
        **COMMON_SPELLINGS,
        **CASTS,
        "add": infix("+"),
        "sub": infix("-"),
        "mul": infix("*"),
        "div": lambda _, a: f"({a[0]} / {nonzero(a[1])})",
        "intdiv": lambda _, a: trunc(f"({a[0]} / {nonzero(a[1])})"),
        "mod": lambda _, a: f"({a[0]} % {nonzero(a[1])})",
        "floor": lambda _, a: floor(a[0]),
        "ceil": lambda _, a: ceil(a[0]),
        "trunc": lambda _, a: trunc(a[0]),
        "sign": function("sign"),
        "round": _round,
        "decimal": lambda call, a: SYNTAX.decimal(a[0], *decimal_grid(call.args)),
        "sqrt": guarded("sqrt", ">= 0"),
        "ln": guarded("ln", "> 0"),
        "log10": guarded("log10", "> 0"),
        "log2": guarded("log2", "> 0"),
        "exp": function("exp"),
        "sin": guarded("sin", FINITE),
        "cos": guarded("cos", FINITE),
        "tan": guarded("tan", FINITE),
        "asin": guarded("asin", "BETWEEN -1 AND 1"),
        "acos": guarded("acos", "BETWEEN -1 AND 1"),
        "atan": function("atan"),
        "power": _power,
        "width_bucket": _width_bucket,
        "is_distinct": infix("IS DISTINCT FROM"),
        "greatest": _several("greatest"),
        "least": _several("least"),
        "lower": _cased("lower"),
        "upper": _cased("upper"),
        "trim": _trimmed("BOTH"),
        "ltrim": _trimmed("LEADING"),
        "rtrim": _trimmed("TRAILING"),
        "length": _double("length"),
        "substr": part_of_text("substr"),
        "left": part_of_text("left"),
        "right": part_of_text("right"),
        "strpos": _double("instr"),
        "starts_with": function("startswith"),
        "ends_with": function("endswith"),
        "contains": function("contains"),
        "replace": function("replace"),
        "split_part": lambda call, a: f"split_part({a[0]}, {a[1]}, {whole(call.args[2])})",
        "like": _like,
        "year": _double("year"),
        "quarter": _double("quarter"),
        "month": _double("month"),
        "week": _double("weekofyear"),
        "day": _double("day"),
        "dayofyear": _double("dayofyear"),
        "dow": lambda _, a: f"CAST(dayofweek({a[0]}) - 1 AS DOUBLE)",
        "isodow": lambda _, a: f"CAST(weekday({a[0]}) + 1 AS DOUBLE)",
        "hour": _double("hour"),
        "minute": _double("minute"),
        "second": _double("second"),
        "date_trunc": lambda call, a: f"date_trunc('{word(call.args[0])}', CAST({a[1]} AS TIMESTAMP))",
        "date_diff": _date_diff,
        "date_shift": _date_shift,
        "day_shift": _day_shift,
        "make_date": _make_date,
        "seconds_between": _seconds,
        "days_between": lambda _, a: f"CAST(datediff({a[0]}, {a[1]}) AS DOUBLE)",
    }


SPARK = SparkDialect()
