"""Shares of trials and how sure one can be of them: exact intervals by Clopper and Pearson, in floats.

For reports about attacks and audits; no budget depends on them.
"""

import math
from collections.abc import Callable

_TINY = 1e-300
_ROUNDS = 200


def tail(least: int, trials: int, chance: float) -> float:
    """Give Pr[X ≥ least] for X binomial.

    >>> tail(1, 2, 0.5), tail(0, 5, 0.1), tail(6, 5, 0.9)
    (0.75, 1.0, 0.0)
    """
    if least <= 0:
        return 1.0
    return 0.0 if least > trials else incomplete_beta(least, trials - least + 1, chance)


def interval(right: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Give the Clopper–Pearson interval of a chance from `right` successes in `trials` independent trials.

    >>> [round(end, 4) for end in interval(0, 10)], [round(end, 4) for end in interval(8, 10)]
    ([0.0, 0.3085], [0.4439, 0.9748])
    """
    half = (1 - confidence) / 2
    low = 0.0 if right == 0 else _solve(lambda p: tail(right, trials, p), half)
    high = 1.0 if right == trials else _solve(lambda p: tail(right + 1, trials, p), 1 - half)
    return low, high


def at_least(right: int, trials: int, alarm: float) -> float:
    """Give a lower bound of a chance that is wrong with probability at most `alarm` (Clopper and Pearson, one side).

    >>> round(at_least(8, 10, 0.025), 4), at_least(0, 10, 0.025), round(1 - at_least(2, 10, 0.025), 4)
    (0.4439, 0.0, 0.9748)
    """
    if right == 0:
        return 0.0
    low, high = 0.0, right / trials
    while high - low > 1e-9 * high:  # `low` is on the safe side all the time
        middle = (low + high) / 2
        low, high = (middle, high) if tail(right, trials, middle) < alarm else (low, middle)
    return low


def _solve(rising: Callable[[float], float], level: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Give the regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # there the fraction converges slowly
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _ROUNDS + math.isqrt(int(a + b))):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return min(1.0, front * value / a)


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
