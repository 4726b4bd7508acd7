"""Detectors of errors in charging, refusing, storing and replaying; they complain about nothing in correct code."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.campaigns.rig.small_ledger import PRICE, LedgerPlace, request

from hubbub.accounting.store import EntryFilter
from hubbub.config import load
from hubbub.curator.opening import store_of
from hubbub.curator.session import Session, open_session
from hubbub.errors import BudgetError, HubbubError, RunError

ASK = "SELECT region, COUNT(*) AS n, COUNT(x) AS m FROM d GROUP BY region"
YAML = """
version: 1
datasets:
  d:
    source: d.csv
    unit: row
    columns: {region: {values: [a, b, c, d]}, x: {type: real, bounds: [0, 10]}}
    budget: {epsilon: 1, per_query: 0.5}
  e:
    source: e.csv
    unit: {column: who, entity: person, groups: 1, rows: 1}
    columns: {who: {type: integer}, y: {type: real, bounds: [0, 10]}}
    budget: {epsilon: 1}
  f:
    source: e.csv
    unit: {column: who, entity: person, groups: 1, rows: 1}
    columns: {who: {type: integer}, y: {type: real, bounds: [0, 10]}}
    budget: {epsilon: 1}
analysts:
  ana: {d: {epsilon: 0.6}, e: {epsilon: 1}, f: {epsilon: 1}}
  ben: {d: {epsilon: 0.6}}
  cy: {d: {epsilon: 0.6}}
groups:
  interns: {members: [ana, ben], d: {epsilon: 0.8}}
"""


@contextmanager
def _house() -> Iterator[Path]:
    """Create a folder with two small tables and a policy with caps of every kind."""
    with TemporaryDirectory(prefix="hubbub-house-") as folder:
        place = Path(folder)
        (place / "d.csv").write_text("region,x\n" + "".join(f"{'abcd'[i % 3]},{i % 10}\n" for i in range(60)))
        (place / "e.csv").write_text("who,y\n" + "".join(f"{i},{i % 10}\n" for i in range(60)))
        (place / "hubbub.yaml").write_text(YAML)
        yield place


def _open(place: Path, analyst: str = "ana") -> Session:
    return open_session(place / "hubbub.yaml", analyst=analyst)


def _left(session: Session, dataset: str = "d") -> Fraction:
    found = next(each for each in session.budget() if each.dataset == dataset)
    return next(cap.left for cap in found.caps if cap.scope == "analyst")


def _durable(place: Path) -> int:
    """Count the charges that another process would see."""
    store = store_of(load(place / "hubbub.yaml"), read_only=True)
    try:
        with store.snapshot() as snapshot:
            return sum(1 for _ in snapshot.entries(EntryFilter(kind="charge")))
    finally:
        store.close()


def path() -> list[str]:
    """Query, fail and retry: each query is charged durably before it runs, once, and never refunded."""
    return _heard(_walked)


def _walked() -> Iterator[str]:
    with _house() as place:
        with _open(place) as session:
            yield from _ordered(session, place)
            yield from _failed(session, place)
            yield from _again(session, place)
            kept = _left(session)
            charges = _durable(place)
        with _open(place) as session:
            if _left(session) != kept or _durable(place) != charges:
                yield "a restart changes what is left"
            if not session._curator.ledger.verify().sound:
                yield "the ledger does not verify"
            both = session.query("SELECT COUNT(*) AS n FROM e JOIN f ON e.who = f.who", epsilon="0.1")
            if {each["dataset"] for each in both.receipt["ledger"]} != {"e", "f"} or _left(session, "f") > Fraction(
                "0.9"
            ):
                yield "a query over two datasets is not charged to both"


def _ordered(session: Session, place: Path) -> Iterator[str]:
    engine = session._curator.engine
    run, seen = engine.run, list[int]()

    def watched(sql: str) -> Any:
        seen.append(_durable(place))
        return run(sql)

    engine.run = watched  # type: ignore[method-assign]
    session.query(ASK, epsilon="0.05")
    engine.run = run  # type: ignore[method-assign]
    if not seen or min(seen) < 1:
        yield "the data is touched before the charge is durable"


def _failed(session: Session, place: Path) -> Iterator[str]:
    before, charges = _left(session), _durable(place)
    error = _fail(session, "0.05")
    if not isinstance(error, RunError) or "CANARY" in str(error) or error.__context__ is not None:
        yield "a failure says more than one constant"
    if _left(session) != before - Fraction("0.05") or _durable(place) != charges + 1:
        yield "a failure gives the charge back"


def _fail(session: Session, epsilon: str) -> Exception | None:
    """Query while the engine fails, and return the exception."""
    engine = session._curator.engine
    run = engine.run

    def fails(sql: str) -> Any:
        raise ValueError("CANARY-7431")

    engine.run = fails  # type: ignore[method-assign]
    try:
        session.query(ASK, epsilon=epsilon, key="fails")
    except Exception as error:  # noqa: BLE001 - what it is matters
        return error
    finally:
        engine.run = run  # type: ignore[method-assign]
    return None


def _again(session: Session, place: Path) -> Iterator[str]:
    first = session.query(ASK, epsilon="0.05", key="one")
    left, charges = _left(session), _durable(place)
    again = session.query(ASK, epsilon="0.05", key="one")
    if again.rows != first.rows or _left(session) != left or _durable(place) != charges:
        yield "the same key gives another answer, or another charge"
    other = session.query(ASK, epsilon="0.05", key="two")
    if other.rows == first.rows:
        yield "two keys share their noise"
    if _left(session) >= left:
        yield "a second draw is free"
    try:
        session.query("SELECT COUNT(*) AS n FROM d", epsilon="0.05", key="one")
        yield "a key that paid for one question answers another"
    except HubbubError:
        pass


def caps() -> list[str]:
    """Spend every budget cap completely: nothing beyond it is granted."""
    return _heard(_spent)


def _spent() -> Iterator[str]:
    with _house() as place:
        for analyst, steps in (("ana", 5), ("ben", 2), ("cy", 2)):  # their own, the group's, the dataset's
            with _open(place, analyst) as session:
                if analyst == "ana":  # what failed stays paid
                    _fail(session, "0.1")
                granted = sum(_granted(session, "0.1", f"{analyst}{n}") for n in range(8))
                if granted != steps:
                    yield f"{analyst} was granted {granted} instead of {steps} tenths"
                if _granted(session, "0.0001", "bit"):
                    yield "a cap that is spent grants a little more"
    with _house() as place, _open(place) as session:
        if _granted(session, "0.51", "large"):
            yield "the cap on one query does not hold"
        for price in (float("nan"), float("inf"), float("-inf"), -1, 0, "nan", True):
            try:
                session.query(ASK, epsilon=price, key=f"{price}")
                yield f"a price of {price} is accepted"
            except HubbubError:
                pass
            except Exception as error:  # noqa: BLE001
                yield f"a price of {price} breaks: {type(error).__name__}"
        if _durable(place):
            yield "a refusal is charged"


def _granted(session: Session, epsilon: str, key: str) -> bool:
    try:
        session.query(ASK, epsilon=epsilon, key=key)
    except BudgetError:
        return False
    return True


def race() -> list[str]:
    """Let twelve threads compete for the rest of a budget."""
    return _heard(_raced)


def _raced() -> Iterator[str]:
    with TemporaryDirectory(prefix="hubbub-race-") as folder:
        place = LedgerPlace(Path(folder), None, str(float(PRICE * 20 + PRICE / 2)))
        with place.ledger() as ledger:
            counts = [0] * 12

            def ask(number: int) -> None:
                for each in range(6):
                    try:
                        ledger.charge(request(f"{number}.{each}"))
                        counts[number] += 1
                    except BudgetError:
                        pass

            team = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
            for thread in team:
                thread.start()
            for thread in team:
                thread.join()
            if sum(counts) != 20:
                yield f"{sum(counts)} were granted, and 20 fit"
            if not ledger.verify().sound:
                yield "the ledger does not verify"


def tamper() -> list[str]:
    """Edit the ledger, and restore an old one: both are refused."""
    return _heard(_tampered)


def _tampered() -> Iterator[str]:
    for deed, spoil in (("an old backup", _restore), ("an edited charge", _edit), ("totals set back", _lower)):
        with TemporaryDirectory(prefix="hubbub-tamper-") as folder:
            place = LedgerPlace(Path(folder), None, "100")
            with place.ledger() as ledger:
                ledger.charge(request("first"))
            shutil.copy(place.database, place.folder / "old")
            with place.ledger() as ledger:
                for number in range(70):
                    ledger.charge(request(f"{number}"))
            spoil(place)
            try:
                with place.ledger():
                    yield f"{deed} is accepted"
            except HubbubError:
                pass


def _restore(place: LedgerPlace) -> None:
    for suffix in ("-wal", "-shm"):
        place.database.with_name(place.database.name + suffix).unlink(missing_ok=True)
    shutil.copy(place.folder / "old", place.database)


def _edit(place: LedgerPlace) -> None:
    with closing(sqlite3.connect(place.database)) as connection:
        _unlocked(connection)
        connection.execute("UPDATE entries SET facts = replace(facts, '\"10\"', '\"1000\"') WHERE kind = 'charge'")
        connection.commit()


def _lower(place: LedgerPlace) -> None:
    with closing(sqlite3.connect(place.database)) as connection:
        (before,) = connection.execute("SELECT count(*) FROM totals").fetchone()
        connection.execute("DELETE FROM totals")
        connection.commit()
        if not before:
            raise AssertionError("there are no totals to set back")


def _unlocked(connection: sqlite3.Connection) -> None:
    """Drop the triggers that protect rows, as anyone with the file can."""
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")


def _heard(complaints: Callable[[], Iterator[str]]) -> list[str]:
    """Return the first complaint."""
    return list(islice(complaints(), 1))


CHECKS: dict[str, Callable[[], list[str]]] = {"path": path, "caps": caps, "race": race, "tamper": tamper}
