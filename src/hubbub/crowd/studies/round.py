"""A first-level histogram of round distributions (2005, remark 4 and § 7).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import ROUND, round_points
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, point, real, share


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    dimensions: tuple[str, ...] = ("1", "2", "3", "5", "8", "12", "16"),
    n: int = 1000,
    t: int = 10,
    c: float = 3.0,
    databases: int = 5,
) -> CrowdStudy:
    """Publish exact counts over the 2^d orthants of a ball, a sphere or a Gaussian, and isolate rows, by dimension.

    The paper announces privacy of first-level histograms for these distributions, with exp(d) regions. The adversary
    knows the distribution and guesses the mean of every occupied orthant: (±m, …, ±m), where m is the mean of the
    absolute value of a coordinate. The cube [−1, 1]^d stands beside them.
    """
    numbers.integer(n, "n", 50, 5000)
    numbers.integer(databases, "databases", 1, 100)
    c = real(c, "c", 1, 1000)
    at = integers(dimensions, "dimensions", 1, 200)
    curves: dict[str, list[tuple[float, float, float, float]]] = {shape: [] for shape in ROUND}
    for step, d in enumerate(at):
        progress(step / len(at), f"d = {d}")
        for shape in ROUND:
            rate = Rate(0, 0)
            for _ in range(databases):
                points = round_points(shape, n, d, rng)
                orthants = np.sign(build_histogram(points, t=t, depth=1).centers)
                middle = np.abs(round_points(shape, 4000, d, rng)).mean()
                rate += Rate.of(isolates_point(NeighborIndex(points), orthants * middle, c=c, t=t))
            curves[shape].append(point(d, rate))
    rows = tuple((name, *(share(y) for _, y, *_ in points)) for name, points in curves.items())
    words = (
        f"{databases} databases of {n:,} rows, c = {c:g}, t = {t}. The counts per orthant are exact.",
        "Isolation falls with the dimension for round distributions as it does for the cube. On a sphere in one "
        "dimension all rows are at two positions, so no guess isolates.",
    )
    plot = Plot(f"First-level histograms (n = {n:,}, c = {c:g}, t = {t})", "dimension d", "share of guesses", curves)
    columns = ("distribution", *(f"d = {d}" for d in at))
    return CrowdStudy("round", "Histograms of round distributions", words, columns, rows, (plot,))
