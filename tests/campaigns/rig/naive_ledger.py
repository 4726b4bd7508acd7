"""A ledger as one writes it at first: it looks whether there is room, then writes. Kept to be seen overspending."""

import sqlite3
import time
from pathlib import Path
from typing import Protocol

import psycopg


class Naive(Protocol):
    """Whatever the database: look, then write."""

    def charge(self) -> bool:
        """Spend one unit if the budget has room for it; say whether it did."""
        ...


class NaiveSqlite:
    """Each statement durable and atomic by itself, and the whole of them wrong."""

    def __init__(self, path: Path, units: int) -> None:
        self._units = units
        self._connection = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS charges (number INTEGER PRIMARY KEY)")

    def charge(self) -> bool:
        """Spend one unit if the budget has room for it; say whether it did."""
        if self.spent() >= self._units:
            return False
        time.sleep(0.0001)  # about as long as it takes to price and hash what is to be written
        self._connection.execute("INSERT INTO charges DEFAULT VALUES")
        return True

    def spent(self) -> int:
        """Count what was granted."""
        return int(self._connection.execute("SELECT count(*) FROM charges").fetchone()[0])


class NaivePostgres:
    """The same on a server, in transactions at the usual isolation level, which is what such a level is worth."""

    def __init__(self, dsn: str, units: int) -> None:
        self._units = units
        self._connection = psycopg.connect(dsn)
        # under a lock of its own: two CREATE TABLE IF NOT EXISTS at once can collide
        self._connection.execute("SELECT pg_advisory_xact_lock(1)")
        self._connection.execute("CREATE TABLE IF NOT EXISTS charges (number bigserial PRIMARY KEY)")
        self._connection.commit()

    def charge(self) -> bool:
        """Spend one unit if the budget has room for it; say whether it did."""
        with self._connection.transaction():
            if self.spent() >= self._units:
                return False
            self._connection.execute("INSERT INTO charges DEFAULT VALUES")
        return True

    def spent(self) -> int:
        """Count what was granted."""
        row = self._connection.execute("SELECT count(*) FROM charges").fetchone()
        if row is None:
            raise AssertionError("count(*) gives a row")
        return int(row[0])
