import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hubbub.accounting.anchor import FileAnchor, TwoAnchors, default_path, former_path
from hubbub.accounting.chain import Mark
from hubbub.errors import LedgerError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

SLOT = 4096


def mark(sequence: int, ledger: str = "a" * 32) -> Mark:
    return Mark(ledger, sequence, bytes([sequence % 256]) * 32)


def refused(action: Callable[[], object], code: str) -> LedgerError:
    with pytest.raises(LedgerError) as refusal:
        action()
    assert refusal.value.code == code, str(refusal.value)
    assert refusal.value.remedy
    return refusal.value


# --- the file


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock for the slots: the last of these."""
    ticks = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: ticks[-1])
    return ticks


def test_the_newest_mark_is_read_back(tmp_path: Path, seconds: list[float]) -> None:
    anchor = FileAnchor(tmp_path / "deep" / "down" / "x.anchor")
    assert anchor.read() is None
    anchor.reset(mark(0))
    for sequence in range(1, 200):
        seconds.append(sequence / 7)
        anchor.write(mark(sequence))
        assert anchor.read() == mark(sequence)
    anchor.close()
    assert FileAnchor(tmp_path / "deep" / "down" / "x.anchor").read() == mark(199)


def test_a_torn_slot_is_ignored_whichever_bytes_were_lost(tmp_path: Path, seconds: list[float]) -> None:
    path = tmp_path / "x.anchor"
    anchor = FileAnchor(path)
    anchor.reset(mark(1))
    seconds.append(1.0)
    anchor.write(mark(2))  # slot 1
    seconds.append(2.0)
    anchor.write(mark(3))  # slot 0
    anchor.close()
    whole = path.read_bytes()
    length = whole.index(b"\n")
    for lost in range(length + 1):
        path.write_bytes(whole[:lost] + b"\0" * (SLOT - lost) + whole[SLOT:])
        assert FileAnchor(path).read() == mark(2), lost
    for flipped in range(length):
        path.write_bytes(whole[:flipped] + bytes([whole[flipped] ^ 1]) + whole[flipped + 1 :])
        assert FileAnchor(path).read() == mark(2), flipped


def test_the_slot_that_is_not_in_use_was_synced(
    tmp_path: Path, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the power fails, one slot is whole: the other is only written after a sync."""
    events: list[str] = []
    real_write, real_sync = os.pwrite, os.fdatasync

    def write(file: int, content: bytes, place: int) -> int:
        events.append(f"slot {place // SLOT}")
        return real_write(file, content, place)

    def sync(file: int) -> None:
        events.append("sync")
        real_sync(file)

    monkeypatch.setattr(os, "pwrite", write)
    monkeypatch.setattr(os, "fdatasync", sync)
    anchor = FileAnchor(tmp_path / "x.anchor")
    anchor.reset(mark(0))
    events.clear()
    for tick in (10.1, 10.2, 11.3, 11.4, 12.5, 14.6):
        seconds.append(tick)
        anchor.write(mark(len(seconds)))
    anchor.close()
    assert events == [
        "sync",
        "slot 0",
        "slot 0",
        "sync",
        "slot 1",
        "slot 1",
        "sync",
        "slot 0",
        "sync",
        "slot 0",
        "sync",
    ]


def test_a_file_without_a_readable_slot_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.anchor"
    path.write_bytes(b"nonsense")
    refused(FileAnchor(path).read, "HB310")


@pytest.mark.parametrize("content", [b"", b"\0" * 8192])
def test_a_file_whose_first_mark_never_came_is_no_anchor(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.anchor").write_bytes(content)
    assert FileAnchor(tmp_path / "x.anchor").read() is None


def test_a_reset_may_go_back(tmp_path: Path, seconds: list[float]) -> None:
    anchor = FileAnchor(tmp_path / "x.anchor")
    anchor.reset(mark(100))
    seconds.append(1.0)
    anchor.write(mark(101))
    anchor.reset(mark(5))
    assert anchor.read() == mark(5)
    anchor.close()


# --- with a ledger


def test_an_older_copy_of_the_database_is_refused(desk: "Desk") -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    backup = desk.backup()
    with desk.open() as ledger:
        desk.spend(ledger)
    desk.restore(backup)
    error = refused(desk.open, "HB307")
    assert "1 entries ahead, so the database is an older copy" in error.message
    assert "hubbub admin forfeit" in error.remedy


def test_an_anchor_behind_the_database_is_accepted(desk: "Desk", tmp_path: Path) -> None:
    for _ in range(4):
        if desk.anchor.exists():
            shutil.copy(desk.anchor, tmp_path / "old.anchor")
        with desk.open() as ledger:
            desk.spend(ledger)
        if (tmp_path / "old.anchor").exists():
            shutil.copy(tmp_path / "old.anchor", desk.anchor)  # as if the power had failed before it was on the disk
    with desk.open() as ledger:
        assert ledger.verify().charges == 4
        assert FileAnchor(desk.anchor).read() == ledger.verify().head


def test_a_different_history_of_the_same_length_is_refused(desk: "Desk", tmp_path: Path) -> None:
    desk.open().close()
    backup = desk.backup()
    shutil.copy(desk.anchor, tmp_path / "first")
    with desk.open() as ledger:
        desk.spend(ledger, "0.5")
    shutil.copy(desk.anchor, tmp_path / "newest")
    desk.restore(backup)
    shutil.copy(tmp_path / "first", desk.anchor)
    with desk.open() as ledger:
        desk.spend(ledger, "0.001")
        desk.spend(ledger, "0.001")
    shutil.copy(tmp_path / "newest", desk.anchor)
    error = refused(desk.open, "HB307")
    assert "does not match the anchor" in error.message


def test_a_new_database_beside_the_old_anchor_is_refused(desk: "Desk") -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    desk.destroy()
    error = refused(desk.open, "HB307")
    assert "belongs to another ledger" in error.message


def test_a_missing_anchor_is_refused_unless_the_ledger_is_new(desk: "Desk") -> None:
    desk.open().close()
    desk.anchor.unlink()
    error = refused(desk.open, "HB308")
    assert "anchor is missing" in error.message


def test_a_crash_between_database_and_anchor_locks_nobody_out(desk: "Desk") -> None:
    desk.store().close()
    assert not desk.anchor.exists()
    with desk.open() as ledger:
        desk.spend(ledger)
    desk.open().close()


def test_a_damaged_anchor_is_refused(desk: "Desk") -> None:
    desk.open().close()
    desk.anchor.write_bytes(b"x" * 8192)
    refused(desk.open, "HB310")


def test_an_anchor_that_cannot_be_written_is_refused_before_anything_is_charged(desk: "Desk") -> None:
    desk.anchor.parent.write_text("a file where the folder should be")
    refused(desk.open, "HB309")
    desk.anchor.parent.unlink()
    desk.open().close()
    desk.anchor.unlink()
    desk.anchor.mkdir()
    refused(desk.open, "HB309")
    desk.anchor.rmdir()
    store = desk.store()
    with store.snapshot() as snapshot:
        assert snapshot.head().sequence == 1  # the policy, and no charge
    store.close()


def test_an_anchor_that_fails_later_stops_the_ledger(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = desk.open()

    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        refused(lambda: desk.spend(ledger, key="last"), "HB301")
    refused(lambda: desk.spend(ledger), "HB301")
    ledger.close()
    with desk.open() as again:
        # it was durable, so it is not lost: the retry gets the same charge
        assert again.charge(desk.request(key="last")).replayed


def test_the_anchor_follows_every_commit(desk: "Desk") -> None:
    ledger = desk.open()
    for _ in range(5):
        charge = desk.spend(ledger)
        newest = FileAnchor(desk.anchor).read()
        assert newest is not None
        assert (newest.sequence, newest.hash) == (charge.sequence, charge.entry.hash)


def test_the_default_place_is_a_folder_of_its_own() -> None:
    assert former_path(Path("/srv/ledger.sqlite")) == Path("/srv/anchor/ledger.sqlite.anchor")


# --- where it is


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for anchors."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_default_place_is_outside_the_folder_of_the_ledger(tmp_path: Path, state: Path) -> None:
    place = default_path(tmp_path / "project" / "ledger.sqlite")
    assert place.is_relative_to(state / "hubbub" / "anchors")
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "project")
    assert default_path(tmp_path / "link" / "ledger.sqlite") == place
    assert default_path(tmp_path / "other" / "ledger.sqlite") != place


@pytest.mark.parametrize("given", ["", "relative/state"])
def test_without_a_folder_for_state_the_home_has_one(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", given)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_path(Path("/srv/ledger.sqlite")).is_relative_to("/home/somebody/.local/state/hubbub/anchors")


def test_the_first_of_two_anchors_is_believed_and_both_are_written(tmp_path: Path) -> None:
    first, second = tmp_path / "home" / "x.anchor", tmp_path / "beside" / "x.anchor"
    FileAnchor(second).reset(mark(5))
    both = TwoAnchors(FileAnchor(first), FileAnchor(second))
    assert both.read() == mark(5), "an earlier version's anchor is honoured"
    both.write(mark(6))
    both.write(mark(7))
    both.close()
    assert (FileAnchor(first).read(), FileAnchor(second).read()) == (mark(7), mark(7))
    FileAnchor(second).reset(mark(9, ledger="b" * 32))  # as a restored folder may bring it
    assert TwoAnchors(FileAnchor(first), FileAnchor(second)).read() == mark(7)


def test_where_the_home_cannot_be_used_the_earlier_anchor_serves_alone(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    first, second = tmp_path / "home" / "deep" / "x.anchor", tmp_path / "beside" / "x.anchor"
    FileAnchor(second).reset(mark(5))
    both = TwoAnchors(FileAnchor(first), FileAnchor(second))
    assert both.read() == mark(5)
    both.write(mark(6))
    both.close()
    assert FileAnchor(second).read() == mark(6)


def test_a_damaged_anchor_at_home_is_not_passed_over(tmp_path: Path) -> None:
    first, second = tmp_path / "home" / "x.anchor", tmp_path / "beside" / "x.anchor"
    FileAnchor(second).reset(mark(5))
    first.parent.mkdir()
    first.write_bytes(b"damaged" * 100)
    refused(TwoAnchors(FileAnchor(first), FileAnchor(second)).read, "HB310")
