"""The recursive histogram: halve a cell in every dimension while it holds 2t points or more.

Not differentially private: the published counts are exact.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.isolation import check_parameters
from hubbub.crowd.neighbors import Floats, Indices
from hubbub.errors import CrowdError

#: Halving [-1, 1] up to this depth is exact in doubles.
MAX_DEPTH = 48
_ROOT = -1


@dataclass(frozen=True, slots=True)
class HistogramLevel:
    """The occupied cells of one depth, sorted by (parent, halves).

    parent  index of the parent in the level above
    halves  one bit per coordinate, packed: upper or lower half of the parent
    count   number of points
    split   whether the cell was halved further
    """

    parent: Indices
    halves: NDArray[np.uint8]
    low: Floats
    count: Indices
    split: NDArray[np.bool_]

    @property
    def keys(self) -> NDArray[np.void]:
        """Search keys of the cells."""
        return _keys(self.parent, self.halves)


@dataclass(frozen=True, slots=True)
class CellLocations:
    """The cells of some points: corner, side and count of each point's cell and of its parent."""

    low: Floats
    side: Floats
    count: Indices
    parent_low: Floats
    parent_side: Floats
    parent_count: Indices


@dataclass(frozen=True, eq=False)
class RecursiveHistogram:
    """The published histogram: for each cell its corner, its side and its exact count.

    Only occupied cells are stored: at most n leaves per level, however large 2^d is. Every other part of a split cell
    is empty, and its absence publishes that.

    Theorem (Shape of the recursive histogram). No leaf holds 2t points or more, and every split cell holds at least 2t
    (Chawla and others 2005, § 4).
    Assumes  fewer than 2t equal points, else it is refused; no limit on the depth.
    Tested   tests/crowd/test_histogram.py::test_no_leaf_is_a_crowd_of_two_and_every_parent_is
    """

    t: int
    dimension: int
    size: int
    levels: tuple[HistogramLevel, ...]

    @property
    def leaves(self) -> tuple[Floats, Floats, Indices]:
        """Corner, side and count of every occupied leaf."""
        lows = [level.low[~level.split] for level in self.levels]
        sides = [np.full(len(low), 2.0 * 0.5**depth) for depth, low in enumerate(lows)]
        counts = [level.count[~level.split] for level in self.levels]
        return np.concatenate(lows), np.concatenate(sides), np.concatenate(counts)

    @property
    def centers(self) -> Floats:
        """The center of every occupied leaf."""
        low, side, _ = self.leaves
        return low + side[:, None] / 2

    def locate(self, points: Floats) -> CellLocations:
        """Find the leaf of each point, possibly an empty one, and its parent.

        A root that was not split is its own parent.
        """
        n, d = points.shape
        low, side = np.full((n, d), -1.0), np.full(n, 2.0)
        count = np.full(n, self.size)
        parent = low.copy(), side.copy(), count.copy()
        at, active = np.zeros(n, dtype=np.int64), np.arange(n)
        active = active[self.levels[0].split[at]]
        for depth, level in enumerate(self.levels[1:], 1):
            above = self.levels[depth - 1]
            upper = _upper(points[active], above.low[at[active]], depth)
            keys, known = _keys(at[active], np.packbits(upper, axis=1)), level.keys
            index = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            occupied = known[index] == keys
            parent[0][active], parent[1][active], parent[2][active] = low[active], side[active], count[active]
            side[active] /= 2
            low[active] += np.where(upper, side[active][:, None], 0)
            count[active] = np.where(occupied, level.count[index], 0)
            at[active] = index
            active = active[occupied & level.split[index]]
        return CellLocations(low, side, count, *parent)


def build_histogram(points: Floats, *, t: int, depth: int | None = None) -> RecursiveHistogram:
    """Halve cells of the cube [-1, 1]^d while they hold 2t points or more; `depth` 1 is the histogram of 2^d cells."""
    check_parameters(c=1, t=t)
    n, d = points.shape
    if not (np.abs(points) <= 1).all():
        raise CrowdError("HB622", "A point is outside the cube [-1, 1]^d.", "Scale the columns with `make_points`.")
    levels = [
        HistogramLevel(
            np.array([_ROOT]),
            np.zeros((1, -(-d // 8)), dtype=np.uint8),
            np.full((1, d), -1.0),
            np.array([n]),
            np.array([n >= 2 * t]),
        )
    ]
    active, at = np.arange(n), np.zeros(n, dtype=np.int64)
    while levels[-1].split.any() and (depth is None or len(levels) <= depth):
        above, deep = levels[-1], len(levels)
        chosen = above.split[at]
        active, at = active[chosen], at[chosen]
        if deep > MAX_DEPTH:
            raise CrowdError(
                "HB622",
                f"At least {2 * t} points are equal or almost equal, so the histogram cannot separate them.",
                "Spread integers over their step (--step COLUMN=1), add a column, or use a larger t.",
            )
        upper = _upper(points[active], above.low[at], deep)
        halves = np.packbits(upper, axis=1)
        before = at
        _, first, at, count = np.unique(
            _keys(before, halves), return_index=True, return_inverse=True, return_counts=True
        )
        low = above.low[before[first]] + np.where(upper[first], 2.0 * 0.5**deep, 0.0)
        levels.append(HistogramLevel(before[first], halves[first], low, count, count >= 2 * t))
    if depth is not None:
        levels[-1] = replace(levels[-1], split=np.zeros_like(levels[-1].split))
    return RecursiveHistogram(t, d, n, tuple(levels))


def _upper(points: Floats, low: Floats, depth: int) -> NDArray[np.bool_]:
    """Tell in which coordinates a point is in the upper half of its cell of the level above."""
    middle = low + 2.0 * 0.5**depth
    return points >= middle


def _keys(parent: Indices, halves: NDArray[np.uint8]) -> NDArray[np.void]:
    """Encode (parent, halves) as bytes with a platform-independent order."""
    encoded = np.hstack([parent.astype(">i8").view(np.uint8).reshape(len(parent), 8), halves])
    return np.ascontiguousarray(encoded).view(np.dtype((np.void, encoded.shape[1])))[:, 0]
