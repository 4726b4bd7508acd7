"""The ledger in PostgreSQL, for several server processes: every writer locks the row of the newest entry.

What a charge is decided on is read from rows that are locked (`head`, `totals`), so it holds whatever isolation level
the server or the role has by default: a second writer waits at the lock, then reads what the first one wrote. The
tables live in a schema of their own, `hubbub`; one database holds one ledger. Needs the extra `hubbub[postgres]`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NoReturn, TypeVar, cast

from hubbub.accounting import postgres_schema
from hubbub.accounting.chain import NO_HASH, Entry, Kind, genesis
from hubbub.accounting.postgres_session import (
    Error,
    OperationalError,
    Row,
    Session,
    Value,
    address,
    integer,
    meaning,
    text,
)
from hubbub.accounting.store import Begun, Filter, Found, Head, OnStep, Total, refused, stored_until
from hubbub.errors import LedgerError

T = TypeVar("T")

_FIELDS = ", ".join(Entry._fields)
_LOCK_HEAD = (
    "SELECT sequence, hash, time, config, current_setting('synchronous_commit') FROM hubbub.head WHERE one FOR UPDATE"
)
_RECALL = (
    f"SELECT {', '.join(f'entries.{name}' for name in Entry._fields)}, releases.body FROM hubbub.entries "  # noqa: S608
    "LEFT JOIN hubbub.releases ON releases.charge = entries.sequence "
    "WHERE kind = 'charge' AND key = $1 AND analyst = $2"
)
_TOTALS = "SELECT spent, sequence FROM hubbub.totals WHERE cap = $1 FOR UPDATE"
_NEWS = f"SELECT {_FIELDS} FROM hubbub.entries WHERE sequence > $1 ORDER BY sequence"  # noqa: S608
_POLICY = "SELECT facts FROM hubbub.entries WHERE kind = 'policy' AND config = $1 LIMIT 1"
_HASH = "SELECT hash FROM hubbub.entries WHERE sequence = $1"
_ADD_RELEASE = "INSERT INTO hubbub.releases (charge, body) VALUES ($1, $2)"

_BEGIN, _COMMIT = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "COMMIT"

_STOP = "Restart; the start verifies the ledger. Nothing that was reported as charged is lost."
_LOOK = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_DURABLE = (b"on", b"remote_apply")
#: Classes of SQLSTATE about one statement's values, or about memory and room for it: the server aborts the transaction.
_REFUSALS = ("22", "53", "54")


def _values(columns: int, rows: int, first: int = 1) -> str:
    """Write the placeholders of so many rows."""
    each = ("(" + ", ".join(f"${first + row * columns + c}" for c in range(columns)) + ")" for row in range(rows))
    return ", ".join(each)


@lru_cache(maxsize=128)
def _add_entries(rows: int) -> str:
    return f"INSERT INTO hubbub.entries ({_FIELDS}) VALUES {_values(len(Entry._fields), rows)}"  # noqa: S608


@lru_cache(maxsize=1024)
def _finish(totals: int) -> str:
    """Write the statement that ends a transaction: the last entry, all totals, and the row of the newest entry."""
    width = len(Entry._fields)
    new = f"entry AS ({_add_entries(1)})"
    if totals:
        new += (
            f", total AS (INSERT INTO hubbub.totals VALUES {_values(3, totals, width + 5)} "  # noqa: S608
            "ON CONFLICT (cap) DO UPDATE SET spent = EXCLUDED.spent, sequence = EXCLUDED.sequence)"
        )
    place = ", ".join(f"{name} = ${width + n}" for n, name in enumerate(("sequence", "hash", "time", "config"), 1))
    return f"WITH {new} UPDATE hubbub.head SET {place} WHERE one"  # noqa: S608


class PostgresStore:
    """A ledger in a PostgreSQL database; made where there is none, migrated where it is older."""

    def __init__(self, dsn: str, *, exclusive: bool = False, read_only: bool = False, patience: float = 30.0) -> None:
        """Connect, by a connection string or postgresql:// address.

        `exclusive` refuses every other process that would write, for as long as this one lives; without it, processes
        take turns. `read_only` takes no lock and makes nothing. `patience` is how many seconds to wait for a lock, or
        for a server that restarts. Connect to the server itself: a pooler that hands out a session for a transaction
        cannot keep settings.
        """
        self._dsn = dsn
        self._patience = patience
        self._idle: list[Session] = []
        self._held: Head | None = None
        self._share = None if read_only else "" if exclusive else "_shared"
        self._where = address(dsn)
        try:
            self._writer = self._connect_to_write()
            self._identity = self._prepare(read_only=read_only)
        except Error as error:
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

    def begin(self, keys: Sequence[tuple[str, str]], after: int) -> Begun:
        """Lock the row of the newest entry, then look for the keys; after a restart of the server, on a new connection.

        Lock and looks travel together. The server runs them in order, each look on what is committed when it starts: it
        starts when the lock is ours, so it sees all that was written before, and nobody writes after.
        """
        try:
            try:
                begun = self._look(keys, after)
            except OperationalError:
                if not self._writer.broken:
                    raise
                self._reconnect()  # nothing was under way, so nothing is in doubt
                begun = self._look(keys, after)
        except Error as error:
            self.rollback()
            if self._writer.broken:  # as after waiting in vain for a lock, the next call may try again
                self._fail("HB303", "the server does not answer", "Start it; what comes then is served.", error)
            self._translate(error)
        self._held = begun.head
        return begun

    def _look(self, keys: Sequence[tuple[str, str]], after: int) -> Begun:
        head, found = self._lock_head(keys)
        if head.sequence == after:
            return Begun(head, found, ())
        news = self._writer.ask(_NEWS, (max(after, stored_until(head.sequence)),))
        return Begun(head, found, [_entry(row) for row in news])

    def totals(self, labels: Iterable[str]) -> Mapping[str, Total]:
        """Lock and read the totals of these caps, as far as they are stored."""

        def look() -> dict[str, Total]:
            for label in wanted:
                self._writer.send(_TOTALS, (label,))
            rows = self._writer.land() if wanted else []
            return {
                label: Total(text(found[0][0]), integer(found[0][1]))
                for label, found in zip(wanted, rows, strict=True)
                if found
            }

        wanted = sorted(labels)
        return self._under_lock(look)

    def policy(self, config: bytes) -> str:
        """Read the policy of this hash."""
        return self._under_lock(lambda: text(self._writer.ask(_POLICY, (config,))[0][0]))

    def commit(
        self, entries: Sequence[Entry], totals: Mapping[str, Total], releases: Mapping[int, bytes], on_step: OnStep
    ) -> None:
        """Write all of it in the transaction that `begin` opened, and return when the server's disk has it."""
        sent: list[str] = []

        def write() -> None:
            writer = self._writer
            start = 0
            while start < len(entries) - 1:
                # in groups whose sizes are powers of two, so that there are few statements to prepare
                size = min(64, 1 << (len(entries) - 1 - start).bit_length() - 1)
                writer.send(_add_entries(size), [value for entry in entries[start : start + size] for value in entry])
                start += size
            on_step("entries")
            if releases:
                for release in releases.items():
                    writer.send(_ADD_RELEASE, release)
                on_step("releases")
            last = entries[-1]
            values: list[Value] = [*last, last.sequence, last.hash, last.time, last.config]
            for cap, total in totals.items():
                values += (cap, *total)
            writer.send(_finish(len(totals)), values)
            writer.flush()  # the server writes while we go on
            on_step("totals")
            on_step("committing")
            # the server skips this one if any before it failed, and its answer comes when the disk has all of it
            sent.append(_COMMIT)
            writer.send(_COMMIT)
            writer.land()

        try:
            write()
        except (Error, ValueError, OverflowError, MemoryError) as error:
            if not self._regain(self._refuse(error, committing=bool(sent)), entries[-1]):
                self._under_lock(write)

    def _refuse(self, error: Exception, *, committing: bool) -> Error:
        """After an error of `commit`, raise the refusal of a row if nothing was written, for certain; else give it."""
        if not isinstance(error, Error):
            if committing:
                raise error
            self._writer.close()  # and with it the transaction, which was never told to commit
            raise refused(type(error).__name__) from error
        if not self._writer.broken and (error.sqlstate or "").startswith(_REFUSALS):
            # a server that answers with an error has aborted: it skipped the COMMIT, or failed before its record
            self.rollback()
            raise refused(f"SQLSTATE {error.sqlstate}") from error
        return error

    def rollback(self) -> None:
        """End the transaction that `begin` opened, if it is still open."""
        with suppress(Error):  # a broken connection has rolled back by itself
            self._writer.undo()

    @contextmanager
    def snapshot(self) -> Iterator["PostgresSnapshot"]:
        """Read in one transaction of repeatable reads, on a connection of its own."""
        reader = None
        try:
            reader = self._reader()
            yield PostgresSnapshot(reader, self._identity)
            reader.do(b"COMMIT")
            self._idle.append(reader)
        except Error as error:
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
                with suppress(Error):
                    connection.close()
        self._idle.clear()

    def _connect(self) -> Session:
        return Session(self._dsn, patience=self._patience)

    def _connect_to_write(self) -> Session:
        writer = self._connect()
        try:
            if self._share is not None:
                writer.ask(f"SELECT pg_advisory_lock{self._share}($1)", (postgres_schema.USE,))
        except Error:
            writer.close()
            raise
        return writer

    def _lock_head(self, keys: Sequence[tuple[str, str]] = ()) -> tuple[Head, dict[tuple[str, str], Found]]:
        self._writer.send(_BEGIN)
        self._writer.send(_LOCK_HEAD)
        for analyst, key in keys:
            self._writer.send(_RECALL, (key, analyst))
        _, heads, *looks = self._writer.land()
        if len(heads) != 1:
            self.rollback()
            self._fail("HB305", "it has no newest entry", "Restore the database as it was.")
        sequence, digest, time, config, durable = heads[0]
        if durable not in _DURABLE:
            self.rollback()
            self._fail("HB322", "synchronous_commit was turned off under way", "Connect without a pooler.")
        found = {pair: Found(_entry(rows[0]), rows[0][-1]) for pair, rows in zip(keys, looks, strict=True) if rows}
        return Head(integer(sequence), digest or b"", integer(time), config or b""), found

    def _under_lock(self, work: Callable[[], T]) -> T:
        """Read under the lock; where the server was restarted under way, again."""
        try:
            return work()
        except Error as error:
            self._regain(error)
        try:
            return work()
        except Error as error:
            self._translate(error)

    def _regain(self, error: Error, last: Entry | None = None) -> bool:
        """After the loss of a connection, take the lock again, and say whether the commit of `last` was done.

        If the old session still lives, it holds the lock on the row of the newest entry until its commit is done or
        undone; so with that lock in hand, what we see is final: our entry (it was done), the place we started from (it
        was not, and nobody came between), or another, after which nothing can be saved.
        """
        if not self._writer.broken:
            self._translate(error)
        try:
            self._reconnect()
            head, _ = self._lock_head()
            if last is not None and self._holds(last):
                self.rollback()
                return True
        except Error as again:
            self._translate(again)
        if head != self._held:
            self.rollback()
            self._translate(error)
        return False

    def _holds(self, entry: Entry) -> bool:
        return self._writer.ask(_HASH, (entry.sequence,)) == [[entry.hash]]

    def _reconnect(self) -> None:
        """Wait for a server that restarts."""
        deadline = time.monotonic() + self._patience
        self._writer.close()
        while True:
            try:
                self._writer = self._connect_to_write()
                break
            except OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        if self._writer.ask("SELECT ledger FROM hubbub.identity") != [[self._identity.encode()]]:
            self._fail("HB307", "another ledger stands in its place", "Stop, and see what was done to the server.")

    def _prepare(self, *, read_only: bool) -> str:
        known = len(postgres_schema.MIGRATIONS)
        connection = self._writer.connection
        if not read_only:
            for number in range(1, known + 1):
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (postgres_schema.LOCK,))
                    if postgres_schema.version(connection) < number:
                        postgres_schema.upgrade(connection, number)
        version = postgres_schema.version(connection)
        if version > known:
            self._fail("HB304", f"its format is {version}, and this hubbub knows {known}", "Upgrade hubbub.")
        wrong = postgres_schema.problems(connection)
        if version < known or wrong:
            self._fail(
                "HB305",
                f"it is not a whole ledger of format {known}" + (f": {wrong[0]}" if wrong else ""),
                "Name the right database, or restore it as it was; an older one is migrated by a start that writes.",
            )
        identity = self._writer.ask("SELECT ledger FROM hubbub.identity")
        if len(identity) != 1:
            self._fail("HB305", "it has no identity", "Name the right database, or restore this one as it was.")
        return text(identity[0][0])

    def _reader(self) -> Session:
        while True:
            try:
                reader = self._idle.pop()
            except IndexError:
                reader = self._connect()
                reader.do(_LOOK)
                return reader
            with suppress(OperationalError):  # the server was restarted since
                reader.do(_LOOK)
                return reader
            reader.close()

    def _fail(self, code: str, why: str, remedy: str, cause: Exception | None = None) -> NoReturn:
        raise LedgerError(
            code, f"the ledger {self._where} cannot be used: {why}. Nothing was charged.", remedy
        ) from cause

    def _translate(self, error: Error) -> NoReturn:
        known = meaning(error)
        if known is not None:
            self._fail(*known, error)
        # the server's own words may quote a query; its code says enough
        raise LedgerError("HB301", f"the ledger {self._where} failed (SQLSTATE {error.sqlstate}).", _STOP) from error


def _entry(row: Row) -> Entry:
    """Read an entry as the server sends it."""
    number, kind, stamp, analyst, dataset, version, facts, query, key, charge, request, config, previous, digest = (
        value or b"" for value in row[: len(Entry._fields)]
    )
    return Entry(
        integer(number),
        cast(Kind, text(kind)),
        integer(stamp),
        text(analyst),
        text(dataset),
        text(version),
        text(facts),
        text(query),
        text(key),
        integer(charge),
        request,
        config,
        previous,
        digest,
    )


def set_aside(dsn: str) -> str:
    """Rename a ledger's schema, so that it can be looked at, and say what it is called now."""
    name = f"hubbub_set_aside_{datetime.now(UTC):%Y%m%d_%H%M%S}"
    session = Session(dsn, patience=30)
    try:
        session.do(f"ALTER SCHEMA hubbub RENAME TO {name}".encode())
    finally:
        session.close()
    return f"{address(dsn)}, schema {name}"


class PostgresSnapshot:
    """One read transaction; long results come through cursors on the server."""

    def __init__(self, reader: Session, ledger: str) -> None:
        self._reader = reader.connection
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

    def body(self, charge: int) -> bytes | None:
        """Read what one charge paid for."""
        row = self._reader.execute("SELECT body FROM hubbub.releases WHERE charge = %s", (charge,)).fetchone()
        return None if row is None else bytes(row[0])

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
