"""The recursive histogram: a cube is halved in every direction where it holds 2t points or more; counts are exact.

Not differentially private: a count that one person changes by 1 is published as it is.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.isolation import demanded
from hubbub.crowd.neighbors import Floats, Indices
from hubbub.errors import CrowdError

#: Halving [-1, 1] so often is exact in doubles.
DEEPEST = 48
_ROOT = -1


@dataclass(frozen=True, slots=True)
class Level:
    """The cells of one depth that hold a point, sorted by (parent, which half of each coordinate).

    parent  the place of the parent in the level above
    halves  one bit a coordinate, packed: the upper half or the lower one
    count   how many points it holds;  split: whether it was cut further
    """

    parent: Indices
    halves: NDArray[np.uint8]
    low: Floats
    count: Indices
    split: NDArray[np.bool_]

    @property
    def keys(self) -> NDArray[np.void]:
        """What a cell is found by."""
        return _keys(self.parent, self.halves)


@dataclass(frozen=True, slots=True)
class Places:
    """Where points lie in a histogram: the corner, side and count of each one's cell, and its parent's."""

    low: Floats
    side: Floats
    count: Indices
    parent_low: Floats
    parent_side: Floats
    parent_count: Indices


@dataclass(frozen=True, eq=False)
class Histogram:
    """What is published: for each cell its corner, its side and its exact count.

    Only cells that hold a point are kept: at most n leaves a level, whatever 2^d is. Every other part of a cell that
    was split is an empty cell, and is published as such by not being there.

    Theorem (Shape of the recursive histogram). No leaf holds 2t points or more, and every cell that was split holds at
    least 2t (Chawla and others 2005, § 4).
    Assumes  fewer than 2t equal points, else it is refused; no limit on the depth.
    Tested   tests/crowd/test_histogram.py::test_no_leaf_is_a_crowd_of_two_and_every_parent_is
    """

    t: int
    dimension: int
    size: int
    levels: tuple[Level, ...]

    @property
    def leaves(self) -> tuple[Floats, Floats, Indices]:
        """Corner, side and count of every cell that was not split and holds a point."""
        lows = [level.low[~level.split] for level in self.levels]
        sides = [np.full(len(low), 2.0 * 0.5**depth) for depth, low in enumerate(lows)]
        counts = [level.count[~level.split] for level in self.levels]
        return np.concatenate(lows), np.concatenate(sides), np.concatenate(counts)

    @property
    def centres(self) -> Floats:
        """The middle of every leaf that holds a point."""
        low, side, _ = self.leaves
        return low + side[:, None] / 2

    def locate(self, points: Floats) -> Places:
        """Find the leaf of each point, an empty one where nobody of the histogram is, and its parent.

        A root that was never split is its own parent.
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
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            here = known[place] == keys
            parent[0][active], parent[1][active], parent[2][active] = low[active], side[active], count[active]
            side[active] /= 2
            low[active] += np.where(upper, side[active][:, None], 0)
            count[active] = np.where(here, level.count[place], 0)
            at[active] = place
            active = active[here & level.split[place]]
        return Places(low, side, count, *parent)


def recursive(points: Floats, *, t: int, depth: int | None = None) -> Histogram:
    """Cut the cube [-1, 1]^d while a cell holds 2t points or more; `depth` 1 is the plain histogram of 2^d cells."""
    demanded(c=1, t=t)
    n, d = points.shape
    if not (np.abs(points) <= 1).all():
        raise CrowdError("HB622", "a point lies outside of the cube [-1, 1]^d.", "Scale the columns with `points`.")
    levels = [
        Level(
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
        if deep > DEEPEST:
            raise CrowdError(
                "HB622",
                f"at least {2 * t} points are equal, or nearly so: no cutting tells them apart.",
                "Spread whole numbers over their step (--step COLUMN=1), add a column, or take a larger t.",
            )
        upper = _upper(points[active], above.low[at], deep)
        halves = np.packbits(upper, axis=1)
        before = at
        _, first, at, count = np.unique(
            _keys(before, halves), return_index=True, return_inverse=True, return_counts=True
        )
        low = above.low[before[first]] + np.where(upper[first], 2.0 * 0.5**deep, 0.0)
        levels.append(Level(before[first], halves[first], low, count, count >= 2 * t))
    if depth is not None:
        levels[-1] = replace(levels[-1], split=np.zeros_like(levels[-1].split))
    return Histogram(t, d, n, tuple(levels))


def _upper(points: Floats, low: Floats, depth: int) -> NDArray[np.bool_]:
    """Say in which coordinates a point is in the upper half of its cell of the level above."""
    middle = low + 2.0 * 0.5**depth
    return points >= middle


def _keys(parent: Indices, halves: NDArray[np.uint8]) -> NDArray[np.void]:
    """Write (parent, halves) as bytes that sort the same way everywhere."""
    whole = np.hstack([parent.astype(">i8").view(np.uint8).reshape(len(parent), 8), halves])
    return np.ascontiguousarray(whole).view(np.dtype((np.void, whole.shape[1])))[:, 0]
