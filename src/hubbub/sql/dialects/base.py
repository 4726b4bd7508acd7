"""The dialect interface: how `render`, `bounding` and the measures write SQL for an engine.

The base class writes common SQL, and a dialect overrides what its engine writes differently. Every text must be total:
the engine raises no error, whatever the rows contain (guards are on arguments). A function that cannot be made total on
an engine is missing from its `spellings`, or its spelling raises an error; both happen before anything is charged.

Tested in tests/sql/test_functions.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import date, datetime
from fractions import Fraction
from typing import ClassVar, NewType, Self

from hubbub.core.schema import Column, Kind, Value
from hubbub.errors import QueryError
from hubbub.sql import dates, decimals
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, released_place

#: Writes a call, given its bound form and the texts of its arguments.
Spelling = Callable[[FunctionCall, list[str]], str]
#: The text of a value in canonical form: values that the engine considers equal have the same form.
Canonical = NewType("Canonical", str)
#: The length of the text of a value of an earlier release.
_VALUE_WIDTH = 40
#: What a release gives to later queries of its statement: one noisy number, or one for each of its keys; None is NULL.
Numbers = Fraction | None | tuple[Fraction | None, ...]


class Dialect(ABC):
    """The SQL of one engine.

    values  noisy values of earlier releases of the same statement, once they are known
    """

    values: tuple["Numbers", ...] | None = None

    name: ClassVar[str]
    #: The engine's type for each kind.
    types: ClassVar[Mapping[Kind, str]]
    #: The engine's integer types by number of bits; one with 128 bits or more holds every sum.
    integers: ClassVar[Mapping[int, str]]
    #: The SHA-256 of a text in hexadecimal digits, and eight such digits as an integer of 64 bits, in place of {}.
    sha256: ClassVar[str]
    hexadecimal: ClassVar[str]
    #: The spelling of each function of the allow-list; missing functions are rejected.
    spellings: ClassVar[Mapping[str, Spelling]]
    #: Keywords for a WITH that is computed once, and for one that is inlined.
    materialized: ClassVar[str] = "MATERIALIZED "
    inlined: ClassVar[str] = "NOT MATERIALIZED "
    #: Prevents the engine from pushing conditions on the groups of a subquery down to its rows.
    fence: ClassVar[str] = ""
    #: An alias for a subquery in FROM, where the engine requires one.
    unnamed: ClassVar[str] = ""
    #: Prevents the engine from repeating a computed column wherever it is used.
    computed_once: ClassVar[str] = ""
    #: The ORDER BY of a window whose rows are numbered in any order.
    unordered: ClassVar[str] = ""
    #: A hint to partition the rows of a SELECT by their owner, u, first.
    gathered: ClassVar[str] = ""
    #: Choose the groups of each unit before the rows in them; the engine stores what is computed once.
    groups_first: ClassVar[bool] = False
    #: Whether statements that take too much memory run in parts (`sql.unit_parts`).
    splits_units: ClassVar[bool] = False

    # --- syntax ------------------------------------------------------------------------------------------------------

    def spelling(self, function: str) -> Spelling:
        """Return the spelling of a function, or raise an error."""
        spelling = self.spellings.get(function)
        if spelling is None:
            raise self.refusal(f"the function {function} is not supported")
        return spelling

    def refusal(self, what: str, remedy: str = "") -> QueryError:
        """Return the error for an expression that cannot be computed safely on this engine."""
        return QueryError(
            "HB574",
            f"{_capitalized(what)} on {self.name}, where it could fail or differ from other engines for some rows.",
            remedy or "Remove it, or compute it in a database view.",
        )

    def identifier(self, name: str) -> str:
        """Quote a name."""
        return '"' + name.replace('"', '""') + '"'

    def narrow(self, most: int) -> str:
        """Return the narrowest integer type that holds every number from −most to most."""
        return next(name for bits, name in self.integers.items() if most < 1 << (bits - 1) or bits >= 128)

    def number(self, value: int | Fraction) -> str:
        """Write a number as the nearest double."""
        shown = repr(float(value)).removesuffix(".0").replace("e+", "e")
        text = shown if "e" in shown else shown + "e0"
        return f"({text})" if text.startswith("-") else text

    def text(self, value: str) -> str:
        """Write a text literal."""
        return "'" + value.replace("'", "''") + "'"

    def literal(self, value: Value | None, kind: Kind) -> str:
        """Write a literal of a kind."""
        if value is None:
            return f"CAST(NULL AS {self.types[kind]})"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int | Fraction):
            return self.number(value)
        if isinstance(value, datetime):
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        if isinstance(value, date):
            return f"DATE '{value.isoformat()}'"
        return self.text(value)

    def reading(self, values: Sequence[Numbers]) -> Self:
        """Return the same dialect with the values of earlier releases."""
        dialect = copy(self)
        dialect.values = tuple(values)
        return dialect

    def column(self, column: Col) -> str:
        """Write a column, or the value of an earlier release."""
        place = released_place(column.name)
        if place is None:
            return self.identifier(column.name)
        if self.values is None:
            return self.released(self.identifier(column.name))
        value = self.values[place]
        if isinstance(value, tuple):
            raise AssertionError("the numbers of several keys are read as a table")
        return self.released(self.literal(value, column.kind))

    def released_rows(self, place: int) -> tuple[Fraction | None, ...] | None:
        """Return the numbers of an earlier release, one for each of its keys; None if it has not run yet."""
        value = None if self.values is None else self.values[place]
        if self.values is not None and not isinstance(value, tuple):
            raise AssertionError("a single number is read as a value")
        return value if isinstance(value, tuple) else None

    def released(self, text: str) -> str:
        """Write the value of a release: all have one length, so that no bound on a statement's size depends on it."""
        return f"({text})".ljust(_VALUE_WIDTH)

    # --- rows --------------------------------------------------------------------------------------------------------

    def is_nan(self, text: str) -> str:
        """Test a double for NaN."""
        return f"isnan({text})"

    def as_double(self, text: str) -> str:
        """Turn an integer, or an aggregate of integers, into the nearest double."""
        return f"CAST({text} AS {self.types[Kind.REAL]})"

    def one_zero(self, text: str) -> str:
        """Write -0 as 0. They are equal, so which one an engine keeps for a group could depend on the order of rows."""
        return f"CASE WHEN {text} = 0 THEN {self.number(0)} ELSE {text} END"

    def canonical(self, text: str, kind: Kind) -> Canonical:
        """Write a value of a kind in canonical form.

        Theorem (One form for each value). Let two rows have values of a kind that the engine calls equal (in GROUP BY,
        DISTINCT, joins and windows). Then their canonical forms have the same bytes, so whichever of them an engine
        keeps for a group, what is shown, hashed or ordered by is a function of the group's equality class.
        Proof    By kinds. Scans give each kind one type: BOOLEAN, DATE and TIMESTAMP (microseconds, in UTC) have one
                 form for each value. A TEXT is compared byte by byte: scans and constants have the collation "C"
                 (UTF8_BINARY on Spark), and functions of them keep it. Numbers are doubles; of these only NaN and zero
                 have several forms. A NaN is NULL at the root of every expression. A REAL zero is written as +0 here.
                 An INTEGER may be -0 by arithmetic; it is shown as a whole number, which has one zero, and every hash
                 gives the two zeros one value.
        Assumes  owners are compared in the form of `owner`, which does the same for them.
        Tested   tests/campaigns/canonical.py
                 tests/curator/test_canonical.py::test_the_sign_of_a_zero_key_tells_nobodys_bit_on_duckdb
                 tests/curator/test_canonical.py::test_the_sign_of_a_zero_key_tells_nobodys_bit_on_postgres
                 tests/sql/test_canonical.py::test_a_hash_is_a_function_of_the_equality_class
        """
        return Canonical(self.one_zero(text) if kind is Kind.REAL else text)

    def clamped(self, text: str, kind: Kind, column: Column | None) -> str:
        """Clamp a value to its bounds; NULL stays NULL (greatest and least would drop it)."""
        bounds = column.bounds if column else None
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            whole = dates.all_time(kind)
            low, high = whole.low, whole.high
            if bounds:
                low, high = max(bounds.low, low), min(bounds.high, high)
            ends = [dates.timestamp(end, kind) for end in (low, high)]
            first, last = (self.literal(end if kind is Kind.TIMESTAMP else end.date(), kind) for end in ends)
        elif bounds is None:
            return text
        else:
            grid = decimals.grid(column)
            within = bounds if grid is None else decimals.within(bounds, *grid)
            first, last = self.number(within.low), self.number(within.high)
        return self.between(text, first, last)

    def rounded(self, text: str, column: Column) -> str:
        """Round a clamped number to parts of its column's step."""
        grid = decimals.grid(column)
        return text if grid is None else self.decimal(text, *grid)

    def decimal(self, text: str, step: Fraction, count: int) -> str:
        """Round a bounded double to parts of a step, with the operations of `decimals.snap`."""
        part = step / count
        p, q = part.numerator, part.denominator
        scaled = f"{text} * {self.number(q)}" if q > 1 else text
        half = f"({scaled} + {self.number(Fraction(p, 2))})"
        number = self.whole_floor(f"{half} / {self.number(p)}" if p > 1 else half)
        product = f"{number} * {self.number(p)}" if p > 1 else number
        return f"({product} / {self.number(q)})" if q > 1 else f"({product})"

    def whole_floor(self, text: str) -> str:
        """Round a double below 2⁴⁹ down to an integer."""
        return f"floor({text})"

    def between(self, text: str, first: str, last: str) -> str:
        """Clamp a value to an interval; NULL stays NULL, and NaN counts as larger than any number."""
        return f"CASE WHEN {text} < {first} THEN {first} WHEN {text} > {last} THEN {last} ELSE {text} END"

    @abstractmethod
    def scanned(self, column: Column) -> str:
        """Write a table's column with its declarations enforced: kind, bounds, and no NaN."""

    def owner(self, column: str, kind: Kind | None) -> Canonical:
        """Write the privacy ID column in canonical form; texts are compared byte by byte."""
        return self.canonical(column, kind or Kind.TEXT)

    def in_part(self, owner: Canonical, kind: Kind, place: int, count: int) -> str:  # noqa: ARG002 - used by one engine
        """Write the test that an owner is in one part of so many, which a hash decides."""
        raise AssertionError("only statements of engines that split units run in parts")

    def once(self, relation: str, keys: str) -> str:
        """Write the rows of a relation whose keys are unique."""
        counted = f"SELECT *, count(*) OVER (PARTITION BY {keys}) AS {self.identifier('$n')} FROM ({relation}) AS q"
        return f"SELECT * FROM ({counted}) AS q WHERE {self.identifier('$n')} = 1"

    def with_match(self, relation: str, other: str, columns: Sequence[str]) -> str:
        """Write a FROM item: the rows of a named relation with a match in another, on columns that are never NULL."""
        return f"{relation} SEMI JOIN {other} USING ({', '.join(columns)})"

    def without_match(self, relation: str, other: str, columns: Sequence[str]) -> str:
        """Write a FROM item: the rows of a named relation without a match in another."""
        return f"{relation} ANTI JOIN {other} USING ({', '.join(columns)})"

    # --- cells -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def position(self, values: Sequence[str], column: str) -> str:
        """Write the index of a column's value in a list, or NULL; equal values have the first index."""

    def numbered(self, total: str) -> str:  # noqa: ARG002 - used where the engine pushes conditions down
        """Write the test that a group's cell, g.c, has a number; `total` is one of the group's sums."""
        return "g.c IS NOT NULL"

    # --- integers ----------------------------------------------------------------------------------------------------

    def away(self, text: str, low: int, high: int) -> str:  # noqa: ARG002 - some engines use the bounds
        """Round a double between two integers to the nearest integer, halves away from zero."""
        return f"round({text})"

    def steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Write a double as an integer between two others; NULL stays NULL, NaN counts as larger than any number."""
        least, most = self.number(low), self.number(high)
        return f"CAST({self.away(self.between(text, least, most), low, high)} AS {kind})"

    def whole_steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Write the same for a double that is an integer or NULL."""
        return self.steps(text, low, high, kind)

    def product(self, factors: Sequence[str]) -> str:
        """Multiply doubles whose product is at most 2⁵⁰⁰ and is rounded to steps later: tiny values may become 0."""
        return " * ".join(factors)

    def fraction(self, text: str, divisor: Fraction) -> str:
        """Divide a bounded double by a positive number; it is rounded to steps later, so tiny values may become 0."""
        return f"{text} / {self.number(divisor)}"

    def quotient(self, text: str, divisor: Fraction) -> str:
        """Write such a fraction in parentheses."""
        return f"({self.fraction(text, divisor)})"

    @abstractmethod
    def on_grid(self, text: str, step: Fraction) -> str:
        """Write a bounded double as a number of steps below 2⁶², in a type whose sums are exact."""

    def total(self, text: str, most: int) -> str:  # noqa: ARG002 - used where sums have 64 bits
        """Write the exact sum of integers between −most and most."""
        return f"sum({text})"

    def cut(self, text: str) -> str:
        """Drop the fraction of a bounded double that is cast to an integer next."""
        return f"trunc({text})"

    def as_divisor(self, count: str) -> str:
        """Write a count as the divisor of a double."""
        return count

    def extreme(self, function: str, text: str, kind: Kind) -> str:  # noqa: ARG002 - some engines need it for booleans
        """Write the aggregate min or max over values of a kind."""
        return f"{function}({text})"

    @abstractmethod
    def fitting(self, text: str, most: int) -> str:
        """Write an integer in the narrowest type for −most to most, or NULL: the engine may evaluate larger sums."""

    def any_of(self, text: str) -> str:
        """Write an aggregate that returns one of several equal values."""
        return f"any_value({text})"

    # --- hashes ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def own_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Write the engine's own hash of columns with a salt; INTEGER columns have an integer type of the engine."""

    def portable_text(self, column: str, kind: Kind) -> str:
        """Write a value as a text that is the same on every engine; reals that are close may share a text.

        Engines format doubles differently, so the integer part and the millionths of a real are written.
        """
        if kind is not Kind.REAL:
            return f"CAST({column} AS {self.types[Kind.TEXT]})"
        floor = f"floor({self.between(column, self.number(-(1 << 62)), self.number((1 << 62) - (1 << 10)))})"
        near = self.between(column, self.number(-(1 << 52)), self.number(1 << 52))
        part = f"floor(({near} - floor({near})) * {self.number(10**6)})"
        whole_part, millionths = (
            f"CAST(CAST({x} AS {self.integers[64]}) AS {self.types[Kind.TEXT]})" for x in (floor, part)
        )
        return f"{whole_part} || '.' || {millionths}"

    def portable_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Write a hash that is the same on every engine: hexadecimal md5 of the salt and the columns' texts."""
        texts = ", ".join(f"coalesce({self.portable_text(*each)}, '')" for each in columns)
        return f"md5(concat_ws('|', {self.text(salt)}, {texts}))"


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


# --- helpers for spellings -----------------------------------------------------------------------------------------


def infix(sign: str) -> Spelling:
    """Write an operator between its arguments."""
    return lambda _, a: "(" + f" {sign} ".join(a) + ")"


def function(name: str) -> Spelling:
    """Write a function with its arguments."""
    return lambda _, a: f"{name}({', '.join(a)})"


def guarded(name: str, test: str) -> Spelling:
    """Write a function whose argument is replaced by NULL where a test on it fails."""
    return lambda _, a: f"{name}(CASE WHEN {a[0]} {test} THEN {a[0]} END)"


#: A test of a number for being finite.
FINITE = "BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"


def nonzero(text: str) -> str:
    """Write a number, or NULL if it is 0."""
    return f"CASE WHEN {text} <> 0 THEN {text} END"


def whole(expr: Expr) -> int:
    """Return the constant integer that was bound as an argument."""
    if not (isinstance(expr, Literal) and isinstance(expr.value, int)):
        raise TypeError("expected a constant integer")
    return expr.value


def word(expr: Expr) -> str:
    """Return the constant text that was bound as an argument."""
    if not (isinstance(expr, Literal) and isinstance(expr.value, str)):
        raise TypeError("expected a constant text")
    return expr.value


def part_of_text(name: str) -> Spelling:
    """Write a function of a text and constant positions."""
    return lambda call, a: f"{name}({', '.join([a[0], *(str(whole(n)) for n in call.args[1:])])})"


def case(_: FunctionCall, a: list[str]) -> str:
    """Write CASE."""
    whens = " ".join(f"WHEN {a[i]} THEN {a[i + 1]}" for i in range(0, len(a) - 1, 2))
    return f"CASE {whens} ELSE {a[-1]} END"


#: Functions that all engines write in the same way, and that are total on all of them.
COMMON_SPELLINGS: Mapping[str, Spelling] = {
    "neg": lambda _, a: f"(- {a[0]})",
    "abs": function("abs"),
    "floor": function("floor"),
    "ceil": function("ceil"),
    "eq": infix("="),
    "ne": infix("<>"),
    "lt": infix("<"),
    "le": infix("<="),
    "gt": infix(">"),
    "ge": infix(">="),
    "in": lambda _, a: f"({a[0]} IN ({', '.join(a[1:])}))",
    "between": lambda _, a: f"({a[0]} BETWEEN {a[1]} AND {a[2]})",
    "is_null": lambda _, a: f"({a[0]} IS NULL)",
    "and": infix("AND"),
    "or": infix("OR"),
    "not": lambda _, a: f"(NOT {a[0]})",
    "case": case,
    "coalesce": function("coalesce"),
    "nullif": function("nullif"),
    "greatest": function("greatest"),
    "least": function("least"),
    "concat": infix("||"),
}
