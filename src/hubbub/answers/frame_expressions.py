"""Expressions of frames, written as SQL: every name and value is quoted, so that none of them can become SQL.

Tested in tests/answers/test_frames.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hubbub.errors import ParameterError

Operand = Any


@dataclass(frozen=True, eq=False)
class Expression:
    """A column, a value, or something computed from them, as SQL. Compare with ==, <, …; combine with &, | and ~."""

    sql: str

    def __add__(self, other: Operand) -> Expression:
        return _binary(self, "+", other)

    def __radd__(self, other: Operand) -> Expression:
        return _binary(other, "+", self)

    def __sub__(self, other: Operand) -> Expression:
        return _binary(self, "-", other)

    def __rsub__(self, other: Operand) -> Expression:
        return _binary(other, "-", self)

    def __mul__(self, other: Operand) -> Expression:
        return _binary(self, "*", other)

    def __rmul__(self, other: Operand) -> Expression:
        return _binary(other, "*", self)

    def __truediv__(self, other: Operand) -> Expression:
        return _binary(self, "/", other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _binary(other, "/", self)

    def __neg__(self) -> Expression:
        return Expression(f"(-{self.sql})")

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return self.is_null() if other is None else _binary(self, "=", other)

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return ~self.is_null() if other is None else _binary(self, "<>", other)

    def __lt__(self, other: Operand) -> Expression:
        return _binary(self, "<", other)

    def __le__(self, other: Operand) -> Expression:
        return _binary(self, "<=", other)

    def __gt__(self, other: Operand) -> Expression:
        return _binary(self, ">", other)

    def __ge__(self, other: Operand) -> Expression:
        return _binary(self, ">=", other)

    def __and__(self, other: Operand) -> Expression:
        return _binary(self, "AND", other)

    def __or__(self, other: Operand) -> Expression:
        return _binary(self, "OR", other)

    def __invert__(self) -> Expression:
        return Expression(f"(NOT {self.sql})")

    def __bool__(self) -> bool:
        raise ParameterError(
            "HB836",
            "An expression has no truth value in Python: its rows have.",
            "Combine conditions with &, | and ~ instead of and, or and not, each in brackets.",
        )

    __hash__ = None  # type: ignore[assignment]

    def is_null(self) -> Expression:
        """Return whether it is NULL."""
        return Expression(f"({self.sql} IS NULL)")

    def is_in(self, values: Iterable[Operand]) -> Expression:
        """Return whether it is one of some values."""
        listed = ", ".join(expression(value).sql for value in values)
        if not listed:
            raise ParameterError("HB836", "is_in needs at least one value.", "Pass a list such as ['North', 'South'].")
        return Expression(f"({self.sql} IN ({listed}))")

    def between(self, low: Operand, high: Operand) -> Expression:
        """Return whether it lies between two values, ends included."""
        return Expression(f"({self.sql} BETWEEN {expression(low).sql} AND {expression(high).sql})")

    def like(self, pattern: str) -> Expression:
        """Return whether it matches a pattern with % and _."""
        return Expression(f"({self.sql} LIKE {expression(pattern).sql})")

    def __repr__(self) -> str:
        return self.sql


@dataclass(frozen=True, eq=False, repr=False)
class AggregateExpression(Expression):
    """A noisy result over rows."""

    __hash__ = None

    def filter(self, condition: Expression) -> AggregateExpression:
        """Aggregate only the rows for which a condition holds."""
        return AggregateExpression(f"{self.sql} FILTER (WHERE {condition.sql})")


def name(text: str) -> str:
    """Quote a name.

    >>> print(name('odd "name'))
    "odd ""name"
    """
    if not text or "\0" in text:
        raise ParameterError("HB836", "A name is a text that is not empty.", "Pass the name of a column or table.")
    return '"' + text.replace('"', '""') + '"'


def col(column: str) -> Expression:
    """Return a column; `col("v.age")` is not a way to name a table: write a name with a dot as it is declared."""
    return Expression(name(column))


def expression(value: Operand) -> Expression:
    """Return a value as SQL; a text is a value, never a name.

    >>> expression("O'Neil"), expression(0.5), expression(date(2020, 1, 31)), expression(True), expression(None)
    ('O''Neil', 0.5, DATE '2020-01-31', TRUE, NULL)
    """
    match value:
        case Expression():
            return value
        case None:
            return Expression("NULL")
        case bool():
            return Expression("TRUE" if value else "FALSE")
        case int():
            return Expression(str(value) if value >= 0 else f"({value})")
        case float() if math.isfinite(value):
            return expression(Decimal(repr(value)))
        case Decimal() if value.is_finite():
            return Expression(f"{value:f}" if value >= 0 else f"({value:f})")
        case str() if "\0" not in value:
            return Expression("'" + value.replace("'", "''") + "'")
        case datetime() if value.tzinfo is None:
            return Expression(f"TIMESTAMP '{value.isoformat(sep=' ')}'")
        case date() if not isinstance(value, datetime):
            return Expression(f"DATE '{value.isoformat()}'")
    raise ParameterError(
        "HB836",
        f"A {type(value).__name__} like this cannot be written as SQL.",
        "Use finite numbers, texts without NUL, dates, timestamps without a time zone, booleans or None.",
    )


def _binary(left: Operand, sign: str, right: Operand) -> Expression:
    return Expression(f"({expression(left).sql} {sign} {expression(right).sql})")


def _of(column: str | Expression) -> str:
    """Return the argument of an aggregate: a text names a column."""
    return col(column).sql if isinstance(column, str) else column.sql


def count(column: str | Expression | None = None) -> AggregateExpression:
    """Count rows, or rows in which a column is not NULL."""
    return AggregateExpression("COUNT(*)" if column is None else f"COUNT({_of(column)})")


def n_unique(column: str | Expression) -> AggregateExpression:
    """Count distinct values."""
    return AggregateExpression(f"COUNT(DISTINCT {_of(column)})")


def sum_(column: str | Expression) -> AggregateExpression:
    """Add up."""
    return AggregateExpression(f"SUM({_of(column)})")


def avg(column: str | Expression) -> AggregateExpression:
    """Average."""
    return AggregateExpression(f"AVG({_of(column)})")


def min_(column: str | Expression) -> AggregateExpression:
    """Return a smallest value."""
    return AggregateExpression(f"MIN({_of(column)})")


def max_(column: str | Expression) -> AggregateExpression:
    """Return a largest value."""
    return AggregateExpression(f"MAX({_of(column)})")


def median(column: str | Expression) -> AggregateExpression:
    """Return the median."""
    return AggregateExpression(f"MEDIAN({_of(column)})")


def quantile(column: str | Expression, share: float) -> AggregateExpression:
    """Return a quantile; 0.9 is the value that nine tenths lie below."""
    return AggregateExpression(f"QUANTILE_CONT({_of(column)}, {expression(share).sql})")


def variance(column: str | Expression) -> AggregateExpression:
    """Return the sample variance."""
    return AggregateExpression(f"VAR_SAMP({_of(column)})")


def stddev(column: str | Expression) -> AggregateExpression:
    """Return the sample standard deviation."""
    return AggregateExpression(f"STDDEV_SAMP({_of(column)})")
