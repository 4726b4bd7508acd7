"""Lists of VALUES are public tables with the rows that the query writes."""

from collections import Counter
from collections.abc import Callable, Mapping

import duckdb
import pytest

from hubbub.core.schema import Table
from hubbub.errors import QueryError
from hubbub.sql.bind import bind
from hubbub.sql.fanout import contribution
from hubbub.sql.query import Query

LISTS = (
    "SELECT v.label, COUNT(*) AS n FROM people JOIN (VALUES (1, 'one'), (2, 'two')) AS v(code, label) ON site = v.code "
    "GROUP BY 1",
    "SELECT v.label, SUM(w) AS n FROM people JOIN (VALUES (1, 'a', 1.5), (1, 'b', 2.5)) AS v(c, label, w) "
    "ON site = v.c GROUP BY 1",
    "WITH b(low, high, name) AS (VALUES (0, 17, 'c'), (18, 64, 'a')) SELECT name, COUNT(*) FROM people "
    "JOIN b ON age BETWEEN low AND high GROUP BY 1",
    "SELECT COUNT(*) FROM people WHERE site IN (SELECT c FROM (VALUES (1), (3)) AS t(c))",
    "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM (VALUES (1, 2), (2, 3)) AS t(a, b) "
    "WHERE a = year AND b = site)",
    "SELECT COUNT(*) FROM people JOIN (VALUES (DATE '2020-01-17'), (DATE '2020-02-17')) AS t(d) ON day >= d",
)
REFUSED = {
    "SELECT COUNT(*) FROM people JOIN (VALUES (1), (NULL)) AS t(c) ON site = c": "HB508",
    "SELECT COUNT(*) FROM people JOIN (VALUES (1), ('x')) AS t(c) ON site = c": "HB508",
    "SELECT COUNT(*) FROM people JOIN (VALUES (1), (2, 3)) AS t(c) ON site = c": "HB508",
    "SELECT COUNT(*) FROM people JOIN (VALUES (age)) AS t(c) ON site = c": "HB506",
    "SELECT COUNT(*) FROM people JOIN (VALUES (random())) AS t(c) ON site = c": "HB503",
}


@pytest.mark.parametrize("text", LISTS)
def test_a_list_joins_and_groups_as_in_duckdb(
    text: str,
    clinic: Mapping[str, Table],
    furnish: Callable[[duckdb.DuckDBPyConnection, int], None],
    without_noise: Callable[[Query], str],
) -> None:
    query = bind(text, tables=clinic)
    assert [table.name for table in query.tables] == ["people"]  # a list is no dataset
    with duckdb.connect(config={"threads": 1}) as connection:
        furnish(connection, 3)
        mine = Counter(connection.execute(without_noise(query)).fetchall())
        assert mine == Counter(connection.execute(text).fetchall())


@pytest.mark.parametrize("text", REFUSED)
def test_a_list_holds_constants_alone(text: str, clinic: Mapping[str, Table]) -> None:
    with pytest.raises(QueryError) as refused:
        bind(text, tables=clinic)
    assert refused.value.code == REFUSED[text]


def test_rows_that_match_several_times_are_counted_in_the_bounds(clinic: Mapping[str, Table]) -> None:
    """Two rows of the list have code 1: one row of a person becomes two."""
    several = "SELECT COUNT(*) FROM people JOIN (VALUES (1, 2), (1, 3), (2, 4)) AS t(a, b) ON site = a"
    once = "SELECT COUNT(*) FROM people JOIN (VALUES (1, 2), (3, 3), (2, 4)) AS t(a, b) ON site = a"
    assert contribution(bind(several, tables=clinic).relation).rows == 20
    assert contribution(bind(once, tables=clinic).relation).rows == 10


def test_lists_with_other_rows_are_other_queries(clinic: Mapping[str, Table]) -> None:
    """Also if every column has the same values."""
    text = "SELECT COUNT(*) FROM people JOIN (VALUES (1, 'a'), (2, 'b'), {}) AS t(a, b) ON site = a WHERE b = 'a'"
    (mine, other) = (bind(text.format(row), tables=clinic) for row in ("(1, 'b')", "(2, 'a')"))
    assert mine != other
