"""The statistic that compares noisy means of groups, and its law where all means are equal.

A row with outcome y in [−1, 1] adds (1 + y)/2 to one sum of its group and (1 − y)/2 to another: together they are the
number of rows, their difference is the sum of outcomes, and a row moves both by 1 in all. Numbers that are not 0 or 1
have a third sum, of their squares.

Tested in tests/analyses/statistics/test_means.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np

from hubbub.analyses.statistics import null as nulls
from hubbub.analyses.statistics.null import Floats, largest_p, simulated_noise
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

_TINY = 1e-6


@dataclass(frozen=True)
class MeanNoise:
    """The noise of the sums, in steps, and the number of steps per row.

    squares  of the sums of squares; None where outcomes are 0 or 1
    """

    sums: AdditiveNoise
    squares: AdditiveNoise | None
    steps: int

    @property
    def variance(self) -> float:
        """The variance of each of the two sums, in rows."""
        return (standard_deviation(self.sums) / self.steps) ** 2

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
        """Simulate the noise of each sum, in rows."""
        kinds = [self.sums, self.sums, *([] if self.squares is None else [self.squares])]
        return np.stack([simulated_noise(each, shape, generator) for each in kinds]) / self.steps


@dataclass(frozen=True)
class GroupSums:
    """The noisy sums of groups, along the last axis: rows, outcomes, and outcomes around their mean, squared."""

    rows: Floats
    outcomes: Floats
    means: Floats
    common: Floats
    spread: Floats
    noise: float

    @classmethod
    def of(cls, sums: Floats, noise: MeanNoise) -> "GroupSums":
        """Read the two or three sums along the first axis."""
        rows, outcomes = sums[0] + sums[1], sums[0] - sums[1]
        some = np.maximum(rows, 1.0)
        total = np.maximum(rows.sum(axis=-1, keepdims=True), 1.0)
        common = np.clip(outcomes.sum(axis=-1, keepdims=True) / total, -1, 1)
        means = np.clip(outcomes / some, -1, 1)
        if len(sums) == 2:
            spread = some * (1 - common**2)
        else:
            spread = np.clip(sums[2] - 2 * means * outcomes + means**2 * rows, 0, some * (1 - means**2))
            # one row more, at an end: a group may not have shown its rare outcomes, and then looks too certain
            spread += 1 - means**2
        return cls(rows, outcomes, means, common, spread, noise.variance)

    @property
    def statistic(self) -> Floats:
        """Compare the groups: the sum of squared deviations from the best common mean, in standard deviations.

        It divides by no noisy number of rows, so its law hardly depends on small groups.
        """
        each = self.spread + 2 * self.noise * (1 + self.common**2) + _TINY
        weight = np.maximum((self.rows**2 / each).sum(axis=-1, keepdims=True), _TINY)
        mean = np.clip((self.rows * self.outcomes / each).sum(axis=-1, keepdims=True) / weight, -1, 1)
        return np.asarray(((self.outcomes - mean * self.rows) ** 2 / each).sum(axis=-1))

    def deviations(self, *, binary: bool) -> Floats:
        """Give the variance of outcomes − mean·rows of each group, sampling and noise together."""
        some = np.maximum(self.rows, 1.0)
        near = np.minimum(1.0, np.abs(self.means) + 2 * sqrt(2 * self.noise) / some)
        # as if there were one more row of each value (Agresti and Caffo 2000): equal outcomes do not show that all are
        middle = np.clip(self.outcomes / (some + 2), -1, 1)
        spread = some * (1 - middle**2) + 1 if binary else self.spread
        return np.asarray(spread + 2 * self.noise * (1 + near**2) + _TINY)


def compare_means(
    sums: Floats, noise: MeanNoise, generator: np.random.Generator
) -> tuple[GroupSums, float, float, float]:
    """Give the groups, the statistic, its p-value, and its 95% point where the means are equal."""
    groups = GroupSums.of(sums, noise)
    statistic = float(groups.statistic)
    return groups, statistic, *largest_p(statistic, _nulls(groups, noise, generator))


def mean_intervals(groups: GroupSums, critical: float, *, binary: bool) -> tuple[Floats, Floats]:
    """Bound the mean of each group, in [−1, 1]: all means at which its sums would not be surprising.

    Of outcomes 0 or 1 the mean gives the variance, too, so that few rows and rare outcomes are allowed for (Wilson
    1927). What other outcomes vary by is estimated.
    """
    if binary:
        return _binary_intervals(groups, critical)
    half = np.sqrt(critical * groups.deviations(binary=binary))
    rows = groups.rows
    ends = np.stack([(groups.outcomes - half), (groups.outcomes + half)]) / np.where(rows > 0, rows, 1.0)
    low, high = np.clip(ends, -1, 1)
    return np.where(rows > 0, low, -1.0), np.where(rows > 0, high, 1.0)


def _binary_intervals(groups: GroupSums, critical: float) -> tuple[Floats, Floats]:
    """Give the means m with (outcomes − m·rows)² ≤ critical·((rows + 1)·(1 − m²) + 2·noise·(1 + m²))."""
    rows, outcomes, noise = groups.rows, groups.outcomes, 2 * groups.noise
    size = np.maximum(rows, 1.0) + 1
    square = rows**2 + critical * (size - noise)
    rest = outcomes**2 - critical * (size + noise + _TINY)
    inside = (rows * outcomes) ** 2 - square * rest
    known = (square > 0) & (rows > 0)
    half = np.sqrt(np.maximum(inside, 0.0))
    low, high = (np.clip((rows * outcomes + side * half) / np.where(known, square, 1.0), -1, 1) for side in (-1, 1))
    return np.where(known, low, -1.0), np.where(known, high, 1.0)


def difference_interval(groups: GroupSums, critical: float, *, binary: bool) -> tuple[float, float]:
    """Bound the difference of two means, in [−2, 2], as Fieller (1954) bounds a quotient.

    At the true means m₁, m₂ the numbers eᵢ = outcomesᵢ − mᵢ·rowsᵢ have expectation 0, and
    rows₂·(outcomes₁ − (m₁ − m₂)·rows₁) − rows₁·outcomes₂ = rows₂·e₁ − rows₁·e₂, noisy numbers of rows throughout.
    """
    (one, two), (a, b) = groups.rows, groups.outcomes
    if not (one > 0 and two > 0):
        return -2.0, 2.0
    first, second = groups.deviations(binary=binary)
    half = sqrt(critical * (two**2 * first + one**2 * second))
    middle = two * a - one * b
    low, high = (middle - half) / (one * two), (middle + half) / (one * two)
    return max(-2.0, float(low)), min(2.0, float(high))


def _nulls(groups: GroupSums, noise: MeanNoise, generator: np.random.Generator) -> Iterator[Callable[[], Floats]]:
    """Give null hypotheses around the estimate: numbers of rows, mean and spread, and the most skewed outcomes.

    Of all outcomes in [−1, 1] with given mean and variance, those with two values of which one is −1 or 1 have the
    largest and the smallest third moment; sums of others are closer to normal.
    """
    mean = float(groups.common[0])
    some = np.maximum(groups.rows, 1.0)
    total = float(some.sum())
    wide = 3 * sqrt(float((groups.spread + 2 * noise.variance * 2).sum())) / total
    inner = float(np.sign(mean)) * max(0.0, abs(mean) - wide)
    slack = 3 * sqrt(2 * noise.variance)
    binary = noise.squares is None
    noisy = 0.0 if noise.squares is None else 3 * standard_deviation(noise.squares) / noise.steps
    for rows, at in product((some, np.maximum(1.0, some - slack), some + slack), dict.fromkeys((mean, inner))):
        most = 1 - at**2
        if binary:
            yield _null(rows, at, np.full(len(rows), most), 1, noise, generator)
            continue
        # with few rows the spread is hardly known: one row more, with the largest spread
        for spread in (groups.spread / some, (groups.spread + noisy + most) / (some + 1)):
            for side in (-1, 1):
                yield _null(rows, at, np.minimum(spread, most), side, noise, generator)


def _null(
    rows: Floats, mean: float, variances: Floats, side: int, noise: MeanNoise, generator: np.random.Generator
) -> Callable[[], Floats]:
    """Simulate the statistic for outcomes of two values, one of which is −1 (side 1) or 1 (side −1)."""
    size = np.rint(rows).astype(np.int64)
    above = 1 + side * mean  # how far the mean is from the end
    chance = above**2 / np.maximum(above**2 + variances, 1e-300) if above > 0 else np.ones(len(rows))
    reach = above / np.maximum(chance, 1e-300)
    end, other = -side, -side + side * reach

    def simulated() -> Floats:
        shape = (nulls.DRAWS, len(rows))
        far = generator.binomial(size, np.clip(chance, 0, 1), shape)
        outcomes = end * size + (other - end) * far
        parts = [(size + outcomes) / 2, (size - outcomes) / 2]
        if noise.squares is not None:
            parts.append(size + (other**2 - 1) * far)
        return GroupSums.of(np.stack(parts) + noise.draw(shape, generator), noise).statistic

    return simulated
