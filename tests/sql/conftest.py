"""Tables that the tests of reading and binding SQL share: people, their visits, rows that are units, public sites."""

import random
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction

import duckdb
import pytest

from hubbub.core.schema import Bounds, Column, Kind, Table, Unit
from hubbub.sql import dates, render
from hubbub.sql.query import Aggregate, Query

F = Fraction


@pytest.fixture(scope="session")
def clinic() -> Mapping[str, Table]:
    """Declared tables: two private of one entity, one whose rows are units, one of another entity, a public one."""
    since, until = dates.number(date(2019, 1, 1)), dates.number(date(2021, 12, 31))
    people = Table(
        "people",
        (
            Column("person", Kind.INTEGER),
            Column("year", Kind.INTEGER, Bounds(F(1), F(5))),
            Column("age", Kind.INTEGER, Bounds(F(0), F(110))),
            Column("income", Kind.REAL, Bounds(F(0), F(50000))),
            Column("health", Kind.TEXT, values=("good", "fair", "poor")),
            Column("site", Kind.INTEGER, values=(1, 2, 3, 4, 5, 6)),
            Column("female", Kind.BOOLEAN),
            Column("spending", Kind.REAL),
            Column("day", Kind.DATE, Bounds(since, until)),
            Column("seen", Kind.TIMESTAMP),
            Column("notes", Kind.TEXT, hidden=True),
        ),
        Unit("person", 5, 10),
    )
    visits = Table(
        "visits",
        (
            Column("person", Kind.INTEGER),
            Column("year", Kind.INTEGER),
            Column("cost", Kind.REAL, Bounds(F(0), F(1000))),
        ),
        Unit("person", 5, 10),
    )
    doctors = Table("doctors", (Column("doctor", Kind.TEXT), Column("site", Kind.INTEGER)), Unit("doctor"))
    logs = Table(
        "logs",
        (
            Column("site", Kind.INTEGER),
            Column("page", Kind.TEXT),
            Column("x", Kind.REAL, Bounds(F(0), F(1))),
        ),
        Unit(None),
    )
    sites = Table(
        "sites",
        (Column("site", Kind.INTEGER), Column("city", Kind.TEXT, values=("A", "B")), Column("beds", Kind.INTEGER)),
        None,
        unique=("site",),
    )
    tables = (people, visits, doctors, logs, sites)
    return {table.name: table for table in tables}


@pytest.fixture(scope="session")
def furnish() -> Callable[[duckdb.DuckDBPyConnection, int], None]:
    """Fill a connection with data of a seed, within every declared bound, so that plain SQL means the same."""

    def fill(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
        chance = random.Random(seed)
        connection.execute(
            "CREATE TABLE people(person BIGINT, year INT, age INT, income DOUBLE, health VARCHAR, site INT,"
            " female BOOLEAN, spending DOUBLE, day DATE, seen TIMESTAMP, notes VARCHAR);"
            "CREATE TABLE visits(person BIGINT, year INT, cost DOUBLE); CREATE TABLE doctors(doctor VARCHAR, site INT);"
            "CREATE TABLE logs(site INT, page VARCHAR, x DOUBLE); CREATE TABLE sites(site INT, city VARCHAR, beds INT)"
        )
        people = [
            (
                person, year + 1, chance.randint(0, 110), chance.choice([None, float(chance.randint(0, 50000)), 12.25]),
                chance.choice(["good", "fair", "poor", None]), chance.randint(1, 6), chance.choice([True, False, None]),
                chance.choice([1.5, -3.25, 250.0, None]), date(2019 + chance.randint(0, 2), chance.randint(1, 12), 17),
                f"2020-0{chance.randint(1, 9)}-11 1{chance.randint(0, 9)}:30:0{chance.randint(0, 9)}", "secret",
            )
            for person in range(1, 13)
            for year in range(chance.randint(1, 4))
        ]  # fmt: skip
        visits = [
            (person, chance.randint(1, 5), chance.choice([None, float(chance.randint(0, 200))]))
            for person in range(3, 16)
            for _ in range(chance.randint(0, 3))
        ]
        connection.executemany("INSERT INTO people VALUES (?,?,?,?,?,?,?,?,?,?,?)", people)
        connection.executemany("INSERT INTO visits VALUES (?,?,?)", visits)
        connection.executemany("INSERT INTO sites VALUES (?,?,?)", [(s, "AB"[s % 2], 10 * s) for s in range(1, 6)])
        logs = [(chance.randint(1, 7), chance.choice("pqr"), chance.random()) for _ in range(30)]
        connection.executemany("INSERT INTO logs VALUES (?,?,?)", logs)
        connection.execute("INSERT INTO doctors VALUES ('d', 1)")

    return fill


def _aggregate(asked: Aggregate) -> str:
    args = [render.expression(argument) for argument in asked.arguments]
    where = "" if asked.where is None else f" FILTER (WHERE {render.expression(asked.where)})"
    match asked.function:
        case "count":
            return f"count({args[0] if args else '*'}){where}"
        case "count_units":
            return f"count(DISTINCT {render.identifier('$unit')}){where}"
        case "count_distinct":
            return f"count(DISTINCT {args[0]}){where}"
        case "quantile":
            return f"quantile_cont({args[0]}, {float(asked.level or 0)}){where}"
    return f"{asked.function}({', '.join(args)}){where}"


@pytest.fixture(scope="session")
def without_noise() -> Callable[[Query], str]:
    """Write a bound query as one SQL text that computes it exactly: no bounding, no noise, groups as they come."""

    def text(query: Query) -> str:
        named = [f"{render.expression(key.expr)} AS {render.identifier(key.name)}" for key in query.keys]
        asked = [f"{_aggregate(a)} AS {render.identifier(a.name)}" for a in query.aggregates]
        keys = [render.identifier(key.name) for key in query.keys]
        rows = f"SELECT {', '.join(['*', *named])} FROM ({render.relation(query.relation)}) AS r"
        sets = ", ".join(f"({', '.join(keys[i] for i in chosen)})" for chosen in query.sets)
        grouped = f" GROUP BY GROUPING SETS ({sets})" if keys else ""
        answers = f"SELECT {', '.join([*keys, *asked])} FROM ({rows}) AS g{grouped}"
        shown = ", ".join(f"{render.expression(expr)} AS {render.identifier(name)}" for name, expr in query.select)
        kept = "" if query.having is None else f" WHERE {render.expression(query.having)}"
        ways = [("DESC" if o.descending else "ASC", "FIRST" if o.nulls_first else "LAST") for o in query.order]
        terms = zip((render.expression(o.expr) for o in query.order), ways, strict=True)
        order = ", ".join(f"{expr} {way} NULLS {nulls}" for expr, (way, nulls) in terms)
        most = "" if query.limit is None else f" LIMIT {query.limit}"
        return f"SELECT {shown} FROM ({answers}) AS a{kept}{f' ORDER BY {order}' if order else ''}{most}"

    return text
