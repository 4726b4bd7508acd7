"""DuckDB, locked: it reads the declared files and nothing else, writes nowhere, and stops at its limits."""

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
from hubbub.engines.base import Arrays, View, identifier
from hubbub.engines.duckdb.open import Limits, guessed, locked, schema
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

#: Queries that run at once; more wait in line.
_AT_ONCE = 32


class _Opened:
    """One opening of the files: it is closed when it is retired and its last query has ended."""

    def __init__(self, views: tuple[View, ...], limits: Limits) -> None:
        self.spill = tempfile.TemporaryDirectory(prefix="hubbub-")
        try:
            self.root = locked(views, limits, Path(self.spill.name))
        except BaseException:
            self.spill.cleanup()
            raise
        self.users = 0
        self.retired = False

    def close_if_idle(self) -> None:
        """Close it, unless somebody still uses it or will."""
        if self.retired and not self.users:
            self.root.close()
            self.spill.cleanup()


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
        self._opened: _Opened | None = None
        self._signatures: dict[str, tuple[tuple[int, ...], ...]] = {}
        self._digests: dict[str, bytes] = {}
        self._running: dict[duckdb.DuckDBPyConnection, int] = {}
        self._workers = ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="hubbub-engine")

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT in a thread of its own, so that an interrupt of the caller stops it at once."""
        mine: list[duckdb.DuckDBPyConnection] = []
        running = self._workers.submit(self._run, sql, mine, threading.get_ident())
        try:
            found = running.result()
        except BaseException:
            while not running.done():  # it may not have begun: then there is nothing yet to interrupt
                for cursor in mine:
                    cursor.interrupt()
                wait([running], timeout=0.05)
            raise
        if isinstance(found, str):
            _log.info("the engine failed: %s", found)
            raise RunError
        return found

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Hash the content of a table's file; a file that was written since it was opened is opened anew."""
        place = self._views[name].place
        now = files.signature(place)
        with self._mutex:
            if self._signatures.get(name) != now:
                self._retire()
                self._digests[name] = files.digest(place)
                self._signatures[name] = now
            return Secret(self._digests[name])

    def interrupt(self, caller: int | None = None) -> None:
        """Stop every query that is running now, or those that one thread asked for."""
        for cursor, asking in tuple(self._running.items()):
            if caller in (None, asking):
                cursor.interrupt()

    def close(self) -> None:
        """Wait for what is running, close the data and remove what was spilled."""
        self._workers.shutdown(wait=True)
        with self._mutex:
            self._retire()

    def _run(self, sql: str, mine: list[duckdb.DuckDBPyConnection], caller: int) -> Secret[Arrays] | str:
        """Give the result, or the name of what went wrong: the text of an error may hold a cell of the data."""
        try:
            with self._mutex:
                opened = self._opened = self._opened or _Opened(tuple(self._views.values()), self._limits)
                cursor = opened.root.cursor()
                opened.users += 1
            self._running[cursor] = caller
            mine.append(cursor)
            try:
                with _limited(cursor, self._limits.seconds):
                    return Secret(_fetch(cursor, sql))
            finally:
                self._running.pop(cursor, None)
                cursor.close()
                with self._mutex:
                    opened.users -= 1
                    opened.close_if_idle()
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends here
            return type(error).__name__

    def _retire(self) -> None:
        if self._opened is not None:
            self._opened.retired = True
            self._opened.close_if_idle()
            self._opened = None


@contextmanager
def _limited(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt what takes longer. DuckDB does not look at its own limit while it filters; it does at interrupts.

    It looks every 2,048 rows. The interrupts go on until the query has ended, since a statement that begins takes an
    earlier one back.
    """
    ended = threading.Event()

    def watch() -> None:
        if not ended.wait(seconds):
            while not ended.wait(0.05):
                cursor.interrupt()

    watching = threading.Thread(target=watch, name="hubbub-limit", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def _fetch(cursor: duckdb.DuckDBPyConnection, sql: str) -> Arrays:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("not one SELECT")
    cursor.execute(statements[0])
    names = [name for name, *_ in cursor.description]
    wide = [name for name, kind, *_ in cursor.description if str(kind) == "HUGEINT"]
    if not wide:
        return cast("Arrays", cursor.fetchnumpy())
    # numpy has no 128-bit integers and a double would round: two halves that cannot overflow
    halves = ", ".join(
        f"({q} >> 64)::BIGINT AS {identifier(name + ' high')},"
        f" ({q} & 18446744073709551615::HUGEINT)::UBIGINT AS {identifier(name + ' low')}"
        if name in wide
        else q
        for name, q in ((name, identifier(name)) for name in names)
    )
    found = cast("Arrays", cursor.execute(f"SELECT {halves} FROM ({sql})").fetchnumpy())  # noqa: S608
    return {
        name: _joined(found[name + " high"], found[name + " low"]) if name in wide else found[name] for name in names
    }


def _joined(high: NDArray[Any], low: NDArray[Any]) -> NDArray[Any]:
    narrow = low.astype(np.int64, casting="unsafe")
    if bool(np.all(high == narrow >> 63)):  # the upper half is only the sign: it fits
        return narrow
    whole: NDArray[Any] = high.astype(object) * 2**64 + low.astype(object)
    return whole


__all__ = ["DuckDB", "Limits", "guessed", "schema"]
