"""Group keys: finite domains become cells, which are numbered without reading the data.

A grouping set whose keys have n₁, n₂, … values has n₁·n₂·… cells. All of them appear in the result, including empty
ones. Where a key can be NULL, NULL is one of its values, as in SQL. A row whose key is none of the values belongs to no
group.
"""

import math
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind, Value
from hubbub.errors import QueryError
from hubbub.sql.dialects.base import Canonical, Dialect
from hubbub.sql.expressions import Col, Expr, Values, facts
from hubbub.sql.query import Key, Query

#: Maximum number of declared cells.
MAX_CELLS = 10_000_000
#: Maximum number of cells of keys that occur together in a public table, which are listed one by one.
MAX_LISTED = 1_000_000
#: What stands for NULL in a cell, beside the column that says so.
_SUBSTITUTES: dict[Kind, Value] = {
    Kind.BOOLEAN: False,
    Kind.INTEGER: 0,
    Kind.REAL: 0,
    Kind.TEXT: "",
    Kind.DATE: date(1970, 1, 1),
    Kind.TIMESTAMP: datetime(1970, 1, 1),
}
_FEW = 256  # number of values up to which a list is searched instead of joined


@dataclass(frozen=True)
class Domain:
    """The values that one key can take, in the order of output; with `null`, NULL is the last of them."""

    key: Key
    values: Values
    null: bool = False

    @property
    def size(self) -> int:
        """The number of values, with NULL."""
        return len(self.values) + self.null

    def shown(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Return values by their indexes as shown to analysts; NULL for −1 and for the index after the last value."""
        if isinstance(self.values, range):
            null = (codes < 0) | (codes >= len(self.values))
            integers = codes + self.values[0]
            return np.ma.array(integers, mask=null) if null.any() else integers
        return self._objects[codes]

    def typed(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Return values by their indexes in the type that post-processing expressions use."""
        if isinstance(self.values, range):
            return np.where((codes < 0) | (codes >= len(self.values)), np.nan, codes + float(self.values[0]))
        if self.kind.numeric:
            return np.array([*map(float, self.values), np.nan])[codes]  # type: ignore[arg-type]
        if self.kind in (Kind.DATE, Kind.TIMESTAMP):
            return np.array([*self.values, None], dtype="datetime64[us]")[codes]
        return self._objects[codes]

    @property
    def _objects(self) -> NDArray[np.object_]:
        out = np.empty(len(self.values) + 1, dtype=object)
        out[:-1] = [float(value) if isinstance(value, Fraction) else value for value in self.values]
        return out

    @property
    def kind(self) -> Kind:
        """The kind of the key."""
        return self.key.expr.kind

    def position(self, column: str, dialect: Dialect) -> str:
        """Write the index of a column's value, or NULL if it is not listed. Equal values share the first index."""
        if isinstance(self.values, range):
            return self._or_null(column, self._in_range(column, self.values, dialect))
        texts = [dialect.literal(value, self.kind) for value in self.values]
        return self._or_null(column, f"({dialect.position(texts, column)})" if texts else "NULL")

    def join(self, name: str, column: str, dialect: Dialect) -> "CellLookup":
        """Write the same as a join with the values, for long lists."""
        v, i = (f"{name}.{dialect.identifier(each)}" for each in ("$v", "$i"))
        if not self.values:
            return CellLookup(self._or_null(column, "NULL"), "", f"{column} IS NULL")
        if isinstance(self.values, range):
            index = self._in_range(column, self.values, dialect)
            return CellLookup(self._or_null(column, index), "", f"{self._or_null(column, index)} IS NOT NULL")
        columns = f"({dialect.identifier('$v')}, {dialect.identifier('$i')})"
        joined = f"JOIN {self.table(dialect)} AS {name}{columns} ON {v} = {column}"
        if not self.null:
            return CellLookup(i, f" {joined}", "TRUE")
        return CellLookup(self._or_null(column, i), f" LEFT {joined}", f"({column} IS NULL OR {i} IS NOT NULL)")

    def _in_range(self, column: str, values: range, dialect: Dialect) -> str:
        """Write the distance of a value from the first integer of a range, or NULL. No other number is listed."""
        first, last = dialect.number(values[0]), dialect.number(values[-1])
        index = f"CAST({column} - {first} AS {dialect.integers[64]})"
        return f"CASE WHEN {column} >= {first} AND {column} <= {last} AND {column} = floor({column}) THEN {index} END"

    def _or_null(self, column: str, index: str) -> str:
        return f"CASE WHEN {column} IS NULL THEN {len(self.values)} ELSE {index} END" if self.null else index

    def table(self, dialect: Dialect) -> str:
        """Write the values with their indexes as a relation ($v, $i).

        Values that the engine considers equal share an index, or a row would count twice: integers beyond 2⁵³ are
        compared as doubles. Equal values have equal literals, so the first of each is kept here and not by the engine.
        """
        first: dict[str, int] = {}
        for i, value in enumerate(self.values):
            first.setdefault(dialect.literal(value, self.kind), i)
        rows = ", ".join(f"({text}, {i})" for text, i in first.items())
        return f"(VALUES {rows})"


@dataclass(frozen=True, slots=True)
class CellLookup:
    """SQL that finds the cell of a row: its columns (NULL if none), the joins it needs, and a condition on the rows."""

    cell: str
    joins: str
    where: str


@dataclass(frozen=True)
class Cells:
    """The declared cells of one grouping set. A cell's number is Σ indexⱼ·strideⱼ; the last key varies fastest.

    `kept` lists the numbers of the cells that can have rows, in order, if keys occur together in a public table.
    """

    places: tuple[int, ...]  #: positions of its keys in the query
    domains: tuple[Domain, ...]
    kept: tuple[int, ...] | None = None

    @cached_property
    def size(self) -> int:
        """The number of cells; 1 if there are no keys."""
        return self.span if self.kept is None else len(self.kept)

    @cached_property
    def span(self) -> int:
        """The number of combinations of all values."""
        return math.prod(domain.size for domain in self.domains)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number of every cell."""
        return np.arange(self.span) if self.kept is None else np.array(self.kept, dtype=np.int64)

    def positions(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of cells by their numbers; −1 where there is no such cell."""
        if self.kept is None:
            return numbers
        kept = self.numbers
        near = np.minimum(np.searchsorted(kept, numbers), self.size - 1)
        return np.where(kept[near] == numbers, near, -1)

    @property
    def strides(self) -> tuple[int, ...]:
        """The change of the cell number when the index of each key grows by 1."""
        sizes = [domain.size for domain in self.domains]
        return tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of this set."""
        return tuple(domain.key for domain in self.domains)

    def lookup(self, columns: tuple[str, ...], dialect: Dialect, *, grouped: bool) -> CellLookup:
        """Write how to find the cell number of rows with these keys; `grouped` means that there are few rows."""
        pairs = list(zip(self.domains, columns, strict=True))
        if grouped and all(len(domain.values) <= _FEW for domain in self.domains):
            parts = [CellLookup(domain.position(column, dialect), "", "TRUE") for domain, column in pairs]
        else:
            parts = [domain.join(f"m{j}", column, dialect) for j, (domain, column) in enumerate(pairs)]
        integer = dialect.integers[32 if self.span < 1 << 31 else 64]
        terms = [f"CAST({part.cell} AS {integer}) * {stride}" for part, stride in zip(parts, self.strides, strict=True)]
        # use the narrowest type: there may be a pair of unit and cell for every row
        cell = f"CAST({' + '.join(terms) or 0} AS {dialect.narrow(self.span)}) AS c"
        tests = [part.where for part in parts if part.where != "TRUE"]
        return CellLookup(cell, "".join(part.joins for part in parts), " AND ".join(tests) or "TRUE")

    def names(self, dialect: Dialect) -> tuple[str, ...]:  # noqa: ARG002 - a number in every dialect
        """Name the columns that hold a cell."""
        return ("c",)

    def hashed(self, dialect: Dialect) -> tuple[tuple[str, Kind], ...]:  # noqa: ARG002
        """Return the columns that identify a cell, with their kinds."""
        return (("c", Kind.INTEGER),)

    def shown(self, prefix: str, dialect: Dialect) -> str:
        """Write the output columns that identify the cell of a result."""
        return f"CAST({prefix}c AS {dialect.integers[64]}) AS cell"

    def codes(self, place: int, most: int | None = None) -> NDArray[np.int64]:
        """Return the index of one key's value in every cell, or in the first ones.

        It is −1 if this grouping set does not have the key.
        """
        size = self.size if most is None else min(self.size, most)
        if place not in self.places:
            return np.full(size, -1)
        j = self.places.index(place)
        numbers = np.arange(size) if self.kept is None else np.array(self.kept[:size], dtype=np.int64)
        if len(self.places) == 1 and self.kept is None:
            return numbers
        return numbers // self.strides[j] % self.domains[j].size


@dataclass(frozen=True)
class DiscoveredCells:
    """Undeclared cells: every combination of key values that occurs, identified by its values.

    NULL is a value like any other, except of a key with declared values, where it stands for unlisted ones too. Engines
    join on cells, and NULL equals nothing there, so a cell has a substitute for NULL and a column that says so.
    """

    keys: tuple[Key, ...]

    @property
    def nullable(self) -> tuple[int, ...]:
        """The places of the keys of which NULL is a value."""
        known = [facts(key.expr) for key in self.keys]
        return tuple(j for j, each in enumerate(known) if each.values is None or each.null)

    @property
    def width(self) -> int:
        """The number of columns that hold a cell."""
        return len(self.keys) + len(self.nullable)

    @property
    def size(self) -> int:
        """A number larger than any unit can touch."""
        return 1 << 62

    def lookup(self, columns: tuple[Canonical, ...], dialect: Dialect, *, grouped: bool) -> CellLookup:  # noqa: ARG002
        """Write the cell as the values of its keys, and whether each is NULL. Nothing is looked up."""
        texts, nulls = list(columns), []
        for j in self.nullable:
            kind = self.keys[j].expr.kind
            texts[j] = Canonical(f"coalesce({columns[j]}, {dialect.literal(_SUBSTITUTES[kind], kind)})")
            nulls.append(Canonical(f"CASE WHEN {columns[j]} IS NULL THEN 1 ELSE 0 END"))
        present = [f"({column}) IS NOT NULL" for j, column in enumerate(columns) if j not in self.nullable]
        cell = ", ".join(f"{text} AS c{j}" for j, text in enumerate([*texts, *nulls]))
        return CellLookup(cell, "", " AND ".join(present) or "TRUE")

    def names(self, dialect: Dialect) -> tuple[str, ...]:  # noqa: ARG002 - the same in every dialect
        """Name the columns that hold a cell."""
        return tuple(f"c{j}" for j in range(self.width))

    def hashed(self, dialect: Dialect) -> tuple[tuple[str, Kind], ...]:
        """Return the keys with their kinds; numbers are doubles here."""
        kinds = [Kind.REAL if key.expr.kind.numeric else key.expr.kind for key in self.keys]
        return tuple(zip(self.names(dialect), [*kinds, *(Kind.INTEGER for _ in self.nullable)], strict=True))

    def shown(self, prefix: str, dialect: Dialect) -> str:
        """Write the values of the keys as output columns."""
        texts = [f"{prefix}{name}" for name in self.names(dialect)]
        for place, j in enumerate(self.nullable):
            texts[j] = f"CASE WHEN {texts[len(self.keys) + place]} = 0 THEN {texts[j]} END"
        return ", ".join(f"{text} AS k{j}" for j, text in enumerate(texts[: len(self.keys)]))


Groups = Cells | DiscoveredCells


def domains_of(query: Query) -> tuple[Domain, ...]:
    """Return the domain of every key, or raise an error."""
    outputs = {expr.name: repr(name) for name, expr in query.select if isinstance(expr, Col)}
    return tuple(
        Domain(key, finite_values(key.expr, outputs.get(key.name, "a grouping key")), facts(key.expr).null)
        for key in query.keys
    )


def cells(query: Query) -> tuple[Cells, ...]:
    """Return the cells of every grouping set, or raise an error."""
    return checked(grouping_sets(query))


def grouping_sets(query: Query) -> tuple[Cells, ...]:
    """Return the cells of every grouping set, however many."""
    domains = domains_of(query)
    return tuple(Cells(places, tuple(domains[place] for place in places)) for places in query.sets)


def checked(sets: tuple[Cells, ...]) -> tuple[Cells, ...]:
    """Return the grouping sets, or raise an error if they have too many cells."""
    total = sum(each.size for each in sets)
    if not 0 < total <= MAX_CELLS:
        raise QueryError(
            "HB550",
            f"The query has {total:,} groups, the product of the numbers of key values; the maximum is {MAX_CELLS:,}.",
            "Group by fewer keys or by a coarser expression.",
        )
    return sets


def finite_values(expr: Expr, name: str) -> Values:
    """Return the finite list of an expression's values, or raise an error."""
    values = facts(expr).values
    if values is None:
        raise QueryError(
            "HB551",
            f"The values of {name} are not declared, and the groups that exist could reveal who is in the data.",
            "Declare its values in hubbub.yaml, group by an expression with finitely many values, or pass delta to "
            "select groups privately.",
        )
    return values
