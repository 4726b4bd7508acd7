"""DuckDB, locked: it reads the declared files and nothing else, writes nowhere, and stops at its limits."""

import logging
import os
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines import files
from hubbub.engines.base import Arrays, Field, Place, View, failed
from hubbub.errors import ConfigError

_log = logging.getLogger("hubbub.engine")

_KINDS: dict[str, Kind] = {
    "BOOLEAN": Kind.BOOLEAN, "VARCHAR": Kind.TEXT, "UUID": Kind.TEXT, "DATE": Kind.DATE,
    "FLOAT": Kind.REAL, "DOUBLE": Kind.REAL, "HUGEINT": Kind.INTEGER, "UHUGEINT": Kind.INTEGER,
    **{f"{sign}{size}INT": Kind.INTEGER for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")},
    "INTEGER": Kind.INTEGER, "UINTEGER": Kind.INTEGER,
    **{f"TIMESTAMP{tail}": Kind.TIMESTAMP for tail in ("", "_S", "_MS", "_NS", " WITH TIME ZONE")},
}  # fmt: skip
_TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN", Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE", Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip
#: Queries that run at once; more wait in line.
_AT_ONCE = 32
#: Types that a scan may see as they are; every other one is cast by a cast that cannot fail.
_AS_THEY_ARE = {Kind.INTEGER: {t for t, k in _KINDS.items() if k is Kind.INTEGER}, Kind.REAL: {"FLOAT", "DOUBLE"}}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one engine may use: memory, and disk to spill to, in MB; threads; seconds for one query."""

    memory: int = 1000
    disk: int = 10_000
    threads: int = os.cpu_count() or 1
    seconds: int = 300


def schema(place: Place) -> tuple[Field, ...]:
    """Read the names and types of a table's columns from a header, a footer or a catalogue; never a value."""
    files.readable(place)
    if place.form == "csv":
        return tuple(Field(name, "text in a CSV file", None) for name in files.csv_header(place.path)[1])
    if place.form == "sqlite":
        return files.sqlite_fields(place)
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        return _described(connection, place)


def guessed(place: Place) -> tuple[Field, ...]:
    """Guess the types of a CSV file from its first rows. This reads values: for owners who ask for it, once."""
    files.readable(place)
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        try:
            found = connection.execute(f"DESCRIBE FROM read_csv({_text(place.path)}, header = true)").fetchall()
        except duckdb.Error:
            found = []
    kinds = {name: _kind(kind) for name, kind, *_ in found}
    return tuple(Field(field.name, field.type, kinds.get(field.name) or Kind.TEXT) for field in schema(place))


def _described(connection: duckdb.DuckDBPyConnection, place: Place) -> tuple[Field, ...]:
    try:
        if place.form == "duckdb":
            connection.execute(f"ATTACH {_text(place.path)} AS source (READ_ONLY)")
            tables = connection.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'source' AND"
                " table_schema = 'main'"
            ).fetchall()
            if (place.table,) not in tables:
                raise files.no_such_table(place, [name for (name,) in tables])
        found = connection.execute(f"DESCRIBE FROM {_relation(place, 'source')}").fetchall()
    except duckdb.Error:
        raise ConfigError(
            "HB411", f"{place.path} is not a {place.form} file that can be read.",
            "Check the path; a file of a newer version must be written again by an older one.",
        ) from None  # fmt: skip
    return tuple(Field(name, kind, _kind(kind)) for name, kind, *_ in found)


class DuckDB:
    """An in-memory DuckDB over the declared files.

    Locks, each with an attempt in tests/engines/test_locks.py: no file but the declared ones can be read, none can be
    written (a declared path could be written by COPY, so only a single SELECT is ever run); no extension, secret, or
    variable of this program can be reached; no setting can be changed; memory, threads and time are capped.
    Data is opened at the first `run`, not before.
    """

    dialect = "duckdb"

    def __init__(self, views: Sequence[View], *, limits: Limits) -> None:
        self._views = {view.name: view for view in views}
        self._limits = limits
        self._mutex = threading.Lock()
        self._root: duckdb.DuckDBPyConnection | None = None
        self._spill: tempfile.TemporaryDirectory[str] | None = None
        self._signatures: dict[str, tuple[int, ...]] = {}
        self._digests: dict[str, bytes] = {}
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._workers = ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="hubbub-engine")

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT in a thread of its own, so that an interrupt of the caller stops it at once."""
        running = self._workers.submit(self._run, sql)
        try:
            found = running.result()
        except BaseException:
            while not running.done():  # it may not have begun: then there is nothing yet to interrupt
                self.interrupt()
                wait([running], timeout=0.05)
            raise
        if isinstance(found, str):
            _log.info("the engine failed: %s", found)
            raise failed()
        return found

    def _run(self, sql: str) -> Secret[Arrays] | str:
        """Give the result, or the name of what went wrong: the text of an error may hold a cell of the data."""
        try:
            with self._mutex:
                cursor = self._opened().cursor()
                self._running.add(cursor)
            try:
                return Secret(_fetch(cursor, sql))
            finally:
                self._running.discard(cursor)
                cursor.close()
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends here
            return type(error).__name__

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Hash the content of a table's file; a file that was written since it was opened is opened anew."""
        path = self._views[name].place.path
        now = files.signature(path)
        with self._mutex:
            if self._signatures.get(name) != now:
                self._release()
                self._digests[name] = files.digest(path)
                self._signatures[name] = now
            return Secret(self._digests[name])

    def interrupt(self) -> None:
        """Stop every query that is running now."""
        for cursor in tuple(self._running):
            cursor.interrupt()

    def close(self) -> None:
        """Close the data and remove what was spilled."""
        self._workers.shutdown(wait=True)
        with self._mutex:
            self._release()

    def _release(self) -> None:
        if self._root is not None:
            self._root.close()
            self._root = None
        if self._spill is not None:
            self._spill.cleanup()
            self._spill = None

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if self._root is None:
            self._spill = tempfile.TemporaryDirectory(prefix="hubbub-")
            self._root = _locked(tuple(self._views.values()), self._limits, Path(self._spill.name))
        return self._root


def _locked(views: tuple[View, ...], limits: Limits, spill: Path) -> duckdb.DuckDBPyConnection:
    root = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{limits.memory}MB", "threads": str(limits.threads),
            "max_execution_time": str(limits.seconds * 1000),
            "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
            "allow_community_extensions": "false", "allow_extension_repositories": "forbidden",
            "allow_persistent_secrets": "false", "python_enable_replacements": "false",
        },
    )  # fmt: skip
    try:
        root.execute("SET TimeZone = 'UTC'")
        root.execute(f"SET temp_directory = {_text(spill)}")
        root.execute(f"SET max_temp_directory_size = '{limits.disk}MB'")
        paths = sorted({str(view.place.path.resolve()) for view in views if view.place.form == "parquet"})
        root.execute(f"SET allowed_paths = [{', '.join(map(_literal, paths))}]")
        databases = sorted({view.place.path for view in views if view.place.form == "duckdb"})
        for number, path in enumerate(databases):
            root.execute(f"ATTACH {_text(path)} AS source{number} (READ_ONLY)")
        if any(_is_large(view) for view in views):
            root.execute(f"ATTACH {_text(spill / 'loaded.duckdb')} AS loaded")
        for view in views:
            if view.place.form in ("csv", "sqlite"):
                _load(root, view)
            else:
                _show(root, view, f"source{databases.index(view.place.path)}" if view.place.form == "duckdb" else "")
        root.execute("SET enable_external_access = false")
        root.execute("SET lock_configuration = true")
    except BaseException:
        root.close()
        raise
    return root


def _show(root: duckdb.DuckDBPyConnection, view: View, catalog: str) -> None:
    """Leave a Parquet or DuckDB file where it is."""
    relation = _relation(view.place, catalog)
    types = {name: kind for name, kind, *_ in root.execute(f"DESCRIBE FROM {relation}").fetchall()}
    shown = ", ".join(_column(name, kind, types[name]) for name, kind in view.columns)
    root.execute(f"CREATE VIEW {_identifier(view.name)} AS SELECT {shown} FROM {relation}")  # noqa: S608


def _load(root: duckdb.DuckDBPyConnection, view: View) -> None:
    """Copy a CSV or SQLite table, into memory or, where it is large, into a file in the private temporary folder.

    A CSV file is never queried in place: DuckDB 2.0 moves a TRY_CAST into its CSV reader, where it is a CAST that
    fails and prints the line. The extension that reads SQLite in place is not part of DuckDB and would be fetched.
    """
    target = f"{'loaded.' if _is_large(view) else ''}{_identifier(view.name)}"
    declared = ", ".join(f"{_identifier(name)} {_TYPES[kind]}" for name, kind in view.columns)
    # the trim, which a cast does anyway, keeps the cast out of the reader
    shown = ", ".join(
        _identifier(name) if kind is Kind.TEXT else f"TRY_CAST(trim({_identifier(name)}) AS {_TYPES[kind]})"
        for name, kind in view.columns
    )
    root.execute(f"CREATE TABLE {target} ({declared})")
    if view.place.form == "csv":
        root.execute(f"INSERT INTO {target} SELECT {shown} FROM {_relation(view.place, '')}")  # noqa: S608
    else:
        for batch in files.sqlite_batches(view.place, tuple(name for name, _ in view.columns)):
            root.register("hubbub_batch", batch)
            root.execute(f"INSERT INTO {target} SELECT {shown} FROM hubbub_batch")  # noqa: S608
            root.unregister("hubbub_batch")
    if _is_large(view):
        root.execute(f"CREATE VIEW {_identifier(view.name)} AS FROM {target}")


def _is_large(view: View) -> bool:
    return view.place.form in ("csv", "sqlite") and view.place.path.stat().st_size > files.HASHED_WHOLE


def _column(name: str, kind: Kind, found: str) -> str:
    quoted = _identifier(name)
    if found == _TYPES[kind] or found in _AS_THEY_ARE.get(kind, ()):
        return quoted
    return f"TRY_CAST({quoted} AS {_TYPES[kind]}) AS {quoted}"


def _relation(place: Place, catalog: str) -> str:
    if place.form == "duckdb":
        return f"{_identifier(catalog)}.main.{_identifier(place.table or '')}"
    if place.form == "parquet":
        return f"read_parquet({_text(place.path)})"
    delimiter, header = files.csv_header(place.path)
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in header)
    # every field is text and a line that cannot be read is left out: no value can make the reader fail
    return (
        f"read_csv({_text(place.path)}, auto_detect = false, header = true, delim = {_literal(delimiter)},"
        f" quote = '\"', escape = '\"', null_padding = true, ignore_errors = true, columns = {{{columns}}})"
    )


def _fetch(cursor: duckdb.DuckDBPyConnection, sql: str) -> Arrays:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("not one SELECT")
    cursor.execute(statements[0])
    names = [name for name, *_ in cursor.description]
    wide = [name for name, kind, *_ in cursor.description if str(kind) == "HUGEINT"]
    if not wide:
        return dict(cursor.fetchnumpy())
    # numpy has no 128-bit integers and a double would round: two halves that cannot overflow
    halves = ", ".join(
        f"({q} >> 64)::BIGINT AS {_identifier(name + ' high')},"
        f" ({q} & 18446744073709551615::HUGEINT)::UBIGINT AS {_identifier(name + ' low')}"
        if name in wide
        else q
        for name, q in ((name, _identifier(name)) for name in names)
    )
    found: dict[str, NDArray[Any]] = cursor.execute(f"SELECT {halves} FROM ({sql})").fetchnumpy()  # noqa: S608
    return {
        name: _joined(found[name + " high"], found[name + " low"]) if name in wide else found[name] for name in names
    }


def _joined(high: NDArray[Any], low: NDArray[Any]) -> NDArray[Any]:
    narrow = low.astype(np.int64, casting="unsafe")
    if bool(np.all(high == narrow >> 63)):  # the upper half is only the sign: it fits
        return narrow
    whole: NDArray[Any] = high.astype(object) * 2**64 + low.astype(object)
    return whole


def _kind(found: str) -> Kind | None:
    if found.startswith("DECIMAL"):
        return Kind.REAL
    return Kind.TEXT if found.startswith("ENUM") else _KINDS.get(found)


def _text(path: Path) -> str:
    return _literal(str(path.resolve()))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
