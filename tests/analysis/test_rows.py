"""Rows in the curator's memory: the same on every engine, in one order, with one form of nothing."""

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.accounting.postgres_server import Server
from tests.campaigns.rig import postgres

from hubbub.analysis import rows as reading
from hubbub.analysis.base import Arrays, Setting
from hubbub.analysis.rows import Rows, Taken, first_of_each, mixed
from hubbub.core.schema import Bounds, Column, Kind, Table, Unit
from hubbub.errors import RunError
from hubbub.graphs.edges import EdgeTable, edge_table
from hubbub.sql.bounding import Words
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
    Unit("who", groups=1, rows=2),
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
    return Rows(TABLE, COLUMNS, Words("salt", "portable", dialect))


def links(dialect: Dialect) -> EdgeTable:
    setting = Setting({"visits": TABLE}, Fraction(1), Fraction(0), Words("salt", "portable", dialect))
    return edge_table(setting, table="visits", ends=["a", "b"])


def fetched(local: duckdb.DuckDBPyConnection, sql: str) -> Arrays:
    found: Arrays = local.execute(sql).fetchnumpy()  # type: ignore[assignment]
    return found


def plain(taken: Taken) -> dict[str, list[str]]:
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
    turned = Taken({name: values[::-1] for name, values in taken.columns.items()}, None)
    assert plain(taken.ordered()) == plain(turned.ordered())
    assert plain(taken) != plain(turned)


def test_nothing_has_one_form(local: duckdb.DuckDBPyConnection) -> None:
    taken = read(DUCKDB).take(fetched(local, read(DUCKDB).sql))
    assert {values.dtype.kind for values in taken.columns.values()} == {"f", "O", "M"}
    assert int(np.isnan(taken.columns["pay"]).sum()) == 29
    assert int(np.isnan(taken.columns["good"]).sum()) == 50
    assert int(np.isnat(taken.columns["day"]).sum()) == 34
    assert sum(word is None for word in taken.columns["word"]) == 40
    zeros = Rows(TABLE, COLUMNS[:1], Words("s")).take({"v0": np.array([-0.0, 0.0])})
    assert not np.signbit(zeros.columns["a"]).any()


def test_more_rows_than_fit_are_a_failure(monkeypatch: pytest.MonkeyPatch, local: duckdb.DuckDBPyConnection) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 199)
    assert read(DUCKDB).sql.endswith("LIMIT 200")
    with pytest.raises(RunError):
        read(DUCKDB).take(fetched(local, read(DUCKDB).sql))


def test_an_order_depends_on_the_salt_and_on_no_other_row() -> None:
    codes = np.arange(1000)
    order = mixed(codes, "salt")
    assert (mixed(codes[::-1], "salt")[::-1] == order).all()
    assert (mixed(codes, "pepper") != order).any()
    groups = codes % 7
    kept = first_of_each(groups, order, 3)
    assert np.bincount(groups[kept]).tolist() == [3] * 7
    for group in range(7):
        assert order[kept & (groups == group)].max() < order[~kept & (groups == group)].min()
    assert first_of_each(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64), 3).tolist() == []
