"""Reconstruction from synthetic tables: accurate answers to many sums reveal the bits."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks import synthetic_table
from hubbub.attacks.decoding import subsets
from hubbub.attacks.synthetic_table import decoded, known, resampled
from hubbub.errors import AttackError

F = Fraction


@pytest.mark.row(59)
@pytest.mark.parametrize("release", ["mwem", "small_database"])
def test_naive_synthetic_rows_give_the_bits_away_and_ours_do_not(release: str) -> None:
    """False alarm below 1e-6 for each finding (`held`); naive targets are seeded."""
    result = synthetic_table.study(
        None, epsilons=[F(1, 10), F(1)], generator=np.random.default_rng(3), people=48, release=release
    )
    drawn, changed, *ours = result.findings
    assert 0.65 < drawn.score.share < 0.95
    assert changed.score.share > 0.9
    assert float(changed.facts["mean error of a sum"]) < float(changed.facts["error of a constant ½"])
    assert [each.epsilon for each in ours] == [F(1, 10), F(1)]
    for each in ours:
        assert each.held
        # too many accurate sums are impossible: these are no better than a constant ½
        assert float(each.facts["mean error of a sum"]) > 0.8 * float(each.facts["error of a constant ½"])
    assert f"{float(changed.facts['mean error of a sum']):.2g}" in " ".join(result.words)


@pytest.mark.row(59)
def test_a_table_that_answers_every_sum_exactly_gives_every_bit_away() -> None:
    generator = np.random.default_rng(4)
    secret = generator.integers(0, 2, 100)
    asked = subsets(100, 800, generator)
    assert ((decoded((np.arange(100), secret), asked) > 0) == secret).all()
    person, _ = resampled(secret, generator)
    seen = np.isin(np.arange(100), person)
    estimate = decoded((person, secret[person]), asked)
    assert ((estimate[seen] > 0) == secret[seen]).all()
    assert estimate[~seen] == pytest.approx(0, abs=1e-3)


def test_what_is_known_singles_everybody_out() -> None:
    for count in (4, 48, 64, 100):
        columns = np.array(list(known(count).values())).T
        assert len(np.unique(columns, axis=0)) == count


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(AttackError, match="Unknown release"):
        synthetic_table.study(None, epsilons=[F(1)], generator=np.random.default_rng(1), release="magic")
