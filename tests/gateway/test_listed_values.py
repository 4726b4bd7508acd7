"""Lists of declared values: the plain ones are free, and nothing else is taken for one."""

import psycopg
import pytest
from tests.gateway.conftest import Port

from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.gateway.listed_values import listed_values

VISITS = Table(
    "visits",
    (
        Column("region", Kind.TEXT, values=("North", "South", "East")),
        Column("site", Kind.INTEGER, values=(3, 1, 2)),
        Column("ward", Kind.TEXT, values=("b", "a"), other="z", nullable=True),
        Column("age", Kind.INTEGER),
        Column("notes", Kind.TEXT, values=("a",), hidden=True),
    ),
    PrivacyUnit(None, 1, 1),
)
KINDS = Table("kinds", (Column("word", Kind.TEXT, values=("x", "y")),), None)


@pytest.mark.parametrize(
    ("sql", "name", "values"),
    [
        ("SELECT DISTINCT region FROM visits", "region", ("North", "South", "East")),
        ("SELECT DISTINCT region AS column_values FROM public.visits LIMIT 2", "column_values", ("North", "South")),
        ('SELECT "visits"."region" FROM "visits" GROUP BY "visits"."region" LIMIT 1', "region", ("North",)),
        ("SELECT DISTINCT ward FROM visits", "ward", ("b", "a", "z", None)),
        ("SELECT ward FROM visits GROUP BY 1 ORDER BY 1 DESC", "ward", (None, "z", "b", "a")),
        ("SELECT site FROM visits v GROUP BY site ORDER BY site DESC", "site", (3, 2, 1)),
        ("select distinct v.site as s from visits v order by s", "s", (1, 2, 3)),
    ],
)
def test_a_list_of_declared_values_is_answered(sql: str, name: str, values: tuple[object, ...]) -> None:
    found = listed_values(sql, (VISITS, KINDS))
    assert found is not None
    assert (found.name, found.values) == (name, values)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region FROM visits",
        "SELECT DISTINCT age FROM visits",
        "SELECT DISTINCT notes FROM visits",
        "SELECT DISTINCT word FROM kinds",
        "SELECT DISTINCT region FROM nothing",
        "SELECT DISTINCT region, site FROM visits",
        "SELECT DISTINCT region FROM visits WHERE age > 3",
        "SELECT DISTINCT region FROM visits, kinds",
        "SELECT DISTINCT region FROM visits JOIN kinds ON region = word",
        "SELECT DISTINCT ON (region) region FROM visits",
        "SELECT DISTINCT UPPER(region) FROM visits",
        "SELECT DISTINCT region || 'x' FROM visits",
        "SELECT DISTINCT region FROM visits ORDER BY age",
        "SELECT DISTINCT region FROM visits LIMIT $1",
        "SELECT DISTINCT region FROM visits OFFSET 1",
        "SELECT region FROM visits GROUP BY site",
        "SELECT region FROM visits GROUP BY region, site",
        "SELECT region FROM visits GROUP BY region HAVING region > 'A'",
        "SELECT DISTINCT region FROM visits UNION SELECT word FROM kinds",
        "SELECT DISTINCT region FROM visits TABLESAMPLE BERNOULLI (3)",
        "WITH visits AS (SELECT 1 AS region) SELECT DISTINCT region FROM visits",
        "SELECT DISTINCT region FROM visits FOR UPDATE",
        "DISTINCT",
    ],
)
def test_only_the_plain_list_is_answered(sql: str) -> None:
    assert listed_values(sql, (VISITS, KINDS)) is None


def test_a_dashboard_gets_the_values_of_its_filter_for_free(shared_port: Port) -> None:
    connection, before = shared_port.connect(), shared_port.spent()
    heard: list[str] = []
    connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    connection.execute("SET hubbub.epsilon = 0.1")
    cursor = connection.execute("SELECT DISTINCT coinsurance AS v FROM public.health ORDER BY 1")
    assert cursor.description is not None
    assert [column.name for column in cursor.description] == ["v"]
    assert cursor.fetchall() == [(0,), (25,), (50,), (95,), (100,)]
    assert heard == ["Free: these are the declared values of coinsurance, whether or not rows have them."]
    prepared = connection.execute("SELECT DISTINCT coinsurance FROM health", prepare=True).fetchall()
    assert sorted(prepared) == [(0,), (25,), (50,), (95,), (100,)]
    assert connection.execute("EXPLAIN SELECT DISTINCT coinsurance FROM health").fetchall()[0][1].startswith("free")
    assert shared_port.spent() == before
    with pytest.raises(psycopg.Error, match="HB"):
        connection.execute("SELECT DISTINCT age FROM health")
