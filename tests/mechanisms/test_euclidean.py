"""Noise that decays with the Euclidean distance: its loss along every direction, and its samples."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.core.interval import Interval
from hubbub.errors import MechanismError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.mechanisms.euclidean import EuclideanNoise, _acceptance, _accepted, _share
from hubbub.mechanisms.metric import Metric, Space
from hubbub.noise.source import ReplaySource, system


@pytest.mark.row(97)
def test_half_of_the_rate_is_not_needed_on_a_grid_without_an_end() -> None:
    """On the whole grid the rate ε/S costs ε, also along the diagonal (3, 4) of length 5; on a part of it more."""
    noise = EuclideanNoise.from_epsilon(dimensions=2, sensitivity=5, epsilon=20)
    assert noise.loss.epsilon == 20
    along = worst_ratio(noise.distribution((0, 0), (-6, 6)), noise.distribution((3, 4), (-6, 6)))
    assert float(along[0]) == pytest.approx(20)
    assert along[1] <= 20 + Fraction(1, 10**15)
    # the same rate on three points of a line, whose normalizer depends on where one stands
    line = Space.of([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    planted = Metric(space=line, sensitivity=Fraction(1), rate=Fraction(1))
    assert float(worst_ratio(planted.distribution(0), planted.distribution(1))[0]) > 1


@pytest.mark.row(97)
def test_samples_have_the_listed_distribution() -> None:
    """Three dimensions: E‖Z‖ and E‖Z‖² of 3,000 samples; 7 standard errors, a false alarm of less than 1e-6."""
    noise = EuclideanNoise.from_epsilon(dimensions=3, sensitivity=20, epsilon=1)
    drawn = np.array([noise.sample(np.zeros(3, dtype=np.int64), system()) for _ in range(3000)], dtype=np.float64)
    norms = np.linalg.norm(drawn, axis=1)
    # a Gamma variable of shape 3 and scale 20, but for the grid: mean 60, deviation 20·√3
    assert norms.mean() == pytest.approx(60, abs=7 * 20 * math.sqrt(3) / math.sqrt(3000))
    assert (np.abs(drawn[:, 0]) <= float(noise.error(Fraction(95, 100)))).mean() == pytest.approx(0.95, abs=0.03)
    # planted: independent Laplace noise of the same rate in each coordinate has a mean norm that is larger by far
    planted = np.linalg.norm(np.random.default_rng(1).laplace(scale=20 * math.sqrt(3), size=(3000, 3)), axis=1)
    assert abs(planted.mean() - 60) > 7 * 20 * math.sqrt(3) / math.sqrt(3000)


def test_a_proposal_is_accepted_as_exact_arithmetic_says() -> None:
    """Where doubles cannot decide, more digits do: the first word is put next to the probability itself."""
    rate, squares = Fraction(1, 3), 5
    least = 3 * _share(2)
    chance = math.exp(-float(rate) * (math.sqrt(5) - float(least)))
    low, high = _acceptance(rate, squares, least)(200)
    assert 0 <= high - low <= 4
    assert low / 2**200 == pytest.approx(chance)
    for offset, accepted in ((-1, True), (1, False)):
        word = (low >> 136) + offset
        assert _accepted(rate, squares, least, ReplaySource([word])) is accepted
    assert Interval.of(_share(2)).high ** 2 * 2 <= 1


def test_a_vector_of_another_size_is_refused() -> None:
    noise = EuclideanNoise.from_epsilon(dimensions=2, sensitivity=1, epsilon=1)
    with pytest.raises(MechanismError):
        noise.sample(np.zeros(3, dtype=np.int64), system())
