"""Rows in memory, for analyses that need more than sums. The only place where rows leave an engine.

A minimum cut or a user-defined function needs the rows themselves. They are a secret in the curator's memory, and only
the output of a mechanism is released; they are not written to disk, logged or sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, Setting
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Table
from hubbub.errors import QueryError, RunError
from hubbub.sql import render
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.expressions import Col
from hubbub.sql.relations import UNIT, Scan

#: A table with more rows fails with the constant error, as if it did not fit into an engine's memory.
MAX_ROWS = 5_000_000

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class RowData:
    """Rows: each column as an array, and the unit of each row (numbers from 0; None if each row is its own unit).

    Numbers and booleans are doubles, NaN for NULL; text is an object array, None for NULL; times are datetime64.
    """

    columns: Mapping[str, Values]
    owners: NDArray[np.int64] | None

    @property
    def size(self) -> int:
        """The number of rows."""
        return next((len(each) for each in self.columns.values()), 0)

    def ordered(self) -> "RowData":
        """Sort the rows by their values: engines return them in any order, which another row may change."""
        keys = [rank for values in self.columns.values() for rank in _ranks(values)]
        order = np.lexsort(keys)
        owners = None if self.owners is None else self.owners[order]
        return RowData({name: values[order] for name, values in self.columns.items()}, owners)

    def only(self, kept: NDArray[np.bool_]) -> dict[str, Values]:
        """Give the columns of the selected rows."""
        return {name: values[kept] for name, values in self.columns.items()}


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table: declared columns only, clamped to their declarations by the scan."""

    table: Table
    columns: tuple[Column, ...]
    render_options: RenderOptions

    @property
    def sql(self) -> str:
        """The SQL for the engine."""
        dialect = self.render_options.dialect
        columns = tuple(Col(f"v{i}", each.kind) for i, each in enumerate(self.columns))
        scan = Scan(self.table, columns, tuple(each.name for each in self.columns))
        return f"SELECT * FROM ({render.relation(scan, dialect)}) AS e LIMIT {MAX_ROWS + 1}"  # noqa: S608 - rendered

    def take(self, found: Arrays) -> RowData:
        """Read the result of the engine."""
        columns = {each.name: _plain(found[f"v{i}"], each.kind) for i, each in enumerate(self.columns)}
        if len(found["v0"]) > MAX_ROWS:
            raise RunError
        owners = found.get(UNIT)
        if owners is None:
            return RowData(columns, None)
        return RowData(columns, numbered(np.asarray(np.ma.getdata(owners))))


def numbered(values: Values) -> NDArray[np.int64]:
    r"""Number values in their order; equal numbers mean exactly what SQL calls equal on every engine.

    Theorem (One owner everywhere). Rows of one owner in SQL (sums, counts, bounds on rows) have one number here, and
    rows of two owners have two: a unit that is bounded there is one block, and one owner of edges, here.
    Proof    An owner is a number, a text, a moment or a truth value. Both zeros are equal, and so are all NaN, in
             np.unique as in the engines; whole numbers are compared as such. Texts are compared character by
             character, which is the equality of their bytes; numpy's own texts would drop zeros at their end.
    Tested   tests/analyses/test_rows.py::test_owners_are_numbered_as_sql_tells_them_apart

    >>> numbered(np.array([0.0, -0.0, 1.5])).tolist(), numbered(np.array(["a", "a\0"], dtype=object)).tolist()
    ([0, 0, 1], [0, 1])
    """
    if values.dtype != object:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    place = {value: i for i, value in enumerate(sorted(set(values.tolist())))}
    return np.fromiter((place[value] for value in values.tolist()), dtype=np.int64, count=len(values))


def _plain(values: Values, kind: Kind) -> Values:
    data, gone = np.asarray(np.ma.getdata(values)), np.ma.getmaskarray(values)
    if data.dtype == object:
        gone = gone | (data == None)  # noqa: E711 - an array of objects
    if kind is Kind.TEXT:
        texts = data.astype(object)
        texts[gone] = None
        return texts
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        return np.where(gone, np.datetime64("NaT"), data).astype("datetime64[us]")
    # -0 and 0 are equal, and a function must not see which one an engine kept
    return np.where(gone, np.nan, np.where(gone, 0, data).astype(np.float64)) + 0.0


def _ranks(values: Values) -> list[NDArray[Any]]:
    if values.dtype != object:
        return [numbered(values)]
    gone = values == None  # noqa: E711 - an array of objects
    return [numbered(np.where(gone, "", values)), gone]


def column(table: Table, name: object, what: str) -> Column:
    """Find a visible column, or reject its name."""
    found = table.column(name) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(each.name for each in table.columns if not each.hidden)
        raise QueryError("HB595", f"{what}: {table.name} has no column {name!r}.", f"Available: {known}.")
    return found


def rows_per_unit(setting: Setting, table: Table) -> int:
    """Give how many rows of one unit count: 1 if each row is its own unit."""
    if table.unit is None or table.unit.column is None:
        return 1
    most = table.unit.rows
    return most if setting.rows is None else numbers.integer(setting.rows, "rows", 1, most)


def salted_order(codes: NDArray[np.int64], salt: str) -> NDArray[np.uint64]:
    """Give each code a position in an order that depends on a salt only: a permutation of 64 bits (splitmix).

    >>> len(set(salted_order(np.arange(1000), "salt").tolist()))
    1000
    """
    word = codes.astype(np.uint64) ^ np.uint64(int.from_bytes(sha256(salt.encode()).digest()[:8], "big"))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(31))


def first_of_each(groups: NDArray[np.int64], order: NDArray[np.uint64], most: int) -> NDArray[np.bool_]:
    """Mark the first `most` of each group, in an order without ties inside a group.

    >>> first_of_each(np.array([0, 1, 0, 0]), np.array([9, 5, 2, 4], dtype=np.uint64), 2).tolist()
    [False, True, True, True]
    """
    sorted_by = np.lexsort((order, groups))
    ranked = groups[sorted_by]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.zeros(0, dtype=np.int64)
    place = np.arange(len(ranked)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    kept = np.zeros(len(groups), dtype=np.bool_)
    kept[sorted_by[place < most]] = True
    return kept
