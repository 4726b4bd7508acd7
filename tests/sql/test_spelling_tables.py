"""PIVOT, UNPIVOT, constant lists and series: the same tree as what they stand for, or a refusal by name."""

import pytest

from hubbub.errors import QueryError
from hubbub.sql.parse import parse

EQUAL = {
    ("duckdb", "SELECT * FROM (SELECT site, year, x FROM v) PIVOT (SUM(x) FOR year IN (1, 2))"): (
        'SELECT * FROM (SELECT site, SUM(x) FILTER (WHERE year = 1) AS "1", SUM(x) FILTER (WHERE year = 2) AS "2" '
        "FROM (SELECT site, year, x FROM v) GROUP BY site)"
    ),
    (
        "bigquery",
        "SELECT * FROM (SELECT site, year, x FROM v) PIVOT (SUM(x) AS c, COUNT(*) AS n FOR year IN (1))",
    ): (
        'SELECT * FROM (SELECT site, SUM(x) FILTER (WHERE year = 1) AS "c__1", COUNT(*) FILTER (WHERE year = 1) AS '
        '"n__1" FROM (SELECT site, year, x FROM v) GROUP BY site)'
    ),
    ("snowflake", "SELECT * FROM (SELECT site, kind FROM v) PIVOT (COUNT(site) FOR kind IN ('a', 'b')) AS p (x, y)"): (
        "SELECT * FROM (SELECT COUNT(site) FILTER (WHERE kind = 'a') AS x, COUNT(site) FILTER (WHERE kind = 'b') AS y "
        "FROM (SELECT site, kind FROM v)) AS p"
    ),
    ("tsql", "SELECT * FROM (SELECT site, year, x FROM v) AS s PIVOT (SUM(x) FOR year IN ([1])) AS p"): (
        "SELECT * FROM (SELECT site, SUM(x) FILTER (WHERE year = '1') AS \"1\" FROM (SELECT site, year, x FROM v) "
        "AS s GROUP BY site) AS p"
    ),
    ("spark", "SELECT * FROM (SELECT site, year, x FROM v) PIVOT (SUM(x) FOR year IN (1 AS first))"): (
        'SELECT * FROM (SELECT site, SUM(x) FILTER (WHERE year = 1) AS "first" FROM (SELECT site, year, x FROM v) '
        "GROUP BY site)"
    ),
    ("duckdb", "PIVOT v ON year IN (1, 2) USING SUM(x) GROUP BY site"): (
        'SELECT * FROM (SELECT site, SUM(x) FILTER (WHERE year = 1) AS "1", SUM(x) FILTER (WHERE year = 2) AS "2" '
        "FROM v GROUP BY site)"
    ),
    ("duckdb", "SELECT SUM(x) FROM (SELECT id, a, b FROM v) UNPIVOT (x FOR what IN (a, b))"): (
        "SELECT SUM(x) FROM (SELECT id, 'a' AS what, a AS x FROM (SELECT id, a, b FROM v) WHERE NOT a IS NULL UNION "
        "ALL SELECT id, 'b' AS what, b AS x FROM (SELECT id, a, b FROM v) WHERE NOT b IS NULL)"
    ),
    ("snowflake", "SELECT SUM(x) FROM (SELECT id, a FROM v) UNPIVOT (x FOR what IN (a))"): (
        "SELECT SUM(x) FROM (SELECT id, 'A' AS what, a AS x FROM (SELECT id, a FROM v) WHERE NOT a IS NULL)"
    ),
    ("duckdb", "SELECT h FROM v, UNNEST([6, 12]) AS t(h)"): "SELECT h FROM v, (VALUES (6), (12)) AS t(h)",
    ("bigquery", "SELECT h FROM v, UNNEST(['a', 'b']) AS h"): (
        "SELECT h FROM v CROSS JOIN (VALUES ('a'), ('b')) AS h_list(h)"
    ),
    ("duckdb", "SELECT h FROM generate_series(-1, 3, 2) AS t(h)"): "SELECT h FROM (VALUES (-1), (1), (3)) AS t(h)",
    ("duckdb", "SELECT h FROM range(3) AS t(h)"): "SELECT h FROM (VALUES (0), (1), (2)) AS t(h)",
    ("duckdb", "SELECT h FROM range(4, 1, -1) AS t(h)"): "SELECT h FROM (VALUES (4), (3), (2)) AS t(h)",
    ("postgres", "SELECT h FROM generate_series(1, 2) AS h"): "SELECT h FROM (VALUES (1), (2)) AS h(h)",
    ("bigquery", "SELECT d FROM UNNEST(GENERATE_DATE_ARRAY('2024-11-05', '2025-01-04', INTERVAL 1 MONTH)) AS d"): (
        "SELECT d FROM (VALUES (CAST('2024-11-05' AS DATE)), (CAST('2024-12-05' AS DATE))) AS d_list(d)"
    ),
    ("duckdb", "SELECT d FROM range(DATE '2024-02-28', DATE '2024-03-01', INTERVAL 1 DAY) AS t(d)"): (
        "SELECT d FROM (VALUES (CAST('2024-02-28' AS DATE)), (CAST('2024-02-29' AS DATE))) AS t(d)"
    ),
}
REFUSED = {
    "SELECT * FROM v PIVOT (SUM(x) FOR year IN (1, 2))": ("HB503", "subquery"),
    "SELECT * FROM (SELECT * FROM v) PIVOT (SUM(x) FOR year IN (1, 2))": ("HB503", "subquery"),
    "SELECT * FROM (SELECT a, b FROM v) PIVOT (SUM(a) FOR b IN (SELECT c FROM w))": ("HB50", ""),
    "PIVOT v ON year USING SUM(x)": ("HB503", "PIVOT t ON year IN"),
    "SELECT h FROM UNNEST(v.tags) AS t(h)": ("HB503", "elements: 8"),
    "SELECT UNNEST([1, 2]) AS h FROM v": ("HB503", "elements: 8"),
    "SELECT h FROM generate_series(0, 5000) AS t(h)": ("HB508", "generate_series"),
    "SELECT h FROM generate_series(0, n) AS t(h)": ("HB508", "generate_series"),
    "SELECT h FROM generate_series(3, 0) AS t(h)": ("HB508", "generate_series"),
    "SELECT d FROM generate_series(DATE '2024-01-31', DATE '2024-12-31', INTERVAL 1 MONTH) AS t(d)": ("HB508", ""),
    "SELECT generate_series(0, 3) AS h FROM v": ("HB50", ""),
    "SELECT SUM(x) FROM (SELECT id, a FROM v) UNPIVOT INCLUDE NULLS (x FOR what IN (a))": ("HB503", ""),
}


def tree(text: str, dialect: str = "duckdb") -> str:
    return parse(text, dialect=dialect, released=True)[0].sql(dialect="duckdb")


@pytest.mark.parametrize(("dialect", "text"), EQUAL)
def test_a_table_is_read_as_what_it_stands_for(dialect: str, text: str) -> None:
    assert tree(text, dialect) == tree(EQUAL[dialect, text])


@pytest.mark.parametrize("text", REFUSED)
def test_what_reads_its_columns_from_the_data_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse(text)
    code, says = REFUSED[text]
    assert refused.value.code.startswith(code), str(refused.value)
    assert says in refused.value.remedy
