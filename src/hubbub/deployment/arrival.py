"""Import an archive: verify it, refuse what could be spent twice, lay the files out, and anchor the ledger here.

What an import cannot see by itself is another machine on which the same ledger goes on. A witness can: each import
appends the ledger's newest mark there, and a ledger that lacks a mark of the witness, or has another entry in its
place, is refused by every import and every start.

Tested in tests/deployment/test_import.py.
"""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from hubbub.accounting.anchor import FileAnchor, default_path
from hubbub.accounting.chain import Mark
from hubbub.accounting.forfeit import arrive
from hubbub.accounting.ledger_copy import copy_to_postgres
from hubbub.accounting.policy import Policy
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import EntryFilter, Store
from hubbub.accounting.witness import Witness, open_witness
from hubbub.config.document import expect_mapping, parse_yaml
from hubbub.config.policy import LedgerPaths, ledger_paths
from hubbub.deployment import archive, closing, sealed, server_state
from hubbub.deployment.archive import STATE_FILES, Manifest
from hubbub.deployment.export import KEY_FILES, verify_copy
from hubbub.errors import DeploymentError
from hubbub.private_files import create_folder, sync_folder


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """What to import, where, and who says so.

    fingerprint       what the export printed, if the archive must be that one
    database, anchor  places of the ledger and its anchor here, where they differ from those in hubbub.yaml
    passphrase        of the secrets in the archive, if they are to be taken along
    original_is_gone  `by` vouches that the original of a copy is used no more
    """

    source: Path
    folder: Path
    by: str
    reason: str
    fingerprint: str | None = None
    database: str | None = None
    anchor: str | None = None
    passphrase: str | None = None
    original_is_gone: bool = False


class _ArrivalAnchor:
    """Writes the first mark of an imported ledger: to the witness first, so that another import finds it there."""

    def __init__(self, anchor: FileAnchor, witness: Witness | None, *, follows: bool) -> None:
        self._anchor, self._witness, self._follows = anchor, witness, follows

    @property
    def where(self) -> str:
        return self._anchor.where

    def read(self) -> Mark | None:
        return self._anchor.read()

    def write(self, mark: Mark) -> None:
        self._anchor.write(mark)

    def reset(self, mark: Mark) -> None:
        if self._witness is not None:
            self._witness.append(mark, reset=not self._follows)
        self._anchor.reset(mark)

    def close(self) -> None:
        self._anchor.close()


def import_archive(arrival: Arrival) -> Manifest:
    """Import an archive into a folder without a deployment, and return its manifest.

    Theorem (Second import). Of all copies of one ledger whose hubbub.yaml names the same witness, at most one can be
    started after each of them was imported or started again: all others are refused.
    Proof    An import or a start appends a mark of a new entry. A later one of another copy finds that its ledger lacks
             this entry or has another in its place (Rollback evidence, of `verify`), and is refused. The one exception
             is the mark that closed the original of a move: the archive has every entry before it (Closed right after,
             of `closing.proven`), and the import replaces it by a mark of its own, so no second import finds it.
    Assumes  the witness only grows; two imports of one archive are not made in the same second. A server that runs
             already is not stopped: it is refused when it starts the next time.
    Tested   tests/deployment/test_move.py::test_a_witness_refuses_a_second_import_and_the_original
    """
    with _unpacked(arrival.source) as folder:
        manifest = archive.read_archive(folder, arrival.fingerprint)
        mark = Mark(manifest.ledger, manifest.sequence, bytes.fromhex(manifest.hash))
        verify_copy(folder / "ledger.db", mark)
        if server_state.is_newer((folder / "server.json").read_bytes()):
            raise DeploymentError(
                "HB881",
                "The archive is of a later version of hubbub, whose accounts this version cannot read.",
                f"Install hubbub {manifest.made_by} or later here, and import again. Nothing was imported.",
            )
        secrets = _secrets(folder, manifest, arrival.passphrase)
        text = _with_places((folder / "hubbub.yaml").read_text(encoding="utf-8"), arrival)
        places = ledger_paths(parse_yaml(text))
        anchor = _anchor(places, arrival.folder)
        _refuse_occupied(places, arrival.folder, anchor)
        witness = None if places.witness is None else open_witness(places.witness, arrival.folder)
        if manifest.ended is not None and not _closed(folder, mark, manifest.ended):
            raise _altered("no entry of its ledger is the one that closed the original")
        follows = _refuse_living(folder / "ledger.db", manifest, witness, arrival)
        _lay_out(folder, arrival, places, secrets)
        store = _store(places, arrival.folder)
        arrive(
            store,
            policy=_policy(store),
            anchor=_ArrivalAnchor(anchor, witness, follows=follows),
            by=arrival.by,
            reason=arrival.reason,
            archive=manifest.archive,
        )
        # last, so that an import that failed half-way cannot be served
        archive.write_file(arrival.folder / "hubbub.yaml", io.BytesIO(text.encode()))
        sync_folder(arrival.folder)
    return manifest


@contextmanager
def _unpacked(source: Path) -> Iterator[Path]:
    """Give the archive as a folder."""
    if not archive.is_packed(source):
        yield source
        return
    folder = source.with_name(f".{source.name}.{token_hex(8)}")
    create_folder(folder)
    try:
        archive.unpack(source, folder)
        yield folder
    finally:
        archive.remove(folder)


def _secrets(folder: Path, manifest: Manifest, passphrase: str | None) -> dict[str, bytes]:
    if passphrase is None:
        return {}
    if "secrets.sealed" not in manifest.files:
        raise DeploymentError(
            "HB884",
            "This archive has no secrets. Nothing was imported.",
            "Import without --secrets: new keys are created, and people sign in again.",
        )
    found = sealed.unseal((folder / "secrets.sealed").read_bytes(), passphrase, manifest.archive)
    if not all(name in KEY_FILES or (name.startswith("streams/") and archive.is_plain(name)) for name in found):
        raise _altered("its secrets have a file that is neither a key nor a stream")
    return found


def _altered(why: str) -> DeploymentError:
    return DeploymentError(
        "HB881", f"The archive is incomplete or was altered: {why}.", "Export again. Nothing was imported."
    )


def _closed(folder: Path, end: Mark, ended: tuple[int, str]) -> bool:
    """Tell whether the archive shows the entry that closed the original, right after its own end."""
    path = folder / "closing.json"
    return path.exists() and closing.proven(path.read_bytes(), end, ended)


def _with_places(text: str, arrival: Arrival) -> str:
    """Give hubbub.yaml other places of the ledger and its anchor; comments stay."""
    given = {"database": arrival.database, "anchor": arrival.anchor}
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        return text
    from ruamel.yaml import YAML
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    editor, out = YAML(), io.StringIO()
    editor.width = 1000
    document = editor.load(text)
    ledger = document.setdefault("ledger", {})
    ledger.update({name: DoubleQuotedScalarString(value) for name, value in changes.items()})
    editor.dump(document, out)
    expect_mapping(parse_yaml(out.getvalue()), "")
    return out.getvalue()


def _dsn(places: LedgerPaths) -> str | None:
    database = places.database or ""
    return database if database.startswith(("postgresql://", "postgres://")) else None


def _file(places: LedgerPaths, folder: Path) -> Path:
    return folder / (places.database or "hubbub-ledger/ledger.db")


def _beside(places: LedgerPaths, folder: Path) -> Path:
    return folder / "hubbub-ledger" if _dsn(places) else _file(places, folder).parent


def _anchor(places: LedgerPaths, folder: Path) -> FileAnchor:
    return FileAnchor(default_path(_file(places, folder)) if places.anchor is None else folder / places.anchor)


def _refuse_occupied(places: LedgerPaths, folder: Path, anchor: FileAnchor) -> None:
    """Refuse a place that has a deployment, or an anchor: its ledger may be this one, and go on (HB886)."""
    there = [folder / "hubbub.yaml", _beside(places, folder) / "server.db", folder / "hubbub-streams"]
    there += [_beside(places, folder) / name for name in (*STATE_FILES, *KEY_FILES)]
    there += [] if _dsn(places) else [_file(places, folder)]
    taken = next((path for path in there if path.exists()), None)
    if taken is not None:
        raise DeploymentError(
            "HB886",
            f"There is a deployment in {folder} already: {taken.name}. Nothing was imported.",
            "Import into a folder without one: an import never replaces or extends a deployment.",
        )
    if Path(anchor.where).exists():
        raise DeploymentError(
            "HB886",
            f"There is an anchor at {anchor.where} already, so a ledger is or was in use with it. "
            "Nothing was imported.",
            "If the original still runs on this machine, stop it and export it with --move. Name another place for "
            "the anchor of this ledger with --anchor PATH.",
        )


def _refuse_living(ledger: Path, manifest: Manifest, witness: Witness | None, arrival: Arrival) -> bool:
    """Refuse a ledger that may go on elsewhere (HB887, HB888); return whether it continues what the witness saw."""
    mark = None if witness is None else witness.read()
    if witness is not None and mark is not None:
        if manifest.ended is not None and (mark.ledger, mark.sequence, mark.hash.hex()) == (
            manifest.ledger,
            *manifest.ended,
        ):
            return False
        if not _has(ledger, mark):
            raise DeploymentError(
                "HB887",
                f"The witness {witness.where} has seen entry {mark.sequence}, which this archive lacks: the original "
                "was used after the export, or the archive was imported elsewhere. Nothing was imported.",
                "Export the deployment that goes on, with --move. If it is lost, restore this archive under another "
                "witness, and write off what was spent since: hubbub admin forfeit.",
            )
        if manifest.ended is None:
            return True  # the mark of this import will refuse the original at its next start
    if manifest.ended is None and not arrival.original_is_gone:
        raise DeploymentError(
            "HB888",
            "This archive is a copy, and nothing here shows whether its original goes on: both could spend the same "
            "budget. Nothing was imported.",
            "Export the original with --move, which closes it, or use a witness (docs/guides/backup-and-upgrade.md). "
            "If the original is lost, vouch for it: --original-is-gone.",
        )
    return mark is None or manifest.ended is None


def _has(ledger: Path, mark: Mark) -> bool:
    """Tell whether a ledger has the entry of a mark."""
    store = SqliteStore(ledger, read_only=True)
    try:
        with store.snapshot() as snapshot:
            which = EntryFilter(before=mark.sequence + 1)
            entry = next(snapshot.entries(which, after=mark.sequence - 1), None)
            return snapshot.ledger == mark.ledger and entry is not None and entry.hash == mark.hash
    finally:
        store.close()


def _lay_out(source: Path, arrival: Arrival, places: LedgerPaths, secrets: dict[str, bytes]) -> None:
    """Write everything but hubbub.yaml; remove it again where that fails."""
    folder, beside, dsn = arrival.folder, _beside(places, arrival.folder), _dsn(places)
    create_folder(folder)
    create_folder(beside)
    written: list[Path] = []

    def write(path: Path, content: bytes) -> None:
        archive.write_file(path, io.BytesIO(content))
        written.append(path)  # now, so that a file of somebody else is never removed

    try:
        for name in STATE_FILES:
            if (source / "state" / name).exists():
                write(beside / name, (source / "state" / name).read_bytes())
        for name, content in secrets.items():
            if name in KEY_FILES:
                write(beside / name, content)
            elif name.startswith("streams/"):
                write(folder / "hubbub-streams" / name.removeprefix("streams/"), content)
        if dsn is None:
            target = _file(places, folder)
            with (source / "ledger.db").open("rb") as ledger:
                archive.write_file(target, ledger)
            written.append(target)
        else:
            store = SqliteStore(source / "ledger.db", read_only=True)
            try:
                with store.snapshot() as snapshot:
                    copy_to_postgres(snapshot, dsn)
            finally:
                store.close()
        written.append(beside / "server.db")
        server_state.write_state((source / "server.json").read_bytes(), beside, dsn)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _store(places: LedgerPaths, folder: Path) -> Store:
    dsn = _dsn(places)
    if dsn is None:
        return SqliteStore(_file(places, folder), exclusive=True)
    from hubbub.accounting.postgres import PostgresStore

    return PostgresStore(dsn)


def _policy(store: Store) -> Policy:
    """Read the policy in force from the ledger, because the data need not be here yet."""
    with store.snapshot() as snapshot:
        newest = snapshot.head().config
        entries = snapshot.entries(EntryFilter(kind="policy"), newest_first=True)
        return Policy.from_record(json.loads(next(e.facts for e in entries if e.config == newest)))
