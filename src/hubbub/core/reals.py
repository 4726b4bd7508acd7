"""Real functions with directed rounding, which return rationals that enclose the true value.

The decimal module's `exp` and `ln` are correctly rounded (half-even, whatever the context says), and its division and
square root follow the rounding mode, so one step to each side encloses the true value. No privacy guarantee relies on a
float.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache

#: Enough for every privacy cost; samplers use more digits where a word does not decide.
DIGITS = 40

Enclosure = tuple[Fraction, Fraction]

_LIMIT = 10**9  # exponents of Decimal are capped here, far beyond e to the power of ±EXPONENT_MAX

#: eˣ is enclosed in (0, 10^-400000) below −EXPONENT_MAX and rejected above EXPONENT_MAX: no privacy cost or noise needs
#: it.
EXPONENT_MAX = 10**6


@cache
def _nothing() -> Fraction:
    """Return a number above e^-1000000, which is about 10^-434294; computed when it is needed, because it is long."""
    return Fraction(1, 10**400_000)


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emin=-_LIMIT, Emax=_LIMIT, traps=[])


def _decimals(x: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    top, bottom = Decimal(x.numerator), Decimal(x.denominator)
    down, up = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    return down.divide(top, bottom), up.divide(top, bottom)


@lru_cache(maxsize=4096)
def exp(x: Fraction, digits: int = DIGITS) -> Enclosure:
    """Enclose eˣ to about `digits` significant digits.

    >>> low, high = exp(Fraction(1))
    >>> low <= Fraction("2.71828182845904523536028747135266249775724709369995") <= high
    True
    """
    if not x <= EXPONENT_MAX:
        raise ValueError("exp needs an argument of at most a million")
    if x < -EXPONENT_MAX:
        return Fraction(0), _nothing()
    if x == 0:
        return Fraction(1), Fraction(1)
    # the error of the argument is multiplied by |x|, so it gets that many more digits
    context = _context(digits + 2, ROUND_FLOOR)
    low, high = _decimals(x, digits + 4 + len(str(abs(int(x)))))
    return Fraction(context.exp(low).next_minus(context)), Fraction(context.exp(high).next_plus(context))


@lru_cache(maxsize=4096)
def log(x: Fraction, digits: int = DIGITS) -> Enclosure:
    """Enclose ln x for x > 0."""
    if not x > 0:
        raise ValueError("log needs a positive argument")
    if x == 1:
        return Fraction(0), Fraction(0)
    context = _context(digits + 2, ROUND_FLOOR)
    # Near 1 the logarithm is about x - 1, and the digits lost there are made up for. So neither side is rounded to 1,
    # whose logarithm is exactly 0: the number next to 0 would be 10^-1000000000, and no Fraction can hold that.
    away = abs(x - 1)
    lost = max(0, away.denominator.bit_length() - away.numerator.bit_length()) // 3 + 1
    low, high = _decimals(x, digits + 8 + lost)
    return Fraction(context.ln(low).next_minus(context)), Fraction(context.ln(high).next_plus(context))


def sqrt(x: Fraction, digits: int = DIGITS) -> Enclosure:
    """Enclose √x for x ≥ 0."""
    if not x >= 0:
        raise ValueError("sqrt needs a non-negative argument")
    context = _context(digits + 2, ROUND_FLOOR)
    low, high = _decimals(x, digits + 4)
    if x == 0:
        return Fraction(0), Fraction(0)
    return Fraction(context.sqrt(low).next_minus(context)), Fraction(context.sqrt(high).next_plus(context))


def ceil_to(x: Fraction, places: int = 30) -> Fraction:
    """Round up to a decimal grid: privacy costs stay short and never shrink.

    >>> ceil_to(Fraction(1, 3), 2)
    Fraction(17, 50)
    """
    step = 10**places
    return Fraction(-((-x.numerator * step) // x.denominator), step)


def floor_to(x: Fraction, places: int = 30) -> Fraction:
    """Round down to a decimal grid."""
    step = 10**places
    return Fraction((x.numerator * step) // x.denominator, step)
