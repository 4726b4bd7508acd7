"""What accounting needs to know about one kind of event."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Generic, TypeVar

from hubbub.accounting import curves, gaussian_filter
from hubbub.core.events import Event
from hubbub.errors import ParameterError

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class EventLoss:
    """The exact loss of one event: pure loss (None if it has none), Rényi curve, and failure probability.

    gaussian   its price under the Gaussian filter; None: that of its pure loss
    """

    pure: Fraction | None
    curve: curves.Curve
    delta: Fraction = Fraction(0)
    gaussian: gaussian_filter.Price | None = None

    @property
    def gaussian_price(self) -> gaussian_filter.Price:
        """Give the price under the Gaussian filter."""
        if self.gaussian is not None:
            return self.gaussian
        return gaussian_filter.NEVER if self.pure is None else gaussian_filter.pure(self.pure)

    @staticmethod
    def of_pure(epsilon: Fraction) -> "EventLoss":
        """Give the loss of any mechanism with this pure loss."""
        return EventLoss(epsilon, curves.pure(epsilon))


@dataclass(frozen=True, slots=True)
class PldSettings:
    """How to make privacy loss distributions: the module of dp-accounting, its grid, and what the caller asserts."""

    module: Any
    grid: float
    one_coordinate: bool

    def of_laplace(self, scale_inverse: Fraction, sensitivity: int) -> Any:
        """Make the distribution of discrete Laplace noise on one integer."""
        return self.module.from_discrete_laplace_mechanism(
            round_up(scale_inverse),
            sensitivity=sensitivity,
            value_discretization_interval=self.grid,
            use_connect_dots=True,
        )


@dataclass(frozen=True, slots=True)
class EventAccounting(Generic[E]):
    """The accounting of one kind of event.

    loss           its privacy loss; privacy filters add these up
    distribution   its privacy loss distribution; None: the one of its pure loss
    rho            its zCDP parameter, if it has no pure loss
    split          the independent events that it consists of; None: only itself
    """

    loss: Callable[[E], EventLoss]
    distribution: Callable[[E, PldSettings], Any] | None = None
    rho: Callable[[E], Fraction] | None = None
    split: Callable[[E], tuple[Event, int]] | None = None


def check_facts(event: Event) -> None:
    """Reject an event that no mechanism can have produced."""
    # bool and str select a case and are not counted with
    numbers = [getattr(event, field.name) for field in fields(event) if field.type in (int, Fraction)]
    if not all(type(number) in (int, Fraction) and number > 0 for number in numbers):
        raise unknown_event()


def unknown_event() -> ParameterError:
    """Make the error of a record that describes no event."""
    return ParameterError(
        "HB105",
        "The record does not describe a known event type.",
        "Restore the ledger from a backup: the record is corrupt.",
    )


def round_up(x: Fraction) -> float:
    """Round up to a double."""
    return math.nextafter(float(x), math.inf)
