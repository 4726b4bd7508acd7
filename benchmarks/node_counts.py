"""Triangles and stars under node privacy on real friendships, beside other ways to answer with the same promise.

naive   Laplace noise for what one node can move among so many nodes
r2t     race to the top (Dong and others 2022): the linear program at all powers of two, solved exactly by HiGHS, each
        with noise and a penalty; the largest is the answer. The truth and the program's value are the same for both.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.node_counts
"""

import time
from collections.abc import Callable
from fractions import Fraction
from math import comb, log, log2
from typing import Any

import numpy as np
from benchmarks.accuracy_graphs import ENDS, _edges
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array
from tests.campaigns.frame import Report, run

from hubbub.analyses.base import Setting
from hubbub.analyses.graphs import answers
from hubbub.analyses.graphs.degrees import listed_triangles, stars
from hubbub.analyses.graphs.edges import Graph
from hubbub.analyses.graphs.node_counts import NodeCount
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.noise.source import system
from hubbub.sql.bounding import RenderOptions

EPSILONS = (Fraction(1), Fraction(2))
#: The failure probability that R2T's penalty is for, as published.
_BETA = 0.1

Errors = NDArray[np.float64]


def measure(report: Report) -> None:
    name, whole = _edges()
    report.figure("graph", f"{name}: {whole.nodes} nodes, {whole.size} edges")
    listed = np.concatenate(list(listed_triangles(whole)), axis=1)
    race = _race(report, whole, listed)
    for what, truth, largest in (
        ("triangles", listed.shape[1], comb(whole.nodes - 1, 2)),
        ("stars2", stars(whole, 2), 3 * comb(whole.nodes - 1, 2)),
        ("stars3", stars(whole, 3), 4 * comb(whole.nodes - 1, 3)),
    ):
        report.figure(what, truth)
        totals: list[int] = []
        for epsilon in EPSILONS:
            count = _prepared(whole, what, epsilon)
            if not totals:
                start = time.perf_counter()
                totals = count.levels.totals(whole)
                report.figure(f"{what}_all_bounds_seconds", time.perf_counter() - start)
            errors = _errors(count, totals, truth, report.scale(ci=50, full=2000))
            report.figure(f"{what}_median_error_{epsilon}", float(np.median(errors)))
            report.figure(f"{what}_mean_error_{epsilon}", float(np.mean(errors)))
            report.figure(f"{what}_naive_median_error_{epsilon}", largest / float(epsilon) * log(2) / truth)
            if what == "triangles":
                raced = np.array([abs(race(epsilon) - truth) / truth for _ in range(report.scale(ci=50, full=2000))])
                report.figure(f"r2t_median_error_{epsilon}", float(np.median(raced)))
                report.target(
                    f"{what}_error_beside_r2t_{epsilon}", float(np.median(errors) / np.median(raced)), at_most=1
                )


def _prepared(whole: Graph, what: str, epsilon: Fraction) -> NodeCount:
    bounds = Bounds(Fraction(0), Fraction(whole.nodes - 1))
    columns = tuple(Column(end, Kind.INTEGER, bounds) for end in ENDS)
    table = Table("edges", columns, PrivacyUnit(None), Relation.ADD_REMOVE)
    setting = Setting({"edges": table}, epsilon, Fraction(0), RenderOptions("salt"))
    if what == "triangles":
        found = answers.triangle_count(setting, table="edges", ends=ENDS, protects="node")
    else:
        found = answers.star_count(setting, table="edges", ends=ENDS, k=int(what[-1]), protects="node")
    assert isinstance(found, NodeCount)
    return found


def _errors(count: NodeCount, totals: list[int], truth: int, samples: int) -> Errors:
    """Relative errors of many answers, with the truncated numbers computed once."""
    source, moved = system(), count.levels.moved(count.relation)
    scores = np.tile(count.scores(totals), (samples, 1))
    places = count.choice.sample_each(scores, source)
    scaled = np.array([count.scaled(totals, place) for place in range(len(totals))], dtype=np.int64)
    noisy = count.mechanism.sample(scaled[places], source)
    sizes = np.array([float(Fraction(each, count.mechanism.sensitivity)) for each in moved])
    errors: Errors = np.abs(np.maximum(noisy * sizes[places], 0) - truth) / truth
    return errors


def _race(report: Report, whole: Graph, listed: NDArray[np.int64]) -> Callable[[Fraction], float]:
    """Solve the linear program at all powers of two, and return what samples an answer of R2T."""
    size, most = listed.shape[1], int(np.bincount(listed.ravel()).max())
    rows, columns = listed.ravel(), np.tile(np.arange(size), 3)
    matrix: Any = csr_array((np.ones(3 * size), (rows, columns)), shape=(whole.nodes, size))
    rounds = int(np.ceil(log2(comb(whole.nodes - 1, 2))))
    values, start = [], time.perf_counter()
    for power in range(1, rounds + 1):
        bound = 1 << power
        if bound >= most:
            values.append(float(size))
            continue
        program = linprog(
            -np.ones(size), A_ub=matrix, b_ub=np.full(whole.nodes, bound), bounds=(0, 1), method="highs-ipm"
        )
        values.append(-float(program.fun or 0))
    report.figure("r2t_linear_programs_seconds", time.perf_counter() - start)
    chance, bounds = np.random.default_rng(1), 2.0 ** np.arange(1, rounds + 1)

    def answer(epsilon: Fraction) -> float:
        scales = rounds * bounds / float(epsilon)
        penalties = rounds * log(rounds / _BETA) * bounds / float(epsilon)
        return max(0.0, float(np.max(np.array(values) + chance.laplace(0, scales) - penalties)))

    return answer


if __name__ == "__main__":
    run(measure)
