"""The theorems between privacy and beliefs: the tight forms hold and are attained; the printed ones that fail, fail."""

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.reals import exp
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import delta_at, worst_ratio
from hubbub.semantics import bounds, odds
from hubbub.semantics.games import Game, databases, semantic_level, with_default

Response = Callable[[int, Fraction], FiniteDistribution[int]]
Rows = tuple[int, ...]
NONE = Fraction(0)

epsilons = st.fractions(Fraction(1, 1000), Fraction(8), max_denominator=1000)


def real(x: Fraction) -> "mpmath.mpf":
    return mpmath.mpf(x.numerator) / x.denominator


def above(found: Fraction, formula: object, slack: float = 1e-15) -> bool:
    """Whether a bound is the formula rounded up."""
    gap = real(found) - formula
    return bool(-mpmath.mpf("1e-40") <= gap <= slack)


@pytest.mark.row(11)
@given(epsilons)
def test_both_printed_forms_of_the_first_theorem_hold_and_are_loose(epsilon: Fraction) -> None:
    """tanh(ε/2), below e^ε − 1 (as stated) and, for ε/2-privacy, tanh(ε/4) below e^ε − 1 (as restated)."""
    assert above(bounds.beliefs(epsilon=epsilon), mpmath.tanh(real(epsilon) / 2))
    printed = mpmath.expm1(real(epsilon))
    assert mpmath.tanh(real(epsilon) / 4) < mpmath.tanh(real(epsilon) / 2) < printed


@pytest.mark.row(12)
def test_response_on_one_bit_attains_the_converse_and_breaks_the_printed_one(response: Response) -> None:
    """Randomized response at ε = .4 is .0997-semantic, so 3s = .299 would be its loss by equation 6; it is .4."""
    epsilon = Fraction(2, 5)
    growth = exp(epsilon)[0]

    def distribution(rows: Rows) -> FiniteDistribution[int]:
        return response(rows[0], growth)

    low, high = semantic_level(distribution, databases((0, 1), people=1), with_default(0), people=1)
    assert round(float(high), 4) == 0.0997
    loss = worst_ratio(distribution((0,)), distribution((1,)))
    assert epsilon - Fraction(1, 10**30) < loss[0] <= loss[1] < epsilon + Fraction(1, 10**30)
    assert 3 * high < loss[0]  # what is printed
    implied = bounds.privacy(level=high)
    assert implied[1] == 0
    assert 0 <= implied[0] - loss[0] < Fraction(1, 10**25)  # what holds, attained
    assert bounds.privacy(level=low)[0] <= implied[0]


@pytest.mark.row(12)
@pytest.mark.parametrize("level", ["0.001", "0.1", "0.3", "0.45", "0.49"])
def test_equation_six_is_false_at_every_level(level: str) -> None:
    """ln((½ + s)/(½ − s)) ≥ 4s > 3s; with s = ε/2 it is ≤ 3ε up to ε = .8586, and that form of the theorem holds."""
    s = mpmath.mpf(level)
    assert mpmath.log((0.5 + s) / (0.5 - s)) >= 4 * s > 3 * s
    assert 2 * math.atanh(0.85855) < 3 * 0.85855
    assert 2 * math.atanh(0.85865) > 3 * 0.85865
    for epsilon in (0.01, 0.45, 0.858):
        assert mpmath.log((1 + epsilon) / (1 - epsilon)) <= 3 * epsilon
        # the tight converse is smaller, so the same form holds even to twice that
        assert bounds.privacy(level=Fraction(str(epsilon)) / 2)[0] <= 3 * epsilon
    assert bounds.privacy(level=Fraction("0.858"))[0] <= 3 * Fraction("1.716")
    assert bounds.privacy(level=Fraction("0.859"))[0] > 3 * Fraction("1.718")


@pytest.mark.row(14)
def test_the_printed_converse_with_delta_fails_where_the_corrected_one_holds(response: Response) -> None:
    """(3s, 2δ) from (s, δ): randomized response at .4, δ as small as one likes, has a δ of .057 at 3s."""
    growth = exp(Fraction(2, 5))[0]
    yes, no = response(1, growth), response(0, growth)
    level = Fraction("0.0997")
    for delta in (Fraction(1, 1000), Fraction(1, 10**9)):
        assert delta_at(yes, no, 3 * level)[0] > Fraction(57, 1000) > 2 * delta  # printed
        epsilon, failing = bounds.privacy(level=level, delta=delta)
        assert delta_at(yes, no, epsilon)[1] <= failing  # corrected
        assert above(failing, 2 * real(delta) / (1 - real(level)))


@pytest.mark.row(14)
def test_the_converse_with_delta_holds_on_random_mechanisms() -> None:
    """For one person, and beliefs over two values: the (s, δ) that a mechanism has implies the (ε, δ) stated."""
    random = Random(3)
    for _ in range(10):
        rows = [[random.choice((0, 1, 3, 30, 60)) + 1 for _ in range(5)] for _ in range(2)]
        distribution: dict[Rows, FiniteDistribution[int]] = {
            (x,): exact_distribution({t: Fraction(w, sum(row)) for t, w in enumerate(row)})
            for x, row in enumerate(rows)
        }
        for level in (Fraction(1, 20), Fraction(1, 5), Fraction(2, 5)):
            chances = []
            for share in range(1, 16):
                prior: dict[Rows, Fraction] = {(0,): Fraction(share, 16), (1,): Fraction(16 - share, 16)}
                game: Game[Rows, int] = Game(prior, distribution.__getitem__, with_default(0), 1)
                chances.append(game.breach(level)[1])
            root = (1 + level) / (1 - level)
            for held in (1 / (1 + root), root / (1 + root)):  # the two beliefs of the proof
                prior = {(0,): held, (1,): 1 - held}
                game = Game(prior, distribution.__getitem__, with_default(0), 1)
                chances.append(game.breach(level)[1])
            epsilon, failing = bounds.privacy(level=level, delta=max(chances))
            assert delta_at(distribution[0,], distribution[1,], epsilon)[1] <= failing + Fraction(1, 10**25)


@pytest.mark.row(13)
def test_the_bound_under_delta_holds_on_random_games() -> None:
    """(ε, δ) mechanisms on two bits, random beliefs: the chance of a larger difference is within the bound."""
    random = Random(11)
    worlds = databases((0, 1), people=2)
    bitten = 0
    for _ in range(40):
        epsilon, slip = Fraction(random.randint(1, 6), 10), Fraction(1, random.choice((200, 1000, 5000)))
        odds_of = exp(epsilon)[0]
        distributions = {}
        for x in worlds:  # with a small chance a row comes out in the clear, else a response on the parity
            p = odds_of / (1 + odds_of)
            distributions[x] = exact_distribution(
                {
                    sum(x) % 2: (1 - slip) * p,
                    1 - sum(x) % 2: (1 - slip) * (1 - p),
                    ("clear", x): slip,
                }
            )
        delta = max(
            delta_at(distributions[x], distributions[y], epsilon)[1]
            for x in worlds
            for y in worlds
            if _apart(x, y) == 1
        )
        level, chance = bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=2)
        weights = [random.randint(1, 20) for _ in worlds]
        prior = {x: Fraction(w, sum(weights)) for x, w in zip(worlds, weights, strict=True)}
        game: Game[Rows, object] = Game(prior, distributions.__getitem__, with_default(0), 2)
        breach = game.breach(level)[1]
        bitten += breach > 0
        assert breach <= chance
    assert bitten > 20  # the check can fail: the clear row is a breach


def _apart(x: Rows, y: Rows) -> int:
    return sum(a != b for a, b in zip(x, y, strict=True))


@pytest.mark.row(13)
@given(
    st.fractions(Fraction(1, 100), Fraction(3), max_denominator=100),
    st.integers(1, 10**7),
    st.integers(0, 12),
)
def test_the_tight_form_is_below_the_printed_theorem(epsilon: Fraction, people: int, power: int) -> None:
    """Wherever Theorem 2.4(1) says something, the tight form says more at the same chance; so it holds as printed."""
    delta = epsilon * epsilon / people / 2 / 10**power
    printed = odds.semantic(epsilon=epsilon, delta=delta, people=people)
    tight = bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=people)
    assert printed is not None
    assert tight[0] <= printed[0]
    assert tight[1] <= printed[1] + Fraction(1, 10**20)
    assert printed[0] > 1 or epsilon < Fraction("0.231050")


@pytest.mark.row(115)
def test_a_million_people_at_one() -> None:
    """(1, 1e-12) and a million people: 0.49 except with probability 0.004, where the printed bound is above 1.

    The conditioning lemma alone would give (e³ − 1 + 0.002)/(e³ + 1) = 0.9052.
    """
    found = bounds.approximate_beliefs(epsilon=Fraction(1), delta=Fraction(1, 10**12), people=10**6)
    assert (round(float(found[0]), 3), round(float(found[1]), 6)) == (0.490, 0.004)
    printed = odds.semantic(epsilon=Fraction(1), delta=Fraction(1, 10**12), people=10**6)
    assert printed is not None
    assert printed[0] > 1
    e, levels = math.e, []
    for eta in (k / 1000 for k in range(1, 200)):
        kept = 1e6 * (1 + e) * 1e-12 / -math.expm1(-eta) / (0.004 - 1e-6)
        levels.append((math.exp(1 + eta) - 1 + 2 * kept) / (math.exp(1 + eta) + 1))
    assert -1e-6 <= float(found[0]) - min(levels) < 1e-4
    assert round((e**3 - 1 + 0.002) / (e**3 + 1), 4) == 0.9052
    without = bounds.approximate_beliefs(epsilon=Fraction(1), delta=NONE, people=5)
    assert without == (bounds.beliefs(epsilon=Fraction(1)), NONE)
    assert bounds.approximate_beliefs(epsilon=Fraction(1), delta=Fraction(1, 10), people=5)[0] == 1


def _leaky(epsilon: Fraction, slip: Fraction) -> dict[Rows, FiniteDistribution[object]]:
    """Randomized response on the parity of two bits, which with a small chance names the parity as certain."""
    growth = exp(epsilon)[0]
    kept = growth / (1 + growth)
    return {
        x: exact_distribution(
            {sum(x) % 2: (1 - slip) * kept, 1 - sum(x) % 2: (1 - slip) * (1 - kept), ("sure", sum(x) % 2): slip}
        )
        for x in databases((0, 1), people=2)
    }


@pytest.mark.row(13, 115)
@pytest.mark.parametrize("slip", [Fraction(1, 10**4), Fraction(1, 10**5)])
def test_the_bound_under_delta_holds_on_games_near_it(slip: Fraction) -> None:
    """For many beliefs the exact chance of a larger change stays within the bound; a bound that is smaller is broken.

    The planted bound is s less a third.
    """
    epsilon = Fraction(1, 2)
    distributions = _leaky(epsilon, slip)
    worlds = databases((0, 1), people=2)
    delta = max(
        delta_at(distributions[x], distributions[y], epsilon)[1] for x in worlds for y in worlds if _apart(x, y) == 1
    )
    assert delta <= slip + Fraction(1, 10**20)
    level, chance = bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=2)
    assert chance < Fraction(1, 10)
    broken = False
    for share in range(1, 20):
        one = Fraction(share, 20)
        two: dict[Rows, Fraction] = {(1, 0): one, (1, 1): 1 - one}
        for prior in (two, {x: (one if sum(x) % 2 else 1 - one) / 2 for x in worlds}):
            game: Game[Rows, object] = Game(prior, distributions.__getitem__, with_default(0), 2)
            assert game.breach(level)[1] <= chance
            broken |= game.breach(level * 2 / 3)[0] > chance
    assert broken


@pytest.mark.row(115)
def test_but_for_delta_is_not_a_bound_on_beliefs() -> None:
    """Answers whose ratio is 2% above e^ε in a quarter of all cases: (1, .004)-private, yet tanh(½) fails in .27."""
    epsilon = Fraction(1)
    ratio = exp(epsilon)[1] * Fraction(102, 100)
    heavy, light = Fraction(1, 5), Fraction(1, 5) / ratio
    rest = 1 - heavy - light
    odd, even = {1: heavy, 0: light, "rest": rest}, {1: light, 0: heavy, "rest": rest}
    distributions: dict[Rows, FiniteDistribution[object]] = {
        x: exact_distribution(odd if sum(x) % 2 else even) for x in databases((0, 1), people=2)
    }
    delta = delta_at(distributions[0, 0], distributions[0, 1], epsilon)[1]
    assert delta < Fraction(4, 1000)
    game: Game[Rows, object] = Game(
        {(1, 0): Fraction(1, 2), (1, 1): Fraction(1, 2)}, distributions.__getitem__, with_default(0), 2
    )
    assert round(float(game.breach(bounds.beliefs(epsilon=epsilon))[0]), 2) == 0.27
    level, chance = bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=2)
    assert game.breach(level)[1] <= chance


@pytest.mark.row(117)
def test_both_printed_constants_of_the_bound_on_beliefs_hold() -> None:
    """Theorem 4.2 adds √(nδ₂) where Theorem 2.4 adds 2√(nδ); the proof of both gives √(nδ), and ours is below both."""
    said = 0
    for epsilon in (Fraction(1, 100), Fraction(1, 20), Fraction(1, 5), Fraction(23, 100)):
        for people in (1, 1000, 10**6):
            for small in (Fraction(99, 100), Fraction(1, 10), Fraction(1, 10**6)):
                delta = epsilon * epsilon * small / people
                root = math.sqrt(people * delta)
                level, chance = bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=people)
                fewer = math.expm1(3 * float(epsilon)) + root
                said += fewer < 1
                assert float(level) <= fewer < fewer + root
                assert float(chance) <= 4 * root + 1e-12
    assert said > 20


def test_a_level_of_one_promises_nothing() -> None:
    with pytest.raises(ParameterError, match="HB103"):
        bounds.privacy(level=Fraction(1))
    assert bounds.privacy(level=NONE) == (NONE, NONE)
