"""Exact decisions: does a uniform real fall below a real threshold, of which we know ever narrower enclosures?

A uniform U in [0, 1) is an endless row of 64-bit words; the first k of them say that U lies in [u, u+1)·2⁻⁶⁴ᵏ. A
threshold p is a function that encloses p as narrowly as it is asked to. While the two intervals overlap, more is drawn
of U and more is computed of p; when they part, the outcome is decided as if U and p had been known in full. The fast
paths of the samplers decide nearly all draws on the first word, by integer thresholds or by doubles with a proven
error; where those cannot tell they say so, and never guess.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction

from hubbub.core import reals
from hubbub.errors import MechanismError
from hubbub.noise.source import Source

WORD = 64
Fixed = tuple[int, int]  #: (low, high) encloses a real x ≥ 0 as low ≤ x·2^bits ≤ high, for bits known from the context
Real = Callable[[int], Fixed]  #: bits → an enclosure at that many bits, a few units wide
Row = Callable[[int], tuple[Sequence[int], Sequence[int]]]  #: bits → lows and highs of a rising row of reals

_GUARD = 32  # bits by which an enclosure is finer than what is known of U, so that it rarely stands in the way
_MOST_BITS = 1 << 14


def exp_minus(x: Fraction) -> Real:
    """Enclose e^(−x) for x ≥ 0; a power that is too small to show at `bits` costs nothing, however large x is."""
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
        if x >= 0:  # e^-x / (1 + e^-x), rising in e^-x
            return (low << bits) // (one + low), -(-(high << bits) // (one + high))
        return (one << bits) // (one + high), -(-(one << bits) // (one + low))

    return at


def rational(p: Fraction) -> Real:
    """Enclose a rational number in [0, 1]."""
    if not 0 <= p <= 1:
        raise ValueError("a probability is in [0, 1]")
    return lambda bits: fixed(p, p, bits)


def fixed(low: Fraction, high: Fraction, bits: int) -> Fixed:
    """Round an enclosure outward to multiples of 2^-bits."""
    return (low.numerator << bits) // low.denominator, -((-high.numerator << bits) // high.denominator)


def threshold(real: Real) -> int:
    """Give ⌊p·2⁶⁴⌋: a first word below it means U < p, one above it U > p, and that word itself does not decide.

    For p = 1 it is 2⁶⁴ − 1, which is as right: no word is above it, and it alone does not decide.
    """
    bits = 2 * WORD
    while bits <= _MOST_BITS:
        low, high = (min(x >> (bits - WORD), (1 << WORD) - 1) for x in real(bits))
        if low == high:
            return low
        bits *= 2
    raise MechanismError("HB602", "a probability is too near to a multiple of 2^-64.", "Change a parameter slightly.")


def below(real: Real, first: int, source: Source) -> bool:
    """Say whether U < p, where `first` is the first word of U and more come from `source` where needed.

    Theorem (Lazy comparison). The answer is that of the comparison of U and p as real numbers, so it is true with
    probability exactly p, for every real p in [0, 1]; the expected number of further words is below 1 + 2⁻³⁰ where the
    first does not decide.
    Proof    It says true only where the upper end of U's interval is at most p's lower bound, and false only where U's
             lower end is at least p's upper bound. It goes on only where the two intervals meet; given the words so
             far, at most 3 of 2⁶⁴ next words leave them meeting, and U = p has probability 0.
    Assumes  independent uniform words; enclosures that hold and are less than 2³² units wide.
    Tested   tests/noise/test_decide.py::test_a_rational_threshold_decides_as_exact_arithmetic_does
             tests/noise/test_decide.py::test_refinement_follows_the_true_expansion_to_either_side
    """
    u, known = first, WORD
    while True:
        bits = known + _GUARD
        low, high = real(bits)
        if (u + 1) << _GUARD <= low:
            return True
        if u << _GUARD >= high:
            return False
        u = u << WORD | int(source.words(1)[0])
        known += WORD


def locate(row: Row, first: int, source: Source) -> int:
    """Say how many of a rising row of reals lie at or below U.

    A row may be the beginning of an infinite one, longer where more bits are asked for; it must then pass 1 − 2^-bits.
    Where U is beyond all that is known of the row, more is drawn and the row is made longer.

    Theorem (Lazy inverse distribution function). If the row is C₀ ≤ C₁ ≤ … → 1, the answer is j with probability
    exactly C_j − C_(j−1).
    Proof    As for `below`, for each real of the row: those counted are at or below all of U's interval, the others at
             or above it.
    Assumes  as for `below`.
    Tested   tests/noise/test_decide.py::test_a_row_is_searched_as_exact_arithmetic_does
             tests/noise/test_gaussian.py::test_the_far_tail_is_drawn_from_its_true_law
    """
    u, known = first, WORD
    while True:
        lows, highs = row(known + _GUARD)
        surely = bisect_right(highs, u << _GUARD)  # these are <= U
        perhaps = bisect_left(lows, (u + 1) << _GUARD)  # the others are >= the upper end of what U can be
        if surely == perhaps < len(lows):
            return surely
        u = u << WORD | int(source.words(1)[0])
        known += WORD
