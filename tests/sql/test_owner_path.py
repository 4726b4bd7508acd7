"""The owner of a row through keys, on all small datasets: NULL, dangling and composite references."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.fixtures import owned_tables, postgres, spark
from tests.fixtures.owned_tables import World
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Table
from hubbub.engines.base import Engine
from hubbub.sql import owner_path, render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.expressions import Col
from hubbub.sql.relations import Scan

HOUSES = [(1, 2), (1, 1), (None, 2)]
#: The last column of each table, which tells its rows apart.
SHOWN = {"people": "id", "orders": "number", "items": "x"}
PLACE = {"people": 0, "orders": 1, "items": 2}


def scan(table: Table) -> Scan:
    """Read one column of a table, with the owner."""
    name = SHOWN[table.name]
    column = next(column for column in table.columns if column.name == name)
    return Scan(table, (Col("c", column.kind),), (name,))


def rows(connection: duckdb.DuckDBPyConnection, table: Table) -> Counter[tuple[int, int | None]]:
    text = render.relation(scan(table), DUCKDB)
    return Counter((int(u), None if c is None else int(c)) for u, c in connection.execute(text).fetchall())


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        owned_tables.create(opened)
        yield opened


def expected(world: World, name: str, unit: str) -> Counter[tuple[int, int | None]]:
    """List owners and shown columns of a table as Python finds them."""
    pairs = [(world.owner(name, row, unit), row[PLACE[name]]) for row in getattr(world, name)]
    return Counter((owner, shown) for owner, shown in pairs if owner is not None)


@pytest.mark.parametrize("unit", ["house", "id"])
def test_taking_an_owner_away_takes_its_rows_away_and_changes_no_other(
    connection: duckdb.DuckDBPyConnection, unit: str
) -> None:
    """For every world and unit, and against owners that are looked up without SQL."""
    check_owners(connection, unit)


def check_owners(connection: duckdb.DuckDBPyConnection, unit: str) -> None:
    declared, owners = owned_tables.tables(unit), set[int]()
    houses = HOUSES if unit == "house" else [(1, 1)]
    for world in owned_tables.worlds(houses):
        world.load(connection)
        whole = {name: rows(connection, table) for name, table in declared.items()}
        for name, read in whole.items():
            assert read == expected(world, name, unit)
        for gone in (1, 2):
            world.without(gone, unit).load(connection)
            for name, table in declared.items():
                kept = Counter({row: n for row, n in whole[name].items() if row[0] != gone})
                assert rows(connection, table) == kept
                owners |= {owner for owner, _ in whole[name]}
    assert owners == {1, 2}


def test_a_key_that_is_not_unique_would_give_one_row_two_owners(connection: duckdb.DuckDBPyConnection) -> None:
    """The check of keys is needed: without it, one item counts for two houses, and for one if either leaves."""
    table = owned_tables.tables("house")["items"]
    twice = World(((1, 1), (1, 2)), (("a", 1, 1),), (("a", 1, 7),))
    twice.load(connection)
    assert rows(connection, table) == Counter({(1, 7): 1, (2, 7): 1})


def test_an_owner_that_is_dropped_from_the_join_is_noticed(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted error: the owner is taken from any order of the part, as if the part alone were the key."""
    honest = owner_path.owned_rows

    def careless(table: str, columns: list[str], steps: list[object], *rest: object) -> str:
        text = honest(table, columns, steps, *rest)  # type: ignore[arg-type]
        return text.replace(' AND s."number" = o."$key1"', "")

    monkeypatch.setattr(render, "owned_rows", careless)
    with pytest.raises(AssertionError):
        check_owners(connection, "house")


def test_owners_are_the_same_on_every_engine(postgres_server: Server, spark_address: str, tmp_path: Path) -> None:
    """One world with NULL, dangling and repeated references on DuckDB, PostgreSQL and Spark."""
    world = World(
        ((1, 1), (2, 2), (3, 1), (None, 1), (4, None)),
        (("a", 1, 1), ("a", 2, 2), ("b", 1, 3), ("c", 1, 9), ("d", 1, None), ("e", 1, 4), (None, 1, 1)),
        (*owned_tables.ITEMS, ("c", 1, 3), ("d", 1, 5), ("e", 1, 6), ("b", 1, 7)),
    )
    postgres_server.run("CREATE DATABASE owners")
    source = duckdb.connect()
    owned_tables.create(source)
    world.load(source)
    postgres.copied(source, SHOWN, postgres_server, "owners")
    files = spark.copied(source, SHOWN, tmp_path)
    declared = owned_tables.tables("house")
    engines: list[tuple[Dialect, Engine]] = [
        (POSTGRES, postgres.engine(declared, postgres_server, "owners")),
        (SPARK, spark.engine(declared, files, spark_address)),
    ]
    try:
        for name, table in declared.items():
            assert rows(source, table) == expected(world, name, "house")
            for dialect, engine in engines:
                text = render.relation(scan(table), dialect)
                theirs = engine.run(text).through(lambda arrays: [list(column.tolist()) for column in arrays.values()])
                assert Counter(zip(*theirs, strict=True)) == expected(world, name, "house")
    finally:
        for _, engine in engines:
            engine.close()
        postgres_server.run("DROP DATABASE owners WITH (FORCE)")
