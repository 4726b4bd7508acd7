"""Public tables beside private ones: lists of groups by outer joins, and grouped subqueries."""

from collections import Counter
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from tests.fixtures import postgres
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.finish import exact_results
from hubbub.sql.keys import domains_of
from hubbub.sql.plan import Plan, plan

F = Fraction
VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("region", Kind.TEXT, values=("North", "South", "Sea")),
        Column("age", Kind.INTEGER, Bounds(F(0), F(110))),
    ),
    PrivacyUnit("patient", groups=9, rows=9),
)
PUBLIC = [("North", "n1", 1), ("North", "n2", 2), ("South", "s1", 3), ("Moon", "m1", 4)]
PLACES = Table(
    "places",
    (
        Column("region", Kind.TEXT, values=("Moon", "North", "South")),
        Column("place", Kind.TEXT, values=("m1", "n1", "n2", "s1")),
        Column("beds", Kind.INTEGER, Bounds(F(1), F(4)), values=(1, 2, 3, 4)),
    ),
    None,
    unique=("place",),
    size=4,
    repeats={"region": 2, "place": 1, "beds": 1},
    rows=dict(zip(("region", "place", "beds"), zip(*PUBLIC, strict=True), strict=True)),
)
TABLES = {"visits": VISITS, "places": PLACES}
PRIVATE = [(1, "North", 10), (1, "South", 20), (2, "North", 30), (3, "Sea", 40), (3, None, 50), (4, "South", None)]


def world(rows: list[Any]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (patient INT, region TEXT, age INT)")
    connection.execute("CREATE TABLE places (region TEXT, place TEXT, beds INT)")
    insert_rows(connection, "visits", rows)
    insert_rows(connection, "places", PUBLIC)
    return connection


KEPT = [
    "SELECT p.region, COUNT(v.patient) FROM places p LEFT JOIN visits v ON v.region = p.region GROUP BY p.region",
    "SELECT region, COUNT(v.age) FROM places p LEFT JOIN visits v USING (region) GROUP BY region",
    "SELECT p.place, COUNT(v.age) FROM visits v RIGHT JOIN places p ON v.region = p.region AND v.age > 15 GROUP BY 1",
    "SELECT region, COUNT(v.patient) FROM places LEFT JOIN visits v USING (region) WHERE region <> 'North' GROUP BY 1",
    "SELECT p.region, COUNT(v.age) FROM places p LEFT JOIN visits v ON v.region = p.region AND v.age > 8 * p.beds"
    " GROUP BY p.region",
    "SELECT p.region, p.place, COUNT(v.age) FROM places p LEFT JOIN visits v ON v.region = p.region GROUP BY 1, 2",
    "SELECT p.region, COALESCE(SUM(v.age + p.beds), 0) FROM places p LEFT JOIN visits v USING (region) GROUP BY 1",
]


@pytest.mark.parametrize("sql", KEPT)
def test_an_outer_join_of_public_keys_is_what_sql_says(sql: str) -> None:
    planned = plan(
        bind(sql.replace("COALESCE(", "(").replace(", 0)", ")"), tables=TABLES), epsilon=F(1), delta=F(0), salt="s"
    )
    with world(PRIVATE) as connection:
        expected = {row[:-1]: row[-1] for row in connection.execute(sql).fetchall()}
        tables = {each.name: arrays(connection, each.sql) for each in planned.statements}
    counts = exact_results(planned, tables)[0][0]
    domains = domains_of(planned.query)
    keys = zip(*(domain.shown(planned.cells[0].codes(i)).tolist() for i, domain in enumerate(domains)), strict=True)
    assert dict(zip(keys, counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT p.region, COUNT(*) FROM places p LEFT JOIN visits v ON v.region = p.region GROUP BY p.region",
        "SELECT p.region, COUNT(p.beds) FROM places p LEFT JOIN visits v ON v.region = p.region GROUP BY p.region",
        "SELECT p.region, SUM(COALESCE(v.age, 9)) FROM places p LEFT JOIN visits v USING (region) GROUP BY 1",
        "SELECT v.region, COUNT(v.age) FROM places p LEFT JOIN visits v ON v.region = p.region GROUP BY v.region",
        "SELECT p.region, COUNT(v.age) FROM places p LEFT JOIN visits v ON v.region = p.region AND beds > 2 GROUP BY 1",
        "SELECT COUNT(x) FROM (SELECT v.age AS x FROM places p LEFT JOIN visits v USING (region)) AS t",
        "SELECT p.region, COUNT(v.age) FROM places p LEFT JOIN visits v USING (region) JOIN places q ON q.beds = p.beds"
        " GROUP BY p.region",
    ],
)
def test_unmatched_public_rows_are_never_counted(sql: str) -> None:
    with pytest.raises(QueryError, match="HB513"):
        bind(sql, tables=TABLES)


GROUPED = [
    "SELECT COUNT(*) FROM visits JOIN (SELECT region, MAX(beds) AS m FROM places GROUP BY region) g USING (region)"
    " WHERE g.m < 3",
    "SELECT COUNT(*) FROM visits JOIN (SELECT DISTINCT region FROM places) g USING (region)",
    "SELECT COUNT(*) FROM visits LEFT JOIN (SELECT region, COUNT(*) AS n, SUM(beds) AS s FROM places GROUP BY region"
    " HAVING COUNT(*) > 1) g USING (region)",
    "SELECT COUNT(*) FROM visits JOIN (SELECT beds, region FROM places GROUP BY beds, region) g USING (region)",
    "SELECT COUNT(*) FROM visits CROSS JOIN (SELECT MAX(beds) AS m, COUNT(*) AS n FROM places WHERE beds > 9) g",
    "SELECT COUNT(*) FROM visits CROSS JOIN (SELECT MAX(beds) AS m FROM places WHERE beds > 9) g WHERE g.m IS NULL",
    *(text for text in KEPT if "GROUP BY 1, 2" not in text),
]


@pytest.mark.parametrize("sql", GROUPED)
def test_a_unit_takes_only_its_own_rows_out_of_a_join_with_public_groups(sql: str) -> None:
    relation = render.relation(bind(sql.replace("COALESCE(", "(").replace(", 0)", ")"), tables=TABLES).relation)

    def rows(private: list[Any]) -> Counter[tuple[Any, ...]]:
        with world(private) as connection:
            return Counter(connection.execute(f'SELECT "$unit", * FROM ({relation})').fetchall())

    whole = rows(PRIVATE)
    assert whole
    for unit in {row[0] for row in PRIVATE}:
        without = rows([row for row in PRIVATE if row[0] != unit])
        assert without == Counter({row: count for row, count in whole.items() if row[0] != unit})


@pytest.mark.parametrize("sql", GROUPED[:6])
def test_grouped_public_subqueries_are_what_sql_says(sql: str) -> None:
    planned = plan(bind(sql, tables=TABLES), epsilon=F(1), delta=F(0), salt="s")
    with world(PRIVATE) as connection:
        tables = {each.name: arrays(connection, each.sql) for each in planned.statements}
        ((expected,),) = connection.execute(sql).fetchall()
    assert exact_results(planned, tables)[0][0].tolist() == [expected]


def test_postgres_gives_the_same_integers(postgres_server: Server) -> None:
    def planned(sql: str, **dialect: Any) -> Plan:
        text = sql.replace("COALESCE(", "(").replace(", 0)", ")")
        return plan(bind(text, tables=TABLES), epsilon=F(1), delta=F(0), salt="s", hashing="portable", **dialect)

    database = "public_keys"
    postgres_server.run(f"CREATE DATABASE {database}")
    with world(PRIVATE) as connection:
        postgres.copied(connection, TABLES, postgres_server, database)
        engine = postgres.engine(TABLES, postgres_server, database)
        try:
            for sql in dict.fromkeys([*KEPT, *GROUPED]):
                here, there = planned(sql), planned(sql, dialect=POSTGRES)
                mine = {each.name: arrays(connection, each.sql) for each in here.statements}
                theirs = {each.name: engine.run(each.sql).through(dict) for each in there.statements}
                pairs = zip(exact_results(here, mine)[0], exact_results(there, theirs)[0], strict=True)
                assert all(a.tolist() == b.tolist() for a, b in pairs), sql
        finally:
            engine.close()
