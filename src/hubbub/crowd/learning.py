"""What can still be learned from moved points: mixtures of Gaussians, and clusters of small diameter (2005, § 5)."""

import numpy as np

from hubbub.crowd.neighbors import Crowd, Floats, Indices
from hubbub.errors import CrowdError


def projection(points: Floats, k: int) -> Floats:
    """Give the k directions (rows) of the best projection of rank k, by singular values, around the origin."""
    return np.asarray(np.linalg.svd(points, full_matrices=False)[2][:k], dtype=np.float64)


def cluster(a: Floats, b: Floats, k: int) -> tuple[Indices, Indices]:
    """Tell the components of a mixture apart: each half projected by what the other shows, then single linkage.

    It is Cluster(Ā, B̄, k) of the paper, whose theorem 3 says how far apart the means must be (`theory.separation`).
    """
    if a.shape[1] != b.shape[1] or not 1 <= k <= min(a.shape[1], len(a), len(b)):
        raise CrowdError("HB623", "the two halves do not fit each other, or k does not fit them.", "Try a smaller k.")
    across, along = projection(b, k), projection(a, k)
    # both are points of the full space again, so that they can be compared
    projected = np.vstack([a @ across.T @ across, b @ along.T @ along])
    labels = single_linkage(projected, k)
    return labels[: len(a)], labels[len(a) :]


def single_linkage(points: Floats, k: int) -> Indices:
    """Join the nearest points until k clusters are left; equals cutting the k − 1 longest edges of a spanning tree.

    The tree is grown point by point, which is one step of arithmetic on all points each: the order is the algorithm.
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
    """Say whether two labellings are the same partition."""
    pairs = np.unique(np.column_stack([found, truth]), axis=0)
    return len(pairs) == len(np.unique(found)) == len(np.unique(truth))


def diameter(points: Floats, labels: Indices) -> float:
    """Give the largest distance between two points of one cluster."""
    return max(_width(points[labels == label]) for label in np.unique(labels))


def _width(points: Floats) -> float:
    squares = np.square(points).sum(axis=1)
    found = squares[:, None] + squares - 2 * points @ points.T
    return float(np.sqrt(max(found.max(), 0.0)))


def farthest_first(points: Floats, k: int, *, least: int) -> Indices:
    """Cluster around k points that are far from each other (diameter within twice the best), each of at least `least`.

    Where a cluster is smaller, fewer clusters are made.
    """
    centres, away = [0], np.square(points - points[0]).sum(axis=1)
    while len(centres) < k:
        centres.append(int(away.argmax()))
        away = np.minimum(away, np.square(points - points[centres[-1]]).sum(axis=1))
    while True:
        labels = Crowd(points[centres]).reach(points, t=1).which
        if len(centres) == 1 or np.bincount(labels, minlength=len(centres)).min() >= least:
            return labels
        centres.pop()


def factor(points: Floats, moved: Floats, labels: Indices) -> float:
    """Give how much wider the widest cluster is among the moved points: at most 3 after the ball and sphere sanitizers.

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
