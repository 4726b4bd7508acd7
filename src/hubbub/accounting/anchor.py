"""The anchor: the sequence number and hash of the newest ledger entry, kept outside the database.

A hash chain shows that no entry was changed, but not that the latest entries are missing. The anchor does: a database
restored from an older backup ends before the anchored entry, and an edited one has another hash there. The anchor is
written after each commit, never before it. After a crash it may be behind the database, which is accepted, but never
ahead of it.
"""

import fcntl
import os
import time
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, Protocol
from zlib import crc32

from hubbub.accounting.chain import Mark
from hubbub.errors import LedgerError
from hubbub.private_files import create_folder, open_private

_SLOT = 4096  # one disk block per slot: writing one cannot damage the other
_LINE = 512  # bytes that hold a line
_PERIOD = 1.0  # seconds between syncs
_MAGIC = "hubbub-anchor-1"


class Anchor(Protocol):
    """A place outside the database for the newest mark. An HTTP service or another database would be one more class."""

    @property
    def where(self) -> str:
        """The location, for messages."""
        ...

    def read(self) -> Mark | None:
        """Give the newest mark, or None if none was ever written; raise LedgerError if it cannot be read."""
        ...

    def write(self, mark: Mark) -> None:
        """Store a mark that follows the last one. A power failure may lose it, but not the one before."""
        ...

    def reset(self, mark: Mark) -> None:
        """Replace the mark, whatever it was, durably."""
        ...

    def close(self) -> None:
        """Make the last mark durable and release all resources."""
        ...


def former_path(database: Path) -> Path:
    """Give the default path of earlier versions, next to the database: a copy of the folder includes it."""
    return database.parent / "anchor" / f"{database.name}.anchor"


def default_path(database: Path) -> Path:
    """Give the default path: in the user's state folder, named after the path of the database.

    Restoring the ledger's folder does not restore the anchor. The name depends on the path rather than on the identity
    in the database, so that a new database at the path of an old one is noticed as well.
    """
    state_home = Path(os.environ.get("XDG_STATE_HOME", ""))  # its specification says to ignore a relative path
    state = state_home if state_home.is_absolute() else Path(os.path.expanduser("~")) / ".local" / "state"  # noqa: PTH111
    path = str(database.resolve())
    return state / "hubbub" / "anchors" / f"{database.name}-{sha256(path.encode()).hexdigest()[:16]}.anchor"


class FileAnchor:
    """A file with two slots, each a checksummed line in its own block.

    All marks of one second go to the same slot; then the file is synced and the other slot is used. The slot that is
    not in use is therefore always complete and durable, and syncing costs one fdatasync per second rather than per
    charge. Several processes alternate by the same clock, and none replaces a newer mark by an older one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._period = -1

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def read(self) -> Mark | None:
        """Give the newer mark of the two slots; a partially written one is ignored."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(
                "HB309",
                f"The anchor {self._path} cannot be read ({error.strerror}). Nothing was charged.",
                "Let this user read and write it, or set ledger.anchor in hubbub.yaml to another path.",
            ) from error
        if not content.strip(b"\0 "):
            return None  # the power failed between creating the file and writing the first mark
        marks = [mark for mark in (parse_mark(content[:_SLOT]), parse_mark(content[_SLOT:])) if mark is not None]
        if not marks:
            raise LedgerError(
                "HB310",
                f"The anchor {self._path} is corrupt: neither of its slots can be read.",
                "Restore the newest copy of it, or run `hubbub admin forfeit` to write off the budget.",
            )
        return max(marks, key=lambda mark: mark.sequence)

    def write(self, mark: Mark) -> None:
        """Write to the slot of this second; the first write of a second syncs the previous slot."""
        try:
            period = int(time.monotonic() / _PERIOD)
            if self._file < 0:
                self._file = open_private(self._path, os.O_RDWR)
            if period != self._period:
                os.fdatasync(self._file)
                self._period = period
            self._advance(mark, (period & 1) * _SLOT)
        except OSError as error:
            self._unwritable(error)

    def _advance(self, mark: Mark, slot: int) -> None:
        """Write a mark, unless another process, whose commit came later, has already written a newer one."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            written = parse_mark(os.pread(self._file, _LINE, slot))
            if written is None or written.ledger != mark.ledger or written.sequence < mark.sequence:
                os.pwrite(self._file, mark_line(mark), slot)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def reset(self, mark: Mark) -> None:
        """Write both slots, each durable before the other is changed."""
        try:
            create_folder(self._path.parent)
            if self._file < 0:
                self._file = open_private(self._path, os.O_RDWR | os.O_CREAT)
            for slot in (0, 1):
                os.pwrite(self._file, mark_line(mark).ljust(_SLOT), slot * _SLOT)
                os.fsync(self._file)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            self._unwritable(error)

    def close(self) -> None:
        """Sync the last mark and close the file."""
        if self._file >= 0:
            file, self._file = self._file, -1
            try:
                os.fdatasync(file)
            except OSError as error:
                self._unwritable(error)
            finally:
                os.close(file)

    def _unwritable(self, error: OSError) -> NoReturn:
        raise LedgerError(
            "HB309",
            f"The anchor {self._path} cannot be written ({error.strerror}).",
            "Let this user write there, or set ledger.anchor in hubbub.yaml to another path.",
        ) from error


class TwoAnchors:
    """The anchor at the default path, and the one of an earlier version next to the database.

    Only the first is trusted once it exists, because restoring the ledger's folder restores the second with it. The
    second is still kept up to date, for an installation without a lasting home folder (a container) and for a return
    to the earlier version. If the first cannot be created, the second is used alone, as before.
    """

    def __init__(self, first: FileAnchor, second: FileAnchor) -> None:
        self._first, self._second = first, second
        self._exists = False

    @property
    def where(self) -> str:
        """The path of the first."""
        return self._first.where

    def read(self) -> Mark | None:
        """Read the first, or the second if the first was never written."""
        mark = None
        try:
            mark = self._first.read()
        except LedgerError:
            # a home folder that this user cannot enter has no anchor of this user; a corrupt anchor is an error
            if os.access(Path(self._first.where).parent, os.X_OK):
                raise
        self._exists = mark is not None
        return self._second.read() if mark is None else mark

    def write(self, mark: Mark) -> None:
        """Write both; create the first one if it does not exist."""
        if self._exists:
            self._first.write(mark)
        else:
            self._create(mark)
        self._second.write(mark)

    def reset(self, mark: Mark) -> None:
        """Replace the mark in both."""
        self._create(mark)
        self._second.reset(mark)

    def close(self) -> None:
        """Make both durable and close them."""
        try:
            self._first.close()
        finally:
            self._second.close()

    def _create(self, mark: Mark) -> None:
        """Create the first one, if possible; one that exists but cannot be written is an error."""
        try:
            self._first.reset(mark)
            self._exists = True
        except LedgerError:
            if self._exists or Path(self._first.where).exists():
                raise


def mark_line(mark: Mark) -> bytes:
    """Write a mark as a line with a checksum."""
    ledger, sequence, digest = mark
    text = f"{_MAGIC} {ledger} {sequence} {digest.hex()}".encode()
    return b"%b %08x\n" % (text, crc32(text))


def parse_mark(slot: bytes) -> Mark | None:
    """Read the line of a slot, or None; anything after it is left over from an earlier, longer line."""
    text, _, check = slot.partition(b"\n")[0].rpartition(b" ")
    try:
        magic, ledger, sequence, digest = text.decode("ascii").split(" ")
        if magic != _MAGIC or int(check, 16) != crc32(text):
            return None
        return Mark(ledger, int(sequence), bytes.fromhex(digest))
    except ValueError:
        return None
