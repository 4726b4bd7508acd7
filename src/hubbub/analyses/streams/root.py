"""Continual counting by the square root of the counting matrix, which has the smallest known error."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.streams.convolution import latest_sums
from hubbub.analyses.streams.tree import MAX_HORIZON, Arrays
from hubbub.core import deadline, numbers
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.noise.source import RandomSource

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]

#: The integer that represents 1 in the rounded matrix.
UNIT = 1 << 20


def kernel(horizon: int) -> Integers:
    """Return the first column of the rounded matrix: UNIT·(2k choose k)/4ᵏ, to the nearest integer.

    >>> kernel(4).tolist()
    [1048576, 524288, 393216, 327680]
    """
    return _kernel(_size(horizon))[:horizon]


def _size(horizon: int) -> int:
    """Round up to a power of two, because the column of a horizon is a prefix of the column of a longer one.

    The cache stays small, and an analyst who varies the horizon cannot force a new computation with every request.
    """
    return 1 << (horizon - 1).bit_length()


@lru_cache(maxsize=32)
def _kernel(size: int) -> Integers:
    k = np.arange(1, size, dtype=np.float64)
    column: Integers = np.rint(UNIT * np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])).astype(np.int64)
    return column


def squared_norm(horizon: int) -> int:
    """Return the sum of the squares of the kernel, exactly.

    >>> squared_norm(1024) / UNIT**2  # doctest: +ELLIPSIS
    3.27...
    """
    column = kernel(horizon)
    # the k-th is at most UNIT/√k, so the sum is below UNIT²·(2 + ln horizon), far from 2⁶³
    return int((column * column).sum())


def inverse(horizon: int) -> Doubles:
    """Return the column l with Σₖ l[k]·kernel[t − k] = 1 for every t, which turns measurements into running counts.

    It is the power series 1/((1 − z)·kernel(z)), by Newton's iteration. This is post-processing, so doubles suffice.
    """
    return _inverse(_size(horizon))[:horizon]


@lru_cache(maxsize=32)
def _inverse(size: int) -> Doubles:
    column = _kernel(size).astype(np.float64)
    series = np.array([1 / column[0]])
    while len(series) < size:
        deadline.check()
        more = 2 * len(series)
        # g ← g·(2 − k·g), modulo z^more
        rest = -_product(column[:more], series, more)
        rest[0] += 2
        series = _product(series, rest, more)
    summed: Doubles = np.cumsum(series)
    return summed


def _product(one: Doubles, other: Doubles, size: int) -> Doubles:
    length = 1 << (len(one) + len(other)).bit_length()
    result: Doubles = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)[:size]
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareRootCounter:
    """Count arrivals per bin, with an answer after every arrival, by a factorization of the counting matrix.

    Theorem (Continual counting by the square root). Let A be the lower triangular matrix of ones and R the lower
    triangular Toeplitz matrix with first column `kernel`, all integers. y = R·x + z with independent discrete Gaussian
    z of variance σ² is D²·n/(2σ²)-zCDP, n = Σ kernel² exactly, D² the squared L2 norm of what one arrival adds; running
    counts A·R⁻¹·y follow from y. Also where later arrivals are chosen by earlier answers (Fichtenberger, Henzinger and
    Upadhyay 2023; Henzinger, Upadhyay and Upadhyay 2023; rounded here, and on the integers).
    Proof    One arrival at time j moves y_t by kernel[t − j]·d for t ≥ j and by nothing before: in squares by at most
             D²·Σ kernel². Given y up to t − 1 the move of y_t is fixed, and its noise independent: Rényi divergences
             add up to the same sum. Which integers `kernel` holds does not matter for the proof; n is computed from
             them, and the sums R·x are exact.
    Assumes  the state (arrivals, measurements) is kept secret: it is not pan-private.
    Error    deviation at time t is σ·√(Σ_{k<t} l[k]²), near σ·√(n)/UNIT at the end; with n/UNIT² = (ln T + γ + ln 16)/π
             that is 5.5 at T = 2²⁰, where a tree has 20.5.
    Tested   tests/analyses/streams/test_root.py::test_the_moved_column_is_the_stated_sensitivity_exactly
             tests/analyses/streams/test_root.py::test_measurements_are_exact_sums_and_noise
             tests/analyses/streams/test_root.py::test_factors_of_1024_prefix_sums
    """

    horizon: int
    bins: int
    noise: Gaussian

    def __post_init__(self) -> None:
        numbers.integer(self.horizon, "horizon", 1, MAX_HORIZON)
        numbers.integer(self.bins, "bins", 1, 10**6)

    def start(self, source: RandomSource) -> Arrays:
        """Start with an empty state."""
        del source
        empty = np.zeros((0, self.bins), dtype=np.int64)
        return {"arrived": empty.astype(np.int32), "measured": empty}

    def take(self, state: Arrays, values: Integers, source: RandomSource) -> Arrays:
        """Add arrivals, one row each (what it adds to each bin), and measure after each of them."""
        arrived = np.concatenate([state["arrived"], values.astype(np.int32)])
        column, count = kernel(self.horizon), len(values)
        sums = [latest_sums(arrived[:, i].astype(np.int64), column, count) for i in range(self.bins)]
        measured = self.noise.sample(np.stack(sums, axis=1), source)
        return {"arrived": arrived, "measured": np.concatenate([state["measured"], measured])}

    def estimates(self, state: Arrays) -> Doubles:
        """Return the count after each arrival."""
        measured = state["measured"].astype(np.float64)
        if not len(measured):
            return measured
        weights = inverse(self.horizon)[: len(measured)]
        return np.stack([_product(weights, column, len(measured)) for column in measured.T], axis=1)

    def latest(self, state: Arrays) -> Doubles:
        """Return the latest count, 0 before the first arrival, without computing the earlier ones."""
        measured = state["measured"].astype(np.float64)
        count: Doubles = inverse(self.horizon)[: len(measured)][::-1] @ measured
        return count

    def deviation(self, start: int, end: int) -> float:
        """Return the standard deviation of the estimate at `end` minus that at `start` (0: of the one at `end`)."""
        weights = inverse(self.horizon)[:end].copy()
        if start:
            weights[end - start :] -= inverse(self.horizon)[:start]
        return float(np.sqrt(float(self.noise.variance) * (weights**2).sum()))
