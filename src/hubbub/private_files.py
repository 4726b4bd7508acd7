"""Create files and folders that only their owner can access, whatever the umask of the process.

`open(path, "w")` asks for permissions for everyone, and `mkdir(parents=True)` applies its mode only to the last folder.
hubbub therefore creates all of its files (ledger, anchor, versions, tokens, stream states, locks, temporary copies)
here.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hubbub.errors import LedgerError

FILE, FOLDER = 0o600, 0o700
#: Suffixes of a database and the files that SQLite keeps next to it.
_SUFFIXES = ("", "-wal", "-shm", "-journal")


def create_folder(path: Path) -> None:
    """Create a folder and its missing parents, each for the owner only; existing ones are not changed."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=FOLDER)
        except FileExistsError:
            continue  # another process created it just now
        folder.chmod(FOLDER)


def open_private(path: Path, flags: int) -> int:
    """Open a file for the owner only; restrict the permissions of an existing file of this user."""
    file = os.open(path, flags | os.O_CLOEXEC, FILE)
    facts = os.fstat(file)
    if stat.S_IMODE(facts.st_mode) != FILE and facts.st_uid == os.geteuid():
        os.fchmod(file, FILE)
    return file


@contextmanager
def private_file(path: Path, mode: str) -> Iterator[IO[str]]:
    """Open a text file for the owner only; `mode` is w or a."""
    flags = os.O_WRONLY | os.O_CREAT | {"w": os.O_TRUNC, "a": os.O_APPEND}[mode]
    with os.fdopen(open_private(path, flags), mode, encoding="utf-8") as file:
        yield file


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file that only locks; wait for the process that holds it."""
    with private_file(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def replace_text(path: Path, text: str) -> None:
    """Replace a small file atomically; it is on disk when this returns, and a crash leaves the old or the new one."""
    new = path.with_name(f"{path.name}.new")
    try:
        with private_file(new, "w") as writer:
            writer.write(text)
            writer.flush()
            os.fsync(writer.fileno())
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names of a folder's files on disk, so that a new or renamed file is there after a crash."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def create_database(path: Path) -> None:
    """Create an empty file for SQLite, or restrict an existing one, without opening it.

    Closing a handle here would release the locks that this process holds on the file through SQLite. SQLite gives the
    mode of the database to its log and shared memory.
    """
    try:
        os.mknod(path, stat.S_IFREG | FILE)
    except FileExistsError:
        restrict_database(path)
    else:
        path.chmod(FILE)


def restrict_database(path: Path) -> list[str]:
    """Remove the permissions of other users from a database and SQLite's files next to it; return the changed files.

    A file of another user that others can write is rejected: it is unknown who wrote it last.
    """
    restricted = []
    for suffix in _SUFFIXES:
        part = path.with_name(path.name + suffix)
        try:
            facts = part.stat()
        except FileNotFoundError:
            continue
        if not stat.S_IMODE(facts.st_mode) & 0o077:
            continue
        if facts.st_uid == os.geteuid():
            part.chmod(facts.st_mode & 0o700)  # keep it read-only if the owner made it so
            restricted.append(str(part))
        elif facts.st_mode & 0o022:
            raise _writable_by_others(part)
    return restricted


def refuse_open_folder(path: Path) -> None:
    """Reject a folder in which everyone can replace files (except with the sticky bit, as in /tmp)."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return
    if facts.st_mode & 0o002 and not facts.st_mode & stat.S_ISVTX:
        raise _writable_by_others(path)


def accessible_by_others(path: Path) -> bool:
    """Say whether other users have any permission on an existing file or folder."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def _writable_by_others(path: Path) -> LedgerError:
    return LedgerError(
        "HB335",
        f"Other users can write {path}, so its contents cannot be trusted. Nothing was charged.",
        f"Make the user who runs hubbub its owner, and run: chmod {'700' if path.is_dir() else '600'} {path}",
    )
