"""Composition: each theorem held against the exact product of distributions, and against dp-accounting."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting import compose, convert
from hubbub.accounting.cost import RENYI_UNIT, ZERO, privacy_cost
from hubbub.core.events import LaplaceEvent
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.loss import ORDERS, Approximate, BoundedRange, Loss, Pure, Renyi, Zcdp
from hubbub.core.numbers import EPSILON_MIN
from hubbub.core.numbers import epsilon as typed_epsilon
from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.enumeration import LossBounds, delta_at, worst_ratio
from hubbub.mechanisms.laplace import Laplace as LaplaceMechanism

TENTH, MILLIONTH = Fraction(1, 10), Fraction(1, 10**6)
GRAIN = Fraction(1, 10**25)


def number(x: Fraction) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator


def is_exactly(bounds: LossBounds, value: Fraction) -> bool:
    """Both ends of an enclosure are at the value."""
    return all(abs(Fraction(end) - value) < GRAIN for end in bounds)


def response_power(
    odds: Fraction, count: int, own: Fraction = Fraction(0)
) -> tuple[FiniteDistribution[int], FiniteDistribution[int]]:
    """Randomized responses of rational odds, as distributions of the number of true answers; −1 reveals everything."""
    keep = (1 - own) ** count
    told = {n: math.comb(count, n) * odds**n * keep / (1 + odds) ** count for n in range(count + 1)}
    mirrored = {n: told[count - n] for n in told}
    return exact_distribution({**told, -1: 1 - keep}), exact_distribution({**mirrored, -2: 1 - keep})


def log_of(odds: Fraction) -> Fraction:
    """ln of rational odds to 40 digits, rounded up."""
    return Fraction(str(mpmath.nstr(mpmath.log(number(odds)), 45))) + Fraction(1, 10**40)


# ── equal losses ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.row(36)
def test_hundred_small_losses_by_four_theorems() -> None:
    """100 answers of ε = 0.1 at δ = 10⁻⁶: basic 10, advanced 6.31, optimal 4.80 on the theorem's own grid.

    Kairouz, Oh and Viswanath state the loss at ε = (k−2i)ε₀ only, where 4.80 is the first that keeps δ; between these
    the exact answer is 4.7746. The Rényi price is 5.08 (5.00 for wide noise), and privacy loss distributions, by
    dp-accounting, give 4.7746 for counts and 4.69 for wide noise.
    """
    found = compose.ways(Pure(TENTH), count=100, delta=MILLIONTH)
    assert found["basic"] == 10
    assert round(float(found["advanced"]), 2) == 6.31
    assert round(float(found["optimal"]), 4) == 4.7746
    assert round(float(found["renyi"]), 2) == 5.08
    on_grid = [n * TENTH for n in range(0, 101, 2)]
    least = min(e for e in on_grid if compose.optimal_delta(Pure(TENTH), count=100, epsilon=e) <= MILLIONTH)
    assert least == Fraction("4.8")
    counts = privacy_loss_distribution.from_discrete_laplace_mechanism(0.1, use_connect_dots=True).self_compose(100)
    assert abs(counts.get_epsilon_for_delta(1e-6) - float(found["optimal"])) < 1e-5
    wide = privacy_loss_distribution.from_laplace_mechanism(10, use_connect_dots=True).self_compose(100)
    assert round(wide.get_epsilon_for_delta(1e-6), 1) == 4.7
    curve = privacy_cost(LaplaceEvent(1000, Fraction(10**4))).times(100).renyi
    total = Renyi(tuple(value * RENYI_UNIT for value in curve))
    assert round(float(convert.epsilon_at(total, delta=MILLIONTH)), 2) == 5.0


@pytest.mark.row(36)
def test_a_pair_of_queries_needs_twice_the_noise() -> None:
    """Two counts under one ε: Lap(2/ε) each, of standard deviation 2√2/ε."""
    epsilon = Fraction(1, 100)
    first, second = compose.shares(epsilon, weights=(1, 1))
    assert compose.basic([Pure(first), Pure(second)]) == Pure(epsilon)
    scale = 1 / first
    assert scale == 2 / epsilon
    q = math.exp(-1 / scale)
    deviation = math.sqrt(2 * q) / (1 - q)
    assert abs(deviation - 2 * math.sqrt(2) / epsilon) < 0.001


@pytest.mark.parametrize("count", [1, 2, 3, 8, 21])
@pytest.mark.parametrize("odds", [Fraction(11, 10), Fraction(3, 2), Fraction(5)], ids=str)
def test_optimal_composition_equals_brute_force(odds: Fraction, count: int) -> None:
    """k-fold randomized response, written out: the formula gives its exact δ at any ε, and its exact ε at that δ."""
    loss = Pure(log_of(odds))
    p, q = response_power(odds, count)
    for share in (Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(9, 10)):
        epsilon = share * count * loss.epsilon
        true = delta_at(p, q, epsilon)
        found = compose.optimal_delta(loss, count=count, epsilon=epsilon)
        assert true[0] <= found + GRAIN
        assert found <= true[1] + GRAIN
        if found:
            back = compose.optimal(loss, count=count, delta=found)
            assert epsilon - GRAIN * 10**6 <= back <= epsilon + GRAIN * 10**6
            assert delta_at(p, q, back)[0] <= found


@pytest.mark.parametrize("count", [1, 3, 10])
def test_optimal_composition_with_failures_equals_brute_force(count: int) -> None:
    odds, own = Fraction(3, 2), Fraction(1, 1000)
    loss = Approximate(Pure(log_of(odds)), own)
    p, q = response_power(odds, count, own)
    delta = Fraction(1, 20)
    found = compose.optimal(loss, count=count, delta=delta)
    assert delta_at(p, q, found)[0] <= delta
    if found:
        assert delta_at(p, q, found - Fraction(1, 10**6))[0] > delta
    with pytest.raises(ParameterError):
        compose.optimal(loss, count=1000, delta=Fraction(1, 2))


@given(
    st.fractions(Fraction(1, 1000), 3, max_denominator=1000),
    st.integers(1, 300),
    st.sampled_from([Fraction(1, 10), Fraction(1, 10**5), Fraction(1, 10**30)]),
)
@settings(max_examples=40, deadline=None)
def test_optimal_composition_is_never_above_advanced_or_basic(epsilon: Fraction, count: int, delta: Fraction) -> None:
    """Optimal means optimal: every other valid bound is at least as large, the Rényi one included."""
    found = compose.ways(Pure(epsilon), count=count, delta=delta)
    for name in ("basic", "advanced", "renyi"):
        assert found["optimal"] <= found[name] + GRAIN, name
    assert compose.optimal_delta(Pure(epsilon), count=count, epsilon=found["optimal"]) <= delta + GRAIN


@pytest.mark.parametrize(("epsilon", "count", "delta"), [(0.1, 30, 1e-4), (0.5, 50, 1e-6), (0.01, 400, 1e-9)])
def test_optimal_and_renyi_composition_agree_with_dp_accounting(epsilon: float, count: int, delta: float) -> None:
    exact = Fraction(str(epsilon))
    oracle = privacy_loss_distribution.from_discrete_laplace_mechanism(
        epsilon, use_connect_dots=True, value_discretization_interval=1e-5
    )
    expected = oracle.self_compose(count).get_epsilon_for_delta(delta)
    found = compose.ways(Pure(exact), count=count, delta=Fraction(str(delta)))
    assert abs(float(found["optimal"]) - expected) < 2e-3 * expected
    assert expected * 0.998 < float(found["renyi"]) < 1.12 * expected


def test_hostile_counts_and_losses_are_composed_soon_or_refused() -> None:
    with pytest.raises(ParameterError, match="Rényi"):
        compose.optimal(Pure(TENTH), count=10**9, delta=MILLIONTH)
    assert compose.optimal(Pure(Fraction(10**6)), count=10**5, delta=Fraction(1, 10**30)) <= 10**11
    assert compose.optimal(Pure(Fraction(1, 10**9)), count=1000, delta=Fraction(1, 10**30)) <= MILLIONTH
    vast = compose.advanced(Pure(Fraction(10**6)), count=10**9, delta=MILLIONTH)
    assert vast == Approximate(Pure(Fraction(10**15)), MILLIONTH)
    assert compose.optimal(Pure(TENTH), count=5, delta=Fraction(0)) == Fraction(1, 2)
    for bad in (0, -1):
        with pytest.raises(ParameterError):
            compose.optimal(Pure(TENTH), count=bad, delta=MILLIONTH)
    with pytest.raises(ParameterError):
        compose.optimal(Approximate(Zcdp(TENTH), MILLIONTH), count=2, delta=MILLIONTH)
    with pytest.raises(ParameterError):
        compose.advanced(Pure(TENTH), count=2, delta=Fraction(0))
    with pytest.raises(ParameterError):
        compose.optimal_delta(Pure(TENTH), count=2, epsilon=Fraction(-1))


# ── unequal losses ────────────────────────────────────────────────────────────────────────────────────────────────────


def product(distributions: list[FiniteDistribution[int]]) -> FiniteDistribution[tuple[int, ...]]:
    joint = {}
    for outcomes in itertools.product(*(distribution.mass.items() for distribution in distributions)):
        low = high = Fraction(1)
        for _, (a, b) in outcomes:
            low, high = low * a, high * b
        joint[tuple(outcome for outcome, _ in outcomes)] = (low, high)
    return FiniteDistribution(joint)


def test_basic_composition_covers_the_exact_product() -> None:
    losses = [Fraction("0.1"), Fraction("0.35"), Fraction("0.05")]
    counts = [LaplaceMechanism.from_epsilon(sensitivity=1, epsilon=e) for e in losses]
    window = (-2, 3)
    p, q = product([c.distribution(0, window) for c in counts]), product([c.distribution(1, window) for c in counts])
    total = compose.basic([Pure(e) for e in losses])
    assert total == Pure(Fraction(1, 2))
    assert is_exactly(worst_ratio(p, q), Fraction(1, 2))


def test_adaptive_second_query_stays_within_the_sum() -> None:
    """The second mechanism is chosen by the first answer: the joint distribution still keeps ε₁ + the larger ε₂."""
    first = LaplaceMechanism.from_epsilon(sensitivity=1, epsilon="0.2")
    after = {
        sign: LaplaceMechanism.from_epsilon(sensitivity=1, epsilon=e) for sign, e in ((False, "0.3"), (True, "0.1"))
    }
    window = (-3, 4)

    def distribution(value: int) -> FiniteDistribution[tuple[int, int]]:
        joint = {}
        for a, (low, high) in first.distribution(value, window).mass.items():
            for b, (low2, high2) in after[a > 0].distribution(value, window).mass.items():
                joint[a, b] = (low * low2, high * high2)
        return FiniteDistribution(joint)

    assert is_exactly(worst_ratio(distribution(0), distribution(1)), Fraction(1, 2))


def test_forms_are_added_in_the_strongest_form_that_all_have() -> None:
    pure, bounded, rho = Pure(TENTH), BoundedRange(TENTH), Zcdp(TENTH)
    curve = convert.to_renyi(pure)
    assert compose.basic([]) == Pure(Fraction(0))
    assert compose.basic([pure, bounded]) == Pure(2 * TENTH)
    assert compose.basic([pure, bounded, rho]) == Zcdp(TENTH**2 / 2 + TENTH**2 / 8 + TENTH)
    assert compose.basic([curve, curve]) == Renyi(tuple(2 * value for value in curve.curve))
    assert compose.basic([rho, curve]) == compose.renyi([rho, curve])
    assert compose.basic([Approximate(pure, MILLIONTH), pure]) == Approximate(Pure(2 * TENTH), MILLIONTH)
    assert compose.basic([Approximate(rho, MILLIONTH)] * 3) == Approximate(Zcdp(3 * TENTH), 3 * MILLIONTH)
    failing = compose.basic([Approximate(pure, Fraction(1, 2))] * 3)
    assert failing == Approximate(Pure(3 * TENTH), Fraction(1))


@pytest.mark.row(34)
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 5), (Fraction(1, 3), Fraction(1, 6), 1)], ids=str)
def test_an_uneven_split_equals_composition(weights: tuple[Fraction | int, ...]) -> None:
    """A vector of d counts: Lap(dD/ε) on each is ε/d for each, d times; and an uneven split costs its sum, exactly.

    The same number three ways: as one vector event, as the sum of the single ones, and as the worst exact log-ratio
    when one person moves all coordinates.
    """
    epsilon = Fraction(1, 2)
    parts = compose.shares(epsilon, weights=weights)
    assert sum(parts) == epsilon
    assert compose.basic([Pure(part) for part in parts]) == Pure(epsilon)
    scales = [1 / part for part in parts]
    singles = sum((privacy_cost(LaplaceEvent(1, scale)) for scale in scales), ZERO)
    assert singles.pure == epsilon
    if len(set(weights)) == 1:
        assert set(scales) == {len(weights) / epsilon}
        vector = privacy_cost(LaplaceEvent(len(weights), scales[0]))
        assert vector.pure == epsilon
        # all coordinates moving by one is one way to move by d in all: composition is no dearer than the vector
        assert all(single <= whole + 3 for single, whole in zip(singles.renyi, vector.renyi, strict=True))
    distributions = [
        [LaplaceMechanism(sensitivity=1, scale=s).distribution(v, (-1, 2)) for s in scales] for v in (0, 1)
    ]
    assert is_exactly(worst_ratio(product(distributions[0]), product(distributions[1])), epsilon)


@pytest.mark.row(38)
def test_disjoint_analyses_cost_their_maximum_or_twice_it() -> None:
    """Counts of two disjoint groups: the worst exact log-ratio over all neighbors is max ε, or 2·max ε if replaced."""
    each = [Pure(Fraction("0.3")), Pure(Fraction("0.2"))]
    once = compose.parallel(each, relation=Relation.ADD_REMOVE)
    twice = compose.parallel(each, relation=Relation.REPLACE)
    assert once == Pure(Fraction("0.3"))
    assert twice == Pure(Fraction("0.6"))
    equal = [Pure(Fraction("0.3"))] * 2
    counts = [LaplaceMechanism.from_epsilon(sensitivity=1, epsilon="0.3") for _ in equal]

    def distribution(*values: int) -> FiniteDistribution[tuple[int, ...]]:
        return product([c.distribution(v, (-3, 6)) for c, v in zip(counts, values, strict=True)])

    for added in (distribution(2, 2), distribution(1, 1)):
        assert is_exactly(worst_ratio(distribution(1, 2), added), Fraction("0.3"))
    assert is_exactly(worst_ratio(distribution(1, 2), distribution(2, 1)), Fraction("0.6"))


def test_disjoint_analyses_of_other_forms() -> None:
    one, two = Relation.ADD_REMOVE, Relation.REPLACE
    assert compose.parallel([], relation=two) == Pure(Fraction(0))
    assert compose.parallel([Zcdp(TENTH), Pure(TENTH)], relation=one) == Zcdp(TENTH)
    assert compose.parallel([Zcdp(TENTH)] * 3, relation=two) == Zcdp(4 * TENTH)  # one part, changed twice
    curves: list[Loss] = [convert.to_renyi(Pure(TENTH)), convert.to_renyi(Zcdp(TENTH))]
    joined = compose.parallel(curves, relation=one)
    assert isinstance(joined, Renyi)
    assert all(value >= both.curve[i] for i, value in enumerate(joined.curve) for both in curves)  # type: ignore[union-attr]
    failing = compose.parallel([Approximate(Pure(TENTH), MILLIONTH), Pure(2 * TENTH)], relation=one)
    assert failing == Approximate(Pure(2 * TENTH), MILLIONTH)
    with pytest.raises(MechanismError):
        compose.parallel(curves, relation=two)


# ── splitting a budget ────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.decimals("0.000001", "100", places=6).map(Fraction),
    st.lists(st.integers(1, 1000), min_size=1, max_size=20),
)
@settings(max_examples=100, deadline=None)
def test_shares_never_exceed_the_whole_and_can_be_spent(epsilon: Fraction, weights: list[int]) -> None:
    parts = compose.shares(epsilon, weights=weights)
    assert sum(parts) <= epsilon
    assert epsilon - sum(parts) < len(parts) * Fraction(1, 10**30)
    spent = ZERO
    for part in parts:
        if part >= EPSILON_MIN:
            assert typed_epsilon(part) == part
            spent += privacy_cost(LaplaceEvent(1, 1 / part))
    assert spent.pure is not None
    assert spent.pure <= epsilon
    with pytest.raises(ParameterError):
        compose.shares(epsilon, weights=[])
    with pytest.raises(ParameterError):
        compose.shares(epsilon, weights=[1, 0])


@pytest.mark.row(57)
@pytest.mark.parametrize("text", ["1", "0.3", "1/7", "0.000001"])
def test_halving_never_spends_the_whole(text: str) -> None:
    """ε/2, ε/4, …: after any number of rounds the spend is below ε, in the ledger's own prices.

    A round of k-means in d dimensions has sensitivity d+1 and scale (d+1)/(ε/2ⁱ). The printed (d+1)(ε/2ⁱ) turns the
    fraction over: at ε = 1 its first round alone costs 2, and each costs twice the one before.
    """
    epsilon, dimensions = Fraction(text), 2
    spent, rounds = ZERO, 0
    for share in compose.halving(epsilon):
        rounds += 1
        assert typed_epsilon(share) == share
        spent += privacy_cost(LaplaceEvent(dimensions + 1, (dimensions + 1) / share))
        assert spent.pure is not None
        assert spent.pure < epsilon
        assert epsilon - spent.pure <= epsilon / 2**rounds + Fraction(1, 10**29)
    assert rounds == math.floor(math.log2(epsilon / EPSILON_MIN))
    printed = [(dimensions + 1) * share for share in itertools.islice(compose.halving(epsilon), 3)]
    costs = [privacy_cost(LaplaceEvent(dimensions + 1, scale)).pure for scale in printed]
    assert all(cost is not None and cost > epsilon for cost in costs)
    assert costs == sorted(costs, key=lambda cost: cost or 0)


def test_orders_are_halves() -> None:
    """The curves' powers rely on it."""
    assert all((2 * order).denominator == 1 for order in ORDERS)
