"""Rényi curves, in units of 10⁻¹⁸ at each of the fixed orders, rounded up.

All exponents are negative, so that no loss overflows, and an exponential that is too small to matter is enclosed by
zero and a bound, so that no loss is slow. A new curve takes about half a millisecond: one exponential, its powers as
integers, and one logarithm per order.

All curves hold in both directions: each worst-case pair below is symmetric.
"""

from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from hubbub.core.loss import ORDERS
from hubbub.core.reals import Enclosure, exp

STEPS = 10**18
Curve = tuple[int, ...]

_BITS = 160
ONE = 1 << _BITS
_FAR = 150  # e^-150 < 10^-65 is below all digits that are kept
_UP = Context(prec=25, rounding=ROUND_CEILING, traps=[])
_SMALL = Fraction(1, 10**6)

#: Twice each order is an integer, so that e^(−x·2α) is an integer power of e^(−x).
DOUBLED_ORDERS = tuple(int(2 * order) for order in ORDERS)
_RUNGS = (2 * max(DOUBLED_ORDERS)).bit_length()


def units(divergence: Fraction) -> int:
    """Round a divergence up to a whole number of units; a divergence is never negative.

    >>> units(Fraction(1, 3))
    333333333333333334
    """
    return max(0, -((-divergence.numerator * STEPS) // divergence.denominator))


def _decay(x: Fraction) -> Enclosure:
    return exp(-x) if x <= _FAR else (Fraction(0), exp(Fraction(-_FAR))[1])


class DecayPowers:
    """Enclosures of e^(−n·x) for integers n, as integers in units of 2⁻¹⁶⁰."""

    __slots__ = ("rungs",)

    def __init__(self, x: Fraction) -> None:
        low, high = _decay(x)
        pair = (low.numerator * ONE // low.denominator, -(-high.numerator * ONE // high.denominator))
        self.rungs = [pair]
        for _ in range(_RUNGS):
            pair = (pair[0] * pair[0] >> _BITS, -(-pair[1] * pair[1] >> _BITS))
            self.rungs.append(pair)

    def __getitem__(self, n: int) -> tuple[int, int]:
        low = high = ONE
        for rung in range(n.bit_length()):
            if n >> rung & 1:
                low = low * self.rungs[rung][0] >> _BITS
                high = -(-high * self.rungs[rung][1] >> _BITS)
        return low, high


def log_above(top: int, bottom: int) -> Decimal:
    """Give ln(top/bottom), rounded up."""
    ratio = _UP.divide(Decimal(top), Decimal(bottom))
    return Decimal(0) if ratio == 1 else _UP.ln(ratio).next_plus(_UP)


def _log_below(top: int, bottom: int) -> Decimal:
    return log_above(bottom, top).copy_negate()


def divergence(epsilon: Fraction, logarithm: Decimal, order: Fraction) -> int:
    """Give ε + logarithm/(α−1) in units."""
    return units(epsilon + Fraction(logarithm) / (order - 1))


@lru_cache(maxsize=4096)
def pure(epsilon: Fraction) -> Curve:
    """Bound the Rényi curve of any ε-private mechanism by that of binary randomized response.

    Theorem (Pure loss to Rényi). An ε-DP pair has D_α(P‖Q) ≤ ε + ln((1 + e^(−(2α−1)ε))/(1 + e^(−ε)))/(α−1), and
    binary randomized response attains it.
    Proof    X = dP/dQ has mean 1 under Q and lies in [e^(−ε), e^ε]. x^α is convex, so E_Q[X^α] is at most that of the
    distribution on the two ends with mean 1, which puts 1/(1+e^ε) on e^ε: randomized response (Mironov, 2017,
    proposition 9).
    Tested   tests/accounting/test_curves.py::test_no_pure_pair_exceeds_the_curve_of_randomized_response,
    tests/accounting/test_curves.py::test_each_curve_is_the_closed_form_to_one_unit
    """
    return response(2, epsilon)


def response(answers: int, epsilon: Fraction) -> Curve:
    """Give the Rényi curve of randomized response with this number of answers.

    Theorem (Rényi curve of randomized response). With k answers, odds e^ε and two inputs that differ, D_α is
    ε + ln((1 + e^(−(2α−1)ε) + (k−2)e^(−αε))/(1 + (k−1)e^(−ε)))/(α−1).
    Proof    Sum p^α q^(1−α) over the two inputs' own answers and the k−2 others.
    Tested   tests/accounting/test_curves.py::test_each_curve_is_the_closed_form_to_one_unit,
    tests/accounting/test_curves.py::test_response_curve_equals_brute_force
    """
    return tuple(_response_at(answers, epsilon, range(len(ORDERS))))


def pure_at(epsilon: Fraction, places: Iterable[int]) -> Iterator[int]:
    """Give the values of `pure` at some of the orders, by their places, one after the other."""
    return _response_at(2, epsilon, places)


def _response_at(answers: int, epsilon: Fraction, places: Iterable[int]) -> Iterator[int]:
    halves = DecayPowers(epsilon / 2)
    bottom = ONE + (answers - 1) * halves[2][0]
    for place in places:
        doubled = DOUBLED_ORDERS[place]
        top = ONE + halves[2 * (doubled - 1)][1] + (answers - 2) * halves[doubled][1]
        yield divergence(epsilon, log_above(top, bottom), ORDERS[place])


def bounded_range(epsilon: Fraction) -> Curve:
    """Bound the Rényi curve of a mechanism whose log-ratios lie in one interval of length ε.

    Theorem (Bounded range to Rényi). If ln dP/dQ lies in an interval of length ε, then
    D_α(P‖Q) ≤ ε + (α ln((1−e^(−αε))/α) − (α−1) ln((1−e^(−(α−1)ε))/(α−1)) − ln(1−e^(−ε)))/(α−1), and some pair attains
    it; it is also at most αε²/8.
    Proof    Let the interval be [t−ε, t]; 0 ≤ t ≤ ε because E_Q[dP/dQ] = 1. As for pure loss, E_Q[(dP/dQ)^α] is at most
    that of the distribution on the two ends with mean 1. With y = e^t that is c·y^(α−1) − d·y^α, where
    c = (1−e^(−αε))/(1−e^(−ε)) and d = (e^(−ε)−e^(−αε))/(1−e^(−ε)); its maximum is at y = (α−1)c/(αd), with the value
    (c/α)·y^(α−1). The line αε²/8: Cesar and Rogers (2021), lemma 3.4, by Hoeffding's lemma.
    Tested   tests/accounting/test_curves.py::test_no_bounded_range_pair_exceeds_its_curve,
    tests/accounting/test_curves.py::test_each_curve_is_the_closed_form_to_one_unit
    """
    line = concentrated(epsilon * epsilon / 8)
    if epsilon < _SMALL:  # they agree to one part in 10^12 there, and subtracting near values loses digits
        return line
    halves = DecayPowers(epsilon / 2)
    last = _log_below(ONE - halves[2][1], ONE)
    curve = []
    for order, doubled in zip(ORDERS, DOUBLED_ORDERS, strict=True):
        rise = Fraction(log_above(2 * (ONE - halves[doubled][0]), doubled * ONE))
        fall = Fraction(_log_below(2 * (ONE - halves[doubled - 2][1]), (doubled - 2) * ONE))
        total = order * rise - (order - 1) * fall - Fraction(last)
        curve.append(units(epsilon + total / (order - 1)))
    return tuple(map(min, curve, line))


def concentrated(rho: Fraction) -> Curve:
    """Give the line α·ρ of ρ-zCDP.

    >>> concentrated(Fraction(1, 2))[1]
    1000000000000000000
    """
    return tuple([units(order * rho) for order in ORDERS])
