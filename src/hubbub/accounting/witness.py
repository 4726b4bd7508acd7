"""A witness: marks of the ledger that are appended elsewhere, and that hubbub can neither change nor remove.

The anchor shows that the newest entries are missing only if nobody restored or edited it together with the database. A
witness is kept by somebody else: a log file that is append-only for this user (`chattr +a`, or on another machine), or
a table of another PostgreSQL server on which this user may only INSERT and SELECT. It gets a mark when the ledger is
opened and closed, and at most once a minute in between.
"""

import logging
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from hubbub.accounting.anchor import Anchor, mark_line, parse_mark
from hubbub.accounting.chain import Mark
from hubbub.errors import ConfigError, LedgerError
from hubbub.private_files import open_private

#: Seconds between two marks.
PERIOD = 60.0
#: Bytes at the end of a log, and rows of a table, in which the newest mark is looked for.
_TAIL, _ROWS = 1 << 18, 1000
_RESET = b"reset "

_log = logging.getLogger("hubbub.ledger")


class WitnessedMark(NamedTuple):
    """A mark as it was appended; with `reset` it does not follow from the one before."""

    mark: Mark
    reset: bool


class Witness(Protocol):
    """A place that only grows."""

    @property
    def where(self) -> str:
        """The location, for messages."""
        ...

    def read(self) -> Mark | None:
        """Give the newest mark, or None if there is none; raise LedgerError if it cannot be read."""
        ...

    def append(self, mark: Mark, *, reset: bool = False) -> None:
        """Append a mark durably, or raise LedgerError."""
        ...


class LogWitness:
    """A text file to which lines are appended."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def read(self) -> Mark | None:
        """Read the end of the file; a line that was not written whole is ignored."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TAIL))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(self.where, str(error.strerror)) from error
        marks = [(parse_mark(line.removeprefix(_RESET)), line.startswith(_RESET)) for line in lines]
        found = newest([WitnessedMark(mark, reset) for mark, reset in marks if mark is not None])
        if found is None and any(lines):
            raise _unusable(self.where, "it has no line that can be read")
        return found

    def append(self, mark: Mark, *, reset: bool = False) -> None:
        """Append a line and sync the file."""
        try:
            file = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(file, (_RESET if reset else b"") + mark_line(mark))
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise _unusable(self.where, str(error.strerror)) from error


class PostgresWitness:
    """The table `hubbub_witness` of another PostgreSQL database."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    @property
    def where(self) -> str:
        """The address without a password."""
        return self._dsn.rpartition("@")[2].partition("?")[0]

    def read(self) -> Mark | None:
        """Read the newest rows."""
        rows = self._do(
            f"SELECT ledger, sequence, hash, reset FROM hubbub_witness ORDER BY id DESC LIMIT {_ROWS}"  # noqa: S608
        )
        return newest([WitnessedMark(Mark(row[0], row[1], bytes(row[2])), row[3]) for row in reversed(rows)])

    def append(self, mark: Mark, *, reset: bool = False) -> None:
        """Insert a row."""
        self._do("INSERT INTO hubbub_witness (ledger, sequence, hash, reset) VALUES (%s, %s, %s, %s)", (*mark, reset))

    def _do(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[str, int, bytes, bool]]:
        try:
            import psycopg
        except ModuleNotFoundError as missing:
            raise LedgerError(
                "HB321",
                "A witness in PostgreSQL requires the package psycopg, which is not installed.",
                "Run: pip install 'hubbub[postgres]'",
            ) from missing
        try:
            with psycopg.connect(self._dsn, connect_timeout=5, application_name="hubbub witness") as connection:
                cursor = connection.cursor()
                with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
                    cursor.execute(_CREATE)
                cursor.execute(sql.encode(), values)
                return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise _unusable(self.where, type(error).__name__) from error


_CREATE = (
    "CREATE TABLE IF NOT EXISTS hubbub_witness (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ledger text NOT "
    "NULL, sequence bigint NOT NULL, hash bytea NOT NULL, reset boolean NOT NULL, at timestamptz NOT NULL "
    "DEFAULT now())"
)


class WitnessedAnchor:
    """An anchor with a witness: the newer mark of both counts, and the witness gets marks in the background.

    Theorem (A copy of all files is refused). Restore the ledger and its anchor together from any older state that
    lacks an entry whose mark the witness has, and add other entries or none. Then the ledger is refused.
    Proof    `read` gives the mark of the witness if it is ahead of the anchor's, and `verify` refuses a database that
             ends before its mark or has another hash there (Rollback evidence). If the anchor is ahead or level,
             because entries were added without the witness, `examine` compares the hash at the witness's mark, too.
    Assumes  who restores the files cannot remove marks from the witness. Entries of the last minute may be missing
             there: the anchor alone covers them.
    Tested   tests/accounting/test_witness.py::test_a_copy_of_ledger_and_anchor_is_refused
             tests/accounting/test_witness.py::test_a_copy_that_went_on_without_its_witness_is_refused
    """

    def __init__(self, anchor: Anchor, witness: Witness, *, period: float = PERIOD) -> None:
        self._anchor = anchor
        self._witness = witness
        self._period = period
        self.witnessed: Mark | None = None  #: the newest mark of the witness, when it was last read
        self._newest: Mark | None = None
        self._sent: Mark | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._sending = threading.Lock()

    @property
    def where(self) -> str:
        """The anchor's location."""
        return self._anchor.where

    def read(self) -> Mark | None:
        """Give the newer mark; one of another ledger in the witness counts, too, because the database was replaced."""
        mark, witnessed = self._anchor.read(), self._witness.read()
        self.witnessed = witnessed
        if mark is None or witnessed is None:
            return witnessed if mark is None else mark
        ahead = witnessed.ledger != mark.ledger or witnessed.sequence > mark.sequence
        return witnessed if ahead else mark

    def write(self, mark: Mark) -> None:
        """Write to the anchor now, and to the witness now or soon."""
        if self._thread is None and self._anchor.read() is None:
            self._anchor.reset(mark)  # it was lost, and the witness told that nothing is missing
        self._anchor.write(mark)
        self._newest = mark
        if self._thread is None:
            self._send()  # the first one at once, so that a witness that does not work is noticed
            self._thread = threading.Thread(target=self._loop, name="hubbub-witness", daemon=True)
            self._thread.start()

    def reset(self, mark: Mark) -> None:
        """Replace the mark in both."""
        self._witness.append(mark, reset=True)
        self._anchor.reset(mark)
        self._newest = self._sent = mark

    def close(self) -> None:
        """Append the last mark, and close the anchor."""
        self._stopping.set()
        try:
            self._try_to_send()
        finally:
            self._anchor.close()

    def _loop(self) -> None:
        while not self._stopping.wait(self._period):
            self._try_to_send()

    def _try_to_send(self) -> None:
        try:
            self._send()
        except LedgerError as error:  # it is tried again, and the anchor has the mark
            _log.warning("The witness has no newer mark: %s", error.message)

    def _send(self) -> None:
        with self._sending:
            mark = self._newest
            if mark is not None and mark != self._sent:
                self._witness.append(mark)
                self._sent = mark


def newest(marks: Iterable[WitnessedMark]) -> Mark | None:
    """Give the newest of some marks in the order in which they were appended; several processes may be out of step."""
    found: Mark | None = None
    for mark, reset in marks:
        if reset or found is None or mark.ledger != found.ledger or mark.sequence > found.sequence:
            found = mark
    return found


def open_witness(place: str, base: Path) -> Witness:
    """Open a witness by its place: `file:PATH`, or the address of a PostgreSQL database."""
    if place.startswith(("postgresql://", "postgres://")):
        return PostgresWitness(place)
    kind, _, path = place.partition(":")
    if kind != "file" or not path:
        raise ConfigError(
            "HB403",
            f"The witness {place!r} is neither a file nor a PostgreSQL database.",
            "Write `file:/var/log/hubbub/witness.log` or `postgresql://user@host/database`.",
        )
    return LogWitness(base / path)


def _unusable(where: str, why: str) -> LedgerError:
    return LedgerError(
        "HB336",
        f"The witness {where} cannot be used: {why}. Nothing was charged.",
        "Make it available again. To go on without it, remove ledger.witness from hubbub.yaml; then only the anchor "
        "shows whether entries are missing.",
    )
