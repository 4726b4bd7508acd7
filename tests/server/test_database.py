"""Changes of many threads share a commit of the server's SQLite file, and each is atomic and durable by itself."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import LedgerError
from hubbub.server.database import SqliteDatabase
from hubbub.server.state import Claim, RetryTable

THREADS = 8


class Watched:
    """The writing connection: it notes what it runs, and can refuse to commit."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.ran: list[str] = []
        self.refuses_commits = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self.ran.append(statement.split()[0])
        if statement == "COMMIT" and self.refuses_commits:
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(statement, *values)


class Rig:
    """A database, its writing connection, and how to make many threads write at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = SqliteDatabase(path)
        self.writer = Watched(self.database._writer)
        self.database._writer = self.writer  # type: ignore[assignment]
        self.retries = RetryTable(self.database)

    @contextmanager
    def other(self) -> Iterator[sqlite3.Connection]:
        """Open the file as another process would."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    def stored(self) -> set[tuple[str, str]]:
        """Return the claims that are committed."""
        with self.other() as connection:
            return set(connection.execute("SELECT header, ledger_key FROM retries"))

    def together(self, *calls: Callable[[], object]) -> list["Future[object]"]:
        """Run calls while another process keeps the first of them waiting, so that the others queue behind it."""
        queue = self.database._group_commit._queue
        with ThreadPoolExecutor(len(calls)) as pool, self.other() as connection:
            connection.execute("BEGIN IMMEDIATE")
            futures = [pool.submit(calls[0])]
            until = time.monotonic() + 20
            while not self.writer.ran and time.monotonic() < until:
                time.sleep(0.001)
            futures += [pool.submit(call) for call in calls[1:]]
            while len(queue) < len(calls) - 1 and time.monotonic() < until:
                time.sleep(0.001)
            connection.execute("ROLLBACK")
        return futures

    def claim(self, header: str, key: str) -> Claim:
        return self.retries.claim("ana", header, "digest", key)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path / "server.db")
    yield made
    made.database.close()


def test_waiting_changes_share_a_commit_and_are_durable_when_they_return(rig: Rig) -> None:
    seen, mutex = set[bool](), threading.Lock()

    def claim(number: int) -> None:
        rig.claim(f"h{number}", f"k{number}")
        with mutex:
            seen.add((f"h{number}", f"k{number}") in rig.stored())

    futures = rig.together(*(lambda number=number: claim(number) for number in range(THREADS)))
    assert [future.exception() for future in futures] == [None] * THREADS
    assert seen == {True}
    assert rig.writer.ran.count("COMMIT") == 1  # the first one is a transaction of its own


def test_one_of_several_claims_of_a_key_wins_and_all_get_it(rig: Rig) -> None:
    futures = rig.together(*(lambda key=key: rig.claim("one", key) for key in "abcdefgh"))
    claims = {future.result() for future in futures}
    assert len(claims) == 1
    assert {("one", claim.ledger_key) for claim in claims if isinstance(claim, Claim)} == rig.stored()


@pytest.mark.parametrize(
    ("value", "error"), [(None, "HB323"), ("\ud800", "surrogates not allowed")], ids=["refused", "not text"]
)
def test_a_change_that_cannot_be_run_fails_alone(rig: Rig, value: str | None, error: str) -> None:
    def bad() -> None:
        rig.database.write("INSERT INTO retries VALUES ('ana', 'bad', 'digest', ?)", (value,))

    futures = rig.together(lambda: rig.claim("a", "k"), lambda: rig.claim("b", "k"), bad, lambda: rig.claim("c", "k"))
    assert [future.exception() is None for future in futures] == [True, True, False, True]
    assert error in str(futures[2].exception())
    assert rig.stored() == {("a", "k"), ("b", "k"), ("c", "k")}


def test_after_a_commit_that_failed_nobody_is_told_of_success_and_nothing_is_run_again(rig: Rig) -> None:
    rig.writer.refuses_commits = True
    futures = rig.together(*(lambda header=header: rig.claim(header, "k") for header in "abcd"))
    errors = [future.exception() for future in futures]
    assert errors[0] is None  # it was alone
    assert all(isinstance(error, LedgerError) and error.code == "HB323" for error in errors[1:])
    assert rig.stored() == {("a", "k")}
    rig.writer.refuses_commits = False
    assert rig.claim("b", "other").ledger_key == "other"
