"""Patience: pure work that somebody else waits for looks now and then whether it should stop.

A thread that computes cannot be stopped from outside. So loops whose length an analyst chooses call `check`, which
costs little and does nothing unless whoever began the work has set a limit for this thread.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hubbub.errors import QueryError

#: CPU seconds that planning one question may take; the heaviest that passes the static bounds takes far less.
PLANNING = 20.0


class _Limits(threading.local):
    def __init__(self) -> None:
        self.checks: tuple[Callable[[], None], ...] = ()


_limits = _Limits()


def check() -> None:
    """Go on, or raise what the limits of this thread say."""
    for each in _limits.checks:
        each()


@contextmanager
def limited(each: Callable[[], None]) -> Iterator[None]:
    """Let `check` in this thread ask this one too; it raises where the work should stop."""
    before = _limits.checks
    _limits.checks = (*before, each)
    try:
        yield
    finally:
        _limits.checks = before


@contextmanager
def planning(seconds: float = PLANNING) -> Iterator[None]:
    """Bound the CPU time of this thread: time that others take on a busy machine does not count."""
    end = time.thread_time() + seconds

    def late() -> None:
        if time.thread_time() > end:
            raise QueryError(
                "HB549",
                f"Planning this query takes more than {seconds:g} s.",
                "Use fewer keys, values, conditions or nested sub-queries.",
            )

    with limited(late):
        yield
