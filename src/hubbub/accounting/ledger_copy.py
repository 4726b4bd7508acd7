"""Copies of a ledger, entry by entry: into a single SQLite file, and from there into PostgreSQL.

The copy has the identity and the hash chain of the original, so it verifies in the same way. Its totals are computed
again from its entries.

Tested in tests/deployment/test_export.py.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from hubbub.accounting import sqlite_schema
from hubbub.accounting.chain import Entry
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.sqlite_snapshot import FIELDS
from hubbub.accounting.store import EntryFilter, Head, Snapshot, StoredTotal
from hubbub.accounting.verify import derived_totals
from hubbub.errors import DeploymentError
from hubbub.private_files import create_database

_ADD_ENTRY = f"INSERT INTO entries ({FIELDS}) VALUES ({', '.join('?' * len(Entry._fields))})"  # noqa: S608
_KEYS = "INSERT INTO keys (key, analyst, charge) SELECT key, analyst, sequence FROM entries WHERE kind = 'charge'"


def copy_to_file(snapshot: Snapshot, path: Path, before: int | None = None) -> Head:
    """Write the entries of a ledger, those below `before` if it is given, and their releases to a new SQLite file."""
    entries = snapshot.entries(EntryFilter(before=before))
    create_database(path)
    with closing(sqlite3.connect(path)) as target:
        target.execute("BEGIN")
        for number in range(1, len(sqlite_schema.MIGRATIONS) + 1):
            sqlite_schema.upgrade(target, number, snapshot.ledger)
        target.executemany(_ADD_ENTRY, entries)
        target.execute(_KEYS)
        released = {charge for (charge,) in target.execute("SELECT charge FROM entries WHERE kind = 'release'")}
        target.executemany(
            "INSERT INTO releases (charge, body) VALUES (?, ?)",
            ((charge, body) for charge, body in snapshot.releases() if charge in released),
        )
        target.commit()
    store = SqliteStore(path, read_only=True)
    try:
        with store.snapshot() as copy:
            head, totals = copy.head(), derived_totals(copy)
    finally:
        store.close()
    with closing(sqlite3.connect(path)) as target:
        target.executemany("INSERT INTO totals (cap, spent, sequence) VALUES (?, ?, ?)", _rows(totals))
        target.commit()
    return head


def copy_to_postgres(snapshot: Snapshot, dsn: str) -> None:
    """Write a ledger into a PostgreSQL database that has none, in one transaction."""
    from hubbub.accounting import postgres_schema
    from hubbub.accounting.postgres_session import Error, PostgresSession, address

    try:
        session = PostgresSession(dsn, patience=30)
    except Error as error:
        raise _unusable(address(dsn), type(error).__name__) from None
    try:
        connection = session.connection
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (postgres_schema.LOCK,))
            if postgres_schema.version(connection):
                raise DeploymentError(
                    "HB886",
                    f"There is a ledger at {address(dsn)} already. Nothing was imported.",
                    "Import into an empty database: an import never replaces or extends a ledger.",
                )
            for number in range(1, len(postgres_schema.MIGRATIONS) + 1):
                postgres_schema.upgrade(connection, number, snapshot.ledger)
            with connection.cursor() as cursor:
                with cursor.copy(f"COPY hubbub.entries ({FIELDS}) FROM STDIN".encode()) as rows:
                    for entry in snapshot.entries(EntryFilter()):
                        rows.write_row(entry)
                with cursor.copy(b"COPY hubbub.releases (charge, body) FROM STDIN") as rows:
                    for release in snapshot.releases():
                        rows.write_row(release)
                with cursor.copy(b"COPY hubbub.totals (cap, spent, sequence) FROM STDIN") as rows:
                    for total in _rows(dict(snapshot.totals())):
                        rows.write_row(total)
            connection.execute(
                "UPDATE hubbub.head SET sequence = %s, hash = %s, time = %s, config = %s", snapshot.head()
            )
    except Error as error:
        raise _unusable(address(dsn), type(error).__name__) from None
    finally:
        session.close()


def _rows(totals: dict[str, StoredTotal]) -> list[tuple[str, str, int]]:
    return [(label, *total) for label, total in sorted(totals.items())]


def _unusable(where: str, why: str) -> DeploymentError:
    return DeploymentError(
        "HB889",
        f"The database {where} cannot be used ({why}). Nothing was imported.",
        "Create an empty database that this user owns, and start its server.",
    )
