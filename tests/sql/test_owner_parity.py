"""Rows with two owners come in the same order, with the same sums, from DuckDB, PostgreSQL and Spark."""

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from tests.fixtures import postgres, spark
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.engines.base import Engine
from hubbub.sql.bind import bind_releases
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.owner_levels import OwnerLevels
from hubbub.sql.plan import plan
from hubbub.sql.query import Query

VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("doctor", Kind.TEXT),
        Column("region", Kind.TEXT, values=("n", "s")),
        Column("cost", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(20))),
    ),
    PrivacyUnit("patient", 64, 64, "patient", auto=True),
    others=(PrivacyUnit("doctor", 64, 64, "doctor", auto=True),),
)
DOCTORS = Table(
    "doctors",
    (Column("doctor", Kind.TEXT), Column("kind", Kind.TEXT, values=("gp", "é"))),
    PrivacyUnit("doctor", 1, 1, "doctor"),
)
TABLES = {table.name: table for table in (VISITS, DOCTORS)}
QUERIES = (
    "SELECT region, count(*), sum(cost) FROM visits WHERE cost > 1 GROUP BY region",
    "SELECT kind, count(*) FROM visits v JOIN doctors d ON v.doctor = d.doctor GROUP BY kind",
)


def levels(text: str, dialect: Dialect) -> tuple[OwnerLevels, ...]:
    query = bind_releases(text, tables=TABLES)
    assert isinstance(query, Query)
    return plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s", hashing="portable", dialect=dialect).owners


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    chance = random.Random(3)
    names = ["ann", "ben", "Ben", "é", ""]
    connection.execute("CREATE TABLE visits (patient BIGINT, doctor VARCHAR, region VARCHAR, cost DOUBLE)")
    connection.execute("CREATE TABLE doctors (doctor VARCHAR, kind VARCHAR)")
    visits = [
        [chance.choice((None, *range(12))), chance.choice((None, *names)), chance.choice("nst"), chance.uniform(-3, 30)]
        for _ in range(300)
    ]
    insert_rows(connection, "visits", visits)
    insert_rows(connection, "doctors", [[n, chance.choice(("gp", "é"))] for n in names[1:]])


def rows(table: Any) -> list[tuple[object, ...]]:
    return list(zip(*(np.ma.asarray(values).tolist() for _, values in sorted(table.items())), strict=True))


def test_two_owners_are_truncated_alike_on_every_engine(
    postgres_server: Server, spark_address: str, tmp_path: Path
) -> None:
    postgres_server.run("CREATE DATABASE two_owners")
    with duckdb.connect(config={"threads": 1}) as connection:
        fill(connection)
        postgres.copied(connection, list(TABLES), postgres_server, "two_owners")
        engines: list[tuple[Dialect, Engine]] = [
            (POSTGRES, postgres.engine(TABLES, postgres_server, "two_owners")),
            (SPARK, spark.engine(TABLES, spark.copied(connection, list(TABLES), tmp_path), spark_address)),
        ]
        try:
            for text in QUERIES:
                mine = levels(text, DUCKDB)
                expected: Any = connection.execute(mine[0].sql).fetchnumpy()
                assert len(expected["u"]) > 40
                for dialect, engine in engines:
                    theirs = engine.run(levels(text, dialect)[0].sql).through(dict)
                    assert rows(theirs) == rows(expected), (dialect.name, text)
                    for level in mine:
                        assert level.exact(theirs).tolist() == level.exact(expected).tolist()
                        assert level.truncated(theirs, 3).tolist() == level.truncated(expected, 3).tolist()
        finally:
            for _, engine in engines:
                engine.close()
            postgres_server.run("DROP DATABASE two_owners WITH (FORCE)")
