"""How often odds rise by more than e^ε: exact tails, the pairs that attain the bound, and the actual samplers."""

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import mpmath
import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.gaussian import discrete_profile, discrete_variance_for
from hubbub.core import binomial
from hubbub.core.events import Composed, GaussianEvent, LaplaceEvent, ThresholdEvent
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.odds import exceedance, limit, wider
from hubbub.core.reals import exp
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import delta_at
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import system
from hubbub.semantics.pointwise import calibrated_exceedance, exceedance_of, gaussian_exceedance

RandomDistribution = Callable[[Random, int], FiniteDistribution[int]]
TINY = Fraction(1, 10**25)
FALSE_ALARM = 1e-7
ADD = Relation.ADD_REMOVE


def rises(p: FiniteDistribution[Any], q: FiniteDistribution[Any], factor: Fraction) -> Fraction:
    """The probability under p that p is more than `factor` times q."""
    return sum(
        (mass for t, (mass, _) in p.mass.items() if mass > factor * q.mass.get(t, (Fraction(0),))[0]), Fraction()
    )


@pytest.mark.row(114)
def test_two_answers_attain_the_chance_that_odds_rise() -> None:
    """ε = 1, δ = .001, η = .1: the odds rise by more than e^1.1 with probability .0105, 10.5 δ; at e nothing holds."""
    epsilon, delta, slack = Fraction(1), Fraction(1, 1000), Fraction(1, 10)
    edge = 1 - Fraction(1, 10**9)
    heavy = delta / (1 - exp(-slack)[0] * edge)
    light = heavy * exp(-epsilon - slack)[0] * edge
    p, q = exact_distribution({"a": heavy, "b": 1 - heavy}), exact_distribution({"a": light, "b": 1 - light})
    assert delta_at(p, q, epsilon)[1] <= delta + TINY
    reached = rises(p, q, exp(epsilon + slack)[0])
    assert round(float(reached), 4) == 0.0105
    assert 0 <= exceedance(delta=delta, slack=slack) - reached < Fraction(1, 10**7)
    # a ratio just above e in answers of probability ⅔ has a δ of 2/30,000, so no multiple of δ bounds the chance there
    heavy, factor = Fraction(2, 3), exp(epsilon)[1] * Fraction(10_001, 10_000)
    p, q = (
        exact_distribution({"a": heavy, "b": 1 - heavy}),
        exact_distribution({"a": heavy / factor, "b": 1 - heavy / factor}),
    )
    assert delta_at(p, q, epsilon)[1] < Fraction(1, 10_000)
    assert rises(p, q, exp(epsilon)[1]) == heavy
    with pytest.raises(ParameterError, match="HB103"):
        exceedance(delta=delta, slack=Fraction(0))


@pytest.mark.row(114)
def test_the_chance_holds_on_random_pairs(random_distribution: RandomDistribution) -> None:
    """δ/(1 − e^−η) is never exceeded; δ itself is, on many of the same pairs."""
    random = Random(8)
    by_delta = 0
    for _ in range(150):
        p, q = random_distribution(random, 6), random_distribution(random, 6)
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
            delta = delta_at(p, q, epsilon)[1]
            for slack in (epsilon / 10, Fraction(1, 2)):
                reached = rises(p, q, exp(epsilon + slack)[0])
                assert reached <= exceedance(delta=delta, slack=slack) + TINY
                by_delta += reached > delta
    assert by_delta > 100


@pytest.mark.row(114)
@pytest.mark.parametrize(("epsilon", "delta", "multiple"), [("1", "1e-5", 16.1), ("0.1", "1e-12", 397.9)])
def test_gaussian_noise_moves_odds_more_often_than_delta(epsilon: str, delta: str, multiple: float) -> None:
    """1.6e-4 at (1, 1e-5), by numerical integration of the density where the ratio is above e^ε."""
    chance = calibrated_exceedance(epsilon=Fraction(epsilon), delta=Fraction(delta))
    assert chance is not None
    assert round(float(chance / Fraction(delta)), 1) == multiple
    with mpmath.workdps(40):  # σ from its own equation, not from the code under test
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        sigma = mpmath.findroot(
            lambda s: mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s) - d,
            (3.7 if epsilon == "1" else 62, 3.8 if epsilon == "1" else 66),
            solver="anderson",
            tol=1e-60,
        )
        start = e * sigma - 1 / (2 * sigma)
        beyond = mpmath.quad(mpmath.npdf, [start, start + 5, start + 30])
    assert float(chance) == pytest.approx(float(beyond), rel=1e-6)
    at, stated = wider(epsilon=Fraction(epsilon), delta=Fraction(delta))
    variance = Fraction(str(mpmath.nstr(sigma**2, 30)))
    # what sentences say about any mechanism
    assert gaussian_exceedance(epsilon=at, sensitivity_squared=1, variance=variance).high <= stated
    assert chance > 16 * Fraction(delta)


@pytest.mark.row(114)
def test_the_sampler_itself_raises_the_odds_as_often_as_stated() -> None:
    """40,000 draws of discrete Gaussian noise at (1, 1e-2): the observed share of large ratios; false alarms ≤ 1e-6.

    The planted statement, "except with probability δ", is refuted by the same draws.
    """
    epsilon, delta = Fraction(1), Fraction(1, 100)
    variance = discrete_variance_for(epsilon=epsilon, delta=delta, sensitivity=1)
    event = GaussianEvent(1, variance)
    _, stated = exceedance_of([event], epsilon=epsilon)
    noise = Gaussian(sensitivity_squared=1, variance=variance)
    draws = noise.sample(np.zeros(40_000, dtype=np.int64), system())
    # the true count is 0 and that of the neighbor −1, so ln of the ratio at z is (2z + 1)/2σ²
    seen = int((2 * draws + 1 > 2 * float(variance)).sum())
    low, high = binomial.interval(seen, len(draws), 1 - 2 * FALSE_ALARM)
    assert low <= float(stated) <= high
    assert low > float(delta)  # "but for a chance of δ" is false


@pytest.mark.row(114)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)])
def test_a_count_with_gaussian_noise_is_exact(epsilon: Fraction) -> None:
    variance = Fraction(9)
    weights = {z: mpmath.exp(-mpmath.mpf(z * z) / 18) for z in range(-150, 151)}
    total = sum(weights.values())
    beyond = sum(w for z, w in weights.items() if Fraction(2 * z + 1, 18) > epsilon) / total
    at, chance = exceedance_of([Composed(((GaussianEvent(1, variance), 1),))], epsilon=epsilon)
    assert at == epsilon
    assert float(chance) == pytest.approx(float(beyond), rel=1e-12)
    assert chance > discrete_profile(epsilon=epsilon, sensitivity=1, variance=variance).high


@pytest.mark.row(114)
def test_several_gaussian_counts_stay_below_the_bound() -> None:
    """Three counts, all shifted by one, enumerated: the exact chance is below the bound, and not far below."""
    variance, epsilon = Fraction(25), Fraction(2)
    span = range(-40, 41)
    weights = np.array([math.exp(-z * z / 50) for z in span])
    one = weights / weights.sum()
    three = np.convolve(np.convolve(one, one), one)  # of the sum of the three noises
    sums = np.arange(-120, 121)
    beyond = three[(2 * sums + 3) / 50 > float(epsilon)].sum()
    _, chance = exceedance_of([GaussianEvent(1, variance)] * 3, epsilon=epsilon)
    _, repeated = exceedance_of([Composed(((GaussianEvent(1, variance), 3),))], epsilon=epsilon)
    assert chance == repeated
    assert beyond <= float(chance) < 1000 * beyond
    assert float(chance) < math.exp(-((2 - 0.06) ** 2) / 0.24) * 10  # e^(−(ε−ρ)²/4ρ), on a grid of orders


@pytest.mark.row(114)
def test_private_groups_exceed_the_factor_with_their_own_delta() -> None:
    """Laplace noise and a threshold, two keys enumerated: a person with an own key or a shared one, both ways."""
    selection = PartitionSelection.from_epsilon(
        epsilon=Fraction(1), delta=Fraction(1, 100), contribution=1, keys=1, relation=ADD
    )
    event = selection.event
    assert isinstance(event, ThresholdEvent)
    at, chance = exceedance_of([event], epsilon=Fraction(1))
    assert chance == privacy_cost(event).delta > 0
    assert Fraction(1) < at < Fraction(102, 100)
    most = Fraction(0)
    for one, other in (((1, 5), (0, 5)), ((0, 6), (0, 5)), ((2, 5), (1, 5))):
        with_person, without = selection.distribution(one, ceiling=40), selection.distribution(other, ceiling=40)
        for p, q in ((with_person, without), (without, with_person)):
            reached = rises(p, q, exp(at)[1])
            assert reached <= chance
            most = max(most, reached)
    assert chance - most < Fraction(1, 10**9)  # attained: the person's own key is shown


def test_a_delta_of_another_kind_is_taken_as_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event whose δ is not that of a private key is bounded by the theorem for (ε, δ), not by its own δ."""
    import hubbub.semantics.pointwise as module

    selection = PartitionSelection.from_epsilon(
        epsilon=Fraction(1), delta=Fraction(1, 10**6), contribution=1, keys=1, relation=ADD
    )
    monkeypatch.setattr(module, "ThresholdEvent", LaplaceEvent)  # as if it were unknown
    at, chance = exceedance_of([selection.event], epsilon=Fraction(1))
    assert (at, chance) == wider(epsilon=Fraction(1), delta=privacy_cost(selection.event).delta)
    assert chance > 10 * privacy_cost(selection.event).delta


def test_pure_charges_never_exceed_their_sum() -> None:
    events = [LaplaceEvent(1, Fraction(2)), LaplaceEvent(1, Fraction(4))]
    assert exceedance_of(events, epsilon=Fraction(3, 4)) == (Fraction(3, 4), Fraction(0))
    assert exceedance_of(events, epsilon=Fraction(1, 2))[1] > 0
    assert exceedance_of([], epsilon=Fraction(1, 2)) == (Fraction(1, 2), Fraction(0))
    assert limit(epsilon=Fraction(1), delta=Fraction(0))[1] == 0
