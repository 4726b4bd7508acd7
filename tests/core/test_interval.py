"""The intervals enclose: held against exact rationals, and against mpmath at 90 digits."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core import reals
from hubbub.core.interval import DIGITS, ONE, PI, ZERO, Interval, exp, log, sqrt, total

fractions = st.fractions(-(10**9), 10**9, max_denominator=10**9)
numbers = st.fractions(min_value=0, max_value=10**6, max_denominator=10**9)
positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**9)

NARROW = Fraction(1, 10 ** (DIGITS - 3))


def close(interval: Interval, truth: Fraction) -> bool:
    low, high = interval.enclosure
    return low <= truth <= high and high - low <= NARROW * max(truth, Fraction(1))


def encloses(interval: Interval, value: "mpmath.mpf") -> bool:
    return bool(mpmath.mpf(str(interval.low)) <= value <= mpmath.mpf(str(interval.high)))


@given(fractions, fractions)
def test_arithmetic_holds_the_exact_result_and_is_narrow(x: Fraction, y: Fraction) -> None:
    a, b = Interval.of(x), Interval.of(y)
    results = [(a + b, x + y), (a - b, x - y), (a * b, x * y), (x - b, x - y), (-a, -x), (a.hull(y), x)]
    if y:
        results += [(a / b, x / y), (x / b, x / y)]
    for interval, exact in results:
        assert interval.holds(exact)
    assert Fraction((a * b).high - (a * b).low) <= abs(x * y) * NARROW


@given(fractions, fractions, fractions, fractions)
def test_arithmetic_holds_for_every_pair_of_points(x: Fraction, y: Fraction, u: Fraction, v: Fraction) -> None:
    """Wide intervals of any sign: the four corners and a point inside, each operation."""
    a, b = Interval.of(min(x, y)).hull(max(x, y)), Interval.of(min(u, v)).hull(max(u, v))
    for p in (x, y, (x + y) / 2):
        for q in (u, v, (u + v) / 2):
            assert (a + b).holds(p + q)
            assert (a - b).holds(p - q)
            assert (a * b).holds(p * q)
            if u * v > 0:
                assert (a / b).holds(p / q)


@given(st.fractions(-(10**4), 10**4, max_denominator=10**6))
@settings(max_examples=50)
def test_functions_enclose_the_truth_narrowly(x: Fraction) -> None:
    true = mpmath.mpf(x.numerator) / x.denominator
    raised = exp(Interval.of(x))
    assert encloses(raised, mpmath.exp(true))
    assert (raised.high - raised.low) * 10**44 <= raised.high
    if x > 0:
        assert encloses(log(Interval.of(x)), mpmath.log(true))
        assert encloses(sqrt(Interval.of(x)), mpmath.sqrt(true))


@given(numbers, numbers, positive)
def test_operations_on_what_is_not_negative_stay_narrow(a: Fraction, b: Fraction, c: Fraction) -> None:
    x, y, z = Interval.of(a), Interval.of(b), Interval.of(c)
    assert close(x + y, a + b)
    assert close(x * y, a * b)
    assert close(x / z, a / c)
    assert close(x**5, a**5)
    difference = Interval.of(max(a, b)) - Interval.of(min(a, b))
    assert difference.holds(abs(a - b))
    assert difference.high - difference.low <= NARROW * 10**6  # of numbers up to a million
    assert close(total([x, y, z]), a + b + c)
    low, high = sqrt(x).enclosure
    assert low**2 <= a <= high**2
    assert high - low <= NARROW * 1000
    assert x.holds(a)
    assert not x.holds(a + 1)


@given(fractions, fractions, st.integers(0, 6))
def test_powers_hold_for_every_point_of_any_sign(x: Fraction, y: Fraction, exponent: int) -> None:
    wide = Interval.of((min(x, y), max(x, y)))
    for point in (x, y, (x + y) / 2):
        assert (wide**exponent).holds(point**exponent)


@given(st.fractions(min_value=-3000, max_value=300, max_denominator=10**6))
def test_exponential_agrees_with_the_enclosure_by_rationals(x: Fraction) -> None:
    low, high = exp(x).enclosure
    other_low, other_high = reals.exp(x, 70)
    assert low <= other_low <= other_high <= high
    assert high - low <= high * NARROW


def test_exponential_far_out_is_zero_or_next_to_it() -> None:
    far = exp(Fraction(-(10**15)))
    assert far.low == 0 < far.high < Fraction(1, 10**8000)


@pytest.mark.parametrize("tiny", [Fraction(1, 10**70), Fraction(1, 10**59)])
def test_exponential_next_to_one_stays_on_its_side(tiny: Fraction) -> None:
    """A chance of e^(−tiny) is at most 1, and what it leaves is not negative."""
    assert exp(-tiny).high <= 1 <= exp(tiny).low
    assert exp(Interval.of(-tiny)).high <= 1 <= exp(Interval.of(tiny)).low
    assert (1 - exp(-tiny)).low >= 0
    assert (1 - exp(-tiny)).holds(tiny)


def test_exact_points_stay_exact() -> None:
    assert exp(Interval.of(0)) == exp(0) == Interval.of(1) == ONE
    assert total([]) == ZERO
    assert log(Interval.of(1)) == Interval.of(0)
    assert sqrt(Interval.of(0)) == Interval.of(0)


def test_pi_is_pi() -> None:
    """Machin's formula, π = 16·arctan(1/5) − 4·arctan(1/239), by alternating series."""

    def arctan(n: int) -> tuple[Fraction, Fraction]:
        terms = [Fraction((-1) ** k, (2 * k + 1) * n ** (2 * k + 1)) for k in range(60)]
        return sum(terms[:60], Fraction(0)), sum(terms[:59], Fraction(0))

    fifth, other = arctan(5), arctan(239)
    assert PI.low <= 16 * fifth[0] - 4 * other[1] <= 16 * fifth[1] - 4 * other[0] <= PI.high
    assert PI.high - PI.low <= 4 * NARROW


def test_results_leave_on_a_grid_and_outward() -> None:
    third = Interval.of(Fraction(1, 3))
    assert third.above(3) == Fraction(334, 1000)
    assert third.below(3) == Fraction(333, 1000)
    assert (-third).above(3) == Fraction(-333, 1000)
    assert (-third).below(3) == Fraction(-334, 1000)


@pytest.mark.parametrize("power", [10**6, 10**9, 10**12])
def test_vast_powers_are_quick_and_leave_as_one_step(power: int) -> None:
    small = exp(Interval.of(-power))
    assert small.low >= 0
    assert small.above(30) == Fraction(1, 10**30)
    assert small.below(30) == 0
    assert (-small).below(30) == -Fraction(1, 10**30)
    assert (-small).above(30) == 0


def test_what_cannot_be_enclosed_is_refused() -> None:
    with pytest.raises(OverflowError):
        exp(Interval.of(10**6)).above()
    with pytest.raises(ZeroDivisionError):
        1 / Interval.of(-1).hull(1)
    with pytest.raises(ValueError, match="positive"):
        log(Interval.of(0))
    with pytest.raises(ValueError, match="non-negative"):
        sqrt(Interval.of(-1))
