"""Public tables: their values are public, so their facts are read from them instead of being declared."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.config import Dataset
from hubbub.core.schema import Bounds, Column, Kind, Table, Value
from hubbub.engines.base import identifier
from hubbub.engines.duckdb import DuckDB, Limits
from hubbub.errors import ConfigError, RunError

#: A column with more values than this is no key.
MOST_VALUES = 10_000
#: How each kind is counted where it has bounds: dates in days, timestamps in microseconds, since 1970.
_NUMBERS = {
    Kind.INTEGER: "{}", Kind.REAL: "{}", Kind.DATE: "({} - DATE '1970-01-01')", Kind.TIMESTAMP: "epoch_us({})",
}  # fmt: skip


def public(dataset: Dataset, limits: Limits) -> Table:
    """Complete a public table: values and bounds of its columns, and columns that no two rows share."""
    engine = DuckDB([dataset.view], limits=limits)
    try:
        reader = _Reader(engine, dataset.table.name)
        columns = tuple(reader.facts(column) for column in dataset.table.columns)
        return replace(dataset.table, columns=columns, unique=reader.unique(dataset.table))
    except RunError:
        raise ConfigError(
            "HB411", f"the public table {dataset.table.name} cannot be read.", "Check its file."
        ) from None
    finally:
        engine.close()


class _Reader:
    def __init__(self, engine: DuckDB, name: str) -> None:
        self._engine = engine
        self._table = identifier(name)

    def facts(self, column: Column) -> Column:
        quoted = identifier(column.name)
        values, bounds = column.values, column.bounds
        if values is None:
            order = f"WHERE {quoted} IS NOT NULL ORDER BY 1 LIMIT {MOST_VALUES + 1}"
            found = _values(self._one(f"DISTINCT {quoted}", order), column.kind)
            values = tuple(found) if 0 < len(found) <= MOST_VALUES else None
        number = _NUMBERS.get(column.kind)
        if bounds is None and number is not None:
            number = number.format(quoted)
            finite = f"FILTER (WHERE isfinite({'CAST(' + quoted + ' AS DOUBLE)' if column.kind.numeric else quoted}))"
            low, high = (self._one(f"CAST({end}({number}) {finite} AS DOUBLE)") for end in ("min", "max"))
            if not np.ma.is_masked(low):
                bounds = Bounds(Fraction(float(low[0])), Fraction(float(high[0])))
        return replace(column, values=values, bounds=bounds)

    def unique(self, table: Table) -> tuple[str, ...] | None:
        size = self._count("*")
        if table.unique is None:
            alone = (column.name for column in table.columns)
            return next(((name,) for name in alone if self._count(f"DISTINCT {identifier(name)}") == size), None)
        distinct = self._count(f"DISTINCT ({', '.join(map(identifier, table.unique))},)")
        if distinct != size:
            raise ConfigError(
                "HB414", f"datasets.{table.name}.unique is not true: {size - distinct} rows repeat another's.",
                "Name columns that no two rows share, or remove the double rows.",
            )  # fmt: skip
        return table.unique

    def _count(self, what: str) -> int:
        return int(self._one(f"count({what})")[0])

    def _one(self, what: str, rest: str = "") -> Any:
        """Read one column."""
        return self._engine.run(f"SELECT {what} AS v FROM {self._table} {rest}").through(lambda arrays: arrays["v"])  # noqa: S608


def _values(array: Any, kind: Kind) -> list[Value]:
    if kind is Kind.REAL:
        return [Fraction(value) for value in array[np.isfinite(array)].tolist()]
    if kind is Kind.DATE:
        return list(array.astype("datetime64[D]").tolist())
    return list(array.tolist())
