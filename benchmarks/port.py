"""What the PostgreSQL port costs beside the embedded curator, and whether it holds under load.

Overhead: the same query, each time a new draw that is charged, with psycopg (quantum off) and embedded in this process,
in turns. Load: 64 psycopg connections ask queries and EXPLAIN for a while; two of eight analysts are poor and are
refused in the middle of it. Nothing else may go wrong, no cap may be passed, and the ledger must verify afterwards.
"""

import os
import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from benchmarks.server import CLIENTS, POOR, PRICE, RICH, SQL, Load, demo, judge, milliseconds, served
from tests.campaigns.frame import Report, run
from tests.fixtures.server_config import issue
from tests.fixtures.server_process import free_port

import hubbub

OVERHEAD = 3.0  # milliseconds
#: What PostgreSQL clients see where the budget is used up.
_REFUSED = "53400"

Connection = psycopg.Connection[tuple[Any, ...]]


def with_port(config: Path) -> int:
    """Give the configuration a PostgreSQL port."""
    port = free_port()
    config.write_text(config.read_text().replace("server: {", f"server: {{postgres: {{port: {port}}}, "))
    return port


def connect(port: int, analyst: str, token: str) -> Connection:
    """Sign in, with a price for every query."""
    return psycopg.connect(
        f"host=127.0.0.1 port={port} user={analyst} password={token} dbname=hubbub connect_timeout=60",
        autocommit=True,
        options=f"-c hubbub.epsilon={float(PRICE)}",
    )


def overhead(report: Report, base: Path) -> None:
    """Ask the same in two ways, in turns; the name of a new draw is set before the clock starts."""
    rounds = report.scale(ci=30, full=500)
    config = demo(base / "served")
    token, port = issue(config, {"r1": "analyst"})["r1"], with_port(config)
    spans: dict[str, list[float]] = {"port": [], "embedded": [], "port, asked before": [], "embedded, asked before": []}
    with served(config, report), hubbub.open(demo(base / "embedded"), analyst="r1") as session:
        connection = connect(port, "r1", token)
        for number in report.progress(range(rounds + 6), "overhead"):
            sql, name = SQL[number % 3], f"k{number}"
            connection.execute(f"SET hubbub.fresh = '{name}'")
            for again in ("", ", asked before"):
                spans["port" + again].append(milliseconds(lambda sql=sql: connection.execute(sql).fetchall()))  # type: ignore[misc]
                spans["embedded" + again].append(
                    milliseconds(lambda sql=sql, name=name: session.query(sql, epsilon=str(PRICE), key=name))  # type: ignore[misc]
                )
        connection.close()
    settled = {name: found[6:] for name, found in spans.items()}  # the first ones load the data
    for name, found in settled.items():
        report.figure(f"p50_ms_{name}", round(statistics.median(found), 2))
        # the quickest tenth is less disturbed by what else the machine does
        report.figure(f"p10_ms_{name}", round(float(np.quantile(found, 0.1)), 2))
    # pair by pair: both ways of a pair met the same machine
    pairs = [ours - theirs for ours, theirs in zip(settled["port"], settled["embedded"], strict=True)]
    ratio = statistics.median(settled["port"]) / statistics.median(settled["embedded"])
    report.figure("p50_ratio_over_embedded", round(ratio, 3))
    report.figure("load_of_the_machine", round(os.getloadavg()[0], 1))
    report.target("p50_overhead_ms_over_embedded", round(statistics.median(pairs), 2), at_most=OVERHEAD)


class Crowd:
    """64 clients, each with a connection of its own."""

    def __init__(self, port: int, tokens: dict[str, str], seconds: float) -> None:
        self._port, self._tokens, self._seconds = port, tokens, seconds
        self._lock = threading.Lock()
        self._ready = threading.Barrier(CLIENTS)
        self._signing_in = threading.Semaphore(16)  # the port takes at most 40 of one address at once
        self.answered: Counter[str] = Counter()
        self.refused = 0
        self.spans: dict[str, list[float]] = {"query": [], "explain": []}
        self.odd: list[str] = []

    def run(self) -> None:
        """Let all of them ask until the time is over."""
        names = [*RICH, *POOR]
        team = [threading.Thread(target=self._one, args=(names[n % len(names)], n)) for n in range(CLIENTS)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()

    def _one(self, analyst: str, number: int) -> None:
        try:
            with self._signing_in:
                connection = connect(self._port, analyst, self._tokens[analyst])
            with connection:
                self._ready.wait(120)  # signing in is not what is measured
                self._ask(connection, analyst, number)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is an error of the service
            with self._lock:
                self.odd.append(f"{analyst}: {error!r}")
            self._ready.abort()

    def _ask(self, connection: Connection, analyst: str, number: int) -> None:
        chance, asked, until = random.Random(number), 0, time.monotonic() + self._seconds
        while time.monotonic() < until:
            asked += 1
            kind, sql = chance.choice(("query", "explain")), chance.choice(SQL)
            connection.execute(f"SET hubbub.fresh = '{number}-{asked}'")
            start = time.perf_counter()
            try:
                connection.execute(sql if kind == "query" else f"EXPLAIN {sql}").fetchall()
            except psycopg.Error as error:
                expected = kind == "query" and analyst in POOR and error.sqlstate == _REFUSED
                with self._lock:
                    self.refused += expected
                    if not expected:
                        self.odd.append(f"{kind} of {analyst}: {error!r}")
                continue
            with self._lock:
                self.spans[kind].append(1000 * (time.perf_counter() - start))
                self.answered[analyst] += kind == "query"


def load_test(report: Report, base: Path) -> None:
    """Load the port, then compare what clients saw with what the ledger has."""
    seconds = report.scale(ci=5, full=60)
    config = demo(base / "loaded")
    tokens, port = issue(config, dict.fromkeys((*RICH, *POOR), "analyst")), with_port(config)
    with served(config, report):
        crowd = Crowd(port, tokens, seconds)
        report.say(f"{CLIENTS} psycopg clients for {seconds} s")
        crowd.run()
    judge(report, config, Load(crowd.spans, crowd.answered, crowd.refused, crowd.odd), seconds)


def body(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="hubbub-port-") as folder:
        overhead(report, Path(folder))
        load_test(report, Path(folder))


if __name__ == "__main__":
    run(body)
