"""The catalog: what psql and drivers ask of it is answered from declarations, and nothing else is reachable."""

import subprocess
from typing import Any

import psycopg
import pytest
import sqlglot
from tests.gateway.conftest import Port

from hubbub.answers.statements import Result
from hubbub.errors import ParameterError
from hubbub.gateway.catalog import contents
from hubbub.gateway.catalog.contents import PgColumn, PgTable
from hubbub.gateway.catalog.database import CatalogDatabase
from hubbub.gateway.catalog.functions import MAX_SHORT
from hubbub.gateway.catalog.translate import Names
from hubbub.gateway.result import PgResult

TABLES = (
    PgTable("public", "visits", (PgColumn("region", "text"), PgColumn("age", "integer", nullable=False)), "a remark"),
    PgTable("hubbub", "budget", (PgColumn("spent", "real"),)),
)


@pytest.fixture(scope="module")
def catalog() -> CatalogDatabase:
    return CatalogDatabase(TABLES)


def ask(catalog: CatalogDatabase, sql: str, *parameters: Any) -> PgResult:
    names = Names("ana", "shop", 7, {"search_path": "public"}.get)
    budget = Result((("spent", float),), [(0.5,), (None,)])
    return catalog.answer(sqlglot.parse_one(sql, read="postgres"), parameters, names, {"budget": budget}.get)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 1", [(1,)]),
        ("SELECT current_database(), current_user, current_schema()", [("shop", "ana", "public")]),
        ("SELECT datname FROM pg_database", [("shop",)]),
        # psql's completion of SET
        (
            "SELECT name FROM (SELECT pg_catalog.lower(name) AS name FROM pg_catalog.pg_settings"
            " WHERE context IN ('user', 'superuser')) ss WHERE name LIKE 'hubbub.e%'",
            [("hubbub.epsilon",)],
        ),
        (
            "SELECT table_catalog, table_name FROM information_schema.tables WHERE table_schema = 'public'",
            [("shop", "visits")],
        ),
        ("SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)", [("visits",)]),
        ("SELECT pg_class.relname FROM pg_class WHERE pg_catalog.pg_table_is_visible(pg_class.oid)", [("visits",)]),
        (
            "SELECT relname FROM pg_class c WHERE c.relname OPERATOR(pg_catalog.~) '^(vis.*)$'"
            " COLLATE pg_catalog.default",
            [("visits",)],
        ),
        ("SELECT 'visits'::regclass::oid = (SELECT oid FROM pg_class WHERE relname = 'visits')", [(True,)]),
        ("SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'age'", [("visits",)]),
        (
            "SELECT format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attname = 'age'",
            [("bigint", True)],
        ),
        ("SELECT obj_description('public.visits'::regclass)", [("a remark",)]),
        ("SELECT oid::regtype::text FROM pg_type WHERE oid = to_regtype('text')", [("text",)]),
        ("SELECT relname FROM pg_class WHERE relkind = ANY('{r,p}'::text[]) AND relname LIKE 'v%'", [("visits",)]),
        ("SELECT spent FROM hubbub.budget ORDER BY spent NULLS LAST", [(0.5,), (None,)]),
        ("SELECT current_setting('search_path')", [("public",)]),
        ('SELECT "?column?", "upper" FROM (SELECT 1, upper(\'a\')) AS s', [(1, "A")]),
        ("SELECT pg_total_relation_size('visits'::regclass)", [(None,)]),
        ("SELECT has_table_privilege('visits', 'SELECT'), has_table_privilege('visits', 'INSERT')", [(True, False)]),
    ],
)
def test_a_question_is_answered_as_postgresql_answers_it(
    catalog: CatalogDatabase, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert ask(catalog, sql).rows == rows


def names_of(catalog: CatalogDatabase, sql: str) -> list[str]:
    return [name for name, _ in ask(catalog, sql).columns or ()]


def test_columns_are_named_as_postgresql_names_them(catalog: CatalogDatabase) -> None:
    counted = "SELECT (SELECT COUNT(*) FROM pg_class), (SELECT relname AS r FROM pg_class LIMIT 1)"
    assert names_of(catalog, counted) == ["count", "r"]
    cases = "CASE WHEN true THEN 1 END, CASE WHEN true THEN '' ELSE oid::text END"
    cases = f'SELECT 1 AS TABLE_CAT, 2 AS "Kept", {cases} FROM pg_class'
    assert names_of(catalog, cases) == ["table_cat", "Kept", "case", "oid"]
    result = ask(catalog, "SELECT 1, version(), oid, count(*), 'a'::text FROM pg_class GROUP BY oid")
    assert [name for name, _ in result.columns or ()] == ["?column?", "version", "oid", "count", "text"]


def test_parameters_may_be_arrays(catalog: CatalogDatabase) -> None:
    sql = "SELECT relname FROM pg_class WHERE relkind = ANY($1) AND relname = $2"
    assert ask(catalog, sql, '{"r","p"}', "visits").rows == [("visits",)]
    assert ask(catalog, sql, ["r"], "visits").rows == [("visits",)]
    assert ask(catalog, sql, None, None).rows == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM parquet_scan('/x')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM query('SELECT 1')",
        "SELECT getenv('HOME')",
        "SELECT * FROM pgc.pg_class",
        "SELECT * FROM duckdb_tables",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM main.x",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_sleep(100)",
        "SELECT dblink('', '')",
        "SELECT repeat('x', 100000000)",
        "SELECT query_to_xml('SELECT 1', true, true, '')",
        "SELECT pg_terminate_backend(1)",
        "SELECT * INTO x FROM pg_class",
        "SELECT * FROM pg_class FOR UPDATE",
        "SELECT * FROM hubbub.nothing",
        'SELECT * FROM "temp".budget',
        "SELECT a.b.c(1)",
        "SELECT 1/0 + 'x'::int",
    ],
)
def test_a_question_reaches_nothing_outside_the_catalog(catalog: CatalogDatabase, sql: str) -> None:
    with pytest.raises(ParameterError, match=r"HB810|HB186"):
        ask(catalog, sql)


def test_the_database_is_locked_even_if_a_question_passed(catalog: CatalogDatabase) -> None:
    connection = catalog._root.cursor()
    for text in ("SELECT * FROM read_text('/etc/hostname')", "ATTACH '/tmp/x.db'", "SET enable_external_access = true"):
        with pytest.raises(Exception, match=r"disabled|locked|not allowed|Cannot"):
            connection.execute(text)


def test_a_question_without_end_is_stopped(catalog: CatalogDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.gateway.catalog.database.SECONDS", 0.2)
    crossed = ", ".join(f"pg_attribute AS a{i}" for i in range(12))
    with pytest.raises(ParameterError, match="HB810"):
        ask(catalog, f"SELECT count(*) FROM {crossed}, generate_series(1, 1000000000) AS g")


GROWING = [
    "lpad('a', {n}, 'b')",
    "rpad('a', {n})",
    "pg_catalog.rpad('a', {n}, 'b')",
    "pg_catalog.replace(s, 'a', 'bb')",
    "lpad('a', (SELECT {n} FROM pg_class LIMIT 1))",
    "replace(s, 'a', 'bb')",
    "replace('a', 'a', s)",
    "regexp_replace(s, 'a', 'bb', 'g')",
    "pg_catalog.regexp_replace('a', '(a)', s, 'g')",
    "array_to_string(string_to_array(s, ','), ',')",
    "pg_catalog.array_to_string(string_to_array(s, ','), ',')",
    "array_to_string(string_to_array('a,b', ','), '{long}')",
]


@pytest.mark.parametrize("grown", GROWING)
def test_no_function_makes_a_very_long_text(catalog: CatalogDatabase, grown: str) -> None:
    """The database counts the memory of a text only when it is there, and does not stop while it writes one."""
    written = grown.format(n=MAX_SHORT + 1, long="x" * 200)
    with pytest.raises(ParameterError, match="HB810"):
        ask(catalog, f"SELECT length({written}) FROM (SELECT '{'a,' * (MAX_SHORT + 1)}' AS s) AS t")


def test_short_texts_are_replaced_padded_and_joined(catalog: CatalogDatabase) -> None:
    sql = (
        "SELECT lpad('a', 3, 'b'), pg_catalog.rpad('a', 2, ' '), replace('abc', 'b', 'xx'),"
        " regexp_replace('aXb', 'X', 'y'), array_to_string(ARRAY['a', 'b'], E'\\n'),"
        " pg_catalog.array_to_string(ARRAY['a', 'b'], ', ')"
    )
    assert ask(catalog, sql).rows == [("bba", "a ", "axxc", "ayb", "a\nb", "a, b")]


@pytest.mark.parametrize(
    "command", [r"\d", r"\d health", r"\d+ health", r"\dt+", r"\l", r"\dn+", r"\du", r"\df", r"\dp"]
)
def test_psql_describes_what_there_is(shared_port: Port, command: str) -> None:
    done = subprocess.run(
        ["psql", "-X", shared_port.dsn(), "-c", command], capture_output=True, text=True, timeout=60, check=True
    )
    assert not done.stderr
    if "health" in command:
        assert "spending" in done.stdout
        assert "double precision" in done.stdout


@pytest.mark.postgres
def test_every_column_of_the_catalog_is_one_of_postgresql(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        rows = connection.execute(
            "SELECT n.nspname || '.' || c.relname, array_agg(a.attname::text) FROM pg_class c JOIN pg_namespace n"
            " ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attnum > 0 GROUP BY 1"
        ).fetchall()
    real = {name: set(columns) for name, columns in rows}
    for name, columns in contents.known_tables().items():
        assert columns.keys() <= real[name], name
    filled = contents.rows(TABLES)
    assert all(row.keys() <= real[name] for name, each in filled.items() for row in each)
