"""Filters: may an analyst who chooses each query by the answers so far have one more?"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hubbub.accounting import curves
from hubbub.accounting.price import RENYI_UNIT, Price
from hubbub.core.loss import ORDERS
from hubbub.core.reals import log

_PLACES = 9


@dataclass(frozen=True, slots=True)
class Budget:
    """A cap: (ε, δ)-privacy for everything that is ever admitted; δ = 0 asks for pure ε-privacy."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Limits:
    """What a cap allows in each form, fixed by the cap alone: see `limits`."""

    delta: Fraction
    renyi: tuple[int, ...]
    slack: tuple[Fraction, ...]


def _slack(order: Fraction, delta: Fraction) -> Fraction:
    gain = log(order / (order - 1))[0]
    return (-log(delta * order)[0]) / (order - 1) - gain


@lru_cache(maxsize=1024)
def limits(budget: Budget) -> Limits:
    """Split a cap: δ for the events themselves, and the largest Rényi total at each order (−1: never usable)."""
    own = budget.delta / 2
    if not budget.delta:
        return Limits(own, (-1,) * len(ORDERS), (Fraction(0),) * len(ORDERS))
    conversion = budget.delta - own

    def room(order: Fraction, share: Fraction) -> Fraction:
        return budget.epsilon - _slack(order, conversion * share)

    first = max(ORDERS, key=lambda order: room(order, Fraction(1, 2)) / order)
    others = [a for a in ORDERS if a != first and room(a, Fraction(1, 2 * (len(ORDERS) - 1))) > 0]
    renyi, slack = [], []
    for order in ORDERS:
        share = Fraction(1, 2) if order == first else Fraction(1, 2 * max(1, len(others)))
        left = room(order, share)
        usable = left > 0 and (order == first or order in others)
        renyi.append(left.numerator * curves.STEPS // left.denominator if usable else -1)
        slack.append(budget.epsilon - left)
    return Limits(own, tuple(renyi), tuple(slack))


def admits(budget: Budget, spent: Price, price: Price) -> bool:
    """Say whether the cap still holds, for every adaptive analyst, when `price` is added to what is spent."""
    if spent.pure is not None and price.pure is not None and spent.pure + price.pure <= budget.epsilon:
        within = True
    elif budget.delta:
        most = limits(budget).renyi
        within = any(s + p <= b for s, p, b in zip(spent.renyi, price.renyi, most, strict=True))
    else:
        within = False
    if not within or not (price.delta or spent.delta):
        return within
    return spent.delta + price.delta <= limits(budget).delta


def headroom(budget: Budget, spent: Price) -> Fraction:
    """Give the largest ε (rounded down) such that one pure event of that loss would still pass; 0 if none would."""
    left = Fraction(0)
    if spent.pure is not None:
        left = max(left, budget.epsilon - spent.pure)
    if spent.delta > limits(budget).delta:
        return Fraction(0)
    for place, most in enumerate(limits(budget).renyi):
        room = most - spent.renyi[place]
        if room <= 0:
            continue
        low, high = int(left * 10**_PLACES), int(2 * budget.epsilon + 1) * 10**_PLACES
        while high - low > 1:
            middle = (low + high) // 2
            if curves.pure(Fraction(middle, 10**_PLACES))[place] <= room:
                low = middle
            else:
                high = middle
        left = max(left, Fraction(low, 10**_PLACES))
    return left


def spent_epsilon(budget: Budget, spent: Price) -> Fraction:
    """Give the ε (rounded up) that the spend so far amounts to at the budget's δ, by the best filter."""
    bounds = [] if spent.pure is None else [spent.pure]
    if budget.delta:
        split = limits(budget)
        bounds += [
            max(Fraction(0), value * RENYI_UNIT + slack)
            for value, most, slack in zip(spent.renyi, split.renyi, split.slack, strict=True)
            if most >= 0
        ]
    return min(bounds)
