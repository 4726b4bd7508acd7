"""Counts and sums of one unit's rows have the bounds that `rows_total` implies, and are clamped to them."""

from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES

from hubbub.core.schema import Bounds, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.expressions import Expr, FunctionCall, facts
from hubbub.sql.natural_bounds import clamps

COUNT = "(SELECT id, COUNT(*) AS k FROM v GROUP BY id) t"
BOUNDED = {
    f"SELECT AVG(k) FROM {COUNT}": (0, 4),
    f"SELECT SUM(2 * k - 1) FROM {COUNT}": (-1, 7),
    f"SELECT MEDIAN(k) FROM {COUNT}": (0, 4),
    "SELECT AVG(k) FROM (SELECT id, SUM(n) AS k FROM v GROUP BY id) t": (0, 12),
    "SELECT AVG(k) FROM (SELECT id, SUM(cost) AS k FROM v GROUP BY id) t": (-20, 20),
    "SELECT AVG(k) FROM (SELECT id, COUNT(DISTINCT code) AS k FROM v GROUP BY id) t": (0, 4),
    "SELECT AVG(j) FROM (SELECT id, k + 1 AS j FROM (SELECT id, COUNT(*) AS k FROM v GROUP BY id) s) t": (1, 5),
    "SELECT AVG(k) FROM (SELECT p.id, (SELECT COUNT(*) FROM v WHERE v.id = p.id) AS k FROM p) t": (0, 4),
    "SELECT AVG(k) FROM (SELECT p.id, COUNT(v.n) AS k FROM p LEFT JOIN v ON v.id = p.id GROUP BY p.id) t": (0, 4),
}


def tables(total: int | None) -> dict[str, Table]:
    unit = PrivacyUnit("id", groups=3, rows=9, entity="person", rows_total=total)
    people = replace(TABLES["p"], unique=("id",))  # one row for each person
    return {**TABLES, "p": people, "v": replace(TABLES["v"], unit=unit)}


def argument(text: str, total: int | None = 4) -> Expr:
    (aggregate,) = bind(text, tables=tables(total)).aggregates
    return aggregate.arguments[0]


@pytest.mark.parametrize("text", BOUNDED)
def test_bounds_follow_from_the_declared_number_of_rows(text: str) -> None:
    low, high = BOUNDED[text]
    assert facts(argument(text)).bounds == Bounds(Fraction(low), Fraction(high))
    assert list(clamps(argument(text)))


@pytest.mark.parametrize("text", BOUNDED)
def test_without_a_declared_number_of_rows_bounds_are_asked_for(text: str) -> None:
    with pytest.raises(QueryError, match="HB515"):
        argument(text, None)


def test_one_group_and_one_row_do_not_say_how_many_rows_there_are() -> None:
    """They are what a query uses, and 1 by default: a mean of counts clamped to 1 would be 1 for any data."""
    visits = replace(TABLES["v"], unit=PrivacyUnit("id", entity="person"))
    with pytest.raises(QueryError, match="HB515"):
        bind(f"SELECT AVG(k) FROM {COUNT}", tables={**TABLES, "v": visits})


def test_bounds_in_the_query_are_kept_as_they_are() -> None:
    expr = argument(f"SELECT AVG(GREATEST(0, LEAST(k, 2))) FROM {COUNT}")
    assert isinstance(expr, FunctionCall)
    assert expr.function == "greatest"
    assert not list(clamps(expr))


def test_more_rows_than_declared_are_clamped() -> None:
    """The sum of 7 rows of 3 is read as 12, that of one row of 2 as 2, and NULL as NULL."""
    expr = argument("SELECT AVG(k) FROM (SELECT p.id, (SELECT SUM(n) FROM v WHERE v.id = p.id) AS k FROM p) t")
    query = bind(
        "SELECT AVG(k) FROM (SELECT p.id, (SELECT SUM(n) FROM v WHERE v.id = p.id) AS k FROM p) t", tables=tables(4)
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE p (id BIGINT, sex VARCHAR, age BIGINT)")
        connection.execute("INSERT INTO p VALUES (1, 'f', 1), (2, 'm', 2), (3, 'm', 3)")
        connection.execute("CREATE TABLE v (id BIGINT, code VARCHAR, day DATE, cost DOUBLE, n BIGINT, ok BOOLEAN)")
        connection.execute("INSERT INTO v SELECT 1, 'A', NULL, 0, 3, TRUE FROM range(7)")
        connection.execute("INSERT INTO v VALUES (2, 'A', NULL, 0, 2, TRUE)")
        values = f"SELECT {render.expression(expr)} FROM ({render.relation(query.relation)}) ORDER BY 1 NULLS LAST"
        assert [row[0] for row in connection.execute(values).fetchall()] == [2, 12, None]
