"""COUNT(DISTINCT a, b), and extremes and quantiles of dates: what they are made of."""

from collections.abc import Mapping
from itertools import product

import duckdb
import pytest
from tests.fixtures.insert_rows import insert_rows

from hubbub.core.schema import Kind, Table
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.expressions import Col, FunctionCall, facts

#: Texts that would run together if they were only joined.
_TEXTS = ("", "a", "aa", "1:a", "1", ":", None)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    """Every pair of texts, several times."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a VARCHAR, b VARCHAR)")
    insert_rows(connection, "t", [*product(_TEXTS, _TEXTS)] * 2)
    return connection


@pytest.mark.parametrize("counted", ["a, b", "(a, b)", "(b, a)", "(a, a)", "b, a"])
def test_combinations_are_counted_as_the_engine_counts_rows(
    counted: str, rows: duckdb.DuckDBPyConnection, clinic: Mapping[str, Table]
) -> None:
    names = {"a": "health", "b": "city"}
    text = "".join(names.get(sign, sign) for sign in counted)
    (aggregate,) = bind(
        f"SELECT COUNT(DISTINCT {text}) FROM people p JOIN sites s USING (site)", tables=clinic
    ).aggregates
    assert aggregate.function == "count_distinct"
    written = render.expression(aggregate.arguments[0])
    for column in _columns(aggregate.arguments[0]):
        written = written.replace(f'"{column}"', "a" if column.startswith("health") else "b")
    whole = counted if counted.startswith("(") else f"({counted})"
    where = "" if counted.startswith("(") else "WHERE a IS NOT NULL AND b IS NOT NULL"
    exact = rows.execute(f"SELECT COUNT(DISTINCT {whole}) FROM t {where}").fetchone()
    assert rows.execute(f"SELECT COUNT(DISTINCT {written}) FROM t").fetchone() == exact


def test_texts_without_their_lengths_run_together(rows: duckdb.DuckDBPyConnection) -> None:
    """Planted: joined without lengths, 'a' and 'aa' are 'aa' and 'a'."""
    exact = rows.execute("SELECT COUNT(DISTINCT (a, b)) FROM t WHERE a IS NOT NULL AND b IS NOT NULL").fetchone()
    assert rows.execute("SELECT COUNT(DISTINCT a || b) FROM t").fetchone() != exact


def _columns(expr: object) -> set[str]:
    if isinstance(expr, Col):
        return {expr.name}
    return set().union(*map(_columns, expr.args)) if isinstance(expr, FunctionCall) else set()


@pytest.mark.parametrize("function", ["MIN", "MAX", "MEDIAN"])
def test_an_extreme_of_dates_is_a_date_of_a_number_with_their_bounds(
    function: str, clinic: Mapping[str, Table]
) -> None:
    query = bind(f"SELECT {function}(day) AS d FROM people", tables=clinic)
    ((_, shown),) = query.select
    assert shown.kind is Kind.DATE
    (day,) = (column for column in clinic["people"].columns if column.name == "day")
    assert facts(query.aggregates[0].arguments[0]).bounds == day.bounds
