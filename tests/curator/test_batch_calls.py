"""Batches of queries and analyses: one charge of all events, shares by weights, and the answers of the analyses."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import hubbub
from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.answers.batch import batch_answers, batch_text
from hubbub.audit.receipt import check_receipt
from hubbub.audit.replan import plan_again, question_of
from hubbub.core.events import to_facts
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.errors import QueryError, RunError

YAML = """
version: 1
datasets:
  stays:
    source: stays.parquet
    unit: row
    columns:
      region: {values: [North, South]}
      age: {type: integer, bounds: [0, 99]}
      cost: {bounds: [0, 100], step: 0.5}
      well: {type: boolean}
    budget: {epsilon: 1000, delta: 1e-6}
analysts: {ana: {stays: {epsilon: 1000, delta: 1e-6}}}
"""
COUNT = "SELECT region, COUNT(*) AS n FROM stays GROUP BY region"
BAYES = "CALL naive_bayes(columns => ['age', 'cost'], table => 'stays', target => 'well')"
MOMENTS = "CALL moments(columns => ['age', 'cost'], table => 'stays')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("batch_calls")
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT ['North', 'South'][1 + i % 2] AS region, (i * 7919) % 100 AS age, (i * 37) % 200 / 2.0 AS"
            " cost, (i * 7919) % 100 < 30 AS well FROM range(4000) t(i))"
            f" TO '{path}/stays.parquet'"
        )
    (path / "hubbub.yaml").write_text(YAML)
    return path


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def test_queries_and_analyses_share_one_charge(session: Session) -> None:
    text = batch_text([COUNT, BAYES, MOMENTS])
    before = len(session.releases())
    release = session.query(text, epsilon=300, delta=0)
    assert len(session.releases()) == before + 1
    counts, bayes, moments = batch_answers(release)
    # at ε = 100 each, noise of more than 1 has a probability of e⁻¹⁰⁰
    assert [row[0] for row in counts.rows] == ["North", "South"]
    assert all(abs(float(str(row[1])) - 2000) <= 1 for row in counts.rows)
    assert (bayes.analysis, moments.analysis, counts.analysis) == ("naive_bayes", "moments", "query")
    young, old = hubbub.model(bayes).predict({"age": [10, 80], "cost": [50.0, 50.0]})
    assert (young, old) == (True, False)
    assert hubbub.model(moments).mean == pytest.approx([49.5, 49.75], abs=0.2)
    assert check_receipt(json.loads(json.dumps(release.document()))).sound
    assert session.query(text, epsilon=300, delta=0).replayed


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("weights", [(), (1, 4, 1)])
def test_the_price_covers_all_events(session: Session, folder: Path, delta: str, weights: tuple[int, ...]) -> None:
    """The filter admits the charged events at the price, and an auditor plans the same events from the receipt."""
    release = session.query(batch_text([COUNT, BAYES, MOMENTS], weights), epsilon=1, delta=delta, key=f"{weights}")
    paper = release.receipt
    assert paper["charge"]["epsilon"] == "1"
    tables = {"stays": session.describe("stays")}
    again = plan_again(question_of(paper), tables, salt="s", hashing="engine")
    assert to_facts(again.event) == paper["event"]
    assert admits(Budget(Fraction(1), Fraction(delta)), ZERO, privacy_cost(again.event))


def test_without_scaling_mixed_noise_costs_more_than_its_price(
    monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    """The planted error: shares that are each within the price, and events that are not within it together."""
    monkeypatch.setattr("hubbub.curator.batch.fits", lambda *_: True)
    monkeypatch.setattr("hubbub.curator.batch.at_one_price", lambda make, **_: make(None))
    texts = ["CALL median(column => 'cost', table => 'stays')", MOMENTS, COUNT]
    question = Question(batch_text(texts), epsilon=Fraction(1), delta=Fraction(1, 10**6))
    tables = {"stays": session.describe("stays")}
    event = plan_again(question, tables, salt="s", hashing="engine").event
    assert not admits(Budget(Fraction(1), Fraction(1, 10**6)), ZERO, privacy_cost(event))
    monkeypatch.undo()
    event = plan_again(question, tables, salt="s", hashing="engine").event
    assert admits(Budget(Fraction(1), Fraction(1, 10**6)), ZERO, privacy_cost(event))


def test_weights_divide_the_price(session: Session) -> None:
    """Two analyses that share nothing: the noise of each is that of its share, asked for alone."""

    def margin(text: str, epsilon: object, **options: object) -> list[float]:
        return [each.plus_minus for each in session.estimate(text, epsilon=epsilon, delta=0).expected]  # type: ignore[arg-type]

    both = margin(batch_text([BAYES, MOMENTS], [3, 1]), 1)
    alone = margin(BAYES, "0.75") + margin(MOMENTS, "0.25")
    assert both == pytest.approx(alone)
    assert margin(batch_text([BAYES, MOMENTS], [2, 2]), 1) == pytest.approx(
        margin(BAYES, "0.5") + margin(MOMENTS, "0.5")
    )
    weighted = session.estimate(batch_text([COUNT, f"{COUNT} HAVING n > 0", MOMENTS], [1, 1, 2]), epsilon=1, delta=0)
    for line in weighted.derivation:
        if "split" in line:
            planned, even = (float(part.split(",")[0].split(" ")[0]) for part in line.split("±")[1:])
            assert planned <= even * 1.001


def test_errors_name_the_question(session: Session) -> None:
    cases = {
        "HB840": [batch_text([COUNT, BAYES], [1, 2, 3]), "CALL batch(queries => ['SELECT 1'], weights => [TRUE])"],
        "HB582": [batch_text([COUNT, "CALL k_means(table => 'stays')"])],
        "HB790": [batch_text([COUNT, "CALL batch(queries => [])"]), batch_text([BAYES] * 51)],
        "HB103": [batch_text([COUNT, BAYES], [1, 2000])],
    }
    for code, texts in cases.items():
        for text in texts:
            with pytest.raises(hubbub.errors.HubbubError) as refused:
                session.estimate(text, epsilon=1)
            assert refused.value.code == code, text
    with pytest.raises(QueryError, match=r"Question 2 of the batch: .*k_means"):
        session.estimate(cases["HB582"][0], epsilon=1)


def test_an_interrupted_batch_continues_with_the_same_noise(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = batch_text([COUNT, MOMENTS])
    drawn: list[object] = []
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        before = len(opened.releases())
        from hubbub.curator.batch import PreparedBatch

        whole = PreparedBatch._summary  # the last step of a run

        def broken(prepared: PreparedBatch, answers: object) -> object:
            drawn.append(json.dumps(answers))
            if len(drawn) == 1:
                raise KeyboardInterrupt
            return whole(prepared, answers)  # type: ignore[arg-type]

        monkeypatch.setattr(PreparedBatch, "_summary", broken)
        with pytest.raises((KeyboardInterrupt, RunError)):
            opened.query(text, epsilon=1, delta=0)
        opened.query(text, epsilon=1, delta=0)
        assert len(opened.releases()) == before + 1
    assert drawn[0] == drawn[1]


def test_a_batch_that_fits_at_no_scale_is_refused(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    monkeypatch.setattr("hubbub.curator.batch.fits", lambda *_: False)
    with pytest.raises(QueryError) as refused:
        session.estimate(batch_text([COUNT, MOMENTS]), epsilon=1, delta="1e-6")
    assert refused.value.code == "HB841"
