"""Exact comparison of a uniform real with a real threshold, by lazy refinement of both.

A uniform U in [0, 1) is an infinite sequence of 64-bit words; the first k of them place U in [u, u+1)·2⁻⁶⁴ᵏ. A
threshold p is a function that returns enclosures of p of any width. While the two intervals overlap, both are refined;
once they are disjoint, the outcome is the one that U and p have as real numbers. The fast paths of the samplers decide
nearly all samples on the first word, by integer thresholds or by doubles with a proven error, and fall back to this
module otherwise.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction

from hubbub.core import reals
from hubbub.errors import MechanismError
from hubbub.noise.source import RandomSource

WORD_BITS = 64
Fixed = tuple[int, int]  #: (low, high) encloses a real x ≥ 0 as low ≤ x·2^bits ≤ high, for bits known from the context
Real = Callable[[int], Fixed]  #: bits → an enclosure at that precision, a few units wide
Row = Callable[[int], tuple[Sequence[int], Sequence[int]]]  #: bits → lows and highs of an increasing sequence of reals

_GUARD = 32  # extra bits of an enclosure over those known of U, so that it rarely blocks a decision
_MAX_BITS = 1 << 14


def exp_minus(x: Fraction) -> Real:
    """Enclose e^(−x) for x ≥ 0; powers below 2^-bits are free, however large x is."""
    if not x >= 0:
        raise ValueError("exp_minus needs x >= 0")

    def at(bits: int) -> Fixed:
        if x > bits:  # e^-x < 2^-bits
            return 0, 1
        return fixed(*reals.exp(-x, bits * 302 // 1000 + 4), bits)  # 0.302 > log10(2)

    return at


def logistic(x: Fraction) -> Real:
    """Enclose 1/(1 + e^x) for every rational x."""
    power = exp_minus(abs(x))

    def at(bits: int) -> Fixed:
        low, high = power(bits + 2)
        one = 1 << (bits + 2)
        if x >= 0:  # e^-x / (1 + e^-x), increasing in e^-x
            return (low << bits) // (one + low), -(-(high << bits) // (one + high))
        return (one << bits) // (one + high), -(-(one << bits) // (one + low))

    return at


def rational(p: Fraction) -> Real:
    """Enclose a rational number in [0, 1]."""
    if not 0 <= p <= 1:
        raise ValueError("the probability is not in [0, 1]")
    return lambda bits: fixed(p, p, bits)


def fixed(low: Fraction, high: Fraction, bits: int) -> Fixed:
    """Round an enclosure outward to multiples of 2^-bits."""
    return (low.numerator << bits) // low.denominator, -((-high.numerator << bits) // high.denominator)


def threshold(real: Real) -> int:
    """Return ⌊p·2⁶⁴⌋: a first word below it means U < p, one above it U > p, and an equal word does not decide.

    For p = 1 it is 2⁶⁴ − 1, which is correct as well: no word is above it, and only this word does not decide.
    """
    bits = 2 * WORD_BITS
    while bits <= _MAX_BITS:
        low, high = (min(x >> (bits - WORD_BITS), (1 << WORD_BITS) - 1) for x in real(bits))
        if low == high:
            return low
        bits *= 2
    raise MechanismError("HB602", "A probability is too close to a multiple of 2^-64.", "Change a parameter slightly.")


def below(real: Real, first: int, source: RandomSource) -> bool:
    """Return whether U < p, where `first` is the first word of U and `source` supplies more if needed.

    Theorem (Lazy comparison). The answer is that of the comparison of U and p as real numbers, so it is true with
    probability exactly p, for every real p in [0, 1]; the expected number of further words is below 1 + 2⁻³⁰ where the
    first does not decide.
    Proof    It returns true only where the upper end of U's interval is at most p's lower bound, and false only where
             U's lower end is at least p's upper bound. It continues only while the two intervals meet; given the words
             so far, at most 3 of 2⁶⁴ next words leave them meeting, and U = p has probability 0. Coq has checked
             the decisions: proofs/Comparison.v, `true_means_below` and `false_means_not_below`.
    Assumes  independent uniform words; enclosures that hold and are less than 2³² units wide.
    Tested   tests/noise/test_comparison.py::test_a_rational_threshold_decides_as_exact_arithmetic_does
             tests/noise/test_comparison.py::test_refinement_follows_the_true_expansion_to_either_side
    """
    u, known = first, WORD_BITS
    while True:
        bits = known + _GUARD
        low, high = real(bits)
        if (u + 1) << _GUARD <= low:
            return True
        if u << _GUARD >= high:
            return False
        u = u << WORD_BITS | int(source.words(1)[0])
        known += WORD_BITS


def locate(row: Row, first: int, source: RandomSource) -> int:
    """Return how many of an increasing sequence of reals lie at or below U.

    A row may be a prefix of an infinite sequence, longer at higher precision; it must then exceed 1 − 2^-bits. If U is
    beyond the known prefix, both are refined.

    Theorem (Lazy inverse distribution function). If the row is C₀ ≤ C₁ ≤ … → 1, the answer is j with probability
    exactly C_j − C_(j−1).
    Proof    As for `below`, for each real of the row: those counted are at or below all of U's interval, the others at
             or above it.
    Assumes  as for `below`.
    Tested   tests/noise/test_comparison.py::test_a_row_is_searched_as_exact_arithmetic_does
             tests/noise/test_gaussian.py::test_the_far_tail_is_drawn_from_its_true_distribution
    """
    u, known = first, WORD_BITS
    while True:
        lows, highs = row(known + _GUARD)
        surely = bisect_right(highs, u << _GUARD)  # these are <= U
        perhaps = bisect_left(lows, (u + 1) << _GUARD)  # the others are >= the upper end of what U can be
        if surely == perhaps < len(lows):
            return surely
        u = u << WORD_BITS | int(source.words(1)[0])
        known += WORD_BITS
