"""The ledger in PostgreSQL, for several server processes: every writer locks the row of the newest entry.

Charges are decided on locked rows (`head`, `totals`), whatever the default isolation level of the server or role: a
second writer waits for the lock and then reads what the first one wrote. The tables are in the schema `hubbub`; one
database holds one ledger. Requires the extra `hubbub[postgres]`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import NoReturn, TypeVar

from hubbub.accounting import postgres_schema
from hubbub.accounting import postgres_statements as sql
from hubbub.accounting.chain import Entry
from hubbub.accounting.postgres_session import (
    Error,
    OperationalError,
    PostgresSession,
    Value,
    address,
    explain,
    integer,
    text,
)
from hubbub.accounting.postgres_snapshot import PostgresSnapshot
from hubbub.accounting.store import (
    ChargeRecord,
    Head,
    LockedState,
    OnStep,
    StoredTotal,
    row_refused,
    stored_until,
)
from hubbub.errors import LedgerError

T = TypeVar("T")

_STOP = "Restart hubbub; startup verification checks the ledger. No reported charge is lost."
_LOOK = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_DURABLE = (b"on", b"remote_apply")
#: SQLSTATE classes for invalid values and for lack of memory or space: the server aborts the transaction.
_REFUSALS = ("22", "53", "54")


class PostgresStore:
    """A ledger in a PostgreSQL database, created or migrated if necessary."""

    def __init__(self, dsn: str, *, exclusive: bool = False, read_only: bool = False, patience: float = 30.0) -> None:
        """Connect, by a connection string or postgresql:// address.

        `exclusive` excludes every other writing process while this one lives; otherwise processes take turns.
        `read_only` takes no lock and creates nothing. `patience` is how many seconds to wait for a lock, or for a
        server that restarts. Connect to the server directly: a pooler that assigns a session per transaction loses
        settings.
        """
        self._dsn = dsn
        self._patience = patience
        self._idle: list[PostgresSession] = []
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
        """The random identity of the ledger."""
        return self._identity

    @property
    def where(self) -> str:
        """The address, without user and password."""
        return self._where

    def begin(self, keys: Sequence[tuple[str, str]], after: int) -> LockedState:
        """Lock the row of the newest entry, then look up the keys; reconnect if the server was restarted.

        All statements are sent together. The server runs them in order, and each sees what is committed when it starts,
        which is after the lock was acquired: all earlier writes, and no later ones.
        """
        try:
            try:
                begun = self._look(keys, after)
            except OperationalError:
                if not self._writer.broken:
                    raise
                self._reconnect()  # no transaction was open, so its outcome is not in doubt
                begun = self._look(keys, after)
        except Error as error:
            self.rollback()
            if self._writer.broken:  # as after a lock timeout, the next call may try again
                self._fail("HB303", "the server does not respond", "Start the server and try again.", error)
            self._translate(error)
        self._held = begun.head
        return begun

    def _look(self, keys: Sequence[tuple[str, str]], after: int) -> LockedState:
        head, charges = self._lock_head(keys)
        if head.sequence == after:
            return LockedState(head, charges, ())
        news = self._writer.ask(sql.NEWS, (max(after, stored_until(head.sequence)),))
        return LockedState(head, charges, [sql.read_entry(row) for row in news])

    def totals(self, labels: Iterable[str]) -> Mapping[str, StoredTotal]:
        """Lock and read the stored totals of these caps."""

        def look() -> dict[str, StoredTotal]:
            for label in wanted:
                self._writer.send(sql.TOTALS, (label,))
            rows = self._writer.land() if wanted else []
            return {
                label: StoredTotal(text(matches[0][0]), integer(matches[0][1]))
                for label, matches in zip(wanted, rows, strict=True)
                if matches
            }

        wanted = sorted(labels)
        return self._under_lock(look)

    def policy(self, config: bytes) -> str:
        """Read the policy with this hash."""
        return self._under_lock(lambda: text(self._writer.ask(sql.POLICY, (config,))[0][0]))

    def commit(
        self,
        entries: Sequence[Entry],
        totals: Mapping[str, StoredTotal],
        releases: Mapping[int, bytes],
        on_step: OnStep,
    ) -> None:
        """Write everything in the transaction that `begin` opened, and return when it is durable."""
        sent: list[str] = []

        def write() -> None:
            writer = self._writer
            start = 0
            while start < len(entries) - 1:
                # in batches whose sizes are powers of two, so that few statements are prepared
                size = min(64, 1 << (len(entries) - 1 - start).bit_length() - 1)
                writer.send(
                    sql.add_entries(size), [value for entry in entries[start : start + size] for value in entry]
                )
                start += size
            on_step("entries")
            if releases:
                for release in releases.items():
                    writer.send(sql.ADD_RELEASE, release)
                on_step("releases")
            last = entries[-1]
            values: list[Value] = [*last, last.sequence, last.hash, last.time, last.config]
            for cap, total in totals.items():
                values += (cap, *total)
            writer.send(sql.finish(len(totals)), values)
            writer.flush()  # the server can start writing now
            on_step("totals")
            on_step("committing")
            # the server skips it if a statement before it failed, and responds when everything is durable
            sent.append(sql.COMMIT)
            writer.send(sql.COMMIT)
            writer.land()

        try:
            write()
        except (Error, ValueError, OverflowError, MemoryError) as error:
            if not self._regain(self._refuse(error, committing=bool(sent)), entries[-1]):
                self._under_lock(write)

    def _refuse(self, error: Exception, *, committing: bool) -> Error:
        """After an error of `commit`, raise `row_refused` if certainly nothing was written; else return the error."""
        if not isinstance(error, Error):
            if committing:
                raise error
            self._writer.close()  # this also ends the transaction, since COMMIT was never sent
            raise row_refused(type(error).__name__) from error
        if not self._writer.broken and (error.sqlstate or "").startswith(_REFUSALS):
            # a server that reports an error has aborted the transaction: it skipped COMMIT, or failed before it
            self.rollback()
            raise row_refused(f"SQLSTATE {error.sqlstate}") from error
        return error

    def rollback(self) -> None:
        """Roll back the transaction that `begin` opened, if it is still open."""
        with suppress(Error):  # a broken connection rolls back on its own
            self._writer.undo()

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Read in one repeatable-read transaction, on a separate connection."""
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

    def _connect(self) -> PostgresSession:
        return PostgresSession(self._dsn, patience=self._patience)

    def _connect_to_write(self) -> PostgresSession:
        writer = self._connect()
        try:
            if self._share is not None:
                writer.ask(f"SELECT pg_advisory_lock{self._share}($1)", (postgres_schema.USE,))
        except Error:
            writer.close()
            raise
        return writer

    def _lock_head(self, keys: Sequence[tuple[str, str]] = ()) -> tuple[Head, dict[tuple[str, str], ChargeRecord]]:
        self._writer.send(sql.BEGIN)
        self._writer.send(sql.LOCK_HEAD)
        for analyst, key in keys:
            self._writer.send(sql.RECALL, (key, analyst))
        _, heads, *results = self._writer.land()
        if len(heads) != 1:
            self.rollback()
            self._fail("HB305", "it has no newest entry", "Restore the database from a backup.")
        sequence, digest, time, config, durable = heads[0]
        if durable not in _DURABLE:
            self.rollback()
            self._fail("HB322", "synchronous_commit was turned off during the session", "Connect without a pooler.")
        charges = {
            pair: ChargeRecord(sql.read_entry(rows[0]), rows[0][-1])
            for pair, rows in zip(keys, results, strict=True)
            if rows
        }
        return Head(integer(sequence), digest or b"", integer(time), config or b""), charges

    def _under_lock(self, work: Callable[[], T]) -> T:
        """Read under the lock; once more if the server was restarted meanwhile."""
        try:
            return work()
        except Error as error:
            self._regain(error)
        try:
            return work()
        except Error as error:
            self._translate(error)

    def _regain(self, error: Error, last: Entry | None = None) -> bool:
        """After a lost connection, take the lock again, and say whether `last` was committed.

        The old session, if it still lives, holds the lock on the row of the newest entry until its transaction ends.
        With that lock, the newest entry is final: ours (committed), the one we started from (not committed, and no
        other writer came between), or another one, in which case the commit cannot be repeated.
        """
        if not self._writer.broken:
            self._translate(error)
        try:
            self._reconnect()
            head, _ = self._lock_head()
            if last is not None and self._holds(last):
                self.rollback()
                return True
        except Error as second:
            self._translate(second)
        if head != self._held:
            self.rollback()
            self._translate(error)
        return False

    def _holds(self, entry: Entry) -> bool:
        return self._writer.ask(sql.HASH, (entry.sequence,)) == [[entry.hash]]

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
            self._fail("HB307", "it was replaced by another ledger", "Check what was changed on the server.")

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
            self._fail(
                "HB304", f"its format is {version}, but this version of hubbub supports {known}", "Upgrade hubbub."
            )
        wrong = postgres_schema.problems(connection)
        if version < known or wrong:
            self._fail(
                "HB305",
                f"it is not a complete ledger of format {known}" + (f": {wrong[0]}" if wrong else ""),
                "Use the right database, or restore it from a backup. Opening an older one for writing migrates it.",
            )
        identity = self._writer.ask("SELECT ledger FROM hubbub.identity")
        if len(identity) != 1:
            self._fail("HB305", "it has no identity", "Use the right database, or restore this one from a backup.")
        return text(identity[0][0])

    def _reader(self) -> PostgresSession:
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
            code, f"The ledger {self._where} cannot be used: {why}. Nothing was charged.", remedy
        ) from cause

    def _translate(self, error: Error) -> NoReturn:
        explanation = explain(error)
        if explanation is not None:
            self._fail(*explanation, error)
        # the server's message may quote a query; its code is enough
        raise LedgerError("HB301", f"The ledger {self._where} failed (SQLSTATE {error.sqlstate}).", _STOP) from error


def set_aside(dsn: str) -> str:
    """Rename the schema of a ledger to keep it for inspection, and return its new location."""
    name = f"hubbub_set_aside_{datetime.now(UTC):%Y%m%d_%H%M%S}"
    session = PostgresSession(dsn, patience=30)
    try:
        session.do(f"ALTER SCHEMA hubbub RENAME TO {name}".encode())
    finally:
        session.close()
    return f"{address(dsn)}, schema {name}"
