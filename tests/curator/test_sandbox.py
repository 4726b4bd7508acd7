"""The sandbox: any question on made-up rows; the data and the ledger are out of its reach."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.curator.conftest import CANARIES, Opener

from hubbub.answers.sandbox import MADE_UP, PUBLIC_TABLES
from hubbub.config import load
from hubbub.curator.question import Question
from hubbub.curator.sandbox import QuerySandbox
from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.errors import HubbubError, ParameterError, QueryError

BY_REGION = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def sandbox(written_clinic: Path) -> Iterator[QuerySandbox]:
    with QuerySandbox.open(load(written_clinic / "hubbub.yaml")) as opened:
        yield opened


def ask(sandbox: QuerySandbox, sql: str, **options: Any) -> Any:
    return sandbox.query("ana", Question(sql, **({"epsilon": 1} | options)))


def test_an_answer_is_marked_and_has_the_noise_of_a_real_one(sandbox: QuerySandbox, session: Any) -> None:
    release = ask(sandbox, BY_REGION)
    assert release.sandbox == MADE_UP
    assert [row[0] for row in release.rows] == ["North", "South", "East"]
    assert "receipt" not in release.receipt
    assert release.receipt["ledger"] == []
    real = session.query(BY_REGION, epsilon=1)
    widths = [[high - low for low, high in column[1:2]] for column in (release.intervals[0], real.intervals[0])]
    assert widths[0] == widths[1]  # a count has the same noise on any rows
    assert release.receipt["event"] == real.receipt["event"]


def test_the_real_data_is_not_needed(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(clinic / "hubbub.yaml")
    for name in ("visits.parquet", "labs.csv"):
        (clinic / name).unlink()
    views: list[Any] = []
    begin = DuckDBEngine.__init__

    def noted(self: DuckDBEngine, opened: Any, **options: Any) -> None:
        views.extend(opened)
        begin(self, opened, **options)

    monkeypatch.setattr(DuckDBEngine, "__init__", noted)
    with QuerySandbox.open(config) as made:
        assert ask(made, "SELECT COUNT(*) FROM visits JOIN labs ON visits.patient = labs.patient").sandbox
        places = {view.name: view.source.path for view in views}
        assert clinic not in places["visits"].parents
        assert clinic not in places["labs"].parents
        assert not {
            canary
            for canary in CANARIES
            for row in ask(made, "SELECT word, COUNT(*) FROM visits GROUP BY 1").rows
            if canary in map(str, row)
        }
    assert not places["visits"].exists()  # removed with the sandbox


def test_neighboring_datasets_have_the_same_stand_in(clinic: Path, written_clinic: Path) -> None:
    one = "SELECT 1 AS patient, 'North' AS region, 5 AS age, 1.0 AS cost, 'x' AS word, 'n' AS notes"
    with duckdb.connect() as writer:
        writer.execute(f"COPY ({one}) TO '{clinic}/visits.parquet'")
    rows = []
    for folder in (clinic, written_clinic):
        with QuerySandbox.open(load(folder / "hubbub.yaml")) as made:
            path = made.config.datasets["visits"].place.path
            rows.append(duckdb.read_parquet(str(path)).fetchall())
    assert rows[0] == rows[1]
    assert len(rows[0]) == 10_000


def test_nothing_is_charged_or_recorded(clinic: Path, opened: Opener) -> None:
    session = opened()
    with session.sandbox("visits") as made:
        first, second = (made.query(BY_REGION, epsilon=4) for _ in range(2))
        for _ in range(5):
            made.query("SELECT SUM(cost) FROM visits", epsilon=5)  # more than the whole budget together
    assert first.rows != second.rows  # new noise each time: nothing is kept
    assert session.releases() == ()
    assert all(not state.spent for view in session.budget() for state in view.caps)
    assert session.estimate(BY_REGION, epsilon=4).free is None
    with pytest.raises(ParameterError, match="HB167"):
        session.query(BY_REGION, free=True)
    assert not {path.name for path in (clinic / "hubbub-ledger" / "seeds").glob("*")}


def test_an_answer_of_the_sandbox_cannot_be_combined_with_a_real_one(sandbox: QuerySandbox, opened: Opener) -> None:
    session, tried = opened(), ask(sandbox, "SELECT COUNT(*) AS n FROM visits")
    with pytest.raises(ParameterError, match="HB145"):
        session.refine(tried, epsilon=1)
    assert session.releases() == ()


def test_errors_are_those_of_a_real_query(sandbox: QuerySandbox, session: Any) -> None:
    wrong = (
        "SELECT nothing FROM visits",
        "SELECT age FROM visits",
        "SELECT COUNT(*) FROM visit",
        "SELECT notes, COUNT(*) FROM visits GROUP BY notes",
        "SELECT COUNT(*) FROM",
    )
    for sql in wrong:
        messages = []
        for query in (partial(ask, sandbox), partial(session.query, epsilon=1)):
            with pytest.raises(HubbubError) as caught:
                query(sql)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_an_analyst_sees_only_their_datasets(sandbox: QuerySandbox) -> None:
    assert sandbox.datasets("ben") == ("visits", "regions")
    with pytest.raises(HubbubError):
        sandbox.query("ben", Question("SELECT COUNT(*) FROM labs", epsilon=1))
    with pytest.raises(HubbubError):
        sandbox.query("eve", Question(BY_REGION, epsilon=1))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM release(1)",
        "CALL above_threshold(table => 'visits', name => 's', threshold => 5)",
        "CALL stream(table => 'visits', name => 's', kind => 'count')",
    ],
)
def test_what_needs_a_ledger_is_refused(sandbox: QuerySandbox, sql: str) -> None:
    with pytest.raises(QueryError, match="HB861"):
        ask(sandbox, sql)


def test_public_tables_are_as_they_are(sandbox: QuerySandbox) -> None:
    release = ask(sandbox, "SELECT region FROM regions ORDER BY region", epsilon=None)
    assert [row[0] for row in release.rows] == ["East", "North", "South"]
    assert release.sandbox == PUBLIC_TABLES
    assert [each.name for each in release.flat()] == ["region"]  # these rows are not made up


def test_analyses_and_estimates_work(sandbox: QuerySandbox) -> None:
    assert ask(sandbox, "CALL kmeans(table => 'visits', columns => ['age', 'cost'], k => 2)").sandbox == MADE_UP
    estimate = sandbox.estimate("ana", Question(BY_REGION, epsilon=1))
    assert estimate.sandbox == MADE_UP
    assert estimate.to_json()["sandbox"] == MADE_UP
    assert "not charged in the sandbox" in repr(estimate)


def test_a_failure_is_free_and_says_nothing(sandbox: QuerySandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a value of a row")

    monkeypatch.setattr(type(sandbox.planner.engine), "run", fails)
    with pytest.raises(ParameterError, match="HB862") as caught:
        ask(sandbox, BY_REGION)
    assert caught.value.__context__ is None


def test_the_owner_can_turn_it_off(clinic: Path) -> None:
    text = (clinic / "hubbub.yaml").read_text()
    (clinic / "hubbub.yaml").write_text(
        text.replace("    source: visits.parquet\n", "    source: visits.parquet\n    sandbox: off\n")
    )
    with QuerySandbox.open(load(clinic / "hubbub.yaml")) as made:
        assert made.datasets("ana") == ("labs", "regions")
        with pytest.raises(HubbubError):
            ask(made, BY_REGION)


def test_a_declared_size_is_used_up_to_a_limit(clinic: Path) -> None:
    text = (clinic / "hubbub.yaml").read_text()
    for size, rows in ((50, 50), (10**9, 100_000)):
        changed = text.replace(
            "    source: visits.parquet\n", f"    source: visits.parquet\n    size: {{rows: {size}}}\n"
        )
        (clinic / "hubbub.yaml").write_text(changed)
        with QuerySandbox.open(load(clinic / "hubbub.yaml")) as made:
            path = made.config.datasets["visits"].place.path
            assert len(duckdb.read_parquet(str(path)).fetchall()) == rows


def test_the_sandbox_of_another_configuration_is_its_own(clinic: Path) -> None:
    shutil.copy(clinic / "hubbub.yaml", clinic / "other.yaml")
    with (
        QuerySandbox.open(load(clinic / "hubbub.yaml")) as one,
        QuerySandbox.open(load(clinic / "other.yaml")) as other,
    ):
        assert one.folder.name != other.folder.name
