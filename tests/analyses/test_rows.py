"""Rows in the curator's memory: the same on every engine, in one order, with one form of nothing."""

import math
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.analyses import rows as reading
from hubbub.analyses.base import Arrays, Setting
from hubbub.analyses.graphs.edges import EdgeTable, edge_table
from hubbub.analyses.rows import RowData, Rows, first_of_each, salted_order
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import RunError
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES

TABLE = Table(
    "visits",
    (
        Column("who", Kind.INTEGER),
        Column("a", Kind.INTEGER, Bounds(Fraction(0), Fraction(30))),
        Column("b", Kind.INTEGER, Bounds(Fraction(0), Fraction(30))),
        Column("pay", Kind.REAL, Bounds(Fraction(0), Fraction(10))),
        Column("word", Kind.TEXT),
        Column("day", Kind.DATE),
        Column("good", Kind.BOOLEAN),
    ),
    PrivacyUnit("who", groups=1, rows=2),
)
MADE = (
    "CREATE TABLE visits AS SELECT CAST(i * i % 37 AS BIGINT) AS who, CAST(i % 31 AS BIGINT) AS a,"
    " CAST(i * 7 % 40 AS BIGINT) AS b, CASE WHEN i % 7 > 0 THEN i % 23 / 2.0 END AS pay,"
    " CASE WHEN i % 5 > 0 THEN 'w' || (i % 11) END AS word,"
    " CASE WHEN i % 6 > 0 THEN DATE '2020-01-01' + CAST(i AS INT) END AS day,"
    " CASE WHEN i % 4 > 0 THEN i % 3 = 0 END AS good FROM range(200) AS t(i)"
)
COLUMNS = tuple(each for each in TABLE.columns if each.name != "who")


@pytest.fixture
def local() -> Any:
    with duckdb.connect() as connection:
        connection.execute(MADE)
        yield connection


def read(dialect: Dialect) -> Rows:
    return Rows(TABLE, COLUMNS, RenderOptions("salt", "portable", dialect))


def links(dialect: Dialect) -> EdgeTable:
    setting = Setting({"visits": TABLE}, Fraction(1), Fraction(0), RenderOptions("salt", "portable", dialect))
    return edge_table(setting, table="visits", ends=["a", "b"])


def fetched(local: duckdb.DuckDBPyConnection, sql: str) -> Arrays:
    found: Arrays = local.execute(sql).fetchnumpy()  # type: ignore[assignment]
    return found


def plain(taken: RowData) -> dict[str, list[str]]:
    return {name: [str(value) for value in values.tolist()] for name, values in taken.columns.items()}


def test_rows_are_the_same_on_postgres(local: duckdb.DuckDBPyConnection, postgres_server: Server) -> None:
    postgres_server.run("CREATE DATABASE rows")
    postgres.copied(local, ["visits"], postgres_server, "rows")
    engine = postgres.engine({"visits": TABLE}, postgres_server, "rows")
    try:
        there = engine.run(read(POSTGRES).sql).through(lambda found: read(POSTGRES).take(found))
        asked = links(POSTGRES)
        edges = engine.run(asked.read.sql).through(lambda found: asked.graph(found).codes.tolist())
    finally:
        engine.close()
        postgres_server.run("DROP DATABASE rows WITH (FORCE)")
    here = read(DUCKDB).take(fetched(local, read(DUCKDB).sql))
    assert there.size == here.size == 200
    assert plain(there.ordered()) == plain(here.ordered())
    assert there.owners is not None
    assert here.owners is not None
    assert np.bincount(there.owners).tolist() == np.bincount(here.owners).tolist()
    mine = links(DUCKDB)
    assert mine.graph(fetched(local, mine.read.sql)).codes.tolist() == edges
    assert 20 < len(edges) <= 2 * 37


def test_rows_come_in_the_order_of_their_values_whatever_the_engine_does(local: duckdb.DuckDBPyConnection) -> None:
    taken = read(DUCKDB).take(fetched(local, read(DUCKDB).sql))
    turned = RowData({name: values[::-1] for name, values in taken.columns.items()}, None)
    assert plain(taken.ordered()) == plain(turned.ordered())
    assert plain(taken) != plain(turned)


def test_nothing_has_one_form(local: duckdb.DuckDBPyConnection) -> None:
    taken = read(DUCKDB).take(fetched(local, read(DUCKDB).sql))
    assert {values.dtype.kind for values in taken.columns.values()} == {"f", "O", "M"}
    assert int(np.isnan(taken.columns["pay"]).sum()) == 29
    assert int(np.isnan(taken.columns["good"]).sum()) == 50
    assert int(np.isnat(taken.columns["day"]).sum()) == 34
    assert sum(word is None for word in taken.columns["word"]) == 40
    zeros = Rows(TABLE, COLUMNS[:1], RenderOptions("s")).take({"v0": np.array([-0.0, 0.0])})
    assert not np.signbit(zeros.columns["a"]).any()


def test_more_rows_than_fit_are_a_failure(monkeypatch: pytest.MonkeyPatch, local: duckdb.DuckDBPyConnection) -> None:
    monkeypatch.setattr(reading, "MAX_ROWS", 199)
    assert read(DUCKDB).sql.endswith("LIMIT 200")
    with pytest.raises(RunError):
        read(DUCKDB).take(fetched(local, read(DUCKDB).sql))


def test_an_order_depends_on_the_salt_and_on_no_other_row() -> None:
    codes = np.arange(1000)
    order = salted_order(codes, "salt")
    assert (salted_order(codes[::-1], "salt")[::-1] == order).all()
    assert (salted_order(codes, "pepper") != order).any()
    groups = codes % 7
    kept = first_of_each(groups, order, 3)
    assert np.bincount(groups[kept]).tolist() == [3] * 7
    for group in range(7):
        assert order[kept & (groups == group)].max() < order[~kept & (groups == group)].min()
    assert first_of_each(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64), 3).tolist() == []


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Give one database for all examples: opening one takes longer than the example."""
    return duckdb.connect()


OWNERS = {
    Kind.REAL: ("DOUBLE", st.floats(width=64) | st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, 0.1])),
    Kind.INTEGER: ("BIGINT", st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    Kind.TEXT: ("VARCHAR", st.text(st.sampled_from("aA\0 e\u0301\u00e9"), max_size=3)),
    Kind.BOOLEAN: ("BOOLEAN", st.booleans()),
    Kind.DATE: ("DATE", st.dates()),
    Kind.TIMESTAMP: ("TIMESTAMP", st.datetimes()),
}


@pytest.mark.parametrize("kind", OWNERS)
@given(data=st.data())
def test_owners_are_numbered_as_sql_tells_them_apart(kind: Kind, data: st.DataObject) -> None:
    """A unit that is bounded as one in SQL is one in every analysis, and two units are two."""
    type_, values = OWNERS[kind]
    who = data.draw(st.lists(values, min_size=1, max_size=8))
    table = Table("t", (Column("who", kind), Column("i", Kind.INTEGER)), PrivacyUnit("who"))
    rows = Rows(table, table.columns[1:], RenderOptions("salt"))
    with _database().cursor() as local:
        local.execute(f"CREATE OR REPLACE TABLE t (who {type_}, i BIGINT)")
        places = ", ".join(["(?, ?)"] * len(who))
        local.execute(f"INSERT INTO t VALUES {places}", [cell for i, each in enumerate(who) for cell in (each, i)])
        taken = rows.take(arrays(local, rows.sql))
        same = local.execute("SELECT a.i, b.i FROM t AS a JOIN t AS b ON a.who = b.who").fetchall()
    number = dict(zip(taken.columns["i"].astype(int).tolist(), np.asarray(taken.owners).tolist(), strict=True))
    found = {(i, j) for i in number for j in number if number[i] == number[j]}
    assert found == set(same)


def test_the_zeros_of_an_owner_are_one_on_postgres(postgres_server: Server) -> None:
    table = Table("t", (Column("who", Kind.REAL), Column("i", Kind.INTEGER)), PrivacyUnit("who"))
    with postgres_server.database() as dsn, duckdb.connect() as local:
        local.execute("CREATE TABLE t AS SELECT * FROM (VALUES (-0e0, 1), (0e0, 2), ('nan', 3), (1.5, 4)) AS v(who, i)")
        name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
        postgres.copied(local, {"t": table}, postgres_server, name)
        engine = postgres.engine({"t": table}, postgres_server, name)
        rows = Rows(table, table.columns[1:], RenderOptions("salt", "engine", POSTGRES))
        try:
            owners = engine.run(rows.sql).through(lambda found: np.asarray(rows.take(found).owners))
        finally:
            engine.close()
    assert len(set(owners.tolist())) == 3
