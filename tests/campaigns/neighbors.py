"""Fuzz the SQL path with neighbors: exact integers before noise never differ by more than the stated sensitivity.

Random tables (NULL, NaN, ±inf, 2⁵³ edges, int64 limits, empty, a unit with very many rows, unusual Unicode), random
valid queries (including self-joins), one unit removed or replaced, another row order, one to eight threads. A few units
are removed or replaced in every combination, and all combinations that differ in one unit are compared: twelve pairs of
neighbors from eight runs. The same comparison must detect planted errors. It runs on DuckDB, then on a real PostgreSQL,
whose query plans are varied instead of threads.

A second part does the same with several tables, in which owners are found through keys, by time, or are two, and with
queries of every operator within a unit (`rig.random_schema_sql`). There the rows before aggregation are compared as
well: without a unit they are exactly those of all others, and each belongs to a unit of the data.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import duckdb
import psycopg
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.random_schema import WARD_ROWS, RandomSchema, random_schema
from tests.campaigns.rig.random_schema_sql import FAMILIES, check_schema_refusal, random_schema_query
from tests.campaigns.rig.random_sql import check_refusal, random_query
from tests.campaigns.rig.random_table import RandomTable, define_view, found_bounds, random_table
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server
from tests.fixtures.repeated_sql import fetch

from hubbub.audit.sensitivity import at_random_bounds, check_sensitivity, queries
from hubbub.core.schema import PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.engines.postgres.connection import PostgresEngine
from hubbub.errors import QueryError, RunError
from hubbub.sql import fanout, owner_truncation, render
from hubbub.sql.allocation import unit_contribution
from hubbub.sql.bind import bind, bind_releases
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.measures import sensitivity
from hubbub.sql.noise import Noise
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Query
from hubbub.sql.relations import owner_columns

World = RandomTable | RandomSchema


def random_plan(rng: random.Random, world: World, text: str, dialect: Dialect, *, lists: bool = False) -> Plan:
    query = bind_releases(text, tables=world.tables)
    if not isinstance(query, Query):
        raise AssertionError(f"{text}: several releases")
    auto = any(each.unit is not None and each.unit.auto for each in query.tables)
    delta = Fraction(1, 10**6) if lists or rng.random() < 0.5 else Fraction(0)
    # bounds that are found need Laplace noise
    noise: Noise | None = rng.choice(("laplace", "gaussian")) if delta and not query.top and not auto else None
    made = plan(query, epsilon=Fraction(1), delta=delta, salt=str(rng.random()), noise=noise, dialect=dialect)
    return at_random_bounds(made, rng)


Tables = dict[str, dict[str, Any]]


class EngineFailure(Exception):  # noqa: N818 - not an error of the campaign
    """The engine raised an error, which may distinguish neighbors."""


class DuckDBTarget:
    """DuckDB with one to eight threads."""

    name, dialect = "duckdb", DUCKDB

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def settle(self, world: World) -> None:
        """Do nothing: DuckDB already has the rows."""

    def vary(self, rng: random.Random) -> None:
        """Change the number of threads, and so the row order."""
        self.connection.execute(f"SET threads = {rng.choice((1, 2, 3, 8))}")

    def load(self, world: World, rows: str, gone: frozenset[int]) -> None:
        """Define the tables of one neighbor."""
        define_view(self.connection, world, rows=rows, gone=gone)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a relation."""
        return self.connection.execute(sql).fetchall()

    def seen(self, made: Plan) -> Tables:
        """Run a plan on the tables of a neighbor."""
        try:
            return {name: fetch(self.connection, sql) for name, sql in queries(made).items()}
        except (duckdb.ParserException, duckdb.BinderException):
            raise  # invalid SQL is an error of the campaign: it fails on every table, and reveals nothing
        except duckdb.Error as error:
            raise EngineFailure(str(error)) from error


class PostgresTarget:
    """A real PostgreSQL with the same rows; planner options such as hashing and sorting are varied."""

    name, dialect = "postgres", POSTGRES

    def __init__(self, connection: duckdb.DuckDBPyConnection, server: Server) -> None:
        self.connection = connection
        self._server = server
        self._owner = psycopg.connect(server.dsn("neighbors"), autocommit=True)
        postgres.copied(connection, ["areas", "wards"], server, "neighbors")
        self._engine: PostgresEngine | None = None
        self._tables: Mapping[str, Table] = {}

    def settle(self, world: World) -> None:
        """Copy the rows of new tables."""
        for name in world.views("rows0", frozenset()):
            self._owner.execute(f"DROP VIEW IF EXISTS {name}".encode())
        postgres.copied(self.connection, world.bases, self._server, "neighbors")
        self._tables = world.tables
        self.load(world, "rows0", frozenset())
        self._open()

    def load(self, world: World, rows: str, gone: frozenset[int]) -> None:
        """Define the tables of one neighbor."""
        for name, select in world.views(rows, gone).items():
            self._owner.execute(f"CREATE OR REPLACE VIEW {name} AS {select}".encode())

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a relation."""
        return self._owner.execute(sql.encode()).fetchall()

    def vary(self, rng: random.Random) -> None:
        """Change the options of the planner."""
        if rng.random() < 0.3:
            for setting in ("enable_hashagg", "enable_sort", "enable_hashjoin", "enable_seqscan", "enable_mergejoin"):
                value = rng.choice(("on", "off"))
                self._owner.execute(f"ALTER DATABASE neighbors SET {setting} = {value}".encode())
            self._open()

    def seen(self, made: Plan) -> Tables:
        """Run a plan on the tables of a neighbor."""
        for sql in queries(made).values():  # invalid SQL is an error of the campaign, as above
            self._owner.execute(f"EXPLAIN {sql}".encode())
        try:
            return {name: self._engine.run(sql).through(dict) for name, sql in queries(made).items()}  # type: ignore[union-attr]
        except RunError as error:
            raise EngineFailure("The engine failed.") from error

    def close(self) -> None:
        """Close the connections."""
        self._owner.close()
        if self._engine is not None:
            self._engine.close()

    def _open(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = postgres.engine(self._tables, self._server, "neighbors")


Target = DuckDBTarget | PostgresTarget


@contextmanager
def on_postgres(connection: duckdb.DuckDBPyConnection) -> Iterator[PostgresTarget]:
    """Start a PostgreSQL server for the duration of the campaign."""
    with Server(fsync="off", full_page_writes="off") as server:
        server.run("CREATE DATABASE neighbors")
        ground = PostgresTarget(connection, server)
        try:
            yield ground
        finally:
            ground.close()


@dataclass
class Tally:
    """Counts of what was compared."""

    accepted: int = 0
    refused: int = 0
    pairs: int = 0
    row_pairs: int = 0
    orders: int = 0
    families: Counter[str] = field(default_factory=Counter)


def fuzz(rng: random.Random, ground: Target, tally: Tally, *, crowd: int) -> Iterator[str]:
    """Run a few queries on several neighbors of a random table; yield where they exceed the sensitivity."""
    world = random_table(rng, ground.connection, crowd=crowd, unit=found_bounds(rng))
    ground.settle(world)
    for _ in range(6):
        text = random_query(rng, by_row=world.by_row)
        try:
            made = random_plan(rng, world, text, ground.dialect)
        except QueryError as error:
            check_refusal(error, text, by_row=world.by_row, delta=None, dialect=ground.dialect.name)
            tally.refused += 1
            continue
        tally.accepted += 1
        try:
            for complaint in _compared(rng, ground, world, made, world.movable(rng, text), tally):
                yield f"{text}: {complaint}"
        except EngineFailure as error:
            yield f"{text}: {error}"


def fuzz_schema(
    rng: random.Random,
    ground: Target,
    tally: Tally,
    family: str,
    *,
    queries: int,
    share: float = 0.5,
    spoil: Callable[[str], str] = str,
) -> Iterator[str]:
    """Run queries about one operator on neighbors of a random schema; yield where rows or results are wrong.

    The rows before aggregation are compared for all queries, and the results for a share of them. `spoil` plants an
    error in the SQL of these rows.
    """
    world = random_schema(rng, ground.connection)
    ground.settle(world)
    for _ in range(queries):
        query = random_schema_query(rng, world.unit, family)
        try:
            made = random_plan(rng, world, query.text, ground.dialect, lists=query.lists)
        except QueryError as error:
            check_schema_refusal(error, query, ground.dialect.name)
            tally.refused += 1
            continue
        tally.accepted += 1
        tally.families[query.family] += 1
        movable = world.movable(rng, query.text)
        try:
            complaints = [*_compare_rows(rng, ground, world, made, movable, tally, spoil)]
            if rng.random() < share:
                complaints += _compared(rng, ground, world, made, movable, tally)
        except EngineFailure as error:
            complaints = [str(error)]
        yield from (f"{query.text}: {complaint}" for complaint in complaints)


def _compared(
    rng: random.Random, ground: Target, world: World, made: Plan, movable: list[int], tally: Tally
) -> Iterator[str]:
    def seen(rows: str, gone: frozenset[int]) -> Tables:
        ground.load(world, rows, gone)
        return ground.seen(made)

    ground.vary(rng)
    whole = seen("rows0", frozenset())
    if rng.random() < 0.3:
        ground.vary(rng)
        tally.orders += 1
        if check_sensitivity(made, whole, seen("rows1", frozenset()), nothing=True):
            yield "The row order changes the exact integers."
    results = {frozenset[int](): whole}
    for unit in movable:
        for gone in [each | {unit} for each in results]:
            results[gone] = seen(rng.choice(("rows0", "rows1")), gone)
    for gone, fewer in results.items():
        for unit in gone:
            tally.pairs += 1
            yield from check_sensitivity(made, results[gone - {unit}], fewer)


def _compare_rows(
    rng: random.Random,
    ground: Target,
    world: RandomSchema,
    made: Plan,
    movable: list[int],
    tally: Tally,
    spoil: Callable[[str], str],
) -> Iterator[str]:
    """Compare the rows that a query aggregates: without a unit they are those of all others, bit by bit."""
    rel = made.query.relation
    places = owner_columns(rel)
    if len(places) == 1:
        rel = fanout.bound_joins(rel, fanout.TruncationBounds(None, None, "s", "engine")).rel
    sql = f"SELECT * FROM ({spoil(render.relation(rel, ground.dialect))}) AS r"

    def rows(gone: frozenset[int]) -> list[tuple[Any, ...]]:
        ground.load(world, rng.choice(("rows0", "rows1")), gone)
        return [(*row[: len(places)], *map(repr, row[len(places) :])) for row in ground.rows(sql)]

    def without(gone: list[tuple[Any, ...]], unit: int) -> Counter[tuple[Any, ...]]:
        place, owner = world.owner(unit)
        return Counter(row for row in gone if place >= len(places) or row[place] != owner)

    whole, known = rows(frozenset()), {world.owner(unit) for unit in world.units}
    if any((place, row[place]) not in known for row in whole for place in range(len(places))):
        yield "A row has an owner who is not in the data."
    for unit in movable:
        fewer = rows(frozenset({unit}))
        tally.row_pairs += 1
        if without(whole, unit) != without(fewer, unit):
            yield f"Rows of others change with unit {unit}."
        if world.relation is Relation.ADD_REMOVE and without(fewer, unit) != Counter(fewer):
            yield f"Rows of unit {unit} stay without it."


# --- planted errors ----------------------------------------------------------------------------------------------


def _rewrite(made: Plan, pattern: str, new: str) -> Plan:
    """Replace a pattern in the SQL of a plan; fail if it does not occur."""
    texts = [re.sub(pattern, new, each.sql) for each in made.statements]
    if texts == [each.sql for each in made.statements]:
        raise AssertionError(f"The pattern does not occur: {pattern}")
    return replace(
        made, statements=tuple(replace(each, sql=sql) for each, sql in zip(made.statements, texts, strict=True))
    )


def _adding_only(made: Plan) -> Plan:
    """State the sensitivity of add/remove, whatever the relation is."""
    reaches = tuple(unit_contribution(each, made.limits) for each in made.groups)
    measures = tuple(
        replace(each, sensitivity=sensitivity(each.measure, reaches, Relation.ADD_REMOVE)) for each in made.measures
    )
    return replace(made, measures=measures)


def _no_clamp(made: Plan) -> Plan:
    """Remove the clamping from the scan and from the measure."""
    return _rewrite(
        _rewrite(made, r" WHEN TRY_CAST\(", " WHEN FALSE AND TRY_CAST("),
        r"round\(CASE WHEN ",
        "round(CASE WHEN 1=0 AND ",
    )


@dataclass(frozen=True)
class PlantedError:
    """An error, and a query that reveals it."""

    spoil: Callable[[Plan], Plan]
    unit: PrivacyUnit
    text: str


ONE = PrivacyUnit("u", groups=1, rows=1)
FOUND = PrivacyUnit("u", 4, 4, auto=True)
TABLE = "SELECT count(*) FROM t GROUP BY k, b"
PAIRED = "SELECT count(r.x), sum(r.y) FROM t AS l JOIN t AS r ON l.u = r.u GROUP BY r.k"
CUT = r"rank\(\) OVER \(PARTITION BY \"\$unit\" ORDER BY .*?\) AS \"\$place\""
ORDER = r"rank\(\) OVER \(PARTITION BY u ORDER BY [^)]*\), c\)"
#: Planted errors; each must be detected.
PLANTED = {
    "missing clamp": PlantedError(_no_clamp, PrivacyUnit(None), "SELECT sum(x), avg(y) FROM t"),
    "rows not bounded": PlantedError(
        lambda made: _rewrite(made, r'FROM "\$order" WHERE place <= 1\)', 'FROM "$order" WHERE place <= 1000)'),
        ONE,
        "SELECT count(x), sum(y) FROM t GROUP BY k",
    ),
    "groups not bounded": PlantedError(lambda m: _rewrite(m, r"WHERE place <= 1 ", "WHERE place <= 1000 "), ONE, TABLE),
    "sensitivity of adding under replace": PlantedError(_adding_only, PrivacyUnit(None), TABLE),
    "found bound on rows not applied": PlantedError(
        lambda m: _rewrite(m, r'"\$place" <= \d+', '"$place" <= 1000'),
        FOUND,
        "SELECT count(x), avg(y) FROM t GROUP BY k",
    ),
    "found bound on sums not applied": PlantedError(
        lambda m: _rewrite(m, r"greatest\(0, \d+ - ", "greatest(0, 1000000000 - "),
        FOUND,
        "SELECT sum(y) FROM t GROUP BY b",
    ),
    "choice by order of rows": PlantedError(
        lambda m: _rewrite(m, ORDER, "row_number() OVER (PARTITION BY u)"), ONE, TABLE
    ),
    "cut by order of rows": PlantedError(
        lambda made: _rewrite(made, CUT, 'row_number() OVER (PARTITION BY "$unit") AS "$place"'), ONE, PAIRED
    ),
}


def _no_clamp_there(made: Plan) -> Plan:
    return _rewrite(made, r"float8smaller\(float8larger\(", "coalesce(nullif(")


#: The same errors for PostgreSQL.
ON_POSTGRES = {
    name: PLANTED[name] for name in ("rows not bounded", "groups not bounded", "sensitivity of adding under replace")
} | {"missing clamp": replace(PLANTED["missing clamp"], spoil=_no_clamp_there)}


def is_detected(rng: random.Random, ground: Target, planted: PlantedError) -> bool:
    """Return whether a planted error is detected on a few random tables."""
    for _ in range(40):
        world = random_table(rng, ground.connection, unit=planted.unit)
        ground.settle(world)
        query, salt = bind(planted.text, tables={"t": world.table}), str(rng.random())
        made = plan(query, epsilon=Fraction(1), delta=Fraction(0), salt=salt, dialect=ground.dialect)
        made = at_random_bounds(made, rng)
        if len(made.groups[0].keys) and planted.unit == ONE and made.size <= 1:
            continue  # a single group: there is nothing to bound
        try:
            spoiled, movable = planted.spoil(made), world.movable(rng, planted.text)
            if any(True for _ in _compared(rng, ground, world, spoiled, movable, Tally())):
                return True
        except EngineFailure:
            return True
    return False


def search(report: Report, ground: Target, goal: int, worlds: int) -> None:
    """Fuzz until enough pairs are compared, and report."""
    rng, tally, complaints = random.Random(20240611), Tally(), list[str]()
    prefix = "" if ground.name == "duckdb" else f"{ground.name}: "
    for number in report.progress(range(worlds), f"{prefix}neighbors"):
        if tally.pairs >= goal:
            break
        crowd = report.scale(ci=20_000, full=100_000) if number % report.scale(ci=60, full=100) == 0 else 0
        complaints += fuzz(rng, ground, tally, crowd=crowd)
    for complaint in complaints[:20]:
        report.say(complaint)
    report.figure(f"{prefix}accepted queries", tally.accepted)
    report.figure(f"{prefix}refused queries", tally.refused)
    report.figure(f"{prefix}orders and threads", tally.orders)
    report.target(f"{prefix}pairs", tally.pairs, at_least=goal)
    report.target(f"{prefix}pairs too far apart", len(complaints), at_most=0)
    for name, planted in (PLANTED if ground.name == "duckdb" else ON_POSTGRES).items():
        report.target(f"{prefix}planted: {name}", is_detected(rng, ground, planted), at_least=1)


#: Errors in the rows of queries about an operator; each must be detected.
PLANTED_SCHEMAS: dict[str, tuple[str, Callable[[str], str]]] = {
    "a window over all units": (
        "windows and QUALIFY",
        lambda sql: sql.replace('PARTITION BY "$unit"', "PARTITION BY TRUE"),
    ),
    "a reference that leads nowhere": ("joins along keys", lambda sql: sql.replace("INNER JOIN", "LEFT JOIN")),
}


def search_schemas(report: Report, ground: Target, rounds: int, queries: int) -> None:
    """Fuzz each operator over several tables, and report."""
    rng, tally, complaints = random.Random(int(os.environ.get("HUBBUB_TURN") or 0)), Tally(), list[str]()
    prefix = "schemas: " if ground.name == "duckdb" else f"{ground.name}: schemas: "
    for family in report.progress(FAMILIES * rounds, f"{prefix}neighbors"):
        complaints += fuzz_schema(rng, ground, tally, family, queries=queries)
    for complaint in complaints[:20]:
        report.say(complaint)
    report.figure(f"{prefix}accepted queries", tally.accepted)
    report.figure(f"{prefix}refused queries", tally.refused)
    report.figure(f"{prefix}orders and threads", tally.orders)
    report.figure(f"{prefix}pairs", tally.pairs)
    report.target(f"{prefix}pairs of exact rows", tally.row_pairs, at_least=rounds * len(FAMILIES))
    report.target(f"{prefix}operators", len(tally.families), at_least=len(FAMILIES))
    report.target(f"{prefix}rows or results too far apart", len(complaints), at_most=0)
    if ground.name == "duckdb":
        for name, (family, spoil) in PLANTED_SCHEMAS.items():
            tries = (fuzz_schema(rng, ground, Tally(), family, queries=3, share=0.0, spoil=spoil) for _ in range(20))
            report.target(f"{prefix}planted: {name}", any(True for part in tries for _ in part), at_least=1)


def body(report: Report) -> None:
    parts = report.parts("tables", "schemas", "postgres", "postgres-schemas")
    # on tables of a few rows the rounds after the last decision have nothing to do (see the fixture `few_rounds`)
    owner_truncation._ROUNDS = report.scale(ci=4, full=owner_truncation._ROUNDS)
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE areas (area VARCHAR, zone VARCHAR)")
    connection.execute("INSERT INTO areas VALUES ('North', 'a'), ('Ça', 'b'), ('🙂', 'a'), (NULL, 'b')")
    connection.execute(f"CREATE TABLE wards AS FROM ({WARD_ROWS}) AS w(code, zone, beds)")
    if "tables" in parts:
        search(report, DuckDBTarget(connection), report.scale(ci=600, full=100_000), report.scale(ci=60, full=3000))
    if "schemas" in parts:
        search_schemas(report, DuckDBTarget(connection), report.scale(ci=1, full=4), report.scale(ci=3, full=6))
    if {"postgres", "postgres-schemas"} & {*parts}:
        with on_postgres(connection) as ground:
            if "postgres" in parts:
                search(report, ground, report.scale(ci=100, full=20_000), report.scale(ci=30, full=2000))
            if "postgres-schemas" in parts:
                search_schemas(report, ground, report.scale(ci=1, full=3), report.scale(ci=1, full=6))


if __name__ == "__main__":
    run(body)
