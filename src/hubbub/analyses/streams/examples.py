"""Two well-known sketches of streams, kept as examples of what a look into the state reveals: they are not private.

Both answer well from a small memory, and both hold traces of single elements. `hubbub stream audit` shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hubbub.core.finite import Finite, exactly

Table = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class CountMin:
    """A row of counters to which a random hash sends each element (Cormode and Muthukrishnan 2005; one row of it).

    The state is the hash and the counters. It is not private: a counter that is 0 says that none of its elements came.
    """

    size: int
    width: int = 2

    def starts(self) -> Finite[Table]:
        """Choose a hash."""
        hashes = list(product(range(self.width), repeat=self.size))
        return exactly({(each, (0,) * self.width): Fraction(1, len(hashes)) for each in hashes})

    def steps(self, state: Table, element: int | None) -> Finite[Table]:
        """Add one to the element's counter."""
        hashed, counters = state
        if element is None:
            return exactly({state: Fraction(1)})
        place = hashed[element]
        return exactly({(hashed, (*counters[:place], counters[place] + 1, *counters[place + 1 :])): Fraction(1)})

    def answers(self, state: Table) -> Finite[int]:
        """Estimate how often element 0 came."""
        return exactly({state[1][state[0][0]]: Fraction(1)})


@dataclass(frozen=True, slots=True)
class Reservoir:
    """One arrival kept, each with the same probability (Vitter 1985). It is not private: it holds somebody."""

    size: int

    def starts(self) -> Finite[tuple[int, int | None]]:
        """Nothing is kept yet."""
        return exactly({(0, None): Fraction(1)})

    def steps(self, state: tuple[int, int | None], element: int | None) -> Finite[tuple[int, int | None]]:
        """Keep the newest of n arrivals with probability 1/n."""
        count, kept = state
        if element is None:
            return exactly({state: Fraction(1)})
        law: Mapping[tuple[int, int | None], Fraction] = {(count + 1, element): Fraction(1, count + 1)}
        if count and kept == element:
            law = {(count + 1, kept): Fraction(1)}
        elif count:
            law = {**law, (count + 1, kept): Fraction(count, count + 1)}
        return exactly(law)

    def answers(self, state: tuple[int, int | None]) -> Finite[int]:
        """Say how many arrivals there were."""
        return exactly({state[0]: Fraction(1)})
