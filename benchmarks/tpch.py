"""TPC-H Q3 as a private query beside the plain query bounded by hand, in DuckDB on the same files.

The revenue of Q3 is asked by order month instead of by order, because an order has one customer. The plain query keeps
the first 150 rows of each customer, in the order of a hash, and clamps what it sums, as an analyst would by hand. Both
read Parquet files that tpchgen-cli writes; the private query finds the customers of orders and line items through keys.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.tpch
"""

import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

import duckdb
from tests.campaigns.frame import Report, run
from tests.sql.suites.harness import opened
from tests.sql.suites.schemas import TPCH, tpchgen

_FROM = (
    "FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey "
    "AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'"
)
PRIVATE = f"SELECT MONTH(o_orderdate) AS m, SUM(l_extendedprice * (1 - l_discount)) AS revenue {_FROM} GROUP BY m"
BOUNDED = (
    "SELECT m, sum(greatest(0, least(v, 105000))) AS revenue FROM (SELECT month(o_orderdate) AS m, "
    "l_extendedprice * (1 - l_discount) AS v, row_number() OVER "
    f"(PARTITION BY c_custkey ORDER BY hash(l_orderkey, l_linenumber)) AS i {_FROM}) WHERE i <= 150 GROUP BY m"
)
REPEATS = 5


def body(report: Report) -> None:
    scale = report.scale(ci=1, full=100)  # hundredths
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [tpchgen(), "parquet", "--scale-factor", str(scale / 100), f"--output-dir={folder}"],
            check=True,
            capture_output=True,
        )
        plain = duckdb.connect(":memory:")
        for table in TPCH:
            plain.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder}/{table}.parquet')")
        plain.execute("CREATE SCHEMA plain")
        sources = {table: str(folder / f"{table}.parquet") for table in TPCH}
        with opened(folder / "hubbub", "tpch", "duckdb", plain, sources) as ground:
            keys = count()
            private = _seconds(lambda: ground.session.query(PRIVATE, epsilon=1, key=f"run {next(keys)}").rows)
        by_hand = _seconds(lambda: plain.execute(BOUNDED).fetchall())
    report.figure("scale_factor", scale / 100)
    report.figure("private_seconds", round(private, 3))
    report.figure("by_hand_seconds", round(by_hand, 3))
    if report.full:
        report.target("ratio", round(private / by_hand, 2), at_most=2)
    else:
        report.figure("ratio", round(private / by_hand, 2))


def _seconds(work: Callable[[], object]) -> float:
    """Return the median time of several runs after a first one, which reads files and checks keys."""
    work()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return median(times)


if __name__ == "__main__":
    run(body)
