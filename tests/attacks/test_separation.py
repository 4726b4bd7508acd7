"""The parity game: published responses against one private answer."""

from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks import separation
from hubbub.attacks.separation import odd, simulate_values
from hubbub.attacks.separations.parity import query_difference, repeated, response_difference

F = Fraction


def test_people_are_uniform_among_those_with_the_parity() -> None:
    """False alarm below 1e-8: each of 4 values has 50,000 of 200,000, ± 6 deviations of 194."""
    generator = np.random.default_rng(1)
    sides = np.array([False, True])
    values = simulate_values(sides, 200_000, 3, 0b101, generator)
    for side, group in zip(sides, values, strict=True):
        assert (odd(group, 0b101) == side).all()
        counts = np.bincount(group, minlength=8)
        assert np.abs(counts[counts > 0] - 50_000).max() < 6 * 194
        assert (counts > 0).sum() == 4


@pytest.mark.row(63)
@pytest.mark.row(64)
def test_the_game_is_won_as_often_as_the_exact_difference_says() -> None:
    """False alarm below 1e-6: intervals at 1 − 1e-7."""
    result = separation.study(
        None, epsilons=[F(1, 2), F(1)], generator=np.random.default_rng(2), bits=4, people=50, trials=2000
    )
    plain, *ours = result.findings
    assert plain.score.share == 1
    for each in ours:
        epsilon = float(each.epsilon or 1)
        difference = (
            query_difference(50, epsilon)
            if each.target == "one private answer"
            else repeated(response_difference(4, epsilon), 50)
        )
        assert each.ceiling == pytest.approx((1 + difference) / 2)
        low, high = each.score.interval(1 - 1e-7)
        assert low <= (1 + difference) / 2 <= high
    published, queried = ours[:2]
    assert queried.score.share > 0.99 > 0.8 > published.score.share
