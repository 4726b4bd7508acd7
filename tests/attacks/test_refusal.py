"""Refusal attack: a refusal discloses information unless it depends only on the query."""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.refusal import MAX_SALARY, PROBES, exact_auditor, replies, simulatable_auditor, teams

Run = Callable[..., AttackStudy]


def fixed(values: tuple[int, int, int]) -> bool:
    """Whether the largest of all and of the first two determine a value, by trying all triples that fit."""
    fit = [each for each in permutations(range(5), 3) if max(each) == max(values) and max(each[:2]) == max(values[:2])]
    return any(len({each[index] for each in fit}) == 1 for index in range(3))


def test_the_auditor_refuses_just_what_would_fix_a_value() -> None:
    """Over all triples of different values from five: by trying every database that fits the answers."""
    triples = list(permutations(range(5), 3))
    answers, refused = exact_auditor(np.array(triples))
    assert answers.tolist() == [max(each) for each in triples]
    # with 4 values below it nobody is fixed by an answer that repeats the first; at the top of the range others are
    for triple, no in zip(triples, refused.tolist(), strict=True):
        if max(triple) >= 3:
            assert fixed(triple) == no, triple


@pytest.mark.row(69)
def test_a_refusal_that_depends_on_the_data_tells_it(run: Run) -> None:
    """hubbub's score exceeds its ceiling by chance with probability below 1e-8."""
    study = run("refusal", trials=200, epsilons=("1", "3"))
    naive, simulatable, *ours = study.findings
    assert naive.score.share == 1.0
    assert naive.facts["salaries known exactly"] == round(float(naive.facts["refused"]) * 200)
    assert simulatable.facts["refused"] == 1.0
    assert simulatable.facts["salaries known exactly"] == 0
    assert abs(simulatable.score.share - 0.5) < 0.21  # it reveals nothing: six deviations of 200 coins
    assert all(finding.held for finding in ours)
    assert [finding.facts for finding in ours[::2]] == [{"same refusals on both datasets": "yes"}] * 2


@pytest.mark.row(69)
def test_what_hubbub_refuses_is_foretold_by_the_questions_alone() -> None:
    """Worlds that could not differ more hear the same refusals, word for word, past the end of the budget too."""
    worlds = [np.zeros((4, 3), dtype=np.int64), np.full((4, 3), MAX_SALARY), np.arange(12).reshape(4, 3)]
    first, *others = (replies(world, Fraction(1)) for world in worlds)
    assert all(other == first for other in others)
    assert len(first) == 3 * len(PROBES)
    assert [reply.split()[0][:3] for reply in first] == ["HB5", "101", "1", "HB5", "HB2", "HB2", "HB5", "HB2", "HB2"]


def test_a_planted_refusal_by_the_data_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.attacks import refusal
    from hubbub.errors import QueryError

    def peeking(values: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> object:
        original = refusal._reply

        def reply(session: object, text: str, epsilon: Fraction, key: str) -> str:
            if values.max() > 50 and "MAX" in text:
                return str(QueryError("HB599", "this would tell too much."))
            return original(session, text, epsilon, key)  # type: ignore[arg-type]

        return reply

    low, high = np.zeros((2, 3), dtype=np.int64), np.full((2, 3), MAX_SALARY)
    monkeypatch.setattr(refusal, "_reply", peeking(low))
    one = replies(low, Fraction(1))
    monkeypatch.setattr(refusal, "_reply", peeking(high))
    assert replies(high, Fraction(1)) != one


def test_the_coin_is_fair_whatever_the_others_earn() -> None:
    """Given the salaries of the first two, both sides of the coin are as likely: 6 deviations of 4,000 coins."""
    values, coins = teams(8000, np.random.default_rng(5))
    assert np.array_equal(values[:, 2] > values[:, :2].max(axis=1), coins)
    assert np.array_equal(values[:, 2] < values[:, :2].min(axis=1), ~coins)
    for half in (values[:, 0] < MAX_SALARY // 2, values[:, 0] >= MAX_SALARY // 2):
        assert abs(np.mean(coins[half]) - 0.5) < 6 * 0.5 / np.count_nonzero(half) ** 0.5
    assert simulatable_auditor(values)[1].all()
