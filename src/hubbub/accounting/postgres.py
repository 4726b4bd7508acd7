"""The ledger in PostgreSQL, for several server processes: every writer locks the row of the newest entry.

What a charge is decided on is read from rows that are locked (`head`, `totals`), so it holds whatever isolation level
the server or the role has by default: a second writer waits at the lock, then reads what the first one wrote. The
tables live in a schema of their own, `hubbub`; one database holds one ledger. Needs the extra `hubbub[postgres]`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from hubbub.accounting import postgres_schema
from hubbub.accounting.chain import NO_HASH, Entry, genesis
from hubbub.accounting.store import Filter, Found, Head, OnStep, Total
from hubbub.errors import LedgerError

try:
    import psycopg
    from psycopg import conninfo, errors
except ModuleNotFoundError as _missing:
    raise LedgerError(
        "HB321", "a ledger in PostgreSQL needs the library psycopg, which is not installed here.",
        "pip install 'hubbub[postgres]'",
    ) from _missing  # fmt: skip

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")

_FIELDS = ", ".join(Entry._fields)
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_LOCK_HEAD = (
    "SELECT sequence, hash, time, config, current_setting('synchronous_commit') FROM hubbub.head WHERE one FOR UPDATE"
)
_RECALL = (
    f"SELECT {', '.join(f'entries.{name}' for name in Entry._fields)}, releases.body FROM hubbub.entries "  # noqa: S608
    "LEFT JOIN hubbub.releases ON releases.charge = entries.sequence "
    "WHERE kind = 'charge' AND key = %s AND analyst = %s"
)
_TOTALS = "SELECT cap, spent FROM hubbub.totals WHERE cap = ANY(%s) FOR UPDATE"
_ADD_ENTRY = f"INSERT INTO hubbub.entries ({_FIELDS}) VALUES ({', '.join(['%s'] * len(Entry._fields))})"  # noqa: S608
_ADD_RELEASE = "INSERT INTO hubbub.releases (charge, body) VALUES (%s, %s)"
_SET_TOTALS = (
    "INSERT INTO hubbub.totals (cap, spent, sequence) SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[]) "
    "ON CONFLICT (cap) DO UPDATE SET spent = EXCLUDED.spent, sequence = EXCLUDED.sequence"
)
_SET_HEAD = "UPDATE hubbub.head SET sequence = %s, hash = %s, time = %s, config = %s WHERE one"

_STOP = "Restart; the start verifies the ledger. Nothing that was reported as charged is lost."
_DURABLE = ("on", "remote_apply")


class PostgresStore:
    """A ledger in a PostgreSQL database; made where there is none, migrated where it is older."""

    def __init__(self, dsn: str, *, read_only: bool = False, patience: float = 30.0) -> None:
        """Connect, by a connection string or postgresql:// address.

        `read_only` makes and migrates nothing. `patience` is how many seconds to wait for a lock, or for a server that
        restarts. Connect to the server itself: a pooler that hands out a session by transaction cannot keep settings.
        """
        self._dsn = dsn
        self._patience = patience
        self._idle: list[Connection] = []
        self._held: Head | None = None
        try:
            parts = conninfo.conninfo_to_dict(dsn)
        except psycopg.ProgrammingError as error:
            raise LedgerError(
                "HB302", "the address of the ledger's database is not one of PostgreSQL. Nothing was charged.",
                "Write postgresql://user@host/database, without spaces.",
            ) from error  # fmt: skip
        self._where = f"postgresql://{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"
        try:
            self._writer = self._connect()
            self._identity = self._prepare(read_only=read_only)
        except psycopg.Error as error:
            self.close()
            self._translate(error)
        except LedgerError:
            self.close()
            raise

    @property
    def ledger(self) -> str:
        """The identity that was drawn when the ledger was made."""
        return self._identity

    @property
    def where(self) -> str:
        """The address, without user and password."""
        return self._where

    def begin(self) -> Head:
        """Lock the row of the newest entry; after a restart of the server, on a new connection."""
        try:
            try:
                self._held = self._lock_head()
            except psycopg.OperationalError:
                if not self._writer.broken:
                    raise
                self._reconnect()  # nothing was under way, so nothing is in doubt
                self._held = self._lock_head()
        except psycopg.Error as error:
            self.rollback()
            self._translate(error)
        return self._held

    def recall(self, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Found]:
        """Find the charges that belong to these (analyst, key) pairs."""

        def look() -> dict[tuple[str, str], Found]:
            with self._writer.pipeline() if len(keys) > 1 else nullcontext():
                cursors = [self._writer.execute(_RECALL, (key, analyst)) for analyst, key in keys]
                rows = [cursor.fetchone() for cursor in cursors]
            pairs = zip(keys, rows, strict=True)
            return {pair: Found(Entry(*row[:-1]), row[-1]) for pair, row in pairs if row is not None}

        return self._under_lock(look)

    def totals(self, labels: Iterable[str]) -> Mapping[str, str]:
        """Lock and read the totals of these caps, as far as they exist."""
        wanted = list(labels)
        return self._under_lock(lambda: dict(self._writer.execute(_TOTALS, (wanted,)).fetchall()))

    def commit(
        self, entries: Sequence[Entry], totals: Mapping[str, Total], releases: Mapping[int, bytes], on_step: OnStep
    ) -> None:
        """Write all of it in the transaction that `begin` opened, and return when the server's disk has it."""

        def write() -> None:
            with self._writer.pipeline(), self._writer.cursor() as cursor:
                for entry in entries:
                    cursor.execute(_ADD_ENTRY, entry)
                on_step("entries")
                if releases:
                    for release in releases.items():
                        cursor.execute(_ADD_RELEASE, release)
                    on_step("releases")
                if totals:
                    spent = [total.spent for total in totals.values()]
                    newest = [total.sequence for total in totals.values()]
                    cursor.execute(_SET_TOTALS, (list(totals), spent, newest))
                last = entries[-1]
                cursor.execute(_SET_HEAD, (last.sequence, last.hash, last.time, last.config))
                on_step("totals")
                on_step("committing")
                cursor.execute(b"COMMIT")

        try:
            write()
        except psycopg.Error as error:
            if not self._regain(error, entries[-1]):
                self._under_lock(write)

    def rollback(self) -> None:
        """End the transaction that `begin` opened, if it is still open."""
        with suppress(psycopg.Error):  # a broken connection has rolled back by itself
            self._writer.execute(b"ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator["PostgresSnapshot"]:
        """Read in one transaction of repeatable reads, on a connection of its own."""
        reader = None
        try:
            reader = self._reader()
            yield PostgresSnapshot(reader, self._identity)
            reader.execute(b"COMMIT")
            self._idle.append(reader)
        except psycopg.Error as error:
            if reader is not None:
                reader.close()
            self._translate(error)
        except BaseException:
            if reader is not None:
                reader.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, getattr(self, "_writer", None)):
            if connection is not None:
                with suppress(psycopg.Error):
                    connection.close()
        self._idle.clear()

    def set_aside(self) -> str:
        """Rename the schema, so that it can be looked at, close, and say what it is called now."""
        name = f"hubbub_set_aside_{datetime.now(UTC):%Y%m%d_%H%M%S}"
        try:
            self._writer.execute(f"ALTER SCHEMA hubbub RENAME TO {name}".encode())
        except psycopg.Error as error:
            self._translate(error)
        finally:
            self.close()
        return f"{self._where}, schema {name}"

    def _connect(self) -> "Connection":
        connection = psycopg.connect(self._dsn, autocommit=True, application_name="hubbub ledger")
        try:
            # every query of the writer finds its rows by an index; a plan made while the ledger was small must too
            connection.execute(
                b"SET synchronous_commit = on; SET enable_seqscan = off; SET jit = off; SET search_path = pg_catalog; "
                b"SET statement_timeout = 0; SET lock_timeout = %d" % round(self._patience * 1000)
            )
            names = ("fsync", "synchronous_commit", "server_encoding")
            values = [connection.execute("SELECT current_setting(%s)", (name,)).fetchone() for name in names]
        except psycopg.Error:
            connection.close()
            raise
        if values != [("on",), ("on",), ("UTF8",)]:
            connection.close()
            self._fail(
                "HB322", "the server does not make a commit durable, or does not hold all text",
                "It needs fsync = on, synchronous_commit = on and a database with encoding UTF8.",
            )  # fmt: skip
        return connection

    def _lock_head(self) -> Head:
        with self._writer.pipeline():
            self._writer.execute(_BEGIN)
            row = self._writer.execute(_LOCK_HEAD, prepare=True).fetchone()
        if row is None or row[4] not in _DURABLE:
            self.rollback()
            if row is None:
                self._fail("HB305", "it has no newest entry", "Restore the database as it was.")
            self._fail("HB322", "synchronous_commit was turned off under way", "Connect without a pooler.")
        return Head(*row[:4])

    def _under_lock(self, work: Callable[[], T]) -> T:
        """Read under the lock; where the server was restarted under way, again."""
        try:
            return work()
        except psycopg.Error as error:
            self._regain(error)
        try:
            return work()
        except psycopg.Error as error:
            self._translate(error)

    def _regain(self, error: psycopg.Error, last: Entry | None = None) -> bool:
        """After the loss of a connection, take the lock again, and say whether the commit of `last` was done.

        If the old session still lives, it holds the lock on the row of the newest entry until its commit is done or
        undone; so with that lock in hand, what we see is final: our entry (it was done), the place we started from (it
        was not, and nobody came between), or another, after which nothing can be saved.
        """
        if not self._writer.broken:
            self._translate(error)
        try:
            self._reconnect()
            head = self._lock_head()
            if last is not None and self._holds(last):
                self.rollback()
                return True
        except psycopg.Error as again:
            self._translate(again)
        if head != self._held:
            self.rollback()
            self._translate(error)
        return False

    def _holds(self, entry: Entry) -> bool:
        query = "SELECT hash FROM hubbub.entries WHERE sequence = %s"
        row = self._writer.execute(query, (entry.sequence,)).fetchone()
        return row is not None and row[0] == entry.hash

    def _reconnect(self) -> None:
        """Wait for a server that restarts."""
        deadline = time.monotonic() + self._patience
        self._writer.close()
        while True:
            try:
                self._writer = self._connect()
                break
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        (identity,) = self._writer.execute(b"SELECT ledger FROM hubbub.identity").fetchone() or ("",)
        if identity != self._identity:
            self._fail("HB307", "another ledger stands in its place", "Stop, and see what was done to the server.")

    def _prepare(self, *, read_only: bool) -> str:
        known = len(postgres_schema.MIGRATIONS)
        if not read_only:
            self._migrate()
        version = postgres_schema.version(self._writer)
        if version > known:
            self._fail("HB304", f"its format is {version}, and this hubbub knows {known}", "Upgrade hubbub.")
        wrong = postgres_schema.problems(self._writer)
        if version < known or wrong:
            self._fail(
                "HB305", f"it is not a whole ledger of format {known}" + (f": {wrong[0]}" if wrong else ""),
                "Name the right database, or restore it as it was; an older one is migrated by a start that writes.",
            )  # fmt: skip
        identity = self._writer.execute(b"SELECT ledger FROM hubbub.identity").fetchall()
        if len(identity) != 1:
            self._fail("HB305", "it has no identity", "Name the right database, or restore this one as it was.")
        return str(identity[0][0])

    def _migrate(self) -> None:
        for number in range(1, len(postgres_schema.MIGRATIONS) + 1):
            with self._writer.transaction():
                self._writer.execute("SELECT pg_advisory_xact_lock(%s)", (postgres_schema.LOCK,))
                if postgres_schema.version(self._writer) < number:
                    postgres_schema.upgrade(self._writer, number)

    def _reader(self) -> "Connection":
        while self._idle:
            reader = self._idle.pop()
            with suppress(psycopg.OperationalError):  # the server was restarted since
                reader.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return reader
            reader.close()
        reader = self._connect()
        reader.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return reader

    def _fail(self, code: str, why: str, remedy: str, cause: Exception | None = None) -> NoReturn:
        raise LedgerError(
            code, f"the ledger {self._where} cannot be used: {why}. Nothing was charged.", remedy
        ) from cause

    def _translate(self, error: psycopg.Error) -> NoReturn:
        for kinds, code, why, remedy in _MEANING:
            if isinstance(error, kinds):
                self._fail(code, why, remedy, error)
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            self._fail("HB302", "the server does not answer", "Start it, and check host, port and database.", error)
        # the server's own words may quote a query; its code says enough
        raise LedgerError("HB301", f"the ledger {self._where} failed (SQLSTATE {error.sqlstate}).", _STOP) from error


_Meaning = tuple[tuple[type[psycopg.Error], ...], str, str, str]

_MEANING: tuple[_Meaning, ...] = (
    (
        (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled),
        "HB303", "another process kept it locked", "Try again, or end it.",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "HB302", "it is read-only (a standby?)", "Connect to the primary server, with the right to write.",
    ),
    (
        (errors.InsufficientPrivilege,),
        "HB302", "this user may not do that there",
        "Make the user the owner of the database, or of its schema hubbub.",
    ),
    (
        (errors.InvalidAuthorizationSpecification, errors.InvalidPassword),
        "HB302", "the server refuses this user or password", "Check both, and pg_hba.conf on the server.",
    ),
    ((errors.InvalidCatalogName,), "HB302", "there is no such database", "Make it: createdb."),
    (
        (errors.TooManyConnections, errors.CannotConnectNow),
        "HB302", "the server takes no more connections now", "Try again, or raise max_connections.",
    ),
)  # fmt: skip


class PostgresSnapshot:
    """One read transaction; long results come through cursors on the server."""

    def __init__(self, reader: "Connection", ledger: str) -> None:
        self._reader = reader
        self._identity = ledger
        self._cursors = 0

    @property
    def ledger(self) -> str:
        """The identity that was drawn when the ledger was made."""
        return self._identity

    def head(self) -> Head:
        """Give the newest entry's place."""
        row = self._reader.execute(b"SELECT sequence, hash, time, config FROM hubbub.head").fetchone()
        if row is None:
            raise LedgerError("HB305", "the ledger has no newest entry.", "Restore the database as it was.")
        return Head(*row)

    def entries(self, which: Filter, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
        """Read entries in the order of the chain, or its reverse."""
        terms, values = which.where("%s")
        order = "DESC" if newest_first else "ASC"
        query = f"SELECT {_FIELDS} FROM hubbub.entries WHERE sequence > %s{terms} ORDER BY sequence {order}"  # noqa: S608
        return map(Entry._make, self._stream(query, [after, *values]))

    def released(self, low: int, high: int) -> set[int]:
        """Say which charges from `low` to `high` have a release."""
        rows = self._reader.execute("SELECT charge FROM hubbub.releases WHERE charge BETWEEN %s AND %s", (low, high))
        return {charge for (charge,) in rows}

    def releases(self) -> Iterator[tuple[int, bytes]]:
        """Read every release, by charge."""
        return ((charge, body) for charge, body in self._stream("SELECT * FROM hubbub.releases ORDER BY charge", []))

    def totals(self) -> Mapping[str, Total]:
        """Read every total."""
        rows = self._reader.execute(b"SELECT cap, spent, sequence FROM hubbub.totals")
        return {cap: Total(spent, sequence) for cap, spent, sequence in rows}

    def problems(self) -> list[str]:
        """Check the schema, and that the row that writers lock names the newest entry."""
        found = postgres_schema.problems(self._reader)
        if not found:
            newest = self._reader.execute(
                b"SELECT sequence, hash, time, config FROM hubbub.entries ORDER BY sequence DESC LIMIT 1"
            ).fetchone()
            heads = self._reader.execute(b"SELECT sequence, hash, time, config FROM hubbub.head").fetchall()
            empty = (0, genesis(self._identity), 0, NO_HASH)
            if heads != [newest or empty]:
                found.append("the row of the newest entry names another one")
        return found

    def _stream(self, query: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        self._cursors += 1
        with self._reader.cursor(f"hubbub_{self._cursors}") as cursor:
            cursor.itersize = 2000
            cursor.execute(query.encode(), values)
            yield from cursor
