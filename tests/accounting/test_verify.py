import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.chain import Entry, Mark, append, genesis
from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.ledger import examine
from hubbub.accounting.store import EntryFilter
from hubbub.accounting.verify import Verification, _check_keys, _Progress, cost_of_budget
from hubbub.core.events import GaussianEvent, LaplaceEvent, ResponseEvent
from hubbub.errors import LedgerError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

ENTRIES = 6  # policy, charge, release, charge, charge, release


def fill(desk: "Desk") -> "Desk":
    """Make a small ledger with a bit of everything."""
    with desk.open() as ledger:
        ledger.record(desk.spend(ledger, "0.5"), b"first answer")
        desk.spend(ledger, "0.25", analyst="ben")
    with desk.open() as ledger:  # which stores all totals with its first charge
        ledger.record(ledger.charge(desk.request(event=GaussianEvent(1, Fraction(900)))), b"second answer")
    return desk


@pytest.fixture
def kept(desk: "Desk") -> "Desk":
    return fill(desk)


def verification(desk: "Desk") -> Verification:
    store = desk.store(read_only=True)
    try:
        return examine(store, FileAnchor(desk.anchor))
    finally:
        store.close()


def found(desk: "Desk") -> list[str]:
    return [problem.part for problem in verification(desk).problems]


def test_an_honest_ledger_is_sound(kept: "Desk") -> None:
    report = verification(kept)
    assert report.sound
    assert (report.entries, report.charges, report.releases, report.caps) == (ENTRIES, 3, 2, 4)
    assert "3 charges, 1 of them without a release" in report.report()


COLUMNS = [
    "kind",
    "time",
    "analyst",
    "dataset",
    "version",
    "facts",
    "query",
    "key",
    "charge",
    "request",
    "config",
    "previous",
    "hash",
]


@pytest.mark.parametrize("column", COLUMNS)
def test_every_single_edit_of_an_entry_is_found(kept: "Desk", column: str) -> None:
    assert set(COLUMNS) == set(Entry._fields) - {"sequence"}
    for sequence in range(1, ENTRIES + 1):
        ((value,),) = kept.ask(f"SELECT {column} FROM entries WHERE sequence = {sequence}")
        if isinstance(value, int):
            other = str(value + 1)
        elif isinstance(value, bytes):
            other = kept.literal(bytes([value[0] ^ 1]) + value[1:])
        else:
            other = "'" + (value + "x").replace("'", "''") + "'"
        restore = kept.literal(value) if isinstance(value, bytes) else repr(value) if isinstance(value, int) else None
        kept.edit(f"UPDATE entries SET {column} = {other} WHERE sequence = {sequence}")
        assert found(kept), (column, sequence)
        with pytest.raises(LedgerError) as refusal:
            kept.open()
        assert refusal.value.code in ("HB307", "HB306")
        text = restore if restore is not None else "'" + str(value).replace("'", "''") + "'"
        kept.edit(f"UPDATE entries SET {column} = {text} WHERE sequence = {sequence}")
        assert found(kept) == []


@pytest.mark.parametrize("sequence", range(1, ENTRIES + 1))
def test_a_missing_entry_is_found(kept: "Desk", sequence: int) -> None:
    kept.edit(f"DELETE FROM entries WHERE sequence = {sequence}")
    assert found(kept)


def test_an_entry_rewritten_with_its_own_hash_no_longer_leads_to_the_next(kept: "Desk") -> None:
    store = kept.store()
    with store.snapshot() as snapshot:
        (entry,) = [entry for entry in snapshot.entries(EntryFilter()) if entry.sequence == 4]
    store.close()
    rest = {name: getattr(entry, name) for name in Entry._fields[3:] if name not in ("previous", "hash")}
    forged = append(entry.previous, 4, "charge", entry.time, **rest | {"analyst": "eve"})
    kept.edit(f"UPDATE entries SET analyst = 'eve', hash = {kept.literal(forged.hash)} WHERE sequence = 4")
    assert [problem.text for problem in verification(kept).problems] == [
        "entry 5 was changed, or does not follow the previous one"
    ]


def test_a_recorded_policy_that_the_configuration_would_refuse_is_found(desk: "Desk") -> None:
    desk.policy = replace(desk.policy, show={"visits": "rounded"})
    with desk.open():
        pass
    assert [problem.text for problem in verification(desk).problems] == ["a record cannot be read (ValueError)"]


def test_entries_in_another_order_are_found(kept: "Desk") -> None:
    kept.edit(
        "UPDATE entries SET sequence = 99 WHERE sequence = 2",
        "UPDATE entries SET sequence = 2 WHERE sequence = 4",
        "UPDATE entries SET sequence = 4 WHERE sequence = 99",
    )
    assert found(kept) == ["chain"]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE totals SET spent = replace(spent, '1/4', '1/8')",
        """UPDATE totals SET spent = replace(spent, ',"0",[', ',"1/9",[')""",
        "UPDATE totals SET spent = '[]' WHERE cap = 'dataset/visits'",
        "DELETE FROM totals WHERE cap = 'group/interns/visits'",
        "INSERT INTO totals SELECT 'analyst/eve/visits', spent, sequence FROM totals LIMIT 1",
    ],
)
def test_a_total_that_is_not_the_sum_of_its_charges_is_found(kept: "Desk", edit: str) -> None:
    kept.edit(edit)
    assert set(found(kept)) == {"totals"}
    with pytest.raises(LedgerError, match="is not the sum of its charges"):
        kept.open()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("UPDATE releases SET body = {} WHERE charge = 2", "does not match the recorded hash"),
        ("DELETE FROM releases WHERE charge = 5", "is missing"),
        ("INSERT INTO releases VALUES (4, {})", "does not match the recorded hash"),
        ("UPDATE releases SET charge = 4 WHERE charge = 2", "does not match the recorded hash"),
    ],
)
def test_a_release_that_was_touched_is_found(kept: "Desk", edit: str, said: str) -> None:
    kept.edit(edit.format(kept.literal(b"other")))
    report = verification(kept)
    assert {problem.part for problem in report.problems} == {"release"}
    assert said in report.report()


def rebuilt(kept: "Desk", change: Callable[[list[Entry]], list[Entry]]) -> list[str]:
    """Let an editor who knows the format change entries and rebuild all hashes, the anchor included."""
    store = kept.store()
    with store.snapshot() as snapshot:
        entries = change(list(snapshot.entries(EntryFilter())))
    chain, last = [], genesis(store.ledger)
    for number, entry in enumerate(entries, 1):
        rest = {name: getattr(entry, name) for name in Entry._fields[3:] if name not in ("previous", "hash")}
        chain.append(append(last, number, entry.kind, entry.time, **rest))
        last = chain[-1].hash
    ledger = store.ledger
    store.close()
    kept.put(chain)
    anchor = FileAnchor(kept.anchor)
    anchor.reset(Mark(ledger, len(chain), last))
    anchor.close()
    return [problem.text for problem in verification(kept).problems]


def swap(entries: list[Entry], number: int, **changed: object) -> list[Entry]:
    return [entry._replace(**changed) if entry.sequence == number else entry for entry in entries]  # type: ignore[arg-type]


def test_even_with_a_rebuilt_chain_entries_must_make_sense(kept: "Desk") -> None:
    """What an editor changes who can rewrite database and anchor, and forgets one of the things that hang together."""
    facts = '{"mechanism":"laplace","scale":"2","sensitivity":1}'
    assert rebuilt(kept, lambda entries: entries) == []
    cases: list[tuple[Callable[[list[Entry]], list[Entry]], str]] = [
        (lambda e: swap(e, 4, facts=facts), "the policy or request of charge 4 does not match its hash"),
        (lambda e: swap(e, 4, query="sum"), "the policy or request of charge 4 does not match its hash"),
        (lambda e: swap(e, 4, config=b"c" * 32), "the policy or request of charge 4 does not match its hash"),
        (lambda e: swap(e, 3, charge=1), "belongs to no charge"),
        (lambda e: swap(e, 3, charge=4), "does not match the recorded hash"),
        (lambda e: swap(e, 6, charge=2), "charge 2 has two releases"),
        (lambda e: swap(e, 1, facts=e[0].facts.replace('"6"', '"7"')), "the policy of entry 1 does not match its hash"),
        (lambda e: swap(e, 4, time=1), "older than the previous one"),
        (lambda e: swap(e, 3, kind="gift"), "has an unknown kind"),
        (lambda e: swap(e, 3, facts="[1, 2]"), "cannot be read"),
        (lambda e: swap(e, 3, facts="{"), "cannot be read"),
        (lambda e: e[:5], "does not match the recorded hash"),
        (lambda e: [*e[:3], *e[4:]], "total of"),
    ]
    honest = kept.backup()
    for change, said in cases:
        problems = rebuilt(kept, change)
        assert any(said in problem for problem in problems), (said, problems)
        kept.restore(honest)


def test_a_repeated_key_is_found_though_the_index_is_gone(kept: "Desk") -> None:
    kept.edit("DROP INDEX IF EXISTS one_charge_a_key")
    kept.edit("UPDATE entries SET key = 'key-1', analyst = 'ana' WHERE kind = 'charge'")

    class Bare:
        def entries(self, _: EntryFilter) -> list[Entry]:
            return [Entry(*row) for row in kept.ask("SELECT * FROM entries WHERE kind = 'charge' ORDER BY sequence")]

    result = _Progress()
    _check_keys(Bare(), result)  # type: ignore[arg-type]
    assert [problem.text for problem in result.problems] == [
        "charge 4 repeats a key of ana",
        "charge 5 repeats a key of ana",
    ]
    with pytest.raises(LedgerError, match=r"HB30[57]"):
        kept.open()


def test_a_flipped_bit_in_a_page_is_found_or_changes_nothing(file_desk: "Desk") -> None:
    """Every byte of the file that holds content, one at a time: an edit is found, or reads the same as before."""
    kept = fill(file_desk)
    honest = kept.database.read_bytes()
    store = kept.store()
    with store.snapshot() as snapshot:
        before = (list(snapshot.entries(EntryFilter())), list(snapshot.releases()), dict(snapshot.totals()))
    store.close()
    unseen = 0
    for place in range(0, len(honest), 97):
        kept.database.write_bytes(honest[:place] + bytes([honest[place] ^ 4]) + honest[place + 1 :])
        try:
            sound = verification(kept).sound
        except LedgerError:
            sound = False
        if sound:
            unseen += 1
            store = kept.store(read_only=True)
            with store.snapshot() as snapshot:
                assert before == (
                    list(snapshot.entries(EntryFilter())),
                    list(snapshot.releases()),
                    dict(snapshot.totals()),
                )
            store.close()
    assert unseen < len(honest) // 97  # most of a page is empty, and nobody reads it


def test_a_ledger_can_be_verified_while_it_is_used(desk: "Desk") -> None:
    ledger = desk.open()
    stop = threading.Event()
    sound: list[bool] = []

    def look() -> None:
        while not stop.is_set():
            sound.append(verification(desk).sound)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(100):
        desk.spend(ledger, "0.001")
    stop.set()
    thread.join()
    assert sound
    assert all(sound)


def test_a_forfeit_costs_at_least_what_any_mechanism_of_its_size_does() -> None:
    epsilon = Fraction(3, 2)
    loss = cost_of_budget(epsilon, Fraction(1, 10**9))
    assert (loss.pure, loss.delta) == (epsilon, Fraction(1, 10**9))
    for event in (LaplaceEvent(3, Fraction(2)), ResponseEvent(5, epsilon)):
        assert all(own <= most for own, most in zip(privacy_cost(event).renyi, loss.renyi, strict=True))
