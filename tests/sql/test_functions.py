"""Every function of the allow-list on nasty values: it never raises, never gives NaN, and its facts hold."""

import math
import random
from collections.abc import Collection, Iterator
from datetime import date, datetime
from fractions import Fraction

import duckdb
import pytest
from tests.sql.nasty import COLS, NASTY, SCAN, applied, fill, grown, literal

from hubbub.core.schema import Bounds, Kind
from hubbub.sql import dates, render
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.domains import values
from hubbub.sql.evaluate import Unsure, evaluate
from hubbub.sql.expressions import Call, Expr, facts
from hubbub.sql.functions import FUNCTIONS, build


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        fill(connection)
        yield connection


Rows = list[tuple[object, ...]]


def run(engine: duckdb.DuckDBPyConnection, exprs: list[Expr]) -> Rows:
    """Compute all columns and then the expressions, row by row."""
    wanted = [*COLS.values(), *exprs]
    shown = ", ".join(f"{render.expression(expr)} AS e{i}" for i, expr in enumerate(wanted))
    return engine.execute(f"SELECT {shown} FROM ({render.relation(SCAN)}) AS n").fetchall()


def faults(exprs: list[Expr], rows: Rows) -> list[str]:
    """Find results that are NaN, of the wrong type, outside the facts, or other than the Python twin's."""
    found = []
    for j, expr in enumerate(exprs, start=len(COLS)):
        known, listed = facts(expr).bounds, values(expr)
        allowed = None if listed is None else {float(v) if isinstance(v, int | Fraction) else v for v in listed}
        for row in rows:
            value = row[j]
            if value is None:
                continue
            wrong = check(expr, value, known, allowed)
            if wrong:
                found.append(f"{wrong}: {value!r} of {render.expression(expr)[:300]}")
                break
    return found


def check(expr: Expr, value: object, known: Bounds | None, allowed: Collection[object] | None) -> str:
    expected = {Kind.BOOLEAN: bool, Kind.INTEGER: float, Kind.REAL: float, Kind.TEXT: str, Kind.DATE: date}
    if type(value) is not expected.get(expr.kind, datetime):
        return f"is a {type(value).__name__}"
    if isinstance(value, float) and math.isnan(value):
        return "is NaN"
    number = dates.number(value) if isinstance(value, date) else value
    if known is not None and isinstance(number, float | Fraction) and not in_bounds(known, number):
        return f"is outside {known}"
    if isinstance(value, float) and expr.kind is Kind.INTEGER and math.isfinite(value) and not value.is_integer():
        return "is no integer"
    return "is not in its list of values" if allowed is not None and value not in allowed else ""


def in_bounds(known: Bounds, number: float | Fraction) -> bool:
    """Compare as the engine would: a declared end stands for the nearest double."""
    if isinstance(number, Fraction):
        return known.low <= number <= known.high
    return float(known.low) <= number <= float(known.high)


def twins_differ(exprs: list[Expr], rows: Rows) -> list[str]:
    found = []
    for j, expr in enumerate(exprs, start=len(COLS)):
        for row in rows:
            given = dict(zip(COLS, row, strict=False))
            try:
                mine = evaluate(expr, given)  # type: ignore[arg-type]
            except Unsure:
                continue
            theirs = row[j]
            if mine != theirs or type(mine) is not type(theirs):
                found.append(f"{mine!r} is not {theirs!r}: {render.expression(expr)[:300]} on {given}")
                break
    return found


def test_the_table_holds_what_it_says(engine: duckdb.DuckDBPyConnection) -> None:
    rows = engine.execute("SELECT count(*), count(DISTINCT real_a), bool_or(isnan(real_a)) FROM nasty").fetchall()
    assert rows == [(len(NASTY[Kind.TEXT]) ** 2, len(NASTY[Kind.REAL]) - 2, True)]


def test_the_scan_makes_declared_facts_true(engine: duckdb.DuckDBPyConnection) -> None:
    cols: list[Expr] = list(COLS.values())
    assert faults(cols, run(engine, cols)) == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_is_total_and_its_facts_hold(engine: duckdb.DuckDBPyConnection, name: str) -> None:
    exprs = applied(name)
    assert exprs, "no way found to apply it"
    rows = run(engine, exprs)
    assert faults(exprs, rows) == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_and_its_twin_in_python_agree(engine: duckdb.DuckDBPyConnection, name: str) -> None:
    exprs = applied(name)[:40]
    assert twins_differ(exprs, run(engine, exprs)) == []


def test_functions_are_total_also_where_the_engine_does_not_follow_ieee() -> None:
    """Guards are on the arguments, so no setting of the engine for broken arithmetic is ever asked."""
    with duckdb.connect() as connection:
        fill(connection)
        connection.execute("SET ieee_floating_point_ops = false")
        for name in ("div", "mod", "intdiv", "sqrt", "ln", "log2", "log10", "power", "exp", "width_bucket"):
            exprs = applied(name)
            assert faults(exprs, run(connection, exprs)) == []


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_are_total_and_their_facts_hold(engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    chance = random.Random(seed)
    exprs: list[Expr] = [grown(chance, depth) for depth in (2, 2, 3, 3, 4) for _ in range(6)]
    rows = run(engine, exprs)
    assert faults(exprs, rows) == []
    assert twins_differ(exprs, rows[:: max(1, len(rows) // 100)]) == []


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
    exprs = applied(name)[:60]
    monkeypatch.setitem(DUCKDB.spellings, name, lambda _, args: text.format(*args))
    try:
        rows = run(engine, exprs)
    except duckdb.Error:
        return
    assert faults(exprs, rows) or twins_differ(exprs, rows)


def test_a_planted_wrong_fact_is_caught(engine: duckdb.DuckDBPyConnection) -> None:
    honest = build("add", (COLS["integer_in"], COLS["integer_of"]))
    assert honest is not None
    narrow = Call("add", honest.args, honest.kind, facts(literal(3)))
    rows = run(engine, [honest, narrow])
    assert len(faults([honest, narrow], rows)) == 1


def test_without_a_guard_nan_reaches_a_comparison(engine: duckdb.DuckDBPyConnection) -> None:
    """What the guard is for: inf - inf is beyond every number to the engine, and would pass `> 5`."""
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
