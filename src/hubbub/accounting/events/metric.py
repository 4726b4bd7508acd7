"""Accounting of the exponential mechanism on a finite metric space."""

from hubbub.accounting import curves, gaussian_filter
from hubbub.accounting.events.base import EventAccounting, EventLoss
from hubbub.core.events import MetricEvent


def loss(event: MetricEvent) -> EventLoss:
    """Give the loss: rate·D if the normalizer is constant, otherwise a bounded range of 2·rate·D."""
    epsilon = event.rate * event.sensitivity
    if event.constant_normaliser:
        return EventLoss.of_pure(epsilon)
    price = gaussian_filter.bounded_range(2 * epsilon)
    return EventLoss(2 * epsilon, curves.bounded_range(2 * epsilon), gaussian=price)


ACCOUNTING = EventAccounting(loss)
