"""Axes: columns as finite lists of categories, from declarations only.

An axis is given by the name of a column (its declared values, TRUE and FALSE, the integers or the days between its
bounds), or by a map: {'column': 'age', 'edges': [0, 18, 65, 110]} or {'column': 'age', 'bins': 10}. 'missing': TRUE
adds a category for NULL.

Tested in tests/analyses/tables/test_marginals.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hubbub.answers.cell_text import Cell
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Table, Value
from hubbub.errors import QueryError
from hubbub.sql.dialects.duckdb import DUCKDB

#: Maximum number of categories of one axis.
MAX_CATEGORIES = 10_000
#: The label of NULL.
MISSING = "missing"

_KEYS = frozenset({"column", "edges", "bins", "missing"})


@dataclass(frozen=True, slots=True)
class Axis:
    """One column of a table to publish.

    name     the column's name
    kind     the kind of the labels: that of the column, or text for bins
    labels   the label of each category, in order; None for NULL
    key      the SQL expression that rows are grouped by; `codes` are its values for each category, in order
    edges    of bins: the i-th is [edges[i], edges[i+1]), the last one closed; None if categories are values
    """

    name: str
    kind: Kind
    labels: tuple[Cell, ...]
    key: str
    codes: tuple[Value, ...]
    edges: tuple[Fraction, ...] | None = None

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.labels)

    @property
    def ordered(self) -> bool:
        """Whether the categories have an order, as numbers and dates do."""
        return self.edges is not None or self.kind not in (Kind.TEXT, Kind.BOOLEAN)

    def ends(self, place: int) -> tuple[Fraction, Fraction] | None:
        """Give the ends of a bin; None if the category is a value."""
        if self.edges is None or place >= len(self.edges) - 1:
            return None
        return self.edges[place], self.edges[place + 1]


def axes(table: Table, wanted: object) -> tuple[Axis, ...]:
    """Read a list of axes."""
    if not isinstance(wanted, Sequence) or isinstance(wanted, str) or not wanted:
        raise QueryError("HB587", "columns is empty or not a list.", "Use columns => ['region', 'age'].")
    found = tuple(axis(table, each) for each in wanted)
    if len({each.name for each in found}) < len(found):
        raise QueryError("HB587", "A column is listed twice.", "List each column once.")
    return found


def axis(table: Table, wanted: object) -> Axis:
    """Read one axis: a column's name, or a map with edges or bins."""
    asked: Mapping[str, Any] = wanted if isinstance(wanted, Mapping) else {"column": wanted}
    if not set(asked) <= _KEYS or "column" not in asked or ("edges" in asked and "bins" in asked):
        raise QueryError(
            "HB587",
            "A column must be given by its name, or as a map of 'column' with 'edges' or 'bins', and 'missing'.",
            "Use {'column': 'age', 'edges': [0, 18, 65, 110]}.",
        )
    column = _column(table, asked["column"])
    missing = asked.get("missing", False)
    if not isinstance(missing, bool):
        raise QueryError("HB587", "'missing' must be TRUE or FALSE.", "Use {'column': 'age', 'missing': TRUE}.")
    edges = _edges(column, asked)
    return _valued(column, missing=missing) if edges is None else _binned(column, edges, missing=missing)


def _column(table: Table, name: object) -> Column:
    column = table.column(name) if isinstance(name, str) else None
    if column is None:
        known = ", ".join(each.name for each in table.columns if not each.hidden)
        raise QueryError("HB588", f"{table.name} has no column {name!r}.", f"Available: {known}.")
    if table.unit is not None and column.name == table.unit.column:
        raise QueryError("HB588", f"{name} is the privacy ID column.", "Choose another column.")
    return column


def _edges(column: Column, asked: Mapping[str, Any]) -> tuple[Fraction, ...] | None:
    """Give the edges of the requested bins, if any."""
    if "edges" not in asked and "bins" not in asked:
        return None
    if not column.kind.numeric or column.bounds is None:
        raise QueryError(
            "HB588",
            f"{column.name} cannot be binned: it is not a numeric column with bounds.",
            "Declare its bounds or its values.",
        )
    low, high = column.bounds.low, column.bounds.high
    if "bins" in asked:
        count = numbers.integer(asked["bins"], f"the bins of {column.name}", 1, MAX_CATEGORIES)
        whole = column.kind is Kind.INTEGER
        ends = [low + (high - low + whole) * place / count for place in range(count)]
        found = [Fraction(math.ceil(end)) if whole else end for end in ends] + [high]
    else:
        given = asked["edges"]
        if not isinstance(given, Sequence) or isinstance(given, str) or not 2 <= len(given) <= MAX_CATEGORIES + 1:
            raise QueryError("HB587", f"The edges of {column.name} must be a list of numbers.", "Use [0, 18, 65, 110].")
        found = [numbers.exact(edge, f"an edge of {column.name}") for edge in given]
    # the last bin is closed, so it may be a single point; the others must not be empty
    if any(not one < other for one, other in pairwise(found[:-1])) or not found[-2] <= found[-1]:
        raise QueryError(
            "HB587", f"The edges of {column.name} are not in increasing order.", "Use fewer bins, or increasing edges."
        )
    if not low <= found[0] <= found[-1] <= high:
        span = f"{numbers.brief(low)} to {numbers.brief(high)}"
        raise QueryError("HB587", f"The edges of {column.name} lie outside its bounds, {span}.", "Move them inside.")
    return tuple(found)


def _binned(column: Column, edges: tuple[Fraction, ...], *, missing: bool) -> Axis:
    name = DUCKDB.identifier(column.name)
    # values outside all bins are in no cell, like those outside a declared list
    tests = [f"WHEN {name} < {_number(edges[0])} OR {name} > {_number(edges[-1])} THEN NULL"]
    tests += [f"WHEN {name} < {_number(edge)} THEN {code}" for code, edge in enumerate(edges[1:-1])]
    last = len(edges) - 2
    tests.append(f"WHEN {name} IS NOT NULL THEN {last}")
    labels: list[Cell] = [_span(edges, place, whole=column.kind is Kind.INTEGER) for place in range(last + 1)]
    if missing:
        labels.append(None)
        tests.append(f"ELSE {last + 1}")
    codes = tuple(range(len(labels)))
    return Axis(column.name, Kind.TEXT, tuple(labels), f"CASE {' '.join(tests)} END", codes, edges)


def _span(edges: Sequence[Fraction], place: int, *, whole: bool) -> str:
    """Label a bin: integers by its first and last value, others as an interval.

    >>> edges = [Fraction(0), Fraction(18), Fraction(65)]
    >>> _span(edges, 0, whole=True), _span(edges, 1, whole=True), _span(edges, 0, whole=False)
    ('0–17', '18–65', '[0, 18)')
    """
    low, high, last = edges[place], edges[place + 1], place == len(edges) - 2
    if not whole:
        return f"[{numbers.brief(low)}, {numbers.brief(high)}{']' if last else ')'}"
    first, final = math.ceil(low), math.floor(high) if last else math.ceil(high) - 1
    return str(first) if first == final else f"{first}–{final}"


def _valued(column: Column, *, missing: bool) -> Axis:
    values = listed(column)
    if values is None or not 1 <= len(values) <= MAX_CATEGORIES:
        raise QueryError(
            "HB588",
            f"The values of {column.name} are not declared, and which values occur is not public.",
            "Declare its values in hubbub.yaml, or use 'bins' or 'edges' if it has bounds.",
        )
    labels = tuple(float(value) if isinstance(value, Fraction) else value for value in values)
    name = DUCKDB.identifier(column.name)
    if not missing:
        return Axis(column.name, column.kind, labels, name, values)
    tests = [f"WHEN {name} = {DUCKDB.literal(value, column.kind)} THEN {code}" for code, value in enumerate(values)]
    key = f"CASE {' '.join(tests)} WHEN {name} IS NULL THEN {len(values)} END"
    return Axis(column.name, column.kind, (*labels, None), key, tuple(range(len(values) + 1)))


def listed(column: Column) -> tuple[Value, ...] | None:
    """List the values that a column can have, if its declaration determines them."""
    if column.values is not None:
        other = () if column.other is None or column.other in column.values else (column.other,)
        return (*column.values, *other)
    if column.kind is Kind.BOOLEAN:
        return (False, True)
    if column.bounds is None or column.kind not in (Kind.INTEGER, Kind.DATE):
        return None
    low, high = math.ceil(column.bounds.low), math.floor(column.bounds.high)
    if high - low >= MAX_CATEGORIES:
        return None
    if column.kind is Kind.INTEGER:
        return tuple(range(low, high + 1))
    return tuple(date(1970, 1, 1) + timedelta(days=day) for day in range(low, high + 1))


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    # with the digits of a double, because the engine compares doubles
    return repr(float(value))
