"""The ledger in a SQLite file: write-ahead log, synced at every commit, one writer at a time over all processes.

The file is opened only through SQLite: closing any other handle to it would silently release the locks of this process
(POSIX locks belong to a process, not to a handle).
"""

import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from hubbub.accounting import sqlite_schema
from hubbub.accounting.bloom import BloomFilter
from hubbub.accounting.chain import NO_HASH, Entry, genesis
from hubbub.accounting.sqlite_snapshot import FIELDS, HEAD, SqliteSnapshot
from hubbub.accounting.store import ChargeRecord, Head, LockedState, OnStep, StoredTotal, row_refused, stored_until
from hubbub.errors import LedgerError
from hubbub.private_files import create_database, open_private, refuse_open_folder, sync_folder

_CHARGE = "SELECT charge FROM keys WHERE key = ? AND analyst = ?"
#: The newest entry and the charge of a key, in one statement.
_HEAD_AND_CHARGE = HEAD.replace(" FROM ", f", ({_CHARGE}) FROM ", 1)
_KEYS = "SELECT analyst, key FROM keys"
_ENTRY = f"SELECT {FIELDS} FROM entries WHERE sequence = ?"  # noqa: S608
_RELEASE = "SELECT body FROM releases WHERE charge = ?"
_TOTAL = "SELECT spent, sequence FROM totals WHERE cap = ?"
_POLICY = "SELECT facts FROM entries WHERE kind = 'policy' AND config = ?"
_NEWS = f"SELECT {FIELDS} FROM entries WHERE sequence > ? ORDER BY sequence"  # noqa: S608
_ADD_ENTRY = f"INSERT INTO entries ({FIELDS}) VALUES ({', '.join('?' * len(Entry._fields))})"  # noqa: S608
_ADD_KEY = "INSERT INTO keys (key, analyst, charge) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_ADD_RELEASE = "INSERT INTO releases (charge, body) VALUES (?, ?)"
_SET_TOTAL = "REPLACE INTO totals (cap, spent, sequence) VALUES (?, ?, ?)"

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
#: Errors about a parameter: the statement did not run.
_VALUE = {sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH}
#: Errors after which a rollback leaves nothing behind, except during COMMIT.
_ROOM = {sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_FULL}
_STOP = "Restart hubbub; startup verification checks the ledger. No reported charge is lost."


class SqliteStore:
    """A ledger in a SQLite file, created or migrated if necessary."""

    def __init__(
        self,
        path: Path,
        *,
        exclusive: bool = False,
        read_only: bool = False,
        patience: float = 30.0,
        guard: int | None = None,
    ) -> None:
        """Open or create the file.

        `exclusive` excludes every other writing process while this one lives; otherwise processes take turns.
        `read_only` takes no lock and creates nothing. `patience` is how many seconds to wait for the lock. `guard` is
        what `reserve` returned to the parent of this process: its children take turns, and exclude all others.
        """
        self._path = path
        exclusive = exclusive and guard is None
        self._alone = exclusive
        self._patience = patience
        self._read_only = read_only
        self._recent: dict[tuple[str, str], Entry] = {}  # charges whose keys may not be stored yet
        self._seen = -1  # the newest entry in `_recent`
        self._head: Head | None = None
        self._used: BloomFilter | None = None  # of the stored keys, if no other process can store one
        self._idle: list[sqlite3.Connection] = []
        if not path.parent.is_dir():
            self._fail("HB302", f"the folder {path.parent} does not exist", "Create it, or use another path.")
        if read_only and not path.exists():
            self._fail(
                "HB302", "the file does not exist", "Check the path. The first start with a policy creates the ledger."
            )
        if not read_only:
            refuse_open_folder(path.parent)
        if read_only:
            self._guard = -1
        else:
            self._guard = reserve(path, exclusive=exclusive) if guard is None else os.dup(guard)
        try:
            self._writer = self._connect()
            self._do = self._writer.cursor().execute  # faster than a new cursor per statement
            self._identity = self._prepare()
            if exclusive:
                self._used = BloomFilter(self._writer.execute(_KEYS))
        except sqlite3.Error as error:
            self.close()
            self._translate(error)
        except UnicodeDecodeError as error:  # SQLite's message quotes the damaged bytes
            self.close()
            self._fail(
                "HB306",
                "the file is corrupt",
                "Restore it from a backup, or run `hubbub admin forfeit` to write off the budget.",
                error,
            )
        except LedgerError:
            self.close()
            raise

    @property
    def ledger(self) -> str:
        """The random identity of the ledger."""
        return self._identity

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def begin(self, keys: Sequence[tuple[str, str]], after: int) -> LockedState:
        """Take the write lock of the database, and read what is new."""
        head = self._head  # known only if no other process writes
        if head is not None and head.sequence == after == self._seen and self._unused(keys):
            return LockedState(head, {}, [])  # a single charge then needs one statement, without BEGIN
        try:
            self._patiently("BEGIN IMMEDIATE")
            fresh = False
            if head is None:
                analyst, key = keys[0] if len(keys) == 1 else ("", "")
                row = self._do(_HEAD_AND_CHARGE, (key, analyst)).fetchone()
                head = Head(0, genesis(self._identity), 0, NO_HASH) if row is None else Head(*row[:-1])
                fresh = len(keys) == 1 and row is not None and row[-1] is None  # this key is not stored
            news = [] if head.sequence == after == self._seen else self._news(head.sequence, after)
            return LockedState(head, {} if fresh and keys[0] not in self._recent else self._recall(keys), news)
        except sqlite3.Error as error:
            self._translate(error)

    def _unused(self, keys: Sequence[tuple[str, str]]) -> bool:
        """Say whether certainly none of these keys was ever charged, without a database lookup."""
        if self._used is None:
            return False
        for pair in keys:  # noqa: SIM110 — a generator would be slower
            if pair in self._recent or pair in self._used:
                return False
        return True

    def _news(self, newest: int, after: int) -> list[Entry]:
        """Read what other processes wrote; keys are stored up to the last multiple of LAG."""
        stored = stored_until(newest)
        if self._seen < stored:
            self._recent.clear()
        news = list(map(Entry._make, self._writer.execute(_NEWS, (max(after, stored),))))
        self._remember(news)
        self._seen = newest
        return news

    def _remember(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.kind == "charge":
                self._recent[entry.analyst, entry.key] = entry

    def _recall(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], ChargeRecord]:
        charges = {}
        for pair in keys:
            entry = self._recent.get(pair)
            if entry is None:
                row = self._do(_CHARGE, (pair[1], pair[0])).fetchone()
                if row is None:
                    continue  # the usual case
                entry = Entry._make(self._writer.execute(_ENTRY, row).fetchone() or [""] * len(Entry._fields))
                if (entry.analyst, entry.key) != pair:
                    self._fail(
                        "HB306",
                        "its request keys do not match its charges",
                        "Restart hubbub; startup verification reports the details.",
                    )
            body = self._writer.execute(_RELEASE, (entry.sequence,)).fetchone()
            charges[pair] = ChargeRecord(entry, None if body is None else body[0])
        return charges

    def totals(self, labels: Iterable[str]) -> Mapping[str, StoredTotal]:
        """Read the stored totals of these caps."""
        totals = {}
        try:
            for label in labels:
                row = self._writer.execute(_TOTAL, (label,)).fetchone()
                if row is not None:
                    totals[label] = StoredTotal(*row)
        except sqlite3.Error as error:
            self._translate(error)
        return totals

    def policy(self, config: bytes) -> str:
        """Read the policy with this hash."""
        try:
            return str(self._writer.execute(_POLICY, (config,)).fetchone()[0])
        except sqlite3.Error as error:
            self._translate(error)

    def commit(
        self,
        entries: Sequence[Entry],
        totals: Mapping[str, StoredTotal],
        releases: Mapping[int, bytes],
        on_step: OnStep,
    ) -> None:
        """Write everything in the transaction that `begin` opened, and return when it is durable."""
        writer = self._writer
        last = entries[-1]
        carries = bool(totals) or stored_until(last.sequence) >= entries[0].sequence
        committing = not (carries or releases or len(entries) > 1)  # a single statement is its own transaction
        try:
            if not writer.in_transaction and (carries or releases or len(entries) > 1):
                self._patiently("BEGIN IMMEDIATE")
            if len(entries) == 1:
                self._patiently(_ADD_ENTRY, last)
            else:
                writer.executemany(_ADD_ENTRY, entries)
            on_step("entries")
            if releases:
                writer.executemany(_ADD_RELEASE, releases.items())
                on_step("releases")
            self._remember(entries)
            if carries:
                keys = [(entry.key, entry.analyst, entry.sequence) for entry in self._recent.values()]
                writer.executemany(_ADD_KEY, keys)
                writer.executemany(_SET_TOTAL, [(cap, *total) for cap, total in totals.items()])
            on_step("totals")
            on_step("committing")
            committing = True
            if writer.in_transaction:
                self._do("COMMIT")
        except (sqlite3.Error, ValueError, OverflowError, MemoryError) as error:
            self._undo(error, committing=committing)
        self._seen = last.sequence
        self._head = Head(last.sequence, last.hash, last.time, last.config) if self._alone and not carries else None
        if carries:
            if self._used is not None:
                self._used.add(self._recent)
            self._recent.clear()

    def rollback(self) -> None:
        """Roll back the transaction that `begin` opened, if it is still open."""
        # after an I/O error SQLite may have rolled back already, or the connection may be broken
        with suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _undo(self, error: Exception, *, committing: bool) -> NoReturn:
        """After an error of `commit`, raise `row_refused` if certainly nothing was written; otherwise the error."""
        certain = not isinstance(error, sqlite3.Error) and not committing
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            certain = code in _VALUE or (code in _ROOM and not committing)
        if certain:
            self.rollback()
            if not self._writer.in_transaction:
                self._recent.clear()
                self._seen, self._head = -1, None  # read the state again
                raise row_refused(type(error).__name__) from error
        if isinstance(error, sqlite3.Error):
            self._translate(error)
        raise error

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """Read in one transaction on a separate connection."""
        reader = None
        try:
            try:
                reader = self._idle.pop()
            except IndexError:
                reader = self._connect()
            reader.execute("BEGIN")
            yield SqliteSnapshot(reader, self._identity)
            reader.execute("COMMIT")
            self._idle.append(reader)
        except sqlite3.Error as error:
            if reader is not None:
                reader.close()
            self._translate(error)
        except BaseException:
            if reader is not None:
                reader.close()
            raise

    def close(self) -> None:
        """Close all connections; closing the last one merges the log into the file."""
        for connection in (*self._idle, getattr(self, "_writer", None)):
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
        self._idle.clear()
        if self._guard >= 0:
            os.close(self._guard)
            self._guard = -1

    def _connect(self) -> sqlite3.Connection:
        mode = "rw" if self._read_only else "rwc"
        connection = sqlite3.connect(
            f"file:{quote(str(self._path.absolute()))}?mode={mode}",
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -16000")
            if self._read_only:
                connection.execute("PRAGMA query_only = ON")
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
        return connection

    def _patiently(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Execute a statement that needs a lock, retrying after short random pauses.

        SQLite's own waiting grows to a tenth of a second between attempts, which leaves the lock idle and starves some
        processes; random pauses of about the length of a few commits give all the same chance.
        """
        deadline = 0.0
        while True:
            try:
                return self._do(statement, values)
            except sqlite3.OperationalError as error:
                now = time.monotonic()
                deadline = deadline or now + self._patience
                if error.sqlite_errorcode & 0xFF not in _BUSY or now > deadline:
                    raise
            time.sleep((300 + secrets.randbelow(3700)) / 1_000_000)

    def _prepare(self) -> str:
        writer = self._writer
        writer.execute("PRAGMA busy_timeout = 0")
        if not self._read_only:
            (mode,) = self._patiently("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                self._fail("HB302", "its disk does not support a write-ahead log", "Move it to a local disk.")
            self._migrate()
        (version,) = self._patiently("PRAGMA user_version").fetchone()
        known = len(sqlite_schema.MIGRATIONS)
        if version > known:
            self._fail(
                "HB304", f"its format is {version}, but this version of hubbub supports {known}", "Upgrade hubbub."
            )
        wrong = sqlite_schema.problems(writer)
        if version < known or wrong:
            self._fail(
                "HB305",
                f"it is not a complete ledger of format {known}" + (f": {wrong[0]}" if wrong else ""),
                "Use the right file, or restore it from a backup. Opening an older one for writing migrates it.",
            )
        identity = writer.execute("SELECT ledger FROM identity").fetchall()
        if len(identity) != 1:
            self._fail("HB305", "it has no identity", "Use the right file, or restore this one from a backup.")
        return str(identity[0][0])

    def _migrate(self) -> None:
        for number in range(1, len(sqlite_schema.MIGRATIONS) + 1):
            self._patiently("BEGIN IMMEDIATE")
            (version,) = self._writer.execute("PRAGMA user_version").fetchone()
            (objects,) = self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if version == 0 and objects:
                self.rollback()
                self._fail("HB305", "it is the database of another application", "Use another file.")
            if version < number:
                sqlite_schema.upgrade(self._writer, number)
                self._writer.execute("COMMIT")
            else:
                # SQLite reports a read-only file only at the first write, which would be too late
                self._writer.execute(f"PRAGMA user_version = {version}")
                self._writer.execute("ROLLBACK")
        sync_folder(self._path.parent)  # the file name must be as durable as its content

    def _fail(self, code: str, why: str, remedy: str, cause: Exception | None = None) -> NoReturn:
        _fail(self._path, code, why, remedy, cause)

    def _translate(self, error: sqlite3.Error) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            self._fail(
                "HB303",
                f"another process kept it locked for {self._patience:g} s",
                "Try again, or stop the other process.",
                error,
            )
        if code == sqlite3.SQLITE_READONLY:
            self._fail("HB302", "it is read-only", "Let this user write the file and its folder.", error)
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            self._fail(
                "HB302", "it cannot be opened", "Check the path and the permissions of the file and its folder.", error
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            self._fail(
                "HB306",
                "the file is corrupt",
                "Restore it from a backup, or run `hubbub admin forfeit` to write off the budget.",
                error,
            )
        raise LedgerError("HB301", f"The ledger {self._path} failed: {error}.", _STOP) from error


def reserve(path: Path, *, exclusive: bool) -> int:
    """Take the lock of a ledger's file, and return the open file that holds it.

    A lock belongs to the open file, which children inherit: it is held until the last of them has ended.
    """
    try:
        create_database(path)
        guard = open_private(Path(f"{path.resolve()}.lock"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        _fail(path, "HB302", f"it cannot be written ({error.strerror})", "Let this user write there.")
    try:
        fcntl.flock(guard, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        os.close(guard)
        _fail(path, "HB303", "another server has it open", "Stop that server: only one at a time can use a file.")
    return guard


def _fail(path: Path, code: str, why: str, remedy: str, cause: Exception | None = None) -> NoReturn:
    raise LedgerError(code, f"The ledger {path} cannot be used: {why}. Nothing was charged.", remedy) from cause
