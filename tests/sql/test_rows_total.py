"""A bound on the rows of a unit in all groups together: stated, enforced on every engine, and never exceeded."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import pytest
from tests.fixtures import postgres
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.audit.sensitivity import check_sensitivity
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.engines.postgres.connection import PostgresEngine
from hubbub.sql.bind import bind
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.expressions import Col
from hubbub.sql.measures import BoundedSum, Measure, RowCount, Term, UnitContribution, UnitCount, sensitivity
from hubbub.sql.plan import Plan, plan

TABLE = Table(
    "t",
    (
        Column("u", Kind.TEXT),
        Column("k", Kind.TEXT, values=("a", "b", "c", "d")),
        Column("x", Kind.REAL, bounds=Bounds(Fraction(-5), Fraction(20))),
        Column("w", Kind.TEXT),
    ),
    PrivacyUnit("u", groups=3, rows=3, rows_total=4),
)
QUERIES = (
    "SELECT k, COUNT(*) FROM t GROUP BY k",
    "SELECT k, COUNT(x), SUM(x), AVG(x) FROM t WHERE x < 15 GROUP BY k",
    "SELECT k, COUNT(DISTINCT x) FROM t GROUP BY k",
    "SELECT k, MEDIAN(x) FROM t GROUP BY k",
    "SELECT k, COUNT(*) FROM t GROUP BY ROLLUP (k)",
    "SELECT k, COUNT(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) GROUP BY k",
    "SELECT a.k, COUNT(*) FROM t AS a JOIN t AS b ON a.u = b.u GROUP BY a.k",
    "SELECT w, COUNT(*) FROM t GROUP BY w",
)


def planned(sql: str, table: Table = TABLE, **options: Any) -> Plan:
    given: dict[str, Any] = {"delta": Fraction(1, 10**6), "salt": "s", "hashing": "portable"} | options
    return plan(bind(sql, tables={"t": table}), epsilon=Fraction(1), **given)


def total(low: int, high: int) -> BoundedSum:
    x = Col("x", Kind.REAL)
    term = Term(x, Bounds(Fraction(low), Fraction(high)), Fraction(0))
    return BoundedSum((term,), (x,), None, Fraction(0), Fraction(1), low, high)


def vectors(measure: Measure, reach: UnitContribution) -> set[tuple[int, ...]]:
    """Every vector that one unit can add: so many rows in each cell, each at an end or not counted."""
    most = reach.total or reach.touched * reach.rows
    added = set()
    for rows in product(range(reach.rows + 1), repeat=reach.cells):
        if sum(rows) > most or sum(map(bool, rows)) > reach.touched:
            continue
        counted = [min(n, 1) if isinstance(measure, UnitCount) else n for n in rows]
        ends = [{sum(row) for row in product((0, measure.low, measure.high), repeat=n)} for n in counted]
        added |= set(product(*ends))
    return added


@pytest.mark.parametrize("measure", [RowCount(), UnitCount(), total(0, 3), total(-2, 3), total(-3, -1)])
@pytest.mark.parametrize(
    "reach", [UnitContribution(3, 3, 2, 3), UnitContribution(3, 3, 2, 5), UnitContribution(4, 3, 2, 4)]
)
def test_brute_force_over_neighbors_stays_within_the_stated_sensitivity(
    measure: Measure, reach: UnitContribution
) -> None:
    added = vectors(measure, reach)
    alone = sensitivity(measure, (reach,), Relation.ADD_REMOVE)
    assert alone.l1 == max(sum(map(abs, move)) for move in added)
    assert alone.l2_squared == max(sum(x * x for x in move) for move in added)
    other = sensitivity(measure, (reach,), Relation.REPLACE)
    moves = {tuple(x - y for x, y in zip(a, b, strict=True)) for a in added for b in added}
    assert other.l1 >= max(sum(map(abs, move)) for move in moves)
    assert other.l2_squared >= max(sum(x * x for x in move) for move in moves)
    loose = sensitivity(measure, (replace(reach, total=None),), Relation.REPLACE)
    assert (other.l1, other.l2_squared) <= (loose.l1, loose.l2_squared)


def test_counts_by_group_get_less_noise() -> None:
    """Five groups with five rows each move by 25; five rows in all by 5, and by 25 instead of 125 in squared L2."""
    wide = replace(TABLE, unit=PrivacyUnit("u", 5, 5))
    sql = "SELECT k, COUNT(*) FROM t GROUP BY k"
    before = planned(sql, wide, delta=Fraction(0)).measures[0].sensitivity
    unit = PrivacyUnit("u", 5, 5, rows_total=5)
    made = planned(sql, replace(TABLE, unit=unit), delta=Fraction(0))
    assert (before.l1, before.l2_squared) == (20, 100)
    assert (made.measures[0].sensitivity.l1, made.measures[0].sensitivity.l2_squared) == (5, 25)
    assert any("5 rows in all of them together" in line for line in made.derivation)
    assert made.limits is not None
    assert made.limits.to_json() == {"groups": 5, "rows": 5, "total": 5}


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(*) FROM t", "SELECT AVG(x) FROM t", "SELECT k, COUNT(DISTINCT u) FROM t GROUP BY k"]
)
def test_a_total_that_has_no_effect_is_left_out(sql: str) -> None:
    """One group is bounded by its rows, and a unit counts once in a group, with however many rows."""
    made = planned(sql)
    assert made.limits is not None
    assert made.limits.total is None
    assert made.statements == planned(sql, replace(TABLE, unit=PrivacyUnit("u", 3, 3))).statements


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    """Units with far more rows than they may contribute, of which some are alike."""
    rng = random.Random(7)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE every (u VARCHAR, k VARCHAR, x DOUBLE, w VARCHAR)")
        rows = [
            (
                rng.choice("pqrs"),
                rng.choice("abcdz"),
                rng.choice((None, -0.0, 0.5, rng.uniform(-9, 30))),
                rng.choice("vw"),
            )
            for _ in range(120)
        ]
        insert_rows(connection, "every", rows)
        connection.execute("CREATE VIEW t AS SELECT * FROM every")
        yield connection


Results = Callable[[Plan], Mapping[str, Any]]


def exceeded(made: Plan, results: Results, show: Callable[[str], None], relation: Relation) -> list[str]:
    """Take out, or exchange for a row of another's, every unit in turn; list what moves further than stated."""
    show("SELECT * FROM every")
    before, problems = results(made), []
    for unit in "pqrs":
        gone = f"SELECT * FROM every WHERE u <> '{unit}'"
        other = f"UNION ALL SELECT '{unit}', k, x, w FROM every WHERE u = '{'p' if unit != 'p' else 'q'}'"
        show(gone if relation is Relation.ADD_REMOVE else f"{gone} {other}")
        problems += check_sensitivity(made, before, results(made))
    show("SELECT * FROM every")
    return problems


def on_duckdb(connection: duckdb.DuckDBPyConnection) -> tuple[Results, Callable[[str], None]]:
    def show(text: str) -> None:
        connection.execute(f"CREATE OR REPLACE VIEW t AS {text}")

    return lambda made: {each.name: arrays(connection, each.sql) for each in made.statements}, show


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("sql", QUERIES)
def test_no_unit_moves_more_than_stated_on_duckdb(
    local: duckdb.DuckDBPyConnection, sql: str, relation: Relation
) -> None:
    table = replace(TABLE, relation=relation)
    assert exceeded(planned(sql, table), *on_duckdb(local), relation) == []


@pytest.mark.parametrize("sql", [QUERIES[0], QUERIES[1], QUERIES[3]])
def test_a_total_that_is_not_enforced_is_caught(
    local: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """The planted error: the noise is for the total, and the SQL bounds groups and rows alone."""
    monkeypatch.setattr("hubbub.sql.plan.Truncate", lambda rel, *_: rel)
    made = planned(sql)
    assert "cut_rows" not in made.statements[0].sql
    assert exceeded(made, *on_duckdb(local), Relation.ADD_REMOVE)


@pytest.mark.postgres
def test_postgres_keeps_the_same_rows_within_the_total(
    local: duckdb.DuckDBPyConnection, postgres_server: Server
) -> None:
    """The integers before noise equal DuckDB's, so every bound that holds there holds here."""
    postgres_server.run("CREATE DATABASE totals")
    postgres.copied(local, ["t"], postgres_server, "totals")
    engine: PostgresEngine = postgres.engine({"t": TABLE}, postgres_server, "totals")
    try:
        for sql in QUERIES[:6]:
            here, there = planned(sql), planned(sql, dialect=POSTGRES)
            for mine, theirs in zip(here.statements, there.statements, strict=True):
                assert _rows(arrays(local, mine.sql)) == engine.run(theirs.sql).through(_rows), sql
    finally:
        engine.close()
        postgres_server.run("DROP DATABASE totals WITH (FORCE)")


def _rows(table: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    columns = [column.tolist() for _, column in sorted(table.items())]
    return sorted(zip(*columns, strict=True), key=repr)
