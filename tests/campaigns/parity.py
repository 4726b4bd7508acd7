"""Engine parity: the same queries give the same exact integers before noise on every engine.

All queries of the corpus and random valid queries on random tables with NULL, NaN, ±inf, 2⁵³ edges, int64 limits and
unusual Unicode. Plans use the hash that all engines share, so each unit keeps the same rows. Queries that an engine
does not support are skipped and counted. The comparison must detect planted errors.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
from tests.campaigns.frame import Report, run
from tests.campaigns.rig.random_sql import check_refusal, random_query
from tests.campaigns.rig.random_table import PUBLIC, define_view, random_table
from tests.fixtures import postgres
from tests.fixtures.postgres_server import Server
from tests.fixtures.visits_table import arrays
from tests.sql.corpus.queries import entries
from tests.sql.corpus.worlds import WORLDS

from hubbub.core.schema import Table
from hubbub.engines.base import Arrays, Engine
from hubbub.errors import QueryError, RunError
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Query

Tables = Mapping[str, Table]
#: Returns an engine with tables copied from DuckDB; called many times.
Filled = Callable[[duckdb.DuckDBPyConnection, Tables], AbstractContextManager[Engine]]


@dataclass(frozen=True)
class Side:
    """An engine to compare with DuckDB: its dialect, and a function that copies tables to it."""

    name: str
    dialect: Dialect
    filled: Filled
    errors: Mapping[str, tuple[str, str, str]]  #: planted errors: a query, a pattern and its replacement


@contextmanager
def on_postgres() -> Iterator[Side]:
    """Start a PostgreSQL server for the duration of the campaign."""
    with Server(fsync="off", full_page_writes="off") as server:
        server.run("CREATE DATABASE parity")

        @contextmanager
        def filled(connection: duckdb.DuckDBPyConnection, tables: Tables) -> Iterator[Engine]:
            postgres.copied(connection, tables, server, "parity")
            engine = postgres.engine(tables, server, "parity")
            try:
                yield engine
            finally:
                engine.close()

        yield Side("postgres", POSTGRES, filled, _POSTGRES_ERRORS)


_BY_GROUP = "SELECT count(*) FROM t GROUP BY k, b"
_POSTGRES_ERRORS = {
    "rounding half to even": ("SELECT sum(x) FROM t", "floor(", "round("),
    "another order of a unit's groups": (_BY_GROUP, "concat_ws('|'", "concat_ws('/'"),
    "no clamp on the scan": ("SELECT sum(y) FROM t", "float8smaller(float8larger(", "coalesce(nullif("),
}

#: The engines that are compared with DuckDB.
ENGINES: Sequence[Callable[[], AbstractContextManager[Side]]] = (on_postgres,)

Planner = Callable[..., Plan]


@dataclass
class Tally:
    """Counts of what was compared on one engine."""

    same: int = 0
    refused: int = 0


def rows(table: Arrays) -> list[tuple[Any, ...]]:
    """Return a result as sorted plain rows: integers as such, dates as timestamps."""
    columns = []
    for name in sorted(table):
        column = np.ma.getdata(table[name])
        if column.dtype.kind == "M":
            column = column.astype("datetime64[us]")
        columns.append([int(v) if isinstance(v, float) and v.is_integer() else v for v in column.tolist()])
    return sorted(zip(*columns, strict=True), key=repr)


def differences(planner: Planner, local: duckdb.DuckDBPyConnection, engine: Engine, side: Side, tally: Tally) -> str:
    """Yield the differences between the integers of an engine and DuckDB's."""
    try:
        theirs = planner(hashing="portable", dialect=side.dialect)
    except QueryError as refused:
        if refused.code != "HB574":
            raise
        tally.refused += 1
        return ""
    mine = planner(hashing="portable")
    for here, there in zip(mine.statements, theirs.statements, strict=True):
        expected = rows(arrays(local, here.sql))
        try:
            found = engine.run(there.sql).through(rows)
        except RunError:
            return f"{here.name} fails: {there.sql[:3000]}"
        if found != expected:
            pairs = [(a, b) for a, b in zip(expected, found, strict=False) if a != b][:3]
            return f"{here.name}: {len(expected)} rows, {len(found)} there, {pairs}\n{there.sql[:3000]}"
    tally.same += 1
    return ""


def corpus(report: Report, side: Side, tally: Tally) -> Iterator[str]:
    """Run every query of the corpus; at the small scale a sample of those on large tables."""
    every = entries()
    for world in WORLDS:
        made = WORLDS[world]()
        local = made.connect()
        asked = [entry for entry in every if entry.world == world]
        if world != "made" and not report.full:
            asked = random.Random(3).sample(asked, 10)
        if world == "flights" and not report.full:
            local.execute("DELETE FROM flights WHERE day > 3")
        with side.filled(local, made.tables) as engine:
            for entry in report.progress(asked, f"{side.name}: {world}"):
                found = differences(entry.planned, local, engine, side, tally)
                if found:
                    yield f"{entry.id}: {found}"


def random_planner(rng: random.Random, query: Query) -> Planner:

    delta = Fraction(1, 10**6) if rng.random() < 0.5 else Fraction(0)
    salt = str(rng.random())
    return lambda **words: plan(query, epsilon=Fraction(1), delta=delta, salt=salt, **words)


def fuzz(report: Report, side: Side, tally: Tally, goal: int) -> Iterator[str]:
    """Run random queries on random tables until enough results were equal."""
    rng = random.Random(20261116)
    local = duckdb.connect(":memory:", config={"threads": 1})
    local.execute("CREATE TABLE areas (area VARCHAR, zone VARCHAR)")
    local.execute("INSERT INTO areas VALUES ('North', 'a'), ('Ça', 'b'), ('🙂', 'a'), (NULL, 'b')")
    for _ in report.progress(range(10**6), f"{side.name}: random queries"):
        if tally.same >= goal:
            return
        world = random_table(rng, local)
        define_view(local, world, rows="rows0", gone=frozenset())
        tables = {"t": world.table, "areas": PUBLIC}
        with side.filled(local, tables) as engine:
            for _ in range(40):
                text = random_query(rng, by_row=world.by_row)
                try:
                    planner = random_planner(rng, bind(text, tables=tables))
                    planner()
                except QueryError as error:
                    check_refusal(error, text, by_row=world.by_row, delta=None)
                    continue
                found = differences(planner, local, engine, side, tally)
                if found:
                    yield f"{text}: {found}"
                if tally.same >= goal:
                    return


def planted(side: Side) -> Iterator[tuple[str, bool]]:
    """Plant errors in the SQL of the other engine, and yield whether each is detected."""
    rng = random.Random(5)
    local = duckdb.connect(":memory:", config={"threads": 1})
    for name, (text, old, new) in side.errors.items():
        noticed = False
        for _ in range(30):
            world = random_table(rng, local)
            if world.units < 4 or world.by_row == (" GROUP " in text):
                continue
            define_view(local, world, rows="rows0", gone=frozenset())
            planner = random_planner(rng, bind(text, tables={"t": world.table}))

            def spoilt(made: Planner = planner, **words: Any) -> Plan:
                found = made(**words)
                if "dialect" not in words:
                    return found
                texts = [replace(each, sql=each.sql.replace(old, new)) for each in found.statements]  # noqa: B023
                return replace(found, statements=tuple(texts))

            with side.filled(local, {"t": world.table}) as engine:
                noticed = bool(differences(spoilt, local, engine, side, Tally()))
            if noticed:
                break
        yield name, noticed


def body(report: Report) -> None:
    for opened in ENGINES:
        with opened() as side:
            fixed, free = Tally(), Tally()
            complaints = [*corpus(report, side, fixed), *fuzz(report, side, free, report.scale(ci=120, full=50_000))]
            for complaint in complaints[:20]:
                report.say(complaint)
            report.figure(f"{side.name}: queries of the corpus alike", fixed.same)
            report.figure(f"{side.name}: queries of the corpus refused", fixed.refused)
            report.figure(f"{side.name}: random queries alike", free.same)
            report.figure(f"{side.name}: random queries refused", free.refused)
            report.target(f"{side.name}: queries that differ", len(complaints), at_most=0)
            for name, noticed in planted(side):
                report.target(f"{side.name}: planted: {name}", noticed, at_least=1)


if __name__ == "__main__":
    run(body)
