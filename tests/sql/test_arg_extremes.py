"""ARG_MIN and ARG_MAX within a unit: the value at an extreme, whatever the order of the rows."""

import random
from collections import Counter

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES, bound, check_neighbors, filled, owned_rows

from hubbub.errors import QueryError
from hubbub.sql import render, windows
from hubbub.sql.bind import bind
from hubbub.sql.expressions import facts
from hubbub.sql.relations import columns

_COUNTS = "FILTER (WHERE {0} IS NOT NULL AND {1} IS NOT NULL)"
#: The aggregate, and the same by sorting a list: rows that tie are sorted by the value, least first.
AGGREGATES = {
    "ARG_MIN(n, day)": f"list(n ORDER BY day, n) {_COUNTS.format('n', 'day')}[1]",
    "MAX_BY(n, day)": f"list(n ORDER BY day DESC, n) {_COUNTS.format('n', 'day')}[1]",
    "ARG_MAX(cost, n)": f"list(cost ORDER BY n DESC, cost) {_COUNTS.format('cost', 'n')}[1]",
    "MIN_BY(n, code)": f"list(n ORDER BY code, n) {_COUNTS.format('n', 'code')}[1]",
    "ARG_MIN(n + 1, -cost)": f"list(n + 1 ORDER BY -cost, n) {_COUNTS.format('n', 'cost')}[1]",
    "ARG_MAX(n, day) FILTER (WHERE ok)": "list(n ORDER BY day DESC, n) FILTER (WHERE n IS NOT NULL AND ok)[1]",
    "ARG_MAX_NULL(n, day)": "list(n ORDER BY day DESC, n NULLS LAST)[1]",
    "ARG_MIN_NULL(n, cost)": "list(n ORDER BY cost, n NULLS LAST) FILTER (WHERE cost IS NOT NULL)[1]",
    "ARG_MAX(n, day) - ARG_MIN(n, day)": "list(n ORDER BY day DESC, n) FILTER (WHERE n IS NOT NULL)[1] - "
    "list(n ORDER BY day, n) FILTER (WHERE n IS NOT NULL)[1]",
    "CASE WHEN ARG_MAX(ok, day) THEN 1 ELSE 0 END": "CASE WHEN list(ok ORDER BY day DESC, ok) FILTER (WHERE ok IS NOT "
    "NULL)[1] THEN 1 ELSE 0 END",
    "length(ARG_MIN(code, day)) + COUNT(*)": "length(list(code ORDER BY day) FILTER (WHERE code IS NOT NULL)[1]) + "
    "COUNT(*)",
}
#: Subqueries with a column x; {} is the aggregate.
SHAPES = (
    "SELECT id, {} AS x FROM v GROUP BY id",
    "SELECT id, {} AS x FROM v WHERE n > 0 GROUP BY id, code",
    "SELECT id, {} AS x FROM p JOIN v USING (id) GROUP BY id, sex HAVING COUNT(*) > 1",
    "SELECT p.id, (SELECT {} FROM v WHERE v.id = p.id AND v.n = p.age) AS x FROM p",
)
PAIRS = [(shape.format(a), shape.format(b)) for a, b in AGGREGATES.items() for shape in SHAPES]
SELECTS = [asked for asked, _ in PAIRS]


def asked(select: str) -> str:
    """Return a query that reads only the column x."""
    return f"SELECT COUNT(x) FROM ({select}) AS q"


def values(rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(None if value is None else round(float(str(value)), 9) + 0.0 for value in row) for row in rows)


@pytest.fixture(scope="module")
def worlds() -> list[duckdb.DuckDBPyConnection]:
    """Several tables with many ties, without the rows that belong to nobody."""
    connections = [filled(random.Random(seed), visits=25) for seed in range(3)]
    for connection in connections:
        connection.execute("DELETE FROM p WHERE id IS NULL; DELETE FROM v WHERE id IS NULL")
    return connections


def test_values_are_those_of_a_sorted_list(worlds: list[duckdb.DuckDBPyConnection]) -> None:
    for text, oracle in PAIRS:
        rel = bound(asked(text))
        (shown,) = (column.name for column in columns(rel) if column.name.startswith("x_"))
        for connection in worlds:
            mine = connection.execute(f'SELECT "$unit", "{shown}" FROM ({render.relation(rel)})').fetchall()
            assert values(mine) == values(connection.execute(f"SELECT id, x FROM ({oracle})").fetchall()), text


def test_without_ties_values_are_those_of_the_same_text_in_duckdb() -> None:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(
        "CREATE TABLE v AS SELECT i % 3 AS id, 'ABC'[1 + i % 3] AS code, DATE '2024-01-01' + i::INTEGER AS day, "
        "i / 100 AS cost, CASE WHEN i % 5 > 0 THEN i % 4 END AS n, true AS ok FROM range(20) AS r(i)"
    )
    for aggregate in ("ARG_MIN(n, day)", "MAX_BY(n, day)", "ARG_MIN_NULL(n, day)", "ARG_MAX(n, cost)"):
        select = f"SELECT id, {aggregate} AS x FROM v GROUP BY id"
        rel = bound(asked(select))
        (shown,) = (column.name for column in columns(rel) if column.name.startswith("x_"))
        mine = connection.execute(f'SELECT "$unit", "{shown}" FROM ({render.relation(rel)})').fetchall()
        assert values(mine) == values(connection.execute(select).fetchall()), aggregate


def test_removing_a_unit_removes_its_rows_and_changes_no_others() -> None:
    check_neighbors([asked(select) for select in SELECTS], filled(random.Random(7)))


def test_the_value_of_other_units_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: windows are not partitioned by the unit."""
    right = windows._over
    monkeypatch.setattr(windows, "_over", lambda function, _, *rest, **options: right(function, [], *rest, **options))
    with pytest.raises(AssertionError):
        check_neighbors([asked(SELECTS[0])], filled(random.Random(7)))


def test_ties_do_not_depend_on_the_order_of_rows() -> None:
    for text in map(asked, SELECTS[:8]):
        rel, seen = bound(text), set()
        for order in range(4):
            connection = filled(random.Random(5), units=2, visits=30)
            connection.execute(f"CREATE TABLE v2 AS SELECT * FROM v ORDER BY hash(rowid, {order})")
            connection.execute("DROP TABLE v; ALTER TABLE v2 RENAME TO v")
            seen.add(str(sorted((unit, sorted(rows.items())) for unit, rows in owned_rows(rel, connection).items())))
        assert len(seen) == 1, text


def test_the_value_has_the_facts_of_its_column() -> None:
    """The groups of "first purchase by channel" are the declared channels, and NULL for people without one."""
    text = "SELECT k, COUNT(*) FROM (SELECT id, ARG_MIN(code, day){} AS k FROM v GROUP BY id) GROUP BY k"
    for where, null in (("", False), (" FILTER (WHERE ok)", True)):
        (key,) = bind(text.format(where), tables=TABLES).keys
        assert (facts(key.expr).values, facts(key.expr).null) == (("A", "B", "C"), null)
    query = bind("SELECT SUM(x) FROM (SELECT ARG_MAX(n, day) AS x FROM v GROUP BY id)", tables=TABLES)
    bounds = facts(query.aggregates[0].arguments[0]).bounds
    assert bounds is not None
    assert [bounds.low, bounds.high] == [0, 3]


def test_an_extreme_that_is_written_twice_is_computed_once() -> None:
    text = "SELECT COUNT(x), COUNT(y) FROM (SELECT ARG_MIN(n, day) AS x, ARG_MIN(n, day) + 1 AS y FROM v GROUP BY id)"
    assert repr(bind(text, tables=TABLES).relation).count("WindowFunction(") == 1


@pytest.mark.parametrize("dialect", ["spark", "bigquery", "snowflake"])
def test_other_dialects_keep_null(dialect: str) -> None:
    texts = ("MAX_BY(n, day)", "ARG_MAX_NULL(n, day)", "ARG_MAX(n, day)")
    written = [f"SELECT COUNT(x) FROM (SELECT {text} AS x FROM v GROUP BY id) AS q" for text in texts]
    theirs = bind(written[0], tables=TABLES, dialect=dialect)
    assert theirs.relation == bind(written[1], tables=TABLES).relation
    assert theirs.relation != bind(written[2], tables=TABLES).relation


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("SELECT ARG_MAX(n, day) FROM v", "HB512", "one person's row"),
        ("SELECT code, MAX_BY(n, day) FROM v GROUP BY code", "HB512", "groups by the privacy ID"),
        ("SELECT COUNT(*) FROM (SELECT ARG_MAX(n, day) AS x FROM v GROUP BY code) AS s", "HB512", "several people"),
        ("SELECT COUNT(*) FROM (SELECT ARG_MAX(id, day) AS x FROM v GROUP BY id) AS s", "HB516", "privacy ID"),
        ("SELECT COUNT(*) FROM (SELECT ARG_MAX(n, day, 2) AS x FROM v GROUP BY id) AS s", "HB501", "ROW_NUMBER"),
        ("SELECT COUNT(*) FROM (SELECT ARG_MAX(n) AS x FROM v GROUP BY id) AS s", "HB5", "argument"),
        (
            "SELECT COUNT(x) FROM (SELECT ARG_MAX(n, day) OVER (PARTITION BY id) AS x FROM v) AS s",
            "HB742",
            "FIRST_VALUE",
        ),
    ],
)
def test_refusals_say_what_to_do(text: str, code: str, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind(text, tables=TABLES)
    assert refused.value.code.startswith(code)
    assert says in str(refused.value)
