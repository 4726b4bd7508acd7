"""LATERAL, subqueries in ON, DISTINCT over windows and sets with ALL: the same tree, the same rows, or a refusal."""

import random
from collections import Counter

import duckdb
import pytest
from tests.fixtures.unit_tables import bound, check_neighbors, filled

from hubbub.sql import render, spelling_clauses
from hubbub.sql.parse import parse
from hubbub.sql.relations import columns

EQUAL = {
    ("duckdb", "SELECT l.x FROM v CROSS JOIN LATERAL (SELECT v.n + 1 AS x) AS l WHERE x > 2"): (
        "SELECT (v.n + 1) AS x FROM v WHERE (v.n + 1) > 2"
    ),
    (
        "duckdb",
        "SELECT p.id FROM p LEFT JOIN LATERAL (SELECT COUNT(*) AS k FROM v WHERE v.id = p.id) AS l ON TRUE WHERE k > 1",
    ): ("SELECT p.id FROM p WHERE (SELECT COUNT(*) FROM v WHERE v.id = p.id) > 1"),
    ("tsql", "SELECT l.n FROM p CROSS APPLY (SELECT TOP 1 v.n FROM v WHERE v.id = p.id ORDER BY v.day) AS l"): (
        'SELECT l.n FROM p JOIN (SELECT v.n, v.id AS "l$1" FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY v.id '
        'ORDER BY v.day NULLS FIRST) <= 1) AS l ON "l"."l$1" = p.id'
    ),
    ("tsql", "SELECT l.n FROM p OUTER APPLY (SELECT TOP 1 v.n FROM v WHERE v.id = p.id ORDER BY v.day) AS l"): (
        'SELECT l.n FROM p LEFT JOIN (SELECT v.n, v.id AS "l$1" FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY v.id '
        'ORDER BY v.day NULLS FIRST) <= 1) AS l ON "l"."l$1" = p.id'
    ),
    ("duckdb", "SELECT p.id FROM p JOIN v ON v.id = p.id AND v.n IN (SELECT beds FROM w) WHERE p.age > 3"): (
        "SELECT p.id FROM p JOIN v ON v.id = p.id WHERE p.age > 3 AND v.n IN (SELECT beds FROM w)"
    ),
    ("duckdb", "SELECT p.id FROM p LEFT JOIN v ON v.id = p.id AND v.n IN (SELECT beds FROM w)"): (
        "SELECT p.id FROM p LEFT JOIN (SELECT * FROM v WHERE v.n IN (SELECT beds FROM w)) AS v ON v.id = p.id"
    ),
}
SELECTS = """
SELECT l.id, l.x AS x FROM p CROSS JOIN LATERAL (SELECT v.id, v.n AS x FROM v WHERE v.id = p.id ORDER BY v.day, v.code, v.cost, v.n, v.ok LIMIT 2) AS l
SELECT p.id, l.x AS x FROM p LEFT JOIN LATERAL (SELECT v.n AS x FROM v WHERE v.id = p.id AND v.code = 'A' ORDER BY v.day, v.code, v.cost, v.n, v.ok LIMIT 1) AS l ON TRUE
SELECT p.id, l.c + 0 AS x FROM p, LATERAL (SELECT COUNT(*) AS c FROM v WHERE v.id = p.id AND v.n > 1) AS l
SELECT DISTINCT id, MAX(n) OVER (PARTITION BY id) AS x FROM v
SELECT id, n AS x FROM v WHERE code = 'A' INTERSECT ALL SELECT id, n FROM v WHERE ok
SELECT id, n AS x FROM v EXCEPT ALL SELECT id, n FROM v WHERE ok
SELECT id, n AS x FROM v EXCEPT ALL SELECT id, age FROM p
SELECT id, n AS x FROM v WHERE ok EXCEPT ALL SELECT id, 1 FROM p
""".strip().splitlines()  # noqa: E501


def asked(select: str) -> str:
    return f"SELECT COUNT(x) FROM ({select}) AS q"


def values(rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(None if value is None else float(str(value)) for value in row) for row in rows)


@pytest.fixture(scope="module")
def worlds() -> list[duckdb.DuckDBPyConnection]:
    connections = [filled(random.Random(seed), units=7, visits=20) for seed in range(3)]
    for connection in connections:
        connection.execute("DELETE FROM p WHERE id IS NULL; DELETE FROM v WHERE id IS NULL")
    return connections


@pytest.mark.parametrize(("dialect", "text"), EQUAL)
def test_a_clause_is_read_as_what_it_stands_for(dialect: str, text: str) -> None:
    mine, other = parse(text, dialect=dialect)[0], parse(EQUAL[dialect, text])[0]
    assert mine.sql(dialect="duckdb") == other.sql(dialect="duckdb")


@pytest.mark.parametrize("select", SELECTS)
def test_rows_are_those_of_the_engine(select: str, worlds: list[duckdb.DuckDBPyConnection]) -> None:
    """The oracle is DuckDB on the same text."""
    rel = bound(asked(select))
    (shown,) = (column.name for column in columns(rel) if column.name.split("_")[0] in ("x", "u", "k"))
    for connection in worlds:
        mine = connection.execute(f'SELECT "$unit", "{shown}" FROM ({render.relation(rel)})').fetchall()
        assert values(mine) == values(connection.execute(f"SELECT id, x FROM ({select})").fetchall())


def test_removing_a_unit_removes_its_rows_and_changes_no_others() -> None:
    check_neighbors([asked(select) for select in SELECTS], filled(random.Random(7)))


def test_rows_that_are_not_numbered_among_their_equals_are_noticed(
    monkeypatch: pytest.MonkeyPatch, worlds: list[duckdb.DuckDBPyConnection]
) -> None:
    """Planted: EXCEPT ALL is read as EXCEPT."""
    monkeypatch.setattr(spelling_clauses, "_numbered", lambda query, _: query.copy())
    with pytest.raises(AssertionError):
        test_rows_are_those_of_the_engine(SELECTS[5], worlds)


def test_a_subquery_that_reads_another_table_stays_in_a_left_join() -> None:
    text = "SELECT p.id FROM p LEFT JOIN v ON v.id = p.id AND EXISTS (SELECT 1 FROM w WHERE w.beds = p.age)"
    assert "LEFT JOIN v ON" in parse(text)[0].sql(dialect="duckdb")
