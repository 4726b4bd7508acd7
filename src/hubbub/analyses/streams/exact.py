"""The exact loss of a stream's terms in small: what `hubbub audit release` enumerates before any arrival."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.streams.audit import snapshots
from hubbub.analyses.streams.terms import Terms
from hubbub.analyses.streams.tree import Tree
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.mechanisms.enumeration import SLACK
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Source, system

_TIMES = 8
_BINS = 3


@dataclass(frozen=True, slots=True)
class Enumerated:
    """What was enumerated, in words, and whether it is within the charge."""

    line: str
    kept: bool


def enumerated(terms: Terms) -> Enumerated:
    """Enumerate all neighbors of a small stream under the declared relation, with the noise that was charged.

    Of a density: two elements, two moments, one look, and up to two answers, as laws. Of a count: up to eight times and
    three bins, every arrival and what it can become; the sums that get noise are those that the counter itself makes.
    """
    return _density(terms) if terms.kind == "density" else _count(terms)


def _density(terms: Terms) -> Enumerated:
    made, answers = terms.density, min(terms.outputs, 2)
    small = replace(made, size=2)
    loss = snapshots(small, length=2, relation=terms.relation, answers=answers).bounds[1]
    charged = made.state + answers * made.elements / made.scale
    return Enumerated(
        f"enumerated over two elements ({terms.relation.value}): one look and {answers} of {terms.outputs} answers lose"
        f" {float(loss):.6g}, and {brief(charged)} is charged for them",
        loss <= charged + SLACK,
    )


def _count(terms: Terms) -> Enumerated:
    length = min(terms.length, _TIMES)
    bins = None if terms.bins is None else terms.bins[:_BINS]
    span = {"horizon": length, "window": None}
    small = replace(terms, bins=bins, **span)  # type: ignore[arg-type]
    noise = small.counter.noise
    laplace = isinstance(noise, Laplace)
    allowed = noise.sensitivity if isinstance(noise, Laplace) else noise.sensitivity_squared
    worst = 0
    for time in range(length):
        for one, other in combinations(_arrivals(small), 2):
            if small.relation is Relation.ADD_REMOVE and one.any() and other.any():
                continue
            moved = _measured(small, time, one) - _measured(small, time, other)
            worst = max(worst, int(np.abs(moved).sum() if laplace else (moved * moved).sum()))
    norm = "L1" if laplace else "squared L2"
    return Enumerated(
        f"enumerated over {length} times ({terms.relation.value}): one arrival moves the sums by {worst} in {norm},"
        f" and the noise is for {brief(Fraction(allowed))}",
        worst <= allowed,
    )


def _arrivals(terms: Terms) -> list[NDArray[np.int64]]:
    """List what one arrival can be: nothing, the largest value, or one of the bins."""
    if terms.bins is None:
        return [np.array([0]), np.array([terms.bound])]
    rows = np.eye(len(terms.bins), dtype=np.int64)
    return [np.zeros(len(terms.bins), dtype=np.int64), *rows]


def _measured(terms: Terms, time: int, arrival: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give all sums that a counter adds noise to, where one arrival comes at a time and nothing at the others."""
    counter = terms.counter
    seen: list[NDArray[np.int64]] = []
    noise = counter.noise
    watched = _Watched(noise, seen)
    made = replace(counter, noise=watched)  # type: ignore[arg-type]
    if isinstance(made, Tree):
        made = replace(made, private_state=False)  # of what opens and what ends, an arrival moves one
    values = np.zeros((terms.length, len(arrival)), dtype=np.int64)
    values[time] = arrival
    made.take(made.start(system()), values, system())
    return np.concatenate([each.ravel() for each in seen])


@dataclass(frozen=True, slots=True)
class _Watched:
    """Stands for a counter's noise, adds none, and notes what it would be added to."""

    noise: Laplace | Gaussian
    seen: list[NDArray[np.int64]]

    def sample(self, value: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        del source
        self.seen.append(np.asarray(value, dtype=np.int64))
        return value
