"""Many groups: declared ranges, discovered keys, and page views of one day by country, project and page.

    python -m benchmarks.many_groups
    HUBBUB_CAMPAIGN=full python -m benchmarks.many_groups

Each line is one question in a new process: the plain query on DuckDB, the private one, its replay, the peak of the
process's memory, and the bytes of the stored release. The page views are made up after those that Wikimedia publishes
with Tumult Analytics: one row a view, a reader counts for at most ten pages, and pages are discovered. Tumult keeps
every (country, project, page) above a suppression threshold; here a page is shown by the same rule as every group.
"""

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

FULL = os.environ.get("HUBBUB_CAMPAIGN") == "full"

YAML = """version: 1
datasets:
  t:
    source: t.parquet
    unit: {unit}
    columns: {columns}
    budget: {{epsilon: 100{delta}}}
analysts: {{ana: {{t: {{epsilon: 100{delta}}}}}}}
"""


def declared(groups: int) -> dict[str, Any]:
    """Count by a declared range of integers."""
    return {
        "name": f"{groups:,} declared integers",
        "rows": f"SELECT hash(i) % {groups} AS k FROM range({2 * groups}) t(i)",
        "unit": "row",
        "columns": f"{{k: {{bounds: [0, {groups - 1}]}}}}",
        "delta": "",
        "sql": "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
        "options": {},
    }


def discovered(groups: int) -> dict[str, Any]:
    """Count by texts that nobody declared, each in enough rows to be shown."""
    return {
        "name": f"{groups:,} discovered texts",
        "rows": f"SELECT 'page ' || (i % {groups}) AS k FROM range({8 * groups}) t(i)",
        "unit": "row",
        "columns": "{k: {}}",
        "delta": ", delta: 1e-2",
        "sql": "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
        "options": {"delta": "1e-3", "epsilon": 5},
    }


def views(rows: int, pages: int) -> dict[str, Any]:
    """Count page views by country, project and page: few pages have most of the views."""
    page = f"floor(pow(hash(i) / 18446744073709551616.0, 3) * {pages})::BIGINT"
    key = f"SELECT i, {page} AS page FROM range({rows}) t(i)"
    return {
        "name": f"{rows:,} page views of {pages:,} pages",
        "rows": f"SELECT 'reader ' || (hash(i + 1) % {rows // 4}) AS reader, 'c' || (page % 200) AS country,"
        f" 'p' || (page % 7) AS project, 'page ' || page AS page FROM ({key})",
        "unit": "{column: reader, entity: reader, groups: 10, rows: 1}",
        "columns": "{country: {}, project: {}, page: {}}",
        "delta": ", delta: 1e-4",
        "sql": "SELECT country, project, page, COUNT(*) AS views FROM t GROUP BY country, project, page",
        "options": {"delta": "1e-5"},
    }


def _measure(case: dict[str, Any], send: Callable[[object], None]) -> None:
    import hubbub

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        duckdb.execute("SET enable_progress_bar = false")
        duckdb.sql(f"COPY ({case['rows']}) TO '{folder}/t.parquet'")
        (folder / "hubbub.yaml").write_text(YAML.format(**case))
        plain = time.perf_counter()
        keys = case["sql"].replace(" FROM t ", f" FROM '{folder}/t.parquet' ")
        found = duckdb.connect().execute(f"SELECT count(*) FROM ({keys})").fetchone()
        plain = time.perf_counter() - plain
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
            times = []
            for _ in range(2):
                started = time.perf_counter()
                release = session.query(case["sql"], **{"epsilon": 1, **case["options"]})
                times.append(time.perf_counter() - started)
            started = time.perf_counter()
            release.export(folder / "all.parquet")
            exported = time.perf_counter() - started
        stored = (release.packed or {}).get("parquet", "")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    occurring = 0 if found is None else found[0]
    send((occurring, len(release.ratio), plain, *times, exported, peak / 1e6, before / 1e6, len(stored) / 1e6))


def measure(case: dict[str, Any]) -> None:
    """Measure one case in a process of its own, and print a row of a table."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_measure, args=(case, theirs.send))
    process.start()
    theirs.close()
    occurring, groups, plain, first, again, exported, peak, before, stored = ours.recv()
    process.join()
    print(
        f"| {case['name']} | {occurring:,} | {groups:,} | {plain:.2f} | {first:.2f} | {again:.2f} | {exported:.2f} |"
        f" {peak:.1f} ({before:.1f} before) | {stored:.1f} |"
    )
    sys.stdout.flush()


def main() -> None:
    """Measure all cases."""
    heads = (
        "question | groups that occur | rows | plain, s | private, s | replay, s | export, s | peak, GB | stored, MB"
    )
    print(f"| {heads} |")
    print("|---|---|---|---|---|---|---|---|---|")
    sizes = (100_000, 1_000_000, 10_000_000) if FULL else (25_000,)
    for size in sizes:
        measure(declared(size))
    for size in sizes:
        measure(discovered(size))
    measure(views(20_000_000, 5_000_000) if FULL else views(200_000, 50_000))


if __name__ == "__main__":
    main()
