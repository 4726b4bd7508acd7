"""Owners that are found once: the same rows and owners as with a path in every scan, and fewer joins."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import duckdb
import pytest
from tests.fixtures import owned_tables, postgres
from tests.fixtures.owned_tables import World
from tests.fixtures.postgres_server import Server
from tests.sql.test_references import ALONG, WITHIN, some_world

from hubbub.core.schema import Column, Kind, Table
from hubbub.sql import owner_joins, render
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.expressions import Col
from hubbub.sql.fanout import TruncationBounds, bound_joins
from hubbub.sql.plan import plan
from hubbub.sql.relations import UNIT, Join, Rel, Scan, columns

DOWN = "people p JOIN orders o ON o.person = p.id JOIN items i ON i.part = o.part AND i.number = o.number"
#: Relations, and the number of joins in their SQL, with the house of a person as owner and with the person.
JOINS = {
    "two children": ("items i JOIN orders o USING (part, number) JOIN items j USING (part, number)", 9, 8),
    "from the person down": (DOWN, 2, 2),
    "from the item up": ("items i JOIN orders o USING (part, number) JOIN people p ON p.id = o.person", 2, 2),
    "filters": (f"{DOWN} WHERE p.age < 5 AND o.number < 3 AND i.x <> 2", 2, 2),
    "filters in subqueries": (
        "(SELECT id AS who FROM people WHERE age < 5) p JOIN (SELECT part, number AS n, person FROM orders WHERE "
        "number < 3) o ON o.person = p.who JOIN (SELECT part, number AS m FROM items WHERE x > 1) i ON i.part = o.part "
        "AND i.m = o.n",
        2,
        2,
    ),
    "parent and child": ("orders o JOIN items i USING (part, number)", 2, 2),
    "child kept": ("items i LEFT JOIN orders o USING (part, number)", 4, 3),
    "parent kept": ("orders o LEFT JOIN items i ON i.part = o.part AND i.number = o.number", 8, 7),
    "person kept": (
        "people p LEFT JOIN orders o ON o.person = p.id LEFT JOIN items i ON i.part = o.part AND i.number = o.number",
        11,
        9,
    ),
    "parent not kept": ("people p LEFT JOIN orders o ON o.person = p.id WHERE o.number IS NULL", 6, 5),
    "order kept": ("orders o LEFT JOIN people p ON o.person = p.id", 2, 2),
    "another pair": (f"{DOWN} AND i.x = p.age", 2, 2),
}


def bound(text: str, unit: str) -> Rel:
    """Bind a relation, and cut the sides of joins that multiply."""
    return bound_joins(whole(text, unit), TruncationBounds(None, None, "salt", "portable")).rel


def whole(text: str, unit: str) -> Rel:
    """Bind a relation."""
    return bind(f"SELECT count(*) FROM {text}", tables=owned_tables.tables(unit)).relation


def scan(table: Table, prefix: str, *names: str) -> Scan:
    """Read columns of a table."""
    chosen = [next(column for column in table.columns if column.name == name) for name in names]
    return Scan(table, tuple(Col(f"{prefix}_{column.name}", column.kind) for column in chosen), names)


def listed(text: str, rel: Rel, dialect: Dialect = DUCKDB) -> str:
    """Write the owner and the columns of a relation."""
    names = (UNIT, *(column.name for column in columns(rel)))
    return f"SELECT {', '.join(map(dialect.identifier, names))} FROM ({text}) AS t"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        owned_tables.create(opened)
        yield opened


def rows(connection: duckdb.DuckDBPyConnection, rel: Rel, write: Callable[[Rel, Dialect], str]) -> Counter[object]:
    return Counter(connection.execute(listed(write(rel, DUCKDB), rel)).fetchall())


def check_same(connection: duckdb.DuckDBPyConnection, rel: Rel, seed: str) -> int:
    """Compare a relation with the relation as it stands, in 4 worlds; return how many rows there were."""
    chance, size = random.Random(seed), 0
    for _ in range(4):
        some_world(chance).load(connection)
        mine = rows(connection, rel, render.relation)
        assert mine == rows(connection, rel, render.as_it_stands)
        size += mine.total()
    return size


CASES = {name: text for name, (text, *_) in JOINS.items()} | ALONG | WITHIN


@pytest.mark.parametrize("unit", ["house", "id"])
@pytest.mark.parametrize("name", CASES)
def test_owners_found_once_are_the_owners_of_the_relation_as_it_stands(
    connection: duckdb.DuckDBPyConnection, name: str, unit: str
) -> None:
    """Rows with owners, as multisets, with NULL and dangling references, inner and left joins, and subqueries."""
    cut, uncut = bound(CASES[name], unit), whole(CASES[name], unit)
    assert check_same(connection, cut, name)
    assert cut == uncut or check_same(connection, uncut, name)


@pytest.mark.parametrize("name", JOINS)
def test_a_reference_that_the_query_follows_is_not_followed_again(name: str) -> None:
    text, *most = JOINS[name]
    """By the number of joins; those of a cut are among them."""
    joins = [render.relation(bound(text, unit)).count(" JOIN ") for unit in ("house", "id")]
    assert joins == most


@pytest.mark.parametrize("unit", ["house", "id"])
@pytest.mark.parametrize("name", JOINS)
def test_taking_an_owner_away_takes_its_rows_away_and_changes_no_other(
    connection: duckdb.DuckDBPyConnection, name: str, unit: str
) -> None:
    """Where joins are cut, and where they are not, which leaves more paths to the joins."""
    rel, chance = bound(JOINS[name][0], unit), random.Random(name)
    check_neighbors(connection, rel, unit, chance)
    if rel != whole(JOINS[name][0], unit):
        check_neighbors(connection, whole(JOINS[name][0], unit), unit, chance)


def check_neighbors(connection: duckdb.DuckDBPyConnection, rel: Rel, unit: str, chance: random.Random) -> None:
    for _ in range(2):
        world = some_world(chance)
        world.load(connection)
        every = rows(connection, rel, render.relation)
        for gone in (1, 2, 3):
            world.without(gone, unit).load(connection)
            kept = Counter({row: n for row, n in every.items() if row[0] != gone})  # type: ignore[index]
            assert rows(connection, rel, render.relation) == kept


def by_another_column() -> Join:
    """People and orders of one house, where the number of the order, which is no reference, is that of the person."""
    tables = owned_tables.tables("house")
    people, orders = scan(tables["people"], "p", "id"), scan(tables["orders"], "o", "number", "person")
    return Join(people, orders, "inner", ((people.columns[0], orders.columns[0]),), unit=True)


def test_a_path_that_is_dropped_though_the_join_is_on_another_column_is_noticed(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted error: any column of the child is taken for its reference."""
    rel = by_another_column()
    assert check_same(connection, rel, "honest")

    def careless(rel: Rel, name: str, scan: Scan, source: str, kind: Kind) -> bool:
        traced = owner_joins._traced(rel, name)
        return traced is not None and traced[0] == scan

    monkeypatch.setattr(owner_joins, "_reads", careless)
    with pytest.raises(AssertionError):
        check_same(connection, rel, "planted")


def test_an_owner_that_nobody_checks_is_noticed(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted error: the kept side of a left join relies on the other side to check that owners exist."""

    def careless(rel: Join, exist: frozenset[tuple[str, str]]) -> Join:
        left = owner_joins._simplified(rel.left, exist | owner_joins._existing(rel.right))
        return Join(left, owner_joins._simplified(rel.right, exist), rel.kind, rel.on, rel.unit)

    monkeypatch.setattr(owner_joins, "_on_unit", careless)
    with pytest.raises(AssertionError):
        check_same(connection, bound(JOINS["order kept"][0], "id"), "planted")


@pytest.mark.parametrize("kind", ["bounds", "values"])
def test_a_reference_that_is_clamped_or_looked_up_keeps_its_path(kind: str) -> None:
    """Two orders can be read as one key, so that equal columns do not name the same row."""
    tables = owned_tables.tables("house")
    declared = {"bounds": owned_tables.tables()["items"].columns[-1].bounds, "values": (Fraction(1), Fraction(2))}
    number = Column("number", Kind.INTEGER, **{kind: declared[kind]})  # type: ignore[arg-type]
    orders = tables["orders"]
    changed = Table("orders", (orders.columns[0], number, orders.columns[2]), orders.unit, unique=orders.unique)
    left, right = scan(changed, "o", "part", "number"), scan(tables["items"], "i", "part", "number")
    rel = Join(left, right, "inner", tuple(zip(left.columns, right.columns, strict=True)), unit=True)
    assert render.relation(rel) == render.as_it_stands(rel, DUCKDB)


def test_large_references_are_compared_exactly(connection: duckdb.DuckDBPyConnection) -> None:
    """An item of order 2⁵³ + 1, which does not exist, is not one of order 2⁵³, although both are equal as doubles."""
    large = 1 << 53
    World(((1, 1),), (("a", large, 1),), (("a", large, 1), ("a", large + 1, 2))).load(connection)
    rel = bound(f"{DOWN} WHERE i.x > 0", "house")
    assert [row[-1] for row in rows(connection, rel, render.relation).elements()] == [1]  # type: ignore[index]


def test_rows_that_joins_find_are_computed_once(connection: duckdb.DuckDBPyConnection) -> None:
    """The statement reads them twice: to add them up, and to rank those of units above their bounds."""
    tables = owned_tables.tables("house")
    for name, once in (("items", True), ("people", False)):
        query = bind(f"SELECT sum({'x' if name == 'items' else 'age'}) FROM {name}", tables=tables)
        text = plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="salt").sql["sums0"]
        assert ('"$base" AS MATERIALIZED' in text) == once
        assert connection.execute(text).fetchall() is not None


def test_owners_found_once_are_the_same_on_postgres(postgres_server: Server) -> None:
    """Its joins are full joins. Spark writes them as DuckDB does; the suites compare all three."""
    world = World(
        ((1, 1), (2, 2), (3, 1), (None, 1), (4, None)),
        (("a", 1, 1), ("a", 2, 2), ("b", 1, 3), ("c", 1, 9), ("d", 1, None), ("e", 1, 4), (None, 1, 1)),
        (*owned_tables.ITEMS, ("c", 1, 3), ("d", 1, 5), ("e", 1, 6), ("b", 1, 7)),
    )
    postgres_server.run("CREATE DATABASE owners_once")
    with duckdb.connect() as source:
        owned_tables.create(source)
        world.load(source)
        postgres.copied(source, ("people", "orders", "items"), postgres_server, "owners_once")
    engine = postgres.engine(owned_tables.tables("house"), postgres_server, "owners_once")
    try:
        # by hand: the items of orders a1, a2 and b1; in the left join also a person and an order without a number
        for name, expected in (("from the item up", {1: 5, 2: 2}), ("person kept", {1: 7, 2: 2})):
            rel = whole(JOINS[name][0], "house")
            text = listed(render.relation(rel, POSTGRES), rel, POSTGRES)
            assert Counter(engine.run(text).through(lambda arrays: arrays[UNIT].tolist())) == expected
    finally:
        engine.close()
        postgres_server.run("DROP DATABASE owners_once WITH (FORCE)")
