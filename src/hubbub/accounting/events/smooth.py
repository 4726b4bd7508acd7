"""Accounting of noise by smooth sensitivity."""

from hubbub.accounting.events.base import EventAccounting, EventLoss
from hubbub.core.events import SmoothEvent


def loss(event: SmoothEvent) -> EventLoss:
    """Give the loss near the value or in the tails, whichever is larger: see `hubbub.mechanisms.smooth`."""
    near, far = (event.power + 1) * event.slide + event.dilation, event.power * event.dilation
    return EventLoss.of_pure(max(near, far))


ACCOUNTING = EventAccounting(loss)
