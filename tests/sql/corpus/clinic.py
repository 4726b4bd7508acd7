"""A generated clinic: people, their visits, rows that are units, doctors of another entity, and public sites."""

import random
from collections.abc import Mapping
from datetime import date
from fractions import Fraction

import duckdb
from tests.fixtures.insert_rows import insert_rows

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.sql import dates

F = Fraction


def tables() -> Mapping[str, Table]:
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
        PrivacyUnit("person", 5, 10, "person"),
    )
    visits = Table(
        "visits",
        (
            Column("person", Kind.INTEGER),
            Column("year", Kind.INTEGER),
            Column("cost", Kind.REAL, Bounds(F(0), F(1000))),
        ),
        PrivacyUnit("person", 5, 10, "person"),
    )
    doctors = Table("doctors", (Column("doctor", Kind.TEXT), Column("site", Kind.INTEGER)), PrivacyUnit("doctor"))
    logs = Table(
        "logs",
        (
            Column("site", Kind.INTEGER),
            Column("page", Kind.TEXT),
            Column("x", Kind.REAL, Bounds(F(0), F(1))),
        ),
        PrivacyUnit(None),
    )
    sites = Table(
        "sites",
        (Column("site", Kind.INTEGER), Column("city", Kind.TEXT, values=("A", "B")), Column("beds", Kind.INTEGER)),
        None,
        unique=("site",),
    )
    return {table.name: table for table in (people, visits, doctors, logs, sites)}


def furnish(connection: duckdb.DuckDBPyConnection, seed: int, *, persons: int = 12) -> None:
    """Fill a connection with data of a seed, within every declared bound, so that plain SQL means the same."""
    chance = random.Random(seed)
    connection.execute(
        "CREATE TABLE people(person BIGINT, year INT, age INT, income DOUBLE, health VARCHAR, site INT,"
        " female BOOLEAN, spending DOUBLE, day DATE, seen TIMESTAMP, notes VARCHAR);"
        "CREATE TABLE visits(person BIGINT, year INT, cost DOUBLE); CREATE TABLE doctors(doctor VARCHAR, site INT);"
        "CREATE TABLE logs(site INT, page VARCHAR, x DOUBLE); CREATE TABLE sites(site INT, city VARCHAR, beds INT)"
    )
    people = [
        (
            person,
            year + 1,
            chance.randint(0, 110),
            chance.choice([None, float(chance.randint(0, 50000)), 12.25]),
            chance.choice(["good", "fair", "poor", None]),
            chance.randint(1, 6),
            chance.choice([True, False, None]),
            chance.choice([1.5, -3.25, 250.0, None]),
            date(2019 + chance.randint(0, 2), chance.randint(1, 12), 17),
            f"2020-0{chance.randint(1, 9)}-11 1{chance.randint(0, 9)}:30:0{chance.randint(0, 9)}",
            "secret",
        )
        for person in range(1, persons + 1)
        for year in range(chance.randint(1, 4))
    ]
    visits = [
        (person, chance.randint(1, 5), chance.choice([None, float(chance.randint(0, 200))]))
        for person in range(3, persons + 4)
        for _ in range(chance.randint(0, 3))
    ]
    insert_rows(connection, "people", people)
    insert_rows(connection, "visits", visits)
    insert_rows(connection, "sites", [(s, "AB"[s % 2], 10 * s) for s in range(1, 6)])
    logs = [(chance.randint(1, 7), chance.choice("pqr"), chance.random()) for _ in range(30 * persons // 12)]
    insert_rows(connection, "logs", logs)
    connection.execute("INSERT INTO doctors VALUES ('d', 1)")
