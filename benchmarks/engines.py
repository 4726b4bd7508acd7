"""Private questions on PostgreSQL and on Spark beside the same questions asked plainly there; Tumult; and a cost curve.

Ours is timed whole, as an analyst sees it: parse, bind, plan, fingerprint, durable charge, engine, noise, record. Both
sides are asked in turns, for twenty seconds until they are warm (a JVM takes a dozen rounds), and then the least of
three rounds, or of as many as twenty seconds hold, counts. The plain question is the same text, in a session with the
same settings. Where the unit is a patient, a private answer must look at every pair of patient and region; the plain
question that does so too is the count of different patients by region, and that is the one with a target. What a
bounded count and sum cost beside plain ones, which need no patients at all, is told without one.

Tumult Analytics cannot use the same Spark (it wants 3.5): it runs in its own environment (`make peers`), over the same
file, with as many threads and as much memory, within the same limits, and is timed once it is warm.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.engines            all of it
    HUBBUB_PARTS=postgres,surplus,spark,tumult,cluster,duckdb_scale,spark_scale    or some of it
    HUBBUB_FOLDER=/data/tmp                                                where 15 GB may be written for the while
    HUBBUB_PLOT=docs/scale.svg                                             where the curve is drawn
"""

import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from secrets import token_hex

import duckdb
from tests.campaigns.frame import Report, run
from tests.fixtures import postgres, spark_cluster
from tests.fixtures.postgres_server import Server

import hubbub
from hubbub.curator.session import Session
from hubbub.engines.base import EngineLimits
from hubbub.engines.postgres.catalog import connect, transaction
from hubbub.engines.spark import catalog as spark_session
from hubbub.engines.spark import local_server as spark_local

REGIONS = tuple(f"region {number:02}" for number in range(50))
MEMORY = 6000
GROUPS, ROWS = 5, 10
MASTER = f"local[{os.cpu_count() or 1}]"
PARTS = ("postgres", "surplus", "spark", "tumult", "cluster", "duckdb_scale", "spark_scale")
TUMULT = Path(".peers/tumult/bin/python")

BY_ROW = "SELECT region, count(*), sum(cost), avg(cost) FROM {} GROUP BY region"
BY_UNIT = "SELECT region, count(DISTINCT patient) FROM {} GROUP BY region"
BOUNDED = "SELECT region, count(*) FROM {} GROUP BY region"

#: The same bounding as a textbook writes it for PostgreSQL: rank every row, then every group.
WINDOWS = f"""
WITH ranked AS (
  SELECT patient, region, cost, row_number() OVER (PARTITION BY patient, region
    ORDER BY hashint8extended(patient, hashtextextended(region, hashfloat8extended(cost, 7)))) AS place
  FROM (SELECT patient, region, greatest(least(cost, 20000), 0) AS cost FROM public.visits) AS v
), cells AS (
  SELECT patient, region, count(*) AS n, sum(cost) AS s FROM ranked WHERE place <= {ROWS} GROUP BY patient, region
), kept AS (
  SELECT *, row_number() OVER (PARTITION BY patient ORDER BY hashint8extended(patient, hashtextextended(region, 7)))
    AS place FROM cells
)
SELECT region, sum(n), sum(s), sum(s) / sum(n) FROM kept WHERE place <= {GROUPS} GROUP BY region
"""

_DECLARED = f"""
    source: "{{source}}"
    columns:
      patient: {{{{}}}}
      region: {{{{values: [{", ".join(REGIONS)}]}}}}
      cost: {{{{bounds: [0, 20000], step: 0.01}}}}
    budget: {{{{epsilon: 100000}}}}
"""
YAML = f"""version: 1
engine: {{{{memory: {MEMORY}, disk: 60000, seconds: 3600}}}}
datasets:
  visits:{_DECLARED}    unit: {{{{column: patient, groups: {GROUPS}, rows: {ROWS}}}}}
  rows:{_DECLARED}    unit: row
analysts:
  ana: {{{{visits: {{{{epsilon: 100000}}}}, rows: {{{{epsilon: 100000}}}}}}}}
"""

Ask = Callable[[], object]


def generate(path: Path, rows: int, patients: int = 0) -> None:
    """A tenth as many patients as rows, or as given: most have a few rows, one in a hundred has many."""
    patients = patients or rows // 10
    with duckdb.connect(":memory:", config={"memory_limit": "2GB", "preserve_insertion_order": "false"}) as made:
        made.execute(
            "COPY (SELECT CAST(floor(random() * CASE WHEN random() < 0.8 THEN ? ELSE ? END) AS BIGINT) AS patient,"
            " 'region ' || lpad(CAST(CAST(floor(50 * pow(random(), 1.5)) AS INTEGER) AS VARCHAR), 2, '0')"
            f" AS region, round(-2000 * ln(random() + 1e-9), 2) AS cost FROM range(?)) TO '{path}'",
            [patients, patients // 100, rows],
        )


@contextmanager
def session(folder: Path, source: str, more: str = "") -> Iterator[Session]:
    """Open hubbub over a source, with a ledger of its own and `more` settings of the engine."""
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / "hubbub.yaml").write_text(YAML.format(source=source).replace("engine: {", f"engine: {{{more}"))
    with hubbub.open(place / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def private(asked: Session, sql: str) -> Ask:
    """Ask anew each time: a new key is a new charge and new noise."""
    return lambda: asked.query(sql, epsilon=1, key=token_hex())


def least(*asks: Ask, rounds: int, seconds: float = 0) -> tuple[float, ...]:
    """Ask in turns, so many rounds, and more until so much time has passed; give the least seconds of each."""
    best, first = [float("inf")] * len(asks), time.perf_counter()
    while rounds > 0 or time.perf_counter() - first < seconds:
        for place, ask in enumerate(asks):
            begun = time.perf_counter()
            ask()
            best[place] = min(best[place], time.perf_counter() - begun)
        rounds -= 1
    return tuple(best)


def compared(report: Report, name: str, asked: Session, plain: Callable[[str], Ask]) -> None:
    """Time each question privately and plainly, in turns."""
    targets: Mapping[str, tuple[str, str, float | None]] = {
        "row: count, sum, avg by 50": (BY_ROW, "rows", 1.6),
        "unit: count of patients by 50": (BY_UNIT, "visits", 4.0),
        "unit: bounded count by 50": (BOUNDED, "visits", None),
        "unit: bounded count, sum, avg by 50": (BY_ROW, "visits", None),
    }
    rounds, seconds = report.scale(ci=1, full=3), report.scale(ci=0, full=20)
    for what, (sql, table, most) in report.progress(targets.items(), name):
        ours, theirs = private(asked, sql.format(table)), plain(sql)
        least(ours, theirs, rounds=1, seconds=seconds)  # warm
        mine, other = least(ours, theirs, rounds=rounds, seconds=seconds)
        report.figure(f"{name}: {what}, s", {"private": round(mine, 3), "plain": round(other, 3)})
        if most is not None and report.full:
            report.target(f"{name}: {what}, private / plain", round(mine / other, 3), at_most=most)
        else:
            report.figure(f"{name}: {what}, private / plain", round(mine / other, 3))


def on_postgres(report: Report, folder: Path, path: Path) -> None:
    """The same rows in a PostgreSQL on disk, both ways of asking in sessions with the same settings."""
    settings = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "1GB", "max_wal_size": "8GB", "jit": "off"}
    with Server(on_disk=True, **settings) as server:
        server.run("CREATE DATABASE clinic")
        with duckdb.connect() as made:
            made.execute(f"CREATE VIEW visits AS FROM '{path}'")
            postgres.copied(made, ["visits"], server, "clinic")
        server.run("VACUUM ANALYZE visits", "clinic")
        source = postgres.address(server, "clinic", "public.visits")
        with (
            connect(server.dsn("clinic")) as beside,
            session(folder, source) as asked,
        ):
            compared(
                report,
                "PostgreSQL",
                asked,
                lambda sql: lambda: beside.execute(sql.format("public.visits").encode()).fetchall(),
            )


def surplus(report: Report, folder: Path) -> None:
    """Patients above their bounds on PostgreSQL, there and copied, beside plain SQL and bounding with windows."""
    rows, patients = report.scale(ci=50_000, full=2_000_000), report.scale(ci=1250, full=50_000)
    path = folder / "surplus.parquet"
    generate(path, rows, patients)
    settings = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "1GB", "max_wal_size": "8GB", "jit": "off"}
    with Server(on_disk=True, **settings) as server:
        server.run("CREATE DATABASE clinic")
        with duckdb.connect() as made:
            made.execute(f"CREATE VIEW visits AS FROM '{path}'")
            postgres.copied(made, ["visits"], server, "clinic")
        server.run("VACUUM ANALYZE visits", "clinic")
        source = postgres.address(server, "clinic", "public.visits")
        with (
            connect(server.dsn("clinic")) as beside,
            transaction(beside, EngineLimits(memory=MEMORY)),
            session(folder, source) as there,
            session(folder, source, "copy: true, ") as copied,
        ):
            (first,) = least(private(copied, BY_ROW.format("visits")), rounds=1)
            names = ("plain", "windows", "on the server", "copied")
            asks = (
                lambda: beside.execute(BY_ROW.format("public.visits").encode()).fetchall(),
                lambda: beside.execute(WINDOWS.encode()).fetchall(),
                private(there, BY_ROW.format("visits")),
                private(copied, BY_ROW.format("visits")),
            )
            times = dict(zip(names, least(*asks, rounds=report.scale(ci=1, full=4)), strict=True))
    path.unlink()
    times["copied, the first time"] = first
    report.figure("surplus: count, sum, avg by 50, s", {name: round(value, 3) for name, value in times.items()})
    for name, rival, most in (
        ("copied", "plain", 10),
        ("copied", "windows", 3),
        ("on the server", "windows", 3),
        ("on the server", "plain", None),
        ("copied, the first time", "plain", None),
    ):
        ratio = round(times[name] / times[rival], 3)
        if most is not None and report.full:
            report.target(f"surplus: {name} / {rival}", ratio, at_most=most)
        else:
            report.figure(f"surplus: {name} / {rival}", ratio)


def on_spark(report: Report, folder: Path, path: Path) -> None:
    """The same file in a Spark on this machine; plain questions go to a second session of it."""
    with session(folder, f"spark:{MASTER}/{path}") as asked:
        beside = spark_session.connect(MASTER, EngineLimits(memory=MEMORY))
        try:
            compared(report, "Spark", asked, lambda sql: lambda: beside.sql(sql.format(f"parquet.`{path}`")).toArrow())
            if "tumult" in report.parts(*PARTS):
                beside_tumult(report, asked, path)
        finally:
            beside.stop()
    spark_local.stop()


def beside_tumult(report: Report, asked: Session, path: Path) -> None:
    """Count visits by region within the limits of one patient, beside Tumult, which does so by itself."""
    if not TUMULT.exists():
        report.figure("Tumult", "not installed here: run `make peers`")
        return
    (ours,) = least(private(asked, BOUNDED.format("visits")), rounds=report.scale(ci=1, full=3))
    script = Path(__file__).parent / "rivals" / "tumult.py"
    given = {
        "path": str(path),
        "groups": GROUPS,
        "rows": ROWS,
        "regions": list(REGIONS),
        "memory": MEMORY,
        "master": MASTER,
        "rounds": report.scale(ci=1, full=2),
    }
    found = subprocess.run(
        [TUMULT, script], input=json.dumps(given), capture_output=True, text=True, check=False, timeout=7200
    )
    if found.returncode:
        report.figure("Tumult", f"failed: {found.stderr[-300:]}")
    theirs = float("nan") if found.returncode else float(json.loads(found.stdout.splitlines()[-1])["seconds"])
    report.figure("unit: bounded count by 50, s", {"hubbub on Spark": round(ours, 3), "Tumult": round(theirs, 3)})
    name = "unit: bounded count by 50, Tumult / hubbub on Spark"
    if report.full:
        report.target(name, round(theirs / ours, 3), at_least=3)
    else:
        report.figure(name, round(theirs / ours, 3))


#: What a cluster has by default, where the tests have settings for small tables.
AS_IT_COMES = {
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.files.maxPartitionBytes": "128m",
}


def on_cluster(report: Report, folder: Path, path: Path) -> None:
    """A master and two workers of one core each, beside the same question in one process with two cores, in turns."""
    with (
        spark_cluster.running(memory=MEMORY // 3, settings=AS_IT_COMES) as cluster,
        session(folder, f"spark:{MASTER}/{path}") as here,
        session(folder, f"spark:{cluster.connect_address}/{path}") as there,
    ):
        rounds, seconds = report.scale(ci=1, full=3), report.scale(ci=0, full=20)
        for what, (sql, table) in {"row": (BY_ROW, "rows"), "unit": (BOUNDED, "visits")}.items():
            asks = private(there, sql.format(table)), private(here, sql.format(table))
            least(*asks, rounds=1, seconds=seconds)  # warm
            cluster_s, local_s = least(*asks, rounds=rounds, seconds=seconds)
            report.figure(f"cluster: {what}, s", {"two workers": round(cluster_s, 3), MASTER: round(local_s, 3)})
            report.figure(f"cluster: {what}, two workers / {MASTER}", round(cluster_s / local_s, 3))
    spark_local.stop()


# --- the cost curve ------------------------------------------------------------------------------------------------


def _duckdb_scale(folder: str, path: str) -> dict[str, float]:
    """Ask in a process that does nothing else, and give times and its largest resident memory."""
    with session(Path(folder), path) as asked:
        times = {name: least(private(asked, sql), rounds=1)[0] for name, sql in _curve()}
    return times | {"resident GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def _spark_scale(folder: str, path: str) -> dict[str, float]:
    with session(Path(folder), f"spark:{MASTER}/{path}") as asked:
        asked.query("SELECT count(*) FROM rows", epsilon=1, key=token_hex())  # start and warm it
        times = {name: least(private(asked, sql), rounds=1)[0] for name, sql in _curve()}
        peak = max(_resident(pid) for pid in _children(spark_local._running[MASTER].pid))  # noqa: SLF001
    spark_local.stop()
    return times | {"resident GB": peak}


def _curve() -> list[tuple[str, str]]:
    return [("row s", BY_ROW.format("rows")), ("unit s", BOUNDED.format("visits"))]


def _children(group: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "-g", str(group)], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def _resident(pid: int) -> float:
    status = Path("/proc", str(pid), "status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def scale(report: Report, folder: Path) -> None:
    """Ask the same two questions of 1 M to 200 M rows, on DuckDB and on Spark, each in a process of its own."""
    sizes = [1_000_000, 10_000_000, 50_000_000, 200_000_000] if report.full else [50_000]
    ways = {"DuckDB": ("duckdb_scale", _duckdb_scale), "Spark": ("spark_scale", _spark_scale)}
    curves: dict[str, dict[str, dict[str, float]]] = {}
    path = folder / "scale.parquet"
    for rows in report.progress(sizes, "scale"):
        generate(path, rows)
        for engine, (part, ask) in ways.items():
            if part in report.parts(*PARTS):
                with get_context("spawn").Pool(1) as fresh:
                    found = fresh.apply(ask, (str(folder), str(path)))
                curves.setdefault(engine, {})[str(rows)] = {key: round(value, 3) for key, value in found.items()}
                report.say(f"{engine}, {rows:,} rows: {found}")
        path.unlink()
    for engine, curve in curves.items():
        report.figure(f"scale: {engine}", curve)  # type: ignore[arg-type]
        peak = max(point["resident GB"] for point in curve.values())
        report.target(f"scale: {engine}, resident GB at its peak", peak, at_most=1.6 * MEMORY / 1000)
    if os.environ.get("HUBBUB_PLOT"):
        draw(curves, Path(os.environ["HUBBUB_PLOT"]))


def draw(curves: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> None:
    """Draw seconds over rows, both logarithmic."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (engine, curve), color in zip(curves.items(), ("#1f5fa8", "#c2571a"), strict=False):
        for kind, dash in (("row s", "-"), ("unit s", "--")):
            points = sorted((int(rows), point[kind]) for rows, point in curve.items())
            label = f"{engine}, unit is the {'row' if kind == 'row s' else 'patient'}"
            axes.plot(*zip(*points, strict=True), dash, color=color, marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds for a private answer")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def body(report: Report) -> None:
    parts = report.parts(*PARTS)
    rows = report.scale(ci=100_000, full=10_000_000)
    report.figure("rows", rows)
    report.figure("load before", round(os.getloadavg()[0], 2))
    with tempfile.TemporaryDirectory(prefix="hubbub-engines-", dir=os.environ.get("HUBBUB_FOLDER")) as name:
        folder = Path(name)
        path = folder / "visits.parquet"
        generate(path, rows)
        if "postgres" in parts:
            on_postgres(report, folder, path)
        if "surplus" in parts:
            surplus(report, folder)
        if "spark" in parts:
            on_spark(report, folder, path)
        if "cluster" in parts:
            on_cluster(report, folder, path)
        path.unlink()
        if {"duckdb_scale", "spark_scale"} & set(parts):
            scale(report, folder)
    report.figure("load after", round(os.getloadavg()[0], 2))


if __name__ == "__main__":
    run(body)
