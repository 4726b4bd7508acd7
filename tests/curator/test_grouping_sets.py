"""Grouping sets over keys that nobody declared: one charge, one release for each set, and the answer of SQL."""

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.insert_rows import insert_rows

import hubbub
from hubbub.audit.receipt import check_receipt
from hubbub.curator.session import Session
from hubbub.errors import QueryError
from hubbub.sql import postprocess

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 1, rows: 1}
    columns:
      patient: {}
      region: {values: [North, South]}
      ward: {}
      kind: {}
      cost: {type: integer, bounds: [0, 10]}
    budget: {epsilon: 1000000, delta: 1e-4}
analysts:
  ana: {visits: {epsilon: 1000000, delta: 1e-4}}
"""
#: Each value of a key has so many people that it is surely shown at a large ε; some wards are NULL.
ROWS = [
    (f"p{i}", ("North", "South", "South")[i % 3], ("w1", "w2", None)[i % 3], "AAAB"[i % 4], i % 11) for i in range(240)
]
EPSILON = 60_000
#: What is selected, and what follows GROUP BY.
QUERIES = {
    "sets": ("ward, kind, COUNT(*) AS n", "GROUPING SETS ((ward), (kind), ())"),
    "rollup": ("region, ward, COUNT(*) AS n, SUM(cost) AS s", "ROLLUP (region, ward)"),
    "cube": ("ward, kind, AVG(cost) AS m", "CUBE (ward, kind)"),
    "grouping": ("COALESCE(kind, 'all') AS k, GROUPING(kind) AS g, COUNT(*) AS n", "ROLLUP (kind)"),
    "a null is not a missing key": ("ward, GROUPING(ward) AS g, COUNT(*) AS n", "ROLLUP (ward)"),
    "having": ("kind, COUNT(*) AS n", "ROLLUP (kind) HAVING COUNT(*) > 100 OR GROUPING(kind) = 1"),
    "order and limit": ("ward, kind, COUNT(*) AS n", "CUBE (ward, kind) ORDER BY n DESC LIMIT 3"),
    "hidden order": ("kind, COUNT(*) AS n", "ROLLUP (kind) ORDER BY SUM(cost) DESC, GROUPING(kind)"),
    "window": ("kind, COUNT(*) AS n, COUNT(*) * 2.0 / SUM(COUNT(*)) OVER () AS share", "ROLLUP (kind)"),
    "mixed keys": ("region, cost, ward, COUNT(*) AS n", "GROUPING SETS ((region), (cost, ward))"),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("sets")
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in ROWS]
    (folder / "visits.csv").write_text("\n".join(["patient,region,ward,kind,cost", *lines]) + "\n")
    (folder / "hubbub.yaml").write_text(YAML)
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


@pytest.fixture(scope="module")
def exact() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (patient TEXT, region TEXT, ward TEXT, kind TEXT, cost INTEGER)")
    insert_rows(connection, "visits", ROWS)
    return connection


def text(name: str) -> str:
    selected, grouped = QUERIES[name]
    return f"SELECT {selected} FROM visits GROUP BY {grouped}"


def rounded(row: tuple[Any, ...]) -> str:
    return repr([round(float(cell), 6) if isinstance(cell, int | float) else cell for cell in row])


def near(cell: Any) -> Any:
    return pytest.approx(float(cell), abs=1e-6) if isinstance(cell, int | float) else cell


@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_is_that_of_sql(session: Session, exact: duckdb.DuckDBPyConnection, name: str) -> None:
    """At this ε all noise is 0, but for a probability below 10⁻⁹ in each number."""
    compare(session, exact, name, EPSILON)


def compare(session: Session, exact: duckdb.DuckDBPyConnection, name: str, epsilon: int) -> None:
    release = session.query(text(name), epsilon=epsilon, delta="1e-6")
    rows, right = list(release.rows), exact.execute(text(name)).fetchall()
    assert len(rows) == len(right)
    if "LIMIT" in text(name):  # groups of equal size may come in any order
        assert [row[-1] for row in rows] == [row[-1] for row in right]
        return
    assert sorted(rows, key=rounded) == [tuple(map(near, row)) for row in sorted(right, key=rounded)]


def test_counts_keep_their_intervals_and_keys_have_none(session: Session) -> None:
    release = session.query(text("sets"), epsilon=3, delta="1e-6")
    for (_, _, count), ends in zip(release.rows, release.intervals, strict=True):
        assert ends[0] == ends[1] == (None, None)
        low, high = ends[2]
        assert isinstance(count, int)
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert low < count < high


def test_all_sets_are_charged_together_in_equal_shares(session: Session) -> None:
    before = len(session.releases())
    release = session.query(text("sets"), epsilon=33, delta="1e-6")
    assert [release.epsilon, len(session.releases())] == [33, before + 1]
    parts = release.receipt["queries"]
    assert [Fraction(part["charge"]["epsilon"]) for part in parts] == [11, 11, 11]
    assert [part["cells"] for part in parts] == [[None], [None], [1]]
    assert release.receipt["event"]["parts"] == [each for part in parts for each in part["event"]["parts"]]
    found = check_receipt(json.loads(json.dumps(release.document())))
    assert found.sound, found.problems
    assert session.query(text("sets"), epsilon=33, delta="1e-6").replayed


def test_a_group_of_few_people_is_in_no_set(session: Session) -> None:
    """Each of the first keys has at most 18 people, and a group is shown from about 60 on at this ε."""
    small = "SELECT kind || cost AS k, region, COUNT(*) AS n FROM visits WHERE cost < 2 GROUP BY ROLLUP (k, region)"
    release = session.query(small, epsilon="0.5", delta="1e-6")
    assert {row[0] for row in release.rows} == {None}


@pytest.mark.parametrize(
    "written",
    [
        "SELECT ward, COUNT(*) FROM visits GROUP BY ROLLUP (ward)",
        "SELECT a.ward, a.n / b.n AS r FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)) AS a, "
        "(SELECT COUNT(*) AS n FROM visits) AS b",
    ],
)
def test_sets_need_a_delta_and_be_the_whole_query(session: Session, written: str) -> None:
    delta = "1e-6" if "b.n" in written else 0
    with pytest.raises(QueryError) as refused:
        session.estimate(written, epsilon=1, delta=delta)
    assert refused.value.code == ("HB564" if delta else "HB551")


def test_more_sets_than_releases_are_refused(session: Session) -> None:
    with pytest.raises(QueryError) as refused:
        session.estimate(
            "SELECT COUNT(*) FROM visits GROUP BY CUBE (ward, kind, region, cost, left(ward, 1))",
            epsilon=1,
            delta="1e-6",
        )
    assert refused.value.code == "HB754"


def test_hidden_columns_are_in_no_estimate(session: Session) -> None:
    estimate = session.estimate(text("hidden order"), epsilon=1, delta="1e-6")
    assert not [each.name for each in estimate.expected if "$" in each.name]
    assert session.query(text("hidden order"), epsilon=EPSILON, delta="1e-6").columns == ("kind", "n")


def test_a_forgotten_order_is_noticed(
    session: Session, exact: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison above would see rows in the order of their sets."""

    def arrange(columns: postprocess.Columns, *_: object) -> NDArray[np.int64]:
        return np.arange(len(next(iter(columns.values()))[0]))

    monkeypatch.setattr(postprocess, "arrange", arrange)
    with pytest.raises(AssertionError):
        compare(session, exact, "order and limit", EPSILON + 1)
