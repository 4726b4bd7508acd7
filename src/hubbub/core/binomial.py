"""Binomial tails and Clopper–Pearson confidence intervals, in floats.

They serve reports about attacks and audits; no budget depends on them.
"""

import math
from collections.abc import Callable

_TINY = 1e-300
_ROUNDS = 200


def tail(least: int, trials: int, chance: float) -> float:
    """Return Pr[X ≥ least] for a binomial X.

    >>> tail(1, 2, 0.5), tail(0, 5, 0.1), tail(6, 5, 0.9)
    (0.75, 1.0, 0.0)
    """
    if least <= 0:
        return 1.0
    return 0.0 if least > trials else incomplete_beta(least, trials - least + 1, chance)


def interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Clopper–Pearson interval of a probability after `successes` in `trials` independent trials.

    >>> [round(end, 4) for end in interval(0, 10)], [round(end, 4) for end in interval(8, 10)]
    ([0.0, 0.3085], [0.4439, 0.9748])
    """
    half = (1 - confidence) / 2
    low = 0.0 if successes == 0 else _solve(lambda p: tail(successes, trials, p), half)
    high = 1.0 if successes == trials else _solve(lambda p: tail(successes + 1, trials, p), 1 - half)
    return low, high


def lower_bound(successes: int, trials: int, alarm: float) -> float:
    """Return a one-sided Clopper–Pearson lower bound that is wrong with probability at most `alarm`.

    >>> round(lower_bound(8, 10, 0.025), 4), lower_bound(0, 10, 0.025), round(1 - lower_bound(2, 10, 0.025), 4)
    (0.4439, 0.0, 0.9748)
    """
    if successes == 0:
        return 0.0
    low, high = 0.0, successes / trials
    while high - low > 1e-9 * high:  # `low` is a valid bound throughout
        middle = (low + high) / 2
        low, high = (middle, high) if tail(successes, trials, middle) < alarm else (low, middle)
    return low


def _solve(rising: Callable[[float], float], level: float) -> float:
    """Solve rising(p) = level on [0, 1] by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b), from its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges slowly there
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _ROUNDS + math.isqrt(int(a + b))):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return min(1.0, front * value / a)


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
