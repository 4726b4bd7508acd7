"""Exact nearest neighbors of many points at once, by blocks of a k-d tree and matrix products.

In sixteen dimensions a k-d tree visits most of its leaves, one query at a time, and a table of all distances takes
80 GB. Here points are cut into compact leaves. A query first searches its nearest leaf, which bounds the distance, and
then the leaves whose bounding box is not farther; all queries to a leaf form one matrix product in single precision.
Candidates that are not clearly too far are computed again in double precision, so the answer is exact to the last bits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_LEAF, _QUERIES = 1024, 2048
_SLACK = 2.0**-22  # single precision, with a margin


@dataclass(frozen=True, slots=True)
class Neighbors:
    """For each query: the distance and index of the nearest point, and the t-radius."""

    nearest: Floats
    which: Indices
    radius: Floats


class NeighborIndex:
    """An index of points for nearest-neighbor queries.

    Equal points are stored once with their multiplicity: t equal points are a crowd of radius 0.

    >>> import numpy as np
    >>> crowd = NeighborIndex(np.array([[0.0], [1.0], [3.0]]))
    >>> crowd.query(np.array([[0.25]]), t=2).radius.tolist()
    [0.75]
    """

    def __init__(self, points: Floats) -> None:
        self.points = np.ascontiguousarray(points, dtype=np.float64)
        self._first, self._times = _distinct(self.points)
        self._distinct = self.points[self._first]
        self._leaves = [_Leaf(self._distinct, rows) for rows in _blocks(self._distinct, _LEAF)]

    def __len__(self) -> int:
        return len(self.points)

    def query(self, queries: Floats, *, t: int, progress: Callable[[float], None] | None = None) -> Neighbors:
        """Find, for each query, the nearest point and the smallest radius of a closed ball that holds t points.

        The radius is infinite if there are fewer than t points. A query that is a point itself is counted.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float64)
        nearest, radius = np.empty(len(queries)), np.empty(len(queries))
        which = np.empty(len(queries), dtype=np.int64)
        done = 0
        for block in _blocks(queries, _QUERIES):
            squares, found = self._few(queries[block], min(t, len(self._distinct)))
            order = np.argsort(squares, axis=1, kind="stable")
            squares, found = np.take_along_axis(squares, order, 1), np.take_along_axis(found, order, 1)
            enough = np.cumsum(self._times[found], axis=1) >= t
            at = np.argmax(enough, axis=1)[:, None]
            held = np.take_along_axis(np.where(enough, squares, np.inf), at, 1)[:, 0]
            nearest[block], radius[block] = np.sqrt(squares[:, 0]), np.sqrt(held)
            which[block] = self._first[found[:, 0]]
            done += len(block)
            if progress is not None:
                progress(done / len(queries))
        return Neighbors(nearest, which, radius)

    def _few(self, queries: Floats, k: int) -> tuple[Floats, Indices]:
        """Find the k nearest distinct points of each query of one compact block, in no order."""
        gaps = np.column_stack([leaf.gaps(queries) for leaf in self._leaves])
        home = gaps.argmin(axis=1)
        best, found = np.full((len(queries), k), np.inf), np.zeros((len(queries), k), dtype=np.int64)
        worst = np.full(len(queries), np.inf)

        def look(leaf: _Leaf, rows: Indices) -> None:
            lines, points = leaf.candidates(queries[rows], worst[rows], k)
            if not len(lines):
                return
            exact = np.square(queries[rows[lines]] - self._distinct[points]).sum(axis=1)
            _merge(best, found, rows[lines], exact, points)
            worst[rows] = best[rows].max(axis=1)

        for number in np.unique(home):
            look(self._leaves[number], np.flatnonzero(home == number))
        for number, leaf in enumerate(self._leaves):
            rows = np.flatnonzero((gaps[:, number] <= worst) & (home != number))
            if len(rows):
                look(leaf, rows)
        return best, found


class _Leaf:
    """A block of nearby points with their bounding box; in single precision around its center."""

    def __init__(self, points: Floats, rows: Indices) -> None:
        block = points[rows]
        self._rows = rows
        self._low, self._high = block.min(axis=0), block.max(axis=0)
        self._middle = (self._low + self._high) / 2
        around = block - self._middle
        squares = np.square(around).sum(axis=1)
        self._reach = float(np.sqrt(squares.max()))
        # [−2q, |q|², 1]·[p, 1, |p|²] = |q − p|²
        self._right = np.column_stack([around, np.ones(len(block)), squares]).astype(np.float32).T

    def gaps(self, queries: Floats) -> Floats:
        """Return a lower bound of the squared distance of each query to the points of this leaf."""
        away = np.maximum(self._low - queries, queries - self._high)
        np.maximum(away, 0, out=away)
        bound: Floats = np.einsum("ij,ij->i", away, away) * (1 - 1e-12)
        return bound

    def candidates(self, queries: Floats, worst: Floats, k: int) -> tuple[Indices, Indices]:
        """Find the pairs that may lie within the given squared distances, by arithmetic in single precision.

        Each of the d + 2 products and sums errs by at most 2⁻²³ of (|q| + |p|)², and the inputs by as much again.
        """
        around = queries - self._middle
        squares = np.square(around).sum(axis=1)
        margin = (queries.shape[1] + 8) * _SLACK * np.square(np.sqrt(squares) + self._reach)
        left = np.column_stack([-2 * around, squares, np.ones(len(queries))]).astype(np.float32)
        away = left @ self._right
        if np.isinf(worst).any() and k <= len(self._rows):  # the k-th nearest of this leaf is a bound
            worst = np.minimum(worst, np.partition(away, k - 1, axis=1)[:, k - 1] + margin)
        lines, columns = np.divmod(
            np.flatnonzero(away <= (worst + margin).astype(np.float32)[:, None]), len(self._rows)
        )
        return lines, self._rows[columns]


def _merge(best: Floats, found: Indices, rows: Indices, squares: Floats, points: Indices) -> None:
    """Merge candidates, sorted by row, into the best of their rows."""
    touched, starts, counts = np.unique(rows, return_index=True, return_counts=True)
    offsets = np.arange(len(rows)) - np.repeat(starts, counts)
    lines = np.repeat(np.arange(len(touched)), counts)
    k = best.shape[1]
    wide = np.full((len(touched), k + int(counts.max())), np.inf)
    whose = np.zeros(wide.shape, dtype=np.int64)
    wide[:, :k], whose[:, :k] = best[touched], found[touched]
    wide[lines, k + offsets], whose[lines, k + offsets] = squares, points
    kept = np.argpartition(wide, k - 1, axis=1)[:, :k]
    best[touched], found[touched] = np.take_along_axis(wide, kept, 1), np.take_along_axis(whose, kept, 1)


def _distinct(points: Floats) -> tuple[Indices, Indices]:
    """Return the index of one of each set of equal points, and their number."""
    unsigned = points + 0.0  # makes -0.0 and 0.0 equal
    keys = unsigned.view(np.dtype((np.void, unsigned.itemsize * unsigned.shape[1])))[:, 0]
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return first.astype(np.int64), counts.astype(np.int64)


def _blocks(points: Floats, size: int) -> list[Indices]:
    """Cut points into compact blocks, repeatedly at the median of the widest coordinate."""
    waiting, done = [np.arange(len(points))], []
    while waiting:
        block = waiting.pop()
        if len(block) <= size:
            if len(block):
                done.append(block)
            continue
        part = points[block]
        widest = int(np.argmax(part.max(axis=0) - part.min(axis=0)))
        order = np.argpartition(part[:, widest], len(block) // 2)
        waiting += [block[order[: len(block) // 2]], block[order[len(block) // 2 :]]]
    return done
