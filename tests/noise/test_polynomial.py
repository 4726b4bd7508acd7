"""Rounded polynomial noise is exact: every probability is rational, and words that do not decide are refined."""

from fractions import Fraction

import numpy as np
import pytest

import hubbub.noise.polynomial as polynomial_module
from hubbub.noise.polynomial import integer_root, polynomial, tail
from hubbub.noise.source import ReplaySource

WORD = 1 << 64


def magnitude(word: int, scale: Fraction, power: int, *more: int) -> int:
    return polynomial(scale=scale, power=power, source=ReplaySource([0, word, *more]))


@pytest.mark.parametrize(("scale", "power"), [(Fraction(1, 2), 2), (Fraction(7, 3), 4), (Fraction(40), 3)])
def test_the_probability_of_each_integer_is_exact(scale: Fraction, power: int) -> None:
    """The last word that gives at least m, and the first that gives less, enclose its probability within 2⁻⁶⁴."""
    for least in (1, 2, 5, 30):
        low, high = 1, WORD - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if magnitude(middle, scale, power, 5) >= least else (low, middle)
        assert Fraction(low, WORD) <= (scale / (scale + least - Fraction(1, 2))) ** power <= Fraction(high + 1, WORD)
        assert tail(least, scale, power) == (scale / (scale + least - Fraction(1, 2))) ** power


def test_half_a_step_less_would_be_noticed() -> None:
    word = int(Fraction(WORD) * tail(3, Fraction(2), 4))
    assert magnitude(word - 1, Fraction(2), 4) == 3
    assert magnitude(word + 1, Fraction(2), 4) == 2


def test_words_that_do_not_decide_are_refined() -> None:
    exact = Fraction(4, 5) ** 4  # Pr[at least 1] for scale 2
    first, rest = divmod(exact * WORD, 1)
    second = int(rest * WORD)
    assert magnitude(int(first), Fraction(2), 4, second - 1) == 1
    assert magnitude(int(first), Fraction(2), 4, second + 1) == 0
    assert magnitude(0, Fraction(1), 4, 1 << 60) > 60_000


def test_both_signs_are_equally_likely() -> None:
    word = int(Fraction(WORD) * Fraction(1, 100))
    drawn = [polynomial(scale=Fraction(5), power=4, source=ReplaySource([bit, word])) for bit in (0, 1)]
    assert drawn[0] == -drawn[1] > 0


def test_roots_are_those_of_integers() -> None:
    some = np.random.default_rng(1)
    for power in (1, 2, 3, 4, 7):
        for root in (1, 2, 10**9 + 7, *map(int, some.integers(1, 10**12, 20))):
            assert integer_root(root**power, power) == root
            assert integer_root(root**power - 1, power) == root - 1


@pytest.mark.parametrize("power", [1, 2, 5, 13, 64])
def test_a_root_takes_as_many_steps_for_every_value(power: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale of the noise may be a secret, and steps take time."""
    newton, steps, counts = polynomial_module._newton, [0], set()

    def counted(root: int, value: int, power: int) -> int:
        steps[0] += 1
        return newton(root, value, power)

    monkeypatch.setattr(polynomial_module, "_newton", counted)
    for bits in range(2, 900, 7):
        for value in (1 << bits, (1 << bits) - 1, 3 ** (bits // 2 + 1)):
            steps[0] = 0
            root = integer_root(value, power)
            assert root**power <= value < (root + 1) ** power
            counts.add(steps[0])
    assert len(counts) == 1
