"""An adversary who picks the few attributes to isolate in (2005, § 7, "Isolation in few dimensions").

Tested in tests/crowd/test_studies.py.
"""

from collections.abc import Callable

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.adversaries import best_projection
from hubbub.crowd.experiments import uniform
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Rate, doubling, isolates_projected
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import perturb, sample_around
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, point, real, share
from hubbub.errors import CrowdError

_IMAGINED = 12


def skewed(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Sample rows with columns like incomes: most values are small, a few are large."""
    return np.clip(np.exp(rng.standard_normal((n, d))) / 10 - 1, -1, 1)


_DATA: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {"uniform": uniform, "skewed": skewed}


def _releases(points: Floats, t: int, rng: np.random.Generator) -> dict[str, tuple[Floats, Floats]]:
    """Return for each release databases sampled given the release, and positions to choose a guess from."""
    histogram = build_histogram(points, t=t)
    low, side, _ = (np.repeat(part, histogram.leaves[2], axis=0) for part in histogram.leaves)
    moved = perturb(points, "ball", t=t, rng=rng)
    inside = np.clip(moved, -1, 1)
    radius = NeighborIndex(moved).query(moved, t=t).radius
    return {
        "histogram": (low + side[:, None] * rng.random((_IMAGINED, *low.shape)), histogram.centers),
        "ball": (
            np.clip([sample_around(moved, radius, "ball", rng) for _ in range(_IMAGINED)], -1, 1),
            inside,
        ),
    }


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    attributes: tuple[str, ...] = ("1", "2", "3", "4", "6", "12"),
    n: int = 500,
    d: int = 12,
    t: int = 10,
    c: float = 2.0,
    tries: int = 50,
    databases: int = 60,
    data: str = "skewed",
) -> CrowdStudy:
    """Let the adversary choose k of `d` attributes and a point in them, after seeing the release.

    The adversary imagines databases that fit the release, tries `tries` sets of k attributes and positions in them, and
    guesses the one that isolates best in them. (φ, c, t)-isolation asks that the guess is φ(k)·c times
    nearer to a row than to the crowd, φ(k) = 2^(d/k), because a guess about few attributes is easy. The table has both
    measures, with φ and without it, for the chosen attributes and for random ones; `data` is skewed or uniform. The
    authors call this question the most important conceptual challenge of their work.
    """
    numbers.integer(n, "n", 50, 2000)
    numbers.integer(d, "d", 2, 60)
    numbers.integer(tries, "tries", 1, 200)
    numbers.integer(databases, "databases", 1, 2000)
    c = real(c, "c", 1, 1000)
    if data not in _DATA:
        raise CrowdError("HB685", "The setting data must be uniform or skewed.", "Use --set data=uniform")
    at = integers(attributes, "attributes", 1, d)
    curves: dict[str, list[tuple[float, float, float, float]]] = {}
    for step, k in enumerate(at):
        progress(step / len(at), f"k = {k}")
        rates: dict[str, Rate] = {}
        for _ in range(databases):
            points = _DATA[data](n, d, rng)
            for name, (imagined, shown) in _releases(points, t, rng).items():
                chosen = best_projection(imagined, shown, k=k, c=c, t=t, tries=tries, rng=rng)
                at_random = rng.permutation(d)[:k].tolist()
                anyone = shown[[rng.integers(len(shown))]][:, at_random]
                for how, columns, guess in (("chosen", *chosen), ("random", at_random, anyone)):
                    for label, phi in (("φ = 2^(d/k)", doubling(d)), ("φ = 1", lambda _: 1.0)):
                        key = f"{name}, {how} attributes, {label}"
                        hit = isolates_projected(points, guess, columns, c=c, t=t, phi=phi)
                        rates[key] = rates.get(key, Rate(0, 0)) + Rate.of(hit)
        for key, rate in rates.items():
            curves.setdefault(key, []).append(point(k, rate))
    rows = tuple((name, *(share(y) for _, y, *_ in points)) for name, points in sorted(curves.items()))
    gain, where = max(
        (curves["histogram, chosen attributes, φ = 1"][i][1] - curves["histogram, random attributes, φ = 1"][i][1], k)
        for i, k in enumerate(at)
    )
    words = (
        f"{databases} databases of {n:,} {data} rows in {d} dimensions, one guess each; c = {c:g}, t = {t}.",
        "Without φ, a guess about one or two attributes isolates someone most of the time, whatever was published: in "
        "few dimensions every guess is near somebody and far from a crowd.",
        "With φ(k) = 2^(d/k) such guesses hardly count: that is the paper's claim for recursive histograms. Without φ, "
        f"choosing from the histogram gains at most {share(max(gain, 0.0))} over random attributes (k = {where}); on "
        "uniform data hardly anything.",
        "A guess that isolates in a few attributes may be a key to the person elsewhere. Isolation does not measure "
        "that; the maximum under ε of differential privacy holds for whatever attributes an adversary looks at.",
    )
    shown_curves = {name: points for name, points in curves.items() if "chosen" in name}
    plot = Plot(
        f"The adversary picks k of {d} attributes (c = {c:g})", "attributes k", "share of guesses", shown_curves
    )
    columns = ("release and guess", *(f"k = {k}" for k in at))
    return CrowdStudy("subspace", "Isolation in few attributes", words, columns, rows, (plot,))
