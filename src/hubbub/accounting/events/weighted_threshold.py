"""Accounting of partition selection by weights.

Tested in tests/accounting/test_events.py.
"""

from fractions import Fraction
from typing import Any

from hubbub.accounting.events import gaussian
from hubbub.accounting.events.base import EventAccounting, EventLoss, PldSettings, check_facts, round_up
from hubbub.core.distributions import distribution_of, weighted_slip
from hubbub.core.events import WeightedThresholdEvent


def delta(event: WeightedThresholdEvent) -> Fraction:
    """Give the probability that a key of one unit alone passes the threshold, for the worst number of such keys."""
    return weighted_slip(distribution_of(event.noise), event.threshold, event.weight, event.keys)


def loss(event: WeightedThresholdEvent) -> EventLoss:
    """Give the loss of the noise, with the δ of the threshold."""
    check_facts(event.noise)
    noise = gaussian.loss(event.noise)
    return EventLoss(noise.pure, noise.curve, delta(event), noise.gaussian)


def rho(event: WeightedThresholdEvent) -> Fraction:
    """Give the zCDP parameter of the noise."""
    return gaussian.rho(event.noise)


def loss_distribution(event: WeightedThresholdEvent, settings: PldSettings) -> Any:
    """Compose the privacy loss distribution of the noise with that of the threshold's δ."""
    failure = settings.module.common.DifferentialPrivacyParameters(0.0, round_up(delta(event)))
    return gaussian.loss_distribution(event.noise, settings).compose(
        settings.module.from_privacy_parameters(failure, value_discretization_interval=settings.grid)
    )


ACCOUNTING = EventAccounting(loss, loss_distribution, rho)
