"""Estimates from randomized answers: unbiased by enumeration, intervals by coverage."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from hubbub.errors import HubbubError
from hubbub.noise.source import RandomSource
from hubbub.surveys.estimate import Answers, deviation, estimate_joint, estimate_question
from hubbub.surveys.survey import Survey, SurveyQuestion

SMOKE = SurveyQuestion(name="smoke", text="", answers=("no", "yes"), epsilon=Fraction("1.0986"))
REGION = SurveyQuestion(name="region", text="", answers=("n", "s", "e"), epsilon=Fraction(1))
NEWS = SurveyQuestion(name="news", text="", answers=("p", "r"), boxes=True, epsilon=Fraction(2))
ASKED = Survey("all", (SMOKE, REGION, NEWS))


def distribution(question: SurveyQuestion, truth: Any) -> Iterator[tuple[Any, float]]:
    """What one person may send, with its probability."""
    for sent, (low, high) in question.mechanism.distribution(truth).mass.items():
        shown = [i for i, bit in enumerate(sent) if bit] if isinstance(sent, tuple) else sent
        yield shown, float((low + high) / 2)


def people(*persons: tuple[Any, Any, Any]) -> Iterator[tuple[list[Answers], float]]:
    """Every list of responses that these persons may send, with its probability."""
    each = []
    for person in persons:
        distributions = [list(distribution(q, truth)) for q, truth in zip(ASKED.questions, person, strict=True)]
        each.append(
            [({"smoke": a, "region": b, "news": c}, p * q * r) for (a, p), (b, q), (c, r) in product(*distributions)]
        )
    for combination in product(*each):
        yield [sent for sent, _ in combination], math.prod(chance for _, chance in combination)


PERSONS = ((1, 2, (True, False)), (0, 2, (True, True)))


def test_estimates_are_unbiased_exactly() -> None:
    """Two persons, all 576 pairs of responses: the mean of each estimate is the true count."""
    wanted = {"smoke": [1, 1], "region": [0, 0, 2], "news": [2, 1]}
    means = {name: np.zeros(len(counts)) for name, counts in wanted.items()}
    for responses, chance in people(*PERSONS):
        for name in means:
            means[name] += chance * estimate_question(ASKED, name, responses).count
    for name, counts in wanted.items():
        assert means[name] == pytest.approx(counts, abs=1e-9)


def test_joint_estimates_are_unbiased_exactly() -> None:
    """The same pairs: the mean of the joint table is the true table, and of the squared half width its variance."""
    names = ("smoke", "region", "news")
    tables, squares, variances, chances = [], [], [], []
    for responses, chance in people(*PERSONS):
        found = estimate_joint(ASKED, names, responses)
        tables.append(found.count)
        chances.append(chance)
        squares.append(found.count**2)
        variances.append(((found.high - found.low) / 2 / 1.959964) ** 2)
    weights = np.array(chances)
    truth = np.zeros(24)
    cells = estimate_joint(ASKED, names, []).cells
    truth[cells.index(("yes", "e", "p"))] = truth[cells.index(("no", "e", "p+r"))] = 1
    mean = weights @ np.array(tables)
    assert mean == pytest.approx(truth, abs=1e-9)
    # a variance below zero is shown as none, so the mean of what is shown is not below the true one
    true = weights @ np.array(squares) - mean**2
    assert (weights @ np.array(variances) >= true - 1e-6).all()


def draw(truths: dict[str, Any], source: RandomSource) -> list[Answers]:
    """Randomize many persons at once."""
    smoke = SMOKE.mechanism.sample(truths["smoke"], source)
    region = REGION.mechanism.sample(truths["region"], source)
    news = NEWS.mechanism.sample(truths["news"], source)
    return [
        {"smoke": int(a), "region": int(b), "news": np.flatnonzero(c).tolist()}
        for a, b, c in zip(smoke, region, news, strict=True)
    ]


@pytest.fixture(scope="module")
def truths() -> dict[str, Any]:
    some = np.random.default_rng(3)
    smoke = (some.random(300) < 0.3).astype(np.int64)
    region = some.choice(3, 300, p=[0.6, 0.3, 0.1]).astype(np.int64)
    return {"smoke": smoke, "region": region, "news": np.stack([smoke == 1, some.random(300) < 0.02], axis=1)}


def test_intervals_hold_the_truth_as_often_as_they_say(
    truths: dict[str, Any], seeded: Callable[[int], RandomSource]
) -> None:
    """600 surveys of 300 people: each interval holds the truth in 95% ± 4.5 points (5 standard errors)."""
    source, held = seeded(7), np.zeros(7)
    wanted = [*np.bincount(truths["smoke"]), *np.bincount(truths["region"]), *truths["news"].sum(axis=0)]
    for _ in range(600):
        responses = draw(truths, source)
        found = [estimate_question(ASKED, name, responses) for name in ("smoke", "region", "news")]
        low, high = (np.concatenate([getattr(each, end) for each in found]) for end in ("low", "high"))
        held += (low <= wanted) & (wanted <= high)
    assert (held / 600 >= 0.905).all()
    assert (held / 600 <= 0.995).all()


def test_joint_intervals_hold_the_truth_as_often_as_they_say(
    truths: dict[str, Any], seeded: Callable[[int], RandomSource]
) -> None:
    """400 surveys: the joint table of two questions, each cell in 95% ± 5.5 points (5 standard errors)."""
    source, held = seeded(8), np.zeros(6)
    wanted = np.bincount(truths["smoke"] * 3 + truths["region"], minlength=6)
    for _ in range(400):
        found = estimate_joint(ASKED, ("smoke", "region"), draw(truths, source))
        held += (found.low <= wanted) & (wanted <= found.high)
    assert (held / 400 >= 0.895).all()
    assert found.epsilon == SMOKE.epsilon + REGION.epsilon


def test_planned_deviation_is_that_of_the_mechanism() -> None:
    coin = SurveyQuestion(name="coin", text="", answers=("no", "yes"), epsilon=Fraction("1.098612288668"))
    assert deviation(coin, 10_000) == pytest.approx(86.6, abs=0.01)


def test_joint_tables_that_cannot_be_are_refused() -> None:
    many = Survey(
        "many",
        tuple(
            SurveyQuestion(name=f"q{i}", text="", answers=tuple(map(str, range(200))), epsilon=Fraction(1))
            for i in range(3)
        ),
    )
    for asked, names in ((many, ("q0", "q1", "q2")), (ASKED, ("smoke",)), (ASKED, ("smoke", "smoke"))):
        with pytest.raises(HubbubError, match="HB538"):
            estimate_joint(asked, names, [])


def test_nobody_answered() -> None:
    assert estimate_question(ASKED, "news", []).people == 0
    assert (estimate_joint(ASKED, ("smoke", "news"), []).count == 0).all()
