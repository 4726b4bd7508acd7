"""Does the time of a draw tell how large the noise is? An attacker times single draws, of ours and of OpenDP.

The draws with |noise| ≥ 3·scale are one side, those with |noise| ≤ scale/3 the other, and the AUC is the chance that
the time of one of the first is above that of one of the second (or below, if that serves the attacker): ½ is no leak.
"""

import gc
import time
from array import array
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray
from scipy import stats
from tests.campaigns.frame import Report, run

from hubbub.noise.gaussian import discrete_gaussian
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import system

Draw = Callable[[], Any]

SCALES = (10, 10**6)
ROUND = 20_000


def ours(law: str, scale: int) -> Draw:
    source = system()
    if law == "laplace":
        exact = Fraction(scale)
        return lambda: discrete_laplace(scale=exact, count=1, source=source)
    variance = Fraction(scale) ** 2
    return lambda: discrete_gaussian(variance=variance, count=1, source=source)


def opendp(law: str, scale: int) -> Draw:
    domain: Any = dp.atom_domain(T="i64")
    if law == "laplace":
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
    ranks = stats.rankdata(np.concatenate([first, second]))
    above = (ranks[: len(first)].sum() - len(first) * (len(first) + 1) / 2) / (len(first) * len(second))
    return float(max(above, 1 - above))


def body(report: Report) -> None:
    dp.enable_features("contrib")
    gc.disable()
    for law, scale in report.progress([(law, s) for law in ("laplace", "gaussian") for s in SCALES], "timing"):
        name = f"{law} at scale {scale:.0e}"
        side = report.scale(ci=1000, full=10_000)
        report.target(f"{name}: AUC", round(auc(ours(law, scale), scale, side), 4), at_most=0.55)
        report.figure(f"{name}: OpenDP AUC", round(auc(opendp(law, scale), scale, report.scale(ci=200, full=2000)), 4))
        gc.collect()


if __name__ == "__main__":
    run(body)
