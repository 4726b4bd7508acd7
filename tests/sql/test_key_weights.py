"""The weights by which groups are selected: of a unit's own rows, of bounded norm, and alike on every engine."""

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.engines.base import Engine
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.key_weights import key_weights
from hubbub.sql.measures import KeyWeight, UnitContribution, sensitivity
from hubbub.sql.partition_selection import MAX_KEYS, WEIGHT, groups

TABLE = Table("t", (Column("u", Kind.INTEGER), Column("w", Kind.TEXT)), PrivacyUnit("u", groups=2, rows=3))
QUERY = bind("SELECT w, COUNT(*) FROM t GROUP BY w", tables={"t": TABLE})
#: 300 units, the n-th of which has n groups of its own and two rows in each.
LADDER = "SELECT n AS u, n || '-' || i AS w FROM range(1, 301) a(n), range(300) b(i), range(2) WHERE i < n"

Weights = dict[Any, int]


def text(measure: KeyWeight, dialect: Dialect = DUCKDB, *, salt: str = "s") -> str:
    options = RenderOptions(salt, "portable", dialect)
    return key_weights(QUERY.relation, groups(QUERY), measure, options=options)


def weights(rows: list[tuple[Any, Any]], measure: KeyWeight, *, salt: str = "s", sql: str | None = None) -> Weights:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t (u BIGINT, w VARCHAR)")
        if rows:
            insert_rows(connection, "t", rows)
        return read(arrays(connection, text(measure, salt=salt) if sql is None else sql))


def read(table: Any) -> Weights:
    return dict(zip(table["k0"].tolist(), table["m0"].tolist(), strict=True))


@pytest.fixture(scope="module", params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)])
def ladder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Dialect]]:
    """Give a function that runs SQL on the ladder, and the dialect."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE t AS {LADDER}")
        if request.param == "duckdb":
            yield lambda sql: arrays(connection, sql), DUCKDB
            return
        engine: Engine
        if request.param == "postgres":
            server: Server = request.getfixturevalue("postgres_server")
            with server.database() as dsn:
                database = dsn.rpartition("dbname=")[2].split()[0].strip("'")
                postgres.copied(connection, ["t"], server, database)
                engine = postgres.engine({"t": TABLE}, server, database)
                yield lambda sql: engine.run(sql).through(lambda table: table), POSTGRES
                engine.close()
            return
        address: str = request.getfixturevalue("spark_address")
        folder: Path = tmp_path_factory.mktemp("ladder")
        engine = spark.engine({"t": TABLE}, spark.copied(connection, ["t"], folder), address)
        yield lambda sql: engine.run(sql).through(lambda table: table), SPARK
        engine.close()


def test_every_number_of_groups_has_its_exact_weight_on_every_engine(ladder: tuple[Any, Dialect]) -> None:
    """⌊W/√n⌋ for n = 1 to 256 groups, and beyond that for 256 of them; no engine rounds another way."""
    run, dialect = ladder
    given: dict[int, list[int]] = {}
    for word, weight in read(run(text(KeyWeight(MAX_KEYS, WEIGHT), dialect))).items():
        given.setdefault(int(word.partition("-")[0]), []).append(int(weight))
    for n in range(1, 301):
        kept = min(n, MAX_KEYS)
        assert given[n] == [isqrt(WEIGHT**2 // kept)] * kept, n
        assert sum(weight**2 for weight in given[n]) <= WEIGHT**2


def test_every_engine_keeps_the_same_groups(ladder: tuple[Any, Dialect]) -> None:
    run, dialect = ladder
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE t AS {LADDER}")
        for measure in (KeyWeight(1, 1), KeyWeight(3, 100)):
            assert read(run(text(measure, dialect))) == read(arrays(connection, text(measure)))


def test_a_unit_votes_for_one_of_its_groups_and_not_always_for_the_same() -> None:
    rows = [(u, f"g{i}") for u in range(60) for i in range(3)]
    votes = weights(rows, KeyWeight(1, 1))
    assert sum(votes.values()) == 60
    # by hash: each of 3 groups gets 20 of 60 on average; the salt is fixed, so this never fails by chance
    assert all(10 <= count <= 30 for count in votes.values())
    assert votes != weights(rows, KeyWeight(1, 1), salt="t")


@pytest.mark.parametrize("measure", [KeyWeight(1, 1), KeyWeight(3, 100), KeyWeight(MAX_KEYS, WEIGHT)])
@pytest.mark.parametrize("relation", list(Relation))
def test_one_unit_moves_the_weights_no_further_than_stated(measure: KeyWeight, relation: Relation) -> None:
    """Every unit removed, or replaced by one with other groups; planted: a unit whose groups are not cut or weighed."""
    rng = random.Random(5)
    rows = [(u, f"g{rng.randrange(8)}") for u in range(12) for _ in range(rng.randrange(1, 12))]
    stated = sensitivity(measure, (UnitContribution(1 << 62, 2, 3),), relation)

    def moved(sql: str) -> tuple[int, int]:
        whole, furthest = Counter(weights(rows, measure, sql=sql)), (0, 0)
        for gone in range(12):
            others = [(gone, f"new {i}") for i in range(9)] if relation is Relation.REPLACE else []
            rest = Counter(weights([row for row in rows if row[0] != gone] + others, measure, sql=sql))
            changes = [abs(whole[key] - rest[key]) for key in whole | rest]
            furthest = max(furthest[0], sum(changes)), max(furthest[1], sum(c * c for c in changes))
        return furthest

    honest = text(measure)
    l1, squared = moved(honest)
    assert l1 <= stated.l1
    assert squared <= stated.l2_squared
    spoiled = honest.replace(f"place <= {measure.keys}", "TRUE").replace("sqrt(k.n)", "sqrt(1 + 0 * k.n)")
    assert moved(spoiled)[1] > stated.l2_squared


def test_rows_without_owner_or_more_rows_of_one_group_add_nothing() -> None:
    measure = KeyWeight(4, 100)
    once = weights([(1, "a"), (1, "b"), (2, "a")], measure)
    assert once == {"a": 70 + 100, "b": 70}
    assert weights([(1, "a"), (1, "a"), (1, "b"), (2, "a"), (None, "a"), (None, "z")], measure) == once
    assert weights([], measure) == {}


def test_the_sensitivity_of_weights_is_their_norm() -> None:
    reach = (UnitContribution(1 << 62, 5, 7),)
    for relation in Relation:
        moved = sensitivity(KeyWeight(16, 1000), reach, relation)
        assert Fraction(moved.l2_squared, 1000**2) == relation.units_changed
        assert moved.l1 == 4000 * relation.units_changed
        assert sensitivity(KeyWeight(1, 1), reach, relation).l1 == relation.units_changed
