"""Every function on a real PostgreSQL, over the table of nasty values: it never raises, and gives what DuckDB gives."""

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from tests.fixtures import postgres
from tests.fixtures.nasty_values import COLS, TABLE, applications, fill, literal, random_expression
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Column, Kind
from hubbub.engines.base import Arrays
from hubbub.engines.postgres.connection import PostgresEngine
from hubbub.errors import QueryError, RunError
from hubbub.sql import render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.functions import FUNCTIONS, build
from hubbub.sql.relations import Scan

#: Ways to apply a function that PostgreSQL is not asked for, by the kinds of the arguments that make it so.
REFUSED = {
    "log2",
    "mod",
    "to_date",
    "to_timestamp",
    "to_boolean",
    "to_integer",
    "to_real",
    "to_float",
    "to_text",
    "add",
    "sub",
    "mul",
    "div",
    "intdiv",
    "round",
    "power",
}
#: Results below this are 0 on PostgreSQL.
SMALL = 2.0**-1000
ROW = Column("row", Kind.INTEGER)
NUMBERED = replace(TABLE, columns=(*TABLE.columns, ROW))
SCAN = Scan(NUMBERED, (*COLS.values(), Col("row", Kind.INTEGER)), (*COLS, "row"))


@pytest.fixture(scope="module")
def local() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        fill(connection)
        texts = ", ".join(f"replace({c}, chr(0), chr(1)) AS {c}" for c in ("text_a", "text_b", "text_of"))
        connection.execute(f"CREATE TABLE kept AS SELECT * REPLACE ({texts}), row_number() OVER () AS row FROM nasty")
        connection.execute("CREATE OR REPLACE TABLE nasty AS FROM kept")
        yield connection


@pytest.fixture(scope="module")
def remote(local: duckdb.DuckDBPyConnection, postgres_server: Server) -> Iterator[PostgresEngine]:
    postgres_server.run("CREATE DATABASE nasty")
    postgres.copied(local, ["nasty"], postgres_server, "nasty")
    opened = postgres.engine({"nasty": NUMBERED}, postgres_server, "nasty")
    try:
        yield opened
    finally:
        opened.close()
        postgres_server.run("DROP DATABASE nasty WITH (FORCE)")


def text(exprs: list[Expr], dialect: Dialect) -> str:
    shown = ", ".join(f"{render.expression(expr, dialect)} AS e{i}" for i, expr in enumerate(exprs))
    return f'SELECT {shown} FROM ({render.relation(SCAN, dialect)}) AS n ORDER BY "row"'


def listed(table: Arrays, exprs: list[Expr]) -> list[list[object]]:
    """Give plain values column by column; of a date without a time its midnight."""
    found = []
    for i, expr in enumerate(exprs):
        column = table[f"e{i}"]
        plain = np.ma.getdata(column)
        if plain.dtype.kind == "M":
            plain = plain.astype("datetime64[us]")
        elif expr.kind in (Kind.DATE, Kind.TIMESTAMP):
            plain = np.array(plain, dtype="datetime64[us]")
        mask = np.ma.getmaskarray(column)
        values = [None if hidden else value for value, hidden in zip(plain.tolist(), mask.tolist(), strict=True)]
        found.append(values)
    return found


def accepted(exprs: list[Expr]) -> list[Expr]:
    """Leave out what PostgreSQL refuses."""
    kept = []
    for expr in exprs:
        try:
            render.expression(expr, POSTGRES)
        except QueryError as refused:
            if refused.code != "HB574" or not refused.remedy or not functions(expr) & REFUSED:
                raise
        else:
            kept.append(expr)
    return kept


def same(mine: object, theirs: object) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float) and theirs == 0 and abs(mine) < SMALL:
        return True
    return mine == theirs and type(mine) is type(theirs)


def differences(local: duckdb.DuckDBPyConnection, remote: PostgresEngine, exprs: list[Expr]) -> list[str]:
    """Say where an expression raises on PostgreSQL, or gives something else than on DuckDB."""
    found = []
    for start in range(0, len(exprs), 40):
        some = exprs[start : start + 40]
        here = listed(arrays(local, text(some, DUCKDB)), some)
        try:
            there = remote.run(text(some, POSTGRES)).through(lambda table: listed(table, some))  # noqa: B023
        except RunError:
            if len(some) == 1:
                return [f"raises: {render.expression(some[0], POSTGRES)}"]
            return [each for expr in some for each in differences(local, remote, [expr])]
        for expr, mine, theirs in zip(some, here, there, strict=True):
            wrong = next(((i, a, b) for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if not same(a, b)), None)
            if wrong is not None:
                i, a, b = wrong
                given = dict(zip(COLS, local.execute(f"SELECT * FROM nasty WHERE row = {i + 1}").fetchall()[0]))  # noqa: B905
                used = {name: given[name] for name in columns(expr)}
                found.append(f"{a!r} is {b!r} there: {render.expression(expr, DUCKDB)[:300]} on {used}")
    return found


def functions(expr: Expr) -> set[str]:
    return {expr.function}.union(*map(functions, expr.args)) if isinstance(expr, FunctionCall) else set()


def columns(expr: Expr) -> set[str]:
    if isinstance(expr, FunctionCall):
        return {name for arg in expr.args for name in columns(arg)}
    return {expr.name} if isinstance(expr, Col) else set()


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"log2", "power"}))
def test_every_function_is_total_on_postgres(
    local: duckdb.DuckDBPyConnection, remote: PostgresEngine, name: str
) -> None:
    """And bit by bit what it is on DuckDB, but for results below 2⁻¹⁰⁰⁰, which are 0."""
    exprs = applications(name)
    kept = accepted(exprs)
    assert kept, "no way is left to apply it"
    assert len(kept) == len(exprs) or name in REFUSED
    assert differences(local, remote, kept) == []


def test_a_power_with_a_constant_exponent_is_total_on_postgres(
    local: duckdb.DuckDBPyConnection, remote: PostgresEngine
) -> None:
    exponents = (0, 1, 2, 3, 5, 64, Fraction(1, 2), Fraction(7, 3))
    numbers = [col for col in COLS.values() if col.kind.numeric]
    made = [build("power", (col, literal(n))) for col in numbers for n in exponents]
    exprs: list[Expr] = [found for found in made if found is not None]
    kept = accepted(exprs)
    assert {expr.args[0] for expr in kept if isinstance(expr, FunctionCall)} >= {COLS["integer_in"], COLS["real_in"]}
    assert differences(local, remote, kept) == []


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_are_total_on_postgres(
    local: duckdb.DuckDBPyConnection, remote: PostgresEngine, seed: int
) -> None:
    chance = random.Random(seed)
    kept = accepted([random_expression(chance, depth) for depth in (1, 2, 3) for _ in range(40)])
    assert len(kept) > 30
    assert differences(local, remote, kept) == []


def test_what_postgres_refuses_is_refused_by_name_and_with_a_remedy() -> None:
    word, real, whole = COLS["text_a"], COLS["real_a"], COLS["integer_a"]
    refused = [
        ("to_real", (word,)),
        ("to_date", (word,)),
        ("to_text", (real,)),
        ("add", (real, whole)),
        ("log2", (real,)),
        ("mod", (COLS["real_in"], COLS["real_up"])),
        ("div", (whole, real)),
        ("power", (whole, whole)),
        ("mul", (COLS["real_wide"], COLS["real_wide"])),
    ]
    for name, args in refused:
        expr = build(name, args)
        assert expr is not None
        with pytest.raises(QueryError) as caught:
            render.expression(expr, POSTGRES)
        assert caught.value.code == "HB574"
        assert caught.value.remedy
    for text in ("a\0b", "\ud800"):
        with pytest.raises(QueryError, match="HB574"):
            POSTGRES.text(text)
    assert set(POSTGRES.spellings) == set(FUNCTIONS) - {"log2"}


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("mul", "({0} * {1})"),
        ("div", "({0} / nullif({1}, 0))"),
        ("sqrt", "sqrt({0})"),
        ("exp", "exp({0})"),
        ("to_integer", "CAST(CAST({0} AS bigint) AS float8)"),
        ("round", "round({0})"),
        ("lower", "lower({0})"),
        ("lt", '({0} COLLATE "und-x-icu" < {1} COLLATE "und-x-icu")'),
    ],
)
def test_a_planted_spelling_that_raises_or_differs_is_caught(
    local: duckdb.DuckDBPyConnection, remote: PostgresEngine, monkeypatch: pytest.MonkeyPatch, name: str, planted: str
) -> None:
    kept = accepted(applications(name))
    if name == "lt":
        kept = [expr for expr in kept if isinstance(expr, FunctionCall) and expr.args[0].kind is Kind.TEXT]
    monkeypatch.setitem(POSTGRES.spellings, name, lambda _, args: planted.format(*args))
    assert differences(local, remote, kept)
