"""Prices: what each kind of event costs, exactly additive, and never below the mechanism's own loss."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting import curves
from hubbub.accounting.cost import RENYI_UNIT, ZERO, PrivacyCost, is_summable, privacy_cost
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
from hubbub.core.loss import ORDERS, Approximate, BoundedRange, Loss, Pure, Zcdp
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms import bit_flips as flips
from hubbub.mechanisms import exponential, gaussian, laplace, metric, noisy_max, permute_and_flip, top_k
from hubbub.mechanisms import partition_selection as threshold
from hubbub.mechanisms import randomized_response as response
from hubbub.mechanisms import sparse_vector as sparse
from hubbub.mechanisms.enumeration import ratio_range, renyi

TENTH = Fraction(1, 10)
EVENTS: list[Event] = [
    LaplaceEvent(3, Fraction(30)),
    GaussianEvent(2, Fraction(100)),
    SelectionEvent("exponential", 1, monotone=False, rate=Fraction(1, 20)),
    SelectionEvent("exponential", 1, monotone=True, rate=TENTH),
    SelectionEvent("permute_and_flip", 2, monotone=False, rate=Fraction(1, 40)),
    SelectionEvent("noisy_max", 1, monotone=True, rate=TENTH),
    ResponseEvent(5, TENTH),
    FlipsEvent(4, Fraction(1, 40)),
    MetricEvent(Fraction(1, 2), TENTH, constant_normaliser=False),
    MetricEvent(Fraction(1, 2), Fraction(1, 5), constant_normaliser=True),
    SparseVectorEvent(1, monotone=False, threshold_scale=Fraction(20), query_scale=Fraction(80), hits=2),
    SparseVectorEvent(1, monotone=True, threshold_scale=Fraction(20), query_scale=Fraction(40), hits=2),
    ThresholdEvent(LaplaceEvent(1, Fraction(10)), keys=3, above=140),
    ThresholdEvent(GaussianEvent(1, Fraction(100)), keys=3, above=50),
    Composed(((LaplaceEvent(1, Fraction(20)), 1), (ResponseEvent(2, Fraction(1, 40)), 2))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_k_times_an_event_is_the_list_of_k(event: Event, count: int) -> None:
    listed = ZERO
    for _ in range(count):
        listed += privacy_cost(event)
    assert privacy_cost(event).times(count) == listed
    assert privacy_cost(Composed(((event, count),))) == listed
    assert privacy_cost(Composed(((Composed(((event, 1),)), count),))) == listed
    assert privacy_cost(Composed(((event, count - 1), (event, 1)))) == listed


@given(st.lists(st.sampled_from(EVENTS), max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_order_and_grouping_do_not_matter(events: list[Event], random: Any) -> None:
    total = sum((privacy_cost(event) for event in events), ZERO)
    random.shuffle(events)
    cut = random.randint(0, len(events))
    left = sum((privacy_cost(event) for event in events[:cut]), ZERO)
    right = sum((privacy_cost(event) for event in events[cut:]), ZERO)
    assert left + right == total == right + left


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_pure_losses_are_exact(event: Event) -> None:
    has_pure = not isinstance(event, GaussianEvent) and not (
        isinstance(event, ThresholdEvent) and isinstance(event.noise, GaussianEvent)
    )
    assert privacy_cost(event).pure == (TENTH if has_pure else None)
    assert (privacy_cost(event).delta > 0) == isinstance(event, ThresholdEvent)


def covers(cost: PrivacyCost, loss: Loss) -> bool:
    match loss:
        case Pure(epsilon):
            return cost.pure == epsilon and all(map(int.__le__, cost.renyi, curves.pure(epsilon)))
        case BoundedRange(epsilon):
            return cost.pure == epsilon and cost.renyi == curves.bounded_range(epsilon)
        case Zcdp(rho):
            return cost.pure is None and cost.renyi == curves.concentrated(rho)
        case Approximate(inner, delta):
            return cost.delta == delta and covers(cost, inner)
        case _:
            return False


def test_a_price_is_the_loss_that_the_mechanism_states() -> None:
    add, one = Relation.ADD_REMOVE, Fraction(1)
    chosen: dict[str, Any] = {"candidates": 4, "sensitivity": 1, "monotone": False, "relation": add, "epsilon": one}
    line = metric.Space.of([[abs(i - j) for j in range(4)] for i in range(4)])
    mechanisms: list[Any] = [
        laplace.Laplace.from_epsilon(sensitivity=3, epsilon=one),
        gaussian.Gaussian.from_rho(sensitivity_squared=3, rho=one),
        exponential.Exponential.from_epsilon(**chosen),
        exponential.Exponential.from_epsilon(**chosen | {"monotone": True}),
        permute_and_flip.PermuteAndFlip.from_epsilon(**chosen),
        noisy_max.NoisyMax.from_epsilon(**chosen),
        response.RandomizedResponse(answers=4, epsilon=one),
        flips.BitFlips.from_epsilon(bits=5, distance=2, epsilon=one),
        metric.Metric.from_epsilon(space=line, sensitivity=1, epsilon=one),
        sparse.SparseVector.from_epsilon(sensitivity=1, monotone=False, relation=add, hits=3, queries=9, epsilon=one),
        sparse.SparseVector.from_epsilon(sensitivity=1, monotone=True, relation=add, hits=3, queries=9, epsilon=one),
        threshold.PartitionSelection.from_epsilon(keys=2, contribution=3, relation=add, epsilon=one, delta="1e-9"),
        top_k.TopK.from_epsilon(k=3, **chosen),
    ]
    for mechanism in mechanisms:
        assert covers(privacy_cost(mechanism.event), mechanism.loss), mechanism


def test_top_k_is_cheaper_by_bounded_range_than_by_its_pure_loss() -> None:
    choice = Composed(((SelectionEvent("exponential", 1, monotone=False, rate=Fraction(1, 200)), 100),))
    assert privacy_cost(choice).pure == 1
    place = ORDERS.index(Fraction(8))
    assert 3 * privacy_cost(choice).renyi[place] < privacy_cost(LaplaceEvent(1, Fraction(100))).times(100).renyi[place]


@given(
    scores=st.lists(st.integers(-5, 5), min_size=2, max_size=5),
    moves=st.lists(st.integers(-1, 1), min_size=5, max_size=5),
    rate=st.fractions(Fraction(1, 100), 3, max_denominator=100),
)
@settings(max_examples=30, deadline=None)
def test_exponential_mechanism_has_bounded_range(scores: list[int], moves: list[int], rate: Fraction) -> None:
    """On neighboring scores, the exact range of the log-ratio and the divergences stay below the cost."""
    moved = [score + move for score, move in zip(scores, moves, strict=False)]
    monotone = all(move >= 0 for move in moves[: len(scores)]) or all(move <= 0 for move in moves[: len(scores)])
    chooser = exponential.Exponential(candidates=len(scores), sensitivity=1, monotone=monotone, rate=rate)
    p, q = chooser.distribution(scores), chooser.distribution(moved)
    cost = privacy_cost(chooser.event)
    assert cost.pure == rate * (1 if monotone else 2)
    assert ratio_range(p, q)[1] <= cost.pure + Fraction(1, 10**30)
    for order, most in zip(ORDERS[:8], cost.renyi[:8], strict=True):
        assert renyi(p, q, order)[1] <= most * RENYI_UNIT + Fraction(1, 10**30)


def test_half_the_range_would_be_caught() -> None:
    """The rate ε/Δ in place of ε/2Δ costs twice as much: with many candidates the range passes a price of ε."""
    chooser = exponential.Exponential(candidates=4, sensitivity=1, monotone=False, rate=Fraction(1))
    p, q = chooser.distribution([1, 0, 0, 0]), chooser.distribution([0, 1, 1, 1])
    assert ratio_range(p, q)[0] > 1


def test_losses_of_wild_denominator_are_rounded_up_and_stay_short() -> None:
    wild = LaplaceEvent(1, Fraction(10**9 + 7, 3))
    cost = privacy_cost(wild).pure
    assert cost is not None
    assert 0 < cost - Fraction(3, 10**9 + 7) <= Fraction(1, 10**30)
    assert is_summable(cost)
    total = ZERO
    for prime in (1009, 10007, 100003, 1000003):
        total += privacy_cost(LaplaceEvent(1, Fraction(prime)))
    assert total.pure is not None
    assert total.pure.denominator <= 10**30


HOSTILE: list[Event] = [
    LaplaceEvent(10**15, Fraction(1, 1000)),
    LaplaceEvent(1, Fraction(10**12)),
    LaplaceEvent(1, Fraction(10**40)),
    LaplaceEvent(10**15, Fraction(10**15)),
    GaussianEvent(10**30, Fraction(1, 10**6)),
    GaussianEvent(1, Fraction(10**24)),
    SelectionEvent("exponential", 10**15, monotone=False, rate=Fraction(10**6)),
    ResponseEvent(10**9, Fraction(10**6)),
    ResponseEvent(2, Fraction(1, 10**9)),
    FlipsEvent(10**9, Fraction(1, 10**9)),
    SparseVectorEvent(1, monotone=False, threshold_scale=Fraction(10**9), query_scale=Fraction(1, 1000), hits=10**6),
]


@pytest.mark.parametrize("event", HOSTILE, ids=str)
def test_hostile_sizes_have_a_price_and_soon(event: Event) -> None:
    cost = privacy_cost(event)
    assert all(value > 0 for value in cost.renyi)
    assert list(cost.renyi) == sorted(cost.renyi)
    if cost.pure is not None:
        # the largest order is close to the pure loss, or below it by what randomized response saves
        assert cost.renyi[-1] * RENYI_UNIT <= cost.pure + RENYI_UNIT * getattr(event, "distance", 1)
    vast = cost.times(10**12)
    assert vast.renyi[0] == cost.renyi[0] * 10**12


IMPOSSIBLE: list[Any] = [
    LaplaceEvent(0, Fraction(1)),
    LaplaceEvent(-1, Fraction(-10)),
    LaplaceEvent(1, Fraction(0)),
    LaplaceEvent(1.5, Fraction(1)),  # type: ignore[arg-type]
    LaplaceEvent(1, float("nan")),  # type: ignore[arg-type]
    LaplaceEvent(1, math.inf),  # type: ignore[arg-type]
    GaussianEvent(1, Fraction(-1)),
    ResponseEvent(1, TENTH),
    ThresholdEvent(LaplaceEvent(1, Fraction(1)), keys=0, above=10),
    ThresholdEvent(LaplaceEvent(1, Fraction(1)), keys=1, above=0),
    ThresholdEvent(LaplaceEvent(1, Fraction(1)), keys=1, above=-3),
    ThresholdEvent(LaplaceEvent(1, Fraction(-1)), keys=1, above=10),
    SparseVectorEvent(1, monotone=False, threshold_scale=Fraction(1), query_scale=Fraction(1), hits=0),
    Composed(((LaplaceEvent(1, Fraction(1)), -1),)),
    Composed(((LaplaceEvent(1, Fraction(-1)), 1),)),
]


@pytest.mark.parametrize("event", IMPOSSIBLE, ids=str)
def test_an_impossible_event_is_refused_and_never_lowers_a_total(event: Event) -> None:
    with pytest.raises(ParameterError):
        privacy_cost(event)


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_a_price_survives_its_canonical_form(event: Event) -> None:
    assert PrivacyCost.from_json(privacy_cost(event).to_json()) == privacy_cost(event)


DAMAGED = [
    None,
    [],
    "x",
    [None, [1], "0"],
    ["1/2", [0] * 16, "0", 0],
    ["2/4", [0] * 16, "0"],
    ["-1", [0] * 16, "0"],
    ["1", [-1] + [0] * 15, "0"],
    ["1", [0.0] * 16, "0"],
    ["1", [True] * 16, "0"],
    ["1", [0] * 16, "-1"],
    ["1", [0] * 16, 0],
    [1, [0] * 16, "0"],
    ["1/0", [0] * 16, "0"],
    ["nan", [0] * 16, "0"],
    ["1", ["0"] * 16, "0"],
]


@pytest.mark.parametrize("form", DAMAGED, ids=str)
def test_a_damaged_price_is_refused(form: object) -> None:
    with pytest.raises(ParameterError):
        PrivacyCost.from_json(form)
