"""The schema of a ledger in SQLite, and its migrations.

Tested in tests/accounting/test_sqlite.py.
"""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from hubbub.accounting import chain

APPLICATION = 0x48554242  # "HUBB": identifies the file

#: Migrations, forward only, each in one transaction with its number. A released migration is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE identity (ledger TEXT NOT NULL) STRICT""",
        """CREATE TABLE entries (
            sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, time INTEGER NOT NULL, analyst TEXT NOT NULL,
            dataset TEXT NOT NULL, version TEXT NOT NULL, facts TEXT NOT NULL, query TEXT NOT NULL, key TEXT NOT NULL,
            charge INTEGER NOT NULL, request BLOB NOT NULL, config BLOB NOT NULL, previous BLOB NOT NULL,
            hash BLOB NOT NULL) STRICT""",
        """CREATE TABLE keys (key TEXT NOT NULL, analyst TEXT NOT NULL, charge INTEGER NOT NULL,
            PRIMARY KEY (key, analyst)) STRICT, WITHOUT ROWID""",
        """CREATE TABLE releases (charge INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT""",
        """CREATE TABLE totals (cap TEXT PRIMARY KEY, spent TEXT NOT NULL, sequence INTEGER NOT NULL)
            STRICT, WITHOUT ROWID""",
        *(
            f"""CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
            BEGIN SELECT RAISE(ABORT, 'the ledger is only ever added to'); END"""
            for table in ("identity", "entries", "keys", "releases")
            for verb in ("UPDATE", "DELETE")
        ),
    ),
)


def upgrade(connection: sqlite3.Connection, number: int, ledger: str | None = None) -> None:
    """Apply one migration, in a transaction that the caller opens and commits; a copy keeps the identity `ledger`."""
    for statement in MIGRATIONS[number - 1]:
        connection.execute(statement)
    if number == 1:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("INSERT INTO identity VALUES (?)", (ledger or chain.new_identity(),))
    connection.execute(f"PRAGMA user_version = {number}")


def problems(connection: sqlite3.Connection) -> list[str]:
    """Compare the schema of the file with the one that the migrations create."""
    pristine = sqlite3.connect(":memory:")
    try:
        for statement in (statement for statements in MIGRATIONS for statement in statements):
            pristine.execute(statement)
        listing = "SELECT type, name, sql FROM sqlite_master"
        expected, actual = (
            {(kind, name): sql for kind, name, sql in c.execute(listing)} for c in (pristine, connection)
        )
    finally:
        pristine.close()
    return [
        *(f"the {kind} {name} is missing" for kind, name in sorted(expected.keys() - actual.keys())),
        *(f"the {kind} {name} does not belong to the ledger" for kind, name in sorted(actual.keys() - expected.keys())),
        *(
            f"the {kind} {name} was changed"
            for (kind, name), sql in sorted(expected.items())
            if (kind, name) in actual and actual[kind, name] != sql
        ),
    ]


def set_aside(path: Path) -> str:
    """Rename the file of a ledger and its log to keep them for inspection, and return the new path."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = path.with_name(f"{path.name}.set-aside-{stamp}")
    for ending in ("-wal", "-shm", ""):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(aside.with_name(aside.name + ending))
    return str(aside)
