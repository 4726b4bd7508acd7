"""The anchor: the newest place of the chain, remembered outside the database.

A hash chain shows that nothing inside it was changed; it cannot show that its end is missing. So the newest number and
hash are also kept in a second place. A database restored from an older backup ends before that place; an edited one has
another hash there. The anchor is written after each commit and never before it, so after a crash it may be behind the
database (which is accepted: the anchored hash stands in the chain) but never ahead of it.
"""

import os
import time
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, Protocol
from zlib import crc32

from hubbub.accounting.chain import Mark
from hubbub.errors import LedgerError
from hubbub.private_files import make_folder, open_private

_SLOT = 4096  # one disk block for each slot: writing one cannot tear the other
_PERIOD = 1.0  # seconds between syncs
_MAGIC = "hubbub-anchor-1"


class Anchor(Protocol):
    """A second place for the newest mark; an HTTP service or another database would be one more class."""

    @property
    def where(self) -> str:
        """Say to a person where it is."""
        ...

    def read(self) -> Mark | None:
        """Give the newest mark, or None where none was ever written; raise LedgerError where it cannot be read."""
        ...

    def write(self, mark: Mark) -> None:
        """Remember a mark that follows the last one. It may be lost in a power failure, the one before may not."""
        ...

    def reset(self, mark: Mark) -> None:
        """Make this the newest mark, whatever stood there, and durable before this returns."""
        ...

    def close(self) -> None:
        """Make the last mark durable and let go."""
        ...


def beside(database: Path) -> Path:
    """Give the place that was the default once: beside the database, so that a copy of the folder takes it along."""
    return database.parent / "anchor" / f"{database.name}.anchor"


def at_home(database: Path) -> Path:
    """Give the default place: in the user's folder for state, under the name and the path of the database.

    A restored folder of the ledger does not bring it back. It goes by the path and not by the identity in the database,
    so that a new database in the place of an old one is noticed as well.
    """
    given = Path(os.environ.get("XDG_STATE_HOME", ""))  # by its specification, a relative one is to be ignored
    state = given if given.is_absolute() else Path(os.path.expanduser("~")) / ".local" / "state"  # noqa: PTH111
    path = str(database.resolve())
    return state / "hubbub" / "anchors" / f"{database.name}-{sha256(path.encode()).hexdigest()[:16]}.anchor"


class FileAnchor:
    """A file with two slots, each a checksummed line in a block of its own.

    All marks of one second go to the same slot; then the file is synced and the other slot is used. So the slot that is
    not in use is always whole and on the disk, however the power fails, and syncing costs one fdatasync a second
    instead of one a charge. Several processes take turns by the same clock.
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
        """Give the newest mark of the two slots; a torn one is ignored."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(
                "HB309",
                f"the anchor {self._path} cannot be read ({error.strerror}).",
                "Give this user the right to read and write it, or name another place: ledger.anchor in hubbub.yaml. "
                "Nothing was charged.",
            ) from error
        if not content.strip(b"\0 "):
            return None  # the file was made, and the power failed before its first mark
        marks = [mark for mark in (_parse(content[:_SLOT]), _parse(content[_SLOT:])) if mark is not None]
        if not marks:
            raise LedgerError(
                "HB310",
                f"the anchor {self._path} is damaged: neither of its slots can be read.",
                "Restore it from where it was last right; or accept the loss: hubbub admin forfeit.",
            )
        return max(marks, key=lambda mark: mark.sequence)

    def write(self, mark: Mark) -> None:
        """Write to the slot of this second; the first write of a second syncs what the last one left."""
        try:
            period = int(time.monotonic() / _PERIOD)
            if self._file < 0:
                self._file = open_private(self._path, os.O_RDWR)
            if period != self._period:
                os.fdatasync(self._file)
                self._period = period
            os.pwrite(self._file, _line(mark), (period & 1) * _SLOT)
        except OSError as error:
            self._unwritable(error)

    def reset(self, mark: Mark) -> None:
        """Write both slots, each made durable before the other is touched."""
        try:
            make_folder(self._path.parent)
            if self._file < 0:
                self._file = open_private(self._path, os.O_RDWR | os.O_CREAT)
            for slot in (0, 1):
                os.pwrite(self._file, _line(mark).ljust(_SLOT), slot * _SLOT)
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
            f"the anchor {self._path} cannot be written ({error.strerror}).",
            "Give this user the right to write there, or name another place: ledger.anchor in hubbub.yaml.",
        ) from error


class TwoAnchors:
    """The anchor in its default place, and the one beside the database that an earlier version made.

    Only the first is believed once it is there: whoever restores the folder of the ledger restores the second with it.
    The second is kept up to date all the same, for an installation whose home does not last (a container) and for a
    return to the earlier version. Where the first cannot be made, the second serves alone, as it did before.
    """

    def __init__(self, first: FileAnchor, second: FileAnchor) -> None:
        self._first, self._second = first, second
        self._made = False

    @property
    def where(self) -> str:
        """The path of the first."""
        return self._first.where

    def read(self) -> Mark | None:
        """Read the first, or the second where the first was never written."""
        mark = None
        try:
            mark = self._first.read()
        except LedgerError:
            # a home that this user cannot enter holds no anchor of this user's; one that is damaged is an error
            if os.access(Path(self._first.where).parent, os.X_OK):
                raise
        self._made = mark is not None
        return self._second.read() if mark is None else mark

    def write(self, mark: Mark) -> None:
        """Write both; the first is made at the first write."""
        if self._made:
            self._first.write(mark)
        else:
            self._make(mark)
        self._second.write(mark)

    def reset(self, mark: Mark) -> None:
        """Make this the newest mark in both."""
        self._make(mark)
        self._second.reset(mark)

    def close(self) -> None:
        """Make both durable and let go."""
        try:
            self._first.close()
        finally:
            self._second.close()

    def _make(self, mark: Mark) -> None:
        """Make the first; one that is there and cannot be written is an error, one that cannot be made is not."""
        try:
            self._first.reset(mark)
            self._made = True
        except LedgerError:
            if self._made or Path(self._first.where).exists():
                raise


def _line(mark: Mark) -> bytes:
    ledger, sequence, digest = mark
    text = f"{_MAGIC} {ledger} {sequence} {digest.hex()}".encode()
    return b"%b %08x\n" % (text, crc32(text))


def _parse(slot: bytes) -> Mark | None:
    """Read a slot; what was torn, or left over from a longer line, is behind the first line's end."""
    text, _, check = slot.partition(b"\n")[0].rpartition(b" ")
    try:
        magic, ledger, sequence, digest = text.decode("ascii").split(" ")
        if magic != _MAGIC or int(check, 16) != crc32(text):
            return None
        return Mark(ledger, int(sequence), bytes.fromhex(digest))
    except ValueError:
        return None
