"""What is computed within a unit is the same on DuckDB, PostgreSQL and Spark."""

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.postgres_server import Server
from tests.fixtures.unit_tables import TABLES, bound, filled
from tests.sql import test_arg_extremes, test_outer_joins, test_unit_sets, test_windows
from tests.sql.test_subqueries import TEXTS
from tests.sql.test_windows import asked

from hubbub.core.schema import Kind
from hubbub.engines.base import Engine
from hubbub.sql import render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.relations import Rel, columns

_SELECTS = (*test_windows.SELECTS, *test_unit_sets.SELECTS, *test_arg_extremes.SELECTS[::3], *test_outer_joins.SELECTS)
_EVERY_TEXT = (*TEXTS, *map(asked, _SELECTS))
#: Spark takes half a second for each.
_ON_SPARK = _EVERY_TEXT if os.environ.get("HUBBUB_CAMPAIGN") == "full" else _EVERY_TEXT[5::16]
NAMES = ("p", "v", "w")


def statement(relations: list[Rel], dialect: Dialect) -> str:
    """Write the rows of several relations as one statement: the relation, the unit, a value, and how often."""
    parts = []
    for place, rel in enumerate(relations):
        shown = [
            column.name
            for column in columns(rel)
            if column.name.startswith(("x_", "u_")) and column.kind is not Kind.DATE
        ]
        value = dialect.identifier(shown[0]) if shown else dialect.number(0)
        unit = dialect.as_double(dialect.identifier("$unit"))
        parts.append(
            f"SELECT {dialect.number(place)} AS q, {unit} AS u, {dialect.as_double(value)} AS x, "
            f"{dialect.as_double('count(*)')} AS n FROM ({render.relation(rel, dialect)}) AS s GROUP BY 2, 3"
        )
    return " UNION ALL ".join(parts)


def counted(rows: list[tuple[Any, ...]]) -> Counter[tuple[float | None, ...]]:
    return Counter(tuple(None if v is None or v != v else round(float(v), 9) + 0.0 for v in row) for row in rows)


def world() -> duckdb.DuckDBPyConnection:
    return filled(random.Random(11), units=6, visits=40)


def compare(relations: list[Rel], connection: duckdb.DuckDBPyConnection, engine: Engine, dialect: Dialect) -> None:
    for start in range(0, len(relations), 20):
        batch = relations[start : start + 20]
        mine = counted(connection.execute(statement(batch, DUCKDB)).fetchall())
        theirs = engine.run(statement(batch, dialect)).through(
            lambda arrays: counted(list(zip(*(column.tolist() for column in arrays.values()), strict=True)))
        )
        assert mine == theirs


def test_postgres_computes_the_same(postgres_server: Server) -> None:
    connection = world()
    postgres_server.run("CREATE DATABASE units")
    postgres.copied(connection, NAMES, postgres_server, "units")
    engine = postgres.engine({name: TABLES[name] for name in NAMES}, postgres_server, "units")
    try:
        compare([bound(text) for text in _EVERY_TEXT], connection, engine, POSTGRES)
    finally:
        engine.close()
        postgres_server.run("DROP DATABASE units WITH (FORCE)")


def test_spark_computes_the_same(spark_address: str, tmp_path: Path) -> None:
    connection = world()
    paths = spark.copied(connection, NAMES, tmp_path)
    engine = spark.engine({name: TABLES[name] for name in NAMES}, paths, spark_address)
    try:
        compare([bound(text) for text in _ON_SPARK], connection, engine, SPARK)
    finally:
        engine.close()


def test_a_difference_would_be_seen() -> None:
    """Planted: an engine that numbers rows from 0."""
    rel = bound(asked("SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY day) AS x FROM v"))
    text = statement([rel], DUCKDB)
    wrong = text.replace("row_number()", "-1 + row_number()")
    connection = world()
    assert wrong != text
    with pytest.raises(AssertionError):
        assert counted(connection.execute(text).fetchall()) == counted(connection.execute(wrong).fetchall())
