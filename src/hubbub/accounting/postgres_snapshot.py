"""Read a ledger in PostgreSQL: one repeatable-read transaction of a `PostgresStore`.

Tested in tests/accounting/test_postgres.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hubbub.accounting import postgres_schema
from hubbub.accounting.chain import NO_HASH, Entry, genesis
from hubbub.accounting.postgres_session import PostgresSession
from hubbub.accounting.postgres_statements import FIELDS
from hubbub.accounting.store import EntryFilter, Head, StoredTotal
from hubbub.errors import LedgerError


class PostgresSnapshot:
    """One read transaction; long results are read through server-side cursors."""

    def __init__(self, reader: PostgresSession, ledger: str) -> None:
        self._reader = reader.connection
        self._identity = ledger
        self._cursors = 0

    @property
    def ledger(self) -> str:
        """The random identity of the ledger."""
        return self._identity

    def head(self) -> Head:
        """Give the newest entry's position."""
        row = self._reader.execute(b"SELECT sequence, hash, time, config FROM hubbub.head").fetchone()
        if row is None:
            raise LedgerError("HB305", "The ledger has no newest entry.", "Restore the database from a backup.")
        return Head(*row)

    def entries(self, which: EntryFilter, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
        """Read entries in the order of the chain, or its reverse."""
        terms, values = which.where("%s")
        order = "DESC" if newest_first else "ASC"
        query = f"SELECT {FIELDS} FROM hubbub.entries WHERE sequence > %s{terms} ORDER BY sequence {order}"  # noqa: S608
        return map(Entry._make, self._stream(query, [after, *values]))

    def released(self, low: int, high: int) -> set[int]:
        """Say which charges from `low` to `high` have a release."""
        rows = self._reader.execute("SELECT charge FROM hubbub.releases WHERE charge BETWEEN %s AND %s", (low, high))
        return {charge for (charge,) in rows}

    def body(self, charge: int) -> bytes | None:
        """Read the release of one charge."""
        row = self._reader.execute("SELECT body FROM hubbub.releases WHERE charge = %s", (charge,)).fetchone()
        return None if row is None else bytes(row[0])

    def releases(self) -> Iterator[tuple[int, bytes]]:
        """Read every release, by charge."""
        return ((charge, body) for charge, body in self._stream("SELECT * FROM hubbub.releases ORDER BY charge", []))

    def totals(self) -> Mapping[str, StoredTotal]:
        """Read every total."""
        rows = self._reader.execute(b"SELECT cap, spent, sequence FROM hubbub.totals")
        return {cap: StoredTotal(spent, sequence) for cap, spent, sequence in rows}

    def problems(self) -> list[str]:
        """Check the schema, and that the row that writers lock is that of the newest entry."""
        problems = postgres_schema.problems(self._reader)
        if not problems:
            newest = self._reader.execute(
                b"SELECT sequence, hash, time, config FROM hubbub.entries ORDER BY sequence DESC LIMIT 1"
            ).fetchone()
            heads = self._reader.execute(b"SELECT sequence, hash, time, config FROM hubbub.head").fetchall()
            empty = (0, genesis(self._identity), 0, NO_HASH)
            if heads != [newest or empty]:
                problems.append("the head row does not match the newest entry")
        return problems

    def _stream(self, query: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        self._cursors += 1
        with self._reader.cursor(f"hubbub_{self._cursors}") as cursor:
            cursor.itersize = 2000
            cursor.execute(query.encode(), values)
            yield from cursor
