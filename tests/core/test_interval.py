"""The intervals enclose: held against exact rationals, and against mpmath at 90 digits."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.interval import PI, Interval, exp, log, sqrt

mpmath.mp.dps = 90
fractions = st.fractions(-(10**9), 10**9, max_denominator=10**9)


def holds(interval: Interval, value: Fraction) -> bool:
    return Fraction(interval.low) <= value <= Fraction(interval.high)


def encloses(interval: Interval, value: "mpmath.mpf") -> bool:
    return bool(mpmath.mpf(str(interval.low)) <= value <= mpmath.mpf(str(interval.high)))


@given(fractions, fractions)
def test_arithmetic_holds_the_exact_result_and_is_narrow(x: Fraction, y: Fraction) -> None:
    a, b = Interval.of(x), Interval.of(y)
    results = [(a + b, x + y), (a - b, x - y), (a * b, x * y), (x - b, x - y), (-a, -x), (a.hull(y), x)]
    if y:
        results += [(a / b, x / y), (x / b, x / y)]
    for interval, exact in results:
        assert holds(interval, exact)
    assert Fraction((a * b).high - (a * b).low) <= abs(x * y) / 10**48


@given(fractions, fractions, fractions, fractions)
def test_arithmetic_holds_for_every_pair_of_points(x: Fraction, y: Fraction, u: Fraction, v: Fraction) -> None:
    """Wide intervals of any sign: the four corners and a point inside, each operation."""
    a, b = Interval.of(min(x, y)).hull(max(x, y)), Interval.of(min(u, v)).hull(max(u, v))
    for p in (x, y, (x + y) / 2):
        for q in (u, v, (u + v) / 2):
            assert holds(a + b, p + q)
            assert holds(a - b, p - q)
            assert holds(a * b, p * q)
            if u * v > 0:
                assert holds(a / b, p / q)


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


def test_exact_points_stay_exact() -> None:
    assert exp(Interval.of(0)) == Interval.of(1)
    assert log(Interval.of(1)) == Interval.of(0)
    assert sqrt(Interval.of(0)) == Interval.of(0)
    assert encloses(PI, +mpmath.pi)


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
