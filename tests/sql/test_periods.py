"""One hour, day, week or month of a person as the privacy unit."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Column, Kind, Period, PrivacyUnit, Table
from hubbub.engines.base import Engine
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.expressions import Col
from hubbub.sql.plan import plan
from hubbub.sql.relations import Scan

MOMENT = datetime(2024, 2, 29, 23, 30)
#: Around the borders of an hour, a day, a week and a month.
TIMES = [
    MOMENT,
    *(MOMENT + timedelta(minutes=m) for m in (29, 30, 60, 60 * 24, 60 * 24 * 3, 60 * 24 * 4, 60 * 24 * 31)),
    None,
]
#: People whose names look like the end of a unit's text, and one without a name.
PEOPLE = ["a", "a@2024-02-29 00:00:00", "A", "", None]


def table(per: str, person: Kind = Kind.TEXT, time: Kind = Kind.TIMESTAMP) -> Table:
    period = Period("who", person, per, "moment", time)
    columns = (Column("who", person, hidden=True), Column("moment", time), Column("n", Kind.INTEGER))
    return Table("t", columns, PrivacyUnit(period.name, rows=3, entity="user", period=period))


def scan(declared: Table) -> Scan:
    return Scan(declared, (Col("c", Kind.INTEGER),), ("n",))


def start(per: str, time: datetime) -> tuple[int, ...]:
    """Number the period of a time, without the functions under test."""
    week = (time.date() - date(1, 1, 1)).days // 7  # 0001-01-01 was a Monday
    numbers = {"month": (time.year, time.month), "week": (week,), "day": (time.year, time.month, time.day)}
    return numbers.get(per, (*time.timetuple()[:4],))


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        opened.execute("CREATE TABLE t (who VARCHAR, moment TIMESTAMP, n BIGINT)")
        rows = [(who, time, n) for n, (who, time) in enumerate((w, t) for w in PEOPLE for t in TIMES)]
        insert_rows(opened, "t", rows)
        yield opened


def owners(connection: duckdb.DuckDBPyConnection, per: str) -> dict[str, set[int]]:
    found = defaultdict(set)
    for unit, n in connection.execute(render.relation(scan(table(per)))).fetchall():
        found[unit].add(int(n))
    return dict(found)


@pytest.mark.parametrize("per", ["hour", "day", "week", "month"])
def test_rows_share_an_owner_exactly_if_they_share_person_and_period(
    connection: duckdb.DuckDBPyConnection, per: str
) -> None:
    """A row without a person or a time has no owner."""
    expected = defaultdict(set)
    for n, (who, time) in enumerate((w, t) for w in PEOPLE for t in TIMES):
        if who is not None and time is not None:
            expected[who, start(per, time)].add(n)
    assert sorted(map(sorted, owners(connection, per).values())) == sorted(map(sorted, expected.values()))


def test_taking_a_period_away_takes_its_rows_away_and_changes_no_other(connection: duckdb.DuckDBPyConnection) -> None:
    whole = owners(connection, "day")
    for unit, rows in whole.items():
        connection.execute("BEGIN")
        connection.execute(f"DELETE FROM t WHERE n IN ({', '.join(map(str, rows))})")
        assert owners(connection, "day") == {other: kept for other, kept in whole.items() if other != unit}
        connection.execute("ROLLBACK")


def test_persons_beyond_doubles_and_times_beyond_calendars_keep_their_owner(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute("CREATE OR REPLACE TABLE t (who BIGINT, moment TIMESTAMP, n BIGINT)")
    times = ("infinity", "-infinity", "294246-01-01", "0044-03-15 (BC)")
    values = [f"({2**53 + place % 2}, '{time}', {place})" for place, time in enumerate(times * 2)]
    connection.execute(f"INSERT INTO t VALUES {', '.join(values)}")
    rows = connection.execute(render.relation(scan(table("day", Kind.INTEGER)))).fetchall()
    assert len(rows) == 8
    assert {unit.partition("@")[0] for unit, _ in rows} == {str(2**53), str(2**53 + 1)}


def test_tables_meet_only_with_periods_of_one_length() -> None:
    other = replace(table("day"), name="o")
    text = "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.n = t.n)"
    union = "SELECT count(*) FROM (SELECT n FROM t UNION ALL SELECT n FROM o)"
    assert bind(union, tables={"t": table("day"), "o": other}).aggregates
    person = Table("o", other.columns, PrivacyUnit("who", entity="user"))
    for apart in (replace(table("week"), name="o"), person):
        for query in (union, text):
            with pytest.raises(QueryError):
                bind(query, tables={"t": table("day"), "o": apart})


def test_a_person_cannot_be_named_unless_the_owner_lists_the_column() -> None:
    with pytest.raises(QueryError, match="HB506"):
        bind("SELECT count(DISTINCT who) FROM t", tables={"t": table("day")})


def test_the_derivation_says_what_a_unit_is() -> None:
    query = bind("SELECT count(*) FROM t", tables={"t": table("day")})
    lines = plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s").derivation
    assert any("each row belongs to one day of its who" in line for line in lines)


def test_owners_are_equal_on_every_engine(
    postgres_server: Server, spark_address: str, tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    """By the text of the owner, so that a portable hash keeps the same rows."""
    postgres_server.run("CREATE DATABASE periods")
    postgres.copied(connection, ["t"], postgres_server, "periods")
    shown = replace(table("day"), columns=tuple(replace(c, hidden=False) for c in table("day").columns))
    files = spark.copied(connection, ["t"], tmp_path)
    engines: list[tuple[Dialect, Engine]] = [
        (POSTGRES, postgres.engine({"t": shown}, postgres_server, "periods")),
        (SPARK, spark.engine({"t": shown}, files, spark_address)),
    ]
    try:
        for per in ("hour", "day", "week", "month"):
            mine = sorted(connection.execute(render.relation(scan(table(per)), DUCKDB)).fetchall())
            for dialect, engine in engines:
                text = render.relation(scan(table(per)), dialect)
                theirs = engine.run(text).through(lambda arrays: [column.tolist() for column in arrays.values()])
                assert sorted(zip(*theirs, strict=True)) == mine
    finally:
        for _, engine in engines:
            engine.close()
        postgres_server.run("DROP DATABASE periods WITH (FORCE)")
