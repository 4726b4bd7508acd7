"""The DuckDB engine, locked down: it reads only the declared files, writes nothing, and obeys its limits.

Tested in tests/engines/test_locks.py.
"""

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.core.asked import once
from hubbub.core.secret import Secret
from hubbub.engines import files
from hubbub.engines.base import Arrays, EngineLimits, View, identifier
from hubbub.engines.duckdb.database import check_source, guess_types, open_locked, schema, snapshot_of
from hubbub.engines.duckdb.snapshot import Snapshot, check_columns
from hubbub.engines.duckdb.time_limit import TimeLimit
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

#: What a query gives: its result, or the name of its error.
Result = Secret[Arrays] | str

#: Maximum number of concurrent queries; more wait in a queue.
_MAX_CONCURRENT = 32


class _Database:
    """One in-memory database over the files. It is closed when it is retired and its last query has ended."""

    def __init__(self, views: tuple[View, ...], limits: EngineLimits, snapshots: Mapping[str, Snapshot]) -> None:
        self.snapshots = {
            view.name: snapshots.get(view.name) or snapshot_of(view.source) for view in views if view.source.in_folder
        }
        self.spill = tempfile.TemporaryDirectory(prefix="hubbub-")
        try:
            self.root = open_locked(views, limits, Path(self.spill.name), self.snapshots)
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
        self._signatures: dict[str, files.Signature] = {}
        self._digests: dict[str, bytes] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._seen = threading.local()  # the snapshots that each thread has taken fingerprints of
        self._running: dict[duckdb.DuckDBPyConnection, int] = {}
        self._turns = threading.BoundedSemaphore(_MAX_CONCURRENT)
        self._time_limit = TimeLimit(limits.seconds)
        self._workers = ThreadPoolExecutor(max_workers=_MAX_CONCURRENT, thread_name_prefix="hubbub-engine")

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT; for the main thread in another one, so that Ctrl-C stops it immediately."""
        seen = {name: held for name, held in self._seen_here().items() if identifier(name) in sql}
        caller = threading.get_ident()
        if caller == threading.main_thread().ident:
            return _secret(self._aside(sql, caller, seen))
        with self._turns:
            return _secret(self._run(sql, [], [], caller, seen, self._time_limit.watch))

    def _aside(self, sql: str, caller: int, seen: Mapping[str, Snapshot]) -> Result:
        """Run one SELECT in another thread. DuckDB would hold an interrupt of the main thread back."""
        cursors: list[duckdb.DuckDBPyConnection] = []
        begun: list[float] = []
        run = copy_context().run  # it says who asks: see `once`
        running = self._workers.submit(run, self._run, sql, cursors, begun, caller, seen)
        try:
            return _within(running, cursors, begun, self._limits.seconds)
        except BaseException:
            while not running.done():  # repeat, because the query may not have started yet
                for cursor in cursors:
                    cursor.interrupt()
                wait([running], timeout=0.05)
            raise

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Hash the content of a table's file, and reopen the files if it has changed."""
        source = self._views[name].source
        now = files.signature(source)
        with self._mutex:
            if self._signatures.get(name) != now:
                self._retire()
                check_source(source)
                self._digests[name] = self._read_digest(name)
                self._signatures[name] = now
            if name in self._snapshots:
                self._seen.snapshots = {**self._seen_here(), name: self._snapshots[name]}
            return Secret(self._digests[name])

    def content_hash(self, name: str) -> Secret[bytes] | None:  # noqa: ARG002
        """Return None: the fingerprint of a file is a hash of its content."""
        return None

    def interrupt(self, caller: int | None = None) -> None:
        """Stop all running queries, or those started by one thread."""
        for cursor, thread in tuple(self._running.items()):
            if caller in (None, thread):
                cursor.interrupt()

    def close(self) -> None:
        """Close the database and delete spilled data, once running queries have ended."""
        self._workers.shutdown(wait=True)
        self._time_limit.close()
        with self._mutex:
            self._retire()

    def _read_digest(self, name: str) -> bytes:
        view = self._views[name]
        if not view.source.in_folder:
            return files.digest(view.source)
        snapshot = snapshot_of(view.source)
        check_columns(snapshot, view)
        self._snapshots[name] = snapshot
        return snapshot.fingerprint

    def _seen_here(self) -> dict[str, Snapshot]:
        return getattr(self._seen, "snapshots", {})

    def _run(
        self,
        sql: str,
        cursors: list[duckdb.DuckDBPyConnection],
        begun: list[float],
        caller: int,
        seen: Mapping[str, Snapshot],
        watch: Callable[[duckdb.DuckDBPyConnection], AbstractContextManager[None]] | None = None,
    ) -> Result:
        """Return the result or the class name of the error. The error message may contain data."""
        try:
            with self._mutex:
                database = self._open(seen)
                cursor = database.root.cursor()
                database.users += 1
            self._running[cursor] = caller
            cursors.append(cursor)
            begun.append(time.monotonic())
            try:
                with nullcontext() if watch is None else watch(cursor):
                    return Secret(_fetch(cursor, sql))
            finally:
                self._running.pop(cursor, None)
                cursor.close()
                with self._mutex:
                    database.users -= 1
                    database.close_if_idle()
        except Exception as error:  # noqa: BLE001 - no error may leave the engine
            return type(error).__name__

    def _open(self, seen: Mapping[str, Snapshot]) -> _Database:
        """Return the database; for a caller that has seen older snapshots than it has, one with these.

        The caller took the fingerprints of its query before the charge. A commit may have come since, and another query
        may have seen it: every statement still reads the version that was fingerprinted.
        """
        views = tuple(self._views.values())
        if self._database is None:
            self._database = _Database(views, self._limits, self._snapshots)
        current = self._database.snapshots
        if all(current[name] is snapshot for name, snapshot in seen.items()):
            return self._database
        older = _Database(views, self._limits, {**current, **seen})
        older.retired = True
        return older

    def _retire(self) -> None:
        if self._database is not None:
            self._database.retired = True
            self._database.close_if_idle()
            self._database = None


def _secret(result: Result) -> Secret[Arrays]:
    if isinstance(result, str):
        _log.info("The engine failed: %s", result)
        raise RunError
    return result


def _within(
    running: Future[Result], cursors: Sequence[duckdb.DuckDBPyConnection], begun: Sequence[float], seconds: float
) -> Result:
    """Wait for a query, and interrupt one that takes too long.

    DuckDB does not check its own time limit while it filters, but it checks for interrupts every 2,048 rows. Interrupts
    are repeated until the query has ended, because a starting statement clears an earlier interrupt. The time that a
    query waits for its turn does not count.
    """
    left = seconds
    while True:
        with suppress(TimeoutError):
            return running.result(timeout=left)
        left = seconds if not begun else begun[0] + seconds - time.monotonic()
        if left <= 0:
            left = 0.05
            for cursor in cursors:
                with suppress(duckdb.Error):  # it may have ended and be closed by now
                    cursor.interrupt()


def _parse(cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Parse one SELECT; its text alone decides the result, which no connection owns."""
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("not one SELECT")
    return statements[0]


def _fetch(cursor: duckdb.DuckDBPyConnection, sql: str) -> Arrays:
    # parsing takes about a seventh of a small question; DuckDB plans a prepared statement again each time, so that
    # preparing would save no more than this
    cursor.execute(once(("statement", sql), lambda: _parse(cursor, sql), weigh=lambda _: 4 * len(sql)))
    described = cursor.description  # DuckDB makes it anew each time
    # by the type of the upper half
    wide = [_WIDE.get(str(kind)) for _, kind, *_ in described]
    if not any(wide):
        return cast("Arrays", cursor.fetchnumpy())
    names = _distinct([str(name) for name, *_ in described])
    # numpy has no 128-bit integers and a double would round, so fetch two halves
    halves = ", ".join(
        f"c{i}" if upper is None else f"(c{i} >> 64)::{upper} AS high{i}, (c{i} & {2**64 - 1})::UBIGINT AS low{i}"
        for i, upper in enumerate(wide)
    )
    places = ", ".join(f"c{i}" for i in range(len(names)))
    text = f"SELECT {halves} FROM ({sql}) AS halves({places})"  # noqa: S608
    parts = cast("Arrays", cursor.execute(text).fetchnumpy())
    return {
        name: _join_halves(parts[f"high{i}"], parts[f"low{i}"]) if wide[i] else parts[f"c{i}"]
        for i, name in enumerate(names)
    }


def _distinct(names: Sequence[str]) -> list[str]:
    """Number equal names as DuckDB does, whatever their case."""
    found: dict[str, str] = {}
    for name in names:
        candidate, n = name, 0
        while candidate.lower() in found:
            n += 1
            candidate = f"{name}_{n}"
        found[candidate.lower()] = candidate
    return list(found.values())


def _join_halves(high: NDArray[Any], low: NDArray[Any]) -> NDArray[Any]:
    narrow = low.astype(np.int64, casting="unsafe")
    if bool(np.all(high == narrow >> 63)):  # the upper half is only the sign, so 64 bits suffice
        return narrow
    whole: NDArray[Any] = high.astype(object) * 2**64 + low.astype(object)
    return whole


#: Types of 128 bits, and those of their upper halves.
_WIDE = {"HUGEINT": "BIGINT", "UHUGEINT": "UBIGINT"}


__all__ = ["DuckDBEngine", "guess_types", "schema"]
