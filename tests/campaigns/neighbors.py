"""Fuzz the SQL path with neighbors: exact integers before noise never differ by more than the stated sensitivity.

Random tables (NULL, NaN, ±inf, 2⁵³ edges, int64 limits, empty, a unit with very many rows, unusual Unicode), random
valid queries (including self-joins), one unit removed or replaced, another row order, one to eight threads. A few units
are removed or replaced in every combination, and all combinations that differ in one unit are compared: twelve pairs of
neighbors from eight runs. The same comparison must detect planted errors. It runs on DuckDB, then on a real PostgreSQL,
whose query plans are varied instead of threads.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import duckdb
import psycopg
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.random_sql import check_refusal, random_query
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server

from hubbub.audit.sensitivity import at_random_bounds, check_sensitivity, queries
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.engines.postgres.connection import PostgresEngine
from hubbub.errors import QueryError, RunError
from hubbub.sql.allocation import unit_contribution
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.measures import sensitivity
from hubbub.sql.noise import Noise
from hubbub.sql.plan import Plan, plan

WORDS = ("North", "Ça", "Ca\u0327", "", "\u200b", "🙂", "O'Brien")
REALS: tuple[float | None, ...] = (
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    2.0**53,
    -(2.0**53) - 2,
    1e300,
    -1e300,
    5e-324,
    7.5,
)
WHOLE: tuple[int | None, ...] = (None, 0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 3, 4)
PUBLIC = Table(
    "areas",
    (Column("area", Kind.TEXT, values=WORDS[:5]), Column("zone", Kind.TEXT, values=("a", "b"))),
    unit=None,
    unique=("area",),
)


@dataclass(frozen=True)
class RandomTable:
    """A declared table and its rows: owner, alternative (0: original, 1: replacement), values."""

    table: Table
    units: int
    by_row: bool


def random_table(
    rng: random.Random, connection: duckdb.DuckDBPyConnection, *, crowd: int = 0, unit: PrivacyUnit | None = None
) -> RandomTable:
    """Create a random schema and its rows; neighbors are views of the same rows."""
    if unit is None:
        wide = PrivacyUnit("u", groups=rng.choice((1, 2, 3, 50)), rows=rng.choice((1, 2, 5)))
        unit = PrivacyUnit(None) if rng.random() < 0.3 else wide
    by_row = unit.column is None
    low, span = rng.choice((0, -5, 2, -100)), rng.choice((1, 10, 1000))
    step = rng.choice((None, Fraction(1, 2)))
    columns = (
        Column("u", rng.choice((Kind.INTEGER, Kind.TEXT))),
        Column("k", Kind.TEXT, values=WORDS[: rng.randint(1, 5)], other=rng.choice((None, "Ça"))),
        Column("w", Kind.TEXT),
        Column("b", Kind.BOOLEAN),
        Column("x", Kind.REAL, bounds=Bounds(Fraction(low), Fraction(low + span)), step=step),
        Column("y", Kind.INTEGER, bounds=Bounds(Fraction(rng.choice((-3, 0))), Fraction(rng.choice((4, 90))))),
    )
    other = columns[1].other
    if other is not None and other not in (columns[1].values or ()):
        columns = (columns[0], replace(columns[1], values=(*(columns[1].values or ()), other)), *columns[2:])
    table = Table("t", columns, unit, rng.choice(list(Relation)))
    units = rng.choice((0, 1, 4, 8, 12))
    rows: list[tuple[object, ...]] = []
    for owner in range(units):
        for alternative in (0, 1):
            for _ in range(1 if by_row else rng.choice((0, 1, 1, 2, 4, 9))):
                row = (
                    owner,
                    alternative,
                    str(owner),
                    rng.choice((*WORDS, None)),
                    rng.choice((*WORDS, None)),
                    rng.choice((True, False, None)),
                    rng.choice(REALS) if rng.random() < 0.4 else rng.uniform(low - span, low + 2 * span),
                    rng.choice(WHOLE) if rng.random() < 0.4 else rng.randint(-5, 100),
                )
                rows += [row] * (1 if by_row else rng.choice((1, 1, 1, 2)))
    for name in ("rows0", "rows1"):
        rng.shuffle(rows)
        connection.execute(
            f"CREATE OR REPLACE TABLE {name} "
            "(owner BIGINT, alternative INTEGER, u VARCHAR, k VARCHAR, w VARCHAR, b BOOLEAN, x DOUBLE, y BIGINT)"
        )
        if rows:
            places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(rows))
            connection.execute(f"INSERT INTO {name} VALUES {places}", [value for row in rows for value in row])
        if crowd and units and not by_row:
            connection.execute(
                f"INSERT INTO {name} SELECT 0, 0, '0', CASE WHEN range % 3 = 0 THEN 'North' ELSE 'Ça' END, 'North', "
                f"TRUE, range % 17, range % 5 FROM range({crowd}) ORDER BY hash(range, '{name}')"
            )
    return RandomTable(table, units, by_row)


def found_bounds(rng: random.Random) -> PrivacyUnit | None:
    """Return a unit whose bounds each query finds, for a part of the tables."""
    most = rng.choice((1, 3, 20))
    return PrivacyUnit("u", most, most, auto=True) if rng.random() < 0.25 else None


def define_view(connection: duckdb.DuckDBPyConnection, world: RandomTable, *, rows: str, gone: frozenset[int]) -> None:
    """Define the view t without the units in `gone`, or with their replacements."""
    connection.execute(f"CREATE OR REPLACE VIEW t AS {select_rows(world, rows=rows, gone=gone)}")


def select_rows(world: RandomTable, *, rows: str, gone: frozenset[int]) -> str:
    """Return the SELECT statement of that view."""
    kept = "alternative = 0"
    if gone:
        listed = ", ".join(map(str, sorted(gone)))
        swapped = f"owner IN ({listed}) AND alternative = 1" if world.table.relation is Relation.REPLACE else "FALSE"
        kept = f"(alternative = 0 AND owner NOT IN ({listed})) OR ({swapped})"
    unit = "CAST(u AS BIGINT) AS u" if world.table.columns[0].kind is Kind.INTEGER else "u"
    return f"SELECT {unit}, k, w, b, x, y FROM {rows} WHERE {kept}"


def random_plan(rng: random.Random, world: RandomTable, text: str, dialect: Dialect) -> Plan:
    query = bind(text, tables={"t": world.table, "areas": PUBLIC})
    delta = Fraction(1, 10**6) if rng.random() < 0.5 else Fraction(0)
    auto = world.table.unit is not None and world.table.unit.auto  # bounds that are found need Laplace noise
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

    def settle(self, world: RandomTable) -> None:
        """Do nothing: DuckDB already has the rows."""

    def vary(self, rng: random.Random) -> None:
        """Change the number of threads, and so the row order."""
        self.connection.execute(f"SET threads = {rng.choice((1, 2, 3, 8))}")

    def seen(self, world: RandomTable, made: Plan, rows: str, gone: frozenset[int]) -> Tables:
        """Run a plan on one neighbor."""
        define_view(self.connection, world, rows=rows, gone=gone)
        try:
            return {name: self.connection.execute(sql).fetchnumpy() for name, sql in queries(made).items()}
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
        postgres.copied(connection, ["areas"], server, "neighbors")
        self._engine: PostgresEngine | None = None
        self._tables: Mapping[str, Table] = {}

    def settle(self, world: RandomTable) -> None:
        """Copy the rows of a new table."""
        self._owner.execute("DROP VIEW IF EXISTS t")
        postgres.copied(self.connection, ["rows0", "rows1"], self._server, "neighbors")
        self._tables = {"t": world.table, "areas": PUBLIC}
        self._owner.execute(f"CREATE VIEW t AS {select_rows(world, rows='rows0', gone=frozenset())}".encode())
        self._open()

    def vary(self, rng: random.Random) -> None:
        """Change the options of the planner."""
        if rng.random() < 0.3:
            for setting in ("enable_hashagg", "enable_sort", "enable_hashjoin", "enable_seqscan", "enable_mergejoin"):
                value = rng.choice(("on", "off"))
                self._owner.execute(f"ALTER DATABASE neighbors SET {setting} = {value}".encode())
            self._open()

    def seen(self, world: RandomTable, made: Plan, rows: str, gone: frozenset[int]) -> Tables:
        """Run a plan on one neighbor."""
        self._owner.execute(f"CREATE OR REPLACE VIEW t AS {select_rows(world, rows=rows, gone=gone)}".encode())
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
    orders: int = 0


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
            for complaint in _compared(rng, ground, world, made, tally):
                yield f"{text}: {complaint}"
        except EngineFailure as error:
            yield f"{text}: {error}"


def _compared(rng: random.Random, ground: Target, world: RandomTable, made: Plan, tally: Tally) -> Iterator[str]:
    ground.vary(rng)
    whole = ground.seen(world, made, "rows0", frozenset())
    if rng.random() < 0.3:
        ground.vary(rng)
        tally.orders += 1
        if check_sensitivity(made, whole, ground.seen(world, made, "rows1", frozenset()), nothing=True):
            yield "The row order changes the exact integers."
    # unit 0 is the one with very many rows, if there is one
    movable = [0, *rng.sample(range(1, world.units), min(world.units - 1, rng.choice((2, 3))))] if world.units else []
    results = {frozenset[int](): whole}
    for unit in movable:
        for gone in [each | {unit} for each in results]:
            results[gone] = ground.seen(world, made, rng.choice(("rows0", "rows1")), gone)
    for gone, fewer in results.items():
        for unit in gone:
            tally.pairs += 1
            yield from check_sensitivity(made, results[gone - {unit}], fewer)


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
        lambda made: _rewrite(made, r"WHERE n <= 1 ", "WHERE n <= 1000 "),
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
            if any(True for _ in _compared(rng, ground, world, planted.spoil(made), Tally())):
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


def body(report: Report) -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE areas (area VARCHAR, zone VARCHAR)")
    connection.execute("INSERT INTO areas VALUES ('North', 'a'), ('Ça', 'b'), ('🙂', 'a'), (NULL, 'b')")
    search(report, DuckDBTarget(connection), report.scale(ci=2000, full=100_000), report.scale(ci=60, full=3000))
    with on_postgres(connection) as ground:
        search(report, ground, report.scale(ci=300, full=20_000), report.scale(ci=30, full=2000))


if __name__ == "__main__":
    run(body)
