"""Answers that are computed from noisy results: one charge, one receipt, and what is published with them."""

import copy
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub
from hubbub.audit.receipt import check_receipt
from hubbub.curator import after as curator_after
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, QueryError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 3}
    columns:
      patient: {}
      region: {values: [North, South]}
      kind: {}
      age: {type: integer, bounds: [0, 110]}
    budget: {epsilon: 100000, delta: 1e-6}
  regions: {source: regions.csv, public: true, columns: {region: {}, people: {type: integer}}}
analysts:
  ana: {visits: {epsilon: 100000, delta: 1e-6}}
  ben: {visits: {epsilon: 3, delta: 1e-6}}
"""
COUNTS = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
SHARE = "SELECT region, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY region"
TWO = "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits WHERE age >= 0) AS old FROM visits WHERE age > 60"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    rows = [f"p{i},{('North', 'South', 'South')[i % 3]},{'AAB'[i % 3]},{i % 100}" for i in range(300)]
    rows.append("p0,South,RARE,50")
    (tmp_path / "visits.csv").write_text("\n".join(["patient,region,kind,age", *rows]) + "\n")
    (tmp_path / "regions.csv").write_text("region,people\nNorth,1000\nSouth,2000\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def test_a_share_of_the_total_is_one_release(session: Session) -> None:
    estimate = session.estimate(SHARE, epsilon=1000)
    assert [each.name for each in estimate.expected] == ["n"]
    release = session.query(SHARE, epsilon=1000)
    assert release.columns == ("region", "n", "share")
    rows: list[tuple[Any, ...]] = release.rows
    assert rows == [("North", 100, pytest.approx(100 / 301)), ("South", 201, pytest.approx(201 / 301))]
    assert [release.epsilon, len(session.releases())] == [1000, 1]
    assert session.query(SHARE, epsilon=1000).replayed
    assert len(session.releases()) == 1
    found = check_receipt(json.loads(json.dumps(release.document())))
    assert found.sound, found.problems
    assert any("not computed again" in line for line in found.lines)
    assert release.model["released"][0]["columns"][1]["values"] == [100, 201]


def test_several_releases_are_charged_together_and_once(session: Session) -> None:
    release = session.query(TWO, epsilon=2000)
    rows: list[tuple[Any, ...]] = release.rows
    assert rows == [(pytest.approx(117 / 301),)]
    (charge,) = session.releases()
    assert [charge.epsilon, release.epsilon] == [2000, 2000]
    parts = release.receipt["queries"]
    assert [Fraction(part["charge"]["epsilon"]) for part in parts] == [1000, 1000]
    assert release.receipt["event"]["parts"] == [each for part in parts for each in part["event"]["parts"]]
    found = check_receipt(json.loads(json.dumps(release.document())))
    assert found.sound, found.problems
    assert session.query(TWO, epsilon=2000).replayed
    assert len(session.releases()) == 1


@pytest.mark.parametrize("forgery", ["epsilon", "event", "missing", "bounds", "data", "delta"])
def test_a_forged_receipt_of_several_releases_is_refused(session: Session, forgery: str) -> None:
    document = json.loads(json.dumps(session.query(TWO, epsilon=2).document()))
    paper = copy.deepcopy(document["receipt"])
    if forgery == "epsilon":
        paper["charge"]["epsilon"] = "1"
    elif forgery == "event":
        paper["event"]["parts"] = paper["event"]["parts"][:1]
    elif forgery == "missing":
        paper["queries"] = paper["queries"][:1]
    elif forgery == "bounds":
        paper["queries"][0]["bounds"]["rows"] = 30
    elif forgery == "data":
        paper["queries"][0]["data"] = ["other"]
    else:
        paper["queries"][0]["charge"]["delta"] = "1/1000"
    assert not check_receipt(paper).sound
    assert check_receipt(document["receipt"]).sound


def test_the_budget_bounds_all_releases_of_a_statement_together(session: Session, tmp_path: Path) -> None:
    assert session.releases() == ()
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ben") as poor:
        with pytest.raises(hubbub.errors.HubbubError, match="HB201"):
            poor.query(TWO, epsilon=4)
        assert poor.releases() == ()
        poor.query(TWO, epsilon=3)
        (view,) = poor.budget()
        assert [state.spent for state in view.caps if state.scope == "analyst"] == [3]


def test_groups_that_were_not_selected_are_in_no_answer(session: Session) -> None:
    sql = "SELECT kind, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM visits GROUP BY kind ORDER BY n DESC"
    release = session.query(sql, epsilon=5)
    assert [row[0] for row in release.rows] == ["A", "B"]
    assert "RARE" not in json.dumps(release.document())
    rows: list[tuple[Any, ...]] = release.rows
    assert rows[0][2] == rows[0][1] + rows[1][1]


def test_a_query_that_fails_on_noisy_values_gives_the_noisy_values(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise duckdb.OutOfMemoryException("too large")

    with monkeypatch.context() as patch:
        patch.setattr(curator_after, "run_after", fail)
        release = session.query(SHARE, epsilon=1000)
    assert (release.rows, release.model["failed"]) == ([], True)
    assert release.model["released"][0]["columns"][1]["values"] == [100, 201]
    assert "failed" in repr(release)
    assert check_receipt(json.loads(json.dumps(release.document()))).sound


def test_an_answer_with_too_many_rows_is_not_stored(session: Session) -> None:
    pairs = " CROSS JOIN ".join(f"t AS t{i}" for i in range(20))
    sql = f"WITH t AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) SELECT t0.n FROM {pairs}"
    release = session.query(sql, epsilon=1)
    assert release.model["failed"] is True


def test_options_that_need_one_release_are_refused(session: Session) -> None:
    for options in ({"intervals": "joint"}, {"weights": {"old": 2}}):
        with pytest.raises((QueryError, ParameterError), match=r"HB757|HB585|HB138"):
            session.estimate(TWO, epsilon=1, **options)
    with pytest.raises(QueryError, match="HB585"):
        session.estimate(SHARE, epsilon=1, intervals="joint")


def test_a_margin_of_error_holds_for_every_release(session: Session) -> None:
    estimate = session.estimate(TWO, within=20)
    assert all(each.plus_minus <= 20 for each in estimate.expected)
    assert len(estimate.expected) == 2


def test_parameters_reach_both_sides(session: Session) -> None:
    sql = "SELECT n + ? AS m FROM (SELECT SUM(COUNT(*)) OVER () AS n FROM visits WHERE age > ?) AS t"
    assert session.query(sql, epsilon=1000, parameters=[1000, 60]).rows == [(1117,)]
    with pytest.raises(QueryError, match="HB509"):
        session.query(sql, epsilon=1, parameters=[1000, 60, 3])


def test_the_sum_of_counts_that_are_probably_exact_has_an_interval_that_is_not_a_point(session: Session) -> None:
    counts = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    release = session.query(f"SELECT SUM(n) AS total FROM ({counts}) AS t", epsilon=24)
    (total,) = release.outputs
    assert total.low is not None
    assert total.high is not None
    low, high = total.low[0], total.high[0]
    assert low is not None
    assert high is not None
    # whatever the noise was: two counts with noise of scale 6/24 each
    assert high - low == pytest.approx(2 * 2**0.5 * (math.log(20) / 4 + 0.5))


@pytest.mark.parametrize(
    "written",
    [
        "DATE '9999-12-31' + CAST(n AS INTEGER)",
        "DATE '0001-01-01' - CAST(n AS INTEGER)",
        "CAST('infinity' AS DATE)",
        "CAST('-infinity' AS TIMESTAMP)",
        "CAST('0044-03-15 (BC)' AS TIMESTAMP)",
        "TIMESTAMP '9999-12-31 23:59:59' + INTERVAL 1 DAY",
    ],
)
def test_dates_outside_of_the_years_of_dates_are_null(session: Session, written: str) -> None:
    last = "DATE '9999-12-31' + CAST(0 * rank() OVER (ORDER BY n) AS INTEGER)"
    release = session.query(f"SELECT {written}, {last} AS last FROM ({COUNTS}) AS g", epsilon=1000)
    assert [(value, str(day)) for value, day in release.rows] == [(None, "9999-12-31")] * 2
    assert not release.model.get("failed")
    assert session.query(f"SELECT {written}, {last} AS last FROM ({COUNTS}) AS g", epsilon=1000).replayed


def test_public_numbers_with_fractions_are_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient,region\n" + "".join(f"p{i},{'NS'[i % 2]}\n" for i in range(20)))
    (tmp_path / "regions.csv").write_text("region,share\nN,0.1\nS,-2.5\n")
    (tmp_path / "hubbub.yaml").write_text("""
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 1, rows: 1}
    columns: {region: {values: [N, S]}}
    budget: {epsilon: 100000}
  regions: {source: regions.csv, public: true, columns: {region: {}, share: {type: real, bounds: [-9, 9]}}}
analysts: {ana: {visits: {epsilon: 100000}}}
""")
    joined = f"SELECT g.region, share, rank() OVER (ORDER BY n) FROM ({COUNTS}) AS g JOIN regions USING (region)"
    keyed = (
        "SELECT share, (SELECT COUNT(*) FROM visits AS v WHERE v.region = r.region) FROM regions AS r WHERE share {}"
    )
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        release = opened.query(joined, epsilon=1000)
        assert [row[:2] for row in release.rows] == [("N", 0.1), ("S", -2.5)]
        number = opened.releases()[0].id
        again = f"SELECT region, regions.share FROM release({number}) JOIN regions USING (region) ORDER BY region"
        assert opened.query(again).rows == [("N", 0.1), ("S", -2.5)]
        assert opened.query(keyed.format("= -2.5"), epsilon=1000).rows == [(-2.5, 10)]
        assert opened.query(keyed.format("> 0"), epsilon=1000).rows == [(0.1, 10)]


def test_keys_are_those_of_the_rows_that_the_outer_query_reads(tmp_path: Path) -> None:
    # a text that is compared with a number: DuckDB casts it to an integer, and the outer query to a real number
    (tmp_path / "visits.csv").write_text("patient,region\n" + "".join(f"p{i},{'NS'[i % 2]}\n" for i in range(20)))
    (tmp_path / "regions.csv").write_text("region,size\nN,2.5\nS,4\n")
    (tmp_path / "hubbub.yaml").write_text("""
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 1}
    columns: {region: {values: [N, S]}}
    budget: {epsilon: 100000}
  regions: {source: regions.csv, public: true, columns: {region: {}, size: {}}}
analysts: {ana: {visits: {epsilon: 100000}}}
""")
    condition = "0 < (SELECT COUNT(*) FROM visits AS v WHERE v.region = r.region)"
    text = f"SELECT COUNT(*) FROM visits AS o JOIN regions AS r ON o.region = r.region WHERE size <> 3 AND {condition}"
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        assert opened.query(text, epsilon=5000).rows == [(20,)]
