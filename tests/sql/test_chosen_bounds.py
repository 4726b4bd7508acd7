"""Which bound is chosen from a histogram of levels: it covers the units that can be seen, and noise seldom fools it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.seeded_source import SeededSource

from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import auto_bounds
from hubbub.sql.auto_bounds import ChosenBound, LevelHistogram, choose_bound, levels_up_to

LEVELS = levels_up_to(10_000)


def chosen(units: dict[int, int], scale: float, *, noise: NDArray[np.int64] | None = None) -> ChosenBound:
    """Choose a bound for so many units with so many rows, at two thirds of ε where the histogram has one third."""
    counts = np.zeros(len(LEVELS))
    for rows, number in units.items():
        counts[next(place for place, level in enumerate(LEVELS) if rows <= level)] += number
    return choose_bound(counts if noise is None else counts + noise, LEVELS, scale, 2 / scale)


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_units_far_above_all_others_are_not_left_out(scale: float) -> None:
    """Fifty units of 300 rows lie beyond a wide gap; leaving them out would be a fifth of all rows."""
    few = {1: 5_000, 2: 8_000, 3: 5_000, 6: 2_000, 300: 50}
    assert chosen(few, scale).bound == 384
    spread = {1: 5_000, 2: 8_000, 3: 5_000, 6: 2_000, 90: 14, 120: 14, 180: 14, 250: 14}
    assert chosen(spread, scale).bound == 256
    assert chosen({1: 5_000, 2: 8_000, 300: 1}, 3.0).bound < 10, "one unit that noise hides does not decide"


def test_where_units_end_at_once_the_bound_ends_there() -> None:
    """Orders of TPC-H have 1 to 7 items, as many of each: nobody has 24."""
    assert chosen(dict.fromkeys(range(1, 8), 20_000), 3.0).bound == 8
    assert chosen({40: 3_000}, 3.0).bound == 48


def test_an_interval_allows_for_what_noise_hides() -> None:
    """Units with more than n rows are n^−1.3 of all, those of a level have 0.85 of its rows, and all noise is 0."""
    above = [math.floor(30_000 * level**-1.3) for level in (0.5, *LEVELS)]
    units = {level: above[place] - above[place + 1] for place, level in enumerate(LEVELS)}
    for scale in (0.3, 3.0, 30.0):
        bound = chosen(units, scale)
        beyond = sum(number * max(0.0, 0.85 * rows - bound.bound) for rows, number in units.items())
        assert beyond <= bound.most, scale


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 30.0])
def test_noise_alone_seldom_shows_units_far_above(scale: float) -> None:
    """The tails of sums of two-sided geometric noise, by convolution: at most 1e-5 for each number of levels."""
    most = math.ceil(40 * scale) + 20
    one = np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    one /= one.sum()
    for width, scales in auto_bounds._FAR:
        total = one
        for _ in range(width - 1):
            total = np.convolve(total, one)
        values = np.arange(len(total)) - width * most
        assert total[values > scales * scale].sum() <= 1e-5, width


def test_a_lower_threshold_would_be_fooled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: with 4 scales instead, noise alone raises the bound in a third of the histograms."""
    noise = Laplace(sensitivity=1, scale=Fraction(3))
    draws = [noise.sample(np.zeros(len(LEVELS), dtype=np.int64), SeededSource(seed)) for seed in range(100)]
    body = {1: 5_000, 2: 5_000}
    assert sum(chosen(body, 3.0, noise=draw).bound > 100 for draw in draws) == 0
    monkeypatch.setattr(auto_bounds, "_FAR", ((1, 4.0),))
    assert sum(chosen(body, 3.0, noise=draw).bound > 100 for draw in draws) > 10


def test_units_above_the_maximum_leave_the_interval_open() -> None:
    """The source is seeded: noise of scale ½ stays far below four here, and 50 units are far above it."""
    level = LevelHistogram(
        "levels0", "rows", 0, (0,), (1, 2, 3), Fraction(2), 1.0, Laplace(sensitivity=1, scale=Fraction(1, 2)), ""
    )
    within = level.choose({"level": np.array([1]), "m0": np.array([100])}, SeededSource(1))
    beyond = level.choose({"level": np.array([1, 3]), "m0": np.array([100, 50])}, SeededSource(1))
    assert within.most < float("inf")
    assert within.above == 0
    assert beyond.most == float("inf")
    assert 40 < beyond.above < 60
    assert beyond.largest_share == 1
