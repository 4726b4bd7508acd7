"""Totals and keys are stored now and then, by whichever process: nothing may depend on when, or by whom."""

import os
import random
import signal
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounting.conftest import POLICY, Desk, as_document

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.cost import ZERO, PrivacyCost, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.forfeit import forfeit
from hubbub.accounting.ledger import Ledger, examine, no_step, now
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.status import overview
from hubbub.accounting.totals import Balance
from hubbub.core.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from hubbub.errors import BudgetError, LedgerError


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
    return desk.totals()[0]


def spent(desk: Desk) -> dict[str, Fraction | None]:
    return desk.totals()[1]


@pytest.fixture(params=["alone", "shared", "postgres"])
def any_desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """A desk of each kind: one that has its file to itself, one that shares it, one on a server."""
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_desk")
    else:
        desk = ServerDesk(tmp_path) if request.param == "alone" else Desk(tmp_path)
        yield desk
        desk.close()


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


def test_totals_are_stored_with_the_first_charge_and_then_at_every_64th_entry(any_desk: Desk) -> None:
    seen = {}
    ledger = any_desk.open()
    for entry in range(2, 130):  # the first is the policy
        any_desk.spend(ledger, "0.001", dataset="wards")
        if entry in (2, 3, 63, 64, 65, 127, 128, 129):
            seen[entry] = (stored(any_desk)["dataset/wards"] or 0) * 1000
            assert spent(any_desk)["dataset/wards"] == Fraction(entry - 1, 1000)
    assert seen == {2: 1, 3: 1, 63: 1, 64: 63, 65: 63, 127: 63, 128: 127, 129: 127}


def test_processes_that_take_turns_grant_exactly_what_is_there(any_desk: Desk) -> None:
    """Three ledgers on one database, in random order and for random lengths; now and then one is opened anew.

    What the others did is in the entries or in the stored totals and keys, by who passed a multiple of 64 and when.
    """
    desk = Desk(any_desk.database.parent) if isinstance(any_desk, ServerDesk) else any_desk
    chance = random.Random(31)
    ledgers = [desk.open() for _ in range(3)]
    done: list[str] = []
    refused = 0
    while refused < 10:
        which = chance.randrange(3)
        if chance.random() < 0.05:
            ledgers[which].close()
            ledgers[which] = desk.open()
        for _ in range(chance.choice((1, 1, 2, 70))):
            key = f"k{len(done)}"
            try:
                charge = desk.spend(ledgers[which], "0.002", dataset="wards", key=key)
            except BudgetError:
                refused += 1
                break
            assert not charge.replayed
            done.append(key)
            if chance.random() < 0.3:
                ledgers[which].record(charge, key.encode())
        old = chance.choice(done[-200:])
        assert chance.choice(ledgers).charge(desk.request("0.002", dataset="wards", key=old)).replayed
    assert len(done) == 500
    assert spent(desk)["dataset/wards"] == 1
    assert ledgers[0].verify().sound
    desk.close()


def test_a_process_with_an_old_policy_that_keeps_a_release_stores_what_others_charged(any_desk: Desk) -> None:
    """It may not charge any more, but its entry can be the 64th, with which totals are stored: all of them."""
    desk = Desk(any_desk.database.parent) if isinstance(any_desk, ServerDesk) else any_desk
    old = desk.open()
    paid = desk.spend(old, "0.001", dataset="wards")
    new = desk.open(policy=POLICY.replace("wards: {epsilon: 1}}", "wards: {epsilon: 0.5}}"))
    while new.verify().entries < 63:
        desk.spend(new, "0.001", dataset="wards")
    old.record(paid, b"answer")
    assert stored(desk) == spent(desk)
    assert spent(desk)["dataset/wards"] == Fraction(61, 1000)
    assert new.verify().sound
    assert desk.exhaust(new, "0.1", dataset="wards")[0] == 4
    desk.close()


@pytest.mark.parametrize("charges", [1, 2, 62, 63, 64, 65, 127, 130])
@pytest.mark.parametrize("shared", [False, True])
def test_a_crash_between_two_times_loses_nothing(server: ServerDesk, charges: int, shared: bool) -> None:  # noqa: FBT001
    crash(server, charges)
    assert stored(server)["dataset/wards"] != Fraction(charges, 200) or charges in (1, 63, 127)
    desk: Desk = Desk(server.database.parent) if shared else server
    with desk.open() as ledger:
        verification = ledger.verify()
        assert (verification.sound, verification.charges) == (True, charges)
        assert spent(desk)["dataset/wards"] == Fraction(charges, 200)
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
    wider = as_document(server.policy)
    wider = wider.replace('"wards":{"budget":{"epsilon":"1"}}', '"wards":{"budget":{"epsilon":"2"}}')
    with server.open(policy=wider) as ledger:
        assert ledger.verify().sound
        assert spent(server)["dataset/wards"] == Fraction(40, 200)
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
        server.store,
        server.set_aside,
        policy=server.policy,
        anchor=FileAnchor(server.anchor),
        by="olga",
        reason="the clock",
        amount=Budget(Fraction(1, 4), Fraction(0)),
    )
    assert spent(server)["dataset/wards"] == Fraction(1, 2)
    with server.open() as ledger:
        assert server.exhaust(ledger, "0.005", dataset="wards")[0] == 100


def test_totals_that_were_edited_before_or_after_a_crash_are_found(server: ServerDesk) -> None:
    crash(server, 100)
    for edit in (
        "UPDATE totals SET spent = replace(spent, '63/200', '1/40')",
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


def test_two_that_open_together_after_a_crash_count_what_was_left_once(server: ServerDesk) -> None:
    crash(server, 50)
    desk = Desk(server.database.parent)
    slow = desk.store()
    assert examine(slow, FileAnchor(desk.anchor)).ahead  # one verifies …
    with desk.open() as quick:  # … and before it goes on, another opens and charges
        desk.spend(quick, "0.005", dataset="wards")
    ledger = Ledger(slow, desk.policy, FileAnchor(desk.anchor), now, no_step)
    assert desk.exhaust(ledger, "0.005", dataset="wards")[0] == 149
    ledger.close()
    assert spent(desk)["dataset/wards"] == 1


def test_totals_of_earlier_that_are_right_in_themselves_are_refused(server: ServerDesk) -> None:
    """They would be missed if only their sum were compared: fewer than 64 charges are not in them."""
    with server.open() as ledger:
        server.spend(ledger, "0.005", dataset="wards")
        earlier = server.ask("SELECT * FROM totals")
        for _ in range(64):
            server.spend(ledger, "0.005", dataset="wards")
    server.edit("DELETE FROM totals", *(server._insert("totals", row) for row in earlier))
    with pytest.raises(LedgerError, match="older than hubbub leaves them"):
        server.open()


EVENTS = [
    privacy_cost(event)
    for event in (
        LaplaceEvent(1, Fraction(10)),
        LaplaceEvent(1, Fraction(10, 3)),
        GaussianEvent(1, Fraction(400)),
        ThresholdEvent(LaplaceEvent(1, Fraction(10)), keys=1, above=224),
    )
]


@given(
    losses=st.lists(st.sampled_from(EVENTS), max_size=40),
    delta=st.sampled_from([Fraction(0), Fraction(1, 10**9)]),
    epsilon=st.sampled_from([Fraction(1), Fraction(3, 10), Fraction(7, 3)]),
)
def test_a_balance_decides_as_the_filters_do_on_the_sum(
    losses: list[PrivacyCost], delta: Fraction, epsilon: Fraction
) -> None:
    budget, balance, total = Budget(epsilon, delta), Balance("cap", ZERO), ZERO
    for number, loss in enumerate(losses):
        admitted = admits(budget, total, loss)
        assert balance.admits(budget, loss) is admitted
        if admitted:
            balance.add(loss, number)
            total += loss
    assert balance.total() == total
