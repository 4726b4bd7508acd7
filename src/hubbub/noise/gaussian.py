"""Exact sampler of the discrete Gaussian distribution for every rational variance."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.errors import MechanismError
from hubbub.noise.comparison import WORD_BITS, Fixed, below, exp_minus, locate
from hubbub.noise.source import RandomSource, Words

Doubles = NDArray[np.float64]

VARIANCE_MIN, VARIANCE_MAX = numbers.SCALE_MIN**2, numbers.SCALE_MAX**2

#: Error bound of `_powers`, in units of 2⁻⁵³; its docstring proves 1,400.
BAND = 2048.0

_FINENESS = 64  # minimum buckets per standard deviation, where a bucket is wider than one integer
_CHUNK = 1 << 12  # trials per batch, so that they stay in the cache
_FEW = 16  # up to this many words, each is compared with every bucket boundary
_SPARE = 1  # extra trials: one sample then takes one round, nearly always, and the same work
_GUARD = 64  # extra bits of sums over the requested precision
_LARGEST = Fraction(5, 32)  # largest exponent that `_powers` covers
_COEFFICIENTS = tuple(2.0**53 * (1 / factorial(k)) for k in range(9))


@dataclass(frozen=True, slots=True)
class Buckets:
    """Bucket 2h holds hB, …, hB + B − 1 and bucket 2h + 1 its mirror image −1 − hB, …, −hB − B; B = 2^width.

    m is the least |x| of a bucket. A trial takes a bucket with Pr ∝ e^(−m²/2σ²), an offset l in it uniformly, and keeps
    x with |x| = m + l with probability e^(−(x² − m²)/2σ²) = e^(−l(l + 2m)/2σ²).
    """

    half_precision: Fraction  # 1/(2σ²)
    rounded: float  # the same, to the nearest
    width: int
    at: Words  # ⌊2⁶⁴·Pr[bucket ≤ j]⌋, up to the first that is 2⁶⁴ − 1

    def find(self, words: Words) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the bucket of each word, and whether the word fails to decide it.

        A few words are compared with every boundary: a binary search would touch memory that depends on the word, and
        the far buckets are rarely in the cache, which an attacker could see in the timing.
        """
        index: NDArray[np.int64]
        if len(words) > _FEW:
            index = self.at.searchsorted(words)
        else:
            index = np.add.reduce(self.at < words[:, None], axis=1, dtype=np.int32).astype(np.int64)
        return index, self.at[index] == words

    def row(self, bits: int) -> tuple[list[int], list[int]]:
        """Enclose Pr[bucket ≤ j] for all buckets except some with a total probability below 2^-bits."""
        return _row(self.half_precision, self.width, bits)


def discrete_gaussian(*, variance: Fraction, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Sample `count` independent Z with Pr[Z = z] ∝ e^(−z²/2·variance), exactly.

    Theorem (Discrete Gaussian from buckets). A trial takes a bucket with Pr ∝ e^(−m²/2σ²), m being its least |x|, a
    uniform x in it, and keeps x with probability e^(−(x² − m²)/2σ²). A kept x has the distribution of Z, and the number
    of trials is independent of it.
    Proof    Pr[x is taken and kept] ∝ e^(−m²/2σ²)·e^(−(x² − m²)/2σ²)/B = e^(−x²/2σ²)/B, the same constant for every x;
             trials are independent, so the first kept one has the conditional distribution, whichever trial it is.
             Coq has checked it: proofs/Gaussian.v, `trial_law` and `first_kept`.
    Assumes  independent uniform words; buckets and acceptance decided exactly (`comparison`).
    Error    variance at most that of the parameter; 3 words per trial, of which over 98% are kept (below a standard
             deviation of 128 one word, every trial being kept, for a bucket is one integer).
    Tested   tests/noise/test_gaussian.py::test_distribution_from_boundaries_is_the_closed_form_at_100_digits
             tests/noise/test_gaussian.py::test_an_error_of_the_series_within_the_band_changes_no_outcome
    """
    buckets = _buckets(variance)
    samples = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        need = count - done
        kept = _trials(buckets, min(_CHUNK, need + need // 64 + _SPARE if buckets.width else need), source)[:need]
        samples[done : done + len(kept)] = kept
        done += len(kept)
    return samples


def _trials(buckets: Buckets, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Run `count` trials and return the kept values, in order."""
    words = source.words(count * (3 if buckets.width else 1)).reshape(-1, count)
    index, undecided = buckets.find(words[0])
    negative = index & 1
    values = index >> 1 << buckets.width
    if not buckets.width:
        values ^= -negative  # x, or -1 - x
        if np.count_nonzero(undecided):
            for i in np.flatnonzero(undecided):
                values[i] = _value(buckets, locate(buckets.row, int(words[0, i]), source), 0)
        return values
    offsets = (words[1] >> np.uint64(WORD_BITS - buckets.width)).view(np.int64)
    exponents = offsets.astype(np.float64)
    exponents *= exponents + 2.0 * (values + negative)
    exponents *= buckets.rounded
    difference = _powers(exponents)
    difference -= words[2] >> np.uint64(11)
    values += offsets
    values ^= -negative
    kept: NDArray[np.bool_] = difference > 0
    undecided |= np.abs(difference) <= BAND
    if np.count_nonzero(undecided):
        for i in np.flatnonzero(undecided):
            bucket, offset = int(index[i]), int(offsets[i])
            if buckets.at[bucket] == words[0, i]:
                bucket = locate(buckets.row, int(words[0, i]), source)
            values[i] = _value(buckets, bucket, offset)
            kept[i] = below(exp_minus(_exponent(buckets, bucket, offset)), int(words[2, i]), source)
    return values.compress(kept)


def _value(buckets: Buckets, bucket: int, offset: int) -> int:
    least = (bucket >> 1 << buckets.width) + offset
    return -1 - least if bucket & 1 else least


def _exponent(buckets: Buckets, bucket: int, offset: int) -> Fraction:
    least = (bucket >> 1 << buckets.width) + (bucket & 1)
    return offset * (offset + 2 * least) * buckets.half_precision


def _powers(exponents: Doubles) -> Doubles:
    """Return 2⁵³·e^(−g) for each g in [0, 5/32], where g was computed by `_trials`.

    Proof of the error, from the rounding of + − × alone: each is within a factor 1 ± u, u = 2⁻⁵² (whatever the rounding
    mode). l and l + 2m are integers below 2⁵³ and exact, so g, a product of them and the rounded 1/2σ², is within
    3.01u·g < 0.5u of the truth, and so is e^(−g). Horner's rule s_k = c_k − g·s_(k+1), with 0 ≤ s_k ≤ c_k = 1/k!, has
    errors e_k ≤ u·c_k [k > 1] + u·g·c_(k+1) + u·c_k + 1.01·g·e_(k+1): e_3 ≤ 0.4u, e_2 ≤ 1.1u, e_1 ≤ 1.3u, e_0 ≤ 1.4u.
    Together below 2u, which is 4 units of 2⁻⁵³. Taylor's series to degree 8 leaves (5/32)⁹/9! < 1,380 units. In
    `_trials` the word's leading 53 bits and the subtraction add 2 units.
    """
    powers = exponents * _COEFFICIENTS[-1]
    for coefficient in _COEFFICIENTS[-2:0:-1]:
        np.subtract(coefficient, powers, out=powers)
        powers *= exponents
    return np.subtract(_COEFFICIENTS[0], powers, out=powers)


@lru_cache(maxsize=64, typed=True)
def _buckets(variance: Fraction) -> Buckets:
    variance = numbers.in_range(variance, "variance", VARIANCE_MIN, VARIANCE_MAX)
    half_precision, width = 1 / (2 * variance), 0
    while variance >= _FINENESS**2 << (2 * (width + 1)):
        width += 1
    bits = 2 * WORD_BITS
    while bits <= 1 << 12:
        # every share is below 1, so one that was rounded up to 1 has the floor 2^64 - 1
        lows, highs = (
            [min(share >> (bits - WORD_BITS), (1 << WORD_BITS) - 1) for share in side]
            for side in _row(half_precision, width, bits)
        )
        if lows == highs:
            break
        bits *= 2
    else:
        raise MechanismError(
            "HB602", "A probability is too close to a multiple of 2^-64.", "Change the variance slightly."
        )
    size = lows.index((1 << WORD_BITS) - 1) + 1
    buckets = Buckets(
        half_precision=half_precision,
        rounded=float(half_precision),
        width=width,
        at=np.array(lows[:size], dtype=np.uint64),
    )
    if not _exponent(buckets, size - 1, (1 << width) - 1) <= _LARGEST:
        raise AssertionError("a bucket is too wide for the series")
    return buckets


def _row(half_precision: Fraction, width: int, bits: int) -> tuple[list[int], list[int]]:
    """Enclose Pr[bucket ≤ j], from weights that follow by multiplication: e^(−(h+1)²a) = e^(−h²a)·e^(−(2h+1)a)."""
    side, unit = 1 << width, 1 << (bits + _GUARD)

    def power(x: int) -> Fixed:
        return exp_minus(x * half_precision)(bits + _GUARD)

    def times(x: Fixed, y: Fixed) -> Fixed:
        return x[0] * y[0] >> (bits + _GUARD), -(-x[1] * y[1] >> (bits + _GUARD))

    shrink = power(2 * side * side)
    right, right_step = (unit, unit), power(side * side)
    left, left_step = power(1), power(side * side + 2 * side)
    lows, highs = [0], [0]
    while True:
        for weight in (right, left):
            lows.append(lows[-1] + weight[0])
            highs.append(highs[-1] + weight[1])
        right, left = times(right, right_step), times(left, left_step)
        right_step, left_step = times(right_step, shrink), times(left_step, shrink)
        # both sides are below 2·right, and each next weight is below right_step times the one before
        tail = -(-2 * right[1] * unit // (unit - right_step[1]))
        if tail >> (_GUARD - 2) == 0:
            break
    shares = [
        ((low << bits) // (low + highs[-1] + tail - high), -(-(high << bits) // (high + lows[-1] - low)))
        for low, high in zip(lows[1:], highs[1:], strict=True)
    ]
    return [low for low, _ in shares], [high for _, high in shares]
