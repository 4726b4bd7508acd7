"""The straight path: what is charged, when, and what is heard when something fails."""

import json
import logging
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from hubbub.accounting.failures import review
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import EntryFilter
from hubbub.core.secret import Secret
from hubbub.curator import receipt as receipts
from hubbub.curator.question import Question
from hubbub.curator.session import Session, open_session
from hubbub.engines.base import Arrays, Engine
from hubbub.errors import BudgetError, HubbubError, LedgerError, ParameterError, QueryError, RunError

Opener = Callable[..., Session]
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


class Around:
    """The real engine, with something that happens before each run."""

    dialect = "duckdb"

    def __init__(self, engine: Engine, before: Callable[[], object]) -> None:
        self._engine = engine
        self._before = before
        self.runs = 0

    def run(self, sql: str) -> Secret[Arrays]:
        self.runs += 1
        self._before()
        return self._engine.run(sql)

    def content_hash(self, name: str) -> Secret[bytes] | None:
        return self._engine.content_hash(name)

    def fingerprint(self, name: str) -> Secret[bytes]:
        return self._engine.fingerprint(name)

    def interrupt(self, caller: int | None = None) -> None:
        self._engine.interrupt(caller)

    def close(self) -> None:
        self._engine.close()


def around(session: Session, before: Callable[[], object]) -> Around:
    session._curator.engine = wrapped = Around(session._curator.engine, before)
    return wrapped


def charges(clinic: Path) -> list[tuple[str, str, bool]]:
    """Read (analyst, dataset, has a release) of each charge through a connection of its own."""
    store = SqliteStore(clinic / "hubbub-ledger" / "ledger.db", read_only=True)
    try:
        with store.snapshot() as snapshot:
            entries = list(snapshot.entries(EntryFilter(kind="charge")))
            released = snapshot.released(0, 10**9)
            return [(entry.analyst, entry.dataset, entry.sequence in released) for entry in entries]
    finally:
        store.close()


def spent(session: Session, dataset: str = "visits") -> Fraction | None:
    view = next(view for view in session.budget() if view.dataset == dataset)
    return next(state.spent for state in view.caps if state.scope == "analyst")


def test_the_charge_is_durable_before_the_engine_runs(session: Session, clinic: Path) -> None:
    seen: list[list[tuple[str, str, bool]]] = []
    around(session, lambda: seen.append(charges(clinic)))
    session.query(COUNT, epsilon="0.5")
    assert seen == [[("ana", "visits", False)]]
    assert charges(clinic) == [("ana", "visits", True)]


#: Dies when the engine is asked to run: after the charge, before any release.
_VICTIM = """
import os, signal, sys
from hubbub.curator.session import open_session
from hubbub.engines.duckdb.connection import DuckDBEngine

session = open_session(sys.argv[1], analyst="ana")
DuckDBEngine.run = lambda self, sql: os.kill(os.getpid(), signal.SIGKILL)
session.query(sys.argv[2], epsilon="0.5")
"""


def test_a_charge_survives_a_crash_between_charge_and_release_and_pays_for_the_retry(clinic: Path) -> None:
    run = subprocess.run([sys.executable, "-c", _VICTIM, str(clinic / "hubbub.yaml"), COUNT], check=False)
    assert run.returncode == -signal.SIGKILL
    assert charges(clinic) == [("ana", "visits", False)]
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        assert spent(session) == Fraction(1, 2)
        release = session.query(COUNT, epsilon="0.5")
        assert len(release.rows) == 3
        assert spent(session) == Fraction(1, 2)
    assert charges(clinic) == [("ana", "visits", True)]


ERRORS = (
    ValueError("CANARY-7431"),
    MemoryError(),
    RecursionError(),
    KeyError("CANARY-7431"),
    HubbubError("HB999", "CANARY-7431"),
    sqlite3.OperationalError("CANARY-7431"),
)


@pytest.mark.parametrize("what", ERRORS)
def test_every_failure_after_the_charge_is_one_constant(
    session: Session, clinic: Path, what: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def fail() -> None:
        raise what

    around(session, fail)
    with pytest.raises(RunError) as failed:
        session.query(COUNT, epsilon="0.5")
    assert failed.value.code == "HB900"
    assert str(failed.value) == str(RunError())
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert "CANARY" not in str(failed.value) + caplog.text
    assert charges(clinic) == [("ana", "visits", False)]


def test_a_failure_in_finishing_or_recording_is_the_same_constant(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("CANARY-7431")

    heard = set()
    for place, name in ((receipts, "outputs"), (receipts, "encode"), (Ledger, "record")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fail)
            with pytest.raises(RunError) as failed:
                session.query(COUNT, epsilon="0.25", key=name)
        heard.add((str(failed.value), failed.value.__context__))
    assert len(heard) == 1
    assert heard.pop()[1] is None


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM visits", QueryError),
        ("SELECT COUNT(notes) FROM visits", QueryError),
        ("SELECT COUNT(*) FROM nowhere", QueryError),
        ("SELECT COUNT(*) FROM visits; DROP TABLE visits", QueryError),
        ("", QueryError),
    ],
)
def test_a_refusal_costs_nothing_and_runs_nothing(
    session: Session, clinic: Path, sql: str, error: type[Exception]
) -> None:
    engine = around(session, lambda: None)
    with pytest.raises(error):
        session.query(sql, epsilon="0.5")
    assert engine.runs == 0
    assert charges(clinic) == []


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "x", None, True, "1e-40"])
def test_a_price_that_is_none_is_refused(session: Session, clinic: Path, epsilon: object) -> None:
    with pytest.raises(ParameterError):
        session.query(COUNT, epsilon=epsilon)  # type: ignore[arg-type]
    assert charges(clinic) == []


def test_a_price_above_a_cap_is_refused_with_what_would_pass(session: Session, clinic: Path) -> None:
    with pytest.raises(BudgetError) as refused:
        session.query(COUNT, epsilon="6")
    assert "--epsilon 5" in refused.value.remedy
    assert charges(clinic) == []


def test_the_same_question_on_the_same_data_is_free(session: Session, clinic: Path) -> None:
    engine = around(session, lambda: None)
    first = session.query(COUNT, epsilon="0.5")
    again = session.query("select  region, count(*) as n -- once more\nfrom visits group by region", epsilon="1/2")
    assert not first.replayed
    assert again.replayed
    assert again.document() == first.document()
    assert engine.runs == 1
    assert spent(session) == Fraction(1, 2)
    assert "free, from the ledger" in again.cost()


def test_another_price_another_option_or_new_data_is_another_question(session: Session, clinic: Path) -> None:
    session.query(COUNT, epsilon="0.5")
    for options in ({"epsilon": "0.4"}, {"epsilon": "0.5", "rows": 1}, {"epsilon": "0.5", "raw": True}):
        assert not session.query(COUNT, **options).replayed
    os.utime(clinic / "visits.parquet", (1, 1))
    assert session.query(COUNT, epsilon="0.5").replayed, "the same content is the same data"
    whole = (clinic / "visits.parquet").read_bytes()
    (clinic / "other.parquet").write_bytes(whole)
    with duckdb.connect() as made:
        made.execute(f"COPY (FROM '{clinic}/other.parquet' LIMIT 500) TO '{clinic}/visits.parquet'")
    release = session.query(COUNT, epsilon="0.5")
    assert not release.replayed
    (about,) = release.receipt["data"]
    assert (about["dataset"], about["unit"], about["version"][:2]) == ("visits", "patient", "2-")


def test_another_analyst_pays_for_the_same_question(opened: Opener, clinic: Path) -> None:
    opened("ana").query(COUNT, epsilon="0.5")
    assert not opened("ben").query(COUNT, epsilon="0.5").replayed
    assert charges(clinic) == [("ana", "visits", True), ("ben", "visits", True)]


def test_a_key_names_one_answer(session: Session) -> None:
    first = session.query(COUNT, epsilon="0.5", key="k")
    assert session.query(COUNT, epsilon="0.5", key="k").document() == first.document()
    assert not session.query(COUNT, epsilon="0.5", key="l").replayed
    with pytest.raises(HubbubError, match="key"):
        session.query(COUNT, epsilon="0.4", key="k")
    assert spent(session) == 1


def test_a_join_of_two_data_sets_is_charged_to_both(session: Session, clinic: Path) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.patient = labs.patient"
    release = session.query(sql, epsilon="0.5")
    assert charges(clinic) == [("ana", "visits", True), ("ana", "labs", False)]
    assert spent(session, "visits") == spent(session, "labs") == Fraction(1, 2)
    assert [entry["dataset"] for entry in release.receipt["ledger"]] == ["visits", "labs"]


def test_a_join_that_one_of_two_data_sets_refuses_is_charged_to_neither(session: Session, clinic: Path) -> None:
    engine = around(session, lambda: None)
    (left,) = [view.largest for view in session.budget() if view.dataset == "labs"]
    session.query("SELECT COUNT(*) AS n FROM labs", epsilon=str(left - Fraction(1, 4)))
    before = charges(clinic)
    sql = "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.patient = labs.patient"
    with pytest.raises(BudgetError, match="on labs") as refused:
        session.query(sql, epsilon="0.5")
    assert "Nothing was run or charged" in str(refused.value)
    assert (charges(clinic), engine.runs) == (before, 1)
    assert spent(session, "visits") == 0
    session.query(sql, epsilon="0.25")
    assert spent(session, "visits") == Fraction(1, 4)


def test_an_analyst_without_a_cap_does_not_even_see_the_table(opened: Opener) -> None:
    ben = opened("ben")
    assert ben.datasets() == ("visits", "regions")
    with pytest.raises(QueryError):
        ben.query("SELECT COUNT(*) FROM labs", epsilon="0.5")
    with pytest.raises(ParameterError):
        ben.describe("labs")


def test_an_estimate_touches_no_data_and_costs_nothing(session: Session, clinic: Path) -> None:
    for name in ("visits.parquet", "labs.csv"):
        (clinic / name).unlink()
    estimate = session.estimate(COUNT, epsilon="0.5")
    assert [each.name for each in estimate.expected] == ["n"]
    assert estimate.admitted
    assert charges(clinic) == []
    with pytest.raises(LedgerError) as refused:
        session.query(COUNT, epsilon="0.5")
    assert refused.value.code == "HB318"
    assert charges(clinic) == []


def test_an_estimate_shows_the_engine_s_text_without_the_salt(session: Session) -> None:
    texts = session.estimate("SELECT AVG(cost) FROM visits", epsilon="0.1").sql
    salt = session._curator._salt
    assert salt
    assert texts
    assert not any(salt in text for text in texts)
    assert any("'…'" in text for text in texts)


def test_an_estimate_says_whether_it_would_be_admitted(opened: Opener) -> None:
    ben = opened("ben")
    assert not ben.estimate(COUNT, epsilon="2").admitted
    assert ben.estimate(COUNT, epsilon="2").largest == 1
    ben.query(COUNT, epsilon="0.75")
    assert not ben.estimate(COUNT, epsilon="0.5").admitted
    assert ben.estimate(COUNT, epsilon="0.25").admitted


def test_expected_errors_shrink_with_epsilon(session: Session) -> None:
    scaling = session.estimate(COUNT, epsilon="0.5", delta=0).scaling
    errors = [expected[0].plus_minus for _, expected in scaling]
    assert [epsilon for epsilon, _ in scaling] == [Fraction(1, 8), Fraction(1, 2), Fraction(2)]
    assert errors[0] > errors[1] > errors[2]


def test_a_delta_of_zero_insists_on_pure_noise(session: Session) -> None:
    many = ", ".join(f"SUM(cost * {i}) AS s{i}" for i in range(1, 9))
    sql = f"SELECT region, {many} FROM visits GROUP BY region"
    assert session.estimate(sql, epsilon="1", delta=0).noise == "laplace"
    assert session.query(sql, epsilon="1", delta=0).delta == 0


def test_public_tables_have_their_facts_from_their_values(session: Session) -> None:
    table = session.describe("regions")
    region = next(column for column in table.columns if column.name == "region")
    assert region.values == ("East", "North", "South")
    assert table.unique == ("region",)


def test_no_canary_is_in_any_answer_receipt_ledger_or_log(
    session: Session, clinic: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    documents = []
    for sql in (
        COUNT,
        "SELECT SUM(cost) AS s, AVG(age) AS a, MAX(cost) AS m, MEDIAN(age) AS q FROM visits",
        "SELECT COUNT(DISTINCT word) AS w FROM visits WHERE word LIKE 'C%'",
    ):
        documents.append(session.query(sql, epsilon="1").document())
    session.close()
    ledger = b"".join(path.read_bytes() for path in (clinic / "hubbub-ledger").rglob("*") if path.is_file())
    for canary in ("CANARY-7431", "987654.25", "424242424242"):
        assert canary not in json.dumps(documents)
        assert canary not in caplog.text
        assert canary.encode() not in ledger


def test_many_threads_with_one_question_pay_once_and_hear_the_same(session: Session, clinic: Path) -> None:
    with ThreadPoolExecutor(12) as threads:
        heard = list(threads.map(lambda _: session.query(COUNT, epsilon="0.5").document(), range(24)))
    assert all(document == heard[0] for document in heard)
    assert spent(session) == Fraction(1, 2)
    assert charges(clinic) == [("ana", "visits", True)]


def test_many_threads_cannot_overspend(opened: Opener) -> None:
    ben = opened("ben")

    def ask(number: int) -> bool:
        try:
            ben.query(COUNT, epsilon="0.3", key=str(number))
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(12) as threads:
        granted = sum(threads.map(ask, range(24)))
    assert granted == 3
    assert spent(ben) == Fraction(9, 10)


def test_weights_are_given_by_the_names_of_outputs(session: Session) -> None:
    sql = "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits"
    even = {each.name: each.plus_minus for each in session.estimate(sql, epsilon="0.5", delta=0).expected}
    found = session.estimate(sql, epsilon="0.5", delta=0, weights={"n": 10}).expected
    assert {each.name: each.plus_minus for each in found}["n"] < even["n"] * 0.6
    for weights in ({"m": 2}, {"n": "nan"}, {"n": 0}):
        with pytest.raises(ParameterError):
            session.estimate(sql, epsilon="0.5", weights=weights)


@pytest.mark.parametrize("epsilon", ["0.000001", "5"])
def test_an_estimate_at_the_ends_of_the_range_leaves_out_what_cannot_be(session: Session, epsilon: str) -> None:
    assert 1 <= len(session.estimate(COUNT, epsilon=epsilon).scaling) <= 3


def failing(session: Session, key: str, *, cancelled: bool = False) -> None:
    """Let one run fail after its charge."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session._curator.engine, "run", lambda _: 1 / 0)
        with pytest.raises(RunError, match="HB900"):
            session._curator.query("ana", Question(COUNT, epsilon="0.1"), key=key, cancelled=lambda: cancelled)


def test_after_three_failures_an_analyst_is_refused_until_the_owner_looked(opened: Opener, clinic: Path) -> None:
    ana, ben = opened("ana"), opened("ben")
    for key in ("a", "a", "b", "c"):  # the same charge twice counts once
        ana.query(COUNT, epsilon="0.1", key=f"{key} before")
        failing(ana, key)
    made = len(charges(clinic))
    for refused in (lambda: ana.query(COUNT, epsilon="0.1", key="d"), lambda: ana.estimate(COUNT, epsilon="0.1")):
        with pytest.raises(LedgerError, match=r"HB325 3 queries of ana on visits .* Nothing was run or charged"):
            refused()
    assert len(charges(clinic)) == made
    assert ana.query("SELECT COUNT(*) AS n FROM labs", epsilon="0.1").rows
    assert ben.query(COUNT, epsilon="0.1").rows
    with open_session(clinic / "hubbub.yaml", analyst="ana") as again, pytest.raises(LedgerError, match="HB325"):
        again.query(COUNT, epsilon="0.1", key="e")
    assert len(review(ana._curator.ledger, "ana", "visits", by="olga")) == 3
    assert ana.query(COUNT, epsilon="0.1", key="d").rows
    assert ana._curator.ledger.verify().sound


def test_what_is_left_is_of_the_time_of_the_answer_whenever_it_is_read(opened: Opener) -> None:
    """It is computed when it is read, from totals that were read with the answer; the ledger may be closed by then."""
    session = opened()
    answers = [session.query("SELECT COUNT(*) FROM visits", epsilon=epsilon) for epsilon in ("0.5", "1", "0.5")]
    session.close()
    assert [answer.left for answer in answers] == [Fraction("7.5"), Fraction("6.5"), Fraction("6.5")]
    assert pickle.loads(pickle.dumps(answers[0])).left == Fraction("7.5")


def test_the_owner_says_how_many_failures_are_too_many(clinic: Path) -> None:
    text = (clinic / "hubbub.yaml").read_text()
    (clinic / "hubbub.yaml").write_text(
        text.replace("source: visits.parquet", "source: visits.parquet\n    failures: 1")
    )
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        failing(session, "a")
        with pytest.raises(LedgerError, match="HB325 1 queries of"):
            session.query(COUNT, epsilon="0.1", key="b")


def test_a_cancelled_run_is_no_failure(session: Session) -> None:
    for key in ("a", "b", "c", "d"):
        failing(session, key, cancelled=True)
    assert session.query(COUNT, epsilon="0.1").rows


def test_a_failed_join_counts_on_both_data_sets(session: Session) -> None:
    join = "SELECT COUNT(*) AS n FROM visits JOIN labs USING (patient)"
    for key in ("a", "b", "c"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session._curator.engine, "run", lambda _: 1 / 0)
            with pytest.raises(RunError, match="HB900"):
                session.query(join, epsilon="0.1", key=key)
    for sql in (COUNT, "SELECT COUNT(*) AS n FROM labs"):
        with pytest.raises(LedgerError, match="HB325"):
            session.query(sql, epsilon="0.1")


def test_a_failure_that_cannot_be_written_down_counts_all_the_same(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: object) -> None:
        raise LedgerError("HB303", "busy")

    monkeypatch.setattr(session._curator.ledger, "remark", busy)
    for key in ("a", "b", "c"):
        failing(session, key)
    with pytest.raises(LedgerError, match="HB325"):
        session.query(COUNT, epsilon="0.1")
