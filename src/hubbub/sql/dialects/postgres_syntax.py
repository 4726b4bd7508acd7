"""PostgreSQL's syntax for values, rounding, relations and hashes.

Tested in tests/sql/test_postgres_functions.py.
"""

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from hubbub.core.schema import Column, Kind
from hubbub.sql.dialects.base import Canonical, Dialect

#: 2⁻⁵⁰⁰: products of smaller numbers may be too small for a double.
TINY = f"'{2.0**-500!r}'::float8"


class PostgresSyntax(Dialect):
    """Values, hashes and relations on PostgreSQL 14 and later, in a UTF-8 database."""

    name: ClassVar[str] = "postgres"
    sha256 = "encode(sha256(convert_to({}, 'UTF8')), 'hex')"
    hexadecimal = "CAST(CAST('x' || {} AS bit(32)) AS bigint)"
    types: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOLEAN: "boolean",
        Kind.INTEGER: "float8",
        Kind.REAL: "float8",
        Kind.TEXT: "text",
        Kind.DATE: "date",
        Kind.TIMESTAMP: "timestamp",
    }
    integers: ClassVar[Mapping[int, str]] = {8: "smallint", 16: "smallint", 32: "integer", 64: "bigint", 128: "numeric"}
    unnamed: ClassVar[str] = ' AS "$s"'
    computed_once: ClassVar[str] = " OFFSET 0"
    fence: ClassVar[str] = " OFFSET 0"
    groups_first: ClassVar[bool] = True

    def number(self, value: int | Fraction) -> str:
        """Write the digits of the nearest double."""
        return f"'{float(value)!r}'::float8"

    def text(self, value: str) -> str:
        """Write a text with byte order; backslashes are not special (standard_conforming_strings)."""
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise self.refusal("a text with a NUL character or a lone surrogate is not supported", "Remove it.")
        return f"""('{value.replace("'", "''")}'::text COLLATE "C")"""

    def is_nan(self, text: str) -> str:
        """Compare with NaN, which equals itself in PostgreSQL."""
        return f"({text}) = 'NaN'::float8"

    def between(self, text: str, first: str, last: str) -> str:
        """Write the value only once: the planner merges subqueries, so it is computed as often as it occurs.

        The functions behind MAX and MIN of doubles are strict, unlike greatest and least, and treat NaN as the largest.
        """
        return f"float8smaller(float8larger({text}, {first}), {last})"

    def clamped(self, text: str, kind: Kind, column: Column | None) -> str:
        """Clamp dates and timestamps with the functions of their types."""
        text_clamped = super().clamped(text, kind, column)
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            name = "date_" if kind is Kind.DATE else "timestamp_"
            return text_clamped.replace("float8smaller(float8larger(", f"{name}smaller({name}larger(", 1)
        return text_clamped

    def scanned(self, column: Column) -> str:
        """Clamp a column, which already has the type of its kind."""
        name = self.identifier(column.name)
        match column.kind:
            case Kind.BOOLEAN:
                return name
            case Kind.TEXT:
                return f'(CAST({name} AS text) COLLATE "C")'
            case Kind.DATE | Kind.TIMESTAMP:
                return self.clamped(name, column.kind, column)
            case Kind.INTEGER:
                return self.clamped(f"CAST({name} AS float8)", column.kind, column)
        if column.bounds is None:
            return f"nullif({name}, 'NaN'::float8)"
        return self.rounded(self.clamped(f"nullif({name}, 'NaN'::float8)", column.kind, column), column)

    def owner(self, column: str, kind: Kind | None) -> Canonical:
        """Compare texts byte by byte."""
        return super().owner(f'(CAST({column} AS text) COLLATE "C")' if kind is Kind.TEXT else column, kind)

    def with_match(self, relation: str, other: str, columns: Sequence[str]) -> str:
        """Test with EXISTS."""
        return f"{relation} AS b WHERE EXISTS ({_match(other, columns)})"

    def without_match(self, relation: str, other: str, columns: Sequence[str]) -> str:
        """Test with NOT EXISTS."""
        return f"{relation} AS b WHERE NOT EXISTS ({_match(other, columns)})"

    def position(self, values: Sequence[str], column: str) -> str:
        """Search an array."""
        return f"array_position(ARRAY[{', '.join(values)}], {column}) - 1"

    def away(self, text: str, low: int, high: int) -> str:
        """Add the double just below ½, away from zero, and truncate: correct for every double, also beyond 2⁵²."""
        up, down = f"floor({text} + {_HALF})", f"ceil({text} - {_HALF})"
        return up if low >= 0 else down if high <= 0 else f"trunc({text} + sign({text}) * {_HALF})"

    def steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Round before clamping, which is equivalent for integer bounds and repeats the value less often."""
        inside = self.between(self.away(text, low, high), self.number(low), self.number(high))
        return f"CAST({inside} AS {kind})"

    def whole_steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Skip rounding: the cast of an integer is exact."""
        return f"CAST({self.between(text, self.number(low), self.number(high))} AS {kind})"

    def product(self, factors: Sequence[str]) -> str:
        """Write 0 for products below 2⁻⁵⁰⁰ times a bound."""
        if len(factors) == 1:
            return factors[0]
        large = " AND ".join(f"abs({factor}) >= {TINY}" for factor in factors)
        there = " AND ".join(f"{factor} IS NOT NULL" for factor in factors)
        return f"(CASE WHEN {large} THEN {' * '.join(factors)} WHEN {there} THEN {self.number(0)} END)"

    def fraction(self, text: str, divisor: Fraction) -> str:
        """Divide; tiny values become 0 if the divisor exceeds 1."""
        if divisor <= 1:
            return f"({text} / {self.number(divisor)})"
        quotient = f"{text} / {self.number(divisor)}"
        return f"(CASE WHEN abs({text}) >= {TINY} THEN {quotient} WHEN {text} IS NOT NULL THEN {self.number(0)} END)"

    def quotient(self, text: str, divisor: Fraction) -> str:
        """Write a fraction, which is already in parentheses."""
        return self.fraction(text, divisor)

    def on_grid(self, text: str, step: Fraction) -> str:
        """Use 64 bits; sums of them are numeric."""
        return f"CAST({self.away(self.fraction(text, step), -1, 1)} AS bigint)"

    def as_divisor(self, count: str) -> str:
        """Write a count as a double."""
        return self.as_double(count)

    def extreme(self, function: str, text: str, kind: Kind) -> str:
        """Use AND for the minimum of booleans."""
        if kind is Kind.BOOLEAN:
            return f"{'bool_and' if function == 'min' else 'bool_or'}({text})"
        return f"{function}({text})"

    def fitting(self, text: str, most: int) -> str:  # noqa: ARG002 - a narrower type gains nothing
        """Keep the engine's type of sums, which holds every sum."""
        return text

    def any_of(self, text: str) -> str:
        """Use max on equal values."""
        return f"max({text})"

    def own_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Chain 64-bit hashes, each seeded with the previous one; the first seed is the salt's hash.

        A double is hashed by the function that matches its equality, because the texts of the two zeros differ.
        """
        seed = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:8], "big", signed=True)
        chained = f"'{seed}'::bigint"
        for column, kind in columns:
            if kind is Kind.INTEGER:
                chained = f"hashint8extended(coalesce(CAST({column} AS bigint), 0), {chained})"
            elif kind is Kind.REAL:
                chained = f"hashfloat8extended(coalesce(CAST({column} AS float8), {self.number(0)}), {chained})"
            else:
                chained = f"""hashtextextended(coalesce(CAST({column} AS text), '') COLLATE "C", {chained})"""
        return chained

    def portable_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Order by bytes."""
        return f'({super().portable_hash(salt, columns)} COLLATE "C")'


def _match(other: str, columns: Sequence[str]) -> str:
    same = " AND ".join(f"m.{column} = b.{column}" for column in columns)
    return f"SELECT 1 FROM {other} AS m WHERE {same}"


SYNTAX = PostgresSyntax()
_HALF = SYNTAX.number(Fraction(0.49999999999999994))
#: 0 as a double.
ZERO = SYNTAX.number(0)
