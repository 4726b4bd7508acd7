"""Outer joins of private tables: full joins, rows without a match, and a privacy ID that may be missing."""

import random
from collections import Counter

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES, bound, check_neighbors, filled

from hubbub.errors import QueryError
from hubbub.sql import bind_range_joins, fanout, render
from hubbub.sql.bind import bind
from hubbub.sql.bind_match import Match
from hubbub.sql.relations import columns

#: Few visits of each person, so that joins are not truncated.
_FEW = (
    "(SELECT id, code, day, n FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY day, code, n, cost, ok) < 4)"
)
#: Subqueries with the privacy ID and a column x, which mean the same in DuckDB over rows that have an owner.
SELECTS = f"""
SELECT id, age + coalesce(c, 0) AS x FROM p FULL JOIN (SELECT id, count(*) AS c FROM v GROUP BY id) AS t USING (id)
SELECT coalesce(p.id, t.id) AS id, c AS x FROM p FULL OUTER JOIN (SELECT id, count(*) AS c FROM v GROUP BY id) AS t ON p.id = t.id
SELECT coalesce(a.id, b.id) AS id, coalesce(a.n, 10 * b.n) AS x FROM {_FEW} AS a FULL JOIN {_FEW} AS b ON a.id = b.id AND a.n = b.n + 1
SELECT id, n + 0 AS x FROM {_FEW} AS a FULL JOIN (SELECT id, n, code FROM {_FEW} WHERE code = 'A') AS b USING (id, n)
SELECT id, CASE WHEN a.n IS NULL THEN 1 WHEN b.n IS NULL THEN 2 ELSE 3 END AS x FROM {_FEW} AS a FULL JOIN {_FEW} AS b USING (id, n, day)
SELECT id, CASE WHEN p.id IS NULL THEN 1 WHEN t.id IS NULL THEN 2 ELSE 3 END AS x FROM p FULL JOIN (SELECT DISTINCT id FROM v WHERE ok) AS t USING (id)
SELECT coalesce(p.id, t.id, s.id) AS id, c AS x FROM p FULL JOIN (SELECT id, count(*) AS c FROM v GROUP BY id) AS t ON p.id = t.id FULL JOIN (SELECT DISTINCT id FROM v WHERE n > 1) AS s ON coalesce(p.id, t.id) = s.id
SELECT coalesce(b.id, a.id) AS id, a.age AS x FROM p AS a LEFT JOIN (SELECT DISTINCT id FROM v) AS b ON a.id = b.id
SELECT p.id, age AS x FROM p LEFT JOIN v ON p.id = v.id WHERE v.id IS NULL
SELECT p.id, age AS x FROM p LEFT JOIN v ON p.id = v.id AND v.code = 'A' WHERE v.id IS NULL AND age > 2
SELECT p.id, coalesce(v.n, 7) AS x FROM p LEFT JOIN v ON p.id = v.id AND v.n = p.age WHERE v.n IS NULL
SELECT p.id, age AS x FROM v RIGHT JOIN p ON p.id = v.id AND v.ok WHERE v.id IS NULL
SELECT id, age AS x FROM p LEFT JOIN v USING (id) WHERE v.id IS NULL
SELECT p.id, age AS x FROM p LEFT JOIN (SELECT id FROM v WHERE code = 'B') AS b ON p.id = b.id LEFT JOIN (SELECT id FROM v WHERE code = 'C') AS c ON p.id = c.id WHERE b.id IS NULL AND c.id IS NULL
SELECT p.id, w.beds AS x FROM p LEFT JOIN v ON p.id = v.id AND v.code = 'A' LEFT JOIN w ON w.beds = p.age WHERE v.id IS NULL
SELECT p.id, CASE WHEN b.id IS NULL THEN 1 ELSE 0 END AS x FROM p LEFT JOIN (SELECT DISTINCT id FROM v WHERE ok) AS b ON p.id = b.id
SELECT id, age AS x FROM (SELECT p.id, age, b.id AS other FROM p LEFT JOIN (SELECT DISTINCT id FROM v WHERE ok) AS b ON p.id = b.id) WHERE other IS NOT NULL
SELECT id, age AS x FROM p LEFT JOIN (SELECT id AS who FROM v WHERE ok) AS b ON id = who WHERE who IS NULL
SELECT * FROM (SELECT id, age AS x FROM p LEFT JOIN (SELECT id AS who, n FROM v WHERE ok) AS b ON id = who WHERE n IS NULL)
SELECT p.id, count(v.id) AS x FROM p LEFT JOIN {_FEW} AS v ON p.id = v.id GROUP BY p.id
SELECT coalesce(p.id, v.id) AS id, count(v.id) + 100 * count(p.id) AS x FROM p FULL JOIN {_FEW} AS v ON p.id = v.id GROUP BY coalesce(p.id, v.id)
SELECT id, max(n) AS x FROM p FULL JOIN {_FEW} AS v USING (id) GROUP BY id
SELECT p.id, coalesce(v.n, -1) + 10 * age AS x FROM p LEFT JOIN {_FEW} AS v ON p.id = v.id AND v.n > p.age
SELECT p.id, CASE WHEN v.id IS NULL THEN 1 ELSE 0 END AS x FROM p LEFT JOIN {_FEW} AS v ON v.id = p.id AND p.age <= v.n AND p.age > 1
SELECT p.id, age AS x FROM p LEFT JOIN v ON p.id = v.id AND v.n <> p.age WHERE v.id IS NULL
SELECT p.id, v.n AS x FROM {_FEW} AS v RIGHT JOIN p ON p.id = v.id AND v.n < p.age AND v.code = 'A'
SELECT a.id, coalesce(b.n, -1) AS x FROM {_FEW} AS a LEFT JOIN {_FEW} AS b ON a.id = b.id AND b.code = a.code AND b.day > a.day
SELECT a.id, count(b.id) AS x FROM {_FEW} AS a LEFT JOIN {_FEW} AS b ON a.id = b.id AND a.n <> b.n GROUP BY a.id
SELECT v.id, v.n AS x FROM {_FEW} AS v JOIN (SELECT a.code, b.zone AS zone FROM w AS a FULL JOIN (SELECT code, zone FROM w WHERE beds > 1) AS b ON a.code = b.zone) AS u ON u.code = v.code
""".strip().splitlines()  # noqa: E501


def asked(select: str) -> str:
    """Return a query that reads only the column x."""
    return f"SELECT COUNT(x) FROM ({select}) AS q"


def values(rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(None if value is None else float(str(value)) for value in row) for row in rows)


@pytest.fixture(scope="module")
def worlds() -> list[duckdb.DuckDBPyConnection]:
    """Several tables, without the rows that belong to nobody; some people have no visits, and some visits no person."""
    connections = [filled(random.Random(seed), units=7, visits=20) for seed in range(3)]
    for connection in connections:
        connection.execute("DELETE FROM p WHERE id IS NULL OR id = 3; DELETE FROM v WHERE id IS NULL OR id = 1")
    return connections


@pytest.mark.parametrize("select", SELECTS)
def test_rows_are_those_of_the_engine(select: str, worlds: list[duckdb.DuckDBPyConnection]) -> None:
    """The oracle is DuckDB on the same text."""
    rel = bound(asked(select))
    (shown,) = (column.name for column in columns(rel) if column.name.startswith("x_"))
    for connection in worlds:
        mine = connection.execute(f'SELECT "$unit", "{shown}" FROM ({render.relation(rel)})').fetchall()
        assert values(mine) == values(connection.execute(f"SELECT id, x FROM ({select})").fetchall())


def test_removing_a_unit_removes_its_rows_and_changes_no_others() -> None:
    check_neighbors([asked(select) for select in SELECTS], filled(random.Random(7)))


def test_a_match_of_another_unit_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: whether a row has a match is looked up among the rows of everybody."""
    right = Match.group
    monkeypatch.setattr(
        Match, "group", lambda self, *given: right(Match(self.inner, self.pairs, unit=not self.pairs), *given)
    )
    with pytest.raises(AssertionError):
        check_neighbors([asked(select) for select in SELECTS[2:5]], filled(random.Random(7), visits=25))


@pytest.mark.parametrize("select", [select for select in SELECTS if " FULL " in select or "b.day > a.day" in select])
def test_no_unit_has_more_rows_than_the_plan_states(select: str, worlds: list[duckdb.DuckDBPyConnection]) -> None:
    query = bind(asked(select), tables=TABLES)
    limits = fanout.TruncationBounds(None, None, "s", "portable")
    made, stated = fanout.bound_joins(query.relation, limits), fanout.contribution(query.relation)
    for connection in worlds:
        text = f'SELECT count(*) AS n FROM ({render.relation(made.rel)}) GROUP BY "$unit"'
        rows = [int(n) for (n,) in connection.execute(text).fetchall()]
        assert max(rows) <= stated.groups * stated.rows
        assert made.most is None or max(rows) <= made.most


def test_a_full_join_of_summaries_has_one_row_for_each_person() -> None:
    """Where the join compares nothing but the privacy ID, a person is on one side or the other: noise of one row."""
    text = "SELECT COUNT(*) FROM p FULL JOIN (SELECT id, SUM(n) AS s FROM v GROUP BY id) AS t USING (id)"
    stated = fanout.contribution(bind(text, tables=TABLES).relation)
    assert stated.groups * stated.rows == 1
    text = "SELECT COUNT(*) FROM p FULL JOIN (SELECT id, MAX(n) AS age FROM v GROUP BY id) AS t USING (id, age)"
    stated = fanout.contribution(bind(text, tables=TABLES).relation)
    assert stated.groups * stated.rows == 2


def test_rows_without_a_match_are_not_multiplied() -> None:
    """LEFT JOIN … WHERE b.id IS NULL is an anti join: no side is truncated, and a row stays one row."""
    text = "SELECT COUNT(*) FROM v AS a LEFT JOIN v AS b ON a.id = b.id AND a.n = b.n AND b.ok WHERE b.id IS NULL"
    assert "Truncate" not in repr(bound(text))
    both = "SELECT COUNT(*) FROM v AS a LEFT JOIN v AS b ON a.id = b.id AND a.n = b.n AND b.ok"
    assert "Truncate" in repr(bound(both))
    kept = "SELECT COUNT(*) FROM p LEFT JOIN v ON p.id = v.id RIGHT JOIN v AS u ON u.id = p.id WHERE v.id IS NULL"
    assert "Truncate" in repr(bound(kept))  # a right join that follows adds rows of its own


def test_a_row_that_is_kept_beside_its_match_would_be_seen(
    monkeypatch: pytest.MonkeyPatch, worlds: list[duckdb.DuckDBPyConnection]
) -> None:
    """Planted: the comparison of a left join is forgotten where rows without a match are looked for."""
    monkeypatch.setattr(bind_range_joins, "matches_of", lambda right, pairs, _: Match(right, list(pairs), unit=True))
    (select,) = (select for select in SELECTS if "v.n > p.age" in select)
    with pytest.raises(AssertionError):
        test_rows_are_those_of_the_engine(select, worlds)


def test_a_privacy_id_that_nobody_tests_leaves_no_trace() -> None:
    text = "SELECT COUNT(v.n) FROM p LEFT JOIN v ON p.id = v.id"
    assert "$present" not in repr(bind(text, tables=TABLES).relation)
    assert "$present" in repr(bind(text.replace("v.n", "v.id"), tables=TABLES).relation)


def test_people_of_the_side_that_may_be_missing_are_counted() -> None:
    connection = filled(random.Random(3))
    text = "SELECT COUNT(DISTINCT v.id) FROM p LEFT JOIN v ON p.id = v.id"
    query = bind(text, tables=TABLES)
    assert query.aggregates[0].function == "count_units"
    where = query.aggregates[0].where
    assert where is not None
    rows = f"SELECT * FROM ({render.relation(bound(text))}) WHERE {render.expression(where)}"
    (mine,) = connection.execute(f'SELECT count(DISTINCT "$unit") FROM ({rows})').fetchone() or ()
    assert (mine,) == connection.execute(text).fetchone()


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("SELECT COUNT(*) FROM v FULL JOIN w ON v.code = w.code", "HB513", "LEFT JOIN"),
        ("SELECT COUNT(*) FROM w FULL JOIN v USING (code)", "HB513", "no person"),
        ("SELECT COUNT(*) FROM p FULL JOIN v ON p.id = v.id AND v.ok", "HB513", "subquery"),
        ("SELECT COUNT(*) FROM p FULL JOIN v ON p.age = v.n", "HB513", "different people"),
        ("SELECT COUNT(*) FROM p LEFT JOIN v ON p.id = v.id AND v.n > p.age AND v.n < 2 * p.age", "HB513", "once"),
        ("SELECT COUNT(*) FROM p LEFT JOIN v ON p.id = v.id AND v.n + p.age = 3", "HB513", "once"),
        ("SELECT COUNT(*) FROM v LEFT JOIN w ON v.code = w.code AND v.n > w.beds", "HB513", "two private"),
        ("SELECT COUNT(*) FROM r FULL JOIN r AS s ON r.n = s.n", "HB513", "row-level"),
        ("SELECT COUNT(*) FROM p FULL JOIN v ON p.id = v.id JOIN v AS u ON u.id = v.id", "HB516", "COALESCE"),
        ("SELECT v.id, COUNT(*) FROM p LEFT JOIN v ON p.id = v.id GROUP BY v.id", "HB516", "missing"),
        ("SELECT COUNT(*) FROM p LEFT JOIN v ON p.id = v.id WHERE v.id > 3", "HB516", "IS NULL"),
        (
            "SELECT COUNT(*) FROM (SELECT COUNT(*) AS c FROM p FULL JOIN v ON p.id = v.id GROUP BY p.id) s",
            "HB5",
            "COALESCE",
        ),
    ],
)
def test_refusals_say_what_to_do(text: str, code: str, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind(text, tables=TABLES)
    assert refused.value.code.startswith(code)
    assert says in str(refused.value)
