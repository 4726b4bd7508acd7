"""Simulators and informed adversaries on mechanisms that are enumerated."""

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.games import databases
from hubbub.semantics.simulation import best_simulation, blanked, informed, loss_between, simulation_loss

Response = Callable[[int, Fraction], FiniteDistribution[int]]
RandomDistribution = Callable[[Random, int], FiniteDistribution[int]]
Rows = tuple[int, ...]
TINY = Fraction(1, 10**25)


@pytest.mark.row(8)
@pytest.mark.parametrize("unknown", [1, 2, 3])
def test_the_default_fills_in_for_unknown_rows(unknown: int) -> None:
    """ε-indistinguishable at k rows ⇒ the default-fill simulator is within ε ⇒ within 2ε of each other."""
    noise = Laplace.from_epsilon(sensitivity=2, epsilon=1)

    def distribution(rows: Rows) -> FiniteDistribution[int]:
        return noise.distribution(sum(rows), (-4, 10))

    apart = loss_between(distribution, (0, 1, 2), people=3, differing=unknown)
    simulated = simulation_loss(distribution, (0, 1, 2), people=3, unknown=unknown, default=1)
    assert simulated[1] <= apart[1] + TINY
    assert apart[0] <= 2 * simulated[1] + TINY
    assert blanked((2, 0, 1), (0, 2), 1) == (1, 0, 1)
    # a default at the end of the domain is as bad as can be
    assert float(simulation_loss(distribution, (0, 1, 2), people=3, unknown=unknown, default=0)[1]) == pytest.approx(
        apart[1]
    )
    # that in the middle halves the loss: each unknown row is within 1 of it
    assert 2 * float(simulated[1]) == pytest.approx(float(apart[1]))


@pytest.mark.row(8)
def test_simulatable_is_private_at_twice_and_no_better() -> None:
    """A rare answer, twice as likely in one world and half as likely in the other: ln 2 off, ln 4 apart."""
    rare = Fraction(1, 1000)
    more, less = (
        exact_distribution({"rare": share * rare, "rest": 1 - share * rare}) for share in (Fraction(2), Fraction(1, 2))
    )
    low, high = best_simulation([more, less])
    assert float(low) == pytest.approx(math.log(2), abs=1e-12)
    assert float(high) == pytest.approx(math.log(2), abs=1e-12)
    assert float(worst_ratio(more, less)[1]) == pytest.approx(2 * float(high), abs=1e-12)


@pytest.mark.row(8)
def test_no_simulator_does_better(random_distribution: RandomDistribution) -> None:
    """The formula against a search over simulators, and the distribution that its proof makes."""
    random = Random(9)
    for _ in range(20):
        distributions = [random_distribution(random, 3) for _ in range(3)]
        low, high = best_simulation(distributions)
        found = min(
            float(
                max(
                    worst_ratio(exact_distribution({0: a, 1: b, 2: 1 - a - b}), distribution)[1]
                    for distribution in distributions
                )
            )
            for a in (Fraction(i, 18) for i in range(1, 17))
            for b in (Fraction(i, 18) for i in range(1, 17))
            if a + b < 1
        )
        assert float(low) <= found + 1e-12
        assert found <= float(high) + 2.5  # the grid is coarse
        # the loss of any pair is within twice it
        assert max(worst_ratio(p, q)[0] for p in distributions for q in distributions) <= 2 * high + TINY
        tight = exp_between(distributions, high + Fraction(1, 10**9))
        assert max(worst_ratio(tight, distribution)[1] for distribution in distributions) <= high + Fraction(1, 10**6)


def exp_between(distributions: list[FiniteDistribution[int]], epsilon: Fraction) -> FiniteDistribution[int]:
    """The simulator of the proof: between the lower ends u·e^{−ε} and the upper ends l·e^ε, filled up to 1."""
    shrink = Fraction(math.exp(-epsilon))
    lows = {t: max(distribution.mass[t][0] for distribution in distributions) * shrink for t in distributions[0].mass}
    highs = {t: min(distribution.mass[t][0] for distribution in distributions) / shrink for t in distributions[0].mass}
    left, made = 1 - sum(lows.values()), dict(lows)
    for t in made:
        more = min(left, highs[t] - lows[t])
        made[t] += more
        left -= more
    return exact_distribution(made)


def test_an_answer_of_one_world_alone_cannot_be_simulated() -> None:
    with pytest.raises(ParameterError, match="HB178"):
        best_simulation(
            [exact_distribution({0: Fraction(1)}), exact_distribution({0: Fraction(1, 2), 1: Fraction(1, 2)})]
        )


@pytest.mark.row(9)
def test_an_informed_adversary_gets_from_a_half_to_three_quarters(response: Response) -> None:
    """Randomized response with ln 3, all rows but one known: ½ becomes ¾, a factor of 1.5 up and of 2 down."""
    prior = {(0, 1, 0): Fraction(1, 2), (0, 1, 1): Fraction(1, 2)}
    low, high = informed(lambda rows: response(rows[2], Fraction(3)), prior, lambda rows: rows[2] == 1)
    assert float(low) == pytest.approx(math.log(2), abs=1e-12)
    assert float(high) == pytest.approx(math.log(2), abs=1e-12)


@pytest.mark.row(9)
def test_the_ratio_tends_to_three_as_the_belief_is_extreme(response: Response) -> None:
    ratios = []
    for alpha in (Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000), 1 - Fraction(1, 10**9)):
        prior = {(0,): alpha, (1,): 1 - alpha}
        found = informed(lambda rows: response(rows[0], Fraction(3)), prior, lambda rows: rows[0] == 1)
        ratios.append(math.exp(found[1]))
        assert found[1] <= Fraction("1.09861228866810969")
        # 1 − α + α·3 by equation 13 of Dwork and others (2006), over a posterior that shrinks; or the factor up
        assert float(found[1]) >= math.log(1 - float(alpha) + 3 * float(alpha)) - 1e-9
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(3, abs=1e-6)


@pytest.mark.row(9)
def test_no_event_moves_by_more_than_the_loss(random_distribution: RandomDistribution) -> None:
    """All events over four worlds, random mechanisms and beliefs: within the loss, which a pair attains."""
    random = Random(12)
    worlds = databases((0, 1), people=2)
    for _ in range(15):
        distributions = {x: random_distribution(random, 3) for x in worlds}
        loss = max(worst_ratio(distributions[x], distributions[y])[1] for x in worlds for y in worlds)
        weights = [random.randint(1, 9) for _ in worlds]
        prior = {x: Fraction(w, sum(weights)) for x, w in zip(worlds, weights, strict=True)}
        for chosen in range(1, 16):
            event = frozenset(x for place, x in enumerate(worlds) if chosen >> place & 1)
            assert informed(distributions.__getitem__, prior, event.__contains__)[1] <= loss + TINY
        pairs = [(x, y) for x in worlds for y in worlds]
        x, y = max(pairs, key=lambda pair: worst_ratio(distributions[pair[0]], distributions[pair[1]])[0])
        sure = 1 - Fraction(1, 10**9)
        most = max(
            informed(distributions.__getitem__, {x: sure, y: 1 - sure}, y.__eq__)[1],
            informed(distributions.__getitem__, {y: sure, x: 1 - sure}, x.__eq__)[1],
        )
        assert float(most) == pytest.approx(float(loss), abs=1e-6)


def test_an_impossible_event_is_refused_and_a_certain_leak_is_endless(response: Response) -> None:
    prior = {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    with pytest.raises(ParameterError, match="HB179"):
        informed(lambda rows: response(rows[0], Fraction(3)), prior, lambda _: False)
    leak = informed(lambda rows: exact_distribution({rows[0]: Fraction(1)}), prior, lambda rows: rows[0] == 1)
    assert leak == (math.inf, math.inf)
