"""Groups without aggregates, GROUPING(), and the names that other systems give to aggregates."""

from collections.abc import Mapping
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.finish import finish
from hubbub.sql.plan import plan
from hubbub.sql.presentation import Answer
from hubbub.sql.query import Aggregate

TABLE = Table(
    "t",
    (
        Column("u", Kind.INTEGER),
        Column("w", Kind.TEXT),
        Column("k", Kind.TEXT, values=("a", "b")),
        Column("x", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9))),
    ),
    PrivacyUnit("u"),
)
TABLES: Mapping[str, Table] = {"t": TABLE}
#: 200 units in group `many`, one in group `rare`
ROWS = "SELECT n AS u, CASE WHEN n = 0 THEN 'rare' ELSE 'many' END AS w, 'a' AS k, n % 4 AS x FROM range(201) r(n)"


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"CREATE TABLE t AS {ROWS}")
    return connection


def ask(engine: duckdb.DuckDBPyConnection, text: str, *, delta: Fraction = Fraction(0)) -> Answer:
    planned = plan(bind(text, tables=TABLES), epsilon=Fraction(1000), delta=delta, salt="s")
    tables = {each.name: arrays(engine, each.sql) for each in planned.statements}
    return finish(planned, tables, system())


@pytest.mark.parametrize(
    "text", ["SELECT w FROM t GROUP BY w", "SELECT DISTINCT w FROM t", "SELECT w FROM t WHERE x < 4 GROUP BY ALL"]
)
def test_a_list_of_groups_shows_only_groups_of_enough_people(text: str, engine: duckdb.DuckDBPyConnection) -> None:
    """False alarms: the group of one person is shown with probability δ at most, which is 1e-30."""
    assert ask(engine, text, delta=Fraction(1, 10**30)).rows == [("many",)]


def test_a_list_of_groups_is_charged_for_its_selection_alone() -> None:
    alone = plan(
        bind("SELECT w FROM t GROUP BY w", tables=TABLES), epsilon=Fraction(1), delta=Fraction(1, 10**6), salt=""
    )
    assert len(alone.measures) == 1
    assert alone.threshold is not None
    assert alone.keys == 0


@pytest.mark.parametrize("text", ["SELECT k FROM t GROUP BY k", "SELECT DISTINCT k FROM t"])
def test_a_list_of_declared_groups_costs_nothing_because_it_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as refusal:
        bind(text, tables=TABLES)
    assert refusal.value.code == "HB510"


def test_grouping_tells_which_keys_a_row_lacks(engine: duckdb.DuckDBPyConnection) -> None:
    text = "SELECT GROUPING({0}) AS g, COUNT(*) AS n FROM t GROUP BY CUBE (k, x) ORDER BY g, n"
    for arguments in ("k", "x", "k, x", "x, k"):
        answer = ask(engine, text.format(arguments))
        exact = dict(engine.execute(f"SELECT GROUPING({arguments}), count(*) FROM t GROUP BY CUBE (k, x)").fetchall())
        assert set(np.unique(answer.values[0])) == set(exact)
    only = ask(engine, "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k) HAVING GROUPING(k) = 1")
    assert [row[0] for row in only.rows] == [None]


def test_grouping_takes_keys_alone() -> None:
    with pytest.raises(QueryError) as refusal:
        bind("SELECT GROUPING(x) FROM t GROUP BY k", tables=TABLES)
    assert refusal.value.code == "HB512"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("APPROX_COUNT_DISTINCT(x)", "COUNT(DISTINCT x)"),
        ("APPROX_COUNT_DISTINCT(u)", "COUNT(DISTINCT u)"),
        ("APPROX_QUANTILE(x, 0.3)", "quantile_cont(x, 0.3)"),
        ("APPROX_PERCENTILE(x, 0.3)", "quantile_cont(x, 0.3)"),
        ("MAX(DISTINCT x)", "MAX(x)"),
        ("MIN(DISTINCT x)", "MIN(x)"),
    ],
)
def test_names_of_other_systems_mean_the_same(text: str, same: str) -> None:
    def bound(aggregate: str) -> list[Aggregate]:
        return list(bind(f"SELECT {aggregate} AS a FROM t", tables=TABLES).aggregates)

    assert bound(text) == bound(same)


@pytest.mark.parametrize("text", ["ANY_VALUE(x)", "MEDIAN(DISTINCT x)", "SUM(DISTINCT x, k)"])
def test_what_cannot_be_answered_over_distinct_values_is_refused_by_name(text: str) -> None:
    with pytest.raises(QueryError) as refusal:
        bind(f"SELECT {text} FROM t", tables=TABLES)
    assert refusal.value.code == "HB512"
