"""Cubes from text to interval: every marginal, with units of several rows, NULL, and values nobody declared."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import hubbub
from hubbub.analyses.tables.cube import Cube
from hubbub.audit.receipt import check_receipt
from hubbub.cli import main
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, QueryError

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: patient, groups: 2, rows: 2}
    columns:
      patient: {type: integer}
      region: {values: [North, South, East]}
      month: {type: integer, bounds: [1, 4]}
      sex: {type: boolean}
      cost: {bounds: [-50, 100], step: 0.5}
      word: {}
    budget: {epsilon: 1000, delta: 1e-6}
  pure: {source: visits.parquet, unit: row, columns: {month: {type: integer, bounds: [1, 4]}}, budget: {epsilon: 1}}
analysts: {ana: {visits: {epsilon: 1000, delta: 1e-6}, pure: {epsilon: 1}}, ben: {visits: {epsilon: 1, delta: 1e-6}}}
"""
COLUMNS = ["region", "month", "sex"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cube")
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT i // 2 AS patient, ['North', 'South', 'East', 'Nowhere', NULL][1 + i % 5] AS region,"
            " 1 + (i * 7) % 4 AS month, CASE WHEN i % 7 < 6 THEN i % 2 = 0 END AS sex,"
            " ((i * 37) % 140 - 40)::DOUBLE AS cost,"
            f" 'w' AS word FROM range(3000) t(i)) TO '{path}/visits.parquet'"
        )
    (path / "hubbub.yaml").write_text(YAML)
    return path


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def test_every_marginal_up_to_the_order_is_told_with_its_interval(session: Session, folder: Path) -> None:
    release = session.cube("visits", COLUMNS, measures=["sum(cost)"], order=2, epsilon=100)
    found = check_receipt(json.loads(json.dumps(release.document())))
    assert found.sound, found.problems
    assert len(release.receipt["event"]["parts"]) == 2 * 7
    cube = hubbub.model(release)
    assert isinstance(cube, Cube)
    assert cube.columns == {
        "region": ["North", "South", "East", None],
        "month": [1, 2, 3, 4, None],
        "sex": [False, True, None],
    }
    view = (
        f"(SELECT CASE WHEN region = 'Nowhere' THEN NULL ELSE region END AS region, month, sex, cost "
        f"FROM '{folder}/visits.parquet')"
    )
    inside = total = 0
    for keys in ([], ["region"], ["sex", "region"], ["month", "sex"], ["month", "region"]):
        with duckdb.connect() as made:
            by = ", ".join([*keys, "COUNT(*)", "SUM(cost)"])
            rows = made.execute(f"SELECT {by} FROM {view} GROUP BY ALL").fetchall()
        for place, measure in enumerate(cube.names):
            shape = [len(cube.columns[each]) for each in keys]
            cells = cube.marginal(*keys, measure=measure)
            exact = dict.fromkeys(range(len(cells)), 0.0)
            for *values, count, cost in rows:
                at = 0
                for size, key, value in zip(shape, keys, values, strict=True):
                    at = at * size + cube.columns[key].index(value)
                exact[at] = (count, cost)[place]
            for at, (value, low, high) in enumerate(cells):
                # a Gaussian noise is beyond 3.5 times its margin (7 deviations) with less than 1e-11
                assert abs(value - exact[at]) < 3.5 * (high - low) / 2
                inside += low <= exact[at] <= high
                total += 1
    assert inside > 0.7 * total
    assert session.cube("visits", COLUMNS, measures=["sum(cost)"], order=2, epsilon=100).replayed


def test_what_a_cube_cannot_have_is_refused_before_the_charge(session: Session) -> None:
    before = len(session.releases())
    for arguments, code in (
        ({"columns": ["word"]}, "HB551"),
        ({"columns": ["nowhere"]}, "HB588"),
        ({"columns": COLUMNS, "measures": ["avg(cost)"]}, "HB587"),
        ({"columns": COLUMNS, "measures": ["sum(nowhere)"]}, "HB588"),
    ):
        with pytest.raises(QueryError) as refused:
            session.cube("visits", epsilon=1, **arguments)  # type: ignore[arg-type]
        assert refused.value.code in (code, "HB588")
    with pytest.raises(ParameterError) as pure:
        session.cube("pure", ["month"], epsilon=1)
    assert pure.value.code == "HB553"
    assert len(session.releases()) == before
    estimate = session.estimates.cube("visits", COLUMNS, order=1, epsilon=Fraction(1))
    assert [each.name for each in estimate.expected] == ["count by nothing", "count by region"]


def test_the_command_buys_a_cube_and_proposes_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["-c", str(folder / "hubbub.yaml"), "--analyst", "ana"]
    words = ["publish", "cube", "visits", "--columns", "region,sex", "--order", "2", "-e", "50"]
    assert main([*words, *at]) == 0
    assert "North" in capsys.readouterr().out
    assert main(["query", "SELECT region, COUNT(*) FROM visits WHERE sex GROUP BY region", "-e", "1", *at]) == 0
    capsys.readouterr()
    assert main(["suggest", "cube", "visits", "--json", *at]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["columns"], shown["order"], shown["answered"]) == (["region", "sex"], 2, 1)


def test_a_cube_costs_no_more_than_its_price(folder: Path) -> None:
    """A cap of exactly its price admits it: the ledger adds up variances of continuous noise."""
    with hubbub.open(folder / "hubbub.yaml", analyst="ben") as session:
        assert session.cube("visits", COLUMNS, measures=["sum(cost)"], epsilon=1).epsilon == 1
