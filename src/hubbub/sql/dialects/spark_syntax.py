"""The syntax of Spark, and arithmetic that its spellings share.

The session is in ANSI mode (overflow raises an error and never wraps), in UTC, and compares texts byte by byte. Guards
on arguments prevent all errors. Spark functions that differ from DuckDB's (round on decimals, floor to 64 bits, digits
of a double) are not used.

Tested in tests/sql/test_spark_functions.py.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from hubbub.core.schema import Column, Kind
from hubbub.sql.dialects.base import Dialect

#: Sums of 2⁴⁰ rows fit into 64 bits where a row adds fewer than 2²², and in two parts where it adds fewer than 2⁴⁴.
_PART = 22


class SparkSyntax(Dialect):
    """Spark SQL 4, without its functions.

    Theorem (Exact sums on Spark). The sum of at most 2⁴⁰ integers between −m and m is exact and raises nothing: for
    m < 2²² it is below 2⁶²; for m < 2⁴⁴ each v is 2²²·⌊v/2²²⌋ + (v mod 2²²), parts below 2²² + 1 either way, and both
    sums are below 2⁶³; for m < 2⁸⁵ it is below 2¹²⁵ < 10³⁸, which DECIMAL(38, 0) holds.
    Assumes  a table of fewer than 2⁴⁰ rows (10¹²), and limits of 2³⁰ rows a unit at most, so m < 2⁵³⁺³⁰.
    Tested   tests/sql/test_spark_functions.py::test_sums_are_exact_at_the_edges_of_their_parts
    """

    name: ClassVar[str] = "spark"
    sha256, hexadecimal = "sha2({}, 256)", "CAST(conv({}, 16, 10) AS BIGINT)"
    types: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOLEAN: "BOOLEAN",
        Kind.INTEGER: "DOUBLE",
        Kind.REAL: "DOUBLE",
        Kind.TEXT: "STRING",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
    integers: ClassVar[Mapping[int, str]] = {
        8: "TINYINT",
        16: "SMALLINT",
        32: "INT",
        64: "BIGINT",
        128: "DECIMAL(38, 0)",
    }
    materialized: ClassVar[str] = ""
    inlined: ClassVar[str] = ""
    unordered: ClassVar[str] = " ORDER BY NULL"
    #: One exchange by owner serves all groupings and rankings that follow.
    gathered: ClassVar[str] = "/*+ REPARTITION(u) */ "

    def identifier(self, name: str) -> str:
        """Quote a name."""
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Write a text literal with escaped backslashes."""
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def scanned(self, column: Column) -> str:
        """Clamp a column, which already has the type of its kind."""
        name = self.identifier(column.name)
        if column.kind in (Kind.BOOLEAN, Kind.TEXT):
            return name
        if column.kind in (Kind.DATE, Kind.TIMESTAMP):
            return self.clamped(name, column.kind, column)
        double = f"CAST({name} AS DOUBLE)"
        text = self.clamped(double, column.kind, column)
        if column.kind is Kind.INTEGER:
            return text
        nan = f"CASE WHEN {self.is_nan(double)} THEN NULL"
        clean = f"{nan} {text.removeprefix('CASE ')}" if column.bounds else f"{nan} ELSE {double} END"
        return self.rounded(clean, column)

    def whole_floor(self, text: str) -> str:
        """Convert the 64 bits that floor() returns."""
        return f"CAST(floor({text}) AS DOUBLE)"

    def position(self, values: Sequence[str], column: str) -> str:
        """Search an array; array_position returns 0 for a missing value, and NULL for NULL."""
        return f"nullif(array_position(array({', '.join(values)}), {column}), 0) - 1"

    def numbered(self, total: str) -> str:
        """Write two equivalent tests, chosen by the sum, so that Spark cannot evaluate them before grouping.

        A plain test depends only on the keys, and Spark would look up the key of every row instead of every group.
        """
        return f"CASE WHEN coalesce({total}, 0) >= 0 THEN g.c IS NOT NULL ELSE coalesce(g.c, -1) >= 0 END"

    def steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Round half away from zero: double, which is exact, add or subtract 1, and halve as an integer."""
        doubled = f"CAST(2e0 * {self.between(text, self.number(low), self.number(high))} AS BIGINT)"
        return f"CAST({_halved(doubled, signed=low < 0)} AS {kind})"

    def on_grid(self, text: str, step: Fraction) -> str:
        """Use 38 digits; the value is below 2⁶², so that its double fits into 64 bits."""
        doubled = f"CAST(2e0 * ({self.fraction(text, step)}) AS BIGINT)"
        return f"CAST({_halved(doubled, signed=True)} AS DECIMAL(28, 0))"

    def total(self, text: str, most: int) -> str:
        """Sum in 64 bits if they suffice, else in two parts of 64 bits if they suffice, else in 38 digits."""
        if most < 1 << _PART:
            return f"sum({text})"
        if most < 1 << (2 * _PART):
            size = 1 << _PART
            high = f"CAST(sum(shiftright(CAST({text} AS BIGINT), {_PART})) AS DECIMAL(38, 0))"
            return f"({high} * {size} + sum(CAST({text} AS BIGINT) & {size - 1}))"
        return f"sum(CAST({text} AS DECIMAL(28, 0)))"

    def cut(self, text: str) -> str:
        """Return the text unchanged: the cast drops the fraction."""
        return text

    def fitting(self, text: str, most: int) -> str:
        """Cast to the narrowest type, or NULL."""
        return f"try_cast({text} AS {self.narrow(most)})"

    def own_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Hash the columns together."""
        return f"xxhash64({', '.join([self.text(salt), *(name for name, _ in columns)])})"

    def portable_text(self, column: str, kind: Kind) -> str:
        """Write the integer part and the millionths of a real."""
        if kind is not Kind.REAL:
            return f"CAST({column} AS STRING)"
        far = self.between(column, self.number(-(1 << 62)), self.number((1 << 62) - (1 << 10)))
        near = self.between(column, self.number(-(1 << 52)), self.number(1 << 52))
        part = floor(f"(({near} - {floor(near)}) * {self.number(10**6)})")
        return " || '.' || ".join(f"CAST(CAST({x} AS BIGINT) AS STRING)" for x in (floor(far), part))


def _halved(doubled: str, *, signed: bool) -> str:
    """Write half of an integer, rounded away from zero: for x ≥ 0, round(x) = ⌊(⌊2x⌋ + 1)/2⌋."""
    if not signed:
        return f"shiftright({doubled} + 1, 1)"
    return f"(({doubled} + CASE WHEN {doubled} < 0 THEN -1 ELSE 1 END) div 2)"


def floor(x: str) -> str:
    """Round down, without Spark's floor, which returns 64 bits; rint is exact and at most 1 too large."""
    return f"(rint({x}) - CASE WHEN rint({x}) > {x} THEN 1e0 ELSE 0e0 END)"


def ceil(x: str) -> str:
    """Round up."""
    return f"(rint({x}) + CASE WHEN rint({x}) < {x} THEN 1e0 ELSE 0e0 END)"


def trunc(x: str) -> str:
    """Drop the fraction."""
    return f"(sign({x}) * {floor(f'abs({x})')})"


def away(x: str) -> str:
    """Round half away from zero: rint rounds half to even, and the difference to it is exact."""
    return f"(sign({x}) * (rint(abs({x})) + CASE WHEN abs({x}) - rint(abs({x})) = 0.5e0 THEN 1e0 ELSE 0e0 END))"


SYNTAX = SparkSyntax()
