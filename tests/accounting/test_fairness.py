"""Projects and fair shares: nothing is ever admitted beyond the caps, and what is not spent returns to the group."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import pytest

from hubbub.accounting.cost import ZERO, PrivacyCost, privacy_cost
from hubbub.accounting.fairness import day_of, holds, less, parts, shares
from hubbub.accounting.filters import Budget, admits, filter_limits, first_limits
from hubbub.accounting.gaussian_filter import variance
from hubbub.accounting.policy import DAY, Cap, Policy
from hubbub.accounting.refusal import CapError
from hubbub.accounting.status import budget_status
from hubbub.config.policy import parse_policy
from hubbub.core.events import GaussianEvent, LaplaceEvent, ResponseEvent
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

F = Fraction
END = (date(2027, 1, 1) - date(1970, 1, 1)).days * DAY


def rules(
    projects: str = "", group: str = "epsilon: 4", dataset: str = "epsilon: 5", members: str = "ana, ben, cy"
) -> Policy:
    more = f"projects: {{{projects}}}" if projects else ""
    return parse_policy(f"""
version: 1
datasets: {{visits: {{budget: {{{dataset}}}}}}}
analysts: {{dan: {{visits: {{epsilon: 2}}}}}}
groups: {{interns: {{members: [{members}], visits: {{{group}}}}}}}
{more}
""")


HIP = "hip: {members: [ana], group: interns, until: 2027-01-01, visits: {epsilon: 2}}"
KNEE = "knee: {members: [ben], group: interns, until: 2027-06-01, visits: {epsilon: 1}}"

# ── the division ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("names", "needs", "expected"),
    [
        ("a", {}, {"a": F(1)}),
        ("abcd", {}, dict.fromkeys("abcd", F(1, 4))),
        ("abc", {"b": F(1, 5)}, {"a": F(2, 5), "b": F(1, 5), "c": F(2, 5)}),
        ("abc", {"b": F(1, 2)}, dict.fromkeys("abc", F(1, 3))),
        ("abc", {"a": F(1, 10), "b": F(2, 5)}, {"a": F(1, 10), "b": F(2, 5), "c": F(1, 2)}),
        ("ab", {"a": F(1, 4), "b": F(1, 4)}, {"a": F(1, 4), "b": F(1, 4)}),
    ],
)
def test_the_least_part_is_as_large_as_it_can_be(names: str, needs: dict[str, F], expected: dict[str, F]) -> None:
    assert parts(list(names), needs) == expected


# ── parts of a budget ─────────────────────────────────────────────────────────────────────────────────────────────────

PRICES = [
    privacy_cost(LaplaceEvent(1, F(10))),
    privacy_cost(ResponseEvent(2, F(1, 3))),
    privacy_cost(GaussianEvent(1, F(400))),
]


@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
@pytest.mark.parametrize("share", [F(1, 7), F(1, 3), F(1)])
@pytest.mark.parametrize("first", [False, True])
def test_a_part_admits_nothing_that_the_whole_does_not(delta: Fraction, share: Fraction, *, first: bool) -> None:
    whole = Budget(F(1), delta)
    of_part, of_whole = [(first_limits if first else filter_limits)(each) for each in (whole.part(share), whole)]
    assert all(a <= b for a, b in zip(of_part.renyi, of_whole.renyi, strict=True))
    assert all(a <= b for a, b in zip(of_part.gaussian[1:], of_whole.gaussian[1:], strict=True))
    assert of_part.delta <= of_whole.delta
    for price in PRICES:
        for count in (0, 1, 2, 3, 5, 9, 20, 60):
            total = (price.by_first_rule if first else price).times(count)
            assert admits(whole, total, price) or not admits(whole.part(share), total, price)


@pytest.mark.parametrize("price", PRICES)
def test_totals_within_parts_sum_to_a_total_within_the_whole(price: PrivacyCost) -> None:
    """Each of several people uses what their part admits; together they never exceed the whole."""
    whole, divided = Budget(F(1), F(1, 10**6)), [F(1, 6), F(1, 3), F(1, 2)]
    total = ZERO
    for share in divided:
        own = ZERO
        while admits(whole.part(share), own, price):
            own += price
        assert own != ZERO or share < F(1, 3)
        total += own
    assert admits(whole, total, ZERO)


def test_variances_of_different_classes_may_sum_to_more_than_the_whole() -> None:
    """Many tiny losses of one person, and ten of 0.51 of another: why the theorem asks for one class."""
    one = privacy_cost(ResponseEvent(2, F(1, 100))).times(2500)
    other = privacy_cost(ResponseEvent(2, F(51, 100))).times(10)
    apart = [variance(each.gaussian or ()) for each in (one, other)]
    assert sum(apart) < variance((one + other).gaussian or ()) < sum(apart) * F(101, 100)
    for alike in (one, other):  # of one class
        for times in (1, 2, 7):
            each = variance(alike.gaussian or ())
            assert variance(alike.times(times).gaussian or ()) <= times * each


@pytest.mark.parametrize("share", [F(0), F(-1), F(3, 2)])
def test_a_part_is_no_more_than_the_whole(share: Fraction) -> None:
    with pytest.raises(ParameterError) as refusal:
        Budget(F(1), F(0)).part(share)
    assert refusal.value.code == "HB205"


# ── the theorems: exact enumeration over all adaptive analysts ────────────────────────────────────────────────────────

Move = tuple[str, int, int]  # who, time, and a pure loss in whole steps
State = frozenset[tuple[str, Fraction]]


def cost(loss: Fraction) -> PrivacyCost:
    return ZERO if not loss else privacy_cost(ResponseEvent(2, loss))


def allowed(policy: Policy, spent: State, move: Move, *, fairly: bool) -> bool:
    analyst, time, loss = move
    known = dict(spent)
    caps = policy.charged(analyst, "visits", None)
    fits = all(known.get(cap.at(time), F(0)) + loss <= cap.budget.epsilon for cap in caps if holds(cap, day_of(time)))
    for each in shares(policy, analyst, caps, day_of(time)) if fairly else []:
        total = known.get(each.of.at(time), F(0)) - sum(known.get(w.at(time), F(0)) for w in each.without)
        fits = fits and total + loss <= each.cap.budget.epsilon
    return fits


def after(policy: Policy, spent: State, move: Move) -> State:
    analyst, time, loss = move
    known = dict(spent)
    for cap in policy.charged(analyst, "visits", None):
        known[cap.at(time)] = known.get(cap.at(time), F(0)) + loss
    return frozenset(known.items())


def reachable(policies: Sequence[Policy], *, fairly: bool) -> set[State]:
    """Give all totals that analysts can reach, who choose each charge from everything before; policies may follow."""
    seen: set[tuple[int, bool, State]] = set()
    todo = [(0, False, State())]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        place, ended, spent = state
        for analyst in policies[place].analysts:
            move = (analyst, END if ended else 0, 1)
            if allowed(policies[place], spent, move, fairly=fairly):
                todo.append((place, ended, after(policies[place], spent, move)))
        todo += [(place, True, spent)] * (not ended) + [(place + 1, ended, spent)] * (place + 1 < len(policies))
    return {spent for _, _, spent in seen}


@pytest.mark.parametrize(
    "policies",
    [
        [rules(HIP)],
        [rules(f"{HIP}, {KNEE}")],
        [rules(group="epsilon: 4, fair: true")],
        [rules(HIP, dataset="epsilon: 5, fair: {until: 2027-01-01, needs: {dan: 0.2}}")],
        [rules(HIP, members="ana, cy"), rules(members="ben, cy"), rules(HIP)],
    ],
)
def test_shares_never_admit_what_the_caps_refuse(policies: list[Policy]) -> None:
    """For every sequence of charges, over the end of a project and changes of members: the caps of all hold."""
    fair, free = reachable(policies, fairly=True), reachable([*policies], fairly=False)
    assert fair <= free
    assert any(dict(spent).get("dataset/visits") == 5 for spent in free)
    for spent in fair:
        known = dict(spent)
        assert known.get("dataset/visits", 0) <= 5
        assert known.get("group/interns/visits", 0) <= 4


def test_the_end_of_a_project_returns_what_is_left_to_the_group_alone() -> None:
    policy = rules(HIP)

    def most(analyst: str, time: int, spent: State) -> int:
        count = 0
        while allowed(policy, spent, (analyst, time, 1), fairly=True):
            spent, count = after(policy, spent, (analyst, time, 1)), count + 1
        return count

    @cache
    def spent_by(*who: str) -> State:
        spent = State()
        for analyst in who:
            spent = after(policy, spent, (analyst, 0, 1))
        return spent

    assert most("cy", 0, State()) == 2  # two of four belong to the project
    assert most("cy", END, State()) == 4  # nothing was spent: all of it returns
    assert most("cy", END, spent_by("ana")) == 3  # what was spent does not
    assert most("ana", 0, spent_by("cy", "cy")) == 2  # the project has what it was promised
    assert most("cy", 0, spent_by("ana", "ana")) == 2  # what the project spent is not the rest's
    assert most("ana", 0, State()) == 2
    assert most("ana", END, spent_by("ana", "ana")) == 2  # its cap has ended; the group's holds
    assert most("dan", END, spent_by("ana", "ana", "cy", "cy")) == 1  # nothing returns to the dataset


def test_a_part_that_is_not_in_a_total_takes_away_what_there_is() -> None:
    for price in PRICES:
        assert less(price.times(3), [price]) == price.times(2)
        assert less(price, [price.times(3)]) in (ZERO, replace(ZERO, pure=price.pure and F(0)))


# ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_project_is_charged_limited_and_ended(desk: "Desk") -> None:
    ledger = desk.open(policy=rules(f"{HIP}, {KNEE}"))
    ledger.charge(desk.request("1.5", analyst="ana"))
    with pytest.raises(CapError, match="left for the project hip on visits"):
        ledger.charge(desk.request("1", analyst="ana"))
    with pytest.raises(CapError, match="left for the group interns on visits, outside of its projects"):
        ledger.charge(desk.request("1.5", analyst="cy"))
    ledger.charge(desk.request("1", analyst="cy"))
    assert ledger.verify().sound
    with ledger.snapshot() as snapshot:
        status = budget_status(snapshot, ledger.policy, "cy", "visits", 0, exact=True)
        ended = budget_status(snapshot, ledger.policy, "cy", "visits", END, exact=True)
        mine = budget_status(snapshot, ledger.policy, "ana", "visits", 0, exact=True).overview()
    assert (status.left(), ended.left()) == (F(0), F(1, 2))  # of 4, 2.5 are spent, and knee has 1 still
    assert status.refusal(cost(F(1))) is not None
    assert ended.refusal(cost(F(1, 2))) is None
    assert "spent 1.5 of ε=2, 0.5 remaining, for the project hip on visits" in mine.text()
    desk.close()
    assert desk.totals()[1]["project/interns/hip/visits"] == F(3, 2)


def test_fair_shares_hold_in_the_ledger_and_across_processes(desk: "Desk") -> None:
    one, two = desk.open(policy=rules(group="epsilon: 3, fair: {needs: {cy: 0.2}}")), desk.open()
    one.charge(desk.request("1", analyst="ana"))
    with pytest.raises(CapError, match=r"only 0\.2 is left for ana, the fair share of interns on visits"):
        two.charge(desk.request("0.5", analyst="ana"))
    two.charge(desk.request("1.2", analyst="ben"))
    two.charge(desk.request("0.6", analyst="cy"))
    assert one.verify().sound


def test_what_is_shown_of_shares_tells_nothing_about_others(desk: "Desk") -> None:
    """One's own share is exact; what projects leave is rounded like every other shared budget."""
    ledger = desk.open(policy=rules(HIP, group="epsilon: 4, fair: true"))
    ledger.charge(desk.request("0.3", analyst="cy"))
    with ledger.snapshot() as snapshot:
        states = {s.scope: s for s in budget_status(snapshot, ledger.policy, "ben", "visits", 0).overview().caps}
    assert (states["share"].spent, states["share"].epsilon) == (F(0), F(4, 3))
    assert states["rest"].spent == F(2, 5)  # 0.3, rounded up to tenths of 2


# ── the policy ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "policy",
    [
        rules(f"{HIP}, {KNEE}"),
        rules(group="epsilon: 4, fair: true"),
        rules(HIP, dataset="epsilon: 5, delta: 1e-6, fair: {until: 2027-01-01, needs: {dan: 0.2, ben: 0.1}}"),
    ],
)
def test_the_record_of_a_policy_with_shares_reads_back(policy: Policy) -> None:
    again = Policy.from_record(json.loads(policy.text))
    assert (again, again.text) == (policy, policy.text)
    assert all(isinstance(cap, Cap) for cap in again.every_cap())


def test_a_recorded_project_outside_of_its_group_does_not_read_back() -> None:
    record = json.loads(rules(HIP).text)
    record["projects"]["hip"]["members"] = ["dan"]
    with pytest.raises(ValueError, match="not in interns"):
        Policy.from_record(record)
