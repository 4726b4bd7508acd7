"""The tight privacy cost of a fixed list of events by privacy loss distributions, with Google's dp-accounting.

For reports and plans only, never to decide a charge: it works in floating point, rounding up each loss but not each
operation, and a bound on a fixed list is not a privacy filter. It needs the extra `pld`.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hubbub.accounting.convert import zcdp_epsilon
from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.events import ACCOUNTING
from hubbub.accounting.events.base import PldSettings
from hubbub.core.events import Composed, Event
from hubbub.errors import MechanismError, ParameterError

_GRID = 1e-4
_CELLS = 20_000  # of the grid, for the loss of one event
_LOSS_MAX = 300  # e^300 is near the end of what a double holds


def tight_epsilon(events: Sequence[Event], *, delta: Fraction, one_coordinate: bool = False) -> float:
    """Give the ε of a fixed list of events at δ, close to the smallest possible.

    Laplace noise on a vector counts as noise on one integer, which is worst. Gaussian events of squared sensitivity
    above 1 are rejected unless `one_coordinate` asserts that each answers one number. Selections, sparse vectors and
    metric mechanisms are taken at their pure loss.
    """
    if not 0 < delta < 1:
        raise ParameterError("HB103", "delta must be between 0 and 1.", "Choose a value in that range.")
    composed, pure = _composed(events, one_coordinate=one_coordinate)
    if composed is None:
        return 0.0
    epsilon = float(composed.get_epsilon_for_delta(float(delta)))
    return epsilon if pure is None else min(epsilon, float(pure))


def tight_deltas(
    events: Sequence[Event], *, epsilons: Sequence[Fraction], one_coordinate: bool = False
) -> tuple[float, ...]:
    """Give the δ of a fixed list of events at each ε: the inverse of `tight_epsilon`."""
    composed, pure = _composed(events, one_coordinate=one_coordinate)
    if composed is None:
        return (0.0,) * len(epsilons)
    deltas = composed.get_delta_for_epsilon([float(epsilon) for epsilon in epsilons])
    return tuple(
        0.0 if pure is not None and epsilon >= pure else float(delta)
        for epsilon, delta in zip(epsilons, deltas, strict=True)
    )


def _composed(events: Sequence[Event], *, one_coordinate: bool) -> tuple[Any, Fraction | None]:
    """Compose the loss distributions; also give the pure loss, if there is one and no event has a δ."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError as error:
        raise MechanismError(
            "HB603",
            "Privacy loss distributions require the package dp-accounting.",
            "Install hubbub with the extra `pld`.",
        ) from error
    counts: Counter[Event] = Counter()
    for event in events:
        _count(event, 1, counts)
    if not counts:
        return None, Fraction(0)
    grid = max(_GRID, max(_width(event) for event in counts) / _CELLS)
    composed = pld.identity(value_discretization_interval=grid)
    settings = PldSettings(pld, grid, one_coordinate)
    for event, count in counts.items():
        composed = composed.compose(_distribution(event, settings).self_compose(count))
    whole = privacy_cost(Composed(tuple(counts.items())))
    return composed, None if whole.delta else whole.pure


def _count(event: Event, times: int, counts: Counter[Event]) -> None:
    """Split an event into its parts, so that equal events are counted composed."""
    if isinstance(event, Composed):
        for part, count in event.parts:
            _count(part, count * times, counts)
        return
    privacy_cost(event)  # rejects an event that no mechanism can have produced
    split = ACCOUNTING[type(event)].split
    part, count = (event, 1) if split is None else split(event)
    counts[part] += count * times


def _width(event: Event) -> float:
    """Give about the largest loss of one event."""
    pure, rho = privacy_cost(event).pure, ACCOUNTING[type(event)].rho
    if pure is not None or rho is None:
        width = float(pure or 0)
    else:
        width = float(zcdp_epsilon(rho(event), Fraction(1, 10**15)))
    if width > _LOSS_MAX:
        raise MechanismError("HB604", "An event with this loss hides nothing.", "Remove it from the list.")
    return width


def _distribution(event: Event, settings: PldSettings) -> Any:
    distribution = ACCOUNTING[type(event)].distribution
    if distribution is not None:
        return distribution(event, settings)
    # the worst pair of a pure loss is randomized response, which is discrete Laplace noise moved by one
    return settings.of_laplace(privacy_cost(event).pure or Fraction(0), 1)
