"""NULL as a group: GROUP BY gives it a group of its own where a key can be NULL, on every engine."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays
from tests.sql.corpus.queries import quiet

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.finish import declared_keys, exact_results, finish
from hubbub.sql.keys import Cells, Domain
from hubbub.sql.measures import UnitContribution, sensitivity
from hubbub.sql.plan import Plan, plan

Run = Callable[[str], dict[str, Any]]

TABLE = Table(
    "t",
    (
        Column("u", Kind.INTEGER),
        Column("k", Kind.TEXT, values=("a", "b", "c"), nullable=True),
        Column("strict", Kind.TEXT, values=("a", "b", "c")),
        Column("n", Kind.INTEGER, Bounds(Fraction(0), Fraction(299)), nullable=True),
        Column("word", Kind.TEXT),
        Column("p", Kind.INTEGER, Bounds(Fraction(0), Fraction(5))),
        Column("big", Kind.INTEGER),
        Column("score", Kind.REAL),
        Column("day", Kind.DATE),
        Column("moment", Kind.TIMESTAMP),
        Column("flag", Kind.BOOLEAN, nullable=True),
    ),
    PrivacyUnit("u", groups=400, rows=400),
)
ROWED = replace(TABLE, name="rowed", unit=PrivacyUnit(None))
PUBLIC = Table("p", (Column("id", Kind.INTEGER), Column("city", Kind.TEXT, values=("X", "Y"))), None, unique=("id",))
TABLES = {each.name: each for each in (TABLE, ROWED, PUBLIC)}

#: Queries with their number of groups; DuckDB is asked the same.
QUERIES = {
    "SELECT k, count(*) FROM t GROUP BY k": 4,
    "SELECT k, count(*) FROM rowed GROUP BY k": 4,
    "SELECT k, n, count(*) FROM rowed GROUP BY k, n": 4 * 301,
    "SELECT n, count(k) FROM t GROUP BY n": 301,
    "SELECT k, strict, sum(n) FROM t WHERE strict IS NOT NULL GROUP BY k, strict": 12,
    "SELECT k, count(*) FROM t WHERE k IS NOT NULL GROUP BY k": 3,
    "SELECT k, count(*) FROM t WHERE k IS NULL GROUP BY k": 1,
    "SELECT k, count(*) FROM rowed WHERE k IS NULL GROUP BY k": 1,
    "SELECT k, count(*) FROM t WHERE k = 'a' OR k IS NULL GROUP BY k": 2,
    "SELECT k, count(*) FROM t WHERE k <> 'a' GROUP BY k": 2,
    "SELECT strict, count(*) FROM t WHERE strict IN ('a', 'b') OR strict IS NULL GROUP BY strict": 3,
    "SELECT word, count(*) FROM t WHERE word = 'v' OR word IS NULL GROUP BY word": 2,
    "SELECT city, count(*) FROM t LEFT JOIN p ON t.p = p.id GROUP BY city": 3,
    "SELECT city, count(*) FROM t JOIN p ON t.p = p.id GROUP BY city": 2,
    "SELECT city, count(*) FROM t LEFT JOIN p ON t.p = p.id WHERE city <> 'X' GROUP BY city": 1,
    "SELECT CASE WHEN n < 2 THEN 'few' WHEN n < 4 THEN 'some' END AS k1, count(*) FROM t GROUP BY k1": 3,
    "SELECT CASE WHEN p < 2 THEN 'few' WHEN p >= 2 THEN 'some' END AS k1, count(*) FROM t GROUP BY k1": 2,
    "SELECT nullif(p, 3) AS k1, count(*) FROM t GROUP BY k1": 6,
    "SELECT coalesce(k, 'none') AS k1, count(*) FROM t GROUP BY k1": 4,
    "SELECT k IS NULL AS k1, count(*) FROM t GROUP BY k1": 2,
    "SELECT n % p AS k1, count(*) FROM t WHERE n < 3 GROUP BY k1": 4,
    "SELECT k1, count(*) FROM (SELECT u, k AS k1 FROM t WHERE k = 'a' UNION ALL SELECT u, k FROM t) GROUP BY k1": 4,
    "SELECT k1, count(*) FROM (SELECT u, max(k) AS k1 FROM t GROUP BY u) GROUP BY k1": 4,
    "SELECT k1, count(*) FROM (SELECT u, max(p) FILTER (WHERE strict = 'b') AS k1 FROM t GROUP BY u) GROUP BY k1": 7,
    "SELECT k1, count(*) FROM (SELECT u, max(p) AS k1 FROM t GROUP BY u) GROUP BY k1": 6,
}


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "SET error_on_division_by_zero = false;"
            "CREATE TABLE t AS SELECT i % 7 AS u, ['a', 'b', NULL, 'c', NULL][1 + i % 5] AS k,"
            " ['a', NULL, 'c'][1 + i % 3] AS strict, CASE WHEN i % 4 > 0 THEN i % 6 END AS n,"
            " ['v', 'w', NULL][1 + i % 3] AS word, i % 6 AS p,"
            " [0, NULL, 5][1 + i % 3] AS big, [0.0::DOUBLE, NULL, 0.5, -0.0::DOUBLE][1 + i % 4] AS score,"
            " [DATE '1970-01-01', NULL][1 + i % 2] AS day,"
            " [TIMESTAMP '1970-01-01', NULL, TIMESTAMP '2020-01-01 10:00:00'][1 + i % 3] AS moment,"
            " [TRUE, NULL, FALSE][1 + i % 3] AS flag FROM range(60) AS r(i);"
            "CREATE TABLE rowed AS SELECT * FROM t; ALTER TABLE rowed ALTER u TYPE BIGINT;"
            "CREATE TABLE p AS SELECT i AS id, ['X', 'Y'][1 + i % 2] AS city FROM range(4) AS r(i)"
        )
        yield connection


@pytest.fixture(scope="module", params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)])
def engine(
    request: pytest.FixtureRequest, local: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Dialect, Run]]:
    if request.param == "duckdb":
        yield DUCKDB, lambda sql: arrays(local, sql)
    elif request.param == "postgres":
        server: Server = request.getfixturevalue("postgres_server")
        server.run("CREATE DATABASE nulls")
        postgres.copied(local, list(TABLES), server, "nulls")
        opened = postgres.engine(TABLES, server, "nulls")
        yield POSTGRES, lambda sql: opened.run(sql).through(dict)
        opened.close()
        server.run("DROP DATABASE nulls WITH (FORCE)")
    else:
        address: str = request.getfixturevalue("spark_address")
        started = spark.engine(TABLES, spark.copied(local, list(TABLES), tmp_path_factory.mktemp("nulls")), address)
        yield SPARK, lambda sql: started.run(sql).through(dict)
        started.close()


def planned(text: str, tables: dict[str, Table] = TABLES, **options: Any) -> Plan:
    query = bind(text, tables=tables)
    return plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s", hashing="portable", **options)


@pytest.mark.parametrize("text", QUERIES)
def test_null_is_a_group_as_in_sql(local: duckdb.DuckDBPyConnection, engine: tuple[Dialect, Run], text: str) -> None:
    """The exact counts of all groups are those of DuckDB, with a group for NULL where the key can be NULL."""
    dialect, run = engine
    made = planned(text, dialect=dialect)
    assert made.size == QUERIES[text]
    measures, _ = exact_results(made, {each.name: run(each.sql) for each in made.statements})
    keys = declared_keys(made).shown
    ours = {tuple(row[:-1]): int(row[-1]) for row in zip(*keys.values(), measures[0], strict=True)}
    theirs = {tuple(row[:-1]): int(row[-1] or 0) for row in local.execute(text).fetchall()}
    assert {key: n for key, n in ours.items() if n} == {key: n for key, n in theirs.items() if n}


def test_null_moves_with_the_other_groups() -> None:
    """Under replace two units may differ in NULL and in another group: the cells count NULL."""
    made = planned("SELECT k, count(*) FROM rowed GROUP BY k", {"rowed": replace(ROWED, relation=Relation.REPLACE)})
    assert made.measures[0].sensitivity == sensitivity(
        made.measures[0].measure, (UnitContribution(4, 1, 1),), Relation.REPLACE
    )


def test_unlisted_values_are_in_the_group_of_null(local: duckdb.DuckDBPyConnection) -> None:
    """An unlisted value of a nullable column is read as NULL, whether or not the column is used elsewhere."""
    narrow = replace(TABLE, columns=tuple(replace(c, values=("a", "b")) if c.name == "k" else c for c in TABLE.columns))
    ((expected,),) = local.execute("SELECT count(*) FROM t WHERE k IS NULL OR k = 'c'").fetchall()
    for where in ("", " WHERE k IS NULL OR k <> 'z'"):
        made = planned(f"SELECT k, count(*) FROM t{where} GROUP BY k", {"t": narrow})
        measures, _ = exact_results(made, {each.name: arrays(local, each.sql) for each in made.statements})
        assert measures[0].tolist()[-1] == expected


def test_a_planted_join_that_loses_null_is_seen(
    local: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT n, count(k) FROM t GROUP BY n"
    monkeypatch.setattr(Domain, "_or_null", lambda _, __, index: index)
    made = planned(text)
    table = arrays(local, made.statements[0].sql)
    assert len(table["cell"]) < len(local.execute(text).fetchall()) or None in table["cell"].tolist()


def test_a_column_that_is_not_nullable_has_no_group_for_null() -> None:
    made = planned("SELECT strict, count(*) FROM t GROUP BY strict")
    (cells,) = made.groups
    assert isinstance(cells, Cells)
    assert cells.size == 3


def test_an_unlisted_text_has_no_keys_by_being_null_or_not() -> None:
    with pytest.raises(QueryError, match="HB551"):
        planned("SELECT word, count(*) FROM t WHERE word IS NOT NULL GROUP BY word")


#: Queries whose keys nobody declared; every group has at least two units.
SELECTED = [
    "SELECT word, count(*) FROM t GROUP BY word",
    "SELECT word, k, count(*) FROM t GROUP BY word, k",
    "SELECT big, count(*) FROM t GROUP BY big",
    "SELECT score, word, count(*) FROM t GROUP BY score, word",
    "SELECT day, count(*) FROM t GROUP BY day",
    "SELECT moment, flag, count(*) FROM t GROUP BY moment, flag",
    "SELECT word, count(*) FROM rowed GROUP BY word",
    "SELECT word, median(p), count(*) FROM t GROUP BY word",
    "SELECT word, count(*) FROM t WHERE word IS NOT NULL GROUP BY word",
]


@pytest.mark.parametrize("text", SELECTED)
def test_null_is_a_group_among_selected_ones(
    local: duckdb.DuckDBPyConnection, engine: tuple[Dialect, Run], text: str
) -> None:
    """Without noise, the groups and their counts are those of DuckDB, and NULL is the last of them."""
    dialect, run = engine
    query = bind(text, tables=TABLES)
    made = quiet(
        plan(query, epsilon=Fraction(10**6), delta=Fraction(1, 10**6), salt="s", hashing="portable", dialect=dialect)
    )
    rows = finish(made, {each.name: run(each.sql) for each in made.statements}, system()).rows
    theirs = local.execute(text).fetchall()
    if "median" in text:
        rows, theirs = ([(row[0], row[-1]) for row in each] for each in (rows, theirs))
    assert sorted(map(plain, rows), key=repr) == sorted(map(plain, theirs), key=repr)
    assert len(theirs) < 3 or rows[-1][0] is None


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give the keys and the count, dates as dates."""
    keys = [each.date() if isinstance(each, datetime) and not each.hour else each for each in row[:-1]]
    return (*keys, row[-1])


@pytest.mark.parametrize("text", [text for text in QUERIES if " rowed" not in text and "FROM (" not in text])
def test_neighbors_move_by_no_more_than_stated(local: duckdb.DuckDBPyConnection, text: str) -> None:
    """Without each unit in turn, with bounds that cut: all cells, with that of NULL, move within the sensitivity."""
    made = planned(text, {**TABLES, "t": replace(TABLE, unit=PrivacyUnit("u", groups=2, rows=1))})
    whole, _ = exact_results(made, {each.name: arrays(local, each.sql) for each in made.statements})
    moved = []
    for unit in range(7):
        local.execute(f"BEGIN; DELETE FROM t WHERE u = {unit}")
        rest, _ = exact_results(made, {each.name: arrays(local, each.sql) for each in made.statements})
        local.execute("ROLLBACK")
        moved.append([int(abs(a - b).sum()) for a, b in zip(whole, rest, strict=True)])
    for place, noised in enumerate(made.measures):
        assert 0 < max(each[place] for each in moved) <= noised.sensitivity.l1
