"""What an analyst is told of budgets that others spend from too: rounded, exact, or nothing, as the owner chose.

An analyst's own spending is exact. Of a dataset's budget over its lifetime, what all others spent is rounded up to
tenths of the budget: a function of the others' spending alone, so no question of the analyst's own moves it. Of other
shared budgets (of a group, of a day or month), and where losses are curves and cannot be told apart, the whole is
rounded. All rounding is away from what is left: nobody is told of more than there is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

from hubbub.accounting.cost import ZERO, PrivacyCost
from hubbub.accounting.filters import Budget, headroom, limits, spent_epsilon
from hubbub.accounting.policy import Cap
from hubbub.answers.budget import CapDisplay

#: The largest pure ε that a cap still admits; kept, since a refused analyst tends to ask again.
left: Callable[[Budget, PrivacyCost], Fraction] = lru_cache(maxsize=4096)(headroom)

#: Parts of a budget in which what others spent is told.
STEPS = 10


@dataclass(frozen=True, slots=True)
class Shown:
    """One cap as it is told: what is spent (None where its δ is too small to say) and what is left.

    `exact` says that nothing was rounded. A cap that is hidden is not told of at all.
    """

    spent: Fraction | None
    left: Fraction
    delta_left: Fraction
    exact: bool


def shown(cap: Cap, total: PrivacyCost, own: PrivacyCost, show: CapDisplay) -> Shown | None:
    """Say what an analyst who spent `own` on the dataset is told of a cap; None where that is nothing.

    Theorem (What others spent). With `rounded`, what is told of a dataset's lifetime budget with pure losses depends
    on the others' spending only through the number of tenths of the budget that it reaches, and what is told to be left
    is at most what is.
    Proof    With o the own and t the total loss, others spent t − o ≥ 0; told are spent = o + up(t − o) and
             left = ε − spent, cut at 0, where up rounds up to tenths of ε. Since up(x) ≥ x, left ≤ ε − t.
    Assumes  own charges are part of the total: true of the lifetime budget, to which every charge is added.
    Charges  nothing: budgets are a function of queries and policy, not of the data. That a query is admitted or
             refused tells more, and must: docs/known-limits.md.
    Tested   tests/accounting/test_disclosure.py::test_what_is_told_depends_on_the_tenths_that_others_reach
             tests/accounting/test_disclosure.py::test_nobody_is_told_of_more_than_there_is
    """
    alone = cap.scope in ("query", "analyst") or (cap.scope == "dataset" and cap.per is None and total == own)
    if alone or show == "exact":
        rest = max(Fraction(0), limits(cap.budget).delta - total.delta)
        return Shown(cost(cap.budget, total), left(cap.budget, total), rest, exact=True)
    if show == "hidden":
        return None
    lifetime = cap.scope == "dataset" and cap.per is None
    epsilon, most = cap.budget.epsilon, limits(cap.budget).delta
    mine = own if lifetime else ZERO
    delta = max(Fraction(0), most - min(most, mine.delta + _up(total.delta - mine.delta, most)))
    pure = total.pure is not None and own.pure is not None and not total.delta
    if lifetime and pure and total.pure is not None and own.pure is not None:
        spent = min(epsilon, own.pure + _up(total.pure - own.pure, epsilon))
        return Shown(spent, epsilon - spent, delta, exact=False)
    told = cost(cap.budget, total)
    down = epsilon - _up(epsilon - left(cap.budget, total), epsilon)
    return Shown(None if told is None else min(epsilon, _up(told, epsilon)), max(Fraction(0), down), delta, exact=False)


def cost(budget: Budget, price: PrivacyCost) -> Fraction | None:
    """Say what a price amounts to as ε under a cap, or None where the cap's δ is too small for it to be said."""
    if price.pure is None and all(most < 0 for most in limits(budget).renyi):
        return None
    return spent_epsilon(budget, price)


def own_totals(caps: Sequence[tuple[Cap, PrivacyCost]]) -> Mapping[str, PrivacyCost]:
    """Find what an analyst spent on each dataset, among the caps that a charge must pass."""
    return {cap.dataset: total for cap, total in caps if cap.scope == "analyst"}


def _up(value: Fraction, whole: Fraction) -> Fraction:
    """Round up to tenths of the whole.

    >>> _up(Fraction(1, 100), Fraction(2)), _up(Fraction(0), Fraction(2))
    (Fraction(1, 5), Fraction(0, 1))
    """
    return Fraction(0) if not whole else ceil(value * STEPS / whole) * whole / STEPS
