"""Smooth sensitivity and propose-test-release: their loss over all datasets of a small universe, exactly."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from hubbub.analyses.programs.median import local_quantile
from hubbub.mechanisms.enumeration import delta_at, worst_ratio
from hubbub.mechanisms.propose_test_release import ProposeTestRelease
from hubbub.mechanisms.smooth import UNIT, LocalValue, ScaleLevels, SmoothNoise

HALF = Fraction(1, 2)
TOP, MOST = 3, 4
Rows = tuple[int, ...]


def universe() -> Iterator[Rows]:
    for size in range(MOST + 1):
        yield from combinations_with_replacement(range(TOP + 1), size)


def without_one(rows: Rows) -> Iterator[Rows]:
    yield from {(*rows[:place], *rows[place + 1 :]) for place in range(len(rows))}


def pairs(distances: int) -> set[tuple[LocalValue, LocalValue]]:
    """Give the values of all neighbors, added, removed or replaced, with their bounds."""
    known = {rows: local(rows, distances) for rows in universe()}
    found = set()
    for rows in known:
        for fewer in without_one(rows):
            others = [fewer, *(tuple(sorted((*fewer, other))) for other in range(TOP + 1))]
            found |= {(known[rows], known[other]) for other in others}
    return found


def local(rows: Rows, distances: int) -> LocalValue:
    return local_quantile(np.array(rows, dtype=np.int64), HALF, 0, TOP, 1, distances)


def smooth(epsilon: Fraction) -> SmoothNoise:
    return SmoothNoise.from_epsilon(low=0, high=TOP, sensitivity=TOP, epsilon=epsilon)


def worst(noise: SmoothNoise) -> float:
    distribution = cache(noise.distribution)
    both = pairs(len(noise.weights))
    return max(float(worst_ratio(distribution(x), distribution(y))[1]) for x, y in both if x != y)


@pytest.mark.row(20, 113)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_every_dataset_of_a_small_universe_stays_within_the_loss(epsilon: Fraction) -> None:
    """The median of up to 4 values of 0, …, 3: all neighbors, added, removed or replaced, and all answers."""
    assert 0.2 * epsilon < worst(smooth(epsilon)) <= epsilon
    proposed = ProposeTestRelease.from_epsilon(bound=1, epsilon=epsilon, delta="0.01")
    known = cache(lambda value: proposed.distribution(value, (-1, TOP + 1)))
    slips = [delta_at(known(x), known(y), epsilon) for pair in pairs(30) for x, y in (pair, pair[::-1])]
    assert max(low for low, _ in slips) > 0
    assert max(high for _, high in slips) <= Fraction(1, 100)


@pytest.mark.row(113)
def test_noise_by_the_local_sensitivity_itself_leaks() -> None:
    """The scale tells the data apart: what smoothing is for. All equal: no noise at all."""

    def unsmoothed(self: Any, value: LocalValue) -> int:
        return max(value.bound(0, self.sensitivity) * UNIT, 1)

    with patch.object(SmoothNoise, "smooth", unsmoothed):
        assert worst(smooth(Fraction(1))) > 20


@pytest.mark.parametrize("fall", [2, 4])
def test_weights_that_fall_too_fast_are_noticed(fall: int) -> None:
    noise = smooth(Fraction(2))
    with patch("hubbub.mechanisms.smooth._weights", lambda *_: tuple(UNIT >> (fall * k) for k in range(12))):
        assert worst(noise) > 2


def test_too_small_a_margin_is_noticed() -> None:
    proposed = ProposeTestRelease(bound=1, margin=1, test_scale=Fraction(2), answer_scale=Fraction(2))
    far, near = local((0, 0, 3, 3), 30), local((0, 3, 3), 30)
    p, q = (proposed.distribution(value, (-1, TOP + 1)) for value in (far, near))
    assert max(delta_at(p, q, Fraction(1))[0], delta_at(q, p, Fraction(1))[0]) > Fraction(1, 100)


def test_the_level_of_the_scale_moves_by_at_most_one() -> None:
    noise = smooth(Fraction(1))
    levels, seen = ScaleLevels(noise), set()
    for x, y in pairs(len(noise.weights)):
        one, two = (levels.level(noise.smooth(value)) for value in (x, y))
        seen.add(one - two)
        assert levels.bound(one) >= noise.smooth(x)
    assert seen == {-1, 0, 1}


@pytest.mark.row(113)
def test_many_equal_values_get_little_noise_and_two_halves_get_much() -> None:
    noise = SmoothNoise.from_epsilon(low=0, high=1000, sensitivity=1000, epsilon=1)
    together, apart = (
        local_quantile(np.array(rows, dtype=np.int64), HALF, 0, 1000, 1, len(noise.weights))
        for rows in ([500] * 200, [0] * 100 + [1000] * 100)
    )
    level = Fraction(95, 100)
    assert noise.half_width(noise.smooth(together), level) == 0
    assert noise.half_width(noise.smooth(apart), level) == noise.half_width(1000 * UNIT, level) > 7000
