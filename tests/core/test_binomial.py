"""Intervals of shares, against scipy."""

import pytest
from scipy import stats

from hubbub.core.binomial import incomplete_beta, interval, lower_bound, tail


@pytest.mark.parametrize(("right", "trials"), [(0, 1), (1, 1), (0, 1000), (3, 1000), (500, 1000), (99_999, 100_000)])
@pytest.mark.parametrize("confidence", [0.95, 0.999999])
def test_the_interval_is_that_of_clopper_and_pearson(right: int, trials: int, confidence: float) -> None:
    expected = stats.binomtest(right, trials).proportion_ci(confidence, method="exact")
    assert interval(right, trials, confidence) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("chance", [1e-6, 0.3, 0.5, 0.999])
@pytest.mark.parametrize(
    ("least", "trials"), [(0, 4), (1, 4), (4, 4), (5, 4), (40, 1000), (310, 1000), (10**6 // 3, 10**6)]
)
def test_the_tail_is_the_binomial_one(least: int, trials: int, chance: float) -> None:
    assert tail(least, trials, chance) == pytest.approx(float(stats.binom.sf(least - 1, trials, chance)), rel=1e-6)


def test_the_ends_of_the_beta_function() -> None:
    assert (incomplete_beta(2, 3, 0), incomplete_beta(2, 3, 1)) == (0.0, 1.0)


@pytest.mark.parametrize(("right", "trials"), [(1, 1), (3, 1000), (500, 1000), (99_999, 100_000), (400_000, 10**6)])
@pytest.mark.parametrize("alarm", [0.05, 1e-6, 1e-12])
def test_the_bound_of_one_side_is_that_of_clopper_and_pearson(right: int, trials: int, alarm: float) -> None:
    expected = float(stats.beta.ppf(alarm, right, trials - right + 1))
    assert lower_bound(right, trials, alarm) == pytest.approx(expected, rel=1e-7)
    assert lower_bound(right, trials, alarm) <= expected * (1 + 1e-12)
