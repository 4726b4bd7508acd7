"""An answer that differs from the stored data because of declarations says which columns were read differently.

Each query runs at an ε so large that noise is zero (it is not with probability below e^-1000), and on the stored data.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import hubbub
from hubbub.answers.left_out import LeftOut
from hubbub.audit.receipt import check_receipt
from hubbub.curator.session import Session

#: The answer differs from the stored data, and the columns or the note that must say so.
DIFFERENT = {
    "SELECT COUNT(*) FROM t WHERE cost <> 0": "cost",
    "SELECT COUNT(*) FROM t WHERE cost = 100": "cost",
    "SELECT COUNT(*) FROM t WHERE cost > 100": "cost",
    "SELECT COUNT(*) FILTER (WHERE cost <= 100) FROM t": "cost",
    "SELECT COUNT(*) FROM t WHERE cost * 2 > 250": "cost",
    "SELECT COUNT(*) FROM t WHERE cost BETWEEN 50 AND 100": "cost",
    "SELECT COUNT(*) FROM t WHERE cost > age + 75": "cost",
    "SELECT COUNT(*) FROM (SELECT cost AS c FROM t) WHERE c > 100": "cost",
    "SELECT SUM(CASE WHEN cost > 100 THEN 1 ELSE 0 END) FROM t": "cost",
    "SELECT COUNT(*) FROM t WHERE ward IS NOT NULL": "ward",
    "SELECT COUNT(*) FROM t WHERE ward <> 'A'": "ward",
    "SELECT COUNT(*) FROM t WHERE NOT ward IN ('A', 'B')": "ward",
    "SELECT COUNT(*) FROM t WHERE ward = 'X'": "ward",
    "SELECT COUNT(ward) FROM t": "ward",
    "SELECT COUNT(LENGTH(ward)) FROM t": "ward",
    "SELECT COUNT(*) FROM (SELECT COALESCE(ward, 'none') AS w FROM t) WHERE w <> 'none'": "ward",
    "SELECT COUNT(*) FILTER (WHERE NOT (ward = 'A')) FROM t": "ward",
}
#: The answer is that of the stored data, and nothing needs to be said.
SAME = (
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM t WHERE cost < 99 AND cost > 1",
    "SELECT COUNT(*) FROM t WHERE NOT cost < 50",
    "SELECT COUNT(*) FROM t WHERE cost >= 100",
    "SELECT COUNT(*) FROM t WHERE cost > 0",
    "SELECT COUNT(*) FROM t WHERE cost IS NULL",
    "SELECT COUNT(*) FROM t WHERE ward = 'A'",
    "SELECT COUNT(*) FROM t WHERE ward IN ('A', 'B') OR cost < 20",
    "SELECT SUM(CASE WHEN ward = 'A' THEN 1 ELSE 0 END) FROM t",
    "SELECT COUNT(*) FROM t WHERE place <> 'North'",
)
ROWS = [
    *[(20 + i, 10 * i, ward, "North") for i, ward in enumerate("ABABABXXX")],
    *[(30, 900, ward, "Moon") for ward in "ABX"],
    (40, None, "", ""),
    (41, 100, "A", "North"),
    (42, -7, "B", "North"),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("enforced")
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in ROWS]
    (folder / "t.csv").write_text("\n".join(["age,cost,ward,place", *lines]))
    (folder / "hubbub.yaml").write_text(
        "version: 1\ndatasets:\n  t:\n    source: t.csv\n    unit: row\n    columns:\n"
        "      age: {type: integer, bounds: [0, 110]}\n      cost: {type: integer, bounds: [0, 100]}\n"
        "      ward: {values: [A, B]}\n      place: {values: [North, South], other: Elsewhere}\n"
        "    budget: {epsilon: 1e6}\nanalysts: {ana: {t: {epsilon: 1e6}}}\n"
    )
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
        yield session


@pytest.fixture(scope="module")
def stored(opened: Session, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (age INTEGER, cost INTEGER, ward VARCHAR, place VARCHAR)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)", [[None if cell == "" else cell for cell in row] for row in ROWS]
        )
        yield connection


def _exact(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


def _stated(left_out: LeftOut | None) -> set[str]:
    assert left_out is not None
    return {*(each.column for each in left_out.clamped), *left_out.unlisted, *left_out.ungrouped}


@pytest.mark.parametrize("sql", DIFFERENT)
def test_an_answer_that_differs_names_the_column(opened: Session, stored: duckdb.DuckDBPyConnection, sql: str) -> None:
    release = opened.query(sql, epsilon=3000)
    assert release.rows[0][0] != _exact(stored, sql)
    assert _stated(release.left_out) >= {DIFFERENT[sql]}
    assert DIFFERENT[sql] in release.left_out.sentence()  # type: ignore[union-attr]
    check_receipt(release.document())


@pytest.mark.parametrize("sql", SAME)
def test_an_answer_of_which_nothing_is_said_is_that_of_the_stored_data(
    opened: Session, stored: duckdb.DuckDBPyConnection, sql: str
) -> None:
    release = opened.query(sql, epsilon=3000)
    assert release.rows[0][0] == _exact(stored, sql)
    assert _stated(release.left_out) == set()


def test_keys_say_which_rows_are_in_no_group(opened: Session) -> None:
    by_ward = opened.query("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", epsilon=3000)
    assert by_ward.rows == [("A", 5), ("B", 5)]  # not the four X, nor NULL
    assert by_ward.left_out is not None
    assert by_ward.left_out.ungrouped == ("ward",)
    assert "Rows in which ward is NULL or not a declared value are in no group." in by_ward.left_out.sentence()
    by_place = opened.estimate("SELECT place, COUNT(*) AS n FROM t GROUP BY place", epsilon=1)
    assert by_place.left_out is not None
    assert by_place.left_out.ungrouped == ()
    by_cost = opened.query("SELECT cost, COUNT(*) AS n FROM t GROUP BY cost", epsilon=3000)
    assert (100, 4) in by_cost.rows  # three of 900
    assert _stated(by_cost.left_out) == {"cost"}
    assert by_cost.left_out is not None
    assert by_cost.left_out.null_keys == ("cost",)
    assert sum(int(str(n)) for _, n in by_cost.rows) == len(ROWS) - 1  # one cost is NULL


#: Queries by a key that may be NULL, with the columns; by keys that are never NULL; and by keys whose NULL is a group.
NULL_KEYS = {
    "SELECT cost > 50 AS dear, COUNT(*) AS n FROM t GROUP BY dear": ("cost",),
    "SELECT age, cost > 50, COUNT(*) AS n FROM t GROUP BY age, cost > 50": ("age", "cost"),
    "SELECT c, COUNT(*) AS n FROM (SELECT cost AS c FROM t) AS s GROUP BY c": ("cost",),
    "SELECT d, COUNT(*) AS n FROM (SELECT c > 50 AS d FROM (SELECT cost AS c FROM t) AS s) AS u GROUP BY d": ("cost",),
    "SELECT CASE WHEN cost > 50 THEN ward END AS w, COUNT(*) AS n FROM t GROUP BY w": (),  # NULL is a group
    "SELECT CASE WHEN cost > 50 THEN 'a' ELSE 'b' END AS w, COUNT(*) AS n FROM t GROUP BY w": (),
    "SELECT cost IS NULL AS missing, COUNT(*) AS n FROM t GROUP BY missing": (),
    "SELECT COALESCE(cost, 0) AS c, COUNT(*) AS n FROM t GROUP BY c": (),
    "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward": (),  # `ungrouped` says so
    "SELECT place, COUNT(*) AS n FROM t GROUP BY place": ("place",),  # other values become Elsewhere, but not NULL
    "SELECT COUNT(*) AS n FROM t": (),
}


@pytest.mark.parametrize("sql", NULL_KEYS)
def test_keys_that_may_be_null_are_named_where_null_is_no_group(opened: Session, sql: str) -> None:
    release = opened.query(sql, epsilon=3000)
    assert release.left_out is not None
    assert release.left_out.null_keys == NULL_KEYS[sql]
    lost = sum(int(str(row[-1])) for row in release.rows) < len(ROWS)
    assert lost == bool(release.left_out.null_keys or release.left_out.ungrouped)
    check_receipt(release.document())


def test_least_and_greatest_say_that_null_becomes_the_constant(opened: Session) -> None:
    clamped = opened.query("SELECT SUM(GREATEST(0, LEAST(age + cost, 50))) AS s FROM t WHERE age = 40", epsilon=3000)
    assert clamped.rows == [(50,)]  # the cost of this row is NULL
    assert clamped.left_out is not None
    assert clamped.left_out.fills_null
    assert LeftOut.from_json(clamped.left_out.to_json()) == clamped.left_out
    inner = "SELECT AVG(x) AS a FROM (SELECT LEAST(cost, 50) AS x FROM t)"
    for sql, fills in (
        (inner, True),
        ("SELECT AVG(cost) FROM t", False),
        ("SELECT AVG(LEAST(age, cost)) FROM t", False),
    ):
        left_out = opened.estimate(sql, epsilon=1).left_out
        assert left_out is not None
        assert left_out.fills_null is fills


def test_a_key_that_is_the_privacy_id_leaves_no_rows_out(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,age\n" + "\n".join(f"{i},{20 + i}" for i in range(30)))
    text = (
        "version: 1\ndatasets:\n  p:\n    source: p.csv\n    unit: {column: id}\n    KEY\n"
        "    columns: {id: {type: integer}, age: {type: integer, bounds: [0, 110]}}\n"
        "    budget: {epsilon: 10}\nanalysts: {ana: {p: {epsilon: 10}}}\n"
    )
    for key, says in (("key: id", "Each id counts once."), ("", "Each id counts with at most 1 row. What share")):
        (tmp_path / "hubbub.yaml").write_text(text.replace("KEY", key))
        with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as session:
            left_out = session.estimate("SELECT COUNT(*) FROM p", epsilon=1).left_out
        assert left_out is not None
        assert left_out.sentence().startswith(says)
