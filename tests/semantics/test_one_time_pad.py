"""The one-time pad, against exact enumeration of a small release."""

from fractions import Fraction

import pytest

from hubbub.errors import ParameterError
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.one_time_pad import guess_rates


@pytest.mark.row(107)
@pytest.mark.parametrize(("people", "width"), [(7, 2), (9, 5), (6, 3)])
def test_the_rate_is_that_of_exact_enumeration(people: int, width: int) -> None:
    """All counts, both bits, every answer: the best guess given the answer and the encrypted bit."""
    noise = Laplace.from_epsilon(sensitivity=1, epsilon="0.7")
    chances: dict[tuple[int, int], list[Fraction]] = {}
    blind: dict[int, list[Fraction]] = {}
    share = Fraction(1, 2 * (people + 1))
    for count in range(people + 1):
        for secret in (0, 1):
            cipher = secret ^ (count // width % 2)
            blind.setdefault(cipher, [Fraction(0), Fraction(0)])[secret] += share
            for answer, (mass, _) in noise.distribution(count, (-40, people + 40)).mass.items():
                chances.setdefault((answer, cipher), [Fraction(0), Fraction(0)])[secret] += share * mass
    before, after = guess_rates(people=people, width=width, epsilon=Fraction("0.7"))
    assert before == pytest.approx(float(sum(max(pair) for pair in blind.values())), abs=1e-12)
    assert after == pytest.approx(float(sum(max(pair) for pair in chances.values())), abs=1e-9)
    assert before < after < 1


def test_nobody_to_count_is_refused() -> None:
    with pytest.raises(ParameterError, match="HB103"):
        guess_rates(people=0, width=1, epsilon=Fraction(1))
