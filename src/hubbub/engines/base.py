"""What an engine is, and where a table can come from.

An engine is handed SQL that hubbub rendered, never what an analyst typed, and gives back a secret: arrays that only a
mechanism may open. Its failures carry no text of their own, since a database's error messages print cells.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.errors import ConfigError

#: A result: arrays of one length by column name. HUGEINT columns arrive exact, as int64 or as Python ints.
Arrays = Mapping[str, NDArray[Any]]

Form = Literal["csv", "parquet", "duckdb", "sqlite"]

_SUFFIXES: Mapping[str, Form] = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".duckdb": "duckdb", ".ddb": "duckdb", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite",
}  # fmt: skip
_SCHEME = re.compile(r"(csv|parquet|duckdb|sqlite):(?!//)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is: a file and, in a database file, the table's name there."""

    form: Form
    path: Path
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A column as its source describes it; `kind` is None where the source does not say, or says what we cannot use."""

    name: str
    type: str
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class View:
    """A table as the engine shall serve it: under this name, from that place, these columns with these kinds."""

    name: str
    place: Place
    columns: tuple[tuple[str, Kind], ...]


class Engine(Protocol):
    """Runs rendered SQL over the tables it was opened with."""

    @property
    def dialect(self) -> str:
        """The dialect that it wants its SQL rendered in."""
        ...

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT and give its columns; any failure at all is a `RunError`, without a cause."""
        ...

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Give a cheap fingerprint of a table's content; it tells neighbours apart, so it stays with the curator."""
        ...

    def interrupt(self, caller: int | None = None) -> None:
        """Stop what is running now: everything, or what the thread of this identifier asked for."""
        ...

    def close(self) -> None:
        """Let go of the data."""
        ...


def locate(source: object, path: str, *, base: Path, name: str) -> Place:
    """Read a `source:` of hubbub.yaml: visits.csv, visits.parquet, duckdb:file#table, sqlite:file#table.

    >>> locate("duckdb:clinic.duckdb#stays", "datasets.visits.source", base=Path("/srv"), name="visits")
    Place(form='duckdb', path=PosixPath('/srv/clinic.duckdb'), table='stays')
    """
    if not isinstance(source, str) or not source.strip() or "\0" in source:
        raise ConfigError(
            "HB410", f"{path} does not say where the data is.", "Write the path of a .csv or .parquet file."
        )
    match = _SCHEME.fullmatch(source.strip())
    if match is None and "://" in source:
        raise ConfigError(
            "HB410", f"{path} names a kind of source that this version cannot read.",
            "It reads CSV, Parquet, DuckDB and SQLite files: export the table to Parquet.",
        )  # fmt: skip
    text = match.group(2) if match else source.strip()
    file, _, table = text.partition("#") if match or "#" in text else (text, "", "")
    form: Form | None = match.group(1) if match else _SUFFIXES.get(Path(file).suffix.lower())  # type: ignore[assignment]
    if form is None:
        raise ConfigError(
            "HB410", f"{path} is {source!r}, and its ending does not say what it is.",
            "Write csv:, parquet:, duckdb: or sqlite: before the path.",
        )  # fmt: skip
    database = form in ("duckdb", "sqlite")
    if table and not database:
        raise ConfigError("HB410", f"{path} names a table in a file that holds only one.", f"Write {file!r}.")
    return Place(form, base / file, (table or name) if database else None)


def identifier(name: str) -> str:
    """Write a name so that SQL reads it as nothing else.

    >>> identifier("visits")
    '"visits"'
    """
    return '"' + name.replace('"', '""') + '"'
