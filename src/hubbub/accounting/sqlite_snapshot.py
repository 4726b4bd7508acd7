"""A consistent view of a ledger in SQLite, independent of concurrent writes.

Tested in tests/accounting/test_sqlite.py.
"""

import sqlite3
from collections.abc import Iterator, Mapping

from hubbub.accounting import sqlite_schema
from hubbub.accounting.chain import NO_HASH, Entry, genesis
from hubbub.accounting.store import EntryFilter, Head, StoredTotal, stored_until

FIELDS = ", ".join(Entry._fields)
HEAD = "SELECT sequence, hash, time, config FROM entries ORDER BY sequence DESC LIMIT 1"

#: Keys are stored at least up to the last multiple of LAG (`store.stored_until`), and without gaps.
_WRONG_KEYS = (
    "WITH stored(newest) AS (SELECT max(coalesce((SELECT max(charge) FROM keys), 0), ?)) "
    "SELECT (SELECT count(*) FROM entries, stored WHERE kind = 'charge' AND sequence <= newest) "
    "- (SELECT count(*) FROM keys JOIN entries ON entries.sequence = keys.charge "
    "WHERE kind = 'charge' AND entries.key = keys.key AND entries.analyst = keys.analyst)"
)


class SqliteSnapshot:
    """One read transaction."""

    def __init__(self, reader: sqlite3.Connection, ledger: str) -> None:
        self._reader = reader
        self._identity = ledger
        self._head: Head | None = None

    @property
    def ledger(self) -> str:
        """The random identity of the ledger."""
        return self._identity

    def head(self) -> Head:
        """Give the newest entry's position."""
        if self._head is None:  # a snapshot has one
            row = self._reader.execute(HEAD).fetchone()
            self._head = Head(0, genesis(self._identity), 0, NO_HASH) if row is None else Head(*row)
        return self._head

    def entries(self, which: EntryFilter, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
        """Read entries in the order of the chain, or its reverse."""
        terms, values = which.where("?")
        order = "DESC" if newest_first else "ASC"
        query = f"SELECT {FIELDS} FROM entries WHERE sequence > ?{terms} ORDER BY sequence {order}"  # noqa: S608
        return map(Entry._make, self._reader.execute(query, [after, *values]))

    def released(self, low: int, high: int) -> set[int]:
        """Say which charges from `low` to `high` have a release."""
        rows = self._reader.execute("SELECT charge FROM releases WHERE charge BETWEEN ? AND ?", (low, high))
        return {charge for (charge,) in rows}

    def body(self, charge: int) -> bytes | None:
        """Read the release of one charge."""
        row = self._reader.execute("SELECT body FROM releases WHERE charge = ?", (charge,)).fetchone()
        return None if row is None else bytes(row[0])

    def releases(self) -> Iterator[tuple[int, bytes]]:
        """Read every release, by charge."""
        return iter(self._reader.execute("SELECT charge, body FROM releases ORDER BY charge"))

    def totals(self) -> Mapping[str, StoredTotal]:
        """Read every total."""
        rows = self._reader.execute("SELECT cap, spent, sequence FROM totals")
        return {cap: StoredTotal(spent, sequence) for cap, spent, sequence in rows}

    def problems(self) -> list[str]:
        """Check schema, pages and indexes."""
        problems = sqlite_schema.problems(self._reader)
        try:
            rows = self._reader.execute("PRAGMA integrity_check(10)").fetchall()
        except sqlite3.DatabaseError as error:
            return [*problems, f"the file is corrupt: {error}"]
        problems += [f"the file is corrupt: {text}" for (text,) in rows if text != "ok"]
        least = stored_until(self.head().sequence)
        if not problems and self._reader.execute(_WRONG_KEYS, (least,)).fetchone() != (0,):
            problems.append("the request keys do not match the charges")
        return problems
