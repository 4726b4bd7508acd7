"""The δ of binomial noise, against sums over all outcomes that are written here."""

from fractions import Fraction
from math import comb, exp

import pytest

from hubbub.core.coins import binomial_delta, coins_for, deviation


def enumerated(coins: int, moved: int, epsilon: float) -> float:
    chance = [float(comb(coins, k) / 2**coins) for k in range(coins + 1)] + [0.0] * moved
    return sum(max(0.0, p - exp(epsilon) * (chance[k - moved] if k >= moved else 0.0)) for k, p in enumerate(chance))


@pytest.mark.row(99)
@pytest.mark.parametrize(("coins", "moved"), [(2, 1), (20, 1), (20, 3), (300, 5), (8, 8), (8, 9)])
def test_delta_is_that_of_enumeration(coins: int, moved: int) -> None:
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        bound = binomial_delta(coins=coins, sensitivity=moved, epsilon=epsilon)
        assert float(bound) == pytest.approx(enumerated(coins, moved, float(epsilon)), rel=1e-9, abs=1e-28)


def test_enough_coins_are_found_and_hardly_more() -> None:
    coins = coins_for(sensitivity=1, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert coins is not None
    assert enumerated(coins, 1, 1) <= 1e-6 < enumerated(coins - 4, 1, 1)
    assert deviation(coins) == pytest.approx(coins**0.5 / 2)
    assert coins_for(sensitivity=1000, epsilon=Fraction(1, 10), delta=Fraction(1, 10**9)) is None


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, Fraction(1, 10)), (40, Fraction(3)), (1, Fraction(20))])
def test_the_search_for_coins_computes_few_exact_deltas(sensitivity: int, epsilon: Fraction) -> None:
    """One takes most of a second for the largest number of coins, and estimates are free."""
    binomial_delta.cache_clear()
    found = coins_for(sensitivity=sensitivity, epsilon=epsilon, delta=Fraction(1, 10**9))
    assert binomial_delta.cache_info().misses <= 3
    assert found is not None
    assert binomial_delta(coins=found, sensitivity=sensitivity, epsilon=epsilon) <= Fraction(1, 10**9)
    less = found - max(4, found // 400) // 2 * 2
    assert binomial_delta(coins=less, sensitivity=sensitivity, epsilon=epsilon) > Fraction(1, 10**9)
