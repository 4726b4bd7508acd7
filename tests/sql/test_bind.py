"""Binding: a bound query means the same as in the engine, and every row keeps its owner."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest
from tests.sql.corpus.queries import entries

from hubbub.core.asked import Asked, asking
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.curator.question import Question
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.expressions import Col, Literal, facts
from hubbub.sql.parse import parse
from hubbub.sql.query import Query
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow, owned

Tables = Mapping[str, Table]
Exact = Callable[[Query], str]

#: Queries that mean the same to hubbub and to the engine, on data within the declared bounds.
SAME = [entry.text for entry in entries("made")]


def comparable(value: object) -> tuple[int, object]:
    """Convert a value for comparison: numbers to nine digits, dates to timestamps, infinities and NaN to NULL."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return 0, ""
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float | Decimal):
        return 2, float(f"{float(value):.9g}") + 0.0
    if isinstance(value, datetime):
        return 4, value.isoformat()
    return (4, f"{value.isoformat()}T00:00:00") if isinstance(value, date) else (3, str(value))


def rows(connection: duckdb.DuckDBPyConnection, text: str) -> list[tuple[tuple[int, object], ...]]:
    return sorted(tuple(comparable(x) for x in row) for row in connection.execute(text).fetchall())


@pytest.fixture(scope="module")
def engine(furnish: Callable[[duckdb.DuckDBPyConnection, int], None]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        furnish(connection, 7)
        yield connection


@pytest.mark.parametrize("text", SAME)
def test_binding_leaves_the_tree_as_it_was_read(clinic: Tables, text: str) -> None:
    """A text is parsed once for an analyst and its tree is shared, also between threads."""
    with asking(Asked()):
        tree, _ = parse(text)
        before = repr(tree)
        first = bind(text, tables=clinic)
        Question(text).text()
        assert parse(text)[0] is tree
        assert repr(tree) == before
        assert bind(text, tables=clinic) == first


@pytest.mark.parametrize("text", SAME)
def test_a_bound_query_means_what_the_engine_reads_in_it(
    engine: duckdb.DuckDBPyConnection, clinic: Tables, without_noise: Exact, text: str
) -> None:
    assert rows(engine, without_noise(bind(text, tables=clinic))) == rows(engine, text)


@pytest.mark.parametrize("text", SAME)
def test_taking_a_unit_away_takes_its_rows_away_and_changes_no_other(
    clinic: Tables, furnish: Callable[[duckdb.DuckDBPyConnection, int], None], text: str
) -> None:
    """The invariant of all sensitivities, checked for each unit in turn, also under row-level privacy."""
    rel = bind(text, tables=clinic).relation
    shown = render.relation(rel)
    with duckdb.connect() as connection:
        furnish(connection, 11)
        before = Counter(connection.execute(shown).fetchall())
        if not owned(rel):
            for n in range(30):
                connection.execute("BEGIN; DELETE FROM logs WHERE rowid = ?", [n])
                rest = Counter(connection.execute(shown).fetchall())
                connection.execute("ROLLBACK")
                assert not rest - before
                assert (before - rest).total() <= 1
            return
        index = [c[0] for c in connection.execute(shown).description or []].index("$unit")
        for person in range(1, 16):
            connection.execute("BEGIN")
            for table in ("people", "visits"):
                connection.execute(f"DELETE FROM {table} WHERE person = ?", [person])
            rest = Counter(connection.execute(shown).fetchall())
            connection.execute("ROLLBACK")
            assert rest == Counter({row: n for row, n in before.items() if row[index] != person})


NUMBERS = ["a", "b", "c", "i", "j", "2", "3", "0.5", "-a", "-2", "(a)", "abs(b)", "i::double", "-i::double"]
NUMBERS += [".5", "1.", "1.5e+1", "-.25", "+a", "+2"]
TRUTHS = [
    "p",
    "q",
    "not p",
    "a > b",
    "a = b",
    "i < j",
    "p is null",
    "p is not null",
    "p is true",
    "q is not true",
    "p = q",
    "s like 'a%'",
    "s not like '%b'",
    "a in (1,2,3)",
    "i not in (7)",
    "a between b and c",
    "a not between 1 and 2",
    "i between 1 and 2 and q",
    "s is null",
    "a is distinct from b",
    "i is not distinct from j",
    "p isnull",
    "s || 'x' = 'abx'",
    "not a = b",
    "not p is null",
    "not a in (1,3)",
    "not s like 'x'",
    "s ilike 'A%'",
    "case when p then q else not q end",
    "not not p",
    "s not ilike 'A%'",
    "not s not like 'a%'",
    "i notnull",
    "i not null",
    "p is unknown",
    "q is not unknown",
    "p is not false",
    "i in (7, null)",
    "i not in (5, null)",
    "a not in (.5, 1.5)",
    "a = .5",
    "b > -.5",
    "c < 1.",
    "a > 1e-1",
    "+ a > + 1",
    "a not between .5 and 2. and q",
    "s || 'x' not like '%x'",
    "not a not between 1 and 2",
    "a != b",
    "i == j",
    "a is not distinct from .5 + 1",
]
COMPARISONS = [" = ", " <> ", " is distinct from "]
#: What a comparison may follow and precede without parentheses; `not p = q` is `not (p = q)`.
LEFT = {"p", "q", "not p", "not not p", "i between 1 and 2 and q", "a not between .5 and 2. and q"}
RIGHT = {"p", "q", "case when p then q else not q end"}


def chain(rng: random.Random) -> tuple[str, bool]:
    """Write a chain of operands without parentheses, and tell whether a comparison is an operand of another one."""
    if rng.random() < 0.5:
        text = rng.choice(NUMBERS)
        for _ in range(rng.randint(1, 4)):
            text += rng.choice([" + ", " - ", " * ", " / ", " % ", " ^ 2 + ", " ** 3 * ", "-", "*"])
            number = rng.choice(NUMBERS)
            text += " " * (text[-1] == number[0] == "-") + number  # -- starts a comment
        compared = rng.choice([" > ", " <= ", " = "]) + rng.choice(NUMBERS) if rng.random() < 0.3 else ""
        return text + compared, False
    left = rng.choice(TRUTHS)
    text, chained, before = left, False, ""
    for _ in range(rng.randint(1, 4)):
        sign = rng.choice([" and ", " or ", *COMPARISONS, " and not ", " or not "])
        right = rng.choice(TRUTHS)
        if sign in COMPARISONS:
            chained |= left not in LEFT | RIGHT or right not in RIGHT or before in COMPARISONS
        text, left, before = text + sign + right, right, sign
    return text, chained


def test_operators_bind_as_they_do_in_the_engine() -> None:
    """Of random chains without parentheses, all but chained comparisons are accepted, with the engine's results."""
    kinds = dict.fromkeys("abc", Kind.REAL) | dict.fromkeys("pq", Kind.BOOLEAN) | dict.fromkeys("ij", Kind.INTEGER)
    columns = tuple(Column(name, kind) for name, kind in {"u": Kind.INTEGER, "s": Kind.TEXT, **kinds}.items())
    tables = {"t": Table("t", columns, PrivacyUnit("u"))}
    rng, outcomes = random.Random(5), Counter[str]()
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t(u INT, a DOUBLE, b DOUBLE, c DOUBLE, p BOOLEAN, q BOOLEAN, s VARCHAR, i BIGINT, j BIGINT);"
            "INSERT INTO t SELECT 1, * FROM (VALUES (1.5), (-2), (null)), (VALUES (2), (-1.5)), (VALUES (0.5), (4)),"
            " (VALUES (true), (false), (null)), (VALUES (true), (false)), (VALUES ('ab'), ('x'), (null)),"
            " (VALUES (7), (-3), (null)), (VALUES (2), (5))"
        )
        for text, chained in [chain(rng) for _ in range(800)]:
            try:
                query = bind(f"SELECT count({text}) FROM t", tables=tables)
            except QueryError as error:
                # a chained comparison may also compare a text with a boolean
                assert chained, f"{text}: {error}"  # noqa: PT017
                assert error.code in ("HB501", "HB508")  # noqa: PT017
                outcomes["refused"] += 1
                continue
            outcomes["chained" if chained else "accepted"] += 1
            argument = render.expression(query.aggregates[0].arguments[0])
            ours = f"SELECT {argument} FROM ({render.relation(query.relation)}) AS r"
            assert rows(connection, ours) == rows(connection, f"SELECT {text} FROM t"), text
    assert outcomes["accepted"] > 500
    assert outcomes["refused"] > 200


# --- shape -------------------------------------------------------------------------------------------------------


def test_keys_and_aggregates_have_names_and_the_output_is_over_them_alone(clinic: Tables) -> None:
    query = bind("SELECT health, 2 * count(*) AS n, sum(age) / count(*) FROM people GROUP BY health", tables=clinic)
    names = {key.name for key in query.keys} | {a.name for a in query.aggregates}
    assert [name for name, _ in query.select] == ["health", "n", "col"]
    assert [a.function for a in query.aggregates] == ["count", "sum"]
    assert {col.name for _, expr in query.select for col in cols(expr)} == names


def cols(expr: object) -> list[Col]:
    if isinstance(expr, Col):
        return [expr]
    return [col for arg in getattr(expr, "args", ()) for col in cols(arg)]


def scans(rel: Rel) -> list[Scan]:
    match rel:
        case Scan():
            return [rel]
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return scans(rel.input)
        case Join():
            return scans(rel.left) + scans(rel.right)
        case Union():
            return [scan for part in rel.inputs for scan in scans(part)]


def test_only_columns_that_are_used_are_scanned(clinic: Tables) -> None:
    text = "SELECT city, count(*) FROM (SELECT * FROM people WHERE age > 3) JOIN sites USING (site) GROUP BY city"
    people, sites = scans(bind(text, tables=clinic).relation)
    assert people.sources == ("age", "site")
    assert sites.sources == ("site", "city")


def test_a_declared_list_is_looked_at_once(clinic: Tables) -> None:
    """If a column is only a key, the cells enforce its list; otherwise the scan does."""
    (loose,) = scans(bind("SELECT health, count(*) FROM people GROUP BY health", tables=clinic).relation)
    assert {name.split("_")[0] for name in loose.loose} == {"health"}
    text = "SELECT health, count(*) FROM people WHERE health <> 'x' GROUP BY health"
    (strict,) = scans(bind(text, tables=clinic).relation)
    assert strict.loose == frozenset()
    assert "IN ('good', 'fair', 'poor')" in render.relation(strict)


def test_the_order_of_nulls_is_that_of_the_dialect(clinic: Tables) -> None:
    text = "SELECT health, avg(age) FROM people GROUP BY health ORDER BY 2 DESC"
    assert [bind(text, tables=clinic, dialect=d).order[0].nulls_first for d in ("duckdb", "postgres")] == [False, True]


def test_whole_numbers_divide_as_the_dialect_says(clinic: Tables) -> None:
    text = "SELECT age / 10 AS k, count(*) FROM people GROUP BY 1"
    duck, post = (bind(text, tables=clinic, dialect=d).keys[0].expr for d in ("duckdb", "postgres"))
    assert facts(post).values == tuple(range(12))
    assert len(facts(duck).values or ()) == 111


@pytest.mark.parametrize("whole", ["floor(income)", "extract(year FROM day)", "date_part('year', day)", "sign(age)"])
def test_what_is_no_integer_to_postgres_keeps_its_fraction(clinic: Tables, whole: str) -> None:
    """In PostgreSQL, floor and date parts are doubles, so dividing them is not integer division."""
    text = f"SELECT count({whole} / 2) FROM people"
    argument = bind(text, tables=clinic, dialect="postgres").aggregates[0].arguments[0]
    assert "trunc" not in render.expression(argument)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT extract(year FROM day) AS y, count(*) FROM people GROUP BY y ORDER BY y",
        "SELECT percentile_cont(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY income) AS q FROM people",
        "SELECT health || '!' AS k, count(*) FILTER (WHERE age > 3) FROM people WHERE health ILIKE 'g%' GROUP BY 1",
        "SELECT date_trunc('month', day)::date AS m, sum(age::bigint) FROM people GROUP BY m FETCH FIRST 5 ROWS ONLY",
        "SELECT count(*) FROM people WHERE day >= '2020-01-01'::date - INTERVAL '3 months' AND health ~~ 'g%'",
        "SELECT stddev_samp(age), regr_slope(age, income), width_bucket(max(age), 0, 100, 5) FROM people",
        "SELECT count(*) FROM people WHERE age / 10 = $1 AND substring(health FROM 1 FOR 2) = 'go'",
    ],
)
def test_postgres_spelling_is_read(clinic: Tables, text: str) -> None:
    query = bind(text, tables=clinic, dialect="postgres", parameters=[3] if "$1" in text else ())
    assert query.aggregates


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM people WHERE age IS NOT NULL",
        "SELECT count(*) FROM people WHERE age NOTNULL",
        "SELECT count(*) FROM people WHERE NOT age IS NULL",
        "SELECT count(*) FROM people WHERE (age ISNULL) = FALSE",
    ],
)
def test_a_negation_is_never_lost(
    engine: duckdb.DuckDBPyConnection, clinic: Tables, without_noise: Exact, text: str, dialect: str
) -> None:
    everybody = rows(engine, "SELECT count(*) FROM people")
    assert rows(engine, without_noise(bind(text, tables=clinic, dialect=dialect))) == everybody


def test_parameters_are_constants_and_may_hold_any_text(clinic: Tables) -> None:
    hostile = "'; DROP TABLE people; --\u202e"
    query = bind("SELECT count(*) FROM people WHERE health = $2 AND age > $1", tables=clinic, parameters=[30, hostile])
    again = bind("SELECT count(*) FROM people WHERE health = ? AND age > ?", tables=clinic, parameters=[hostile, 30])
    assert query == again
    assert "'''; DROP TABLE people; --" in render.relation(query.relation)


@pytest.mark.parametrize(
    ("text", "top"),
    [
        ("SELECT page FROM logs GROUP BY page ORDER BY count(*) DESC LIMIT 3", True),
        ("SELECT page AS p FROM logs GROUP BY 1 ORDER BY COUNT(*) DESC FETCH FIRST 3 ROWS ONLY", True),
        ("SELECT health FROM people GROUP BY health ORDER BY count(DISTINCT person) DESC LIMIT 1", True),
        ("SELECT page FROM logs WHERE x > 0.5 GROUP BY page ORDER BY count(*) DESC LIMIT 3", True),
        ("SELECT page FROM (SELECT page, count(*) n FROM logs GROUP BY page) ORDER BY n DESC LIMIT 3", True),
        ("SELECT page, count(*) FROM logs GROUP BY page ORDER BY count(*) DESC LIMIT 3", False),
        ("SELECT page FROM logs GROUP BY page ORDER BY count(*) LIMIT 3", False),
        ("SELECT page FROM logs GROUP BY page ORDER BY count(*) DESC", False),
        ("SELECT page FROM logs GROUP BY page HAVING count(*) > 3 ORDER BY count(*) DESC LIMIT 3", False),
        ("SELECT page FROM logs GROUP BY page ORDER BY sum(x) DESC LIMIT 3", False),
        ("SELECT page FROM logs GROUP BY page ORDER BY count(*) DESC, page LIMIT 3", False),
        ("SELECT page FROM logs GROUP BY ROLLUP(page) ORDER BY count(*) DESC LIMIT 3", False),
    ],
)
def test_the_keys_of_the_largest_counts_are_one_selection(clinic: Tables, text: str, top: bool) -> None:  # noqa: FBT001
    query = bind(text, tables=clinic)
    assert query.top is top
    assert query.limit == (None if text.endswith("DESC") else query.limit)


def test_several_quantiles_at_once_are_several_columns(clinic: Tables) -> None:
    query = bind("SELECT quantile_cont(income, [0.25, 0.5]) AS q FROM people", tables=clinic)
    assert [name for name, _ in query.select] == ["q_0.25", "q_0.5"]
    assert [a.level for a in query.aggregates] == [Fraction(1, 4), Fraction(1, 2)]


def test_an_aggregate_that_is_written_twice_is_asked_once(clinic: Tables) -> None:
    text = "SELECT count(*), 2 * count(*), avg(age) FROM people HAVING count(*) > 1 ORDER BY avg(age)"
    assert [a.function for a in bind(text, tables=clinic).aggregates] == ["count", "avg"]


# --- finite keys -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("health", ("good", "fair", "poor")),
        ("female", (False, True)),
        ("age > 30", (False, True)),
        ("year", (1, 2, 3, 4, 5)),
        ("floor(age / 50)", (0, 1, 2)),
        ("floor(income / 20000)", (0, 1, 2)),
        ("age // 50", (0, 1, 2)),
        ("width_bucket(income, 0, 50000, 2)", (0, 1, 2, 3)),
        ("round(income, -4)", tuple(Fraction(10000 * n) for n in range(6))),
        ("quarter(day)", (1, 2, 3, 4)),
        ("year(day)", (2019, 2020, 2021)),
        ("date_trunc('year', day)", (datetime(2019, 1, 1), datetime(2020, 1, 1), datetime(2021, 1, 1))),
        ("CASE WHEN income > 10 THEN 'rich' WHEN income <= 10 THEN 'poor' END", ("rich", "poor")),
        ("CASE WHEN spending > 10 THEN year ELSE 9 END", (1, 2, 3, 4, 5, 9)),
        # two columns with too many pairs of values: the part that is computed from them has few
        ("floor((cast(income as integer) + age) / 20000) * 20000", (0, 20000, 40000)),
        ("year * 2", (2, 4, 6, 8, 10)),
        ("year - year", (0,)),
        ("cast(income as integer) % 3", (0, 1, 2)),
        ("coalesce(health, 'none')", ("good", "fair", "poor", "none")),
        ("upper(health)", ("GOOD", "FAIR", "POOR")),
        ("least(greatest(floor(spending), 0), 2)", (0, 1, 2)),
        ("dow", None),
    ],
)
def test_a_finite_key_has_its_list(clinic: Tables, key: str, values: tuple[object, ...] | None) -> None:
    if values is None:
        with pytest.raises(QueryError, match="HB506"):
            bind(f"SELECT {key}, count(*) FROM people GROUP BY 1", tables=clinic)
        return
    assert facts(bind(f"SELECT {key}, count(*) FROM people GROUP BY 1", tables=clinic).keys[0].expr).values == values


@pytest.mark.parametrize(
    "key", ["spending", "income", "income / 7", "seen", "year(seen)", "ln(year)", "length(health || 'é')"]
)
def test_a_key_without_a_list_is_left_to_discovery(clinic: Tables, key: str) -> None:
    query = bind(f"SELECT {key}, count(*) FROM people GROUP BY 1", tables=clinic)
    known = facts(query.keys[0].expr).values
    assert known is None or key.startswith("length")


def test_values_of_a_sub_query_reach_the_key(clinic: Tables) -> None:
    inner = "SELECT person, CASE WHEN sum(age) > 50 THEN 'a' ELSE 'b' END AS k FROM people GROUP BY person"
    text = f"SELECT k, count(*) FROM ({inner}) GROUP BY k"
    assert facts(bind(text, tables=clinic).keys[0].expr).values == ("a", "b")


def test_bounds_follow_arithmetic(clinic: Tables) -> None:
    query = bind("SELECT sum(2 * age - 10), sum(greatest(0, least(spending, 99.5))) FROM people", tables=clinic)
    bounds = [facts(a.arguments[0]).bounds for a in query.aggregates]
    assert bounds == [Bounds(Fraction(-10), Fraction(210)), Bounds(Fraction(0), Fraction(199, 2))]


def test_a_constant_is_its_own_list(clinic: Tables) -> None:
    query = bind("SELECT 'all' AS k, count(*) FROM people GROUP BY k", tables=clinic)
    assert query.keys[0].expr == Literal("all", Kind.TEXT)


@pytest.mark.parametrize(
    "join",
    [
        "people p JOIN register r ON p.person = r.person",
        "register r JOIN people p ON r.person = p.person AND r.area = 'x'",
        "people JOIN register USING (person)",
        "people p LEFT JOIN register r ON r.person = p.person",
        "register r RIGHT JOIN people p USING (person)",
        "(SELECT person, age FROM people) p JOIN (SELECT person, area FROM register) r ON p.person = r.person",
    ],
)
def test_the_unit_may_meet_its_name_in_a_public_register(
    clinic: Tables, furnish: Callable[[duckdb.DuckDBPyConnection, int], None], without_noise: Exact, join: str
) -> None:
    """Even if the register lists a person twice, each row keeps its owner and no other row changes."""
    register = Table("register", (Column("person", Kind.INTEGER), Column("area", Kind.TEXT, values=("x", "y"))), None)
    tables = {**clinic, "register": register}
    text = f"SELECT area, count(*) FROM {join} GROUP BY area"
    query = bind(text, tables=tables)
    with duckdb.connect() as connection:
        furnish(connection, 5)
        connection.execute(
            "CREATE TABLE register AS SELECT i // 2 AS person, 'xy'[1 + i % 2] AS area FROM range(18) t(i)"
        )
        assert rows(connection, without_noise(query)) == rows(connection, text)
        shown = f'SELECT * FROM ({render.relation(query.relation)}) WHERE "$unit" <> 3'
        before = Counter(connection.execute(shown).fetchall())
        connection.execute("DELETE FROM people WHERE person = 3")
        assert Counter(connection.execute(shown).fetchall()) == before


def test_the_unit_meets_nothing_but_its_name(clinic: Tables) -> None:
    tables = {**clinic, "register": Table("register", (Column("person", Kind.TEXT), Column("n", Kind.INTEGER)), None)}
    for on in ("p.person = r.person", "p.person + 1 = r.n", "p.person > r.n", "p.person = 3 AND p.age = r.n"):
        with pytest.raises(QueryError, match=r"HB508|HB513|HB516"):
            bind(f"SELECT count(*) FROM people p JOIN register r ON {on}", tables=tables)
