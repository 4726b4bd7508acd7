"""Programs say the same on every engine: with the same noise, the same model."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.postgres_server import Server

from hubbub.analyses.base import Arrays, PreparedAnalysis, Setting
from hubbub.analyses.programs.hyperplane import hyperplane
from hubbub.analyses.programs.itemsets import frequent_itemsets
from hubbub.analyses.programs.kmeans import kmeans
from hubbub.analyses.programs.logistic import logistic_regression
from hubbub.analyses.programs.moments import moments, pca
from hubbub.analyses.programs.regression import linear_regression
from hubbub.analyses.programs.tree import decision_tree
from hubbub.analyses.statistics.means import anova
from hubbub.analyses.statistics.poisson import poisson_regression
from hubbub.analyses.statistics.survival import survival
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.engines.base import Engine
from hubbub.noise.source import Words as Drawn
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK

PEOPLE = Table(
    "people",
    (
        Column("who", Kind.INTEGER),
        Column("x", Kind.REAL, Bounds(Fraction(-8), Fraction(8))),
        Column("y", Kind.REAL, Bounds(Fraction(0), Fraction(20))),
        Column("kind", Kind.TEXT, values=("a", "it's", "c")),
        Column("fine", Kind.BOOLEAN),
    ),
    PrivacyUnit("who", groups=2, rows=2),
)
ROWS = (
    "CREATE TABLE people AS SELECT CAST(i % 150 AS BIGINT) AS who, sin(i) * 9 AS x, 10 + cos(i) * 6 + sin(i) AS y,"
    " ['a', 'it''s', 'c', 'd', NULL][1 + i % 5] AS kind, (i * 7) % 11 > 4 AS fine FROM range(500) AS t(i)"
)

PROGRAMS: Mapping[str, Callable[[Setting], PreparedAnalysis]] = {
    "moments": lambda at: moments(at, table="people", columns=["x", "y"]),
    "pca": lambda at: pca(at, table="people", columns=["x", "y"]),
    "kmeans": lambda at: kmeans(at, table="people", columns=["x", "y"], k=3, rounds=2),
    "classic": lambda at: kmeans(at, table="people", columns=["x", "y"], k=3, rounds=2, method="classic"),
    "linear": lambda at: linear_regression(at, table="people", columns=["x"], target="y"),
    "logistic": lambda at: logistic_regression(at, table="people", columns=["x", "y"], target="fine", rounds=2),
    "tree": lambda at: decision_tree(at, table="people", columns=["x", "kind"], target="fine", depth=2),
    "itemsets": lambda at: frequent_itemsets(at, table="people", columns=["kind", "fine"], size=2),
    "units": lambda at: frequent_itemsets(at, table="people", item="kind", size=2),
    "hyperplane": lambda at: hyperplane(at, table="people", columns=["x", "y"], target="fine", bins=4),
    "means": lambda at: anova(at, table="people", outcome="x", group="kind"),
    "survival": lambda at: survival(at, table="people", time={"column": "y", "bins": 5}, event="fine"),
    "poisson": lambda at: poisson_regression(at, table="people", columns=["x"], target="y", rounds=2),
}


class Running:
    """A run whose noise is always the same."""

    def __init__(self, ask: Callable[[str], Secret[Arrays]]) -> None:
        self.ask = ask
        self.source = self
        self._draw = np.random.default_rng(17)

    def words(self, count: int) -> Drawn:
        return self._draw.integers(0, 1 << 64, count, dtype=np.uint64)

    def progress(self, done: float, what: str) -> None:
        assert 0 <= done <= 1
        assert what


def model(name: str, dialect: Dialect, ask: Callable[[str], Secret[Arrays]]) -> Mapping[str, Any]:
    words = RenderOptions("salt", "portable", dialect)
    prepared = PROGRAMS[name](Setting({"people": PEOPLE}, Fraction(4), Fraction(0), words))
    return prepared.run(Running(ask)).model


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        yield connection


def here(name: str, local: duckdb.DuckDBPyConnection) -> Mapping[str, Any]:
    def ask(sql: str) -> Secret[Arrays]:
        return Secret({column: np.asarray(each) for column, each in local.execute(sql).fetchnumpy().items()})

    return model(name, DUCKDB, ask)


def alike(one: Any, other: Any) -> bool:
    """The same but for the last bits: an engine's square root or exponential may differ in one."""
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == pytest.approx(other, rel=1e-4, abs=1e-4)) if isinstance(one, float) else bool(one == other)


@pytest.fixture(scope="module")
def there(local: duckdb.DuckDBPyConnection, postgres_server: Server) -> Iterator[Engine]:
    postgres_server.run("CREATE DATABASE programs")
    postgres.copied(local, ["people"], postgres_server, "programs")
    engine = postgres.engine({"people": PEOPLE}, postgres_server, "programs")
    yield engine
    engine.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_postgres_says_what_duckdb_says(name: str, local: duckdb.DuckDBPyConnection, there: Engine) -> None:
    assert alike(model(name, POSTGRES, there.run), here(name, local))


def test_spark_says_what_duckdb_says(local: duckdb.DuckDBPyConnection, spark_address: str, tmp_path: Path) -> None:
    """Two whose texts differ most: each question takes Spark seconds."""
    engine = spark.engine({"people": PEOPLE}, spark.copied(local, ["people"], tmp_path), spark_address)
    try:
        for name in ("linear", "units"):
            assert alike(model(name, SPARK, engine.run), here(name, local)), name
    finally:
        engine.close()
