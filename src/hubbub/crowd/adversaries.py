"""Adversaries who try to isolate a person in a sanitized database; `isolation` judges their guesses.

Tested in tests/crowd/test_sanitizers.py.
"""

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.cross_training import CrossTrainedData
from hubbub.crowd.histogram import RecursiveHistogram
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import directions

#: Nodes of the quadrature over a cell: the integrand is a normal density over at most a few deviations.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_SPHERE_WIDTH = 0.05  # tolerated distance of a candidate from the unit sphere


def cell_centers(histogram: RecursiveHistogram) -> Floats:
    """Guess the center of every occupied cell."""
    return histogram.centers


def published_points(moved: Floats) -> Floats:
    """Guess each published point unchanged."""
    return moved


def posterior_mean(moved: Floats, low: Floats, side: Floats, deviation: Floats) -> Floats:
    """Guess the mean of v given v′ = v + N(0, deviation²), where v was uniform in the cell at `low` with side `side`.

    The posterior is a normal density truncated to the cell, per coordinate; its mean is computed by quadrature.
    """
    inside = low[:, :, None] + side[:, None, None] * (_NODES + 1) / 2
    exponent = -0.5 * np.square((inside - moved[:, :, None]) / deviation[:, None, None])
    weight = _WEIGHTS * np.exp(exponent - exponent.max(axis=2, keepdims=True))
    mean: Floats = (weight * inside).sum(axis=2) / weight.sum(axis=2)
    return mean


def posterior_of_cross_training(given: CrossTrainedData) -> Floats:
    """Guess the posterior mean of every point of A, whose cell is known."""
    return posterior_mean(given.moved, given.cells.low, given.cells.side, given.cells.side)


def posterior_of_perturbation(moved: Floats, *, t: int) -> Floats:
    """Guess the posterior mean under a uniform prior on the cube, estimating the noise by the published t-radii."""
    n, d = moved.shape
    radius = NeighborIndex(moved).query(moved, t=t).radius
    deviation = np.maximum(radius, 1e-9) / np.sqrt(d)
    return posterior_mean(moved, np.full((n, d), -1.0), np.full(n, 2.0), deviation)


def knowing_some(histogram: RecursiveHistogram, known: Floats, *, rng: np.random.Generator, tries: int = 32) -> Floats:
    """Guess the unknown points from the cells whose count the known points do not explain.

    In each such cell, of its center and some random positions, guess the one farthest from the known points.
    """
    low, side, count = histogram.leaves
    located = histogram.locate(known)
    _, cell = np.unique(np.vstack([low, located.low[located.count > 0]]), axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    explained = np.bincount(cell[len(low) :], minlength=int(cell.max()) + 1)[cell[: len(low)]]
    rest = count > explained
    low, side = low[rest], side[rest]
    inside = np.concatenate([np.full((1, len(low), low.shape[1]), 0.5), rng.random((tries, *low.shape))])
    guesses = low + side[:, None] * inside
    away = NeighborIndex(known).query(guesses.reshape(-1, low.shape[1]), t=1).nearest.reshape(guesses.shape[:2])
    best: Floats = np.take_along_axis(guesses, away.argmax(axis=0)[None, :, None], 0)[0]
    return best


def knowing_attributes(histogram: RecursiveHistogram, targets: Floats, known: int) -> Floats:
    """Complete the first `known` coordinates of each target by the likeliest cell of the histogram that fits them.

    Given the histogram, a row of a cell is uniform in it, so a cell that contains the known coordinates has posterior
    weight count/side^known. Without a cell that fits, and for the root, the middle of the cube completes them.
    """
    low, side, count = histogram.leaves
    with np.errstate(divide="ignore"):
        weight = np.log(count) - known * np.log(side)
    guesses = np.zeros_like(targets)
    guesses[:, :known] = targets[:, :known]
    for row, target in enumerate(targets):
        inside = (low[:, :known] <= target[:known]) & (target[:known] <= low[:, :known] + side[:, None])
        fits = np.flatnonzero(inside.all(axis=1))
        if len(fits):
            best = fits[weight[fits].argmax()]
            guesses[row, known:] = low[best, known:] + side[best] / 2
    return guesses


def best_projection(
    imagined: Floats, candidates: Floats, *, k: int, c: float, t: int, tries: int, rng: np.random.Generator
) -> tuple[list[int], Floats]:
    """Choose k coordinates and a position in them that isolates most often in databases imagined from the release.

    `imagined` are databases (first axis) sampled given the release, and `candidates` are positions to choose from: both
    use only what is published.
    """
    d = imagined.shape[2]
    best: tuple[float, list[int], Floats] | None = None
    for _ in range(tries):
        columns = sorted(rng.permutation(d)[:k].tolist())
        guess = candidates[rng.integers(len(candidates)), columns]
        away = np.linalg.norm(imagined[:, :, columns] - guess, axis=2)
        away.partition((0, t - 1), axis=1)
        # the mean of the clipped ratio ranks guesses finer than the share of successes in a few databases
        score = float(np.minimum(away[:, t - 1] / np.maximum(away[:, 0], 1e-12), 4 * c).mean())
        if best is None or score > best[0]:
            best = score, columns, guess[None]
    if best is None:
        raise ValueError("tries must be positive")
    return best[1], best[2]


def knowing_all_but_one(
    known: Floats, moved: Floats, *, c: float, rng: np.random.Generator, draws: int = 300
) -> Floats:
    """Guess the only unknown point of the unit sphere from its image under the sphere sanitizer with t = 2.

    The point x is as far from its image as from its nearest known neighbor, so it lies on the border of the image's
    Voronoi cell among the known points: one position per direction u. Given the image, a direction has the density
    p(x)/|1 − ∂τ/∂r| (the factors r^{d−1} of surface and noise cancel). Of the sampled candidates, guess the one that
    isolates the most weight of the others.
    """
    away = known - moved
    squares = np.square(away).sum(axis=1)
    u = directions(draws, known.shape[1], rng)
    with np.errstate(divide="ignore"):
        along = u @ away.T
        far = np.where(along > 0, squares / (2 * np.maximum(along, 1e-12)), np.inf)
    nearest = far.argmin(axis=1)
    radius = far[np.arange(draws), nearest]
    u, nearest, radius = u[radius < 4], nearest[radius < 4], radius[radius < 4]
    if not len(u):
        return moved
    x = moved + radius[:, None] * u
    slope = 1 - np.einsum("ij,ij->i", u, x - known[nearest]) / radius
    weight = _near_sphere(x) / np.maximum(np.abs(slope), 1e-3)
    guess: Floats = x[_best(c * _distances(x, x) < radius[:, None], weight)]
    return guess


def knowing_the_distance(
    moved: Floats, *, apart: float, c: float, rng: np.random.Generator, draws: int = 300
) -> Floats:
    """Guess one of two points of the unit sphere from both images under the sphere sanitizer and their distance.

    Each point lies where the unit sphere meets the sphere around its image. Pairs of sampled candidates are weighted by
    how close their distance is to the known one. Guess the candidate that isolates the most weight.
    """
    x, y = (_ring(image, apart, draws, rng) for image in moved)
    gap = np.linalg.norm(x - y, axis=1) - apart
    weight = np.exp(-0.5 * np.square(gap / _SPHERE_WIDTH))
    guess: Floats = x[_best(c * _distances(x, x) < _distances(x, y), weight)]
    return guess


def _ring(image: Floats, radius: float, draws: int, rng: np.random.Generator) -> Floats:
    """Sample points of the unit sphere at this distance from an image."""
    length = float(np.linalg.norm(image))
    axis = image / max(length, 1e-12)
    share = np.clip((1 + length**2 - radius**2) / (2 * max(length, 1e-12)), -1, 1)
    drawn = rng.standard_normal((draws, len(image)))
    drawn -= np.outer(drawn @ axis, axis)
    drawn /= np.maximum(np.linalg.norm(drawn, axis=1, keepdims=True), 1e-12)
    ring: Floats = share * axis + np.sqrt(1 - share**2) * drawn
    return ring


def _best(isolates: NDArray[np.bool_], weight: Floats) -> int:
    return int(np.argmax(isolates @ weight))


def _near_sphere(x: Floats) -> Floats:
    weight: Floats = np.exp(-0.5 * np.square((np.linalg.norm(x, axis=1) - 1) / _SPHERE_WIDTH))
    return weight


def _distances(a: Floats, b: Floats) -> Floats:
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    distances: Floats = np.sqrt(np.maximum(squares, 0))
    return distances
