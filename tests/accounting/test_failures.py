"""Failures after the charge: noted once a charge, counted, and started again where the owner looked."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from tests.accounting.conftest import as_document

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.calls import ChargeRequest, Remark, RemarkCall
from hubbub.accounting.failures import Failures, review
from hubbub.accounting.ledger import Ledger, examine
from hubbub.accounting.postgres import PostgresStore
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.status import history
from hubbub.accounting.store import LAG, EntryFilter, Store
from hubbub.config.policy import parse_policy
from hubbub.core.events import LaplaceEvent
from hubbub.errors import LedgerError

POLICY = parse_policy("""
version: 1
datasets:
  visits: {source: x, unit: row, budget: {epsilon: 100000}}
  labs: {source: x, unit: row, budget: {epsilon: 100000}}
analysts:
  ana: {visits: {epsilon: 100000}, labs: {epsilon: 100000}}
  ben: {visits: {epsilon: 100000}}
""")
OTHER = parse_policy(as_document(POLICY).replace('"ben"', '"cy"'))


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Ledger]:
    dsn = request.getfixturevalue("postgres_dsn") if request.param == "postgres" else None

    def store() -> Store:
        return SqliteStore(tmp_path / "ledger.db") if dsn is None else PostgresStore(dsn)

    return lambda: Ledger.open(store(), policy=POLICY, anchor=FileAnchor(tmp_path / "ledger.anchor"))


def charge(ledger: Ledger, key: str, analyst: str = "ana", dataset: str = "visits") -> Remark:
    event = LaplaceEvent(sensitivity=1, scale=Fraction(10))
    return Remark(analyst, dataset, ledger.charge(ChargeRequest(analyst, dataset, "1", event, "q", key)).sequence)


def counted(ledger: Ledger) -> dict[tuple[str, str], int]:
    failures = Failures()
    with ledger.snapshot() as snapshot:
        failures.take_in(snapshot)
    return {pair: len(charges) for pair, charges in failures.every().items()}


def test_failures_are_counted_by_analyst_and_data_set_once_a_charge(opened: Callable[[], Ledger]) -> None:
    with opened() as ledger:
        failures = Failures()
        first = charge(ledger, "a")
        for _ in range(3):
            failures.note(ledger, [first])
        Failures().note(ledger, [first])  # another server's
        failures.note(ledger, [charge(ledger, "b"), charge(ledger, "b labs", dataset="labs")])
        failures.note(ledger, [charge(ledger, "a", "ben")])
        assert counted(ledger) == {("ana", "labs"): 1, ("ana", "visits"): 2, ("ben", "visits"): 1}
        with ledger.snapshot() as snapshot:
            assert len(list(snapshot.entries(EntryFilter(kind="failure")))) == 4
        assert ledger.verify().sound
    with opened() as ledger:  # durable, and a start accepts it
        assert counted(ledger)["ana", "visits"] == 2


def test_a_review_starts_the_count_again(opened: Callable[[], Ledger]) -> None:
    with opened() as ledger:
        failures = Failures()
        failures.note(ledger, [charge(ledger, "a")])
        failures.note(ledger, [charge(ledger, "b")])
        with pytest.raises(LedgerError, match=r"HB325 2 queries of ana on visits failed"):
            failures.refuse("ana", "visits", 2)
        failures.refuse("ana", "visits", 3)
        failures.refuse("ana", "labs", 1)
        failures.refuse("ben", "visits", 1)
        with pytest.raises(LedgerError, match="HB327"):
            review(ledger, "ben", "visits", by="olga")
        with pytest.raises(LedgerError, match="HB327"):
            review(ledger, "ana", "visits", by="  ")
        assert len(review(ledger, "ana", "visits", by="olga")) == 2
        with ledger.snapshot() as snapshot:
            failures.take_in(snapshot)
            (entry,) = snapshot.entries(EntryFilter(kind="reviewed"))
        failures.refuse("ana", "visits", 1)
        assert (entry.analyst, entry.dataset, json.loads(entry.facts)["by"]) == ("ana", "visits", "olga")
        failures.note(ledger, [charge(ledger, "c")])
        assert counted(ledger) == {("ana", "visits"): 1}
        assert ledger.verify().sound


def test_totals_stay_exact_beside_failures_of_another_process(opened: Callable[[], Ledger]) -> None:
    """Each reads the other's entries; a total that was not stored yet must not be forgotten with a failure."""
    with opened() as one, opened() as other:
        for number in range(LAG + 10):
            ledger = (one, other)[number % 2]
            failed = charge(ledger, f"k{number}")
            if number % 5 == 0:
                Failures().note(ledger, [failed])
        assert one.verify().sound
        for ledger in (one, other):
            charge(ledger, "last" + str(id(ledger)))
            assert ledger.verify().sound


def test_a_failure_is_noted_under_the_policy_that_is_in_force(opened: Callable[[], Ledger]) -> None:
    """Another process changed the policy meanwhile: the entry must not bring the old one back."""
    with opened() as one, opened() as other:
        failed = charge(one, "a")
        other.govern(OTHER)
        Failures().note(one, [failed])
        assert other.verify().sound
        with other.snapshot() as snapshot:
            assert snapshot.head().config == OTHER.hash


def test_the_history_tells_of_both_kinds(opened: Callable[[], Ledger]) -> None:
    with opened() as ledger:
        failed = charge(ledger, "a")
        Failures().note(ledger, [failed])
        review(ledger, "ana", "visits", by="olga")
        with ledger.snapshot() as snapshot:
            lines = [line.text() for line in history(snapshot, EntryFilter())]
    assert f"of charge {failed.charge}" in lines[2]
    assert "failure" in lines[2]
    assert "olga" in lines[3]


@pytest.mark.parametrize(
    ("kind", "remark", "facts", "wrong"),
    [
        ("failure", Remark("ana", "visits", 1), "{}", "belongs to no charge"),
        ("failure", Remark("ana", "visits", 0), "{}", "belongs to no charge"),
        ("failure", Remark("ana", "visits", 9), "{}", "belongs to no charge"),
        (
            "reviewed",
            Remark("ana", "", 0),
            '{"by":"olga","charges":[2]}',
            "does not name reviewer, analyst and dataset",
        ),
        (
            "reviewed",
            Remark("ana", "visits", 0),
            '{"by":"","charges":[2]}',
            "does not name reviewer, analyst and dataset",
        ),
        ("applauded", Remark("ana", "visits", 2), "{}", "has an unknown kind"),
    ],
)
def test_verification_finds_what_cannot_be(tmp_path: Path, kind: str, remark: Remark, facts: str, wrong: str) -> None:
    anchor = FileAnchor(tmp_path / "ledger.anchor")
    with Ledger.open(SqliteStore(tmp_path / "ledger.db"), policy=POLICY, anchor=anchor) as ledger:
        charge(ledger, "a")
        ledger.remark(RemarkCall(kind, [remark], facts))  # type: ignore[arg-type]
    store = SqliteStore(tmp_path / "ledger.db", read_only=True)
    try:
        assert [wrong in problem.text for problem in examine(store, anchor).problems] == [True]
    finally:
        store.close()
