"""Contribution bounds that are found privately: `rows: auto` and `groups: auto`.

A noisy histogram counts the units by how much they contribute (their rows, their groups, or the total of a sum), at
levels 1, 2, 3, 4, 6, 8, 12, … up to a public maximum. A bound is chosen from it, and the query runs with that bound.
The choice is post-processing, so its rules below are judged by accuracy alone (`benchmarks/truth.py`).

Tested in tests/sql/test_auto_bounds.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource
from hubbub.sql.aggregates.formula import Floats

#: What a histogram counts in each unit: rows, cells, the total of one sum (in steps), or its largest magnitude.
#: For rows with two owners: what an owner of a row has in a cell (`owner_levels`).
Contribution = Literal["rows", "cells", "sum", "values", "owners"]

#: The largest number of levels: the lowest of a large maximum are left out.
_MAX_LEVELS = 80
#: Units above the maximum are visible from this many scales on; by noise alone that happens in 2 of 10,000 answers.
_ABOVE = 8.0
#: The scan for the highest level with units stops where the next levels together count fewer than this many scales.
_WINDOW, _VISIBLE = 2, 4.0
#: Units far above the others are visible where so many levels together count more than so many scales: noise alone does
#: that with a probability of at most 1e-5 from one level.
_FAR = ((1, 11.0), (2, 13.0), (4, 16.5))
#: How fast the units are taken to become fewer from level to level where noise hides them.
_SLOWEST, _FASTEST = 0.7, 0.15
#: Units that noise hides above the highest level, in scales: as expected, and as allowed for in intervals.
_HIDDEN, _ALLOWED, _ALLOWED_DECAY = 0.5, 4.0, 0.65


def levels_up_to(maximum: int) -> tuple[int, ...]:
    """Return the levels 1, 2, 3, 4, 6, 8, 12, … up to a maximum, which is the last.

    >>> levels_up_to(10)
    (1, 2, 3, 4, 6, 8, 10)
    """
    powers = [1 << k for k in range(maximum.bit_length())]
    levels = sorted({*powers, *(3 * power // 2 for power in powers[1:]), maximum})
    return tuple(level for level in levels if level <= maximum)[-_MAX_LEVELS:]


@dataclass(frozen=True, slots=True)
class ChosenBound:
    """A bound that was chosen from a noisy histogram, and what it leaves out.

    bound     what a unit contributes at most: rows, cells, or steps of a sum
    left_out  estimate of what units contribute beyond it, all together
    most      the same as allowed for in intervals
    units     noisy number of units
    total     estimate of what all units contribute
    above     noisy number of units above the public maximum, if some are visible; `most` is then infinite
    """

    bound: int
    left_out: float
    most: float
    units: float
    total: float
    contribution: Contribution = "rows"
    above: float = 0.0

    @property
    def share(self) -> float:
        """The estimated share that is left out."""
        return min(1.0, self.left_out / max(self.total, 1.0))

    @property
    def largest_share(self) -> float:
        """The largest share that is left out, as allowed for in intervals."""
        if self.above:
            return 1.0
        return min(1.0, self.most / max(self.total - self.left_out + self.most, 1.0))


@dataclass(frozen=True)
class LevelHistogram:
    """The histogram from which one bound is chosen.

    Theorem (Bounds from noisy levels). Counting units by the level of their contribution and adding noise of scale
    s/ε₁, s = 1 under add/remove and 2 under replace, is ε₁-private. Running a query with a bound chosen from it, its
    noise in proportion to the bound, costs ε₂ besides, whichever bound is chosen, and is dominated by the event of
    its noise at the bound 1.
    Proof    A unit is in one level at most, so one unit more or less moves the counts by 1 in L1, another in its place
             by 2. What is chosen from noisy counts is post-processing, so the two compose adaptively. At the bound b
             the sums move b times as far as at the bound 1, and the scale is b times as large. Two-sided geometric
             noise of scale b·t is b·Z + U − U′ with Z of scale t, and U, U′ in {0, …, b − 1} independent of it: the
             digits of a geometric number are independent. So b·x plus the one is a function of x plus the other,
             with fresh randomness. A selection whose scores move b times as far at 1/b of the rate has the same
             product of both, which is all that its loss depends on.
    Assumes  what a unit contributes is a function of its own rows; the bound is enforced in the engine.
    Charges  Laplace(s, s/ε₁) for the histogram, and each noise and selection at the bound 1.
    Tested   tests/sql/test_auto_bounds.py::test_noise_at_a_bound_is_a_function_of_noise_at_the_bound_one
             tests/sql/test_auto_bounds.py::test_one_unit_moves_a_histogram_of_levels_by_one
             tests/sql/test_auto_bounds.py::test_no_unit_contributes_more_than_the_chosen_bound
    """

    name: str
    contribution: Contribution
    place: int  #: the grouping set, for cells and sums
    targets: tuple[int, ...]  #: positions of the measures that the bound is for
    levels: tuple[int, ...]
    portion: Fraction  #: its share of ε
    rate: float  #: the share of ε of a typical measure that the bound is for
    mechanism: Laplace
    sql: str

    @property
    def typical(self) -> int:
        """A hundredth of the maximum, for which errors are estimated before the data is read."""
        return max((level for level in self.levels if level <= self.levels[-1] / 100), default=self.levels[0])

    def exact(self, table: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """Return the number of units at each level, and of those above the maximum."""
        counts = np.zeros(len(self.levels) + 1, dtype=np.int64)
        np.add.at(counts, np.asarray(table["level"], dtype=np.int64), np.asarray(table["m0"], dtype=np.int64))
        return counts

    def moved(self, one: Mapping[str, NDArray[Any]], two: Mapping[str, NDArray[Any]]) -> int:
        """Return how far the histograms of two datasets are apart, in L1."""
        return int(np.abs(self.exact(one) - self.exact(two)).sum())

    def choose(self, table: Mapping[str, NDArray[Any]], source: RandomSource) -> ChosenBound:
        """Add noise to the histogram, and choose the bound."""
        noisy = self.mechanism.sample(self.exact(table), source).astype(np.float64)
        counts, above, scale = noisy[:-1], float(noisy[-1]), float(self.mechanism.scale)
        seen = above > _ABOVE * scale
        if seen:
            counts[-1] += above
        chosen = choose_bound(counts, self.levels, scale, self.rate, self.contribution)
        # nothing bounds what units have above the maximum
        return replace(chosen, above=above, most=float("inf")) if seen else chosen


def choose_bound(
    noisy: Floats, levels: tuple[int, ...], scale: float, rate: float, contribution: Contribution = "rows"
) -> ChosenBound:
    """Choose the level with the least expected error: what it leaves out, plus the noise level/rate that it costs."""
    ends = np.array(levels, dtype=np.float64)
    middles = (np.concatenate([[0.0], ends[:-1]]) + 1 + ends) / 2
    middles[0] = ends[0]
    highest = _highest(noisy, scale)
    expected, allowed = _tail(noisy, ends, highest, scale)
    left_out = _beyond(expected, middles, ends)
    best = int(np.argmin(left_out + ends / rate))
    most = float(_beyond(allowed, middles, ends)[best])
    total = float(np.maximum(expected, 0) @ middles)
    bound, units = int(levels[best]), float(max(noisy.sum(), 1.0))
    return ChosenBound(bound, float(left_out[best]), max(most, float(left_out[best])), units, total, contribution)


def _highest(noisy: Floats, scale: float) -> int:
    """Return the highest level with visible units.

    Climb from the median until the next levels show nobody, and go on to units far above, if there are clearly some.
    """
    climbed = np.cumsum(np.maximum(noisy, 0.0))
    level = min(int(np.searchsorted(climbed, climbed[-1] / 2)), len(noisy) - 1)
    ahead = np.convolve(np.concatenate([noisy, np.zeros(_WINDOW)]), np.ones(_WINDOW), mode="valid")[1:]
    while level < len(noisy) - 1 and ahead[level] > _VISIBLE * scale:
        level += 1
    for width, scales in _FAR:
        counts = np.convolve(np.concatenate([noisy, np.zeros(width - 1)]), np.ones(width), mode="valid")
        for start in np.flatnonzero(counts > scales * scale)[-1:]:
            level = max(level, int(start + np.argmax(noisy[start : start + width])))
    return level


def _tail(noisy: Floats, ends: Floats, highest: int, scale: float) -> tuple[Floats, Floats]:
    """Return the units of each level as expected and as allowed for: beyond the visible levels they become fewer.

    Decay is for levels that grow by √2; where they grow faster, there is more of it. Where far more units are at the
    highest level than noise can hide above it, they end there.
    """
    top = max(float(noisy[highest]), scale)
    before = max(float(noisy[max(0, highest - 2)]), scale) if highest >= 2 else 4 * top
    decay = min(max(min((top / before) ** 0.5, _VISIBLE * scale / top), _FASTEST), _SLOWEST)
    steps = 2 * np.log2(ends[highest + 1 :] / ends[highest]) - 1
    visible = np.maximum(noisy[: highest + 1], 0.0)
    hidden = min(top * decay, _HIDDEN * scale) * decay**steps
    return np.concatenate([visible, hidden]), np.concatenate([visible, _ALLOWED * scale * _ALLOWED_DECAY**steps])


def _beyond(units: Floats, middles: Floats, ends: Floats) -> Floats:
    """Return what units contribute beyond each level, if each contributes the middle of its own."""
    above = np.maximum(middles[None, :] - ends[:, None], 0.0)
    return np.asarray(above @ units, dtype=np.float64)
