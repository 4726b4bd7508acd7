"""The archive of a deployment: a folder, or a .tar.gz of it, with a list of its files and their hashes.

manifest.json    what the archive holds: the hash of each file, the end of the ledger, and whether the original moved
hubbub.yaml      as it was
ledger.db        the ledger in a SQLite file, whatever database it was in
closing.json     only of a move: the entry that closed the original, which follows the last one of ledger.db
server.json      accounts (hashes of tokens), saved questions, dashboards, public pages and finished jobs
state/…          data versions, schedules, and the list of streams that were begun
secrets.sealed   only where it was asked for: keys, and states of streams that move, encrypted

The hash of the manifest is the archive's fingerprint. It stands for every byte: whoever knows it from the person who
exported needs to trust neither the disk nor the network in between.

Tested in tests/deployment/test_archive.py.
"""

import gzip
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from shutil import rmtree
from typing import IO

from hubbub.accounting.chain import canonical
from hubbub.errors import DeploymentError
from hubbub.private_files import create_folder, open_private, sync_folder

FORMAT = 1
MANIFEST = "manifest.json"
#: Files beside the ledger that go along as they are.
STATE_FILES = ("versions.json", "schedules.json", "streams.json")
#: Every file that an archive can have. Nothing else is unpacked or accepted: SQLite, for one, would read ledger.db-wal.
NAMES = frozenset(
    ("hubbub.yaml", "ledger.db", "closing.json", "server.json", "secrets.sealed", *(f"state/{n}" for n in STATE_FILES))
)
#: Bytes of all files that are read from a compressed archive.
MAX_BYTES = 1 << 40
_REMEDY = "Copy the archive again, or export again. Nothing was imported."


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What an archive holds. `files` has the size and SHA-256 of each file; `ended` the entry that closed the original.

    `left_out` says in words what belongs to the deployment and is not in the archive.
    """

    archive: str
    made_by: str
    ledger: str
    sequence: int
    hash: str
    ended: tuple[int, str] | None
    left_out: tuple[str, ...]
    files: Mapping[str, tuple[int, str]]

    def text(self) -> str:
        """Write the manifest in canonical form, so that its hash is that of its meaning."""
        return canonical({"format": FORMAT, **asdict(self)}) + "\n"

    @property
    def fingerprint(self) -> str:
        """The hash of the manifest, and so of the whole archive."""
        return sha256(self.text().encode()).hexdigest()


def parse_manifest(text: bytes) -> Manifest:
    """Read a manifest, or refuse it (HB881)."""
    try:
        record = json.loads(text)
        if record.pop("format") != FORMAT:
            raise _altered("it has another format, perhaps of a later version of hubbub")
        ended = record.pop("ended")
        files = {name: (int(size), str(digest)) for name, (size, digest) in record.pop("files").items()}
        manifest = Manifest(
            files=files,
            ended=None if ended is None else (int(ended[0]), str(ended[1])),
            left_out=tuple(map(str, record.pop("left_out"))),
            sequence=int(record.pop("sequence")),
            **{name: str(record.pop(name)) for name in ("archive", "made_by", "ledger", "hash")},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _altered("its manifest cannot be read") from error
    if record or manifest.text().encode() != text or not files.keys() <= NAMES:
        raise _altered("its manifest was changed")
    return manifest


def file_facts(folder: Path) -> dict[str, tuple[int, str]]:
    """Give the size and hash of each file below a folder, without the manifest."""
    facts = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise _altered(f"{name} is no ordinary file")
        if path.is_file() and name != MANIFEST:
            with path.open("rb") as file:
                digest = sha256()
                while block := file.read(1 << 20):
                    digest.update(block)
            facts[name] = (path.stat().st_size, digest.hexdigest())
    return facts


def read_archive(folder: Path, fingerprint: str | None = None) -> Manifest:
    """Read the manifest of an unpacked archive, and refuse one that is half or altered (HB881).

    Theorem (Whole archives). An archive that is accepted with the fingerprint of its export has, byte by byte, the
    files that were exported and no others, unless a collision of SHA-256 is at hand.
    Proof    The fingerprint is the hash of the manifest, which is compared in its canonical form. The manifest has the
             hash and the size of each file, and names that are not listed or missing are refused.
    Assumes  the fingerprint came another way than the archive. Without one, the archive is only consistent in itself:
             who can write it can write another, as with any backup; the ledger's chain then still binds its entries.
    Charges  nothing.
    Tested   tests/deployment/test_archive.py::test_every_change_of_a_byte_is_found
             tests/deployment/test_archive.py::test_another_archive_has_another_fingerprint
    """
    try:
        manifest = parse_manifest((folder / MANIFEST).read_bytes())
    except OSError:
        raise _altered("it has no manifest, so its export was not finished") from None
    if fingerprint is not None and manifest.fingerprint != fingerprint.strip().lower():
        raise DeploymentError(
            "HB882",
            "This is not the archive with that fingerprint. Nothing was imported.",
            "Compare the fingerprint that `hubbub admin export` printed, and copy the archive again.",
        )
    facts = file_facts(folder)
    for name in sorted(facts.keys() | manifest.files.keys()):
        if name not in facts:
            raise _altered(f"{name} is missing")
        if facts[name] != manifest.files.get(name):
            raise _altered(f"{name} is not as it was exported")
    return manifest


def is_packed(path: Path) -> bool:
    """Tell whether an archive is one file, by its name."""
    return path.name.endswith((".tar.gz", ".tgz"))


def pack(folder: Path, path: Path) -> None:
    """Write a folder as a .tar.gz of this user alone; times and owners are left out."""
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as out:
        with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            for name in (MANIFEST, *file_facts(folder)):
                info = tarfile.TarInfo(name)
                info.size, info.mode = (folder / name).stat().st_size, 0o600
                with (folder / name).open("rb") as file:
                    tar.addfile(info, file)
        out.flush()
        os.fsync(out.fileno())
    sync_folder(path.parent)


def unpack(path: Path, folder: Path) -> None:
    """Write the files of a .tar.gz into a private folder; refuse names that lead outside, and anything but files."""
    written = 0
    try:
        with gzip.open(path) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
            for info in tar:
                source = tar.extractfile(info) if info.isfile() and info.name in {MANIFEST, *NAMES} else None
                written += info.size
                if source is None or written > MAX_BYTES:
                    raise _altered("it has something other than files of a deployment")
                write_file(folder / info.name, source)
            while packed.read(1 << 20):  # to the end, where the checksum is
                pass
    except (OSError, EOFError, tarfile.TarError, gzip.BadGzipFile) as error:
        if isinstance(error, FileNotFoundError):
            raise _altered(f"there is no file {path}") from None
        raise _altered("it cannot be unpacked") from None


def write_file(path: Path, source: IO[bytes]) -> None:
    """Write a new file for this user alone, durably; leave nothing of one that cannot be finished."""
    create_folder(path.parent)
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as out:
        try:
            while block := source.read(1 << 20):
                out.write(block)
            out.flush()
            os.fsync(out.fileno())
        except BaseException:
            path.unlink()
            raise


def remove(folder: Path) -> None:
    """Remove a folder that this process made."""
    rmtree(folder, ignore_errors=True)


def is_plain(name: str) -> bool:
    """Tell whether a name stays inside the folder that it is put into."""
    path = PurePosixPath(name)
    return (
        bool(name)
        and "\0" not in name
        and not path.is_absolute()
        and ".." not in path.parts
        and "\\" not in name
        and str(path) == name
    )


def _altered(why: str) -> DeploymentError:
    return DeploymentError("HB881", f"The archive is incomplete or was altered: {why}.", _REMEDY)
