"""Ledgers that began under the first rule: their caps keep its shares of δ, whoever reads the totals."""

import json
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.accounting.conftest import Desk

from hubbub.accounting.cost import ZERO, PrivacyCost, privacy_cost
from hubbub.accounting.filters import Budget, admits, how_often
from hubbub.accounting.refusal import CapError
from hubbub.accounting.verify import verify
from hubbub.config.policy import parse_policy
from hubbub.core.events import GaussianEvent

WITH_DELTA = """
version: 1
datasets:
  visits: {budget: {epsilon: 2, delta: 1e-6}}
analysts:
  ana: {visits: {epsilon: 2}}
  ben: {visits: {epsilon: 2}}
"""
NOISE = GaussianEvent(1, Fraction(100))
CAP = Budget(Fraction(2), Fraction(1, 10**6))
OLD, NEW = privacy_cost(NOISE).by_first_rule, privacy_cost(NOISE)
FITS_OLD = how_often(CAP, ZERO, OLD, 1000)


def stored(desk: Desk) -> dict[str, PrivacyCost]:
    store = desk.store(read_only=True)
    with closing(store), store.snapshot() as snapshot:
        totals = {**snapshot.totals(), **verify(snapshot, None).ahead}
    return {name: PrivacyCost.from_json(json.loads(each.spent)) for name, each in totals.items()}


def fill(desk: Desk, analyst: str) -> int:
    """Charge until the cap refuses, and count."""
    with desk.open() as ledger:
        for count in range(1000):
            try:
                ledger.charge(desk.request(analyst=analyst, event=NOISE))
            except CapError:
                return count
    raise AssertionError("never refused")


@pytest.mark.parametrize("before", [1, 4])
def test_a_cap_with_old_charges_keeps_the_first_rule(desk: Desk, before: int) -> None:
    """After 4 charges the last ones are not in the stored totals, and are read from the entries."""
    now = parse_policy(WITH_DELTA)
    with desk.open(policy=replace(now, rule=1)) as ledger:
        for _ in range(before):
            ledger.charge(desk.request(event=NOISE))
    with desk.open(policy=now) as ledger:
        assert ledger.verify().sound
        ledger.charge(desk.request(event=NOISE))
        assert ledger.verify().sound
    assert before + 1 + fill(desk, "ana") == FITS_OLD
    with desk.open() as ledger:
        assert ledger.verify().sound
    totals = stored(desk)
    assert totals["analyst/ana/visits"].gaussian is None
    assert totals["dataset/visits"].gaussian is None
    assert len(totals["dataset/visits"].to_json()) == 3


def test_a_cap_without_old_charges_has_the_new_rule(desk: Desk) -> None:
    with desk.open(policy=replace(parse_policy(WITH_DELTA), rule=1)):
        pass
    with desk.open(policy=parse_policy(WITH_DELTA)) as ledger:
        ledger.charge(desk.request(event=NOISE, analyst="ben"))
        assert ledger.verify().sound
    totals = stored(desk)
    assert totals["analyst/ben/visits"].gaussian is not None
    assert FITS_OLD < 1 + fill(desk, "ana") == how_often(CAP, ZERO, NEW, 1000)


def test_charges_of_both_rules_have_no_gaussian_price() -> None:
    for total in (OLD + NEW, NEW + OLD, OLD.times(3) + NEW.times(2)):
        assert total.gaussian is None
        assert PrivacyCost.from_json(total.to_json()) == total
    assert admits(CAP, OLD.times(FITS_OLD - 1), NEW)
    assert not admits(CAP, OLD.times(FITS_OLD), NEW)


def test_a_policy_is_recorded_with_its_rule() -> None:
    policy = parse_policy(WITH_DELTA)
    record = json.loads(policy.text)
    assert record["filters"] == 2
    assert type(policy).from_record(record).text == policy.text
    old = json.loads(replace(policy, rule=1).text)
    assert "filters" not in old
    assert type(policy).from_record(old).rule == 1
    for wrong in (0, 3, "2", None):
        with pytest.raises(ValueError, match="filters"):
            type(policy).from_record(record | {"filters": wrong})
