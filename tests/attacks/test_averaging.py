"""Averaging attack: fresh noise cancels, replayed answers do not."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks.averaging import averaged
from hubbub.attacks.base import AttackStudy
from hubbub.attacks.bits import share
from hubbub.core.numbers import epsilon as accepted

Run = Callable[..., AttackStudy]


@pytest.mark.row(71)
def test_averaging_wins_over_fresh_noise_and_a_ledger_is_its_cure(run: Run) -> None:
    """3,000 answers of scale 10 have a mean of deviation .26: each of 100 guesses is correct with probability 97%.

    Fewer than 85 correct guesses have probability below 1e-7; exceeding hubbub's ceiling by chance, below 1e-8.
    """
    study = run("averaging", epsilons=("0.1",), times=3000, trials=100)
    fresh, replayed, shared = study.findings
    assert fresh.score.right >= 85
    assert fresh.ceiling is None  # ε per answer is no guarantee for 3,000 answers
    assert replayed.facts == {"repetitions": 20, "distinct answers": 1, "fresh answer": "refused"}
    assert shared.facts["ε per answer"] == pytest.approx(0.1 / 3000)
    assert replayed.held
    assert shared.held
    assert fresh.score.low > shared.score.high


def test_success_against_fresh_noise_grows_with_the_number_of_answers(run: Run) -> None:
    """One answer suffices in 52%, 10,000 in 99.9%: with 200 guesses each, overlap has probability below 1e-9."""
    few, many = (run("averaging", epsilons=("0.1",), times=times, trials=200).findings[0] for times in (1, 10_000))
    assert few.score.high < many.score.low


@pytest.mark.parametrize(("epsilon", "times"), [("0.1", 7), ("1", 999), ("1/3", 13), ("5", 10**6)])
def test_a_piece_of_epsilon_is_one_that_can_be_charged_and_all_pieces_fit(epsilon: str, times: int) -> None:
    part = share(Fraction(epsilon), times)
    assert accepted(part) == part
    assert times * part <= Fraction(epsilon)


def test_the_mean_decides() -> None:
    answers = np.array([[10, 12], [10, 10], [9, 10]])
    assert averaged(answers, 10, np.random.default_rng(0)).tolist() == [True, False, False]
