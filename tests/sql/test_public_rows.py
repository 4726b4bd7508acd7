"""The number of rows is public where neighbors have equally many, and nowhere else."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.visits_table import arrays, bounds

from hubbub.audit.sensitivity import excess
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import allocation, public_rows
from hubbub.sql.bind import bind
from hubbub.sql.finish import exact_results
from hubbub.sql.measures import RowCount
from hubbub.sql.noise import NoNoise
from hubbub.sql.plan import Plan, plan

TABLE = Table(
    "t",
    (
        Column("x", Kind.INTEGER, bounds=bounds(0, 10), required=True),
        Column("y", Kind.REAL, bounds=bounds(-4, 4)),
        Column("k", Kind.TEXT, values=("a", "b")),
    ),
    PrivacyUnit(None),
    Relation.REPLACE,
)
PUBLIC = Table("names", (Column("k", Kind.TEXT), Column("label", Kind.TEXT)), None, unique=("k",), size=2)

#: Rows that a table may hold, whatever its declarations say: NULL in a required column, values out of bounds and lists.
ROWS = [(3, 1.5, "a"), (None, None, None), (99, float("nan"), "z"), (0, -4.0, "b")]
QUERIES = [
    "SELECT COUNT(*) FROM t",
    "SELECT AVG(x) FROM t",
    "SELECT AVG(x), COUNT(x), COUNT(*), VAR_POP(x) FROM t",
    "SELECT AVG(COALESCE(y, 1)), SUM(x), COUNT(*) FROM t",
    "SELECT AVG(y), COUNT(*) FROM t",
    "SELECT CORR(x, COALESCE(y, 0)) FROM (SELECT x, y FROM t)",
]


def planned(sql: str, table: Table = TABLE) -> Plan:
    made = bind(sql, tables={"t": table, "names": PUBLIC})
    return plan(made, epsilon=Fraction(1), delta=Fraction(0), salt="s")


def is_public(made: Plan) -> bool:
    return any(isinstance(each.mechanism, NoNoise) for each in made.measures)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x BIGINT, y DOUBLE, k VARCHAR)")
        yield connection


def problems(engine: duckdb.DuckDBPyConnection, made: Plan) -> list[str]:
    """Compare all pairs of tables of three rows that differ in one row."""
    exact = {}
    for rows in itertools.product(ROWS, repeat=3):
        engine.execute("DELETE FROM t")
        insert_rows(engine, "t", rows)
        exact[rows] = exact_results(made, {each.name: arrays(engine, each.sql) for each in made.statements})
    pairs = [(one, (*one[:place], row, *one[place + 1 :])) for one in exact for place in range(3) for row in ROWS]
    return [problem for one, two in pairs for problem in excess(made, exact[one], exact[two])]


@pytest.mark.row(95)
@pytest.mark.parametrize("sql", QUERIES)
def test_no_neighbor_has_another_number_of_rows(engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Exact enumeration: the public count never moves, and no sum moves further than stated."""
    made = planned(sql)
    assert is_public(made)
    assert problems(engine, made) == []


def test_a_count_of_a_required_column_taken_from_the_data_is_caught(
    engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted error: if the declaration is wrong, the exact count of values would tell one row's NULL."""
    count = RowCount((bind("SELECT AVG(x) FROM t", tables={"t": TABLE}).aggregates[0].arguments[0],))
    monkeypatch.setattr(allocation, "ALL_ROWS", count)
    monkeypatch.setattr(allocation, "with_public_count", lambda formula: formula)
    made = planned("SELECT AVG(x) FROM t")
    assert is_public(made)
    assert any("stated sensitivity Sensitivity(l1=0" in each for each in problems(engine, made))


@pytest.mark.row(35)
def test_an_average_with_public_n_spends_all_on_its_sum() -> None:
    """The sum about the middle moves by the width of the bounds, 10, when a row is replaced; the count by nothing."""
    (noisy,) = [each for each in planned("SELECT AVG(x) FROM t").measures if each.event is not None]
    assert noisy.mechanism == Laplace(sensitivity=10, scale=Fraction(10))
    split = planned("SELECT AVG(y) FROM t").measures
    assert sum(each.portion for each in split) <= 1
    assert len(split) == 2
    assert all(each.portion < 1 for each in split)


@pytest.mark.row(28)
@pytest.mark.parametrize(("relation", "l1"), [(Relation.ADD_REMOVE, 1), (Relation.REPLACE, 2)])
def test_a_plan_states_the_sensitivity_of_a_histogram(relation: Relation, l1: int) -> None:
    made = planned("SELECT k, COUNT(*) FROM t GROUP BY k", replace(TABLE, relation=relation))
    assert any(f"L1 sensitivity {l1}," in line for line in made.derivation)
    total = planned("SELECT SUM(x) FROM t WHERE x > 1", replace(TABLE, relation=relation))
    assert any("L1 sensitivity 10," in line for line in total.derivation)


@pytest.mark.row(95)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t WHERE x >= 0",
        "SELECT COUNT(*) FILTER (WHERE x > 1) FROM t",
        "SELECT COUNT(y) FROM t",
        "SELECT AVG(y) FROM t",
        "SELECT COUNT(x + 1) FROM t",
        "SELECT k, COUNT(*) FROM t GROUP BY k",
        "SELECT k, COUNT(*) FROM t GROUP BY GROUPING SETS ((k), ())",
        "SELECT COUNT(*) FROM t JOIN names USING (k)",
        "SELECT COUNT(*) FROM (SELECT x FROM t WHERE x > 2)",
        "SELECT COUNT(DISTINCT x) FROM t",
        "SELECT SUM(x) FROM t",
        "SELECT MEDIAN(x) FROM t",
    ],
)
def test_conditions_keys_joins_and_nulls_make_a_count_private(sql: str) -> None:
    assert not is_public(planned(sql))


@pytest.mark.row(95)
def test_only_rows_under_replace_are_public() -> None:
    assert not is_public(planned("SELECT COUNT(*) FROM t", replace(TABLE, relation=Relation.ADD_REMOVE)))
    owned = replace(TABLE, columns=(*TABLE.columns, Column("u", Kind.INTEGER)), unit=PrivacyUnit("u", 2, 2))
    for sql in ("SELECT COUNT(*) FROM t", "SELECT COUNT(DISTINCT u) FROM t", "SELECT AVG(x) FROM t"):
        assert not is_public(planned(sql, owned)), "a unit may be replaced by one without rows"


def test_free_queries_are_those_for_the_number_of_rows_alone() -> None:
    free = [
        sql
        for sql in (*QUERIES, "SELECT COUNT(*) * 2 AS n, COUNT(x) FROM t", "SELECT COUNT(*), MEDIAN(x) FROM t")
        if public_rows.exact_and_free(bind(sql, tables={"t": TABLE}))
    ]
    assert free == ["SELECT COUNT(*) FROM t", "SELECT COUNT(*) * 2 AS n, COUNT(x) FROM t"]
