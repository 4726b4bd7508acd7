"""The enumerator against brute force, closed forms and mechanisms that are known to fail."""

import builtins
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.loss import Approximate, BoundedRange, Loss, Pure, Renyi, Zcdp
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.enumeration import (
    WorstPair,
    delta_at,
    image,
    profile,
    ratio_range,
    renyi,
    satisfies,
    total_variation,
    worst_over,
    worst_ratio,
)
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse

QUARTER = Fraction(1, 4)
YES, NO = exact_distribution({1: 3 * QUARTER, 0: QUARTER}), exact_distribution({1: QUARTER, 0: 3 * QUARTER})


@st.composite
def distributions(draw: st.DrawFn, outcomes: int = 4) -> FiniteDistribution[int]:
    weights = draw(st.lists(st.integers(0, 20), min_size=outcomes, max_size=outcomes).filter(any))
    return exact_distribution({i: Fraction(w, sum(weights)) for i, w in enumerate(weights)})


def events(distribution: FiniteDistribution[int]) -> list[tuple[int, ...]]:
    outcomes = sorted(distribution.mass)
    return list(chain.from_iterable(combinations(outcomes, size) for size in range(1, len(outcomes) + 1)))


def chance(distribution: FiniteDistribution[int], event: tuple[int, ...]) -> Fraction:
    return sum((distribution.mass[y][0] for y in event), Fraction(0))


@pytest.mark.row(1)
def test_coin_flipped_answer_loses_ln_3() -> None:
    low, high = worst_ratio(YES, NO)
    assert float(low) == pytest.approx(1.0986, abs=5e-5)
    assert low <= Fraction("1.09861228866810969139524523692252570464749055782275") <= high
    assert high - low < Fraction(1, 10**38)
    told = RandomizedResponse.from_truth(answers=2, probability="0.75")
    assert satisfies(told.loss, told.distribution(0), told.distribution(1))
    assert worst_ratio(told.distribution(0), told.distribution(1))[0] == pytest.approx(math.log(3), abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(distributions(), distributions())
def test_enclosures_hold_what_brute_force_over_all_events_finds(
    p: FiniteDistribution[int], q: FiniteDistribution[int]
) -> None:
    """The worst single outcome is as bad as the worst of all 15 events, in ratio and in hockey stick."""
    ratios = [
        math.inf if 0 in (chance(p, e), chance(q, e)) else abs(math.log(chance(p, e) / chance(q, e)))
        for e in events(p)
        if chance(p, e) or chance(q, e)
    ]
    low, high = worst_ratio(p, q)
    assert float(low) == pytest.approx(max(ratios))
    assert float(high) == pytest.approx(max(ratios))
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2)):
        grow = math.exp(epsilon)
        ways = [chance(a, e) - grow * chance(b, e) for a, b in ((p, q), (q, p)) for e in events(p)]
        low_delta, high_delta = delta_at(p, q, epsilon)
        assert float(low_delta) <= max(0.0, *ways) + 1e-12
        assert float(high_delta) == pytest.approx(max(0.0, *ways), abs=1e-12)
    differences = [abs(chance(p, e) - chance(q, e)) for e in events(p)]
    assert total_variation(p, q) == (max(differences), max(differences))


@settings(max_examples=30, deadline=None)
@given(distributions(), distributions(), st.sampled_from([Fraction(3, 2), Fraction(2), Fraction(5)]))
def test_renyi_divergence_is_its_definition(
    p: FiniteDistribution[int], q: FiniteDistribution[int], order: Fraction
) -> None:
    def one_way(a: FiniteDistribution[int], b: FiniteDistribution[int]) -> float:
        if any(a.mass[y][0] and not b.mass[y][0] for y in a.mass):
            return math.inf
        pairs = [(float(a.mass[y][0]), float(b.mass[y][0])) for y in a.mass if a.mass[y][0]]
        return math.log(sum(x**order * y ** (1 - order) for x, y in pairs)) / (float(order) - 1)

    expected = max(one_way(p, q), one_way(q, p))
    low, high = renyi(p, q, order)
    assert float(low) == pytest.approx(expected, abs=1e-12)
    assert float(high) == pytest.approx(expected, abs=1e-12)
    assert low <= high


def test_range_of_ratios_is_at_most_twice_the_loss_and_at_least_the_loss() -> None:
    low, high = ratio_range(YES, NO)
    assert float(low) == pytest.approx(2 * math.log(3))
    assert float(high) == pytest.approx(2 * math.log(3))
    lopsided = (
        exact_distribution({1: Fraction(1, 100), 0: Fraction(99, 100)}),
        exact_distribution({1: Fraction(2, 100), 0: Fraction(98, 100)}),
    )
    assert float(ratio_range(*lopsided)[1]) == pytest.approx(math.log(2) + math.log(99 / 98))


def test_wide_enclosures_give_what_is_surely_reached_and_what_is_never_exceeded() -> None:
    p = FiniteDistribution({0: (QUARTER, 2 * QUARTER), 1: (2 * QUARTER, 3 * QUARTER)})
    q = FiniteDistribution({0: (2 * QUARTER, 3 * QUARTER), 1: (QUARTER, 2 * QUARTER)})
    for low, high, expected in ((*worst_ratio(p, q), math.log(3)), (*ratio_range(p, q), 2 * math.log(3))):
        assert low == 0
        assert float(high) == pytest.approx(expected)


def test_profile_falls_from_the_statistical_difference_to_zero_at_the_loss() -> None:
    grid = [Fraction(n, 10) for n in range(13)]
    points = profile(YES, NO, grid).points
    deltas = [high for _, (_, high) in points]
    assert deltas[0] == Fraction(1, 2) == total_variation(YES, NO)[1]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[10] > 0
    assert deltas[11] == deltas[12] == 0
    for epsilon, (low, high) in points:
        assert float(low) == pytest.approx(max(0.0, 0.75 - math.exp(epsilon) * 0.25))
        assert low <= high


def test_unlisted_mass_leaves_no_upper_bound_but_a_small_delta() -> None:
    """A distribution that is cut short proves (ε, δ) and refutes; to prove ε it must be clamped."""
    mechanism = Laplace.from_epsilon(sensitivity=1, epsilon=1)
    low, high = worst_ratio(mechanism.distribution(0), mechanism.distribution(1))
    assert float(low) == pytest.approx(1)
    assert high == math.inf
    assert 0 <= delta_at(mechanism.distribution(0), mechanism.distribution(1), Fraction(1))[1] < Fraction(1, 10**28)
    assert worst_ratio(mechanism.distribution(0, (-9, 9)), mechanism.distribution(1, (-9, 9)))[1] - 1 < Fraction(
        1, 10**30
    )


@pytest.mark.row(5)
def test_one_person_s_record_in_the_clear_has_small_difference_and_infinite_loss() -> None:
    """Release (i, x_i) for a random i: for n = 100 the difference is .01, and the loss has no bound."""
    n = 100

    def distribution(records: tuple[int, ...]) -> FiniteDistribution[tuple[int, int]]:
        return exact_distribution({(i, x): Fraction(1, n) for i, x in enumerate(records)})

    x, neighbor = (0,) * n, (1,) + (0,) * (n - 1)
    assert total_variation(distribution(x), distribution(neighbor)) == (Fraction(1, 100), Fraction(1, 100))
    assert worst_ratio(distribution(x), distribution(neighbor)) == (math.inf, math.inf)
    assert delta_at(distribution(x), distribution(neighbor), Fraction(50))[0] == Fraction(1, 100)
    assert not satisfies(Pure(Fraction(10**6)), distribution(x), distribution(neighbor))


@pytest.mark.row(5)
def test_statistical_difference_is_no_loss_that_anything_takes() -> None:
    assert {kind.__name__ for kind in get_args(Loss)} == {"Pure", "BoundedRange", "Zcdp", "Renyi", "Approximate"}
    not_losses: list[Any] = [total_variation(YES, NO)[1], 0.01, "statistical difference", None]
    for claimed in not_losses:
        with pytest.raises(ParameterError, match="not a privacy loss"):
            satisfies(claimed, YES, NO)


def test_worst_pair_is_found_among_neighbors() -> None:
    mechanism = Laplace.from_epsilon(sensitivity=3, epsilon=3)
    pairs = [(0, 1), (0, 3), (2, 0)]
    worst = worst_over(pairs, lambda x: mechanism.distribution(x, (-10, 10)))
    assert worst.pair == (0, 3)
    assert float(worst.bounds[0]) == pytest.approx(3)
    assert worst.bounds[0] <= worst.bounds[1] <= 3 + Fraction(1, 10**30)
    assert isinstance(worst, WorstPair)
    with pytest.raises(ParameterError):
        worst_over([], lambda x: mechanism.distribution(x, (-10, 10)))


@settings(max_examples=30, deadline=None)
@given(distributions(), distributions())
def test_a_view_of_the_answer_loses_no_more(p: FiniteDistribution[int], q: FiniteDistribution[int]) -> None:
    views: list[Callable[[int], int]] = [lambda y: y // 2, lambda y: y % 2, lambda _: 0]
    for view in views:
        assert worst_ratio(image(p, view), image(q, view))[0] <= worst_ratio(p, q)[1]


@pytest.mark.parametrize(
    ("loss", "kept"),
    [
        (Pure(Fraction(11, 10)), True),
        (Pure(Fraction(109, 100)), False),
        (BoundedRange(Fraction(22, 10)), True),
        (BoundedRange(Fraction(219, 100)), False),
        (Zcdp(Fraction(5, 10)), True),
        (Zcdp(Fraction(2, 10)), False),
        (Renyi((Fraction(11, 10),) * 16), True),
        (Renyi((Fraction(1, 10),) * 16), False),
        (Approximate(Pure(Fraction(1)), Fraction(71, 1000)), True),
        (Approximate(Pure(Fraction(1)), Fraction(70, 1000)), False),
        (Approximate(Zcdp(Fraction(5, 10)), Fraction(1, 1000)), True),
    ],
)
def test_stated_losses_are_proved_or_not(loss: Loss, *, kept: bool) -> None:
    assert satisfies(loss, YES, NO) is kept


def test_slips_are_set_apart_from_the_rest() -> None:
    """A tenth of the time the first distribution shows what the second cannot: approximately private, never purely."""
    slips: FiniteDistribution[int | str] = exact_distribution(
        {"slip": Fraction(1, 10), 1: Fraction(9, 10) * 3 * QUARTER, 0: Fraction(9, 10) * QUARTER}
    )
    never: FiniteDistribution[int | str] = exact_distribution({1: QUARTER, 0: 3 * QUARTER})
    assert satisfies(Approximate(Zcdp(Fraction(1, 2)), Fraction(1, 10)), slips, never)
    assert not satisfies(Approximate(Zcdp(Fraction(1, 2)), Fraction(9, 100)), slips, never)
    assert not satisfies(Zcdp(Fraction(100)), slips, never)


def test_profile_is_drawn() -> None:
    axes = profile(YES, NO, [Fraction(n, 10) for n in range(13)]).plot(label="coin")
    (line,) = axes.get_lines()
    assert np.asarray(line.get_xdata())[:2].tolist() == [0.0, 0.1]
    assert np.asarray(line.get_ydata())[:1].tolist() == [0.5]
    assert axes.get_xlabel() == "ε"


def test_drawing_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MechanismError, match=r"hubbub\[plot\]"):
        profile(YES, NO, [Fraction(0)]).plot()
