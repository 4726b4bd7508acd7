"""Caps on blocks: the worst adaptive analyst, the ledger, and blocks that are closed for good."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.blocks import CLOSED, close_block
from hubbub.accounting.calls import ChargeRequest
from hubbub.accounting.cost import ZERO, PrivacyCost, privacy_cost
from hubbub.accounting.filters import admits
from hubbub.accounting.forfeit import forfeit
from hubbub.accounting.ledger import examine
from hubbub.accounting.policy import Policy
from hubbub.accounting.refusal import CapError
from hubbub.accounting.status import block_statuses, overview_of_blocks
from hubbub.config.policy import parse_policy
from hubbub.core.blocks import BlockSet, number
from hubbub.core.events import LaplaceEvent, ResponseEvent
from hubbub.errors import ConfigError, ParameterError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

FIRST = number("month", date(2026, 1, 1))
JANUARY, FEBRUARY = BlockSet("month", ((FIRST, FIRST),)), BlockSet("month", ((FIRST + 1, FIRST + 1),))
BOTH = BlockSet("month", ((FIRST, FIRST + 1),))


def declared(*, lasting: bool = False, first: str = "2026-01", **blocks: str) -> dict[str, Any]:
    unit = {"column": "person", "kind": "integer", "entity": "", "groups": 1, "rows": 1}
    form = {"column": "day", "by": "month", "from": first} | ({"lasting": True} if lasting else {}) | blocks
    return {"public": False, "columns": {}, "unit": unit, "relation": "add_remove", "blocks": form}


def policy(block: str = "2", ana: str = "2", lasting: str = "", per_query: str = "") -> Policy:
    budget = f"budget: {{epsilon: {lasting}}}, " if lasting else ""
    query = f", per_query: {per_query}" if per_query else ""
    blocks = f"{{column: day, by: month, from: 2026-01, budget: {{epsilon: {block}{query}}}}}"
    text = f"""
version: 1
datasets: {{visits: {{{budget}blocks: {blocks}}}}}
analysts: {{ana: {{visits: {{epsilon: {ana}}}}}, ben: {{visits: {{epsilon: {block}}}}}}}
"""
    return replace(parse_policy(text), declarations={"visits": declared(lasting=bool(lasting))})


# ── the theorem: exact enumeration over all strategies and all answers ────────────────────────────────────────────────

#: What an analyst can ask: blocks, and a loss in whole steps of ε = 1.
Menu = Sequence[tuple[BlockSet, int]]
Charged = Callable[[BlockSet], BlockSet]


def worst_losses(rules: Policy, menu: Menu, charged: Charged = lambda blocks: blocks) -> dict[str, int]:
    """Give the largest log-ratio, in steps, of any transcript of any strategy of both analysts.

    For one unit in January alone, one in February alone, and one in both. An answer is a randomized response on a bit
    of the blocks that are read: its log-ratio is plus or minus its loss for a unit in one of them, and 0 for others.
    """
    costs = {loss: privacy_cost(ResponseEvent(2, Fraction(loss))) for _, loss in menu}
    units = {"january": {FIRST}, "february": {FIRST + 1}, "both": {FIRST, FIRST + 1}}

    @cache
    def worst(spent: frozenset[tuple[str, PrivacyCost]], hit: frozenset[int]) -> int:
        known, best = dict(spent), 0
        for blocks, loss in menu:
            for analyst in ("ana", "ben"):
                caps = rules.charged(analyst, "visits", charged(blocks))
                if all(admits(cap.budget, known.get(cap.at(0), ZERO), costs[loss]) for cap in caps):
                    after = {cap.at(0): known.get(cap.at(0), ZERO) + costs[loss] for cap in caps}
                    ratio = loss if hit & set(blocks) else 0
                    # one of both answers has the ratio, the other its negative: the worst transcript takes the first
                    best = max(best, ratio + worst(frozenset({**known, **after}.items()), hit))
        return best

    return {name: worst(frozenset(), frozenset(blocks)) for name, blocks in units.items()}


MENU: Menu = [(JANUARY, 1), (FEBRUARY, 1), (BOTH, 1), (FEBRUARY, 2)]


def test_the_worst_adaptive_analyst_stays_within_the_cap_of_each_block() -> None:
    """A unit in one block loses at most the cap of that block, and reaches it; one in both, at most twice as much."""
    assert worst_losses(policy(), MENU) == {"january": 2, "february": 2, "both": 4}


def test_a_lasting_cap_limits_what_a_unit_in_several_blocks_loses() -> None:
    assert worst_losses(policy(lasting="3"), MENU) == {"january": 2, "february": 2, "both": 3}


def test_a_charge_that_leaves_out_a_block_is_caught() -> None:
    """The planted error: what reads both blocks is charged to the first of them alone."""
    losses = worst_losses(policy(), MENU, lambda blocks: JANUARY if blocks == BOTH else blocks)
    assert losses["february"] > 2


# ── charges ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def request(desk: "Desk", epsilon: str, blocks: BlockSet | None, analyst: str = "ana") -> ChargeRequest:
    return desk.request(epsilon, analyst=analyst)._replace(blocks=blocks)


def test_each_block_has_its_own_budget(desk: "Desk") -> None:
    ledger = desk.open(policy=policy())
    ledger.charge(request(desk, "1.5", JANUARY))
    with pytest.raises(CapError, match="for ana on visits in 2026-01"):
        ledger.charge(request(desk, "1", BOTH))
    ledger.charge(request(desk, "2", FEBRUARY))
    ledger.charge(request(desk, "0.5", JANUARY, "ben"))
    with pytest.raises(CapError, match="for everybody on visits in 2026-01"):
        ledger.charge(request(desk, "0.1", JANUARY, "ben"))
    assert ledger.verify().sound
    desk.close()
    totals = desk.totals()[1]
    assert totals == {
        "analyst/ana/visits/block/2026-01": Fraction(3, 2),
        "analyst/ana/visits/block/2026-02": 2,
        "analyst/ben/visits/block/2026-01": Fraction(1, 2),
        "dataset/visits/block/2026-01": 2,
        "dataset/visits/block/2026-02": 2,
    }


def test_a_lasting_cap_counts_a_charge_once(desk: "Desk") -> None:
    ledger = desk.open(policy=policy(lasting="2.5"))
    ledger.charge(request(desk, "1", BOTH))
    ledger.charge(request(desk, "1", FEBRUARY))
    with pytest.raises(CapError, match="for everybody on visits\\."):
        ledger.charge(request(desk, "1", JANUARY))
    ledger.charge(request(desk, "0.5", JANUARY))
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("blocks", "code"),
    [
        (None, "HB206"),
        (BlockSet("day", ((20000, 20000),)), "HB206"),
        (BlockSet("month", ()), "HB207"),
        (BlockSet("month", ((FIRST - 1, FIRST),)), "HB207"),
    ],
)
def test_charges_name_blocks_that_are_declared(desk: "Desk", blocks: BlockSet | None, code: str) -> None:
    ledger = desk.open(policy=policy())
    with pytest.raises(ParameterError) as refusal:
        ledger.charge(request(desk, "0.1", blocks))
    assert refusal.value.code == code
    assert ledger.verify().charges == 0


def test_a_dataset_without_blocks_is_not_charged_by_block(desk: "Desk") -> None:
    ledger = desk.open()
    with pytest.raises(ParameterError) as refusal:
        ledger.charge(request(desk, "0.1", JANUARY))
    assert refusal.value.code == "HB206"


def test_a_second_process_and_a_restart_know_the_totals_of_blocks(desk: "Desk") -> None:
    one, two = desk.open(policy=policy()), desk.open()
    one.charge(request(desk, "1.5", BOTH))
    with pytest.raises(CapError, match="only 0\\.5 is left for ana on visits in 2026-02"):
        two.charge(request(desk, "1", FEBRUARY))
    desk.close()
    again = desk.open()
    with pytest.raises(CapError, match="only 0\\.5"):
        again.charge(request(desk, "1", FEBRUARY))


def test_a_charge_whose_blocks_were_edited_does_not_verify(desk: "Desk") -> None:
    ledger = desk.open(policy=policy())
    ledger.charge(request(desk, "1", BOTH))
    desk.close()
    desk.edit("""UPDATE entries SET facts = replace(facts, '"2026-02"', '"2026-01"') WHERE kind = 'charge'""")
    store = desk.store(read_only=True)
    assert "was changed" in examine(store, FileAnchor(desk.anchor)).problems[0].text
    store.close()


def test_the_same_key_with_other_blocks_is_another_request(desk: "Desk") -> None:
    ledger = desk.open(policy=policy())
    event = LaplaceEvent(1, Fraction(10))
    first = ChargeRequest("ana", "visits", "v1", event, "count", "k", JANUARY)
    assert ledger.charge(first).sequence == ledger.charge(first).sequence
    with pytest.raises(ParameterError) as refusal:
        ledger.charge(first._replace(blocks=BOTH))
    assert refusal.value.code == "HB124"


# ── the policy ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rules", [policy(), policy(lasting="5"), policy(lasting="5", per_query="0.5")])
def test_a_policy_with_blocks_is_read_back_from_its_record(rules: Policy) -> None:
    again = Policy.from_record(json.loads(rules.text))
    assert again.text == rules.text
    assert again.charged("ana", "visits", BOTH) == rules.charged("ana", "visits", BOTH)


def test_records_that_contradict_themselves_are_refused() -> None:
    record = json.loads(policy().text)
    for broken in (
        {**record, "declarations": {"visits": {**declared(), "blocks": None}}},
        {**record, "declarations": {"visits": declared(lasting=True)}},
        {**record, "declarations": {"visits": declared(until="2026-99")}},
        {**record, "datasets": {"visits": {"budget": {"epsilon": "2"}}}},
    ):
        with pytest.raises((ValueError, TypeError, AttributeError)):
            Policy.from_record(broken)


def test_a_change_of_blocks_after_a_charge_is_refused(desk: "Desk") -> None:
    ledger = desk.open(policy=policy())
    ledger.charge(request(desk, "1", JANUARY))
    desk.close()
    plain = replace(
        parse_policy("version: 1\ndatasets: {visits: {budget: {epsilon: 2}}}\nanalysts: {ana: {visits: {epsilon: 1}}}"),
        declarations={"visits": {name: value for name, value in declared().items() if name != "blocks"}},
    )
    changes = [
        replace(policy(), declarations={"visits": declared(by="year", first="2026")}),
        replace(policy(), declarations={"visits": declared(column="other")}),
        policy(lasting="5"),
        plain,
    ]
    for changed in changes:
        with pytest.raises(ConfigError) as refusal:
            desk.open(policy=changed)
        assert refusal.value.code == "HB433"
    # which blocks exist may change: totals keep the names of their blocks
    later = desk.open(policy=replace(policy(), declarations={"visits": declared(first="2025-12")}))
    with pytest.raises(CapError, match="only 1 is left for ana on visits in 2026-01"):
        later.charge(request(desk, "1.5", BlockSet("month", ((FIRST - 1, FIRST),))))


# ── closing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_closed_block_stays_closed_under_the_largest_cap(desk: "Desk") -> None:
    ledger = desk.open(policy=policy())
    close_block(ledger, "visits", "2026-01", by="olga", reason="retired")
    with pytest.raises(CapError):
        ledger.charge(request(desk, "0.000000001", JANUARY))
    ledger.charge(request(desk, "1", FEBRUARY))
    assert ledger.verify().sound
    desk.close()
    text = """
version: 1
datasets:
  visits: {blocks: {column: day, by: month, from: 2026-01, budget: {epsilon: 1000000, delta: 0.5}}}
analysts: {ana: {visits: {epsilon: 1000000}}}
"""
    largest = replace(parse_policy(text), declarations={"visits": declared()})
    again = desk.open(policy=largest)
    for event in (LaplaceEvent(1, Fraction(10**9)), LaplaceEvent(1, Fraction(1))):
        with pytest.raises(CapError):
            again.charge(desk.request(event=event)._replace(blocks=JANUARY))
    assert Fraction(10**6) < CLOSED


@pytest.mark.parametrize(
    ("dataset", "name"),
    [
        ("visits", "2026"),
        ("visits", "2026-13"),
        ("wards", "2026-01"),
        ("visits", "2026-04"),
        ("visits", "2062-01"),
        ("visits", "1026-01"),
    ],
)
def test_only_a_block_can_be_closed(desk: "Desk", dataset: str, name: str) -> None:
    rules = policy() if dataset == "visits" else None
    time = int(1_000_000 * (date(2026, 3, 31) - date(1970, 1, 1)).total_seconds())
    ledger = desk.open(policy=rules, clock=lambda: time)
    with pytest.raises(ParameterError) as refusal:
        close_block(ledger, dataset, name, by="olga", reason="retired")
    assert refusal.value.code == "HB208"


@pytest.mark.parametrize("name", ["2025-12", "2026-03"])
def test_a_block_that_was_retired_or_is_current_can_be_closed(desk: "Desk", name: str) -> None:
    time = int(1_000_000 * (date(2026, 3, 1) - date(1970, 1, 1)).total_seconds())
    ledger = desk.open(policy=policy(), clock=lambda: time)
    assert close_block(ledger, "visits", name, by="olga", reason="retired") == 2


def test_no_block_after_the_last_one_can_be_closed(desk: "Desk") -> None:
    ledger = desk.open(policy=replace(policy(), declarations={"visits": declared(until="2026-02")}))
    with pytest.raises(ParameterError, match="has no block 2026-03"):
        close_block(ledger, "visits", "2026-03", by="olga", reason="retired")
    close_block(ledger, "visits", "2026-02", by="olga", reason="retired")


def test_a_forfeit_writes_off_every_block_that_existed(desk: "Desk") -> None:
    time = int(1_000_000 * (date(2026, 3, 5) - date(1970, 1, 1)).total_seconds())
    ledger = desk.open(policy=policy(), clock=lambda: time)
    ledger.charge(request(desk, "1", JANUARY))
    desk.close()
    result = forfeit(
        desk.store,
        desk.set_aside,
        policy=policy(),
        anchor=FileAnchor(desk.anchor),
        by="olga",
        reason="lost",
        clock=lambda: time,
    )
    assert [name for name in result.charged if name.startswith("dataset")] == [
        f"dataset/visits/block/2026-0{month}" for month in (1, 2, 3)
    ]
    again = desk.open(clock=lambda: time)
    for blocks in (JANUARY, BOTH):
        with pytest.raises(CapError):
            again.charge(request(desk, "0.1", blocks))


# ── the overview ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_overview_lists_each_block(desk: "Desk") -> None:
    ledger = desk.open(policy=policy())
    ledger.charge(request(desk, "0.5", BOTH))
    ledger.charge(request(desk, "0.5", FEBRUARY))
    with ledger.snapshot() as snapshot:
        statuses = block_statuses(snapshot, ledger.policy, "ana", "visits", ledger.time(), BOTH)
    view = overview_of_blocks(statuses, BOTH, {"2026-01"})
    january, february = view.blocks
    assert (january.closed, january.left) == (True, Fraction(0))
    assert (february.name, february.spent, february.left, february.more) == (
        "2026-02",
        Fraction(1),
        Fraction(1),
        2,
    )
    assert "2026-02: up to ε=1 for one query, about 2 more queries like your last one" in view.text()
    assert type(view).from_json(view.to_json()) == view


def test_an_unknown_clock_changes_nothing(desk: "Desk") -> None:
    """Before the first block begins there is nothing to show but its budget."""
    ledger = desk.open(policy=policy(), clock=lambda: 10**6)
    with ledger.snapshot() as snapshot:
        (status,) = block_statuses(snapshot, ledger.policy, "ana", "visits", ledger.time(), None)
    assert [usage.cap.block for usage in status.caps] == ["2026-01", "2026-01"]


def test_closing_a_block_does_not_set_the_clock_back(desk: "Desk") -> None:
    """Otherwise the budget of a past day could be used again."""
    now = 1_770_000_000 * 10**6
    times = [now]
    ledger = desk.open(policy=policy(), clock=lambda: times[0])
    ledger.charge(request(desk, "1", JANUARY))
    times[0] = now - 10**14
    close_block(ledger, "visits", "2026-01", by="olga", reason="retired")
    assert ledger.time() == now
