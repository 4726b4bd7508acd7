"""The engine interface, and the sources that tables can be read from.

An engine runs SQL that hubbub rendered, never text from an analyst, and returns a secret: arrays that only a mechanism
may open. Its errors carry no message, because error messages of databases quote values.

Tested in tests/engines/test_sources.py.
"""

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable
from urllib.parse import unquote, urlsplit

from numpy.typing import NDArray

from hubbub.core import machine
from hubbub.core.list_columns import part_of
from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines.registry import EngineEntry, engine_of_form
from hubbub.engines.unsupported import check_supported
from hubbub.errors import ConfigError

#: A result: arrays of equal length by column name. HUGEINT columns are exact: int64 or Python integers.
Arrays = Mapping[str, NDArray[Any]]

Form = Literal["csv", "parquet", "delta", "hive", "duckdb", "sqlite", "postgres", "spark"]

_SUFFIXES: Mapping[str, Form] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:/?#@]*)(?::\d{1,5})?")
_SPARK = re.compile(r"spark:(sc://[^/]+(?:/;[^/]*)?|local(?:\[[^\]/]*\])?)/(.+)", re.DOTALL)
_SCHEME = re.compile(r"(csv|parquet|delta|hive|duckdb|sqlite):(?!//)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where a table is: a file and, in a database file, the name of the table; or the address of a server and a name.

    The address may contain a password and must never be shown. Use `shown` instead.
    """

    form: Form
    path: Path
    table: str | None = None
    address: str = field(default="", repr=False)

    @property
    def in_folder(self) -> bool:
        """Whether the rows are in the files of a folder, which a snapshot lists."""
        return self.form in ("delta", "hive")

    @property
    def engine(self) -> EngineEntry:
        """The engine that reads this source."""
        return engine_of_form(self.form)

    @property
    def shown(self) -> str:
        """The location without user and password."""
        if not self.engine.is_server:
            return str(self.path)
        if self.form == "spark":
            return f"spark:{self.address.partition(';')[0]}/{self.table}"
        parts = urlsplit(self.address)
        hosts = parts.netloc.rpartition("@")[2] or "localhost"
        return f"postgresql://{hosts}{unquote(parts.path)}/{self.table}"


@dataclass(frozen=True, slots=True)
class Upload:
    """A public table from another source that an engine serves beside its own; `read` returns all of its rows."""

    view: "View"
    read: Callable[[], "Arrays"]


#: The memory in MB of an engine that others use too, where none is declared.
MODEST = 1000
_LEAST = 100


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Resource limits of one engine: memory and spill space in MB, threads, and seconds per query.

    With `copy`, tables of PostgreSQL are copied into this process and queried here. Memory and disk are for `processes`
    together, each of which has an engine.

    Without a number, DuckDB may use a share of what the machine has. A server has other clients, so it gets `MODEST`.
    """

    memory: int | None = None
    disk: int | None = None
    threads: int = os.cpu_count() or 1
    seconds: int = 300
    copy: bool = False
    processes: int = 1

    @property
    def local_memory(self) -> int:
        """The memory of an engine in this process: as declared, or three fifths of the machine's."""
        total = max(MODEST, machine.memory() * 3 // 5) if self.memory is None else self.memory
        return max(_LEAST, total // self.processes)

    @property
    def spill_at_most(self) -> int:
        """The spill space to plan with: as declared, or half of the disk.

        What is free just now is not used, because it depends on what runs.
        """
        total = machine.disk(Path(tempfile.gettempdir())) // 2 if self.disk is None else self.disk
        return total // self.processes

    @property
    def server_memory(self) -> int:
        """The memory of an engine on a server: as declared, or modest."""
        return MODEST if self.memory is None else self.memory

    def local_disk(self, folder: Path) -> int:
        """Return the spill space in a folder: as declared, or half of what is free there."""
        return (machine.free_disk(folder) // 2 if self.disk is None else self.disk) // self.processes


class UnreachableError(OSError):
    """A source cannot be used, as found before anything was charged. The message contains no data."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


def unsteady_view(what: str) -> UnreachableError:
    """Return the error for a view whose rows change without a change of its tables, so that replays would be stale."""
    return UnreachableError(
        f"its view uses {what}, whose result can change although the data does not",
        "Remove it from the view, or copy the rows of the view into a table.",
    )


#: The type of every column of a CSV file, and of one whose values are in the names of folders.
CSV_TEXT = "text in a CSV file"
FOLDER_TEXT = "text in the names of folders"


@dataclass(frozen=True, slots=True)
class Field:
    """A column as its source describes it; `kind` is None if the type is unknown or not supported."""

    name: str
    type: str
    kind: Kind | None
    unfit: str = ""  #: why the column cannot be a privacy ID column, or empty
    readable: frozenset[Kind] | None = None  #: the kinds that it can be read as, or None for every kind
    element: Kind | None = None  #: of a list: the kind of its elements, if that is supported

    @property
    def untyped(self) -> bool:
        """Whether the source has no types, so that the owner declares what the texts of a column mean."""
        return self.type in (CSV_TEXT, FOLDER_TEXT)

    def misread(self, kind: Kind) -> str:
        """Return why the column cannot be a privacy ID column if it is read as this kind, or an empty string.

        >>> Field("id", "DOUBLE", Kind.REAL).misread(Kind.INTEGER)
        'values of type DOUBLE may become equal when they are read as integer'
        """
        if self.untyped:
            return ""
        if self.kind is None:
            return f"equal values of type {self.type} may have different text forms"
        alike = kind in (self.kind, Kind.TEXT)
        return "" if alike else f"values of type {self.type} may become equal when they are read as {kind.value}"


#: Why text with such a collation cannot identify units: one person may have two spellings.
LOOSE_COLLATION = "its collation treats different texts as equal"
#: Texts that some collations treat as equal: case, trailing space, accent, normalization form.
_ALIKE = ("a", "A", "a ", "\u00e1", "a\u0301")


def collation_query(column: str, relation: str) -> str:
    """Write a query for DuckDB or SQLite that tests, without reading rows, if a collation distinguishes all texts."""
    texts = ", ".join(f"('{text}')" for text in _ALIKE)
    rows = f"SELECT {column} AS x FROM {relation} WHERE FALSE UNION ALL VALUES {texts}"  # noqa: S608
    return f"SELECT count(DISTINCT x) = {len(_ALIKE)} FROM ({rows}) AS t"  # noqa: S608


_DECIMAL = re.compile(r"decimal\((\d+)", re.IGNORECASE)


def rounding_reason(type_name: str) -> str:
    """Return why a column of this type cannot be a privacy ID column because reading rounds its values, or "".

    A decimal is read as a double, which distinguishes all decimals of at most 15 digits.

    >>> rounding_reason("DECIMAL(15,2)"), rounding_reason("DECIMAL(18,0)")
    ('', 'a DECIMAL(18,0) is rounded when it is read')
    """
    digits = _DECIMAL.match(type_name)
    rounded = type_name == "TIMESTAMP_NS" or (digits is not None and int(digits[1]) > 15)
    return f"a {type_name} is rounded when it is read" if rounded else ""


@dataclass(frozen=True, slots=True)
class View:
    """A table as the engine serves it: its name, source, and columns with their kinds.

    `version` is a column that increases with every change, if the owner declares one; with `checksum` the rows are
    read to detect changes, however large the table is.
    """

    name: str
    source: DataSource
    columns: tuple[tuple[str, Kind], ...]
    version: str | None = None
    checksum: bool = False


def type_of(name: str, types: Mapping[str, str]) -> str | None:
    """Return the type of a column, or of the list that it is a part of; None if there is neither."""
    part = part_of(name)
    return types.get(name) or (None if part is None else types.get(part[0]))


class Engine(Protocol):
    """Runs rendered SQL on the tables that it was opened with."""

    @property
    def dialect(self) -> str:
        """The name of the SQL dialect of the engine."""
        ...

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT and return its columns; every failure is a `RunError` without a cause."""
        ...

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Return a cheap fingerprint of a table's content. It differs between neighbors, so the curator keeps it."""
        ...

    def content_hash(self, name: str) -> Secret[bytes] | None:
        """Return a hash that changes with the rows only, where the fingerprint changes more often; otherwise None."""
        ...

    def interrupt(self, caller: int | None = None) -> None:
        """Stop all running queries, or those started by the thread with this identifier."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


@runtime_checkable
class Guaranteed(Protocol):
    """An engine whose catalog can guarantee that columns identify a row."""

    def guarantees_unique(self, name: str, columns: tuple[str, ...]) -> bool:
        """Return whether a constraint of the database excludes two rows with equal values in these columns."""
        ...


def locate(source: object, path: str, *, base: Path, name: str) -> DataSource:
    """Read a `source:` of hubbub.yaml: visits.csv, visits/, delta:folder, duckdb:file#table, postgresql://….

    >>> locate("duckdb:clinic.duckdb#stays", "datasets.visits.source", base=Path("/srv"), name="visits")
    DataSource(form='duckdb', path=PosixPath('/srv/clinic.duckdb'), table='stays')
    """
    if not isinstance(source, str) or not source.strip() or "\0" in source:
        raise ConfigError(
            "HB410", f"{path} is not a source.", "Write the path of a file, such as visits.csv or visits.parquet."
        )
    source = source.strip()
    if source.startswith(("postgresql://", "postgres://")):
        return _postgres(source, path)
    if source.startswith("spark:"):
        return _spark(source, path, base)
    match = _SCHEME.fullmatch(source)
    if match is None:
        check_supported(source, path)
    text = match.group(2) if match else source
    file, _, table = text.partition("#") if match or "#" in text else (text, "", "")
    folder: Form | None = "hive" if file.endswith("/") else None
    form: Form | None = match.group(1) if match else folder or _SUFFIXES.get(Path(file).suffix.lower())  # type: ignore[assignment]
    if form is None:
        raise ConfigError(
            "HB410",
            f"{path} is {source!r}, whose file type is unknown.",
            "Prefix the path with csv:, parquet:, delta:, hive:, duckdb: or sqlite:.",
        )
    database = form in ("duckdb", "sqlite")
    if table and not database:
        raise ConfigError("HB410", f"{path} names a table, but the file is not a database.", f"Write {file!r}.")
    return DataSource(form, base / file, (table or name) if database else None)


def _postgres(source: str, path: str) -> DataSource:
    """Read postgresql://user@host:port/database/schema.table?options. It may contain a password, so never show it."""
    wrong = ConfigError(
        "HB410",
        f"{path} is not the address of a PostgreSQL table.",
        "Write postgresql://user@host:5432/database/schema.table, and put the password into ~/.pgpass.",
    )
    try:
        parts = urlsplit(source)
    except ValueError:
        raise wrong from None
    # libpq tries several hosts in turn: host1:5432,host2:5433
    hosts = parts.netloc.rpartition("@")[2].split(",")
    if not all(_HOST.fullmatch(host) for host in hosts) or (len(hosts) > 1 and "" in hosts):
        raise wrong
    database, _, table = parts.path.removeprefix("/").partition("/")
    table = unquote(table)
    if not database or "/" in table or parts.fragment or not table.strip("."):
        raise wrong
    address = parts._replace(scheme="postgresql", path=f"/{database}").geturl()
    return DataSource("postgres", Path("/"), table if "." in table else f"public.{table}", address)


def _spark(source: str, path: str, base: Path) -> DataSource:
    """Read spark:sc://host:port/catalog.table or spark:local[*]/…; a path instead of a table name means Parquet."""
    match = _SPARK.fullmatch(source)
    if match is None:
        raise ConfigError(
            "HB410",
            f"{path} is not the address of a Spark table.",
            "Write spark:sc://host:15002/catalog.table, or spark:local[*]/visits.parquet.",
        )
    address, table = match.groups()
    if table.endswith(".parquet") or "/" in table:
        remote = address.startswith("sc://") or "://" in table
        table = table if remote and "/" in table else f"/{table}" if remote else str((base / table).resolve())
    return DataSource("spark", Path("/"), table, address)


def identifier(name: str) -> str:
    """Quote an identifier.

    >>> identifier("visits")
    '"visits"'
    """
    return '"' + name.replace('"', '""') + '"'
