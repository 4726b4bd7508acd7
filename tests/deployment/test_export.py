"""An export: as of one moment, without secrets, and a ledger that verifies entry by entry."""

import json
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.fixtures.moved_deployment import SQL, hashes, issue, make, spend

import hubbub
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import EntryFilter
from hubbub.accounting.verify import verify
from hubbub.config import load
from hubbub.deployment import sealed
from hubbub.deployment.archive import read_archive
from hubbub.deployment.export import export
from hubbub.errors import DeploymentError


def test_the_copy_has_the_same_chain_and_verifies_alone(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    spend(config, 2)
    manifest = export(load(config), tmp_path / "out")
    store = SqliteStore(tmp_path / "out" / "ledger.db", read_only=True)
    with store.snapshot() as snapshot:
        assert [entry.hash for entry in snapshot.entries(EntryFilter())] == hashes(config)
        assert verify(snapshot, None).intact
        assert len(list(snapshot.releases())) == 2
    store.close()
    assert manifest.hash == hashes(config)[-1].hex()
    assert read_archive(tmp_path / "out", manifest.fingerprint) == manifest
    assert {path.name for path in (tmp_path / "out").rglob("*") if path.stat().st_mode & 0o077} == set()


def test_nothing_secret_is_in_it_unless_it_was_asked_for(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    token = issue(config, "ana")
    beside = load(config).database.parent
    secrets = {"server.key": b"S" * 43, "audit.key": b"A" * 64, "thresholds/1.seed": b"T" * 40}
    for name, content in secrets.items():
        (beside / name).parent.mkdir(exist_ok=True)
        (beside / name).write_bytes(content)
    (tmp_path / "a" / "hubbub-streams").mkdir()
    (tmp_path / "a" / "hubbub-streams" / "seen.stream").write_bytes(b"C" * 50)
    export(load(config), tmp_path / "plain")
    export(load(config), tmp_path / "sealed", passphrase="a passphrase of some length")
    for out in ("plain", "sealed"):
        content = b"".join(path.read_bytes() for path in (tmp_path / out).rglob("*") if path.is_file())
        for secret in (*secrets.values(), b"C" * 50, token.encode()):
            assert secret not in content
    assert not (tmp_path / "plain" / "secrets.sealed").exists()
    manifest = read_archive(tmp_path / "sealed")
    opened = sealed.unseal(
        (tmp_path / "sealed" / "secrets.sealed").read_bytes(), "a passphrase of some length", manifest.archive
    )
    assert opened == {name: secrets[name] for name in ("server.key", "audit.key")}, "no seeds, no streams of a copy"


def test_an_export_under_load_is_a_prefix_of_the_ledger(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    with hubbub.open(config, analyst="ana") as session:
        done, started = threading.Event(), threading.Event()

        def ask() -> None:
            number = 0
            while not done.is_set():
                number += 1
                session.query(f"{SQL} WHERE age > {number} / 1000.0", epsilon="0.0001")
                started.set()

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            assert started.wait(30)
            manifests = [export(load(config), tmp_path / f"out{number}") for number in range(2)]
        finally:
            done.set()
            asking.join()
    chain = hashes(config)
    for number, manifest in enumerate(manifests):
        assert chain[manifest.sequence - 1].hex() == manifest.hash
        assert read_archive(tmp_path / f"out{number}") == manifest


def test_a_ledger_that_was_edited_is_not_exported(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    with sqlite3.connect(load(config).database) as database:
        (trigger,) = database.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_UPDATE'").fetchone()
        database.execute("DROP TRIGGER entries_UPDATE")
        database.execute("UPDATE entries SET query = 'SELECT 1' WHERE kind = 'charge'")
        database.execute(trigger)
    database.close()
    with pytest.raises(DeploymentError, match=r"HB881.*does not verify"):
        export(load(config), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a"], "nothing is left of it"


def test_a_password_in_an_address_and_an_existing_target_are_refused(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    found = load(config)
    (tmp_path / "out").mkdir()
    with pytest.raises(DeploymentError, match=r"HB880.*exists already"):
        export(found, tmp_path / "out")
    config.write_text(config.read_text() + "# postgresql://reader:hunter2@db/shop\n")
    with pytest.raises(DeploymentError, match=r"HB880.*password"):
        export(found, tmp_path / "other")


@pytest.mark.parametrize("name", ["out.tar", "out.zip", "out.tar.bz2"])
def test_a_name_of_another_kind_of_archive_is_no_folder(tmp_path: Path, name: str) -> None:
    config = load(make(tmp_path / "a"))
    with pytest.raises(DeploymentError, match=r"HB880.*neither a folder nor a \.tar\.gz file"):
        export(config, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_jobs_that_run_are_left_out(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    issue(config, "ana")
    with sqlite3.connect(load(config).database.parent / "server.db") as database:
        for state in ("running", "done"):
            database.execute("INSERT INTO jobs VALUES (?, 'ana', 's', ?, 1, 1, NULL)", (state, state))
    database.close()
    export(load(config), tmp_path / "out")
    tables = json.loads((tmp_path / "out" / "server.json").read_text())["tables"]
    assert [row[0] for row in tables["jobs"]["rows"]] == ["done"]
    assert len(tables["tokens"]["rows"]) == 1
