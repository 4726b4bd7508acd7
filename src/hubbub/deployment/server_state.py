"""The tables of the server's state in an archive: accounts without tokens, saved questions, pages, finished jobs.

A token is stored as the hash of 32 random bytes, so the table has no secret in clear. Jobs that were under way are left
out: no server runs them.

Tested in tests/deployment/test_import.py.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hubbub.config import Config
from hubbub.curator.opening import folder_of, is_postgres
from hubbub.errors import DeploymentError
from hubbub.server.database import MIGRATIONS, Database, PostgresDatabase, SqliteDatabase

TABLES = (
    *("tokens", "feeds", "requests", "retries", "jobs", "ended", "publications", "attempts"),
    *("questions", "dashboards", "visits", "comments"),
)
#: Tables whose rows PostgreSQL numbers, so that the next number is set after a copy.
NUMBERED = frozenset(("requests", "publications", "questions", "comments"))
_UNFINISHED = ("queued", "running")
_ROWS = 50  # in one statement


def read_state(config: Config) -> bytes:
    """Read the tables as JSON, in the format that they have; nothing is changed or created."""
    if is_postgres(config):
        return _read_postgres(config.places.database or "")
    path = folder_of(config) / "server.db"
    if not path.exists():
        return _json(len(MIGRATIONS), {})
    with closing(sqlite3.connect(f"file:{path.absolute()}?mode=ro", uri=True)) as database:
        database.execute("BEGIN")  # all tables as they are at one moment
        (version,) = database.execute("PRAGMA user_version").fetchone()
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return _json(version, _tables(names, lambda sql: database.execute(sql)))


def _read_postgres(dsn: str) -> bytes:
    from hubbub.accounting.postgres_session import PostgresSession

    session = PostgresSession(dsn, patience=30)
    try:
        connection = session.connection
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'hubbub_server'"
            names = {name for (name,) in connection.execute(found.encode())}
            version = 0
            if "format" in names:
                row = connection.execute(b"SELECT COALESCE(max(version), 0) FROM hubbub_server.format").fetchone()
                version = 0 if row is None else int(row[0])
            connection.execute(b"SET LOCAL search_path = hubbub_server, pg_catalog")
            return _json(version or len(MIGRATIONS), _tables(names, lambda sql: connection.execute(sql.encode())))
    finally:
        session.close()


def _tables(names: set[str], ask: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    tables = {}
    for name in TABLES:
        if name in names:
            cursor = ask(f"SELECT * FROM {name}")  # noqa: S608 - a name of the list above
            columns = [column[0] for column in cursor.description]
            rows = [[_plain(value) for value in row] for row in cursor.fetchall()]
            if name == "jobs":
                rows = [row for row in rows if row[columns.index("state")] not in _UNFINISHED]
            tables[name] = {"columns": columns, "rows": rows}
    return tables


def _json(version: int, tables: dict[str, dict[str, Any]]) -> bytes:
    return json.dumps({"format": version, "tables": tables}, ensure_ascii=False, sort_keys=True).encode()


def is_newer(content: bytes) -> bool:
    """Tell whether the tables are of a later version of hubbub."""
    try:
        return bool(json.loads(content)["format"] > len(MIGRATIONS))
    except (ValueError, KeyError, TypeError):
        raise _unreadable() from None


def write_state(content: bytes, folder: Path, dsn: str | None) -> None:
    """Create the server's database, in a folder or in PostgreSQL, with these rows."""
    database: Database = SqliteDatabase(folder / "server.db") if dsn is None else PostgresDatabase(dsn)
    try:
        for name, table in json.loads(content)["tables"].items():
            if name in TABLES and table["rows"]:
                _insert(database, name, table["columns"], table["rows"], postgres=dsn is not None)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unreadable() from None
    finally:
        database.close()


def _unreadable() -> DeploymentError:
    return DeploymentError(
        "HB881",
        "The archive is incomplete or was altered: its accounts cannot be read.",
        "Export again. Nothing was imported.",
    )


def _insert(
    database: Database, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, postgres: bool
) -> None:
    if not all(column.isidentifier() for column in columns):
        raise ValueError("a column has no name")
    own = " OVERRIDING SYSTEM VALUE" if postgres else ""
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        marks = ", ".join(f"({', '.join('?' * len(columns))})" for _ in part)
        statement = f"INSERT INTO {name} ({', '.join(columns)}){own} VALUES {marks}"  # noqa: S608 - checked names
        database.write(statement, [_value(value) for row in part for value in row])
    if postgres and name in NUMBERED:
        highest = max(int(row[list(columns).index("id")]) for row in rows)
        database.read("SELECT setval(pg_get_serial_sequence(?, 'id'), ?)", (f"hubbub_server.{name}", highest))


def _plain(value: Any) -> Any:
    return {"hex": bytes(value).hex()} if isinstance(value, bytes | memoryview) else value


def _value(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
