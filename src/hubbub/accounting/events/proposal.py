"""Accounting of propose-test-release: a test and an answer, and the chance that the test passes where it should not.

Tested in tests/accounting/test_events.py.
"""

from fractions import Fraction
from typing import Any

from hubbub.accounting.events.base import EventAccounting, EventLoss, PldSettings, check_facts, round_up
from hubbub.core.distributions import distribution_of, slip
from hubbub.core.events import ProposalEvent


def delta(event: ProposalEvent) -> Fraction:
    """Give the probability that the test passes at distance 0."""
    return slip(distribution_of(event.test), event.margin, 1)


def epsilon(event: ProposalEvent) -> Fraction:
    """Give the pure losses of the test and of the answer together."""
    return event.test.sensitivity / event.test.scale + event.answer.sensitivity / event.answer.scale


def loss(event: ProposalEvent) -> EventLoss:
    """Give the loss of both noises, with the δ of the test."""
    check_facts(event.test)
    check_facts(event.answer)
    both = EventLoss.of_pure(epsilon(event))
    return EventLoss(both.pure, both.curve, delta(event))


def loss_distribution(event: ProposalEvent, settings: PldSettings) -> Any:
    """Give the privacy loss distribution of (ε, δ)."""
    whole = settings.module.common.DifferentialPrivacyParameters(round_up(epsilon(event)), round_up(delta(event)))
    return settings.module.from_privacy_parameters(whole, value_discretization_interval=settings.grid)


ACCOUNTING = EventAccounting(loss, loss_distribution)
