"""Two well-known streaming sketches that are not private, as examples for `hubbub stream audit`.

Both answer well from little memory, and the state of both reveals single elements.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hubbub.core.finite import FiniteDistribution, exact_distribution

Table = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class CountMin:
    """One row of a Count-Min sketch: a random hash maps each element to a counter (Cormode and Muthukrishnan 2005).

    The state is the hash and the counters. It is not private: a counter of 0 reveals that none of its elements arrived.
    """

    size: int
    width: int = 2

    def starts(self) -> FiniteDistribution[Table]:
        """Choose a hash."""
        hashes = list(product(range(self.width), repeat=self.size))
        return exact_distribution({(each, (0,) * self.width): Fraction(1, len(hashes)) for each in hashes})

    def steps(self, state: Table, element: int | None) -> FiniteDistribution[Table]:
        """Add one to the element's counter."""
        hashed, counters = state
        if element is None:
            return exact_distribution({state: Fraction(1)})
        i = hashed[element]
        return exact_distribution({(hashed, (*counters[:i], counters[i] + 1, *counters[i + 1 :])): Fraction(1)})

    def answers(self, state: Table) -> FiniteDistribution[int]:
        """Estimate how often element 0 arrived."""
        return exact_distribution({state[1][state[0][0]]: Fraction(1)})


@dataclass(frozen=True, slots=True)
class Reservoir:
    """A uniform sample of one arrival (Vitter 1985). It is not private: the state contains that arrival."""

    size: int

    def starts(self) -> FiniteDistribution[tuple[int, int | None]]:
        """Start with an empty sample."""
        return exact_distribution({(0, None): Fraction(1)})

    def steps(self, state: tuple[int, int | None], element: int | None) -> FiniteDistribution[tuple[int, int | None]]:
        """Rei the sample by the n-th arrival with probability 1/n."""
        count, kept = state
        if element is None:
            return exact_distribution({state: Fraction(1)})
        distribution: Mapping[tuple[int, int | None], Fraction] = {(count + 1, element): Fraction(1, count + 1)}
        if count and kept == element:
            distribution = {(count + 1, kept): Fraction(1)}
        elif count:
            distribution = {**distribution, (count + 1, kept): Fraction(count, count + 1)}
        return exact_distribution(distribution)

    def answers(self, state: tuple[int, int | None]) -> FiniteDistribution[int]:
        """Return the number of arrivals."""
        return exact_distribution({state[0]: Fraction(1)})
