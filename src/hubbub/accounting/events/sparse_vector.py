"""Accounting of the sparse vector technique."""

from hubbub.accounting.events.base import EventAccounting, EventLoss
from hubbub.core.events import SparseVectorEvent


def loss(event: SparseVectorEvent) -> EventLoss:
    """Give the loss (1/threshold_scale + hits·(2, or 1 if monotone)/query_scale)·D (Lyu, Su and Li, 2017)."""
    hits = event.hits * event.sensitivity * (1 if event.monotone else 2)
    return EventLoss.of_pure(event.sensitivity / event.threshold_scale + hits / event.query_scale)


ACCOUNTING = EventAccounting(loss)
