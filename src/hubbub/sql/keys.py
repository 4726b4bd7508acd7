"""Groups: finite domains of keys become cells, numbered without a look at the data.

A grouping set with keys of n₁, n₂, … values has n₁·n₂·… cells; all of them are answered, empty ones too. A row whose
key is NULL, or is not one of the values, belongs to no group.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind, Value
from hubbub.errors import QueryError
from hubbub.sql.dialects.base import Canonical, Dialect
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.query import Key, Query

MOST_CELLS = 1_000_000
_FEW = 256  # values that are found by looking through a list


@dataclass(frozen=True)
class Domain:
    """The values that one key can take, in the order of output."""

    key: Key
    values: tuple[Value, ...]

    @property
    def shown(self) -> NDArray[np.object_]:
        """The values as they are shown, and None at the end."""
        out = np.empty(len(self.values) + 1, dtype=object)
        out[:-1] = [float(value) if isinstance(value, Fraction) else value for value in self.values]
        return out

    @property
    def typed(self) -> NDArray[Any]:
        """The values in the type that expressions over answers see, and a NULL at the end."""
        if self.kind.numeric:
            return np.array([*map(float, self.values), np.nan])  # type: ignore[arg-type]
        if self.kind in (Kind.DATE, Kind.TIMESTAMP):
            return np.array([*self.values, None], dtype="datetime64[us]")
        return self.shown

    @property
    def kind(self) -> Kind:
        """The kind of the key."""
        return self.key.expr.kind

    def position(self, column: str, dialect: Dialect) -> str:
        """Write the number of a column's value, NULL where it is none of them; of values that are equal, the first."""
        return f"({dialect.position([dialect.literal(value, self.kind) for value in self.values], column)})"

    def table(self, dialect: Dialect) -> str:
        """Write the values with their numbers as a relation ($v, $i).

        Two values that the engine takes for one (integers beyond 2⁵³, say) get one number, or a row would count twice.
        """
        rows = ", ".join(f"({dialect.literal(value, self.kind)}, {i})" for i, value in enumerate(self.values))
        v, i = dialect.identifier("$v"), dialect.identifier("$i")
        first = f"CAST(min({i}) AS {dialect.integers[32]}) AS {i}"
        return f"(SELECT {v}, {first} FROM (VALUES {rows}) AS t({v}, {i}) GROUP BY {v})"


@dataclass(frozen=True, slots=True)
class Placed:
    """How rows find their cell: its columns (NULL: none), the joins that they need, and a condition on the rows."""

    cell: str
    joins: str
    where: str


@dataclass(frozen=True)
class Cells:
    """The cells of one grouping set; a cell's number is Σ numberⱼ·strideⱼ, the last key running fastest."""

    places: tuple[int, ...]  #: which of the query's keys
    domains: tuple[Domain, ...]

    @cached_property
    def size(self) -> int:
        """How many cells there are; one where there are no keys."""
        return math.prod(len(domain.values) for domain in self.domains)

    @property
    def strides(self) -> tuple[int, ...]:
        """What one step of each key moves the cell's number by."""
        sizes = [len(domain.values) for domain in self.domains]
        return tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of this set."""
        return tuple(domain.key for domain in self.domains)

    def placed(self, columns: tuple[str, ...], dialect: Dialect, *, grouped: bool) -> Placed:
        """Write how rows with these keys find their cell's number; `grouped` says that the rows are few."""
        pairs = list(zip(self.domains, columns, strict=True))
        if grouped and all(len(domain.values) <= _FEW for domain in self.domains):
            numbers = [domain.position(column, dialect) for domain, column in pairs]
            joins = ""
        else:
            v, i = dialect.identifier("$v"), dialect.identifier("$i")
            numbers = [f"m{j}.{i}" for j in range(len(pairs))]
            joins = "".join(
                f" JOIN {domain.table(dialect)} AS m{j} ON m{j}.{v} = {column}"
                for j, (domain, column) in enumerate(pairs)
            )
        integer = dialect.integers[32]
        terms = [f"CAST({n} AS {integer}) * {stride}" for n, stride in zip(numbers, self.strides, strict=True)]
        # as narrow as it can be: there may be a pair of unit and cell for every row
        return Placed(f"CAST({' + '.join(terms) or 0} AS {dialect.narrow(self.size)}) AS c", joins, "TRUE")

    def names(self, dialect: Dialect) -> tuple[str, ...]:  # noqa: ARG002 - a number in every dialect
        """Name the columns that a cell is carried in."""
        return ("c",)

    def hashed(self, dialect: Dialect) -> tuple[tuple[str, Kind], ...]:  # noqa: ARG002
        """Give the columns, with their kinds, that a cell is told from others by."""
        return (("c", Kind.INTEGER),)

    def shown(self, prefix: str, dialect: Dialect) -> str:
        """Write the columns that say which cell a result is for."""
        return f"CAST({prefix}c AS {dialect.integers[64]}) AS cell"

    def codes(self, place: int) -> NDArray[np.int64]:
        """Give, for every cell, which value one of the query's keys has; −1 where this set does not have the key."""
        if place not in self.places:
            return np.full(self.size, -1)
        j = self.places.index(place)
        return np.arange(self.size) // self.strides[j] % len(self.domains[j].values)


@dataclass(frozen=True)
class Found:
    """Cells that nobody declared: every combination of keys that occurs, named by its values."""

    keys: tuple[Key, ...]

    @property
    def size(self) -> int:
        """More cells than any unit reaches."""
        return 1 << 62

    def placed(self, columns: tuple[Canonical, ...], dialect: Dialect, *, grouped: bool) -> Placed:  # noqa: ARG002
        """Write the cell as the values of its keys, none of them NULL; nothing is looked up."""
        return Placed(dialect.cell(columns), "", " AND ".join(f"({column}) IS NOT NULL" for column in columns))

    def names(self, dialect: Dialect) -> tuple[str, ...]:
        """Name the columns that a cell is carried in."""
        return dialect.cell_names(len(self.keys))

    def carried(self, dialect: Dialect) -> tuple[tuple[str, Kind], ...]:
        """Give the columns that a cell is carried in, for the engine's own hash."""
        names = self.names(dialect)
        # where one structure holds all keys, the engine hashes it as it compares it
        return self.hashed(dialect) if names == dialect.cell_keys("", len(self.keys)) else ((names[0], Kind.TEXT),)

    def hashed(self, dialect: Dialect) -> tuple[tuple[str, Kind], ...]:
        """Give the keys with their kinds; a number is a double here."""
        texts = dialect.cell_keys("", len(self.keys))
        kinds = [Kind.REAL if key.expr.kind.numeric else key.expr.kind for key in self.keys]
        return tuple(zip(texts, kinds, strict=True))

    def shown(self, prefix: str, dialect: Dialect) -> str:
        """Write the values of the keys."""
        return ", ".join(f"{text} AS k{j}" for j, text in enumerate(dialect.cell_keys(prefix, len(self.keys))))


Groups = Cells | Found


def domains_of(query: Query) -> tuple[Domain, ...]:
    """Give the domain of every key, or refuse."""
    return tuple(Domain(key, finite(key.expr, key.name)) for key in query.keys)


def cells(query: Query) -> tuple[Cells, ...]:
    """Give the cells of every grouping set, or refuse."""
    domains = domains_of(query)
    found = tuple(Cells(places, tuple(domains[place] for place in places)) for places in query.sets)
    total = sum(each.size for each in found)
    if not 0 < total <= MOST_CELLS:
        raise QueryError(
            "HB550",
            f"there are {total:,} groups, the product of all keys' values; at most {MOST_CELLS:,} can be.",
            "Group by fewer keys, or by a coarser expression of them.",
        )
    return found


def finite(expr: Expr, name: str) -> tuple[Value, ...]:
    """Give the finite list of an expression's values, or refuse."""
    values = facts(expr).values
    if not values:
        raise QueryError(
            "HB551",
            f"nothing is declared about the values of {name!r}, and which groups exist can tell who is there.",
            "Declare its values in hubbub.yaml, group by a finite expression of it, or give a δ to discover groups.",
        )
    return values
