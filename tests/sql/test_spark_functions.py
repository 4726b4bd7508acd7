"""Every function on a real Spark, over the table of nasty values: it never raises, and gives what DuckDB gives."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from tests.fixtures import spark
from tests.fixtures.nasty_values import COLS, TABLE, applications, fill, literal, random_expression
from tests.fixtures.visits_table import arrays
from tests.sql.test_patterns import FORMATS, SPECIAL, random_moment

from hubbub.core.schema import Column, Kind
from hubbub.engines.base import Arrays
from hubbub.engines.spark.connection import SparkEngine
from hubbub.errors import QueryError, RunError
from hubbub.sql import render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.functions import FUNCTIONS
from hubbub.sql.relations import Scan

#: What is refused on Spark, in some or all of its ways.
REFUSED = {"regexp", "to_date", "to_timestamp", "to_integer", "to_float", "to_text"}
#: Java's library and C's differ in the last bits of these.
OTHER_BITS = {"ln", "log10", "log2", "exp", "power", "sin", "cos", "tan", "asin", "acos", "atan"}
NUMBERED = replace(TABLE, columns=(*TABLE.columns, Column("row", Kind.INTEGER)))
SCAN = Scan(NUMBERED, (*COLS.values(), Col("row", Kind.INTEGER)), (*COLS, "row"))


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        fill(connection)
        connection.execute("CREATE TABLE kept AS SELECT *, row_number() OVER () AS row FROM nasty")
        connection.execute("CREATE OR REPLACE TABLE nasty AS FROM kept")
        yield connection


@pytest.fixture(scope="module")
def remote(
    local: duckdb.DuckDBPyConnection, spark_address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkEngine]:
    files = spark.copied(local, ["nasty"], tmp_path_factory.mktemp("nasty"))
    opened = spark.engine({"nasty": NUMBERED}, files, spark_address)
    yield opened
    opened.close()


def text(exprs: list[Expr], dialect: Dialect) -> str:
    shown = ", ".join(f"{render.expression(expr, dialect)} AS e{i}" for i, expr in enumerate(exprs))
    return f"SELECT {shown} FROM ({render.relation(SCAN, dialect)}) AS n ORDER BY {dialect.identifier('row')}"


def listed(table: Arrays, exprs: list[Expr]) -> list[list[object]]:
    """Give plain values column by column; of a date without a time its midnight."""
    found = []
    for i in range(len(exprs)):
        plain = np.ma.getdata(table[f"e{i}"])
        plain = plain.astype("datetime64[us]") if plain.dtype.kind == "M" else plain
        mask = np.ma.getmaskarray(table[f"e{i}"])
        found.append([None if hidden else value for value, hidden in zip(plain.tolist(), mask.tolist(), strict=True)])
    return found


def accepted(exprs: list[Expr]) -> list[Expr]:
    """Leave out what Spark refuses."""
    kept = []
    for expr in exprs:
        try:
            render.expression(expr, SPARK)
        except QueryError as refused:
            if refused.code != "HB574" or not refused.remedy or not functions(expr) & REFUSED:
                raise
        else:
            kept.append(expr)
    return kept


def same(mine: object, theirs: object, *, exact: bool) -> bool:
    if not exact and isinstance(mine, float) and isinstance(theirs, float) and np.isfinite(mine):
        return abs(mine - theirs) <= 2.0**-40 * abs(mine)
    return mine == theirs and type(mine) is type(theirs)


def differences(
    local: duckdb.DuckDBPyConnection, remote: SparkEngine, exprs: list[Expr], *, exact: bool = True
) -> list[str]:
    """Say where an expression raises on Spark, or gives something else than on DuckDB."""
    here = listed(arrays(local, text(exprs, DUCKDB)), exprs)
    try:
        there = remote.run(text(exprs, SPARK)).through(lambda table: listed(table, exprs))
    except RunError:
        if len(exprs) == 1:
            return [f"raises: {render.expression(exprs[0], SPARK)}"]
        half = len(exprs) // 2
        return [each for some in (exprs[:half], exprs[half:]) for each in differences(local, remote, some, exact=exact)]
    found = []
    for expr, mine, theirs in zip(exprs, here, there, strict=True):
        pairs = enumerate(zip(mine, theirs, strict=True))
        wrong = next(((i, a, b) for i, (a, b) in pairs if not same(a, b, exact=exact)), None)
        if wrong is not None:
            found.append(f"row {wrong[0] + 1}: {wrong[1]!r} is {wrong[2]!r}: {render.expression(expr, DUCKDB)[:300]}")
    return found


def functions(expr: Expr) -> set[str]:
    if not isinstance(expr, FunctionCall):
        return set()
    return {expr.function}.union(*(functions(arg) for arg in expr.args))


@pytest.mark.parametrize("start", range(0, len(FUNCTIONS), 12))
def test_functions_raise_nothing_on_spark_and_give_what_duckdb_gives(
    local: duckdb.DuckDBPyConnection, remote: SparkEngine, start: int
) -> None:
    for name in sorted(FUNCTIONS)[start : start + 12]:
        every = applications(name)
        kept = accepted(every)
        assert name in REFUSED or len(kept) == len(every), f"{name} is refused"
        assert kept
        some = random.Random(name).sample(kept, min(len(kept), 12))
        assert differences(local, remote, some, exact=name not in OTHER_BITS) == []


def test_formats_and_patterns_read_on_spark_what_they_read_in_duckdb(
    local: duckdb.DuckDBPyConnection, remote: SparkEngine
) -> None:
    chance = random.Random(8)
    texts = sorted({random_moment(chance) for _ in range(700)} | {"a\nb", "ab\n", "\n", "É1", "x-y", "_", "²", "1\x0b"})
    column = Col("x", Kind.TEXT)
    times = [FunctionCall("parse_time", (column, literal(form)), Kind.TIMESTAMP) for form in FORMATS]
    matches = [FunctionCall("regexp", (column, literal(pattern)), Kind.BOOLEAN) for pattern in SPECIAL]

    def asked(dialect: Dialect, micros: str) -> str:
        rows = ", ".join(f"({place}, {dialect.text(text)})" for place, text in enumerate(texts))
        shown = [f"{micros}({render.expression(call, dialect)})" for call in times]
        shown += [f"CASE WHEN {render.expression(call, dialect)} THEN 1 ELSE 0 END" for call in matches]
        values = ", ".join(f"CAST({text} AS DOUBLE) AS c{place}" for place, text in enumerate(shown))
        named = values.replace(dialect.identifier("x"), "x")
        return f"SELECT {named} FROM (VALUES {rows}) AS t(n, x) ORDER BY n"

    mine = local.execute(asked(DUCKDB, "epoch_us")).fetchnumpy()
    theirs = remote.run(asked(SPARK, "unix_micros")).through(lambda columns: columns)
    for place, call in enumerate([*times, *matches]):
        expected = [None if value is None or value != value else value for value in mine[f"c{place}"].tolist()]
        found = [None if value is None or value != value else value for value in theirs[f"c{place}"].tolist()]
        assert found == expected, call.args[1]


def test_random_expressions_raise_nothing_on_spark(local: duckdb.DuckDBPyConnection, remote: SparkEngine) -> None:
    chance = random.Random(7)
    made = [expr for expr in (random_expression(chance, 2) for _ in range(60)) if not functions(expr) & OTHER_BITS]
    assert differences(local, remote, accepted(made)) == []


def test_a_difference_is_noticed(
    local: duckdb.DuckDBPyConnection, remote: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: rounding half to even, as Spark's rint does."""
    monkeypatch.setitem(SPARK.spellings, "round", lambda _, a: f"rint({a[0]})")
    assert differences(local, remote, accepted(applications("round"))[:12]) != []


def test_sums_are_exact_at_the_edges_of_their_parts(remote: SparkEngine) -> None:
    """Sums of the largest and smallest numbers of each way to add up, many of them, as Python adds them."""
    for most in (2**22 - 1, 2**22, 2**44 - 1, 2**44, 2**62, 2**85):
        values = [most, -most, most, most - 1, -most + 1, -most, -most, 0, 1, -1, 4_194_303, -4_194_304]
        values = [value for value in values if abs(value) <= most]
        kind = SPARK.narrow(most)
        rows = ", ".join(f"({value}{'BD' if most > 2**62 else ''})" for value in values)
        total = f"CAST({SPARK.total('v', most)} AS STRING) AS total"
        sql = f"SELECT {total} FROM (SELECT CAST(v AS {kind}) AS v FROM VALUES {rows} AS t(v)) CROSS JOIN range(1000)"
        assert remote.run(sql).through(lambda found: found["total"].tolist()) == [str(1000 * sum(values))]


def test_steps_round_half_away_from_zero_for_every_double(remote: SparkEngine) -> None:
    edges = [0.5, 1.5, 2.5, 0.49999999999999994, 0.5000000000000001, 4503599627370495.5, 4503599627370497.0, 1e300, 0.0]
    both = [*edges, *(-edge for edge in edges)]
    rows = ", ".join(f"({SPARK.number(Fraction(value))})" for value in both)
    for low in (0, -(2**53) + 1):
        high = 2**53 - 1
        sql = f"SELECT x, {SPARK.steps('x', low, high, 'BIGINT')} AS k FROM VALUES {rows} AS t(x)"
        found = remote.run(sql).through(lambda table: list(zip(table["x"].tolist(), table["k"].tolist(), strict=True)))
        for x, k in found:
            inside = Fraction(min(max(x, low), high))
            away = int(abs(inside) + Fraction(1, 2)) * (1 if inside >= 0 else -1)
            assert k == away, x


@pytest.mark.parametrize("value", ["a\\", "\\'", "it's", "%_\\n", "\u2028", "`", '"', "é\x00b"])
def test_a_constant_text_means_itself(remote: SparkEngine, value: str) -> None:
    sql = f"SELECT {SPARK.text(value)} AS v"
    assert remote.run(sql).through(lambda found: found["v"].tolist()) == [value]


def test_dates_are_in_utc_whatever_the_server_says(remote: SparkEngine) -> None:
    sql = f"SELECT CAST({SPARK.literal(datetime(1, 1, 1), Kind.TIMESTAMP)} AS STRING) AS v"
    assert remote.run(sql).through(lambda found: found["v"].tolist()) == ["0001-01-01 00:00:00"]


def test_what_is_refused_is_refused_with_a_remedy() -> None:
    for name in REFUSED:
        refused = [expr for expr in applications(name) if expr not in accepted([expr])]
        assert refused, name


PATTERNS = ("a%b%c", "%a%b%", "%a_%b", "a%_%a", "%.%(%", "%a%a%a%a%a%a%a_b", "%é%_%", "%\n%a%", "_%_%_", "%ab%ab")
SUBJECTS = ("", "a", "ab", "abab", "aab", "abcabc", "a.b(c", "é🙂a", "x\na\n", "bca", "aXbXc", "🙂🙂🙂", "ab" * 3)


def matched(pattern: str, subject: str) -> bool:
    """Match by trying everything."""
    if not pattern:
        return not subject
    if pattern[0] == "%":
        return any(matched(pattern[1:], subject[place:]) for place in range(len(subject) + 1))
    return bool(subject) and pattern[0] in ("_", subject[0]) and matched(pattern[1:], subject[1:])


def test_patterns_match_what_they_should_and_in_a_time_by_the_length_of_the_text(remote: SparkEngine) -> None:
    """Several % are tried in every combination by Java: with seven and 4,096 letters nobody would see the end of it."""
    column = Col("x", Kind.TEXT)
    calls = [FunctionCall("like", (column, Literal(pattern, Kind.TEXT)), Kind.BOOLEAN) for pattern in PATTERNS]
    shown = ", ".join(f"{render.expression(call, SPARK)} AS p{i}" for i, call in enumerate(calls))
    values = ", ".join(f"({SPARK.text(each)})" for each in (*SUBJECTS, "a" * 4096))
    found = remote.run(f"SELECT x, {shown} FROM (VALUES {values}) AS v(x)").through(dict)
    for place, subject in enumerate(found["x"].tolist()):
        for i, pattern in enumerate(PATTERNS):
            if len(subject) < 100:
                assert bool(found[f"p{i}"][place]) is matched(pattern, subject), (pattern, subject)
            else:
                assert bool(found[f"p{i}"][place]) is (set(pattern) <= set("a_%")), pattern


def test_a_number_that_is_a_long_text_breaks_nothing(remote: SparkEngine) -> None:
    number = render.expression(FunctionCall("to_real", (Col("x", Kind.TEXT),), Kind.REAL), SPARK)
    text = "SELECT {} AS v FROM (VALUES ('1' || repeat('_1', 2047)), (repeat('1', 4096)), (' 1_0 ')) AS v(x)"
    found = remote.run(text.format(number)).through(dict)["v"]
    assert found[2] == 10
