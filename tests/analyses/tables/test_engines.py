"""The same exact counts on another engine, from the text that the engine's own words make."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server

from hubbub.analyses.base import Arrays, Setting
from hubbub.analyses.tables.axes import axes
from hubbub.analyses.tables.marginals import counts, marginal
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.engines.base import Engine
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES

TABLE = Table(
    "visits",
    (
        Column("who", Kind.INTEGER),
        Column("region", Kind.TEXT, values=("North", "it's", "South")),
        Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(99))),
        Column("pay", Kind.REAL, Bounds(Fraction(0), Fraction(10))),
    ),
    PrivacyUnit("who", groups=2, rows=3),
)
ROWS = (
    "CREATE TABLE visits AS SELECT CAST(i * i % 37 AS BIGINT) AS who,"
    " ['North', 'it''s', 'East', NULL][1 + i % 4] AS region,"
    " CASE WHEN i % 9 > 0 THEN CAST(i % 120 AS INTEGER) END AS age, CASE WHEN i % 7 > 0 THEN i % 23 / 2.0 END AS pay"
    " FROM range(400) AS t(i)"
)
WANTED: list[list[object]] = [
    ["region"],
    [{"column": "region", "missing": True}, {"column": "age", "bins": 5}],
    [{"column": "pay", "edges": [0, Fraction(5, 2), 10], "missing": True}],
    ["age"],
    [],
]


class Ran:
    """Runs texts on an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ask(self, sql: str) -> Secret[Arrays]:
        return self._engine.run(sql)


def exact(run: Any, dialect: Dialect, table: Table = TABLE) -> list[list[int]]:
    at = Setting({"visits": table}, Fraction(1), Fraction(0), RenderOptions("salt", "portable", dialect))
    planned = [marginal(at, "visits", axes(table, each) if each else ()) for each in WANTED]
    planned += [marginal(at, "visits", axes(table, ["region"]), count="units", where="age < 50")]
    found: list[list[int]] = counts(run, planned).through(lambda vectors: [vector.tolist() for vector in vectors])
    return found


@pytest.fixture
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        yield connection


def here(local: duckdb.DuckDBPyConnection, bench: Any) -> list[list[int]]:
    run = bench({})
    run.connection = local
    found = exact(run, DUCKDB)
    assert sum(found[0]) > 40  # bounded by unit, and not empty
    return found


def test_postgres_counts_what_duckdb_counts(
    local: duckdb.DuckDBPyConnection, bench: Any, postgres_server: Server
) -> None:
    postgres_server.run("CREATE DATABASE releases")
    postgres.copied(local, ["visits"], postgres_server, "releases")
    engine = postgres.engine({"visits": TABLE}, postgres_server, "releases")
    try:
        assert exact(Ran(engine), POSTGRES) == here(local, bench)
    finally:
        engine.close()
        postgres_server.run("DROP DATABASE releases WITH (FORCE)")
