"""Local semantic privacy: the calculator, the median, and the leak that plain privacy would not allow."""

from fractions import Fraction

import pytest

from hubbub.accounting.gaussian import discrete_variance_for
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import delta_at
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.semantics import bounds
from hubbub.semantics.games import Game, with_default
from hubbub.semantics.local_sensitivity import LocalNoise, gaussian_leak, local_sensitivity, median

Rows = tuple[int, ...]
DOMAIN = range(9)


@pytest.mark.row(19)
def test_the_calculator_adds_the_exceptions_to_delta() -> None:
    """δ₂ = δ + δ₁; and the printed e^{3ε} − 1 + √(nδ₂), 4√(nδ₂) is never below it where ε > √(nδ₂)."""
    epsilon, delta, exceptions = Fraction(1, 10), Fraction(1, 10**12), Fraction(3, 10**12)
    found = bounds.local_beliefs(epsilon=epsilon, delta=delta, exceptions=exceptions, people=10**6)
    assert found == bounds.approximate_beliefs(epsilon=epsilon, delta=Fraction(4, 10**12), people=10**6)
    root = Fraction(2, 1000)  # √(10⁶ · 4·10⁻¹²), which is below ε
    assert found[0] <= Fraction("0.34985") + root  # e^.3 − 1 = .349858…
    assert found[1] == 4 * root
    assert round(float(found[0]), 3) == 0.095  # far below the printed 0.352


def noise(bound: int = 1, epsilon: str = "0.5") -> LocalNoise:
    return LocalNoise(function=median, domain=DOMAIN, bound=bound, epsilon=Fraction(epsilon))


@pytest.mark.row(20)
def test_the_median_of_nearly_equal_data_leaks_under_plain_privacy() -> None:
    """Five rows, two of them far from the others: one row moves the median by 8, and noise for 1 loses 8ε, not ε."""
    calm, edge, over = (4, 4, 4, 4, 5), (0, 0, 0, 8, 8), (0, 0, 8, 8, 8)
    assert local_sensitivity(median, calm, DOMAIN) == 0
    assert local_sensitivity(median, edge, DOMAIN) == 8
    mechanism = noise()
    assert mechanism.leak(calm, (4, 4, 4, 5, 5))[1] <= Fraction(1, 2)
    low, _ = mechanism.leak(edge, over)
    assert float(low) == pytest.approx(8 * 0.5, abs=1e-9)  # an ε of ½ was meant
    # noise for the worst case keeps its ε there
    assert noise(bound=8).leak(edge, over)[1] <= Fraction(1, 2) + Fraction(1, 10**25)


@pytest.mark.row(113)
def test_gaussian_noise_for_a_local_sensitivity_leaks_too() -> None:
    """Calibrated to (½, 10⁻⁶) for 1: enumerated over all answers, δ is 10⁻⁶ at 1 and far more where 8 is moved."""
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**6)
    variance = discrete_variance_for(epsilon=epsilon, delta=delta, sensitivity=1)
    noise = Gaussian(sensitivity_squared=1, variance=variance)
    for moved in (1, 8):
        p, q = (noise.distribution(value, (-160, 168)) for value in (0, moved))
        low, high = gaussian_leak(epsilon=epsilon, delta=delta, bound=1, moved=moved)
        listed = delta_at(p, q, epsilon)
        assert float(listed[1]) == pytest.approx(float(high), rel=1e-6)
        assert low <= high
        assert high <= delta if moved == 1 else low > 100_000 * delta


@pytest.mark.row(20)
def test_noise_that_follows_the_data_gives_the_data_away() -> None:
    """Scaled to the local sensitivity of the very data, the noise itself tells two neighbors apart."""
    calm, beside = (0, 0, 0, 0, 8), (0, 0, 0, 8, 8)
    spread = [local_sensitivity(median, rows, DOMAIN) for rows in (calm, beside)]
    assert spread == [0, 8]
    assert median(calm) == median(beside) == 0
    # no noise at all for the one, much for the other: an answer other than 0 rules the first out, so ε is infinite
    distribution = noise(bound=8).distribution(beside)
    assert distribution.mass[3][0] > Fraction(1, 100)


@pytest.mark.row(20)
def test_local_semantic_privacy_of_a_median_holds_in_the_exact_game() -> None:
    """A belief in nearly equal data, and in the edge with δ₁: the exact chance of a breach is within the promise."""
    slip = Fraction(1, 10**4)
    likely: list[Rows] = [(4, 4, 4, 4, 4), (4, 4, 4, 4, 5), (4, 4, 4, 5, 5), (3, 4, 4, 4, 5), (4, 4, 4, 4, 3)]
    prior: dict[Rows, Fraction] = {(0, 0, 0, 8, 8): slip}
    prior |= dict.fromkeys(likely, (1 - slip) / len(likely))
    mechanism = noise()
    assert mechanism.exceptions(prior) == slip
    level, chance = mechanism.guarantee(prior)
    assert (level, chance) == bounds.local_beliefs(epsilon=Fraction(1, 2), delta=Fraction(0), exceptions=slip, people=5)
    game: Game[Rows, int] = Game(prior, mechanism.distribution, with_default(4), 5)
    assert game.breach(level)[1] <= chance < 1
    # somebody else, who holds the edge for likely, is not covered, and does move further than ε-privacy lets anybody
    edge: Game[Rows, int] = Game(
        {(0, 0, 0, 8, 8): Fraction(1, 2), (0, 0, 8, 8, 8): Fraction(1, 2)}, mechanism.distribution, with_default(4), 5
    )
    assert edge.difference(8, 2)[0] > bounds.beliefs(epsilon=Fraction(1, 2))


def test_noise_for_no_sensitivity_is_refused() -> None:
    with pytest.raises(ParameterError, match="HB103"):
        noise(bound=0)
