"""The yes-or-no question that changes a belief most, among all questions about a small database."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import exp
from typing import TypeVar

from hubbub.errors import ParameterError

World = TypeVar("World")

_MOST = 12


def worst_question(
    belief: Mapping[World, Fraction],
    without: Callable[[World, int], World],
    *,
    person: int,
    epsilon: Fraction,
) -> frozenset[World]:
    """Return the databases for which the answer is yes.

    Theorem (Worst question). Randomized response at ε on any yes-or-no question about the data is ε-private, and among
    these mechanisms none has posteriors in game 0 and in the game without a person that differ more, for this belief.
    Proof    A person's data changes at most the one bit. The questions are all tried, up to exchanging yes and no.
    Here     the search is in floating point; what is shown about the question is computed exactly.
    Tested   tests/semantics/test_worst_question.py::test_no_question_changes_the_belief_more
    """
    worlds = list(belief)
    if not 1 <= len(worlds) <= _MOST:
        raise ParameterError("HB694", f"There are more than {_MOST} databases.", "Use fewer people or values.")
    places = {world: place for place, world in enumerate(worlds)}
    others = [places[without(world, person)] for world in worlds]
    prior = [float(belief[world]) for world in worlds]
    odds = exp(-float(epsilon))

    def difference(question: int) -> float:
        most = 0.0
        for answer in (0, 1):
            likely = [1.0 if question >> place & 1 == answer else odds for place in range(len(worlds))]
            real = [p * each for p, each in zip(prior, likely, strict=True)]
            blank = [p * likely[other] for p, other in zip(prior, others, strict=True)]
            one, two = sum(real), sum(blank)
            most = max(most, sum(abs(a / one - b / two) for a, b in zip(real, blank, strict=True)) / 2)
        return most

    # the last database is always a no: exchanging yes and no asks the same
    best = max(range(1, 1 << (len(worlds) - 1)), key=difference, default=1)
    return frozenset(world for world, place in places.items() if best >> place & 1)
