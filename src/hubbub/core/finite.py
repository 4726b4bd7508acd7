"""Finite distributions: every outcome with an enclosure of its probability.

An infinite distribution is truncated; `tail` bounds the probability of all outcomes that are not listed.

Tested in tests/core/test_finite.py.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from hubbub.core.reals import Enclosure

Outcome = TypeVar("Outcome", bound=Hashable)

#: Steps from 0 to 1; far finer than enclosures of 60 digits.
_GRID = 10**80


@dataclass(frozen=True, slots=True)
class FiniteDistribution(Generic[Outcome]):
    """Outcomes with enclosed probabilities, and a bound on the mass that is not listed."""

    mass: Mapping[Outcome, Enclosure]
    tail: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        lows = [low for low, _ in self.mass.values()]
        highs = [self.tail, *(high for _, high in self.mass.values())]
        # on a grid first: adding fractions takes five times as long, and is needed only where all are exact
        low_fits = sum(-((-low.numerator * _GRID) // low.denominator) for low in lows) <= _GRID
        high_fits = sum(high.numerator * _GRID // high.denominator for high in highs) >= _GRID
        if not ((low_fits or sum(lows, Fraction(0)) <= 1) and (high_fits or sum(highs, Fraction(0)) >= 1)):
            raise ValueError("the probabilities cannot add up to 1")


def exact_distribution(mass: Mapping[Outcome, Fraction]) -> FiniteDistribution[Outcome]:
    """Create a distribution from exact probabilities.

    >>> exact_distribution({"yes": Fraction(3, 4), "no": Fraction(1, 4)}).mass["no"]
    (Fraction(1, 4), Fraction(1, 4))
    """
    return FiniteDistribution({outcome: (p, p) for outcome, p in mass.items()})
