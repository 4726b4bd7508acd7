"""What the service costs beside the embedded curator, and whether it holds under load.

Overhead: the same query, each time a new draw that is charged, over HTTP (quantum off) and embedded in this process, in
turns; beside them a bare FastAPI endpoint that runs the plain DuckDB query. Lomas reports 116 ms more on 1,000 rows.

Load: 64 clients ask estimates and queries for a while; two of eight analysts are poor and are refused in the middle of
it. Nothing else may go wrong, no cap may be passed, and the ledger must verify afterwards. Once with one process, once
with two workers.
"""

import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from tests.campaigns.frame import Report, run
from tests.fixtures.server_config import issue
from tests.fixtures.server_process import Caller, SpawnedServer, await_ready, free_port

import hubbub
from hubbub.accounting.ledger import examine
from hubbub.accounting.store import EntryFilter
from hubbub.config import load
from hubbub.curator.opening import anchor_of, store_of
from hubbub.demo import lay_out

CLIENTS = 64
RICH = ("r1", "r2", "r3", "r4", "r5", "r6")
POOR = ("p1", "p2")
PRICE = Fraction(1, 100)
ALLOWED = 8  # queries that each of the poor can pay for
OVERHEAD = 10.0  # milliseconds

SQL = (
    "SELECT coinsurance, COUNT(*) AS n, AVG(visits) AS visits FROM health GROUP BY coinsurance",
    "SELECT COUNT(DISTINCT person) AS people FROM health WHERE visits > 10",
    "SELECT site, SUM(spending) AS dollars FROM health WHERE female = 1 GROUP BY site",
)


def demo(folder: Path) -> Path:
    """Lay the demo's data out, with a budget that the run does not use up, except for the poor."""
    folder.mkdir()
    lay_out(folder)
    config = folder / "hubbub.yaml"
    text = config.read_text().replace("epsilon: 3, delta: 1e-7, per_query: 1", "epsilon: 1000000")
    head, _, _ = text.partition("analysts:")
    caps = dict.fromkeys(RICH, Fraction(1_000_000)) | dict.fromkeys(POOR, ALLOWED * PRICE)
    lines = [f"  {name}: {{health: {{epsilon: {float(cap)}}}}}" for name, cap in caps.items()]
    settings = "server: {quantum: 0, workers: 4, queue: 1000, per_minute: 1000000}"
    config.write_text("\n".join([head + "analysts:", *lines, settings, ""]))
    return config


@contextmanager
def served(config: Path, report: Report, workers: int = 1) -> Iterator[tuple[int, SpawnedServer]]:
    """Start a server, give its port, and see it stop in good order."""
    port = free_port()
    server = SpawnedServer(config, port, workers)
    try:
        report.figure("seconds_until_ready", round(await_ready(port, server), 2))
        yield port, server
    finally:
        code = server.end(signal.SIGTERM)
    report.target("stopped_in_good_order", code in (0, -signal.SIGTERM), at_least=1)


@contextmanager
def bare(data: Path) -> Iterator[int]:
    """Start the bare endpoint, and give its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.campaigns.rig.plain_service", str(data), str(port)])
    caller = Caller(port)
    try:
        while True:
            try:
                caller.ask("GET", "/readyz")
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        caller.close()
        process.terminate()
        process.wait(30)


def milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def overhead(report: Report, base: Path) -> None:
    """Ask the same three ways, in turns."""
    rounds = report.scale(ci=30, full=500)
    config = demo(base / "served")
    token = issue(config, {"r1": "analyst"})["r1"]
    with (
        served(config, report) as (port, _),
        bare(config.parent / "health.csv") as plain_port,
        hubbub.open(demo(base / "embedded"), analyst="r1") as session,
    ):
        caller, plain = Caller(port, token), Caller(plain_port)

        def ours(number: int) -> None:
            reply = caller.query({"sql": SQL[number % 3], "epsilon": "0.01", "key": f"k{number}"}, f"k{number}")
            if reply.status != 200:
                raise RuntimeError(f"status {reply.status}: {reply.body[:300]!r}")

        ways: dict[str, Callable[[int], object]] = {
            "served": ours,
            "embedded": lambda number: session.query(SQL[number % 3], epsilon="0.01", key=f"k{number}"),
            "bare": lambda number: plain.ask("POST", "/query", {"sql": SQL[number % 3]}),
        }
        spans: dict[str, list[float]] = {name: [] for name in ways}
        for number in report.progress(range(rounds + 6), "overhead"):
            for name, way in ways.items():
                spans[name].append(milliseconds(lambda way=way, number=number: way(number)))  # type: ignore[misc]
        caller.close()
        plain.close()
    middle = {name: statistics.median(found[6:]) for name, found in spans.items()}  # the first ones load the data
    for name, figure in middle.items():
        report.figure(f"p50_ms_{name}", round(figure, 2))
        # the quickest tenth is less disturbed by what else the machine does
        report.figure(f"p10_ms_{name}", round(float(np.quantile(spans[name][6:], 0.1)), 2))
    report.target("p50_overhead_ms_over_embedded", round(middle["served"] - middle["embedded"], 2), at_most=OVERHEAD)


class Crowd:
    """64 clients, each with a connection of its own."""

    def __init__(self, port: int, tokens: dict[str, str], seconds: float) -> None:
        self._port, self._tokens = port, tokens
        self._until = time.monotonic() + seconds
        self._lock = threading.Lock()
        self.statuses: Counter[tuple[str, str, int]] = Counter()
        self.spans: dict[str, list[float]] = {"query": [], "estimate": []}
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
        chance, caller, asked = random.Random(number), Caller(self._port, self._tokens[analyst]), 0
        while time.monotonic() < self._until:
            asked += 1
            kind = chance.choice(("query", "estimate"))
            body: dict[str, object] = {"sql": chance.choice(SQL), "epsilon": str(PRICE)}
            start = time.perf_counter()
            try:
                if kind == "query":
                    key = f"{number}-{asked}"
                    reply = caller.query(body | {"key": key}, key)
                else:
                    reply = caller.estimate(body)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is an error of the service
                with self._lock:
                    self.odd.append(f"{kind}: {error!r}")
                continue
            span = 1000 * (time.perf_counter() - start)
            with self._lock:
                self.statuses[analyst, kind, reply.status] += 1
                self.spans[kind].append(span)
                if reply.status != 200 and not (reply.status == 409 and analyst in POOR and kind == "query"):
                    self.odd.append(f"{kind} of {analyst}: {reply.status} {reply.body[:200]!r}")
        caller.close()


def load_test(report: Report, base: Path, workers: int) -> float:
    """Load the server, then compare what clients saw with what the ledger has; return the requests a second."""
    seconds, label = report.scale(ci=5, full=60), f"{workers} processes: "
    config = demo(base / f"loaded-{workers}")
    tokens = issue(config, dict.fromkeys((*RICH, *POOR), "analyst"))
    with served(config, report, workers) as (port, server):
        crowd = Crowd(port, tokens, seconds)
        report.say(f"{CLIENTS} clients for {seconds} s")
        before = server.processor_seconds()
        crowd.run()
        used = server.processor_seconds() - before
    asked = sum(map(len, crowd.spans.values()))
    # where other programs run as well, this says more than the requests of a second
    report.figure(f"{label}processor_ms_a_request", round(1000 * used / asked, 2))
    answered = Counter[str]()
    for (analyst, kind, status), number in crowd.statuses.items():
        if kind == "query" and status == 200:
            answered[analyst] += number
    refused = sum(n for (*_, status), n in crowd.statuses.items() if status == 409)
    return judge(report, config, Load(crowd.spans, answered, refused, crowd.odd), seconds, label)


@dataclass(frozen=True)
class Load:
    """What the clients of a load test saw."""

    spans: Mapping[str, Sequence[float]]
    answered: Counter[str]
    refused: int
    odd: Sequence[str]


def judge(report: Report, config: Path, seen: Load, seconds: float, label: str = "") -> float:
    """Compare what clients saw with what the ledger has; return the requests a second."""
    found = load(config)
    store = store_of(found, read_only=True)
    try:
        sound = examine(store, anchor_of(found)).sound
        with store.snapshot() as snapshot:
            charged = Counter(entry.analyst for entry in snapshot.entries(EntryFilter(kind="charge")))
    finally:
        store.close()
    for kind, spans in seen.spans.items():
        report.figure(f"{label}{kind}: requests", len(spans))
        for share in (0.5, 0.95, 0.99):
            report.figure(f"{label}{kind}: p{round(100 * share)}_ms", round(float(np.quantile(spans, share)), 1))
    rate = sum(map(len, seen.spans.values())) / seconds
    report.figure(f"{label}requests_a_second", round(rate, 1))
    report.figure(f"{label}refused_for_budget", seen.refused)
    middle, late = np.quantile(seen.spans["query"], (0.5, 0.99))
    report.target(f"{label}p99_of_a_query_over_its_p50", round(float(late / middle), 2), at_most=10)
    for text in seen.odd[:10]:
        report.say(text)
    report.target(f"{label}clients", CLIENTS, at_least=64)
    report.target(f"{label}errors", len(seen.odd), at_most=0)
    report.target(f"{label}overspent_charges", max(charged[name] for name in POOR) - ALLOWED, at_most=0)
    report.target(f"{label}answers_without_a_charge", sum((seen.answered - charged).values()), at_most=0)
    report.target(f"{label}charges_without_an_answer", sum((charged - seen.answered).values()), at_most=0)
    report.target(f"{label}ledger_sound", sound, at_least=1)
    return rate


def body(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="hubbub-server-") as folder:
        overhead(report, Path(folder))
        one, two = (load_test(report, Path(folder), workers) for workers in (1, 2))
        report.figure("two_workers_over_one_process", round(two / one, 2))


if __name__ == "__main__":
    run(body)
