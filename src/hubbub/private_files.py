"""Files and folders that only their owner can use, whatever the umask of the process is.

A mode given at creation is cut by the umask and never widened by it, but `open(path, "w")` asks for everybody's rights,
and `mkdir(parents=True)` gives the mode to the last folder alone. So whatever hubbub keeps (ledger, anchor, versions,
tokens, states of streams, locks, temporary copies) is made here.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hubbub.errors import LedgerError

FILE, FOLDER = 0o600, 0o700
#: What SQLite keeps beside a database.
_BESIDE = ("", "-wal", "-shm", "-journal")


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, each for the owner alone; one that is there stays as it is."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        try:
            each.mkdir(mode=FOLDER)
        except FileExistsError:
            continue  # another process made it just now
        each.chmod(FOLDER)


def open_private(path: Path, flags: int) -> int:
    """Open a file, making it where the flags say so, for the owner alone; one of ours that is wider is tightened."""
    file = os.open(path, flags | os.O_CLOEXEC, FILE)
    facts = os.fstat(file)
    if stat.S_IMODE(facts.st_mode) != FILE and facts.st_uid == os.geteuid():
        os.fchmod(file, FILE)
    return file


@contextmanager
def private_file(path: Path, mode: str) -> Iterator[IO[str]]:
    """Open a text file for the owner alone; `mode` is w or a."""
    flags = os.O_WRONLY | os.O_CREAT | {"w": os.O_TRUNC, "a": os.O_APPEND}[mode]
    with os.fdopen(open_private(path, flags), mode, encoding="utf-8") as file:
        yield file


def make_database(path: Path) -> None:
    """Make an empty file for SQLite, and tighten one that is there, without opening it.

    Closing a handle of one's own would drop the locks that this process holds on the file through SQLite. The log and
    the shared memory beside a database get its mode from SQLite.
    """
    try:
        os.mknod(path, stat.S_IFREG | FILE)
    except FileExistsError:
        tighten(path)
    else:
        path.chmod(FILE)


def tighten(path: Path) -> list[str]:
    """Take others' rights off a database of ours and what SQLite keeps beside it; say which files had any.

    One that others may write, and that is not ours to tighten, is refused: whoever wrote it last is not known.
    """
    tightened = []
    for ending in _BESIDE:
        part = path.with_name(path.name + ending)
        try:
            facts = part.stat()
        except FileNotFoundError:
            continue
        if not stat.S_IMODE(facts.st_mode) & 0o077:
            continue
        if facts.st_uid == os.geteuid():
            part.chmod(facts.st_mode & 0o700)  # an owner who made it read-only meant it
            tightened.append(str(part))
        elif facts.st_mode & 0o022:
            raise _writable_by_others(part)
    return tightened


def refuse_open_folder(path: Path) -> None:
    """Refuse a folder in which everybody can replace files (one with the sticky bit, such as /tmp, is none)."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return
    if facts.st_mode & 0o002 and not facts.st_mode & stat.S_ISVTX:
        raise _writable_by_others(path)


def too_wide(path: Path) -> bool:
    """Say whether others have any right on a file or folder that is there."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def _writable_by_others(path: Path) -> LedgerError:
    return LedgerError(
        "HB335",
        f"others can write {path}, so nobody knows who wrote it last. Nothing was charged.",
        f"Give it to the user who runs hubbub, and run: chmod {'700' if path.is_dir() else '600'} {path}",
    )
