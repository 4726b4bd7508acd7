"""Membership inference from published sums."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks import membership
from hubbub.attacks.membership import guessed, indicators, simulate_people, traced
from hubbub.attacks.table import AttackTable
from hubbub.errors import AttackError

F = Fraction


def test_exact_sums_lean_towards_who_is_in_them() -> None:
    generator = np.random.default_rng(1)
    rows, common = simulate_people(200, 2000, generator)
    inside = generator.integers(0, 2, 200)
    leaning = traced(rows.T @ inside, rows, common)
    assert leaning[inside == 1].mean() == pytest.approx(1, abs=0.15)
    assert leaning[inside == 0].mean() == pytest.approx(0, abs=0.15)
    assert (guessed(rows.T @ inside, rows, common) == inside).mean() > 0.95


def test_membership_is_seen_in_exact_and_rounded_sums_and_not_in_ours() -> None:
    """Naive targets are seeded; `held` has a false-alarm rate of one in a million."""
    result = membership.study(
        None, epsilons=[F(1, 10), F(4)], generator=np.random.default_rng(2), people=16, traits=150, groups=6
    )
    exact, rounded, *ours = result.findings
    assert exact.score.share > 0.9
    assert rounded.score.share > 0.8
    assert [each.epsilon for each in ours] == [F(1, 10), F(4)]
    for each in ours:
        assert each.held
        assert each.score.trials == 96
        # the noise is complete: 150 sums share ε, so each has a mean error of 150/ε
        assert float(each.facts["error"]) == pytest.approx(150 / float(each.epsilon or 1), rel=0.25)


def test_noise_for_one_sum_alone_is_caught() -> None:
    """The planted error: each of 300 sums gets the noise of ε = 1, as if it were the only one."""
    generator = np.random.default_rng(3)
    rows, common = simulate_people(32, 300, generator)
    inside = list(generator.integers(0, 2, (8, 32)))
    answers = [rows.T @ each + generator.laplace(0, 1, 300) for each in inside]
    assert not membership._finding("planted", F(1), answers, inside, rows, common).held


def test_a_table_of_ones_own_becomes_traits() -> None:
    generator = np.random.default_rng(4)
    mine = AttackTable(
        "mine", {"age": generator.integers(0, 100, 500), "sex": generator.choice(["f", "m"], 500).astype(object)}
    )
    rows, common = indicators(mine, 50, generator)
    assert rows.shape == (50, 12)
    assert common[-2:].sum() == pytest.approx(1)
    result = membership.study(mine, epsilons=[F(1)], generator=generator, people=50, groups=2)
    assert result.findings[0].facts["sums"] == 12
    with pytest.raises(AttackError, match="too few"):
        indicators(mine, 400, generator)
