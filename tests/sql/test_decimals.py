"""Decimals are exact: constants are folded as SQL does it, and columns with a step compare as decimals everywhere."""

import math
import operator
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.engines.base import Arrays
from hubbub.errors import QueryError
from hubbub.sql import bind_numbers, decimals, render
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.expressions import Expr, FunctionCall, Literal, facts

F = Fraction
X = Column("x", Kind.REAL, Bounds(F(-1), F(1)), F("0.01"))
Y = Column("y", Kind.REAL, Bounds(F(0), F(1000)), F("0.001"))
TABLE = Table(
    "t",
    (Column("u", Kind.INTEGER), X, Y, Column("i", Kind.INTEGER, Bounds(F(-500), F(500))), Column("n", Kind.INTEGER)),
    PrivacyUnit("u"),
)
#: How the same decimals are stored: as decimals, as the nearest doubles, or as doubles with errors of arithmetic.
STORED = {
    "decimal": "CAST(x AS DECIMAL(9, 2)) AS x, CAST(y AS DECIMAL(9, 3)) AS y",
    "double": "CAST(x AS DOUBLE) AS x, CAST(y AS DOUBLE) AS y",
    "computed": "CAST(100 * x AS DOUBLE) * 0.1::DOUBLE * 0.1::DOUBLE AS x, CAST(y AS DOUBLE) / 3 * 3 AS y",
}


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    """Hold the exact decimals in `plain`, and NULLs among them."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "CREATE TABLE plain AS SELECT n, n AS u, CASE WHEN n % 13 <> 0 THEN CAST(((n * 7) % 201 - 100) / 100.0 "
            "AS DECIMAL(9, 2)) END AS x, CASE WHEN n % 17 <> 0 THEN CAST(((n * 31) % 1500) / 1000.0 AS DECIMAL(9, 3)) "
            "END AS y, CASE WHEN n % 19 <> 0 THEN CAST((n * 3) % 200 - 100 AS INTEGER) END AS i FROM range(600) AS r(n)"
        )
        for name, columns in STORED.items():
            connection.execute(f"CREATE TABLE {name} AS SELECT u, i, n, {columns} FROM plain")
        yield connection


def bound(condition: str) -> Expr:
    (aggregate,) = bind(f"SELECT count({condition}) FROM t", tables={"t": TABLE}).aggregates
    return aggregate.arguments[0]


def text(exprs: list[Expr], dialect: Dialect = DUCKDB) -> str:
    """Write a query for the values of expressions, row by row, of a table named t."""
    relation = bind("SELECT count(x + y + i + n) FROM t", tables={"t": TABLE}).relation
    (order,) = (name for name in ("n_5", "n_4") if dialect.identifier(name) in render.relation(relation, dialect))
    shown = ", ".join(f"{render.expression(expr, dialect)} AS e{k}" for k, expr in enumerate(exprs))
    return f"SELECT {shown} FROM ({render.relation(relation, dialect)}) AS r ORDER BY {dialect.identifier(order)}"


def listed(table: Arrays, count: int) -> list[list[object]]:
    columns = [table[f"e{k}"] for k in range(count)]
    return [
        [
            None if hidden else value
            for value, hidden in zip(np.ma.getdata(c).tolist(), np.ma.getmaskarray(c).tolist(), strict=True)
        ]
        for c in columns
    ]


def results(local: duckdb.DuckDBPyConnection, stored: str, exprs: list[Expr]) -> list[list[object]]:
    local.execute(f"CREATE OR REPLACE VIEW t AS FROM {stored}")
    return listed(arrays(local, text(exprs)), len(exprs))


def truth(local: duckdb.DuckDBPyConnection, condition: str) -> list[object]:
    """Evaluate a condition over the exact decimals in plain DuckDB."""
    return [value for (value,) in local.execute(f"SELECT {condition} FROM plain ORDER BY n").fetchall()]


CONDITIONS = """
x BETWEEN 0.06 - 0.01 AND 0.06 + 0.01
x NOT BETWEEN 0.06 - 0.01 AND 0.06 + 0.01
x = 0.07
x <> 0.07
x < 0.29
x <= 0.29
x > 0.57
x >= 0.57
x IN (0.06 + 0.01, 0.29, -0.57)
x NOT IN (0.1 + 0.2, 0.29)
x IS DISTINCT FROM 0.1 + 0.2
x * 100 = 6
x * 100 = 29
x * 100 = 57
x + 0.01 >= 0.07
x - 0.01 = 0.06
0.07 = x
0.06 < x - 0.01 AND x - 0.01 < 0.08
- x <= - 0.07
-(x + 0.01) = -0.3
x + x + x = 0.21
x + y = 0.3
y - x > 0.11
x * y = 0.006
x * x = 0.0049
x * x * 10000 = 49
i * 0.01 = 0.57
i * 0.1 = x * 10
i + 0.1 = 3.1
x + i = 3.07
abs(x - 0.1) = 0.03
floor(x * 100) = 29
ceil(x * 100) = 29
floor(x * 10) = 3
trunc(x * 100) = -57
round(x, 1) = 0.3
round(y, 2) = 0.29
round(y, 2) = 1.01
round(y + 0.005, 2) = 1.01
round(x * 1.005, 2) = 0.2
CASE WHEN x + 0.01 = 0.07 THEN 0.1 + 0.2 ELSE x END = 0.3
coalesce(x, 0.06) + 0.01 = 0.07
greatest(x, 0.03) + 0.04 = 0.07
least(x, 0.03) * 3 = 0.09
nullif(x, 0.1 + 0.2) IS NULL
x % 0.05 = 0
x % 0.03 = 0.01
y % 0.1 = 0.05
x % y = 0.02
x <= 0.0699999999999999999999
x < 0.0700000000000000000001
x = 0.0700000000000000000001
x >= 0.0700000000000000000001
x BETWEEN 0.0699999999999999999999 AND 0.0700000000000000000001
i < 2.9999999999999999999999
i >= 3.0000000000000000000001
x < 1e3
x > 1e-3
x >= .07
x < 1.
""".strip().splitlines()


@pytest.mark.parametrize("stored", STORED)
def test_comparisons_of_decimals_are_those_of_plain_duckdb(local: duckdb.DuckDBPyConnection, stored: str) -> None:
    values = results(local, stored, [bound(c) for c in CONDITIONS])
    wrong = [c for c, ours in zip(CONDITIONS, values, strict=True) if ours != truth(local, c)]
    assert wrong == []


def test_most_conditions_would_be_wrong_in_plain_doubles(
    local: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without folding, rounding and moving constants, the test above fails."""
    monkeypatch.setattr(bind_numbers, "fold", lambda _: None)
    monkeypatch.setattr(bind_numbers, "exact", lambda call: call)
    monkeypatch.setattr(bind_numbers, "settle", lambda args: args)
    conditions = [c for c in CONDITIONS if " IN (" not in c]  # a list takes constants only
    values = results(local, "double", [bound(c) for c in conditions])
    wrong = [c for c, ours in zip(conditions, values, strict=True) if ours != truth(local, c)]
    assert len(wrong) > 15


# --- random expressions, in exact fractions -------------------------------------------------------------------------

Row = dict[str, Fraction | None]
Formula = Callable[[Row], Fraction | None]
COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def leaf(rng: random.Random) -> tuple[str, Formula]:
    if rng.random() < 0.6:
        name = rng.choice("xyi")
        return name, lambda row: row[name]
    number = F(rng.randint(0, 400), rng.choice((1, 10, 100, 1000)))
    return str(Decimal(number.numerator) / Decimal(number.denominator)), lambda _: number


def formula(rng: random.Random, depth: int) -> tuple[str, Formula]:
    """Write a random expression, with what it means in exact fractions."""
    if depth == 0:
        return leaf(rng)
    sign = rng.choice("+-*")
    (a, left), (b, right) = formula(rng, rng.randrange(depth)), formula(rng, depth - 1)

    def value(row: Row) -> Fraction | None:
        x, y = left(row), right(row)
        if x is None or y is None:
            return None
        return x + y if sign == "+" else x - y if sign == "-" else x * y

    return f"({a} {sign} {b})", value


def comparisons(rng: random.Random, rows: list[Row], count: int) -> tuple[list[str], list[list[object]]]:
    """Compare random expressions with a value that they take, or one next to it."""
    texts, expected = list[str](), list[list[object]]()
    while len(texts) < count:
        shown, value = formula(rng, rng.randint(1, 3))
        computed = [value(row) for row in rows]
        taken = rng.choice([number for number in computed if number is not None])
        at = taken + rng.choice((0, 0, F(1, 10**9), -F(1, 10**9)))
        constant = format(Decimal(at.numerator) / Decimal(at.denominator), "f")
        sign = rng.choice(list(COMPARE))
        texts.append(f"{shown} {sign} {constant}")
        expected.append([None if v is None else COMPARE[sign](v, at) for v in computed])
    return texts, expected


def exact_rows(local: duckdb.DuckDBPyConnection) -> list[Row]:
    rows = local.execute("SELECT x, y, i FROM plain ORDER BY n").fetchall()
    return [{name: None if v is None else F(v) for name, v in zip("xyi", row, strict=True)} for row in rows]


@pytest.mark.parametrize("stored", ["decimal", "double", "computed"])
def test_random_arithmetic_on_decimals_is_exact(local: duckdb.DuckDBPyConnection, stored: str) -> None:
    texts, expected = comparisons(random.Random(7), exact_rows(local), 150)
    values = results(local, stored, [bound(shown) for shown in texts])
    wrong = [shown for shown, ours, exact in zip(texts, values, expected, strict=True) if ours != exact]
    assert wrong == []


# --- other engines --------------------------------------------------------------------------------------------------


def conditions_and_truth(local: duckdb.DuckDBPyConnection) -> tuple[list[str], list[list[object]]]:
    texts, expected = comparisons(random.Random(11), exact_rows(local), 60)
    return [*CONDITIONS, *texts], [*(truth(local, c) for c in CONDITIONS), *expected]


def compared(local: duckdb.DuckDBPyConnection, dialect: Dialect, run: Callable[[str], Any]) -> list[str]:
    """Run all conditions on another engine, in parts, and list those with a wrong result."""
    conditions, expected = conditions_and_truth(local)
    exprs, wrong = [bound(c) for c in conditions], list[str]()
    for start in range(0, len(exprs), 25):
        some = exprs[start : start + 25]
        values = run(text(some, dialect)).through(lambda table: listed(table, len(some)))  # noqa: B023
        both = zip(conditions[start:], values, expected[start:], strict=False)
        wrong += [c for c, ours, exact in both if ours != exact]
    return wrong


@pytest.mark.parametrize("stored", ["decimal", "double", "computed"])
def test_decimals_are_exact_on_postgres(local: duckdb.DuckDBPyConnection, postgres_server: Server, stored: str) -> None:
    postgres_server.run(f"CREATE DATABASE decimals_{stored}")
    local.execute("DROP VIEW IF EXISTS t")
    local.execute(f"CREATE TABLE t AS FROM {stored}")
    try:
        postgres.copied(local, ["t"], postgres_server, f"decimals_{stored}")
        engine = postgres.engine({"t": TABLE}, postgres_server, f"decimals_{stored}")
        try:
            assert compared(local, POSTGRES, engine.run) == []
        finally:
            engine.close()
    finally:
        local.execute("DROP TABLE t")
        postgres_server.run(f"DROP DATABASE decimals_{stored} WITH (FORCE)")


def test_decimals_are_exact_on_spark(
    local: duckdb.DuckDBPyConnection, spark_address: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for stored in ("decimal", "computed"):
        files = spark.copied(local, [stored], tmp_path_factory.mktemp("decimals"))
        engine = spark.engine({"t": TABLE}, {"t": files[stored]}, spark_address)
        try:
            assert compared(local, SPARK, engine.run) == []
        finally:
            engine.close()


# --- constants ------------------------------------------------------------------------------------------------------


def outer(shown: str) -> Expr:
    """Bind an expression of the SELECT list."""
    return bind(f"SELECT count(*), {shown} AS c FROM t", tables={"t": TABLE}).select[1][1]


def test_constants_are_folded_exactly(local: duckdb.DuckDBPyConnection) -> None:
    """Sums, differences and products: what DuckDB's decimals give."""
    rng = random.Random(3)
    for _ in range(200):
        a, b, c = (f"{rng.randint(0, 9999) / rng.choice((1, 10, 100)):.2f}" for _ in "abc")
        shown = f"{a} {rng.choice('+-*')} {b} {rng.choice('+-*')} (- {c})"
        ((value,),) = local.execute(f"SELECT {shown}").fetchall()
        assert outer(shown) == Literal(F(value), Kind.REAL)


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("0.21 / 3", F(7, 100)),
        ("1 / 3", F(1, 3)),
        ("7 // 2", 3),
        ("-7 // 2", -3),
        ("-7 % 4", -3),
        ("0.75 % 0.2", F(15, 100)),
        ("abs(-0.3) + floor(-1.5) + ceil(1.5) + trunc(-1.5)", F(-7, 10)),
        ("round(1.005, 2)", F(101, 100)),
        ("round(-250, -2)", F(-300)),
        ("1e3 + .5 + 1.", F(10015, 10)),
        ("2 * 3 + 1", 7),
        ("9007199254740992 - 1", 9007199254740991),
    ],
)
def test_other_functions_of_constants_are_folded_exactly(shown: str, value: Fraction | int) -> None:
    folded = outer(shown)
    assert isinstance(folded, Literal)
    assert (folded.value, type(folded.value)) == (value, type(value))


def test_what_has_no_exact_value_is_not_folded() -> None:
    assert isinstance(outer("1 / 0"), FunctionCall)
    assert isinstance(outer("1e300 * 1e300"), FunctionCall)
    with pytest.raises(QueryError, match="HB508"):
        outer("9007199254740992 + 1")


def test_a_product_of_many_constants_is_not_folded_without_end() -> None:
    """Its digits would grow with every factor."""
    assert isinstance(outer(" * ".join(["1e-290"] * 80)), FunctionCall)


def test_constants_with_an_exponent_are_decimals_too(local: duckdb.DuckDBPyConnection) -> None:
    """In DuckDB they are doubles: there 0.06 + 1e-2 is less than 0.07."""
    (ours,) = results(local, "decimal", [bound("x + 1e-2 = 0.07")])
    assert ours == truth(local, "x = 0.06")


def test_folded_constants_are_constants_everywhere() -> None:
    shown = render.expression(bound("round(x, 1 + 1) IN (0.06 - 0.01, 0.06 + 0.01)"))
    assert "IN (0.05e0, 0.07e0)" in shown


# --- bounds and keys ------------------------------------------------------------------------------------------------


def test_a_snapped_double_is_the_nearest_to_the_exact_result() -> None:
    rng = random.Random(5)
    for _ in range(20_000):
        step = F(rng.choice((1, 3, 7, 25)), rng.choice((1, 3, 10, 100, 1000, 4096)))
        size = step * 10 ** rng.randint(1, 14)
        count = decimals.parts(step, size)
        if count is None:
            continue
        exact = rng.randint(-int(size / step), int(size / step)) * step
        error = 4 * float(size) * 2.0**-53
        value = float(exact) + rng.uniform(-error, error) * 0.99
        assert decimals.snap(value, step, count) == float(exact)


@pytest.mark.parametrize("dialect", [DUCKDB], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        ("0", "1", "0.01"),
        ("0.005", "0.995", "0.01"),
        ("-0.3333333333", "0.7777777777", "0.1"),
        ("1", "2", "1"),
        ("-7.0000000001", "6.9999999999", "7"),
        ("0", "100000", "0.3"),
    ],
)
def test_no_value_escapes_its_bounds(dialect: Dialect, low: str, high: str, step: str) -> None:
    """Rounding to the step never leaves the bounds, and what is within them is not moved by more than the step."""
    bounds = Bounds(F(low), F(high))
    column = Column("v", Kind.REAL, bounds, F(step))
    rng = random.Random(2)
    spread = [rng.uniform(2 * float(low) - 1, 2 * float(high) + 1) for _ in range(500)]
    ends = [math.nextafter(float(e), to) for e in (low, high) for to in (-math.inf, float(e), math.inf)]
    values = [*spread, *ends, float(low), float(high), math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, -0.0]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE s(v DOUBLE)")
        connection.executemany("INSERT INTO s VALUES (?)", [(value,) for value in values])
        pairs = connection.execute(f"SELECT v, {dialect.scanned(column)} FROM s").fetchall()
    for before, after in pairs:
        if math.isnan(before):
            assert after is None
            continue
        assert float(bounds.low) <= after <= float(bounds.high)
        clamped = min(max(before, float(bounds.low)), float(bounds.high))
        assert abs(after - clamped) <= float(F(step)) / 10**6 * 1.01


def test_a_value_that_is_no_multiple_of_its_step_stays_what_it_is(local: duckdb.DuckDBPyConnection) -> None:
    """A step may be coarse; conditions are about the values, not about the steps."""
    column = Column("x", Kind.REAL, Bounds(F(0), F(100_000)), F(100))
    table = Table("t", (Column("u", Kind.INTEGER), column), PrivacyUnit("u"))
    local.execute("CREATE OR REPLACE VIEW t AS SELECT n AS u, n * 83.01 AS x FROM range(1000) AS r(n)")
    for condition in ("x >= 4980.6", "x < 4980.6", "x + 0.4 = 4981", "x / 2 > 2490.3", "x * 10 = 49806"):
        query = bind(f"SELECT count({condition}) FROM t", tables={"t": table})
        shown = render.expression(query.aggregates[0].arguments[0])
        ours = local.execute(f"SELECT count(*) FROM ({render.relation(query.relation)}) WHERE {shown}").fetchall()
        assert ours == local.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchall(), condition


def test_keys_of_arithmetic_are_merged(local: duckdb.DuckDBPyConnection) -> None:
    """0.06 + 0.01 and 0.07 are one group."""
    local.execute("CREATE OR REPLACE VIEW t AS FROM computed")
    query = bind("SELECT x + 0.01, count(*) FROM t GROUP BY x + 0.01", tables={"t": TABLE})
    shown = render.key(query.keys[0].expr)
    ours = local.execute(
        f"SELECT {shown} AS k, count(*) FROM ({render.relation(query.relation)}) GROUP BY k"
    ).fetchall()
    exact = local.execute("SELECT x + 0.01 AS k, count(*) FROM plain GROUP BY k").fetchall()
    assert dict(ours) == {None if key is None else float(key): count for key, count in exact}


def test_sums_within_a_unit_are_exact(local: duckdb.DuckDBPyConnection) -> None:
    """Three times 0.07 is 0.21."""
    local.execute("CREATE OR REPLACE VIEW t AS SELECT * REPLACE (n % 100 AS u) FROM double")
    for total in ("0.07", "-0.3", "1.1"):
        text = f"SELECT u, sum(x) AS s FROM {{}} GROUP BY u HAVING sum(x) <= {total}"
        query = bind(f"SELECT count(*) FROM ({text.format('t')}) AS q", tables={"t": TABLE})
        ours = local.execute(f"SELECT count(*) FROM ({render.relation(query.relation)})").fetchall()
        plain = text.format("(SELECT * REPLACE (n % 100 AS u) FROM plain)")
        assert ours == local.execute(f"SELECT count(*) FROM ({plain})").fetchall()


def test_rounding_keeps_the_step_and_bounds_of_a_decimal() -> None:
    """So that sums of it keep their sensitivity."""
    plain, shifted = bound("x = 0"), bound("x + 0.1 = 0")
    assert isinstance(plain, FunctionCall)
    assert isinstance(shifted, FunctionCall)
    assert facts(shifted.args[0]).step == facts(plain.args[0]).step == F(1, 100)
    known = facts(shifted.args[0]).bounds
    assert known is not None
    assert (float(known.low), float(known.high)) == (-0.9, 1.1)
