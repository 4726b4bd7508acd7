"""The noise seeds of charges that have no release yet, kept until the release is recorded.

A seed is 32 random bytes in its own small file, in a folder that only this user can access: an in-memory file system
if there is one, so that no disk, log or backup ever holds a seed and an erased seed is gone. It is never in the
ledger's database, whose old pages and write-ahead logs persist. A lost seed costs budget and nothing else, so nothing
here waits for a disk.
"""

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from hubbub.accounting.chain import Entry
from hubbub.errors import LedgerError
from hubbub.noise import source
from hubbub.noise.source import SEED

#: Seconds after which a seed is erased in any case, and seconds between two searches for such seeds.
OLDEST, _SWEEP = 86_400, 3_600
_BESIDE = "seeds"
_MEMORY = frozenset({"tmpfs", "ramfs"})
_log = logging.getLogger("hubbub.curator")


class Seed(NamedTuple):
    """A seed and the `run_hash` of its first run, which a retry must have as well."""

    secret: bytes
    run_hash: bytes


class Seeds:
    """The seeds of one ledger's charges, each in a file named by ledger, number and hash of the charge."""

    def __init__(self, folder: Path, ledger: str) -> None:
        """Use a folder and create it if needed; reject one that another user owns, reads or writes."""
        self.folder = folder
        self._ledger = ledger
        self._looked = 0.0
        with self._open():
            pass

    def make(self, charge: Entry, run_hash: bytes) -> Seed:
        """Draw and store the seed of a new charge. Only the caller that made the charge may call this, once.

        If it cannot be stored, this run uses it all the same, and a retry finds none.
        """
        seed = Seed(source.fresh_key(), run_hash)
        if time.monotonic() - self._looked > _SWEEP:
            self.sweep()
        name, new = self._name(charge), f".{token_hex(8)}"
        try:
            with self._open() as folder:
                file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
                try:
                    with os.fdopen(file, "wb") as opened:
                        opened.write(seed.secret + run_hash + _checksum(name, seed))
                    # a link, not a rename: an existing file is never replaced
                    os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder)
                finally:
                    os.unlink(new, dir_fd=folder)
        except (OSError, LedgerError) as error:
            _log.warning("The seed of charge %d could not be stored: %s", charge.sequence, type(error).__name__)
        return seed

    def find(self, charge: Entry) -> Seed | None:
        """Give the seed of a charge; None if it was never stored, is erased, or is incomplete."""
        name = self._name(charge)
        try:
            with self._open() as folder:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                with os.fdopen(file, "rb") as opened:
                    content = opened.read(3 * SEED + 1)
        except (OSError, LedgerError):
            return None
        seed = Seed(content[:SEED], content[SEED : 2 * SEED])
        return seed if content[2 * SEED :] == _checksum(name, seed) else None

    def erase(self, charge: Entry) -> None:
        """Erase the seed of a charge, if there is one."""
        with suppress(OSError, LedgerError), self._open() as folder:
            _erase(self._name(charge), folder)

    def sweep(self, released: Callable[[int], bool] = lambda _: False) -> None:
        """Erase seeds older than a day, and those of this ledger's charges that have a release."""
        self._looked = time.monotonic()
        with suppress(OSError, LedgerError), self._open() as folder:
            for name in os.listdir(folder):  # noqa: PTH208 - by its number, not by a path
                with suppress(OSError, ValueError):
                    ledger, _, rest = name.partition("-")
                    old = time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > OLDEST
                    if old or (ledger == self._ledger and released(int(rest.partition("-")[0]))):
                        _erase(name, folder)

    def _name(self, charge: Entry) -> str:
        # with its hash: after a forfeit another charge may get the number
        return f"{self._ledger}-{charge.sequence}-{charge.hash.hex()}"

    @contextmanager
    def _open(self) -> Iterator[int]:
        """Open the folder and check it each time: nobody else may plant, replace or read a seed."""
        how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            try:
                folder = os.open(self.folder, how)
            except FileNotFoundError:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder = os.open(self.folder, how)
        except OSError as error:
            raise LedgerError(
                "HB326",
                f"The seed folder {self.folder} cannot be used ({error.strerror}). Nothing was charged.",
                "Set another folder in hubbub.yaml: `ledger: {seeds: /run/hubbub}`. It must not be a symbolic link.",
            ) from None
        try:
            state = os.fstat(folder)
            if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077:
                raise LedgerError(
                    "HB326",
                    f"The seed folder {self.folder} belongs to another user or is accessible to others. Nothing "
                    "was charged.",
                    "Remove it, or set another folder: `ledger: {seeds: /run/hubbub}`.",
                )
            yield folder
        finally:
            os.close(folder)


def seed_folder(chosen: Path | None, ledger: Path, mounts: Path = Path("/proc/self/mounts")) -> Path:
    """Choose the seed folder: the configured one, else one in memory, else one beside the ledger."""
    if chosen is not None:
        return chosen
    kept_in = _kept_in(mounts)
    for parent, name in (
        (os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0], _BESIDE),  # systemd's
        (os.environ.get("XDG_RUNTIME_DIR", ""), "hubbub"),
        ("/dev/shm", f"hubbub-{os.geteuid()}"),  # noqa: S108 - its owner and mode are checked each time
    ):
        folder = Path(parent)
        if parent and folder.is_dir() and _safe(folder) and kept_in(folder) in _MEMORY:
            return folder / name
    return ledger / _BESIDE


def _safe(folder: Path) -> bool:
    """Return whether only this user and root could remove a folder that is created in there."""
    return os.access(folder, os.W_OK | os.X_OK) and folder.stat().st_uid in (os.geteuid(), 0)


def _kept_in(mounts: Path) -> Callable[[Path], str]:
    """Give a function that returns the type of the file system of a folder."""
    with suppress(OSError):
        lines = [line.split(" ") for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
        kinds = {line[1].replace("\\040", " "): line[2] for line in lines}
        return lambda folder: next(
            (kinds[str(each)] for each in (folder.resolve(), *folder.resolve().parents) if str(each) in kinds), ""
        )
    return lambda _: ""


def _checksum(name: str, seed: Seed) -> bytes:
    return sha256(name.encode() + seed.secret + seed.run_hash).digest()


def _erase(name: str, folder: int) -> None:
    """Overwrite a file, then remove it, so that on a disk the bytes are gone before the name."""
    try:
        file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        os.write(file, bytes(3 * SEED))
        os.fsync(file)
    finally:
        os.close(file)
        os.unlink(name, dir_fd=folder)
