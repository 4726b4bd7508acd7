"""Ratios of noisy sums, with intervals, and histograms of units: what a profile is read with.

Tested in tests/answers/test_profile.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

from hubbub.answers.left_out import Share

#: Half width of a 95% interval in standard deviations: exact for one Laplace noise, and enough for sums of several.
DEVIATIONS = log(20) / sqrt(2)
#: Counts are taken to be 0 if they are below this many standard deviations.
SIGNIFICANT = 3.0


@dataclass(frozen=True, slots=True)
class Noisy:
    """A noisy number and the standard deviation of its noise."""

    number: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum of noisy numbers, which are named by what they count and their place."""

    terms: Mapping[tuple[str, int], tuple[float, Noisy]]

    @property
    def value(self) -> float:
        """The estimate."""
        return sum(weight * noisy.number for weight, noisy in self.terms.values())

    @property
    def deviation(self) -> float:
        """The standard deviation of its noise."""
        return sqrt(sum((weight * noisy.deviation) ** 2 for weight, noisy in self.terms.values()))

    def minus(self, factor: float, other: "Linear") -> "Linear":
        """Subtract a multiple of another sum."""
        terms = dict(self.terms)
        for name, (weight, noisy) in other.terms.items():
            terms[name] = (terms.get(name, (0.0, noisy))[0] - factor * weight, noisy)
        return Linear(terms)

    def interval(self) -> tuple[float, float, float]:
        """Give the estimate, not below 0, and its 95% interval."""
        half = DEVIATIONS * self.deviation
        return max(0.0, self.value), max(0.0, self.value - half), max(0.0, self.value + half)


def share_of(part: Linear, whole: Linear, upper: Linear | None = None) -> Share:
    """Estimate a ratio of two noisy sums, with a 95% interval (Fieller 1954).

    A ratio x is in the interval if part − x·whole, which is 0 for the true ratio, is within the noise. `upper` is used
    for the upper end where the numerator itself is only known to lie between two sums.
    """
    upper = part if upper is None else upper
    total = max(whole.value, 1.0)
    value = min(1.0, max(0.0, (part.value + upper.value) / 2 / total))

    def too_low(x: float) -> bool:
        rest = part.minus(x, whole)
        return rest.value > DEVIATIONS * rest.deviation

    def too_high(x: float) -> bool:
        # a sum of counts is not below 0, whatever its noise
        excess = x * total - max(0.0, upper.value)
        return excess > DEVIATIONS * upper.minus(x, whole).deviation

    low = 0.0 if not too_low(0.0) else _bisected(too_low, 0.0, value)
    high = 1.0 if not too_high(1.0) else _bisected(lambda x: not too_high(x), value, 1.0)
    # four digits: the rest would only be noise
    return Share(round(value, 4), round(min(low, value), 4), round(max(high, value), 4))


def _bisected(holds: Callable[[float], bool], start: float, end: float) -> float:
    """Find where a condition that holds at the start and not at the end changes."""
    for _ in range(20):  # to 1e-6; shares are shown with four digits
        middle = (start + end) / 2
        start, end = (middle, end) if holds(middle) else (start, middle)
    return (start + end) / 2


def linear(what: str, counts: Sequence[float], deviation: float, weights: Mapping[int, float]) -> Linear:
    """Weigh noisy counts by their places."""
    return Linear({(what, place): (weight, Noisy(counts[place], deviation)) for place, weight in weights.items()})


@dataclass(frozen=True, slots=True)
class Histogram:
    """Noisy counts of units by level: bucket k has the units with more than levels[k−1] and at most levels[k].

    There may be one more bucket, for the units above all levels.
    """

    levels: tuple[int, ...]
    counts: tuple[int, ...]
    deviation: float

    def ends(self) -> list[tuple[int, int]]:
        """Give the ends of each bucket, the lower one excluded."""
        return list(pairwise((0, *self.levels)))

    def labels(self) -> list[str]:
        """Name the buckets: 1, 2, 3–4, 5–8, …"""
        labels = [str(high) if high - low == 1 else f"{low + 1:,}–{high:,}" for low, high in self.ends()]
        return labels + [f"over {self.levels[-1]:,}"] * (len(self.counts) - len(labels))

    @property
    def margin(self) -> float:
        """The ± of one count."""
        return DEVIATIONS * self.deviation

    def top(self) -> int:
        """Find the last bucket that matters: all those above it together may be empty."""
        last = len(self.levels) - 1
        while last > 0:
            tail = self.counts[last:]
            if sum(tail) > SIGNIFICANT * self.deviation * sqrt(len(tail)):
                break
            last -= 1
        return last

    def above(self) -> int:
        """Bound the number of units above the last bucket that matters, at 95% confidence."""
        tail = self.counts[self.top() + 1 :]
        return max(0, round(sum(tail) + self.margin * sqrt(len(tail))))
