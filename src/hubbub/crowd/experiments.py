"""How often each adversary isolates somebody, over dimension, crowd and distance: rates with intervals, and curves.

Data is drawn anew for each database, so that a rate is over databases, points and noise. Guesses at one database are
not independent of each other; intervals take them as if they were, and are a little too narrow for that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from hubbub.answers.chart import Point, lines
from hubbub.crowd import adversaries
from hubbub.crowd.changing import Published, again, anew, averaged
from hubbub.crowd.histogram import recursive
from hubbub.crowd.isolation import Rate, point, victims
from hubbub.crowd.neighbors import Crowd, Floats
from hubbub.crowd.perturb import Shape, directions, perturbed
from hubbub.crowd.theory import needed_factor
from hubbub.crowd.training import cross_trained

#: An experiment: points, c, t and randomness to a rate.
Experiment = Callable[[Floats, float, int, np.random.Generator], Rate]


def uniform(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Draw points of the cube [-1, 1]^d: the one distribution that the paper's proofs are about."""
    return rng.uniform(-1, 1, (n, d))


def by_cell_centre(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
    """Recursive histogram; the middle of every cell with somebody in it is guessed."""
    del rng
    guesses = adversaries.cell_centres(recursive(points, t=t))
    return Rate.of(point(Crowd(points), guesses, c=c, t=t))


def by_half(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
    """Recursive histogram; the adversary knows half of the points, and must isolate one of the others."""
    known = rng.random(len(points)) < 0.5
    guesses = adversaries.knowing_some(recursive(points, t=t), points[known], rng=rng)
    return Rate.of(victims(Crowd(points), guesses, points[~known], c=c, t=t))


def by_itself(shape: Shape) -> Experiment:
    """Round noise; each published point is guessed as it is."""

    def run(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
        guesses = adversaries.itself(perturbed(points, shape, t=t, rng=rng))
        return Rate.of(point(Crowd(points), guesses, c=c, t=t))

    return run


def by_posterior(shape: Shape) -> Experiment:
    """Round noise; the posterior mean of each published point is guessed."""

    def run(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
        guesses = adversaries.of_round_noise(perturbed(points, shape, t=t, rng=rng), t=t)
        return Rate.of(point(Crowd(points), guesses, c=c, t=t))

    return run


def by_training(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
    """Cross-training; the posterior mean of each moved point in its cell is guessed."""
    guesses = adversaries.of_cross_training(cross_trained(points, t=t, rng=rng))
    return Rate.of(point(Crowd(points), guesses, c=c, t=t))


EXPERIMENTS: Mapping[str, Experiment] = {
    "histogram: cell centre": by_cell_centre,
    "histogram: half is known": by_half,
    "ball: the point itself": by_itself("ball"),
    "ball: posterior mean": by_posterior("ball"),
    "cross-training: posterior mean": by_training,
}


def rate(experiment: Experiment, *, n: int, d: int, t: int, c: float, databases: int, rng: np.random.Generator) -> Rate:
    """Add up an experiment over databases of uniform points."""
    found = (experiment(uniform(n, d, rng), c, t, rng) for _ in range(databases))
    return sum(found, Rate(0, 0))


def sweep(
    over: str,
    values: Sequence[float],
    *,
    rng: np.random.Generator,
    n: int = 1000,
    d: int = 5,
    t: int = 10,
    c: float = 3.0,
    databases: int = 5,
    progress: Callable[[float, str], None] | None = None,
) -> dict[str, list[Point]]:
    """Measure every experiment while one of d, t and c changes."""
    curves: dict[str, list[Point]] = {name: [] for name in EXPERIMENTS}
    for step, value in enumerate(values):
        where = {"n": n, "d": d, "t": t, "c": c, over: value}
        for name, experiment in EXPERIMENTS.items():
            found = rate(
                experiment, n=n, d=int(where["d"]), t=int(where["t"]), c=where["c"], databases=databases, rng=rng
            )
            curves[name].append((float(value), found.share, *found.interval()))
        if progress is not None:
            progress((step + 1) / len(values), f"{over} = {value:g}")
    return curves


def drawing(over: str, curves: Mapping[str, Sequence[Point]], *, note: str) -> str:
    """Draw a sweep."""
    words = {"d": "dimension d", "t": "crowd t", "c": "distance factor c", "T": "releases averaged"}[over]
    title = f"Who isolates somebody ({note})"
    return lines(curves, title=title, across=words, up="share of guesses", most=1.0, logarithmic=over == "T")


def two_points(d: int, *, c: float, trials: int, rng: np.random.Generator) -> Rate:
    """Two points of the unit sphere, each moved by their distance, which is known (2005, § 5.1, first case)."""
    hits = []
    for _ in range(trials):
        pair = directions(2, d, rng)
        apart = float(np.linalg.norm(pair[0] - pair[1]))
        moved = pair + apart * directions(2, d, rng)
        guess = adversaries.knowing_the_distance(moved, apart=apart, c=c, rng=rng)
        hits.append(_isolates(pair, guess, c))
    return Rate(sum(hits), trials)


def all_but_one(d: int, *, n: int, c: float, trials: int, rng: np.random.Generator) -> Rate:
    """All of n points of the unit sphere are known but one, of which the moved one is published (second case)."""
    hits = []
    for _ in range(trials):
        points = directions(n, d, rng)
        away = np.linalg.norm(points[1:] - points[0], axis=1)
        moved = points[0] + away.min() * directions(1, d, rng)[0]
        guess = adversaries.knowing_all_but_one(points[1:], moved, c=c, rng=rng)
        hits.append(bool(c * np.linalg.norm(guess - points[0]) < np.linalg.norm(points[1:] - guess, axis=1).min()))
    return Rate(sum(hits), trials)


def informed(
    over: str,
    values: Sequence[float],
    *,
    rng: np.random.Generator,
    d: int = 3,
    c: float = 4.0,
    n: int = 50,
    trials: int = 400,
) -> dict[str, list[Point]]:
    """Measure those who know nearly everything, t = 2, while d or c changes."""
    curves: dict[str, list[Point]] = {"two points, distance known": [], f"all but one of {n} known": []}
    for value in values:
        where = {"d": d, "c": c, over: value}
        at = int(where["d"])
        found = (
            two_points(at, c=where["c"], trials=trials, rng=rng),
            all_but_one(at, n=n, c=where["c"], trials=trials, rng=rng),
        )
        for curve, rate_found in zip(curves.values(), found, strict=True):
            curve.append((float(value), rate_found.share, *rate_found.interval()))
    return curves


def _isolates(pair: Floats, guess: Floats, c: float) -> bool:
    near, far = sorted(np.linalg.norm(pair - guess, axis=1).tolist())
    return bool(c * near < far)


def rough(d: int, *, n: int, t: int, trials: int, rng: np.random.Generator) -> tuple[Rate, Rate]:
    """Show that a histogram isolates where the data is not smooth (2005, remark 2), beside guessing without it.

    Every one of the 2^d first cells holds places p₁, p₂, …, with a share 2^{−i} of the cell's mass at p_i. Who sees
    that a cell holds m points guesses its p_{log m}; who sees nothing guesses so in any cell, knowing n alone.
    """
    told, blind = [], []
    for _ in range(trials):
        cells = rng.integers(0, 1 << d, n)
        places = rng.geometric(0.5, n)
        seen, count = np.unique(cells, return_counts=True)
        chosen = rng.integers(len(seen))
        told.append(_held(cells, places, int(seen[chosen]), int(count[chosen]), t))
        blind.append(_held(cells, places, int(rng.integers(1 << d)), max(1, round(n / 2**d)), t))
    return Rate(sum(told), trials), Rate(sum(blind), trials)


def _held(cells: np.ndarray, places: np.ndarray, cell: int, m: int, t: int) -> bool:
    guess = max(1, round(np.log2(m)))
    there = int(((cells == cell) & (places == guess)).sum())
    return 1 <= there < t  # the guess is the place itself: at distance 0, with fewer than t there


def factors(d: int, *, trials: int, rng: np.random.Generator) -> Floats:
    """Measure lemma 5: how much the ball of the posterior mean must grow to hold the parent cell."""
    inside = rng.random((trials, d))
    moved = inside + rng.standard_normal((trials, d))
    ones = np.ones(trials)
    guesses = adversaries.posterior_mean(moved, np.zeros((trials, d)), ones, ones)
    return needed_factor(guesses, inside, np.zeros((trials, d)), 2 * ones)


def re_released(
    points: Floats, shape: Shape, times: Iterable[int], *, t: int, c: float, rng: np.random.Generator, keep: bool
) -> list[Point]:
    """Publish moved points again and again, average what was published, and see who is isolated by then."""
    who, crowd = np.arange(len(points)), Crowd(points)
    releases: list[Published] = []
    curve: list[Point] = []
    for most in sorted(times):
        while len(releases) < most:
            first = not releases or not keep
            releases.append(
                anew(points, who, shape, t=t, rng=rng)
                if first
                else again(releases[-1], points, who, shape, t=t, rng=rng)
            )
        _, guesses = averaged(releases)
        found = Rate.of(point(crowd, guesses, c=c, t=t))
        curve.append((float(most), found.share, *found.interval()))
    return curve
