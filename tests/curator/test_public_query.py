"""Queries on public tables: exact, free, and cut off from everything private."""

import math
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub
from hubbub.curator.session import Session
from hubbub.errors import HubbubError, ParameterError, QueryError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 3}
    columns: {patient: {}, region: {values: [North, South]}, age: {type: integer, bounds: [0, 110]}}
    budget: {epsilon: 3}
  regions:
    source: duckdb:public.duckdb#regions
    public: true
    columns:
      secret: {hidden: true}
  plans: {source: plans.csv, public: true, columns: {plan: {type: integer}, name: {}}}
analysts:
  ana: {visits: {epsilon: 3}}
"""
CANARY = "CANARY-7431"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "visits.csv").write_text(f"patient,region,age\n{CANARY},North,50\np2,South,60\n")
    (tmp_path / "plans.csv").write_text("plan,name\n1,basic\n2,full\n3,\n")
    with duckdb.connect(str(tmp_path / "public.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE regions AS SELECT * FROM (VALUES"
            " ('North', 1200, 1.5, DATE '2020-02-29', TIMESTAMP '2020-01-01 00:00:00', true, 'x'),"
            " ('South', 800, NULL, NULL, NULL, NULL, 'y'),"
            " ('East', 9007199254740993, 'inf'::DOUBLE, DATE '2021-01-01', TIMESTAMP '2021-06-01 12:30:00', false,"
            " 'z'))"
            " AS t(region, people, share, founded, seen, coast, secret)"
        )
        connection.execute(f"CREATE TABLE staff AS SELECT '{CANARY}' AS name")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml") as opened:
        yield opened


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT COUNT(*) AS n FROM regions", [(3,)]),
        ("SELECT region FROM regions ORDER BY region DESC LIMIT 2", [("South",), ("North",)]),
        ("SELECT MEDIAN(people) AS m FROM regions", [(1200.0,)]),
        ("SELECT DISTINCT coast FROM regions ORDER BY coast NULLS LAST", [(False,), (True,), (None,)]),
        ("SELECT SUM(people) AS s FROM regions WHERE share IS NOT NULL", [(9007199254742193,)]),
        ("WITH visits AS (SELECT region FROM regions) SELECT COUNT(*) AS n FROM visits", [(3,)]),
        ("SELECT r.region, p.name FROM regions r JOIN plans p ON p.plan = 1 WHERE r.coast", [("North", "basic")]),
        ("SELECT region FROM regions UNION ALL SELECT name FROM plans WHERE plan > 2", [(None,), *[("?",)] * 3]),
        ("SELECT founded, seen FROM regions WHERE coast", [(date(2020, 2, 29), datetime(2020, 1, 1))]),
        ("SELECT share FROM regions ORDER BY region", [(None,), (1.5,), (None,)]),
        ("SELECT plan, plan FROM plans WHERE plan = 2", [(2, 2)]),
        ("SELECT name FROM plans WHERE FALSE", []),
        ("SELECT Plans.plan FROM PLANS WHERE plans.PLAN > 2", [(3,)]),
        ("WITH Cheap AS (SELECT plan FROM plans) SELECT COUNT(*) AS n FROM cheap", [(3,)]),
        ("SELECT p AS whole FROM plans AS p WHERE plan = 1", [("{'plan': 1, 'name': 'basic'}",)]),
        ("SELECT MAX(seen) - MIN(seen) AS apart FROM regions", [("517 days, 12:30:00",)]),
    ],
)
def test_public_tables_are_answered_exactly_and_for_free(session: Session, sql: str, rows: list[Any]) -> None:
    estimate = session.estimate(sql)
    assert (estimate.epsilon, estimate.admitted, len(estimate.expected)) == (Fraction(0), True, 0)
    release = session.query(sql)
    if ("?",) in rows:
        assert sorted(map(str, release.rows)) == sorted(["(None,)", "('East',)", "('North',)", "('South',)"])
    else:
        assert release.rows == rows
    assert (release.epsilon, release.delta, release.left) == (Fraction(0), Fraction(0), None)
    assert all(ends == (None, None) for row in release.intervals for ends in row)
    assert session.releases() == ()
    assert [state.spent for view in session.budget() for state in view.caps if state.scope == "analyst"] == [0]
    assert "free" in repr(release)
    assert "free" in repr(estimate)


def test_types_do_not_depend_on_the_values(session: Session) -> None:
    sql = "SELECT region, people, share, founded, seen, coast FROM regions"
    kinds = ["text", "integer", "real", "date", "timestamp", "boolean"]
    for where in ("TRUE", "FALSE", "region = 'South'"):
        assert [each.kind for each in session.query(f"{sql} WHERE {where}").outputs] == kinds


def test_parameters_are_values_and_never_sql(session: Session) -> None:
    sql = "SELECT COUNT(*) AS n FROM regions WHERE region = ? AND people > ? AND founded < ? AND coast = ?"
    assert session.query(sql, parameters=["North", Fraction("0.5"), date(2021, 1, 1), True]).rows == [(1,)]
    assert session.query("SELECT COUNT(*) AS n FROM regions WHERE people > $1", parameters=[-5]).rows == [(3,)]
    evil = "' OR 1=1 --"
    assert session.query("SELECT COUNT(*) AS n FROM regions WHERE region = ?", parameters=[evil]).rows == [(0,)]
    for values in (list[str](), ["North", "South"]):
        with pytest.raises(QueryError, match="HB509"):
            session.query("SELECT COUNT(*) AS n FROM regions WHERE region = ?", parameters=values)


NO_WAY = [
    "SELECT * FROM visits",
    "SELECT * FROM regions, visits",
    "SELECT * FROM regions WHERE region IN (SELECT region FROM visits)",
    "SELECT region, (SELECT MAX(patient) FROM visits) AS x FROM regions",
    "SELECT * FROM regions UNION ALL SELECT patient FROM visits",
    "WITH v AS (SELECT * FROM visits) SELECT * FROM v, regions",
    "SELECT * FROM (WITH visits AS (SELECT 1 AS a FROM plans) SELECT a FROM visits) t, visits",
    "WITH a AS (SELECT * FROM visits), visits AS (SELECT plan FROM plans) SELECT * FROM a",
    "WITH visits AS (SELECT patient FROM visits) SELECT * FROM visits, plans",
    'SELECT * FROM "$source0".main.staff, regions',
    "SELECT * FROM staff, regions",
    "SELECT * FROM regions, duckdb_views() v",
    "SELECT * FROM regions, information_schema.tables",
    "WITH x AS (WITH duckdb_views AS (SELECT plan FROM plans) SELECT plan FROM plans) SELECT * FROM duckdb_views",
    "SELECT read_text('visits.csv') AS t FROM regions",
    "SELECT current_setting('temp_directory') AS t FROM regions",
    "SELECT getenv('HOME') AS t FROM regions",
    "SELECT * FROM read_csv('visits.csv'), regions",
    "SELECT secret FROM regions",
    "WITH RECURSIVE t AS (SELECT plan FROM plans UNION ALL SELECT plan FROM t) SELECT * FROM t",
]


@pytest.mark.parametrize("sql", NO_WAY)
def test_no_text_reaches_a_private_table(session: Session, sql: str) -> None:
    """Everything private, hidden or outside of the tables is refused; the second try asks with an ε."""
    for options in ({}, {"epsilon": "0.1"}):
        with pytest.raises((QueryError, ParameterError)) as refused:
            print(session.query(sql, **options))  # type: ignore[arg-type]
        assert CANARY not in str(refused.value)
    assert session.releases() == ()


def test_a_private_table_still_needs_an_epsilon(session: Session) -> None:
    with pytest.raises(ParameterError, match="HB132"):
        session.query("SELECT COUNT(*) AS n FROM visits JOIN regions USING (region)")
    assert session.query("SELECT COUNT(*) AS n FROM visits JOIN regions USING (region)", epsilon="0.5").epsilon > 0


def test_a_failing_query_costs_nothing_and_tells_nothing(session: Session, tmp_path: Path) -> None:
    with pytest.raises(HubbubError, match="HB579") as failed:
        session.query("SELECT CAST(name AS INTEGER) AS n FROM plans")
    assert str(tmp_path) not in str(failed.value)
    assert failed.value.__cause__ is None
    assert session.releases() == ()


def test_an_unknown_column_is_named_with_those_that_exist(session: Session) -> None:
    for sql in ("SELECT nome FROM plans", "SELECT p.nome FROM plans AS p", "SELECT plan FROM plans WHERE nome = 1"):
        with pytest.raises(QueryError, match=r"HB770.*unknown column 'nome'") as refused:
            session.query(sql)
        assert "plans has plan, name" in refused.value.remedy


def test_the_size_of_an_answer_is_limited(session: Session) -> None:
    session._curator.config = _with_cells(session._curator.config, 4)
    assert len(session.query("SELECT plan FROM plans").rows) == 3
    for sql in ("SELECT a.plan FROM plans a, plans b", "SELECT a.plan FROM plans a, plans b LIMIT 1000000"):
        with pytest.raises(QueryError, match="HB549"):
            session.query(sql)
    assert len(session.query("SELECT a.plan FROM plans a, plans b LIMIT 2").rows) == 2
    with pytest.raises(QueryError, match="HB508"):
        session.query("SELECT a.plan FROM plans a, plans b LIMIT 1 + 1")


def _with_cells(config: Any, most: int) -> Any:
    from dataclasses import replace

    return replace(config, max_cells=most)


def test_numbers_survive_the_copy_from_a_server(tmp_path: Path) -> None:
    """A table of a server is written to a file as text and read back: no digit, NULL or date may change."""
    import numpy as np

    from hubbub.core.schema import Kind
    from hubbub.curator.public_query import _copy
    from hubbub.engines.base import DataSource, View

    arrays = {
        "i": np.ma.MaskedArray(np.array([2**62 + 1, -3, 0]), mask=[False, False, True]),
        "x": np.array([0.1, math.pi, 1e-300]),
        "t": np.array(["a'b", "", "Ça"], dtype=object),
        "b": np.array([True, False, True]),
        "d": np.array(["2020-02-29", "0001-01-01", "9999-12-31"], dtype="datetime64[D]"),
        "s": np.array(["2020-02-29T01:02:03.000004"] * 3, dtype="datetime64[us]"),
    }

    class Server:
        dialect = "postgres"

        def run(self, sql: str) -> Any:
            from hubbub.core.secret import Secret

            assert sql.startswith('SELECT "i", "x"')
            return Secret(arrays)

    kinds = (Kind.INTEGER, Kind.REAL, Kind.TEXT, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)
    view = View("t", DataSource("postgres", Path("/"), "t"), tuple(zip(arrays, kinds, strict=True)))
    copied = _copy(view, Server(), tmp_path / "t.parquet")  # type: ignore[arg-type]
    rows = duckdb.connect().execute(f"SELECT * FROM '{copied.source.path}'").fetchall()
    assert rows == [
        (2**62 + 1, 0.1, "a'b", True, date(2020, 2, 29), datetime(2020, 2, 29, 1, 2, 3, 4)),
        (-3, math.pi, "", False, date(1, 1, 1), datetime(2020, 2, 29, 1, 2, 3, 4)),
        (None, 1e-300, "Ça", True, date(9999, 12, 31), datetime(2020, 2, 29, 1, 2, 3, 4)),
    ]


def test_columns_with_equal_names_are_all_there(session: Session) -> None:
    release = session.query('SELECT SUM(plan) AS a, COUNT(*) AS a, MAX(plan) AS "A", SUM(plan) + 1 AS a_1 FROM plans')
    assert release.columns == ("a", "a_1", "A_2", "a_1_1")
    assert release.rows == [(6, 3, 3, 7)]
