"""The DuckDB engine, locked down: it reads only the declared files, writes nothing, and obeys its limits.

Tested in tests/engines/test_locks.py.
"""

import logging
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.core.secret import Secret
from hubbub.engines import files
from hubbub.engines.base import Arrays, EngineLimits, View, identifier
from hubbub.engines.duckdb.database import guess_types, open_locked, schema
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

#: Maximum number of concurrent queries; more wait in a queue.
_MAX_CONCURRENT = 32


class _Database:
    """One in-memory database over the files. It is closed when it is retired and its last query has ended."""

    def __init__(self, views: tuple[View, ...], limits: EngineLimits) -> None:
        self.spill = tempfile.TemporaryDirectory(prefix="hubbub-")
        try:
            self.root = open_locked(views, limits, Path(self.spill.name))
        except BaseException:
            self.spill.cleanup()
            raise
        self.users = 0
        self.retired = False

    def close_if_idle(self) -> None:
        """Close the database if it is retired and unused."""
        if self.retired and not self.users:
            self.root.close()
            self.spill.cleanup()


class DuckDBEngine:
    """An in-memory DuckDB over the declared files.

    Only the declared files can be read, and none can be written (COPY could write to a declared path, so only a single
    SELECT is ever run). No extension, secret, or variable of this program can be accessed, and no setting can be
    changed. Memory, threads and time are limited. tests/engines/test_locks.py tries to break each lock.
    The files are opened by the first `run`.
    """

    dialect = "duckdb"

    def __init__(self, views: Sequence[View], *, limits: EngineLimits) -> None:
        self._views = {view.name: view for view in views}
        self._limits = limits
        self._mutex = threading.Lock()
        self._database: _Database | None = None
        self._signatures: dict[str, tuple[tuple[int, ...], ...]] = {}
        self._digests: dict[str, bytes] = {}
        self._running: dict[duckdb.DuckDBPyConnection, int] = {}
        self._workers = ThreadPoolExecutor(max_workers=_MAX_CONCURRENT, thread_name_prefix="hubbub-engine")

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT in a separate thread, so that an interrupt of the caller stops it immediately."""
        cursors: list[duckdb.DuckDBPyConnection] = []
        running = self._workers.submit(self._run, sql, cursors, threading.get_ident())
        try:
            result = running.result()
        except BaseException:
            while not running.done():  # repeat, because the query may not have started yet
                for cursor in cursors:
                    cursor.interrupt()
                wait([running], timeout=0.05)
            raise
        if isinstance(result, str):
            _log.info("The engine failed: %s", result)
            raise RunError
        return result

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Hash the content of a table's file, and reopen the files if it has changed."""
        source = self._views[name].source
        now = files.signature(source)
        with self._mutex:
            if self._signatures.get(name) != now:
                self._retire()
                self._digests[name] = files.digest(source)
                self._signatures[name] = now
            return Secret(self._digests[name])

    def interrupt(self, caller: int | None = None) -> None:
        """Stop all running queries, or those started by one thread."""
        for cursor, thread in tuple(self._running.items()):
            if caller in (None, thread):
                cursor.interrupt()

    def close(self) -> None:
        """Wait for running queries, then close the database and delete spilled data."""
        self._workers.shutdown(wait=True)
        with self._mutex:
            self._retire()

    def _run(self, sql: str, cursors: list[duckdb.DuckDBPyConnection], caller: int) -> Secret[Arrays] | str:
        """Return the result or the class name of the error. The error message may contain data."""
        try:
            with self._mutex:
                database = self._database = self._database or _Database(tuple(self._views.values()), self._limits)
                cursor = database.root.cursor()
                database.users += 1
            self._running[cursor] = caller
            cursors.append(cursor)
            try:
                with _time_limit(cursor, self._limits.seconds):
                    return Secret(_fetch(cursor, sql))
            finally:
                self._running.pop(cursor, None)
                cursor.close()
                with self._mutex:
                    database.users -= 1
                    database.close_if_idle()
        except Exception as error:  # noqa: BLE001 - no error may leave the engine
            return type(error).__name__

    def _retire(self) -> None:
        if self._database is not None:
            self._database.retired = True
            self._database.close_if_idle()
            self._database = None


@contextmanager
def _time_limit(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt a query that takes too long. DuckDB does not check its own time limit while it filters.

    It checks for interrupts every 2,048 rows. Interrupts are repeated until the query has ended, because a starting
    statement clears an earlier interrupt.
    """
    ended = threading.Event()

    def watch() -> None:
        if not ended.wait(seconds):
            while not ended.wait(0.05):
                cursor.interrupt()

    watcher = threading.Thread(target=watch, name="hubbub-limit", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _fetch(cursor: duckdb.DuckDBPyConnection, sql: str) -> Arrays:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("not one SELECT")
    cursor.execute(statements[0])
    names = [name for name, *_ in cursor.description]
    wide = [name for name, kind, *_ in cursor.description if str(kind) == "HUGEINT"]
    if not wide:
        return cast("Arrays", cursor.fetchnumpy())
    # numpy has no 128-bit integers and a double would round, so fetch two halves
    halves = ", ".join(
        f"({q} >> 64)::BIGINT AS {identifier(name + ' high')},"
        f" ({q} & 18446744073709551615::HUGEINT)::UBIGINT AS {identifier(name + ' low')}"
        if name in wide
        else q
        for name, q in ((name, identifier(name)) for name in names)
    )
    parts = cast("Arrays", cursor.execute(f"SELECT {halves} FROM ({sql})").fetchnumpy())  # noqa: S608
    return {
        name: _join_halves(parts[name + " high"], parts[name + " low"]) if name in wide else parts[name]
        for name in names
    }


def _join_halves(high: NDArray[Any], low: NDArray[Any]) -> NDArray[Any]:
    narrow = low.astype(np.int64, casting="unsafe")
    if bool(np.all(high == narrow >> 63)):  # the upper half is only the sign, so 64 bits suffice
        return narrow
    whole: NDArray[Any] = high.astype(object) * 2**64 + low.astype(object)
    return whole


__all__ = ["DuckDBEngine", "guess_types", "schema"]
