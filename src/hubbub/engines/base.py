"""What an engine is, and where a table can come from.

An engine is handed SQL that hubbub rendered, never what an analyst typed, and gives back a secret: arrays that only a
mechanism may open. Its failures carry no text of their own, since a database's error messages print cells.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import unquote, urlsplit

from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.errors import ConfigError

#: A result: arrays of one length by column name. HUGEINT columns arrive exact, as int64 or as Python ints.
Arrays = Mapping[str, NDArray[Any]]

Form = Literal["csv", "parquet", "duckdb", "sqlite", "postgres", "spark"]
#: Where data stays with a server; the others are files that DuckDB reads.
SERVERS: frozenset[Form] = frozenset({"postgres", "spark"})

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
_SPARK = re.compile(r"spark:(sc://[^/]+(?:/;[^/]*)?|local(?:\[[^\]/]*\])?)/(.+)", re.DOTALL)
_SCHEME = re.compile(r"(csv|parquet|duckdb|sqlite):(?!//)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is: a file and, in a database file, the table's name there; or a server's address and its name.

    An address may hold a password, so it is never shown: `shown` is what may be.
    """

    form: Form
    path: Path
    table: str | None = None
    address: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """Say where it is, without user and password."""
        if self.form not in SERVERS:
            return str(self.path)
        if self.form == "spark":
            return f"spark:{self.address.partition(';')[0]}/{self.table}"
        parts = urlsplit(self.address)
        return f"postgresql://{parts.hostname or 'localhost'}{unquote(parts.path)}/{self.table}"


@dataclass(frozen=True, slots=True)
class Upload:
    """A public table of another place, which an engine shall serve beside its own; reading it gives all of its rows."""

    view: "View"
    read: Callable[[], "Arrays"]


class UnreachableError(OSError):
    """A source that cannot be used now, found out before anything was charged; its words hold nothing of the data."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Field:
    """A column as its source describes it; `kind` is None where the source does not say, or says what we cannot use."""

    name: str
    type: str
    kind: Kind | None
    unfit: str = ""  #: why it cannot say whose a row is, where it cannot

    def misread(self, kind: Kind) -> str:
        """Say why units cannot be told apart by it once it is read as a kind: equal ones stay equal, others differ.

        >>> Field("id", "DOUBLE", Kind.REAL).misread(Kind.INTEGER)
        'values of type DOUBLE may become equal when they are read as integer'
        """
        if self.type.startswith("text in"):
            return ""  # a CSV file has texts alone, and what they mean is for the owner to say
        if self.kind is None:
            return f"equal values of type {self.type} may be written in different ways"
        alike = kind in (self.kind, Kind.TEXT)
        return "" if alike else f"values of type {self.type} may become equal when they are read as {kind.value}"


#: Why a text with such a collation is no unit: one person may be written in two ways.
LOOSE = "its collation calls texts equal that differ"
#: Texts that some collation takes for each other: other case, a blank at the end, an accent, another normal form.
_ALIKE = ("a", "A", "a ", "\u00e1", "a\u0301")


def telling_apart(column: str, relation: str) -> str:
    """Write a query (DuckDB, SQLite) that reads no row and says whether a column's collation tells all texts apart."""
    texts = ", ".join(f"('{text}')" for text in _ALIKE)
    rows = f"SELECT {column} AS x FROM {relation} WHERE FALSE UNION ALL VALUES {texts}"  # noqa: S608
    return f"SELECT count(DISTINCT x) = {len(_ALIKE)} FROM ({rows}) AS t"  # noqa: S608


_DECIMAL = re.compile(r"decimal\((\d+)", re.IGNORECASE)


def rounding(found: str) -> str:
    """Say why a column of this type cannot say whose a row is, where two of its values may be one when they are read.

    A decimal is read as a double, which tells all decimals of at most 15 digits apart.

    >>> rounding("DECIMAL(15,2)"), rounding("DECIMAL(18,0)")
    ('', 'a DECIMAL(18,0) is rounded when it is read')
    """
    digits = _DECIMAL.match(found)
    rounded = found == "TIMESTAMP_NS" or (digits is not None and int(digits[1]) > 15)
    return f"a {found} is rounded when it is read" if rounded else ""


@dataclass(frozen=True, slots=True)
class View:
    """A table as the engine shall serve it: under this name, from that place, these columns with these kinds.

    `version` is a column that the owner says rises with every change, where there is one.
    """

    name: str
    place: Place
    columns: tuple[tuple[str, Kind], ...]
    version: str | None = None


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
        """Give a cheap fingerprint of a table's content; it tells neighbors apart, so it stays with the curator."""
        ...

    def interrupt(self, caller: int | None = None) -> None:
        """Stop what is running now: everything, or what the thread of this identifier asked for."""
        ...

    def close(self) -> None:
        """Let go of the data."""
        ...


def locate(source: object, path: str, *, base: Path, name: str) -> Place:
    """Read a `source:` of hubbub.yaml: visits.csv, visits.parquet, duckdb:file#table, postgresql://host/db/schema.table.

    >>> locate("duckdb:clinic.duckdb#stays", "datasets.visits.source", base=Path("/srv"), name="visits")
    Place(form='duckdb', path=PosixPath('/srv/clinic.duckdb'), table='stays')
    """
    if not isinstance(source, str) or not source.strip() or "\0" in source:
        raise ConfigError(
            "HB410", f"{path} does not say where the data is.", "Write the path of a .csv or .parquet file."
        )
    source = source.strip()
    if source.startswith(("postgresql://", "postgres://")):
        return _postgres(source, path)
    if source.startswith("spark:"):
        return _spark(source, path, base)
    match = _SCHEME.fullmatch(source)
    if match is None and "://" in source:
        raise ConfigError(
            "HB410",
            f"{path} names a kind of source that this version cannot read.",
            "It reads CSV, Parquet, DuckDB and SQLite files, postgresql://… and spark:…",
        )
    text = match.group(2) if match else source
    file, _, table = text.partition("#") if match or "#" in text else (text, "", "")
    form: Form | None = match.group(1) if match else _SUFFIXES.get(Path(file).suffix.lower())  # type: ignore[assignment]
    if form is None:
        raise ConfigError(
            "HB410",
            f"{path} is {source!r}, and its ending does not say what it is.",
            "Write csv:, parquet:, duckdb: or sqlite: before the path.",
        )
    database = form in ("duckdb", "sqlite")
    if table and not database:
        raise ConfigError("HB410", f"{path} names a table in a file that holds only one.", f"Write {file!r}.")
    return Place(form, base / file, (table or name) if database else None)


def _postgres(source: str, path: str) -> Place:
    """Read postgresql://user@host:port/database/schema.table?options. It is never shown: a password may be in it."""
    wrong = ConfigError(
        "HB410",
        f"{path} is not the address of a PostgreSQL table.",
        "Write postgresql://user@host:5432/database/schema.table (the password in ~/.pgpass), or /database/table.",
    )
    try:
        parts = urlsplit(source)
        _ = parts.port
    except ValueError:
        raise wrong from None
    database, _, table = parts.path.removeprefix("/").partition("/")
    table = unquote(table)
    if not database or "/" in table or parts.fragment or not table.strip("."):
        raise wrong
    address = parts._replace(scheme="postgresql", path=f"/{database}").geturl()
    return Place("postgres", Path("/"), table if "." in table else f"public.{table}", address)


def _spark(source: str, path: str, base: Path) -> Place:
    """Read spark:sc://host:port/catalog.table or spark:local[*]/…; where a path stands for the table, it is Parquet."""
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
    return Place("spark", Path("/"), table, address)


def identifier(name: str) -> str:
    """Write a name so that SQL reads it as nothing else.

    >>> identifier("visits")
    '"visits"'
    """
    return '"' + name.replace('"', '""') + '"'
