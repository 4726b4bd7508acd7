"""Releases averaged: fresh noise wears off, a continual release does not."""

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest

from hubbub.attacks import rereleases
from hubbub.attacks.base import AttackFinding, ceiling
from hubbub.attacks.game import flip, score_guesses
from hubbub.attacks.rereleases import averaged, continual, from_blocks
from hubbub.errors import AttackError, ParameterError
from hubbub.mechanisms.laplace import Laplace

F = Fraction


@pytest.mark.row(94)
def test_fresh_noise_wears_off_and_that_of_a_continual_release_does_not() -> None:
    """False alarm below 1e-8: deviations of 4,000 victims are known to 1.5 % each, and 10 % are allowed."""
    found = rereleases.study(None, epsilons=[F(1, 2), F(2)], generator=np.random.default_rng(1), trials=4000)
    one, many, moved, worn, kept, *ours = found.findings
    noise = sqrt(2 * exp(-0.5)) / (1 - exp(-0.5))
    assert float(one.facts["noise"]) == pytest.approx(noise, rel=0.1)
    assert float(many.facts["noise"]) == pytest.approx(noise / 8, rel=0.1)
    assert many.score.share > one.score.share + 0.2
    # and of moved points: hardly anybody at first, nearly everybody after 64 times, unless they are kept in place
    assert moved.score.share < 0.1 < 0.9 < worn.score.share
    assert kept.score.share < 0.1
    assert [each.target for each in ours[:2]] == [
        "hubbub's continual release, averaged",
        "hubbub's continual release, best guess",
    ]
    for each in ours:
        assert each.held
        # 7 levels share ε, and averaging 64 answers leaves more than one block's noise divided by 2
        assert float(each.facts["noise"]) > sqrt(2) * 7 / float(each.epsilon or 1) / 2


@pytest.mark.row(94)
def test_fresh_noise_that_is_called_a_continual_release_is_caught() -> None:
    """The planted error: 64 releases at ε = 1/2 each, held against a promise of ε = 1/2 in all."""
    generator = np.random.default_rng(2)
    secrets = flip(1000, generator)
    drawn = secrets + generator.laplace(0, 2, (64, 1000))
    assert not AttackFinding(
        "planted", F(1, 2), score_guesses(averaged(drawn, generator), secrets), ceiling(F(1, 2))
    ).held


def test_blocks_are_all_that_a_stream_tells_of_its_first_arrival() -> None:
    secrets = flip(2000, np.random.default_rng(3))
    told = continual(secrets, 16, F(40))
    assert told.shape == (16, 2000)
    # with so little noise every answer is right
    assert (np.rint(told[-1]) == secrets).mean() > 0.9
    generator = np.random.default_rng(4)
    best, plain = (
        (guess(continual(secrets, 16, F(3)), generator) == secrets).mean() for guess in (from_blocks, averaged)
    )
    assert best > plain


def test_the_noise_of_the_study_is_that_of_a_bought_stream() -> None:
    told = continual(np.zeros(20_000, dtype=np.bool_), 8, F(1))
    # time 8 is one block; 4 levels share ε = 1
    expected = float(Laplace.from_epsilon(sensitivity=4, epsilon=1).variance[1])
    assert np.var(told[7]) == pytest.approx(expected, rel=0.15)


def test_settings_that_cannot_be_are_refused() -> None:
    for wrong in ({"releases": 1}, {"each": -1.0}, {"each": float("nan")}, {"trials": 0}):
        with pytest.raises((AttackError, ParameterError)) as refusal:
            rereleases.study(None, epsilons=[F(1)], generator=np.random.default_rng(1), **wrong)
        assert refusal.value.remedy
