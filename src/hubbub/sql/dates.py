"""Dates as numbers: days since 1970-01-01 for a DATE, microseconds since then for a TIMESTAMP.

Only the years 1 to 9999 are supported. The scan clamps all dates to them, so date arithmetic is total.

Tested in tests/sql/test_functions.py.
"""

from datetime import date, datetime, timedelta
from fractions import Fraction

from hubbub.core.schema import Bounds, Kind

EPOCH = datetime(1970, 1, 1)
DAY = 86_400_000_000  #: microseconds
FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)
_FIRST_TIMESTAMP, _LAST_TIMESTAMP = datetime.min, datetime.max

#: Units of time, from coarse to fine. Weeks start on Monday.
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def number(value: date) -> Fraction:
    """Return the days of a DATE or the microseconds of a TIMESTAMP.

    >>> number(date(1970, 1, 2)), number(datetime(1970, 1, 1, 0, 0, 1))
    (Fraction(1, 1), Fraction(1000000, 1))
    """
    if isinstance(value, datetime):
        return Fraction((value - EPOCH) // timedelta(microseconds=1))
    return Fraction(value.toordinal() - EPOCH.toordinal())


def timestamp(days_or_micros: Fraction, kind: Kind) -> datetime:
    """Return the timestamp of such a number, clamped to the supported years."""
    micros = int(days_or_micros) if kind is Kind.TIMESTAMP else int(days_or_micros) * DAY
    clamped = min(max(micros, int(number(_FIRST_TIMESTAMP))), int(number(_LAST_TIMESTAMP)))
    return EPOCH + timedelta(microseconds=clamped)


def all_time(kind: Kind) -> Bounds:
    """Return the bounds of all dates or timestamps."""
    if kind is Kind.DATE:
        return Bounds(number(FIRST), number(LAST))
    return Bounds(number(_FIRST_TIMESTAMP), number(_LAST_TIMESTAMP))


def floor_to(unit: str, value: date) -> datetime:
    """Truncate a date or timestamp to the start of its year, quarter, …, second.

    >>> floor_to("quarter", date(2024, 5, 6)), floor_to("week", date(2024, 5, 8))
    (datetime.datetime(2024, 4, 1, 0, 0), datetime.datetime(2024, 5, 6, 0, 0))
    """
    time = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=(time.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":
            return midnight - timedelta(days=min(time.weekday(), (midnight - _FIRST_TIMESTAMP).days))
        case "day":
            return midnight
        case "hour":
            return time.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return time.replace(second=0, microsecond=0)
    return time.replace(microsecond=0)


def boundary(unit: str, value: datetime) -> int:
    """Number the years, quarters, …, seconds, so that the boundaries between two timestamps are a difference.

    >>> boundary("week", datetime(2024, 5, 6)) - boundary("week", datetime(2024, 5, 5))
    1
    """
    days = value.toordinal()
    match unit:
        case "year":
            return value.year
        case "quarter":
            return value.year * 4 + (value.month - 1) // 3
        case "month":
            return value.year * 12 + value.month
        case "week":
            return (days - 1) // 7  # 0001-01-01 was a Monday
        case "day":
            return days
        case "hour":
            return days * 24 + value.hour
        case "minute":
            return (days * 24 + value.hour) * 60 + value.minute
    return ((days * 24 + value.hour) * 60 + value.minute) * 60 + value.second


def next_start(unit: str, value: datetime) -> datetime | None:
    """Return the start of the next unit, or None after the year 9999."""
    try:
        match unit:
            case "year":
                return value.replace(year=value.year + 1)
            case "quarter" | "month":
                months = value.month - 1 + (3 if unit == "quarter" else 1)
                return value.replace(year=value.year + months // 12, month=months % 12 + 1)
            case _:
                return value + timedelta(**{unit + "s": 1})
    except (OverflowError, ValueError):
        return None


def parse(text: str, kind: Kind) -> date | None:
    """Parse 2024-02-29 or 2024-02-29 12:30:00; return None for other texts, other years, and time zones."""
    try:
        if kind is Kind.DATE:
            return date.fromisoformat(text) if len(text) == 10 else None
        time = datetime.fromisoformat(text)
        return None if time.tzinfo else time
    except ValueError:
        return None
