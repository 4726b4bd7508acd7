"""Counts of groups that are shown because their noisy count is large: their noise is biased upward.

Tested in tests/sql/test_shown_counts.py.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection

Floats = NDArray[np.float64]

#: Intervals hold for groups that are shown with at least this probability.
LIKELY = 0.01
#: The probability that the lower end of an interval misses.
MISS = 0.025


def lower_end(rule: PartitionSelection, shown: Floats, half: Floats) -> Floats:
    """Return the lower end of the interval of a count that is shown only if it reaches a threshold.

    Theorem (Shown counts). Let U = N + Z be shown only if U ≥ τ, let h be such that Pr[|Z| > h] ≤ 5%, and let N be such
    that Pr[U ≥ τ] ≥ 1%. Given that U is shown, the interval from this end to U + h holds N with probability at least
    95%.
    Proof    The lower end is at most the least m ≥ m₀ with Pr[Z ≥ U − m] > 2.5% · Pr[Z ≥ τ − m], where m₀ is the least
             number that is shown with probability 1%. The ratio of these tails, the chance that a shown count of m is U
             or more, grows with m. So the end exceeds N only if that chance is at most 2.5% at N, which given that U is
             shown has probability at most 2.5%. U + h is below N only if Z < −h. Given Z ≥ τ − N that is no more likely
             than without it, at most 2.5% by symmetry.
    Assumes  the noise is symmetric and unimodal; Gaussian tails are those of the continuous distribution.
    Charges  nothing: this is post-processing.
    Tested   tests/sql/test_shown_counts.py::test_intervals_of_shown_counts_cover_given_that_they_are_shown
    """
    tau = float(rule.threshold)
    first = _least(np.array([1.0]), np.array([tau]), lambda m: _tail(rule, tau - m) >= LIKELY)
    low = np.broadcast_to(first, shown.shape).astype(np.float64)
    accepted = _least(low, np.maximum(shown, low), lambda m: _tail(rule, shown - m) > MISS * _tail(rule, tau - m))
    return np.maximum(1.0, np.minimum(shown - half, accepted))


def _least(low: Floats, high: Floats, holds: Any) -> Floats:
    """Return the least integer from low to high from which on a monotone property holds; high, if it never does."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        good = holds(middle)
        high = np.where((low < high) & good, middle, high)
        low = np.where((low < high) & ~good, middle + 1, low)
    return high


def _tail(rule: PartitionSelection, distance: Floats | float) -> Floats:
    """Return Pr[Z ≥ distance] for whole numbers."""
    k = np.asarray(distance, dtype=np.float64)
    if isinstance(rule.noise, Laplace):
        scale = float(rule.noise.scale)
        ratio = math.exp(-1 / scale)
        far = np.exp(-np.where(k > 0, k, 1 - k) / scale) / (1 + ratio)
        return np.where(k > 0, far, 1 - far)
    deviation = math.sqrt(rule.noise.variance)
    tails: Floats = np.vectorize(math.erfc, otypes=[float])((k - 0.5) / (deviation * math.sqrt(2))) / 2
    return tails
