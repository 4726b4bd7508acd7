"""How long a small question takes, beside the plain count and two bare durable commits in the same run.

A count of 1,000 rows is timed from its text to its recorded answer, with caps that have δ and caps without, and so are
estimates. A plain count reads the same file through the same view in a locked DuckDB; a bare commit inserts one row
with the fields of a ledger's entry and waits for the disk. All of them take turns. Three kinds of questions are timed:

    constants  the shape was seen before, the constant is new
    prices     the constant and ε are new
    texts      the text was seen before, and a new key asks for new noise

Targets are for `constants`; they are judged at full scale alone. Where other processes use the machine, waiting for
the disk and for a turn hides what is ours, so ratios of processor time stand beside those of wall time. The start of
the program is timed as well.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.small

A new question is looked up among earlier releases first (decision 0072). What that takes with 180 and with 1,000
releases is timed as well: the same questions in turns with `fresh=True`, which looks nothing up.
"""

import itertools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from statistics import median

import duckdb
from benchmarks.ledger import raw_sqlite
from tests.campaigns.frame import Report, run

import hubbub
from hubbub import demo
from hubbub.accounting.store import EntryFilter
from hubbub.config import load
from hubbub.curator.session import Session
from hubbub.engines.duckdb.database import open_locked

CAPS = {"without δ": "{epsilon: 100}", "with δ": "{epsilon: 100, delta: 1e-6}"}
COUNT = "SELECT count(*) FROM rows WHERE cost < {}"
#: New questions, each with an end of its own.
MIXED = (
    COUNT,
    "SELECT region, count(*) FROM rows WHERE cost < {} GROUP BY region",
    "SELECT avg(cost) FROM rows WHERE cost BETWEEN 5 AND 10 + {}",
    "SELECT sum(cost), count(*) FROM rows WHERE region = 'North' AND cost > {}",
)
YAML = """version: 1
datasets:
  rows:
    source: rows.parquet
    unit: row
    columns:
      region: {{values: [North, South, East, West]}}
      cost: {{bounds: [0, 20000], step: 0.01}}
    budget: {cap}
analysts:
  ana: {{rows: {cap}}}
"""
Action = Callable[[int], object]


def generate(folder: Path, cap: str) -> None:
    """Write 1,000 rows and their declaration."""
    folder.mkdir()
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            "COPY (SELECT ['North', 'South', 'East', 'West'][1 + n % 4] AS region, round(7.31 * n, 2) AS cost "
            f"FROM range(1000) AS r(n)) TO '{folder / 'rows.parquet'}'"
        )
    (folder / "hubbub.yaml").write_text(YAML.format(cap=cap))


@contextmanager
def plain(folder: Path) -> Iterator[Action]:
    """Count through the same view, without anything of ours."""
    config = load(folder / "hubbub.yaml")
    views = tuple(dataset.view for dataset in config.datasets.values())
    with open_locked(views, config.limits, folder) as connection:
        yield lambda number: connection.execute(COUNT.format(number)).fetchnumpy()


def ask(session: Session, number: int, *, epsilon: str = "0.01", key: str | None = None) -> None:
    """Ask for new noise."""
    if session.query(COUNT.format(number), epsilon=epsilon, key=key).replayed:
        raise AssertionError("this was answered before")


def measure(actions: dict[str, Action], rounds: int) -> dict[str, tuple[float, float]]:
    """Let actions take turns; give the median wall and processor times of each in milliseconds."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in actions}
    for number in range(rounds):
        for name, action in actions.items():
            begun, used = time.perf_counter(), time.process_time()
            action(number)
            times[name].append((time.perf_counter() - begun, time.process_time() - used))
    return {
        name: (1000 * median(wall for wall, _ in found), 1000 * median(used for _, used in found))
        for name, found in times.items()
    }


def small(report: Report, name: str, folder: Path, rounds: int) -> None:
    """Time questions under one kind of caps."""
    with ExitStack() as stack:
        session = stack.enter_context(hubbub.open(folder / "hubbub.yaml"))
        count = stack.enter_context(plain(folder))
        ask(session, 20000)
        with session._curator.ledger.snapshot() as snapshot:  # noqa: SLF001 - a row as wide as ours
            row = next(iter(snapshot.entries(EntryFilter(kind="charge"))))
        commit = stack.enter_context(raw_sqlite(folder / "raw.sqlite", row))
        found = measure(
            {
                "constants": lambda number: ask(session, number),
                "prices": lambda number: ask(session, number, epsilon=f"0.01{number + 1:05}"),
                "texts": lambda _: ask(session, 20000, key=token_hex()),
                "estimate": lambda number: session.estimate(COUNT.format(number), epsilon="0.02"),
                "plain": count,
                "commit": lambda _: commit(),
            },
            rounds,
        )
    for what, (wall, used) in found.items():
        report.figure(f"{name}, {what}: median ms", {"wall": round(wall, 3), "processor": round(used, 3)})
    wall, used = (found["constants"][i] / (found["plain"][i] + 2 * found["commit"][i]) for i in range(2))
    judge(report, f"{name}: count of 1,000 rows, median ms", found["constants"][0], at_most=5)
    judge(report, f"{name}: count / (plain count and two commits)", wall, at_most=4)
    report.figure(f"{name}: count / (plain count and two commits), processor", round(used, 3))
    judge(report, f"{name}: estimate, median ms", found["estimate"][0], at_most=2)


def earlier(report: Report, folder: Path, releases: int, rounds: int) -> None:
    """Time new questions beside the same without a search among earlier releases."""
    with hubbub.open(folder / "hubbub.yaml") as session:
        asked = itertools.count()
        for _ in range(releases):
            session.query(MIXED[next(asked) % len(MIXED)].format(next(asked)), epsilon="0.01", fresh=True)

        def query(*, fresh: bool) -> Action:
            return lambda n: session.query(MIXED[n % len(MIXED)].format(next(asked)), epsilon="0.01", fresh=fresh)

        query(fresh=False)(0)  # reads the releases once
        found = measure({"looked up": query(fresh=False), "fresh": query(fresh=True)}, rounds)
    for what, (wall, used) in found.items():
        name = f"{releases} releases, {what}: median ms"
        report.figure(name, {"wall": round(wall, 3), "processor": round(used, 3)})
    more = found["looked up"][1] - found["fresh"][1]
    judge(report, f"{releases} releases: processor ms more for a new question", more, at_most=3)


def judge(report: Report, name: str, value: float, *, at_most: float) -> None:
    """Hold a figure to its target at full scale."""
    if report.full:
        report.target(name, round(value, 3), at_most=at_most)
    else:
        report.figure(name, round(value, 3))


def start(report: Report, folder: Path, rounds: int) -> None:
    """Time the start of the program, each time in a new process; byte code is compiled before, as installers do."""
    for file in demo.FILES:
        shutil.copy(demo.HERE / file, folder)
    asked = (f"SELECT count(*) FROM health WHERE visits > {number}" for number in itertools.count())
    program = [sys.executable, "-m", "hubbub"]
    commands: dict[str, tuple[Callable[[], list[str]], float]] = {
        "hubbub --help": (lambda: [*program, "--help"], 0.15),
        "hubbub query on the demo": (lambda: [*program, "query", next(asked), "--epsilon", "0.001"], 1.0),
        "import of the client": (lambda: [sys.executable, "-c", "import hubbub.client.session"], 0.3),
        "bare Python": (lambda: [sys.executable, "-c", ""], 1.0),
    }
    for name, (command, most) in commands.items():
        spent(command(), folder)
        times = [spent(command(), folder) for _ in range(rounds)]
        wall, used = (median(each) for each in zip(*times, strict=True))
        report.figure(f"{name}: processor s", round(used, 3))
        judge(report, f"{name}: median s", wall, at_most=most)


def spent(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command and give its seconds, by the wall clock and of processor."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begun, used


def body(report: Report) -> None:
    rounds = report.scale(ci=100, full=500)
    report.figure("load before", round(os.getloadavg()[0], 2))
    with tempfile.TemporaryDirectory() as name:
        for place, (what, cap) in enumerate(CAPS.items()):
            folder = Path(name) / str(place)
            generate(folder, cap)
            small(report, what, folder, rounds)
        for releases in (180, 1000) if report.full else (180,):
            folder = Path(name) / f"after {releases}"
            generate(folder, "{epsilon: 1000}")
            earlier(report, folder, releases, report.scale(ci=24, full=100))
        start(report, Path(name), report.scale(ci=3, full=15))
    report.figure("load after", round(os.getloadavg()[0], 2))


if __name__ == "__main__":
    run(body)
