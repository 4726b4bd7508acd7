"""Public tables: their values are public, so their facts are read from them instead of being declared."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.config.dataset import DatasetConfig
from hubbub.core.schema import Bounds, Column, Kind, Table, Value
from hubbub.engines.base import Engine, EngineLimits
from hubbub.engines.multi_engine import open_engine
from hubbub.engines.registry import engine_named
from hubbub.errors import ConfigError, RunError
from hubbub.sql import render
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Col
from hubbub.sql.relations import Scan

#: A column with more values than this is no key.
MOST_VALUES = 10_000
#: Where ends are looked for: infinities and dates of other ages are no bounds.
_SENSIBLE = {
    Kind.INTEGER: ("-1.0e300", "1.0e300"),
    Kind.REAL: ("-1.0e300", "1.0e300"),
    Kind.DATE: ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    Kind.TIMESTAMP: ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59'"),
}


def public(dataset: DatasetConfig, limits: EngineLimits) -> Table:
    """Complete a public table: values and bounds of its columns, what no two rows share, and its sizes."""
    engine = open_engine([dataset.view], frozenset(), limits=limits)
    try:
        reader = _Reader(engine, dataset.table.name)
        columns = tuple(reader.facts(column) for column in dataset.table.columns)
        table = replace(dataset.table, columns=columns, unique=reader.unique(dataset.table))
        return replace(table, size=reader.size, repeats=reader.repeats(table), lengths=reader.lengths(table))
    except RunError:
        raise ConfigError(
            "HB411", f"the public table {dataset.table.name} cannot be read.", "Check its source."
        ) from None
    finally:
        engine.close()


class _Reader:
    """Asks in words that every engine has."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._dialect: Dialect = engine_named(engine.dialect).load_dialect()
        self._table = self._dialect.identifier(name)
        self.size = self._count("*")

    def _written(self, column: Column) -> str:
        """Write a column; texts as queries see them, told apart byte by byte whatever collation they have."""
        return self._dialect.scanned(column) if column.kind is Kind.TEXT else self._dialect.identifier(column.name)

    def facts(self, column: Column) -> Column:
        quoted = self._written(column)
        values, bounds = column.values, column.bounds
        if values is None:
            order = f"WHERE {quoted} IS NOT NULL ORDER BY 1 LIMIT {MOST_VALUES + 1}"
            found = _values(self._one(f"DISTINCT {quoted}", order), column.kind)
            values = tuple(found) if 0 < len(found) <= MOST_VALUES else None
        sensible = _SENSIBLE.get(column.kind)
        if bounds is None and sensible is not None:
            where = f"WHERE {quoted} BETWEEN {sensible[0]} AND {sensible[1]}"
            low, high = (self._one(f"{end}({quoted})", where) for end in ("min", "max"))
            if not np.ma.is_masked(low):
                bounds = Bounds(_number(low, column.kind), _number(high, column.kind))
        return replace(column, values=values, bounds=bounds)

    def unique(self, table: Table) -> tuple[str, ...] | None:
        """Find columns that no two rows share, or check those that are declared, as a query reads them."""
        if table.unique is None:
            alone = (
                column
                for column in table.columns
                if self._count(f"DISTINCT {self._dialect.scanned(column)}") == self.size
            )
            return next(((column.name,) for column in alone), None)
        keys = ", ".join(self._dialect.scanned(column) for column in table.columns if column.name in table.unique)
        distinct = int(self._one("count(*)", table=f"(SELECT DISTINCT {keys} FROM {self._table}) AS d")[0])  # noqa: S608
        if distinct != self.size:
            raise ConfigError(
                "HB414",
                f"datasets.{table.name}.unique is not true: {self.size - distinct} rows repeat another's.",
                "Name columns that no two rows share, or remove the double rows.",
            )
        return table.unique

    def repeats(self, table: Table) -> dict[str, int]:
        """Count how many rows at most share one value of each column, as a query reads it: clamped and of its kind."""
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
        """Find the number of characters of the longest text in each column."""
        texts = [column for column in table.columns if column.kind is Kind.TEXT and not column.hidden]
        return {
            column.name: int(self._one(f"coalesce(max(length({self._dialect.scanned(column)})), 0)")[0])
            for column in texts
        }

    def _count(self, what: str) -> int:
        return int(self._one(f"count({what})")[0])

    def _one(self, what: str, rest: str = "", table: str = "") -> Any:
        """Read one column."""
        text = f"SELECT {what} AS v FROM {table or self._table} {rest}"  # noqa: S608
        return self._engine.run(text).through(lambda arrays: arrays["v"])


def _number(end: Any, kind: Kind) -> Fraction:
    """Give a number as it is, a date in days and a timestamp in microseconds since 1970."""
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
