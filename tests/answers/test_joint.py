"""Joint intervals from a user's side: the same noise, the same charge, the same receipt."""

import copy
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import hubbub
from hubbub.answers.release import Release
from hubbub.answers.sampling import noise_sentences
from hubbub.audit.receipt import check_receipt
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, QueryError

YAML = """
version: 1
datasets:
  t:
    source: t.csv
    unit: row
    columns: {k: {values: [a, b, c]}, x: {type: integer, bounds: [0, 10]}}
    budget: {epsilon: 9}
analysts: {ana: {t: {epsilon: 9}}}
"""
SQL = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    lines = [f"{'abc'[i % 3]},{i % 10}" for i in range(600)]
    (tmp_path / "t.csv").write_text("\n".join(["k,x", *lines]) + "\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml") as opened:
        yield opened


@pytest.mark.row(100)
def test_asking_again_for_joint_intervals_is_free(session: Session) -> None:
    each = session.query(SQL, epsilon="0.1")
    joint = session.query(SQL, epsilon="0.1", intervals="joint")
    assert joint.replayed
    assert joint.rows == each.rows
    assert len(session.releases()) == 1
    pairs = zip(joint.outputs[1].low or (), each.outputs[1].low or (), strict=True)
    assert all(wide is not None and narrow is not None and wide < narrow for wide, narrow in pairs)
    assert joint.document() == each.document()
    assert check_receipt(joint.to_json()).sound
    assert noise_sentences(joint) == noise_sentences(each), "which compare single intervals"


@pytest.mark.row(100)
def test_the_answer_and_the_estimate_state_what_holds(session: Session) -> None:
    joint = session.query(SQL, epsilon="0.1", intervals="joint")
    assert "all 3 intervals hold at once in at least 95% of answers (95.08%" in joint.intervals_note
    assert Release.from_json(joint.to_json()).intervals_note == joint.intervals_note
    estimate = session.estimate(SQL, epsilon="0.1", intervals="joint")
    assert "all 3 intervals hold at once" in repr(estimate)
    assert estimate.expected[0].plus_minus > session.estimate(SQL, epsilon="0.1").expected[0].plus_minus
    two = session.query("SELECT k, COUNT(x) AS n, AVG(x) AS a FROM t GROUP BY k", epsilon="0.1", intervals="joint")
    assert "all 6 intervals hold at once in at least 95% of answers (by the union bound)" in two.intervals_note


def test_a_target_margin_of_joint_intervals_costs_more(session: Session) -> None:
    costs = [session.estimate(SQL, within=50, intervals=kind).epsilon for kind in ("each", "joint")]
    assert costs[0] < costs[1] < 2 * costs[0]


def test_what_has_no_joint_intervals_is_refused_before_the_charge(session: Session) -> None:
    with pytest.raises(QueryError, match="HB585"):
        session.query("SELECT MEDIAN(x) FROM t", epsilon=1, intervals="joint")
    with pytest.raises(ParameterError, match="HB584"):
        session.query(SQL, epsilon=1, intervals="all")
    with pytest.raises(ParameterError, match="HB147"):
        session.query("CALL histogram(table => 't', column => 'x')", epsilon=1, intervals="joint")
    assert session.releases() == ()


def test_an_older_release_says_that_it_has_none(session: Session) -> None:
    form = copy.deepcopy(session.query(SQL, epsilon="0.1").to_json())
    for column in form["answer"]["columns"]:
        column.pop("joint", None)
    with pytest.raises(ParameterError, match="HB584"):
        Release.from_json(form).jointly()
    single = session.query("SELECT AVG(x) FROM t", epsilon=Fraction(1, 10), intervals="joint")
    assert single.joint
