"""Declarations in the chain: every change is an entry, and one that breaks what a charge promised is refused."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.calls import ChargeRequest
from hubbub.accounting.declarations import broken_guarantee, problems, summary
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.policy import Policy
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.status import history
from hubbub.accounting.store import EntryFilter
from hubbub.config.policy import parse_policy
from hubbub.core.events import LaplaceEvent
from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

YAML = """
version: 1
datasets: {visits: {budget: {epsilon: 1}}, labs: {budget: {epsilon: 1}}}
analysts: {ana: {visits: {epsilon: 1}, labs: {epsilon: 1}}, ben: {visits: {epsilon: 1}}}
"""


def declared(
    column: str | None = "person",
    kind: str | None = "integer",
    relation: str = "add_remove",
    entity: str = "",
    rows: int = 1,
    **columns: Any,
) -> dict[str, Any]:
    unit = {"column": column, "kind": kind, "entity": entity, "groups": 1, "rows": rows}
    return {"public": False, "columns": columns, "unit": unit, "relation": relation}


PUBLIC: dict[str, Any] = {"public": True, "columns": {}}
PERSON = declared()
ROW = declared(None, None)


def policy(visits: dict[str, Any] | None = None, text: str = YAML, **changes: Any) -> Policy:
    declarations = {} if visits is None else {"visits": visits, "labs": declared()}
    return replace(parse_policy(text), declarations=declarations, **changes)


class Books:
    """A ledger's place: opened under one policy after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys = itertools.count()

    def open(self, under: Policy) -> Ledger:
        store = SqliteStore(self.folder / "ledger.db")
        try:
            return Ledger.open(store, policy=under, anchor=FileAnchor(self.folder / "anchor"))
        except BaseException:
            store.close()
            raise

    def charge(self, ledger: Ledger, dataset: str = "visits") -> None:
        event = LaplaceEvent(sensitivity=1, scale=Fraction(10))
        ledger.charge(ChargeRequest("ana", dataset, "1", event, "q", f"k{next(self.keys)}"))

    def kinds(self) -> list[str]:
        store = SqliteStore(self.folder / "ledger.db", read_only=True)
        try:
            with store.snapshot() as snapshot:
                return [entry.kind for entry in snapshot.entries(EntryFilter())]
        finally:
            store.close()


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books(tmp_path)


# --- which changes break a promise --------------------------------------------------------------------------------


def neighbors(declaration: dict[str, Any]) -> object:
    """Write down, apart from the code, what makes two datasets neighbors."""
    if declaration["public"]:
        return None
    return declaration["unit"]["column"], declaration["unit"]["kind"], declaration["relation"]


def test_every_pair_of_declarations_is_weaker_or_has_equal_neighbors() -> None:
    every = [PUBLIC] + [
        declared(column, kind, relation, entity, rows)
        for (column, kind) in ((None, None), ("person", "integer"), ("person", "text"), ("visit", "integer"))
        for relation in ("add_remove", "replace")
        for entity in ("", "patient", "staff")
        for rows in (1, 5)
    ]
    for before, now in itertools.product(every, repeat=2):
        broken = broken_guarantee(before, now) is not None
        if before["public"]:
            assert not broken, "nothing was promised about public data"
        elif neighbors(before) != neighbors(now):
            assert broken
        else:
            moved = before["unit"]["entity"] not in ("", now["unit"]["entity"])
            assert broken == moved, "a first entity may be added, and none changed; bounds and rows are free"


# --- the chain ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (ROW, "from person to row"),
        (declared("visit"), "from person to visit"),
        (declared(relation="replace"), "from add_remove to replace"),
        (declared(kind="text"), "from integer to text"),
        (PUBLIC, "public"),
    ],
)
def test_a_change_after_a_charge_is_refused_and_leaves_no_entry(
    books: Books, change: dict[str, Any], says: str
) -> None:
    with books.open(policy(PERSON)) as ledger:
        books.charge(ledger)
        with pytest.raises(ConfigError, match="HB433") as refused:
            ledger.govern(policy(change))
        assert says in refused.value.message
        assert "new name" in refused.value.remedy
        books.charge(ledger)
        assert ledger.policy.declarations["visits"] == PERSON
        assert ledger.verify().sound
    with pytest.raises(ConfigError, match="HB433"):
        books.open(policy(change))
    assert books.kinds() == ["policy", "charge", "charge"]


def test_a_change_before_any_charge_is_an_entry(books: Books) -> None:
    with books.open(policy(PERSON)) as ledger:
        books.charge(ledger, "labs")
        ledger.govern(policy(ROW))
        books.charge(ledger)
        assert ledger.verify().sound
    assert books.kinds() == ["policy", "charge", "policy", "charge"]


def test_bounds_and_contributions_change_freely_and_each_change_is_an_entry(books: Books) -> None:
    with books.open(policy(PERSON)) as ledger:
        books.charge(ledger)
        ledger.govern(policy(declared(rows=5)))
        books.charge(ledger)
        ledger.govern(policy(declared(rows=5, age={"kind": "integer", "bounds": ["0", "110"]})))
        ledger.govern(policy(declared(rows=5, age={"kind": "integer", "bounds": ["0", "110"]}, entity="patient")))
        books.charge(ledger)
        assert ledger.verify().sound
    assert books.kinds() == ["policy", "charge", "policy", "charge", "policy", "policy", "charge"]


def test_the_same_declarations_are_one_entry(books: Books) -> None:
    for _ in range(3):
        books.open(policy(PERSON)).close()
    assert books.kinds() == ["policy"]


def test_a_ledger_of_an_older_hubbub_opens_and_gets_a_first_declaration(books: Books) -> None:
    with books.open(policy()) as ledger:
        books.charge(ledger)
    with books.open(policy(PERSON)) as ledger:
        books.charge(ledger)
        assert ledger.verify().sound
        with pytest.raises(ConfigError, match="HB433"):
            ledger.govern(policy(ROW))
    assert books.kinds() == ["policy", "charge", "policy", "charge"]


def test_a_dataset_that_was_removed_comes_back_under_its_promise_alone(books: Books) -> None:
    without = YAML.replace("visits: {budget: {epsilon: 1}}, ", "").replace("visits: {epsilon: 1}, ", "")
    without = without.replace("ben: {visits: {epsilon: 1}}", "ben: {}")
    with books.open(policy(PERSON)) as ledger:
        books.charge(ledger)
        ledger.govern(replace(parse_policy(without), declarations={"labs": declared()}))
        for turn in range(100):  # beyond the entries that a ledger reads again
            ledger.govern(policy(PERSON, returning=("ana",) if turn % 2 else ()))
        ledger.govern(replace(parse_policy(without), declarations={"labs": declared()}))
        with pytest.raises(ConfigError, match="HB433"):
            ledger.govern(policy(ROW))
        ledger.govern(policy(PERSON))


def test_a_charge_and_a_change_in_one_transaction_are_told_apart(books: Books) -> None:
    """A group commit may hold both: the charge that came first counts, though no snapshot has it."""
    with books.open(policy(PERSON)) as ledger, ledger.snapshot() as snapshot:
        assert problems(snapshot, policy(ROW)) == []
        books.charge(ledger)
        with ledger.snapshot() as later:
            fresh = list(later.entries(EntryFilter(kind="charge")))
        assert [each.code for each in problems(snapshot, policy(ROW), fresh)] == ["HB433"]


def test_the_rule_holds_in_every_store_and_while_charges_are_made(desk: "Desk") -> None:
    """Eight threads charge while the owner tries to loosen the unit: no charge is ever made under the looser one."""
    ledger = desk.open(policy=replace(desk.policy, declarations={"visits": PERSON}))
    loose = replace(desk.policy, declarations={"visits": ROW})
    desk.spend(ledger, "0.001")
    with ThreadPoolExecutor(8) as pool:
        charged = [pool.submit(desk.spend, ledger, "0.001") for _ in range(40)]
        for _ in range(5):
            with pytest.raises(ConfigError, match="HB433"):
                ledger.govern(loose)
        for each in charged:
            each.result()
    with pytest.raises(ConfigError, match="HB433"):
        desk.open(policy=loose)
    assert ledger.verify().sound


def test_verification_finds_a_charge_that_breaks_an_earlier_promise(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.accounting.transaction.problems", lambda *_: [])
    with books.open(policy(PERSON)) as ledger:
        books.charge(ledger)
        ledger.govern(policy(ROW))
        assert ledger.verify().sound
        books.charge(ledger)
        (problem,) = ledger.verify().problems
        assert (problem.part, "from person to row" in problem.text) == ("charge", True)


def test_verification_compares_a_receipts_relation_with_the_declared_one(books: Books) -> None:
    event = LaplaceEvent(sensitivity=1, scale=Fraction(10))
    with books.open(policy(PERSON)) as ledger:
        for key, relation in (("a", "add_remove"), ("b", "replace")):
            charge = ledger.charge(ChargeRequest("ana", "visits", "1", event, "q", key))
            ledger.record(charge, json.dumps({"receipt": {"relation": relation}}, separators=(",", ":")).encode())
        (problem,) = ledger.verify().problems
        assert "charge 4 states a neighbor relation that was not declared" in problem.text


def test_every_charge_is_bound_to_its_declaration_by_hash(books: Books) -> None:
    with books.open(policy(PERSON)) as ledger:
        books.charge(ledger)
        with ledger.snapshot() as snapshot:
            entries = list(snapshot.entries(EntryFilter()))
    assert entries[1].config == entries[0].config == policy(PERSON).hash != policy(ROW).hash
    assert Policy.from_record(json.loads(entries[0].facts)).declarations["visits"] == PERSON


def test_the_history_says_whom_each_policy_protects(books: Books) -> None:
    with books.open(policy(declared(entity="patient"))) as ledger, ledger.snapshot() as snapshot:
        (line,) = history(snapshot, EntryFilter())
    assert "visits (person (patient), add_remove)" in line.text()
    assert summary(policy(PUBLIC).text) == "labs (person, add_remove); visits (public)"
    assert summary(policy().text) == ""


def test_a_policy_without_declarations_has_the_hash_it_always_had() -> None:
    golden = (
        '{"analysts":{"ana":{"labs":{"epsilon":"1"},"visits":{"epsilon":"1"}},"ben":{"visits":{"epsilon":"1"}}},'
        '"datasets":{"labs":{"budget":{"epsilon":"1"}},"visits":{"budget":{"epsilon":"1"}}},"groups":{},"version":1}'
    )
    assert replace(policy(), rule=1).text == golden
    assert policy().text == golden.replace('"groups"', '"filters":2,"groups"')


# --- names of analysts --------------------------------------------------------------------------------------------


def test_a_removed_name_is_not_given_again_unless_the_owner_says_so(books: Books) -> None:
    without = YAML.replace(", ben: {visits: {epsilon: 1}}", "")
    with books.open(policy(PERSON)) as ledger:
        ledger.govern(policy(PERSON, without))
        with pytest.raises(ConfigError, match="HB434") as refused:
            ledger.govern(policy(PERSON))
        assert "returning: [ben]" in refused.value.remedy
        ledger.govern(policy(PERSON, YAML + "returning: [ben]\n"))
        ledger.govern(policy(PERSON))  # in force, the name needs no word any more
        ledger.govern(policy(PERSON, without))
    with pytest.raises(ConfigError, match="HB434"):
        books.open(policy(PERSON))
    with books.open(policy(PERSON, YAML.replace("ben:", "bea:"))) as ledger:
        assert ledger.verify().sound


@pytest.mark.parametrize("text", ["returning: ana", "returning: [eve]", "returning: [3]"])
def test_who_returns_is_an_analyst(text: str) -> None:
    with pytest.raises(ConfigError, match="HB407"):
        parse_policy(YAML + text)
