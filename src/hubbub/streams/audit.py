"""The exact loss of a look into a stream's state: every pair of neighbouring streams over a small universe.

A process says how its state begins and moves, as finite laws. `snapshots` walks all streams of a length, removes all
arrivals of one element from each, and compares what a look at each moment shows, with the answer at the end. The worst
pair is what somebody who sees the state once, and the answer, can learn about one element.
"""

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import product
from typing import Protocol, TypeVar

from hubbub.audit.enumerate import Worst, worst_over
from hubbub.core.finite import Finite
from hubbub.core.reals import Enclosure

State = TypeVar("State", bound=Hashable)
Arrivals = tuple[int | None, ...]

_NOTHING = (Fraction(0), Fraction(0))


class Process(Protocol[State]):
    """A streaming algorithm over the universe 0, …, size − 1, written out."""

    @property
    def size(self) -> int:
        """How many elements there are."""
        ...

    def starts(self) -> Finite[State]:
        """Give the law of the first state."""
        ...

    def steps(self, state: State, element: int | None) -> Finite[State]:
        """Give the law of the next state."""
        ...

    def answers(self, state: State) -> Finite[int]:
        """Give the law of the answer."""
        ...


def view_law(process: Process[State], arrivals: Arrivals, *looks: int) -> Finite[tuple[tuple[State, ...], int]]:
    """Write out what somebody sees who looks at the state after so many arrivals, each time, and gets the answer."""
    seen: dict[tuple[tuple[State, ...], State], Enclosure] = {
        ((), state): mass for state, mass in process.starts().mass.items()
    }
    for place in range(len(arrivals) + 1):
        if place in looks:
            seen = {((*past, state), state): mass for (past, state), mass in seen.items()}
        if place < len(arrivals):
            seen = _then(seen, lambda pair, at=place: _keep(pair[0], process.steps(pair[1], arrivals[at])))  # type: ignore[misc]
    return Finite(_then(seen, lambda pair: _keep(pair[0], process.answers(pair[1]))))


def snapshots(process: Process[State], *, length: int) -> Worst:
    """Find the worst loss of one look at any moment, with the answer, over all neighbouring streams of this length.

    Theorem (Audit of snapshots). The least ε for which one look at a moment chosen beforehand and the answer are
    ε-private, for streams of this length over this universe, is the largest |ln ratio| found here.
    Proof    Every stream, every element and every moment is walked, and the laws are exact; a set's probability is the
             sum over its outcomes.
    Assumes  the process is the one that is used: its samplers have these laws.
    Tested   tests/streams/test_audit.py::test_the_density_table_passes_and_the_sketches_fail
             tests/streams/test_audit.py::test_the_table_that_is_stored_has_the_law_that_was_audited
    """
    looks = range(length + 1)

    def law(case: tuple[Arrivals, int]) -> Finite[tuple[tuple[State, ...], int]]:
        return view_law(process, case[0], case[1])

    pairs = (((one, look), (other, look)) for one, other in neighbours(process.size, length) for look in looks)
    return worst_over(pairs, law)


def neighbours(size: int, length: int) -> Iterator[tuple[Arrivals, Arrivals]]:
    """List all streams of a length, each beside the same without one of its elements."""
    for arrivals in product((None, *range(size)), repeat=length):
        for gone in set(arrivals) - {None}:
            yield arrivals, tuple(None if each == gone else each for each in arrivals)


Before = TypeVar("Before", bound=Hashable)
After = TypeVar("After", bound=Hashable)


def _then(mass: dict[Before, Enclosure], step: Callable[[Before], Finite[After]]) -> dict[After, Enclosure]:
    found: dict[After, Enclosure] = {}
    for before, (low, high) in mass.items():
        for after, (least, most) in step(before).mass.items():
            so_far = found.get(after, _NOTHING)
            found[after] = (so_far[0] + low * least, so_far[1] + high * most)
    return found


def _keep(past: Before, law: Finite[After]) -> Finite[tuple[Before, After]]:
    return Finite({(past, after): mass for after, mass in law.mass.items()})
