"""The surprised adversary, and the variance that the paper prints for it."""

import math
from fractions import Fraction

import mpmath
import pytest

from hubbub.accounting import gaussian
from hubbub.core.finite import FiniteDistribution
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.games import Game, with_default
from hubbub.semantics.reality_oblivious import Surprise, surprise

Rows = tuple[int, ...]


def printed(epsilon: str, delta: str) -> Fraction:
    """ln(1/δ)/ε², the variance of the paper's appendix."""
    return Fraction(str(mpmath.log(1 / mpmath.mpf(delta)) / mpmath.mpf(epsilon) ** 2))


@pytest.mark.row(21)
def test_a_hundred_ones_surprise_whoever_believed_in_zeros() -> None:
    """n = 100, ε = .5, δ = 10⁻⁶ with the paper's variance: the ratio is .165, and ½ becomes .858."""
    found = Surprise(100, printed("0.5", "1e-6"))
    assert round(float(found.ratio[1]), 3) == 0.165
    assert round(float(found.posterior[0]), 3) == 0.858
    assert round(float(found.difference[0]), 3) == 0.358
    variance = float(found.variance)
    assert float(found.ratio[0]) == pytest.approx(math.exp((-200 + 1) / (2 * variance)), rel=1e-12)
    # with the noise that (½, 10⁻⁶) really needs, the surprise stays, and grows with n
    exact = [surprise(people=n, epsilon=Fraction(1, 2), delta=Fraction(1, 10**6)) for n in (100, 1000, 10**4)]
    assert all(each.variance == exact[0].variance for each in exact)
    assert float(exact[0].posterior[0]) == pytest.approx(1 / (1 + math.exp(-199 / (2 * float(exact[0].variance)))))
    assert exact[0].posterior[0] < exact[1].posterior[0] < exact[2].posterior[0]
    assert exact[2].posterior[0] > 1 - Fraction(1, 10**20)


@pytest.mark.row(21)
def test_the_printed_variance_is_not_enough_at_one() -> None:
    """ln(1/δ)/ε² at (1, 10⁻⁵) has a δ of 4.3·10⁻⁵; at ε = .1 it is enough. The exact calibration always is."""
    at_one = gaussian.profile(epsilon=Fraction(1), sensitivity_squared=1, variance=printed("1", "1e-5"))
    assert float(at_one.low) == pytest.approx(4.3e-5, rel=0.01)
    at_tenth = gaussian.profile(epsilon=Fraction(1, 10), sensitivity_squared=1, variance=printed("0.1", "1e-5"))
    assert float(at_tenth.high) < 1e-5
    exact = surprise(people=10, epsilon=Fraction(1), delta=Fraction(1, 10**5)).variance
    enough = gaussian.profile(epsilon=Fraction(1), sensitivity_squared=1, variance=exact)
    assert enough.high <= Fraction(1, 10**5)


@pytest.mark.row(21)
def test_pure_privacy_bounds_even_the_surprised() -> None:
    """The same adversary against Laplace noise, the truth as far off as can be: ½ becomes e^ε/(1 + e^ε) at most."""
    noise = Laplace.from_epsilon(sensitivity=1, epsilon="0.5")

    def distribution(rows: Rows) -> FiniteDistribution[int]:
        return noise.distribution(sum(rows), (-5, 12))

    prior: dict[Rows, Fraction] = {(0,) * 10: Fraction(1, 2), (1, *(0,) * 9): Fraction(1, 2)}
    game: Game[Rows, int] = Game(prior, distribution, with_default(0), 10)
    found = max(game.difference(answer, 0)[1] for answer in range(-5, 13))
    assert float(found) == pytest.approx(math.tanh(0.5 / 2) / 2, abs=1e-12)
    assert found < math.tanh(0.5 / 4)  # the bound for every belief over these two
