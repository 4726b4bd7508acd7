"""Floating-point attack on the low-order bits of noisy answers."""

from collections.abc import Callable
from fractions import Fraction
from math import exp

import numpy as np
import pytest

from hubbub.attacks.base import AttackFinding, AttackStudy, ceiling
from hubbub.attacks.floats import low_bits, reachable, textbook
from hubbub.attacks.game import flip, score_guesses
from hubbub.core import binomial

Run = Callable[..., AttackStudy]


@pytest.mark.row(25)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_textbook_noise_tells_more_than_its_distribution_allows(
    epsilon: Fraction, generator: np.random.Generator
) -> None:
    """True Laplace noise lets the best guess be right in 1 − ½e^(−ε/2), which is below the ceiling. Seeded, so always.

    Up to ε = 1 even the ceiling is passed: the promise is broken.
    """
    coins = flip(4000, generator)
    outputs = textbook(coins.astype(np.float64), float(1 / epsilon), generator)
    score = score_guesses(low_bits(outputs, float(1 / epsilon), generator), coins)
    assert binomial.tail(score.right, 4000, 1 - exp(-epsilon / 2) / 2) < 1e-6
    assert AttackFinding("textbook", epsilon, score, ceiling(epsilon)).held == (epsilon > 1)


def test_every_output_is_reached_from_its_own_value(generator: np.random.Generator) -> None:
    for scale in (0.25, 1.0, 10.0):
        for value in (0.0, 1.0):
            outputs = textbook(np.full(2000, value), scale, generator)
            assert reachable(outputs, value, scale).all()
            assert not reachable(outputs, 1 - value, scale).all()


@pytest.mark.row(25)
def test_the_bits_of_hubbubs_sums_tell_no_more_than_their_size(run: Run) -> None:
    """Scores with a ceiling are above it by luck with a chance below 1e-7."""
    study = run("floats", trials=3000)
    assert all(each.held for each in study.findings)
    naive = [each for each in study.findings if each.target.startswith("textbook")]
    assert all(float(each.facts["outputs possible for only one value"]) > 0.5 for each in naive)
