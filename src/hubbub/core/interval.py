"""Interval arithmetic on decimals, with results that enclose the true value.

Every operation rounds its lower end down and its upper end up, to 60 significant digits, so that a probability of
10⁻⁵⁰⁰ is as precise as one of ½; decimal's `exp` and `ln` are correctly rounded half-even (whatever the context says),
so one step outward encloses. Exponents reach 10^±999999999, so e^(±10^9) is as fast as e^1; read results of that size
with `above` or `below`, on a decimal grid, because a Fraction of it would exhaust the memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    FloatOperation,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from functools import lru_cache

from hubbub.core.reals import Enclosure, ceil_to, floor_to

DIGITS = 60
_LIMIT = 999_999_999
_LONG = 10_000  # maximum digits of a Fraction
_FAR = -20_000

Exact = int | Fraction


def _context(rounding: str, digits: int = DIGITS) -> Context:
    traps = [InvalidOperation, DivisionByZero, Overflow, FloatOperation]
    return Context(prec=digits, rounding=rounding, Emin=-_LIMIT, Emax=_LIMIT, traps=traps)


_DOWN, _UP = _context(ROUND_FLOOR), _context(ROUND_CEILING)
_ZERO, _ONE = Decimal(0), Decimal(1)


@dataclass(frozen=True, slots=True)
class Interval:
    """All real numbers from `low` to `high`.

    >>> third = Interval.of(1) / 3
    >>> third.below(2), third.above(2), third.low < Fraction(1, 3) < third.high
    (Fraction(33, 100), Fraction(17, 50), True)
    """

    low: Decimal
    high: Decimal

    @staticmethod
    def of(x: "Exact | Interval | Enclosure") -> "Interval":
        """Enclose an exact number, or the interval between two rationals."""
        if isinstance(x, Interval):
            return x
        if isinstance(x, int):
            number = Decimal(x)
            return Interval(_DOWN.plus(number), _UP.plus(number))
        low, high = x if isinstance(x, tuple) else (x, x)
        return Interval(
            _DOWN.divide(Decimal(low.numerator), Decimal(low.denominator)),
            _UP.divide(Decimal(high.numerator), Decimal(high.denominator)),
        )

    @property
    def enclosure(self) -> Enclosure:
        """The ends as exact rationals; for very large or small numbers, see `above` and `below`."""
        return Fraction(self.low), Fraction(self.high)

    def __add__(self, other: "Exact | Interval") -> "Interval":
        other = Interval.of(other)
        return Interval(_DOWN.add(self.low, other.low), _UP.add(self.high, other.high))

    __radd__ = __add__

    def __sub__(self, other: "Exact | Interval") -> "Interval":
        other = Interval.of(other)
        return Interval(_DOWN.subtract(self.low, other.high), _UP.subtract(self.high, other.low))

    def __rsub__(self, other: Exact) -> "Interval":
        return Interval.of(other) - self

    def __neg__(self) -> "Interval":
        return Interval(self.high.copy_negate(), self.low.copy_negate())

    def __mul__(self, other: "Exact | Interval") -> "Interval":
        other = Interval.of(other)
        if self.low >= 0 and other.low >= 0:
            return Interval(_DOWN.multiply(self.low, other.low), _UP.multiply(self.high, other.high))
        corners = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(_DOWN.multiply(a, b) for a, b in corners), max(_UP.multiply(a, b) for a, b in corners))

    __rmul__ = __mul__

    def __truediv__(self, other: "Exact | Interval") -> "Interval":
        other = Interval.of(other)
        if other.low <= 0 <= other.high:
            raise ZeroDivisionError("the divisor's interval contains zero")
        if self.low >= 0 and other.low > 0:
            return Interval(_DOWN.divide(self.low, other.high), _UP.divide(self.high, other.low))
        corners = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(_DOWN.divide(a, b) for a, b in corners), max(_UP.divide(a, b) for a, b in corners))

    def __rtruediv__(self, other: Exact) -> "Interval":
        return Interval.of(other) / self

    def __pow__(self, exponent: int) -> "Interval":
        result, square = ONE, self
        while exponent:
            if exponent & 1:
                result *= square
            exponent >>= 1
            if exponent:
                square *= square
        return result

    def holds(self, value: Exact) -> bool:
        """Return whether a number lies between the ends."""
        return self.low <= value <= self.high

    def hull(self, other: "Exact | Interval") -> "Interval":
        """Return the smallest interval that contains both."""
        other = Interval.of(other)
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def at_least(self, floor: int) -> "Interval":
        """Enclose max(x, floor)."""
        bound = Decimal(floor)
        return Interval(max(self.low, bound), max(self.high, bound))

    def above(self, places: int = 30) -> Fraction:
        """Return an upper bound on a decimal grid."""
        return _on_grid(self.high, places, up=True)

    def below(self, places: int = 30) -> Fraction:
        """Return a lower bound on a decimal grid."""
        return _on_grid(self.low, places, up=False)


def _on_grid(x: Decimal, places: int, *, up: bool) -> Fraction:
    if x and x.adjusted() < -places:
        step = Fraction(1, 10**places)
        return (step if x > 0 else Fraction(0)) if up else (Fraction(0) if x > 0 else -step)
    if x.adjusted() > _LONG:
        raise OverflowError("the number is too large to be written out")
    return ceil_to(Fraction(x), places) if up else floor_to(Fraction(x), places)


ZERO, ONE = Interval(_ZERO, _ZERO), Interval(_ONE, _ONE)


def exp(x: Exact | Interval) -> Interval:
    """Enclose eˣ to full precision for exact numbers; below e^-20000, by [0, e^-20000].

    >>> exp(Interval.of(-(10**6))).above(30)
    Fraction(1, 1000000000000000000000000000000)
    """
    return _raised(x) if isinstance(x, Interval) else _exp(x)


def _raised(x: Interval) -> Interval:
    low = _ONE if not x.low else max(_ZERO, _DOWN.exp(x.low).next_minus(_DOWN))
    high = _ONE if not x.high else _UP.exp(x.high).next_plus(_UP)
    # for tiny x, a step outward from 1 would cross to the wrong side of 1
    return Interval(max(low, _ONE) if x.low > 0 else low, min(high, _ONE) if x.high < 0 else high)


@lru_cache(maxsize=1 << 14)
def _exp(x: Exact) -> Interval:
    """Enclose eˣ, with extra digits for x because its error is multiplied by |x|."""
    if x < _FAR:
        return Interval(_ZERO, _exp(_FAR).high)
    digits = DIGITS + 4 + len(str(abs(int(x))))
    top, bottom = Decimal(x.numerator), Decimal(x.denominator)
    low, high = _context(ROUND_FLOOR, digits).divide(top, bottom), _context(ROUND_CEILING, digits).divide(top, bottom)
    return _raised(Interval(low, high))


def log(x: Interval) -> Interval:
    """Enclose ln x; the whole interval must be positive."""
    if not x.low > 0:
        raise ValueError("log needs a positive argument")
    low = _ZERO if x.low == 1 else _DOWN.ln(x.low).next_minus(_DOWN)
    high = _ZERO if x.high == 1 else _UP.ln(x.high).next_plus(_UP)
    return Interval(low, high)


def sqrt(x: Interval) -> Interval:
    """Enclose √x; the whole interval must be non-negative."""
    if not x.low >= 0:
        raise ValueError("sqrt needs a non-negative argument")
    low = _ZERO if not x.low else _DOWN.sqrt(x.low).next_minus(_DOWN)
    high = _ZERO if not x.high else _UP.sqrt(x.high).next_plus(_UP)
    return Interval(low, high)


def total(terms: Iterable[Interval]) -> Interval:
    """Return the sum of many intervals."""
    low = high = _ZERO
    for term in terms:
        low, high = _DOWN.add(low, term.low), _UP.add(high, term.high)
    return Interval(low, high)


#: π, from its decimals.
PI = Interval(
    Decimal("3.14159265358979323846264338327950288419716939937510582097494"),
    Decimal("3.14159265358979323846264338327950288419716939937510582097495"),
)
