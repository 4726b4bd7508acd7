"""SQL over released and public rows: what DuckDB itself parses is looked up by name before it runs."""

from contextlib import suppress

import duckdb
import pytest

from hubbub.errors import QueryError
from hubbub.sql.ordinary_sql import ORDINARY, check_ordinary
from hubbub.sql.text import SourceText

PASS = [
    "SELECT k, sum(n) OVER (PARTITION BY k ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "WITH x AS (SELECT 1 AS a) SELECT a, (SELECT max(n) FROM t) FROM x WHERE EXISTS (SELECT 1 FROM t)",
    "SELECT n, rank() OVER (ORDER BY n DESC) AS r FROM t QUALIFY r < 3 ORDER BY ALL",
    "SELECT CASE WHEN n BETWEEN 1 AND 2 THEN upper(k) || 'x' ELSE coalesce(k, '') END FROM t WHERE k NOT LIKE 'a%'",
    "SELECT date_trunc('month', DATE '2020-01-05') + INTERVAL 1 DAY, EXTRACT(year FROM DATE '2020-01-05') FROM t",
    "SELECT k FROM t INTERSECT SELECT k FROM t EXCEPT ALL SELECT k FROM t",
    "SELECT count(*) FILTER (WHERE n IS NOT DISTINCT FROM 1), TRY_CAST(k AS INTEGER) FROM t GROUP BY ROLLUP (k)",
]
REFUSED = [
    "SELECT * FROM read_csv('x')",
    "SELECT * FROM t, range(3)",
    "SELECT * FROM 'x.csv'",
    "SELECT * FROM other",
    "SELECT * FROM main.t",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM (SHOW TABLES)",
    "SUMMARIZE t",
    "SELECT current_setting('home_directory') FROM t",
    "SELECT now() FROM t",
    "SELECT random() FROM t",
    "SELECT getvariable('x') FROM t",
    "SELECT nextval('s') FROM t",
    "SELECT repeat('x', 1000000000) FROM t",
    "SELECT printf('%1000000000d', n) FROM t",
    "SELECT write_log('x') FROM t",
    "SELECT levenshtein(k, k) FROM t",
    "SELECT damerau_levenshtein(k, k) FROM t",
    "SELECT jaro_winkler_similarity(k, k) FROM t",
    "SELECT sleep_ms(1000) FROM t",
    "SELECT (SELECT count(*) FROM glob('*')) FROM t",
    "WITH x AS (SELECT now() AS a) SELECT a FROM x",
    "SELECT n FROM t ORDER BY random()",
    "SELECT n FROM t GROUP BY n HAVING random() > 0",
    "SELECT sum(n) OVER (ORDER BY random()) FROM t",
]


@pytest.mark.parametrize("sql", PASS)
def test_ordinary_sql_passes_and_runs(sql: str) -> None:
    check_ordinary(sql, ["t"], SourceText(sql))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS k, 1 AS n")
        connection.execute(sql)


@pytest.mark.parametrize("sql", REFUSED)
def test_only_listed_functions_and_tables_pass(sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        check_ordinary(sql, ["t"], SourceText(sql))
    assert caught.value.code in ("HB501", "HB504", "HB505")


def test_no_name_reads_the_clock_or_the_session() -> None:
    standard = {f"{start}{end}" for start in ("current_", "local", "session_", "") for end in _VALUE_NAMES}
    check = SourceText("")
    with duckdb.connect(config={"threads": 1}) as connection:
        functions = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions()"
            " WHERE len(parameters) = 0 AND function_type = 'scalar'"
        ).fetchall()
        read = set[str]()
        for name in standard.union(*functions):
            with suppress(duckdb.BinderException):
                connection.execute(f'EXPLAIN SELECT "{name}" FROM (SELECT 1 AS n) AS t')
                read.add(name)
        assert {"current_timestamp", "user", "localtime"} <= read
        for name in read:
            with pytest.raises(duckdb.BinderException):
                connection.execute(f'EXPLAIN SELECT t."{name}" FROM (SELECT 1 AS n) AS t')
            check_ordinary(f'SELECT t."{name}", n AS "{name}" FROM t', ["t"], check)
            for sql in (f'SELECT n FROM t WHERE "{name}" IS NULL', f'SELECT (SELECT max("{name.upper()}") FROM t)'):
                with pytest.raises(QueryError, match="HB504"):
                    check_ordinary(sql, ["t"], check)


_VALUE_NAMES = ("catalog", "database", "date", "datetime", "role", "schema", "time", "timestamp", "user", "query")


def test_no_listed_function_is_volatile_or_reads_the_environment() -> None:
    rows = duckdb.connect().execute(
        "SELECT DISTINCT function_name FROM duckdb_functions()"
        " WHERE function_type IN ('table', 'pragma', 'table_macro') OR coalesce(stability, '') IN"
        " ('VOLATILE', 'CONSISTENT_WITHIN_QUERY') OR regexp_matches(function_name,"
        " '^(read|write|parquet|pg_|current_|getenv|glob|duckdb|json_execute|query|sniff|pragma|which|import|export)')"
    )
    forbidden = {name for (name,) in rows.fetchall()}
    assert len(forbidden) > 50
    assert not ORDINARY & forbidden - {"histogram"}  # also the name of a table macro, which is refused as a table
