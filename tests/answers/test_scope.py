"""A budget scope: never more than it was given, by any loop, from any number of threads, through any failure."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

import duckdb
import numpy as np
import pytest

from hubbub.answers.estimate import Estimate
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.answers.scope import AsyncScope, Scope
from hubbub.curator.session import Session, open_session
from hubbub.errors import BudgetError, HubbubError, LedgerError, ParameterError, QueryError, RunError, ServerError

YAML = """
version: 1
datasets:
  people:
    source: people.parquet
    unit: row
    columns:
      x: {bounds: [-1, 1]}
      y: {bounds: [-1, 1]}
      label: {values: ['no', 'yes']}
    budget: {epsilon: 20, delta: 1e-6, per_query: 20}
analysts:
  ana: {people: {epsilon: 20}}
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    draw = np.random.default_rng(2)
    values = draw.uniform(-1, 1, (4_000, 2))
    side = values @ np.array([0.8, -0.6]) > 0
    with duckdb.connect() as made:
        made.register("made", {"x": values[:, 0], "y": values[:, 1], "label": np.where(side, "yes", "no")})
        made.execute(f"COPY (SELECT * FROM made) TO '{tmp_path}/people.parquet'")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    return open_session(tmp_path / "hubbub.yaml", analyst="ana")


class Recorder:
    """A session that remembers what it was asked at, and does what it is told."""

    def __init__(self, answer: Callable[[], Release]) -> None:
        self.asked: list[tuple[Fraction, Fraction]] = []
        self._answer = answer

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        raise NotImplementedError

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        assert sql
        assert key is None
        if options.get("epsilon") is None:
            raise ParameterError("HB132", "Neither epsilon nor within was given.")
        self.asked.append((Fraction(str(options["epsilon"])), Fraction(str(options.get("delta") or 0))))
        return self._answer()


def answer() -> Release:
    return Release((), (), Fraction(1), Fraction(0), {})


def raising(error: HubbubError) -> Callable[[], Release]:
    def refuse() -> Release:
        raise error

    return refuse


def test_no_loop_and_no_number_of_threads_spends_more_than_the_scope() -> None:
    """Eight threads ask 400 times for a tenth of one: exactly ten are passed on."""
    recorder = Recorder(answer)
    with Scope(recorder, epsilon=1) as scope, ThreadPoolExecutor(8) as threads:

        def asks(_: int) -> None:
            with contextlib.suppress(BudgetError):
                scope.query("SELECT COUNT(*) FROM people", epsilon="0.1")

        list(threads.map(asks, range(400)))
        assert scope.left == 0
    assert sum((epsilon for epsilon, _ in recorder.asked), Fraction(0)) == 1
    assert len(recorder.asked) == 10


def test_a_price_is_taken_before_the_question_is_asked() -> None:
    seen: list[Fraction] = []

    def looks() -> Release:
        seen.append(scope.left)
        return answer()

    scope = Scope(Recorder(looks), epsilon=1)
    scope.query("SELECT …", epsilon=Fraction(1, 4))
    assert seen == [Fraction(3, 4)]
    assert (scope.left, scope.spent) == (Fraction(3, 4), Fraction(1, 4))


@pytest.mark.parametrize("error", [RunError(), LedgerError("HB300", "x"), ServerError("HB800", "x")])
def test_where_a_charge_may_stand_the_price_stays_taken(error: HubbubError) -> None:
    scope = Scope(Recorder(raising(error)), epsilon=1)
    with pytest.raises(type(error)):
        scope.query("SELECT …", epsilon=1)
    assert scope.left == 0
    with pytest.raises(BudgetError, match="HB202"):
        scope.query("SELECT …", epsilon="0.001")


@pytest.mark.parametrize("error", [QueryError("HB500", "x"), ParameterError("HB101", "x"), BudgetError("HB201", "x")])
def test_what_was_refused_before_a_charge_is_put_back(error: HubbubError) -> None:
    scope = Scope(Recorder(raising(error)), epsilon=1, delta="1e-6")
    with pytest.raises(type(error)):
        scope.query("SELECT …", epsilon=1, delta="1e-6")
    assert (scope.left, scope.left_delta) == (Fraction(1), Fraction(1, 10**6))


def test_delta_is_none_unless_named_and_has_an_end_as_well() -> None:
    recorder = Recorder(answer)
    scope = Scope(recorder, epsilon=1, delta="1e-6")
    scope.query("SELECT …", epsilon="0.1")
    scope.query("SELECT …", epsilon="0.1", delta="1e-6")
    assert recorder.asked == [(Fraction(1, 10), Fraction(0)), (Fraction(1, 10), Fraction(1, 10**6))]
    with pytest.raises(BudgetError, match="HB202"):
        scope.query("SELECT …", epsilon="0.1", delta="1e-7")
    assert scope.left == Fraction(4, 5)


def test_a_closed_scope_asks_nothing() -> None:
    recorder = Recorder(answer)
    with Scope(recorder, epsilon=1) as scope:
        pass
    with pytest.raises(BudgetError, match="HB203"):
        scope.query("SELECT …", epsilon="0.1")
    assert recorder.asked == []


def test_public_tables_cost_a_scope_nothing_and_others_need_an_epsilon(session: Session, tmp_path: Path) -> None:
    session.close()
    (tmp_path / "plans.csv").write_text("plan\nfull\nbasic\n")
    text = YAML.replace("analysts:", "  plans: {source: plans.csv, public: true}\nanalysts:")
    (tmp_path / "hubbub.yaml").write_text(text)
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        scope = opened.scope(epsilon=1)
        assert scope.query("SELECT COUNT(*) AS n FROM plans").rows == [(2,)]
        assert scope.query("SELECT COUNT(*) AS n FROM plans", within="5%").rows == [(2,)]
        with pytest.raises(ParameterError, match="HB132"):
            scope.query("SELECT COUNT(*) AS n FROM people")
        assert scope.left == 1
        assert opened.releases() == ()


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "much", None])
def test_a_price_that_is_none_is_refused(wrong: Any) -> None:
    recorder = Recorder(answer)
    with pytest.raises(ParameterError):
        Scope(recorder, epsilon=wrong)
    scope = Scope(recorder, epsilon=1)
    with pytest.raises(ParameterError):
        scope.query("SELECT …", epsilon=wrong)
    assert scope.left == 1
    assert recorder.asked == []


@pytest.mark.row(55)
def test_a_statistical_query_learner_is_a_loop_over_noisy_sums_with_the_spend_counted(session: Session) -> None:
    """A perceptron that sees the data through noisy averages alone; the ledger has no more than the scope's ε."""
    weights = np.array([0.0, 1.0])
    with session, session.scope(epsilon=4) as scope:
        for _ in range(4):
            text = (
                "SELECT SUM(CASE WHEN label = 'yes' THEN x ELSE -x END) AS gx,"
                " SUM(CASE WHEN label = 'yes' THEN y ELSE -y END) AS gy FROM people"
                f" WHERE (x * ({weights[0]:.6f}) + y * ({weights[1]:.6f}) > 0) <> (label = 'yes')"
            )
            gx, gy = scope.query(text, epsilon=1).rows[0]
            weights = weights + np.array([float(str(gx)), float(str(gy))]) / 1000
            weights /= np.linalg.norm(weights)
        assert scope.left == 0
        with pytest.raises(BudgetError, match="HB202"):
            scope.query("SELECT COUNT(*) FROM people", epsilon="0.1")
        (spent,) = [cap.spent for cap in session.budget()[0].caps if cap.scope == "analyst"]
        assert spent == 4
    assert weights @ np.array([0.8, -0.6]) > 0.95


def test_analyses_and_a_wanted_exactness_spend_from_the_scope_too(session: Session) -> None:
    with session, session.scope(epsilon=2) as scope:
        free = scope.estimates.kmeans("people", ["x", "y"], 2, epsilon=1)
        assert free.epsilon == 1
        scope.kmeans("people", ["x", "y"], 2, epsilon=1)
        assert scope.left == 1
        told = scope.query("SELECT COUNT(*) FROM people", within=50)
        assert scope.left == 1 - told.epsilon
        with pytest.raises(BudgetError, match="HB202"):
            scope.pca("people", ["x", "y"], epsilon=1)


def test_a_scope_that_is_awaited_holds_as_well() -> None:
    asked: list[Fraction] = []

    class Later:
        async def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
            raise NotImplementedError

        async def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
            assert (sql, key) == ("SELECT …", None)
            asked.append(Fraction(str(options["epsilon"])))
            mine = len(asked)
            await asyncio.sleep(0)
            if mine == 2:
                raise QueryError("HB500", "x")
            return answer()

    async def loop() -> Fraction:
        with AsyncScope(Later(), epsilon=1) as scope:
            tries = [scope.query("SELECT …", epsilon="0.3") for _ in range(6)]
            found = await asyncio.gather(*tries, return_exceptions=True)
            assert sum(isinstance(each, BudgetError) for each in found) == 3
            assert sum(isinstance(each, QueryError) for each in found) == 1
            return scope.left

    assert asyncio.run(loop()) == Fraction(2, 5)
    assert len(asked) == 3
