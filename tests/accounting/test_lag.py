"""A server that nobody shares its file with stores totals now and then: nothing may depend on when."""

import json
import os
import signal
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounting.conftest import Desk

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.forfeit import forfeit
from hubbub.accounting.inspection import overview
from hubbub.accounting.ledger import Ledger, examine, no_step, now
from hubbub.accounting.price import ZERO, Price, price
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.totals import Balance
from hubbub.core.events import Gaussian, Laplace, Threshold
from hubbub.errors import LedgerError


class ServerDesk(Desk):
    """Opens its file as a server does."""

    def store(self, **options: bool | float) -> SqliteStore:
        return SqliteStore(self.database, exclusive=not options.get("read_only"), **options)  # type: ignore[arg-type]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerDesk]:
    desk = ServerDesk(tmp_path)
    yield desk
    desk.close()


def stored(desk: Desk) -> dict[str, Fraction | None]:
    store = desk.store(read_only=True)
    with store.snapshot() as snapshot:
        totals = snapshot.totals()
    store.close()
    return {cap: Price.from_json(json.loads(total.spent)).pure for cap, total in totals.items()}


def crash(desk: Desk, charges: int, *, release: bool = False) -> None:
    """Serve in a child that is killed right after its last charge was acknowledged."""
    child = os.fork()
    if child == 0:
        try:
            ledger = desk.open()
            for number in range(charges):
                charge = desk.spend(ledger, "0.005", dataset="wards", key=f"served {number}")
                if release:
                    ledger.record(charge, b"answer %d" % number)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_totals_are_stored_with_the_first_charge_and_then_every_64_entries(server: ServerDesk) -> None:
    seen = []
    ledger = server.open()
    for _ in range(140):
        server.spend(ledger, "0.001", dataset="wards")
        seen.append(stored(server)["dataset/wards"])
    changes = [number + 1 for number in range(1, 140) if seen[number] != seen[number - 1]]
    assert (seen[0], changes) == (Fraction(1, 1000), [65, 129])
    assert seen[-1] == Fraction(129, 1000)


def test_whoever_shares_the_file_stores_totals_with_every_charge(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ledger = desk.open()
    for number in range(1, 5):
        desk.spend(ledger, "0.1", dataset="wards")
        assert stored(desk)["dataset/wards"] == Fraction(number, 10)
    desk.close()


@pytest.mark.parametrize("charges", [1, 2, 63, 64, 65, 66, 130])
@pytest.mark.parametrize("shared", [False, True])
def test_a_crash_between_two_times_loses_nothing(server: ServerDesk, charges: int, shared: bool) -> None:  # noqa: FBT001
    crash(server, charges)
    assert stored(server)["dataset/wards"] != Fraction(charges, 200) or charges in (1, 65)
    desk: Desk = Desk(server.database.parent) if shared else server
    with desk.open() as ledger:
        verification = ledger.verify()
        assert (verification.sound, verification.charges) == (True, charges)
        assert stored(desk)["dataset/wards"] == Fraction(charges, 200)
        assert desk.exhaust(ledger, "0.005", dataset="wards")[0] == 200 - charges


def test_a_crash_loses_no_key_and_no_release(server: ServerDesk) -> None:
    crash(server, 40, release=True)
    with server.open() as ledger:
        for number in range(40):
            replay = ledger.charge(server.request("0.005", dataset="wards", key=f"served {number}"))
            assert (replay.replayed, replay.release) == (True, b"answer %d" % number)
        assert ledger.verify().charges == 40


def test_crash_after_crash_and_a_policy_that_changed_in_between(server: ServerDesk) -> None:
    crash(server, 30)
    crash(server, 40)  # the first 30 of these are replays
    wider = server.policy.text.replace('"wards":{"budget":{"epsilon":"1"}}', '"wards":{"budget":{"epsilon":"2"}}')
    with server.open(policy=wider) as ledger:
        assert ledger.verify().sound
        assert stored(server)["dataset/wards"] == Fraction(40, 200)
        assert server.exhaust(ledger, "0.005", dataset="wards")[0] == 160  # ana's own cap is still 1
        assert ledger.verify().sound


def test_what_is_left_is_right_between_two_times(server: ServerDesk) -> None:
    ledger = server.open()
    for number in range(1, 100):
        server.spend(ledger, "0.005", dataset="wards", query=f"count {number}")
        with ledger.snapshot() as snapshot:
            seen = overview(snapshot, server.policy, "ana", "wards", ledger.time())
        assert (seen.largest, seen.last) == (1 - Fraction(number, 200), f"count {number}")


def test_a_forfeit_after_a_crash_adds_to_what_was_charged(server: ServerDesk) -> None:
    crash(server, 50)
    forfeit(
        server.store, server.set_aside, policy=server.policy, anchor=FileAnchor(server.anchor), by="olga",
        reason="the clock", amount=Budget(Fraction(1, 4), Fraction(0)),
    )  # fmt: skip
    assert stored(server)["dataset/wards"] == Fraction(1, 2)
    with server.open() as ledger:
        assert server.exhaust(ledger, "0.005", dataset="wards")[0] == 100


def test_totals_that_were_edited_before_or_after_a_crash_are_found(server: ServerDesk) -> None:
    crash(server, 100)
    for edit in (
        "UPDATE totals SET spent = replace(spent, '13/40', '1/40')",
        "UPDATE totals SET sequence = sequence - 1",
        "UPDATE totals SET sequence = sequence + 1",
        "DELETE FROM totals",
        "DELETE FROM totals WHERE cap = 'dataset/wards'",
    ):
        honest = server.database.read_bytes(), Path(f"{server.database}-wal").read_bytes()
        server.edit(edit)
        with pytest.raises(LedgerError, match=r"totals|total of"):
            server.open()
        server.database.write_bytes(honest[0])
        Path(f"{server.database}-wal").write_bytes(honest[1])
        Path(f"{server.database}-shm").unlink(missing_ok=True)
    server.open()


def test_two_that_open_together_after_a_crash_store_what_was_left_once(server: ServerDesk) -> None:
    crash(server, 50)
    desk = Desk(server.database.parent)
    slow = desk.store()
    verification = examine(slow, FileAnchor(desk.anchor))  # one verifies …
    with desk.open() as quick:  # … and before it goes on, another opens and charges
        desk.spend(quick, "0.005", dataset="wards")
    ledger = Ledger(slow, desk.policy, FileAnchor(desk.anchor), now, no_step)
    assert verification.ahead
    assert not ledger.adopt(verification)
    ledger.close()
    with desk.open() as ledger:
        assert stored(desk)["dataset/wards"] == Fraction(51, 200)
        assert ledger.verify().sound


EVENTS = [
    price(event) for event in (
        Laplace(1, Fraction(10)), Laplace(1, Fraction(10, 3)), Gaussian(1, Fraction(400)),
        Threshold(Laplace(1, Fraction(10)), Fraction(1, 10**10)),
    )
]  # fmt: skip


@given(
    losses=st.lists(st.sampled_from(EVENTS), max_size=40),
    delta=st.sampled_from([Fraction(0), Fraction(1, 10**9)]),
    epsilon=st.sampled_from([Fraction(1), Fraction(3, 10), Fraction(7, 3)]),
)
def test_a_balance_decides_as_the_filters_do_on_the_sum(
    losses: list[Price], delta: Fraction, epsilon: Fraction
) -> None:
    budget, balance, total = Budget(epsilon, delta), Balance("cap", ZERO), ZERO
    for number, loss in enumerate(losses):
        admitted = admits(budget, total, loss)
        assert balance.admits(budget, loss) is admitted
        if admitted:
            balance.add(loss, number)
            total += loss
    assert balance.total() == total
