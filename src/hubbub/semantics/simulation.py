"""Informed adversaries, who know all rows except k (Dwork and others 2006, appendix A).

Two nearly equivalent definitions of privacy: the answer can be simulated without the unknown rows (simulatability), and
it changes no probability that such an adversary assigns by more than e^ε (semantic security).
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

from hubbub.core import reals
from hubbub.core.finite import FiniteDistribution
from hubbub.core.reals import Enclosure
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import LossBounds, worst_over, worst_ratio
from hubbub.semantics.games import Game, databases

Row = TypeVar("Row", bound=Hashable)
World = TypeVar("World", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)
Rows = tuple[Row, ...]

_NOTHING: Enclosure = (Fraction(0), Fraction(0))


def blanked(rows: Rows[Row], hidden: Collection[int], default: Row) -> Rows[Row]:
    """Replace the unknown rows by a default; the simulator runs the mechanism on the result.

    >>> blanked((3, 1, 4), {0, 2}, 0)
    (0, 1, 0)
    """
    return tuple(default if index in hidden else row for index, row in enumerate(rows))


def simulation_loss(
    distribution: Callable[[Rows[Row]], FiniteDistribution[Outcome]],
    domain: Sequence[Row],
    *,
    people: int,
    unknown: int,
    default: Row,
) -> LossBounds:
    """Enclose the least ε such that filling in a default for any k unknown rows simulates the mechanism up to e^{±ε}.

    Theorem (Private means simulatable). If databases that differ in k rows have answers within e^{±ε}, then so have the
    mechanism and a simulator that does not see those k rows.
    Proof    What the simulator runs on differs from the data in at most the k rows (Dwork and others 2006, Claim 2(1)).
    Tested   tests/semantics/test_simulation.py::test_the_default_fills_in_for_unknown_rows
    """
    pairs = [
        (rows, blanked(rows, hidden, default))
        for rows in databases(domain, people=people)
        for hidden in combinations(range(people), unknown)
    ]
    return worst_over(pairs, distribution).bounds


def best_simulation(distributions: Sequence[FiniteDistribution[Outcome]]) -> Enclosure:
    """Enclose the least ε for which one distribution is within e^{±ε} of all of these: how well any simulator could do.

    Theorem (Best simulator). With u(t) the largest and l(t) the least probability of t among the distributions, it is
    the largest of ln Σu(t), −ln Σl(t) and ½·ln(u(t)/l(t)) over t.
    Proof    s is within e^{±ε} of all if and only if u(t)e^{−ε} ≤ s(t) ≤ l(t)e^ε for every t. Such numbers that add up
    to 1 exist if and only if the lower ends are not above the upper ones and add up to at most 1, the upper ones to at
    least 1.
    Theorem (Simulatable means private, at twice). If one distribution is within e^{±ε} of two, those are within e^{±2ε}
    of each other, and some pair is no closer (Dwork and others 2006, Claim 2(2)).
    Proof    The log-ratios add. Let t have probability e^ε·p for one and e^{−ε}·p for the other, and the rest be one
    more outcome: with small p the simulator that gives t with p is within e^{±ε} of both.
    Tested   tests/semantics/test_simulation.py::test_no_simulator_does_better
             tests/semantics/test_simulation.py::test_simulatable_is_private_at_twice_and_no_better
    """
    answers = list({answer: None for distribution in distributions for answer in distribution.mass})
    masses = [[distribution.mass.get(answer, _NOTHING) for distribution in distributions] for answer in answers]
    if any(min(high for _, high in row) == 0 for row in masses):
        raise ParameterError(
            "HB178",
            "An answer is possible for only some of the data, so no simulator exists.",
            "Pass distributions with the same outcomes.",
        )
    most = [(max(low for low, _ in row), max(high for _, high in row)) for row in masses]
    least = [(min(low for low, _ in row), min(high for _, high in row)) for row in masses]
    low = max(
        reals.log(sum(low for low, _ in most))[0],
        -reals.log(sum(high for _, high in least))[1],
        *[reals.log(u[0] / v[1])[0] / 2 for u, v in zip(most, least, strict=True)],
    )
    high = max(
        reals.log(sum(high for _, high in most))[1],
        -reals.log(sum(low for low, _ in least))[0],
        *[reals.log(u[1] / v[0])[1] / 2 for u, v in zip(most, least, strict=True)],
    )
    return max(Fraction(0), low), high


def informed(
    distribution: Callable[[World], FiniteDistribution[Outcome]],
    prior: Mapping[World, Fraction],
    event: Callable[[World], bool],
) -> LossBounds:
    """Enclose the largest change of the probability of an event by any answer: |ln(before/after)|.

    The prior is that of an informed adversary: all its worlds agree in the known rows.

    Theorem (Semantic security). A mechanism keeps e^{±ε} between all databases that differ in k rows if and only if for
    every belief over databases that agree in the other rows, every event and every answer, the probabilities before and
    after are within e^{±ε}.
    Proof    Before over after is Pr[t]/Pr[t | event], a ratio of means of numbers within e^{±ε} of each other. The
    other way, hold one database with probability a and another with 1 − a: the ratio for the second is 1 − a + a·r,
    with r that of their answers, and tends to r as a tends to 1 (Dwork and others 2006, Claim 3).
    Tested   tests/semantics/test_simulation.py::test_an_informed_adversary_gets_from_a_half_to_three_quarters
             tests/semantics/test_simulation.py::test_the_ratio_tends_to_three_as_the_belief_is_extreme
             tests/semantics/test_simulation.py::test_no_event_moves_by_more_than_the_loss
    """
    game: Game[World, Outcome] = Game(prior, distribution, lambda world, _: world, 0)
    before = sum((chance for world, chance in prior.items() if event(world)), Fraction(0))
    if not before:
        raise ParameterError(
            "HB179",
            "The event has prior probability 0, so no answer can change its odds.",
            "Choose an event with positive probability.",
        )
    low: Fraction | float = Fraction(0)
    high: Fraction | float = Fraction(0)
    for transcript in game.transcripts():
        after = game.belief(transcript, event)
        if not after[1]:
            return math.inf, math.inf
        ends = (reals.log(after[1] / before), reals.log(after[0] / before) if after[0] else (-math.inf, -math.inf))
        high = max(high, ends[0][1], -ends[1][0])
        low = max(low, reals.log(after[0] / before)[0] if after[0] else 0, -ends[0][1])
    return low, high


def loss_between(
    distribution: Callable[[Rows[Row]], FiniteDistribution[Outcome]],
    domain: Sequence[Row],
    *,
    people: int,
    differing: int,
) -> LossBounds:
    """Enclose the privacy loss over all pairs of databases that differ in at most `differing` rows."""
    listed = databases(domain, people=people)
    near = [(x, y) for x, y in combinations(listed, 2) if sum(a != b for a, b in zip(x, y, strict=True)) <= differing]
    return worst_over(near, distribution, worst_ratio).bounds
