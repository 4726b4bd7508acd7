"""The laws of the noise: enclosures hold the truth, and widths are the least."""

from fractions import Fraction
from math import erfc, sqrt

import pytest

from hubbub.core.intervals import ONE, Interval, total
from hubbub.mechanisms import tails
from hubbub.mechanisms.tails import PI, GaussianLaw, LaplaceLaw, NoiseLaw, _block, _weight_from, half_width, least

LAWS: list[NoiseLaw] = [
    LaplaceLaw(Fraction(1, 10)), LaplaceLaw(Fraction(1)), LaplaceLaw(Fraction(7, 3)), LaplaceLaw(Fraction(40)),
    GaussianLaw(Fraction(1, 9)), GaussianLaw(Fraction(1)), GaussianLaw(Fraction(79, 10)), GaussianLaw(Fraction(8)),
    GaussianLaw(Fraction(300)),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_masses_and_tails_add_up(law: NoiseLaw) -> None:
    """Pr[Z ≥ w] − Pr[Z ≥ w+1] = Pr[Z = w], and everything from −w to w with both tails is one."""
    for w in (-3, 0, 1, 2, 9):
        assert abs(float((law.tail(w) - law.tail(w + 1)).low) - float(law.mass(w).low)) < 1e-15
    inside = law.tail(6) + law.tail(6)
    for z in range(-5, 6):
        inside += law.mass(z)
    assert inside.holds(Fraction(1))
    assert inside.high - inside.low < Fraction(1, 10**38)


@pytest.mark.parametrize("law", [GaussianLaw(Fraction(1, 10**6)), LaplaceLaw(Fraction(1, 1000))], ids=str)
def test_hardly_any_noise_is_no_trouble(law: NoiseLaw) -> None:
    assert law.tail(1).low <= Fraction(1, 10**400)
    assert law.tail(10**6).high <= Fraction(1, 10**400)
    assert law.mass(0).high >= 1 - Fraction(1, 10**50)
    assert half_width(law, 1 - Fraction(1, 10**12), 10**8) == 0


def test_pi_is_pi() -> None:
    """Machin's formula, π = 16·arctan(1/5) − 4·arctan(1/239), by alternating series."""

    def arctan(n: int) -> tuple[Fraction, Fraction]:
        terms = [Fraction((-1) ** k, (2 * k + 1) * n ** (2 * k + 1)) for k in range(60)]
        return sum(terms[:60], Fraction(0)), sum(terms[:59], Fraction(0))

    fifth, other = arctan(5), arctan(239)
    low, high = 16 * fifth[0] - 4 * other[1], 16 * fifth[1] - 4 * other[0]
    assert PI.low <= low <= high <= PI.high


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(79, 10), Fraction(8), Fraction(81, 10), Fraction(2500)])
def test_gaussian_normaliser_by_poisson_is_the_sum(variance: Fraction) -> None:
    law = GaussianLaw(variance)
    weights = [Interval.exp(-(z * z) / (2 * variance)) for z in range(1, int(18 * sqrt(variance)) + 20)]
    direct = ONE
    for weight in weights:
        direct += weight + weight
    assert abs(float((ONE / direct).low) - float(law.mass(0).low)) < 1e-16
    assert (ONE / direct).low <= law.mass(0).high
    assert law.mass(0).enclosure[0] <= (ONE / direct).enclosure[1] + Fraction(1, 10**30)


@pytest.mark.parametrize("exponent", [7, 8, 12, 24])
def test_wide_gaussian_tails_are_enclosed_by_blocks(exponent: int) -> None:
    """Against the normal tail, which the discrete one approaches, and against the half that is known exactly."""
    law = GaussianLaw(Fraction(10**exponent))
    sigma = sqrt(10**exponent)
    for multiple in (0.01, 0.5, 1.0, 3.0, 6.0):
        at = int(multiple * sigma) + 1
        tail = law.tail(at)
        assert float(tail.low) == pytest.approx(erfc((at - 0.5) / sigma / sqrt(2)) / 2, rel=3e-6)
        low, high = tail.enclosure
        assert low < high < low * (1 + Fraction(1, 10**5))
    # Pr[Z ≥ 1] = (1 − Pr[Z = 0])/2
    half = (ONE - law.mass(0)) * Interval.of(Fraction(1, 2))
    assert law.tail(1).low <= half.high
    assert half.low <= law.tail(1).high


@pytest.mark.parametrize("at", [1, 50, 800, 950, 1000, 1001, 2500])
def test_one_block_holds_its_sum_in_the_concave_and_the_convex_part(at: int) -> None:
    """σ = 1000, blocks of 101 integers: below σ the middle is above the mean, beyond σ below it."""
    variance, width = Fraction(1000**2), 101

    def weight(x: Fraction) -> Interval:
        return Interval.exp(-x * x / (2 * variance))

    ends = weight(Fraction(at)), weight(Fraction(at + width - 1))
    mean = _block(ends[0], weight(at + Fraction(width - 1, 2)), ends[1], at, width, variance)
    exact = total(weight(Fraction(z)) for z in range(at, at + width))
    bound = Interval.of(width) * mean
    assert bound.low <= exact.low <= exact.high <= bound.high
    assert float(bound.high / bound.low) < (1.01 if not at <= 1000 <= at + width else 1.2)


def test_sums_by_blocks_hold_the_sums_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """From below, near and above one standard deviation (4000, blocks of 3): concave, mixed and convex blocks."""
    variance = Fraction(4000**2)
    starts = (1, 3900, 3999, 4001, 15_000)
    by_blocks = [_weight_from(first, variance) for first in starts]
    middle = by_blocks[0] - by_blocks[1]
    _weight_from.cache_clear()
    monkeypatch.setattr(tails, "_FINENESS", 1 << 40)
    one_by_one = [_weight_from(first, variance) for first in starts]
    _weight_from.cache_clear()
    for coarse, fine in zip(by_blocks, one_by_one, strict=True):
        assert coarse.low <= fine.low <= fine.high <= coarse.high
        assert float(coarse.high - coarse.low) < 2e-6 * float(coarse.high)
    exact = one_by_one[0] - one_by_one[1]
    assert middle.low <= exact.low <= exact.high <= middle.high


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("coordinates", [1, 11, 1000])
def test_half_width_is_the_least_that_covers(law: NoiseLaw, coordinates: int) -> None:
    for level in (Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**9)):
        width = half_width(law, level, coordinates)
        covered = (ONE - law.tail(width + 1) - law.tail(width + 1)) ** coordinates
        assert covered.low >= level
        if width:
            short = (ONE - law.tail(width) - law.tail(width)) ** coordinates
            assert short.high < level


def test_search_finds_the_least_from_any_guess() -> None:
    for goal in (0, 1, 5, 1000):
        for guess in (-3, 0, 4, 999, 5000):
            assert least(lambda w, goal=goal: w >= goal, guess) == goal  # type: ignore[misc]
            found = least(lambda w, goal=goal: w >= goal, guess, 16)  # type: ignore[misc]
            assert goal <= found < goal + 16
