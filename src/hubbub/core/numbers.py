"""Validation of numeric parameters: user input becomes an exact `Fraction`, or a clear error.

Every check tests for the valid case (`if not low <= x <= high: raise`), so that NaN, which compares false with
everything, never passes.
"""

import re
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from math import ceil
from typing import NoReturn

from hubbub.errors import ParameterError

_NUMBER = "Use a number such as 0.1 (in Python an int, float, Decimal, Fraction or str)."

Number = int | float | str | Decimal | Fraction

#: Maximum decimal places, and the largest denominator of a fraction that is not a decimal. Both keep a running total
#: of a million charges short: its denominator divides 10^30 · lcm(1, …, 1000).
MAX_PLACES = 30
MAX_DENOMINATOR = 1000
_GRID = Fraction(10) ** MAX_PLACES

EPSILON_MIN, EPSILON_MAX = Fraction(1, 10**9), Fraction(10**6)
DELTA_MIN, DELTA_MAX = Fraction(1, 10**MAX_PLACES), Fraction(1, 2)
SCALE_MIN, SCALE_MAX = Fraction(1, 1000), Fraction(10**12)
SENSITIVITY_MAX = 10**15

#: Longer numbers are never intended, and would slow down every computation they enter.
MAX_BITS = 4096

_SIX = Context(prec=6, rounding=ROUND_FLOOR)
_DECIMAL = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?|[+-]?\d{1,20}/\d{1,20}", re.ASCII)


def _reject(code: str, name: str, value: object, why: str, remedy: str) -> NoReturn:
    try:
        # numbers as people write them: within=0, not within=Fraction(0, 1)
        shown = str(value) if isinstance(value, Fraction | Decimal) else repr(value)
    except ValueError:  # Python refuses to print an int of more than 4300 digits
        shown = "a number too long to print"
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise ParameterError(code, f"{name}={shown} {why}.", remedy)


def exact(value: Number, name: str) -> Fraction:
    """Convert a number to the exact rational that a person reads in it.

    A float counts as the shortest decimal that prints it, so 0.1 is one tenth.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon"), exact("1e-5", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 100000))
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal | Fraction):
        _reject("HB101", name, value, f"is a {type(value).__name__}, not a number", _NUMBER)
    if isinstance(value, int | Fraction):
        if not max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_BITS:
            _reject("HB102", name, value, "is too long", f"Use at most {MAX_BITS} bits.")
        return Fraction(value)
    text = repr(float(value)) if isinstance(value, float) else str(value).strip()
    if not _DECIMAL.fullmatch(text):
        _reject("HB102", name, value, "is not a decimal number of at most 40 digits", _NUMBER)
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError, InvalidOperation):
        _reject("HB102", name, value, "is not a number", _NUMBER)


def in_range(value: Number, name: str, low: Fraction, high: Fraction) -> Fraction:
    """Accept `low <= value <= high`; reject everything else, including NaN."""
    number = exact(value, name)
    if not low <= number <= high:
        _reject("HB103", name, value, f"is not between {brief(low)} and {brief(high)}", "Choose a value in that range.")
    return number


def _summable(value: Number, name: str, low: Fraction, high: Fraction) -> Fraction:
    number = in_range(value, name, low, high)
    if number.denominator > MAX_DENOMINATOR and (number * _GRID).denominator != 1:
        _reject(
            "HB104",
            name,
            value,
            "cannot be summed exactly over many charges",
            f"Use at most {MAX_PLACES} decimal places, or a fraction with a denominator up to {MAX_DENOMINATOR}.",
        )
    return number


def epsilon(value: Number, name: str = "epsilon") -> Fraction:
    """Accept a privacy loss ε: positive, finite, of reasonable size and exactly summable."""
    return _summable(value, name, EPSILON_MIN, EPSILON_MAX)


def delta(value: Number, name: str = "delta") -> Fraction:
    """Accept a failure probability δ in (0, ½]; to mean δ = 0, callers pass no δ."""
    return _summable(value, name, DELTA_MIN, DELTA_MAX)


def scale(value: Number, name: str = "scale") -> Fraction:
    """Accept a noise scale that the samplers cover."""
    return in_range(value, name, SCALE_MIN, SCALE_MAX)


def confidence(value: Number, name: str = "confidence") -> Fraction:
    """Accept a confidence level strictly between 0 and 1 (at most 1 − 10⁻¹²)."""
    return in_range(value, name, Fraction(1, 10**12), 1 - Fraction(1, 10**12))


def integer(value: object, name: str, low: int, high: int) -> int:
    """Accept an int in [low, high]; reject booleans, floats and strings."""
    if isinstance(value, bool) or not isinstance(value, int):
        _reject("HB101", name, value, f"is a {type(value).__name__}, not an int", f"Pass an int from {low} to {high}.")
    if not low <= value <= high:
        _reject("HB103", name, value, f"is not between {low} and {high}", "Choose a value in that range.")
    return value


def sensitivity(value: object, name: str = "sensitivity") -> int:
    """Accept an integer sensitivity, in steps of the grid of the answer."""
    return integer(value, name, 1, SENSITIVITY_MAX)


def brief(value: Fraction) -> str:
    """Format an exact number with up to 6 significant digits.

    >>> brief(Fraction(1, 10)), brief(Fraction(1, 3)), brief(Fraction(10**12)), brief(Fraction(1, 10**9))
    ('0.1', '0.333333', '1e+12', '1e-09')
    """
    try:
        shown = float(value)
    except OverflowError:
        shown = 0.0
    if shown == 0 != value:  # outside the range of a float
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.5e}"
    return f"{shown:.6g}"


def readable(value: float | Fraction, digits: int = 6) -> str:
    """Format a number for people: whole from `digits` digits on, and no exponent for what they can read without.

    Numbers below 10,000 have no separator, because they may be years.

    >>> readable(11000, 2), readable(10**6), readable(30000), readable(2024), readable(1234567.8)
    ('11,000', '1,000,000', '30,000', '2024', '1,234,568')
    >>> readable(Fraction(1, 3), 4), readable(-0.0), readable(1e-9), readable(1e20)
    ('0.3333', '0', '1e-09', '1e+20')
    """
    number = float(value)
    if not abs(number) >= 10_000:
        shown = f"{number:.0f}" if abs(number) >= 10 ** (digits - 1) else f"{number:.{digits}g}"
        return "0" if shown == "-0" else shown
    if not abs(number) < 1e15:
        return f"{number:.{digits}g}"
    return f"{number:,.0f}" if abs(number) >= 10 ** (digits - 1) else f"{number:,.{digits}g}"


def round_down(value: Fraction) -> str:
    """Format a number with up to 6 significant digits, rounded down, such as a remaining budget.

    >>> round_down(Fraction(2, 3)), round_down(Fraction(3, 10)), round_down(Fraction(1234567))
    ('0.666666', '0.3', '1234560')
    """
    return f"{_SIX.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize():f}"


def round_up(value: Fraction) -> str:
    """Format a spent amount, rounded up to hundredths from 0.01 on, so that nobody compares meaningless digits.

    >>> round_up(Fraction(1, 2)), round_up(Fraction("0.936877")), round_up(Fraction("0.00123")), round_up(Fraction(0))
    ('0.5', '0.94', '0.00123', '0')
    """
    return brief(value if value < Fraction(1, 100) else Fraction(ceil(value * 100), 100))
