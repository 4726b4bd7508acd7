"""TPC-H queries that protect customers and suppliers at once, beside Race-to-the-Top (R2T).

The queries and the published errors are those of Dong, Fang, Yi, Tao and Machanavajjhala (SIGMOD 2022) at scale factor
1 and ε = 0.8, with a public maximum of 10⁶ for each owner. R2T is run here as well, on the same truncated sums: it adds
noise to the sum at each of log₂(10⁶) bounds and takes the largest after a penalty. Each query is answered once through
`Curator.query`; the choice of the bound and the noise are then repeated on its sums.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.several_owners
"""

import json
import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any

import duckdb
import numpy as np
from benchmarks.real_data import tpch
from numpy.typing import NDArray
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.config import load
from hubbub.curator.opening import tables_of
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
from hubbub.sql.bind import bind_releases
from hubbub.sql.owner_levels import OwnerLevels
from hubbub.sql.plan import plan
from hubbub.sql.query import Query

EPSILON = Fraction(4, 5)
MAXIMUM = 10**6
#: The failure probability that R2T's penalty is for, as published.
_BETA = 0.1


@dataclass(frozen=True)
class Published:
    """A query and R2T's published error in percent."""

    sql: str
    error: float


_CUSTOMER, _SUPPLIER = "JOIN customer ON l_custkey = c_custkey", "JOIN supplier ON l_suppkey = s_suppkey"
_ORDERS = "JOIN orders ON l_custkey = o_custkey AND l_orderkey = o_orderkey"
QUERIES = {
    "Q5": Published(f"SELECT COUNT(*) FROM lineitem {_CUSTOMER} {_SUPPLIER} WHERE c_nationkey = s_nationkey", 1.63),
    "Q8": Published(
        f"SELECT COUNT(*) FROM lineitem {_ORDERS} WHERE o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
        1.92,
    ),
    "Q7": Published("SELECT SUM(l_extendedprice * (1 - l_discount)) FROM lineitem", 0.607),
    "Q21": Published(f"SELECT COUNT(*) FROM lineitem {_SUPPLIER}", 0.654),
}

_INTEGER: dict[str, object] = {"type": "integer"}


def declare(folder: Path) -> None:
    """Write a hubbub.yaml in which a line of an order belongs to its customer and to its supplier."""
    customer, supplier, budget = {"entity": "customer"}, {"entity": "supplier"}, {"epsilon": 1_000_000}
    lineitem = [{"column": "l_custkey", "max_rows": MAXIMUM} | customer, {"column": "l_suppkey"} | supplier]
    prices: dict[str, object] = {
        "l_orderkey": _INTEGER,
        "l_extendedprice": {"bounds": [0, 110000], "step": 0.01},
        "l_discount": {"bounds": [0, 1], "step": 0.01},
    }
    datasets: dict[str, Any] = {
        "lineitem": {"unit": lineitem, "columns": prices},
        "customer": {"unit": {"column": "c_custkey"} | customer, "columns": {"c_nationkey": _INTEGER}},
        "supplier": {"unit": {"column": "s_suppkey"} | supplier, "columns": {"s_nationkey": _INTEGER}},
        "orders": {
            "unit": {"column": "o_custkey", "rows": 100} | customer,
            "key": "o_orderkey",
            "columns": {"o_orderkey": _INTEGER, "o_orderdate": {"type": "date"}},
        },
    }
    datasets = {name: {"source": f"{name}.parquet", "budget": budget} | each for name, each in datasets.items()}
    document = {"version": 1, "datasets": datasets, "analysts": {"ana": dict.fromkeys(datasets, budget)}}
    (folder / "hubbub.yaml").write_text(json.dumps(document))


def exact(connection: duckdb.DuckDBPyConnection, sql: str) -> float:
    """Return the exact answer."""
    (answer,) = connection.execute(sql).fetchone() or (0,)
    return float(answer)


def repeated(level: OwnerLevels, sums: Mapping[int, int], step: float, scale: float, times: int) -> NDArray[np.float64]:
    """Choose a bound and add noise many times, as answers do."""
    scores = level.scores([sums[bound] for bound in level.levels])
    chosen = [level.levels[level.mechanism.sample(scores, system())] for _ in range(times)]
    noise = np.random.default_rng().laplace(size=times)
    return np.array([(sums[bound] + scale * bound * z) * step for bound, z in zip(chosen, noise, strict=True)])


def race_to_the_top(sums: Mapping[int, int], step: float, row: int, times: int) -> NDArray[np.float64]:
    """Run R2T on the same sums: the largest of the noisy sums minus their penalties."""
    bounds = [bound for bound in sums if bound >= row]
    stages = math.log2(MAXIMUM)
    rate = np.array([stages * bound / float(EPSILON) for bound in bounds])
    values = np.array([sums[bound] for bound in bounds])
    noise = np.random.default_rng().laplace(size=(times, len(bounds))) * rate
    noisy = values + noise - rate * math.log(stages / _BETA)
    best: NDArray[np.float64] = np.maximum(noisy.max(axis=1), 0.0) * step
    return best


def measure(report: Report, session: "_Engine", query: Query, label: str, published: Published, truth: float) -> None:
    """Answer a query once, and repeat the choice and the noise on its sums."""
    begun = time.perf_counter()
    session.query(published.sql, epsilon=EPSILON, key=label)
    report.figure(f"{label} seconds", time.perf_counter() - begun)
    planned = plan(query, epsilon=EPSILON, delta=Fraction(0), salt="benchmark")
    (level,), (noised,) = planned.owners, planned.measures
    if not isinstance(noised.mechanism, Laplace):
        raise AssertionError("bounds are found with Laplace noise")
    table = session.ask_engine(level.sql)
    sums = {bound: int(level.truncated(table, bound).sum()) for bound in report.progress(level.levels, label)}
    step = float(getattr(noised.measure, "step", 1))
    times = report.scale(ci=200, full=2000)
    for name, answers in (
        ("error %", repeated(level, sums, step, float(noised.mechanism.scale), times)),
        ("R2T here, error %", race_to_the_top(sums, step, max(1, noised.measure.high), times)),
    ):
        errors = np.sort(100 * np.abs(answers - truth) / truth)
        fifth = times // 5
        trimmed = float(mean(errors[fifth:-fifth]))
        report.figure(f"{label} mean {name}", float(mean(errors)))
        if report.full and name == "error %":
            report.target(f"{label} {name} (R2T as published {published.error})", trimmed, at_most=published.error)
        else:
            report.figure(f"{label} {name}", trimmed)


class _Engine:
    """A session beside a plain engine over the same files, which reads what the curator never gives out."""

    def __init__(self, session: Any, connection: duckdb.DuckDBPyConnection) -> None:
        self.query = session.query
        self._connection = connection

    def ask_engine(self, sql: str) -> Mapping[str, NDArray[Any]]:
        """Run the statement of a plan."""
        rows: dict[str, Any] = dict(self._connection.execute(sql).fetchnumpy())
        return rows


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
        tables = tables_of(load(folder / "hubbub.yaml"))
        with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
            for label in report.parts(*QUERIES):
                published = QUERIES[label]
                query = bind_releases(published.sql, tables=tables)
                if not isinstance(query, Query):
                    raise AssertionError("a query of one release")
                truth = exact(connection, published.sql)
                report.figure(f"{label} exact", truth)
                measure(report, _Engine(session, connection), query, label, published, truth)


if __name__ == "__main__":
    run(body)
