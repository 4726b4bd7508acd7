"""A row that the database does not take fails alone; an error that leaves the disk in doubt stops the ledger."""

import sqlite3
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from tests.accounting.conftest import PostgresDesk

from hubbub.accounting import ledger as ledgers
from hubbub.accounting.calls import ChargeCall, RecordCall
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import MAX_RELEASE_BYTES
from hubbub.accounting.transaction import Transaction
from hubbub.errors import LedgerError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

SMALL, LARGE = b"x" * 1000, b"x" * 200_000


def narrow(desk: "Desk", ledger: Ledger, state: str = "54000") -> Callable[[], None]:
    """Let the database itself refuse large releases; give what takes that back."""
    if isinstance(desk, PostgresDesk):
        desk.edit(
            "CREATE FUNCTION narrow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF length(NEW.body) > 100000 THEN "
            f"RAISE EXCEPTION 'too large' USING ERRCODE = '{state}'; END IF; RETURN NEW; END $$",
            "CREATE TRIGGER narrow BEFORE INSERT ON releases FOR EACH ROW EXECUTE FUNCTION narrow()",
            triggers=True,
        )
        return lambda: desk.edit("DROP TRIGGER narrow ON releases", "DROP FUNCTION narrow()", triggers=True)
    writer: sqlite3.Connection = ledger._store._writer  # type: ignore[attr-defined]
    before = writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
    return lambda: void(writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before))


def void(_: object) -> None:
    """Forget a value."""


def code(action: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as refusal:
        action()
    return refusal.value.code


def test_a_release_that_the_database_does_not_take_fails_alone(desk: "Desk") -> None:
    ledger = desk.open()
    first, second = desk.spend(ledger), desk.spend(ledger)
    widen = narrow(desk, ledger)
    assert code(lambda: ledger.record(first, LARGE)) == "HB331"
    assert code(lambda: ledger.record(first, LARGE)) == "HB331"
    assert ledger.record(second, SMALL) == SMALL
    third = desk.spend(ledger, analyst="cleo")
    assert ledger.record(third, SMALL) == SMALL
    widen()
    assert ledger.record(first, LARGE) == LARGE  # the charge stood all the while
    assert ledger.verify().sound
    _, spent = desk.totals()
    assert spent["dataset/visits"] == Fraction(3, 10)


@pytest.mark.parametrize("state", ["22001", "53100", "53200", "54000"])
def test_every_refusal_of_postgresql_that_aborts_is_borne(postgres_desk: PostgresDesk, state: str) -> None:
    ledger = postgres_desk.open()
    charge = postgres_desk.spend(ledger)
    widen = narrow(postgres_desk, ledger, state)
    assert code(lambda: ledger.record(charge, LARGE)) == "HB331"
    assert ledger.record(charge, SMALL) == SMALL
    widen()
    assert ledger.verify().sound


@pytest.mark.parametrize("state", ["XX001", "58030", "23505"])
def test_errors_of_postgresql_that_leave_a_doubt_stop_the_ledger(postgres_desk: PostgresDesk, state: str) -> None:
    """Damage, I/O errors, and a row that was there already: nobody knows what the disk has."""
    ledger = postgres_desk.open()
    charge = postgres_desk.spend(ledger)
    narrow(postgres_desk, ledger, state)
    assert code(lambda: ledger.record(charge, LARGE)) == "HB301"
    assert code(lambda: postgres_desk.spend(ledger)) == "HB301"


def test_in_a_group_only_the_refused_call_fails(desk: "Desk") -> None:
    """The others of its transaction are served by themselves, and each is charged once."""
    ledger = desk.open()
    first, second = desk.spend(ledger), desk.spend(ledger)
    widen = narrow(desk, ledger)
    calls: list[Any] = [
        ChargeCall([desk.request()]),
        RecordCall(first, LARGE),
        RecordCall(second, SMALL),
        ChargeCall([desk.request()]),
    ]
    ledger._serve(calls)
    assert [call.error.code if call.error else None for call in calls] == [None, "HB331", None, None]
    assert calls[2].outcome == SMALL
    assert all(calls[place].outcome[0].sequence for place in (0, 3))
    widen()
    assert ledger.verify().sound
    _, spent = desk.totals()
    assert spent["dataset/visits"] == Fraction(4, 10)
    granted, _ = desk.exhaust(ledger, "0.1")
    assert granted == 16  # of the 20 that ana may have


@pytest.mark.parametrize("kind", [MemoryError, OverflowError, ValueError])
def test_an_error_before_anything_was_written_is_borne(
    desk: "Desk", kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In deciding, and in handing rows to the database."""
    ledger = desk.open()
    charge = desk.spend(ledger)

    def fail(*_: object) -> None:
        raise kind

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "record", fail)
        assert code(lambda: ledger.record(charge, SMALL)) == "HB331"
    for step in ("entries", "releases", "totals"):
        with monkeypatch.context() as patched:
            patched.setattr(ledger, "_on_step", lambda at, step=step: fail() if at == step else None)
            assert code(lambda: ledger.record(charge, SMALL)) == "HB331"
    assert ledger.record(charge, SMALL) == SMALL
    assert ledger.verify().sound


@pytest.mark.parametrize("number", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM])
def test_an_error_of_a_commit_stops_the_ledger(file_desk: "Desk", number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever SQLite says: the log may hold the commit or not."""
    ledger = file_desk.open()
    charge = file_desk.spend(ledger)
    store = ledger._store
    assert isinstance(store, SqliteStore)
    do = store._do

    def failing(statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            error = sqlite3.OperationalError("planted")
            error.sqlite_errorcode = number
            raise error
        return do(statement, *values)

    monkeypatch.setattr(store, "_do", failing)
    assert code(lambda: ledger.record(charge, SMALL)) == "HB301"
    monkeypatch.setattr(store, "_do", do)
    assert code(lambda: file_desk.spend(ledger)) == "HB301"


def test_a_release_beyond_every_bound_is_refused_before_the_transaction(
    desk: "Desk", monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_RELEASE_BYTES < 1_000_000_000  # what SQLite takes; PostgreSQL takes 2³⁰ − 1
    ledger = desk.open()
    charge = desk.spend(ledger)
    monkeypatch.setattr(ledgers, "MAX_RELEASE_BYTES", 999)
    steps: list[str] = []
    ledger._on_step = steps.append
    assert code(lambda: ledger.record(charge, SMALL)) == "HB330"
    assert not steps
    assert ledger.record(charge, SMALL[:999]) == SMALL[:999]
