"""Reconstruction: it wins where sums are nearly exact, and stays under the ceiling against hubbub."""

from fractions import Fraction
from itertools import product
from math import comb, exp

import numpy as np
import pytest

from hubbub.attacks import bits, exhaustive, reconstruction
from hubbub.attacks.base import ceiling
from hubbub.attacks.decoding import least_squares, rounded, subsets
from hubbub.attacks.exhaustive import every_subset, reconstruct, worst_errors
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import open_protected
from hubbub.errors import AttackError, ParameterError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

F = Fraction


@pytest.mark.row(66)
@pytest.mark.parametrize("seed", range(3))
def test_exhaustive_search_is_wrong_in_at_most_four_times_the_noise(seed: int) -> None:
    generator = np.random.default_rng(seed)
    secret = generator.integers(0, 2, 10)
    answers = every_subset(10).ask(secret.astype(np.float64)) + generator.uniform(-1, 1, 1024)
    assert (reconstruct(answers, 10) != secret).sum() == 0
    # not the nearest only: every database within the noise of all the answers
    for fitting in np.flatnonzero(worst_errors(answers, 10) <= 1):
        assert ((fitting >> np.arange(10) & 1) != secret).sum() <= 4


@pytest.mark.row(66)
def test_four_times_the_noise_is_attained() -> None:
    secret, other = (np.array([1] * 2 + [0] * 2 + [1] * 6), np.array([0] * 2 + [1] * 2 + [1] * 6))
    sums = every_subset(10)
    answers = (sums.ask(secret.astype(np.float64)) + sums.ask(other.astype(np.float64))) / 2
    worst = worst_errors(answers, 10)
    names = [int(each @ (1 << np.arange(10))) for each in (secret, other)]
    assert [worst[name] for name in names] == [1, 1]
    assert (secret != other).sum() == 4 * 1


@pytest.mark.row(66)
def test_noise_of_a_401st_part_leaves_less_than_a_hundredth_unknown() -> None:
    assert F(4, 401) < F(1, 100)
    generator = np.random.default_rng(3)
    secret = generator.integers(0, 2, 12)
    answers = every_subset(12).ask(secret.astype(np.float64)) + generator.uniform(-12 / 401, 12 / 401, 4096)
    assert (reconstruct(answers, 12) == secret).all()


def test_right_bits_are_dominated_by_coins_of_the_ceiling() -> None:
    """Exactly: three bits, each through randomized response, guessed best; and a mechanism that tells the parity."""
    for epsilon in (0.1, 1.0, 3.0):
        told = 1 / (1 + exp(-epsilon))
        coins = [sum(comb(3, k) * told**k * (1 - told) ** (3 - k) for k in range(least, 4)) for least in range(4)]
        apart = np.array([[told if y == sum(x) % 2 else 1 - told for y in (0, 1)] for x in product((0, 1), repeat=3)])
        truth = np.array(list(product((0, 1), repeat=3)))
        alone = np.where(truth[:, None] == truth[None], told, 1 - told).prod(axis=2)
        for distribution in (apart, alone):
            for least in range(4):
                # the best guesser for "at least so many right": for each output the best of all eight guesses
                hits = np.array([((truth == guess).sum(axis=1) >= least) for guess in truth])
                assert (hits @ distribution / 8).max(axis=0).sum() <= coins[least] + 1e-12


def test_subsets_asked_of_hubbub_cost_the_whole_price_and_no_more() -> None:
    """False alarm below 1e-8: six deviations of the mean of 130 draws of |Laplace|."""
    generator = np.random.default_rng(1)
    (secret, *_) = secrets = bits.people(40, 3, generator)
    asked = subsets(40, 130, generator)
    made = AttackTable("people", {"person": np.arange(40), "secret": secret})
    with open_protected(made, epsilon=F(2)) as session:
        answers = bits.ask_hubbub(session, asked, epsilon=F(2))
        assert session.budget()[0].largest < F(1, 1000)
    # Laplace noise of scale 130/2: mean |noise| is 65, its deviation over 130 draws 5.7
    for told, truth in zip(
        [answers, *bits.hubbub_answers(asked, secrets, epsilon=F(2))], [secret, *secrets], strict=True
    ):
        assert abs(np.abs(told - asked.ask(truth.astype(np.float64))).mean() - 65) < 6 * 5.7


@pytest.mark.row(67)
@pytest.mark.parametrize("decoder", ["least squares", "linear program", "least absolute"])
def test_reconstruction_wins_on_sums_and_stays_under_the_ceiling_on_hubbub(decoder: str) -> None:
    """A finding is held but for a false alarm of 1e-6; the planted error is below."""
    found = reconstruction.study(
        None,
        epsilons=[F(1, 10), F(4)],
        generator=np.random.default_rng(5),
        people=16,
        decoder=decoder,
        databases=4,
    )
    exact, near, *rest = found.findings
    assert exact.score.share == 1
    assert near.score.share >= 0.9
    ours = [each for each in rest if each.epsilon is not None]
    assert [each.epsilon for each in ours] == [F(1, 10), F(1, 10), F(4), F(4)]
    for each in ours:
        assert each.ceiling == ceiling(each.epsilon or F(0))
        assert each.held
    assert "Exact sums: from 8 sums per person over 16 people" in found.words[0]
    assert "100%" in found.words[0]


@pytest.mark.row(66)
def test_exhaustive_study_wins_on_sums_and_stays_under_the_ceiling_on_hubbub() -> None:
    found = exhaustive.study(None, epsilons=[F(1, 10), F(1)], generator=np.random.default_rng(5), people=7)
    exact, near, *ours = found.findings
    assert exact.score.share == 1
    assert near.facts["maximum wrong bits"] in range(5)
    assert exact.score.trials == 7 * 40
    for each in ours:
        assert each.held
        assert float(each.facts["noise"]) > 20


def test_a_server_that_forgets_what_it_answered_is_caught() -> None:
    """The planted error: every sum gets noise for ε = 1, as if no other had been asked."""
    generator = np.random.default_rng(6)
    secrets = bits.people(64, 2, generator)
    asked = subsets(64, 512, generator)
    noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
    guesses = [
        rounded(least_squares(asked, noise.sample(sums.astype(np.int64), system()).astype(np.float64)))
        for sums in (asked.ask(each.astype(np.float64)) for each in secrets)
    ]
    assert not bits.hubbub_finding(secrets, guesses, F(1), "forgetful").held


def test_settings_that_cannot_be_are_refused_with_a_remedy() -> None:
    generator = np.random.default_rng(5)
    for wrong in ({"people": 1000}, {"kind": "odd"}, {"decoder": "magic"}, {"noise": -1.0}, {"questions": 0}):
        with pytest.raises((AttackError, ParameterError)) as refusal:
            reconstruction.study(None, epsilons=[F(1)], generator=generator, **wrong)
        assert refusal.value.remedy
