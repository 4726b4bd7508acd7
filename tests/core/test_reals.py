"""The enclosures enclose: held against series in exact rationals, which share nothing with the decimal module."""

from fractions import Fraction
from math import factorial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hubbub.core import reals

TERMS = 45


def series(x: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose e^x for |x| <= 1 by Taylor's series: the rest is at most 3·|x|^n/n!."""
    total = sum((x**k / factorial(k) for k in range(TERMS)), Fraction(0))
    rest = 3 * abs(x) ** TERMS / factorial(TERMS)
    return total - rest, total + rest


def exact_exp(x: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose e^x through (e^(x/n))^n."""
    n = int(abs(x)) + 1
    low, high = series(x / n)
    return low**n, high**n


def width(enclosure: reals.Enclosure) -> Fraction:
    return enclosure[1] - enclosure[0]


@given(st.fractions(-40, 40, max_denominator=10**6))
@example(Fraction(1, 10**50))
@example(Fraction(-1, 10**50))
@example(Fraction(0))
@settings(max_examples=60)
def test_exp_encloses_the_truth_narrowly(x: Fraction) -> None:
    low, high = reals.exp(x)
    true_low, true_high = exact_exp(x)
    assert low <= true_low
    assert true_high <= high
    assert width((low, high)) <= high / 10**reals.DIGITS


@given(st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**6))
@example(Fraction(1))
@example(1 + Fraction(1, 10**60))
@example(1 - Fraction(1, 10**60))
@example(1 + Fraction(1, 10**300))
@settings(max_examples=60)
def test_log_encloses_the_truth_narrowly_also_near_one(x: Fraction) -> None:
    low, high = reals.log(x)
    assert exact_exp(reals.floor_to(low, 400))[0] <= x <= exact_exp(reals.ceil_to(high, 400))[1]
    assert width((low, high)) <= max(abs(low), abs(high)) / 10 ** (reals.DIGITS - 1)
    assert (low > 0) == (x > 1)
    assert (high < 0) == (x < 1)


@given(st.fractions(0, 10**12))
@example(Fraction(1, 10**300))
def test_sqrt_encloses_the_truth_narrowly(x: Fraction) -> None:
    low, high = reals.sqrt(x)
    assert low <= 0 or low**2 <= x
    assert x <= high**2
    assert width((low, high)) <= high / 10**reals.DIGITS


@pytest.mark.parametrize("digits", [5, 40, 100, 500])
def test_more_digits_give_a_narrower_enclosure_of_the_same_number(digits: int) -> None:
    for function, x in ((reals.exp, Fraction(-7, 3)), (reals.log, Fraction(7, 3)), (reals.sqrt, Fraction(7, 3))):
        low, high = function(x, digits)
        finer_low, finer_high = function(x, digits + 50)
        assert low <= finer_low < finer_high <= high
        assert high - low <= high * Fraction(1, 10**digits)


def test_a_power_too_small_to_write_is_enclosed_at_no_cost() -> None:
    for x in (Fraction(-(10**6)) - 1, Fraction(-(10**30)), Fraction(-(10**4000))):
        low, high = reals.exp(x)
        assert low == 0 < high
    # the bound that stands for all of them is above the largest of them
    low, high = reals.exp(Fraction(-(10**6)))
    assert 0 < low < high < reals.exp(Fraction(-(10**6)) - 1)[1]


def test_a_power_too_large_to_write_is_refused() -> None:
    for x in (Fraction(10**6 + 1), Fraction(10**30)):
        with pytest.raises(ValueError, match="million"):
            reals.exp(x)


def test_log_and_sqrt_refuse_what_they_cannot_take() -> None:
    for x in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="positive"):
            reals.log(x)
    with pytest.raises(ValueError, match="negative"):
        reals.sqrt(Fraction(-1, 10**30))


@given(st.fractions(), st.integers(0, 40))
def test_rounding_to_a_grid_goes_the_way_it_says(x: Fraction, places: int) -> None:
    up, down = reals.ceil_to(x, places), reals.floor_to(x, places)
    step = Fraction(1, 10**places)
    assert down <= x <= up
    assert x - down < step
    assert up - x < step
    assert (up / step).denominator == (down / step).denominator == 1
