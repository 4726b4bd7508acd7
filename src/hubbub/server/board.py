"""What the workers of one supervisor share while they run: rate limits, queries whose end does not show, figures.

A SQLite file in a private folder, in memory if possible, made by the supervisor and removed with it. Nothing in it
needs to survive a power failure, so it is never synced; a killed worker leaves it whole (write-ahead log). No budget
decision depends on it. Times are those of the monotonic clock, which all processes of a machine share.

Tested in tests/server/test_board.py.
"""

import json
import secrets
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from hubbub.errors import LedgerError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, content REAL NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queries (id INTEGER PRIMARY KEY AUTOINCREMENT, worker TEXT NOT NULL, owner TEXT NOT NULL,
    began REAL NOT NULL, key TEXT, draws INTEGER NOT NULL DEFAULT 0, shown REAL, failed INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS queries_by_key ON queries (owner, key);
CREATE TABLE IF NOT EXISTS figures (worker TEXT PRIMARY KEY, counters TEXT NOT NULL, gauges TEXT NOT NULL)
    WITHOUT ROWID;
"""
_PATIENCE = 10.0  # seconds to wait for the lock
_KEPT = 3600.0  # seconds for which a query is kept after its end showed
_ROUND = 1000  # queries or calls between two clean-ups

_TAKE = """INSERT INTO buckets VALUES (:name, :burst - 1, :now) ON CONFLICT (name) DO UPDATE
    SET content = min(:burst, content + (:now - at) * :rate) - 1, at = :now
    WHERE min(:burst, content + (:now - at) * :rate) >= 1 RETURNING 1"""
_CONTENT = "SELECT content, at FROM buckets WHERE name = ?"
#: Buckets that are full again are the same as none.
_FULL = "DELETE FROM buckets WHERE name LIKE ? AND content + (? - at) * ? >= ?"
#: A release that one try has shown need not be hidden by another.
_UNSEEN = """SELECT DISTINCT owner, key FROM queries AS mine WHERE draws AND (shown IS NULL OR shown > :now)
    AND NOT EXISTS (SELECT 1 FROM queries AS other WHERE other.owner = mine.owner AND other.key = mine.key
                    AND other.shown <= :now AND NOT other.failed)"""
_TWIN = """SELECT 1 FROM queries WHERE owner = ? AND key = ? AND id < ? AND (shown IS NULL OR shown > ?) LIMIT 1"""


class Board:
    """The shared file. Safe to use from many threads; another process opens its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = Lock()
        self._connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("journal_mode = WAL", "synchronous = OFF", "trusted_schema = OFF"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
            self._connection.executescript(_SCHEMA)
            self._connection.execute("PRAGMA busy_timeout = 0")
        except sqlite3.Error:
            self._connection.close()
            raise

    def do(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, atomic by itself; wait for other processes in short random pauses."""
        deadline = 0.0
        while True:
            try:
                with self._mutex:
                    return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                now = time.monotonic()
                deadline = deadline or now + _PATIENCE
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or now > deadline:
                    raise LedgerError(
                        "HB323",
                        f"The file {self._path}, which the workers share, cannot be used ({type(error).__name__}).",
                        "Check that its folder has room, and restart the server.",
                    ) from None
            time.sleep((50 + secrets.randbelow(450)) / 1_000_000)

    def do_at_once(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]] | None:
        """Run one statement, or return None if it would have to wait: for an event loop."""
        if not self._mutex.acquire(blocking=False):
            return None
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error:
            return None
        finally:
            self._mutex.release()

    def retire(self, worker: str) -> None:
        """Forget the queries of a worker that has ended, and keep its counters."""
        self.do("DELETE FROM queries WHERE worker = ?", (worker,))
        self.do("UPDATE figures SET gauges = '{}' WHERE worker = ?", (worker,))

    def close(self) -> None:
        """Close the file."""
        with suppress(sqlite3.Error), self._mutex:
            self._connection.close()


class SharedBuckets:
    """The token buckets of one rate limit, for all workers together."""

    def __init__(self, board: Board, kind: str, *, rate: float, burst: float, most: int) -> None:
        self._board, self._kind = board, kind
        self._rate, self._burst, self._most = rate, burst, most
        self._calls = 0

    def take(self, name: str, now: float) -> bool:
        """Take one call from a bucket; say whether there was one."""
        self._calls += 1
        if self._calls % _ROUND == 0:
            self._clean(now)
        return bool(self._board.do(_TAKE, self._values(name, now)))

    def take_at_once(self, name: str, now: float) -> bool:
        """Take one call from a bucket that is known at once to have one; `take` cleans up from time to time."""
        if (self._calls + 1) % _ROUND == 0:
            return False
        self._calls += 1
        return bool(self._board.do_at_once(_TAKE, self._values(name, now)))

    def has_at_once(self, name: str, now: float) -> bool:
        """Say whether a bucket is known at once to have a call."""
        rows = self._board.do_at_once(_CONTENT, (f"{self._kind} {name}",))
        return rows is not None and self._filled(rows, now) >= 1

    def _values(self, name: str, now: float) -> dict[str, Any]:
        return {"name": f"{self._kind} {name}", "burst": self._burst, "rate": self._rate, "now": now}

    def content(self, name: str, now: float) -> float:
        """Return what is in a bucket."""
        return self._filled(self._board.do(_CONTENT, (f"{self._kind} {name}",)), now)

    def _filled(self, rows: Sequence[tuple[Any, ...]], now: float) -> float:
        return min(self._burst, rows[0][0] + (now - rows[0][1]) * self._rate) if rows else self._burst

    def _clean(self, now: float) -> None:
        self._board.do(_FULL, (f"{self._kind} %", now, self._rate, self._burst))
        (count,) = self._board.do("SELECT count(*) FROM buckets")[0]
        if count > self._most:  # the least recently used ones
            oldest = "DELETE FROM buckets WHERE name IN (SELECT name FROM buckets ORDER BY at LIMIT ?)"
            self._board.do(oldest, (count - self._most,))


class SharedQueries:
    """The queries of all workers whose end does not show yet: see `query_pool`."""

    def __init__(self, board: Board, worker: str) -> None:
        self._board, self._worker = board, worker

    def begin(self, owner: str, now: float) -> int:
        """Note a query, and return its number."""
        number: int = self._board.do(
            "INSERT INTO queries (worker, owner, began) VALUES (?, ?, ?) RETURNING id", (self._worker, owner, now)
        )[0][0]
        if number % _ROUND == 0:
            self._board.do("DELETE FROM queries WHERE shown < ?", (now - _KEPT,))
        return number

    def claim(self, number: int, key: str, *, draws: bool) -> None:
        """Note the charge of a query before it is made."""
        self._board.do("UPDATE queries SET key = ?, draws = ? WHERE id = ?", (key, draws, number))

    def end(self, number: int, shown: float, *, failed: bool) -> None:
        """Note when the end of a query shows."""
        self._board.do("UPDATE queries SET shown = ?, failed = ? WHERE id = ?", (shown, failed, number))

    def unseen(self, now: float) -> frozenset[tuple[str, str]]:
        """Return owner and key of the charges whose release must not show yet."""
        return frozenset((str(owner), str(key)) for owner, key in self._board.do(_UNSEEN, {"now": now}))

    def twin(self, number: int, owner: str, key: str, began: float) -> bool:
        """Return whether another try of the same charge, whose end did not show when this one began, came first."""
        return bool(self._board.do(_TWIN, (owner, key, number, began)))


class SharedFigures:
    """The metrics of each worker, as it last wrote them."""

    def __init__(self, board: Board, worker: str) -> None:
        self._board, self._worker = board, worker
        self._last = ""

    def put(self, counters: object, gauges: dict[str, float]) -> None:
        """Publish this worker's figures, if they changed."""
        texts = json.dumps(counters), json.dumps(gauges)
        if repr(texts) != self._last:
            self._board.do("REPLACE INTO figures VALUES (?, ?, ?)", (self._worker, *texts))
            self._last = repr(texts)

    def others(self) -> list[tuple[Any, dict[str, float]]]:
        """Return counters and gauges of the other workers, also of those that have ended."""
        rows = self._board.do("SELECT counters, gauges FROM figures WHERE worker <> ?", (self._worker,))
        return [(json.loads(counters), json.loads(gauges)) for counters, gauges in rows]
