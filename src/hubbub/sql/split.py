"""How a query's ε is shared by its measures, and what (ε, δ) allows as Gaussian noise.

Which shares are taken does not matter for privacy as long as they add up to no more than the whole; so they are found
in floating point and then cut down to exact decimals.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.loss import ORDERS
from hubbub.core.reals import floor_to, log

#: No measure gets less than this beside the one that gets most.
LEAST = 0.02

_ROUNDS = 60
_PLACES = 24


def shares(errors: NDArray[np.float64], weights: Sequence[float], *, power: float) -> list[float]:
    """Share one budget over measures so that the answers' weighted relative errors are equal, as far as can be.

    errors[j, i] is answer j's error for a unit of noise on measure i; noise on measure i has variance share⁻²^power
    (power 1 for Laplace, ½ for Gaussian noise). An answer that matters twice as much has weight 2. For fixed stakes λⱼ
    the sum of λⱼ·varianceⱼ is least at shareᵢ ∝ (Σⱼ λⱼ errors²ⱼᵢ)^(1/(1 + 2·power)); the stakes of answers that fare
    badly are raised until all fare alike.
    """
    if errors.shape[1] == 1:
        return [1.0]
    squares = (errors * np.asarray(weights, dtype=np.float64)[:, None]) ** 2
    stakes = np.ones(len(squares))
    found = np.full(squares.shape[1], 1.0 / squares.shape[1])
    for _ in range(_ROUNDS):
        found = (stakes @ squares) ** (1 / (1 + 2 * power))
        # a measure that hardly matters still gets a sliver: its noise must stay in the samplers' range
        found = np.maximum(found, found.max() * LEAST)
        found /= found.sum()
        fares = squares @ found ** (-2 * power)
        stakes *= np.sqrt(fares / fares.mean())
        stakes /= stakes.sum()
    return [float(share) for share in found]


def portions(whole: Fraction, parts: Sequence[float]) -> tuple[Fraction, ...]:
    """Cut a budget into exact decimals that add up to no more than the whole.

    >>> portions(Fraction(1, 10), [1.0]), sum(portions(Fraction(1, 3), [0.5, 0.5])) <= Fraction(1, 3)
    ((Fraction(1, 10),), True)
    """
    if len(parts) == 1:
        return (whole,)
    exact = [Fraction(round(part * 10**9), 10**9) for part in parts]
    total = sum(exact, Fraction(0))
    return tuple(floor_to(whole * part / total, _PLACES) for part in exact)


def concentrated(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the largest ρ, rounded down, whose zero-concentrated loss is (ε, δ)-private, as the ledger's filter sees it.

    Theorem (From concentration to approximate privacy). A mechanism whose Rényi divergence of order α is at most ρα is
    (ε, δ)-private if ρα + ln((α−1)/α) − ln(δα)/(α−1) ≤ ε (Canonne, Kamath and Steinke 2020, Proposition 12).
    Assumes  one order of the fixed grid is chosen beforehand; a filter keeps half of δ for slips of the events and half
             of the rest for its other orders, so a quarter of δ is converted here: what passes here passes there.
    Tested   tests/sql/test_plan.py::test_gaussian_plans_pass_the_filter_of_their_own_budget
    """
    if not delta > 0:
        return Fraction(0)
    share = delta / 4
    room = (
        (epsilon + log(order / (order - 1))[0] + log(share * order)[0] / (order - 1)) / order for order in ORDERS
    )  # log(share·order) is negative: its lower end is the safe one
    return floor_to(max(Fraction(0), *room), _PLACES)
