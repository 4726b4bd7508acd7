"""Custody: who else can read what hubbub keeps, and what would bring ledger and anchor back together."""

import os
from contextlib import suppress
from pathlib import Path

from hubbub.config import Config
from hubbub.private_files import accessible_by_others

#: What lies beside a ledger; `{}` is the name of its database. The public half of the audit's key is for everybody.
_NAMES = (
    "{}",
    "{}-wal",
    "{}-shm",
    "{}.lock",
    "versions.json",
    "versions.lock",
    "versions.new",
    "server.db",
    "server.db-wal",
    "server.db-shm",
    "server.key",
    "streams.json",
    "streams.lock",
    "streams.new",
    "audit.key",
)
#: The folder of a ledger that hubbub made by itself.
_OURS = "hubbub-ledger"
#: Folders of the system: two things below one of these are not kept together.
_APART = frozenset(
    Path(each) for each in ("/", "/var", "/var/lib", "/srv", "/mnt", "/media", "/opt", "/home", "/Users", "/run")
)


def exposed(config: Config, folder: Path, anchor: Path) -> list[Path]:
    """List what hubbub keeps and others have rights on: files beside the ledger, its own folder, the anchor."""
    files = [folder / name.format(config.database.name) for name in _NAMES]
    own = [folder] if folder.name == _OURS else []
    if anchor.parent.name in ("anchor", "anchors"):
        own.append(anchor.parent)
    return [path for path in (*own, *files, anchor) if accessible_by_others(path)]


def close(paths: list[Path]) -> list[Path]:
    """Take others' rights off what belongs to this user; give what was changed."""
    closed = []
    for path in paths:
        # what cannot be closed (a file system without modes, a file that another process just removed) stays a concern
        with suppress(OSError):
            if path.stat().st_uid == os.geteuid():
                path.chmod(path.stat().st_mode & 0o700)
                closed.append(path)
    return closed


def together(folder: Path, anchor: Path) -> str | None:
    """Say what restores or changes ledger and anchor at once, in one sentence; None where nothing obvious does."""
    ledger, place = folder.resolve(), anchor.resolve()
    common = Path(os.path.commonpath([ledger, place]))
    if place.is_relative_to(ledger):
        return (
            f"The anchor {anchor} lies in the ledger's folder: a copy of that folder, put back later, gives spent "
            "budget back and nobody notices. Name a place on another disk or machine: ledger.anchor."
        )
    if common not in _APART:
        return (
            f"Ledger and anchor ({anchor}) are both below {common}: restoring all of that gives spent budget back "
            "unnoticed. Keep the anchor out of that backup, or name a place on another disk: ledger.anchor."
        )
    if _owner(ledger) == _owner(place.parent):
        return "Ledger and anchor belong to the same user, who could change both. Another owner would be safer."
    return None


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None
