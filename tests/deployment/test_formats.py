"""What an upgrade would change, over every deployment that an earlier version left behind: the compatibility matrix."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.deployment.test_import import MOVE
from tests.fixtures.moved_deployment import examined, hashes, make, spend

from hubbub.cli import main
from hubbub.config import load
from hubbub.deployment.arrival import Arrival, import_archive
from hubbub.deployment.export import export
from hubbub.deployment.formats import stored_parts

GOLDEN = Path(__file__).parents[1] / "formats" / "golden"


@pytest.fixture(params=["sqlite", "derived", "blocks", "postgres"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Lay out one of the golden deployments, as it was left behind."""
    folder = tmp_path / "deployment"
    shutil.copytree(GOLDEN / request.param, folder)
    for data in (GOLDEN / "data").iterdir():
        if not (folder / data.name).exists():
            shutil.copyfile(data, folder / data.name)
    config = folder / "hubbub.yaml"
    if request.param != "postgres":
        yield config
        return
    server = request.getfixturevalue("postgres_server")
    with server.database() as database:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute((folder / "ledger.sql").read_bytes())
        address = f"postgresql://hubbub@/{conninfo_to_dict(database)['dbname']}?host={server.home}"
        config.write_text(re.sub(r"database: \S+", f"database: {address}", config.read_text()))
        yield config


def contents(folder: Path) -> dict[str, str]:
    """The hash of every file, but those that SQLite keeps for readers."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_dry_run_over_every_golden_deployment_accepts_it_and_changes_nothing(
    deployment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(deployment.parent)
    assert main(["admin", "migrate", "--dry-run", "--config", str(deployment)]) == 0
    assert contents(deployment.parent) == before
    assert "Nothing was changed" in capsys.readouterr().out
    parts = {part.part: part for part in stored_parts(load(deployment))}
    assert parts["ledger"].now == "1"
    assert parts["ledger's entries"].now == "verified"
    assert not [part for part in parts.values() if part.change == "refused"]


def test_every_golden_deployment_is_exported_imported_and_verifies(deployment: Path, tmp_path: Path) -> None:
    chain = hashes(deployment)
    manifest = export(load(deployment), tmp_path / "out")
    into = tmp_path / "new"
    import_archive(
        Arrival(
            source=tmp_path / "out",
            folder=into,
            by="olga",
            reason="upgrade",
            database="hubbub-ledger/ledger.db",
            anchor="kept.anchor",
            original_is_gone=True,
        )
    )
    for data in deployment.parent.glob("*.csv"):
        shutil.copyfile(data, into / data.name)
    assert manifest.sequence == len(chain)
    assert hashes(into / "hubbub.yaml")[: len(chain)] == chain
    assert examined(into / "hubbub.yaml").sound


def test_older_and_newer_formats_are_told_apart(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    found = load(config)
    changes = {part.part: part.change for part in stored_parts(found)}
    assert changes == {"ledger": "none", "ledger's entries": "none", "accounts (server.db)": "created"}
    server = found.database.parent / "server.db"
    for version, change in ((2, "migrated"), (99, "refused")):
        with sqlite3.connect(server) as database:
            database.execute(f"PRAGMA user_version = {version}")
        database.close()
        (part,) = (part for part in stored_parts(found) if part.part.startswith("accounts"))
        assert (part.now, part.change) == (str(version), change)
    assert main(["admin", "migrate", "--dry-run", "--config", str(config)]) == 1
    server.unlink()
    config.write_text(config.read_text().replace("epsilon: 3", "epsilon: 2"))
    (entries,) = (part for part in stored_parts(load(config)) if part.part == "ledger's entries")
    assert (entries.change, "one is added" in entries.text) == ("migrated", True)


def test_a_migration_needs_a_yes_and_then_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    assert main(["admin", "migrate", "--config", str(config)]) == 1
    assert "HB135" in capsys.readouterr().err
    assert main(["admin", "migrate", "--yes", "--config", str(config)]) == 0
    assert {part.change for part in stored_parts(load(config))} == {"none"}


def test_a_ledger_that_does_not_verify_is_refused_by_the_dry_run(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE)
    (entries,) = (part for part in stored_parts(load(config)) if part.part == "ledger's entries")
    assert (entries.change, entries.text[:5]) == ("refused", "HB894")
