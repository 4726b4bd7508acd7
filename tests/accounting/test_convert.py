"""Conversions: upper bounds, each held against a reference at 90 digits and against pairs of distributions."""

import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hubbub.accounting import convert, curves
from hubbub.accounting.cost import privacy_cost
from hubbub.core.events import LaplaceEvent
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.loss import ORDERS, Approximate, BoundedRange, Pure, Renyi, Zcdp
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.enumeration import delta_at, total_variation, worst_ratio
from hubbub.mechanisms.laplace import Laplace as LaplaceMechanism

Number = Any  # mpmath has no types
GRAIN = Fraction(1, 10**30)
TINY = mpmath.mpf(10) ** -29

orders = st.sampled_from(ORDERS)
deltas = st.sampled_from([Fraction(1, 2), Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**30)])
losses = st.fractions(Fraction(1, 10**6), 50, max_denominator=10**6)


def number(x: Fraction) -> Number:
    return mpmath.mpf(x.numerator) / x.denominator


def just_above(found: Fraction, true: Number) -> bool:
    """Rounded up, by one step of the grid at most."""
    return bool(0 <= number(found) - true + mpmath.mpf(10) ** -60 <= TINY)


@given(orders, losses, deltas)
@settings(max_examples=100, deadline=None)
def test_conversions_match_a_high_precision_reference(order: Fraction, divergence: Fraction, delta: Fraction) -> None:
    a, r, d = number(order), number(divergence), number(delta)
    epsilon = r + mpmath.log(1 - 1 / a) - mpmath.log(a * d) / (a - 1)
    assert just_above(convert.renyi_epsilon(order, divergence, delta), max(mpmath.mpf(0), epsilon))
    room = number(convert.divergence_for(order, divergence, delta))
    exact = r - mpmath.log(1 - 1 / a) + mpmath.log(a * d) / (a - 1)
    assert 0 <= exact - room <= TINY  # this one is a limit, so it is rounded down
    e = number(divergence / 3)
    slip = mpmath.exp((a - 1) * (r - e)) / (a - 1) * (1 - 1 / a) ** a
    assert just_above(convert.renyi_delta(order, divergence, divergence / 3), min(mpmath.mpf(1), slip))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    size = draw(st.integers(2, 6))
    weights = st.lists(st.integers(1, 60), min_size=size, max_size=size)
    p, q = draw(weights), draw(weights)
    return [Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]


@given(pairs(), orders, st.fractions(0, 3, max_denominator=50))
@settings(max_examples=100, deadline=None)
def test_divergence_implies_the_stated_delta_on_random_pairs(
    pair: tuple[list[Fraction], list[Fraction]], order: Fraction, epsilon: Fraction
) -> None:
    """For random pairs of distributions the exact δ at ε is at most what their exact divergence implies."""
    p, q = pair
    a = number(order)
    moment = mpmath.fsum(number(x) ** a * number(y) ** (1 - a) for x, y in zip(p, q, strict=True))
    divergence = Fraction(str(mpmath.nstr(mpmath.log(moment) / (a - 1), 60))) + GRAIN
    true = sum(max(0, number(x) - mpmath.exp(number(epsilon)) * number(y)) for x, y in zip(p, q, strict=True))
    assert true <= number(convert.renyi_delta(order, max(Fraction(0), divergence), epsilon))


def test_the_older_conversion_would_be_seen_as_looser_and_a_smaller_one_as_wrong() -> None:
    """Mironov's ε = r + ln(1/δ)/(α−1) is larger; dropping the 1/(α−1) of ours would be refuted by a pair."""
    order, delta = Fraction(8), Fraction(1, 10**6)
    older = 1 + mpmath.log(10**6) / 7
    assert number(convert.renyi_epsilon(order, Fraction(1), delta)) < older - mpmath.mpf("0.4")
    # the pair that attains the conversion at order 2: ratios 0 and 2e^ε, at ε = 0
    p, q = (
        exact_distribution({0: Fraction(0), 1: Fraction(1)}),
        exact_distribution({0: Fraction(1, 2), 1: Fraction(1, 2)}),
    )
    divergence = Fraction(str(mpmath.nstr(mpmath.log(2), 50))) + GRAIN
    stated = convert.renyi_delta(Fraction(2), divergence, Fraction(0))
    assert delta_at(p, q, Fraction(0))[0] == Fraction(1, 2) <= stated < Fraction(1, 2) + Fraction(1, 10**20)


@given(st.fractions(Fraction(1, 1000), 20, max_denominator=1000), deltas)
@example(Fraction(1195, 894), Fraction(1, 2))
@settings(max_examples=15, deadline=None)
def test_concentrated_conversion_is_tight_and_below_the_classic_one(rho: Fraction, delta: Fraction) -> None:
    found = convert.zcdp_epsilon(rho, delta)
    r, d = number(rho), number(delta)
    classic = r + 2 * mpmath.sqrt(r * mpmath.log(1 / d))
    assert number(found) < classic
    # no order of a fine grid does better by more than a part in 10⁶
    grid = [1 + mpmath.sqrt(mpmath.log(1 / d) / r) * mpmath.mpf(2) ** (mpmath.mpf(k) / 10) for k in range(-30, 31)]
    least = min(r * a + mpmath.log(1 - 1 / a) - mpmath.log(a * d) / (a - 1) for a in grid)
    assert number(found) <= max(mpmath.mpf(0), least) * (1 + mpmath.mpf(10) ** -6) + TINY
    # and read for δ it comes back
    assert convert.zcdp_delta(rho, found + GRAIN) <= delta * (1 + Fraction(1, 10**4)) + GRAIN or found == 0


@given(st.fractions(Fraction(1, 10**6), 30, max_denominator=10**6))
@settings(max_examples=60, deadline=None)
def test_concentrated_line_is_above_the_exact_curves(epsilon: Fraction) -> None:
    pure, bounded = convert.to_zcdp(Pure(epsilon)), convert.to_zcdp(BoundedRange(epsilon))
    assert (pure.rho, bounded.rho) == (epsilon**2 / 2, epsilon**2 / 8)
    for order, exact, ranged in zip(ORDERS, curves.pure(epsilon), curves.bounded_range(epsilon), strict=True):
        assert exact <= curves.units(pure.rho * order) + 1
        assert ranged <= curves.units(bounded.rho * order) + 1
    # the constant ½ is tight for small ε at small orders, so a smaller one would be wrong
    if epsilon < Fraction(1, 100):
        assert curves.pure(epsilon)[0] * 100 > curves.units(ORDERS[0] * epsilon**2 / 2) * 99


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_bounded_range_pairs_are_pure(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    ratios = [x / y for x, y in zip(*pair, strict=True)]
    width = max(ratios) / min(ratios)
    assert max(*ratios, *(1 / r for r in ratios)) <= width
    assert convert.to_pure(BoundedRange(Fraction(1, 3))) == Pure(Fraction(1, 3))


@given(losses, deltas)
@settings(max_examples=60, deadline=None)
def test_pure_loss_trades_for_delta_exactly_as_randomized_response(epsilon: Fraction, delta: Fraction) -> None:
    e, d = number(epsilon), number(delta)
    inside = mpmath.exp(e) - d * (1 + mpmath.exp(e))
    true = mpmath.log(inside) if inside > 1 else mpmath.mpf(0)
    assert just_above(convert.epsilon_at(Pure(epsilon), delta=delta), true)
    half = epsilon / 2
    slip = (mpmath.exp(e) - mpmath.exp(number(half))) / (1 + mpmath.exp(e))
    assert just_above(convert.delta_at(Pure(epsilon), epsilon=half), slip)
    assert convert.delta_at(Pure(epsilon), epsilon=epsilon) == 0
    assert convert.epsilon_at(Pure(epsilon), delta=Fraction(0)) == epsilon


def test_every_form_is_converted_at_a_delta() -> None:
    small, d = Fraction(1, 10), Fraction(1, 10**6)
    forms: list[Pure | BoundedRange | Zcdp | Renyi] = [
        Pure(small),
        BoundedRange(small),
        Zcdp(small**2 / 8),
        convert.to_renyi(BoundedRange(small)),
    ]
    for loss in forms:
        epsilon = convert.epsilon_at(loss, delta=d)
        assert epsilon > 0
        assert convert.delta_at(loss, epsilon=epsilon) <= d * (1 + Fraction(1, 10**4))
        failing = Approximate(loss, d / 2)
        assert convert.epsilon_at(failing, delta=d) >= epsilon
        assert convert.delta_at(failing, epsilon=epsilon) <= d * Fraction(3, 2) * (1 + Fraction(1, 10**4))
    assert convert.to_renyi(forms[3]) is forms[3]
    assert convert.to_zcdp(Zcdp(small)) == Zcdp(small)
    for loss in (Zcdp(small), convert.to_renyi(Pure(small))):
        with pytest.raises(ParameterError):
            convert.epsilon_at(loss, delta=Fraction(0))
    with pytest.raises(ParameterError):
        convert.epsilon_at(Approximate(Pure(small), d), delta=d / 2)
    with pytest.raises(ParameterError):
        convert.delta_at(Pure(small), epsilon=Fraction(-1))
    with pytest.raises(ParameterError):
        convert.epsilon_at(Pure(small), delta=Fraction(2))


HOSTILE = [Fraction(1, 10**9), Fraction(10**6)]


@pytest.mark.parametrize("epsilon", HOSTILE, ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 10**30), Fraction(1, 2)], ids=str)
def test_hostile_sizes_are_converted_soon_and_upward(epsilon: Fraction, delta: Fraction) -> None:
    pure = convert.epsilon_at(Pure(epsilon), delta=delta)
    assert 0 <= pure <= epsilon
    assert convert.delta_at(Pure(epsilon), epsilon=pure) <= delta + GRAIN
    by_range = convert.epsilon_at(BoundedRange(epsilon), delta=delta)
    assert by_range <= pure
    by_rho = convert.epsilon_at(Zcdp(epsilon), delta=delta)
    assert convert.delta_at(Zcdp(epsilon), epsilon=by_rho + GRAIN) <= delta * (1 + Fraction(1, 10**4)) + GRAIN
    group = convert.group(Approximate(Pure(epsilon), delta), units=10**9)
    assert isinstance(group, Approximate)
    assert delta <= group.delta <= 1


# ── groups ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.row(7)
@pytest.mark.parametrize("units", [1, 2, 5])
def test_group_privacy_of_laplace_is_exactly_k_times(units: int) -> None:
    """The log-ratio of Laplace noise between counts k apart is exactly kε, and the loss stated for a group is that."""
    mechanism = LaplaceMechanism.from_epsilon(sensitivity=1, epsilon="0.3")
    stated = convert.group(Pure(Fraction(3, 10)), units=units)
    assert stated == Pure(units * Fraction(3, 10))
    low, high = worst_ratio(mechanism.distribution(100, (90, 110)), mechanism.distribution(100 + units, (90, 110)))
    assert isinstance(low, Fraction)
    assert isinstance(high, Fraction)
    assert abs(low - units * Fraction(3, 10)) < GRAIN
    assert abs(high - units * Fraction(3, 10)) < GRAIN
    assert privacy_cost(LaplaceEvent(units, mechanism.scale)).pure == units * Fraction(3, 10)


def step(index: int, epsilon: Fraction, delta: Fraction, length: int) -> FiniteDistribution[int]:
    """The distribution of dataset i in a chain of (ε, δ)-close neighbors whose ends are as far apart as possible.

    The outcomes are 0, …, length; outcome j > 0 has mass δ·e^((i−j)ε) once i ≥ j, and outcome 0 what is left.
    """
    grow = [Fraction(Decimal(str(mpmath.nstr(mpmath.exp(number(n * epsilon)), 45)))) for n in range(length + 1)]
    mass = {j: delta * grow[index - j] for j in range(1, index + 1)}
    return exact_distribution({0: 1 - sum(mass.values(), Fraction(0)), **mass})


@pytest.mark.row(7)
def test_group_delta_is_the_geometric_sum() -> None:
    """δ_k = δ(e^(kε)−1)/(e^ε−1): held against the formula, and attained by a chain of (ε, δ)-close distributions."""
    epsilon, delta, units = Fraction(1, 2), Fraction(1, 100), 4
    found = convert.group(Approximate(Pure(epsilon), delta), units=units)
    assert isinstance(found, Approximate)
    e = number(epsilon)
    assert found.loss == Pure(units * epsilon)
    assert just_above(found.delta, number(delta) * (mpmath.exp(units * e) - 1) / (mpmath.exp(e) - 1))
    chain = [step(i, epsilon, delta, units) for i in range(units + 1)]
    for one, other in itertools.pairwise(chain):
        assert delta_at(one, other, epsilon)[1] <= delta + Fraction(1, 10**25)
    attained = delta_at(chain[0], chain[-1], units * epsilon)[0]
    assert abs(attained - found.delta) < Fraction(1, 10**25)
    assert found.delta > units * delta  # so k·δ would be wrong
    assert convert.group(Approximate(Pure(epsilon), Fraction(0)), units=3) == Approximate(
        Pure(3 * epsilon), Fraction(0)
    )


def test_group_privacy_of_concentrated_loss_is_quadratic() -> None:
    """Gaussian noise moved k times as far has k² times the ρ: D²/(2σ²)."""
    assert convert.group(Zcdp(Fraction(1, 8)), units=3) == Zcdp(Fraction(9, 8))
    assert convert.group(BoundedRange(Fraction(1, 8)), units=3) == BoundedRange(Fraction(3, 8))
    assert convert.group(Zcdp(Fraction(1, 8)), units=1) == Zcdp(Fraction(1, 8))
    with pytest.raises(MechanismError):
        convert.group(Renyi((Fraction(1),) * len(ORDERS)), units=2)
    with pytest.raises(ParameterError):
        convert.group(Pure(Fraction(1)), units=0)


@pytest.mark.row(6)
def test_leakage_is_inherent() -> None:
    """A thousand units at ε = 10⁻⁴: no answer tells any two datasets of that size apart better than .04996.

    Attained by randomized response; a Laplace count at that ε stays below it also for counts 0 and 1,000; and at
    ε = 1/n the bound is of order one, so there an answer can be useful, and must leak.
    """
    bound = convert.total_variation(Pure(Fraction(1, 10**4)), units=1000)
    assert just_above(bound, mpmath.tanh(mpmath.mpf(1000) / 10**4 / 2))
    assert round(float(bound), 5) == 0.04996
    e = Fraction(Decimal(str(mpmath.nstr(mpmath.exp(mpmath.mpf("0.1")), 40))))
    truth, lie = (
        exact_distribution({1: e / (1 + e), 0: 1 / (1 + e)}),
        exact_distribution({0: e / (1 + e), 1: 1 / (1 + e)}),
    )
    assert abs(total_variation(truth, lie)[1] - bound) < Fraction(1, 10**25)
    count = LaplaceMechanism.from_epsilon(sensitivity=1, epsilon="0.0001")
    window = (0, 1000)
    assert 0 < total_variation(count.distribution(0, window), count.distribution(1000, window))[1] <= bound
    assert convert.total_variation(Pure(Fraction(1, 1000)), units=1000) > Fraction(46, 100)
