"""Experiments: how often each adversary isolates a person, by dimension, crowd size and distance ratio.

Each database has fresh data, so a rate is over databases, points and noise. Guesses about one database are not
independent; the intervals assume that they are, and are therefore slightly too narrow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from hubbub.answers.chart import Point
from hubbub.crowd import adversaries
from hubbub.crowd.cross_training import cross_train
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Rate, isolates_among, isolates_point
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import Shape, directions, perturb
from hubbub.crowd.rerelease import PerturbedRelease, average_releases, perturb_afresh, perturb_again
from hubbub.crowd.theory import needed_factor

#: An experiment: a function of points, c, t and randomness that returns a success rate.
Experiment = Callable[[Floats, float, int, np.random.Generator], Rate]


def uniform(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Sample uniform points of the cube [-1, 1]^d, the only distribution that the paper's proofs cover."""
    return rng.uniform(-1, 1, (n, d))


def uniform_cubes(n: int, d: int, cubes: int, half: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Sample points of separated cubes around random corners of [-½, ½]^d; return them and the centers of the cubes."""
    centers = rng.choice((-0.5, 0.5), (cubes, d))
    return centers[rng.integers(0, cubes, n)] + rng.uniform(-half, half, (n, d)), centers


#: Distributions in the cube [-1, 1]^d: the round ones of § 5, and the cube itself.
ROUND = ("ball", "sphere", "Gaussian", "cube")


def round_points(shape: str, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Sample points of one of `ROUND`; the Gaussian has deviation ¼ and is clamped to the cube."""
    if shape == "cube":
        return uniform(n, d, rng)
    if shape == "Gaussian":
        return np.clip(rng.normal(0, 0.25, (n, d)), -1, 1)
    radius = rng.random(n) ** (1 / d) if shape == "ball" else np.ones(n)
    points: Floats = directions(n, d, rng) * radius[:, None]
    return np.clip(points, -1, 1)


def by_cell_center(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
    """Recursive histogram: guess the center of every occupied cell."""
    del rng
    guesses = adversaries.cell_centers(build_histogram(points, t=t))
    return Rate.of(isolates_point(NeighborIndex(points), guesses, c=c, t=t))


def by_half(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
    """Recursive histogram: the adversary knows half of the points and must isolate one of the others."""
    known = rng.random(len(points)) < 0.5
    guesses = adversaries.knowing_some(build_histogram(points, t=t), points[known], rng=rng)
    return Rate.of(isolates_among(NeighborIndex(points), guesses, points[~known], c=c, t=t))


def by_itself(shape: Shape) -> Experiment:
    """Perturbed points: guess each published point unchanged."""

    def run(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
        guesses = adversaries.published_points(perturb(points, shape, t=t, rng=rng))
        return Rate.of(isolates_point(NeighborIndex(points), guesses, c=c, t=t))

    return run


def by_posterior(shape: Shape) -> Experiment:
    """Perturbed points: guess the posterior mean of each published point."""

    def run(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
        guesses = adversaries.posterior_of_perturbation(perturb(points, shape, t=t, rng=rng), t=t)
        return Rate.of(isolates_point(NeighborIndex(points), guesses, c=c, t=t))

    return run


def by_training(points: Floats, c: float, t: int, rng: np.random.Generator) -> Rate:
    """Cross-training: guess the posterior mean of each perturbed point in its cell."""
    guesses = adversaries.posterior_of_cross_training(cross_train(points, t=t, rng=rng))
    return Rate.of(isolates_point(NeighborIndex(points), guesses, c=c, t=t))


EXPERIMENTS: Mapping[str, Experiment] = {
    "histogram: cell center": by_cell_center,
    "histogram: half is known": by_half,
    "ball: the point itself": by_itself("ball"),
    "ball: posterior mean": by_posterior("ball"),
    "cross-training: posterior mean": by_training,
}


def rate(experiment: Experiment, *, n: int, d: int, t: int, c: float, databases: int, rng: np.random.Generator) -> Rate:
    """Sum the results of an experiment over databases of uniform points."""
    return sum((experiment(uniform(n, d, rng), c, t, rng) for _ in range(databases)), Rate(0, 0))


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
    """Run every experiment while one of d, t and c varies."""
    curves: dict[str, list[Point]] = {name: [] for name in EXPERIMENTS}
    for step, value in enumerate(values):
        setting = {"n": n, "d": d, "t": t, "c": c, over: value}
        for name, experiment in EXPERIMENTS.items():
            result = rate(
                experiment, n=n, d=int(setting["d"]), t=int(setting["t"]), c=setting["c"], databases=databases, rng=rng
            )
            curves[name].append((float(value), result.share, *result.interval()))
        if progress is not None:
            progress((step + 1) / len(values), f"{over} = {value:g}")
    return curves


def two_points(d: int, *, c: float, trials: int, rng: np.random.Generator) -> Rate:
    """Two points of the unit sphere, each moved by their distance, which is known (2005, § 5.1, first case)."""
    hits = []
    for _ in range(trials):
        pair = directions(2, d, rng)
        distance = float(np.linalg.norm(pair[0] - pair[1]))
        moved = pair + distance * directions(2, d, rng)
        guess = adversaries.knowing_the_distance(moved, apart=distance, c=c, rng=rng)
        hits.append(_isolates(pair, guess, c))
    return Rate(sum(hits), trials)


def all_but_one(d: int, *, n: int, c: float, trials: int, rng: np.random.Generator) -> Rate:
    """All but one of n points of the unit sphere are known, and the perturbed one is published (second case)."""
    hits = []
    for _ in range(trials):
        points = directions(n, d, rng)
        away = np.linalg.norm(points[1:] - points[0], axis=1)
        moved = points[0] + away.min() * directions(1, d, rng)[0]
        guess = adversaries.knowing_all_but_one(points[1:], moved, c=c, rng=rng)
        hits.append(bool(c * np.linalg.norm(guess - points[0]) < np.linalg.norm(points[1:] - guess, axis=1).min()))
    return Rate(sum(hits), trials)


def sweep_informed(
    over: str,
    values: Sequence[float],
    *,
    rng: np.random.Generator,
    d: int = 3,
    c: float = 4.0,
    n: int = 50,
    trials: int = 400,
) -> dict[str, list[Point]]:
    """Run the experiments with a well-informed adversary, t = 2, while d or c varies."""
    curves: dict[str, list[Point]] = {"two points, distance known": [], f"all but one of {n} known": []}
    for value in values:
        setting = {"d": d, "c": c, over: value}
        dimension = int(setting["d"])
        results = (
            two_points(dimension, c=setting["c"], trials=trials, rng=rng),
            all_but_one(dimension, n=n, c=setting["c"], trials=trials, rng=rng),
        )
        for curve, result in zip(curves.values(), results, strict=True):
            curve.append((float(value), result.share, *result.interval()))
    return curves


def _isolates(pair: Floats, guess: Floats, c: float) -> bool:
    near, far = sorted(np.linalg.norm(pair - guess, axis=1).tolist())
    return bool(c * near < far)


def rough_distribution(d: int, *, n: int, t: int, trials: int, rng: np.random.Generator) -> tuple[Rate, Rate]:
    """Compare guessing with and without the histogram where the data is not smooth (2005, remark 2).

    Each of the 2^d first cells holds positions p₁, p₂, …, with a share 2^{−i} of the cell's mass at p_i. An adversary
    who sees that a cell holds m points guesses its p_{log m}; one who knows only n guesses likewise in any cell.
    """
    informed, blind = [], []
    for _ in range(trials):
        cells = rng.integers(0, 1 << d, n)
        positions = rng.geometric(0.5, n)
        occupied, count = np.unique(cells, return_counts=True)
        chosen = rng.integers(len(occupied))
        informed.append(_isolates_place(cells, positions, int(occupied[chosen]), int(count[chosen]), t))
        blind.append(_isolates_place(cells, positions, int(rng.integers(1 << d)), max(1, round(n / 2**d)), t))
    return Rate(sum(informed), trials), Rate(sum(blind), trials)


def _isolates_place(cells: np.ndarray, positions: np.ndarray, cell: int, m: int, t: int) -> bool:
    guess = max(1, round(np.log2(m)))
    count = int(((cells == cell) & (positions == guess)).sum())
    return 1 <= count < t  # the guess is the position itself: at distance 0, with fewer than t points


def measure_factors(d: int, *, trials: int, rng: np.random.Generator) -> Floats:
    """Measure lemma 5: the factor by which the ball of the posterior mean must grow to contain the parent cell."""
    inside = rng.random((trials, d))
    moved = inside + rng.standard_normal((trials, d))
    ones = np.ones(trials)
    guesses = adversaries.posterior_mean(moved, np.zeros((trials, d)), ones, ones)
    return needed_factor(guesses, inside, np.zeros((trials, d)), 2 * ones)


def sweep_rereleases(
    points: Floats,
    shape: Shape,
    times: Iterable[int],
    *,
    t: int,
    c: float,
    rng: np.random.Generator,
    keep: bool,
    leaving: float = 0.0,
) -> list[Point]:
    """Publish perturbed points repeatedly, average them, and measure how many points are isolated.

    Before each further release a share `leaving` of the second half of the people is replaced; the first half stays.
    """
    n, stay = len(points), len(points) // 2 if leaving else len(points)
    who, current = np.arange(n), points.copy()
    releases: list[PerturbedRelease] = []
    curve: list[Point] = []
    for most in sorted(times):
        while len(releases) < most:
            first = not releases or not keep
            if releases and leaving:
                gone = stay + rng.permutation(n - stay)[: round(leaving * n)]
                current[gone] = uniform(len(gone), points.shape[1], rng)
                who = who.copy()
                who[gone] = np.arange(who.max() + 1, who.max() + 1 + len(gone))
            releases.append(
                perturb_afresh(current.copy(), who, shape, t=t, rng=rng)
                if first
                else perturb_again(releases[-1], current.copy(), who, shape, t=t, rng=rng)
            )
        people, guesses = average_releases(releases)
        judged = NeighborIndex(current)
        result = Rate.of(isolates_point(judged, guesses[people < stay], c=c, t=t))
        curve.append((float(most), result.share, *result.interval()))
    return curve
