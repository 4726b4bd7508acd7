"""Padded, repeated and formatted text means what DuckDB says, and how long it gets is fixed by the query."""

from collections import Counter
from collections.abc import Callable, Mapping

import duckdb
import pytest

from hubbub.core.schema import Table
from hubbub.errors import QueryError
from hubbub.sql.bind import bind
from hubbub.sql.query import Query

TEXTS = """
LPAD(health, 6, '.')
LPAD(health, 3, 'x')
LPAD(site::VARCHAR, 3, '0')
RPAD(health, 7, 'ab')
RPAD(health, 2, 'ab')
REPEAT(health, 3)
CONCAT(health, '-', site)
CONCAT(site, '/', year)
CONCAT_WS('/', health, site)
health || site
site || '-' || health
STRFTIME(day, '%Y-%m')
STRFTIME(day, '%Y%m%d %j')
STRFTIME(seen, '%H:%M:%S')
STRFTIME(day, '%b %B %a %A')
DAYNAME(day)
MONTHNAME(day)
""".strip().splitlines()
DIALECTS = {
    ("snowflake", "TO_CHAR(day, 'YYYY-MM')"): "STRFTIME(day, '%Y-%m')",
    ("snowflake", "TO_VARCHAR(seen, 'YYYY-MM-DD HH24:MI:SS')"): "STRFTIME(seen, '%Y-%m-%d %H:%M:%S')",
    ("snowflake", "MONTHNAME(day)"): "STRFTIME(day, '%b')",
    ("snowflake", "LPAD(health, 6)"): "LPAD(health, 6, ' ')",
    ("postgres", "TO_CHAR(day, 'YYYY-MM-DD')"): "STRFTIME(day, '%Y-%m-%d')",
    ("bigquery", "FORMAT_DATE('%Y', day)"): "STRFTIME(day, '%Y')",
    ("spark", "DATE_FORMAT(day, 'yyyy-MM')"): "STRFTIME(day, '%Y-%m')",
    ("tsql", "FORMAT(day, 'yyyy-MM')"): "STRFTIME(day, '%Y-%m')",
}
REFUSED = {
    ("duckdb", "LPAD(health, site, '0')"): "HB508",
    ("duckdb", "LPAD(health, 101, '0')"): "HB508",
    ("duckdb", "LPAD(health, 9, 'ab')"): "HB508",
    ("duckdb", "RPAD(health, 9, health)"): "HB508",
    ("duckdb", "REPEAT(health, 17)"): "HB508",
    ("duckdb", "REPEAT('*', site)"): "HB508",
    ("duckdb", "STRFTIME(day, '%x')"): "HB508",
    ("duckdb", "STRFTIME(day, health)"): "HB508",
    ("duckdb", "STRFTIME(health, '%Y')"): "HB508",
    ("postgres", "TO_CHAR(day, 'Month')"): "HB508",
    ("duckdb", "health || income"): "HB508",
}


def counted(connection: duckdb.DuckDBPyConnection, text: str) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, connection.execute(text).fetchall()))


@pytest.mark.parametrize(("dialect", "text"), [*(("duckdb", text) for text in TEXTS), *DIALECTS])
def test_texts_are_those_of_the_engine(
    dialect: str,
    text: str,
    clinic: Mapping[str, Table],
    furnish: Callable[[duckdb.DuckDBPyConnection, int], None],
    without_noise: Callable[[Query], str],
) -> None:
    """The oracle is DuckDB on the text itself, or on its equal there."""
    query = "SELECT {} AS x, COUNT(*) AS n FROM people WHERE health IS NOT NULL GROUP BY 1"
    exact = query.format(DIALECTS.get((dialect, text), text))
    with duckdb.connect(config={"threads": 1}) as connection:
        furnish(connection, 5)
        mine = counted(connection, without_noise(bind(query.format(text), tables=clinic, dialect=dialect)))
        assert mine == counted(connection, exact)
        assert len(mine) > 1


@pytest.mark.parametrize(("dialect", "text"), REFUSED)
def test_a_text_of_unknown_length_or_form_is_refused(dialect: str, text: str, clinic: Mapping[str, Table]) -> None:
    with pytest.raises(QueryError) as refused:
        bind(f"SELECT COUNT(*) FROM people WHERE {text} = 'x'", tables=clinic, dialect=dialect)
    assert refused.value.code == REFUSED[dialect, text]
