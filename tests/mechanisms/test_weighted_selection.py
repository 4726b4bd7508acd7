"""Selection by weights: how often a key of one unit alone slips out, and how far one unit moves the weights."""

from fractions import Fraction
from itertools import combinations
from math import isqrt

import numpy as np
import pytest
from scipy.stats import norm

from hubbub.accounting.cost import privacy_cost
from hubbub.core.distributions import DiscreteGaussian, weighted_slip
from hubbub.core.events import WeightedThresholdEvent, from_facts, to_facts
from hubbub.core.loss import Approximate, Zcdp
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import image
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.weighted_selection import WeightedSelection
from hubbub.noise.source import system

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE


def made(keys: int = 20, weight: int = 12, delta: str = "1e-6", rho: str = "0.5") -> WeightedSelection:
    return WeightedSelection.from_rho(keys=keys, weight=weight, relation=ADD_REMOVE, rho=rho, delta=delta)


def slips(mechanism: WeightedSelection, own: int) -> float:
    """Pr[one of `own` keys of a unit alone is shown], by another library's normal distribution, continuous."""
    least = mechanism.threshold - mechanism.weight / own**0.5 - 0.5
    return float(1 - (1 - norm.sf(least / float(mechanism.noise.variance) ** 0.5)) ** own)


@pytest.mark.parametrize("rho", ["0.001", "0.02", "0.5"])
@pytest.mark.parametrize("keys", [1, 2, 3, 7, 40, 256])
def test_delta_covers_every_number_of_own_keys(keys: int, rho: str) -> None:
    """The stated δ is at least the exact chance for each number of keys, and at most an eighth above the worst."""
    mechanism = WeightedSelection.from_rho(keys=keys, weight=5040, relation=ADD_REMOVE, rho=rho, delta="1e-4")
    chances = [slips(mechanism, own) for own in range(1, keys + 1)]
    assert max(chances) <= float(mechanism.delta) * (1 + 1e-3)
    assert max(chances) >= float(mechanism.delta) * 7 / 8


def test_a_threshold_for_units_with_one_key_fails_for_many() -> None:
    """Planted: only units with one key are thought of; 40 keys of one unit then slip out more often than stated."""
    mechanism = WeightedSelection.from_rho(keys=40, weight=5040, relation=ADD_REMOVE, rho="0.02", delta="1e-4")
    alone = weighted_slip(mechanism.noise.noise, mechanism.threshold, 5040, 1)
    assert slips(mechanism, 40) > 2 * float(alone)


def test_slips_of_a_few_keys_are_enumerated() -> None:
    """Three keys of ⌊12/√3⌋ = 6 each: the chance that any is shown, from the whole distribution of the answer."""
    mechanism = WeightedSelection.from_rho(keys=3, weight=12, relation=ADD_REMOVE, rho=2, delta="0.01")
    worst = Fraction(0)
    for own, weight in ((1, 12), (2, 8), (3, 6)):
        shown = image(mechanism.distribution((weight,) * own, mechanism.threshold), lambda keys: any(keys))
        worst = max(worst, shown.mass[True][0])
    assert worst <= mechanism.delta <= worst + Fraction(1, 10**25)
    assert mechanism.delta <= Fraction(1, 100)


@pytest.mark.parametrize("relation", list(Relation))
def test_weights_of_neighbors_differ_by_no_more_than_stated(relation: Relation) -> None:
    """Every pair of sets of at most 4 out of 6 keys: the squared distance is within the stated, and attains it."""
    weight, keys = 6, 4
    needed = WeightedSelection.from_rho(keys=keys, weight=weight, relation=relation, rho=1, delta="0.01")
    vectors = [np.zeros(6, dtype=np.int64)] if relation is ADD_REMOVE else []
    units = []
    for count in range(1, keys + 1):
        for own in combinations(range(6), count):
            vector = np.zeros(6, dtype=np.int64)
            vector[list(own)] = isqrt(weight**2 // count)
            units.append(vector)
    furthest = max(int(((a - b) ** 2).sum()) for a in units for b in vectors or units)
    assert furthest == needed.noise.sensitivity_squared == weight**2 * relation.units_changed


def test_the_threshold_is_least_to_a_thousandth_of_the_weight() -> None:
    for keys in (1, 5, 256):
        mechanism = WeightedSelection.from_rho(keys=keys, weight=5040, relation=ADD_REMOVE, rho="0.1", delta="1e-9")
        assert mechanism.delta <= Fraction(1, 10**9)
        lower = mechanism.threshold - 5040 // 1000
        assert weighted_slip(mechanism.noise.noise, lower, 5040, keys) > Fraction(1, 10**9)


def test_the_loss_is_that_of_the_noise_but_for_delta() -> None:
    mechanism = made()
    assert mechanism.loss == Approximate(Zcdp(Fraction(1, 2)), mechanism.delta)
    charged = privacy_cost(mechanism.event)
    assert charged.pure is None
    assert charged.delta == mechanism.delta
    facts = to_facts(mechanism.event)
    assert facts["mechanism"] == "weightedthreshold"
    assert from_facts(facts) == mechanism.event


def test_a_unit_with_many_keys_needs_more_like_it() -> None:
    mechanism = WeightedSelection.from_rho(keys=256, weight=5040, relation=ADD_REMOVE, rho="0.01", delta="1e-6")
    one, many = mechanism.people(1), mechanism.people(100)
    assert one == -(-mechanism.threshold // 5040)
    assert many == pytest.approx(10 * one, rel=0.05)


def test_noise_for_smaller_weights_and_low_thresholds_are_refused() -> None:
    noise = Gaussian.from_rho(sensitivity_squared=100, rho="0.5")
    settings = {"keys": 4, "relation": ADD_REMOVE, "noise": noise}
    with pytest.raises(ParameterError, match="HB156"):
        WeightedSelection(weight=11, threshold=1000, **settings)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="HB156"):
        WeightedSelection(weight=10, threshold=1000, keys=4, relation=REPLACE, noise=noise)
    with pytest.raises(ParameterError, match="HB103"):
        WeightedSelection(weight=10, threshold=11, **settings)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="HB155"):
        WeightedSelection(keys=4, weight=10, relation=ADD_REMOVE, noise="gaussian", threshold=1000)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="HB105"):
        privacy_cost(WeightedThresholdEvent(noise.event, 0, 10, 100))


def test_weights_that_pass_are_shown_and_absent_keys_never_are() -> None:
    mechanism = made(delta="0.3")
    values = np.array([0, 1000, 0, 1000, -5], dtype=np.int64)
    positions, noisy = mechanism.sample(values, system())
    assert positions.tolist() == [1, 3]
    assert (noisy >= mechanism.threshold).all()


def test_the_tail_of_a_wide_noise_is_that_of_scipy() -> None:
    """The δ of one key, with σ = 5,040/√0.02, against the continuous normal tail at the half-step."""
    variance = Fraction(5040**2, 2) * 100
    for deviations in (3, 5, 8):
        least = int(deviations * float(variance) ** 0.5)
        exact = float(weighted_slip(DiscreteGaussian(variance), least + 5040, 5040, 1))
        assert exact == pytest.approx(norm.sf((least - 0.5) / float(variance) ** 0.5), rel=1e-3)
