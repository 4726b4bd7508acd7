"""A recursive histogram of a mixture of separated cubes (2005, remark 4).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import uniform, uniform_cubes
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, point, real, share


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    dimensions: tuple[str, ...] = ("1", "2", "3", "5", "8", "12", "16"),
    cubes: int = 3,
    half: float = 0.1,
    n: int = 1000,
    t: int = 10,
    c: float = 3.0,
    databases: int = 5,
) -> CrowdStudy:
    """Sanitize a mixture of separated cubes with a recursive histogram, and isolate rows in it, by dimension.

    Each of `cubes` cubes of half side `half` lies around a random corner of [−½, ½]^d. One adversary guesses the center
    of every occupied cell; the other also knows the cubes, and guesses the center of the part of the cell that lies in
    a cube. A single cube [−1, 1]^d stands beside them.
    """
    numbers.integer(cubes, "cubes", 1, 50)
    numbers.integer(n, "n", 50, 5000)
    numbers.integer(databases, "databases", 1, 100)
    half, c = real(half, "half", 0.001, 0.2), real(c, "c", 1, 1000)
    at = integers(dimensions, "dimensions", 1, 200)
    curves: dict[str, list[tuple[float, float, float, float]]] = {
        name: [] for name in ("cell center", "center of cell and cube", "one cube [−1, 1]^d")
    }
    for step, d in enumerate(at):
        progress(step / len(at), f"d = {d}")
        rates = dict.fromkeys(curves, Rate(0, 0))
        for _ in range(databases):
            points, centers = uniform_cubes(n, d, cubes, half, rng)
            histogram = build_histogram(points, t=t)
            low, side, _ = histogram.leaves
            nearest = NeighborIndex(centers).query(histogram.centers, t=1).which
            inner = np.clip(low, centers[nearest] - half, centers[nearest] + half)
            outer = np.clip(low + side[:, None], centers[nearest] - half, centers[nearest] + half)
            plain = uniform(n, d, rng)
            for name, crowd, guesses in zip(
                curves,
                (points, points, plain),
                (histogram.centers, (inner + outer) / 2, build_histogram(plain, t=t).centers),
                strict=True,
            ):
                rates[name] += Rate.of(isolates_point(NeighborIndex(crowd), guesses, c=c, t=t))
        for name, rate in rates.items():
            curves[name].append(point(d, rate))
    rows = tuple((name, *(share(y) for _, y, *_ in points)) for name, points in curves.items())
    words = (
        f"{databases} databases of {n:,} rows in {cubes} cubes of side {2 * half:g}; c = {c:g}, t = {t}.",
        "As the paper says, the analysis of one cube carries over to separated cubes: isolation falls with the "
        "dimension in the same way, also for an adversary who knows the cubes.",
    )
    plot = Plot(f"Mixture of {cubes} cubes (n = {n:,}, c = {c:g}, t = {t})", "dimension d", "share of guesses", curves)
    columns = ("adversary", *(f"d = {d}" for d in at))
    return CrowdStudy("cubes", "Mixtures of cubes", words, columns, rows, (plot,))
