"""Exact privacy loss of a stream's terms on a small instance, as `hubbub audit release` reports it."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.streams.audit import worst_snapshot
from hubbub.analyses.streams.terms import Terms
from hubbub.analyses.streams.tree import TreeCounter
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.mechanisms.enumeration import SLACK
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, system

_TIMES = 8
_BINS = 3


@dataclass(frozen=True, slots=True)
class EnumeratedLoss:
    """The result of an enumeration, as a sentence, and whether the loss is within the charge."""

    line: str
    kept: bool


def enumerate_loss(terms: Terms) -> EnumeratedLoss:
    """Enumerate all neighbors of a small stream under the declared relation, with the noise that was charged.

    For a density: two elements, two times, one intrusion and up to two answers, as exact distributions. For a count: up
    to eight times and three bins, and every change of one arrival, in the sums that the counter itself computes.
    """
    return _density(terms) if terms.kind == "density" else _count(terms)


def _density(terms: Terms) -> EnumeratedLoss:
    density, answers = terms.density, min(terms.outputs, 2)
    small = replace(density, size=2)
    loss = worst_snapshot(small, length=2, relation=terms.relation, answers=answers).bounds[1]
    charged = density.state + answers * density.elements / density.scale
    return EnumeratedLoss(
        f"enumerated over two elements ({terms.relation.value}): the privacy loss of one intrusion and {answers} of"
        f" {terms.outputs} answers is {float(loss):.6g}; charged: {brief(charged)}",
        loss <= charged + SLACK,
    )


def _count(terms: Terms) -> EnumeratedLoss:
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
            change = _measured(small, time, one) - _measured(small, time, other)
            worst = max(worst, int(np.abs(change).sum() if laplace else (change * change).sum()))
    norm = "L1" if laplace else "squared L2"
    return EnumeratedLoss(
        f"enumerated over {length} times ({terms.relation.value}): the {norm} sensitivity of the sums to one arrival is"
        f" {worst}; the noise covers {brief(Fraction(allowed))}",
        worst <= allowed,
    )


def _arrivals(terms: Terms) -> list[NDArray[np.int64]]:
    """List the possible arrivals: nothing, the largest value, or one of the bins."""
    if terms.bins is None:
        return [np.array([0]), np.array([terms.bound])]
    rows = np.eye(len(terms.bins), dtype=np.int64)
    return [np.zeros(len(terms.bins), dtype=np.int64), *rows]


def _measured(terms: Terms, time: int, arrival: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all sums that a counter adds noise to, for a stream with a single arrival."""
    sums: list[NDArray[np.int64]] = []
    counter = replace(terms.counter, noise=_NoiseRecorder(sums))  # type: ignore[arg-type]
    if isinstance(counter, TreeCounter):
        # an arrival changes either the opening or the closing value of a block, never both
        counter = replace(counter, private_state=False)
    values = np.zeros((terms.length, len(arrival)), dtype=np.int64)
    values[time] = arrival
    counter.take(counter.start(system()), values, system())
    return np.concatenate([values.ravel() for values in sums])


@dataclass(frozen=True, slots=True)
class _NoiseRecorder:
    """Replaces a counter's noise: adds nothing, and records the values that would get noise."""

    sums: list[NDArray[np.int64]]

    def sample(self, value: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        del source
        self.sums.append(np.asarray(value, dtype=np.int64))
        return value
