"""Integer scores of candidates, computed from the exact number of rows at each candidate.

Arrays of counts have one row per cell and one column per candidate; arrays of scores have one row per cell and one
column for each outcome that can be selected.

Tested in tests/sql/test_scores.py.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm, log

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

#: Probability that an interval misses, at most.
MISS = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class QuantileScore:
    """Scores a quantile: the candidate with a fraction `level` of the rows below it.

    With level a/b the loss of candidate c is the largest of 0, b·#{x < c} − a·n and b·#{x > c} − (b − a)·n: zero
    exactly for a quantile.
    """

    level: Fraction

    @property
    def sensitivity(self) -> int:
        """The largest change of a score by one row: b − a or −a for a row below it, so at most max(a, b − a)."""
        return max(self.level.numerator, self.level.denominator - self.level.numerator)

    @property
    def scale(self) -> int:
        """The loss per row by which the quantile is missed."""
        return self.level.denominator

    def outcomes(self, candidates: int) -> int:
        """Return the number of outcomes."""
        return candidates

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate."""
        below, above = self.slack(counts)
        scores: Counts = np.minimum(0, np.minimum(below, above))
        return scores

    def slack(self, counts: Counts) -> tuple[Counts, Counts]:
        """Return a·n − b·#{x < c} and b·#{x ≤ c} − a·n: how far c is from being too high, and from being too low."""
        a, b = self.level.numerator, self.level.denominator
        up_to = np.cumsum(counts, axis=-1)
        target = a * up_to[..., -1:]
        return target - b * (up_to - counts), b * up_to - target


@dataclass(frozen=True, slots=True)
class IntervalScore:
    """Scores a quantile together with an interval around it: pairs of a candidate and a shape of its interval.

    A shape is how far the interval reaches on both sides (0, 1, 2, 4, … candidates), on one side while the other is
    open, or not at all. Let the slack of an end be how far it is beyond the quantile, in rows times b.
    The loss of a pair is the largest of the loss of its candidate as a quantile; of `margin` minus the slack of its
    ends (too short); of the slack of the next shorter ends minus `margin`, plus one (too long); and, for an open
    side, of all slack on that side minus `margin`, plus one (open without need).

    Theorem (Intervals by joint selection). With margin ≥ 2b + ln(2W/β)/rate for W reaches, selection among the pairs
    by permute-and-flip or by the exponential mechanism gives an interval that misses the quantile, in any of its
    usual definitions, with probability at most β, whatever the data are.
    Proof    For either rule Pr[i] ≤ Pr[j]·e^(−rate·(loss i − loss j)) where loss i ≥ loss j: permute-and-flip takes i
             with probability q_i·E[1/(1 + heads of the others)], and the others of i include j, whose coin is the
             better one. A definition of the quantile picks a point between the row of rank ⌈an/b⌉ − 1 and the row
             after ⌈an/b⌉. Let a pair miss it from above: its lower end L is in the range and has slack s ≤ b, so the
             pair's loss is at least margin − s. The candidate L has a loss of max(0, −s) or, within one row of the
             quantile, at most b; so the pair's loss is at least margin − 2b more. With each candidate goes a shape
             without loss (the first that is long enough, or an open side where there are too few rows), so L is the
             candidate of a pair j of that loss, and Pr[pair] ≤ Pr[j]·β/(2W). Each j is the image of at most 2W
             pairs, two for each reach, because L and the reach give the candidate; those that miss from below have
             images on the other side of the quantile. So all together have probability at most β·ΣPr[j] ≤ β.
    Assumes  counts are exact; the range of the candidates holds all values, as they are clamped to it.
    Tested   tests/sql/test_scores.py::test_intervals_miss_no_more_often_than_stated_on_all_small_tables
             tests/sql/test_intervals.py::test_intervals_of_choices_cover
    """

    level: Fraction
    margin: int

    @property
    def sensitivity(self) -> int:
        """As for the quantile alone: every part of the loss is a slack or a constant, or the largest of several."""
        return QuantileScore(self.level).sensitivity

    @property
    def scale(self) -> int:
        """The loss per row by which the quantile is missed."""
        return self.level.denominator

    def outcomes(self, candidates: int) -> int:
        """Return the number of pairs."""
        return candidates * (3 * len(reaches(candidates)) + 1)

    def scores(self, counts: Counts) -> Counts:
        """Score each pair: first by shape, then by candidate."""
        quantile, size = QuantileScore(self.level), counts.shape[-1]
        low, high = quantile.slack(counts)
        # at the end of the range, all rows on that side are slack
        missing_low, missing_high = (side.max(axis=-1, keepdims=True) - self.margin + 1 for side in (low, high))
        steps = reaches(size)
        losses = np.empty((len(counts), 3 * len(steps) + 1, size), dtype=np.int64)
        losses[:, -1] = np.maximum(missing_low, missing_high)
        before: tuple[Counts, ...] | None = None
        place = np.arange(size)
        for i, step in enumerate(steps):
            down, up = low[:, np.maximum(place - step, 0)], high[:, np.minimum(place + step, size - 1)]
            slacks = (np.minimum(down, up), down, up)
            for family, slack in enumerate(slacks):
                loss = self.margin - slack
                if before is not None:
                    loss = np.maximum(loss, before[family] - self.margin + 1)
                losses[:, family * len(steps) + i] = loss
            before = slacks
        count = len(steps)
        losses[:, count : 2 * count] = np.maximum(losses[:, count : 2 * count], missing_high[..., np.newaxis])
        losses[:, 2 * count : 3 * count] = np.maximum(losses[:, 2 * count : 3 * count], missing_low[..., np.newaxis])
        scores = np.minimum(-losses, quantile.scores(counts)[:, np.newaxis])
        return scores.reshape(len(counts), self.outcomes(size))

    def ends(self, outcomes: Counts, candidates: int) -> tuple[Counts, Counts, Counts]:
        """Return the candidate of each outcome, and the first and last candidate of its interval."""
        steps = np.array(reaches(candidates))
        shape, place = np.divmod(outcomes, candidates)
        family, step = np.divmod(shape, len(steps))
        reach = steps[step]
        low = np.where((family == 0) | (family == 1), np.maximum(place - reach, 0), 0)
        high = np.where((family == 0) | (family == 2), np.minimum(place + reach, candidates - 1), candidates - 1)
        return place, low, high


@dataclass(frozen=True, slots=True)
class JointScore:
    """Scores several quantiles that are selected together: the scores of all, one after the other.

    Each part is multiplied by a factor, so that all have the same sensitivity.

    Theorem (Intervals of several quantiles). With N combinations and margins that are ln(2N/β)/rate larger, an interval
    that was selected with others by the joint exponential mechanism misses with probability at most β.
    Proof    Let t = ln(2N/β)/rate. The N combinations whose other parts lose more than t have together a probability of
             at most N·e^(−rate·t) = β/2, for some combination has no loss. Where the others lose at most t, replace the
             pair that misses by its image (`IntervalScore`): the loss of the combination falls by at least what the
             margin has beyond 2b and t, and the other half of β covers these as before.
    Assumes  margins in the units of each part's own scores.
    Tested   tests/sql/test_scores.py::test_joint_intervals_miss_no_more_often_than_stated
    """

    parts: tuple["QuantileScore | IntervalScore", ...]

    @property
    def sensitivity(self) -> int:
        """The least common multiple of the sensitivities of the parts."""
        return lcm(*(part.sensitivity for part in self.parts))

    @property
    def scale(self) -> int:
        """The loss per row by which a quantile is missed, for the part where it is least."""
        return min(part.scale * self.factor(part) for part in self.parts)

    def factor(self, part: "QuantileScore | IntervalScore") -> int:
        """Return the factor of a part."""
        return self.sensitivity // part.sensitivity

    def outcomes(self, candidates: int) -> int:
        """Return the number of outcomes of all parts."""
        return sum(part.outcomes(candidates) for part in self.parts)

    def scores(self, counts: Counts) -> Counts:
        """Score the outcomes of each part."""
        return np.concatenate([part.scores(counts) * self.factor(part) for part in self.parts], axis=1)


def reaches(candidates: int) -> tuple[int, ...]:
    """Return how far an interval can reach: 0, 1, 2, 4, …, up to all candidates."""
    return (0, *(1 << power for power in range(1 + (candidates - 1).bit_length())))


def margin(level: Fraction, candidates: int, rate: Fraction, together: int = 1) -> int:
    """Return the margin at which an interval misses with probability at most `MISS`, alone or among several."""
    steps = len(reaches(candidates))
    loss = log(2 * steps / float(MISS))
    if together > 1:
        loss += 2 * log(2) + together * log(candidates * (3 * steps + 1)) - log(float(MISS))
    return 2 * level.denominator + ceil(loss / float(rate))


@dataclass(frozen=True, slots=True)
class ExtremeScore:
    """Scores an extreme: the largest (or smallest) value with `depth` rows at or beyond it.

    The loss of c is max(0, depth − #{x ≥ c}, #{x > c} − depth + 1): at depth 1 it is zero for the largest candidate
    with a row, alone. A depth above one keeps the selection away from empty candidates beyond all rows. The last
    candidate on the other side counts as having enough rows, so that one candidate has no loss however few rows
    there are.

    Theorem (Selected extremes). At a depth of ln(m/β)/rate, a candidate beyond all rows is selected among m with
    probability at most β.
    Proof    Such a candidate has the loss `depth`, and some candidate has none; so it is selected with probability at
             most e^(−rate·depth) = β/m (`IntervalScore`).
    Tested   tests/sql/test_scores.py::test_extremes_pass_all_rows_no_more_often_than_stated
    """

    largest: bool
    depth: int

    @property
    def sensitivity(self) -> int:
        """One row changes each count by 0 or 1, and the loss by at most as much."""
        return 1

    @property
    def scale(self) -> int:
        """The loss per row by which the extreme is missed."""
        return 1

    def outcomes(self, candidates: int) -> int:
        """Return the number of outcomes."""
        return candidates

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate."""
        up_to = np.cumsum(counts, axis=-1)
        outside = up_to[..., -1:] - up_to if self.largest else up_to - counts
        enough = outside + counts - self.depth
        enough[..., 0 if self.largest else -1] = 0
        scores: Counts = np.minimum(0, np.minimum(enough, self.depth - 1 - outside))
        return scores


def depth(candidates: int, rate: Fraction) -> int:
    """Return the depth at which an extreme passes all rows with probability at most `MISS`."""
    return max(1, ceil(log(candidates / float(MISS)) / float(rate)))


@dataclass(frozen=True, slots=True)
class CountScore:
    """Scores by the count, for the most frequent value."""

    @property
    def sensitivity(self) -> int:
        """One row adds 1 to one count."""
        return 1

    @property
    def scale(self) -> int:
        """The loss per row by which the largest count is missed."""
        return 1

    def outcomes(self, candidates: int) -> int:
        """Return the number of outcomes."""
        return candidates

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate."""
        return counts


ScoreFunction = QuantileScore | IntervalScore | JointScore | ExtremeScore | CountScore
