"""Reconstruction attacks: they succeed on nearly exact sums and stay below the ceiling against hubbub."""

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
    # not only the nearest: every database within the noise of all answers
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
    """Exact: the best guess of three bits from randomized response on each bit, and on their parity."""
    for epsilon in (0.1, 1.0, 3.0):
        p = 1 / (1 + exp(-epsilon))
        coins = [sum(comb(3, k) * p**k * (1 - p) ** (3 - k) for k in range(least, 4)) for least in range(4)]
        parity = np.array([[p if y == sum(x) % 2 else 1 - p for y in (0, 1)] for x in product((0, 1), repeat=3)])
        truth = np.array(list(product((0, 1), repeat=3)))
        bitwise = np.where(truth[:, None] == truth[None], p, 1 - p).prod(axis=2)
        for distribution in (parity, bitwise):
            for least in range(4):
                # the best strategy for "at least `least` correct": for each output, the best of all eight guesses
                hits = np.array([((truth == guess).sum(axis=1) >= least) for guess in truth])
                assert (hits @ distribution / 8).max(axis=0).sum() <= coins[least] + 1e-12


def test_subsets_asked_of_hubbub_cost_the_whole_price_and_no_more() -> None:
    """False alarm below 1e-8: six deviations of the mean of 130 samples of |Laplace|."""
    generator = np.random.default_rng(1)
    (secret, *_) = secrets = bits.people(40, 3, generator)
    queries = subsets(40, 130, generator)
    table = AttackTable("people", {"person": np.arange(40), "secret": secret})
    with open_protected(table, epsilon=F(2)) as session:
        answers = bits.ask_hubbub(session, queries, epsilon=F(2))
        assert session.budget()[0].largest < F(1, 1000)
    # Laplace noise of scale 130/2: mean |noise| is 65, its standard deviation over 130 samples is 5.7
    for answer, truth in zip(
        [answers, *bits.hubbub_answers(queries, secrets, epsilon=F(2))], [secret, *secrets], strict=True
    ):
        assert abs(np.abs(answer - queries.ask(truth.astype(np.float64))).mean() - 65) < 6 * 5.7


@pytest.mark.row(67)
@pytest.mark.parametrize("decoder", ["least squares", "linear program", "least absolute"])
def test_reconstruction_wins_on_sums_and_stays_under_the_ceiling_on_hubbub(decoder: str) -> None:
    """`held` has a false-alarm rate of 1e-6; the planted error is below."""
    result = reconstruction.study(
        None,
        epsilons=[F(1, 10), F(4)],
        generator=np.random.default_rng(5),
        people=16,
        decoder=decoder,
        databases=4,
    )
    exact, near, *rest = result.findings
    assert exact.score.share == 1
    assert near.score.share >= 0.9
    ours = [each for each in rest if each.epsilon is not None]
    assert [each.epsilon for each in ours] == [F(1, 10), F(1, 10), F(4), F(4)]
    for each in ours:
        assert each.ceiling == ceiling(each.epsilon or F(0))
        assert each.held
    assert "Exact sums: from 8 sums per person over 16 people" in result.words[0]
    assert "100%" in result.words[0]


@pytest.mark.row(66)
def test_exhaustive_study_wins_on_sums_and_stays_under_the_ceiling_on_hubbub() -> None:
    result = exhaustive.study(None, epsilons=[F(1, 10), F(1)], generator=np.random.default_rng(5), people=7)
    exact, near, *ours = result.findings
    assert exact.score.share == 1
    assert near.facts["maximum wrong bits"] in range(5)
    assert exact.score.trials == 7 * 40
    for each in ours:
        assert each.held
        assert float(each.facts["noise"]) > 20


def test_a_server_that_forgets_what_it_answered_is_caught() -> None:
    """The planted error: every sum gets noise for ε = 1, as if it were the only query."""
    generator = np.random.default_rng(6)
    secrets = bits.people(64, 2, generator)
    queries = subsets(64, 512, generator)
    noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
    guesses = [
        rounded(least_squares(queries, noise.sample(sums.astype(np.int64), system()).astype(np.float64)))
        for sums in (queries.ask(each.astype(np.float64)) for each in secrets)
    ]
    assert not bits.hubbub_finding(secrets, guesses, F(1), "forgetful").held


def test_settings_that_cannot_be_are_refused_with_a_remedy() -> None:
    generator = np.random.default_rng(5)
    for wrong in ({"people": 1000}, {"kind": "odd"}, {"decoder": "magic"}, {"noise": -1.0}, {"questions": 0}):
        with pytest.raises((AttackError, ParameterError)) as refusal:
            reconstruction.study(None, epsilons=[F(1)], generator=generator, **wrong)
        assert refusal.value.remedy
