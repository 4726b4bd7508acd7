"""An exact sampler of rounded noise with polynomial tails."""

from fractions import Fraction

from hubbub.core import numbers
from hubbub.noise.comparison import WORD_BITS
from hubbub.noise.source import RandomSource

#: The error of a root is halved in each of the first steps, at worst, and squared in the others.
_STEPS = 24


def tail(least: int, scale: Fraction, power: int) -> Fraction:
    """Give Pr[|round(scale·Z)| ≥ least] for least ≥ 1, where Pr[|Z| > z] = (1 + z)^−power.

    >>> tail(1, Fraction(1, 2), 2)
    Fraction(1, 4)
    """
    return (scale / (scale + least - Fraction(1, 2))) ** power


def polynomial(*, scale: Fraction, power: int, source: RandomSource) -> int:
    """Sample round(scale·Z) for Z of density (power/2)·(1 + |z|)^−(power+1), exactly.

    Theorem (Rounded polynomial noise). For a uniform U, |scale·Z| = scale·(U^(−1/power) − 1) has the right tails, and
    its nearest integer is the largest m with U·(scale + m − 1/2)^power ≤ scale^power, or 0.
    Proof    Pr[U ≤ (1 + z)^−power] = (1 + z)^−power, and m − 1/2 ≤ |scale·Z| is that inequality. The words of U place
             it between two rationals; where both have the same m, so has U, and otherwise another word is read.
    Error    none; one word decides except with probability about 2⁻⁶⁰·scale.
    Tested   tests/noise/test_polynomial.py::test_the_probability_of_each_integer_is_exact
             tests/noise/test_polynomial.py::test_words_that_do_not_decide_are_refined
    """
    numbers.integer(power, "power", 1, 64)
    sign, first = (int(word) for word in source.words(2))
    u, bits = first, WORD_BITS
    while u == 0 or _magnitude(u, bits, scale, power) != _magnitude(u + 1, bits, scale, power):
        u, bits = u << WORD_BITS | int(source.words(1)[0]), bits + WORD_BITS
    magnitude = _magnitude(u, bits, scale, power)
    return -magnitude if sign & 1 else magnitude


def _magnitude(u: int, bits: int, scale: Fraction, power: int) -> int:
    """Give the largest m ≥ 0 with U·(scale + m − 1/2)^power ≤ scale^power, for U = u/2^bits."""
    n, d = scale.numerator, scale.denominator
    # U·(2n + (2m − 1)·d)^power ≤ (2n)^power, in integers
    root = integer_root(((2 * n) ** power << bits) // u, power)
    return max(0, ((root - 2 * n) // d + 1) // 2)


def integer_root(value: int, power: int) -> int:
    """Give ⌊value^(1/power)⌋ (Newton's method from above).

    The number of steps depends on the power alone, because the scale of noise may be a secret; they suffice for
    numbers of any length in use, and more are taken if not.

    >>> integer_root(80, 4), integer_root(81, 4), integer_root(0, 3)
    (2, 3, 0)
    """
    if value == 0:
        return 0
    root = 1 << -(-value.bit_length() // power)
    for _ in range(power + _STEPS):
        root = min(root, _newton(root, value, power))
    while _newton(root, value, power) < root:
        root = _newton(root, value, power)
    return root


def _newton(root: int, value: int, power: int) -> int:
    return ((power - 1) * root + value // int(root ** (power - 1))) // power
