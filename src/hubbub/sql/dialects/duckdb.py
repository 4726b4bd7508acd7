"""The dialect of DuckDB.

Tested in tests/sql/test_functions.py.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from hubbub.core.schema import Column, Kind
from hubbub.sql.dialects import shifts
from hubbub.sql.dialects.base import (
    COMMON_SPELLINGS,
    FINITE,
    Canonical,
    Dialect,
    Spelling,
    function,
    guarded,
    infix,
    nonzero,
    part_of_text,
    whole,
    word,
)
from hubbub.sql.expressions import FunctionCall, Literal
from hubbub.sql.rules import decimal_grid


class DuckDBDialect(Dialect):
    """DuckDB 1.3 and later. Casts use TRY_CAST; arithmetic on doubles follows IEEE 754 and raises no error."""

    name: ClassVar[str] = "duckdb"
    sha256 = "sha256({})"
    hexadecimal = "CAST('0x' || {} AS BIGINT)"
    types: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOLEAN: "BOOLEAN",
        Kind.INTEGER: "DOUBLE",
        Kind.REAL: "DOUBLE",
        Kind.TEXT: "VARCHAR",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
    groups_first: ClassVar[bool] = True
    splits_units: ClassVar[bool] = True
    integers: ClassVar[Mapping[int, str]] = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT", 128: "HUGEINT"}

    def scanned(self, column: Column) -> str:
        """Cast a column to its kind, and clamp it."""
        name = self.identifier(column.name)
        match column.kind:
            case Kind.BOOLEAN:
                return f"TRY_CAST({name} AS BOOLEAN)"
            case Kind.TEXT:
                return f"(CAST({name} AS VARCHAR) COLLATE C)"
            case Kind.DATE | Kind.TIMESTAMP:
                return self.clamped(f"TRY_CAST({name} AS {self.types[column.kind]})", column.kind, column)
        double = f"TRY_CAST({name} AS DOUBLE)"
        text = self.clamped(double, column.kind, column)
        if column.kind is Kind.INTEGER:
            return text
        nan = f"CASE WHEN {self.is_nan(double)} THEN NULL"
        clean = f"{nan} {text.removeprefix('CASE ')}" if column.bounds else f"{nan} ELSE {double} END"
        return self.rounded(clean, column)

    def owner(self, column: str, kind: Kind | None) -> Canonical:
        """Read text of any type (such as ENUM or UUID) as VARCHAR, which is compared byte by byte."""
        text = f"(CAST({column} AS VARCHAR) COLLATE C)" if kind is Kind.TEXT else column
        return super().owner(text, kind)

    def in_part(self, owner: Canonical, kind: Kind, place: int, count: int) -> str:
        """Divide the hash of an owner, which is the same for every form of it."""
        return f"{self.own_hash('part', [(owner, kind)])} % {count}::UBIGINT = {place}::UBIGINT"

    def once(self, relation: str, keys: str) -> str:
        """Filter with QUALIFY."""
        return f"SELECT * FROM ({relation}) AS q QUALIFY count(*) OVER (PARTITION BY {keys}) = 1"

    def position(self, values: Sequence[str], column: str) -> str:
        """Search a list; list_position returns 0 (or NULL) for a value that is not listed."""
        return f"nullif(list_position([{', '.join(values)}], {column}), 0) - 1"

    def on_grid(self, text: str, step: Fraction) -> str:
        """Use 128 bits."""
        return f"CAST(round({self.fraction(text, step)}) AS HUGEINT)"

    def fitting(self, text: str, most: int) -> str:
        """Cast to the narrowest type, or NULL."""
        return f"TRY_CAST({text} AS {self.narrow(most)})"

    def own_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Hash the columns together."""
        return f"hash({', '.join([self.text(salt), *(name for name, _ in columns)])})"


def _double(name: str) -> Spelling:
    return lambda _, a: f"CAST({name}({', '.join(a)}) AS DOUBLE)"


def _round(call: FunctionCall, a: list[str]) -> str:
    return f"round({a[0]}, {whole(call.args[1]) if len(a) > 1 else 0})"


def _power(_: FunctionCall, a: list[str]) -> str:
    x, y = a
    # elsewhere the power is infinite or NaN, or an error with other settings of the engine
    defined = f"{x} > 0 OR ({x} = 0 AND {y} >= 0) OR ({x} < 0 AND {y} = floor({y}))"
    return f"pow(CASE WHEN {defined} THEN {x} END, {y})"


def _width_bucket(call: FunctionCall, a: list[str]) -> str:
    x, low, high, count = a[0], a[1], a[2], Fraction(whole(call.args[3]))
    number = DUCKDB.number
    inside = f"least({number(count)}, floor({number(count)} * (({x} - {low}) / ({high} - {low}))) + 1)"
    return (
        f"CASE WHEN {x} IS NULL THEN NULL WHEN {x} < {low} THEN 0e0 WHEN {x} >= {high} THEN {number(count + 1)}"
        f" ELSE {inside} END"
    )


def _part_of_date(name: str) -> Spelling:
    return lambda _, a: f"CAST(date_part('{name}', {a[0]}) AS DOUBLE)"


def _date_trunc(call: FunctionCall, a: list[str]) -> str:
    # 0001-01-01 is a Monday, so truncation never leaves the supported years
    return f"CAST(date_trunc('{word(call.args[0])}', {a[1]}) AS TIMESTAMP)"


def _date_diff(call: FunctionCall, a: list[str]) -> str:
    return f"CAST(date_diff('{word(call.args[0])}', CAST({a[1]} AS TIMESTAMP), CAST({a[2]} AS TIMESTAMP)) AS DOUBLE)"


def _date_shift(call: FunctionCall, a: list[str]) -> str:
    unit = word(call.args[2])
    if isinstance(call.args[1], Literal):
        by = f"INTERVAL ({whole(call.args[1])}) {unit.upper()}"
    else:
        months, count = shifts.shift_parts(DUCKDB, a[1], unit)
        by = f"to_months(CAST({count} AS INTEGER))" if months else f"to_microseconds(CAST({count} AS BIGINT))"
    return DUCKDB.clamped(f"CAST({a[0]} + {by} AS TIMESTAMP)", Kind.TIMESTAMP, None)


def _day_shift(call: FunctionCall, a: list[str]) -> str:
    if isinstance(call.args[1], Literal):
        return DUCKDB.clamped(f"({a[0]} + ({whole(call.args[1])}))", Kind.DATE, None)
    days = shifts.day_number(DUCKDB, f"CAST({a[0]} - {shifts.FIRST} AS DOUBLE)", a[1])
    return f"({shifts.FIRST} + CAST({days} AS INTEGER))"


def _make_date(_: FunctionCall, a: list[str]) -> str:
    return shifts.calendar_day(DUCKDB, a, "INTEGER", shifts.plus_days, lambda day: f"date_part('month', {day})")


def _seconds(_: FunctionCall, a: list[str]) -> str:
    last, first = (f"epoch_us(CAST({text} AS TIMESTAMP))" for text in a)
    return f"(CAST({last} - {first} AS DOUBLE) / 1e6)"


def _to_integer(call: FunctionCall, a: list[str]) -> str:
    return f"CAST(TRY_CAST({a[0]} AS {DuckDBDialect.integers[whole(call.args[1])]}) AS DOUBLE)"


def _to_text(call: FunctionCall, a: list[str]) -> str:
    kind, source = call.args[0].kind, a[0]
    if kind is Kind.INTEGER:
        source = f"TRY_CAST({a[0]} AS HUGEINT)"
    elif kind is Kind.REAL:
        source = DUCKDB.one_zero(a[0])
    return f"CAST({source} AS VARCHAR)"


def _to_date(kind: Kind) -> Spelling:
    return lambda _, a: DUCKDB.clamped(f"TRY_CAST({a[0]} AS {DuckDBDialect.types[kind]})", kind, None)


def _to_boolean(call: FunctionCall, a: list[str]) -> str:
    return f"TRY_CAST({a[0]} AS BOOLEAN)" if call.args[0].kind is Kind.TEXT else f"CAST({a[0]} AS BOOLEAN)"


def _parse_time(_: FunctionCall, a: list[str]) -> str:
    # DuckDB reads these words as 1900-01-01, whatever the format is
    plain = rf"regexp_replace({a[0]}, '(?i)^[\s\x0b]*(-?infinity|epoch)[\s\x0b]*$', '')"
    return DUCKDB.clamped(f"try_strptime({plain}, {a[1]})", Kind.TIMESTAMP, None)


def _extract(_: FunctionCall, a: list[str]) -> str:
    # without the test, no match is an empty text
    return f"CASE WHEN regexp_matches({a[0]}, {a[1]}) THEN regexp_extract({a[0]}, {a[1]}, CAST({a[2]} AS INTEGER)) END"


def _replace(call: FunctionCall, a: list[str]) -> str:
    every = isinstance(call.args[3], Literal) and call.args[3].value is True
    flags = ["'g'"] if every else []
    return f"regexp_replace({', '.join([*a[:3], *flags])})"


DuckDBDialect.spellings = {
    **COMMON_SPELLINGS,
    "add": infix("+"),
    "sub": infix("-"),
    "mul": infix("*"),
    "div": lambda _, a: f"({a[0]} / {nonzero(a[1])})",
    "intdiv": lambda _, a: f"trunc({a[0]} / {nonzero(a[1])})",
    "mod": lambda _, a: f"({a[0]} % {nonzero(a[1])})",
    "sign": _double("sign"),
    "trunc": function("trunc"),
    "round": _round,
    "decimal": lambda call, a: DUCKDB.decimal(a[0], *decimal_grid(call.args)),
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
    "lower": function("lower"),
    "upper": function("upper"),
    "trim": function("trim"),
    "ltrim": function("ltrim"),
    "rtrim": function("rtrim"),
    "length": _double("length"),
    "substr": part_of_text("substr"),
    "left": part_of_text("left"),
    "right": part_of_text("right"),
    "strpos": _double("strpos"),
    "starts_with": function("starts_with"),
    "ends_with": function("suffix"),
    "contains": function("contains"),
    "replace": function("replace"),
    "split_part": lambda call, a: f"split_part({a[0]}, {a[1]}, {whole(call.args[2])})",
    "regexp": function("regexp_matches"),
    "regexp_extract": _extract,
    "regexp_replace": _replace,
    "like": lambda _, a: f"({' ESCAPE '.join([f'{a[0]} LIKE {a[1]}', *a[2:]])})",
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
    "days_between": lambda _, a: f"CAST({a[0]} - {a[1]} AS DOUBLE)",
    "parse_time": _parse_time,
    "to_integer": _to_integer,
    "to_real": lambda _, a: f"TRY_CAST({a[0]} AS DOUBLE)",
    "to_float": lambda _, a: f"CAST(TRY_CAST({a[0]} AS FLOAT) AS DOUBLE)",
    "to_text": _to_text,
    "to_date": _to_date(Kind.DATE),
    "to_timestamp": _to_date(Kind.TIMESTAMP),
    "to_boolean": _to_boolean,
}
DUCKDB: DuckDBDialect = DuckDBDialect()
