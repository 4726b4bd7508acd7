"""Scores, ceilings and the sentences that describe them."""

import json
from fractions import Fraction
from math import exp

import numpy as np
import pytest

from hubbub.attacks.base import AttackFinding, AttackStudy, Score, ceiling, describe_findings, percent
from hubbub.attacks.game import flip, guess_from, informed, score_guesses
from hubbub.core import binomial
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

FINDINGS = (
    AttackFinding("unprotected", None, Score(197, 200, 0.5), None, {"noise": 0.5, "bits": 12, "who": "Mr X"}),
    AttackFinding("hubbub", Fraction(1, 10), Score(104, 200, 0.5), ceiling(Fraction(1, 10))),
    AttackFinding("hubbub", Fraction(3), Score(150, 200, 0.5), ceiling(Fraction(3))),
)
STUDY = AttackStudy("example", "An example", describe_findings(FINDINGS), FINDINGS)


def _masses(mechanism: Laplace, value: int) -> dict[int, float]:
    distribution = mechanism.distribution(value)
    return {outcome: float(high) for outcome, (_, high) in distribution.mass.items()}


def test_a_score_has_the_interval_of_clopper_and_pearson() -> None:
    """At each end of the interval, the tail probability of the observed count is 2.5%."""
    score = Score(70, 100, 0.5)
    assert binomial.tail(70, 100, score.low) == pytest.approx(0.025, rel=1e-6)
    assert 1 - binomial.tail(71, 100, score.high) == pytest.approx(0.025, rel=1e-6)
    assert (Score(0, 9, 0.5).low, Score(9, 9, 0.5).high) == (0.0, 1.0)
    wide = score.interval(1 - 1e-6)
    assert wide[0] < score.low < score.share < score.high < wide[1]


@pytest.mark.parametrize("wrong", [(5, 4, 0.5), (-1, 4, 0.5), (0, 0, 0.5), (1, 2, 1.5), (1, 2, float("nan"))])
def test_a_score_that_cannot_be_is_refused(wrong: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="a score needs"):
        Score(*wrong)


def test_the_ceiling_is_what_the_best_guess_attains_and_no_guess_passes() -> None:
    """Compare all guesses from one noisy count exactly, using the mechanism's distribution."""
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
        zero, one = (_masses(mechanism, bit) for bit in (0, 1))
        best = sum(max(zero.get(y, 0.0), one.get(y, 0.0)) for y in {*zero, *one}) / 2
        assert best == pytest.approx(ceiling(epsilon), abs=1e-12)
        taken = sum(one.get(y, 0.0) if y > 0 else zero.get(y, 0.0) for y in {*zero, *one}) / 2
        assert taken == pytest.approx(best, abs=1e-12)  # `informed` takes the likelier side


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_who_knows_all_others_attains_the_ceiling(epsilon: Fraction) -> None:
    """Both tails of a binomial of 20,000 trials at the ceiling: a false alarm has probability below 1e-6."""
    generator = np.random.default_rng(1)
    coins = flip(20_000, generator)
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
    score = score_guesses(informed(mechanism, np.full(20_000, 40), coins, system()), coins)
    low, high = score.interval(1 - 1e-6)
    assert low <= ceiling(epsilon) <= high


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_noise_that_is_planted_half_as_large_is_caught(epsilon: Fraction) -> None:
    """The weak noise attains the ceiling of 2ε; the tail of that binomial misses it with probability below 1e-6."""
    generator = np.random.default_rng(1)
    trials = 60_000
    coins = flip(trials, generator)
    weak = Laplace(sensitivity=1, scale=1 / (2 * epsilon))
    score = score_guesses(informed(weak, np.zeros(trials, dtype=np.int64), coins, system()), coins)
    finding = AttackFinding("weak", epsilon, score, ceiling(epsilon))
    assert not finding.held
    (_, alarm) = describe_findings([finding])
    assert "exceed the guarantee" in alarm
    assert f"{score.right:,} of {trials:,}" in alarm


def test_luck_is_no_broken_promise() -> None:
    """An attack that attains the ceiling exceeds it half of the time; only scores that chance cannot explain count."""
    assert AttackFinding("hubbub", Fraction(1), Score(1520, 2000, 0.5), ceiling(Fraction(1))).held
    assert not AttackFinding("hubbub", Fraction(1), Score(1600, 2000, 0.5), ceiling(Fraction(1))).held
    assert AttackFinding("unprotected", None, Score(2000, 2000, 0.5), None).held


def test_a_score_above_the_ceiling_is_explained_where_chance_explains_it() -> None:
    def words(right: int) -> str:
        finding = AttackFinding("hubbub", Fraction(1), Score(right, 2000, 0.5), ceiling(Fraction(1)))
        return describe_findings([finding])[0]

    assert words(1480).endswith("at most 73.1% on average, and chance explains the difference.")
    assert words(1450).endswith("at most 73.1%.")
    assert words(1600).endswith("at most 73.1%.")


def test_the_words_say_the_figures_and_nothing_else() -> None:
    assert describe_findings(FINDINGS) == (
        "unprotected: 98.5% of 200 guesses are correct; blind guessing achieves 50.0%.",
        "hubbub: 52.0% (ε = 0.1) and 75.0% (ε = 3) of 200 guesses are correct; the guarantee allows at most 52.5% and"
        " 95.3%.",
    )
    text = STUDY.text()
    for finding in FINDINGS:
        assert percent(finding.score.share) in text
        assert percent(finding.score.low) in text
    for fact in ("noise: 0.5", "bits: 12", "who: Mr X"):
        assert fact in text


def test_a_study_goes_through_json_and_back() -> None:
    assert AttackStudy.read(json.loads(STUDY.json())) == STUDY
    form = STUDY.to_json()["findings"]
    assert isinstance(form, list)
    assert form[1]["epsilon"] == "1/10"
    assert form[1]["ceiling"] == pytest.approx(exp(0.1) / (1 + exp(0.1)))


def test_what_says_nothing_is_guessed_blindly() -> None:
    """2,000 coins: more than 1,120 of one side come with probability below 1e-7."""
    guesses = guess_from(np.zeros(2000), np.random.default_rng(3))
    assert 880 < np.count_nonzero(guesses) < 1120
    assert guess_from(np.array([-2.0, 3.0]), np.random.default_rng(3)).tolist() == [False, True]
