"""The audit campaigns sample the same code that computes answers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.campaigns import audit as black_box
from tests.campaigns.grey_box import Tally, compare_neighbors
from tests.fixtures.draws import TapedDraw, difference, is_reproducible, sample_many
from tests.fixtures.neighboring_data import CampaignQuery, NeighboringSessions, neighboring_sessions

import hubbub.curator.query
from hubbub.curator.question import Question
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
from hubbub.sql.finish import finish

QUESTIONS = (
    CampaignQuery("pure", "add_remove", "SELECT k, avg(x), count(*) FROM visits GROUP BY k", {"epsilon": 3}),
    CampaignQuery("pure", "replace", "SELECT median(y) FROM people", {"epsilon": 3}),
    CampaignQuery("pure", "replace", "SELECT k FROM people GROUP BY k ORDER BY count(*) DESC LIMIT 1", {"epsilon": 3}),
    CampaignQuery("small", "add_remove", "SELECT w, sum(x) FROM people GROUP BY w", {"epsilon": 3, "delta": "0.01"}),
    CampaignQuery(
        "town", "add_remove", "CALL moments(table => 'visits', columns => ['x'])", {"epsilon": 3, "delta": 0}
    ),
)


@pytest.fixture(scope="module")
def made() -> Iterator[NeighboringSessions]:
    with neighboring_sessions() as found:
        yield found


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.text)
def test_each_draw_of_a_query_is_made_by_the_code_that_is_sampled(
    made: NeighboringSessions, question: CampaignQuery
) -> None:
    """Bit by bit: the recorded mechanism on the recorded value with the same random words gives the same outcome."""
    pair = made.ask(question, key="repeats", seed=9)
    assert pair.draws
    assert all(is_reproducible(one, 9) for one, _ in pair.draws)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.text)
def test_neighbors_with_the_same_noisy_answers_show_the_same(
    made: NeighboringSessions, question: CampaignQuery
) -> None:
    pair = made.ask(question, key="same", seed=3)
    assert any(difference(one, other).any() for one, other in pair.draws)
    first, second = (release.document()["answer"] for release in pair.releases)
    assert first == second
    assert pair.loss.within


def test_a_draw_of_another_scale_or_with_other_words_does_not_repeat(made: NeighboringSessions) -> None:
    pair = made.ask(QUESTIONS[0], key="other", seed=9)
    draw: TapedDraw = pair.draws[0][0]
    wrong = Laplace(sensitivity=draw.mechanism.sensitivity, scale=draw.mechanism.scale * 9)
    assert not is_reproducible(replace(draw, mechanism=wrong), 9)
    assert not is_reproducible(draw, 10)


def test_many_draws_have_the_mean_of_the_exact_values(made: NeighboringSessions) -> None:
    """Each column within eight standard errors: false alarm below 10⁻¹²."""
    pair = made.ask(QUESTIONS[0], key="many", seed=9)
    sides = [sample_many(pair.draws, side, 20_000, system()) for side in (0, 1)]
    gap = sides[1].mean(axis=0) - sides[0].mean(axis=0)
    exact = np.concatenate([moved[moved != 0] for moved in (difference(*each) for each in pair.draws)])
    error = 8 * np.sqrt((sides[0].var(axis=0) + sides[1].var(axis=0)) / 20_000)
    moved = gap[np.abs(gap) > error]
    assert len(moved) == len(exact)
    assert np.all(np.abs(np.sort(moved) - np.sort(exact)) <= 2 * error.max())


def test_a_leak_beside_the_noise_is_seen_by_the_grey_box(
    made: NeighboringSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = [session._curator for session in made.sessions("pure", "add_remove")]
    question = Question("SELECT count(*) FROM people", epsilon=1)
    assert list(compare_neighbors(lambda: sides[0], lambda: sides[1], question, Tally(number=50))) == []

    def rounded(plan: Any, tables: Any, source: Any, *, raw: bool) -> object:
        answer = finish(plan, tables, source, raw=raw)
        exact = int(tables["sums0"]["m0"][0])
        return replace(answer, ratio=np.full(1, float(exact % 2)))

    monkeypatch.setattr(hubbub.curator.query, "finish", rounded)
    found = list(compare_neighbors(lambda: sides[0], lambda: sides[1], question, Tally(number=60)))
    assert found == ["The answers differ although all outcomes are equal."]


def test_the_black_box_finds_noise_that_is_too_small_or_shared() -> None:
    """Missed with probability below 10⁻⁶: the bounds are many standard errors above the charge."""
    assert [name for name, found in black_box.planted(40_000) if not found] == []
