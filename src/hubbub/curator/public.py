"""Public tables: bounds, values and unique columns are read from the data instead of declared.

Tested in tests/curator/test_public.py.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from threading import Lock
from typing import Any

import numpy as np

from hubbub.config.dataset import DatasetConfig
from hubbub.core.schema import Bounds, Column, Kind, Table, Value
from hubbub.engines import files
from hubbub.engines.base import DataSource, Engine, EngineLimits
from hubbub.engines.multi_engine import open_engine
from hubbub.engines.registry import engine_named
from hubbub.errors import ConfigError, RunError
from hubbub.sql import render
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Col
from hubbub.sql.relations import Scan

#: The values of a column with more distinct values than this are not listed.
MAX_VALUES = 10_000
#: Bytes of a file, and the number of files, whose tables are kept.
_SMALL_FILE, _MOST_FILES = 1 << 20, 32
#: Bounds are searched in these ranges: infinities and dates outside common calendars are ignored.
_SENSIBLE = {
    Kind.INTEGER: ("-1.0e300", "1.0e300"),
    Kind.REAL: ("-1.0e300", "1.0e300"),
    Kind.DATE: ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    Kind.TIMESTAMP: ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59'"),
}


class _ReadFiles:
    """What was read of small public files in this process, so that a file is not read again while it stays the same."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[bytes, str | None], tuple[DatasetConfig, Table]] = OrderedDict()
        self._lock = Lock()

    def table(self, dataset: DatasetConfig, read: Callable[[], Table]) -> Table:
        """Return the table of a file with this content and these declarations."""
        content = self._content(dataset.place)
        if content is None:
            return read()
        key = (content, dataset.place.table)
        with self._lock:
            kept = self._tables.get(key)
        if kept is not None and kept[0] == replace(dataset, place=kept[0].place):
            return kept[1]
        table = read()
        if self._content(dataset.place) == content:  # else it was changed meanwhile
            with self._lock:
                self._tables[key] = dataset, table
                while len(self._tables) > _MOST_FILES:
                    self._tables.popitem(last=False)
        return table

    @staticmethod
    def _content(place: DataSource) -> bytes | None:
        """Hash a small file with its format; None for everything else."""
        if place.form not in ("csv", "parquet", "duckdb", "sqlite"):
            return None
        try:
            if place.path.stat().st_size > _SMALL_FILE:
                return None
            return place.form.encode() + files.digest(place)
        except OSError:
            return None


_FILES = _ReadFiles()


def read_public_table(dataset: DatasetConfig, limits: EngineLimits) -> Table:
    """Complete the schema of a public table: values and bounds of its columns, unique columns, and sizes."""
    return _FILES.table(dataset, lambda: _read(dataset, limits))


def _read(dataset: DatasetConfig, limits: EngineLimits) -> Table:
    engine = open_engine([dataset.view], frozenset(), limits=limits)
    try:
        reader = _Reader(engine, dataset.table.name)
        columns = tuple(column if column.hidden else reader.facts(column) for column in dataset.table.columns)
        table = replace(dataset.table, columns=columns, unique=reader.unique(dataset.table))
        table = replace(table, size=reader.size, repeats=reader.repeats(table), lengths=reader.lengths(table))
        return replace(table, rows=reader.rows(table))
    except RunError:
        raise ConfigError(
            "HB411", f"The public table {dataset.table.name} cannot be read.", "Check its `source`."
        ) from None
    finally:
        engine.close()


class _Reader:
    """Reads facts of one table, in SQL that every engine understands."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._dialect: Dialect = engine_named(engine.dialect).load_dialect()
        self._table = self._dialect.identifier(name)
        self.size = self._count("*")

    def _written(self, column: Column) -> str:
        """Write a column; text as queries see it, compared byte by byte whatever its collation."""
        return self._dialect.scanned(column) if column.kind is Kind.TEXT else self._dialect.identifier(column.name)

    def facts(self, column: Column) -> Column:
        quoted = self._written(column)
        values, bounds = column.values, column.bounds
        if values is None:
            order = f"WHERE {quoted} IS NOT NULL ORDER BY 1 LIMIT {MAX_VALUES + 1}"
            distinct = _values(self._one(f"DISTINCT {quoted}", order), column.kind)
            values = tuple(distinct) if 0 < len(distinct) <= MAX_VALUES else None
        sensible = _SENSIBLE.get(column.kind)
        if bounds is None and sensible is not None:
            where = f"WHERE {quoted} BETWEEN {sensible[0]} AND {sensible[1]}"
            low, high = (self._one(f"{end}({quoted})", where) for end in ("min", "max"))
            if not np.ma.is_masked(low):
                bounds = Bounds(_number(low, column.kind), _number(high, column.kind))
        return replace(column, values=values, bounds=bounds)

    def unique(self, table: Table) -> tuple[str, ...] | None:
        """Find a unique column, or check the declared unique columns, as a query reads them."""
        if table.unique is None:
            alone = (
                column
                for column in table.columns
                if not column.hidden and self._count(f"DISTINCT {self._dialect.scanned(column)}") == self.size
            )
            return next(((column.name,) for column in alone), None)
        keys = ", ".join(self._dialect.scanned(column) for column in table.columns if column.name in table.unique)
        distinct = int(self._one("count(*)", table=f"(SELECT DISTINCT {keys} FROM {self._table}) AS d")[0])  # noqa: S608
        if distinct != self.size:
            raise ConfigError(
                "HB414",
                f"datasets.{table.name}.unique is not true: {self.size - distinct} rows are duplicates.",
                "List columns whose values are unique, or remove the duplicate rows.",
            )
        return table.unique

    def repeats(self, table: Table) -> dict[str, int]:
        """Count the most rows that share one value of each column, as a query reads it: clamped and converted."""
        most = {}
        for column in table.columns:
            if not column.hidden:
                scan = Scan(table, (Col("v", column.kind, column_facts(column)),), (column.name,))
                rows = f"({render.relation(scan, self._dialect)}) AS t"
                v = self._dialect.identifier("v")
                groups = f"(SELECT count(*) AS n FROM {rows} WHERE {v} IS NOT NULL GROUP BY {v}) AS g"  # noqa: S608
                most[column.name] = int(self._one("coalesce(max(n), 0)", table=groups)[0])
        return most

    def lengths(self, table: Table) -> dict[str, int]:
        """Find the length of the longest text in each column."""
        texts = [column for column in table.columns if column.kind is Kind.TEXT and not column.hidden]
        return {
            column.name: int(self._one(f"coalesce(max(length({self._dialect.scanned(column)})), 0)")[0])
            for column in texts
        }

    def rows(self, table: Table) -> dict[str, tuple[Value | None, ...]]:
        """Read all rows of a small table as queries read them: clamped, and without unlisted values."""
        columns = [column for column in table.columns if not column.hidden]
        if self.size > MAX_VALUES or not columns:
            return {}
        cols = tuple(Col(f"v{i}", column.kind, column_facts(column)) for i, column in enumerate(columns))
        text = render.relation(Scan(table, cols, tuple(column.name for column in columns)), self._dialect)
        try:
            return self._engine.run(text).through(
                lambda arrays: {column.name: _cells(arrays[f"v{i}"], column.kind) for i, column in enumerate(columns)}
            )
        except OverflowError:  # an infinite number is not a key
            return {}

    def _count(self, what: str) -> int:
        return int(self._one(f"count({what})")[0])

    def _one(self, what: str, rest: str = "", table: str = "") -> Any:
        """Read one column."""
        text = f"SELECT {what} AS v FROM {table or self._table} {rest}"  # noqa: S608
        return self._engine.run(text).through(lambda arrays: arrays["v"])


def _number(end: Any, kind: Kind) -> Fraction:
    """Give a number unchanged, a date in days and a timestamp in microseconds since 1970."""
    if kind is Kind.DATE:
        return Fraction(int(end.astype("datetime64[D]").astype(np.int64)[0]))
    if kind is Kind.TIMESTAMP:
        return Fraction(int(end.astype("datetime64[us]").astype(np.int64)[0]))
    return Fraction(float(end[0]))


def _values(array: Any, kind: Kind) -> list[Value]:
    if kind is Kind.REAL:
        return [Fraction(value) for value in array[np.isfinite(array)].tolist()]
    if kind is Kind.DATE:
        return list(array.astype("datetime64[D]").tolist())
    # the order of a text's bytes, whatever collation the engine sorts by
    return sorted(array.tolist())


def _cells(array: Any, kind: Kind) -> tuple[Value | None, ...]:
    """Give the values of a column, None for NULL."""
    hidden, plain = np.ma.getmaskarray(array), np.ma.getdata(array)
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        plain = plain.astype("datetime64[D]" if kind is Kind.DATE else "datetime64[us]")
    values = plain.tolist()
    if kind.numeric:
        number = int if kind is Kind.INTEGER else Fraction
        values = [None if null or value is None else number(value) for value, null in zip(values, hidden, strict=True)]
    return tuple(None if null else value for value, null in zip(values, hidden, strict=True))
