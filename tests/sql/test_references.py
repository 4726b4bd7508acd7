"""Joins along keys: which are accepted, that their rows are those of the join as written, and how many there are."""

import random
from collections import Counter
from fractions import Fraction
from functools import cache

import duckdb
import pytest
from tests.fixtures import owned_tables
from tests.fixtures.owned_tables import World

from hubbub.errors import QueryError
from hubbub.sql import fanout, render
from hubbub.sql.bind import bind
from hubbub.sql.plan import plan
from hubbub.sql.relations import Join, Rel

#: FROM clauses whose joins follow keys; the tables on their way have all their owners.
ALONG = {
    "child and parent": "items i JOIN orders o ON i.part = o.part AND i.number = o.number",
    "parent and child": "orders o JOIN items i ON i.number = o.number AND o.part = i.part",
    "using": "items i JOIN orders o USING (part, number)",
    "two children of one parent": "items i JOIN items o ON i.part = o.part AND i.number = o.number",
    "two steps": "items i JOIN orders o USING (part, number) JOIN people p ON o.person = p.id",
    "from the person down": "people p JOIN orders o ON o.person = p.id JOIN items i USING (part, number)",
    "siblings": "orders o JOIN orders q ON o.person = q.person",
    "subquery": (
        "(SELECT part AS a, number AS b FROM items WHERE x > 0) i JOIN orders o ON i.a = o.part AND i.b = o.number"
    ),
    "union": (
        "(SELECT part, number FROM items UNION ALL SELECT part, number FROM orders) i "
        "JOIN orders o USING (part, number)"
    ),
    "left join": "items i LEFT JOIN orders o ON i.part = o.part AND i.number = o.number",
}
ASTRAY = {
    "half of a key": "items i JOIN orders o ON i.part = o.part",
    "columns crossed": "orders o JOIN people p ON o.number = p.id",
    "no key": "items i JOIN people p ON i.x = p.age",
    "computed": "items i JOIN orders o ON i.part = o.part AND i.number + 0 = o.number",
    "another key's column": "items i JOIN orders o ON i.part = o.part AND i.number = o.person",
}


#: Subqueries along keys: groups of a reference, and rows that are matched by a key alone.
WITHIN = {
    "groups of a reference": "(SELECT part, number, count(*) AS n FROM items GROUP BY part, number) g WHERE n > 1",
    "groups of a filtered join": (
        "(SELECT i.part AS a, i.number AS b, sum(least(x, 9)) AS s FROM items i JOIN orders o USING (part, number) "
        "WHERE x < 50 GROUP BY i.part, i.number) g WHERE s > 3"
    ),
    "distinct references": "(SELECT DISTINCT part, number FROM items) g",
    "window": (
        "(SELECT part, number, row_number() OVER (PARTITION BY part, number ORDER BY x) AS i FROM items) w WHERE i = 2"
    ),
    "exists": "orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.part = o.part AND i.number = o.number AND i.x > 1)",
    "not exists": (
        "orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.part = o.part AND i.number = o.number AND i.x > 9)"
    ),
    "groups of an own key": "(SELECT part, number, person, count(*) AS n FROM orders GROUP BY 1, 2, 3) g WHERE n = 1",
    "exists among siblings": (
        "items i WHERE EXISTS (SELECT 1 FROM items j WHERE j.part = i.part AND j.number = i.number AND j.x <> i.x)"
    ),
    "in": "orders WHERE (part, number) IN (SELECT part, number FROM items WHERE x > 1)",
    "in groups": (
        "orders WHERE (part, number) IN (SELECT part, number FROM items GROUP BY part, number HAVING count(*) > 1)"
    ),
    "scalar": (
        "items i WHERE i.x > (SELECT avg(least(j.x, 99)) FROM items j WHERE j.part = i.part AND j.number = i.number)"
    ),
}
#: Groups that could bring rows of several owners together: they are released, and counted by their noisy counts.
APART = {
    "half of a key": "(SELECT part, count(*) AS n FROM items GROUP BY part) g WHERE n > 1",
    "right side of a left join": (
        "(SELECT i.part AS a, i.number AS b, count(*) AS n FROM orders o LEFT JOIN items i ON i.part = o.part "
        "AND i.number = o.number GROUP BY i.part, i.number) g WHERE n > 1"
    ),
    "computed": "(SELECT part, number + 0, count(*) AS n FROM items GROUP BY 1, 2) g WHERE n > 1",
}
#: Matches that no key decides, each with its code.
UNMATCHED = {
    "exists by half of a key": ("orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.part = o.part)", "HB740"),
    "window over half of a key": (
        "(SELECT part, row_number() OVER (PARTITION BY part ORDER BY x) AS i FROM items) w WHERE i = 2",
        "HB741",
    ),
    "not in by a key": ("orders WHERE (part, number) NOT IN (SELECT part, number FROM items)", "HB739"),
}


def joined(text: str, unit: str = "house") -> Rel:
    return bind(f"SELECT count(*) FROM {text}", tables=owned_tables.tables(unit)).relation


def some_world(chance: random.Random) -> World:
    """Draw a world with unique keys, many matches, NULLs and dangling references."""
    people = [(n, chance.choice((None, 1, 2, 3))) for n in (1, 2, 3, 4)] + [(None, 1)]
    keys = [(part, n) for part in ("a", "b") for n in (1, 2, 3)]
    orders = [(*key, chance.choice((None, 1, 2, 3, 4, 9))) for key in chance.sample(keys, 4)] + [(None, 1, 1)]
    items = [(chance.choice("aabbz"), chance.choice((1, 2, 2, 3, None)), n) for n in range(12)]
    return World(tuple(people), tuple(orders), tuple(items))


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("unit", ["house", "id"])
def test_a_join_along_keys_has_the_rows_of_the_join_as_written(name: str, unit: str) -> None:
    assert len(sizes_as_written(ALONG[name], unit, name)) > 3  # the datasets differ


@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("unit", ["house", "id"])
def test_groups_of_a_key_are_those_of_the_query_as_written(name: str, unit: str) -> None:
    assert len(sizes_as_written(WITHIN[name], unit, name)) > 1


def sizes_as_written(text: str, unit: str, seed: str) -> Counter[int]:
    """Compare the number of rows with that of the plain text over the rows with an owner, in 10 datasets."""
    relation, chance, sizes = joined(text, unit), random.Random(f"{seed} {unit}"), Counter[int]()
    with duckdb.connect(config={"threads": 1}) as connection:
        owned_tables.create(connection)
        for _ in range(10):
            world = some_world(chance)
            world.load(connection)
            mine = connection.execute(f"SELECT count(*) FROM ({render.relation(relation)})").fetchone()
            owned = World(
                *(
                    tuple(row for row in getattr(world, table) if world.owner(table, row, unit) is not None)
                    for table in ("people", "orders", "items")
                )
            )
            owned.load(connection)
            assert mine == connection.execute(f"SELECT count(*) FROM {text}").fetchone()
            sizes[0 if mine is None else int(mine[0])] += 1
    return sizes


@pytest.mark.parametrize("name", APART)
def test_a_reference_that_can_be_null_names_no_owner(name: str) -> None:
    query = bind(f"SELECT count(*) FROM {APART[name]}", tables=owned_tables.tables())
    assert query.after is not None
    assert bind(f"SELECT count(*) FROM {WITHIN['groups of a reference']}", tables=owned_tables.tables()).after is None


def test_rows_without_a_key_form_one_group_for_each_owner() -> None:
    """SQL has one group for all of them; each owner's rows must not depend on those of another."""
    relation = joined("(SELECT part, number, count(*) AS n FROM orders GROUP BY part, number) g WHERE n > 1", "id")
    orders = tuple((None, 1, person) for person in (1, 1, 2, 2, 3))
    with duckdb.connect(config={"threads": 1}) as connection:
        owned_tables.create(connection)
        World(((1, 1), (2, 2), (3, 3)), orders, ()).load(connection)
        rows = connection.execute(f'SELECT "$unit" FROM ({render.relation(relation)}) ORDER BY 1').fetchall()
    assert rows == [(1,), (2,)]


@pytest.mark.parametrize("name", UNMATCHED)
def test_a_subquery_that_follows_no_key_is_refused(name: str) -> None:
    text, code = UNMATCHED[name]
    with pytest.raises(QueryError) as refused:
        joined(text)
    assert refused.value.code == code


@pytest.mark.parametrize("name", WITHIN)
def test_removing_an_owner_removes_its_rows_of_a_subquery_along_a_key(name: str) -> None:
    """Over all small worlds, each unit, NULL owners and dangling keys among them: no other row changes."""
    relation = joined(WITHIN[name])
    rows = f'SELECT "$unit", count(*) FROM ({render.relation(relation)}) GROUP BY ALL'
    with duckdb.connect(config={"threads": 1}) as connection:
        owned_tables.create(connection)

        @cache  # a world without an owner is often another's as well
        def owners(world: World) -> dict[int, int]:
            world.load(connection)
            return dict(connection.execute(rows).fetchall())

        moved = 0
        for world in owned_tables.worlds([(1, 2), (1, 1), (None, 2)]):
            whole = owners(world)
            for gone in (1, 2):
                fewer = owners(world.without(gone, "house"))
                assert fewer == {owner: count for owner, count in whole.items() if owner != gone}
                moved += fewer != whole
    assert moved > 3


@pytest.mark.parametrize("name", ASTRAY)
def test_a_join_that_follows_no_key_is_refused(name: str) -> None:
    with pytest.raises(QueryError) as refused:
        joined(ASTRAY[name])
    assert refused.value.code == "HB513"
    assert "declared key" in refused.value.remedy


def test_without_a_declared_key_there_is_no_join_along_it() -> None:
    declared = owned_tables.tables()
    declared["people"] = type(declared["people"])("people", declared["people"].columns, declared["people"].unit)
    text = "SELECT count(*) FROM people p JOIN people q ON p.id = q.id"
    with pytest.raises(QueryError):
        bind(text, tables=declared)
    assert bind(text, tables=owned_tables.tables()).aggregates


@pytest.mark.parametrize("name", ["child and parent", "parent and child", "two steps", "from the person down"])
def test_no_row_matches_twice_where_the_plan_says_once(name: str) -> None:
    """No join along keys is cut, or bounded by a product: it has no more rows than there are items."""
    relation, chance, largest = joined(ALONG[name]), random.Random(name), 0
    bounds = fanout.TruncationBounds(None, None, "s", "engine")
    assert fanout.bound_joins(relation, bounds).joins == ()
    assert (fanout.contribution(relation).groups, fanout.contribution(relation).rows) == (1, 5)
    with duckdb.connect(config={"threads": 1}) as connection:
        owned_tables.create(connection)
        for _ in range(10):
            some_world(chance).load(connection)
            size = connection.execute(f"SELECT count(*) FROM ({render.relation(relation)})").fetchone()
            assert size is not None
            assert size[0] <= 12
            largest = max(largest, size[0])
    assert largest > 3


@pytest.mark.parametrize("name", ["two children of one parent", "siblings"])
def test_rows_that_share_a_parent_multiply(name: str) -> None:
    """Both sides have several rows for one key, so their bounds multiply."""
    assert fanout.contribution(joined(ALONG[name])).rows == 25


def test_a_left_join_whose_left_side_is_unique_keeps_both_bounds() -> None:
    """Orders without items stay beside the items of others, so neither side alone bounds the rows."""
    relation = joined("orders o LEFT JOIN items i ON i.part = o.part AND i.number = o.number")
    assert isinstance(relation, Join)
    assert fanout.contribution(relation).rows == 25


def test_the_derivation_names_the_way_to_the_owner() -> None:
    query = bind("SELECT count(*) FROM items", tables=owned_tables.tables())
    lines = plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s").derivation
    way = "the unit of the row of orders that part, number names of the row of people that person names"
    assert any(f"each row belongs to {way}" in line for line in lines)
