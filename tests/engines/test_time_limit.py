"""Statements that run in the thread of their caller end when their time is over, and not before."""

import threading
from collections.abc import Callable

import pytest

from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.engines.duckdb.time_limit import TimeLimit
from hubbub.errors import RunError

PATIENCE = 60  # only a failing test waits this long
ENDLESS = "SELECT count(*)::BIGINT AS n FROM range(1000000000000) AS r(i) WHERE i < 0 AND sin(i) > 2"


class Cursor:
    """Counts its interrupts."""

    def __init__(self) -> None:
        self.interrupts = threading.Semaphore(0)

    def interrupt(self) -> None:
        self.interrupts.release()


def in_another_thread(call: Callable[[], object]) -> object:
    """Call from a thread that is not the main one, and return the result or the error."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    return found[0]


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hubbub-time-limit"]


def test_a_late_statement_is_interrupted_until_it_ends() -> None:
    """A starting statement clears an interrupt, so that one is not enough."""
    limit, late = TimeLimit(0), Cursor()
    with limit.watch(late):
        for _ in range(3):
            assert late.interrupts.acquire(timeout=PATIENCE)
    limit.close()


def test_a_statement_in_time_is_left_alone_while_a_late_one_is_stopped() -> None:
    limit, early, late = TimeLimit(3600), Cursor(), Cursor()
    with limit.watch(early), limit.watch(late):
        with limit._changed:
            limit._ends[late] = 0.0
            limit._changed.notify_all()
        for _ in range(3):
            assert late.interrupts.acquire(timeout=PATIENCE)
    assert not early.interrupts.acquire(blocking=False)
    limit.close()


def test_one_thread_watches_all_statements_and_ends_with_them() -> None:
    before = len(watchers())
    limit = TimeLimit(3600)
    with limit.watch(Cursor()), limit.watch(Cursor()):
        assert len(watchers()) == before + 1
        new = watchers()[-1]
        limit.close()  # it goes on while statements run
        assert new.is_alive()
    with limit._changed:
        limit._changed.notify_all()
    new.join(PATIENCE)
    assert not new.is_alive()


def test_a_watcher_that_has_ended_is_replaced() -> None:
    limit = TimeLimit(0)
    for _ in range(2):
        cursor = Cursor()
        with limit.watch(cursor):
            assert cursor.interrupts.acquire(timeout=PATIENCE)
        while limit._watching:  # with nothing to watch for as long as the limit, here 0
            watchers()[0].join(PATIENCE)
    limit.close()


def test_an_endless_statement_ends_in_the_thread_of_its_caller(engine: DuckDBEngine) -> None:
    assert in_another_thread(lambda: engine.run("SELECT 1 AS n").through(lambda a: int(a["n"][0]))) == 1
    engine._time_limit = TimeLimit(0)
    assert isinstance(in_another_thread(lambda: engine.run(ENDLESS)), RunError)


@pytest.mark.parametrize("main", [True, False])
def test_a_statement_runs_beside_the_main_thread_alone(engine: DuckDBEngine, *, main: bool) -> None:
    """Ctrl-C has to reach the main thread; every other one computes itself, which takes no switch between threads."""
    used: list[int] = []
    fetch, caller = engine._run, threading.get_ident

    def noting(*args: object) -> object:
        used.append(caller())
        return fetch(*args)  # type: ignore[arg-type]

    engine._run = noting  # type: ignore[method-assign, assignment]
    asked: list[int] = []

    def ask() -> None:
        asked.append(caller())
        engine.run("SELECT 1")

    if main:
        ask()
    else:
        in_another_thread(ask)
    assert (used == asked) is not main
