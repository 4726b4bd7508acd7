"""An import: the deployment goes on elsewhere as it was, and is refused where its ledger could be spent twice."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.fixtures.moved_deployment import examined, hashes, issue, knows, make, put_data, spend
from tests.fixtures.server_config import url

from hubbub.config import load
from hubbub.deployment import server_state
from hubbub.deployment.archive import Manifest
from hubbub.deployment.arrival import Arrival, import_archive
from hubbub.deployment.export import Move, export
from hubbub.errors import BudgetError, DeploymentError, LedgerError
from hubbub.server.database import SqliteDatabase

PHRASE = "a passphrase of some length"
MOVE = Move("olga", "a new machine")


def bring(source: Path, into: Path, **more: object) -> Manifest:
    """Import, and put the data in its place."""
    manifest = import_archive(Arrival(source=source, folder=into, by="olga", reason="moved", **more))  # type: ignore[arg-type]
    put_data(into)
    return manifest


def refusal(source: Path, into: Path, **more: object) -> DeploymentError:
    with pytest.raises(DeploymentError) as caught:
        bring(source, into, **more)
    return caught.value


@pytest.mark.parametrize(("here", "there"), [("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "sqlite")])
def test_a_deployment_goes_on_elsewhere_as_it_was(
    here: str, there: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("postgres_server")
    with server.database() as first, server.database() as second:
        dsn = {"sqlite": None, "postgres": url(first)}[here]
        config = make(tmp_path / "a", dsn=dsn)
        answer = spend(config, 1)
        token = issue(config, "ana")
        export(load(config), tmp_path / "out.tar.gz", move=MOVE)
        chain = hashes(config)
        target = {"sqlite": "hubbub-ledger/ledger.db", "postgres": url(second)}[there]
        manifest = bring(tmp_path / "out.tar.gz", tmp_path / "b", database=target)
        moved = tmp_path / "b" / "hubbub.yaml"
        assert hashes(moved)[: manifest.sequence] == chain[: manifest.sequence]
        assert examined(moved).sound
        assert spend(moved, 1) == answer, "replayed for free"
        assert knows(moved, token)
        assert "# kept: a comment" in moved.read_text()
        spend(moved, 2, "2.5")
        with pytest.raises(BudgetError):
            spend(moved, 3, "0.1")
        with pytest.raises(LedgerError, match="HB894"):
            spend(config, 4)


def test_secrets_arrive_with_their_passphrase(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    key = load(config).database.parent / "server.key"
    key.write_text("k" * 43)
    streams = tmp_path / "a" / "hubbub-streams" / "of-1"
    streams.mkdir(parents=True)
    (streams / "seen.stream").write_bytes(b"C" * 50)
    export(load(config), tmp_path / "out", move=MOVE, passphrase=PHRASE)
    assert not (streams / "seen.stream").exists(), "the stream is not fed here any more"
    assert refusal(tmp_path / "out", tmp_path / "b", passphrase="another passphrase, too").code == "HB884"
    assert not (tmp_path / "b").exists()
    bring(tmp_path / "out", tmp_path / "b", passphrase=PHRASE)
    assert (tmp_path / "b" / "hubbub-ledger" / "server.key").read_text() == "k" * 43
    assert (tmp_path / "b" / "hubbub-streams" / "of-1" / "seen.stream").read_bytes() == b"C" * 50


def test_a_copy_needs_somebody_who_vouches(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out")
    assert refusal(tmp_path / "out", tmp_path / "b").code == "HB888"
    bring(tmp_path / "out", tmp_path / "b", original_is_gone=True)
    assert examined(tmp_path / "b" / "hubbub.yaml").sound


def test_an_import_replaces_and_extends_nothing(tmp_path: Path) -> None:
    config = make(tmp_path / "a", anchor=str(tmp_path / "anchor" / "ledger.anchor"))
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE)
    before = config.read_text()
    assert refusal(tmp_path / "out", tmp_path / "a").code == "HB886"
    assert config.read_text() == before
    error = refusal(tmp_path / "out", tmp_path / "b")
    assert error.code == "HB886"
    assert "anchor" in error.message
    bring(tmp_path / "out", tmp_path / "b", anchor="own.anchor")
    assert refusal(tmp_path / "out", tmp_path / "b", anchor="other.anchor").code == "HB886"


def test_half_and_altered_archives_leave_nothing_behind(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    manifest = export(load(config), tmp_path / "out", move=MOVE)
    assert refusal(tmp_path / "out", tmp_path / "b", fingerprint="0" * 64).code == "HB882"
    (tmp_path / "out" / "server.json").write_text("{}")
    assert refusal(tmp_path / "out", tmp_path / "b", fingerprint=manifest.fingerprint).code == "HB881"
    assert refusal(tmp_path / "nothing.tar.gz", tmp_path / "b").code == "HB881"
    assert not (tmp_path / "b").exists()


def test_an_import_that_fails_half_way_can_be_repeated(tmp_path: Path, postgres_dsn: str) -> None:
    """The ledger's place is taken, which shows only after other files were written."""
    taken = make(tmp_path / "other", dsn=url(postgres_dsn))
    spend(taken, 1)
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE)
    assert refusal(tmp_path / "out", tmp_path / "b", database=url(postgres_dsn)).code == "HB886"
    bring(tmp_path / "out", tmp_path / "b")
    assert examined(tmp_path / "b" / "hubbub.yaml").sound


def test_a_database_that_does_not_answer_is_named_without_its_user(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE)
    error = refusal(tmp_path / "out", tmp_path / "b", database="postgresql://hubbub@127.0.0.1:1/none")
    assert error.code == "HB889"
    assert "hubbub@" not in error.message
    bring(tmp_path / "out", tmp_path / "b")


def test_every_table_of_the_server_goes_along(tmp_path: Path) -> None:
    """A table that a later version adds must be named in the list, or it is lost by a move."""
    SqliteDatabase(tmp_path / "server.db").close()
    with closing(sqlite3.connect(tmp_path / "server.db")) as database:
        found = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        tables = dict(found.fetchall())
    assert sorted(server_state.TABLES) == sorted(tables)
    assert {name for name, sql in tables.items() if "INTEGER PRIMARY KEY" in sql} == server_state.NUMBERED
