"""The time limit of statements that run in the thread of their caller.

DuckDB does not check its own time limit while it filters, but it checks for interrupts every 2,048 rows. So one thread
watches all statements, and interrupts those that take too long until they have ended: a starting statement clears an
earlier interrupt.

Tested in tests/engines/test_time_limit.py.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

import duckdb

#: Seconds between two interrupts of a statement that goes on.
_AGAIN = 0.05


class Interruptible(Protocol):
    """A cursor."""

    def interrupt(self) -> None:
        """Stop the running statement."""
        ...


class TimeLimit:
    """Interrupts statements that run for more than some seconds. Thread-safe.

    All statements have the same limit, so whatever begins while the thread sleeps ends after it wakes up. It ends when
    there was nothing to watch for as long as the limit, and the next statement starts another.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[Interruptible, float] = {}
        self._changed = threading.Condition()
        self._watching = False
        self._closed = False

    @contextmanager
    def watch(self, cursor: Interruptible) -> Iterator[None]:
        """Interrupt the statement that runs meanwhile, once its time is over."""
        with self._changed:
            self._ends[cursor] = time.monotonic() + self._seconds
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="hubbub-time-limit", daemon=True).start()
        try:
            yield
        finally:
            with self._changed:
                del self._ends[cursor]

    def close(self) -> None:
        """Stop watching once the running statements have ended."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _watch(self) -> None:
        with self._changed:
            while self._ends or not self._closed:
                now = time.monotonic()
                late = [cursor for cursor, end in self._ends.items() if end <= now]
                for cursor in late:
                    with suppress(duckdb.Error):  # it may have ended by itself
                        cursor.interrupt()
                first = min(self._ends.values(), default=now + self._seconds)
                idle = not self._ends
                self._changed.wait(_AGAIN if late else first - now)
                if idle and not self._ends:
                    break  # nothing ran for as long as the limit
            self._watching = False
