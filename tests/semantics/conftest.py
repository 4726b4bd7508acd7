"""Mechanisms and pairs of distributions that are small enough to be known exactly."""

from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest

from hubbub.core.finite import FiniteDistribution, exact_distribution

Pair = tuple[FiniteDistribution[int], FiniteDistribution[int]]


@pytest.fixture
def response() -> Callable[[int, Fraction], FiniteDistribution[int]]:
    """Randomized response on one bit with the odds e^ε given as a fraction: exact."""

    def distribution(bit: int, odds: Fraction) -> FiniteDistribution[int]:
        return exact_distribution({bit: odds / (1 + odds), 1 - bit: 1 / (1 + odds)})

    return distribution


@pytest.fixture
def random_distribution() -> Callable[[Random, int], FiniteDistribution[int]]:
    """A distribution over so many outcomes with small whole weights, some of them far smaller than the others."""

    def distribution(random: Random, size: int) -> FiniteDistribution[int]:
        weights = [random.choice((1, 2, 5, 20, 100, 100, 100)) for _ in range(size)]
        return exact_distribution({place: Fraction(weight, sum(weights)) for place, weight in enumerate(weights)})

    return distribution
