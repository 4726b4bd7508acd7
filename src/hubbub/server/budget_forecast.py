"""When a budget will be used up if spending goes on as in the last weeks.

Tested in tests/server/test_budget_forecast.py.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from hubbub.core.numbers import brief, round_up

#: Days whose spending is taken for the rate.
WINDOW = 30
#: Years beyond which no date is told.
_FARTHEST = 10

Spending = Mapping[str, Sequence[tuple[datetime, Fraction]]]


def recent(past: Spending, now: datetime) -> Fraction:
    """Return what was spent within the window; each list holds the sum up to each charge, the oldest first."""
    since, total = now - timedelta(days=WINDOW), Fraction(0)
    for points in past.values():
        before = [amount for moment, amount in points if moment < since]
        if points:
            total += points[-1][1] - (before[-1] if before else Fraction(0))
    return total


def forecast(past: Spending, left: Fraction, now: datetime) -> str:
    """Say until when the rest of a budget lasts at the rate of the window.

    >>> start = datetime(2026, 1, 1)
    >>> past = {"ana": [(start, Fraction(1)), (start + timedelta(days=40), Fraction(2))]}
    >>> forecast(past, Fraction(2), start + timedelta(days=60))
    'ε = 1 was spent in the last 30 days. At this rate, the rest lasts until about 2026-05-01.'
    """
    spent = recent(past, now)
    if left <= 0:
        return "The budget is used up."
    if spent <= 0:
        return f"Nothing was spent in the last {WINDOW} days."
    days = left / spent * WINDOW
    lasts = (
        f"for more than {_FARTHEST} years"
        if days > 365 * _FARTHEST
        else f"until about {now + timedelta(days=int(days)):%Y-%m-%d}"
    )
    amount = brief(spent) if spent < Fraction(1, 100) else round_up(spent)
    return f"ε = {amount} was spent in the last {WINDOW} days. At this rate, the rest lasts {lasts}."
