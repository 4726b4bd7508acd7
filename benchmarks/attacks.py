"""Attacks at scale: how fast, and how well they still do.

    .venv/bin/python -m benchmarks.attacks        (HUBBUB_CAMPAIGN=full: 10,000 people)

Reconstruction by least squares from 8 random sums a person, each off by noise of half of √n: the matrix of the sums is
never written out. Dense sums (each person in half of them) are kept as bits and unpacked a block at a time; short ones
(64 people each) as lists. Isolation: the crowd of every one of 100,000 points in 16 dimensions, and of every moved one.
"""

import time

import numpy as np
from tests.campaigns.frame import Report, run

from hubbub.attacks.decoding import LinearQueries, few, least_squares, packed, rounded
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.perturbation import perturb

_SEED = 2006
_EACH = 8


def reconstruction(report: Report) -> None:
    people = report.scale(ci=2_000, full=10_000)
    generator = np.random.default_rng(_SEED)
    secret = generator.integers(0, 2, people).astype(np.float64)
    count = _EACH * people
    report.figure("people", people)
    report.figure("questions", count)
    kinds: tuple[tuple[str, LinearQueries, float, float], ...] = (
        ("dense", packed(people, count, generator), 0.5 * people**0.5, 0.88),
        ("short", few(people, count, 64, generator), 0.5 * 64**0.5, 0.99),
    )
    for name, questions, noise, least in report.progress(kinds, "reconstruction"):
        answers = questions.ask(secret) + generator.normal(0, noise, count)
        start, busy = time.perf_counter(), time.process_time()
        guess = rounded(least_squares(questions, answers))
        took, busy = time.perf_counter() - start, time.process_time() - busy
        report.figure(f"{name}_noise", round(noise, 2))
        report.figure(f"{name}_processor_seconds", round(busy, 2))
        report.target(f"{name}_seconds", round(took, 2), at_most=60)
        report.target(f"{name}_right", float((guess == secret).mean()), at_least=least)


def isolation(report: Report) -> None:
    """Move points within their crowds, and judge every moved point: two searches for all neighbors in d = 16."""
    points = np.random.default_rng(_SEED).uniform(-1, 1, (report.scale(ci=10_000, full=100_000), 16))
    report.figure("points", len(points))
    start, busy = time.perf_counter(), time.process_time()
    moved = perturb(points, "ball", t=10, rng=np.random.default_rng(_SEED))
    report.figure("crowds_seconds", round(time.perf_counter() - start, 2))
    report.figure("crowds_processor_seconds", round(time.process_time() - busy, 2))
    start, busy = time.perf_counter(), time.process_time()
    found = Rate.of(isolates_point(NeighborIndex(points), moved, c=4, t=10))
    report.figure("isolation_seconds", round(time.perf_counter() - start, 2))
    # of the processor, since a busy machine shares it out; with nothing else to do it is at most the time itself
    report.target("isolation_processor_seconds", round(time.process_time() - busy, 2), at_most=60)
    report.target("isolated", found.share, at_most=0.001)


def body(report: Report) -> None:
    reconstruction(report)
    isolation(report)


if __name__ == "__main__":
    run(body)
