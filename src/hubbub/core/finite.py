"""The law of a random output, written out: each outcome with rationals that enclose its probability.

An infinite law is cut where little is left; `tail` bounds the probability of everything that is not listed.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from hubbub.core.reals import Enclosure

Outcome = TypeVar("Outcome", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Finite(Generic[Outcome]):
    """Outcomes with enclosed probabilities, and a bound on the mass that is not listed."""

    mass: Mapping[Outcome, Enclosure]
    tail: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        low = sum((low for low, _ in self.mass.values()), Fraction(0))
        high = sum((high for _, high in self.mass.values()), self.tail)
        if not low <= 1 <= high:
            raise ValueError("these enclosures cannot be the probabilities of one law")


def exactly(mass: Mapping[Outcome, Fraction]) -> Finite[Outcome]:
    """Make a law from exact probabilities.

    >>> exactly({"yes": Fraction(3, 4), "no": Fraction(1, 4)}).mass["no"]
    (Fraction(1, 4), Fraction(1, 4))
    """
    return Finite({outcome: (p, p) for outcome, p in mass.items()})
