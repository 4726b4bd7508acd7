"""Timing attack. No speed is asserted: the clock that counts steps is exact, and the other clock is only run."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.timing import Exact, Stepwise, learned, timed
from hubbub.core import binomial
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

Run = Callable[..., AttackStudy]


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(5)])
def test_hubbubs_noise_takes_the_same_words_whatever_it_is(epsilon: Fraction) -> None:
    """All 2,000 samples, except one in 2⁶⁴ that needs another word."""
    sampler = Exact(Laplace.from_epsilon(sensitivity=1, epsilon=epsilon), system())
    work = []
    for _ in range(2000):
        before = sampler.steps
        sampler.sample(100)
        work.append(sampler.steps - before)
    assert len(set(work)) == 1
    assert work[0] > 0


def test_the_naive_sampler_has_the_right_law_and_the_wrong_time() -> None:
    """The number of zeros among 5,000 samples at ε = 1 is binomial with (1−q)/(1+q): false alarm below 1e-6."""
    sampler = Stepwise(Fraction(1))
    noise, work = np.empty(5000, dtype=np.int64), np.empty(5000)
    for index in range(5000):
        before = sampler.steps
        noise[index] = sampler.sample(0)
        work[index] = sampler.steps - before
    assert np.array_equal(work, np.abs(noise) + 1)
    q = np.exp(-1.0)
    low, high = binomial.interval(int(np.count_nonzero(noise == 0)), 5000, 1 - 1e-7)
    assert low <= (1 - q) / (1 + q) <= high
    low, high = binomial.interval(int(np.count_nonzero(noise > 0)), int(np.count_nonzero(noise)), 1 - 1e-7)
    assert low <= 0.5 <= high


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_steps_give_the_naive_sampler_away_and_nothing_of_hubbub(epsilon: str, run: Run) -> None:
    naive, hubbub = run("timing", clock="steps", trials=800, epsilons=(epsilon,)).findings
    assert naive.score.share > 0.98
    assert naive.facts["steps per unit of noise"] == pytest.approx(1, abs=1e-6) or epsilon == "3"
    assert hubbub.facts["steps per unit of noise"] == 0
    assert hubbub.held


def test_seconds_are_measured_and_reported(run: Run) -> None:
    study = run("timing", trials=100, epsilons=("1",))
    assert {"ns per unit of noise", "spread"} == set(study.findings[0].facts)
    assert study.findings[1].held


def test_a_line_is_learned_through_interruptions_and_its_guesses_follow_it(generator: np.random.Generator) -> None:
    noise = generator.integers(-20, 21, 3000)
    work = 1000 + 50.0 * np.abs(noise) + generator.normal(0, 5, 3000)
    work[::40] += 100_000
    law = learned(noise, work)
    assert law.rate == pytest.approx(50, abs=1)
    assert law.base == pytest.approx(1000, abs=5)
    coins = np.array([True, False])
    answers = np.array([108, 108])  # noise of 7 or of 8
    clock = np.array([1350.0, 1400.0])
    assert timed(answers, clock, law, others=100, epsilon=0.1, generator=generator).tolist() == coins.tolist()
