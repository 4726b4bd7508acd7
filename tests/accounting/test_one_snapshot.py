"""A thread that reads a ledger several times can read one state of it."""

import threading
from typing import TYPE_CHECKING

import pytest

from hubbub.accounting.store import EntryFilter

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk


def test_within_one_snapshot_a_thread_reads_one_state(desk: "Desk") -> None:
    ledger = desk.open()

    def newest() -> int:
        with ledger.snapshot() as snapshot:
            return snapshot.head().sequence

    before = newest()
    elsewhere: list[int] = []
    with ledger.one_snapshot():
        assert newest() == before  # the first read decides which state
        with ledger.one_snapshot():
            desk.spend(ledger)
        assert newest() == before
        other = threading.Thread(target=lambda: elsewhere.append(newest()))
        other.start()
        other.join()
    assert (elsewhere, newest()) == ([before + 1], before + 1)


def test_a_state_that_could_not_be_read_is_not_kept(desk: "Desk") -> None:
    ledger = desk.open()
    with pytest.raises(ValueError, match="stop"), ledger.one_snapshot():
        raise ValueError("stop")
    desk.spend(ledger)
    with ledger.snapshot() as snapshot:
        assert [entry.kind for entry in snapshot.entries(EntryFilter())] == ["policy", "charge"]
