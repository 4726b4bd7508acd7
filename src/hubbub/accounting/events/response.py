"""Accounting of randomized response.

Tested in tests/accounting/test_events.py.
"""

import math
from typing import Any

from hubbub.accounting import curves
from hubbub.accounting.events.base import EventAccounting, EventLoss, PldSettings, unknown_event
from hubbub.core.events import ResponseEvent


def loss(event: ResponseEvent) -> EventLoss:
    """Give the loss: ε and its own Rényi curve."""
    if event.answers < 2:
        raise unknown_event()
    return EventLoss(event.epsilon, curves.response(event.answers, event.epsilon))


def loss_distribution(event: ResponseEvent, settings: PldSettings) -> Any:
    """Make the privacy loss distribution; with two answers it is that of discrete Laplace noise moved by one."""
    if event.answers == 2:
        return settings.of_laplace(event.epsilon, 1)
    noise = event.answers / (math.exp(event.epsilon) + event.answers - 1)
    return settings.module.from_randomized_response(noise, event.answers, value_discretization_interval=settings.grid)


ACCOUNTING = EventAccounting(loss, loss_distribution)
