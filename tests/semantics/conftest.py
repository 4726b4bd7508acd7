"""Mechanisms and pairs of laws that are small enough to be known exactly."""

from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest

from hubbub.core.finite import Finite, exactly

Pair = tuple[Finite[int], Finite[int]]


@pytest.fixture
def response() -> Callable[[int, Fraction], Finite[int]]:
    """Randomized response on one bit with the odds e^ε given as a fraction: exact."""

    def law(bit: int, odds: Fraction) -> Finite[int]:
        return exactly({bit: odds / (1 + odds), 1 - bit: 1 / (1 + odds)})

    return law


@pytest.fixture
def random_law() -> Callable[[Random, int], Finite[int]]:
    """A law over so many outcomes with small whole weights, some of them far smaller than the others."""

    def law(random: Random, size: int) -> Finite[int]:
        weights = [random.choice((1, 2, 5, 20, 100, 100, 100)) for _ in range(size)]
        return exactly({place: Fraction(weight, sum(weights)) for place, weight in enumerate(weights)})

    return law
