"""Programs on the path of every question: by a text or a method, estimated for free, charged, recorded, replayed."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import hubbub
from hubbub.analyses.programs.kmeans import KMeans
from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.curator.session import Session, open_session
from hubbub.errors import BudgetError, QueryError

YAML = """
version: 1
datasets:
  people:
    source: people.parquet
    unit: {column: who, groups: 2, rows: 2}
    columns:
      who: {}
      x: {bounds: [-10, 10]}
      y: {bounds: [-10, 10]}
      kind: {values: [a, b]}
      flag: {}
    budget: {epsilon: 30, delta: 1e-6, per_query: 5}
analysts:
  ana: {people: {epsilon: 30}}
"""

ASKED: dict[str, dict[str, object]] = {
    "kmeans": {"columns": ["x", "y"], "k": 2},
    "moments": {"columns": ["x", "y"]},
    "pca": {"columns": ["x", "y"], "components": 1},
    "linear_regression": {"columns": ["x"], "target": "y"},
    "logistic_regression": {"columns": ["x", "y"], "target": "kind", "rounds": 2},
    "decision_tree": {"columns": ["x", "kind"], "target": "flag", "depth": 2},
    "frequent_itemsets": {"columns": ["kind", "flag"], "size": 2},
    "hyperplane": {"columns": ["x", "y"], "target": "flag", "bins": 4},
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    draw = np.random.default_rng(1)
    rows = 600
    made = {
        "who": np.arange(rows) // 3,
        "x": draw.normal(0, 3, rows),
        "y": draw.normal(1, 2, rows),
        "kind": np.array(["a", "b"])[draw.integers(0, 2, rows)],
        "flag": draw.uniform(size=rows) < 0.5,
    }
    with duckdb.connect() as connection:
        connection.register("made", made)
        connection.execute(f"COPY (SELECT * FROM made) TO '{tmp_path}/people.parquet'")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        yield opened


@pytest.mark.parametrize("name", ASKED)
def test_each_program_is_estimated_charged_recorded_and_replayed(session: Session, name: str) -> None:
    price = {"epsilon": 1, "delta": "1e-6"}
    free = getattr(session.estimates, name)("people", **ASKED[name], **price)
    assert isinstance(free, Estimate)
    assert free.admitted
    assert free.expected
    assert free.derivation
    assert session.releases() == ()
    first = getattr(session, name)("people", **ASKED[name], **price)
    assert isinstance(first, Release)
    assert first.epsilon == 1
    assert not first.replayed
    assert first.receipt["analysis"] == name
    again = getattr(session, name)("people", **ASKED[name], **price)
    assert again.replayed
    assert again.rows == first.rows
    assert again.model == first.model
    (past,) = session.releases()
    assert past.epsilon == 1
    assert type(hubbub.model(first)).of(again) is not None
    assert repr(first)
    assert first.to_csv()


def test_a_text_asks_for_the_same(session: Session) -> None:
    text = "call KMeans(k => 2, table => 'people', columns => ['x', 'y'])"
    release = session.query(text, epsilon=1, delta=0)
    assert session.kmeans("people", ["x", "y"], 2, epsilon=1, delta=0).replayed
    model = KMeans.of(release)
    assert model.cluster_centers.shape == (2, 2)
    assert release.delta == 0


def test_what_is_charged_is_no_more_than_was_named(session: Session) -> None:
    session.decision_tree("people", ["x"], "kind", epsilon=2, depth=3)
    session.kmeans("people", ["x", "y"], 3, epsilon=2, delta=0, method="classic")
    (spent,) = [cap.spent for cap in session.budget()[0].caps if cap.scope == "analyst"]
    assert spent is not None
    assert 3 < spent <= 4


def test_a_refusal_costs_nothing(session: Session) -> None:
    with pytest.raises(QueryError, match="HB541"):
        session.kmeans("people", ["x", "who"], 2, epsilon=1)
    with pytest.raises(QueryError, match="HB582"):
        session.query("CALL kmeans(table => 'people', columns => ['x'])", epsilon=1)
    with pytest.raises(BudgetError):
        session.kmeans("people", ["x"], 2, epsilon=6)
    assert session.releases() == ()


def test_units_may_be_tightened_and_say_so(session: Session) -> None:
    wide = session.estimates.moments("people", ["x"], epsilon=1, delta=0)
    tight = session.estimates.moments("people", ["x"], epsilon=1, delta=0, rows=1)
    assert tight.expected[0].plus_minus < wide.expected[0].plus_minus
    assert Fraction(1) == tight.epsilon
