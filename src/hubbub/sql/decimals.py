"""Decimals in doubles: a number with a known step is kept as the double nearest to a multiple of a part of that step.

0.06 + 0.01 is 0.06999999999999999 in doubles, and SQL means 0.07. Columns with a declared step are rounded when they
are scanned, and sums, differences, products and quotients of them after each operation: to a millionth of the step, so
that a value that is no multiple of its declared step stays what it is.

Tested in tests/sql/test_decimals.py.
"""

import math
from fractions import Fraction
from functools import lru_cache

from hubbub.core.schema import Bounds, Column

#: Parts that a step is divided into, if doubles can count them all.
MAX_PARTS = 10**6
#: Below this number of parts, the errors of three operations add up to less than half of one.
_MAX_COUNT = 1 << 48
_MAX_EXACT = 1 << 53


@lru_cache(maxsize=1024)
def parts(step: Fraction, size: Fraction) -> int | None:
    """Return the parts to divide a step into, for numbers up to a size; None: doubles cannot count even the steps.

    >>> [parts(Fraction(1, 100), Fraction(10**digits)) for digits in (1, 10, 13)]
    [1000000, 100, None]
    """
    count = MAX_PARTS
    while count and not fits(step, count, size):
        count //= 10
    return count or None


def fits(step: Fraction, count: int, size: Fraction) -> bool:
    """Tell whether doubles can hold all multiples of a part of a step up to a size."""
    part = step / count
    largest = max(Fraction(part.numerator), max(size, Fraction(1)) * part.denominator)
    return size <= part * _MAX_COUNT and largest <= _MAX_EXACT


def snap(value: float, step: Fraction, count: int) -> float:
    """Round a double to the nearest part of a step, with the operations that engines use.

    Theorem (Decimals in doubles). Let t = step/count = p/q, |m·t| ≤ M with M/t ≤ 2⁴⁸ and M·q ≤ 2⁵³, and let v be a
    double that differs from m·t by at most 4M·2⁻⁵³. Then ⌊(v·q + p/2)/p⌋·p/q in doubles is the double nearest to m·t.
    Proof    In units of t, v is within 4·2⁴⁸·2⁻⁵³ = 1/8 of m, and each of the three operations before the floor adds at
             most (2⁴⁸ + 1)·2⁻⁵³ < 1/31. So the floor's argument is within 1/4 of m + 1/2, and the floor is m. m·p is an
             integer of at most M·q ≤ 2⁵³, so it is exact, and the division is rounded once.
             Two numbers with errors of half a unit in the last place, as columns and constants have, give a sum,
             difference, product or quotient within 3M·2⁻⁵³, where M bounds the sum of the magnitudes, their product,
             or the quotient.
    Tested   tests/sql/test_decimals.py::test_a_snapped_double_is_the_nearest_to_the_exact_result
             tests/sql/test_decimals.py::test_random_arithmetic_on_decimals_is_exact
             tests/sql/test_decimals.py::test_decimals_are_exact_on_postgres
             tests/sql/test_decimals.py::test_decimals_are_exact_on_spark
    """
    part = step / count
    p, q = part.numerator, part.denominator
    scaled = value * q if q > 1 else value
    number = math.floor((scaled + p / 2) / p if p > 1 else scaled + 0.5)
    product = float(number * p)
    return product / q if q > 1 else product


@lru_cache(maxsize=1024)
def within(bounds: Bounds, step: Fraction, count: int) -> Bounds:
    """Return the least and the greatest part of a step within bounds, so that what is clamped to them stays there."""
    part = step / count
    return Bounds(math.ceil(bounds.low / part) * part, math.floor(bounds.high / part) * part)


def grid(column: Column | None) -> tuple[Fraction, int] | None:
    """Return the step of a column and the parts to which the scan rounds its values; None: it does not round."""
    if column is None or column.bounds is None or column.step is None:
        return None
    count = parts(column.step, size(column.bounds))
    return None if count is None else (column.step, count)


def size(bounds: Bounds) -> Fraction:
    """Return the largest magnitude within bounds."""
    return max(abs(bounds.low), abs(bounds.high))
