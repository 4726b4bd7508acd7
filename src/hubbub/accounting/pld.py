"""Tight re-pricing of a fixed list of events by privacy loss distributions, with Google's dp-accounting.

For reports and plans: "these answers together amount to ε = …". It works in floating point, rounding each loss up on a
grid but not each operation, and a list that is fixed is not a filter; so no charge is ever decided by it. It needs the
extra `pld`, which nothing else does.
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hubbub.accounting.convert import zcdp_epsilon
from hubbub.accounting.cost import privacy_cost
from hubbub.core.events import Composed, Event, FlipsEvent, GaussianEvent, LaplaceEvent, ResponseEvent, ThresholdEvent
from hubbub.errors import MechanismError, ParameterError

_GRID = 1e-4
_CELLS = 20_000  # of the grid, to one event's loss
_LOSS_MAX = 300  # e^300 is near the end of what a double holds
_LISTED = 10**4  # losses of a Laplace event, or widths of a Gaussian one, that are listed one by one


def tight_epsilon(events: Sequence[Event], *, delta: Fraction, one_coordinate: bool = False) -> float:
    """Give the ε that a fixed list of events amounts to at δ, about as small as it is known.

    Theorem (One coordinate is worst for Laplace). Discrete Laplace noise on an integer vector of L1 sensitivity D is
    (ε, δ)-DP for every (ε, δ), ε ≥ 0, for which that on one integer moved by D is; so the loss distribution of the
    latter may stand for it, also under composition (Zhu, Dong and Wang, 2022).
    Proof    Let H_a(g) be the δ at ε = g of one integer moved by a; with q = e^(−1/s), and for g ≥ −a/s, it is the
    maximum of 0 and 1 − (q^(t+1) + e^g·q^(a−t))/(1+q) over 0 ≤ t < a. For two coordinates moved by a ≥ b it is
    E[H_a(g − L)] with L ≤ b/s the log-ratio of the second, and H_a falls, so it is at most H_a(g − b/s). There each t
    gives the same value as in H_(a+b)(g), which has all those t and more. For g ≥ 0, g − b/s ≥ −a/s. Induct.
    Theorem (A coarser Laplace grid is no better). Discrete Laplace noise of scale ks on an integer moved by kD is a
    post-processing of that of scale s on an integer moved by D; so a long list of losses may be shortened.
    Proof    The noise of scale ks is the difference of two geometric variables; each is k times its quotient, which is
    geometric with the ratio of scale s, plus an independent remainder. So it is k times noise of scale s plus something
    independent of it.
    Assumes  for Gaussian events of squared sensitivity above 1, that each answers one number: say so by
    `one_coordinate`. For a vector no such theorem is known here, and it is refused. Selections, sparse vectors and
    metric mechanisms are taken at their pure loss.
    Tested   tests/accounting/test_pld.py::test_whole_shift_in_one_coordinate_has_the_largest_delta,
    tests/accounting/test_pld.py::test_a_coarser_grid_has_the_larger_delta,
    tests/accounting/test_pld.py::test_tight_price_lies_between_the_exact_loss_and_the_renyi_price,
    tests/accounting/test_pld.py::test_repeating_an_event_is_listing_it
    """
    if not 0 < delta < 1:
        raise ParameterError("HB103", "delta is not between 0 and 1.", "Choose a value in that range.")
    together, pure = _composed(events, one_coordinate=one_coordinate)
    if together is None:
        return 0.0
    found = float(together.get_epsilon_for_delta(float(delta)))
    return found if pure is None else min(found, float(pure))


def tight_deltas(
    events: Sequence[Event], *, epsilons: Sequence[Fraction], one_coordinate: bool = False
) -> tuple[float, ...]:
    """Give the δ that a fixed list of events amounts to at each ε; the theorems of `tight_epsilon`, read for δ."""
    together, pure = _composed(events, one_coordinate=one_coordinate)
    if together is None:
        return (0.0,) * len(epsilons)
    found = together.get_delta_for_epsilon([float(epsilon) for epsilon in epsilons])
    return tuple(
        0.0 if pure is not None and epsilon >= pure else float(delta)
        for epsilon, delta in zip(epsilons, found, strict=True)
    )


def _composed(events: Sequence[Event], *, one_coordinate: bool) -> tuple[Any, Fraction | None]:
    """Compose the loss distributions; beside it the pure loss, where there is one and no δ of the events' own."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError as error:
        raise MechanismError(
            "HB603", "tight re-pricing needs the package dp-accounting.", "Install hubbub with the extra `pld`."
        ) from error
    counts: Counter[Event] = Counter()
    for event in events:
        _count(event, 1, counts)
    if not counts:
        return None, Fraction(0)
    grid = max(_GRID, max(_width(event) for event in counts) / _CELLS)
    together = pld.identity(value_discretization_interval=grid)
    for event, count in counts.items():
        together = together.compose(_distribution(pld, event, grid, one_coordinate=one_coordinate).self_compose(count))
    whole = privacy_cost(Composed(tuple(counts.items())))
    return together, None if whole.delta else whole.pure


def _count(event: Event, times: int, counts: Counter[Event]) -> None:
    """Take apart what is made of several, so that equal events meet."""
    match event:
        case Composed(parts):
            for part, count in parts:
                _count(part, count * times, counts)
        case FlipsEvent(distance, rate):
            counts[ResponseEvent(2, rate)] += distance * times
        case _:
            privacy_cost(event)  # refuses an event that no mechanism can have made
            counts[event] += times


def _width(event: Event) -> float:
    """Give about how far the loss of one event reaches."""
    base = privacy_cost(event)
    if base.pure is not None:
        reach = float(base.pure)
    else:
        noise = event.noise if isinstance(event, ThresholdEvent) else event
        rho = noise.sensitivity_squared / (2 * noise.variance) if isinstance(noise, GaussianEvent) else Fraction(0)
        reach = float(zcdp_epsilon(rho, Fraction(1, 10**15)))
    if reach > _LOSS_MAX:
        raise MechanismError("HB604", "an event of this loss hides nothing.", "Leave it out of the list.")
    return reach


def _distribution(pld: Any, event: Event, grid: float, *, one_coordinate: bool) -> Any:
    tight = {"value_discretization_interval": grid, "use_connect_dots": True}
    match event:
        case LaplaceEvent(sensitivity, scale):
            coarse = -(-sensitivity // _LISTED)
            steps = -(-sensitivity // coarse)
            return pld.from_discrete_laplace_mechanism(_up(coarse / scale), sensitivity=steps, **tight)
        case GaussianEvent(squared, variance):
            sensitivity = math.isqrt(squared)
            if squared > 1 and not (one_coordinate and sensitivity * sensitivity == squared):
                raise MechanismError(
                    "HB605",
                    "the tight price of Gaussian noise on a vector is not known here.",
                    "If each of these events answers one number, say so (one_coordinate); else use the Rényi price.",
                )
            if variance > _LISTED**2:
                raise MechanismError(
                    "HB605", "this Gaussian noise is too wide to be listed.", "Use the Rényi price of these events."
                )
            sigma = math.nextafter(math.sqrt(variance), 0)
            return pld.from_discrete_gaussian_mechanism(sigma, sensitivity=sensitivity, **tight)
        case ResponseEvent(answers, epsilon) if answers > 2:
            noise = answers / (math.exp(epsilon) + answers - 1)
            return pld.from_randomized_response(noise, answers, value_discretization_interval=grid)
        case ThresholdEvent(noise_event):
            fails = pld.common.DifferentialPrivacyParameters(0.0, _up(privacy_cost(event).delta))
            slip = pld.from_privacy_parameters(fails, value_discretization_interval=grid)
            return _distribution(pld, noise_event, grid, one_coordinate=one_coordinate).compose(slip)
        case _:
            # the worst pair of a pure loss is randomized response, which is discrete Laplace noise moved by one
            return pld.from_discrete_laplace_mechanism(
                _up(privacy_cost(event).pure or Fraction(0)), sensitivity=1, **tight
            )


def _up(x: Fraction) -> float:
    return math.nextafter(float(x), math.inf)
