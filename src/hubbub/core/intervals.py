"""Arithmetic on enclosed non-negative reals: every operation rounds its low end down and its high end up.

The ends are decimals of `PRECISION` significant digits, so that a probability of 10⁻⁵⁰⁰ is known as well as one of ½.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from hubbub.core.reals import Enclosure

PRECISION = 60

_LIMIT = 10**9
_FAR = Fraction(-20000)


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emin=-_LIMIT, Emax=_LIMIT, traps=[])


_DOWN, _UP = _context(PRECISION, ROUND_FLOOR), _context(PRECISION, ROUND_CEILING)
_ZERO, _ONE = Decimal(0), Decimal(1)


@dataclass(frozen=True, slots=True)
class Interval:
    """A real x ≥ 0 of which low ≤ x ≤ high is known.

    >>> third = Interval.of(Fraction(1, 3))
    >>> third.low < Fraction(1, 3) < third.high, (third + third + third).holds(Fraction(1))
    (True, True)
    """

    low: Decimal
    high: Decimal

    @classmethod
    def of(cls, value: int | Fraction | Enclosure) -> "Interval":
        """Enclose a number, or an enclosure, in decimals."""
        low, high = value if isinstance(value, tuple) else (value, value)
        return cls(
            _DOWN.divide(Decimal(low.numerator), Decimal(low.denominator)),
            _UP.divide(Decimal(high.numerator), Decimal(high.denominator)),
        )

    @staticmethod
    def exp(x: Fraction) -> "Interval":
        """Enclose eˣ; below e^-20000 only by zero and that, so that no exponent is slow."""
        return _exp(x)

    @property
    def enclosure(self) -> Enclosure:
        """The same ends as exact rationals."""
        return Fraction(self.low), Fraction(self.high)

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(_DOWN.add(self.low, other.low), _UP.add(self.high, other.high))

    def __sub__(self, other: "Interval") -> "Interval":
        """Subtract, where the true difference is known not to be negative."""
        low = _DOWN.subtract(self.low, other.high)
        return Interval(low if low > 0 else _ZERO, _UP.subtract(self.high, other.low))

    def __mul__(self, other: "Interval") -> "Interval":
        return Interval(_DOWN.multiply(self.low, other.low), _UP.multiply(self.high, other.high))

    def __truediv__(self, other: "Interval") -> "Interval":
        return Interval(_DOWN.divide(self.low, other.high), _UP.divide(self.high, other.low))

    def __pow__(self, exponent: int) -> "Interval":
        result, square = ONE, self
        while exponent:
            if exponent & 1:
                result *= square
            square, exponent = square * square, exponent >> 1
        return result

    def sqrt(self) -> "Interval":
        """Enclose √x."""
        low, high = _DOWN.sqrt(self.low), _UP.sqrt(self.high)
        # the step next to zero has a billion digits as a rational, and √0 needs no step
        return Interval(low.next_minus(_DOWN) if low else _ZERO, high.next_plus(_UP) if high else _ZERO)

    def holds(self, value: Fraction) -> bool:
        """Say whether a number lies between the ends."""
        return self.low <= value <= self.high


ZERO, ONE = Interval(_ZERO, _ZERO), Interval(_ONE, _ONE)


@lru_cache(maxsize=1 << 14)
def _exp(x: Fraction) -> Interval:
    """Enclose eˣ.

    The argument is enclosed to as many digits more as |x| has, for its error is multiplied by |x|. The decimal module
    rounds exp correctly (half-even, whatever the context says), so one step to each side encloses it.
    """
    if x == 0:
        return ONE
    if x < _FAR:
        return Interval(_ZERO, _exp(_FAR).high)
    digits = PRECISION + 4 + len(str(abs(int(x))))
    top, bottom = Decimal(x.numerator), Decimal(x.denominator)
    low, high = _context(digits, ROUND_FLOOR).divide(top, bottom), _context(digits, ROUND_CEILING).divide(top, bottom)
    return Interval(_DOWN.exp(low).next_minus(_DOWN), _UP.exp(high).next_plus(_UP))


def total(terms: Iterable[Interval]) -> Interval:
    """Add up many."""
    low = high = _ZERO
    for term in terms:
        low, high = _DOWN.add(low, term.low), _UP.add(high, term.high)
    return Interval(low, high)
