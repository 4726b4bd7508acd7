"""Accounting of partition selection: noisy counts of unknown keys, released above a threshold.

Tested in tests/accounting/test_events.py.
"""

from fractions import Fraction
from typing import Any

from hubbub.accounting.events import gaussian, laplace
from hubbub.accounting.events.base import EventAccounting, EventLoss, PldSettings, check_facts, round_up
from hubbub.core.distributions import distribution_of, slip
from hubbub.core.events import GaussianEvent, LaplaceEvent, ThresholdEvent


def delta(event: ThresholdEvent) -> Fraction:
    """Give the probability that a key of one unit alone passes the threshold."""
    return slip(distribution_of(event.noise), event.above, event.keys)


def loss(event: ThresholdEvent) -> EventLoss:
    """Give the loss of the noise, with the δ of the threshold."""
    check_facts(event.noise)
    noise = laplace.loss(event.noise) if isinstance(event.noise, LaplaceEvent) else gaussian.loss(event.noise)
    return EventLoss(noise.pure, noise.curve, delta(event), noise.gaussian)


def rho(event: ThresholdEvent) -> Fraction:
    """Give the zCDP parameter of Gaussian noise."""
    return gaussian.rho(event.noise) if isinstance(event.noise, GaussianEvent) else Fraction(0)


def loss_distribution(event: ThresholdEvent, settings: PldSettings) -> Any:
    """Compose the privacy loss distribution of the noise with that of the threshold's δ."""
    noise = event.noise
    if isinstance(noise, LaplaceEvent):
        distribution = laplace.loss_distribution(noise, settings)
    else:
        distribution = gaussian.loss_distribution(noise, settings)
    failure = settings.module.common.DifferentialPrivacyParameters(0.0, round_up(delta(event)))
    return distribution.compose(
        settings.module.from_privacy_parameters(failure, value_discretization_interval=settings.grid)
    )


ACCOUNTING = EventAccounting(loss, loss_distribution, rho)
