"""Does time tell what an answer hides? An attacker times single draws, of ours and of OpenDP, and answers over HTTP.

Draws with |noise| ≥ 3·scale are one side, those with |noise| ≤ scale/3 the other, and the AUC is the chance that the
time of one of the first is above that of one of the second (or below, if that serves the attacker): ½ is no leak.

Over HTTP the same question goes to two datasets that are neighbors, in random order; then the sides are the two data
sets, and the third of the answers with the most and with the least noise. The server answers on its time quantum.
"""

import gc
import random
import signal
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray
from scipy import stats
from tests.campaigns.frame import Report, run
from tests.fixtures.server_config import issue
from tests.fixtures.server_process import Caller, SpawnedServer, await_ready, free_port

from hubbub.noise.gaussian import discrete_gaussian
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import system

Draw = Callable[[], Any]

SCALES = (10, 10**6)
ROUND = 20_000

#: east and west are neighbors, as are east and wide: one person more, who in wide has 15 times the rows of all others.
SETS = ("east", "west", "wide")
ROWS, HEAVY = 20_000, 300_000
CLIENTS, WORKERS = 6, 2
COUNT = "SELECT COUNT(*) AS n FROM {} WHERE age > 50"
QUANTA = (0.1, 0.0)  # seconds: the default, and none for comparison


def ours(distribution: str, scale: int) -> Draw:
    source = system()
    if distribution == "laplace":
        exact = Fraction(scale)
        return lambda: discrete_laplace(scale=exact, count=1, source=source)
    variance = Fraction(scale) ** 2
    return lambda: discrete_gaussian(variance=variance, count=1, source=source)


def opendp(distribution: str, scale: int) -> Draw:
    domain: Any = dp.atom_domain(T="i64")
    if distribution == "laplace":
        measurement = dp.m.make_laplace(domain, dp.absolute_distance(T="i64"), float(scale))
    else:
        measurement = dp.m.make_gaussian(domain, dp.absolute_distance(T="f64"), float(scale))
    return lambda: measurement(0)


def timed(draw: Draw, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw so many times; give the values and the times in ns."""
    values, spans = array("q"), array("q")
    for _ in range(count):
        start = time.perf_counter_ns()
        drawn = draw()
        spans.append(time.perf_counter_ns() - start)
        values.append(int(drawn) if isinstance(drawn, int) else int(drawn[0]))
    return np.array(values), np.array(spans)


def area(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Give the AUC of telling the first from the second."""
    ranks = stats.rankdata(np.concatenate([first, second]))
    above = (ranks[: len(first)].sum() - len(first) * (len(first) + 1) / 2) / (len(first) * len(second))
    return float(max(above, 1 - above))


def auc(draw: Draw, scale: int, side: int) -> float:
    """Time draws until there are so many on each side."""
    timed(draw, 2000)
    large: list[NDArray[np.int64]] = []
    small: list[NDArray[np.int64]] = []
    found = 0
    while found < side:
        values, spans = timed(draw, ROUND)
        large.append(spans[np.abs(values) >= 3 * scale])
        small.append(spans[np.abs(values) <= scale / 3])
        found += len(large[-1])
    # spread evenly over all rounds: what else the machine did meanwhile is then the same for both sides
    first, second = (x[np.linspace(0, len(x) - 1, side).astype(int)] for x in map(np.concatenate, (large, small)))
    return area(first, second)


class Answer(NamedTuple):
    """One answer: which dataset, how long it took, how much noise it holds."""

    dataset: str
    seconds: float
    noise: float


def town(folder: Path, quantum: float) -> tuple[Path, dict[str, int]]:
    """Lay out the neighbors; give hubbub.yaml, and the true answer on each dataset."""
    folder.mkdir()
    random_ages = np.random.default_rng(7).integers(0, 110, ROWS)
    base = [f"{person},{age}" for person, age in enumerate(random_ages)]
    more = {"east": [], "west": ["-1,60"], "wide": ["-1,60"] * HEAVY}
    truth = int((random_ages > 50).sum())
    entries = []
    for name in SETS:
        (folder / f"{name}.csv").write_text("\n".join(["person,age", *base, *more[name], ""]))
        entries.append(
            f"  {name}: {{source: {name}.csv, unit: {{column: person}}, budget: {{epsilon: 1000000}}, "
            "columns: {person: {type: integer}, age: {type: integer, bounds: [0, 110]}}}"
        )
    caps = ", ".join(f"{name}: {{epsilon: 1000000}}" for name in SETS)
    settings = f"server: {{quantum: {quantum}, workers: 4, queue: 1000, per_minute: 1000000}}"
    config = folder / "hubbub.yaml"
    config.write_text("\n".join(["version: 1", "datasets:", *entries, f"analysts: {{ana: {{{caps}}}}}", settings, ""]))
    return config, {"east": truth, "west": truth + 1, "wide": truth + 1}


def ask(port: int, token: str, truths: dict[str, int], rounds: int, seed: int, found: list[Answer]) -> None:
    """Ask each of the three in random order, so many times."""
    chance, caller = random.Random(seed), Caller(port, token)
    for number in range(rounds):
        for place, name in enumerate(chance.sample(SETS, 3)):
            key = f"{seed}-{number}-{place}"
            body = {"sql": COUNT.format(name), "epsilon": "0.1", "key": key}
            start = time.perf_counter()
            reply = caller.query(body, key)
            span = time.perf_counter() - start
            if reply.status != 200:
                raise RuntimeError(f"status {reply.status}: {reply.body[:300]!r}")
            value = reply.json()["answer"]["columns"][0]["values"][0]
            found.append(Answer(name, span, abs(value - truths[name])))
    caller.close()


def answers(report: Report, folder: Path, quantum: float, side: int, clients: int) -> list[Answer]:
    """Start a server and let some clients ask at once."""
    config, truths = town(folder, quantum)
    token, port = issue(config, {"ana": "analyst"})["ana"], free_port()
    server = SpawnedServer(config, port, WORKERS)
    try:
        await_ready(port, server)
        ask(port, token, truths, 5, -1, [])  # the first ones load the data
        parts: list[list[Answer]] = [[] for _ in range(clients)]
        team = [
            threading.Thread(target=ask, args=(port, token, truths, side // clients, seed, part))
            for seed, part in enumerate(parts)
        ]
        report.say(f"over HTTP, quantum {quantum:g} s: {side} requests a side by {clients} clients")
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
    finally:
        server.end(signal.SIGTERM)
    if any(len(part) != 3 * (side // clients) for part in parts):
        raise RuntimeError("a client broke off")
    return [answer for part in parts for answer in part]


def over_http(report: Report) -> None:
    """Try to tell neighbors, and large noise from small, by the time that an answer takes."""
    with tempfile.TemporaryDirectory(prefix="hubbub-timing-") as base:
        for quantum in QUANTA:
            on = quantum > 0
            side, clients = (report.scale(ci=402, full=10_002), CLIENTS) if on else (report.scale(ci=100, full=1000), 1)
            found = answers(report, Path(base) / str(quantum), quantum, side, clients)
            spans = {name: np.array([a.seconds for a in found if a.dataset == name]) for name in SETS}
            noise, all_spans = np.array([a.noise for a in found]), np.array([a.seconds for a in found])
            order = np.argsort(noise, kind="stable")
            third = len(order) // 3
            figures = {
                "neighbors": area(spans["east"], spans["west"]),
                "neighbors, one with a person of 300,000 rows": area(spans["east"], spans["wide"]),
                "large noise and small": area(all_spans[order[-third:]], all_spans[order[:third]]),
            }
            name = f"over HTTP, quantum {quantum:g} s"
            report.figure(f"{name}: requests", len(found))
            report.figure(f"{name}: p50 seconds", round(float(np.median(all_spans)), 4))
            report.figure(
                f"{name}: later than one quantum", round(float((all_spans > 1.5 * quantum).mean()), 4) if on else None
            )
            # chance alone moves an AUC by .004 with 10,000 a side; with few by more, which the target must allow
            slack = 0.0 if report.full else round(5 * (1 / (6 * side)) ** 0.5, 3)
            for what, value in figures.items():
                if on:
                    report.target(f"{name}: {what}: AUC", round(value, 4), at_most=0.55 + slack)
                else:
                    report.figure(f"{name}: {what}: AUC", round(value, 4))


def body(report: Report) -> None:
    dp.enable_features("contrib")
    gc.disable()
    cases = [(distribution, scale) for distribution in ("laplace", "gaussian") for scale in SCALES]
    for distribution, scale in report.progress(cases, "timing"):
        name = f"{distribution} at scale {scale:.0e}"
        side = report.scale(ci=1000, full=10_000)
        report.target(f"{name}: AUC", round(auc(ours(distribution, scale), scale, side), 4), at_most=0.55)
        found = auc(opendp(distribution, scale), scale, report.scale(ci=200, full=2000))
        report.figure(f"{name}: OpenDP AUC", round(found, 4))
        gc.collect()
    gc.enable()
    over_http(report)


if __name__ == "__main__":
    run(body)
