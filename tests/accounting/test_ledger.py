import os
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.accounting.conftest import as_document

from hubbub.accounting.calls import Charge, ChargeRequest
from hubbub.accounting.chain import canonical
from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.policy import DAY
from hubbub.accounting.refusal import CapError
from hubbub.accounting.store import STEPS, EntryFilter
from hubbub.accounting.totals import total_text
from hubbub.accounting.transaction import TOLERANCE
from hubbub.config.policy import parse_policy
from hubbub.core.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from hubbub.errors import BudgetError, LedgerError, ParameterError

POLICY = """
version: 1
datasets:
  visits: {budget: {epsilon: 6, delta: 1e-9, per_query: 0.5}}
analysts:
  ana: {visits: {epsilon: 2}}
"""

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk


def spent(desk: "Desk") -> dict[str, Fraction | None]:
    return desk.totals()[1]


def test_a_charge_counts_under_every_cap_at_once(desk: "Desk") -> None:
    with desk.open() as ledger:
        desk.spend(ledger, "0.5")
        desk.spend(ledger, "0.25", analyst="ben")
        desk.spend(ledger, "0.125", analyst="cleo")
    assert spent(desk) == {
        "analyst/ana/visits": Fraction("0.5"),
        "analyst/ben/visits": Fraction("0.25"),
        "analyst/cleo/visits": Fraction("0.125"),
        "group/interns/visits": Fraction("0.75"),
        "dataset/visits": Fraction("0.875"),
    }


def test_exactly_as_many_charges_are_granted_as_the_cap_holds(desk: "Desk") -> None:
    granted, refusal = desk.exhaust(desk.open(), "0.1")
    assert (granted, refusal.code) == (20, "HB201")
    assert spent(desk)["analyst/ana/visits"] == 2


@pytest.mark.parametrize(
    ("analyst", "cap"), [("ana", "analyst/ana/visits"), ("ben", "group/interns/visits"), ("cleo", "dataset/visits")]
)
def test_a_refusal_by_any_one_cap_charges_nothing(desk: "Desk", analyst: str, cap: str) -> None:
    ledger = desk.open()
    desk.exhaust(ledger, "0.3", analyst=analyst)
    before, totals = ledger.verify(), spent(desk)
    assert totals[cap] is not None
    with pytest.raises(BudgetError):
        desk.spend(ledger, "0.3", analyst=analyst)
    assert (ledger.verify(), spent(desk)) == (before, totals)


def test_a_query_above_its_own_cap_is_refused(desk: "Desk") -> None:
    ledger = desk.open()
    with pytest.raises(BudgetError, match="for one query on visits"):
        desk.spend(ledger, "0.51")
    desk.spend(ledger, "0.5")


def test_a_cap_without_a_delta_takes_no_event_that_needs_one(desk: "Desk") -> None:
    ledger = desk.open()
    for event in (GaussianEvent(1, Fraction(400)), ThresholdEvent(LaplaceEvent(1, Fraction(10)), keys=2, above=300)):
        with pytest.raises(BudgetError, match="needs a δ"):
            ledger.charge(desk.request(dataset="wards", event=event))
        ledger.charge(desk.request(event=event))


def test_who_is_unknown_is_refused_and_nothing_is_charged(desk: "Desk") -> None:
    ledger = desk.open()
    for analyst, dataset in (("eve", "visits"), ("ana", "secrets"), ("cleo", "wards")):
        with pytest.raises(ParameterError):
            desk.spend(ledger, analyst=analyst, dataset=dataset)
    assert ledger.verify().charges == 0


@pytest.mark.parametrize(
    "wrong", [{"key": "k" * 201}, {"key": "a\0b"}, {"query": "\0"}, {"version": "\0"}, {"query": "\ud800"}]
)
def test_text_that_cannot_be_kept_is_refused(desk: "Desk", wrong: dict[str, str]) -> None:
    ledger = desk.open()
    with pytest.raises(ParameterError) as refusal:
        ledger.charge(desk.request(**wrong))  # type: ignore[arg-type]
    assert refusal.value.code == "HB123"
    assert ledger.verify().charges == 0


def test_an_empty_key_is_refused(desk: "Desk") -> None:
    with pytest.raises(ParameterError, match="HB123"):
        desk.open().charge(desk.request()._replace(key=""))


# --- keys and releases


def test_the_same_key_and_request_is_one_charge_and_one_release(desk: "Desk") -> None:
    ledger = desk.open()
    request = desk.request(key="once")
    first = ledger.charge(request)
    again = ledger.charge(request)
    assert (again.entry, again.release, again.replayed) == (first.entry, None, True)
    assert ledger.record(first, b"42 people") == b"42 people"
    assert ledger.record(again, b"43 people") == b"42 people"
    last = ledger.charge(request)
    assert (last.entry, last.release, last.replayed) == (first.entry, b"42 people", True)
    assert spent(desk)["dataset/visits"] == Fraction("0.1")


def test_a_replay_is_the_same_after_a_restart(desk: "Desk") -> None:
    request = desk.request(key="once")
    with desk.open() as ledger:
        charge = ledger.charge(request)
        ledger.record(charge, b"\x00\xff bytes")
    with desk.open() as ledger:
        assert ledger.charge(request) == Charge(charge.entry, b"\x00\xff bytes", replayed=True)


def test_the_same_key_with_another_request_is_refused(desk: "Desk") -> None:
    ledger = desk.open()
    ledger.charge(desk.request(key="once"))
    for other in (desk.request("0.2", key="once"), desk.request(key="once", query="sum")):
        with pytest.raises(ParameterError) as refusal:
            ledger.charge(other)
        assert refusal.value.code == "HB124"
    assert ledger.verify().charges == 1


def test_a_retry_after_the_data_changed_is_the_same_request(desk: "Desk") -> None:
    ledger = desk.open()
    first = ledger.charge(desk.request(key="once", version="v1"))
    assert ledger.charge(desk.request(key="once", version="v2")).entry == first.entry


def test_a_key_belongs_to_one_analyst(desk: "Desk") -> None:
    ledger = desk.open()
    first = ledger.charge(desk.request(key="once", analyst="ana"))
    other = ledger.charge(desk.request(key="once", analyst="ben"))
    assert other.entry != first.entry
    assert not other.replayed


def test_a_replay_is_free_even_when_nothing_is_left(desk: "Desk") -> None:
    ledger = desk.open()
    charges = [ledger.charge(desk.request("0.5", key=f"k{n}")) for n in range(4)]
    ledger.record(charges[0], b"kept")
    with pytest.raises(BudgetError):
        desk.spend(ledger, "0.5")
    assert ledger.charge(desk.request("0.5", key="k0")).release == b"kept"


def test_a_charge_without_a_release_is_shown_as_such(desk: "Desk") -> None:
    ledger = desk.open()
    kept, lost = desk.spend(ledger), desk.spend(ledger)
    ledger.record(kept, b"answer")
    assert (ledger.verify().charges, ledger.verify().releases) == (2, 1)
    with ledger.snapshot() as snapshot:
        assert snapshot.released(1, 100) == {kept.sequence}
    assert lost.sequence != kept.sequence


def test_a_release_needs_a_charge_of_this_ledger(desk: "Desk", tmp_path: Path) -> None:
    ledger = desk.open()
    charge = desk.spend(ledger)
    forged = Charge(charge.entry._replace(sequence=99))
    with pytest.raises(LedgerError) as refusal:
        ledger.record(forged, b"answer")
    assert refusal.value.code == "HB315"


# --- several datasets at once


def both(desk: "Desk", epsilon: str, key: str) -> list[ChargeRequest]:
    return [desk.request(epsilon, dataset=name, key=f"{key} {name}") for name in ("visits", "wards")]


def one_by_one(ledger: Ledger, requests: list[ChargeRequest]) -> list[Charge]:
    """What a joint charge must not be."""
    return [ledger.charge(request) for request in requests]


@pytest.mark.parametrize("joint", [Ledger.charge_all, one_by_one])
def test_a_refusal_on_one_data_set_charges_nothing_on_the_other(
    desk: "Desk", joint: Callable[[Ledger, list[ChargeRequest]], list[Charge]]
) -> None:
    ledger = desk.open()
    desk.spend(ledger, "0.9", dataset="wards")
    before, totals = ledger.verify(), spent(desk)
    with pytest.raises(CapError, match=r"0\.1 is left for ana on wards") as refusal:
        joint(ledger, both(desk, "0.2", "joint"))
    kept = (ledger.verify(), spent(desk)) == (before, totals)
    assert kept is (joint is not one_by_one)  # two charges leave the first behind: the check can fail
    if kept:
        assert refusal.value.largest == Fraction("0.1")
        charges = ledger.charge_all(both(desk, "0.1", "joint"))
        assert [charge.sequence for charge in charges] == [before.entries + 1, before.entries + 2]
        totals = spent(desk)
        assert totals["analyst/ana/visits"] == Fraction("0.1")
        assert totals["analyst/ana/wards"] == 1
    assert ledger.verify().sound


def test_the_refusal_of_several_names_what_passes_on_all(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, "0.5")
    desk.spend(ledger, "0.8", dataset="wards")
    with pytest.raises(CapError, match="for one query on visits") as refusal:
        ledger.charge_all(both(desk, "0.6", "joint"))
    assert refusal.value.largest == Fraction("0.2")


def test_several_under_known_keys_are_replayed_and_the_rest_is_charged_whole_or_not_at_all(desk: "Desk") -> None:
    ledger = desk.open()
    first = ledger.charge_all(both(desk, "0.25", "k"))
    again = ledger.charge_all(both(desk, "0.25", "k"))
    assert [(charge.entry, charge.replayed) for charge in again] == [(charge.entry, True) for charge in first]
    ledger.record(first[0], b"answer")
    assert [charge.release for charge in ledger.charge_all(both(desk, "0.25", "k"))] == [b"answer", None]
    visits, wards = both(desk, "0.25", "half")
    half = ledger.charge(visits)  # as a server of before might have left it
    whole = ledger.charge_all([visits, wards])
    assert [(charge.sequence, charge.replayed) for charge in whole] == [
        (half.sequence, True),
        (half.sequence + 1, False),
    ]
    with pytest.raises(ParameterError) as reused:
        ledger.charge_all([both(desk, "0.125", "new")[0], wards._replace(query="another")])
    assert reused.value.code == "HB124"
    assert ledger.verify().charges == 4
    assert spent(desk)["dataset/wards"] == Fraction("0.5")


def test_a_joint_charge_names_each_data_set_once(desk: "Desk") -> None:
    ledger = desk.open()
    for analyst in ("ana", "ben"):
        with pytest.raises(ParameterError, match="names a dataset twice"):
            ledger.charge_all([desk.request(), desk.request(analyst=analyst)])
    with pytest.raises(ParameterError):
        ledger.charge_all([desk.request(), desk.request(dataset="nowhere")])
    assert ledger.verify().charges == 0


# --- time


class Clock:
    def __init__(self, time: int) -> None:
        self.time = time

    def __call__(self) -> int:
        return self.time


RENEWED = """
version: 1
datasets: {visits: {budget: {epsilon: 3, renewal: {per: PERIOD, epsilon: 1}}}}
analysts: {ana: {visits: {epsilon: 3}}}
"""


@pytest.mark.parametrize(("period", "later"), [("day", DAY), ("month", 31 * DAY)])
def test_a_renewed_cap_begins_again_and_the_lifetime_cap_does_not(desk: "Desk", period: str, later: int) -> None:
    clock = Clock(20_000 * DAY)
    ledger = desk.open(policy=RENEWED.replace("PERIOD", period), clock=clock)
    granted = []
    for _ in range(5):
        count, refusal = desk.exhaust(ledger, "0.5")
        granted.append(count)
        clock.time += later
    assert granted == [2, 2, 2, 0, 0]
    assert "for ana on visits" in refusal.message
    assert ledger.verify().sound


def test_a_renewal_that_is_spent_says_so(desk: "Desk") -> None:
    ledger = desk.open(policy=RENEWED.replace("PERIOD", "month"), clock=Clock(20_000 * DAY))
    desk.spend(ledger, "0.7")
    with pytest.raises(BudgetError, match=r"0\.3 is left for everybody on visits this month"):
        desk.spend(ledger, "0.5")


def test_a_clock_that_goes_back_gives_no_fresh_budget(desk: "Desk") -> None:
    clock = Clock(20_000 * DAY + 1)
    ledger = desk.open(policy=RENEWED.replace("PERIOD", "day"), clock=clock)
    desk.spend(ledger, "1")
    clock.time -= 2  # yesterday, whose budget is whole
    with pytest.raises(BudgetError, match="today"):
        desk.spend(ledger, "1")


def test_a_clock_that_goes_back_a_little_is_borne_and_far_back_refused(desk: "Desk") -> None:
    clock = Clock(20_000 * DAY)
    ledger = desk.open(clock=clock)
    first = desk.spend(ledger)
    clock.time -= TOLERANCE
    assert desk.spend(ledger).entry.time == first.entry.time
    clock.time -= 1
    with pytest.raises(LedgerError) as refusal:
        desk.spend(ledger)
    assert refusal.value.code == "HB311"
    clock.time += DAY
    desk.spend(ledger)
    verification = ledger.verify()
    assert (verification.charges, verification.sound) == (3, True)


# --- policies, processes, steps


def test_a_changed_policy_is_noted_in_the_chain_and_holds(desk: "Desk") -> None:
    with desk.open(policy=POLICY) as ledger:
        desk.spend(ledger, "0.5")
        desk.spend(ledger, "0.5")
    tighter = POLICY.replace("ana: {visits: {epsilon: 2}", "ana: {visits: {epsilon: 1.2}")
    with desk.open(policy=tighter) as ledger:
        with pytest.raises(BudgetError, match=r"0\.2 is left for ana"):
            desk.spend(ledger, "0.3")
        desk.spend(ledger, "0.2")
        with ledger.snapshot() as snapshot:
            kinds = [(entry.kind, entry.config) for entry in snapshot.entries(EntryFilter())]
        assert ledger.verify().sound
    old, new = kinds[0][1], desk.policy.hash
    assert kinds == [("policy", old), ("charge", old), ("charge", old), ("policy", new), ("charge", new)]


def test_opening_with_the_same_policy_adds_nothing(desk: "Desk") -> None:
    for _ in range(3):
        with desk.open() as ledger:
            assert ledger.verify().entries == 1


def test_a_process_with_an_outdated_policy_cannot_charge(desk: "Desk") -> None:
    old = desk.open(policy=POLICY)
    paid = desk.spend(old)
    new = desk.open(policy=POLICY.replace("per_query: 0.5", "per_query: 0.25"))
    with pytest.raises(LedgerError) as refusal:
        desk.spend(old)
    assert refusal.value.code == "HB312"
    assert old.record(paid, b"answer") == b"answer"  # what was paid for can still be kept
    desk.spend(new)
    assert new.verify().sound


def test_two_open_ledgers_see_each_others_charges(desk: "Desk") -> None:
    one, other = desk.open(), desk.open()
    for ledger in (one, other, one, other, one, other):
        desk.spend(ledger, "0.3")
    for ledger in (one, other):
        assert desk.exhaust(ledger, "0.3")[0] == 0
    assert one.verify().sound


def test_a_forked_child_is_refused(desk: "Desk") -> None:
    ledger = desk.open()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            desk.spend(ledger)
        except LedgerError as error:
            code = 0 if error.code == "HB313" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    desk.spend(ledger)


def test_a_closed_ledger_says_so(desk: "Desk") -> None:
    ledger = desk.open()
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="HB314"):
        desk.spend(ledger)


def test_the_steps_come_in_their_order(desk: "Desk") -> None:
    steps: list[str] = []
    ledger = desk.open(on_step=steps.append)
    steps.clear()
    charge = desk.spend(ledger)
    assert steps == [step for step in STEPS if step != "releases"]
    steps.clear()
    ledger.record(charge, b"answer")
    assert steps == list(STEPS)
    steps.clear()
    with pytest.raises(BudgetError):
        desk.spend(ledger, "0.6")
    assert steps == ["begun"]


KILLED = """
import os, signal, sys
from fractions import Fraction
from pathlib import Path
from hubbub.accounting.anchor import FileAnchor, former_path
from hubbub.accounting.calls import ChargeRequest
from hubbub.config.policy import parse_policy
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.core.events import LaplaceEvent

path, policy, point = Path(sys.argv[1]), parse_policy(sys.argv[2]), sys.argv[3]
armed = []
def on_step(name):
    if armed and name == point:
        os.kill(os.getpid(), signal.SIGKILL)
ledger = Ledger.open(SqliteStore(path), policy=policy, anchor=FileAnchor(former_path(path)), on_step=on_step)
armed.append(True)
names = ("visits", "wards")
asked = [ChargeRequest("ana", name, "v1", LaplaceEvent(1, Fraction(10)), "count", f"killed {name}") for name in names]
ledger.record(ledger.charge_all(asked)[0], b"answer")
"""


@pytest.mark.parametrize("point", STEPS)
def test_a_charge_is_whole_or_absent_after_a_kill_at_any_step(file_desk: "Desk", point: str) -> None:
    desk = file_desk
    with desk.open() as ledger:
        desk.spend(ledger)
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(desk.database), as_document(desk.policy), point], timeout=60
    )
    assert child.returncode == -9
    with desk.open() as ledger:
        verification = ledger.verify()
        assert verification.sound
        durable = point in ("committed", "anchored", "releases")  # the release comes after the charge is durable
        assert verification.charges == (3 if durable else 1)
        assert {charge.replayed for charge in ledger.charge_all(both(desk, "0.1", "killed"))} == {durable}


# --- many threads


def test_threads_together_get_exactly_what_is_there(desk: "Desk") -> None:
    ledger = desk.open()
    outcomes: list[bool] = []

    def work() -> None:
        for _ in range(10):
            try:
                desk.spend(ledger, "0.0125", dataset="wards")
                outcomes.append(True)
            except BudgetError:
                outcomes.append(False)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count(True), len(outcomes)) == (80, 160)
    assert ledger.verify().sound
    assert spent(desk)["dataset/wards"] == 1


def test_threads_with_one_key_get_one_charge(desk: "Desk") -> None:
    ledger = desk.open()
    request = desk.request(key="shared")
    releases: list[bytes] = []

    def work(number: int) -> None:
        charge = ledger.charge(request)
        releases.append(charge.release or ledger.record(charge, b"answer of %d" % number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(releases) == 16
    assert len(set(releases)) == 1
    assert (ledger.verify().charges, ledger.verify().releases) == (1, 1)


# --- exactness


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scales=st.lists(st.fractions(min_value=5, max_value=1000, max_denominator=1000), min_size=1, max_size=12))
def test_totals_are_exact_sums(desk: "Desk", scales: list[Fraction]) -> None:
    plenty = parse_policy(
        "version: 1\ndatasets: {visits: {budget: {epsilon: 1000}}}\nanalysts: {ana: {visits: {epsilon: 1000}}}"
    )
    with desk.open(policy=plenty) as ledger:
        before = spent(desk).get("dataset/visits") or Fraction(0)
        events = [LaplaceEvent(1, scale) for scale in scales]
        for event in events:
            ledger.charge(desk.request(event=event))
        added = sum((privacy_cost(event).pure or Fraction(0) for event in events), Fraction(0))
        assert spent(desk)["dataset/visits"] == before + added
        assert ledger.verify().sound


EVENTS = [
    LaplaceEvent(1, Fraction(10, 3)),
    GaussianEvent(4, Fraction(50)),
    ThresholdEvent(LaplaceEvent(1, Fraction(7)), keys=1, above=150),
]


@given(st.lists(st.sampled_from(EVENTS), max_size=5))
def test_a_total_is_written_in_canonical_form(events: list[LaplaceEvent | GaussianEvent | ThresholdEvent]) -> None:
    total = sum(map(privacy_cost, events), ZERO)
    assert total_text(total) == canonical(total.to_json())
