"""A table to attack: columns in memory, read from a file of limited size."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.engines.base import Arrays, DataSource, EngineLimits, View, locate
from hubbub.engines.duckdb.connection import DuckDBEngine, schema
from hubbub.errors import AttackError, ConfigError, RunError

MAX_BYTES = 1 << 29
MAX_CELLS = 50_000_000
#: Texts that mean a missing number.
_MISSING = ("", "N", "NA", "N/A", "NULL", "null", "NaN", "nan")
_CODE = re.compile(r"[+-]?0\d|.*_")  # Python reads 1_000 as a number
_LIMITS = EngineLimits(memory=2000, disk=0, threads=1, seconds=120)


@dataclass(frozen=True, eq=False)
class AttackTable:
    """Columns of one length: integers, reals (NaN where missing), booleans, or text (empty where missing)."""

    name: str
    columns: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        if len({len(values) for values in self.columns.values()}) != 1:
            raise ValueError("a table needs at least one column, and all columns must have the same length")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> NDArray[Any]:
        """Return a column by its name."""
        if name in self.columns:
            return self.columns[name]
        near = get_close_matches(name, self.columns, n=1)
        shown = ", ".join(list(self.columns)[:30])
        raise AttackError(
            "HB644",
            f"The table {self.name} has no column {name[:60]!r}.",
            f"Did you mean {near[0]}?" if near else f"Available columns: {shown}.",
        )

    def codes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Number the rows so that two rows have the same number if and only if they agree in all these columns."""
        codes = np.zeros(self.rows, dtype=np.int64)
        for name in names:
            codes = self.refined(codes, name)
        return codes

    def refined(self, codes: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        """Refine a numbering of the rows by one more column."""
        values, inverse = np.unique(self.column(name), return_inverse=True)
        # renumber at each step: the product of many columns' sizes would overflow
        return np.asarray(np.unique(codes * len(values) + inverse, return_inverse=True)[1], dtype=np.int64)

    def take(self, rows: NDArray[Any]) -> "AttackTable":
        """Return some rows, by index or mask."""
        return AttackTable(self.name, {name: values[rows] for name, values in self.columns.items()})

    def keep(self, names: Sequence[str]) -> "AttackTable":
        """Return the same rows with only these columns."""
        return AttackTable(self.name, {name: self.column(name) for name in names})

    def where(self, **changed: NDArray[Any]) -> "AttackTable":
        """Return the same table with these columns added or replaced."""
        return AttackTable(self.name, {**self.columns, **changed})


def read(path: str | Path) -> AttackTable:
    """Read a CSV or Parquet file; a CSV column is numeric if all of its values are numbers or missing."""
    file = Path(path)
    try:
        source = locate(str(file.resolve()), str(path), base=Path(), name="table")
    except ConfigError:
        source = DataSource("duckdb", file)
    if source.form not in ("csv", "parquet"):
        raise AttackError("HB641", f"{path} is not a .csv or .parquet file.", "Convert the table to one of these.")
    if not file.is_file():
        raise AttackError("HB641", f"The file {path} does not exist.", "Check the path.")
    if file.stat().st_size > MAX_BYTES:
        raise AttackError("HB641", f"{path} is larger than {MAX_BYTES >> 20} MB.", "Use a sample of it.")
    try:
        fields = schema(source)
    except ConfigError as error:
        raise AttackError("HB641", error.message, error.remedy) from None
    kinds = {each.name: Kind.TEXT if source.form == "csv" else each.kind for each in fields}
    shown = tuple((name, kind) for name, kind in kinds.items() if kind is not None)
    if not shown:
        raise AttackError("HB641", f"{path} has no usable column.", "Use a file with numbers, text or dates.")
    columns = _load(str(path), source, shown)
    if source.form == "csv":
        columns = {name: parse_numbers(values) for name, values in columns.items()}
    return AttackTable(file.stem, columns)


def _load(path: str, source: DataSource, shown: tuple[tuple[str, Kind], ...]) -> dict[str, NDArray[Any]]:
    engine = DuckDBEngine([View("table", source, shown)], limits=_LIMITS)

    def size(arrays: Arrays) -> int:
        return int(arrays["n"][0]) * len(shown)

    try:
        cells = engine.run('SELECT count(*) AS n FROM "table"').through(size)
        if not 0 < cells <= MAX_CELLS:
            problem = "has no rows" if not cells else f"has more than {MAX_CELLS:,} cells"
            raise AttackError("HB641", f"{path} {problem}.", "Use a sample of it." if cells else "Check the file.")
        arrays = engine.run('SELECT * FROM "table"').through(dict)
    except RunError:
        raise AttackError("HB641", f"Cannot read {path}.", "Check that its content matches its extension.") from None
    finally:
        engine.close()
    return {name: _plain(arrays[name], kind) for name, kind in shown}


def _plain(values: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Convert an engine's column to an unmasked array of one of the four kinds."""
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(len(values), dtype=bool)
    data = np.asarray(np.ma.getdata(values))
    if kind is Kind.INTEGER and not missing.any():
        return data.astype(np.int64)
    if kind.numeric:
        return np.where(missing, np.nan, data.astype(np.float64))
    if kind is Kind.BOOLEAN and not missing.any():
        return data.astype(np.bool_)
    text = data.astype("datetime64[us]").astype(str) if kind in (Kind.DATE, Kind.TIMESTAMP) else data
    return np.where(missing, "", text.astype(object))


def parse_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Convert text to numbers if all values are numbers and stay distinct: 02138 and 2138 are two codes."""
    missing = np.isin(values, _MISSING)
    known = values[~missing]
    if not len(known) or any(_CODE.match(text) for text in set(known.tolist())):
        return values
    try:
        return values.astype(np.int64) if not missing.any() else _reals(values, missing)
    except (ValueError, OverflowError):
        pass
    try:
        return _reals(values, missing)
    except ValueError:
        return values


def _reals(values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
    return np.where(missing, "nan", values).astype(np.float64)
