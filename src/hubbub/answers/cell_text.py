"""Cells of an answer and remaining budgets as text.

Tested in tests/answers/test_release.py.
"""

from datetime import date, datetime
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

Cell = bool | int | float | str | date | datetime | None
Ends = tuple[float | None, float | None]
"""The ends of a 95% interval; None where it is unbounded, both None where there is no interval."""

_FOUR = Context(prec=4, rounding=ROUND_FLOOR)


def text(cell: Cell, ends: Ends = (None, None), *, noisy: bool = False) -> str:
    """Format one cell: with its ± if the interval is symmetric, else with the ends of the interval.

    >>> text(1234, (1228.0, 1240.0)), text(0.123456789, (0.1, 0.146)), text(3, (0.0, 33.0)), text(None)
    ('1,234 ±6', '0.123 ±0.023', '3 (0 to 33)', '–')
    >>> text(3, (0.0, None)), text(3, noisy=True)
    ('3 (0.0 to …)', '3 (… to …)')
    """
    low, high = ends
    if cell is None:
        return "–"
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if low is None and high is None and not noisy:
        return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.6g}"
    if low is None or high is None:
        return f"{_number(cell, 1.0)} ({_end(low)} to {_end(high)})"
    half = (high - low) / 2
    whole = isinstance(cell, int)
    if abs(cell - (low + high) / 2) > half / 10 or not half > 0:
        return f"{_number(cell, half)} ({_number(low, half, whole=whole)} to {_number(high, half, whole=whole)})"
    return f"{_number(cell, half)} ±{_number(half, half, whole=whole)}"


def format_remaining(value: Fraction) -> str:
    """Format a remaining budget with four digits, rounded down."""
    return f"{_FOUR.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize():f}"


def _number(value: float, half: float, *, whole: bool = False) -> str:
    """Format a number to two significant digits of its error, and whole numbers without decimals."""
    if whole or isinstance(value, int) or half >= 10:
        return f"{value:,.0f}"
    if not half > 0:
        return f"{value:,g}"
    return f"{value:,.{max(0, min(9, 1 - _magnitude(half)))}f}"


def _end(value: float | None) -> str:
    return "…" if value is None else _number(value, 1.0)


def _magnitude(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])
