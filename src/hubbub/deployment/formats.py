"""The formats of everything a deployment stores, and what opening it with this version would change.

Nothing is opened for writing: databases are read with their own clients, files are only read.

Tested in tests/deployment/test_formats.py.
"""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hubbub.accounting import sqlite_schema
from hubbub.accounting.ledger import examine
from hubbub.analyses.streams import state as states
from hubbub.config import Config
from hubbub.curator.opening import anchor_of, folder_of, is_postgres, store_of
from hubbub.curator.schedule_list import FORMAT as SCHEDULES
from hubbub.curator.streams import streams_of
from hubbub.errors import HubbubError
from hubbub.server.database import MIGRATIONS as SERVER

Change = Literal["none", "created", "migrated", "refused"]


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One stored part: its format now and after a start of this version, and what that start would do."""

    part: str
    now: str
    after: str
    change: Change
    text: str


def stored_parts(config: Config) -> list[StoredPart]:
    """List the parts of a deployment, and what a start would change in each."""
    ledger, server = _databases(config)
    folder = folder_of(config)
    return [
        _database("ledger", ledger, len(sqlite_schema.MIGRATIONS)),
        *([_policy(config)] if ledger else []),
        _database("accounts (server.db)", server, len(SERVER)),
        *_schedules(folder / "schedules.json"),
        *_streams(streams_of(config)),
    ]


def _databases(config: Config) -> tuple[int, int]:
    """Read the format numbers of the ledger and the server's database; 0 if there is none."""
    if not is_postgres(config):
        return _user_version(config.database), _user_version(folder_of(config) / "server.db")
    from hubbub.accounting import postgres_schema
    from hubbub.accounting.postgres_session import PostgresSession

    session = PostgresSession(config.places.database or "", patience=30)
    try:
        ledger = postgres_schema.version(session.connection)
        known = session.connection.execute(b"SELECT to_regclass('hubbub_server.format') IS NOT NULL").fetchone()
        if known is None or not known[0]:
            return ledger, 0
        row = session.connection.execute(b"SELECT COALESCE(max(version), 0) FROM hubbub_server.format").fetchone()
        return ledger, 0 if row is None else int(row[0])
    finally:
        session.close()


def _user_version(path: Path) -> int:
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path.absolute()}?mode=ro", uri=True)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def _database(part: str, version: int, newest: int) -> StoredPart:
    after = str(max(version, newest))
    if version > newest:
        text = f"written by a later version of hubbub: this one supports formats up to {newest} and refuses it"
        return StoredPart(part, str(version), after, "refused", text)
    if not version:
        return StoredPart(part, "–", after, "created", "there is none yet: the first start creates it")
    if version == newest:
        return StoredPart(part, str(version), after, "none", "current")
    steps = newest - version
    text = f"{steps} migration{'' if steps == 1 else 's'} in one transaction; earlier versions refuse it afterwards"
    return StoredPart(part, str(version), after, "migrated", text)


def _policy(config: Config) -> StoredPart:
    """Verify the ledger, and tell whether a start would record the policy of hubbub.yaml as a new one."""
    try:
        store = store_of(config, read_only=True)
        try:
            examine(store, anchor_of(config)).refuse(anchor_of(config).where)
            with store.snapshot() as snapshot:
                same = snapshot.head().config == config.policy.hash
        finally:
            store.close()
    except HubbubError as error:
        return StoredPart("ledger's entries", "–", "–", "refused", f"{error.code} {error.message}")
    if same:
        return StoredPart("ledger's entries", "verified", "verified", "none", "every entry verifies and stays")
    text = "every entry verifies and stays; one is added: the policy of hubbub.yaml, as this version records it"
    return StoredPart("ledger's entries", "verified", "verified", "migrated", text)


def _schedules(path: Path) -> list[StoredPart]:
    if not path.exists():
        return []
    try:
        number = int(json.loads(path.read_text(encoding="utf-8"))["format"])
    except (ValueError, KeyError, TypeError):
        return [StoredPart("scheduled queries", "?", str(SCHEDULES), "refused", "the file cannot be read")]
    if number > SCHEDULES:
        return [StoredPart("scheduled queries", str(number), str(number), "refused", "written by a later version")]
    text = "current" if number == SCHEDULES else "written in the new format when a query is next added or removed"
    return [StoredPart("scheduled queries", str(number), str(SCHEDULES), "none", text)]


def _streams(root: Path) -> list[StoredPart]:
    parts = []
    for path in sorted(root.rglob("*.stream")):
        try:
            states.load(path)
        except HubbubError as error:
            parts.append(StoredPart(f"stream {path.stem}", "?", "?", "refused", f"{error.code} {error.message}"))
        else:
            parts.append(StoredPart(f"stream {path.stem}", "1", "1", "none", "current"))
    return parts
