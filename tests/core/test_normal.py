"""Tails of the normal distribution, held against mpmath at 90 digits."""

from fractions import Fraction

import mpmath
import pytest

from hubbub.core import normal
from hubbub.core.interval import Interval


def encloses(interval: Interval, value: "mpmath.mpf") -> bool:
    return bool(mpmath.mpf(str(interval.low)) <= value <= mpmath.mpf(str(interval.high)))


def number(x: Fraction) -> "mpmath.mpf":
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("text", ["0", "1e-12", "0.3", "1", "2.5", "3.9999999", "4", "4.1", "7", "12", "35", "200"])
def test_mills_ratio_is_enclosed_narrowly(text: str) -> None:
    x = Fraction(text)
    true = mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(number(x) ** 2 / 2) * mpmath.erfc(number(x) / mpmath.sqrt(2))
    found = normal.mills(Interval.of(x))
    assert encloses(found, true)
    assert (found.high - found.low) * 10**35 < found.high


def test_mills_ratio_far_out_is_its_first_terms() -> None:
    """1/x − 1/x³ ≤ M(x) ≤ 1/x, which at 10¹² leaves no room."""
    found = normal.mills(Interval.of(10**12))
    assert Fraction(found.low) <= Fraction(1, 10**12)
    assert Fraction(found.high) >= Fraction(1, 10**12) - Fraction(1, 10**36)


@pytest.mark.parametrize("text", ["-8", "-0.5", "0", "0.5", "8"])
def test_normal_tail_is_enclosed(text: str) -> None:
    x = Fraction(text)
    assert encloses(normal.tail(Interval.of(x)), mpmath.erfc(number(x) / mpmath.sqrt(2)) / 2)


def test_normal_tail_of_an_interval_across_zero_holds_both_ends() -> None:
    wide = normal.tail(Interval.of(-1).hull(1))
    assert encloses(wide, mpmath.erfc(1 / mpmath.sqrt(2)) / 2)
    assert encloses(wide, mpmath.erfc(-1 / mpmath.sqrt(2)) / 2)


def plain_tail(least: int, variance: Fraction) -> "mpmath.mpf":
    reach = int(20 * float(variance) ** 0.5) + abs(least) + 10
    weights = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * number(variance))) for z in range(-reach, reach + 1)}
    return mpmath.fsum(w for z, w in weights.items() if z >= least) / mpmath.fsum(weights.values())


@pytest.mark.parametrize("text", ["1e-6", "0.3", "4", "99.99", "100", "100.5", "777", "5000"])
def test_discrete_tails_match_a_plain_sum_at_60_digits(text: str) -> None:
    variance = Fraction(text)
    for least in (-40, -3, 0, 1, 5, 30, 200):
        found = normal.discrete_tail(least, variance)
        assert encloses(found, plain_tail(least, variance)), least
        assert found.high - found.low < Fraction(1, 10**35)


@pytest.mark.parametrize("variance", [Fraction(100), Fraction(10**6)])
def test_tails_far_out_stay_in_proportion(variance: Fraction) -> None:
    """Beyond what the Euler–Maclaurin rest can tell: never zero, and above the truth by no more than one weight."""
    sigma = 10 if variance == 100 else 1000
    for multiple in (13, 16, 30, 100):
        low, high = normal.discrete_tail(multiple * sigma, variance).enclosure
        assert 0 < low <= high < low * (1 + Fraction(multiple + 1, sigma))
    assert encloses(normal.discrete_tail(160, Fraction(100)), plain_tail(160, Fraction(100)))


@pytest.mark.parametrize("first", [1, 12, 60])
def test_both_ways_agree_where_they_meet(first: int) -> None:
    added, integrated = normal._summed_weights(first, Fraction(130)), normal._integrated_weights(first, Fraction(130))
    assert max(added.low, integrated.low) <= min(added.high, integrated.high)
    assert max(added.high, integrated.high) - min(added.low, integrated.low) < Fraction(1, 10**35)


def test_a_wrong_correction_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tail without the Euler–Maclaurin terms leaves the enclosure of the plain sum."""
    wrong = (Fraction(0),) * 15 + (Fraction(1, 10**60),)
    monkeypatch.setattr(normal, "_coefficients", lambda: wrong)
    assert not encloses(normal.discrete_tail(30, Fraction(777)), plain_tail(30, Fraction(777)))


@pytest.mark.parametrize("variance", [Fraction(10**24), Fraction(10**50)])
def test_vast_variances_are_quick_and_close_to_the_continuous_distribution(variance: Fraction) -> None:
    sigma = 10 ** (len(str(variance)) // 2)
    found = normal.discrete_tail(3 * sigma, variance)
    assert found.high - found.low < Fraction(1, 10**40)
    continuous = normal.tail(Interval.of(3))
    assert abs(float(found.high) - float(continuous.high)) < 1e-9
