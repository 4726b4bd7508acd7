import json
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from tests.accounting.conftest import as_document

from hubbub.accounting.anchor import FileAnchor
from hubbub.accounting.filters import Budget
from hubbub.accounting.forfeit import ForfeitResult, forfeit
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.store import EntryFilter
from hubbub.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk


def write_off(
    desk: "Desk", *, amount: Budget | None = None, reason: str = "the disk died", **more: object
) -> ForfeitResult:
    return forfeit(
        lambda: desk.store(exclusive=True),
        desk.set_aside,
        policy=desk.policy,
        anchor=FileAnchor(desk.anchor),
        by="olga",
        reason=reason,
        amount=amount,
        **more,  # type: ignore[arg-type]
    )


def code(action: Callable[[], object]) -> str:
    with pytest.raises((LedgerError, ParameterError)) as refusal:
        action()
    return refusal.value.code


@pytest.fixture
def restored(desk: "Desk") -> "Desk":
    """A ledger that was put back from a backup, two charges ago."""
    with desk.open() as ledger:
        desk.spend(ledger, "0.5", key="known")
    backup = desk.backup()
    with desk.open() as ledger:
        desk.spend(ledger, "0.25", dataset="wards")
        desk.spend(ledger, "0.25")
    desk.restore(backup)
    assert code(desk.open) == "HB307"
    return desk


def nothing_is_left(desk: "Desk") -> None:
    with desk.open() as ledger:
        for analyst, dataset in (("ana", "visits"), ("ben", "visits"), ("cleo", "visits"), ("ana", "wards")):
            granted, refusal = desk.exhaust(ledger, "0.000000001", analyst=analyst, dataset=dataset)
            assert granted == 0
            assert refusal.largest == 0
        assert ledger.verify().sound


def test_a_restored_ledger_goes_on_with_nothing_left(restored: "Desk") -> None:
    done = write_off(restored)
    assert done.set_aside is None
    assert done.charged["dataset/visits"] == Budget(Fraction(6), Fraction(1, 10**9))
    assert set(done.charged) == {cap.label for cap in restored.policy.every_cap()}
    nothing_is_left(restored)


def test_the_forfeit_stands_in_the_chain_with_who_why_and_what_was_lost(restored: "Desk") -> None:
    write_off(restored)
    with restored.open() as ledger, ledger.snapshot() as snapshot:
        (entry,) = snapshot.entries(EntryFilter(kind="forfeit"))
    facts = json.loads(entry.facts)
    assert (facts["by"], facts["reason"], facts["anchored"][1]) == ("olga", "the disk died", 4)
    assert entry.sequence == 3


def test_what_was_released_before_is_still_replayed(restored: "Desk") -> None:
    write_off(restored)
    with restored.open() as ledger:
        assert ledger.charge(restored.request("0.5", key="known")).replayed


def test_an_owner_who_knows_the_amount_may_name_it(restored: "Desk") -> None:
    write_off(restored, amount=Budget(Fraction(1, 4), Fraction(0)))
    with restored.open() as ledger:
        assert restored.exhaust(ledger, "0.25", dataset="wards")[0] == 3
        assert restored.exhaust(ledger, "0.25")[0] == 5  # 2 − 0.5 known − 0.25 forfeited
        assert ledger.verify().sound


def test_raising_the_cap_afterwards_gives_only_the_difference(restored: "Desk") -> None:
    write_off(restored)
    wider = as_document(restored.policy)
    wider = wider.replace('"wards":{"budget":{"epsilon":"1"}}', '"wards":{"budget":{"epsilon":"3/2"}}')
    wider = wider.replace('"wards":{"epsilon":"1"}', '"wards":{"epsilon":"3/2"}')
    with restored.open(policy=wider) as ledger:
        assert restored.exhaust(ledger, "0.25", dataset="wards")[0] == 2


@pytest.mark.parametrize("anchor", ["missing", "damaged", "behind"])
def test_a_lost_anchor_needs_a_forfeit_too(desk: "Desk", anchor: str) -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    if anchor == "missing":
        desk.anchor.unlink()
        assert code(desk.open) == "HB308"
    elif anchor == "damaged":
        desk.anchor.write_bytes(b"?" * 100)
        assert code(desk.open) == "HB310"
    write_off(desk)
    nothing_is_left(desk)


def test_an_edited_ledger_is_set_aside_and_a_new_one_begins_with_the_forfeit(desk: "Desk") -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    desk.edit("UPDATE entries SET analyst = 'eve' WHERE sequence = 2")
    assert code(lambda: write_off(desk, amount=Budget(Fraction(1), Fraction(0)))) == "HB316"
    done = write_off(desk)
    assert done.set_aside is not None
    assert desk.lies_aside(done.set_aside)
    nothing_is_left(desk)


def test_a_damaged_file_is_set_aside(file_desk: "Desk") -> None:
    desk = file_desk
    with desk.open() as ledger:
        desk.spend(ledger)
    desk.database.write_bytes(b"not a database any more" * 1000)
    assert code(desk.open) == "HB306"
    done = write_off(desk)
    assert done.set_aside is not None
    nothing_is_left(desk)


def test_a_deleted_database_cannot_be_bought_back_by_an_amount(desk: "Desk") -> None:
    with desk.open() as ledger:
        desk.spend(ledger)
    desk.destroy()
    assert code(desk.open) == "HB307"
    assert code(lambda: write_off(desk, amount=Budget(Fraction(1, 10), Fraction(0)))) == "HB316"
    write_off(desk)
    nothing_is_left(desk)


def test_a_forfeit_without_a_reason_is_refused(restored: "Desk") -> None:
    assert code(lambda: write_off(restored, reason="  ")) == "HB125"
    assert code(restored.open) == "HB307"


@pytest.mark.parametrize("state", ["restored", "edited", "edited and no anchor"])
def test_a_crash_in_the_middle_of_a_forfeit_never_opens_the_ledger(
    desk: "Desk", restored: "Desk", state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at any moment before the end, the ledger is still refused, or has nothing left."""
    if state != "restored":
        desk.edit("UPDATE entries SET analyst = 'eve' WHERE sequence = 2")
    if state.endswith("no anchor"):
        desk.anchor.unlink()

    class Crash(BaseException):
        pass

    moments: list[tuple[type, str]] = [(Ledger, "note"), (FileAnchor, "reset"), (FileAnchor, "close")]
    for owner, name in moments:
        for at in (1, 2):
            real, calls = getattr(owner, name), [0]

            def stop(*args: object, _real: object = real, _calls: list[int] = calls, _at: int = at) -> object:
                _calls[0] += 1
                if _calls[0] == _at:
                    raise Crash
                return _real(*args)  # type: ignore[operator]

            with monkeypatch.context() as patch:
                patch.setattr(owner, name, stop)
                try:
                    write_off(desk)
                    whole = True
                except Crash:
                    whole = name == "close"  # the last thing that happens
            if whole:
                nothing_is_left(desk)
            else:
                assert code(desk.open) in ("HB307", "HB308", "HB310"), (owner, name, at)
    write_off(desk)
    nothing_is_left(desk)


def test_a_clock_that_ran_ahead_can_be_put_right(desk: "Desk") -> None:
    time = [10**16]
    with desk.open(clock=lambda: time[0]) as ledger:
        desk.spend(ledger)
        time[0] -= 10**15
        assert code(lambda: desk.spend(ledger)) == "HB311"
    write_off(desk, amount=Budget(Fraction(1, 1000), Fraction(0)), clock=lambda: time[0])
    with desk.open(clock=lambda: time[0]) as ledger:
        assert desk.spend(ledger).entry.time == time[0]
        assert ledger.verify().sound
