"""Spectral filtering of independent noise."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks import spectral
from hubbub.attacks.spectral import filtered, simulate_rows
from hubbub.attacks.table import AttackTable
from hubbub.errors import AttackError

F = Fraction


@pytest.mark.row(75)
def test_independent_noise_comes_off_correlated_columns() -> None:
    """Principal components survive independent noise; the data is seeded."""
    generator = np.random.default_rng(1)
    truth = simulate_rows(1000, 30, 2, generator)
    noisy = truth + generator.normal(0, 2, truth.shape)
    estimates = filtered(noisy, 2.0)
    before, after = (float(np.sqrt(((each - truth) ** 2).mean())) for each in (noisy, estimates))
    assert before == pytest.approx(2, rel=0.02)
    # two of thirty directions are kept and shrunk: at best √(2/30)·2 of the noise remains, plus the lost signal
    assert after < 0.65
    _, vectors = np.linalg.eigh(np.cov(truth.T))
    _, seen = np.linalg.eigh(np.cov(noisy.T))
    assert np.linalg.svd(vectors[:, -2:].T @ seen[:, -2:])[1].min() > 0.9


def test_noise_alone_is_filtered_away_and_none_is_left_as_it_is() -> None:
    generator = np.random.default_rng(2)
    alone = generator.normal(0, 2, (2000, 20))
    assert np.abs(filtered(alone, 2.0) - alone.mean(axis=0)).max() < 0.5
    exact = generator.normal(0, 1, (200, 5))
    assert filtered(exact, 0.0) == pytest.approx(exact)


@pytest.mark.row(75)
def test_filtering_wins_on_published_rows_and_stays_under_the_ceiling_on_hubbub() -> None:
    """Naive targets are seeded; `held` has a false-alarm rate of one in a million."""
    result = spectral.study(None, epsilons=[F(1, 10), F(1), F(8)], generator=np.random.default_rng(3), people=200)
    raw, clean, *ours = result.findings
    assert clean.score.share > raw.score.share + 0.08
    assert clean.score.share > 0.75
    assert float(clean.facts["error"]) < float(raw.facts["error"]) / 2
    assert len(ours) == 6
    assert all(each.held for each in ours)
    assert f"{float(clean.facts['error']):.2f}" in result.words[0]


def test_a_table_of_ones_own_is_filtered_by_its_numbers() -> None:
    generator = np.random.default_rng(4)
    rows = simulate_rows(100, 6, 1, generator)
    mine = AttackTable(
        "mine", {f"n{index}": rows[:, index] * 10 + index for index in range(6)} | {"name": np.arange(100).astype(str)}
    )
    result = spectral.study(mine, epsilons=[F(1)], generator=generator, people=60, noise=1.0)
    assert result.findings[0].facts["columns"] == 6
    assert result.findings[0].score.trials == 60
    with pytest.raises(AttackError, match="fewer than 2"):
        spectral.study(AttackTable("words", {"a": np.array(["x"] * 50)}), epsilons=[F(1)], generator=generator)
    with pytest.raises(AttackError, match="noise"):
        spectral.study(None, epsilons=[F(1)], generator=generator, noise=float("nan"))
