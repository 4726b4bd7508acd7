"""Export a deployment: hubbub.yaml, the ledger, and what is kept beside it, as of one moment.

The ledger is read in one transaction while servers go on. What is read after it (versions, accounts, schedules) may be
a little newer, which is harmless: a name of a data version or an account that the ledger does not mention yet.

Left out always: the data, seeds of runs that are under way, and the secrets of above-threshold sessions. Two copies of
a seed could repeat noise on different data, and two copies of a session would give its answers twice.

Tested in tests/deployment/test_export.py.
"""

import io
import json
import re
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from secrets import token_hex

from hubbub.accounting.chain import Entry, Mark
from hubbub.accounting.forfeit import close_moved
from hubbub.accounting.ledger_copy import copy_to_file
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.accounting.verify import verify
from hubbub.analyses.streams.state import lock_stream
from hubbub.config import Config
from hubbub.config.addresses import has_password
from hubbub.curator.opening import anchor_of, folder_of, store_of
from hubbub.curator.streams import streams_of
from hubbub.deployment import archive, closing, sealed
from hubbub.deployment.archive import STATE_FILES, Manifest
from hubbub.deployment.server_state import read_state
from hubbub.errors import DeploymentError
from hubbub.private_files import create_folder, sync_folder

#: Secrets of the installation beside the ledger, which go along only where they are asked for.
KEY_FILES = ("server.key", "audit.key", "audit.pub")
#: What a stream's state is renamed to when the stream has moved.
MOVED = ".moved"
_ADDRESS = re.compile(r"postgres(?:ql)?://[^\s\"']+", re.IGNORECASE)
#: Endings of archives of other kinds, which nobody means as the name of a folder.
_OTHER_FILES = frozenset({".tar", ".zip", ".gz", ".bz2", ".xz", ".zst", ".7z"})


@dataclass(frozen=True)
class Move:
    """Who moves a deployment, and why; both are recorded in the ledger that is closed."""

    by: str
    reason: str


def export(config: Config, target: Path, *, move: Move | None = None, passphrase: str | None = None) -> Manifest:
    """Write the archive of a deployment and return its manifest; with `move`, first close the original.

    Theorem (One spender). After an export that moves, the original is charged no more, and the archive has every charge
    that the original ever made.
    Proof    One entry of the original charges every cap its whole budget, durably, before the archive is made, and the
             ledger's order says for each charge whether it was before. Those before it are in the archive. After it, no
             charge fits under any cap, and a ledger with this entry as its last forfeit is refused at every start.
    Assumes  the owner changes no cap of servers that run on, and restarts them before a cap renews or a block begins:
             on a file none can run, on PostgreSQL they can. What is done with the archive is another matter: two
             imports of it on two machines do not know of each other, unless there is a witness (Second import).
    Charges  nothing where the deployment goes on; the rest of every cap at the original.
    Tested   tests/deployment/test_move.py::test_the_original_of_a_move_can_spend_nothing
             tests/deployment/test_move.py::test_charges_during_a_move_are_in_the_archive_or_refused
    """
    if target.exists():
        raise DeploymentError(
            "HB880", f"{target} exists already. Nothing was exported.", "Choose a new folder, or a new .tar.gz file."
        )
    if not archive.is_packed(target) and target.suffix in _OTHER_FILES:
        raise DeploymentError(
            "HB880",
            f"{target} is neither a folder nor a .tar.gz file by its name. Nothing was exported.",
            "Choose a new folder, or a new .tar.gz file.",
        )
    text = config.path.read_text(encoding="utf-8")
    if any(map(has_password, _ADDRESS.findall(text))):
        raise DeploymentError(
            "HB880",
            "hubbub.yaml has the password of a database in an address. Nothing was exported.",
            "Put it into the file that PGPASSFILE names, so that no copy of hubbub.yaml has it.",
        )
    name = token_hex(8)
    create_folder(target.parent)
    staging = target.with_name(f".{target.name}.{name}")
    create_folder(staging)
    try:
        if move is not None:
            _close(config, move, name)
        manifest = _collect(config, text, staging, name, moves=move is not None, passphrase=passphrase)
        archive.write_file(staging / archive.MANIFEST, io.BytesIO(manifest.text().encode()))
        if archive.is_packed(target):
            packed = staging.with_name(f"{staging.name}.file")
            archive.pack(staging, packed)
            packed.rename(target)
        else:
            staging.rename(target)
        sync_folder(target.parent)
    finally:
        archive.remove(staging)
    return manifest


def ended(snapshot: Snapshot) -> Entry | None:
    """Find the entry that closed a ledger because it moved."""
    return next((e for e in snapshot.entries(EntryFilter(kind="forfeit")) if "moved" in json.loads(e.facts)), None)


def _close(config: Config, move: Move, name: str) -> None:
    """Close the original, if that was not done before by an export that did not come to its end."""
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            closed = ended(snapshot)
            later = closed is not None and any(
                entry.kind == "charge" for entry in snapshot.entries(EntryFilter(), after=closed.sequence)
            )
    finally:
        store.close()
    if later:
        raise DeploymentError(
            "HB885",
            "This deployment was moved away and then used again, so its ledger has charges that the other place does "
            "not know. Nothing was exported.",
            "Export it without --move, and import that as a copy; the other place keeps its own history.",
        )
    if closed is None:
        # a file is locked against servers; in PostgreSQL the entry itself decides between before and after
        store = store_of(config, exclusive=True)
        close_moved(store, policy=config.policy, anchor=anchor_of(config), by=move.by, reason=move.reason, archive=name)


def _collect(config: Config, text: str, staging: Path, name: str, *, moves: bool, passphrase: str | None) -> Manifest:
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            closed = ended(snapshot) if moves else None
            head = copy_to_file(snapshot, staging / "ledger.db", None if closed is None else closed.sequence)
            mark = Mark(snapshot.ledger, head.sequence, head.hash)
    finally:
        store.close()
    verify_copy(staging / "ledger.db", mark)
    folder = folder_of(config)
    contents = {"hubbub.yaml": text.encode(), "server.json": read_state(config)}
    contents |= {f"state/{each}": (folder / each).read_bytes() for each in STATE_FILES if (folder / each).exists()}
    if closed is not None:
        contents["closing.json"] = closing.write(closed)
    left_out = ["the data", "seeds of runs that were under way", "secrets of above-threshold sessions"]
    if passphrase is None:
        left_out += ["keys of the installation", "streams"]
    else:
        secrets = {each: (folder / each).read_bytes() for each in KEY_FILES if (folder / each).exists()}
        secrets |= _streams(config) if moves else {}
        left_out += [] if moves else ["streams, which only a move takes along"]
        contents["secrets.sealed"] = sealed.seal(secrets, passphrase, name)
    for path, content in contents.items():
        archive.write_file(staging / path, io.BytesIO(content))
    return Manifest(
        archive=name,
        made_by=version_of("hubbub"),
        ledger=mark.ledger,
        sequence=mark.sequence,
        hash=mark.hash.hex(),
        ended=None if closed is None else (closed.sequence, closed.hash.hex()),
        left_out=tuple(left_out),
        files=archive.file_facts(staging),
    )


def verify_copy(path: Path, mark: Mark) -> None:
    """Verify the ledger of an archive up to the end that its manifest states, or refuse it (HB881)."""
    store = SqliteStore(path, read_only=True)
    try:
        with store.snapshot() as snapshot:
            verification = verify(snapshot, mark)
    finally:
        store.close()
    if not verification.sound or verification.head != mark:
        why = verification.problems[0].text if verification.problems else "it goes on after its end"
        raise DeploymentError(
            "HB881",
            f"The archive is incomplete or was altered: its ledger does not verify ({why}).",
            "Run `hubbub verify ledger` where it came from, and export again.",
        )


def _streams(config: Config) -> dict[str, bytes]:
    """Take the states of streams that move: renamed first, so that nobody goes on with them here."""
    root, found = streams_of(config), {}
    for path in sorted(root.rglob("*.stream")):
        with lock_stream(path.parent, path.stem):
            path.rename(path.with_name(path.name + MOVED))
            sync_folder(path.parent)
    for path in sorted(root.rglob(f"*.stream{MOVED}")):
        found[f"streams/{path.relative_to(root).as_posix().removesuffix(MOVED)}"] = path.read_bytes()
    return found
