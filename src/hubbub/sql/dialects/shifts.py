"""Shifts of dates by a number that differs from row to row, written so that no engine raises an error.

Tested in tests/sql/test_functions.py, tests/sql/test_postgres_functions.py and tests/sql/test_spark_functions.py.
"""

from collections.abc import Callable

from hubbub.core.schema import Kind
from hubbub.sql import dates
from hubbub.sql.dialects.base import Dialect

#: The first day, and the number of days from it to the last one.
FIRST = f"DATE '{dates.FIRST.isoformat()}'"
_DAYS = (dates.LAST - dates.FIRST).days
#: How many of the smallest parts a unit has: of months, or of microseconds.
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_MICROS = {
    "week": 7 * dates.DAY,
    "day": dates.DAY,
    "hour": dates.DAY // 24,
    "minute": dates.DAY // 1_440,
    "second": 1_000_000,
}
#: A timestamp is shifted by at most this number of years; all engines know the times that result.
_YEARS = 4_000


def day_number(dialect: Dialect, since: str, days: str) -> str:
    """Add days to a number of days since 0001-01-01; what lies outside of the years 1 to 9999 is their first or last.

    The number may be infinite: the result is compared, and never cast before it is within bounds.
    """
    return dialect.between(f"({since} + {days})", dialect.number(0), dialect.number(_DAYS))


def shift_parts(dialect: Dialect, count: str, unit: str) -> tuple[bool, str]:
    """Return whether a shift is in months or microseconds, and how many: NULL if it is of more than 4,000 years."""
    months = unit in _MONTHS
    size = _MONTHS[unit] if months else _MICROS[unit]
    most = _YEARS * 12 // size if months else _YEARS * 365 * dates.DAY // size
    within = f"CASE WHEN {count} BETWEEN {dialect.number(-most)} AND {dialect.number(most)} THEN {count} END"
    return months, f"({within} * {dialect.number(size)})" if size > 1 else within


def calendar_day(
    dialect: Dialect, parts: list[str], integer: str, plus: Callable[[str, str], str], month: Callable[[str], str]
) -> str:
    """Write the day of a year, a month and a day; NULL where there is none.

    Days are added to the first day of the month (`plus`), and the result must be in that month.
    """
    y, m, d = (
        f"CAST(CASE WHEN {text} BETWEEN {dialect.number(1)} AND {dialect.number(most)} THEN {text} END AS {integer})"
        for text, most in zip(parts, (dates.LAST.year, 12, 31), strict=True)
    )
    day = plus(f"make_date({y}, {m}, 1)", f"({d} - 1)")
    return f"CASE WHEN {month(day)} = {parts[1]} THEN CAST({day} AS {dialect.types[Kind.DATE]}) END"


def plus_days(day: str, count: str) -> str:
    """Add days to a date where dates have a +."""
    return f"({day} + {count})"
