"""Trade-off curves: of pure, approximate and Gaussian promises, of finite pairs, and of a whole list of charges."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from random import Random
from statistics import NormalDist

import mpmath
import pytest

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.core.events import Event, GaussianEvent, LaplaceEvent, ThresholdEvent
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.reals import exp, log
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import delta_at, total_variation
from hubbub.semantics import tradeoff
from hubbub.semantics.tradeoff import TradeOff, best_power

Response = Callable[[int, Fraction], FiniteDistribution[int]]
RandomDistribution = Callable[[Random, int], FiniteDistribution[int]]
LEVELS = tuple(Fraction(k, 20) for k in range(21))
TINY = Fraction(1, 10**15)


@pytest.mark.row(22)
def test_the_best_test_on_randomized_response_meets_the_bound(response: Response) -> None:
    """At every level the power is that of f_{ε,0}; up to 1/(1 + e^ε) it is exactly e^ε·α."""
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        growth = exp(epsilon)[1]
        yes, no = response(1, growth), response(0, growth)
        promise = tradeoff.approximate(epsilon=epsilon, delta=Fraction(0))
        for level in LEVELS:
            assert abs(best_power(yes, no, level) - promise.power(level)) < TINY
        small = Fraction(1, 1000)
        assert best_power(yes, no, small) == growth * small


@pytest.mark.row(22)
def test_the_trade_off_function_is_the_formula() -> None:
    """f_{ε,δ}(α) = max(0, 1 − δ − e^ε α, e^{−ε}(1 − δ − α)), attained by response that fails openly with δ."""
    epsilon, slip = Fraction(1), Fraction(1, 50)
    promise = tradeoff.approximate(epsilon=epsilon, delta=slip)
    growth = exp(epsilon)[1]
    masses = [slip, (1 - slip) * growth / (1 + growth), (1 - slip) / (1 + growth), Fraction(0)]
    p, q = exact_distribution(dict(enumerate(masses))), exact_distribution(dict(enumerate(reversed(masses))))
    for level in LEVELS:
        formula = max(0.0, 1 - 0.02 - float(mpmath.e) * float(level), (1 - 0.02 - float(level)) / float(mpmath.e))
        assert float(promise.missed(level)) == pytest.approx(formula, abs=1e-12)
        assert abs(best_power(p, q, level) - promise.power(level)) < TINY


@pytest.mark.row(22)
def test_the_profile_of_a_finite_pair_gives_its_best_test(random_distribution: RandomDistribution) -> None:
    """With the pairs (ε, δ(ε)) at all ratios of both distributions, the bound is the worse of the two best tests."""
    random = Random(21)
    for _ in range(15):
        p, q = random_distribution(random, 4), random_distribution(random, 4)
        ratios = [abs(log(p.mass[t][0] / q.mass[t][0])[1]) for t in p.mass]
        promise = TradeOff(tuple((e, delta_at(p, q, e)[1]) for e in (*ratios, Fraction(0))))
        for level in LEVELS:
            best = max(best_power(p, q, level), best_power(q, p, level))
            assert promise.power(level) >= best - TINY
        assert abs(2 * promise.guess() - 1 - total_variation(p, q)[1]) < TINY
        # nobody's test is below chance
        assert best_power(p, q, Fraction(1, 4)) >= Fraction(1, 4)


@pytest.mark.row(22)
@pytest.mark.parametrize("sigma", [1, 2, 4])
def test_gaussian_noise_has_the_gaussian_trade_off(sigma: int) -> None:
    """Φ(Φ⁻¹(1 − α) − μ) to three digits; and never more than that is claimed to be missed."""
    found = tradeoff.gaussian_noise(sensitivity_squared=1, variance=Fraction(sigma * sigma))
    normal = NormalDist()
    for level in LEVELS[1:-1]:
        exact = normal.cdf(normal.inv_cdf(1 - float(level)) - 1 / sigma)
        assert -1e-12 <= exact - float(found.missed(level)) < 1e-3
    assert float(found.guess()) == pytest.approx(normal.cdf(0.5 / sigma), abs=1e-9)


@pytest.mark.row(22)
def test_a_whole_list_of_charges_has_a_trade_off() -> None:
    """Forty answers of ε = .1: far from 4 in all; by Rényi curves, and closer by loss distributions."""
    events: list[Event] = [LaplaceEvent(1, Fraction(10))] * 40
    total = sum((privacy_cost(event) for event in events), ZERO)
    curves, pld = tradeoff.composed(total), tradeoff.tight(events)
    plain = tradeoff.approximate(epsilon=Fraction(4), delta=Fraction(0))
    assert curves.certain
    assert not pld.certain
    for level in (Fraction(1, 100), Fraction(1, 20), Fraction(1, 2)):
        truth = _laplace_power(level)
        assert truth <= float(pld.power(level)) + 1e-6 <= float(curves.power(level)) + 2e-6
        assert curves.power(level) <= plain.power(level)
        assert float(curves.power(level)) <= 1.6 * truth  # one ε would not do: at 1 % the plain sum says 40 times
    assert curves.guess() < plain.guess()
    assert float(pld.guess()) == pytest.approx(_guess(), abs=1e-3)


def test_straight_lines_between_the_points_of_a_curve_are_the_bound() -> None:
    """Halfway between two points the bound is halfway, exactly: no bend is left out, so nothing is drawn too low."""
    random = Random(22)
    plain = tradeoff.approximate(epsilon=Fraction(1), delta=Fraction(1, 50))
    promises = [plain, tradeoff.gaussian_noise(sensitivity_squared=1, variance=Fraction(4))]
    promises += [
        tradeoff.composed(privacy_cost(event))
        for event in (LaplaceEvent(1, Fraction(2)), GaussianEvent(1, Fraction(9)))
    ]
    for _ in range(20):
        pairs = [(Fraction(random.randrange(200), 50), Fraction(random.randrange(90), 100)) for _ in range(6)]
        promises.append(TradeOff(tuple(pairs)))
    promises.append(tradeoff.approximate(epsilon=Fraction(50), delta=Fraction(0)))
    for promise in promises:
        points = promise.curve()
        assert [points[0][0], points[-1][0]] == [0, 1]
        assert {level for level, _ in points} >= set(tradeoff.LEVELS)
        for (one, low), (other, high) in pairwise(points):
            assert promise.power((one + other) / 2) == (low + high) / 2
    bend = 1 / (1 + exp(Fraction(1))[1])
    assert min(abs(level - bend * (1 - Fraction(1, 50))) for level, _ in plain.curve()) < TINY


def _distribution(sign: int) -> dict[int, float]:
    """The loss of forty answers in units of ε = .1: a walk of forty steps, each ±1 with odds e^.1."""
    up = float(1 / (1 + mpmath.exp(-sign * mpmath.mpf("0.1"))))
    distribution = {0: 1.0}
    for _ in range(40):
        step: dict[int, float] = {}
        for place, chance in distribution.items():
            step[place + 1] = step.get(place + 1, 0.0) + chance * up
            step[place - 1] = step.get(place - 1, 0.0) + chance * (1 - up)
        distribution = step
    return distribution


def _laplace_power(level: Fraction) -> float:
    """The best test on forty noisy counts moved by one: each answer tells one bit, as in randomized response."""
    guilty, innocent = _distribution(1), _distribution(-1)
    left, found = float(level), 0.0
    for place in sorted(guilty, reverse=True):
        share = min(1.0, left / innocent[place])
        found, left = found + share * guilty[place], left - share * innocent[place]
    return found


def _guess() -> float:
    guilty, innocent = _distribution(1), _distribution(-1)
    return sum(max(guilty[place], innocent[place]) for place in guilty) / 2


def test_failures_count_in_the_trade_off_of_a_list() -> None:
    event = ThresholdEvent(LaplaceEvent(1, Fraction(2)), keys=1, above=8)
    own = privacy_cost(event).delta
    found = tradeoff.composed(privacy_cost(event))
    assert found.points[0] == (Fraction(1, 2), own)
    assert found.power(Fraction(0)) >= own
    noisy = tradeoff.composed(privacy_cost(GaussianEvent(1, Fraction(100))))
    assert all(epsilon <= 16 for epsilon, _ in noisy.points)
    assert noisy.guess() < Fraction(6, 10)


def test_what_is_no_level_or_no_promise_is_refused() -> None:
    with pytest.raises(ParameterError, match="HB103"):
        tradeoff.approximate(epsilon=Fraction(1), delta=Fraction(0)).power(Fraction(2))
    with pytest.raises(ParameterError, match="HB103"):
        TradeOff(())


@pytest.mark.row(114)
def test_a_profile_bounds_how_often_odds_rise() -> None:
    """Gaussian noise of σ = 3: the bound from its profile is above Φ(1/2σ − εσ) and at most three times it."""
    curve = tradeoff.gaussian_noise(sensitivity_squared=1, variance=Fraction(9))
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3, 2)):
        exact = NormalDist().cdf(1 / 6 - 3 * float(epsilon))
        assert exact <= float(curve.exceedance(epsilon)) <= 3 * exact
    assert curve.exceedance(Fraction(0)) == 1  # no pair lies below
