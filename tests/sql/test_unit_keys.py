"""Where owners are found through keys, subqueries, groups and windows need no privacy ID: a key names the owner."""

import random
from collections import Counter

import duckdb
import pytest
from tests.fixtures import owned_tables
from tests.fixtures.owned_tables import World
from tests.sql.test_references import some_world

from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind

QUERIES = """
SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.part = o.part AND i.number = o.number)
SELECT count(*) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.part = o.part AND number = o.number)
SELECT count(*) FROM orders WHERE (part, number) IN (SELECT part, number FROM items GROUP BY 1, 2 HAVING count(*) > 1)
SELECT count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id)
SELECT count(*) FROM people p WHERE (SELECT count(*) FROM orders o WHERE o.person = p.id) > 1
SELECT count(*) FROM (SELECT part, number, sum(x) AS s FROM items GROUP BY part, number) WHERE s > 9
SELECT count(*) FROM (SELECT DISTINCT part, number FROM items)
SELECT count(*) FROM (SELECT x, row_number() OVER (PARTITION BY part, number ORDER BY x) AS k FROM items) WHERE k = 2
SELECT count(*) FROM (SELECT rank() OVER (PARTITION BY person ORDER BY part) AS k FROM orders) WHERE k = 1
""".strip().splitlines()
ASTRAY = {
    "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.number = o.number)": "HB740",
    "SELECT count(*) FROM orders JOIN (SELECT part, sum(x) AS s FROM items GROUP BY part) USING (part)": "HB514",
    "SELECT count(*) FROM (SELECT lag(x) OVER (PARTITION BY part ORDER BY x) AS k FROM items)": "HB741",
    "SELECT count(*) FROM (SELECT lag(x) OVER (PARTITION BY part, number + 0 ORDER BY x) AS k FROM items)": "HB741",
}


def keyed(world: World, table: str, row: tuple[object, ...], unit: str) -> bool:
    """Tell whether a row has an owner and a key."""
    return world.owner(table, row, unit) is not None and None not in row[: 1 if table == "people" else 2]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("unit", ["house", "id"])
def test_groups_and_windows_by_keys_are_those_of_the_engine(text: str, unit: str) -> None:
    """The oracle is DuckDB on the same text over the rows with an owner and a key, in 6 datasets."""
    relation, chance, sizes = bind(text, tables=owned_tables.tables(unit)).relation, random.Random(text), Counter[int]()
    with duckdb.connect(config={"threads": 1}) as connection:
        owned_tables.create(connection)
        for _ in range(6):
            world = some_world(chance)
            owned = World(
                *(
                    tuple(row for row in getattr(world, name) if keyed(world, name, row, unit))
                    for name in ("people", "orders", "items")
                )
            )
            owned.load(connection)
            mine = connection.execute(f"SELECT count(*) FROM ({render.relation(relation)})").fetchone()
            assert mine == connection.execute(text).fetchone()
            sizes[0 if mine is None else int(mine[0])] += 1
    assert len(sizes) > 1  # the datasets differ


@pytest.mark.parametrize("unit", ["house", "id"])
@pytest.mark.parametrize("text", QUERIES)
def test_removing_a_unit_removes_its_rows_and_changes_no_others(text: str, unit: str) -> None:
    relation = bind(text, tables=owned_tables.tables(unit)).relation
    rows = f"SELECT * FROM ({render.relation(relation)})"
    with duckdb.connect(config={"threads": 1}) as connection:
        owned_tables.create(connection)
        world = some_world(random.Random(5))
        world.load(connection)
        whole = Counter(map(repr, connection.execute(rows).fetchall()))
        units = Counter(row[0] for row in connection.execute(rows).fetchall())
        for gone in (1, 2, 3, 4):
            world.without(gone, unit).load(connection)
            rest = connection.execute(rows).fetchall()
            assert Counter(row[0] for row in rest) == Counter({u: n for u, n in units.items() if u != gone})
            assert Counter(map(repr, rest)) <= whole


@pytest.mark.parametrize("text", ASTRAY)
def test_what_follows_no_key_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind(text, tables=owned_tables.tables())
    assert refused.value.code == ASTRAY[text]
