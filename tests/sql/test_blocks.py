"""Blocks of a table: what a scan reads, and what the conditions of a query allow."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, get_args

import duckdb
import numpy as np
import psycopg
import pytest
from tests.contract.analyses import CASES, Case
from tests.contract.tables import DELTA, EPSILON, FEW, ROW
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server

from hubbub.analyses.base import EngineRun, Setting
from hubbub.analyses.registry import ANALYSES, prepare
from hubbub.core.blocks import BlockLength, Blocks, BlockSet, number
from hubbub.core.call import AnalysisCall
from hubbub.core.schema import Column, Kind, Period, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.curator.planner import NOT_BY_BLOCK
from hubbub.engines.base import Arrays
from hubbub.engines.duckdb.connection import _fetch
from hubbub.errors import QueryError
from hubbub.noise.source import Keystream
from hubbub.sql import render
from hubbub.sql.bind import bind, bind_releases
from hubbub.sql.blocks import within_blocks
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.expressions import Col
from hubbub.sql.query import Queries, Query
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow

#: The microsecond before each of these moments, the moment itself, and the one after it.
BORDERS = [
    datetime(2024, 1, 1),
    datetime(2024, 2, 29),
    datetime(2024, 3, 1),
    datetime(2025, 1, 1),
    datetime(2024, 7, 1),
]
TIMES = [*(b + timedelta(microseconds=m) for b in BORDERS for m in (-1, 0, 1)), None, datetime.max, datetime.min]
MARCH = number("month", date(2024, 3, 1))


def table(by: BlockLength, kind: Kind, *, per: str = "") -> Table:
    columns = (Column("who", Kind.TEXT), Column("moment", kind), Column("n", Kind.INTEGER))
    unit = PrivacyUnit("who", groups=3, rows=50)
    if per:
        period = Period("who", Kind.TEXT, per, "moment", kind)
        unit = replace(unit, column=period.name, period=period)
    return Table("t", columns, unit, blocks=Blocks("moment", by, number(by, date(2023, 1, 1))))


def reading(declared: Table, numbers: set[int]) -> Table:
    assert declared.blocks is not None
    return replace(declared, blocks=declared.blocks.reading(BlockSet.of(declared.blocks.by, numbers)))


def filled(kind: Kind) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    written = "DATE" if kind is Kind.DATE else "TIMESTAMP"
    connection.execute(f"CREATE TABLE t (who VARCHAR, moment {written}, n BIGINT)")
    connection.executemany("INSERT INTO t VALUES ('a', ?, ?)", [(time, n) for n, time in enumerate(TIMES)])
    connection.execute("INSERT INTO t VALUES ('a', 'infinity', 90), ('a', '-infinity', 91)")
    return connection


def scan(declared: Table) -> Scan:
    return Scan(declared, (Col("c", Kind.INTEGER),), ("n",))


# ── what a scan reads ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("per", ["", "day"])
@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIMESTAMP])
@pytest.mark.parametrize("by", get_args(BlockLength))
def test_a_scan_reads_exactly_the_rows_of_its_blocks(by: BlockLength, kind: Kind, per: str) -> None:
    """Around ends of blocks, without a time, and at the ends of all time."""
    connection = filled(kind)
    # the number of a block from its first day, counted here
    of = {n: number(by, time.date()) for n, time in enumerate(TIMES) if time is not None}
    present = sorted({block for n, block in of.items() if TIMES[n] not in (datetime.max, datetime.min)})
    for chosen in ({b} for b in present[:12]), ({present[0], present[-2]}, set(present[1:4])):
        for numbers in chosen:
            text = render.relation(scan(reading(table(by, kind, per=per), numbers)), DUCKDB)
            read = {int(n) for *_, n in connection.execute(text).fetchall()}
            assert read == {n for n, block in of.items() if block in numbers}


@pytest.mark.postgres
def test_a_scan_reads_the_same_rows_in_postgresql(postgres_server: Server) -> None:
    with postgres_server.database() as database, psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE t (who TEXT, moment TIMESTAMP, n BIGINT)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES ('a', %s, %s)", [(time, n) for n, time in enumerate(TIMES)])
        connection.execute("INSERT INTO t VALUES ('a', 'infinity', 90), ('a', '-infinity', 91)")
        local = filled(Kind.TIMESTAMP)
        for numbers in ({MARCH}, {MARCH - 1, MARCH + 9}):
            declared = reading(table("month", Kind.TIMESTAMP), numbers)

            def read(ask: Any, dialect: Dialect, declared: Table = declared) -> set[int]:
                return {int(n) for *_, n in ask(render.relation(scan(declared), dialect)).fetchall()}

            assert read(connection.execute, POSTGRES) == read(local.execute, DUCKDB) != set()


def test_a_scan_that_does_not_say_what_it_reads_cannot_be_written() -> None:
    with pytest.raises(AssertionError, match="which of them"):
        render.relation(scan(table("month", Kind.DATE)), DUCKDB)


def test_a_scan_of_no_block_reads_nothing() -> None:
    text = render.relation(scan(reading(table("month", Kind.DATE), set())), DUCKDB)
    assert filled(Kind.DATE).execute(text).fetchall() == []


# ── what conditions allow ─────────────────────────────────────────────────────────────────────────────────────────────

ALL_BLOCKS = {number("month", date(2024, month, 1)) for month in range(1, 13)}
T = "SELECT COUNT(*) FROM t "


def bound(sql: str, kind: Kind = Kind.DATE) -> Query | Queries:
    return bind_releases(sql, tables={"t": reading(table("month", kind), ALL_BLOCKS)})


def months(query: Query | Queries) -> list[str]:
    """The blocks that are charged; every scan must read these, and nothing else."""
    parts = query.parts if isinstance(query, Queries) else (query,)
    (charged,) = {t.blocks.read for part in parts for t in part.tables if t.blocks is not None}
    assert charged is not None
    for part in parts:
        assert {scanned.table.blocks.read for scanned in scans(part.relation) if scanned.table.blocks} <= {charged}
    return [name[5:] for name in charged.names()]


def scans(rel: Rel) -> Iterator[Scan]:
    match rel:
        case Scan():
            yield rel
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            yield from scans(rel.input)
        case Join():
            yield from scans(rel.left)
            yield from scans(rel.right)
        case Union():
            for part in rel.inputs:
                yield from scans(part)


CONDITIONS = {
    "moment >= '2024-10-05'": ["10", "11", "12"],
    "moment BETWEEN '2024-03-31' AND '2024-05-01'": ["03", "04", "05"],
    "moment < '2024-02-01'": ["01"],
    "moment <= '2024-02-01'": ["01", "02"],
    "moment = DATE '2024-06-30' AND n > 3": ["06"],
    "moment IN ('2024-02-29', '2024-09-01')": ["02", "09"],
    "(moment < '2024-02-15' OR moment >= '2024-12-24') AND n > 1": [f"{m:02}" for m in range(1, 13)],
    "moment >= '2024-03-01' AND (moment < '2024-04-01' OR n = 1)": [f"{m:02}" for m in range(3, 13)],
    "NOT (moment >= '2024-03-01')": ["01", "02"],
    "date_trunc('month', moment) = DATE '2024-07-01'": ["07", "08"],
    "n > 3": [f"{m:02}" for m in range(1, 13)],
    "moment IS NOT NULL": [f"{m:02}" for m in range(1, 13)],
}


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIMESTAMP])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_narrow_the_blocks_and_change_no_answer(condition: str, kind: Kind) -> None:
    """The rows that are counted are those of a query that is charged to all blocks."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(
        f"CREATE TABLE t AS SELECT 'a' AS who, CAST(DATE '2023-12-25' + CAST(i AS INTEGER) AS {kind.value}) AS moment, "
        "i % 7 AS n FROM range(400) r(i)"
    )
    whole = bound(f"{T} WHERE {condition}", kind)
    narrow = within_blocks(whole)
    assert isinstance(whole, Query)
    assert isinstance(narrow, Query)
    assert months(narrow) == CONDITIONS[condition]
    before, after = (
        connection.execute(f"SELECT count(*) FROM ({render.relation(query.relation, DUCKDB)})").fetchone()
        for query in (whole, narrow)
    )
    assert before == after != (0,)


def test_conditions_that_allow_no_block_are_refused() -> None:
    for condition in ("moment > '2025-01-01'", "moment < '2023-12-31'", "moment IS NULL", "FALSE AND moment IS NULL"):
        with pytest.raises(QueryError) as refusal:
            within_blocks(bound(f"{T} WHERE {condition}"))
        assert refusal.value.code == "HB794"


SEVERAL = {
    f"{T} WHERE moment < '2024-02-01' UNION ALL {T} WHERE moment >= '2024-12-01'": ["01", "12"],
    "SELECT COUNT(*) FROM (SELECT n FROM t WHERE moment < '2024-02-01' UNION ALL "
    "SELECT n FROM t WHERE moment >= '2024-12-01')": ["01", "12"],
    "SELECT COUNT(*) FROM t JOIN (SELECT who, COUNT(*) AS k FROM t WHERE moment < '2024-03-01' GROUP BY who) AS s "
    "USING (who) WHERE t.moment >= '2024-11-01'": ["01", "02", "11", "12"],
    "SELECT COUNT(*) FROM t LEFT JOIN (SELECT who, COUNT(*) AS k FROM t GROUP BY who) USING (who) "
    "WHERE moment < '2024-02-01'": [f"{m:02}" for m in range(1, 13)],
    f"{T} WHERE moment < '2024-03-01' AND n > (SELECT AVG(n) FROM t WHERE moment >= '2024-12-01')": ["01", "02", "12"],
    "WITH w AS (SELECT * FROM t WHERE moment >= '2024-06-01') SELECT COUNT(*) FROM w WHERE moment < '2024-08-01'": [
        "06",
        "07",
    ],
    "SELECT COUNT(*) FROM (SELECT who, MAX(moment) AS last FROM t GROUP BY who) WHERE last < '2024-02-01'": [
        f"{m:02}" for m in range(1, 13)
    ],
}


@pytest.mark.parametrize("sql", SEVERAL)
def test_several_scans_of_a_table_read_and_charge_the_same_blocks(sql: str) -> None:
    declared = reading(table("month", Kind.DATE), ALL_BLOCKS)
    columns = (*declared.columns[:2], Column("n", Kind.INTEGER, bounds=None))
    tables = {"t": replace(declared, columns=columns, unit=PrivacyUnit("who", 3, 50, "person"))}
    tables["t"] = replace(tables["t"], columns=(*columns[:2], replace(columns[2], values=(1, 2, 3))))
    assert months(within_blocks(bind_releases(sql, tables=tables))) == SEVERAL[sql]


def test_a_query_of_tables_without_blocks_stays_as_it_is() -> None:
    query = bind(T, tables={"t": replace(table("month", Kind.DATE), blocks=None)})
    assert within_blocks(query) is query


# ── every analysis ────────────────────────────────────────────────────────────────────────────────────────────────────

DAY = Column("day", Kind.DATE)
INSIDE = "2024-03-09"
ROWS = 12


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {case.used} {case.arguments}"[:60])
def test_every_statement_of_every_analysis_reads_only_the_blocks_that_are_charged(case: Case) -> None:
    """Each statement gives the same result with and without rows outside of the blocks."""
    tables = case.world.tables(FEW if case.units else ROW, Relation.ADD_REMOVE)
    declared = tables["t"]
    blocks = Blocks("day", "month", MARCH).reading(BlockSet("month", ((MARCH, MARCH),)))
    declared = replace(declared, columns=(*declared.columns, DAY), blocks=blocks)
    pools = [pool[0] for pool in case.world.pools]
    inside = [(n % 4, *(pool[(n * k) % len(pool)] for k, pool in enumerate(pools, 1)), INSIDE) for n in range(ROWS)]
    outside = [(n % 6, *(pool[n % len(pool)] for pool in pools), day) for n in range(9) for day in OUTSIDE]
    kinds = ("BIGINT", *case.world.types, "DATE")
    names = ["u", *(each.name for each in case.world.columns), "day"]
    engines = []
    for rows in (inside, [*outside[:20], *inside, *outside[20:]]):
        connection = duckdb.connect(config={"threads": 1})
        connection.execute(f"CREATE TABLE t ({', '.join(f'{n} {k}' for n, k in zip(names, kinds, strict=True))})")
        insert_rows(connection, "t", rows)
        engines.append(connection)
        if case.world.people:  # of the rows inside: the table beside it has no blocks
            kept = case.world.people.replace("WHERE", f"WHERE day = DATE '{INSIDE}' AND")
            connection.execute(f"CREATE TABLE p AS {kept}")
    asked = []

    def ask(sql: str) -> Secret[Arrays]:
        few, many = (_fetch(connection.cursor(), sql) for connection in engines)
        asked.append(sql)
        assert _rows(few) == _rows(many)
        return Secret({name: column.copy() for name, column in few.items()})

    setting = Setting({**tables, "t": declared}, EPSILON, DELTA, RenderOptions("salt"))
    given = {key: value for key, value in {"table": "t", **case.arguments}.items() if value is not None}
    prepared = prepare(AnalysisCall(case.name, given), setting)
    assert [each.blocks for each in prepared.private if each.name == "t"] == [blocks]
    prepared.run(EngineRun(ask, Keystream(), lambda _, __: None))
    assert asked


OUTSIDE = ("2024-02-29", "2024-04-01", None, "1999-01-01")


def _rows(found: Arrays) -> list[str]:
    columns = [np.ma.filled(np.ma.asarray(column).astype(object), None).tolist() for column in found.values()]
    return sorted(map(repr, zip(*columns, strict=True)))


def test_every_analysis_is_read_by_block_or_refused() -> None:
    assert {case.name for case in CASES} | NOT_BY_BLOCK == set(ANALYSES)
