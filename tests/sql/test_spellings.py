"""Other spellings: each means what it means in its own database, and leaves every row with its owner."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import duckdb
import pytest
from sqlglot import exp
from tests.sql.test_bind import rows

from hubbub.core.schema import Table
from hubbub.curator.question import Question
from hubbub.errors import QueryError
from hubbub.sql import bind_comma, bind_join, render
from hubbub.sql.bind import bind
from hubbub.sql.bind_scope import BoundRelation, Context
from hubbub.sql.query import Query
from hubbub.sql.relations import owned
from hubbub.sql.spellings import DIALECTS

Tables = Mapping[str, Table]
Exact = Callable[[Query], str]
Furnish = Callable[[duckdb.DuckDBPyConnection, int], None]

#: FROM clauses that DuckDB reads as they are.
JOINS = [
    "SELECT count(*), sum(greatest(0, least(beds, 100))) FROM people, sites WHERE people.site = sites.site",
    "SELECT city, count(*) FROM people p, visits v, sites s WHERE p.person = v.person AND p.site = s.site GROUP BY 1",
    "SELECT count(*), sum(cost) FROM sites s, visits v, people p"
    " WHERE p.person = v.person AND p.site = s.site AND age > 30",
    "SELECT count(*) FROM sites s, people p, sites t WHERE t.site = s.beds / 10 AND p.site = s.site AND t.city = 'A'",
    "SELECT count(*) FROM people p, visits v, visits w"
    " WHERE p.year = v.year AND p.person = w.person AND w.person = v.person",
    "SELECT count(*) FROM people p, sites s"
    " WHERE (p.site = s.site AND age > 50) OR (beds = 10 AND p.site = s.site AND age < 20)",
    "SELECT count(*), avg(greatest(0, least(beds, 100))) FROM people NATURAL JOIN sites",
    "SELECT count(*), count(beds) FROM people NATURAL LEFT JOIN sites",
    "SELECT count(*) FROM people NATURAL JOIN visits",
    "SELECT count(*), sum(greatest(0, least(beds, 100))) FROM people CROSS JOIN sites",
    "SELECT count(*) FROM people CROSS JOIN sites WHERE age > beds",
    "SELECT count(*) FROM people p JOIN sites s ON p.age > s.beds AND p.age < 2 * s.beds",
    "SELECT count(*), sum(greatest(0, least(beds, 100))) FROM people, sites WHERE age BETWEEN beds AND beds + 9",
    "SELECT count(*) FROM (people JOIN sites USING (site))",
    "SELECT count(*), sum(greatest(0, least(z.beds, 100))) FROM (people JOIN sites USING (site)) AS z",
    "SELECT count(*) FROM ((people p JOIN visits v ON p.person = v.person) JOIN sites s ON p.site = s.site)",
    "SELECT count(*) FROM people p JOIN (visits v JOIN sites s ON v.year = s.site) ON p.person = v.person",
    "SELECT count(*) FROM people p LEFT JOIN (visits v JOIN sites s ON v.year = s.site) ON p.person = v.person",
    "SELECT count(*) FROM visits v, people p LEFT JOIN sites s ON p.site = s.site WHERE p.person = v.person",
    "SELECT sum(x), count(*) FROM (SELECT * FROM (SELECT age AS x, person FROM people) a,"
    " (SELECT person, year FROM visits) b WHERE a.person = b.person) AS t(x, person, other, y)",
    "SELECT count(*) FROM main.people WHERE main.people.age > 30",
    "WITH unused AS (SELECT age FROM people), c AS (SELECT age FROM people) SELECT count(*) FROM c",
    "SELECT upper(health) AS health, count(*) FROM people GROUP BY health",
    "SELECT year + 1 AS year, count(*) FROM people GROUP BY year",
]
#: Expressions that DuckDB reads as they are.
EXPRESSIONS = [
    "female = 1",
    "female <> 0 OR female IN (1)",
    "female = 2",
    "female = 'true'",
    "age = '35'",
    "age > '35.5'",
    "age IN ('35', '36', 37)",
    "age BETWEEN '10' AND 40",
    "substr(CAST(age AS VARCHAR), 1) = 35",
    "CAST(health AS VARCHAR(3)) = 'good'",
    "CAST(income AS DECIMAL(10, 1)) > 12.2",
    "TRY_CAST(spending AS DECIMAL(3, 1)) > -5",
    "CAST(spending AS DECIMAL(4, 0)) = -3",
    "TRY_CAST(income AS DECIMAL(4, 0)) IS NULL",
    "CAST(age AS DECIMAL(10, 2)) / 7 > 5",
    "age > CAST('35.5' AS DECIMAL(3, 1))",
    "if(age > 50, 1, 0) = 1",
    "ifnull(income, 0) > 5",
    "(health, year) IN (('good', 1), ('fair', 2))",
    "health IS NOT NULL AND (health, year) NOT IN (('good', 1), ('fair', 2))",
    "(age, year) = (35, 1) OR (age, year) <> (40, 1)",
    "day < DATE '2020-12-01' - INTERVAL '90' DAY",
    "day < DATE '2019-01-31' + INTERVAL '1 year 1 month 2 days'",
    "extract('year' FROM day) = 2020",
    "datepart('month', day) = 3",
    "datepart('weekday', day) = 3",
    "last_day(day) > DATE '2020-02-28'",
    "make_date(2020, 2, 29) < day",
    "date_add(day, INTERVAL 3 MONTH) > DATE '2020-06-01'",
    "concat_ws('-', health, NULLIF(CAST(year AS VARCHAR), '1'), 'x') = 'good-x'",
    "concat_ws('-', health) = 'good'",
    "age > 10 * pi()",
    "degrees(age) > 2000",
    "radians(age) > 1",
    "health ~ '^(g|f)o?' AND NOT health ~ 'x{2,3}'",
    "regexp_matches(health, '[a-f]+.r$')",
    "replace(health, 'o', '00') = 'g0000d'",
    "split_part(health, 'o', 3) = 'd'",
    "strptime(CAST(day AS VARCHAR), '%Y-%m-%d') > TIMESTAMP '2020-01-01'",
    "extract(epoch FROM seen - TIMESTAMP '2020-01-01') > 86400 * 100.5",
    "epoch(seen) > 1590000000",
    "extract(day FROM TIMESTAMP '2020-12-01 13:00:00' - seen) = 20 OR extract(day FROM seen - day) > 100",
    "sin(age) + cos(age) + tan(age) + atan(age) > 1",
    "asin(age / 110) > 0.5 AND acos(age / 110) < 1",
    "health LIKE 'g!%%' ESCAPE '!'",
    "health NOT LIKE '%o%d'",
    "health || '%' LIKE '%d!%' ESCAPE '!'",
    "health || '_!' LIKE '%d#_!' ESCAPE '#'",
    "health || '!x' NOT LIKE '%!x' ESCAPE '#'",
]
#: Condition in a dialect, and the same in DuckDB's own SQL.
SAME: list[tuple[str, str, str]] = [
    ("duckdb", "iff(age > 50, year, 0) = 1", "(CASE WHEN age > 50 THEN year ELSE 0 END) = 1"),
    ("duckdb", "nvl2(income, 1, 0) = 1", "income IS NOT NULL"),
    ("duckdb", "decode(health, 'good', 1, 'fair', 2, 0) = 0", "health NOT IN ('good', 'fair') OR health IS NULL"),
    ("duckdb", "decode(health, NULL, 1, 'fair', 2) = 1", "health IS NULL"),
    ("duckdb", "isnull(income, 0) = 0", "coalesce(income, 0) = 0"),
    ("duckdb", "isnull(income)", "income IS NULL"),
    ("duckdb", "zeroifnull(income) = 0", "coalesce(income, 0) = 0"),
    ("duckdb", "nullifzero(income) IS NULL", "coalesce(income, 0) = 0"),
    ("duckdb", "square(year) = 4", "year = 2"),
    ("duckdb", "datediff(month, day, DATE '2021-01-01') = 3", "date_diff('month', day, DATE '2021-01-01') = 3"),
    ("duckdb", "dateadd(month, -3, day) < '2019-06-01'", "day - INTERVAL 3 MONTH < DATE '2019-06-01'"),
    ("duckdb", "date_sub(day, INTERVAL 3 DAY) < '2019-06-01'", "day - 3 < DATE '2019-06-01'"),
    ("duckdb", "day <= DATE '2020-12-01' - INTERVAL '90' DAY (3)", "day <= DATE '2020-09-02'"),
    ("duckdb", "safe_divide(age, year) > 20", "age / year > 20"),
    # a row that is unknown in one column and equal in the others is neither equal nor different
    (
        "postgres",
        "(health, year) NOT IN (('good', 1), ('fair', 2))",
        "NOT ((health = 'good' AND year = 1) OR (health = 'fair' AND year = 2))",
    ),
    ("postgres", "CAST(health AS VARCHAR(3)) = 'goo'", "health = 'good'"),
    ("postgres", "CAST(health || '  ' AS CHAR(5)) = 'good'", "health = 'good'"),
    ("postgres", "CAST(health AS CHAR) = 'g'", "health = 'good'"),
    ("postgres", "CAST(age + 0.5 AS INT) % 2 = 1", "age % 2 = 0"),
    ("postgres", "extract(second FROM seen + INTERVAL '1' SECOND) = 1.0", "second(seen) = 0"),
    ("postgres", "extract(second FROM TIMESTAMP '2020-01-01 00:00:01.5') = 1.5", "TRUE"),
    ("postgres", "date_part('second', TIMESTAMP '2020-01-01 00:00:01.5') = 1.5", "TRUE"),
    ("postgres", "age / 7 = 5", "age // 7 = 5"),
    ("postgres", "to_date(CAST(day AS TEXT), 'YYYY-MM-DD') = day", "day IS NOT NULL"),
    ("postgres", "health ~ '^g'", "health = 'good'"),
    ("bigquery", "PARSE_DATE('%Y-%m-%d', CAST(day AS STRING)) = day", "day IS NOT NULL"),
    ("bigquery", "REGEXP_CONTAINS(health, '^g')", "health = 'good'"),
    (
        "bigquery",
        "TIMESTAMP_DIFF(TIMESTAMP '2021-01-01', seen, HOUR) > 3000",
        "epoch(TIMESTAMP '2021-01-01') - epoch(seen) >= 10803600",
    ),
    ("spark", "health RLIKE '^g'", "health = 'good'"),
    ("postgres", "age::NUMERIC / 7 > 5", "age / 7 > 5"),
    ("postgres", "extract(isodow FROM day) / 2 = 1.5", "isodow(day) = 3"),
    ("spark", "CAST(spending AS INT) = -3", "trunc(spending) = -3"),
    ("spark", "CAST(2.7 AS INT) = 2 AND CAST(-2.7 AS INT) = -2 AND CAST('2.7' AS INT) = 2", "TRUE"),
    (
        "spark",
        "CAST(health || '2.7' AS INT) IS NULL AND CAST(substr('2.7' || health, 1, 3) AS INT) = 2",
        "health <> ''",
    ),
    ("spark", "extract(SECOND FROM TIMESTAMP '2020-01-01 00:00:01.5') = 1.5", "TRUE"),
    ("spark", "second(TIMESTAMP '2020-01-01 00:00:01.5') = 1", "TRUE"),
    ("spark", "dayofweek(day) = 1", "dayofweek(day) = 0"),
    ("spark", "extract(DOW FROM day) = 7", "dayofweek(day) = 6"),
    ("spark", "datediff(DATE '2021-01-01', day) > 400", "DATE '2021-01-01' - day > 400"),
    ("spark", "date_add(day, 30) > DATE '2020-06-01'", "day + 30 > DATE '2020-06-01'"),
    ("spark", "date_sub(day, 30) > DATE '2020-06-01'", "day - 30 > DATE '2020-06-01'"),
    ("spark", 'health = "good"', "health = 'good'"),
    ("spark", "concat(health, CAST(income AS STRING)) IS NULL", "health IS NULL OR income IS NULL"),
    ("spark", "age / 7 > 5", "age / 7 > 5"),
    ("spark", "age div 7 = 5", "age // 7 = 5"),
    ("bigquery", "extract(DAYOFWEEK FROM day) = 7", "dayofweek(day) = 6"),
    ("bigquery", "extract(ISOWEEK FROM day) = 3", "week(day) = 3"),
    ("bigquery", "DATE_DIFF(DATE '2021-01-01', day, MONTH) = 3", "date_diff('month', day, DATE '2021-01-01') = 3"),
    ("bigquery", "DATE_ADD(day, INTERVAL 3 MONTH) > DATE '2020-06-01'", "day + INTERVAL 3 MONTH > DATE '2020-06-01'"),
    ("bigquery", "DATE_SUB(day, INTERVAL 3 DAY) > DATE '2020-06-01'", "day - 3 > DATE '2020-06-01'"),
    ("bigquery", "DATE_TRUNC(day, MONTH) = DATE '2020-03-01'", "date_trunc('month', day) = DATE '2020-03-01'"),
    ("bigquery", "SAFE_CAST(CAST(age AS STRING) AS INT64) = 35", "age = 35"),
    ("bigquery", "IF(age > 50, 1, 0) = 1", "age > 50"),
    ("bigquery", "GREATEST(income, 5) > 0", "income IS NOT NULL"),
    ("bigquery", "`health` = 'good'", "health = 'good'"),
    ("bigquery", "CAST(age + 0.5 AS INT64) % 2 = 1", "age % 2 = 0"),
    ("bigquery", "CAST(CAST(age AS FLOAT64) + 0.5 AS INT64) % 2 = 1", "age % 2 = 0"),
    ("bigquery", "CAST(age * 100000000 AS INT) > 0", "age > 0"),
    ("bigquery", "LENGTH(health) = 4", "length(health) = 4"),
    ("snowflake", "IFF(age > 50, 1, 0) = 1", "age > 50"),
    ("snowflake", "DATEDIFF(month, day, '2021-01-01'::DATE) = 3", "date_diff('month', day, DATE '2021-01-01') = 3"),
    ("snowflake", "DATEADD(day, -3, day) > '2020-06-01'", "day - 3 > DATE '2020-06-01'"),
    ("snowflake", "DAYOFWEEK(day) = 0", "dayofweek(day) = 0"),
    ("snowflake", "CAST(age * 100000000 AS SMALLINT) > 0", "age > 0"),
    ("snowflake", "CAST(income / 7 AS REAL) = income / 7", "income IS NOT NULL"),
    ("snowflake", "CAST(health AS VARCHAR(2)) = 'go'", "health = 'good'"),
    ("snowflake", "NVL(income, 0) = 0", "coalesce(income, 0) = 0"),
    ("snowflake", "LEAST(income, 5) > 0", "least(income, 5) > 0 AND income IS NOT NULL"),
    ("snowflake", "ZEROIFNULL(income) = 0", "coalesce(income, 0) = 0"),
    ("tsql", "[health] = 'good'", "health = 'good'"),
    ("tsql", "ISNULL(income, 0) = 0", "coalesce(income, 0) = 0"),
    ("tsql", "IIF(age > 50, 1, 0) = 1", "age > 50"),
    ("tsql", "DATEDIFF(day, day, '2021-01-01') > 400", "DATE '2021-01-01' - day > 400"),
    ("tsql", "DATEADD(month, 1, day) > '2020-06-01'", "day + INTERVAL 1 MONTH > DATE '2020-06-01'"),
    ("tsql", "DATEPART(weekday, day) = 1", "dayofweek(day) = 0"),
    ("tsql", "age / 7 = 5", "age // 7 = 5"),
    ("tsql", "CONVERT(INT, spending) = -3", "trunc(spending) = -3"),
    ("tsql", "health + '!' = 'good!'", "health = 'good'"),
    ("tsql", "female = 1", "female"),
    ("tsql", "CAST(income AS FLOAT) = 12.25", "income = 12.25"),
    ("tsql", "SQUARE(year) = 4", "year = 2"),
    ("tsql", "LEN(health + '  ') = 4", "health IS NOT NULL"),
    ("tsql", "CAST(-2.7 AS INT) = -2", "TRUE"),
    (
        "tsql",
        "LEN(CAST(health + health + health + health + health + health + health + health AS VARCHAR)) = 30",
        "health <> ''",
    ),
]
#: What has another meaning in a dialect.
DIFFERENT = [
    ("bigquery", "extract(WEEK FROM day) = 3"),
    ("bigquery", "DATE_TRUNC(day, WEEK) = DATE '2020-03-01'"),
    ("bigquery", "DATE_DIFF(DATE '2021-01-01', day, WEEK) = 3"),
    ("snowflake", "DATEDIFF(week, day, '2021-01-01'::DATE) = 3"),
    ("spark", "datediff(MONTH, day, DATE '2021-01-01') = 3"),
    ("tsql", "DATEPART(week, day) = 3"),
    ("tsql", "health LIKE '[a-g]%'"),
    ("duckdb", "timestampdiff(seen, seen, month) = 3"),
    # arguments that a rewriting does not know
    ("bigquery", "TIMESTAMP_TRUNC(seen, DAY, 'America/New_York') = TIMESTAMP '2020-01-01'"),
    ("bigquery", "DATE(seen, 'America/New_York') = DATE '2020-01-01'"),
    ("snowflake", "ADD_MONTHS(day, 1) = DATE '2020-03-31'"),
    ("snowflake", "LAST_DAY(day, 'year') = DATE '2020-12-31'"),
    ("tsql", "CONVERT(VARCHAR(10), day, 103) = '01/02/2020'"),
    ("tsql", "CAST(seen AS SMALLDATETIME) = '2020-01-01 10:00:00'"),
    ("tsql", "CAST(health AS CHAR(6)) + 'x' = 'good  x'"),
    ("tsql", "CAST(female AS VARCHAR(5)) = '1'"),
    ("postgres", "CAST(income AS TEXT) = '12'"),
    ("bigquery", "CAST(seen AS STRING) = '2020-01-01 10:00:00+00'"),
    ("snowflake", "CONCAT_WS('-', health, health) = 'x'"),
]


@pytest.fixture(scope="module")
def engine(furnish: Furnish) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        furnish(connection, 7)
        yield connection


@pytest.mark.parametrize("text", JOINS)
def test_a_from_clause_means_what_duckdb_reads_in_it(
    engine: duckdb.DuckDBPyConnection, clinic: Tables, without_noise: Exact, text: str
) -> None:
    assert rows(engine, without_noise(bind(text, tables=clinic))) == rows(engine, text)


def test_expressions_mean_what_duckdb_reads_in_them(
    engine: duckdb.DuckDBPyConnection, clinic: Tables, without_noise: Exact
) -> None:
    for condition in EXPRESSIONS:
        text = f"SELECT count(*) FROM people WHERE {condition}"
        assert rows(engine, without_noise(bind(text, tables=clinic))) == rows(engine, text), condition


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_spelling_means_what_its_database_reads_in_it(
    engine: duckdb.DuckDBPyConnection, clinic: Tables, without_noise: Exact, dialect: str
) -> None:
    """The expected conditions are written by hand, by the documentation of each database."""
    chosen = [(condition, same) for own, condition, same in SAME if own == dialect]
    assert chosen
    counts = set()
    for condition, same in chosen:
        bound = bind(f"SELECT count(*) AS n FROM people WHERE {condition}", tables=clinic, dialect=dialect)
        expected = rows(engine, f"SELECT count(*) FROM people WHERE {same}")
        assert rows(engine, without_noise(bound)) == expected, condition
        counts |= {str(expected)}
    assert len(counts) > 1


@pytest.mark.parametrize(("dialect", "condition"), DIFFERENT)
def test_what_a_dialect_means_differently_is_refused(clinic: Tables, dialect: str, condition: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(f"SELECT count(*) AS n FROM people WHERE {condition}", tables=clinic, dialect=dialect)
    assert caught.value.code in ("HB747", "HB503", "HB504")
    assert caught.value.remedy


def test_the_first_rows_can_be_asked_for_with_top(clinic: Tables) -> None:
    expected = bind("SELECT health, count(*) AS n FROM people GROUP BY health ORDER BY n DESC LIMIT 2", tables=clinic)
    text = "SELECT TOP 2 health, count(*) AS n FROM people GROUP BY health ORDER BY n DESC"
    assert bind(text, tables=clinic) == expected
    assert bind(text, tables=clinic, dialect="tsql").limit == 2
    assert bind("SELECT top, count(*) FROM (SELECT person, age AS top FROM people) GROUP BY top", tables=clinic).keys


def test_names_of_variances_are_those_of_other_systems(clinic: Tables) -> None:
    found = bind("SELECT var(age), varp(age), std(age), stdev(age), stdevp(age) FROM people", tables=clinic).aggregates
    assert [a.function for a in found] == ["var_samp", "var_pop", "stddev_samp", "stddev_pop"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT count(*) FROM information_schema.people", "HB505"),
        ("SELECT count(*) FROM other.people", "HB505"),
        ("SELECT count(*) FROM db.main.people", "HB505"),
        ("WITH people AS (SELECT 1 AS one FROM visits) SELECT count(*) FROM main.people", "HB505"),
        ("SELECT count(other.people.age) FROM people", "HB505"),
    ],
)
def test_another_schema_is_never_guessed(clinic: Tables, text: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(text, tables=clinic)
    assert caught.value.code == code


def test_a_repeated_operand_cannot_double_at_every_level(clinic: Tables) -> None:
    text = "income"
    for _ in range(20):
        text = f"GREATEST({text}, 5)"
    with pytest.raises(QueryError) as caught:
        bind(f"SELECT count(*) AS n FROM people WHERE {text} > 3", tables=clinic, dialect="bigquery")
    assert caught.value.code == "HB746"


def test_a_rewritten_tree_is_read_again_as_the_same_query(clinic: Tables) -> None:
    """The ledger stores the query in DuckDB's SQL, and that text decides whether an earlier answer is given again."""
    marked = set()
    for dialect, condition, _ in SAME:
        text = f"SELECT count(*) AS n FROM people WHERE {condition}"
        stored = Question(text, dialect=dialect).text()
        if stored.endswith(f" -- dialect = {dialect}"):
            marked.add(dialect)
        else:
            assert bind(stored, tables=clinic) == bind(text, tables=clinic, dialect=dialect), stored
    assert marked == set(DIALECTS) - {"duckdb"}


@pytest.mark.parametrize("dialect", ["postgres", "spark", "tsql", "bigquery"])
def test_what_is_computed_from_released_rows_means_what_its_dialect_means(clinic: Tables, dialect: str) -> None:
    """DuckDB runs that part, and does not know the dialect."""
    released = "(SELECT health, count(*) AS n FROM people GROUP BY health) AS r"

    def outer(expression: str) -> str:
        query = bind(f"SELECT {expression} AS x FROM {released}", tables=clinic, dialect=dialect)
        assert query.after is not None
        return query.after.sql.upper()

    refused = ["max(health) LIKE '[a-g]%'"] + (["max(n) / 3"] if dialect in ("postgres", "tsql") else [])
    for expression in refused:
        with pytest.raises(QueryError) as caught:
            outer(expression)
        assert caught.value.code == "HB747"
    rounded = {"postgres": "CAST(", "bigquery": "ROUND("}.get(dialect, "TRUNC(")
    assert rounded in outer("CAST(max(n) * 1.0 / 3 AS INT)")


def unchanged(clinic: Tables, furnish: Furnish, text: str) -> bool:
    """Take each unit out in turn, and compare what is left of the relation with its other rows."""
    rel = bind(text, tables=clinic).relation
    shown = render.relation(rel)
    assert owned(rel)
    with duckdb.connect() as connection:
        furnish(connection, 11)
        before = Counter(connection.execute(shown).fetchall())
        index = [c[0] for c in connection.execute(shown).description or []].index("$unit")
        for person in range(1, 16):
            connection.execute("BEGIN")
            for table in ("people", "visits"):
                connection.execute(f"DELETE FROM {table} WHERE person = ?", [person])
            rest = Counter(connection.execute(shown).fetchall())
            connection.execute("ROLLBACK")
            if rest != Counter({row: n for row, n in before.items() if row[index] != person}):
                return False
    return True


@pytest.mark.parametrize("text", JOINS)
def test_taking_a_unit_away_takes_its_rows_away_and_changes_no_other(
    clinic: Tables, furnish: Furnish, text: str
) -> None:
    assert unchanged(clinic, furnish, text)


def test_a_planted_join_across_people_is_caught(
    clinic: Tables, furnish: Furnish, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a comma joins two private tables on any equality, as if their rows were of one person."""
    honest = bind_join.bind_join

    def planted(ctx: Context, left: BoundRelation, right: BoundRelation, node: exp.Join) -> BoundRelation:
        return honest(ctx, left, replace(right, owner=None), node)

    monkeypatch.setattr(bind_comma, "bind_join", planted)
    assert not unchanged(clinic, furnish, "SELECT count(*) FROM people p, visits v WHERE p.year = v.year")
