"""A policy that changes while charges are made: each falls under the old one or the new one, never under none."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.accounting.conftest import Desk as FileDesk

from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import EntryFilter
from hubbub.config.policy import parse_policy
from hubbub.errors import BudgetError, HubbubError, LedgerError, ParameterError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk


def policy(ana: str, *, zoe: bool = False, most: str = "6") -> str:
    return f"""
version: 1
datasets:
  visits: {{budget: {{epsilon: {most}}}}}
analysts:
  ana: {{visits: {{epsilon: {ana}}}}}
  ben: {{visits: {{epsilon: 1}}}}
{"  zoe: {visits: {epsilon: 1}}" if zoe else ""}
"""


class Alone(FileDesk):
    """A desk whose totals may lag behind, as those of a server that has its file to itself."""

    def store(self, **options: bool | float) -> SqliteStore:
        return SqliteStore(self.database, exclusive=not options.get("read_only"), **options)  # type: ignore[arg-type]


@pytest.fixture(params=["sqlite", "alone", "postgres"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["Desk"]:
    if request.param == "alone":
        alone = Alone(tmp_path)
        yield alone
        alone.close()
    else:
        yield request.getfixturevalue("file_desk" if request.param == "sqlite" else "postgres_desk")


def test_a_raised_cap_is_spent_up_to_and_no_further(desk: "Desk") -> None:
    with desk.open(policy=policy("0.3")) as ledger:
        assert desk.exhaust(ledger, "0.1")[0] == 3
        ledger.govern(parse_policy(policy("0.5")))
        assert ledger.policy.text == parse_policy(policy("0.5")).text
        assert desk.exhaust(ledger, "0.1")[0] == 2
        ledger.govern(parse_policy(policy("0.2")))
        assert desk.exhaust(ledger, "0.1")[0] == 0
        assert ledger.verify().sound


def test_the_change_stands_in_the_chain_once(desk: "Desk") -> None:
    with desk.open(policy=policy("0.3")) as ledger:
        desk.spend(ledger)
        for _ in range(3):
            ledger.govern(parse_policy(policy("0.5")))
        desk.spend(ledger)
        with ledger.snapshot() as snapshot:
            entries = list(snapshot.entries(EntryFilter()))
    assert [entry.kind for entry in entries] == ["policy", "charge", "policy", "charge"]
    assert [entry.config for entry in entries[1:]] == [parse_policy(policy(cap)).hash for cap in ("0.3", "0.5", "0.5")]


def test_what_was_charged_before_a_change_is_still_charged_after_a_restart(desk: "Desk") -> None:
    with desk.open(policy=policy("0.3")) as ledger:
        desk.spend(ledger, "0.2")
        ledger.govern(parse_policy(policy("0.5")))
        desk.spend(ledger, "0.1")
    with desk.open(policy=policy("0.5")) as ledger:
        assert desk.exhaust(ledger, "0.1")[0] == 2
        assert ledger.verify().sound


def test_a_new_analyst_may_spend_and_a_removed_one_may_not(desk: "Desk") -> None:
    with desk.open(policy=policy("1")) as ledger:
        with pytest.raises(ParameterError, match="HB121"):
            desk.spend(ledger, analyst="zoe")
        ledger.govern(parse_policy(policy("1", zoe=True)))
        desk.spend(ledger, analyst="zoe")
        ledger.govern(parse_policy(policy("1")))
        with pytest.raises(ParameterError, match="HB121"):
            desk.spend(ledger, analyst="zoe")
        desk.spend(ledger)


def test_a_charge_that_waits_while_its_analyst_is_removed_is_refused_and_the_ledger_goes_on(desk: "Desk") -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hold(step: str) -> None:
        if step == "committing" and threading.current_thread().name == "slow":
            inside.set()
            assert go_on.wait(30)

    errors: list[HubbubError] = []

    def zoe() -> None:
        try:
            desk.spend(ledger, analyst="zoe")
        except HubbubError as error:
            errors.append(error)

    with desk.open(policy=policy("1", zoe=True), on_step=hold) as ledger:
        slow = threading.Thread(target=desk.spend, args=(ledger,), name="slow")
        change = threading.Thread(target=ledger.govern, args=(parse_policy(policy("1")),))
        late = threading.Thread(target=zoe)
        slow.start()
        assert inside.wait(30)
        for number, thread in enumerate((change, late), 1):
            thread.start()
            while len(ledger._group_commit._queue) < number:
                thread.join(0.001)
        go_on.set()
        for thread in (slow, change, late):
            thread.join(30)
        assert [error.code for error in errors] == ["HB121"]
        desk.spend(ledger)
        assert ledger.verify().sound


def test_charges_during_changes_fall_under_the_old_or_the_new_policy(desk: "Desk") -> None:
    """Eight threads charge while the caps go up in twelve steps; in the end exactly the last caps are spent.

    Every grant stands in the chain under the policy that was in force there (verification checks that), and no cap
    is passed under the policy that its charge names.
    """
    steps = [str(Fraction(number, 4)) for number in range(1, 13)]
    done = threading.Event()

    def spend(analyst: str) -> list[int]:
        granted = []
        while True:
            last = done.is_set()
            try:
                granted.append(desk.spend(ledger, "0.05", analyst=analyst).sequence)
            except BudgetError:
                if last:
                    return granted

    with desk.open(policy=policy(steps[0], most="4")) as ledger, ThreadPoolExecutor(8) as pool:
        work = [pool.submit(spend, analyst) for analyst in ("ana", "ben") * 4]
        for step in steps[1:]:
            ledger.govern(parse_policy(policy(step, most="4")))
        done.set()
        granted = [sequence for each in work for sequence in each.result(60)]
        verification = ledger.verify()
        assert verification.sound, verification.report()
        with ledger.snapshot() as snapshot:
            charges = list(snapshot.entries(EntryFilter(kind="charge")))
    assert [charge.sequence for charge in charges] == sorted(granted)
    of_ana = [charge for charge in charges if charge.analyst == "ana"]
    assert len(of_ana) == 60  # 3 / 0.05
    assert len(charges) - len(of_ana) == 20  # 1 / 0.05
    caps = {parse_policy(policy(step, most="4")).hash: Fraction(step) for step in steps}
    for number, charge in enumerate(of_ana, 1):
        assert number * Fraction("0.05") <= caps[charge.config]


def test_another_process_goes_on_when_it_is_governed_alike(postgres_desk: "Desk") -> None:
    with postgres_desk.open(policy=policy("1")) as first, postgres_desk.open(policy=policy("1")) as second:
        first.govern(parse_policy(policy("2")))
        with pytest.raises(LedgerError, match="HB312"):
            postgres_desk.spend(second)
        second.govern(parse_policy(policy("2")))
        postgres_desk.spend(second)
        postgres_desk.spend(first)
        with second.snapshot() as snapshot:
            assert [e.kind for e in snapshot.entries(EntryFilter())] == ["policy", "policy", "charge", "charge"]
        assert second.verify().sound
