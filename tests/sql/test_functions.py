"""Every function of the allow-list on edge-case values: it never raises, never returns NaN, and its facts hold."""

import math
import random
from collections.abc import Collection, Iterator
from datetime import date, datetime
from fractions import Fraction

import duckdb
import pytest
from tests.fixtures.nasty_values import COLS, NASTY, SCAN, applications, fill, literal, random_expression

from hubbub.core.schema import Bounds, Kind
from hubbub.sql import dates, render
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.domains import values
from hubbub.sql.evaluate import UnknownValueError, evaluate
from hubbub.sql.expressions import Expr, FunctionCall, Literal, facts
from hubbub.sql.functions import FUNCTIONS, build


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        fill(connection)
        yield connection


Rows = list[tuple[object, ...]]


def run(engine: duckdb.DuckDBPyConnection, exprs: list[Expr]) -> Rows:
    """Evaluate all columns, and then the expressions, for every row."""
    selected = [*COLS.values(), *exprs]
    shown = ", ".join(f"{render.expression(expr)} AS e{i}" for i, expr in enumerate(selected))
    return engine.execute(f"SELECT {shown} FROM ({render.relation(SCAN)}) AS n").fetchall()


def faults(exprs: list[Expr], rows: Rows) -> list[str]:
    """Describe results that are NaN, of the wrong type, or outside the facts."""
    problems = []
    for j, expr in enumerate(exprs, start=len(COLS)):
        known, listed = facts(expr).bounds, values(expr)
        allowed = None if listed is None else {float(v) if isinstance(v, int | Fraction) else v for v in listed}
        # of equal values of one type one is enough
        for _, value in dict.fromkeys((type(row[j]), row[j]) for row in rows):
            if value is None:
                continue
            problem = check(expr, value, known, allowed)
            if problem:
                problems.append(f"{problem}: {value!r} of {render.expression(expr)[:300]}")
                break
    return problems


EXPECTED = {Kind.BOOLEAN: bool, Kind.INTEGER: float, Kind.REAL: float, Kind.TEXT: str, Kind.DATE: date}


def check(expr: Expr, value: object, known: Bounds | None, allowed: Collection[object] | None) -> str:
    if type(value) is not EXPECTED.get(expr.kind, datetime):
        return f"is a {type(value).__name__}"
    if isinstance(value, float) and math.isnan(value):
        return "is NaN"
    number = dates.number(value) if isinstance(value, date) else value
    if known is not None and isinstance(number, float | Fraction) and not in_bounds(known, number):
        return f"is outside {known}"
    if isinstance(value, float) and expr.kind is Kind.INTEGER and math.isfinite(value) and not value.is_integer():
        return "is not an integer"
    return "is not in its list of values" if allowed is not None and value not in allowed else ""


def in_bounds(known: Bounds, number: float | Fraction) -> bool:
    """Compare as the engine does, which rounds a declared bound to the nearest double."""
    if isinstance(number, Fraction):
        return known.low <= number <= known.high
    return float(known.low) <= number <= float(known.high)


def python_differs(exprs: list[Expr], rows: Rows) -> list[str]:
    """Describe results of the engine that differ from those of `evaluate`."""
    problems = []
    known = [(row, dict(zip(COLS, row, strict=False))) for row in rows]
    for j, expr in enumerate(exprs, start=len(COLS)):
        for row, given in known:
            try:
                mine = evaluate(expr, given)  # type: ignore[arg-type]
            except UnknownValueError:
                continue
            theirs = row[j]
            if mine != theirs or type(mine) is not type(theirs):
                problems.append(f"{mine!r} is not {theirs!r}: {render.expression(expr)[:300]} on {given}")
                break
    return problems


def test_the_table_holds_what_it_says(engine: duckdb.DuckDBPyConnection) -> None:
    rows = engine.execute("SELECT count(*), count(DISTINCT real_a), bool_or(isnan(real_a)) FROM nasty").fetchall()
    assert rows == [(len(NASTY[Kind.TEXT]) ** 2, len(NASTY[Kind.REAL]) - 2, True)]


def test_the_scan_makes_declared_facts_true(engine: duckdb.DuckDBPyConnection) -> None:
    cols: list[Expr] = list(COLS.values())
    assert faults(cols, run(engine, cols)) == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_is_total_and_its_facts_hold(engine: duckdb.DuckDBPyConnection, name: str) -> None:
    """So is its twin in Python, which must agree with the engine."""
    exprs = applications(name)
    assert exprs, "the function applies to no columns"
    rows = run(engine, exprs)
    assert faults(exprs, rows) == []
    assert python_differs(exprs[:40], rows) == []


def test_functions_are_total_also_where_the_engine_does_not_follow_ieee() -> None:
    """Guards test the arguments, so the engine's setting for invalid arithmetic never matters."""
    with duckdb.connect() as connection:
        fill(connection)
        connection.execute("SET ieee_floating_point_ops = false")
        for name in ("div", "mod", "intdiv", "sqrt", "ln", "log2", "log10", "power", "exp", "width_bucket"):
            exprs = applications(name)
            assert faults(exprs, run(connection, exprs)) == []


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_are_total_and_their_facts_hold(engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = random.Random(seed)
    exprs: list[Expr] = [random_expression(rng, depth) for depth in (2, 2, 3, 3, 4) for _ in range(6)]
    rows = run(engine, exprs)
    assert faults(exprs, rows) == []
    assert python_differs(exprs, rows[:: max(1, len(rows) // 100)]) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sqrt", "sqrt({0})"),
        ("div", "({0} / {1})"),
        ("to_integer", "CAST(CAST({0} AS BIGINT) AS DOUBLE)"),
        ("substr", "substr({0}, -1)"),
        ("floor", "ceil({0})"),
        ("to_date", "TRY_CAST({0} AS DATE)"),
        ("mod", "({0} % {1})"),
    ],
)
def test_a_planted_rendering_that_is_not_total_or_not_true_is_caught(
    engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    exprs = applications(name)[:60]
    monkeypatch.setitem(DUCKDB.spellings, name, lambda _, args: text.format(*args))
    try:
        rows = run(engine, exprs)
    except duckdb.Error:
        return
    assert faults(exprs, rows) or python_differs(exprs, rows)


def test_a_planted_wrong_fact_is_caught(engine: duckdb.DuckDBPyConnection) -> None:
    honest = build("add", (COLS["integer_in"], COLS["integer_of"]))
    assert honest is not None
    narrow = FunctionCall("add", honest.args, honest.kind, facts(literal(3)))
    rows = run(engine, [honest, narrow])
    assert len(faults([honest, narrow], rows)) == 1


def test_a_comparison_as_a_number_is_0_or_1() -> None:
    """Otherwise SUM(CAST(x > 5 AS INTEGER)) would have the noise of any integer."""
    over = FunctionCall("gt", (Literal(1, Kind.INTEGER), Literal(5, Kind.INTEGER)), Kind.BOOLEAN)
    number = build("to_integer", (over, Literal(64, Kind.INTEGER)))
    assert number is not None
    assert facts(number).bounds == Bounds(Fraction(0), Fraction(1))


def test_without_a_guard_nan_reaches_a_comparison(engine: duckdb.DuckDBPyConnection) -> None:
    """Without the guard, inf - inf would pass `> 5`, because the engine sorts NaN above all numbers."""
    less = build("sub", (COLS["real_a"], COLS["real_b"]))
    assert less is not None
    above = build("gt", (less, literal(5)))
    assert above is not None
    raw = render.expression(above).replace("isnan", "FALSE AND isnan")
    guarded, bare = (
        engine.execute(f"SELECT count(*) FROM ({render.relation(SCAN)}) AS n WHERE {text}").fetchall()
        for text in (render.expression(above), raw)
    )
    assert guarded[0][0] < bare[0][0]


def test_every_function_says_what_it_does_on_any_value_and_has_a_spelling() -> None:
    assert all(function.total for function in FUNCTIONS.values())
    assert set(DUCKDB.spellings) == set(FUNCTIONS)
