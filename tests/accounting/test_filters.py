"""Filters against the worst analyst there is: every choice that is admitted is tried, and the exact loss computed.

To the analyst, a transcript is worth what it adds to P(S) − e^ε·Q(S). Where log-ratios are whole steps, that depends on
the log-ratio so far and on what was spent, so the best adaptive strategy over all trees is found by recursion, with
enclosures for every probability. No sampling.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from operator import le

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting import curves, filters, gaussian, gaussian_filter
from hubbub.accounting.convert import divergence_for, renyi_delta
from hubbub.accounting.cost import RENYI_UNIT, ZERO, PrivacyCost, privacy_cost
from hubbub.accounting.filters import (
    Budget,
    FilterLimits,
    admits,
    filter_limits,
    first_limits,
    how_often,
    remaining_epsilon,
    spent_epsilon,
)
from hubbub.core.events import (
    Composed,
    Event,
    FlipsEvent,
    GaussianEvent,
    LaplaceEvent,
    ResponseEvent,
    SelectionEvent,
    ThresholdEvent,
)
from hubbub.core.interval import Interval, exp, log
from hubbub.core.loss import ORDERS
from hubbub.core.numbers import epsilon as typed_epsilon
from hubbub.errors import ParameterError
from hubbub.mechanisms.laplace import Laplace as LaplaceMechanism

STEP = Fraction(1, 4)
ONCE = None  # the log-ratio of an answer that the other dataset can never give
Outcome = tuple[int | None, Interval]


@dataclass(frozen=True)
class Query:
    """One thing that the analyst may ask: its price, and its answers as (steps of log-ratio, probability under P)."""

    cost: PrivacyCost
    answers: tuple[Outcome, ...]


def response(steps: int) -> Query:
    yes = 1 / (1 + exp(Interval.of(-steps * STEP)))
    return Query(privacy_cost(ResponseEvent(2, steps * STEP)), ((steps, yes), (-steps, 1 - yes)))


def three_answers(steps: int) -> Query:
    odds = exp(Interval.of(steps * STEP))
    return Query(
        privacy_cost(ResponseEvent(3, steps * STEP)),
        ((steps, odds / (odds + 2)), (0, 1 / (odds + 2)), (-steps, 1 / (odds + 2))),
    )


def laplace(shift: int) -> Query:
    """Discrete Laplace noise of scale 1/STEP on an integer moved by `shift`: losses shift, shift − 2, …, −shift."""
    q = exp(Interval.of(-STEP))
    inside = [(shift - 2 * z, (1 - q) / (1 + q) * exp(Interval.of(-z * STEP))) for z in range(1, shift)]
    ends = [(shift, 1 / (1 + q)), (-shift, exp(Interval.of(-shift * STEP)) / (1 + q))]
    return Query(privacy_cost(LaplaceEvent(shift, 1 / STEP)), tuple(ends + inside))


def slipping(steps: int, delta: Fraction) -> Query:
    """Randomized response that gives the data away with probability δ."""
    kept = [(move, chance * (1 - delta)) for move, chance in response(steps).answers]
    cost = privacy_cost(LaplaceEvent(1, 1 / (steps * STEP)))
    return Query(replace(cost, delta=delta), (*kept, (ONCE, Interval.of(delta))))


Admits = Callable[[PrivacyCost, PrivacyCost], bool]
Worth = Callable[[int], Interval]


def best(values: list[Interval]) -> Interval:
    return Interval(max(v.low for v in values), max(v.high for v in values))


def worst_analyst(menu: list[Query], admit: Admits, worth: Worth, given_away: Interval) -> tuple[Interval, int]:
    """Give the largest expected worth of a transcript over all adaptive strategies, and the longest transcript."""
    prices = [query.cost for query in menu]
    longest = 0

    @cache
    def spent(counts: tuple[int, ...]) -> PrivacyCost:
        return sum((cost.times(count) for cost, count in zip(prices, counts, strict=True)), ZERO)

    @cache
    def value(loss: int, counts: tuple[int, ...]) -> Interval:
        nonlocal longest
        longest = max(longest, sum(counts))
        found = [worth(loss)]
        for i, query in enumerate(menu):
            if admit(spent(counts), prices[i]):
                after = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
                total = Interval.of(0)
                for move, chance in query.answers:
                    total = total + chance * (given_away if move is ONCE else value(loss + move, after))
                found.append(total)
        return best(found)

    return value(0, (0,) * len(menu)), longest


def beyond(epsilon: Fraction) -> Worth:
    """What a transcript of that log-ratio adds to P(S) − e^ε·Q(S), as a share of its probability under P."""
    return lambda loss: (1 - exp(Interval.of(epsilon - loss * STEP))).at_least(0)


MENUS = [
    [response(1)],
    [response(1), response(2)],
    [response(1), response(5)],
    [response(1), laplace(3)],
    [laplace(2), three_answers(1)],
]
CAPS = [
    Budget(Fraction(3), Fraction(1, 100)),
    Budget(Fraction(2), Fraction(1, 20)),
    Budget(Fraction(1), Fraction(1, 3)),
]
CERTAIN = Interval.of(1)


@pytest.mark.parametrize("cap", CAPS, ids=str)
@pytest.mark.parametrize("menu", MENUS, ids=range(len(MENUS)))
def test_worst_adaptive_analyst_stays_within_an_approximate_cap(menu: list[Query], cap: Budget) -> None:
    delta, rounds = worst_analyst(menu, lambda s, p: admits(cap, s, p), beyond(cap.epsilon), CERTAIN)
    assert delta.high <= cap.delta
    # and the filter is worth having: more answers than by adding up the pure losses, and not far below the cap
    assert rounds > cap.epsilon / STEP
    assert delta.low > cap.delta / 100


@pytest.mark.parametrize("cap", CAPS, ids=str)
@pytest.mark.parametrize("menu", MENUS, ids=range(len(MENUS)))
def test_worst_adaptive_analyst_stays_within_a_cap_of_the_first_rule(menu: list[Query], cap: Budget) -> None:
    menu = [replace(query, cost=query.cost.by_first_rule) for query in menu]
    delta, rounds = worst_analyst(menu, lambda s, p: admits(cap, s, p), beyond(cap.epsilon), CERTAIN)
    assert delta.high <= cap.delta
    assert rounds > cap.epsilon / STEP
    assert delta.low > cap.delta / 20


@pytest.mark.parametrize("cap", CAPS, ids=str)
def test_slips_are_paid_out_of_the_same_delta(cap: Budget) -> None:
    """Events that fail by themselves, mixed with others: both parts of δ are used, and the whole still holds."""
    without, _ = worst_analyst([response(1)], lambda s, p: admits(cap, s, p), beyond(cap.epsilon), CERTAIN)
    menu = [response(1), slipping(1, cap.delta / 20)]
    delta, _ = worst_analyst(menu, lambda s, p: admits(cap, s, p), beyond(cap.epsilon), CERTAIN)
    assert Fraction(delta.low) > Fraction(without.high) + cap.delta / 20
    assert delta.high <= cap.delta


def test_slips_beyond_their_share_are_refused() -> None:
    cap = Budget(Fraction(3), Fraction(1, 100))
    small = privacy_cost(LaplaceEvent(1, Fraction(100)))
    leak = replace(small, delta=Fraction(1, 2000))
    assert admits(cap, leak, leak)
    assert not admits(cap, leak.times(2), leak)
    assert admits(cap, leak.times(2), small)
    assert not admits(Budget(Fraction(3), Fraction(0)), ZERO, leak)
    # under the first rule half of δ is for slips
    old = replace(leak, delta=Fraction(1, 400)).by_first_rule
    assert admits(cap, old, old)
    assert not admits(cap, old.times(2), old)


@pytest.mark.parametrize("menu", MENUS, ids=range(len(MENUS)))
def test_worst_adaptive_analyst_stays_within_a_pure_cap(menu: list[Query]) -> None:
    """No transcript passes e^ε at all, and the cap is reached."""
    cap = Budget(Fraction(3), Fraction(0))
    delta, _ = worst_analyst(menu, lambda s, p: admits(cap, s, p), beyond(cap.epsilon), CERTAIN)
    assert delta.high == 0
    nearly, _ = worst_analyst(menu, lambda s, p: admits(cap, s, p), beyond(cap.epsilon - 2 * STEP), CERTAIN)
    assert nearly.low > 0


@pytest.mark.parametrize("place", [1, 4, 7, 10])
def test_worst_adaptive_analyst_keeps_the_divergence_at_each_order(place: int) -> None:
    """A filter at one order alone: E_P[e^((α−1)·log-ratio)] stays below e^((α−1)B) for every strategy, and near it."""
    order, bound = ORDERS[place], privacy_cost(ResponseEvent(2, STEP)).renyi[place] * 8

    def admit(spent: PrivacyCost, cost: PrivacyCost) -> bool:
        return spent.renyi[place] + cost.renyi[place] <= bound

    moment, _ = worst_analyst(
        [response(1), three_answers(2)], admit, lambda loss: exp(Interval.of((order - 1) * loss * STEP)), CERTAIN
    )
    divergence = log(moment) / (order - 1)
    assert divergence.high <= bound * RENYI_UNIT
    assert divergence.low > (bound - 16) * RENYI_UNIT


# ── planted errors: the same check must see them ──────────────────────────────────────────────────────────────────────


def test_a_filter_without_the_conversion_slack_is_caught() -> None:
    """Rényi totals held against ε itself, as if a divergence of ε were a loss of ε."""
    cap = CAPS[0]

    def wrong(spent: PrivacyCost, cost: PrivacyCost) -> bool:
        return any((s + c) * RENYI_UNIT <= cap.epsilon for s, c in zip(spent.renyi, cost.renyi, strict=True))

    delta, _ = worst_analyst([response(1)], wrong, beyond(cap.epsilon), CERTAIN)
    assert delta.low > 10 * cap.delta


@pytest.mark.parametrize("cap", CAPS[:2], ids=str)
def test_a_price_that_misses_a_factor_of_two_is_caught(cap: Budget) -> None:
    def half(cost: PrivacyCost) -> PrivacyCost:
        return PrivacyCost(cost.pure, tuple(value // 2 for value in cost.renyi), cost.delta)  # the first rule

    delta, _ = worst_analyst(
        [response(1)], lambda spent, cost: admits(cap, half(spent), half(cost)), beyond(cap.epsilon), CERTAIN
    )
    assert delta.low > cap.delta


def test_failures_that_are_not_counted_are_caught() -> None:
    cap = CAPS[0]

    def blind(spent: PrivacyCost, cost: PrivacyCost) -> bool:
        return admits(cap, replace(spent, delta=Fraction(0)), replace(cost, delta=Fraction(0)))

    delta, _ = worst_analyst([slipping(1, cap.delta / 6)], blind, beyond(cap.epsilon), CERTAIN)
    assert delta.low > cap.delta


def test_a_gaussian_filter_that_admits_too_much_is_caught() -> None:
    """Squares of losses held against the limit without the excess: one response of loss 1 is more than N(1)."""
    cap = Budget(Fraction(1, 100), Fraction(44, 100))
    most = gaussian_filter.limit(cap.epsilon, cap.delta)

    def wrong(spent: PrivacyCost, cost: PrivacyCost) -> bool:
        return sum((spent + cost).gaussian or ()) <= most

    def right(spent: PrivacyCost, cost: PrivacyCost) -> bool:
        return gaussian_filter.variance((spent + cost).gaussian or ()) <= most

    menu = [response(1), response(2), response(4)]
    over, _ = worst_analyst(menu, wrong, beyond(cap.epsilon), CERTAIN)
    assert over.low > cap.delta
    within, rounds = worst_analyst(menu, right, beyond(cap.epsilon), CERTAIN)
    assert cap.delta * Fraction(8, 10) < within.low
    assert within.high <= cap.delta
    assert rounds > 10


def test_charging_the_realised_loss_is_caught() -> None:
    """A filter that gives back what an answer did not reveal: the analyst asks until it did, and passes e^ε."""
    epsilon = 4 * STEP

    def value(loss: int, charged: Fraction, rounds: int) -> Interval:
        found = [beyond(epsilon)(loss)]
        if charged + STEP <= epsilon and rounds < 12:
            after = [
                chance * value(loss + move, charged + (STEP if move < 0 else 0), rounds + 1)
                for move, chance in response(1).answers
                if move is not None
            ]
            found.append(after[0] + after[1])
        return best(found)

    assert value(0, Fraction(0), 0).low > Fraction(1, 100)


# ── an analyst on real data ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.row(3)
def test_second_query_chosen_by_the_first_answer_costs_no_more_than_charged() -> None:
    """Ages of eight people, and of seven: the answer decides what the analyst asks next, and at which ε.

    Each transcript's exact log-ratio is at most what was charged on its own path.
    """
    ages = [23, 31, 44, 52, 58, 61, 67, 79]
    cap = Budget(Fraction(1), Fraction(0))
    first = LaplaceMechanism.from_epsilon(sensitivity=1, epsilon="0.3")
    careful = LaplaceMechanism.from_epsilon(sensitivity=1, epsilon="0.7")
    curious = LaplaceMechanism.from_epsilon(sensitivity=1, epsilon="0.2")
    window = (-2, 10)

    def second(answer: int) -> tuple[LaplaceMechanism, int]:
        return (careful, 60) if answer >= 4 else (curious, 40)

    def distribution(people: list[int]) -> dict[tuple[int, int], tuple[Fraction, Fraction]]:
        joint = {}
        for a, (low, high) in first.distribution(sum(age > 50 for age in people), window).mass.items():
            mechanism, limit = second(a)
            for b, (low2, high2) in mechanism.distribution(sum(age > limit for age in people), window).mass.items():
                joint[a, b] = (low * low2, high * high2)
        return joint

    largest = Fraction(0)
    for gone in ages:
        whole, without = distribution(ages), distribution([age for age in ages if age != gone])
        for (a, b), (low, high) in whole.items():
            spent = privacy_cost(first.event) + privacy_cost(second(a)[0].event)
            assert spent.pure is not None
            assert admits(cap, privacy_cost(first.event), privacy_cost(second(a)[0].event))
            other = without[a, b]
            ratio = max((log(Interval.of(high / other[0]))).above(), (log(Interval.of(other[1] / low))).above())
            assert ratio <= spent.pure + Fraction(1, 10**25)
            largest = max(largest, ratio)
    assert largest > cap.epsilon - Fraction(1, 10**20)  # some path reaches the cap: nothing less could be charged


# ── the numbers that the ledger shows ─────────────────────────────────────────────────────────────────────────────────

NEARLY = Fraction(999, 1000)
budgets = st.builds(
    Budget,
    st.fractions(Fraction(1, 100), 20, max_denominator=100),
    st.sampled_from([Fraction(0), *(Fraction(1, 10**k) for k in (1, 2, 5, 9, 20, 30))]),
)
EVENTS: list[Event] = [
    LaplaceEvent(1, Fraction(100)),
    LaplaceEvent(5, Fraction(7)),
    GaussianEvent(1, Fraction(400)),
    FlipsEvent(3, Fraction(1, 50)),
    SelectionEvent("exponential", 1, monotone=False, rate=Fraction(1, 100)),
    ThresholdEvent(LaplaceEvent(1, Fraction(50)), keys=1, above=1350),
]


@given(budgets, st.sampled_from([filter_limits, first_limits]))
@settings(max_examples=25, deadline=None)
def test_shares_of_a_cap_never_exceed_its_delta(cap: Budget, rule: Callable[[Budget], FilterLimits]) -> None:
    split = rule(cap)
    share, most, failures = split.gaussian
    assert split.delta + sum(split.shares) + share + Fraction(max(0, failures), 10**36) <= cap.delta
    if most > 0:
        # the limit is the largest variance that is (ε, share)-DP: it is, and one part in 10⁹ more is not
        def least(value: int) -> Fraction:
            noise = Fraction(gaussian_filter.STEPS, value)
            return gaussian.profile(epsilon=cap.epsilon, sensitivity_squared=1, variance=noise).above(80)

        assert least(most) <= share
        assert most < 10**12 or least(most + most // 10**9) > share
    for order, share, most in zip(ORDERS, split.shares, split.renyi, strict=True):
        if most >= 0:
            # the limit is the largest divergence that implies (ε, share): it does, and one part in 10⁹ more does not
            limit = most * RENYI_UNIT
            assert renyi_delta(order, limit, cap.epsilon) <= share + Fraction(1, 10**30)
            assert divergence_for(order, cap.epsilon, share) < limit + Fraction(1, 10**17)
        else:
            assert share == 0 or divergence_for(order, cap.epsilon, share) <= RENYI_UNIT


@given(budgets, st.lists(st.sampled_from(EVENTS), max_size=40))
@settings(max_examples=60, deadline=None)
def test_headroom_passes_and_a_little_more_does_not(cap: Budget, events: list[Event]) -> None:
    spent = ZERO
    for event in events:
        if admits(cap, spent, privacy_cost(event)):
            spent += privacy_cost(event)
    assert admits(cap, spent, ZERO)
    assert spent_epsilon(cap, spent) <= cap.epsilon
    left = remaining_epsilon(cap, spent)
    if left:
        assert typed_epsilon(left) == left
        assert admits(cap, spent, privacy_cost(ResponseEvent(2, left)))
        assert admits(cap, spent, privacy_cost(LaplaceEvent(7, 7 / left)))
    assert not admits(cap, spent, privacy_cost(ResponseEvent(2, left + Fraction(2, 10**9))))


@given(budgets, st.lists(st.sampled_from([0.0, 0.001, 0.3, 0.9, 0.999, 1.0000001, 1.1]), min_size=33, max_size=33))
@settings(max_examples=25, deadline=None)
def test_headroom_is_that_of_a_search_through_exact_curves(cap: Budget, shares: list[float]) -> None:
    """Each order is used up to another share, so that any of them may decide."""
    rooms = [most - int(max(0, most) * share) for most, share in zip(filter_limits(cap).renyi, shares, strict=False)]
    low, high = 0, 10**9 * (max(0, max(rooms)) // 10**18 + 3)
    while high - low > 1:
        middle = (low + high) // 2
        curve = curves.pure(Fraction(middle, 10**9))
        low, high = (middle, high) if any(map(le, curve, rooms)) else (low, middle)
    assert filters._largest_pure(rooms, 0) == low


@given(budgets, st.lists(st.sampled_from(EVENTS), max_size=40), st.sampled_from(EVENTS), st.sampled_from([3, 10**6]))
@settings(max_examples=150, deadline=None)
def test_a_price_fits_as_often_as_it_is_admitted_and_no_more(
    cap: Budget, events: list[Event], event: Event, most: int
) -> None:
    """Also where the budget is exceeded already: then it fits 0 times."""
    spent, price = sum(map(privacy_cost, events), ZERO), privacy_cost(event)
    count = how_often(cap, spent, price, most)
    assert 0 <= count <= most
    assert count == 0 or admits(cap, spent, price.times(count))
    assert count == most or not admits(cap, spent, price.times(count + 1))


@given(budgets, st.fractions(1, 4, max_denominator=20), st.fractions(1, 4, max_denominator=20))
@settings(max_examples=25, deadline=None)
def test_limits_grow_with_the_cap(cap: Budget, epsilon: Fraction, delta: Fraction) -> None:
    """So a cap that is changed never admits what the largest ε with the largest δ would not."""
    small, large = filter_limits(cap), filter_limits(Budget(cap.epsilon * epsilon, min(NEARLY, cap.delta * delta)))
    assert small.delta <= large.delta
    assert all(map(le, small.renyi, large.renyi))
    assert small.gaussian[1] <= large.gaussian[1]
    assert small.gaussian[2] <= large.gaussian[2]


@given(budgets, st.fractions(1, 4, max_denominator=20), st.fractions(1, 4, max_denominator=20))
@settings(max_examples=60, deadline=None)
def test_limits_of_the_first_rule_are_below_those_of_half_the_largest_delta(
    cap: Budget, epsilon: Fraction, delta: Fraction
) -> None:
    """For any cap below (E, d); the limits at E and d/2 for each of 16 orders and the failures cost 8.5d."""
    largest = Budget(cap.epsilon * epsilon, min(NEARLY, cap.delta * delta))
    small = first_limits(cap)
    assert small.delta <= largest.delta / 2
    for order, most in zip(ORDERS, small.renyi, strict=True):
        assert most < 0 or most * RENYI_UNIT <= divergence_for(order, largest.epsilon, largest.delta / 2)


@pytest.mark.parametrize("menu", MENUS, ids=range(len(MENUS)))
def test_a_cap_that_follows_the_answers_stays_within_the_largest(menu: list[Query]) -> None:
    """After each answer the owner picks the cap that is best for the analyst: one of two, neither above (3, 1/20)."""
    caps = [Budget(Fraction(3), Fraction(1, 100)), Budget(Fraction(2), Fraction(1, 20))]
    largest = Budget(Fraction(3), Fraction(1, 20))

    def admit(spent: PrivacyCost, cost: PrivacyCost) -> bool:
        return any(admits(cap, spent, cost) for cap in caps)

    delta, rounds = worst_analyst(menu, admit, beyond(largest.epsilon), CERTAIN)
    assert delta.high <= largest.delta
    _, alone = worst_analyst(menu, lambda s, c: admits(caps[1], s, c), beyond(largest.epsilon), CERTAIN)
    assert rounds >= alone


def test_what_costs_nothing_fits_always_unless_the_budget_is_exceeded() -> None:
    cap, loss = Budget(Fraction(1), Fraction(0)), privacy_cost(LaplaceEvent(1, Fraction(1)))
    assert how_often(cap, loss, ZERO, 50) == 50
    assert how_often(cap, loss.times(2), ZERO, 50) == 0
    assert (how_often(cap, ZERO, loss, 50), how_often(cap, loss, loss, 50)) == (1, 0)


@pytest.mark.parametrize("off", [0, -(10**12), -(10**6), -1000, -1, 1, 1000, 10**6, 10**12])
def test_headroom_does_not_depend_on_the_guess_from_which_it_is_searched(
    off: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 losses of 0.1 are more than ε = 9 in sum, so that the Rényi orders decide what is left."""
    cap, spent = Budget(Fraction(9), Fraction(1, 10**6)), privacy_cost(ResponseEvent(2, Fraction(1, 10))).times(150)
    guess = filters._guess
    monkeypatch.setattr(filters, "_guess", lambda rooms: guess(rooms) + off)
    left = remaining_epsilon(cap, spent)
    assert left > 0
    assert admits(cap, spent, privacy_cost(ResponseEvent(2, left)))
    assert not admits(cap, spent, privacy_cost(ResponseEvent(2, left + Fraction(1, 10**9))))


@given(budgets, st.lists(st.sampled_from(EVENTS), max_size=40))
@settings(max_examples=60, deadline=None)
def test_spent_epsilon_is_within_the_cap_exactly_when_the_cap_holds(cap: Budget, events: list[Event]) -> None:
    spent = privacy_cost(Composed(tuple((event, 1) for event in events)))
    if spent.pure is None and not cap.delta:
        with pytest.raises(ParameterError):
            spent_epsilon(cap, spent)
    elif spent.delta <= filter_limits(cap).delta:
        assert (spent_epsilon(cap, spent) <= cap.epsilon) == admits(cap, spent, ZERO)


def test_pure_cap_is_exact_to_the_last_digit() -> None:
    cap, tenth = Budget(Fraction(1), Fraction(0)), privacy_cost(LaplaceEvent(1, Fraction(10)))
    assert admits(cap, tenth.times(9), tenth)
    assert remaining_epsilon(cap, tenth.times(9)) == Fraction(1, 10)
    assert not admits(
        cap, tenth.times(9), privacy_cost(LaplaceEvent(1, 1 / Fraction("0.100000000000000000000000000001")))
    )
    assert not admits(cap, tenth.times(10), privacy_cost(LaplaceEvent(1, Fraction(10**9))))
    assert remaining_epsilon(cap, tenth.times(10)) == 0


def test_a_cap_with_delta_admits_more_than_the_plain_sum() -> None:
    """At (6, 10⁻⁹): 9,383 losses of 0.01 in place of 600, 92 of 0.1 in place of 60; and Gaussian noise at all."""
    cap = Budget(Fraction(6), Fraction(1, 10**9))

    def granted(event: Event) -> int:
        cost, low, high = privacy_cost(event), 0, 10**6
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if admits(cap, cost.times(middle), ZERO) else (low, middle)
        return low

    assert granted(LaplaceEvent(1, Fraction(100))) == 9383
    assert granted(LaplaceEvent(1, Fraction(10))) == 92
    assert granted(LaplaceEvent(1, Fraction(2))) == 12
    assert granted(GaussianEvent(1, Fraction(100))) == 91


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**30), Fraction(1, 2)], ids=str)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(10**6)], ids=str)
def test_hostile_caps_are_split_soon_and_hold(epsilon: Fraction, delta: Fraction) -> None:
    cap = Budget(epsilon, delta)
    cost = privacy_cost(ResponseEvent(2, epsilon))
    assert admits(cap, ZERO, cost)
    assert not admits(cap, cost.times(10**30), cost)
    assert remaining_epsilon(cap, ZERO) >= epsilon
    assert spent_epsilon(cap, cost) <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (-1, 0), (1, -1), (1, 1)])
def test_what_is_no_budget_is_refused(epsilon: int, delta: int) -> None:
    with pytest.raises(ParameterError):
        Budget(Fraction(epsilon), Fraction(delta))
