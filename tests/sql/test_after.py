"""Queries over noisy results: how they are split into releases, and what the locked database computes."""

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures.insert_rows import insert_rows

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.sql.after import run_after
from hubbub.sql.bind import bind, bind_releases
from hubbub.sql.expressions import Col, Literal, facts
from hubbub.sql.query import After, Queries, Query

VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("region", Kind.TEXT, values=("North", "South", "East")),
        Column("month", Kind.INTEGER, values=(1, 2)),
        Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(110))),
    ),
    PrivacyUnit("patient"),
)
REGIONS = Table(
    "regions",
    (Column("region", Kind.TEXT), Column("people", Kind.INTEGER), Column("secret", Kind.TEXT, hidden=True)),
    None,
    size=2,
    rows={"region": ("North", "South"), "people": (100, 300)},
)
TABLES = {"visits": VISITS, "regions": REGIONS}
#: Exact rows, which take the place of noisy ones: what is computed from them must be what DuckDB computes.
ROWS = [(i % 7, ("North", "South", "South", "East")[i % 4], 1 + i % 2, 10 * (i % 9)) for i in range(40)]


def computed(sql: str) -> list[tuple[Any, ...]]:
    """Run the releases of a query without noise, and the query over their results."""
    query = bind_releases(sql, tables=TABLES)
    parts, after = (query.parts, query.after) if isinstance(query, Queries) else ((query,), query.after)
    assert after is not None
    tables = {table.name: exact(part) for table, part in zip(after.released, parts, strict=True)}
    columns = run_after(after, tables, most=1000)
    columns = columns if after.replicas is None else columns[:-1]
    return list(zip(*(np.ma.asarray(column).tolist() for column in columns), strict=True))


def exact(part: Query) -> dict[str, Any]:
    """Aggregate the rows of a part that counts, averages or adds up by declared keys, in plain Python."""
    names = ["month" if facts(key.expr).values == (1, 2) else "region" for key in part.keys]
    texts = {key.name: name for key, name in zip(part.keys, names, strict=True)}
    places = {"region": 1, "month": 2}
    groups = sorted({tuple(row[places[name]] for name in names) for row in ROWS}) if names else [()]
    columns: dict[str, list[Any]] = {label: [] for label, _ in part.select}
    aggregates = {each.name: each for each in part.aggregates}
    for group in groups:
        rows = [row for row in ROWS if tuple(row[places[name]] for name in names) == group]
        for label, expr in part.select:
            if isinstance(expr, Literal):
                columns[label].append(expr.value)
                continue
            assert isinstance(expr, Col)
            if expr.name in texts:
                columns[label].append(group[names.index(texts[expr.name])])
            elif aggregates[expr.name].function == "count":
                columns[label].append(len(rows))
            else:
                ages = [row[3] for row in rows]
                total = sum(ages)
                columns[label].append(total if aggregates[expr.name].function == "sum" else total / len(ages))
    return {label: np.array(values, dtype=object) for label, values in columns.items()}


QUERIES = [
    "SELECT region, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY region",
    "SELECT region, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY region ORDER BY r, region",
    "SELECT month, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY month) AS d FROM visits GROUP BY month ORDER BY month",
    "SELECT month, SUM(COUNT(*)) OVER (ORDER BY month ROWS UNBOUNDED PRECEDING) AS s FROM visits GROUP BY 1 ORDER BY 1",
    "SELECT Region AS r, COUNT(*) FROM visits GROUP BY r QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*), r) = 1",
    "SELECT AVG(n) AS a, MAX(n) - MIN(n) AS w FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) AS t",
    "SELECT COUNT(*) AS groups FROM (SELECT region, month, COUNT(*) AS n FROM visits GROUP BY ALL) AS t WHERE n > 5",
    "SELECT region FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY 1 LIMIT 9) AS t WHERE n > 10 ORDER BY n",
    "SELECT DISTINCT COUNT(*) > 10 AS big FROM visits GROUP BY region ORDER BY big",
    "SELECT region, AVG(age) AS a FROM visits GROUP BY region ORDER BY a LIMIT 1 OFFSET 1",
    "SELECT UPPER(region) || '!' AS r, COUNT(*) AS n FROM visits GROUP BY region HAVING COUNT(*) > 10"
    " ORDER BY SUM(COUNT(*)) OVER (), r",
    "WITH t AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region)"
    " SELECT r.region, n * 1.0 / people AS rate FROM t JOIN regions AS r USING (region) ORDER BY 1",
    "SELECT region FROM regions WHERE people > (SELECT COUNT(*) FROM visits) ORDER BY region",
    "SELECT COUNT(*) * 1.0 / (SELECT SUM(age) FROM visits) AS x FROM visits",
    "SELECT 'all' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT region, COUNT(*) FROM visits GROUP BY region"
    " ORDER BY what",
    "WITH a AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region), b AS (SELECT region, AVG(age) AS m FROM"
    " visits GROUP BY region) SELECT x.region, n, m FROM a AS x JOIN b ON x.region = b.region ORDER BY m DESC",
    "WITH rows AS (SELECT * FROM visits WHERE age >= 0), t AS (SELECT month, COUNT(*) AS n FROM rows GROUP BY month)"
    " SELECT u.month, u.n + v.n AS both FROM t AS u JOIN t AS v ON u.month <> v.month ORDER BY 1",
    "SELECT region, CASE WHEN COUNT(*) > AVG(COUNT(*)) OVER () THEN 'more' ELSE 'less' END AS c FROM visits"
    " GROUP BY region ORDER BY region",
    "SELECT region, month, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY region) AS pct"
    " FROM visits GROUP BY region, month ORDER BY 1, 2",
    "WITH t (r, n) AS (SELECT region, COUNT(*) FROM visits GROUP BY region)"
    " SELECT region, n FROM regions, t WHERE region = r AND n = (SELECT MAX(n) FROM t) ORDER BY 1",
    "WITH t AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region), u AS (SELECT MAX(n) AS most FROM t)"
    " SELECT region, most - n AS less FROM t, u ORDER BY 1",
    "SELECT STRING_AGG(region, ', ' ORDER BY region) AS r FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY 1) t"
    " WHERE n > 10 ORDER BY 1",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region EXCEPT SELECT 'North', 10 ORDER BY 1",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_over_results_is_what_sql_says(sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits (patient INT, region TEXT, month INT, age INT)")
        insert_rows(connection, "visits", ROWS)
        connection.execute("CREATE TABLE regions AS VALUES ('North', 100), ('South', 300)")
        connection.execute("ALTER TABLE regions RENAME col0 TO region; ALTER TABLE regions RENAME col1 TO people")
        expected = connection.execute(sql).fetchall()
    found = computed(sql)
    assert len(expected) >= 1 or "LIMIT 9" in sql
    ordered = "ORDER BY" in sql.rpartition(")")[2]
    assert [pytest.approx(row) for row in (expected if ordered else sorted(expected))] == (
        found if ordered else sorted(found)
    )


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("WITH t AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) SELECT a.n FROM t a, t b", 1),
        ("SELECT COUNT(*) / (SELECT COUNT(*) FROM visits WHERE age > 3) FROM visits", 2),
        ("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits", 1),
    ],
)
def test_the_same_release_is_paid_for_once(sql: str, count: int) -> None:
    query = bind_releases(sql, tables=TABLES)
    assert (len(query.parts) if isinstance(query, Queries) else 1) == count


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, COUNT(*) FROM visits GROUP BY region ORDER BY 2 DESC LIMIT 3",
        "SELECT n + 1 AS m FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) AS t WHERE n > 3 ORDER BY n",
        "SELECT AVG(LEAST(c, 9)) FROM (SELECT patient, COUNT(*) AS c FROM visits GROUP BY patient) AS t",
    ],
)
def test_expressions_over_single_groups_stay_part_of_their_release(sql: str) -> None:
    assert bind(sql, tables=TABLES).after is None


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT region, RANK() OVER (ORDER BY age) FROM visits GROUP BY region", "HB511"),
        ("SELECT age, ROW_NUMBER() OVER (ORDER BY age) FROM visits", "HB510"),
        (
            "SELECT COUNT(*) FROM visits JOIN (SELECT region, COUNT(*) AS n FROM visits GROUP BY 1) t USING (region)",
            "HB514",
        ),
        ("SELECT nothing FROM (SELECT region, SUM(COUNT(*)) OVER () AS n FROM visits GROUP BY region) AS t", "HB756"),
        (
            "SELECT secret, COUNT(*) OVER () FROM regions JOIN (SELECT region, COUNT(*) AS n FROM visits GROUP BY 1)"
            " t USING (region)",
            "HB756",
        ),
        ("SELECT region, now(), SUM(COUNT(*)) OVER () FROM visits GROUP BY region", "HB504"),
        ("SELECT patient, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY patient", "HB510"),
        ("SELECT MAX(c) OVER () FROM (SELECT patient, COUNT(*) AS c FROM visits GROUP BY patient) AS t", "HB510"),
        ("SELECT region, SUM(MAX(patient)) OVER () FROM visits GROUP BY region", "HB516"),
    ],
)
def test_what_would_read_private_rows_is_refused(sql: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind_releases(sql, tables=TABLES)
    assert caught.value.code == code


def test_the_database_has_the_released_and_the_public_rows_and_nothing_else() -> None:
    query = bind(
        "SELECT region, n FROM (SELECT region, COUNT(*) AS n, 1 FROM visits GROUP BY region) AS t WHERE n > (SELECT 0)",
        tables=TABLES,
    )
    assert query.after is not None
    for sql in ("SELECT * FROM visits", "SELECT * FROM read_text('/etc/passwd')", "SET threads = 2", "ATTACH 'x.db'"):
        with pytest.raises(duckdb.Error):
            run_after(After(sql, query.after.released, (), query.after.outputs), exact_tables(query), most=10)


def exact_tables(query: Query) -> dict[str, Any]:
    assert query.after is not None
    (table,) = query.after.released
    return {table.name: {name: np.array([0], dtype=object) for name, _ in table.columns}}


def test_values_that_sql_cannot_compute_are_null() -> None:
    text = "SELECT CAST(region AS INTEGER) AS i, 1 // (n - n) AS d, n * 9223372036854775807 AS big, SQRT(-n) AS root"
    query = bind(
        f"{text} FROM (SELECT region, SUM(COUNT(*)) OVER () AS n FROM visits GROUP BY region) AS t", tables=TABLES
    )
    assert query.after is not None
    (table,) = query.after.released
    values: dict[str, Any] = {"region": np.array(["x"], dtype=object)}
    values |= {name: np.array([2]) for name, _ in table.columns if name != "region"}
    columns = run_after(query.after, {table.name: values}, most=10)
    cells = [np.ma.asarray(column)[0] for column in columns]
    assert cells[0] is np.ma.masked
    assert all(cell is np.ma.masked or not np.isfinite(float(cell)) for cell in (cells[1], cells[3]))
    assert cells[2] is np.ma.masked or float(cells[2]) == pytest.approx(2 * 2.0**63)


@pytest.mark.parametrize(
    "condition",
    [
        "trim(region, 'N') = 'orth'",
        "ltrim(region, 'N') = 'orth'",
        "trunc(age, 1) > 3",
        "round(age, 1, true) > 3",
        "strpos(region, 'o', 3) > 0",
    ],
)
def test_options_that_the_binder_ignores_are_refused_in_with_clauses_too(condition: str) -> None:
    over = "SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM"
    rows = f"SELECT * FROM visits WHERE {condition}"
    public = "SELECT region AS r, trim(region, 'N') AS name FROM regions"
    for sql in (
        f"{over} ({rows}) AS c GROUP BY region",
        f"WITH c AS ({rows}) {over} c GROUP BY region",
        f"WITH c AS ({rows}), d AS (SELECT * FROM c) {over} d GROUP BY region",
        f"WITH c AS ({rows}) SELECT * FROM ({over} c GROUP BY region) AS x WHERE t > (SELECT COUNT(*) FROM visits)",
        f"WITH p AS ({public}) {over} visits JOIN p ON region = r GROUP BY region",
    ):
        with pytest.raises(QueryError) as caught:
            bind_releases(sql, tables=TABLES)
        assert caught.value.code == "HB503"
    counts = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    bind_releases(f"WITH p AS ({public}) SELECT name, n FROM p JOIN ({counts}) AS c ON p.r = c.region", tables=TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT region, COUNT(*) AS "$row", SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY region',
        'SELECT region, COUNT(*) AS "$HALF0", SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY region',
        'WITH "$Released0" AS (SELECT region, 7 AS n FROM regions) '
        'SELECT SUM(n) AS s, (SELECT MAX(n) FROM "$Released0") AS m '
        "FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) AS x",
    ],
)
def test_names_of_the_database_of_noisy_results_cannot_be_taken(sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind_releases(sql, tables=TABLES)
    assert caught.value.code == "HB781"
