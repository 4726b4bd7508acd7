"""Which of a unit's rows are kept on PostgreSQL: the same as on DuckDB with the hash that they share."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import duckdb
import psycopg
import pytest
from tests.campaigns.parity import Planner, Side, Tally, differences, rows
from tests.fixtures import postgres
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.analyses.base import EngineRun, Setting
from hubbub.analyses.programs.mean_vector import Norm, mean_vector
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.engines.base import Arrays
from hubbub.engines.postgres.connection import PostgresEngine
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.plan import plan

Ask = Callable[[str], Secret[Arrays]]

WORDS = ("a", "b", "é", "")
COLUMNS = (
    Column("u", Kind.TEXT),
    Column("k", Kind.TEXT, values=WORDS),
    Column("x", Kind.REAL, bounds=Bounds(Fraction(-5), Fraction(20))),
    Column("w", Kind.TEXT),
)
TABLE = Table("t", COLUMNS, PrivacyUnit("u", groups=2, rows=3))
QUESTIONS = (
    "SELECT k, count(*) FROM t GROUP BY k",
    "SELECT k, count(x), sum(x), avg(x * x) FROM t GROUP BY k",
    "SELECT k, count(DISTINCT x), sum(DISTINCT x), variance(DISTINCT x) FROM t GROUP BY k",
    "SELECT k, median(x) FROM t GROUP BY k",
    "SELECT w, floor(x), count(*) FROM t GROUP BY w, floor(x)",
    "SELECT w, count(DISTINCT u), sum(x) FROM t GROUP BY w",
)


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    """Units with many more rows and groups than they may contribute."""
    rng = random.Random(4)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t (u VARCHAR, k VARCHAR, x DOUBLE, w VARCHAR)")
        made = [
            (
                rng.choice("pqrst"),
                rng.choice((*WORDS, None)),
                rng.choice((None, rng.uniform(-9, 30), 0.5, -0.0)),
                rng.choice(("v", "w", "É", None)),
            )
            for _ in range(300)
        ]
        insert_rows(connection, "t", made)
        yield connection


@pytest.fixture(scope="module")
def remote(local: duckdb.DuckDBPyConnection, postgres_server: Server) -> Iterator[PostgresEngine]:
    postgres_server.run("CREATE DATABASE bounding")
    postgres.copied(local, ["t"], postgres_server, "bounding")
    opened = postgres.engine({"t": TABLE}, postgres_server, "bounding")
    yield opened
    opened.close()
    postgres_server.run("DROP DATABASE bounding WITH (FORCE)")


def planner(text: str, seed: int) -> Planner:
    query = bind(text, tables={"t": TABLE})
    return lambda **words: plan(query, epsilon=Fraction(1), delta=Fraction(1, 10**6), salt=str(seed), **words)


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_shared_hash_keeps_the_same_rows_on_every_engine(
    local: duckdb.DuckDBPyConnection, remote: PostgresEngine, text: str
) -> None:
    side, tally = Side("postgres", POSTGRES, lambda *_: None, {}), Tally()  # type: ignore[arg-type]
    for seed in range(6):
        assert differences(planner(text, seed), local, remote, side, tally) == ""
    assert tally.same > 0


def test_each_engines_own_hash_may_keep_others(local: duckdb.DuckDBPyConnection, remote: PostgresEngine) -> None:
    """Which the comparison above would notice: so it is not true by itself."""
    made = planner(QUESTIONS[1], 1)
    mine, theirs = made(), made(dialect=POSTGRES)
    here = [rows(arrays(local, each.sql)) for each in mine.statements]
    assert here != [remote.run(each.sql).through(rows) for each in theirs.statements]


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sums_of_vectors_are_the_same_on_postgres(
    local: duckdb.DuckDBPyConnection, postgres_server: Server, norm: Norm
) -> None:
    columns = (
        Column("x", Kind.REAL, bounds=Bounds(Fraction(-5), Fraction(20))),
        Column("y", Kind.REAL, bounds=Bounds(Fraction(-(10**6)), Fraction(10**6))),
        Column("z", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9))),
    )
    table = Table("rowed", columns, PrivacyUnit(None), Relation.REPLACE)
    y = "CASE WHEN x > 3 THEN 5e-324 WHEN x > 1 THEN 'nan'::DOUBLE ELSE x * 1e5 END"
    local.execute(f"CREATE OR REPLACE TABLE rowed AS SELECT x, {y} AS y, CAST(x AS BIGINT) AS z FROM t")
    with postgres_server.database() as dsn:
        database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
        postgres.copied(local, ["rowed"], postgres_server, database)
        engine = postgres.engine({"rowed": table}, postgres_server, database)
        asked: list[Arrays] = []
        here: tuple[Dialect, Ask] = (DUCKDB, lambda sql: Secret(arrays(local, sql)))
        for dialect, run in (here, (POSTGRES, engine.run)):
            setting = Setting({"rowed": table}, Fraction(1), Fraction(0), RenderOptions("salt", "portable", dialect))
            prepared = mean_vector(setting, table="rowed", columns=["x", "y", "z"], gamma=Fraction(7), norm=norm)
            prepared.run(EngineRun(_taped(run, asked), system(), lambda _, __: None))
        assert rows(asked[0]) == rows(asked[1])
        engine.close()


def _taped(run: Ask, asked: list[Arrays]) -> Ask:
    def ask(sql: str) -> Secret[Arrays]:
        asked.append(run(sql).through(dict))
        return Secret(asked[-1])

    return ask
