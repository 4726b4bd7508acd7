"""Binomial noise beside the geometric law: what it costs, and what it never does."""

import math
from fractions import Fraction

import pytest

from hubbub.errors import ParameterError
from hubbub.mechanisms.binomial import Binomial
from hubbub.mechanisms.enumeration import delta_at, worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import ReplaySource


@pytest.mark.row(99)
def test_binomial_noise_beside_the_geometric_law() -> None:
    """By enumeration: coins have no pure loss and a δ at every ε; two-sided geometric noise has loss ε, no δ."""
    noise = Binomial.from_epsilon(sensitivity=1, epsilon=1, delta="1e-6")
    one, two = noise.distribution(0), noise.distribution(1)
    assert worst_ratio(one, two)[0] == math.inf
    assert Fraction(9, 10**7) < delta_at(one, two, Fraction(1))[1] <= Fraction(1, 10**6)
    geometric = Laplace.from_epsilon(sensitivity=1, epsilon=1)
    here, there = geometric.distribution(0, (-30, 30)), geometric.distribution(1, (-30, 30))
    assert float(worst_ratio(here, there)[1]) == pytest.approx(1)
    assert delta_at(here, there, Fraction(1) + Fraction(1, 10**20))[1] == 0


@pytest.mark.row(99)
def test_fewer_coins_than_charged_are_caught() -> None:
    """The planted error: half of the coins have a δ that is larger by far."""
    right = Binomial.from_epsilon(sensitivity=2, epsilon=1, delta="1e-6")
    planted = Binomial(sensitivity=2, coins=right.coins // 4 * 2, epsilon=Fraction(1))
    exact = delta_at(planted.distribution(0), planted.distribution(2), Fraction(1))[0]
    assert exact > 100 * right.loss.delta
    assert float(planted.loss.delta) == pytest.approx(float(exact))


def test_every_coin_counts_once() -> None:
    noise = Binomial(sensitivity=1, coins=70, epsilon=Fraction(1))
    ones, few = (1 << 64) - 1, 0b1_011011  # of the second word only six bits are coins: 011011
    assert noise.sample(100, ReplaySource([ones, few])) == 100 + 64 + 4 - 35
    assert noise.sample(100, ReplaySource([0, 1 << 6])) == 100 - 35


def test_odd_numbers_of_coins_and_too_many_are_refused() -> None:
    for coins in (3, 1 << 19):
        with pytest.raises(ParameterError):
            Binomial(sensitivity=1, coins=coins, epsilon=Fraction(1))
    with pytest.raises(ParameterError):
        Binomial.from_epsilon(sensitivity=1000, epsilon="0.01", delta="1e-9")
