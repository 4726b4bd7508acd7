"""PostgreSQL tables that are copied into a DuckDB file of this process and queried there (`engine: {copy: true}`).

A question that brings all rows of a unit together takes PostgreSQL several sorts, and DuckDB a fraction of that. The
owner decides, because a decision by the number of rows would depend on the data before the charge. Tables are copied
after the charge, as the role of the source reads them, and again when their fingerprint has changed.

Tested in tests/engines/test_postgres_copied.py.
"""

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays, DataSource, EngineLimits, Upload, View, identifier
from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.engines.postgres.connection import PostgresEngine
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

_BATCH = 50_000
_MB = 1_000_000
#: Where values are not NULL: what is written in place of NULL, and the types here and in DuckDB.
_TYPES: Mapping[Kind, tuple[str, str, str]] = {
    Kind.BOOLEAN: ("FALSE", "bool", "BOOLEAN"),
    Kind.INTEGER: ("0", "int64", "BIGINT"),
    Kind.REAL: ("'0'::float8", "float64", "DOUBLE"),
    Kind.TEXT: ("''", "object", "VARCHAR"),
    Kind.DATE: ("DATE '1970-01-01'", "datetime64[us]", "DATE"),
    Kind.TIMESTAMP: ("TIMESTAMP '1970-01-01'", "datetime64[us]", "TIMESTAMP"),
}
#: The years that Python can read; the dialects clamp to them as well.
_ALL_TIME = {
    Kind.DATE: ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    Kind.TIMESTAMP: ("TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
}


class _Copy:
    """Some tables in one file, and the DuckDB that reads it. It is deleted when it is retired and unused."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="hubbub-copy-")
        self.path = Path(self.folder.name, "tables.duckdb")
        self.versions: dict[str, bytes] = {}
        self.engine: DuckDBEngine | None = None
        self.users = 0
        self.retired = False

    def close_if_idle(self) -> None:
        """Delete the file if it is retired and unused."""
        if self.retired and not self.users:
            if self.engine is not None:
                self.engine.close()
            self.folder.cleanup()


class CopiedEngine:
    """The tables and views of one PostgreSQL database, read by one role and queried in this process.

    Theorem (The same rows). Each query sees the rows that `PostgresEngine` would see, in one snapshot of the database,
    with equal values; dates and times outside of the years 1 to 9999 are moved to the ends of these years, where both
    dialects would clamp them. Copying raises nothing, whatever the rows hold.
    Proof    The selection is that of `PostgresEngine`, which is total. Values are sent in the binary format: integers,
             doubles and texts are exact, and dates are within the years of Python. NULL is sent as a column of its own.
    Assumes  the role may read the tables; the private temporary folder is not read by others.
    Tested   tests/engines/test_postgres_copied.py::test_hostile_values_are_copied_as_the_server_reads_them
    """

    dialect = "duckdb"

    def __init__(self, views: Sequence[View], *, limits: EngineLimits, uploads: Sequence[Upload] = ()) -> None:
        self._views = {view.name: view for view in views}
        self._files = [upload.view for upload in uploads]
        self._limits = limits
        self._server = PostgresEngine(views, limits=limits)
        self._mutex = threading.Lock()
        self._copy: _Copy | None = None

    def run(self, sql: str) -> Secret[Arrays]:
        """Copy the tables of a SELECT if they have changed, and run it."""
        failure = ""
        try:
            copy = self._current([name for name in self._views if identifier(name) in sql])
        except Exception as error:  # noqa: BLE001 - the message may contain data
            failure = type(error).__name__
        if failure:
            # raise outside of the handler, so that the error with data is not attached as context
            _log.info("The engine failed: %s", failure)
            raise RunError
        try:
            if copy.engine is None:
                raise RunError
            return copy.engine.run(sql)
        finally:
            with self._mutex:
                copy.users -= 1
                copy.close_if_idle()

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Ask the server."""
        return self._server.fingerprint(name)

    def content_hash(self, name: str) -> Secret[bytes] | None:
        """Ask the server."""
        return self._server.content_hash(name)

    def guarantees_unique(self, name: str, columns: tuple[str, ...]) -> bool:
        """Ask the server."""
        return self._server.guarantees_unique(name, columns)

    def interrupt(self, caller: int | None = None) -> None:
        """Stop copies and queries, or those started by one thread."""
        self._server.interrupt(caller)
        copy = self._copy
        if copy is not None and copy.engine is not None:
            copy.engine.interrupt(caller)

    def close(self) -> None:
        """Close the sessions, and delete the copies."""
        self._server.close()
        with self._mutex:
            self._retire()

    def _current(self, names: Sequence[str]) -> _Copy:
        """Return copies of these tables at their current version; the caller must release them."""
        versions = {name: self.fingerprint(name).through(bytes) for name in names}
        with self._mutex:
            copy = self._copy
            if copy is None or any(copy.versions.get(name) != version for name, version in versions.items()):
                # what other questions have used is copied again with the rest: one file has one snapshot
                known = copy.versions if copy is not None else {}
                copy = self._copied(dict.fromkeys([*known, *names]))
                self._retire()
                self._copy = copy
            copy.users += 1
            return copy

    def _copied(self, names: Mapping[str, None]) -> _Copy:
        copy = _Copy()
        try:
            limits, folder = self._limits, Path(copy.folder.name)
            deadline, most = time.monotonic() + limits.seconds, limits.local_disk(folder) * _MB

            def check() -> None:
                if time.monotonic() > deadline or sum(file.stat().st_size for file in folder.iterdir()) > most:
                    raise TimeoutError

            with (
                duckdb.connect(
                    str(copy.path),
                    config={
                        "memory_limit": f"{limits.local_memory}MB",
                        "threads": str(limits.threads),
                        "python_enable_replacements": "false",
                        "autoload_known_extensions": "false",
                    },
                ) as target,
                self._server.snapshot() as read,
            ):
                target.begin()  # one transaction: a commit of each batch would wait for the disk
                for name in names:
                    text, copy.versions[name] = read.selection(self._views[name])
                    _copy_table(read.session, self._views[name], text, target, check)
                target.commit()
            copy.path.chmod(0o600)  # the folder is private, but the umask may have left the file readable
            views = [replace(self._views[name], source=DataSource("duckdb", copy.path, name)) for name in names]
            copy.engine = DuckDBEngine([*views, *self._files], limits=self._limits)
        except BaseException:
            with suppress(OSError):
                copy.folder.cleanup()
            raise
        return copy

    def _retire(self) -> None:
        if self._copy is not None:
            self._copy.retired = True
            self._copy.close_if_idle()
            self._copy = None


def _copy_table(
    session: "psycopg.Connection[tuple[Any, ...]]",
    view: View,
    text: str,
    target: duckdb.DuckDBPyConnection,
    check: Callable[[], None],
) -> None:
    """Copy the rows of a selection, a batch at a time, after a check of the limits."""
    kinds = [kind for _, kind in view.columns]
    sent = ", ".join(
        f"coalesce({_within_time(identifier(name), kind)}, {_TYPES[kind][0]}), {identifier(name)} IS NULL"
        for name, kind in view.columns
    )
    declared = ", ".join(f"{identifier(name)} {_TYPES[kind][2]}" for name, kind in view.columns)
    target.execute(f"CREATE TABLE {identifier(view.name)} ({declared or 'nothing BOOLEAN'})")
    values = ", ".join(f"CASE WHEN n{place} THEN NULL ELSE c{place} END" for place in range(len(kinds)))
    # a table without columns still has rows
    question = f"SELECT {sent or 'FALSE, TRUE'} FROM ({text}) AS t"  # noqa: S608 - declared names
    insert = f"INSERT INTO {identifier(view.name)} SELECT {values or 'NULL'} FROM batch"  # noqa: S608
    with session.cursor(name="hubbub_copy", binary=True) as cursor:
        cursor.execute(question.encode())
        while rows := cursor.fetchmany(_BATCH):
            check()
            columns = list(zip(*rows, strict=True))
            batch = {f"c{i}": np.array(columns[2 * i], dtype=_TYPES[kind][1]) for i, kind in enumerate(kinds)}
            batch |= {f"n{i}": np.array(columns[2 * i + 1], dtype=bool) for i in range(len(kinds))}
            target.register("batch", batch or {"c0": np.zeros(len(rows), dtype=bool)})
            target.execute(insert)
            target.unregister("batch")


def _within_time(text: str, kind: Kind) -> str:
    if kind not in _ALL_TIME:
        return text
    first, last = _ALL_TIME[kind]
    return f"CASE WHEN {text} IS NOT NULL THEN least(greatest({text}, {first}), {last}) END"
