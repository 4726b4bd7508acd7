"""Split a budget into shares, and convert (ε, δ) into a zCDP budget for Gaussian noise.

Any shares are private as long as they add up to at most the whole. They are therefore computed in floating point and
then rounded down to exact decimals.

Tested in tests/sql/test_plan.py.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.loss import ORDERS
from hubbub.core.reals import floor_to, log

#: The smallest share, relative to the largest.
_MIN_SHARE = 0.02

#: The share of δ that a privacy filter has for the conversion at each order, even one that it does not prefer.
ANY_ORDER = Fraction(1, 20 * len(ORDERS))

_ROUNDS = 60
_PLACES = 24


def shares(errors: NDArray[np.float64], weights: Sequence[float], *, power: float) -> list[float]:
    """Split one budget over measures so that the weighted relative errors of the results are as equal as possible.

    errors[j, i] is the error of result j for a unit of noise on measure i. The noise on measure i has variance
    share⁻²^power (power 1 for Laplace, ½ for Gaussian noise). For fixed multipliers λⱼ the sum of λⱼ·varianceⱼ is
    smallest at shareᵢ ∝ (Σⱼ λⱼ errors²ⱼᵢ)^(1/(1 + 2·power)); the multipliers of inaccurate results are raised until all
    results are equally accurate.
    """
    if errors.shape[1] == 1:
        return [1.0]
    squares = (errors * np.asarray(weights, dtype=np.float64)[:, None]) ** 2
    multipliers = np.ones(len(squares))
    result = np.full(squares.shape[1], 1.0 / squares.shape[1])
    for _ in range(_ROUNDS):
        result = (multipliers @ squares) ** (1 / (1 + 2 * power))
        # give every measure a minimum share: its noise must stay in the range of the samplers
        result = np.maximum(result, result.max() * _MIN_SHARE)
        result /= result.sum()
        variances = squares @ result ** (-2 * power)
        multipliers *= np.sqrt(variances / variances.mean())
        multipliers /= multipliers.sum()
    return [float(share) for share in result]


def portions(whole: Fraction, parts: Sequence[float]) -> tuple[Fraction, ...]:
    """Split a budget into exact decimals that add up to at most the whole.

    >>> portions(Fraction(1, 10), [1.0]), sum(portions(Fraction(1, 3), [0.5, 0.5])) <= Fraction(1, 3)
    ((Fraction(1, 10),), True)
    """
    if len(parts) == 1:
        return (whole,)
    exact = [Fraction(round(part * 10**9), 10**9) for part in parts]
    total = sum(exact, Fraction(0))
    return tuple(floor_to(whole * part / total, _PLACES) for part in exact)


def zcdp_budget(epsilon: Fraction, delta: Fraction, share: Fraction = Fraction(1, 4)) -> Fraction:
    """Return the largest ρ, rounded down, for which ρ-zCDP implies (ε, δ)-DP in the ledger's privacy filter.

    Theorem (From concentration to approximate privacy). A mechanism whose Rényi divergence of order α is at most ρα is
    (ε, δ)-private if ρα + ln((α−1)/α) − ln(δα)/(α−1) ≤ ε (Canonne, Kamath and Steinke 2020, Proposition 12).
    Assumes  one order of the fixed grid is chosen beforehand; a filter keeps half of δ for slips of the events and half
             of the rest for its other orders, so a quarter of δ is converted here: what passes here passes there.
             Beside pure losses the best order may not be the one that a filter prefers; it has ANY_ORDER of δ for each.
    Tested   tests/sql/test_plan.py::test_gaussian_plans_pass_the_filter_of_their_own_budget
    """
    if not delta > 0:
        return Fraction(0)
    room = (
        (epsilon + log(order / (order - 1))[0] + log(delta * share * order)[0] / (order - 1)) / order
        for order in ORDERS
    )  # log(δ·share·order) is negative, so its lower bound is the safe one
    return floor_to(max(Fraction(0), *room), _PLACES)
