"""Probabilities of a finite distribution are refused where they cannot add up to 1, however little is missing."""

from contextlib import nullcontext
from fractions import Fraction

import pytest

from hubbub.core.finite import FiniteDistribution

TINY = Fraction(1, 10**100)
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@pytest.mark.parametrize(
    ("masses", "tail", "fits"),
    [
        ([(HALF, HALF), (HALF, HALF)], 0, True),
        ([(THIRD, THIRD)] * 3, 0, True),
        ([(HALF, HALF), (HALF + TINY, HALF + TINY)], 0, False),
        ([(HALF, HALF), (HALF - TINY, HALF - TINY)], 0, False),
        ([(HALF, HALF), (HALF - TINY, HALF - TINY)], TINY, True),
        ([(HALF, HALF), (HALF - TINY, HALF + TINY)], 0, True),
        ([(THIRD, HALF)] * 2, 0, True),
        ([(THIRD, THIRD)] * 4, 0, False),
        ([(THIRD, THIRD)] * 2, 0, False),
        ([], 0, False),
    ],
)
def test_probabilities_add_up_to_1_exactly(
    masses: list[tuple[Fraction, Fraction]], tail: Fraction, *, fits: bool
) -> None:
    """Also where the sum misses 1 by far less than the grid on which sums are compared first."""
    with nullcontext() if fits else pytest.raises(ValueError, match="add up to 1"):
        FiniteDistribution(dict(enumerate(masses)), Fraction(tail))
