"""Queries that find their bounds give the same integers on DuckDB, PostgreSQL and Spark, at each bound."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tests.fixtures import auto_tables as auto
from tests.fixtures import postgres, spark
from tests.fixtures.postgres_server import Server

from hubbub.audit.sensitivity import queries
from hubbub.core.unit import Relation
from hubbub.engines.base import Engine
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.plan import Plan

QUERIES = (
    "SELECT k, count(*), count(DISTINCT u), sum(x), sum(y) FROM t GROUP BY k",
    "SELECT count(DISTINCT w), avg(x), min(y), mode(k) FROM t",
    "SELECT w, sum(x), count(*) FROM t GROUP BY w",
    "SELECT t.k, count(*), sum(s.x) FROM t JOIN s ON t.u = s.u GROUP BY t.k",
)


def _plans(text: str, dialect: Dialect) -> list[Plan]:
    """Plan a query, and settle it at a bound in the middle (in full, at a small and at a large one)."""
    made = auto.planned(text, Relation.ADD_REMOVE, hashing="portable", dialect=dialect)
    return [
        auto.keep_levels(
            made, auto.settled(made, [each.levels[int(place * (len(each.levels) - 1))] for each in made.levels])
        )
        for place in ((0.3, 0.8) if os.environ.get("HUBBUB_CAMPAIGN") == "full" else (0.5,))
    ]


def _rows(table: Any) -> Counter[str]:
    """Return the rows of a result in one form: doubles and integers of the same value are the same key."""
    columns = [np.ma.asarray(values).tolist() for _, values in sorted(table.items())]
    return Counter(
        repr([float(v) if isinstance(v, int | float) else v for v in row]) for row in zip(*columns, strict=True)
    )


def test_levels_and_statements_give_the_same_integers_on_every_engine(
    postgres_server: Server, spark_address: str, tmp_path: Path
) -> None:
    tables = auto.tables(Relation.ADD_REMOVE)
    used = {name: tables[name] for name in ("t", "s")}
    postgres_server.run("CREATE DATABASE found_bounds")
    with auto.connect() as connection:
        for name in used:
            connection.execute(f"CREATE TABLE copy_{name} AS FROM {name}; DROP VIEW {name}")
            connection.execute(f"ALTER TABLE copy_{name} RENAME TO {name}")
        postgres.copied(connection, list(used), postgres_server, "found_bounds")
        engines: list[tuple[Dialect, Engine]] = [
            (POSTGRES, postgres.engine(used, postgres_server, "found_bounds")),
            (SPARK, spark.engine(used, spark.copied(connection, list(used), tmp_path), spark_address)),
        ]
        try:
            for text in QUERIES:
                mine = [auto.run(connection, each) for each in _plans(text, DUCKDB)]
                for dialect, engine in engines:
                    for made, expected in zip(_plans(text, dialect), mine, strict=True):
                        for name, sql in queries(made).items():
                            theirs = engine.run(sql).through(dict)
                            assert _rows(theirs) == _rows(expected[name]), (dialect.name, text, name)
        finally:
            for _, engine in engines:
                engine.close()
            postgres_server.run("DROP DATABASE found_bounds WITH (FORCE)")
