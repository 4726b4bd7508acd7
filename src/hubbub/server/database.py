"""Database of the server's state: a SQLite file beside the ledger, or the ledger's PostgreSQL database.

Every statement comes from `state`, uses ? for values, and is atomic and durable by itself, so the interface runs single
statements only. The tables are not part of the ledger; no budget decision depends on them.

Tested in tests/server/test_state.py.
"""

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from urllib.parse import quote

from hubbub.accounting.group_commit import GroupCommit, PendingCall
from hubbub.errors import LedgerError
from hubbub.private_files import create_database, create_folder

if TYPE_CHECKING:
    from hubbub.accounting.postgres_session import PostgresSession

Value = str | int | bytes | None
Row = tuple[Any, ...]

#: SQLite application id: "HUBS".
_APPLICATION = 0x48554253
_PATIENCE = 30.0  # seconds to wait for a lock
_CONNECTIONS = 8  # maximum PostgreSQL connections of one process

#: Schema migrations, forward only. A released step never changes. [serial] and [bytes] differ by database.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, digest [bytes] NOT NULL,"
        " created BIGINT NOT NULL, expires BIGINT NOT NULL, revoked BIGINT, used TEXT)",
        "CREATE TABLE requests (id [serial], analyst TEXT NOT NULL, dataset TEXT NOT NULL, epsilon TEXT NOT NULL,"
        " reason TEXT NOT NULL, created BIGINT NOT NULL, state TEXT NOT NULL, decided BIGINT, decider TEXT, note TEXT)",
        "CREATE INDEX requests_of ON requests (analyst, id)",
        "CREATE TABLE retries (analyst TEXT NOT NULL, header TEXT NOT NULL, digest TEXT NOT NULL,"
        " ledger_key TEXT NOT NULL, PRIMARY KEY (analyst, header))",
        "CREATE TABLE jobs (id TEXT PRIMARY KEY, analyst TEXT NOT NULL, server TEXT NOT NULL, state TEXT NOT NULL,"
        " created BIGINT NOT NULL, changed BIGINT NOT NULL, result TEXT)",
        "CREATE INDEX jobs_unfinished ON jobs (changed) WHERE state IN ('queued', 'running')",
        "CREATE TABLE ended (session TEXT PRIMARY KEY, until BIGINT NOT NULL)",
    ),
    (
        "CREATE TABLE feeds (token TEXT NOT NULL, analyst TEXT NOT NULL, stream TEXT NOT NULL,"
        " PRIMARY KEY (token, analyst, stream))",
    ),
    (
        # one row an action, never changed: the last one of a page says whether it is public
        "CREATE TABLE publications (id [serial], page TEXT NOT NULL, release BIGINT NOT NULL, title TEXT NOT NULL,"
        " notes TEXT NOT NULL, action TEXT NOT NULL, who TEXT NOT NULL, at BIGINT NOT NULL)",
        "CREATE INDEX publications_of ON publications (page, id)",
    ),
    ("ALTER TABLE tokens ADD COLUMN verifier [bytes]",),
    ("CREATE TABLE attempts (key TEXT PRIMARY KEY, tries BIGINT NOT NULL, at BIGINT NOT NULL, problem TEXT NOT NULL)",),
    (
        "CREATE TABLE questions (id [serial], analyst TEXT NOT NULL, dashboard TEXT NOT NULL, title TEXT NOT NULL,"
        " sql TEXT NOT NULL, epsilon TEXT NOT NULL, max_groups BIGINT, max_rows BIGINT, created BIGINT NOT NULL)",
        "CREATE INDEX questions_of ON questions (analyst, id)",
        "CREATE TABLE dashboards (id TEXT PRIMARY KEY, analyst TEXT NOT NULL, title TEXT NOT NULL,"
        " created BIGINT NOT NULL, shared BIGINT)",
        "CREATE TABLE visits (analyst TEXT PRIMARY KEY, seen BIGINT NOT NULL, caps TEXT NOT NULL, since BIGINT,"
        " before TEXT)",
    ),
    (
        "CREATE TABLE comments (id [serial], release BIGINT NOT NULL, author TEXT NOT NULL, role TEXT NOT NULL,"
        " text TEXT NOT NULL, at BIGINT NOT NULL)",
        "CREATE INDEX comments_of ON comments (release, id)",
    ),
)


class Database(Protocol):
    """Runs single statements, from any thread."""

    #: Whether a read waits for nothing but a file of this machine, so that an event loop may do it.
    is_local: bool

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of a query."""
        ...

    def write(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a change, durable when this returns; return the rows of RETURNING."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class _Change(PendingCall):
    """A statement that waits to be run; then its rows, or why it was not."""

    __slots__ = ("failure", "rows", "statement", "values")

    def __init__(self, statement: str, values: Sequence[Value]) -> None:
        super().__init__()
        self.statement, self.values = statement, values
        self.rows: list[Row] = []
        self.failure: BaseException | None = None


class SqliteDatabase:
    """A SQLite file with a write-ahead log, synced at every commit. Readers never wait for the writer.

    Changes of several threads share a commit. Each of them is still atomic, and durable when `write` returns.
    """

    is_local = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._group_commit: GroupCommit[_Change] = GroupCommit(self._serve)
        try:
            create_folder(path.parent)
            create_database(path)
            self._writer = self._connect()
        except (OSError, sqlite3.Error) as error:
            self._fail("cannot be opened", error)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._writer.close()
            self._fail("cannot be used", error)
        except LedgerError:
            self._writer.close()
            raise

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of a query."""
        try:
            try:
                reader = self._idle.pop()
            except IndexError:
                reader = self._connect()
            rows = reader.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._fail("cannot be read", error)
        self._idle.append(reader)
        return rows

    def write(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a change, durable when this returns."""
        change = _Change(statement, values)
        self._group_commit.take(change)
        if isinstance(change.failure, sqlite3.Error):
            self._fail("cannot be written", change.failure)
        if change.failure is not None:
            raise change.failure
        return change.rows

    def _serve(self, changes: Sequence[_Change]) -> None:
        """Run changes in one transaction. If one of them fails, run each alone: only those fail that cannot be run."""
        try:
            if len(changes) == 1:  # a single statement is its own transaction
                changes[0].rows = self._patiently(changes[0].statement, changes[0].values)
                return
            self._patiently("BEGIN IMMEDIATE")
            if self._all(changes):
                self._writer.execute("COMMIT")  # if this fails, nobody knows what is durable: nothing is run again
                return
        except BaseException as error:  # noqa: BLE001 - raised again in the threads that wait
            self._roll_back()
            for change in changes:
                change.failure = error
            return
        self._roll_back()
        for change in changes:
            self._serve([change])

    def _all(self, changes: Sequence[_Change]) -> bool:
        """Run changes in the open transaction; return whether every one of them could be run."""
        try:
            for change in changes:
                change.rows = self._writer.execute(change.statement, change.values).fetchall()
        except Exception:  # noqa: BLE001 - raised again where the change is run alone
            return False
        return True

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # SQLite may have done so already
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _patiently(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a statement; wait while another process writes."""
        deadline = 0.0
        while True:
            try:
                return self._writer.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                now = time.monotonic()
                deadline = deadline or now + _PATIENCE
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or now > deadline:
                    raise
            # SQLite's own pauses grow to a tenth of a second, which starves some processes
            time.sleep((300 + secrets.randbelow(1700)) / 1_000_000)

    def close(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, self._writer):
            with suppress(sqlite3.Error):
                connection.close()
        self._idle.clear()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self._path.absolute()))}?mode=rw",
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _prepare(self) -> None:
        self._writer.execute("PRAGMA journal_mode = WAL").fetchall()
        self._writer.execute("BEGIN IMMEDIATE")
        (kind,), (version,) = (
            self._writer.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        (objects,) = self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()
        _accept(str(self._path), version, ours=kind == _APPLICATION or not objects)
        for steps in MIGRATIONS[version:]:
            for statement in steps:
                self._writer.execute(
                    statement.replace("[serial]", "INTEGER PRIMARY KEY AUTOINCREMENT").replace("[bytes]", "BLOB")
                )
        self._writer.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._writer.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        self._writer.execute("COMMIT")
        self._writer.execute("PRAGMA busy_timeout = 0")

    def _fail(self, why: str, error: Exception) -> NoReturn:
        _unusable(str(self._path), f"{why} ({type(error).__name__})", error)


class PostgresDatabase:
    """Tables in the schema `hubbub_server` of the ledger's database, with a small connection pool."""

    is_local = False

    def __init__(self, dsn: str) -> None:
        from hubbub.accounting import postgres_session

        self._dsn = dsn
        self._where = postgres_session.address(dsn)
        self._open: Callable[[], PostgresSession] = lambda: postgres_session.PostgresSession(dsn, patience=_PATIENCE)
        self._error = postgres_session.Error
        self._idle: list[PostgresSession] = []
        self._turns = BoundedSemaphore(_CONNECTIONS)
        try:
            session = self._connect()
        except self._error as error:
            self._fail("is unreachable", error)
        try:
            self._prepare(session)
        except self._error as error:
            session.close()
            self._fail("cannot be used", error)
        except LedgerError:
            session.close()
            raise
        self._idle.append(session)

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of a query."""
        return self._run(statement, values)

    def write(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a change, durable when this returns."""
        return self._run(statement, values)

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            with suppress(self._error):
                self._idle.pop().close()

    def _run(self, statement: str, values: Sequence[Value]) -> list[Row]:
        with self._turns:
            try:
                session = self._session()
            except self._error as error:
                self._fail("is unreachable", error)
            try:
                cursor = session.connection.execute(statement.replace("?", "%s").encode(), values)
                rows = cursor.fetchall() if cursor.description else []
            except self._error as error:
                session.close()
                self._fail("failed", error)
            self._idle.append(session)
            return rows

    def _session(self) -> "PostgresSession":
        """Return a working session; sessions broken by a server restart are dropped before use."""
        while True:
            try:
                session = self._idle.pop()
            except IndexError:
                return self._connect()
            with suppress(self._error):
                session.do(b"SELECT 1")
                return session
            session.close()

    def _connect(self) -> "PostgresSession":
        deadline = time.monotonic() + 10
        while True:
            try:
                session = self._open()
                break
            except self._error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        session.do(b"SET search_path = hubbub_server, pg_catalog")
        return session

    def _prepare(self, session: "PostgresSession") -> None:
        from hubbub.accounting.postgres_schema import LOCK

        connection = session.connection
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            connection.execute("CREATE SCHEMA IF NOT EXISTS hubbub_server")
            connection.execute("CREATE TABLE IF NOT EXISTS hubbub_server.format (version INTEGER PRIMARY KEY)")
            row = connection.execute("SELECT COALESCE(max(version), 0) FROM hubbub_server.format").fetchone()
            version = row[0] if row else 0
            _accept(self._where, version, ours=True)
            for number, steps in enumerate(MIGRATIONS[version:], version + 1):
                for statement in steps:
                    text = statement.replace("[serial]", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
                    connection.execute(text.replace("[bytes]", "BYTEA").encode())
                connection.execute("INSERT INTO hubbub_server.format VALUES (%s)", (number,))

    def _fail(self, why: str, error: Exception) -> NoReturn:
        # the server's message may quote a value; the class of the error is enough
        _unusable(self._where, f"{why} ({type(error).__name__})", error)


def _accept(where: str, version: int, *, ours: bool) -> None:
    if not ours:
        _unusable(where, "belongs to another application", None)
    if version > len(MIGRATIONS):
        _unusable(
            where,
            f"has format {version}, but this version of hubbub supports up to {len(MIGRATIONS)}: upgrade hubbub",
            None,
        )


def _unusable(where: str, why: str, error: Exception | None) -> NoReturn:
    raise LedgerError(
        "HB323", f"The server database {where} {why}.", "Check that it exists and that this user can write to it."
    ) from error
