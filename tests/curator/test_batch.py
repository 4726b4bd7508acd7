"""Batches: one price, one charge, one run; measured together where that is better, and never worse than evenly."""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.contract.subjects import every

import hubbub
from hubbub.answers.batch import batch_answers, batch_text, split_queries
from hubbub.audit.receipt import check_receipt
from hubbub.cli import main
from hubbub.curator.session import Session
from hubbub.errors import BudgetError, ParameterError, QueryError, RunError

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: patient, groups: 2, rows: 2}
    columns:
      patient: {type: integer}
      region: {values: [North, South, East, West]}
      month: {type: integer, bounds: [1, 12]}
      age: {type: integer, bounds: [0, 99]}
      cost: {bounds: [0, 100], step: 0.5}
    budget: {epsilon: 1000, delta: 1e-6}
  stays:
    source: visits.parquet
    unit: row
    columns:
      region: {values: [North, South, East, West]}
      month: {type: integer, bounds: [1, 12]}
      age: {type: integer, bounds: [0, 99]}
      cost: {bounds: [0, 100], step: 0.5}
    budget: {epsilon: 1000, delta: 1e-6}
  beds:
    source: visits.parquet
    unit: row
    relation: replace
    columns: {month: {type: integer, bounds: [1, 12]}}
    budget: {epsilon: 1}
analysts:
  ana: {visits: {epsilon: 1000, delta: 1e-6}, stays: {epsilon: 1000, delta: 1e-6}}
  ben: {stays: {epsilon: 1}, beds: {epsilon: 1}}
"""
RANGES = [f"SELECT COUNT(*) AS n FROM stays WHERE age BETWEEN {5 * i} AND {5 * i + 7 * (i % 4) + 4}" for i in range(15)]
MIXED = [
    *RANGES,
    "SELECT region, COUNT(*) AS n FROM stays GROUP BY region ORDER BY n DESC",
    "SELECT region, month, COUNT(*) AS n FROM stays GROUP BY region, month",
    "SELECT AVG(cost) AS cost FROM stays",
    RANGES[0],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("batch")
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT i AS patient, ['North', 'South', 'East', 'West'][1 + (i * 31) % 4] AS region,"
            " 1 + (i * 13) % 12 AS month, (i * 7919) % 100 AS age, (i * 37) % 200 / 2.0 AS cost FROM range(4000) t(i))"
            f" TO '{path}/visits.parquet'"
        )
    (path / "hubbub.yaml").write_text(YAML)
    return path


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def _exact(folder: Path, sql: str) -> dict[tuple[object, ...], object]:
    with duckdb.connect() as made:
        text = re.sub(r"\b(stays|visits)\b", f"'{folder}/visits.parquet'", sql)
        return {row[:-1]: row[-1] for row in made.execute(text).fetchall()}


def test_a_batch_is_charged_once_and_draws_once(session: Session, folder: Path) -> None:
    before = len(session.releases())
    with session.batch(epsilon=100, delta=0) as batch:
        asked = [batch.query(sql) for sql in MIXED]
        assert not asked[0].done()
        assert len(session.releases()) == before, "nothing is charged inside the block"
    (charge,) = session.releases(limit=len(session.releases()) - before)
    assert [charge.epsilon, charge.delta] == [100, 0]
    assert batch.release is not None
    margins = dict(zip(batch.release.columns, batch.release.outputs, strict=True))["plus_minus"].values
    # e⁻²¹ of Laplace noises are seven times as large as their margin, and fewer of their sums: with 70 values a false
    # alarm has a probability of less than 1e-7; half a step is rounded
    for question, margin in zip(asked, margins, strict=True):
        for key, value in _exact(folder, question.sql).items():
            (row,) = [row for row in question.result().rows if row[:-1] == key]
            assert abs(row[-1] - value) < 7 * float(str(margin)) + 0.5  # type: ignore[operator]
    assert asked[0].result().rows == asked[-1].result().rows, "equal questions share one draw"
    sizes = [float(str(row[1])) for row in asked[15].result().rows]
    assert sizes == sorted(sizes, reverse=True)
    again = session.query(batch_text(MIXED), epsilon=100, delta=0)
    assert again.replayed
    assert [a.rows for a in batch_answers(again)] == [question.result().rows for question in asked]
    found = check_receipt(json.loads(json.dumps(batch.release.document())))
    assert found.sound, found.problems


def test_no_question_is_less_exact_than_with_an_even_split(session: Session) -> None:
    for delta in (Fraction(0), Fraction(1, 10**6)):
        for queries in (MIXED, RANGES[:2], [MIXED[15], "SELECT COUNT(*) AS n FROM stays"], MIXED[15:]):
            batch = session.batch(epsilon=1, delta=delta)
            for sql in queries:
                batch.query(sql)
            lines = [line for line in batch.estimate().derivation if line.startswith("question ")]
            count = len(set(queries))
            assert len(lines) == len(queries)
            for line, sql in zip(lines, queries, strict=True):
                planned, even = (float(each) for each in re.findall(r"±([\d.e+-]+)", line))
                alone = session.estimate(
                    sql, epsilon=Fraction(1, count), delta=Fraction(int(delta / count * 10**24), 10**24)
                )
                assert even == pytest.approx(max(each.plus_minus for each in alone.expected), rel=1e-3)
                assert planned <= even * 1.001


@pytest.mark.parametrize("epsilon", [30, 900])
def test_a_batch_at_a_price_without_noise_is_exact(session: Session, epsilon: int) -> None:
    """Deviations of 10⁻⁴⁰ must not overflow the search for what to measure."""
    queries = [RANGES[0], RANGES[1], MIXED[15], "SELECT COUNT(*) AS n FROM stays"]
    batch = session.batch(epsilon=epsilon, delta=0)
    for sql in queries:
        batch.query(sql)
    estimate = batch.estimate()
    assert max(each.plus_minus for each in estimate.expected) < 1 or epsilon < 100


def test_many_marginals_and_ranges_have_half_the_error_of_an_even_split(session: Session) -> None:
    """The target of 200 questions, on the planned errors; also against Gaussian noise that composes in ρ."""
    rng = np.random.default_rng(7)
    queries = []
    for _ in range(150):
        low, high = sorted(rng.integers(0, 100, 2).tolist())
        more = ("", " AND region = 'North'", f" AND month <= {rng.integers(1, 12)}")[int(rng.integers(0, 3))]
        queries.append(f"SELECT COUNT(*) AS n FROM stays WHERE age BETWEEN {low} AND {high}{more}")
    for _ in range(50):
        low, high = sorted(rng.integers(1, 13, 2).tolist())
        key = ("region", "month", "region, month")[int(rng.integers(0, 3))]
        queries.append(f"SELECT {key}, COUNT(*) AS n FROM stays WHERE month BETWEEN {low} AND {high} GROUP BY {key}")
    estimate = session.estimate(batch_text(queries), epsilon=1, delta="1e-6")
    pairs = [[float(x) for x in re.findall(r"±([\d.e+-]+)", line)] for line in estimate.derivation[-200:]]
    ours, evenly = (np.sqrt(np.mean(np.square(each))) for each in zip(*pairs, strict=True))
    assert ours / evenly < 0.25
    # 200 Gaussian noises for ρ with ρ + 2√(ρ ln 10⁶) = 1: ρ > 0.0175 would be more than (1, 1e-6) allows
    concentrated = 1.96 * np.sqrt(200 / (2 * 0.0175))
    assert ours / concentrated < 0.5


@pytest.mark.usefixtures("few_rounds")
def test_neighbors_stay_within_the_sensitivity_that_a_batch_was_charged_for() -> None:
    tried = [each for each in every() if each.name == "batch"]
    assert len(tried) == 4
    for each in tried:
        assert list(each.complaints()) == []


def test_units_with_several_rows_count_with_one_bound_in_all_answers(session: Session) -> None:
    queries = [f"SELECT COUNT(*) AS n FROM visits WHERE age >= {age}" for age in range(0, 100, 5)]
    estimate = session.estimate(batch_text(queries), epsilon=1, delta=0)
    (line,) = [line for line in estimate.derivation if "weighted sums" in line]
    assert "at most 4 rows" in line
    with session.batch(epsilon=100, delta=0) as batch:
        for sql in queries:
            batch.query(sql)
    left_out = next(iter(batch)).result().left_out
    assert left_out is not None
    assert left_out.sentence().startswith("Each patient counts with at most 4 rows.")


def test_a_failed_batch_keeps_its_charge_and_a_retry_repeats_its_noise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        text, before = batch_text(MIXED[:5]), len(opened.releases())
        engine = type(opened._curator.engine)
        run = engine.run

        def failing(*arguments: object, **options: object) -> object:
            run(*arguments, **options)  # type: ignore[arg-type]
            raise RuntimeError("the disk is full")

        monkeypatch.setattr(engine, "run", failing)
        with pytest.raises(RunError):
            opened.query(text, epsilon=3, delta=0)
        monkeypatch.setattr(engine, "run", run)
        first = opened.query(text, epsilon=3, delta=0)
        assert len(opened.releases()) == before + 1
        assert opened.query(text, epsilon=3, delta=0).model == first.model


def test_a_batch_beyond_the_budget_or_with_a_wrong_question_charges_nothing(folder: Path) -> None:
    with hubbub.open(folder / "hubbub.yaml", analyst="ben") as opened:
        with pytest.raises(BudgetError), opened.batch(epsilon=2) as batch:
            batch.query(RANGES[0])
        with pytest.raises(QueryError, match="Question 2 of the batch"):
            opened.query(batch_text([RANGES[0], "SELECT COUNT(*) FROM nowhere"]), epsilon=1)
        for queries in ([], ["CALL stream(name => 's', kind => 'count')"], [batch_text(RANGES)]):
            with pytest.raises(QueryError) as refused:
                opened.query(batch_text(queries), epsilon=1)
            assert refused.value.code == "HB790"
        with pytest.raises(QueryError) as refused:
            opened.query(batch_text([RANGES[0], "SELECT SUM(month) AS n FROM beds"]), epsilon=1)
        assert refused.value.code == "HB792"
        batch = opened.batch(epsilon=1)
        pending = batch.query(RANGES[0])
        with pytest.raises(ZeroDivisionError), batch:
            raise ZeroDivisionError
        with pytest.raises(ParameterError) as early:
            pending.result()
        assert early.value.code == "HB793"
        assert opened.releases() == ()


def test_queries_are_split_where_sql_ends() -> None:
    text = "SELECT ';' AS a; -- one; two\nSELECT \"x;y\" /* ; */ FROM t;\n;  -- nothing\n"
    assert split_queries(text) == ["SELECT ';' AS a", '-- one; two\nSELECT "x;y" /* ; */ FROM t']
    assert split_queries("SELECT 'it''s; fine'") == ["SELECT 'it''s; fine'"]


def test_the_command_runs_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "questions.sql").write_text(";\n".join(MIXED[:3]))
    at = ["-c", str(folder / "hubbub.yaml"), "--analyst", "ana", "--epsilon", "50", "--delta", "0"]
    assert main(["batch", str(folder / "questions.sql"), *at, "--plan"]) == 0
    assert "split evenly" in re.sub(r"\s+", " ", capsys.readouterr().out)
    assert main(["batch", str(folder / "questions.sql"), *at, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["query"] for each in shown] == MIXED[:3]
    assert all(len(each["rows"]) == 1 for each in shown)
