"""TPC-H beside the published errors of Race-to-the-Top (R2T; Dong, Fang, Yi, Tao and Machanavajjhala, SIGMOD 2022).

The queries, the private relation of each and the published errors and times are those of the repository of its authors
(hkustDB/Race-to-the-Top, `Query` and `Result/TPCH`): scale factor 1, ε = 0.8, no declared bound but a public maximum of
10⁶. R2T counts in rows or in the sum itself, with at most 10⁶ per unit; here a unit has at most 10⁶ rows, so that
its sums may be larger still. As published, the best and worst fifth of the errors are dropped and the rest is averaged.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.truncation
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import duckdb
from benchmarks.real_data import tpch
from benchmarks.real_data.engine import remembered
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.curator.session import Session

EPSILON = "0.8"


@dataclass(frozen=True)
class Published:
    """A query as hubbub is asked and as R2T ran it, its published error in percent, and its times in seconds.

    extract  reading the join from PostgreSQL, which R2T does first and hubbub as part of its answer
    """

    sql: str
    plain: str
    error: float
    seconds: float
    extract: float


_CUSTOMERS = (
    "customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_custkey = c_custkey AND l_orderkey = o_orderkey"
)
_SUPPLIERS = "supplier JOIN nation ON s_nationkey = n_nationkey JOIN partsupp ON ps_suppkey = s_suppkey"
_DATES = "o_orderdate < DATE '1997-01-01' AND l_shipdate > DATE '1994-01-01'"

QUERIES = {
    "Q3": Published(
        f"SELECT COUNT(*) FROM {_CUSTOMERS} WHERE {_DATES}",
        f"FROM customer, orders, lineitem WHERE o_custkey = c_custkey AND l_orderkey = o_orderkey AND {_DATES}",
        0.254,
        3.02,
        15.9,
    ),
    "Q12": Published(
        "SELECT COUNT(*) FROM placed JOIN shipped ON o_orderkey = l_orderkey",
        "FROM orders, lineitem WHERE o_orderkey = l_orderkey",
        0.023,
        7.64,
        20.5,
    ),
    "Q20": Published(
        f"SELECT COUNT(*) FROM {_SUPPLIERS} JOIN sold ON l_suppkey = ps_suppkey AND l_partkey = ps_partkey",
        "FROM supplier, nation, partsupp, lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey "
        "AND s_nationkey = n_nationkey AND s_suppkey = ps_suppkey",
        0.579,
        4.99,
        19.5,
    ),
    "Q10": Published(
        "SELECT COUNT(*) FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN orders ON o_custkey = c_custkey",
        "FROM orders, customer, nation WHERE c_custkey = o_custkey AND c_nationkey = n_nationkey",
        0.174,
        1.67,
        7.1,
    ),
    "Q18": Published(
        f"SELECT SUM(l_quantity) FROM {_CUSTOMERS}",
        "FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey",
        0.132,
        6.30,
        36.4,
    ),
    "Q11": Published(
        f"SELECT SUM(ps_supplycost * ps_availqty / 1000000) FROM {_SUPPLIERS}",
        "FROM nation, supplier, partsupp WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey",
        1.82,
        0.77,
        3.6,
    ),
}

_INTEGER: dict[str, object] = {"type": "integer"}
#: Each dataset: its file, its owner, whether an owner has one row, and its columns.
_DATASETS: dict[str, tuple[str, str, bool, dict[str, dict[str, object]]]] = {
    "customer": ("customer", "c_custkey", True, {"c_nationkey": _INTEGER}),
    "orders": ("orders", "o_custkey", False, {"o_orderkey": _INTEGER, "o_orderdate": {"type": "date"}}),
    "lineitem": (
        "lineitem",
        "l_custkey",
        False,
        {"l_orderkey": _INTEGER, "l_shipdate": {"type": "date"}, "l_quantity": {"bounds": [0, 50], "step": 1}},
    ),
    "placed": ("orders", "o_orderkey", True, {}),
    "shipped": ("lineitem", "l_orderkey", False, {}),
    "supplier": ("supplier", "s_suppkey", True, {"s_nationkey": _INTEGER}),
    "partsupp": (
        "partsupp",
        "ps_suppkey",
        False,
        {
            "ps_partkey": _INTEGER,
            "ps_availqty": {"type": "integer", "bounds": [0, 9999]},
            "ps_supplycost": {"bounds": [0, 1000], "step": 0.01},
        },
    ),
    "sold": ("lineitem", "l_suppkey", False, {"l_partkey": _INTEGER}),
}


def declare(folder: Path) -> None:
    """Write a hubbub.yaml over the tables; where an owner can have several rows, the bound is auto."""
    budget = {"epsilon": 1_000_000}
    datasets: dict[str, object] = {"nation": {"source": "nation.parquet", "public": True, "unique": "n_nationkey"}}
    for name, (file, owner, single, columns) in _DATASETS.items():
        unit: dict[str, object] = {"column": owner, "entity": owner.split("_")[1]}
        unit |= {"rows": 1} if single else {"rows": "auto", "max_rows": 10**6}
        declared = {owner: _INTEGER} | columns
        datasets[name] = {"source": f"{file}.parquet", "unit": unit, "columns": declared, "budget": budget}
    document = {"version": 1, "datasets": datasets, "analysts": {"ana": dict.fromkeys(_DATASETS, budget)}}
    (folder / "hubbub.yaml").write_text(json.dumps(document))


def exact(connection: duckdb.DuckDBPyConnection, query: Published) -> float:
    """Return the exact answer, by the text of R2T's query."""
    value = query.sql.removeprefix("SELECT ").partition(" FROM ")[0]
    (answer,) = connection.execute(f"SELECT {value} {query.plain}").fetchone() or (0,)
    return float(answer)


def measure(report: Report, session: Session, name: str, query: Published, truth: float) -> None:
    """Time a few whole answers, then repeat the noise a hundred times."""
    seconds = []
    for turn in range(report.scale(ci=1, full=3)):
        begun = time.perf_counter()
        session.query(query.sql, epsilon=EPSILON, key=f"{name} timed {turn}")
        seconds.append(time.perf_counter() - begun)
    errors, held = [], []
    with remembered():
        for turn in report.progress(range(report.scale(ci=20, full=100)), name):
            release = session.query(query.sql, epsilon=EPSILON, key=f"{name} {turn}")
            errors.append(100 * abs(float(str(release.rows[0][0])) - truth) / truth)
            low, high = release.intervals[0][0]
            held.append(low is not None and high is not None and low <= truth <= high)
    fifth = len(errors) // 5
    report.figure(f"{name} exact", truth)
    report.figure(f"{name} mean error %", mean(errors))
    report.figure(f"{name} coverage", mean(held))
    report.figure(f"{name} seconds", median(seconds))
    trimmed = mean(sorted(errors)[fifth:-fifth])
    if report.full:
        report.target(f"{name} error % (R2T {query.error})", trimmed, at_most=query.error / 3)
        report.target(f"{name} seconds / R2T's", median(seconds) / (query.seconds + query.extract), at_most=1)
    else:
        report.figure(f"{name} error %", trimmed)


def body(report: Report) -> None:
    """Generate the tables at scale 1 (in CI at 0.01, where only the path is tested), and ask every query."""
    if not tpch.is_here():
        report.say(tpch.MISSING)
        return
    with tempfile.TemporaryDirectory() as name, duckdb.connect() as connection:
        folder = tpch.generate(Path(name), 1 if report.full else 0.01)
        declare(folder)
        for table in tpch.TABLES:
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder / table}.parquet')")
        with hubbub.open(folder / "hubbub.yaml") as session:
            for label, query in QUERIES.items():
                measure(report, session, label, query, exact(connection, query))


if __name__ == "__main__":
    run(body)
