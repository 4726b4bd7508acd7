"""Exact samplers of the geometric and the discrete Laplace distribution for every rational scale."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.noise.comparison import Real, below, exp_minus, logistic, threshold
from hubbub.noise.source import RandomSource, Words

_CHUNK = 1 << 15  # words per batch, so that they stay in the cache


@dataclass(frozen=True, slots=True)
class Digits:
    """The decisions behind one sample: the low digits, whether there are higher ones, and the sign."""

    reals: tuple[Real, ...]
    at: Words
    weights: NDArray[np.float64]

    @property
    def low(self) -> int:
        """The number of low digits."""
        return len(self.weights)


def geometric(*, scale: Fraction, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Sample `count` independent G ≥ 0 with Pr[G = k] = (1 − q)·qᵏ, q = e^(−1/scale), exactly.

    Theorem (Digits of a geometric variable). The binary digits of G are independent; digit i is 1 with probability
    1/(1 + e^(2ⁱ/scale)), and ⌊G/2ᴵ⌋ is geometric with ratio q^(2ᴵ), independent of the I digits below.
    Proof    qᵏ with k = 2ᴵ·h + Σ bᵢ2ⁱ is the product of q^(2ᴵ·h) and of the q^(2ⁱ·bᵢ), a function of each digit alone;
             digit i is 1 with probability q^(2ⁱ)/(1 + q^(2ⁱ)), and h has weights (q^(2ᴵ))ʰ.
             Coq has checked it: proofs/Geometric.v, `geometric_law`.
    Assumes  the words are independent and uniform; each digit is decided exactly (`comparison`).
    Error    mean q/(1 − q); the work is I + 1 words, I the least with 2ᴵ/scale > 64·ln 2, whatever G is, but where a
             word does not decide (2⁻⁶⁴ for each). A value beyond int64 raises OverflowError (never: e^(−4,000,000)).
    Tested   tests/noise/test_geometric.py::test_distribution_from_thresholds_is_the_closed_form_at_100_digits
    """
    return _sample(_digits(scale), count, source, two_sided=False)


def discrete_laplace(*, scale: Fraction, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Sample `count` independent Z with Pr[Z = z] = (1 − q)/(1 + q)·q^|z|, q = e^(−1/scale), exactly.

    Theorem (Discrete Laplace from a geometric variable). With G geometric of ratio q and, independently, a coin that
    is true with probability q/(1 + q), Z = −1 − G where the coin is true and Z = G where not has this distribution.
    Proof    Pr[Z = k] = (1 − q)qᵏ/(1 + q) for k ≥ 0; Pr[Z = −1 − k] = (1 − q)qᵏ·q/(1 + q) = (1 − q)/(1 + q)·q^|−1−k|.
             Coq has checked it: proofs/Geometric.v, `laplace_law`.
    Assumes  as for `geometric`; the coin has the probability of digit 0.
    Error    variance 2q/(1 − q)², which is 1.841 at scale 1; I + 2 words per sample, whatever Z is.
    Tested   tests/noise/test_geometric.py::test_distribution_from_thresholds_is_the_closed_form_at_100_digits
    """
    return _sample(_digits(scale), count, source, two_sided=True)


@lru_cache(maxsize=256, typed=True)
def _digits(scale: Fraction) -> Digits:
    scale = numbers.scale(scale)
    low = 0
    while threshold(exp_minus((1 << low) / scale)) > 0:
        low += 1
    reals = (*(logistic((1 << i) / scale) for i in range(low)), exp_minus((1 << low) / scale), logistic(1 / scale))
    at = np.array([threshold(real) for real in reals], dtype=np.uint64)
    return Digits(reals, at[:, None], np.array([2.0**i for i in range(low)]))


def _sample(digits: Digits, count: int, source: RandomSource, *, two_sided: bool) -> NDArray[np.int64]:
    rows = digits.low + 1 + two_sided
    samples = np.empty(count, dtype=np.int64)
    width = _CHUNK // rows
    for start in range(0, count, width):
        part = samples[start : start + width]
        words = source.words(rows * len(part)).reshape(rows, len(part))
        bits = words < digits.at[:rows]
        undecided = words == digits.at[:rows]
        high: dict[int, int] = {}
        if np.count_nonzero(undecided):
            for row, column in np.argwhere(undecided):
                bits[row, column] = below(digits.reals[row], int(words[row, column]), source)
                if row == digits.low and bits[row, column]:
                    high[column] = _higher_digits(digits, source)
        # Sums of distinct powers of two below 2^53 are exact in doubles, in any order.
        part[:] = digits.weights @ bits[: digits.low]
        for column, value in high.items():
            part[column] += value << digits.low
        if two_sided:
            part ^= -bits[-1].astype(np.int64)  # ~G = -1 - G
    return samples


def _higher_digits(digits: Digits, source: RandomSource) -> int:
    value = 1
    while below(digits.reals[digits.low], int(source.words(1)[0]), source):
        value += 1
    return value
