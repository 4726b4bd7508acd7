"""The exact loss of a look into a stream's state: every pair of neighboring streams over a small universe.

A process says how its state begins and moves, as finite laws. `snapshots` walks all streams of a length and all
neighbors of each under the declared relation, and compares what a look at each moment shows, with the answers. The
worst pair is what somebody who sees the state once, and the answers, can learn about one unit.
"""

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import Protocol, TypeVar

from hubbub.core.finite import Finite
from hubbub.core.reals import Enclosure
from hubbub.core.unit import Relation
from hubbub.mechanisms.enumeration import Worst, worst_over

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


def view_law(
    process: Process[State], arrivals: Arrivals, *looks: int, answers: tuple[int, ...] | None = None
) -> Finite[tuple[tuple[State | int, ...], int]]:
    """Write out what somebody sees who looks at the state after so many arrivals, each time, and gets the answers.

    Answers are drawn after so many arrivals each; one at the end where nothing else is said.
    """
    *early, last = answers or (len(arrivals),)
    if last != len(arrivals):
        raise ValueError("the last answer is drawn at the end")
    seen: dict[tuple[tuple[State | int, ...], State], Enclosure] = {
        ((), state): mass for state, mass in process.starts().mass.items()
    }
    for place in range(len(arrivals) + 1):
        if place in looks:
            seen = {((*past, state), state): mass for (past, state), mass in seen.items()}
        for _ in range(early.count(place)):
            seen = _then(seen, lambda pair: _told(pair[0], pair[1], process.answers(pair[1])))
        if place < len(arrivals):
            seen = _then(seen, lambda pair, at=place: _keep(pair[0], process.steps(pair[1], arrivals[at])))  # type: ignore[misc]
    return Finite(_then(seen, lambda pair: _keep(pair[0], process.answers(pair[1]))))


def snapshots(
    process: Process[State], *, length: int, relation: Relation = Relation.ADD_REMOVE, answers: int = 1
) -> Worst:
    """Find the worst loss of one look at any moment, with the answers, over all neighboring streams of this length.

    Theorem (Audit of snapshots). The least ε for which one look and so many answers at moments chosen beforehand, the
    last of them at the end, are ε-private, for streams of this length over this universe under this relation, is the
    largest |ln ratio| found here.
    Proof    Every stream, every neighbor and all moments are walked, and the laws are exact; a set's probability is the
             sum over its outcomes.
    Assumes  the process is the one that is used: its samplers have these laws.
    Tested   tests/analyses/streams/test_audit.py::test_the_density_table_passes_and_the_sketches_fail
             tests/analyses/streams/test_audit.py::test_the_table_that_is_stored_has_the_law_that_was_audited
             tests/analyses/streams/test_contract.py::test_the_enumeration_finds_a_density_that_ignores_the_relation
    """
    moments = range(length + 1)
    cases = [
        (look, (*early, length)) for look in moments for early in combinations_with_replacement(moments, answers - 1)
    ]

    @cache
    def law(case: tuple[Arrivals, tuple[int, tuple[int, ...]]]) -> Finite[tuple[tuple[State | int, ...], int]]:
        arrivals, (look, told) = case
        return view_law(process, arrivals, look, answers=told)

    pairs = (((one, case), (other, case)) for one, other in neighbors(process.size, length, relation) for case in cases)
    return worst_over(pairs, law)


def neighbors(size: int, length: int, relation: Relation = Relation.ADD_REMOVE) -> Iterator[tuple[Arrivals, Arrivals]]:
    """List all pairs of neighboring streams of a length, each once.

    They differ in the arrivals of one element under add/remove, of two under replace: at each moment at which they
    differ, one of these arrives, or nothing does. An element gone with all of its arrivals, a single arrival gone, and
    one element (or one arrival) in the place of another are among these pairs.
    """
    streams = list(product((None, *range(size)), repeat=length))
    for one, other in combinations(streams, 2):
        changed = {each for pair in zip(one, other, strict=True) if pair[0] != pair[1] for each in pair} - {None}
        if len(changed) <= relation.units_changed:
            yield one, other


Before = TypeVar("Before", bound=Hashable)
After = TypeVar("After", bound=Hashable)


def _then(mass: dict[Before, Enclosure], step: Callable[[Before], Finite[After]]) -> dict[After, Enclosure]:
    found: dict[After, Enclosure] = {}
    for before, (low, high) in mass.items():
        for after, (least, most) in step(before).mass.items():
            so_far = found.get(after, _NOTHING)
            found[after] = (so_far[0] + low * least, so_far[1] + high * most)
    return found


def _told(
    past: tuple[State | int, ...], state: State, law: Finite[int]
) -> Finite[tuple[tuple[State | int, ...], State]]:
    """Put an answer among what was seen; the state stays."""
    return Finite({((*past, answer), state): mass for answer, mass in law.mass.items()})


def _keep(past: Before, law: Finite[After]) -> Finite[tuple[Before, After]]:
    return Finite({(past, after): mass for after, mass in law.mass.items()})
