"""Fixed-point grids: exact multiples in, exact multiples out."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.mechanisms.grid import FixedPointNoise, steps
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system


def test_noisy_cents_are_exact_multiples_of_a_cent() -> None:
    """A sum of costs up to 20000.00, in cents: the answer is a Fraction, each a whole number of cents."""
    moved = steps("20000", step="0.01")
    assert moved == 2_000_000
    mechanism = FixedPointNoise(noise=Laplace.from_epsilon(sensitivity=moved, epsilon=1), step=Fraction(1, 100))
    answer = mechanism.sample(123_456_789, system())
    assert isinstance(answer, Fraction)
    assert (answer * 100).denominator == 1
    many = mechanism.sample(np.array([0, 2**62, -5], dtype=np.int64), system())
    assert all((each * 100).denominator == 1 for each in many)
    wide = mechanism.sample(np.array([10**40], dtype=object), system())
    assert abs(wide[0] - Fraction(10**40, 100)) < 10**6


def test_error_is_in_the_units_of_the_data() -> None:
    noise = Laplace.from_epsilon(sensitivity=100, epsilon=1)
    level = Fraction(95, 100)
    assert FixedPointNoise(noise=noise, step=Fraction(1, 100)).error(level) == noise.error(level) / 100
    assert FixedPointNoise(noise=noise, step=Fraction(1, 100)).error(level, 7) == noise.error(level, 7) / 100


def test_steps_cover_a_bound_that_lies_between_two() -> None:
    assert [steps(bound, step="0.1") for bound in ("1", "1.01", "-1.01", "0")] == [10, 11, 11, 0]
    for bad in ("0", "-1"):
        with pytest.raises(ParameterError):
            steps("1", step=bad)


def test_only_laplace_and_gaussian_go_on_a_grid() -> None:
    with pytest.raises(ParameterError):
        FixedPointNoise(noise="laplace", step=Fraction(1))  # type: ignore[arg-type]
