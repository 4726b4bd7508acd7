"""The dialect of DuckDB.

Tested in tests/sql/test_functions.py.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from hubbub.core.schema import Column, Kind
from hubbub.sql.dialects.base import (
    COMMON_SPELLINGS,
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
from hubbub.sql.expressions import FunctionCall
from hubbub.sql.rules import decimal_grid


class DuckDBDialect(Dialect):
    """DuckDB 1.3 and later. Casts use TRY_CAST; arithmetic on doubles follows IEEE 754 and raises no error."""

    name: ClassVar[str] = "duckdb"
    types: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOLEAN: "BOOLEAN",
        Kind.INTEGER: "DOUBLE",
        Kind.REAL: "DOUBLE",
        Kind.TEXT: "VARCHAR",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
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

    def once(self, relation: str, keys: str) -> str:
        """Filter with QUALIFY."""
        return f"SELECT * FROM ({relation}) AS q QUALIFY count(*) OVER (PARTITION BY {keys}) = 1"

    def position(self, values: Sequence[str], column: str) -> str:
        """Search a list; list_position returns 0 (or NULL) for a value that is not listed."""
        return f"nullif(list_position([{', '.join(values)}], {column}), 0) - 1"

    def cell_names(self, keys: int) -> tuple[str, ...]:  # noqa: ARG002 - one column holds them all
        """Hold an undeclared cell in one struct."""
        return ("c",)

    def cell(self, columns: Sequence[Canonical]) -> str:
        """Pack the keys."""
        return f"struct_pack({', '.join(f'k{j} := {column}' for j, column in enumerate(columns))}) AS c"

    def cell_keys(self, prefix: str, keys: int) -> tuple[str, ...]:
        """Unpack the keys."""
        return tuple(f"{prefix}c.k{j}" for j in range(keys))

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
    amount, unit = whole(call.args[1]), word(call.args[2])
    shifted = f"CAST({a[0]} + INTERVAL ({amount}) {unit.upper()} AS TIMESTAMP)"
    return DUCKDB.clamped(shifted, Kind.TIMESTAMP, None)


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
    "like": infix("LIKE"),
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
    "day_shift": lambda call, a: DUCKDB.clamped(f"({a[0]} + ({whole(call.args[1])}))", Kind.DATE, None),
    "days_between": lambda _, a: f"CAST({a[0]} - {a[1]} AS DOUBLE)",
    "to_integer": _to_integer,
    "to_real": lambda _, a: f"TRY_CAST({a[0]} AS DOUBLE)",
    "to_float": lambda _, a: f"CAST(TRY_CAST({a[0]} AS FLOAT) AS DOUBLE)",
    "to_text": _to_text,
    "to_date": _to_date(Kind.DATE),
    "to_timestamp": _to_date(Kind.TIMESTAMP),
    "to_boolean": _to_boolean,
}
DUCKDB: DuckDBDialect = DuckDBDialect()
