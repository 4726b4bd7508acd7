"""Learning from perturbed points: mixtures of Gaussians and clusters of small diameter (2005, § 5)."""

import numpy as np

from hubbub.crowd.neighbors import Floats, Indices, NeighborIndex
from hubbub.crowd.perturbation import Shape
from hubbub.errors import CrowdError


def projection(points: Floats, k: int) -> Floats:
    """Return the k directions (rows) of the best projection of rank k, by singular values, around the origin."""
    return np.asarray(np.linalg.svd(points, full_matrices=False)[2][:k], dtype=np.float64)


def mixture(apart: float, *, k: int, d: int, n: int, rng: np.random.Generator) -> tuple[Floats, Indices]:
    """Sample k spherical Gaussians of deviation 1 with means `apart` from each other; return rows and labels."""
    axes, _ = np.linalg.qr(rng.standard_normal((d, k)))
    labels = rng.integers(0, k, n)
    return (axes.T * apart / np.sqrt(2))[labels] + rng.standard_normal((n, d)), labels


def noise_variance(moved: Floats, shape: Shape, *, t: int) -> float:
    """Estimate the variance that the sanitizer added to each coordinate, from the published rows alone.

    A squared t-radius τ² of the true rows adds λ = τ²/d to a coordinate (ball: τ²/(d + 2)). The published rows spread
    more widely, and so are their crowds: by V/(V − λ) if V is the published variance. Solve both for λ.
    """
    d = moved.shape[1]
    squares = float(np.square(NeighborIndex(moved).query(moved, t=t).radius).mean())
    published = squares / (d + 2 if shape == "ball" else d)
    return float(published / (1 + published / moved.var(axis=0).mean()))


def covariance_of(moved: Floats, shape: Shape, *, t: int) -> Floats:
    """Estimate the covariance of the true rows from published ones: subtract the variance of the noise.

    Theorem (Round noise and covariance). Noise in a uniform direction that has mean zero given the rows adds the same
    variance to every coordinate and nothing to any covariance, in expectation.
    Proof    Given the rows and the lengths, each noise vector has a uniform direction: its covariance is a multiple of
             the identity, and it is uncorrelated with the rows and with the noise of others.
    Tested   tests/crowd/test_learning.py::test_round_noise_adds_a_multiple_of_the_identity
    """
    d = moved.shape[1]
    published = np.asarray(np.cov(moved.T), dtype=np.float64).reshape(d, d)
    added = min(noise_variance(moved, shape, t=t), float(np.linalg.eigvalsh(published)[0]))
    return published - added * np.eye(d)


def cluster(a: Floats, b: Floats, k: int) -> tuple[Indices, Indices]:
    """Cluster a mixture: project each half by the directions of the other, then apply single linkage.

    This is Cluster(Ā, B̄, k) of the paper; its theorem 3 states the required separation (`theory.separation`).
    """
    if a.shape[1] != b.shape[1] or not 1 <= k <= min(a.shape[1], len(a), len(b)):
        raise CrowdError(
            "HB623",
            "The halves have different dimensions, or k exceeds their dimension or size.",
            "Use a smaller k.",
        )
    across, along = projection(b, k), projection(a, k)
    # map both back to the full space, so that they can be compared
    projected = np.vstack([a @ across.T @ across, b @ along.T @ along])
    labels = single_linkage(projected, k)
    return labels[: len(a)], labels[len(a) :]


def single_linkage(points: Floats, k: int) -> Indices:
    """Join the nearest points until k clusters remain; equals cutting the k − 1 longest edges of a spanning tree.

    The tree grows point by point (Prim's algorithm), with one vectorized step per point.
    """
    n = len(points)
    order, length, parent = np.empty(n, dtype=np.int64), np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    best, outside = np.full(n, np.inf), np.ones(n, dtype=np.bool_)
    here = 0
    for step in range(n):
        order[step], outside[here] = here, False
        length[here] = best[here]
        squares = np.square(points - points[here]).sum(axis=1)
        nearer = outside & (squares < best)
        best[nearer], parent[nearer] = squares[nearer], here
        here = int(np.argmin(np.where(outside, best, np.inf)))
    length[0] = np.inf  # the root has no edge above it
    cut = np.zeros(n, dtype=np.bool_)
    cut[np.argpartition(length, n - k)[n - k :]] = True
    labels = np.where(cut, np.cumsum(cut) - 1, -1)
    for joined in order:
        if labels[joined] < 0:
            labels[joined] = labels[parent[joined]]
    return labels


def agree(found: Indices, truth: Indices) -> bool:
    """Tell whether two labelings are the same partition."""
    pairs = np.unique(np.column_stack([found, truth]), axis=0)
    return len(pairs) == len(np.unique(found)) == len(np.unique(truth))


def diameter(points: Floats, labels: Indices) -> float:
    """Return the largest distance between two points of one cluster."""
    return max(_width(points[labels == label]) for label in np.unique(labels))


def _width(points: Floats) -> float:
    squares = np.square(points).sum(axis=1)
    distances = squares[:, None] + squares - 2 * points @ points.T
    return float(np.sqrt(max(distances.max(), 0.0)))


def farthest_first(points: Floats, k: int, *, least: int) -> Indices:
    """Cluster around k points that are far from each other (diameter at most twice the best), `least` points or more.

    If a cluster is smaller, fewer clusters are made.
    """
    centers, away = [0], np.square(points - points[0]).sum(axis=1)
    while len(centers) < k:
        centers.append(int(away.argmax()))
        away = np.minimum(away, np.square(points - points[centers[-1]]).sum(axis=1))
    while True:
        labels = NeighborIndex(points[centers]).query(points, t=1).which
        if len(centers) == 1 or np.bincount(labels, minlength=len(centers)).min() >= least:
            return labels
        centers.pop()


def factor(points: Floats, moved: Floats, labels: Indices) -> float:
    """Return the growth of the largest diameter by perturbation: at most 3 after the ball and sphere sanitizers.

    Theorem (Clusters of moved points). Let each of n points be moved by at most its t-radius. For every clustering into
    clusters of at least t points the largest diameter grows at most threefold; so the least possible one among the
    moved points is at most three times that among the true ones.
    Proof    In a cluster of diameter D with at least t points every t-radius is at most D, so two points at a distance
             of at most D are at most D + 2D apart after both moved. Apply it to the best clustering of the true points.
    Assumes  clusters of at least t points; the Gaussian sanitizer moves some points farther than their t-radius.
    Tested   tests/crowd/test_learning.py::test_clusters_grow_at_most_threefold
             tests/crowd/test_learning.py::test_the_best_clustering_grows_at_most_threefold
    """
    return diameter(moved, labels) / diameter(points, labels)
