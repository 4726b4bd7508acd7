"""A table to attack: columns in memory, read from a file as the product reads one, of bounded size."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.engines.base import Arrays, Place, View, locate
from hubbub.engines.duckdb.connection import DuckDB, Limits, schema
from hubbub.errors import AttackError, ConfigError, RunError

MOST_BYTES = 1 << 29
MOST_CELLS = 50_000_000
#: What stands for a missing number.
_MISSING = ("", "N", "NA", "N/A", "NULL", "null", "NaN", "nan")
_CODE = re.compile(r"[+-]?0\d|.*_")  # Python reads 1_000 as a number
_LIMITS = Limits(memory=2000, disk=0, threads=1, seconds=120)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length: integers, reals (NaN where missing), booleans, or text (empty where missing)."""

    name: str
    columns: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        if len({len(values) for values in self.columns.values()}) != 1:
            raise ValueError("a table has columns, all of one length")

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> NDArray[Any]:
        """Find a column, or say what there is."""
        if name in self.columns:
            return self.columns[name]
        near = get_close_matches(name, self.columns, n=1)
        shown = ", ".join(list(self.columns)[:30])
        raise AttackError(
            "HB644",
            f"{self.name} has no column {name[:60]!r}.",
            f"Did you mean {near[0]}?" if near else f"It has: {shown}.",
        )

    def codes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Number the rows so that two have one number just if they agree in all these columns."""
        found = np.zeros(self.rows, dtype=np.int64)
        for name in names:
            found = self.refined(found, name)
        return found

    def refined(self, codes: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        """Number the rows so that two have one number just if they had one before and agree in this column too."""
        values, own = np.unique(self.column(name), return_inverse=True)
        # numbered anew at each step: a product of many columns' sizes would not fit
        return np.asarray(np.unique(codes * len(values) + own, return_inverse=True)[1], dtype=np.int64)

    def take(self, rows: NDArray[Any]) -> "Table":
        """Give some rows, by place or by mask."""
        return Table(self.name, {name: values[rows] for name, values in self.columns.items()})

    def keep(self, names: Sequence[str]) -> "Table":
        """Give the same rows with these columns alone."""
        return Table(self.name, {name: self.column(name) for name in names})

    def where(self, **changed: NDArray[Any]) -> "Table":
        """Give the same table with these columns instead of, or beside, its own."""
        return Table(self.name, {**self.columns, **changed})


def read(path: str | Path) -> Table:
    """Read a CSV or Parquet file; a CSV column is numbers where all that is not missing reads as one."""
    file = Path(path)
    try:
        place = locate(str(file.resolve()), str(path), base=Path(), name="table")
    except ConfigError:
        place = Place("duckdb", file)
    if place.form not in ("csv", "parquet"):
        raise AttackError("HB641", f"{path} is not a .csv or .parquet file.", "Write the table as one of these.")
    if not file.is_file():
        raise AttackError("HB641", f"{path} is not a file that is there.", "Check the path.")
    if file.stat().st_size > MOST_BYTES:
        raise AttackError("HB641", f"{path} is larger than {MOST_BYTES >> 20} MB.", "Take an excerpt of it.")
    try:
        fields = schema(place)
    except ConfigError as error:
        raise AttackError("HB641", error.message, error.remedy) from None
    kinds = {each.name: Kind.TEXT if place.form == "csv" else each.kind for each in fields}
    shown = tuple((name, kind) for name, kind in kinds.items() if kind is not None)
    if not shown:
        raise AttackError("HB641", f"{path} has no column that can be used.", "It needs numbers, text or dates.")
    columns = _loaded(str(path), place, shown)
    if place.form == "csv":
        columns = {name: typed(values) for name, values in columns.items()}
    return Table(file.stem, columns)


def _loaded(path: str, place: Place, shown: tuple[tuple[str, Kind], ...]) -> dict[str, NDArray[Any]]:
    engine = DuckDB([View("table", place, shown)], limits=_LIMITS)

    def size(found: Arrays) -> int:
        return int(found["n"][0]) * len(shown)

    try:
        cells = engine.run('SELECT count(*) AS n FROM "table"').through(size)
        if not 0 < cells <= MOST_CELLS:
            why = "has no rows" if not cells else f"has more than {MOST_CELLS:,} cells"
            raise AttackError("HB641", f"{path} {why}.", "Take an excerpt of it." if cells else "Check the file.")
        found = engine.run('SELECT * FROM "table"').through(dict)
    except RunError:
        raise AttackError("HB641", f"{path} cannot be read.", "Check that it is what its ending says.") from None
    finally:
        engine.close()
    return {name: _plain(found[name], kind) for name, kind in shown}


def _plain(values: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Make an engine's column plain: no mask, and of one of the four kinds."""
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


def typed(values: NDArray[Any]) -> NDArray[Any]:
    """Take text for numbers where it reads as numbers, and stays apart as such: 02138 and 2138 are two codes."""
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
