"""Lower bounds from samples: valid at the stated confidence, and close to the true loss."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.accounting.cost import PrivacyCost, privacy_cost
from hubbub.accounting.gaussian import profile
from hubbub.audit.black_box import MIN_SAMPLES, audit, epsilon_at_least, ratio_at_least
from hubbub.audit.distinguisher import fit_distinguisher
from hubbub.core.binomial import tail
from hubbub.core.loss import ORDERS
from hubbub.errors import AuditError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.noise.source import system

Floats = NDArray[np.float64]
MANY = 10**18


def chances(trials: int, share: float) -> Floats:
    """The binomial distribution."""
    counts = np.arange(trials + 1)
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in counts.tolist()]
    distribution: Floats = np.exp(np.array(logs) + counts * math.log(share) + (trials - counts) * math.log1p(-share))
    return distribution


def responses(truth: int, epsilon: float, count: int, some: np.random.Generator) -> Floats:
    """Randomized response without a mechanism of ours."""
    lies = some.random(count) < 1 / (1 + math.exp(epsilon))
    return np.where(lies, 1.0 - truth, float(truth))


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.0])
def test_a_ratio_is_bounded_from_below_as_often_as_stated(ratio: float) -> None:
    """Exact: over all outcomes of K events, those whose bound is above the truth weigh at most the alarm."""
    share, alarm = 1 / (1 + math.exp(-ratio)), 0.01
    for events in (1, 5, 30, 200):
        wrong = [ratio_at_least(k, events - k, alarm) > ratio for k in range(events + 1)]
        missed = float(chances(events, share)[wrong].sum())
        assert missed <= alarm
    assert missed > alarm / 10, "and it is not idly cautious"


def test_false_alarms_are_as_rare_as_stated() -> None:
    """A loss that is attained exactly, 150 times at an alarm of 1/10. False alarm below 10⁻⁶ (binomial)."""
    some, promise = np.random.default_rng(), privacy_cost(RandomizedResponse(answers=2, epsilon=Fraction(1)).event)
    broken = 0
    for _ in range(150):
        one, other = responses(0, 1, 300, some), responses(1, 1, 300, some)
        broken += bool(audit(one, other, promise=promise, alarm=0.1, generator=some).excess)
    assert tail(41, 150, 0.1) < 1e-6
    assert broken <= 40


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_most_of_a_loss_that_is_used_is_seen_and_never_more(epsilon: Fraction) -> None:
    """False alarm of the upper end 10⁻⁹; the lower one is many standard errors away."""
    mechanism = Laplace.from_epsilon(sensitivity=4, epsilon=epsilon)
    one, other = (mechanism.sample(np.full(300_000, value), system()) for value in (0, 4))
    found = audit(one, other, promise=privacy_cost(mechanism.event), alarm=1e-9, generator=np.random.default_rng())
    assert not found.excess
    assert found.share > 0.8
    assert {bound.tester for bound in found.bounds} == {"best event", "histogram", "Rényi"}


def test_noise_of_two_thirds_of_the_scale_is_called_broken_by_every_tester() -> None:
    """The planted error; missed with probability below 10⁻⁶, the bounds being twenty standard errors apart."""
    stated, used = (Laplace(sensitivity=1, scale=Fraction(scale)) for scale in ("1", "2/3"))
    one, other = (used.sample(np.full(300_000, value), system()) for value in (0, 1))
    found = audit(one, other, promise=privacy_cost(stated.event), alarm=1e-9, generator=np.random.default_rng())
    assert {bound.tester for bound in found.excess} == {"best event", "histogram", "Rényi"}
    assert found.share == pytest.approx(1.5, abs=0.15)


def test_delta_and_epsilon_of_gaussian_noise_are_bounded_by_its_profile() -> None:
    """Continuous noise of variance 1 on values 1 apart; false alarm 10⁻⁹."""
    some = np.random.default_rng()
    one, other = some.normal(0, 1, 400_000), some.normal(1, 1, 400_000)
    exact = float(profile(epsilon=Fraction(1), sensitivity_squared=1, variance=Fraction(1)).high)
    kept = PrivacyCost(Fraction(1), (MANY,) * len(ORDERS), Fraction(exact))
    found = audit(one, other, promise=kept, alarm=1e-9, generator=some)
    assert not found.excess
    deltas = [bound.least for bound in found.bounds if bound.measure.startswith("δ")]
    epsilons = [bound.least for bound in found.bounds if bound.measure.startswith("ε")]
    assert exact * 0.85 < max(deltas) <= exact
    assert 0.9 < max(epsilons) <= 1
    broken = PrivacyCost(Fraction(1), (MANY,) * len(ORDERS), Fraction(exact) * Fraction(8, 10))
    assert audit(one, other, promise=broken, alarm=1e-9, generator=some).excess


@pytest.mark.parametrize("rho", [Fraction(1, 5), Fraction(1, 2)])
def test_renyi_divergence_of_gaussian_noise_is_bounded_by_its_line(rho: Fraction) -> None:
    """D_2 = 2ρ for values as far apart as stated; false alarm 10⁻⁹."""
    mechanism = Gaussian.from_rho(sensitivity_squared=9, rho=rho)
    one, other = (mechanism.sample(np.full(400_000, value), system()) for value in (0, 3))
    found = audit(one, other, promise=privacy_cost(mechanism.event), alarm=1e-9, generator=np.random.default_rng())
    assert not found.excess
    assert found.share > 0.7
    half = Gaussian.from_rho(sensitivity_squared=9, rho=rho / 2)
    assert audit(one, other, promise=privacy_cost(half.event), alarm=1e-9, generator=np.random.default_rng()).excess


def test_noise_that_two_cells_share_is_found_in_their_difference() -> None:
    """Each cell alone keeps the promise, and both together show the truth."""
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=1)
    noise = [mechanism.sample(np.zeros(5000, dtype=np.int64), system()) for _ in (0, 1)]
    one, other = (np.stack([each + side, each], axis=1) for side, each in enumerate(noise))
    found = audit(one, other, promise=privacy_cost(mechanism.event), alarm=1e-9, generator=np.random.default_rng())
    assert found.excess
    assert fit_distinguisher(one.astype(np.float64), other.astype(np.float64)).view != "columns"


def test_what_only_whole_rows_tell_is_found() -> None:
    """Two fair bits whose exclusive or is the secret, up to a coin."""
    some = np.random.default_rng()
    sides = []
    for truth in (0, 1):
        first = some.integers(0, 2, 20_000)
        sides.append(np.stack([first, (first + responses(truth, 3, 20_000, some)) % 2, 7 * first], axis=1))
    found = epsilon_at_least(*sides, alarm=1e-9, generator=some)
    assert 2 < found <= 3


def test_an_epsilon_at_a_delta_is_less_than_without_one() -> None:
    """A hundredth of the time everything is told: no ε holds, and with that δ the rest is nothing."""
    some = np.random.default_rng()
    one = np.where(some.random(50_000) < 0.01, 5.0, some.integers(0, 2, 50_000))
    other = some.integers(0, 2, 50_000).astype(np.float64)
    assert epsilon_at_least(one, other, alarm=1e-9, generator=some) > 1.5
    assert epsilon_at_least(one, other, alarm=1e-9, generator=some, delta=0.02) < 0.1


def test_values_that_are_not_finite_are_values_like_others() -> None:
    some = np.random.default_rng()
    one = np.where(some.random(5000) < 0.9, math.nan, math.inf)
    other = np.where(some.random(5000) < 0.1, math.nan, -math.inf)
    assert epsilon_at_least(one, other, alarm=1e-9, generator=some) > 1.5


@pytest.mark.parametrize(("one", "other"), [((MIN_SAMPLES - 1,), (MIN_SAMPLES - 1,)), ((100, 2), (100, 3))])
def test_too_few_samples_or_those_of_something_else_are_refused(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    with pytest.raises(AuditError, match="HB630"):
        epsilon_at_least(np.zeros(one), np.zeros(other), alarm=0.1, generator=np.random.default_rng())
