"""Cells of an answer and remaining budgets as text.

Tested in tests/answers/test_release.py.
"""

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

Cell = bool | int | float | str | date | datetime | None
Ends = tuple[float | None, float | None]
"""The ends of a 95% interval; None where it is unbounded, both None where there is no interval."""

_FOUR = Context(prec=4, rounding=ROUND_FLOOR)


def text(cell: Cell, ends: Ends = (None, None), *, noisy: bool = False, empty: str = "–") -> str:
    """Format one cell: with its ± if the interval is symmetric, else with the ends; `empty` is for a noisy NULL.

    >>> text(1234, (1228.0, 1240.0)), text(0.123456789, (0.1, 0.146)), text(3, (0.0, 33.0)), text(None)
    ('1,234 ±6', '0.123 ±0.023', '3 (0 to 33)', '–')
    >>> text(3, (0.0, None)), text(3, noisy=True)
    ('3 (0 to …)', '3 (no interval)')

    Exact integers of four digits have no separator, because they may be years; a noise of 0 is written as such.

    >>> text(2024), text(20240), text(6, (6.0, 6.0))
    ('2024', '20,240', '6 ±0')
    """
    low, high = ends
    if cell is None:
        return empty if noisy else "–"
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if low is None and high is None and not noisy:
        return (f"{cell:,}" if abs(cell) >= 10_000 else str(cell)) if isinstance(cell, int) else f"{cell:,.6g}"
    whole = isinstance(cell, int)
    if low is None and high is None:
        return f"{_number(cell, 1.0)} (no interval)"
    if low is None or high is None:
        return f"{_number(cell, 1.0)} ({_end(low, whole=whole)} to {_end(high, whole=whole)})"
    half = (high - low) / 2
    if low == cell == high:
        return f"{_number(cell, half)} ±0"
    if abs(cell - (low + high) / 2) > half / 10 or not half > 0:
        return f"{_number(cell, half)} ({_number(low, half, whole=whole)} to {_number(high, half, whole=whole)})"
    return f"{_number(cell, half)} ±{_number(half, half, whole=whole)}"


def without_midnight(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Return timestamps as dates if none of them has a time of day, as in a column of dates; else the same cells.

    >>> without_midnight([datetime(2024, 5, 1), None]), without_midnight([datetime(2024, 5, 1, 12)])
    ([datetime.date(2024, 5, 1), None], [datetime.datetime(2024, 5, 1, 12, 0)])
    """
    known = [cell for cell in cells if cell is not None]
    if not known or not all(isinstance(cell, datetime) and cell.time() == time() for cell in known):
        return cells
    return [cell.date() if isinstance(cell, datetime) else cell for cell in cells]


def format_remaining(value: Fraction) -> str:
    """Format a remaining budget with four digits, rounded down."""
    return f"{_FOUR.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize():f}"


def _number(value: float, half: float, *, whole: bool = False) -> str:
    """Format a number to two significant digits of its error, and whole numbers without decimals."""
    if whole or isinstance(value, int) or half >= 10:
        shown = f"{value:,.0f}"
    else:
        shown = f"{value:,.{max(0, min(9, 1 - _magnitude(half)))}f}" if half > 0 else f"{value:,g}"
    return shown if shown.strip("-0.") else shown.removeprefix("-")  # no -0.00


def _end(value: float | None, *, whole: bool) -> str:
    return "…" if value is None else _number(value, 1.0, whole=whole)


def _magnitude(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])
