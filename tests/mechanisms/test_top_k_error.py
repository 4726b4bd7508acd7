"""The error of a top-k holds for all its choices at once."""

from fractions import Fraction

import pytest

from hubbub.core.unit import Relation
from hubbub.mechanisms.exponential import regret
from hubbub.mechanisms.top_k import TopK

CANDIDATES = 8


def chance_of_the_best(rule: TopK, below: int) -> Fraction:
    """Give the probability of choosing both of the two best candidates, all others being far below."""
    distribution = rule.distribution([0, 0, *[-below] * (CANDIDATES - 2)])
    return sum((distribution.mass[pair][1] for pair in ((0, 1), (1, 0))), Fraction(0))


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)])
def test_all_choices_are_within_the_error_together(level: Fraction) -> None:
    rule = TopK.from_epsilon(
        k=2, candidates=CANDIDATES, sensitivity=1, monotone=True, relation=Relation.ADD_REMOVE, epsilon=Fraction(1, 10)
    )
    error = int(rule.error(level))
    # whoever is one step beyond the error is chosen, first or second, no oftener than is said
    assert chance_of_the_best(rule, error + 1) >= level
    # each choice by itself at that level is not enough: both at once fail more often
    alone = regret(rule.one.rate, CANDIDATES, level)
    assert chance_of_the_best(rule, alone + 1) < level
    assert error > alone
