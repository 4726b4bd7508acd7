"""Accounting of discrete Gaussian noise."""

import math
from fractions import Fraction
from typing import Any

from hubbub.accounting import curves, gaussian_filter
from hubbub.accounting.events.base import EventAccounting, EventLoss, PldSettings
from hubbub.core.events import GaussianEvent
from hubbub.errors import MechanismError

#: Widest standard deviation for which the losses of one event are listed one by one.
_MAX_SIGMA = 10**4


def rho(event: GaussianEvent) -> Fraction:
    """Give the zCDP parameter D²/(2σ²)."""
    return event.sensitivity_squared / (2 * event.variance)


def loss(event: GaussianEvent) -> EventLoss:
    """Give the loss: no pure ε, the Rényi curve of ρ-zCDP, and a variance for the Gaussian filter."""
    price = gaussian_filter.noise(Fraction(event.sensitivity_squared), event.variance)
    return EventLoss(None, curves.concentrated(rho(event)), gaussian=price)


def loss_distribution(event: GaussianEvent, settings: PldSettings) -> Any:
    """Make the privacy loss distribution of noise on one integer; none is known here for a vector."""
    squared, sensitivity = event.sensitivity_squared, math.isqrt(event.sensitivity_squared)
    if squared > 1 and not (settings.one_coordinate and sensitivity * sensitivity == squared):
        raise MechanismError(
            "HB605",
            "The privacy loss distribution of Gaussian noise on a vector is not known.",
            "Pass one_coordinate=True if each event answers a single number; otherwise use the Rényi cost.",
        )
    if event.variance > _MAX_SIGMA**2:
        raise MechanismError(
            "HB605",
            "The variance of this Gaussian noise is too large for a privacy loss distribution.",
            "Use the Rényi cost of these events.",
        )
    return settings.module.from_discrete_gaussian_mechanism(
        math.nextafter(math.sqrt(event.variance), 0),
        sensitivity=sensitivity,
        value_discretization_interval=settings.grid,
        use_connect_dots=True,
    )


ACCOUNTING = EventAccounting(loss, loss_distribution, rho)
