"""The Rényi curves are the worst ones: held against closed forms at 90 digits, brute force, and random pairs."""

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting import curves
from hubbub.accounting.events import laplace
from hubbub.core.loss import ORDERS

Number = Any  # mpmath has no types
HOSTILE = [Fraction(text) for text in ("1e-9", "1e-6", "0.001", "0.1", "1", "10", "200", "1000000")]
TINY, LITTLE = mpmath.mpf(10) ** -60, mpmath.mpf(10) ** -6


def number(x: Fraction) -> Number:
    return mpmath.mpf(x.numerator) / x.denominator


def divergence(p: list[Number], q: list[Number], order: Fraction) -> Number:
    a = number(order)
    return mpmath.log(mpmath.fsum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True) if x)) / (a - 1)


def closed_response(answers: int, epsilon: Fraction, order: Fraction) -> Number:
    e, a = number(epsilon), number(order)
    top = 1 + mpmath.exp(-(2 * a - 1) * e) + (answers - 2) * mpmath.exp(-a * e)
    return e + mpmath.log(top / (1 + (answers - 1) * mpmath.exp(-e))) / (a - 1)


def closed_laplace(sensitivity: int, scale: Fraction, order: Fraction) -> Number:
    q, a, d = mpmath.exp(-1 / number(scale)), number(order), sensitivity
    w = q ** (2 * a - 1)
    inner = (1 + w**d + (1 - q) * (w - w**d) / (1 - w)) / (1 + q)
    return d / number(scale) + mpmath.log(inner) / (a - 1)


def closed_range(epsilon: Fraction, order: Fraction) -> Number:
    e, a = number(epsilon), number(order)
    parts = a * mpmath.log((1 - mpmath.exp(-a * e)) / a) - mpmath.log(1 - mpmath.exp(-e))
    return e + (parts - (a - 1) * mpmath.log((1 - mpmath.exp(-(a - 1) * e)) / (a - 1))) / (a - 1)


def within_one_unit(found: curves.Curve, closed: list[Number]) -> bool:
    """Never below the truth, and at most a unit of 10⁻¹⁸ (and a millionth of one) above it."""
    return all(0 <= f - c * curves.STEPS + TINY <= 1 + LITTLE for f, c in zip(found, closed, strict=True))


@pytest.mark.parametrize("epsilon", HOSTILE, ids=str)
def test_each_curve_is_the_closed_form_to_one_unit(epsilon: Fraction) -> None:
    for answers in (2, 7, 1000):
        closed = [closed_response(answers, epsilon, order) for order in ORDERS]
        assert within_one_unit(curves.response(answers, epsilon), closed)
    assert curves.pure(epsilon) == curves.response(2, epsilon)
    for sensitivity in (2, 37, 10**6):
        scale = sensitivity / epsilon
        closed = [closed_laplace(sensitivity, scale, order) for order in ORDERS]
        assert within_one_unit(laplace.renyi_curve(sensitivity, scale), closed)
    assert laplace.renyi_curve(1, 1 / epsilon) == curves.pure(epsilon)
    closed = [closed_range(epsilon, order) for order in ORDERS]
    assert within_one_unit(curves.bounded_range(epsilon), closed)
    assert within_one_unit(curves.concentrated(epsilon), [number(order * epsilon) for order in ORDERS])


def test_an_error_of_one_part_in_a_million_would_be_seen() -> None:
    closed = [closed_response(2, Fraction(1), order) for order in ORDERS]
    found = curves.pure(Fraction(1))
    assert not within_one_unit(tuple(value - value // 10**6 for value in found), closed)
    assert not within_one_unit(tuple(value + value // 10**6 for value in found), closed)


def geometric(scale: Fraction, shift: int, reach: int) -> list[Number]:
    q = mpmath.exp(-1 / number(scale))
    return [(1 - q) / (1 + q) * q ** abs(z - shift) for z in range(-reach, reach + 1)]


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(2), Fraction(8)], ids=str)
def test_laplace_curve_equals_brute_force(order: Fraction) -> None:
    place = ORDERS.index(order)
    for sensitivity, scale in ((1, Fraction(2)), (3, Fraction(5, 2)), (5, Fraction(1))):
        p, q = geometric(scale, 0, 400), geometric(scale, sensitivity, 400)
        true = divergence(p, q, order) * curves.STEPS
        assert abs(laplace.renyi_curve(sensitivity, scale)[place] - true) < 2


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(2), Fraction(8)], ids=str)
def test_response_curve_equals_brute_force(order: Fraction) -> None:
    place = ORDERS.index(order)
    for answers in (2, 3, 6):
        odds = mpmath.exp(mpmath.mpf("0.7"))
        base = [mpmath.mpf(1)] * answers
        p, q = [odds, *base[1:]], [base[0], odds, *base[2:]]
        total = odds + answers - 1
        true = divergence([x / total for x in p], [x / total for x in q], order) * curves.STEPS
        assert abs(curves.response(answers, Fraction(7, 10))[place] - true) < 2


@given(
    scale=st.fractions(Fraction(1, 5), 20, max_denominator=10),
    shifts=st.lists(st.integers(0, 12), min_size=2, max_size=5).filter(any),
)
@settings(max_examples=60, deadline=None)
def test_the_whole_shift_in_one_coordinate_is_worst(scale: Fraction, shifts: list[int]) -> None:
    """The curve of the sum is at least the sum of the curves, at every order (up to the rounding of each)."""
    spread = zip(*[laplace.renyi_curve(shift, scale) for shift in shifts if shift], strict=True)
    for parts, whole in zip(spread, laplace.renyi_curve(sum(shifts), scale), strict=True):
        assert sum(parts) <= whole + len(shifts)


@st.composite
def bounded_pairs(draw: st.DrawFn, width: Fraction) -> tuple[list[Number], list[Number]]:
    """A pair whose log-ratios lie in an interval of that length: Q any, P ∝ Q·e^(−t), t in [0, width]."""
    size = draw(st.integers(2, 6))
    weights = draw(st.lists(st.integers(1, 1000), min_size=size, max_size=size))
    tilts = draw(st.lists(st.fractions(0, width, max_denominator=1000), min_size=size, max_size=size))
    tilts[0], tilts[1] = Fraction(0), width
    q = [mpmath.mpf(w) / sum(weights) for w in weights]
    p = [x * mpmath.exp(-number(t)) for x, t in zip(q, tilts, strict=True)]
    return [x / mpmath.fsum(p) for x in p], q


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2), Fraction(6)], ids=str)
def test_no_bounded_range_pair_exceeds_its_curve(epsilon: Fraction) -> None:
    bound = curves.bounded_range(epsilon)

    @given(bounded_pairs(epsilon))
    @settings(max_examples=40, deadline=None)
    def holds(pair: tuple[list[Number], list[Number]]) -> None:
        for order, most in zip(ORDERS[:12], bound[:12], strict=True):
            assert divergence(*pair, order) * curves.STEPS <= most + TINY
            assert divergence(pair[1], pair[0], order) * curves.STEPS <= most + TINY

    holds()
    # the worst pair attains it: y = e^t of the proof
    for order, most in zip(ORDERS[:12], bound[:12], strict=True):
        e, a = number(epsilon), number(order)
        c = (1 - mpmath.exp(-a * e)) / (1 - mpmath.exp(-e))
        d = (mpmath.exp(-e) - mpmath.exp(-a * e)) / (1 - mpmath.exp(-e))
        high = (a - 1) * c / (a * d)
        low = high * mpmath.exp(-e)
        share = (1 - low) / (high - low)
        p, q = [share * high, (1 - share) * low], [share, 1 - share]
        assert divergence(p, q, order) * curves.STEPS > most - 2


@st.composite
def pure_pairs(draw: st.DrawFn, epsilon: Fraction) -> tuple[list[Number], list[Number]]:
    """Any ratios in [e^(−ε), e^ε] under any weights, and one atom at an end that brings their mean to 1."""
    size = draw(st.integers(1, 5))
    weights = [mpmath.mpf(w) for w in draw(st.lists(st.integers(1, 1000), min_size=size, max_size=size))]
    logs = draw(st.lists(st.fractions(-epsilon, epsilon, max_denominator=1000), min_size=size, max_size=size))
    ratios = [mpmath.exp(number(x)) for x in logs]
    excess = mpmath.fsum(w * (r - 1) for w, r in zip(weights, ratios, strict=True))
    end = mpmath.exp(number(-epsilon if excess > 0 else epsilon))
    weights.append(excess / (1 - end))
    ratios.append(end)
    q = [w / mpmath.fsum(weights) for w in weights]
    return [x * r for x, r in zip(q, ratios, strict=True)], q


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2), Fraction(6)], ids=str)
def test_no_pure_pair_exceeds_the_curve_of_randomized_response(epsilon: Fraction) -> None:
    bound = curves.pure(epsilon)

    @given(pure_pairs(epsilon))
    @settings(max_examples=40, deadline=None)
    def holds(pair: tuple[list[Number], list[Number]]) -> None:
        for order, most in zip(ORDERS[:12], bound[:12], strict=True):
            assert divergence(*pair, order) * curves.STEPS <= most + TINY
            assert divergence(pair[1], pair[0], order) * curves.STEPS <= most + TINY

    holds()


def test_curves_rise_with_the_order_and_the_loss() -> None:
    for kind in (curves.pure, curves.bounded_range, lambda e: laplace.renyi_curve(10, 10 / e), curves.concentrated):
        for smaller, larger in itertools.pairwise(HOSTILE):
            small, large = kind(smaller), kind(larger)
            assert list(small) == sorted(small)
            assert all(a < b for a, b in zip(small, large, strict=True))
