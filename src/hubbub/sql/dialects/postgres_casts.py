"""Text functions, dates and casts on PostgreSQL without errors; unsafe ones are not supported.

Tested in tests/sql/test_postgres_functions.py.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from hubbub.core.schema import Kind
from hubbub.sql.dialects.base import Spelling, function, part_of_text, whole, word
from hubbub.sql.dialects.case import BLANKS, simple_case
from hubbub.sql.dialects.postgres_arithmetic import INTEGER, as_numeric, let, magnitude_bound
from hubbub.sql.dialects.postgres_syntax import SYNTAX, ZERO, PostgresSyntax
from hubbub.sql.expressions import FunctionCall


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
    amount, unit = whole(call.args[1]), word(call.args[2])
    if unit == "quarter":
        amount, unit = 3 * amount, "month"
    shifted = f"(CAST({a[0]} AS timestamp) + INTERVAL '{amount} {unit}')"
    return SYNTAX.clamped(shifted, Kind.TIMESTAMP, None)


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
    "contains": lambda _, a: f"(strpos({a[0]}, {a[1]}) > 0)",
    "like": lambda _, a: f"({a[0]} LIKE {a[1]} ESCAPE '')",
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
    "day_shift": lambda call, a: SYNTAX.clamped(f"({a[0]} + ({whole(call.args[1])}))", Kind.DATE, None),
    "days_between": lambda _, a: f"CAST({a[0]} - {a[1]} AS float8)",
    "to_integer": _to_integer,
    "to_real": _to_real,
    "to_float": _to_float,
    "to_text": _to_text,
    "to_date": _to_date(Kind.DATE),
    "to_timestamp": _to_date(Kind.TIMESTAMP),
    "to_boolean": _to_boolean,
}
