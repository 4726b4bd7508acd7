"""What an analyst is told of budgets that others spend from too: in tenths of their spending, and never too much."""

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import pytest

from hubbub.accounting.cost import PrivacyCost, privacy_cost
from hubbub.accounting.disclosure import disclose, remaining
from hubbub.accounting.filters import Budget, admits
from hubbub.accounting.policy import Cap
from hubbub.accounting.refusal import CapError
from hubbub.accounting.status import overview
from hubbub.answers.budget import BudgetOverview, CapDisplay, CapPeriod, CapScope
from hubbub.config.policy import parse_policy
from hubbub.core.events import GaussianEvent, LaplaceEvent
from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

    from hubbub.accounting.ledger import Ledger

F = Fraction
CAP = Cap("dataset", "visits", "visits", Budget(F(2), F(0)))
POLICY = """
version: 1
datasets: {visits: {budget: {epsilon: 2, show: SHOW}}}
analysts: {ana: {visits: {epsilon: 1}}, ben: {visits: {epsilon: 2}}}
"""


def pure(epsilon: Fraction) -> PrivacyCost:
    """The price of Laplace noise of this ε, or of nothing."""
    one = privacy_cost(LaplaceEvent(sensitivity=1, scale=F(100)))
    return one.times(int(epsilon * 100))


def tenths(others: Fraction) -> int:
    """How many tenths of ε = 2 it takes to hold what others spent, counted by hand."""
    count = 0
    while F(2, 10) * count < others:
        count += 1
    return count


AMOUNTS = [F(n, 100) for n in (0, 1, 5, 19, 20, 21, 39, 40, 41, 77, 100)]


def test_what_is_told_depends_on_the_tenths_that_others_reach() -> None:
    told: dict[tuple[Fraction, int], set[object]] = {}
    for own, others in product(AMOUNTS, repeat=2):
        found = disclose(CAP, pure(own + others), pure(own), "rounded")
        assert found is not None
        told.setdefault((own, tenths(others)), set()).add((found.spent, found.left))
    assert all(len(each) == 1 for each in told.values())
    assert told[F(5, 100), 2] == {(F(45, 100), F(155, 100))}


def test_nobody_is_told_of_more_than_there_is() -> None:
    """Pure losses and Gaussian ones, budgets with and without δ, lifetime, daily and of a group."""
    kinds: list[tuple[CapScope, CapPeriod | None]] = [("dataset", None), ("dataset", "day"), ("group", None)]
    caps = [
        Cap(scope, "visits", "visits", budget, per)
        for scope, per in kinds
        for budget in (Budget(F(2), F(0)), Budget(F(2), F(1, 10**6)))
    ]
    noise = privacy_cost(GaussianEvent(sensitivity_squared=1, variance=F(400)))
    for cap, own, others, curved in product(caps, AMOUNTS[:6], AMOUNTS[:6], (0, 3)):
        if curved and not cap.budget.delta:
            continue
        total = pure(own + others) + noise.times(curved)
        found = disclose(cap, total, pure(own), "rounded")
        assert found is not None
        exact = remaining(cap.budget, total)
        assert 0 <= found.left <= exact
        assert not found.left or admits(cap.budget, total, pure(F(int(found.left * 100), 100)))
        if found.spent is not None and not cap.budget.delta:
            assert found.spent >= own + others


def test_who_spends_alone_is_told_exactly() -> None:
    for own in AMOUNTS:
        found = disclose(CAP, pure(own), pure(own), "rounded")
        assert found is not None
        assert (found.spent, found.left, found.exact) == (own, 2 - own, True)


def seen(ledger: "Ledger", *, exact: bool = False) -> BudgetOverview:
    with ledger.snapshot() as snapshot:
        return overview(snapshot, ledger.policy, "ana", "visits", ledger.time(), exact=exact)


def opened(desk: "Desk", show: CapDisplay) -> "Ledger":
    ledger = desk.open(policy=POLICY.replace("SHOW", show))
    desk.spend(ledger, "0.1", analyst="ana")
    desk.spend(ledger, "1.43", analyst="ben")
    return ledger


@pytest.mark.parametrize(
    ("show", "shared", "largest", "more"),
    [
        ("exact", {F(153, 100): F(47, 100)}, F(47, 100), 4),
        ("rounded", {F(170, 100): F(30, 100)}, F(30, 100), 3),
        ("hidden", {}, F(90, 100), None),
    ],
)
def test_the_owner_chooses_what_is_told(
    desk: "Desk", show: CapDisplay, shared: dict[Fraction, Fraction], largest: Fraction, more: int | None
) -> None:
    ledger = opened(desk, show)
    view = seen(ledger)
    assert {each.spent: each.left for each in view.caps if each.scope == "dataset"} == shared
    assert [(each.spent, each.left) for each in view.caps if each.scope == "analyst"] == [(F(1, 10), F(9, 10))]
    assert (view.largest, view.more) == (largest, more)
    assert ("the shared cap is hidden" in view.text()) == (show == "hidden")
    assert {each.left for each in seen(ledger, exact=True).caps} == {F(9, 10), F(47, 100)}


@pytest.mark.parametrize(
    ("show", "says", "remedy", "largest"),
    [
        ("exact", "but only 0.47 is left for everybody", "at most ε=0.47", F(47, 100)),
        ("rounded", "but possibly only 0.3 is left for everybody", "at most ε=0.3:", F(30, 100)),
        ("hidden", "but less is left for everybody", "not shown", F(0)),
    ],
)
def test_a_refusal_tells_no_more_than_an_overview(
    desk: "Desk", show: CapDisplay, says: str, remedy: str, largest: Fraction
) -> None:
    with pytest.raises(CapError) as refused:
        desk.spend(opened(desk, show), "0.5", analyst="ana")
    assert says in refused.value.message
    assert remedy in refused.value.remedy + " "
    assert refused.value.largest == largest
    assert ("47" in str(refused.value)) == (show == "exact")


def test_the_choice_is_part_of_the_policy_and_a_wrong_one_is_refused() -> None:
    hashes = {parse_policy(POLICY.replace("SHOW", show)).hash for show in ("rounded", "exact", "hidden")}
    assert len(hashes) == 3
    assert parse_policy(POLICY.replace(", show: SHOW", "")).hash == parse_policy(POLICY.replace("SHOW", "rounded")).hash
    with pytest.raises(ConfigError, match="HB403"):
        parse_policy(POLICY.replace("SHOW", "all"))
