"""The worst yes-or-no question, against exact games for every question."""

from fractions import Fraction
from itertools import product

import pytest

from hubbub.core.finite import exact_distribution
from hubbub.errors import ParameterError
from hubbub.semantics.games import Game, with_default
from hubbub.semantics.worst_question import worst_question

Rows = tuple[int, ...]
ODDS = Fraction(3)  # of the true answer; ε = ln 3


def moved(belief: dict[Rows, Fraction], question: frozenset[Rows], person: int) -> Fraction:
    """The larger difference of the posteriors after yes and after no, by exact games."""
    game: Game[Rows, bool] = Game(
        belief,
        lambda rows: exact_distribution({rows in question: ODDS / (1 + ODDS), rows not in question: 1 / (1 + ODDS)}),
        with_default(0),
        2,
    )
    return max(game.difference(answer, person)[0] for answer in (True, False))


@pytest.mark.row(10)
@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 2, 3, 4), (0, 0, 1, 1), (9, 1, 0, 5)])
def test_no_question_changes_the_belief_more(weights: tuple[int, ...]) -> None:
    worlds = list(product((0, 1), repeat=2))
    belief = {rows: Fraction(weight, sum(weights)) for rows, weight in zip(worlds, weights, strict=True)}
    for person in (0, 1):
        found = worst_question(belief, with_default(0), person=person, epsilon=Fraction("1.0986122887"))
        sets = [
            frozenset(rows for rows, yes in zip(worlds, chosen, strict=True) if yes)
            for chosen in product((0, 1), repeat=4)
        ]
        most = max(moved(belief, each, person) for each in sets)
        assert float(moved(belief, found, person)) == pytest.approx(float(most), abs=1e-9)


def test_too_many_databases_are_refused() -> None:
    with pytest.raises(ParameterError, match="HB694"):
        worst_question(dict.fromkeys(range(13), Fraction(1, 13)), lambda x, _: x, person=0, epsilon=Fraction(1))
