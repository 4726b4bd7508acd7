"""The covariance of the data, recovered from sanitized rows (2005, § 5).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.learning import covariance_of, noise_variance
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, averaged, integers, no_progress

_SHAPES: tuple[Shape, ...] = ("ball", "sphere", "gaussian")


def correlated(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Sample rows with one common factor: correlation ½ between any two columns, variance 1."""
    sample: Floats = np.sqrt(0.5) * (rng.standard_normal((n, 1)) + rng.standard_normal((n, d)))
    return sample


def _lengths(n: int, d: int, t: int, rng: np.random.Generator) -> list[float]:
    """Return the mean of ‖noise‖²/τ² of each sanitizer."""
    points = correlated(n, d, rng)
    squares = np.square(NeighborIndex(points).query(points, t=t).radius)
    moved = [perturb(points, shape, t=t, rng=rng) for shape in _SHAPES]
    return [float((np.square(rows - points).sum(axis=1) / squares).mean()) for rows in moved]


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    sizes: tuple[str, ...] = ("200", "500", "1000", "2000"),
    d: int = 10,
    t: int = 10,
    runs: int = 10,
) -> CrowdStudy:
    """Estimate the covariance matrix of the true rows from sanitized ones, by number of rows.

    The noise of a sanitizer points in a random direction, so it adds the same variance to every direction and nothing
    to any covariance. The published rows show how wide it is: their own crowds have about the radius of the true ones.
    Subtracting that variance recovers the matrix. Errors are relative, in the Frobenius norm, against the covariance of
    the true rows. The authors conjecture that this can be had together with privacy; no privacy is proved.
    """
    numbers.integer(d, "d", 1, 60)
    numbers.integer(t, "t", 2, 100)
    numbers.integer(runs, "runs", 2, 200)
    at = integers(sizes, "sizes", 4 * t, 5000)
    curves: dict[str, list[tuple[float, float, float, float]]] = {}
    for step, n in enumerate(at):
        progress(step / len(at), f"n = {n:,}")
        errors: dict[str, list[float]] = {}
        for _ in range(runs):
            points = correlated(n, d, rng)
            truth = np.cov(points.T).reshape(d, d)
            for shape in _SHAPES:
                moved = perturb(points, shape, t=t, rng=rng)
                for how, matrix in (
                    ("as published", np.cov(moved.T).reshape(d, d)),
                    ("corrected", covariance_of(moved, shape, t=t)),
                ):
                    error = float(np.linalg.norm(matrix - truth) / np.linalg.norm(truth))
                    errors.setdefault(f"{shape}, {how}", []).append(error)
        for name, values in errors.items():
            curves.setdefault(name, []).append(averaged(n, values))
    rows = tuple((name, *(f"{y:.3f}" for _, y, *_ in points)) for name, points in sorted(curves.items()))
    lengths = _lengths(at[-1], d, t, rng)
    added = noise_variance(perturb(correlated(at[-1], d, rng), "sphere", t=t, rng=rng), "sphere", t=t)
    words = (
        f"Mean of {runs} runs in {d} dimensions, correlation ½. The sphere sanitizer adds a variance of about "
        f"{added:.2f} to each column at n = {at[-1]:,} (a true column has 1).",
        f"The squared length of the noise, in units of the squared t-radius, is {lengths[0]:.2f} on average for ball "
        f"(d/(d + 2) = {d / (d + 2):.2f}), {lengths[1]:.2f} for sphere and {lengths[2]:.2f} for gaussian.",
        "Means, covariances and principal components survive: that is the utility of round noise, and it is also why "
        "independent noise on rows hides so little (`hubbub attack spectral`).",
    )
    plot = Plot(
        f"Error of the covariance (d = {d}, t = {t})", "rows n", "relative error", curves, None, logarithmic=True
    )
    columns = ("sanitizer", *(f"n = {n:,}" for n in at))
    return CrowdStudy("covariance", "Covariance from sanitized rows", words, columns, rows, (plot,))
