"""Accounting of binomial noise: ε, and the exact δ at this ε.

Tested in tests/accounting/test_events.py.
"""

from typing import Any

from hubbub.accounting.events.base import EventAccounting, EventLoss, PldSettings, check_facts, round_up
from hubbub.core.coins import binomial_delta
from hubbub.core.events import BinomialEvent


def loss(event: BinomialEvent) -> EventLoss:
    """Give the loss ε with the δ of the coins at this ε."""
    check_facts(event)
    delta = binomial_delta(coins=event.coins, sensitivity=event.sensitivity, epsilon=event.epsilon)
    pure = EventLoss.of_pure(event.epsilon)
    return EventLoss(pure.pure, pure.curve, delta)


def loss_distribution(event: BinomialEvent, settings: PldSettings) -> Any:
    """Give the privacy loss distribution of (ε, δ)."""
    delta = binomial_delta(coins=event.coins, sensitivity=event.sensitivity, epsilon=event.epsilon)
    whole = settings.module.common.DifferentialPrivacyParameters(round_up(event.epsilon), round_up(delta))
    return settings.module.from_privacy_parameters(whole, value_discretization_interval=settings.grid)


ACCOUNTING = EventAccounting(loss, loss_distribution)
