"""Accounting of a bit vector whose bits are flipped independently.

Tested in tests/accounting/test_events.py.
"""

from hubbub.accounting import curves, gaussian_filter
from hubbub.accounting.events.base import EventAccounting, EventLoss
from hubbub.core.events import Event, FlipsEvent, ResponseEvent


def loss(event: FlipsEvent) -> EventLoss:
    """Give the loss: that of `distance` independent binary randomized responses."""
    curve = tuple([event.distance * value for value in curves.pure(event.rate)])
    price = tuple(event.distance * part for part in gaussian_filter.pure(event.rate))
    return EventLoss(event.distance * event.rate, curve, gaussian=price)


def split(event: FlipsEvent) -> tuple[Event, int]:
    """Give the randomized response of one bit, and the number of bits that neighbors differ in."""
    return ResponseEvent(2, event.rate), event.distance


ACCOUNTING = EventAccounting(loss, split=split)
