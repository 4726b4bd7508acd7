"""Cooperative cancellation: long computations call `check`, which raises once their time is up.

Python cannot stop a computing thread from outside. So loops whose length an analyst chooses call `check`, which is
cheap and does nothing unless a caller has installed a limit for the thread.

Tested in tests/server/test_free_pool.py.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hubbub.errors import QueryError

#: CPU seconds allowed for planning one query; the heaviest query within the static limits needs far less.
PLANNING_SECONDS = 20.0


class _Checks(threading.local):
    def __init__(self) -> None:
        self.active: tuple[Callable[[], None], ...] = ()


_checks = _Checks()


def check() -> None:
    """Raise if a limit of this thread is exceeded."""
    for run in _checks.active:
        run()


@contextmanager
def add_check(callback: Callable[[], None]) -> Iterator[None]:
    """Make `check` call this in the current thread; the callback raises to stop the work."""
    before = _checks.active
    _checks.active = (*before, callback)
    try:
        yield
    finally:
        _checks.active = before


@contextmanager
def limit_planning(seconds: float = PLANNING_SECONDS) -> Iterator[None]:
    """Limit the CPU time of this thread; time used by other threads and processes does not count."""
    end = time.thread_time() + seconds

    def late() -> None:
        if time.thread_time() > end:
            raise QueryError(
                "HB549",
                f"Planning this query took more than {seconds:g} seconds.",
                "Use fewer keys, values, conditions or nested subqueries.",
            )

    with add_check(late):
        yield
