"""Exact Bernoulli samplers for rational and real probabilities."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.noise.comparison import Real, below, exp_minus, logistic, rational, threshold
from hubbub.noise.source import RandomSource
from hubbub.noise.weights import powers

Bits = NDArray[np.bool_]

#: Error bound of the doubles in `bernoulli_exp_each`, in units of 2⁻⁵³; its docstring proves 35.
BAND = 64.0


def bernoulli(*, probability: Fraction, count: int, source: RandomSource) -> Bits:
    """Sample `count` independent bits, each true with exactly this probability in [0, 1]."""
    if not 0 <= probability <= 1:
        raise ParameterError("HB103", "The probability is not between 0 and 1.", "Choose a value in that range.")
    return _flip(*_rational(probability), count, source)


def bernoulli_exp(*, exponent: Fraction, count: int, source: RandomSource) -> Bits:
    """Sample `count` independent bits, each true with probability exactly e^(−exponent), for any exponent ≥ 0."""
    if not exponent >= 0:
        raise ParameterError("HB103", "The exponent is negative.", "Choose a value of 0 or more.")
    return _flip(*_exponential(exponent), count, source)


def bernoulli_logistic(*, exponent: Fraction, count: int, source: RandomSource) -> Bits:
    """Sample `count` independent bits, each true with probability exactly 1/(1 + e^exponent), for any rational."""
    return _flip(*_logistic(exponent), count, source)


def bernoulli_real(*, probability: Real, count: int, source: RandomSource) -> Bits:
    """Sample `count` independent bits, each true with exactly the probability that `probability` encloses."""
    return _flip(probability, np.uint64(threshold(probability)), count, source)


def bernoulli_exp_each(*, rate: Fraction, gaps: NDArray[np.int64], source: RandomSource) -> Bits:
    """Sample one bit for each gap ≥ 0, true with probability exactly e^(−rate·gap).

    Theorem (Doubles that cannot decide wrongly). With one word per gap, whatever the gaps are, each bit is the result
    of exact arithmetic on its word and, where needed, further words.
    Proof    The word's leading 53 bits n say that U lies in [n, n + 1]·2⁻⁵³. The double w stands for e^(−rate·gap)
             within 2⁻⁴⁸ = 32 units of 2⁻⁵³ (a clipped power within one). n and w·2⁵³ are exact in doubles and their
             difference is within one unit. So a difference beyond the band decides as the true numbers would, and one
             inside it is decided by `below`.
    Tested   tests/noise/test_bernoulli.py::test_a_coin_for_each_gap_decides_as_enclosures_do
             tests/noise/test_bernoulli.py::test_an_error_of_the_doubles_within_the_band_changes_no_outcome
    """
    powers_of = powers(rate).of
    if not (gaps.dtype == np.int64 and (gaps >= 0).all()):
        raise ParameterError(
            "HB103", "The gaps are not non-negative int64 values.", "Pass an int64 array with values of 0 or more."
        )
    words = source.words(gaps.size)
    difference = powers_of(gaps.view(np.uint64)) * 2.0**53 - (words >> np.uint64(11)).astype(np.float64)
    bits: Bits = difference > 0
    for i in np.flatnonzero(np.abs(difference) <= BAND):
        bits[i] = below(exp_minus(rate * int(gaps[i])), int(words[i]), source)
    return bits


@lru_cache(maxsize=256)
def _rational(probability: Fraction) -> tuple[Real, np.uint64]:
    real = rational(probability)
    return real, np.uint64(threshold(real))


@lru_cache(maxsize=256)
def _exponential(exponent: Fraction) -> tuple[Real, np.uint64]:
    real = exp_minus(exponent)
    return real, np.uint64(threshold(real))


@lru_cache(maxsize=256)
def _logistic(exponent: Fraction) -> tuple[Real, np.uint64]:
    real = logistic(exponent)
    return real, np.uint64(threshold(real))


def _flip(real: Real, at: np.uint64, count: int, source: RandomSource) -> Bits:
    words = source.words(count)
    bits: Bits = words < at
    undecided = words == at
    if np.count_nonzero(undecided):
        for i in np.flatnonzero(undecided):
            bits[i] = below(real, int(at), source)
    return bits
