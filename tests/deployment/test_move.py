"""A move: one place can spend, whatever was asked meanwhile, and a witness tells of a second import."""

import threading
from pathlib import Path

import pytest
from tests.deployment.test_import import MOVE, bring, refusal
from tests.fixtures.moved_deployment import SQL, examined, hashes, make, put_data, spend
from tests.fixtures.server_config import url

import hubbub
from hubbub.accounting.store import EntryFilter
from hubbub.config import load
from hubbub.curator.opening import store_of
from hubbub.deployment.arrival import Arrival, import_archive
from hubbub.deployment.export import export
from hubbub.errors import BudgetError, DeploymentError, LedgerError


def charges(config: Path) -> set[str]:
    """The keys of all charges."""
    store = store_of(load(config), read_only=True)
    try:
        with store.snapshot() as snapshot:
            return {entry.key for entry in snapshot.entries(EntryFilter(kind="charge"))}
    finally:
        store.close()


def test_the_original_of_a_move_can_spend_nothing(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE)
    with pytest.raises(LedgerError, match="HB894"):
        spend(config, 1)
    assert examined(config).sound, "it verifies, and is closed"
    assert examined(config).moved == 4


def test_a_move_that_was_cut_off_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The original is closed, and the archive is not written: the second export has the same entries."""
    config = make(tmp_path / "a")
    spend(config, 1)
    with monkeypatch.context() as patched:
        patched.setattr("hubbub.deployment.export.copy_to_file", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            export(load(config), tmp_path / "out", move=MOVE)
    assert not (tmp_path / "out").exists()
    manifest = export(load(config), tmp_path / "out", move=MOVE)
    assert (manifest.sequence, manifest.ended) == (3, (4, hashes(config)[3].hex()))
    bring(tmp_path / "out", tmp_path / "b")
    spend(tmp_path / "b" / "hubbub.yaml", 2)


def test_charges_during_a_move_are_in_the_archive_or_refused(tmp_path: Path, postgres_dsn: str) -> None:
    config = make(tmp_path / "a", dsn=url(postgres_dsn))
    paid: list[str] = []
    with hubbub.open(config, analyst="ana") as session:
        started, refused = threading.Event(), threading.Event()

        def ask() -> None:
            for number in range(10_000):
                try:
                    session.query(
                        f"{SQL} WHERE age > {number} / 1000.0", epsilon="0.0001", key=f"key-of-number-{number:05}"
                    )
                except BudgetError:
                    refused.set()
                    return
                paid.append(f"key-of-number-{number:05}")
                started.set()

        asking = threading.Thread(target=ask)
        asking.start()
        assert started.wait(30)
        export(load(config), tmp_path / "out", move=MOVE)
        assert refused.wait(30)
        asking.join()
    bring(tmp_path / "out", tmp_path / "b", database="hubbub-ledger/ledger.db")
    known = charges(tmp_path / "b" / "hubbub.yaml")
    assert paid
    assert {key for key in paid if not any(key in each for each in known)} == set()
    assert len(known) == len(charges(config))


def test_an_original_that_was_used_after_its_move_is_not_moved_again(tmp_path: Path) -> None:
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE)
    from hubbub.cli import main

    assert main(["admin", "forfeit", "--by", "olga", "--reason", "lost it", "--yes", "-c", str(config)]) == 0
    config.write_text(config.read_text().replace("epsilon: 3", "epsilon: 9"))
    spend(config, 2)
    with pytest.raises(DeploymentError, match="HB885"):
        export(load(config), tmp_path / "again", move=MOVE)


@pytest.mark.parametrize("kind", ["move", "copy"])
def test_a_witness_refuses_a_second_import_and_the_original(kind: str, tmp_path: Path) -> None:
    config = make(tmp_path / "a", witness=f"file:{tmp_path / 'witness.log'}")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE if kind == "move" else None)
    bring(tmp_path / "out", tmp_path / "b")
    spend(tmp_path / "b" / "hubbub.yaml", 2)
    assert refusal(tmp_path / "out", tmp_path / "c", original_is_gone=True).code == "HB887"
    with pytest.raises(LedgerError, match="HB307"):
        spend(config, 3)


def test_a_witness_refuses_a_copy_whose_original_went_on(tmp_path: Path) -> None:
    config = make(tmp_path / "a", witness=f"file:{tmp_path / 'witness.log'}")
    spend(config, 1)
    export(load(config), tmp_path / "out")
    spend(config, 2)
    assert refusal(tmp_path / "out", tmp_path / "b", original_is_gone=True).code == "HB887"
    spend(config, 3)


def test_without_a_witness_two_imports_do_not_know_of_each_other(tmp_path: Path) -> None:
    """What docs/known-limits.md says."""
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE)
    for name in ("b", "c"):
        import_archive(Arrival(source=tmp_path / "out", folder=tmp_path / name, by="olga", reason="moved"))
        put_data(tmp_path / name)
        spend(tmp_path / name / "hubbub.yaml", 2)
