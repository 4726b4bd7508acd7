"""Read the columns of files and detect changes. Only `sqlite_batches` reads values.

Tested in tests/engines/test_sources.py and test_whole_files.py.
"""

import csv
import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.engines import hive
from hubbub.engines.base import (
    LOOSE_COLLATION,
    DataSource,
    Field,
    UnreachableError,
    collation_query,
    identifier,
    unsteady_view,
)
from hubbub.errors import ConfigError

#: Files up to this size are hashed completely; of larger files, evenly spaced blocks are.
HASHED_WHOLE = 1 << 28
_BLOCK = 1 << 20
_BLOCKS = 64
_MAX_HEADER = 1 << 20
_BATCH = 50_000

#: What makes an SQLite view depend on the clock, the session or chance; a word in a text counts, to be safe.
_SQLITE = re.compile(
    r"\b(?P<word>random|randomblob|now|current_date|current_time|current_timestamp|last_insert_rowid|total_changes)\b"
    r"|\b(?P<empty>date|time|datetime|julianday|unixepoch|changes)\s*\(\s*\)"
    r"|\b(?P<format>strftime)\s*\(\s*'[^']*'\s*\)",
    re.IGNORECASE,
)

#: Kinds of SQLite's declared types; the first match wins (SQLite's affinity rules, plus dates).
_SQLITE_KINDS: tuple[tuple[str, Kind | None], ...] = (
    ("BOOL", Kind.BOOLEAN),
    ("INT", Kind.INTEGER),
    ("CHAR", Kind.TEXT),
    ("CLOB", Kind.TEXT),
    ("TEXT", Kind.TEXT),
    ("BLOB", None),
    ("DATETIME", Kind.TIMESTAMP),
    ("TIMESTAMP", Kind.TIMESTAMP),
    ("DATE", Kind.DATE),
    ("REAL", Kind.REAL),
    ("FLOA", Kind.REAL),
    ("DOUB", Kind.REAL),
    ("NUM", Kind.REAL),
    ("DEC", Kind.REAL),
)


def check_readable(source: DataSource) -> None:
    """Raise an error if a file cannot be read."""
    path = source.path
    if any(character in str(path) for character in "*?[]"):
        raise ConfigError(
            "HB411",
            f"The path {str(path)!r} contains a wildcard.",
            "Write the path of one file, or of the folder that has all files: visits/ for visits/month=*/*.parquet.",
        )
    if source.form == "delta":
        if not (path / "_delta_log").is_dir():
            reason = "has no folder _delta_log" if path.is_dir() else "is not a folder"
            raise ConfigError("HB411", f"{path} {reason}.", "Write the path of the folder of a Delta Lake table.")
        return
    if source.form == "hive":
        if not path.is_dir():
            reason = "is not a folder" if path.exists() else "does not exist"
            raise ConfigError("HB411", f"{path} {reason}.", "Write the path of a folder of Parquet files.")
        return
    if not path.is_file():
        reason = "is not a file" if path.exists() else "does not exist"
        remedy = "Paths are relative to the folder of hubbub.yaml."
        if path.is_dir():
            reason, remedy = "is a folder", f"For the Parquet files in it, write {path.name}/ with a slash at the end."
        raise ConfigError("HB411", f"{path} {reason}.", remedy)
    if not os.access(path, os.R_OK):
        raise ConfigError("HB411", f"{path} cannot be read.", "Grant read permission to the user that runs hubbub.")


def csv_header(path: Path) -> tuple[str, tuple[str, ...]]:
    """Read the delimiter and the column names from the first line of a CSV file."""
    with path.open("rb") as file:
        line = file.readline(_MAX_HEADER)
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(
            "HB412", f"The first line of {path.name} is not UTF-8.", "Convert the file to UTF-8."
        ) from None
    delimiter = max(",;\t|", key=text.count)
    names = tuple(next(csv.reader([text], delimiter=delimiter), ()))
    # DuckDB's column names are not case-sensitive
    if not names or not all(name.strip() for name in names) or len({name.lower() for name in names}) < len(names):
        raise ConfigError(
            "HB412",
            f"The first line of {path.name} is not a header with unique column names.",
            "Add a header line, such as `patient_id,age,cost`.",
        )
    return delimiter, names


def sqlite_fields(source: DataSource) -> tuple[Field, ...]:
    """Read the declared columns of a table in a SQLite file."""
    with _sqlite(source) as connection:
        try:
            check_sqlite_view(connection, source.table or "")
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type <> 'index'")]
            declared = connection.execute("SELECT name, type FROM pragma_table_info(?)", (source.table,)).fetchall()
            queries = [
                (name, collation_query(identifier(name), identifier(source.table or ""))) for name, _ in declared
            ]
            loose = {name for name, text in queries if connection.execute(text).fetchone() != (1,)}
        except UnreachableError as error:
            raise ConfigError("HB411", f"{source.shown}: {error.why}.", error.remedy) from None
        except sqlite3.Error:
            raise ConfigError("HB411", f"{source.path} is not an SQLite database.", "Check the path.") from None
    if not declared:
        raise no_such_table(source, tables)
    return tuple(
        Field(name, kind or "no type", _sqlite_kind(kind), LOOSE_COLLATION if name in loose else _sqlite_unfit(kind))
        for name, kind in declared
    )


def check_sqlite_view(connection: sqlite3.Connection, table: str) -> None:
    """Raise an error if a view of an SQLite file, or a view under it, calls a function such as random()."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'view'").fetchall()
    views = {name.lower(): sql for name, sql in rows}
    reached, waiting = set[str](), [table.lower()]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in views:
            continue
        reached.add(name)
        match = _SQLITE.search(views[name])
        if match is not None:
            raise unsteady_view((match["word"] or match["empty"] or match["format"]).lower())
        waiting += [other for other in views if other in views[name].lower()]


def check_sqlite(source: DataSource) -> None:
    """Raise an error if the table is a view that calls a function such as random()."""
    with _sqlite(source) as connection:
        try:
            check_sqlite_view(connection, source.table or "")
        except sqlite3.Error:
            raise UnreachableError("the file is not readable", "Check the file with `hubbub check`.") from None


def sqlite_batches(source: DataSource, columns: tuple[str, ...]) -> Iterator[dict[str, NDArray[np.object_]]]:
    """Read an SQLite table as exact text, in batches. This cannot fail, whatever types its columns hold."""
    texts = ", ".join(
        f"CASE typeof({name}) WHEN 'real' THEN printf('%!.17g', {name}) WHEN 'blob' THEN NULL"
        f" ELSE CAST({name} AS TEXT) END"
        for name in map(identifier, columns)
    )
    with _sqlite(source) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        rows = connection.execute(f"SELECT {texts} FROM {identifier(source.table or '')}")  # noqa: S608
        while batch := rows.fetchmany(_BATCH):
            yield {
                name: np.array(values, dtype=object)
                for name, values in zip(columns, zip(*batch, strict=True), strict=True)
            }


def no_such_table(source: DataSource, tables: list[str]) -> ConfigError:
    """Return the error for a missing table, with the tables that exist."""
    known = ", ".join(sorted(tables)[:20]) or "none"
    return ConfigError(
        "HB411", f"{source.path.name} has no table {source.table!r}.", f"Append #table to the path. Tables: {known}."
    )


#: What `signature` returns.
Signature = tuple[tuple[str | int, ...], ...]


def signature(source: DataSource) -> Signature:
    """Return file metadata that normally changes on every write. It is cheap enough to read before every query."""
    return tuple((str(path), *signature_of(path)) for path in _parts(source))


def signature_of(path: Path) -> tuple[int, ...]:
    """Return the same for one file, without its name."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def digest(source: DataSource) -> bytes:
    """Hash a file's content; of a large file its size, modification time and evenly spaced blocks."""
    return digest_of(_parts(source))


def digest_of(paths: Sequence[Path]) -> bytes:
    """Hash the content of some files."""
    state = blake2b(digest_size=32)
    for path in paths:
        with path.open("rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise OSError("not a regular file")
            state.update(f"{info.st_size} ".encode())
            if info.st_size <= HASHED_WHOLE:
                while block := file.read(_BLOCK):
                    state.update(block)
                continue
            state.update(str(info.st_mtime_ns).encode())
            for number in range(_BLOCKS):
                file.seek((info.st_size - _BLOCK) * number // (_BLOCKS - 1))
                state.update(file.read(_BLOCK))
    return state.digest()


def _parts(source: DataSource) -> list[Path]:
    """Return the file and the write-ahead log of a database, if it exists.

    Of a Delta Lake table, the newest commit; of a folder, all files of rows.
    """
    if source.form == "hive":
        return [source.path / part.path for part in hive.listed(source.path).parts]
    if source.form == "delta":
        # the names begin with the version, in twenty digits
        commits = [path for path in (source.path / "_delta_log").iterdir() if path.name[:20].isdigit()]
        return [max(commits)] if commits else []
    log = {"sqlite": f"{source.path}-wal", "duckdb": f"{source.path}.wal"}.get(source.form)
    return [source.path] + ([Path(log)] if log is not None and Path(log).exists() else [])


class _sqlite:  # noqa: N801 - sqlite3's own context manager does not close the connection
    def __init__(self, source: DataSource) -> None:
        self._uri = f"{source.path.resolve().as_uri()}?mode=ro"

    def __enter__(self) -> sqlite3.Connection:
        self._connection = sqlite3.connect(self._uri, uri=True)
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _sqlite_unfit(declared: str) -> str:
    """Return why a column cannot be a privacy ID column: SQLite's integers would be read as doubles."""
    text = declared.upper()
    numeric = _sqlite_kind(declared) is Kind.REAL and not any(part in text for part in ("REAL", "FLOA", "DOUB"))
    return f"a {declared} is rounded when it is read" if numeric else ""


def _sqlite_kind(declared: str) -> Kind | None:
    text = declared.upper()
    return next((kind for part, kind in _SQLITE_KINDS if part in text), None)
