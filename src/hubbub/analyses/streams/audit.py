"""Exact privacy loss of an intrusion into a stream's state, over all neighboring streams of a small universe.

A process gives the distributions of its first and next states. `worst_snapshot` enumerates all streams of a length and
all of their neighbors under the declared relation, and compares the joint distributions of the state at each moment and
the answers. The worst pair bounds what an intruder who sees the state once, and the answers, learns about one unit.
"""

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import Protocol, TypeVar

from hubbub.core.finite import FiniteDistribution
from hubbub.core.reals import Enclosure
from hubbub.core.unit import Relation
from hubbub.mechanisms.enumeration import WorstPair, worst_over

State = TypeVar("State", bound=Hashable)
Arrivals = tuple[int | None, ...]

_ZERO = (Fraction(0), Fraction(0))


class StreamProcess(Protocol[State]):
    """A streaming algorithm over the universe 0, …, size − 1, as exact distributions."""

    @property
    def size(self) -> int:
        """Number of elements."""
        ...

    def starts(self) -> FiniteDistribution[State]:
        """Return the distribution of the first state."""
        ...

    def steps(self, state: State, element: int | None) -> FiniteDistribution[State]:
        """Return the distribution of the next state."""
        ...

    def answers(self, state: State) -> FiniteDistribution[int]:
        """Return the distribution of the answer."""
        ...


def view_distribution(
    process: StreamProcess[State], arrivals: Arrivals, *looks: int, answers: tuple[int, ...] | None = None
) -> FiniteDistribution[tuple[tuple[State | int, ...], int]]:
    """Return the joint distribution of the states at the times `looks` and of the answers.

    `answers` gives the number of arrivals before each answer; the default is one answer at the end.
    """
    *early, last = answers or (len(arrivals),)
    if last != len(arrivals):
        raise ValueError("the last answer must be at the end")
    views: dict[tuple[tuple[State | int, ...], State], Enclosure] = {
        ((), state): mass for state, mass in process.starts().mass.items()
    }
    for time in range(len(arrivals) + 1):
        if time in looks:
            views = {((*past, state), state): mass for (past, state), mass in views.items()}
        for _ in range(early.count(time)):
            views = _then(views, lambda pair: _record_answer(pair[0], pair[1], process.answers(pair[1])))
        if time < len(arrivals):
            views = _then(views, lambda pair, at=time: _keep(pair[0], process.steps(pair[1], arrivals[at])))  # type: ignore[misc]
    return FiniteDistribution(_then(views, lambda pair: _keep(pair[0], process.answers(pair[1]))))


def worst_snapshot(
    process: StreamProcess[State], *, length: int, relation: Relation = Relation.ADD_REMOVE, answers: int = 1
) -> WorstPair:
    """Find the worst loss of one intrusion at any time plus the answers, over all neighboring streams of this length.

    Theorem (Audit of snapshots). The least ε for which one look and this number of answers at times chosen beforehand,
    the last of them at the end, are ε-private, for streams of this length over this universe under this relation, is
    the largest |ln ratio| computed here.
    Proof    All streams, neighbors and times are enumerated, and the distributions are exact; the probability of a set
             is the sum over its outcomes.
    Assumes  the process is the one in use: its samplers have these distributions.
    Tested   tests/analyses/streams/test_audit.py::test_the_density_table_passes_and_the_sketches_fail
             tests/analyses/streams/test_audit.py::test_the_table_that_is_stored_has_the_distribution_that_was_audited
             tests/analyses/streams/test_contract.py::test_the_enumeration_finds_a_density_that_ignores_the_relation
    """
    times = range(length + 1)
    cases = [(look, (*early, length)) for look in times for early in combinations_with_replacement(times, answers - 1)]

    @cache
    def distribution(
        case: tuple[Arrivals, tuple[int, tuple[int, ...]]],
    ) -> FiniteDistribution[tuple[tuple[State | int, ...], int]]:
        arrivals, (look, answer_times) = case
        return view_distribution(process, arrivals, look, answers=answer_times)

    pairs = (((one, case), (other, case)) for one, other in neighbors(process.size, length, relation) for case in cases)
    return worst_over(pairs, distribution)


def neighbors(size: int, length: int, relation: Relation = Relation.ADD_REMOVE) -> Iterator[tuple[Arrivals, Arrivals]]:
    """List all pairs of neighboring streams of a length, each once.

    They differ in the arrivals of one element under add/remove, of two under replace: whenever they differ, one of
    these elements arrives, or nothing does. The pairs include an element removed with all of its arrivals, a single
    arrival removed, and one element (or one arrival) replaced by another.
    """
    streams = list(product((None, *range(size)), repeat=length))
    for one, other in combinations(streams, 2):
        changed = {each for pair in zip(one, other, strict=True) if pair[0] != pair[1] for each in pair} - {None}
        if len(changed) <= relation.units_changed:
            yield one, other


Before = TypeVar("Before", bound=Hashable)
After = TypeVar("After", bound=Hashable)


def _then(mass: dict[Before, Enclosure], step: Callable[[Before], FiniteDistribution[After]]) -> dict[After, Enclosure]:
    result: dict[After, Enclosure] = {}
    for before, (low, high) in mass.items():
        for after, (least, most) in step(before).mass.items():
            so_far = result.get(after, _ZERO)
            result[after] = (so_far[0] + low * least, so_far[1] + high * most)
    return result


def _record_answer(
    past: tuple[State | int, ...], state: State, distribution: FiniteDistribution[int]
) -> FiniteDistribution[tuple[tuple[State | int, ...], State]]:
    """Append an answer to the view; the state stays."""
    return FiniteDistribution({((*past, answer), state): mass for answer, mass in distribution.mass.items()})


def _keep(past: Before, distribution: FiniteDistribution[After]) -> FiniteDistribution[tuple[Before, After]]:
    return FiniteDistribution({(past, after): mass for after, mass in distribution.mass.items()})
