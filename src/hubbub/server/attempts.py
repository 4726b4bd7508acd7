"""When the server last tried to run a scheduled query for a block, and why that failed.

Tested in tests/server/test_scheduler.py.
"""

from dataclasses import dataclass

from hubbub.server.database import Database

#: Seconds until a query that was refused is tried again: its analyst may have got more budget.
PAUSE = 3600
#: Tries of a query that ended with its process, or that failed after its charge.
MAX_TRIES = 3
_ENDED = f"The server ended while it ran this query, and tries it {MAX_TRIES} times at most."


@dataclass(frozen=True, slots=True)
class Attempt:
    """How often a block was tried, when last, and the error; empty while it runs, and if the process ended."""

    tries: int
    at: int
    problem: str

    def again(self, now: int) -> bool:
        """Return whether the block may be tried again.

        A query that ends the process must not do so for ever, and each failure after a charge can tell a bit about the
        data. Such tries are counted.
        """
        if not self.problem:
            return self.tries < MAX_TRIES
        failed = self.problem.startswith("HB9") and not self.problem.startswith("HB91")  # not one that waits for review
        return now - self.at >= PAUSE and (self.tries < MAX_TRIES or not failed)

    @property
    def told(self) -> str:
        """Say why there is no answer; empty while nothing is wrong. The last try may still run."""
        return _ENDED if not self.problem and self.tries >= MAX_TRIES else self.problem


class AttemptTable:
    """The attempts without an answer, by the idempotency key of their query and block."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, key: str, at: int) -> None:
        """Record that a block is tried now, before anything is charged."""
        self._database.write(
            "INSERT INTO attempts (key, tries, at, problem) VALUES (?, 1, ?, '') "
            "ON CONFLICT (key) DO UPDATE SET tries = attempts.tries + 1, at = excluded.at, problem = ''",
            (key, at),
        )

    def fail(self, key: str, problem: str) -> None:
        """Record why a block has no answer."""
        self._database.write("UPDATE attempts SET problem = ? WHERE key = ?", (problem, key))

    def forget(self, key: str) -> None:
        """Forget the attempts of a block: it has an answer, or it was not tried after all."""
        self._database.write("DELETE FROM attempts WHERE key = ?", (key,))

    def find(self, key: str) -> Attempt | None:
        """Return the attempts of a block."""
        rows = self._database.read("SELECT tries, at, problem FROM attempts WHERE key = ?", (key,))
        return Attempt(*rows[0]) if rows else None
