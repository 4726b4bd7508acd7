"""Checks of file permissions and of where ledger and anchor are stored."""

import os
from contextlib import suppress
from pathlib import Path

from hubbub.config import Config
from hubbub.private_files import accessible_by_others

#: The private files beside a ledger; `{}` is the name of its database. The audit's public key is not among them.
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
    "schedules.json",
    "schedules.lock",
    "schedules.new",
)
#: The name of the ledger folder that hubbub creates.
_OURS = "hubbub-ledger"
#: System folders: two paths that only share one of these are not backed up together.
_APART = frozenset(
    Path(each) for each in ("/", "/var", "/var/lib", "/srv", "/mnt", "/media", "/opt", "/home", "/Users", "/run")
)


def exposed_files(config: Config, folder: Path, anchor: Path) -> list[Path]:
    """List the files and folders of hubbub that other users can access."""
    files = [folder / name.format(config.database.name) for name in _NAMES]
    own = [folder] if folder.name == _OURS else []
    if anchor.parent.name in ("anchor", "anchors"):
        own.append(anchor.parent)
    return [path for path in (*own, *files, anchor) if accessible_by_others(path)]


def restrict(paths: list[Path]) -> list[Path]:
    """Remove other users' permissions from this user's files; return the changed paths."""
    closed = []
    for path in paths:
        # a file system without modes, or a file that another process has just removed, stays as it is
        with suppress(OSError):
            if path.stat().st_uid == os.geteuid():
                path.chmod(path.stat().st_mode & 0o700)
                closed.append(path)
    return closed


def anchor_warning(folder: Path, anchor: Path) -> str | None:
    """Give a warning if one backup or one user covers both ledger and anchor, else None."""
    ledger, place = folder.resolve(), anchor.resolve()
    common = Path(os.path.commonpath([ledger, place]))
    if place.is_relative_to(ledger):
        return (
            f"The anchor {anchor} is in the ledger's folder: restoring an old copy of that folder restores spent "
            "budget unnoticed. Set ledger.anchor to a path on another disk or machine."
        )
    if common not in _APART:
        return (
            f"Ledger and anchor ({anchor}) are both below {common}: restoring an old copy of it restores spent budget "
            "unnoticed. Exclude the anchor from that backup, or set ledger.anchor to a path on another disk."
        )
    if _owner(ledger) == _owner(place.parent):
        return "Ledger and anchor belong to the same user, who could change both. Use another owner for the anchor."
    return None


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None
