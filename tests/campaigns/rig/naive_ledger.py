"""A naive ledger that checks the budget and then writes, to demonstrate that it overspends."""

import sqlite3
import time
from pathlib import Path
from typing import Protocol

import psycopg


class Naive(Protocol):
    """A naive ledger in any database: check, then write."""

    def charge(self) -> bool:
        """Spend one unit if it is within the budget; return whether it did."""
        ...


class NaiveSqlite:
    """Each statement is durable and atomic, but their combination is wrong."""

    def __init__(self, path: Path, units: int) -> None:
        self._units = units
        self._connection = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS charges (number INTEGER PRIMARY KEY)")

    def charge(self) -> bool:
        """Spend one unit if it is within the budget; return whether it did."""
        if self.spent() >= self._units:
            return False
        time.sleep(0.0001)  # about as long as computing the cost and the hash of an entry
        self._connection.execute("INSERT INTO charges DEFAULT VALUES")
        return True

    def spent(self) -> int:
        """Return the number of granted charges."""
        return int(self._connection.execute("SELECT count(*) FROM charges").fetchone()[0])


class NaivePostgres:
    """The same on PostgreSQL, in transactions at the default isolation level, which does not help."""

    def __init__(self, dsn: str, units: int) -> None:
        self._units = units
        self._connection = psycopg.connect(dsn)
        # under a lock: two concurrent CREATE TABLE IF NOT EXISTS can collide
        self._connection.execute("SELECT pg_advisory_xact_lock(1)")
        self._connection.execute("CREATE TABLE IF NOT EXISTS charges (number bigserial PRIMARY KEY)")
        self._connection.commit()

    def charge(self) -> bool:
        """Spend one unit if it is within the budget; return whether it did."""
        with self._connection.transaction():
            if self.spent() >= self._units:
                return False
            self._connection.execute("INSERT INTO charges DEFAULT VALUES")
        return True

    def spent(self) -> int:
        """Return the number of granted charges."""
        row = self._connection.execute("SELECT count(*) FROM charges").fetchone()
        if row is None:
            raise AssertionError("count(*) gives a row")
        return int(row[0])
