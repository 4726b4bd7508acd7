"""Window functions mean what SQL says, and see the rows of one unit only."""

import random
from collections import Counter
from dataclasses import replace

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES, bound, check_neighbors, filled, owned_rows

from hubbub.core.schema import Column, Kind, PrivacyUnit
from hubbub.errors import QueryError
from hubbub.sql import render, windows
from hubbub.sql.bind import bind
from hubbub.sql.bind_window_nulls import NullsIgnored
from hubbub.sql.bind_windows import MAX_FRAME
from hubbub.sql.expressions import Col, facts
from hubbub.sql.relations import Filter, Project, UnitWindow, WindowFunction, columns

ALL = "day, code, cost, n, ok"
#: Functions that pass over NULL, up to the current row or of all rows.
WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
NULLS = f"""
LAST_VALUE(n IGNORE NULLS) OVER (PARTITION BY id ORDER BY {ALL})
LAST_VALUE(cost IGNORE NULLS) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
LAST_VALUE(n IGNORE NULLS) OVER (PARTITION BY id ORDER BY {ALL} {WHOLE})
LAST_VALUE(n RESPECT NULLS) OVER (PARTITION BY id ORDER BY {ALL} {WHOLE})
FIRST_VALUE(n IGNORE NULLS) OVER (PARTITION BY id, code ORDER BY {ALL})
FIRST_VALUE(n IGNORE NULLS) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
FIRST_VALUE(cost IGNORE NULLS) OVER (PARTITION BY id ORDER BY {ALL} {WHOLE})
LAG(n IGNORE NULLS) OVER (PARTITION BY id ORDER BY {ALL})
LAG(n, 1 IGNORE NULLS) OVER (PARTITION BY id, ok ORDER BY {ALL})
LEAD(n IGNORE NULLS) OVER (PARTITION BY id ORDER BY {ALL})
""".strip()
#: Frames by distance, in both directions, with NULL at both ends, open on one side, and empty ones.
DISTANCES = """
SUM(n) OVER (PARTITION BY id ORDER BY day RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND CURRENT ROW)
SUM(n) OVER (PARTITION BY id ORDER BY day RANGE BETWEEN INTERVAL '1 week' PRECEDING AND INTERVAL 8 DAY FOLLOWING)
COUNT(*) OVER (PARTITION BY id ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)
COUNT(*) OVER (PARTITION BY id ORDER BY n NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)
SUM(cost) OVER (PARTITION BY id, code ORDER BY n DESC NULLS LAST RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING)
MAX(cost) OVER (PARTITION BY id ORDER BY day DESC RANGE BETWEEN INTERVAL 1 DAY FOLLOWING AND INTERVAL 19 DAY FOLLOWING)
MIN(n) OVER (PARTITION BY id ORDER BY day RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 DAY PRECEDING)
AVG(n) OVER (PARTITION BY id ORDER BY n NULLS FIRST RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)
COUNT(*) OVER (PARTITION BY id ORDER BY n DESC NULLS FIRST RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
COUNT(*) FILTER (WHERE ok) OVER (PARTITION BY id ORDER BY n RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)
""".strip()
#: The column x of a subquery over visits. Where rows that tie have different values, the order names all columns.
COLUMNS = f"""
day - LAG(day) OVER (PARTITION BY id ORDER BY day)
LAG(n) OVER (PARTITION BY id ORDER BY {ALL})
LAG(n, 2) OVER (PARTITION BY id, code ORDER BY day DESC, code DESC, cost DESC, n DESC, ok DESC)
LEAD(n, 1, -1) OVER (PARTITION BY id ORDER BY {ALL})
LEAD(cost, 2, 0.5) OVER (PARTITION BY id ORDER BY {ALL})
LAG(n, 0) OVER (PARTITION BY id ORDER BY day)
ROW_NUMBER() OVER (PARTITION BY id ORDER BY day)
ROW_NUMBER() OVER (PARTITION BY id)
RANK() OVER (PARTITION BY id ORDER BY day DESC)
RANK() OVER (PARTITION BY id ORDER BY n NULLS FIRST, cost DESC NULLS LAST)
DENSE_RANK() OVER (PARTITION BY id, ok ORDER BY code)
PERCENT_RANK() OVER (PARTITION BY id ORDER BY day)
CUME_DIST() OVER (PARTITION BY id ORDER BY day)
NTILE(3) OVER (PARTITION BY id ORDER BY day)
FIRST_VALUE(n) OVER (PARTITION BY id ORDER BY {ALL})
FIRST_VALUE(n) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
LAST_VALUE(n) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
LAST_VALUE(n) OVER (PARTITION BY id ORDER BY {ALL} RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
LAST_VALUE(n) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
LAST_VALUE(n) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
NTH_VALUE(n, 2) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
LAST_VALUE(n) OVER (PARTITION BY id ORDER BY {ALL})
LAST_VALUE(n) OVER (PARTITION BY id, code ORDER BY n, day DESC)
{NULLS}
COUNT(*) OVER (PARTITION BY id)
COUNT(n) OVER (PARTITION BY id ORDER BY day)
COUNT(*) FILTER (WHERE ok) OVER (PARTITION BY id ORDER BY day)
COUNT(*) OVER (PARTITION BY id ORDER BY {ALL} ROWS 2 PRECEDING)
SUM(n) OVER (PARTITION BY id ORDER BY day)
SUM(n) FILTER (WHERE ok) OVER (PARTITION BY id, code)
SUM(cost) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
SUM(cost) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)
SUM(n) OVER (PARTITION BY id ORDER BY {ALL} ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)
AVG(n) OVER (PARTITION BY id ORDER BY day)
MIN(cost) OVER (PARTITION BY id ORDER BY day RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
MAX(day) OVER (PARTITION BY id) - day
{DISTANCES}
""".strip().splitlines()
SELECTS = [f"SELECT id, {column} AS x FROM v" for column in COLUMNS]
SELECTS += f"""
SELECT id, n AS x FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY {ALL}) = 1
SELECT id, n AS x, ROW_NUMBER() OVER (PARTITION BY id ORDER BY {ALL}) AS place FROM v WHERE ok QUALIFY place <= 2
SELECT id, SUM(n) - LAG(SUM(n)) OVER (PARTITION BY id ORDER BY code) AS x FROM v GROUP BY id, code
SELECT id, COUNT(*) AS x FROM v GROUP BY id, code QUALIFY RANK() OVER (PARTITION BY id ORDER BY COUNT(*) DESC) = 1
SELECT id, MIN(n) AS x FROM v GROUP BY id, code HAVING COUNT(*) < 9 QUALIFY COUNT(*) OVER (PARTITION BY id) > 1
SELECT id, LAG(age) OVER (PARTITION BY id ORDER BY {ALL}) AS x FROM p JOIN v USING (id)
SELECT id, gap AS x FROM (SELECT id, day - LAG(day) OVER (PARTITION BY id ORDER BY day) AS gap FROM v) s WHERE gap < 9
""".strip().splitlines()
SELECTS.append(
    "SELECT p.id, age AS x FROM p WHERE EXISTS (SELECT 1 FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY "
    "day) AS k FROM v) s WHERE s.id = p.id AND k = 2)"
)


def asked(select: str) -> str:
    """Return a query that reads only the column x."""
    return f"SELECT COUNT(x) FROM ({select}) AS q"


@pytest.fixture(scope="module")
def worlds() -> list[duckdb.DuckDBPyConnection]:
    """Several tables, without the rows that belong to nobody."""
    connections = [filled(random.Random(seed), visits=25) for seed in range(3)]
    for connection in connections:
        connection.execute("DELETE FROM p WHERE id IS NULL; DELETE FROM v WHERE id IS NULL")
    return connections


def values(rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    """Count rows of numbers, with one form of each."""
    return Counter(tuple(None if value is None else round(float(str(value)), 9) + 0.0 for value in row) for row in rows)


@pytest.mark.parametrize("select", SELECTS)
def test_values_are_those_of_the_engine(select: str, worlds: list[duckdb.DuckDBPyConnection]) -> None:
    """The oracle is DuckDB on the same text."""
    rel = bound(asked(select))
    (shown,) = (column.name for column in columns(rel) if column.name.startswith("x_"))
    for connection in worlds:
        mine = connection.execute(f'SELECT "$unit", "{shown}" FROM ({render.relation(rel)})').fetchall()
        assert values(mine) == values(connection.execute(f"SELECT id, x FROM ({select})").fetchall())


def test_removing_a_unit_removes_its_rows_and_changes_no_others() -> None:
    check_neighbors([asked(select) for select in SELECTS], filled(random.Random(7)))


def test_a_window_over_other_units_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: windows are not partitioned by the unit."""
    right = windows._over
    monkeypatch.setattr(windows, "_over", lambda function, _, *rest, **options: right(function, [], *rest, **options))
    with pytest.raises(AssertionError):
        check_neighbors([asked(SELECTS[1])], filled(random.Random(7)))


def test_values_after_a_null_are_noticed(
    monkeypatch: pytest.MonkeyPatch, worlds: list[duckdb.DuckDBPyConnection]
) -> None:
    """Planted: the last value that is not NULL is the largest of all."""
    monkeypatch.setattr(
        NullsIgnored,
        "_greatest",
        lambda self, made, value, _: self.add(WindowFunction("max", value, self.partition, (), made.column)),
    )
    column = NULLS.splitlines()[0]
    with pytest.raises(AssertionError):
        test_values_are_those_of_the_engine(f"SELECT id, {column} AS x FROM v", worlds)


def test_ties_do_not_depend_on_the_order_of_rows() -> None:
    """Which of two visits on one day comes first follows from their values, in any order of the table."""
    texts = [
        "SELECT COUNT(x), COUNT(ok) FROM (SELECT id, ok, LAG(cost) OVER (PARTITION BY id ORDER BY day) AS x FROM v)",
        "SELECT COUNT(x), COUNT(n) FROM (SELECT id, n, SUM(n) OVER (PARTITION BY id ORDER BY day ROWS 1 PRECEDING) AS "
        "x FROM v)",
    ]
    for text in texts:
        rel, seen = bound(text), set()
        for order in range(8):
            connection = filled(random.Random(5), units=2, visits=30)
            connection.execute(f"CREATE TABLE v2 AS SELECT * FROM v ORDER BY hash(rowid, {order})")
            connection.execute("DROP TABLE v; ALTER TABLE v2 RENAME TO v")
            seen.add(str(sorted((unit, sorted(rows.items())) for unit, rows in owned_rows(rel, connection).items())))
        assert len(seen) == 1


def test_a_frame_by_distance_has_few_values() -> None:
    """A frame of n values: whole numbers in one order, at most n of them, and no end that moves away."""
    for column in DISTANCES.splitlines():
        rel = bound(asked(f"SELECT id, {column} AS x FROM v"))
        while not isinstance(rel, UnitWindow):
            assert isinstance(rel, Project | Filter)
            rel = rel.input
        ((_, function),) = rel.functions
        (term,), (low, high) = function.order, function.frame or (None, None)
        assert function.distance
        assert (term.expr.kind, term.descending) == (Kind.INTEGER, False)
        assert high is not None
        assert low is None or 0 <= high - low < MAX_FRAME


def test_a_frame_of_rows_instead_of_distances_would_be_seen(
    monkeypatch: pytest.MonkeyPatch, worlds: list[duckdb.DuckDBPyConnection]
) -> None:
    """Planted: a frame of distances counts rows."""
    right = windows._frame
    monkeypatch.setattr(windows, "_frame", lambda function, **rest: right(replace(function, distance=False), **rest))
    with pytest.raises(AssertionError):
        test_values_are_those_of_the_engine(f"SELECT id, {DISTANCES.splitlines()[0]} AS x FROM v", worlds)


def test_columns_of_windows_have_facts() -> None:
    known = {
        "LAG(n) OVER (PARTITION BY id ORDER BY day)": (0, 3),
        "LAG(n, 1, 9) OVER (PARTITION BY id ORDER BY day)": (0, 9),
        "NTILE(4) OVER (PARTITION BY id ORDER BY day)": (1, 4),
        "SUM(n) OVER (PARTITION BY id ORDER BY day ROWS 2 PRECEDING)": (0, 9),
        "COUNT(*) OVER (PARTITION BY id ORDER BY day ROWS 2 PRECEDING)": (0, 3),
        "LEAST(ROW_NUMBER() OVER (PARTITION BY id ORDER BY day), 5)": (1, 5),
    }
    for column, bounds in known.items():
        query = bind(f"SELECT AVG(x) FROM (SELECT id, {column} AS x FROM v)", tables=TABLES)
        known_bounds = facts(query.aggregates[0].arguments[0]).bounds
        assert known_bounds is not None
        assert [known_bounds.low, known_bounds.high] == list(bounds), column
    (key,) = bind(
        "SELECT COUNT(*) FROM (SELECT id, LAG(code) OVER (PARTITION BY id ORDER BY day) AS c FROM v) GROUP BY c",
        tables=TABLES,
    ).keys
    assert isinstance(key.expr, Col)
    assert (key.expr.facts.values, key.expr.facts.null) == (("A", "B", "C"), True)
    (key,) = bind(
        "SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY day) AS c FROM v) WHERE c <= 3 "
        "GROUP BY c",
        tables=TABLES,
    ).keys
    assert facts(key.expr).values == (1, 2, 3)


def test_a_window_that_is_not_used_is_not_computed() -> None:
    text = "SELECT COUNT(n) FROM (SELECT id, n, LAG(n) OVER (PARTITION BY id ORDER BY day) AS x FROM v)"
    assert "UnitWindow" not in repr(bind(text, tables=TABLES).relation)
    assert "UnitWindow" in repr(bind(text.replace("COUNT(n)", "COUNT(x)"), tables=TABLES).relation)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("SELECT id, LAG(n) OVER (ORDER BY day) AS x FROM v", "HB741", "PARTITION BY id"),
        ("SELECT id, LAG(n) OVER (PARTITION BY code ORDER BY day) AS x FROM v", "HB741", "PARTITION BY id"),
        ("SELECT n AS x FROM (SELECT n FROM v) QUALIFY ROW_NUMBER() OVER (PARTITION BY n) = 1", "HB741", "inner query"),
        ("SELECT SUM(n) OVER (PARTITION BY code) AS x FROM r", "HB741", "privacy ID column"),
        ("SELECT id, LAG(n) OVER (PARTITION BY id) AS x FROM v", "HB742", "ORDER BY"),
        ("SELECT id, LAG(n, n) OVER (PARTITION BY id ORDER BY day) AS x FROM v", "HB742", "constant"),
        ("SELECT id, LAG(n, 1, ok) OVER (PARTITION BY id ORDER BY day) AS x FROM v", "HB742", "COALESCE"),
        (
            "SELECT id, LAST_VALUE(n) OVER (PARTITION BY id ORDER BY day RANGE BETWEEN CURRENT ROW AND UNBOUNDED "
            "FOLLOWING) AS x FROM v",
            "HB742",
            "ROWS BETWEEN",
        ),
        ("SELECT id, LAG(n, 2) IGNORE NULLS OVER (PARTITION BY id ORDER BY day) AS x FROM v", "HB742", "by one row"),
        (
            "SELECT id, LEAD(n, 1, 0 IGNORE NULLS) OVER (PARTITION BY id ORDER BY day) AS x FROM v",
            "HB742",
            "by one row",
        ),
        (
            "SELECT id, LAST_VALUE(n IGNORE NULLS) OVER (PARTITION BY id ORDER BY day ROWS 2 PRECEDING) AS x FROM v",
            "HB742",
            "by one row",
        ),
        ("SELECT id, NTH_VALUE(n, 2 IGNORE NULLS) OVER (PARTITION BY id ORDER BY day) AS x FROM v", "HB742", "by one"),
        ("SELECT id, LAG(n IGNORE NULLS) OVER (ORDER BY day) AS x FROM v", "HB741", "PARTITION BY id"),
        ("SELECT id, MEDIAN(n) OVER (PARTITION BY id) AS x FROM v", "HB742", "MIN or MAX"),
        ("SELECT id, COUNT(DISTINCT n) OVER (PARTITION BY id) AS x FROM v", "HB742", "MIN or MAX"),
        ("SELECT id, ABS(n) OVER (PARTITION BY id) AS x FROM v", "HB742", "LAG"),
        (
            f"SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY day ROWS {MAX_FRAME} PRECEDING) AS x FROM v",
            "HB742",
            "UNBOUNDED PRECEDING",
        ),
        (
            "SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY n ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING) AS x FROM v",
            "HB742",
            "closer",
        ),
        ("SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY cost RANGE 1 PRECEDING) AS x FROM v", "HB742", "CAST(x AS"),
        ("SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY day, n RANGE 1 PRECEDING) AS x FROM v", "HB742", "one col"),
        ("SELECT id, SUM(n) OVER (PARTITION BY id RANGE 1 PRECEDING) AS x FROM v", "HB742", "one col"),
        (
            "SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY day RANGE INTERVAL 1 MONTH PRECEDING) AS x FROM v",
            "HB742",
            "INTERVAL 30 DAY",
        ),
        (
            "SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY n RANGE INTERVAL 1 DAY PRECEDING) AS x FROM v",
            "HB742",
            "AS",
        ),
        (
            "SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY day ROWS INTERVAL 1 DAY PRECEDING) AS x FROM v",
            "HB742",
            "DAY",
        ),
        (
            f"SELECT id, SUM(n) OVER (PARTITION BY id ORDER BY n RANGE {MAX_FRAME} PRECEDING) AS x FROM v",
            "HB742",
            "closer",
        ),
        (
            "SELECT id, FIRST_VALUE(n) OVER (PARTITION BY id ORDER BY n RANGE 1 PRECEDING) AS x FROM v",
            "HB742",
            "MIN or MAX",
        ),
        ("SELECT id, SUM(n) OVER (PARTITION BY id ROWS 1 PRECEDING) AS x FROM v", "HB742", "ORDER BY"),
        ("SELECT id, n AS x FROM v WHERE RANK() OVER (PARTITION BY id ORDER BY day) = 1", "HB742", "QUALIFY"),
        ("SELECT id, COUNT(*) AS x FROM v GROUP BY id, RANK() OVER (PARTITION BY id ORDER BY day)", "HB742", "QUALIFY"),
        ("SELECT id, SUM(cost * 1e300) OVER (PARTITION BY id) AS x FROM v", "HB515", "GREATEST"),
        ("SELECT id, LAG(id) OVER (PARTITION BY id ORDER BY day) AS x FROM v", "HB516", "COUNT"),
    ],
)
def test_refusals_name_the_reason_and_the_remedy(text: str, code: str, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        bind(asked(text), tables=TABLES)
    assert (refused.value.code, says in refused.value.remedy) == (code, True), str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(x) FROM (SELECT LAG(n) OVER (PARTITION BY id ORDER BY day) AS x FROM two)",
        "SELECT COUNT(x) FROM (SELECT LAG(n) OVER (PARTITION BY doctor ORDER BY day) AS x FROM two)",
        "SELECT COUNT(x) FROM (SELECT LAG(n) OVER (PARTITION BY id, doctor ORDER BY day) AS x FROM two)",
        "SELECT COUNT(*) FROM two WHERE EXISTS (SELECT 1 FROM two b WHERE b.id = two.id AND b.n < two.n)",
        "SELECT COUNT(*) FROM two WHERE n IN (SELECT n FROM two b WHERE b.doctor = two.doctor)",
        "SELECT COUNT(*) FROM two WHERE EXISTS (SELECT 1 FROM v WHERE v.id = two.id)",
        "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM two WHERE v.id = two.id)",
        "SELECT COUNT(*) FROM two SEMI JOIN v ON v.id = two.id",
        "SELECT COUNT(*) FROM v ANTI JOIN two ON v.id = two.id",
        "SELECT COUNT(*) FROM (SELECT id, doctor, n FROM two EXCEPT SELECT id, doctor, n FROM two WHERE ok)",
        "SELECT COUNT(*) FROM (SELECT DISTINCT ON (id) id, n FROM two ORDER BY id, day)",
    ],
)
def test_rows_with_two_owners_are_refused(text: str) -> None:
    """What is computed from the rows of one of two owners would combine rows of several others."""
    visits = TABLES["v"]
    two = replace(
        visits,
        name="two",
        columns=(*visits.columns, Column("doctor", Kind.INTEGER)),
        others=(PrivacyUnit("doctor", entity="doctor"),),
    )
    with pytest.raises(QueryError) as refused:
        bind(text, tables={**TABLES, "two": two})
    assert refused.value.code in ("HB513", "HB514", "HB519", "HB741") or refused.value.code.startswith("HB76")
