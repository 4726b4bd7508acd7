"""The screen on many equal answers, against an exact sum over binomial outcomes and against the papers' formulas."""

import math
from fractions import Fraction

import mpmath
import pytest

from hubbub.attacks.screens import SCREENS


def shown(**given: str) -> dict[str, float]:
    return {row[0]: float(row[1]) for row in SCREENS["many"].read(given).rows}


def hockey_stick(epsilon: float, count: int, together: float) -> float:
    """δ of `count` randomized responses at a total ε, summed over the number of true answers."""
    keep = mpmath.e**epsilon / (1 + mpmath.e**epsilon)
    terms = (
        mpmath.binomial(count, wrong)
        * keep ** (count - wrong)
        * (1 - keep) ** wrong
        * max(mpmath.mpf(0), 1 - mpmath.e ** (together - (count - 2 * wrong) * epsilon))
        for wrong in range(count + 1)
    )
    return float(mpmath.fsum(terms))


@pytest.mark.row(36)
def test_a_hundred_answers_cost_what_the_theorems_say() -> None:
    rows = shown()
    basic, advanced, renyi, optimal = rows.values()
    assert basic == 10
    formula = 0.1 * math.sqrt(2 * 100 * math.log(1e6)) + 100 * 0.1 * math.expm1(0.1)
    assert formula <= advanced <= formula * 1.001
    assert optimal < renyi < advanced
    # the smallest ε whose exact δ is at most 10⁻⁶: it is met, and a little less is not enough
    assert hockey_stick(0.1, 100, optimal) <= 1e-6 < hockey_stick(0.1, 100, optimal - 0.01)


@pytest.mark.parametrize(("epsilon", "count"), [("1", "3"), ("0.5", "20"), ("2", "1")])
def test_no_theorem_is_above_the_sum_or_below_the_truth(epsilon: str, count: str) -> None:
    rows = shown(epsilon=epsilon, count=count, delta="1e-3")
    total = float(Fraction(epsilon) * int(count))
    assert all(value <= total * 1.001 for value in rows.values())
    assert all(hockey_stick(float(epsilon), int(count), value) <= 1e-3 for value in rows.values())


def test_disjoint_groups_and_halves_are_in_the_sentences() -> None:
    sentences = SCREENS["many"].read({"epsilon": "0.5"}).sentences
    assert "they lose 0.5 if a neighbor has one person more or less, and 1 if one person is replaced" in sentences[2]
    assert "can spend 0.25, 0.125, 0.0625, …" in sentences[3]
