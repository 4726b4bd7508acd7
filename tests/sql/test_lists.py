"""List columns: what is read of them, what queries over them mean, and what one person can change."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
import yaml
from sqlglot import exp
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server
from tests.fixtures.repeated_sql import fetch

import hubbub
from hubbub.config import load
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.session import Session
from hubbub.errors import QueryError
from hubbub.sql.bind import bind
from hubbub.sql.finish import exact_results
from hubbub.sql.plan import Plan, plan
from hubbub.sql.relations import UNIT
from hubbub.sql.render import relation as render

COLUMNS: dict[str, Any] = {
    "id": {},
    "tags": {"elements": 3, "values": ["a", "b", "c"], "nullable": True},
    "codes": {"elements": 2, "bounds": [0, 9]},
    "days": {"elements": 2},
    "cost": {"bounds": [0, 9]},
}
BUDGET = {"epsilon": 1e6, "delta": 1e-5}
DATASETS: dict[str, dict[str, Any]] = {
    "v": {"unit": {"column": "id", "groups": 8, "rows": 5, "rows_total": 5}, "columns": COLUMNS, "budget": BUDGET},
    "w": {"unit": "row", "columns": {"tags": {"elements": 3}, "cost": {}}, "budget": BUDGET},
}
TABLE = """
CREATE TABLE v AS SELECT i % 60 AS id, i % 10 AS cost,
    (CASE WHEN i % 11 = 0 THEN NULL WHEN i % 7 = 0 THEN [] WHEN i % 5 = 0 THEN ['a', 'b', 'a'] WHEN i % 3 = 0
     THEN ['c', NULL] ELSE ['b'] END)::VARCHAR[] AS tags, [i % 4, i % 6]::INTEGER[] AS codes,
    [DATE '2024-01-01' + (i % 3)::INTEGER]::DATE[] AS days FROM range(300) AS t(i)
"""
QUESTIONS = (
    "SELECT tag, COUNT(*) FROM v, UNNEST(v.tags) AS t(tag) GROUP BY tag",
    "SELECT tag, COUNT(DISTINCT id) FROM v CROSS JOIN UNNEST(tags) AS t(tag) WHERE cost > 3 GROUP BY tag",
    "SELECT unnest(tags) AS tag, COUNT(*) FROM v GROUP BY tag",
    "SELECT tag, SUM(cost) FROM (SELECT id, cost, unnest(tags) AS tag FROM v) GROUP BY tag",
    "SELECT COUNT(*) FROM v WHERE list_contains(tags, 'a')",
    "SELECT COUNT(*) FROM v WHERE NOT list_contains(tags, 'c')",
    "SELECT COUNT(*) FROM v WHERE 'c' = ANY(tags)",
    "SELECT COUNT(*) FROM v WHERE tags IS NOT NULL AND NOT ('a' = ANY(tags))",
    "SELECT len(tags) AS k, COUNT(*) FROM v GROUP BY k",
    "SELECT SUM(len(codes)), COUNT(tags) FROM v",
    "SELECT tags[1] AS first, COUNT(*) FROM v GROUP BY first",
    "SELECT COUNT(*) FROM v WHERE list_has_any(tags, ['a', 'c'])",
    "SELECT COUNT(*) FROM v WHERE list_has_all(tags, ['a', 'b'])",
    "SELECT SUM(code) FROM v, UNNEST(codes) AS t(code)",
    "SELECT COUNT(*) FROM v WHERE tags IS NULL",
    "SELECT COUNT(*) FROM v WHERE days[1] = DATE '2024-01-02'",
    "WITH x AS (SELECT id, tags AS l FROM v WHERE cost < 5) SELECT COUNT(*) FROM x WHERE list_contains(l, 'b')",
    "SELECT COUNT(*) FROM (SELECT * FROM v) s, UNNEST(s.tags) AS t(tag) WHERE tag = 'a'",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(DISTINCT tag) AS k FROM v, UNNEST(tags) AS t(tag) GROUP BY id) WHERE k > 1",
    "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM v u WHERE u.id = v.id AND list_contains(u.tags, 'c'))",
    "SELECT tag, COUNT(*) FROM v, UNNEST(tags) AS t(tag), UNNEST(codes) AS c(code) WHERE code > 1 GROUP BY tag",
    "SELECT COUNT(*) FROM v WHERE NOT (nullif(cost, 3) = ANY(codes))",
    "SELECT COUNT(*) FROM v WHERE NOT list_contains(codes, nullif(cost, 3))",
    "SELECT COUNT(*) FROM v WHERE (nullif(cost, 3) = ANY(codes)) IS NULL",
    "SELECT COUNT(*) FROM v WHERE array_length(tags, 1) = 0",
    "SELECT COUNT(*) FROM (SELECT id, unnest(codes) AS cost FROM v) WHERE cost = 1",
    "SELECT COUNT(*) FROM v, UNNEST(codes) AS t(cost) WHERE v.cost = t.cost",
    "SELECT COUNT(*) FROM (SELECT id, tags FROM v UNION ALL SELECT id, tags FROM v) WHERE len(tags) = 3",
)
#: The same in the words of other dialects, each with the question for DuckDB.
DIALECTS = (
    ("spark", "SELECT tag, COUNT(*) FROM v LATERAL VIEW explode(tags) t AS tag GROUP BY tag", QUESTIONS[0]),
    ("spark", "SELECT COUNT(*) FROM v WHERE array_contains(tags, 'a') AND size(tags) > 1", None),
    # NULL among the elements may be any value
    (
        "spark",
        "SELECT COUNT(*) FROM v WHERE NOT array_contains(tags, 'b')",
        "SELECT COUNT(*) FROM v WHERE tags IS NOT NULL AND NOT ('b' = ANY(tags))",
    ),
    (
        "postgres",
        "SELECT COUNT(*) FROM v WHERE array_length(tags, 1) IS NULL",
        "SELECT COUNT(*) FROM v WHERE coalesce(len(tags), 0) = 0",
    ),
    ("spark", "SELECT COUNT(*) FROM v WHERE tags[0] = 'b'", "SELECT COUNT(*) FROM v WHERE tags[1] = 'b'"),
    ("bigquery", "SELECT tag, COUNT(*) FROM v, UNNEST(v.tags) AS tag GROUP BY tag", QUESTIONS[0]),
    ("postgres", "SELECT tag, COUNT(*) FROM v CROSS JOIN LATERAL UNNEST(v.tags) AS t(tag) GROUP BY tag", QUESTIONS[0]),
    ("postgres", "SELECT COUNT(*) FROM v WHERE tags && ARRAY['a', 'c']", QUESTIONS[11]),
    ("postgres", "SELECT COUNT(*) FROM v WHERE tags @> ARRAY['a', 'b']", QUESTIONS[12]),
    (
        "postgres",
        "SELECT COUNT(*) FROM v WHERE array_length(tags, 1) = 2",
        "SELECT COUNT(*) FROM v WHERE len(tags) = 2",
    ),
)
REFUSED = {
    "SELECT tags, COUNT(*) FROM v GROUP BY tags": "HB503",
    "SELECT COUNT(*) FROM v LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE": "HB503",
    "SELECT COUNT(*) FROM (SELECT * FROM v, UNNEST(tags) AS t(tag))": "HB503",
    "SELECT COUNT(*) FROM (SELECT id, unnest(tags) AS a, unnest(codes) AS b FROM v)": "HB503",
    "SELECT COUNT(*) FROM v WHERE tags[4] = 'a'": "HB503",
    "SELECT COUNT(*) FROM v WHERE tags[cost] = 'a'": "HB503",
    "SELECT COUNT(*) FROM v WHERE cost[1] = 1": "HB503",
    "SELECT x, COUNT(*) FROM v, UNNEST(cost) AS t(x) GROUP BY x": "HB503",
    "SELECT COUNT(*) FROM v WHERE 'a' = ANY(cost)": "HB503",
    "SELECT COUNT(*) FROM v WHERE list_contains(cost, 'a')": "HB503",
    "SELECT COUNT(*) FROM v WHERE tags = codes": "HB503",
    "SELECT cost, COUNT(*) FROM v, UNNEST(codes) AS t(cost) GROUP BY t.cost": "HB507",
    "SELECT COUNT(*) FROM (SELECT id, cost AS x, codes FROM v) AS s, UNNEST(codes) AS t(x) WHERE x = 1": "HB507",
    "SELECT COUNT(*) FROM w, UNNEST(tags) AS t(tag)": "HB513",
    "SELECT COUNT(*) FROM UNNEST(v.tags) AS t(tag)": "HB503",
}


def write_config(folder: Path, sources: dict[str, str]) -> None:
    datasets = {name: {"source": sources[name], **entry} for name, entry in DATASETS.items()}
    analysts = {"ana": dict.fromkeys(DATASETS, BUDGET)}
    (folder / "hubbub.yaml").write_text(yaml.safe_dump({"version": 1, "datasets": datasets, "analysts": analysts}))


@pytest.fixture(scope="module")
def exact() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLE)
    return connection


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, exact: duckdb.DuckDBPyConnection) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("lists")
    exact.execute(f"COPY v TO '{folder}/v.parquet'")
    write_config(folder, dict.fromkeys(DATASETS, "v.parquet"))
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def same(session: Session, asked: str, right: list[tuple[Any, ...]], dialect: str = "duckdb") -> None:
    """Compare an answer with the exact one; at this ε all noise is 0 but for a probability below 10⁻⁹."""
    rows = session.query(asked, epsilon=20_000, delta=0, dialect=dialect).rows
    shown = {row for row in rows if row[-1]}  # declared groups without rows are zero
    assert shown == {tuple(int(cell) if isinstance(cell, int) else cell for cell in row) for row in right if row[-1]}


@pytest.mark.parametrize("text", QUESTIONS)
def test_an_answer_is_that_of_sql(session: Session, exact: duckdb.DuckDBPyConnection, text: str) -> None:
    same(session, text, exact.execute(text).fetchall())


@pytest.mark.parametrize(("dialect", "text", "same_as"), DIALECTS)
def test_other_dialects_mean_the_same(
    session: Session, exact: duckdb.DuckDBPyConnection, dialect: str, text: str, same_as: str | None
) -> None:
    plain = same_as or text.replace("array_contains", "list_contains").replace("size(", "len(")
    same(session, text, exact.execute(plain).fetchall(), dialect)


@pytest.mark.parametrize("condition", ["array_contains(tags, 'b')", "array_length(tags, 1) = 0"])
def test_dialects_that_differ_about_lists_share_no_answer(session: Session, condition: str) -> None:
    """The text of a query is its replay key: with one text, the second answer would repeat the first."""
    asked = f"SELECT COUNT(*) FROM v WHERE NOT {condition}"
    first = session.query(asked, epsilon=19_000, delta=0)
    for dialect in ("spark", "postgres"):
        assert not session.query(asked, epsilon=19_000, delta=0, dialect=dialect).replayed
    assert session.query(asked, epsilon=19_000, delta=0).outputs == first.outputs


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_read_is_refused_by_name(session: Session, text: str) -> None:
    with pytest.raises(QueryError) as refused:
        session.estimate(text, epsilon=1, delta=0)
    assert refused.value.code == REFUSED[text]


@pytest.mark.parametrize(
    "condition",
    [
        f"list_has_any(tags, [{', '.join(['7'] * 700)}])",
        f"{'list_contains(tags, 7) OR ' * 150} id = 1",
        f"{'id = ANY(tags) OR ' * 150} id = 1",
        f"EXISTS (SELECT 1 FROM w, UNNEST(tags) AS t(x) WHERE w.id = v.id AND ({'x = 7 OR ' * 150} x = 1))",
    ],
)
def test_a_query_that_multiplies_lists_is_refused_before_they_are_written(condition: str) -> None:
    """The work before a charge is bounded: 38,000 characters took a minute."""
    columns = (Column("id", Kind.INTEGER), *(Column(f"tags[{i}]", Kind.INTEGER) for i in range(1, 65)))
    table = Table("v", (*columns, Column("tags[]", Kind.INTEGER)), PrivacyUnit("id", 2, 2, "person"))
    with pytest.raises(QueryError, match="lists are written as their elements"):
        bind(f"SELECT COUNT(*) FROM v WHERE {condition}", tables={"v": table, "w": replace(table, name="w")})


def test_elements_beyond_the_declared_number_are_left_out_and_stated(tmp_path: Path) -> None:
    duckdb.execute(
        f"COPY (SELECT i AS id, ['a', 'a', 'a', 'b', 'b'] AS tags FROM range(50) t(i)) TO '{tmp_path}/v.parquet'"
    )
    entry = {**DATASETS["v"], "columns": {"id": {}, "tags": COLUMNS["tags"]}, "source": "v.parquet"}
    config = {"version": 1, "datasets": {"v": entry}, "analysts": {"ana": {"v": BUDGET}}}
    (tmp_path / "hubbub.yaml").write_text(yaml.safe_dump(config))
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        release = opened.query(QUESTIONS[0], epsilon=20_000, delta=0)
        assert {row for row in release.rows if row[1]} == {("a", 150)}
        assert release.left_out is not None
        assert "the length of tags is clamped to 0 to 3" in release.left_out.sentence()
        assert opened.query("SELECT AVG(len(tags)) FROM v", epsilon=20_000).rows == [(3.0,)]


def test_check_says_what_a_list_needs(tmp_path: Path) -> None:
    duckdb.execute(f"COPY (SELECT 1 AS id, ['a'] AS tags, [['a']] AS deep) TO '{tmp_path}/v.parquet'")
    base = {"version": 1, "datasets": {"v": {"source": "v.parquet", "unit": {"column": "id"}, "budget": BUDGET}}}
    base["datasets"]["v"]["columns"] = {"id": {}, "tags": {}, "deep": {}}  # type: ignore[index]
    (tmp_path / "hubbub.yaml").write_text(yaml.safe_dump(base))
    disabled = dict(load(tmp_path / "hubbub.yaml").datasets["v"].disabled)
    assert "declare `elements: 8`" in disabled["tags"]
    assert "does not support its type" in disabled["deep"]
    for wrong, field in (({"elements": 0}, "tags"), ({"elements": 65}, "tags"), ({"elements": 2}, "id")):
        base["datasets"]["v"]["columns"] = {"id": {}, field: wrong}  # type: ignore[index]
        (tmp_path / "hubbub.yaml").write_text(yaml.safe_dump(base))
        with pytest.raises(hubbub.errors.HubbubError, match="elements"):
            load(tmp_path / "hubbub.yaml")


# --- what one person changes ----------------------------------------------------------------------------------------

UNIT_TABLE = Table(
    "v",
    (
        Column("id", Kind.INTEGER),
        *(Column(f"tags[{place}]", Kind.TEXT, values=("a", "b")) for place in (1, 2)),
        Column("tags[]", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(2))),
    ),
    PrivacyUnit("id", 2, 2, "person", rows_total=2),
)
#: Rows with duplicates, with a NULL owner, NULL lists, empty lists, long lists and NULL elements.
ROWS = ((1, ("a", "b", "b")), (1, ("a", "b", "b")), (1, None), (2, ()), (2, ("b", None)), (None, ("a",)))
GROUPED = "SELECT tag, COUNT(*) FROM v, UNNEST(tags) AS t(tag) GROUP BY tag"
ENUMERATED = (
    GROUPED,
    "SELECT COUNT(*) FROM v, UNNEST(tags) AS t(tag)",
    "SELECT tag, COUNT(DISTINCT id) FROM v, UNNEST(tags) AS t(tag) GROUP BY tag",
    "SELECT SUM(len(tags)) FROM v WHERE NOT ('b' = ANY(tags)) OR list_contains(tags, 'a')",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM v, UNNEST(tags) AS t(tag) GROUP BY id) WHERE n > 1",
)


def world(connection: duckdb.DuckDBPyConnection, rows: tuple[Any, ...]) -> None:
    parts = [(owner, *[*(tags or ()), None, None][:2], None if tags is None else len(tags)) for owner, tags in rows]
    values = ", ".join(str(row).replace("None", "NULL") for row in [*parts, (None, None, None, None)])
    connection.execute(
        f'CREATE OR REPLACE TABLE v AS FROM (VALUES {values}) AS t(id, "tags[1]", "tags[2]", "tags[]") '
        "LIMIT " + str(len(rows))
    )


def measured(
    connection: duckdb.DuckDBPyConnection, planned: Plan, rows: tuple[Any, ...]
) -> tuple[list[str], list[Any]]:
    """Return the rows of the relation, each with its owner first, and the exact sums."""
    world(connection, rows)
    shown = fetch(connection, render(planned.query.relation))
    tables: dict[str, Any] = {each.name: fetch(connection, each.sql) for each in planned.statements}
    columns = [shown[UNIT].tolist(), *(values.tolist() for name, values in shown.items() if name != UNIT)]
    return sorted(map(repr, zip(*columns, strict=True))), list(exact_results(planned, tables)[0])


def enumerated(text: str, relation: Relation = Relation.ADD_REMOVE) -> tuple[int, int]:
    """Return the largest change of all sums by one person over all sub-tables, and what the plan states."""
    query = bind(text, tables={"v": replace(UNIT_TABLE, relation=relation)})
    planned = plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s")
    chosen = [
        tuple(row for row, keep in zip(ROWS, kept, strict=True) if keep) for kept in product((0, 1), repeat=len(ROWS))
    ]
    connection = duckdb.connect(config={"threads": 1})
    results, most = {rows: measured(connection, planned, rows) for rows in chosen}, 0
    for gone in (1, 2):
        alike: dict[str, list[Any]] = {}
        for rows in chosen:
            others = tuple(row for row in rows if row[0] != gone)
            without = [row for row in results[rows][0] if not row.startswith(f"({gone},")]
            assert results[others][0] == without, text
            alike.setdefault(repr(others), []).append(results[rows][1] if relation is Relation.REPLACE else None)
            moved = [abs(a - b).sum() for a, b in zip(results[rows][1], results[others][1], strict=True)]
            most = max(most, int(sum(moved)))
        for group in alike.values() if relation is Relation.REPLACE else ():
            changes = (sum(abs(a - b).sum() for a, b in zip(x, y, strict=True)) for x, y in product(group, repeat=2))
            most = max(most, *map(int, changes))
    return most, sum(int(each.sensitivity.l1) for each in planned.measures)


@pytest.mark.parametrize("text", ENUMERATED)
def test_one_person_moves_sums_by_no_more_than_is_stated(text: str) -> None:
    most, stated = enumerated(text)
    assert 0 < most <= stated


def test_another_person_in_the_place_of_one_moves_sums_by_no_more_than_is_stated() -> None:
    most, stated = enumerated(GROUPED, Relation.REPLACE)
    assert 0 < most <= stated


def test_the_bound_counts_each_element_of_each_row() -> None:
    """Two rows with two elements each: a plan that forgot the elements would state 2."""
    most, stated = enumerated(ENUMERATED[1])
    assert (most, stated) == (4, 4)


def test_a_person_with_one_row_is_in_a_group_for_each_element() -> None:
    """Bounds of one group would leave out an element of each list; for counts, several groups cost nothing more."""
    table = replace(UNIT_TABLE, unit=PrivacyUnit("id", 1, 1, "person"))
    planned = plan(bind(GROUPED, tables={"v": table}), epsilon=Fraction(1), delta=Fraction(0), salt="s")
    _, (counts,) = measured(duckdb.connect(), planned, ((1, ("a", "b")), (2, ("b", "b"))))
    assert counts.tolist() == [1, 3]
    assert [int(each.sensitivity.l1) for each in planned.measures] == [2]


def test_a_row_for_a_missing_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the condition on the length, lists that are NULL, empty or short would have rows as well."""
    connection = duckdb.connect()
    world(connection, ROWS[:5])
    query = bind(ENUMERATED[1], tables={"v": UNIT_TABLE})
    assert len(connection.execute(render(query.relation)).fetchall()) == 6
    monkeypatch.setattr(exp, "LTE", lambda **parts: exp.GTE(this=parts["this"], expression=exp.Literal.number(0)))
    wrong = bind(ENUMERATED[1], tables={"v": UNIT_TABLE})
    assert len(connection.execute(render(wrong.relation)).fetchall()) == 10


# --- other engines ---------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_postgres_answers_the_same(postgres_server: Server, exact: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Arrays that begin elsewhere, and arrays of arrays, raise nothing."""
    postgres_server.run("CREATE DATABASE lists")
    try:
        rows = exact.execute("SELECT id, cost, tags, codes, days FROM v").fetchall()
        with psycopg.connect(postgres_server.dsn("lists"), autocommit=True) as made:
            made.execute("CREATE TABLE v (id bigint, cost integer, tags text[], codes integer[], days date[])")
            made.cursor().executemany("INSERT INTO v VALUES (%s, %s, %s, %s, %s)", rows)
            made.execute("INSERT INTO v VALUES (NULL, 1, '[5:6]={x,y}', '{{1,2},{3,4}}', '{}')")
        source = postgres.address(postgres_server, "lists", "public.v")
        write_config(tmp_path, dict.fromkeys(DATASETS, source))
        with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
            for text in QUESTIONS[:16]:
                same(opened, text, exact.execute(text).fetchall())
    finally:
        postgres_server.run("DROP DATABASE lists WITH (FORCE)")


@pytest.mark.spark
def test_spark_answers_the_same(spark_address: str, exact: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    exact.execute(f"COPY v TO '{tmp_path}/v.parquet'")
    write_config(tmp_path, dict.fromkeys(DATASETS, f"spark:{spark_address}/{tmp_path}/v.parquet"))
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        text = (
            "SELECT tag, SUM(len(codes)) FROM v, UNNEST(tags) AS t(tag) WHERE list_contains(tags, 'b') AND "
            "codes[2] > 1 AND days[1] > DATE '2024-01-01' GROUP BY tag"
        )
        same(opened, text, exact.execute(text).fetchall())
