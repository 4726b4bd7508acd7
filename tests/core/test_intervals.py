"""Intervals enclose what exact arithmetic gives."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.intervals import ONE, PRECISION, ZERO, Interval, total
from hubbub.core.reals import exp

numbers = st.fractions(min_value=0, max_value=10**6, max_denominator=10**9)
positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**9)

NARROW = Fraction(1, 10 ** (PRECISION - 3))


def close(interval: Interval, truth: Fraction) -> bool:
    low, high = interval.enclosure
    return low <= truth <= high and high - low <= NARROW * max(truth, Fraction(1))


@given(numbers, numbers, positive)
def test_operations_hold_the_exact_result_and_stay_narrow(a: Fraction, b: Fraction, c: Fraction) -> None:
    x, y, z = Interval.of(a), Interval.of(b), Interval.of(c)
    assert close(x + y, a + b)
    assert close(x * y, a * b)
    assert close(x / z, a / c)
    assert close(x**5, a**5)
    difference = Interval.of(max(a, b)) - Interval.of(min(a, b))
    assert difference.holds(abs(a - b))
    assert difference.high - difference.low <= NARROW * 10**6  # of numbers up to a million
    assert close(total([x, y, z]), a + b + c)
    low, high = x.sqrt().enclosure
    assert low**2 <= a <= high**2
    assert high - low <= NARROW * 1000
    assert x.holds(a)
    assert not x.holds(a + 1)


@given(st.fractions(min_value=-3000, max_value=300, max_denominator=10**6))
def test_exponential_agrees_with_the_enclosure_by_rationals(x: Fraction) -> None:
    low, high = Interval.exp(x).enclosure
    other_low, other_high = exp(x, 70)
    assert low <= other_low <= other_high <= high
    assert high - low <= high * NARROW


def test_exponential_far_out_is_zero_or_next_to_it() -> None:
    far = Interval.exp(Fraction(-(10**15)))
    assert far.low == 0 < far.high < Fraction(1, 10**8000)
    assert Interval.exp(Fraction(0)) == ONE
    assert total([]) == ZERO
