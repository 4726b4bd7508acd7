"""Pan-private density: what a look and an answer reveal, exactly; and how exact the answer is."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.streams.audit import neighbors, view_distribution, worst_snapshot
from hubbub.analyses.streams.density import Density
from hubbub.core.finite import FiniteDistribution
from hubbub.core.unit import Relation
from hubbub.errors import HubbubError
from hubbub.mechanisms.enumeration import SLACK, worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource

ONE = Fraction(1)


@pytest.mark.row(61)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(3, 2)])
def test_state_and_answer_together_keep_their_promise_exactly(epsilon: Fraction) -> None:
    """D₀ = ½, D₁ = ½ + ε/4: ε for a look and ε for the answer, 2ε in all, over every stream, element and moment."""
    table = Density.printed(size=2, epsilon=epsilon)
    assert table.bias == epsilon / 4
    worst = worst_snapshot(table, length=3)
    assert worst.bounds[1] <= 2 * epsilon + SLACK
    assert worst.bounds[0] >= epsilon  # it is no empty promise
    assert table.state <= epsilon


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_price_is_the_epsilon_that_was_asked_for(outputs: int) -> None:
    for epsilon in (Fraction(1, 10), Fraction(1, 3), Fraction(2)):
        table = Density.from_epsilon(size=1000, epsilon=epsilon, outputs=outputs)
        paid = privacy_cost(table.event).pure
        assert paid is not None
        assert epsilon * Fraction(999, 1000) <= paid <= epsilon


def test_the_coin_of_our_own_choice_keeps_its_promise_too() -> None:
    table = Density.from_epsilon(size=2, epsilon=2, outputs=1)
    assert worst_snapshot(table, length=2).bounds[1] <= 2 + SLACK
    assert table.bias > Density.printed(size=2, epsilon=1).bias


class Printed(Density):
    """The answer's noise as it was printed: Lap(1/(ε|X|)) after the count of ones was scaled by 4/(ε|X|)."""

    def answers(self, bits: tuple[bool, ...]) -> FiniteDistribution[int]:
        # in units of the count of ones the scale is ¼, whatever ε is
        return Laplace(sensitivity=1, scale=Fraction(1, 4)).distribution(sum(bits), window=(-1, self.size + 1))


@pytest.mark.row(61)
def test_the_printed_noise_loses_far_more_once_the_state_was_seen() -> None:
    """At ε = 1: the bit is seen to be 0 and then x arrives, or not: ln(¼ + ¾·e⁴) = 3.72, where 1 is promised."""
    printed = Printed(size=1, bias=Fraction(1, 4), scale=ONE, outputs=1)
    ours = Density.printed(size=1, epsilon=1)
    quiet: tuple[int | None, ...] = (None,)
    for table, least, most in ((printed, 3.71, 3.73), (ours, 0.0, 1.0)):
        seen = [view_distribution(table, arrivals, 0) for arrivals in (quiet, (0,))]
        # the look came before the arrival, so the state tells nothing, and all of this is the answer's
        loss = float(worst_ratio(*seen)[1])
        assert least <= loss <= most
    assert float(worst_snapshot(printed, length=2).bounds[0]) > 3.7
    assert math.log(0.25 + 0.75 * math.exp(4)) == pytest.approx(3.72, abs=0.005)


@pytest.mark.row(61)
def test_the_printed_coin_is_refused_where_the_state_would_lose_more() -> None:
    """1 − ε/2 ≥ e^−ε holds up to ε = 1.5936."""
    assert Density.printed(size=10, epsilon="1.5936").state <= Fraction("1.5936")
    with pytest.raises(HubbubError, match=r"1\.5936"):
        Density.printed(size=10, epsilon="1.5937")
    beyond = Density(size=1, bias=Fraction("1.5937") / 4, scale=ONE, outputs=1)
    assert beyond.state > Fraction("1.5937")


def test_two_looks_are_one_too_many() -> None:
    """A bit that changed between two looks had an arrival: the loss of two looks has no bound."""
    table = Density.printed(size=1, epsilon=1)
    once = [view_distribution(table, arrivals, 1) for arrivals in ((0,), (None,))]
    twice = [view_distribution(table, arrivals, 0, 1) for arrivals in ((0,), (None,))]
    assert worst_ratio(*once)[1] <= 2 + SLACK
    assert worst_ratio(*twice)[0] == math.inf


@pytest.mark.row(61)
def test_density_of_a_large_universe_is_as_exact_as_stated(seeded: Callable[[int], RandomSource]) -> None:
    """|X| = 10⁵, each element there with probability .30, ε = 1: deviation .0063 (400 runs, fixed words, ± 12 %)."""
    table, source = Density.printed(size=100_000, epsilon=1), seeded(61)
    some = np.random.Generator(np.random.PCG64(1))
    found = []
    for _ in range(400):
        present = np.flatnonzero(some.random(100_000) < 0.3).astype(np.int64)
        bits = table.take(table.start(source), present, source)
        found.append(table.estimate(table.noisy_count(bits, source)))
    assert np.std(found) == pytest.approx(0.0063, rel=0.12)
    assert np.mean(found) == pytest.approx(0.3, abs=5 * 0.0063 / 20)
    assert table.deviation(Fraction(3, 10)) == pytest.approx(0.00608, abs=5e-5)
    # with the elements themselves drawn, their own deviation of √(.3·.7/10⁵) comes on top
    assert math.hypot(table.deviation(Fraction(3, 10)), math.sqrt(0.21e-5)) == pytest.approx(0.0063, abs=1e-4)
    assert Density.from_epsilon(size=100_000, epsilon=2, outputs=1).deviation(Fraction(3, 10)) < 0.0035


def test_an_element_outside_of_the_universe_is_nothing(seeded: Callable[[int], RandomSource]) -> None:
    table = Density.printed(size=5, epsilon=1)
    bits = table.start(seeded(1))
    after = table.take(bits, np.array([-1, 5, 10**17], dtype=np.int64), seeded(2))
    assert (bits == after).all()


def test_neighbors_are_all_pairs_of_the_relation() -> None:
    """Two moments of two elements: pairs that differ in one element's arrivals, or in those of both."""
    one, two = (set(map(frozenset, neighbors(2, 2, relation))) for relation in Relation)
    assert frozenset({(0, 0), (None, None)}) in one
    assert frozenset({(0, 1), (None, 1)}) in one
    assert frozenset({(0, 1), (1, 1)}) not in one
    assert frozenset({(0, 0), (1, None)}) in two - one
    # nine streams; of one element and fixed arrivals of the other: 6 + 2·1 pairs, for each of the two elements
    assert len(one) == 2 * (6 + 2)
    assert len(two) == 9 * 8 // 2
    assert len(list(neighbors(3, 1, Relation.REPLACE))) == 6


@pytest.mark.parametrize("arguments", [{"size": 0}, {"size": 10**9}, {"outputs": 0}, {"epsilon": 0}])
def test_a_table_that_cannot_be_is_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(HubbubError):
        Density.from_epsilon(**{"size": 10, "epsilon": 1, "outputs": 1, **arguments})
