"""Membership in synthetic data by shadow models."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks import shadow
from hubbub.attacks.base import AttackFinding, ceiling
from hubbub.attacks.game import score_guesses
from hubbub.attacks.shadow import features, learned, most_unusual
from hubbub.attacks.table import AttackTable
from hubbub.errors import AttackError

F = Fraction


def test_who_stands_out_is_the_one_with_the_rarest_values() -> None:
    rows = np.zeros((50, 3), dtype=np.int64)
    rows[17] = [1, 1, 0]
    rows[3, 0] = 1
    assert most_unusual(rows) == 17


def test_features_count_who_is_like_the_target() -> None:
    rows = np.array([[1, 1], [1, 0], [0, 1], [1, 1]])
    assert features(rows, np.array([1, 1])).tolist() == [3, 3, 2, 4]


def test_two_kinds_of_tables_are_learned_apart() -> None:
    generator = np.random.default_rng(1)
    inside = np.arange(200) % 2 == 1
    shadows, fresh = generator.normal(size=(2, 200, 5))
    for each in (shadows, fresh):
        each[:, 0] += 3.0 * inside
    assert (learned(shadows, inside)(fresh) == inside).mean() > 0.88


@pytest.mark.parametrize("release", ["mwem", "counts"])
def test_a_person_is_seen_in_naive_synthetic_rows_and_not_in_ours(release: str) -> None:
    """Naive targets are seeded; `held` has a false-alarm rate of one in a million."""
    result = shadow.study(
        None, epsilons=[F(1, 2)], generator=np.random.default_rng(2), release=release, shadows=20, trials=30, people=30
    )
    original, resampled, ours = result.findings
    assert original.score.share == 1
    assert resampled.score.share > 0.7
    assert ours.held
    assert ours.epsilon == F(1, 2)
    assert "30" in result.words[0]


def test_noise_that_is_too_small_is_caught() -> None:
    """The planted error: cells counted at ε = 8 although the guarantee is ε = 1/2."""
    generator = np.random.default_rng(3)
    sides = generator.random(400) < 0.5
    counts = np.rint(sides + generator.laplace(0, 1 / 8, 400))
    samples = np.stack([counts, generator.normal(size=400)], axis=1)
    guess = learned(samples[:100], sides[:100])(samples[100:])
    assert not AttackFinding("planted", F(1, 2), score_guesses(guess, sides[100:]), ceiling(F(1, 2))).held


def test_a_table_of_ones_own_is_coded() -> None:
    generator = np.random.default_rng(4)
    mine = AttackTable(
        "mine", {"a": generator.integers(0, 20, 90), "b": generator.choice(["x", "y"], 90).astype(object)}
    )
    result = shadow.study(mine, epsilons=[F(1)], generator=generator, people=40, release="counts", shadows=10, trials=4)
    assert result.findings[-1].score.trials == 4
    with pytest.raises(AttackError, match="fewer than"):
        shadow.study(mine, epsilons=[F(1)], generator=generator, people=100)
    with pytest.raises(AttackError, match="Unknown release"):
        shadow.study(None, epsilons=[F(1)], generator=generator, release="magic")
