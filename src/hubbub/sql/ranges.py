"""Interval arithmetic over the values that the engine computes.

A `Range` bounds the engine's DOUBLE (for dates: days or microseconds since 1970), ignoring NULL. A bound of None is
unknown, and the value may then be infinite. Rounding to the nearest double is monotone, so if the exact result is below
h, the computed one is at or below the double nearest to h. A bound that is not a double is moved outward to the next
double; for library functions such as ln it is moved outward by 2⁻⁴⁰ of itself, more than any library's error.

Tested in tests/sql/test_functions.py.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

#: The largest finite DOUBLE.
LARGEST = Fraction(1.7976931348623157e308)
SLACK = Fraction(1, 2**40)


@dataclass(frozen=True, slots=True)
class Range:
    """The bounds of an interval, each None if unknown."""

    low: Fraction | None = None
    high: Fraction | None = None

    @property
    def finite(self) -> bool:
        """Whether both bounds are known, so that the value is finite."""
        return self.low is not None and self.high is not None


ANY = Range()


def point(value: Fraction) -> Range:
    """Return the range of a constant in the engine."""
    return hull(nearest(value), nearest(value)) if abs(value) <= LARGEST else ANY


def nearest(value: Fraction) -> Fraction:
    """Return the nearest double to a number within the range of doubles."""
    return Fraction(float(value))


def _outward(value: Fraction, sign: int) -> Fraction | None:
    if abs(value) > LARGEST:
        return None
    double = float(value)
    if Fraction(double) != value:
        double = math.nextafter(double, sign * math.inf)
    return Fraction(double) if math.isfinite(double) else None


def hull(low: Fraction | None, high: Fraction | None) -> Range:
    """Round both bounds outward to doubles; a bound beyond the largest double becomes unknown."""
    return Range(None if low is None else _outward(low, -1), None if high is None else _outward(high, 1))


def add(a: Range, b: Range) -> Range:
    """Bound a sum. Each bound holds by itself, even if the other is unknown: x ≥ a and y ≥ b give x + y ≥ a + b."""
    low = None if a.low is None or b.low is None else a.low + b.low
    high = None if a.high is None or b.high is None else a.high + b.high
    return hull(low, high)


def negate(a: Range) -> Range:
    """Bound −x."""
    return Range(None if a.high is None else -a.high, None if a.low is None else -a.low)


def multiply(a: Range, b: Range) -> Range:
    """Bound a product by its corners."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        if a.low is not None and b.low is not None and a.low >= 0 and b.low >= 0:
            return hull(a.low * b.low, None)
        return ANY
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return hull(min(corners), max(corners))


def divide(a: Range, b: Range) -> Range:
    """Bound a quotient if the divisor cannot be zero, or tell its sign if neither number is negative."""
    if b.low is None or b.high is None or b.low <= 0 <= b.high or a.low is None or a.high is None:
        positive = a.low is not None and b.low is not None and a.low >= 0 and b.low >= 0
        return Range(Fraction(0), None) if positive else ANY
    corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    return hull(min(corners), max(corners))


def monotone(exact: Callable[[Fraction], Fraction | int]) -> Callable[[Range], Range]:
    """Bound an increasing function that the engine computes exactly or rounds correctly."""

    def rule(a: Range) -> Range:
        low = None if a.low is None else Fraction(exact(a.low))
        high = None if a.high is None else Fraction(exact(a.high))
        return hull(low, high)

    return rule


def library(function: Callable[[float], float], lowest: Fraction | None = None) -> Callable[[Range], Range]:
    """Bound an increasing library function; `lowest` is a lower bound of all its results, if there is one."""

    def rule(a: Range) -> Range:
        ends: list[Fraction | None] = []
        for end, sign in ((a.low, -1), (a.high, 1)):
            try:
                value = None if end is None else Fraction(function(float(end)))
            except (ValueError, OverflowError):
                value = None
            ends.append(None if value is None else value + sign * max(abs(value), Fraction(1, 2**60)) * SLACK)
        low = lowest if ends[0] is None else ends[0] if lowest is None else max(lowest, ends[0])
        return hull(low, ends[1])

    return rule


def absolute(a: Range) -> Range:
    """Bound |x|."""
    if a.low is not None and a.low >= 0:
        return a
    if a.high is not None and a.high <= 0:
        return negate(a)
    high = None if a.low is None or a.high is None else max(-a.low, a.high)
    return Range(Fraction(0), high)


def remainder(a: Range, b: Range) -> Range:
    """Bound a remainder, which is smaller than the divisor, at most the dividend, and has its sign."""
    sizes = [size for size in (absolute(b).high, absolute(a).high) if size is not None]
    size = min(sizes) if sizes else None
    low = Fraction(0) if a.low is not None and a.low >= 0 else None if size is None else -size
    high = Fraction(0) if a.high is not None and a.high <= 0 else size
    return Range(low, high)


def round_half_away(value: Fraction) -> int:
    """Round half away from zero."""
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


def to_places(value: float, places: int) -> float:
    """Round to decimal places as the engine does: scale, round half away from zero, scale back. Each step is monotone.

    >>> to_places(2.675, 2), to_places(-1250.0, -2), to_places(1e308, 5)
    (2.68, -1300.0, 1e+308)
    """
    scale = 10.0 ** abs(places)
    scaled = value * scale if places >= 0 else value / scale
    if not math.isfinite(scaled):
        return value
    rounded = float(round_half_away(Fraction(scaled)))
    return rounded / scale if places >= 0 else rounded * scale


def union(parts: Iterable[Range]) -> Range:
    """Bound a value that lies in one of several ranges."""
    ranges = list(parts)
    lows, highs = [r.low for r in ranges], [r.high for r in ranges]
    low = None if not lows or None in lows else min(x for x in lows if x is not None)
    high = None if not highs or None in highs else max(x for x in highs if x is not None)
    return Range(low, high)


def common_step(steps: Iterable[Fraction | None]) -> Fraction | None:
    """Return the largest number of which all steps are multiples."""
    common: Fraction | None = None
    for step in steps:
        if step is None:
            return None
        common = step if common is None else _gcd(common, step)
    return common


def _gcd(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
