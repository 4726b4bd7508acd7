"""The worked examples: every number they tell, computed again in another way."""

import math
import re
from fractions import Fraction

import pytest

from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.noise.source import ReplaySource
from hubbub.semantics.bounds import beliefs
from hubbub.semantics.examples import SCREENS, Heights, TraitStudy, dalenius, height, smoking
from hubbub.semantics.screens.figures import Bars


def numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def bayes(study: TraitStudy, answer: int, *, used: bool) -> float:
    """Bayes' rule in floating point: theory, Alice's bit, how many of the others; Laplace noise on the integers."""
    q = math.exp(-float(study.epsilon))
    n = study.people
    weights = {0: 0.0, 1: 0.0}
    for held, rate in zip((study.belief, 1 - study.belief), study.rates, strict=True):
        for own in (0, 1):
            for others in range(n):
                chance = math.comb(n - 1, others) * float(rate) ** others * float(1 - rate) ** (n - 1 - others)
                count = others + (own if used else 0)
                mass = float(held) * (float(rate) if own else float(1 - rate)) * chance * q ** abs(answer - count)
                weights[own] += mass
    return weights[1] / (weights[0] + weights[1])


@pytest.mark.row(23)
def test_the_smoking_study_teaches_the_same_without_alice() -> None:
    """20 % becomes 29.7 %, with her row and without; the difference is far within what ε lets one row do."""
    study = TraitStudy(60, Fraction(1, 2), Fraction(1, 2), (Fraction(3, 10), Fraction(1, 10)))
    assert study.before == Fraction(1, 5)
    for answer in (4, 18):
        used, unused = study.after(answer, used=True), study.after(answer, used=False)
        assert float(used[0]) == pytest.approx(bayes(study, answer, used=True), abs=1e-9)
        assert float(unused[0]) == pytest.approx(bayes(study, answer, used=False), abs=1e-9)
        assert used[1] - used[0] < Fraction(1, 10**20)
        assert abs(used[1] - unused[0]) <= beliefs(epsilon=Fraction(1, 2))
    few = TraitStudy(12, Fraction(1, 2), Fraction(1, 2), study.rates)
    for answer in (0, 4, 12):
        moved = abs(few.after(answer, used=True)[1] - few.after(answer, used=False)[0])
        assert moved <= few.game.difference(answer, 0)[1] <= beliefs(epsilon=Fraction(1, 2))
    told = smoking().sentences
    assert numbers(told[0]) == [60, 0.5, 30, 10, 20.0]
    assert numbers(told[1]) == [18, round(100 * bayes(study, 18, used=True), 1)]
    assert numbers(told[2]) == [round(100 * bayes(study, 18, used=False), 1)]
    (most,) = numbers(told[3])
    assert 0 <= most - 100 * math.tanh(0.25) < 0.1


@pytest.mark.row(23)
def test_no_useful_answer_meets_the_goal_of_dalenius() -> None:
    """99 % becomes .1 % though one row could have moved it by 24.5 points at most: prior to posterior is no measure."""
    study = TraitStudy(60, Fraction(1, 2), Fraction(99, 100), (Fraction(1), Fraction(1, 1000)))
    used, unused = bayes(study, 0, used=True), bayes(study, 0, used=False)
    told = dalenius().sentences
    assert numbers(told[0]) == [1977, 99, round(100 * float(study.before), 1)]
    assert numbers(told[1])[-1] == float(f"{100 * used:.2g}")
    assert numbers(told[2]) == [round(100 * unused, 1)]
    assert float(study.before) - used > math.tanh(0.25) > abs(used - unused)


@pytest.mark.row(23)
def test_the_height_is_fixed_by_the_mean_with_any_row_or_without() -> None:
    """The released mean is within the stated width 95 times of 100, by the distribution of the noise."""
    found = Heights(1000, Fraction(1, 2))
    assert len(found.rows) == 1000
    assert all(found.LOW <= row <= found.HIGH for row in found.rows)
    # Laplace noise of scale 2000 on the sum: ±2000·ln 20 has 95%, which is 5.99 mm of the mean
    assert float(found.half_width) == pytest.approx(2 * math.log(20), abs=0.01)
    truth = Fraction(sum(found.rows), 1000)
    blanked = truth - Fraction(found.rows[999] - found.LOW, 1000)
    assert 0 < truth - blanked <= 1
    words = [*range(2**60, 2**64, 2**60)] * 40  # the same noise for both releases, and not always the same
    for start in range(15):
        one, other = (found.mean(ReplaySource(words[start:]), left_out=row) for row in (None, 999))
        assert one - other == truth - blanked
        assert one != truth
    story = height(ReplaySource(words)).sentences
    taller, low, high = numbers(story[0])
    assert (taller, low, high) == (50, 1200, 2200)
    people, epsilon, estimate, level, half = numbers(story[1])
    assert (people, epsilon, level, half) == (1000, 0.5, 95, 7)
    other_estimate, moved = numbers(story[2])
    assert moved == 1
    assert "the same margin of error" in story[2]
    first = ReplaySource(words)
    assert estimate == round(found.mean(first)) + 50
    assert other_estimate == round(found.mean(first, left_out=999)) + 50


def test_a_row_of_the_heights_costs_its_epsilon() -> None:
    """The two sums that one row can make, at the ends of its bounds, are ε apart and no more."""
    noise = Heights(4, Fraction(1, 2)).noise
    assert noise.loss.epsilon == Fraction(1, 2)
    small = type(noise)(sensitivity=10, scale=Fraction(20))  # the same on a coarser grid
    low, high = worst_ratio(small.distribution(0, (-50, 60)), small.distribution(10, (-50, 60)))
    assert Fraction(1, 2) - Fraction(1, 10**20) <= low <= high <= Fraction(1, 2) + Fraction(1, 10**20)


def test_the_figure_shows_the_beliefs_of_the_sentences() -> None:
    """Alice's 20 % become 29.7 %; at 10 % ill they fall instead, by Bayes in floating point."""
    for rate, answer in ((30, 18), (10, 6)):
        study = TraitStudy(60, Fraction(1, 2), Fraction(1, 2), (Fraction(3, 10), Fraction(1, 10)))
        figure = smoking(rate=rate).figure
        assert isinstance(figure, Bars)
        ((_, heights),) = figure.series
        wanted = [0.2, bayes(study, answer, used=True), bayes(study, answer, used=False)]
        assert heights == pytest.approx(wanted, abs=1e-9)


def test_every_example_is_a_screen() -> None:
    readings = {screen.name: screen.read({}) for screen in SCREENS}
    assert list(readings) == ["smoking", "dalenius", "height"]
    assert readings["smoking"] == smoking()
    assert "hubbub explain pad" in readings["dalenius"].sentences[-1]
    assert "mm" in readings["height"].sentences[0]
    assert [len(reading.sentences) for reading in readings.values()] == [4, 4, 4]
