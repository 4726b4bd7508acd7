"""What files say of themselves: the names and types of their columns, and whether they have changed. Never a value."""

import csv
import os
import sqlite3
import stat
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.engines.base import LOOSE, Field, Place, identifier, telling_apart
from hubbub.errors import ConfigError

#: Files up to this size are hashed whole, larger ones in evenly spread blocks.
HASHED_WHOLE = 1 << 28
_BLOCK = 1 << 20
_BLOCKS = 64
_HEADER_MOST = 1 << 20
_BATCH = 50_000

#: How SQLite's declared types are read, the first match wins (its own rules of affinity, and dates).
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


def readable(place: Place) -> None:
    """Refuse a place where no file can be read."""
    path = place.path
    if any(character in str(path) for character in "*?[]"):
        raise ConfigError("HB411", f"the path {str(path)!r} has a wildcard.", "Name one file.")
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise ConfigError("HB411", f"{path} {what}.", "Paths in hubbub.yaml are relative to the folder it is in.")
    if not os.access(path, os.R_OK):
        raise ConfigError("HB411", f"{path} cannot be read.", "Give this user the right to read it.")


def csv_header(path: Path) -> tuple[str, tuple[str, ...]]:
    """Read the first line of a CSV file: the delimiter it uses and the names of the columns."""
    with path.open("rb") as file:
        line = file.readline(_HEADER_MOST)
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(
            "HB412", f"the first line of {path.name} is not UTF-8.", "Convert the file to UTF-8."
        ) from None
    delimiter = max(",;\t|", key=text.count)
    names = tuple(next(csv.reader([text], delimiter=delimiter), ()))
    # DuckDB takes names that differ in case alone for one
    if not names or not all(name.strip() for name in names) or len({name.lower() for name in names}) < len(names):
        raise ConfigError(
            "HB412",
            f"the first line of {path.name} does not name its columns, each once.",
            "Add a header line, such as `patient_id,age,cost`.",
        )
    return delimiter, names


def sqlite_fields(place: Place) -> tuple[Field, ...]:
    """Read the declared columns of a table in a SQLite file."""
    with _sqlite(place) as connection:
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type <> 'index'")]
            declared = connection.execute("SELECT name, type FROM pragma_table_info(?)", (place.table,)).fetchall()
            asked = [(name, telling_apart(identifier(name), identifier(place.table or ""))) for name, _ in declared]
            loose = {name for name, text in asked if connection.execute(text).fetchone() != (1,)}
        except sqlite3.Error:
            raise ConfigError("HB411", f"{place.path} is not a SQLite database.", "Check the path.") from None
    if not declared:
        raise no_such_table(place, tables)
    return tuple(
        Field(name, kind or "no type", _sqlite_kind(kind), LOOSE if name in loose else _sqlite_unfit(kind))
        for name, kind in declared
    )


def sqlite_batches(place: Place, columns: tuple[str, ...]) -> Iterator[dict[str, NDArray[np.object_]]]:
    """Read a SQLite table as exact text, in batches: SQLite lets any value stand in any column, so this is total."""
    texts = ", ".join(
        f"CASE typeof({name}) WHEN 'real' THEN printf('%!.17g', {name}) WHEN 'blob' THEN NULL"
        f" ELSE CAST({name} AS TEXT) END"
        for name in map(identifier, columns)
    )
    with _sqlite(place) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        rows = connection.execute(f"SELECT {texts} FROM {identifier(place.table or '')}")  # noqa: S608
        while batch := rows.fetchmany(_BATCH):
            yield {
                name: np.array(values, dtype=object)
                for name, values in zip(columns, zip(*batch, strict=True), strict=True)
            }


def no_such_table(place: Place, tables: list[str]) -> ConfigError:
    """Say that a database file has no such table, and which it has."""
    known = ", ".join(sorted(tables)[:20]) or "none"
    return ConfigError(
        "HB411", f"{place.path.name} has no table {place.table!r}.", f"It has: {known}. Write …#table after the path."
    )


def signature(place: Place) -> tuple[tuple[int, ...], ...]:
    """Give what changes, as a rule, when a file is written: cheap enough to look at before every query."""
    found = [path.stat() for path in _parts(place)]
    return tuple((each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found)


def digest(place: Place) -> bytes:
    """Hash a file's content; of a large file its size, its time and evenly spread blocks with both ends."""
    state = blake2b(digest_size=32)
    for path in _parts(place):
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OSError("not a regular file")
            state.update(f"{found.st_size} ".encode())
            if found.st_size <= HASHED_WHOLE:
                while block := file.read(_BLOCK):
                    state.update(block)
                continue
            state.update(str(found.st_mtime_ns).encode())
            for number in range(_BLOCKS):
                file.seek((found.st_size - _BLOCK) * number // (_BLOCKS - 1))
                state.update(file.read(_BLOCK))
    return state.digest()


def _parts(place: Place) -> list[Path]:
    """Name the file and, of a database, the log in which its newest changes may still be."""
    log = {"sqlite": f"{place.path}-wal", "duckdb": f"{place.path}.wal"}.get(place.form)
    return [place.path] + ([Path(log)] if log is not None and Path(log).exists() else [])


class _sqlite:  # noqa: N801 - a context manager that closes, which sqlite3's own does not
    def __init__(self, place: Place) -> None:
        self._uri = f"{place.path.resolve().as_uri()}?mode=ro"

    def __enter__(self) -> sqlite3.Connection:
        self._connection = sqlite3.connect(self._uri, uri=True)
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _sqlite_unfit(declared: str) -> str:
    """Say why a column cannot tell units apart: whole numbers that SQLite keeps as such would be read as doubles."""
    text = declared.upper()
    numeric = _sqlite_kind(declared) is Kind.REAL and not any(part in text for part in ("REAL", "FLOA", "DOUB"))
    return f"a {declared} is rounded when it is read" if numeric else ""


def _sqlite_kind(declared: str) -> Kind | None:
    text = declared.upper()
    return next((kind for part, kind in _SQLITE_KINDS if part in text), None)
