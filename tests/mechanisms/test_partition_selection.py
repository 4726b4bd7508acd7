"""Unknown keys: how often a person's own key slips out."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.core.loss import Approximate, Pure, Zcdp
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import delta_at, image
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import system

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
NOISES: list[Laplace | Gaussian] = [
    Laplace.from_epsilon(sensitivity=12, epsilon=1),
    Gaussian.from_rho(sensitivity_squared=24, rho="0.5"),
]


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("delta", ["0.01", "1e-6"])
def test_slips_have_exactly_the_stated_probability(noise: Laplace | Gaussian, delta: str) -> None:
    """A unit alone on 3 keys with 2 rows each: Pr[any is shown] = 1 − (1−p)³, and δ is that, rounded up."""
    mechanism = PartitionSelection.least(keys=3, contribution=2, relation=REPLACE, noise=noise, delta=delta)
    ceiling = mechanism.threshold
    distribution = image(mechanism.distribution((2, 2, 2), ceiling), lambda keys: any(key is not None for key in keys))
    low, high = distribution.mass[True]
    assert high - low < Fraction(1, 10**25)
    assert low <= mechanism.delta <= high + Fraction(1, 10**29)
    assert mechanism.delta <= Fraction(delta)
    one = noise.noise.tail(mechanism.threshold - 2).enclosure[0]
    assert float(mechanism.delta) == pytest.approx(-math.expm1(3 * math.log1p(-float(one))))


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_threshold_is_the_least_that_keeps_delta(noise: Laplace | Gaussian) -> None:
    for delta in (Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**12)):
        least = PartitionSelection.least(keys=3, contribution=2, relation=REPLACE, noise=noise, delta=delta)
        lower = PartitionSelection(keys=3, contribution=2, relation=REPLACE, noise=noise, threshold=least.threshold - 1)
        assert least.delta <= delta < lower.delta


def test_printed_rule_for_one_contribution_fails_for_two() -> None:
    """The rule 1 + ln(1/2δ)/ε is for one row a key; with two rows a key it lets more than δ slip, ours does not."""
    epsilon, delta = Fraction(1), Fraction(1, 10**5)
    noise = Laplace.from_epsilon(sensitivity=2, epsilon=epsilon)
    printed = math.ceil(1 + 2 * math.log(1 / (2 * delta)))
    slips = noise.noise.tail(printed - 2).enclosure[0]
    assert slips > delta * Fraction(3, 2)
    ours = PartitionSelection.least(keys=1, contribution=2, relation=ADD_REMOVE, noise=noise, delta=delta)
    assert ours.threshold > printed
    distribution, without = ours.distribution((2,), ours.threshold + 3), ours.distribution((0,), ours.threshold + 3)
    assert delta_at(distribution, without, epsilon)[1] <= delta


def test_replacing_doubles_the_noise_and_not_the_slip() -> None:
    added = PartitionSelection.from_epsilon(keys=2, contribution=3, relation=ADD_REMOVE, epsilon=1, delta="1e-6")
    replaced = PartitionSelection.from_epsilon(keys=2, contribution=3, relation=REPLACE, epsilon=1, delta="1e-6")
    assert isinstance(added.noise, Laplace)
    assert isinstance(replaced.noise, Laplace)
    assert (added.noise.sensitivity, replaced.noise.sensitivity) == (6, 12)
    # each side has a key that the other lacks; at the stated ε each way loses δ, and not twice δ
    one = PartitionSelection.from_epsilon(keys=1, contribution=1, relation=REPLACE, epsilon=1, delta="0.001")
    x, y = one.distribution((1, 0), one.threshold + 2), one.distribution((0, 1), one.threshold + 2)
    assert one.delta * Fraction(99, 100) <= delta_at(x, y, Fraction(1))[1] <= one.delta


def test_losses_are_those_of_the_noise_but_for_delta() -> None:
    laplace, gaussian = (
        PartitionSelection.least(keys=3, contribution=2, relation=REPLACE, noise=noise, delta="1e-6")
        for noise in NOISES
    )
    assert laplace.loss == Approximate(Pure(Fraction(1)), laplace.delta)
    assert gaussian.loss == Approximate(Zcdp(Fraction(1, 2)), gaussian.delta)


def test_noise_for_fewer_keys_is_refused() -> None:
    for noise in NOISES:
        with pytest.raises(ParameterError, match="HB156"):
            PartitionSelection(keys=4, contribution=2, relation=REPLACE, noise=noise, threshold=1000)
        with pytest.raises(ParameterError, match="HB156"):
            PartitionSelection(keys=3, contribution=3, relation=REPLACE, noise=noise, threshold=1000)
    with pytest.raises(ParameterError):
        PartitionSelection(keys=3, contribution=2, relation=REPLACE, noise=NOISES[0], threshold=3)  # δ above ½
    with pytest.raises(ParameterError):
        PartitionSelection(keys=3, contribution=2, relation=REPLACE, noise="laplace", threshold=1000)  # type: ignore[arg-type]
    for bad in (0, -1, True, float("nan"), "x", None, 0.6, "1e-40"):
        with pytest.raises(ParameterError):
            PartitionSelection.from_epsilon(keys=1, contribution=1, relation=REPLACE, epsilon=1, delta=bad)  # type: ignore[arg-type]


def test_shown_keys_pass_and_absent_keys_never_show() -> None:
    mechanism = PartitionSelection.from_epsilon(keys=1, contribution=1, relation=ADD_REMOVE, epsilon=1, delta="1e-6")
    counts = np.zeros(100_000, dtype=np.int64)
    counts[::2] = 10_000
    counts[1::4] = 1
    positions, noisy = mechanism.sample(counts, system())
    assert (noisy >= mechanism.threshold).all()
    assert set(positions[counts[positions] == 10_000]) == set(range(0, 100_000, 2))
    assert (counts[positions] > 0).all()
    careless = PartitionSelection.from_epsilon(keys=1, contribution=1, relation=ADD_REMOVE, epsilon=1, delta="0.3")
    assert len(careless.sample(np.zeros(10_000, dtype=np.int64), system())[0]) == 0
    assert len(careless.sample(np.ones(10_000, dtype=np.int64), system())[0]) > 0
    assert (counts[positions] == 1).sum() <= 3  # 25,000 keys of one row, each shown with probability 6e-7
