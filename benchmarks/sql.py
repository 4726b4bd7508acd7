"""How fast private SQL is, beside plain DuckDB and OpenDP's Polars path, over one Parquet file in one run.

Ours is timed whole, as an analyst sees it: parse, bind, plan, durable charge, engine, noise, record. Rivals take turns,
and the least of several rounds counts, in wall time and in processor time of all threads. Targets are ratios of wall
time, which is what people wait for; a busy machine stretches it, and `load` says how busy it was.
Ratios have targets at full scale alone: a million rows take DuckDB no longer than a durable charge takes us.

OpenDP gets what we get: a lazy scan of the same file, the same ε, bounds and declared keys, the same limits to what
one unit contributes. With the Polars it is installed with, its default choice of a unit's groups fails (two fields of
one name), so the first groups and rows are kept, which is also its quickest way. It charges nothing durably.
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from secrets import token_hex
from statistics import median

import duckdb
import opendp.prelude as dp
import polars as pl
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.curator.session import Session

REGIONS = tuple(f"region {number:02}" for number in range(50))
GROUPS, ROWS = 5, 10
MOST = 20_000
CANDIDATES = 4096

COUNT = "SELECT region, count(*) FROM {} GROUP BY region"
THREE = "SELECT region, count(*), sum(cost), avg(cost) FROM {} GROUP BY region"
MEDIAN = "SELECT median(cost) FROM {}"

#: The same bounding as a textbook writes it: rank every row, then every group.
WINDOWS = f"""
WITH ranked AS (
  SELECT patient, region, cost,
    row_number() OVER (PARTITION BY patient, region ORDER BY hash('salt', patient, region, cost)) AS place
  FROM (SELECT patient, region, greatest(least(cost, {MOST}), 0) AS cost FROM visits WHERE region IN {REGIONS})
), cells AS (
  SELECT patient, region, count(*) AS n, sum(cost) AS s FROM ranked WHERE place <= {ROWS} GROUP BY patient, region
), kept AS (
  SELECT *, row_number() OVER (PARTITION BY patient ORDER BY hash('salt', patient, region)) AS place FROM cells
)
SELECT region, sum(n), sum(s), sum(s) / sum(n) FROM kept WHERE place <= {GROUPS} GROUP BY region
"""

DECLARED = f"""
    source: visits.parquet
    columns:
      patient: {{}}
      region: {{values: [{", ".join(REGIONS)}]}}
      cost: {{bounds: [0, {MOST}], step: 0.01}}
    budget: {{epsilon: 100000}}
"""
YAML = f"""version: 1
datasets:
  visits:{DECLARED}    unit: {{column: patient, groups: {GROUPS}, rows: {ROWS}}}
  rows:{DECLARED}    unit: row
analysts:
  ana: {{visits: {{epsilon: 100000}}, rows: {{epsilon: 100000}}}}
"""

Rival = Callable[[], object]


def generate(folder: Path, rows: int) -> None:
    """A tenth as many units as rows: most have a few rows, one in a hundred has many."""
    units = rows // 10
    duckdb.connect(":memory:").execute(
        "COPY (SELECT CAST(CASE WHEN random() < 0.8 THEN floor(random() * ?) ELSE floor(random() * ?) END AS BIGINT) "
        "AS patient, "
        "'region ' || lpad(CAST(CAST(floor(50 * pow(random(), 1.5)) AS INTEGER) AS VARCHAR), 2, '0') AS region, "
        f"round(-2000 * ln(random() + 1e-9), 2) AS cost FROM range(?)) TO '{folder / 'visits.parquet'}'",
        [units, units // 100, rows],
    )
    (folder / "hubbub.yaml").write_text(YAML)


def private(session: Session, sql: str) -> Rival:
    """Ask anew each time: a new key is a new charge and new noise."""

    def ask() -> object:
        release = session.query(sql, epsilon=1, key=token_hex())
        if release.replayed:
            raise AssertionError("this was answered before")
        return release

    return ask


def plain(connection: duckdb.DuckDBPyConnection, sql: str) -> Rival:
    return lambda: connection.execute(sql.format("visits")).fetchnumpy()


class OpenDP:
    """The same questions to OpenDP: each one builds its context, so that each pays ε = 1 of a budget of its own."""

    def __init__(self, path: Path, rows: int) -> None:
        dp.enable_features("contrib")
        self._path, self._rows = path, rows
        self._keys = pl.LazyFrame({"region": REGIONS})

    def _context(self, identifier: str | None = None) -> dp.Context:
        return dp.Context.compositor(
            data=pl.scan_parquet(self._path),
            privacy_unit=dp.unit_of(contributions=1, identifier=identifier and pl.col(identifier)),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=(), max_length=self._rows, max_groups=len(REGIONS))],
        )

    def count(self) -> object:
        """Count rows by region."""
        asked = self._context().query().group_by("region").agg(dp.len(signed=True)).with_keys(self._keys)
        return asked.release().collect()

    def three(self) -> object:
        """Count, add up and average by region, within the limits of one patient."""
        cost, bounds = pl.col("cost").fill_nan(0.0).fill_null(0.0), (0.0, float(MOST))
        asked = (
            self._context("patient")
            .query()
            .truncate_per_group(ROWS, by=["region"], keep="first")
            # it keeps one group less than it is told
            .truncate_num_groups(GROUPS + 1, by=["region"], keep="first")
            .group_by("region")
            .agg(dp.len(signed=True), _private(cost).sum(bounds).alias("sum"), _private(cost).mean(bounds).alias("avg"))
            .with_keys(self._keys)
        )
        return asked.release().collect()

    def median(self) -> object:
        """Choose a median among as many candidates as we do."""
        candidates = [MOST * place / CANDIDATES for place in range(CANDIDATES + 1)]
        asked = self._context().query().select(_private(pl.col("cost").fill_null(0.0)).median(candidates))
        return asked.release().collect()


def _private(expr: pl.Expr) -> dp.polars.DPExpr:
    """Give OpenDP's extension of an expression, of which Polars' types do not know."""
    return expr.dp  # type: ignore[attr-defined]


@dataclass
class Time:
    """The least processor time and the least wall time so far, in seconds."""

    processor: float = float("inf")
    wall: float = float("inf")

    def measure(self, rival: Rival) -> None:
        """Time one round."""
        processor, wall = time.process_time(), time.perf_counter()
        rival()
        self.processor = min(self.processor, time.process_time() - processor)
        self.wall = min(self.wall, time.perf_counter() - wall)


def turns(report: Report, name: str, rivals: Mapping[str, tuple[Rival, int]]) -> dict[str, Time]:
    """Let rivals take turns, each for so many rounds, and give the least times of each."""
    best = {each: Time() for each in rivals}
    for number in range(max(rounds for _, rounds in rivals.values())):
        for each, (rival, rounds) in rivals.items():
            if number < rounds:
                best[each].measure(rival)
    for each, found in best.items():
        report.figure(f"{name}: {each}", {"processor s": round(found.processor, 4), "wall s": round(found.wall, 4)})
    return best


def compare(
    report: Report,
    name: str,
    best: Mapping[str, Time],
    rival: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> None:
    """Hold us against a rival: at most so many times its time, or its at least so many times ours."""
    above, below = (best["hubbub"], best[rival]) if at_most is not None else (best[rival], best["hubbub"])
    ratio = f"{name}: {' / '.join(('hubbub', rival) if at_most is not None else (rival, 'hubbub'))}"
    if report.full:
        report.target(ratio, round(above.wall / below.wall, 3), at_most=at_most, at_least=at_least)
    else:
        report.figure(ratio, round(above.wall / below.wall, 3))
    report.figure(f"{ratio}, processor", round(above.processor / below.processor, 3))


def resident(folder: str, sql: str) -> float:
    """Ask one question in a process that does nothing else, and give its largest resident memory in GB."""
    with hubbub.open(Path(folder) / "hubbub.yaml") as session:
        private(session, sql)()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def fixed(report: Report, folder: Path) -> None:
    """Time a count of 1,000 rows from the text to the recorded answer, each question and each price a new one."""
    generate(folder, 1000)
    wall, processor = [], []
    with hubbub.open(folder / "hubbub.yaml") as session:
        for number in range(report.scale(ci=200, full=1000)):
            begun, used = time.perf_counter(), time.process_time()
            session.query(f"SELECT count(*) FROM rows WHERE cost < {number}", epsilon=f"1.{number:04}", fresh=True)
            wall.append(1000 * (time.perf_counter() - begun))
            processor.append(1000 * (time.process_time() - used))
    figures = {"best": min(wall), "median processor": median(processor), "best processor": min(processor)}
    report.figure("count of 1,000 rows, ms", {name: round(value, 2) for name, value in figures.items()})
    report.target("count of 1,000 rows: median ms, charge and record durable", median(wall), at_most=10)


def body(report: Report) -> None:
    rows = report.scale(ci=1_000_000, full=10_000_000)
    rounds = report.scale(ci=2, full=3)
    report.figure("rows", rows)
    report.figure("load before", round(os.getloadavg()[0], 2))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "small").mkdir()
        fixed(report, folder / "small")
        report.say(f"making {rows:,} rows of {rows // 10:,} units")
        generate(folder, rows)
        spawn = get_context("spawn")
        asked = {"count": COUNT.format("rows"), "three": THREE.format("visits"), "median": MEDIAN.format("rows")}
        for what, sql in report.progress(asked.items(), "memory"):
            with spawn.Pool(1) as fresh:
                peak = fresh.apply(resident, (name, sql))
            report.target(f"{what}: resident GB at its peak", round(peak, 3), at_most=1.5)
        times(report, folder, rows, rounds)
    report.figure("load after", round(os.getloadavg()[0], 2))


def times(report: Report, folder: Path, rows: int, rounds: int) -> None:
    opendp = OpenDP(folder / "visits.parquet", rows)
    connection = duckdb.connect(":memory:", config={"temp_directory": str(folder / "spill")})
    connection.execute(f"CREATE VIEW visits AS FROM read_parquet('{folder / 'visits.parquet'}')")
    with hubbub.open(folder / "hubbub.yaml") as session, connection:
        what = "count by 50 groups, row"
        best = turns(
            report,
            what,
            {
                "hubbub": (private(session, COUNT.format("rows")), 3 * rounds),
                "DuckDB": (plain(connection, COUNT), 3 * rounds),
                "OpenDP": (opendp.count, rounds),
            },
        )
        compare(report, what, best, "DuckDB", at_most=1.5)
        compare(report, what, best, "OpenDP", at_least=10)
        what = "count, sum, avg by 50 groups, unit"
        best = turns(
            report,
            what,
            {
                "hubbub": (private(session, THREE.format("visits")), rounds),
                "windows": (plain(connection, WINDOWS), rounds),
                "OpenDP": (opendp.three, 1),
            },
        )
        compare(report, what, best, "windows", at_most=0.6)
        compare(report, what, best, "OpenDP", at_least=6)
        what = "median, row"
        best = turns(
            report,
            what,
            {
                "hubbub": (private(session, MEDIAN.format("rows")), rounds),
                "DuckDB": (plain(connection, MEDIAN), rounds),
                "OpenDP": (opendp.median, rounds),
            },
        )
        compare(report, what, best, "DuckDB", at_most=1)
        what = "count, sum, avg by 50 groups, row"
        turns(
            report,
            what,
            {
                "hubbub": (private(session, THREE.format("rows")), rounds),
                "DuckDB": (plain(connection, THREE), rounds),
            },
        )


if __name__ == "__main__":
    run(body)
