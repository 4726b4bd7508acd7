"""Private SQL on tables of 1 M to 400 M rows with the default settings, beside plain DuckDB: time and memory.

Each size is a Parquet file with a tenth as many patients as rows, 50 declared regions and 1,000 wards that are not
declared. Every question runs in a process of its own, so that its peak of resident memory is its own, and rivals take
turns. The bare pass is the aggregation by patient and region that every answer about patients needs. Tuned is the same
question with 80 % of the machine's memory for the engine.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.large        1 M, 10 M and 100 M rows
    HUBBUB_SIZES=100000000,400000000                                 or other sizes; 400 M rows are 5 GB of Parquet
    HUBBUB_FOLDER=/data/tmp                                          where they may be written for the while
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from secrets import token_hex

import duckdb
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.core import machine

REGIONS = tuple(f"region {number:02}" for number in range(50))
THREE = "SELECT region, count(*), sum(cost), avg(cost) FROM {} GROUP BY region"

#: What is asked privately, of which table, and its rival: the plain question, or the bare pass.
QUESTIONS: Mapping[str, tuple[str, str, str]] = {
    "count, row": ("SELECT region, count(*) FROM {} GROUP BY region", "rows", "plain"),
    "count, sum, avg, row": (THREE, "rows", "plain"),
    "median, row": ("SELECT median(cost) FROM {}", "rows", "plain"),
    "count, sum, avg, unit": (THREE, "visits", "bare"),
    "patients, unit": ("SELECT region, count(DISTINCT patient) FROM {} GROUP BY region", "visits", "plain"),
    "sum by 1,000 discovered keys, unit": ("SELECT ward, sum(cost) FROM {} GROUP BY ward", "visits", "bare wards"),
}
BARE = (
    "SELECT count(*), sum(n), sum(s) FROM (SELECT patient, {0}, count(*) AS n, sum(cost) AS s FROM visits "
    "GROUP BY patient, {0})"
)
#: The most that we may take, times the rival.
TARGETS = {"count, row": 1.3, "count, sum, avg, unit": 1.6}

DECLARED = f"""
    source: visits.parquet
    columns:
      patient: {{}}
      ward: {{}}
      region: {{values: [{", ".join(REGIONS)}]}}
      cost: {{bounds: [0, 20000], step: 0.01}}
    budget: {{epsilon: 100000, delta: 0.1}}
"""
YAML = f"""version: 1
engine: {{seconds: 3600}}
datasets:
  visits:{DECLARED}    unit: {{column: patient, groups: 5, rows: 10}}
  rows:{DECLARED}    unit: row
analysts:
  ana: {{visits: {{epsilon: 100000, delta: 0.1}}, rows: {{epsilon: 100000, delta: 0.1}}}}
"""


def generate(folder: Path, rows: int) -> None:
    """A tenth as many patients as rows: most have a few rows, one in a hundred has many."""
    patients = rows // 10
    with duckdb.connect(":memory:", config={"preserve_insertion_order": "false"}) as made:
        made.execute(
            "COPY (SELECT CAST(CASE WHEN random() < 0.8 THEN floor(random() * ?) ELSE floor(random() * ?) END AS "
            "BIGINT) AS patient, CAST(floor(1000 * pow(random(), 1.5)) AS INTEGER) AS ward, "
            "'region ' || lpad(CAST(CAST(floor(50 * pow(random(), 1.5)) AS INTEGER) AS VARCHAR), 2, '0') AS region, "
            f"round(-2000 * ln(random() + 1e-9), 2) AS cost FROM range(?)) TO '{folder / 'visits.parquet'}'",
            [patients, patients // 100, rows],
        )


def _private(folder: str, question: str, more: str) -> tuple[float, float]:
    """Ask once with a ledger of its own; return the seconds and the largest resident memory in GB."""
    sql, table, _ = QUESTIONS[question]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place, "hubbub.yaml")
        settings = YAML.replace("visits.parquet", str(Path(folder, "visits.parquet")))
        path.write_text(settings.replace("seconds: 3600", f"seconds: 3600{more}"))
        with hubbub.open(path, analyst="ana") as session:
            session.query(f"SELECT count(*) FROM {table} WHERE cost < 1", epsilon=1)  # open files, start threads
            begun = time.perf_counter()
            session.query(sql.format(table), epsilon=1, key=token_hex())
            seconds = time.perf_counter() - begun
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _plain(folder: str, question: str, more: str) -> tuple[float, float]:  # noqa: ARG001 - as `_private`
    """Ask DuckDB, with its own default settings."""
    sql, _, rival = QUESTIONS[question]
    text = {"plain": sql.format("visits"), "bare": BARE.format("region"), "bare wards": BARE.format("ward")}[rival]
    spill = tempfile.TemporaryDirectory(dir=folder)
    with (
        spill,
        duckdb.connect(":memory:", config={"temp_directory": spill.name}) as connection,
    ):
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"CREATE VIEW visits AS FROM read_parquet('{Path(folder, 'visits.parquet')}')")
        connection.execute("SELECT count(*) FROM visits WHERE cost < 1").fetchnumpy()
        begun = time.perf_counter()
        connection.execute(text).fetchnumpy()
        seconds = time.perf_counter() - begun
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


Ask = Callable[[str, str, str], tuple[float, float]]


def measured(report: Report, folder: Path, rows: int, *, tuned: bool) -> dict[str, dict[str, float]]:
    """Ask every question of one size, in turns with its rival, and keep the least time and the largest memory."""
    ways: dict[str, tuple[Ask, str]] = {"private": (_private, ""), "DuckDB": (_plain, "")}
    if tuned:
        ways["tuned"] = (_private, f", memory: {machine.memory() * 4 // 5}, disk: 60000")
    results: dict[str, dict[str, float]] = {}
    for question in report.progress(QUESTIONS, f"{rows:,} rows"):
        found: dict[str, float] = {}
        for _ in range(report.scale(ci=1, full=3 if rows <= 10_000_000 else 2)):
            for name, (ask, more) in ways.items():
                with get_context("spawn").Pool(1) as fresh:
                    seconds, peak = fresh.apply(ask, (str(folder), question, more))
                found[f"{name} s"] = min(round(seconds, 3), found.get(f"{name} s", float("inf")))
                found[f"{name} GB"] = max(round(peak, 2), found.get(f"{name} GB", 0.0))
        report.say(f"{rows:,} rows, {question}: {found}")
        results[question] = found
    return results


def body(report: Report) -> None:
    given = os.environ.get("HUBBUB_SIZES", "")
    sizes = [1_000_000, 10_000_000, 100_000_000] if report.full else [100_000]
    sizes = [int(size) for size in given.split(",")] if given else sizes
    report.figure("load before", round(os.getloadavg()[0], 2))
    with tempfile.TemporaryDirectory(prefix="hubbub-large-", dir=os.environ.get("HUBBUB_FOLDER")) as name:
        for rows in sizes:
            generate(Path(name), rows)
            results = measured(report, Path(name), rows, tuned=rows == 100_000_000)
            for question, found in results.items():
                report.figure(f"{rows:,} rows: {question}", found)  # type: ignore[arg-type]
                ratio, label = round(found["private s"] / found["DuckDB s"], 3), f"{rows:,} rows: {question}, / DuckDB"
                if report.full and question in TARGETS and rows >= 10_000_000:
                    report.target(label, ratio, at_most=TARGETS[question])
                else:
                    report.figure(label, ratio)
                if "tuned s" in found:
                    tuned = round(found["private s"] / found["tuned s"], 3)
                    report.target(f"{rows:,} rows: {question}, default / tuned memory", tuned, at_most=1.1)
    report.figure("load after", round(os.getloadavg()[0], 2))


if __name__ == "__main__":
    run(body)
