"""How fast the private SQL path is, beside plain DuckDB over the same Parquet file in the same run.

Times are processor time of both threads, the least of several rounds in which the rivals take turns, so that a busy
machine matters little; only ratios have targets. What is timed of ours is everything after the charge: the engine's
statements, noise, answer.
"""

import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import duckdb
from tests.campaigns.frame import Report, run

from hubbub.core.schema import Bounds, Column, Kind, Table, Unit
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.finish import finish
from hubbub.sql.plan import Plan, plan

REGIONS = tuple(f"region {number:02}" for number in range(50))
GROUPS, ROWS = 5, 10

#: The same bounding as a textbook writes it: rank every row, then every group.
WINDOWS = f"""
WITH ranked AS (
  SELECT patient, region, cost,
    row_number() OVER (PARTITION BY patient, region ORDER BY hash('salt', patient, region, cost)) AS place
  FROM (SELECT patient, region, greatest(least(cost, 20000), 0) AS cost FROM visits WHERE region IN {REGIONS})
), cells AS (
  SELECT patient, region, count(*) AS n, sum(cost) AS s FROM ranked WHERE place <= {ROWS} GROUP BY patient, region
), kept AS (
  SELECT *, row_number() OVER (PARTITION BY patient ORDER BY hash('salt', patient, region)) AS place FROM cells
)
SELECT region, sum(n), sum(s), sum(s) / sum(n) FROM kept WHERE place <= {GROUPS} GROUP BY region
"""


def visits(unit: Unit) -> Table:
    return Table(
        "visits",
        (
            Column("patient", Kind.INTEGER),
            Column("region", Kind.TEXT, values=REGIONS),
            Column("cost", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(20000)), step=Fraction(1, 100)),
        ),
        unit,
    )


def generate(connection: duckdb.DuckDBPyConnection, path: Path, rows: int) -> None:
    """A tenth as many units as rows: most have a few rows, one in a hundred has many."""
    units = rows // 10
    connection.execute(
        "COPY (SELECT CAST(CASE WHEN random() < 0.8 THEN floor(random() * ?) ELSE floor(random() * ?) END AS BIGINT) "
        "AS patient, "
        "'region ' || lpad(CAST(CAST(floor(50 * pow(random(), 1.5)) AS INTEGER) AS VARCHAR), 2, '0') AS region, "
        "round(-2000 * ln(random() + 1e-9), 2) AS cost FROM range(?)) TO '" + str(path) + "'",
        [units, units // 100, rows],
    )


def private(connection: duckdb.DuckDBPyConnection, sql: str, unit: Unit) -> Callable[[], object]:
    made = plan(bind(sql, tables={"visits": visits(unit)}), epsilon=Fraction(1), delta=Fraction(0), salt="salt")
    return lambda: answered(connection, made)


def answered(connection: duckdb.DuckDBPyConnection, made: Plan) -> object:
    tables = {each.name: connection.execute(each.sql).fetchnumpy() for each in made.statements}
    return finish(made, tables, system())


def plain(connection: duckdb.DuckDBPyConnection, sql: str) -> Callable[[], object]:
    return lambda: connection.execute(sql).fetchnumpy()


def turns(rivals: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Let rivals take turns, and give the least time of each."""
    best = dict.fromkeys(rivals, float("inf"))
    for _ in range(rounds):
        for name, rival in rivals.items():
            start = time.process_time()
            rival()
            best[name] = min(best[name], time.process_time() - start)
    return best


def body(report: Report) -> None:
    rows = report.scale(ci=1_000_000, full=10_000_000)
    rounds = report.scale(ci=15, full=3)
    report.figure("rows", rows)
    with tempfile.TemporaryDirectory() as folder:
        rival = duckdb.connect(":memory:", config={"threads": 2, "temp_directory": folder})
        # ours has to do with what the target allows; the windows over all rows need more
        connection = duckdb.connect(":memory:", config={"threads": 2, "temp_directory": folder})
        connection.execute("SET memory_limit = '1500MB'")
        path = Path(folder) / "visits.parquet"
        generate(rival, path, rows)
        for each in (connection, rival):
            each.execute(f"CREATE VIEW visits AS FROM read_parquet('{path}')")
        row, unit = Unit(None), Unit("patient", groups=GROUPS, rows=ROWS)
        count = "SELECT region, count(*) FROM visits GROUP BY region"
        three = "SELECT region, count(*), sum(cost), avg(cost) FROM visits GROUP BY region"
        median = "SELECT median(cost) FROM visits"
        matches = (
            ("count by 50 groups, row", private(connection, count, row), plain(rival, count), 1.5),
            ("count, sum, avg by 50 groups, unit", private(connection, three, unit), plain(rival, WINDOWS), 0.6),
            ("median, row", private(connection, median, row), plain(rival, median), 1.0),
        )
        for name, ours, theirs, most in report.progress(matches, "rivals"):
            best = turns({"ours": ours, "theirs": theirs}, rounds)
            report.figure(f"{name}: seconds", round(best["ours"], 4))
            report.figure(f"{name}: plain DuckDB, seconds", round(best["theirs"], 4))
            report.target(f"{name}: ratio", best["ours"] / best["theirs"], at_most=most)
        before = turns({"plain": plain(rival, three), "ours": private(connection, three, row)}, rounds)
        report.figure("count, sum, avg by 50 groups, row: ratio", before["ours"] / before["plain"])
        connection.close()
        rival.close()
    report.figure("memory limit of ours, GB", 1.5)
    if find_spec("polars") is None:
        report.figure("OpenDP's Polars path", "polars is not installed: not compared")


if __name__ == "__main__":
    run(body)
