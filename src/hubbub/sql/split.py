"""Split a budget into shares, and convert (ε, δ) into a zCDP budget for Gaussian noise.

Any shares are private as long as they add up to at most the whole. They are therefore computed in floating point and
then rounded down to exact decimals.

Tested in tests/sql/test_plan.py.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core.gaussian_profile import least_variance
from hubbub.core.loss import ORDERS
from hubbub.core.reals import floor_to, log
from hubbub.core.shares import GAUSSIAN, ORDER, ORDERS_USED

#: The smallest share, relative to the largest.
_MIN_SHARE = 0.02

_ROUNDS = 60
_PLACES = 24
#: The least variance that the Gaussian filter prices, and what it subtracts from larger ones, up to a limit.
_LEAST_VARIANCE, _SUBTRACTED, _MOST_SUBTRACTED = 10, ((99, 1), (9_998, 2)), 10


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
    squares = squares[squares.any(axis=1)]
    if not (len(squares) and np.isfinite(squares).all()):
        # no error is known to be compared: of results without noise, or beyond the range of doubles
        return [1.0 / errors.shape[1]] * errors.shape[1]
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


@lru_cache(maxsize=1024)
def zcdp_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ρ, rounded down, that the ledger's Gaussian filter admits under a cap (ε, δ).

    Theorem (From concentration to approximate privacy). Gaussian noises of variance D²/(2ρ_i) + c, and at least 10,
    where Σ ρ_i ≤ ρ, and ranges of loss with Σ ε²/8 ≤ (7/11)ρ_i, together pass the Gaussian filter of the cap (ε, δ).
    Proof    Their prices are D²/(σ²−c) ≤ 2ρ_i, with the c of `gaussian_filter`, and (11/7)ε²/4; 2ρ is the filter's
             limit at its share of δ.
    Assumes  `gaussian_variance` calibrates the noise. The filter's small failures have a share of their own.
    Tested   tests/sql/test_plan.py::test_gaussian_plans_pass_the_filter_of_their_own_budget
    """
    if not delta > 0:
        return Fraction(0)
    return floor_to(1 / (2 * least_variance(epsilon, delta * GAUSSIAN)), _PLACES)


def gaussian_variance(squared: int, rho: Fraction) -> Fraction:
    """Return the variance of Gaussian noise that costs ρ of `zcdp_budget`, for a squared sensitivity.

    >>> gaussian_variance(1, Fraction(1, 10)), gaussian_variance(100, Fraction(1, 2)), gaussian_variance(1, Fraction(1))
    (Fraction(10, 1), Fraction(102, 1), Fraction(10, 1))
    """
    variance = squared / (2 * rho)
    more = next((more for limit, more in _SUBTRACTED if variance < limit), _MOST_SUBTRACTED)
    return max(Fraction(_LEAST_VARIANCE), variance + more)


def rho_beside_pure_losses(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ρ, rounded down, that one order of a filter converts to ε at the share of δ that it has.

    Beside pure losses a filter decides by its orders; every cap has the same ones.
    """
    return _by_orders(epsilon, delta * ORDER, ORDERS_USED)


def rho_of_streams(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the ρ of streams: noise of streams that exist was calibrated by this formula, so it never changes.

    It converts a quarter of δ at the best order, which costs more noise than the Gaussian filter asks for.
    """
    return _by_orders(epsilon, delta / 4, ORDERS)


@lru_cache(maxsize=1024)
def _by_orders(epsilon: Fraction, share: Fraction, orders: Sequence[Fraction]) -> Fraction:
    """Give the largest ρ such that ρα + ln((α−1)/α) − ln(δα)/(α−1) ≤ ε at one order α (see `accounting.convert`)."""
    if not share > 0:
        return Fraction(0)
    room = (
        (epsilon + log(order / (order - 1))[0] + log(share * order)[0] / (order - 1)) / order for order in orders
    )  # log(δ·α) is negative, so its lower bound is the safe one
    return floor_to(max(Fraction(0), *room), _PLACES)
