"""Dates as numbers: days since 1970-01-01 for a DATE, microseconds since then for a TIMESTAMP.

Only the years 1 to 9999 exist here. The scan clamps whatever lies outside into them, so date arithmetic is total.
"""

from datetime import date, datetime, timedelta
from fractions import Fraction

from hubbub.core.schema import Bounds, Kind

EPOCH = datetime(1970, 1, 1)
DAY = 86_400_000_000  #: microseconds
FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)
_FIRST_MOMENT, _LAST_MOMENT = datetime.min, datetime.max

#: What may be cut to or counted in, from coarse to fine; weeks begin on Monday.
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def number(value: date) -> Fraction:
    """Give a DATE's days or a TIMESTAMP's microseconds.

    >>> number(date(1970, 1, 2)), number(datetime(1970, 1, 1, 0, 0, 1))
    (Fraction(1, 1), Fraction(1000000, 1))
    """
    if isinstance(value, datetime):
        return Fraction((value - EPOCH) // timedelta(microseconds=1))
    return Fraction(value.toordinal() - EPOCH.toordinal())


def moment(end: Fraction, kind: Kind) -> datetime:
    """Give the moment of such a number, inside the years that exist."""
    micros = int(end) if kind is Kind.TIMESTAMP else int(end) * DAY
    inside = min(max(micros, int(number(_FIRST_MOMENT))), int(number(_LAST_MOMENT)))
    return EPOCH + timedelta(microseconds=inside)


def all_time(kind: Kind) -> Bounds:
    """Give the bounds that every date or timestamp has."""
    if kind is Kind.DATE:
        return Bounds(number(FIRST), number(LAST))
    return Bounds(number(_FIRST_MOMENT), number(_LAST_MOMENT))


def floor_to(unit: str, value: date) -> datetime:
    """Cut a date or moment down to the beginning of its year, quarter, …, second.

    >>> floor_to("quarter", date(2024, 5, 6)), floor_to("week", date(2024, 5, 8))
    (datetime.datetime(2024, 4, 1, 0, 0), datetime.datetime(2024, 5, 6, 0, 0))
    """
    at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=(at.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":
            return midnight - timedelta(days=min(at.weekday(), (midnight - _FIRST_MOMENT).days))
        case "day":
            return midnight
        case "hour":
            return at.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return at.replace(second=0, microsecond=0)
    return at.replace(microsecond=0)


def boundary(unit: str, value: datetime) -> int:
    """Number the years, quarters, …, seconds: the boundaries between two moments are the difference of their numbers.

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


def following(unit: str, value: datetime) -> datetime | None:
    """Give the next beginning of a unit, or None past the end of time."""
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


def read(text: str, kind: Kind) -> date | None:
    """Read a literal such as 2024-02-29 or 2024-02-29 12:30:00; None if it is no date of the years 1 to 9999."""
    try:
        if kind is Kind.DATE:
            return date.fromisoformat(text) if len(text) == 10 else None
        found = datetime.fromisoformat(text)
        return None if found.tzinfo else found
    except ValueError:
        return None
