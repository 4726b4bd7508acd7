"""Text functions, dates and casts on PostgreSQL without errors; unsafe ones are not supported.

Tested in tests/sql/test_postgres_functions.py.
"""

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Literal

from hubbub.core.schema import Kind
from hubbub.sql.dialects import shifts
from hubbub.sql.dialects.base import Spelling, function, part_of_text, whole, word
from hubbub.sql.dialects.case import BLANKS, simple_case
from hubbub.sql.dialects.parse_times import FIELDS, time_format
from hubbub.sql.dialects.postgres_arithmetic import INTEGER, as_numeric, let, magnitude_bound
from hubbub.sql.dialects.postgres_syntax import SYNTAX, ZERO, PostgresSyntax
from hubbub.sql.expressions import FunctionCall
from hubbub.sql.expressions import Literal as Constant
from hubbub.sql.patterns import MAX_ATTEMPTS, NO_COMPLEMENT, REWRITE_COMPLEMENT, attempts, translated
from hubbub.sql.relations import MAX_TEXT_LENGTH

_NO_ESCAPE = "''"


def _cased(name: Literal["lower", "upper"]) -> Spelling:
    def spelled(call: FunctionCall, a: list[str]) -> str:
        before, after = map(SYNTAX.text, simple_case(name))
        plain = "octet_length({x}) = length({x})"
        return let(call, a, f"CASE WHEN {plain} THEN {name}({{x}}) ELSE translate({{x}}, {before}, {after}) END")

    return spelled


def _trimmed(name: str) -> Spelling:
    return lambda _, a: f"{name}({a[0]}, {SYNTAX.text(BLANKS)})"


def _double(name: str) -> Spelling:
    return lambda _, a: f"CAST({name}({', '.join(a)}) AS float8)"


def _ends_with(call: FunctionCall, a: list[str]) -> str:
    last = word(call.args[1])
    return f"(right({a[0]}, {len(last)}) = {a[1]})" if last else f"starts_with({a[0]}, {a[1]})"


def _part_of_date(name: str) -> Spelling:
    # PostgreSQL returns seconds with a fraction
    return lambda _, a: f"floor(date_part('{name}', CAST({a[0]} AS timestamp)))"


def _date_trunc(call: FunctionCall, a: list[str]) -> str:
    return f"date_trunc('{word(call.args[0])}', CAST({a[1]} AS timestamp))"


def _date_diff(call: FunctionCall, a: list[str]) -> str:
    unit = word(call.args[0])
    first, last = (f"CAST({text} AS timestamp)" for text in a[1:])

    def part(name: str) -> str:
        return f"(date_part('{name}', {last}) - date_part('{name}', {first}))"

    match unit:
        case "year":
            return part("year")
        case "quarter":
            return f"({part('year')} * 4 + {part('quarter')})"
        case "month":
            return f"({part('year')} * 12 + {part('month')})"
        case "day":
            return f"CAST(CAST({last} AS date) - CAST({first} AS date) AS float8)"
        case "week":
            # whole weeks, as in DuckDB
            return f"trunc(CAST(CAST({last} AS date) - CAST({first} AS date) AS float8) / 7)"
    seconds = {"hour": 3600, "minute": 60, "second": 1}[unit]
    return (
        f"CAST(date_part('epoch', date_trunc('{unit}', {last}) - date_trunc('{unit}', {first})) / {seconds} AS float8)"
    )


def _date_shift(call: FunctionCall, a: list[str]) -> str:
    unit = word(call.args[2])
    if not isinstance(call.args[1], Constant):
        return _shifted_by(call, a, unit)
    amount = whole(call.args[1])
    if unit == "quarter":
        amount, unit = 3 * amount, "month"
    shifted = f"(CAST({a[0]} AS timestamp) + INTERVAL '{amount} {unit}')"
    return SYNTAX.clamped(shifted, Kind.TIMESTAMP, None)


def _shifted_by(call: FunctionCall, a: list[str], unit: str) -> str:
    months, count = shifts.shift_parts(SYNTAX, a[1], unit)
    step = "INTERVAL '1 month'" if months else "INTERVAL '1 microsecond'"
    shifted = SYNTAX.clamped(f"(CAST({{x}} AS timestamp) + {{y}} * {step})", Kind.TIMESTAMP, None)
    return let(call, [a[0], count], shifted)


def _day_shift(call: FunctionCall, a: list[str]) -> str:
    if isinstance(call.args[1], Constant):
        return SYNTAX.clamped(f"({a[0]} + ({whole(call.args[1])}))", Kind.DATE, None)
    days = shifts.day_number(SYNTAX, f"CAST({{x}} - {shifts.FIRST} AS float8)", "{y}")
    return let(call, a, f"({shifts.FIRST} + CAST({days} AS integer))")


def _make_date(_: FunctionCall, a: list[str]) -> str:
    return shifts.calendar_day(SYNTAX, a, "integer", shifts.plus_days, lambda day: f"date_part('month', {day})")


def _seconds(_: FunctionCall, a: list[str]) -> str:
    passed = " - ".join(f"CAST({text} AS timestamp)" for text in a)
    # the seconds are numeric, so their microseconds are exact
    return f"(CAST(CAST(extract(epoch FROM {passed}) * 1000000 AS bigint) AS float8) / {SYNTAX.number(10**6)})"


def _no_text(call: FunctionCall, to: str) -> None:
    if call.args[0].kind is Kind.TEXT:
        raise SYNTAX.refusal(f"a cast from text to {to} is not supported", "Cast it in a database view.")


def _boolean_as_number(text: str) -> str:
    return f"CASE {text} WHEN TRUE THEN {SYNTAX.number(1)} WHEN FALSE THEN {ZERO} END"


def _to_integer(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "a number")
    if call.args[0].kind is Kind.BOOLEAN:
        return _boolean_as_number(a[0])
    size = 1 << (whole(call.args[1]) - 1)
    # round(float8) rounds half to even, like DuckDB's cast
    fits = f"round({{x}}) >= {SYNTAX.number(-size)} AND round({{x}}) < {SYNTAX.number(size)}"
    body = f"CASE WHEN {fits} THEN round({{x}}) END"
    return let(FunctionCall("to_integer", call.args[:1], call.kind), a[:1], body)


def _to_real(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "a number")
    return _boolean_as_number(a[0]) if call.args[0].kind is Kind.BOOLEAN else a[0]


def _to_float(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "a number")
    if call.args[0].kind is Kind.BOOLEAN:
        return _boolean_as_number(a[0])
    # limits beyond which a double rounds to an infinite float, or to 0
    most, least = SYNTAX.number(Fraction(2) ** 128 - Fraction(2) ** 103), SYNTAX.number(Fraction(2) ** -150)
    cast = "CAST(CAST({x} AS float4) AS float8)"
    body = f"CASE WHEN abs({{x}}) = 'Infinity'::float8 THEN {{x}} WHEN abs({{x}}) >= {most} THEN NULL "
    body += f"WHEN abs({{x}}) > {least} THEN {cast} WHEN {{x}} IS NOT NULL THEN {ZERO} END"
    return let(FunctionCall("to_float", call.args[:1], call.kind), a[:1], body)


def _to_text(call: FunctionCall, a: list[str]) -> str:
    kind = call.args[0].kind
    if kind is Kind.REAL:
        raise SYNTAX.refusal("a cast from a number with a fraction to text is not supported")
    if kind is Kind.TEXT:
        return a[0]
    if kind is not Kind.INTEGER:
        return f'(CAST({a[0]} AS text) COLLATE "C")'
    size = magnitude_bound(call.args[0])
    if size is None or size > INTEGER:
        raise SYNTAX.refusal("a cast from such a large integer to text is not supported")
    quick, exact = "CAST(CAST({x} AS bigint) AS text)", f"CAST({as_numeric('{x}')} AS text)"
    body = f"CASE WHEN abs({{x}}) < '9e18'::float8 THEN {quick} WHEN {{x}} IS NOT NULL THEN {exact} END"
    return f'({let(call, a, body)} COLLATE "C")'


def _to_date(kind: Kind) -> Spelling:
    def spelled(call: FunctionCall, a: list[str]) -> str:
        _no_text(call, "a date")
        return f"CAST({a[0]} AS {PostgresSyntax.types[kind]})"

    return spelled


def _to_boolean(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "a boolean")
    return a[0] if call.args[0].kind is Kind.BOOLEAN else f"({a[0]} <> 0)"


def _part(call: FunctionCall, *, group: bool = False) -> str:
    """Translate a pattern; where a group is taken, the ways to match have a bound, as for an engine that backtracks."""
    pattern = word(call.args[1])
    text = translated(pattern, start="^", end="$")
    if text is None:
        raise SYNTAX.refusal(NO_COMPLEMENT, REWRITE_COMPLEMENT)
    if group and attempts(pattern, MAX_TEXT_LENGTH) > MAX_ATTEMPTS:
        raise SYNTAX.refusal(
            "a group of a regular expression that can be matched in too many ways is not supported",
            "Start it with ^ and use at most one of *, + and {n,}.",
        )
    return SYNTAX.text(text.replace("(?:", "(") if group else text)


def _extract(call: FunctionCall, a: list[str]) -> str:
    return f"substring({a[0]} from {_part(call, group=whole(call.args[2]) == 1)})"


def _replace(call: FunctionCall, a: list[str]) -> str:
    every = isinstance(call.args[3], Constant) and call.args[3].value is True
    return f"regexp_replace({a[0]}, {_part(call)}, {a[2]}, {SYNTAX.text('g' if every else '')})"


def _regexp(call: FunctionCall, a: list[str]) -> str:
    """Match without captures, which PostgreSQL does with an automaton: in time in proportion to the text."""
    pattern = translated(word(call.args[1]), start="^", end="$")
    if pattern is None:
        raise SYNTAX.refusal(NO_COMPLEMENT, REWRITE_COMPLEMENT)
    return f"({a[0]} ~ {SYNTAX.text(pattern)})"


def _parse_time(call: FunctionCall, a: list[str]) -> str:
    """Read the fields with a regular expression; every function gets values that it can take, also in other rows."""
    form = time_format(word(call.args[1]))
    if form is None:
        raise SYNTAX.refusal(
            "this format of a date is not supported", "Name each field once, without blanks at its ends."
        )
    names = {"Y": "y", "m": "m", "d": "d", "H": "h", "M": "i", "S": "s"}
    fields = ", ".join(
        f"CAST(f[{form.fields.index(name) + 1}] AS integer) AS {names[name]}"
        if name in form.fields
        else f"CASE WHEN f IS NOT NULL THEN {default} END AS {names[name]}"
        for name, (_, default) in FIELDS.items()
    )
    found = f"SELECT regexp_match({a[0]}, {SYNTAX.text(f'^{form.pattern}$')}) AS f OFFSET 0"
    # year 0 is a leap year, as year 4
    day = "(make_date(CASE WHEN y = 0 THEN 4 ELSE y END, least(greatest(m, 1), 12), 1) + (d - 1))"
    valid = f"m BETWEEN 1 AND 12 AND d >= 1 AND date_part('month', {day}) = m AND h < 24 AND i < 60 AND s < 60"
    moment = f"(CAST({day} AS timestamp) + make_interval(hours => h, mins => i, secs => s))"
    first = SYNTAX.literal(datetime(1, 1, 1), Kind.TIMESTAMP)
    body = f"CASE WHEN {valid} THEN CASE WHEN y = 0 THEN {first} ELSE {moment} END END"
    read = f'(SELECT {body} FROM (SELECT {fields} FROM ({found}) AS "$found" OFFSET 0) AS "$fields")'
    return SYNTAX.clamped(read, Kind.TIMESTAMP, None)


CASTS: Mapping[str, Spelling] = {
    "lower": _cased("lower"),
    "upper": _cased("upper"),
    "trim": _trimmed("btrim"),
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "length": _double("length"),
    "substr": part_of_text("substr"),
    "left": part_of_text("left"),
    "right": part_of_text("right"),
    "strpos": _double("strpos"),
    "starts_with": function("starts_with"),
    "ends_with": _ends_with,
    "replace": function("replace"),
    "split_part": lambda call, a: f"split_part({a[0]}, {a[1]}, {whole(call.args[2])})",
    "contains": lambda _, a: f"(strpos({a[0]}, {a[1]}) > 0)",
    "like": lambda _, a: f"({a[0]} LIKE {a[1]} ESCAPE {a[2] if len(a) > 2 else _NO_ESCAPE})",
    "year": _part_of_date("year"),
    "quarter": _part_of_date("quarter"),
    "month": _part_of_date("month"),
    "week": _part_of_date("week"),
    "day": _part_of_date("day"),
    "dayofyear": _part_of_date("doy"),
    "dow": _part_of_date("dow"),
    "isodow": _part_of_date("isodow"),
    "hour": _part_of_date("hour"),
    "minute": _part_of_date("minute"),
    "second": _part_of_date("second"),
    "date_trunc": _date_trunc,
    "date_diff": _date_diff,
    "date_shift": _date_shift,
    "day_shift": _day_shift,
    "make_date": _make_date,
    "seconds_between": _seconds,
    "days_between": lambda _, a: f"CAST({a[0]} - {a[1]} AS float8)",
    "to_integer": _to_integer,
    "to_real": _to_real,
    "to_float": _to_float,
    "to_text": _to_text,
    "to_date": _to_date(Kind.DATE),
    "to_timestamp": _to_date(Kind.TIMESTAMP),
    "to_boolean": _to_boolean,
    "parse_time": _parse_time,
    "regexp": _regexp,
    "regexp_extract": _extract,
    "regexp_replace": _replace,
}
