"""The Laplace mechanism: its figures, and integers that never wrap."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.core.reals import floor_to, log
from hubbub.core.unit import Relation
from hubbub.errors import MechanismError
from hubbub.mechanisms import sensitivity
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, system

LN_2 = floor_to(log(Fraction(2))[0])


@pytest.mark.row(29)
def test_mass_ratio_of_100_and_101_is_within_a_factor_of_two() -> None:
    """ε = ln 2: scale 1.4427, continuous peak .3466 (on the integers 1/3), and every ratio in [½, 2]."""
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=LN_2)
    assert float(mechanism.scale) == pytest.approx(1.4427, abs=5e-5)
    assert float(1 / (2 * mechanism.scale)) == pytest.approx(0.3466, abs=5e-5)
    p, q = mechanism.distribution(100, (60, 140)), mechanism.distribution(101, (60, 140))
    assert float(p.mass[100][0]) == pytest.approx(1 / 3)
    for outcome in p.mass:
        assert Fraction(1, 2) - Fraction(1, 10**28) <= p.mass[outcome][0] / q.mass[outcome][1]
        assert p.mass[outcome][1] / q.mass[outcome][0] <= 2 + Fraction(1, 10**28)
    assert float(worst_ratio(p, q)[1]) == pytest.approx(math.log(2))


@pytest.mark.row(29)
def test_every_coordinate_gets_noise_of_sensitivity_over_epsilon() -> None:
    """A vector of L1 sensitivity 3: neighbors that spend it on one coordinate or on three lose the same."""
    mechanism = Laplace.from_epsilon(sensitivity=3, epsilon=1)
    assert mechanism.scale == 3
    window = (-4, 5)
    origin = mechanism.distribution((0, 0, 0), window)
    for moved in ((3, 0, 0), (1, 1, 1), (2, 0, -1)):
        low, high = worst_ratio(origin, mechanism.distribution(moved, window))
        assert float(low) == pytest.approx(1)
        assert high <= 1 + Fraction(1, 10**30)
    assert worst_ratio(origin, mechanism.distribution((2, 2, 0), window))[0] > 1  # further apart than declared


@pytest.mark.row(26)
@pytest.mark.parametrize("relation", Relation)
def test_noisy_sum_of_bits_is_off_by_one_over_epsilon_on_average(relation: Relation) -> None:
    """Mean absolute error 1/ε and root mean square √2/ε (not both √2/ε), standard deviation √2·λ (not λ)."""
    moved = sensitivity.of_sum(lower=0, upper=1, rows=1, relation=relation)
    assert moved == 1
    for epsilon in (Fraction(1, 100), Fraction(1, 10)):
        mechanism = Laplace.from_epsilon(sensitivity=moved, epsilon=epsilon)
        mean_absolute = float(mechanism.mean_absolute_error[1])
        deviation = math.sqrt(mechanism.variance[1])
        assert mean_absolute == pytest.approx(1 / epsilon, rel=2e-3)
        assert deviation == pytest.approx(math.sqrt(2) / epsilon, rel=2e-3)
        assert deviation == pytest.approx(math.sqrt(2) * float(mechanism.scale), rel=2e-3)
        assert deviation > 1.4 * float(mechanism.scale)
        distribution = mechanism.distribution(0) if epsilon == Fraction(1, 10) else None
        if distribution is not None:
            assert mean_absolute == pytest.approx(sum(abs(z) * float(low) for z, (low, _) in distribution.mass.items()))
            assert deviation**2 == pytest.approx(sum(z * z * float(low) for z, (low, _) in distribution.mass.items()))


@pytest.mark.row(26)
def test_noisy_sum_of_many_bits(seeded: Callable[[int], RandomSource]) -> None:
    """10,000 noisy sums of a million bits each, ε = .1: mean absolute error 10 ± 5 % (6 standard errors of .1)."""
    bits = np.zeros(10_000, dtype=np.int64) + 500_000
    noisy = Laplace.from_epsilon(sensitivity=1, epsilon="0.1").sample(bits, seeded(3))
    assert np.abs(noisy - bits).mean() == pytest.approx(10, abs=0.6)


@pytest.mark.row(31)
def test_eleven_errors_at_once_are_within_ln_of_11_over_delta() -> None:
    """K = 11, δ = .05: the bound ln(K/δ)·b = 5.394·b fails with probability .0489 = 1 − (1 − δ/K)^K."""
    k, delta = 11, Fraction(5, 100)
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon="0.00001")
    bound = math.log(k / delta)
    assert bound == pytest.approx(5.394, abs=5e-4)
    outside = 2 * mechanism.noise.tail(math.ceil(bound * float(mechanism.scale))).enclosure[1]
    assert float(1 - (1 - outside) ** k) == pytest.approx(0.0489, abs=5e-5)
    assert float(1 - (1 - outside) ** k) == pytest.approx(1 - (1 - 0.05 / 11) ** 11, rel=1e-3)
    exact = mechanism.error(1 - delta, coordinates=k)
    assert float(exact / mechanism.scale) < bound
    assert float(exact / mechanism.scale) == pytest.approx(-math.log1p(-(0.95 ** (1 / 11))), rel=1e-4)


def test_int64_saturates_and_python_ints_are_exact() -> None:
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon="0.001")
    ends = np.array([2**63 - 1, -(2**63)] * 500, dtype=np.int64)
    noisy = mechanism.sample(ends, system())
    assert noisy.dtype == np.int64
    assert (np.sign(noisy) == np.sign(ends)).all()
    wide = np.array([2**200, -(2**200), 0], dtype=object)
    answers = mechanism.sample(wide, system())
    assert answers.dtype == object
    assert all(type(answer) is int for answer in answers)
    assert all(abs(answer - value) < 10**6 for answer, value in zip(answers, wide, strict=True))
    assert abs(mechanism.sample(2**200, system()) - 2**200) < 10**6


def test_saturation_is_the_clamp_of_the_exact_sum() -> None:
    ends = np.array([2**63 - 1, 2**63 - 5, -(2**63), -(2**63) + 3, 0, 7], dtype=np.int64)
    noise = np.array([1, 4, -1, -4, 5, -9], dtype=np.int64)
    from hubbub.mechanisms.additive import add

    expected = [min(max(int(a) + int(b), -(2**63)), 2**63 - 1) for a, b in zip(ends, noise, strict=True)]
    assert add(ends, lambda _: noise).tolist() == expected


@pytest.mark.parametrize("value", [1.5, True, "3", np.array([1.5]), np.array([1], dtype=np.uint64), None])
def test_only_integers_are_noised(value: object) -> None:
    with pytest.raises(MechanismError, match="HB612"):
        Laplace.from_epsilon(sensitivity=1, epsilon=1).sample(value, system())  # type: ignore[call-overload]


def test_objects_that_are_no_integers_are_refused() -> None:
    with pytest.raises(TypeError):
        Laplace.from_epsilon(sensitivity=1, epsilon=1).sample(np.array([1.5], dtype=object), system())


def test_vectors_of_any_shape_keep_their_shape() -> None:
    table = np.zeros((3, 4, 5), dtype=np.int64)
    assert Laplace.from_epsilon(sensitivity=1, epsilon=1).sample(table, system()).shape == (3, 4, 5)


def test_a_distribution_too_long_to_write_is_refused() -> None:
    with pytest.raises(MechanismError, match="HB610"):
        Laplace.from_epsilon(sensitivity=1, epsilon="0.000001").distribution(0)
    with pytest.raises(MechanismError, match="HB613"):
        Laplace.from_epsilon(sensitivity=1, epsilon=1).distribution(0, (5, 5))
