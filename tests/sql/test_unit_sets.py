"""Set operations, DISTINCT ON, semi and anti joins, and groups by keys: what SQL says, within one unit."""

import random
from dataclasses import replace

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES, bound, check_neighbors, filled
from tests.sql.test_windows import ALL, asked, values

from hubbub.core.schema import Column, Kind
from hubbub.errors import QueryError
from hubbub.sql import fanout, render
from hubbub.sql.bind import bind
from hubbub.sql.relations import columns

V = "(SELECT n, id, code FROM v) b"
SELECTS = f"""
SELECT id, n AS x FROM v WHERE code = 'A' UNION SELECT id, n FROM v WHERE ok
SELECT id, n AS x FROM v WHERE code = 'A' INTERSECT SELECT id, n FROM v WHERE ok
SELECT id, n AS x FROM v EXCEPT SELECT id, n FROM v WHERE code = 'A'
SELECT id, x FROM (SELECT id, code, cost AS x FROM v EXCEPT SELECT id, code, cost FROM v WHERE ok) s
SELECT id, age AS x FROM p WHERE id IN (SELECT id FROM v WHERE code = 'A' EXCEPT SELECT id FROM v WHERE code = 'B')
SELECT id, n + 0.5 AS x FROM v UNION SELECT id, age FROM p UNION SELECT id, 1 FROM v
SELECT DISTINCT ON (id) id, n AS x FROM v ORDER BY id, {ALL}
SELECT DISTINCT ON (id, code) id, n AS x FROM v ORDER BY id, code, day DESC, cost DESC, n DESC, ok DESC
SELECT DISTINCT ON (1) id, n AS x FROM v ORDER BY 1, 2 DESC NULLS LAST
SELECT DISTINCT ON (id) id, -n AS x FROM v WHERE n IS NOT NULL ORDER BY id, x
SELECT id, n AS x FROM (SELECT DISTINCT ON (id) id, -n AS n FROM v WHERE n IS NOT NULL ORDER BY id, n) s
SELECT DISTINCT id, n AS x FROM v
SELECT id, x FROM (SELECT * FROM (SELECT beds, code AS c FROM w) a JOIN {V} ON c = code) AS t (x, c, n, id, code)
SELECT id, x FROM (SELECT * FROM (SELECT age, id FROM p) a RIGHT JOIN {V} USING (id)) AS t (x, id, n, code)
SELECT id, x FROM (SELECT * FROM (SELECT code, beds FROM w) a JOIN {V} USING (code)) AS t (code, x, n, id)
SELECT id, CASE WHEN BOOL_OR(ok) THEN 1 WHEN BOOL_AND(n > 1) THEN 2 END AS x FROM v GROUP BY id
SELECT v.id, n AS x FROM v SEMI JOIN w USING (code)
SELECT v.id, n AS x FROM v ANTI JOIN w ON v.code = w.code
SELECT p.id, age AS x FROM p SEMI JOIN v ON p.id = v.id AND p.age = v.n
SELECT p.id, age AS x FROM p ANTI JOIN (SELECT id FROM v WHERE code = 'A') b ON p.id = b.id
""".strip().splitlines()


@pytest.fixture(scope="module")
def worlds() -> list[duckdb.DuckDBPyConnection]:
    """Several tables, without the rows that belong to nobody."""
    connections = [filled(random.Random(seed), visits=25) for seed in range(3)]
    for connection in connections:
        connection.execute("DELETE FROM p WHERE id IS NULL; DELETE FROM v WHERE id IS NULL")
    return connections


@pytest.mark.parametrize("select", SELECTS)
def test_values_are_those_of_the_engine(select: str, worlds: list[duckdb.DuckDBPyConnection]) -> None:
    """The oracle is DuckDB on the same text."""
    rel = bound(asked(select))
    query = bind(asked(select), tables=TABLES)
    (argument,) = query.aggregates[0].arguments
    shown = next(column.name for column in columns(rel) if column.name == getattr(argument, "name", ""))
    for connection in worlds:
        mine = connection.execute(f'SELECT "$unit", "{shown}" FROM ({render.relation(rel)})').fetchall()
        assert values(mine) == values(connection.execute(f"SELECT id, x FROM ({select})").fetchall())


def test_removing_a_unit_removes_its_rows_and_changes_no_others() -> None:
    check_neighbors([asked(select) for select in SELECTS], filled(random.Random(7)))


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("SELECT n AS x FROM v UNION SELECT n FROM v", "HB743", "privacy ID"),
        ("SELECT n AS x FROM v INTERSECT SELECT n FROM v WHERE ok", "HB743", "privacy ID"),
        ("SELECT n AS x FROM v EXCEPT SELECT n FROM v WHERE ok", "HB743", "privacy ID"),
        ("SELECT id, n AS x FROM v EXCEPT ALL SELECT * FROM (SELECT id, n FROM v WHERE ok)", "HB743", "NOT EXISTS"),
        ("SELECT id, n AS x FROM v EXCEPT SELECT n, n FROM v", "HB519", "CAST"),
        ("SELECT n AS x FROM r UNION SELECT n FROM r", "HB519", "separately"),
        ("SELECT code, n AS x FROM v EXCEPT SELECT code, beds FROM w", "HB519", "on its own"),
        ("SELECT DISTINCT ON (code) id, n AS x FROM v ORDER BY code, day", "HB741", "PARTITION BY id"),
        ("SELECT DISTINCT ON (id) id, n AS x FROM v GROUP BY id, n", "HB503", "subquery"),
        (
            "SELECT DISTINCT ON (id) id, RANK() OVER (PARTITION BY id ORDER BY n) AS x FROM v ORDER BY x",
            "HB742",
            "subq",
        ),
        ("SELECT v.n AS x FROM v SEMI JOIN p ON v.n = p.age", "HB513", "privacy ID"),
        ("SELECT w.beds AS x FROM w SEMI JOIN v ON v.code = w.code", "HB513", "Swap"),
        ("SELECT v.n AS x FROM v ANTI JOIN p ON v.id = p.id AND v.n < p.age", "HB513", "EXISTS"),
        ("SELECT id, CASE WHEN BOOL_OR(n) THEN 1 END AS x FROM v GROUP BY id", "HB508", "comparison"),
        ("SELECT r.n AS x FROM r SEMI JOIN v ON v.n = r.n", "HB513", "on its own"),
    ],
)
def test_refusals_name_the_reason_and_the_remedy(text: str, code: str, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind(asked(text), tables=TABLES)
    assert (refused.value.code, says in refused.value.remedy) == (code, True), str(refused.value)


def test_bool_or_over_several_people_is_refused() -> None:
    with pytest.raises(QueryError) as refused:
        bind("SELECT BOOL_OR(ok) FROM v", tables=TABLES)
    assert (refused.value.code, "COUNT_IF" in refused.value.remedy) == ("HB512", True)


def test_rows_that_are_units_are_not_cut_where_a_public_key_occurs_twice() -> None:
    """All values outside the declared list are read as one, so the key is not unique; such keys match nothing."""
    code = Column("code", Kind.TEXT, values=("A", "B"), other="C")
    wards = replace(TABLES["w"], columns=(code, *TABLES["w"].columns[1:]), unique=("code",), repeats={"code": 2})
    query = bind("SELECT COUNT(*) FROM r JOIN w USING (code) WHERE beds > 0", tables={**TABLES, "w": wards})
    rel = fanout.bound_joins(query.relation, fanout.TruncationBounds(None, None, "s", "portable")).rel
    connection = filled(random.Random(1))
    connection.execute("DELETE FROM w; INSERT INTO w VALUES ('A', 'x', 1), ('C', 'x', 2), ('D', 'y', 3)")
    matched = connection.execute(f"SELECT count(*) FROM ({render.relation(rel)})").fetchall()
    assert matched == connection.execute("SELECT count(*) FROM r WHERE code = 'A'").fetchall()
