"""How fast noise is drawn, beside OpenDP and numpy in the same run.

Rates are draws for each second of processor time of this process, which is what one core gives whatever else the
machine does. numpy samples floats from the continuous distributions, neither exact nor integer: a yardstick, not a
rival.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np
import opendp.prelude as dp
from tests.campaigns.frame import Report, run

from hubbub.noise.gaussian import discrete_gaussian
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import system

SCALES = (10, 10**6)
VECTOR = 10**6

Draw = Callable[[int], object]


def ours(distribution: str, scale: int) -> Draw:
    if distribution == "laplace":
        return lambda count: discrete_laplace(scale=Fraction(scale), count=count, source=system())
    return lambda count: discrete_gaussian(variance=Fraction(scale) ** 2, count=count, source=system())


def opendp(distribution: str, scale: int) -> Draw:
    domain: Any = dp.vector_domain(dp.atom_domain(T="i64"))
    if distribution == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), float(scale))
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), float(scale))
    return lambda count: measurement([0] * count)


def numpys(distribution: str, scale: int) -> Draw:
    generator = np.random.default_rng()
    if distribution == "laplace":
        return lambda count: generator.laplace(0.0, scale, count)
    return lambda count: generator.normal(0.0, scale, count)


def rate(draw: Draw, count: int, rounds: int) -> float:
    """Give draws a second of processor time, the median of some rounds after one that warms up."""
    draw(count // 10)
    rates = []
    for _ in range(rounds):
        start = time.process_time()
        draw(count)
        rates.append(count / (time.process_time() - start))
    return median(rates)


def single(draw: Draw, times: int) -> float:
    """Give the processor time of one draw, in µs, the median of ten rounds after one that warms up."""
    spans = []
    for _ in range(11):
        start = time.process_time()
        for _ in range(times):
            draw(1)
        spans.append((time.process_time() - start) / times)
    return median(spans[1:]) * 1e6


def body(report: Report) -> None:
    dp.enable_features("contrib")
    cases = [(distribution, scale) for distribution in ("laplace", "gaussian") for scale in SCALES]
    for distribution, scale in report.progress(cases, "noise"):
        name = f"{distribution} at scale {scale:.0e}"
        mine = rate(ours(distribution, scale), VECTOR, report.scale(ci=3, full=9))
        theirs = rate(opendp(distribution, scale), report.scale(ci=30_000, full=VECTOR), 1)
        report.target(f"{name}: draws/s", round(mine), at_least=5e6)
        report.figure(f"{name}: OpenDP draws/s", round(theirs))
        report.figure(f"{name}: numpy draws/s", round(rate(numpys(distribution, scale), VECTOR, 3)))
        report.target(f"{name}: times OpenDP", round(mine / theirs, 1), at_least=40)
        report.target(f"{name}: single draw µs", round(single(ours(distribution, scale), 1000), 2), at_most=50)
        report.figure(f"{name}: OpenDP single draw µs", round(single(opendp(distribution, scale), 100), 2))


if __name__ == "__main__":
    run(body)
