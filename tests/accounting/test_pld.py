"""Tight re-pricing: between the exact loss and the Rényi price, and the dominations it rests on."""

import builtins
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting import compose, convert, gaussian
from hubbub.accounting.cost import RENYI_UNIT, privacy_cost
from hubbub.accounting.pld import tight_deltas, tight_epsilon
from hubbub.core.events import (
    Composed,
    Event,
    FlipsEvent,
    GaussianEvent,
    LaplaceEvent,
    MetricEvent,
    ResponseEvent,
    SelectionEvent,
    SparseVectorEvent,
    ThresholdEvent,
)
from hubbub.core.interval import Interval, exp
from hubbub.core.loss import Approximate, Pure, Renyi
from hubbub.errors import MechanismError, ParameterError

TENTH, MILLIONTH = Fraction(1, 10), Fraction(1, 10**6)


def renyi_price(events: list[Event], delta: Fraction) -> float:
    total = privacy_cost(Composed(tuple((event, 1) for event in events)))
    loss = Renyi(tuple(value * RENYI_UNIT for value in total.renyi))
    return float(convert.epsilon_at(Approximate(loss, total.delta), delta=delta))


LISTS: list[list[Event]] = [
    [LaplaceEvent(1, Fraction(10))] * 100,
    [LaplaceEvent(50, Fraction(500))] * 100,
    [GaussianEvent(1, Fraction(100))] * 20,
    [ResponseEvent(6, TENTH)] * 80,
    [FlipsEvent(2, TENTH)] * 30,
    [SelectionEvent("permute_and_flip", 1, monotone=False, rate=Fraction(1, 20))] * 60,
    [MetricEvent(Fraction(1), TENTH, constant_normaliser=True)] * 60,
    [SparseVectorEvent(1, monotone=True, threshold_scale=Fraction(20), query_scale=Fraction(20), hits=1)] * 60,
    [ThresholdEvent(LaplaceEvent(1, Fraction(10)), keys=1, above=201)] * 60,
    [*[LaplaceEvent(1, Fraction(10))] * 30, *[GaussianEvent(1, Fraction(400))] * 30, *[ResponseEvent(2, TENTH)] * 30],
]


@pytest.mark.parametrize("events", LISTS, ids=lambda e: f"{len(e)} {type(e[0]).__name__}")
def test_tight_price_lies_between_the_exact_loss_and_the_renyi_price(events: list[Event]) -> None:
    tight = tight_epsilon(events, delta=MILLIONTH)
    assert tight < renyi_price(events, MILLIONTH) * 1.0001
    assert tight > 0.7 * renyi_price(events, MILLIONTH)


def test_tight_price_of_pure_losses_is_the_optimal_composition() -> None:
    exact = compose.optimal(Pure(TENTH), count=100, delta=MILLIONTH)
    assert tight_epsilon([LaplaceEvent(1, Fraction(10))] * 100, delta=MILLIONTH) == pytest.approx(
        float(exact), rel=1e-6
    )
    assert tight_epsilon([ResponseEvent(2, TENTH)] * 100, delta=MILLIONTH) == pytest.approx(float(exact), rel=1e-6)


def test_tight_price_of_one_gaussian_is_its_own_curve() -> None:
    variance = gaussian.discrete_variance_for(epsilon=Fraction(1), delta=MILLIONTH, sensitivity=3)
    found = tight_epsilon([GaussianEvent(9, variance)], delta=MILLIONTH, one_coordinate=True)
    assert found == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("events", LISTS, ids=lambda e: f"{len(e)} {type(e[0]).__name__}")
def test_repeating_an_event_is_listing_it(events: list[Event]) -> None:
    """k × event == [event]*k, also for randomized response, where dp-accounting's own accountant loses the k."""
    together = Composed(tuple((event, 1) for event in events))
    assert tight_epsilon([together], delta=MILLIONTH) == tight_epsilon(events, delta=MILLIONTH)
    repeated = Composed(((events[0], 40),))
    assert tight_epsilon([repeated], delta=MILLIONTH) == tight_epsilon([events[0]] * 40, delta=MILLIONTH)
    nested = Composed(((Composed(((events[0], 4),)), 10),))
    assert tight_epsilon([nested], delta=MILLIONTH) == tight_epsilon([repeated], delta=MILLIONTH)
    assert tight_epsilon([repeated], delta=MILLIONTH) > 1.5 * tight_epsilon([events[0]], delta=MILLIONTH)


# ── the dominations ───────────────────────────────────────────────────────────────────────────────────────────────────


def losses(shift: int, scale: Fraction) -> list[tuple[int, Interval]]:
    """Discrete Laplace noise on an integer moved by `shift`: (log-ratio in steps of 1/scale, probability)."""
    q = exp(Interval.of(-1 / scale))
    inside = [(shift - 2 * z, (1 - q) / (1 + q) * exp(Interval.of(-z / scale))) for z in range(1, shift)]
    return [(shift, 1 / (1 + q)), *inside, (-shift, exp(Interval.of(-shift / scale)) / (1 + q))]


def slip(parts: list[tuple[Fraction, Interval]], epsilon: Fraction) -> Interval:
    total = Interval.of(0)
    for loss, chance in parts:
        if loss > epsilon:
            total = total + chance * (1 - exp(Interval.of(epsilon - loss)))
    return total


def spread(shifts: list[int], scale: Fraction) -> list[tuple[Fraction, Interval]]:
    sums: dict[int, Interval] = {0: Interval.of(1)}
    for shift in shifts:
        after: dict[int, Interval] = {}
        for so_far, chance in sums.items():
            for loss, more in losses(shift, scale):
                after[so_far + loss] = after.get(so_far + loss, Interval.of(0)) + chance * more
        sums = after
    return [(loss / scale, chance) for loss, chance in sums.items()]


@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.fractions(Fraction(1, 3), 30, max_denominator=6),
    st.fractions(0, 1, max_denominator=20),
)
@settings(max_examples=60, deadline=None)
def test_whole_shift_in_one_coordinate_has_the_largest_delta(
    shifts: list[int], scale: Fraction, share: Fraction
) -> None:
    """At every ε ≥ 0 the exact δ of the spread shift is at most that of the whole in one coordinate."""
    epsilon = share * sum(shifts) / scale
    assert slip(spread(shifts, scale), epsilon).low <= slip(spread([sum(shifts)], scale), epsilon).high


@given(
    st.integers(1, 5),
    st.integers(2, 4),
    st.fractions(Fraction(1, 3), 9, max_denominator=6),
    st.fractions(0, 1, max_denominator=20),
)
@settings(max_examples=60, deadline=None)
def test_a_coarser_grid_has_the_larger_delta(shift: int, factor: int, scale: Fraction, share: Fraction) -> None:
    epsilon = share * shift / scale
    fine, coarse = spread([shift * factor], scale * factor), spread([shift], scale)
    assert slip(fine, epsilon).low <= slip(coarse, epsilon).high


def test_a_fine_grid_is_shortened_upward() -> None:
    """A sensitivity of 10⁹ is listed in ten thousand steps: a price hardly above, never below."""
    fine, coarse = [LaplaceEvent(10**9, Fraction(10**10))] * 50, [LaplaceEvent(10**4, Fraction(10**5))] * 50
    assert tight_epsilon(fine, delta=MILLIONTH) == pytest.approx(tight_epsilon(coarse, delta=MILLIONTH), rel=1e-6)
    odd = tight_epsilon([LaplaceEvent(10**4 + 1, Fraction(10**5))] * 50, delta=MILLIONTH)
    assert odd >= tight_epsilon(coarse, delta=MILLIONTH)
    assert odd < 1.001 * tight_epsilon(coarse, delta=MILLIONTH)


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_dp_accounting_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return plain(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MechanismError, match="extra `pld`"):
        tight_epsilon([LaplaceEvent(1, Fraction(10))], delta=MILLIONTH)


def test_what_has_no_tight_price_is_refused() -> None:
    for event in (GaussianEvent(2, Fraction(100)), GaussianEvent(4, Fraction(100)), GaussianEvent(1, Fraction(10**20))):
        with pytest.raises(MechanismError):
            tight_epsilon([event], delta=MILLIONTH)
    with pytest.raises(MechanismError):
        tight_epsilon([GaussianEvent(2, Fraction(100))], delta=MILLIONTH, one_coordinate=True)
    with pytest.raises(MechanismError):
        tight_epsilon([LaplaceEvent(1, Fraction(1, 1000))], delta=MILLIONTH)
    for delta in (Fraction(0), Fraction(1)):
        with pytest.raises(ParameterError):
            tight_epsilon([LaplaceEvent(1, Fraction(10))], delta=delta)
    with pytest.raises(ParameterError):
        tight_epsilon([LaplaceEvent(1, Fraction(-10))], delta=MILLIONTH)


def test_small_ends() -> None:
    assert tight_epsilon([], delta=MILLIONTH) == 0
    assert tight_epsilon([LaplaceEvent(1, Fraction(10**9))] * 3, delta=Fraction(1, 10**30)) <= 3e-9 * (1 + 1e-12)
    assert not math.isinf(tight_epsilon([GaussianEvent(1, Fraction(100))], delta=Fraction(1, 10**9)))


def test_failures_of_the_events_are_not_forgotten_where_there_is_a_pure_loss() -> None:
    """A threshold fails with some δ of its own: below that no ε is promised, whatever the noise's pure loss is."""
    event = ThresholdEvent(LaplaceEvent(1, Fraction(1)), keys=1, above=3)
    own = privacy_cost(event).delta
    assert tight_epsilon([event], delta=own / 2) == math.inf
    assert tight_epsilon([event], delta=2 * own) <= 1 + 1e-3


def test_deltas_and_epsilons_of_a_list_are_one_curve() -> None:
    events: list[Event] = [LaplaceEvent(1, Fraction(10))] * 30
    epsilon = tight_epsilon(events, delta=MILLIONTH)
    below, above, pure = tight_deltas(events, epsilons=[Fraction(epsilon) * 99 / 100, Fraction(epsilon), Fraction(3)])
    assert below > 1e-6
    assert above <= 1e-6 * (1 + 1e-6)
    assert pure == 0
    assert tight_deltas([], epsilons=[Fraction(1)]) == (0.0,)
