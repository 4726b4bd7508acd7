"""Calls and named windows that stand for others: the same bound query, or a refusal by name."""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES, bound

from hubbub.core.schema import Column, Kind, Table
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.relations import columns

EQUAL = {
    ("duckdb", "SELECT REGR_COUNT(age, income) FROM people"): (
        "SELECT COUNT(*) FILTER (WHERE NOT age IS NULL AND NOT income IS NULL) FROM people"
    ),
    ("duckdb", "SELECT REGR_AVGX(age, income) FROM people"): (
        "SELECT AVG(income) FILTER (WHERE NOT age IS NULL) FROM people"
    ),
    ("duckdb", "SELECT REGR_AVGY(age, income) FROM people"): (
        "SELECT AVG(age) FILTER (WHERE NOT income IS NULL) FROM people"
    ),
    ("bigquery", "SELECT APPROX_QUANTILES(age, 4)[OFFSET(1)] FROM people"): "SELECT QUANTILE(age, 0.25) FROM people",
    ("bigquery", "SELECT APPROX_QUANTILES(age, 100)[SAFE_OFFSET(90)] FROM people"): (
        "SELECT QUANTILE(age, 0.9) FROM people"
    ),
    ("postgres", "SELECT COUNT(*) FROM people WHERE site = ANY (ARRAY[1, 2])"): (
        "SELECT COUNT(*) FROM people WHERE site IN (1, 2)"
    ),
    ("duckdb", "SELECT COUNT(DISTINCT CASE WHEN age > 9 THEN person END) FROM people"): (
        "SELECT COUNT(DISTINCT person) FILTER (WHERE age > 9) FROM people"
    ),
    ("duckdb", "SELECT COUNT(DISTINCT IF(age > 9, person, NULL)) FROM people"): (
        "SELECT COUNT(DISTINCT person) FILTER (WHERE age > 9) FROM people"
    ),
    ("duckdb", "SELECT COUNT(CASE WHEN age > 9 THEN person END) FROM people"): (
        "SELECT COUNT(*) FILTER (WHERE age > 9) FROM people"
    ),
    (
        "duckdb",
        "SELECT COUNT(*) FROM (SELECT LAG(age) OVER w AS a FROM people "
        "WINDOW w AS (PARTITION BY person ORDER BY year)) WHERE a > 9",
    ): ("SELECT COUNT(*) FROM (SELECT LAG(age) OVER (PARTITION BY person ORDER BY year) AS a FROM people) WHERE a > 9"),
    ("duckdb", "SELECT COUNT(*) FROM people WHERE health SIMILAR TO '(a|b)[0-9]'"): (
        "SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(health, '^((a|b)[0-9])$')"
    ),
    ("duckdb", "SELECT COUNT(*) FROM people WHERE DATE_SUB('hour', DATE '2020-01-01', day) > 9"): (
        "SELECT COUNT(*) FROM people WHERE "
        "CAST(TRUNC(EXTRACT(EPOCH FROM day - DATE '2020-01-01') / 3600) AS BIGINT) > 9"
    ),
    ("tsql", "SELECT COUNT(*) FROM people WHERE day >= DATEADD(month, -6, '2020-07-01')"): (
        "SELECT COUNT(*) FROM people WHERE day >= DATE '2020-07-01' - INTERVAL 6 MONTH"
    ),
}
REFUSED = {
    "SELECT COUNT(*) FROM people WHERE health SIMILAR TO 'a%'": "HB747",
    "SELECT COUNT(*) FROM people WHERE health SIMILAR TO site": "HB508",
    "SELECT COUNT(*) FROM people WHERE health SIMILAR TO '(ab)+'": "HB508",
    "SELECT APPROX_QUANTILES(age, 4) FROM people": "HB504",
    "SELECT APPROX_QUANTILES(age, 0)[OFFSET(0)] FROM people": "HB504",
    "SELECT COUNT(*) FROM people WHERE site = ANY (SELECT site FROM sites)": "HB503",
    "SELECT COUNT(*) FROM people WHERE site > ANY (ARRAY[1])": "HB503",
    "SELECT COUNT(DISTINCT CASE WHEN age > 9 THEN person ELSE 0 END) FROM people": "HB516",
    "SELECT COUNT(DISTINCT CASE age WHEN 9 THEN person END) FROM people": "HB516",
    "SELECT SUM(CASE WHEN age > 9 THEN person END) FROM people": "HB516",
    "SELECT COUNT(*) FROM (SELECT LAG(age) OVER w AS a FROM people) WHERE a > 9": "HB503",
}


@pytest.mark.parametrize(("dialect", "text"), EQUAL)
def test_a_spelling_is_bound_as_what_it_stands_for(dialect: str, text: str, clinic: Mapping[str, Table]) -> None:
    mine, other = bind(text, tables=clinic, dialect=dialect), bind(EQUAL[dialect, text], tables=clinic)
    assert (mine.relation, mine.keys) == (other.relation, other.keys)
    assert [(a.function, a.arguments, a.where, a.level) for a in mine.aggregates] == [
        (a.function, a.arguments, a.where, a.level) for a in other.aggregates
    ]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_close_to_a_spelling_is_refused(text: str, clinic: Mapping[str, Table]) -> None:
    with pytest.raises(QueryError) as refused:
        bind(text, tables=clinic, dialect="bigquery" if "APPROX" in text else "postgres" if "ANY" in text else "duckdb")
    assert refused.value.code == REFUSED[text]


def months(last: date, first: date) -> float:
    """Count months as Spark and Snowflake document them."""
    ends = [each.day == monthrange(each.year, each.month)[1] for each in (last, first)]
    whole = 12 * (last.year - first.year) + last.month - first.month
    return whole if all(ends) else whole + (last.day - first.day) / 31


def test_months_between_dates_are_counted_from_end_to_end() -> None:
    days = [date(2023, 12, 25) + timedelta(n) for n in range(100)] + [date(9999, 12, 31), date(1, 1, 1)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE v (id BIGINT, code VARCHAR, day DATE, cost DOUBLE, n BIGINT, ok BOOLEAN)")
        connection.executemany("INSERT INTO v VALUES (1, 'A', ?, 0, 0, true)", [[day] for day in days])
        for first in (date(2024, 2, 29), date(2024, 1, 31), date(2023, 2, 27), date(9999, 12, 31)):
            rel = bound(f"SELECT COUNT(x) FROM (SELECT id, MONTHS_BETWEEN(day, DATE '{first}') AS x FROM v)")
            (shown,) = (column.name for column in columns(rel))
            found = connection.execute(f'SELECT "{shown}" FROM ({render.relation(rel)})').fetchall()
            assert sorted(x for (x,) in found) == pytest.approx(sorted(months(day, first) for day in days), abs=1e-9)


def test_months_between_timestamps_are_refused(clinic: Mapping[str, Table]) -> None:
    with pytest.raises(QueryError, match="CAST"):
        bind("SELECT COUNT(MONTHS_BETWEEN(TIMESTAMP '2020-01-01 00:00:00', day)) FROM people", tables=clinic)


@pytest.mark.parametrize("pattern", ["A%", "_", "%", "(A|B)", "A|B%C", "[AB]+", "A.", "a%", "", "A$", "x\\", "[%]"])
def test_similar_to_means_what_it_means_in_postgresql(pattern: str) -> None:
    """The oracle is the standard's reading of each sign, in Python's regular expressions."""
    texts = ["A", "B", "AB", "ABC", "A.", "A$", "a", "A\nB", "", "\n", "BAC"]
    text = f"SELECT COUNT(*) FROM v WHERE code SIMILAR TO '{pattern}'"
    if {*pattern} & {"\\"} or pattern == "[%]":
        with pytest.raises(QueryError):
            bind(text, tables=TABLES, dialect="postgres")
        return
    signs = {"%": "(?s:.*)", "_": "(?s:.)", ".": "\\.", "$": "\\$"}
    standard = re.compile("".join(signs.get(sign, sign) for sign in pattern))
    open_code = replace(
        TABLES["v"], columns=(*TABLES["v"].columns[:1], Column("code", Kind.TEXT), *TABLES["v"].columns[2:])
    )
    rel = bind(text, tables={"v": open_code}, dialect="postgres").relation
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE v (id BIGINT, code VARCHAR, day DATE, cost DOUBLE, n BIGINT, ok BOOLEAN)")
        connection.executemany("INSERT INTO v (id, code) VALUES (1, ?)", [[each] for each in texts])
        found = connection.execute(f"SELECT count(*) FROM ({render.relation(rel)})").fetchone()
    assert found == (sum(standard.fullmatch(each) is not None for each in texts),)
