"""What an analyst sees of shared budgets: rounded, exact or hidden, as the owner chose.

An analyst's own charges are exact. In the lifetime budget of a dataset, the charges of all others are rounded up to
tenths of the budget; this depends only on the others' charges, so no query of the analyst changes it. In other shared
budgets (of a group, a day or a month), and where losses are curves that cannot be separated, the total is rounded. All
rounding is up: no analyst sees more remaining budget than there is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

from hubbub.accounting import gaussian_filter
from hubbub.accounting.convert import renyi_epsilon
from hubbub.accounting.cost import RENYI_UNIT, ZERO, PrivacyCost
from hubbub.accounting.filters import Budget, limits_for, remaining_epsilon, spent_epsilon
from hubbub.accounting.policy import Cap
from hubbub.answers.budget import CapDisplay
from hubbub.core.loss import ORDERS

#: The largest pure ε that fits under a cap; cached, because a refused analyst tends to retry.
remaining: Callable[[Budget, PrivacyCost], Fraction] = lru_cache(maxsize=4096)(remaining_epsilon)

#: The others' charges are rounded up to this fraction of the budget.
STEPS = 10


@dataclass(frozen=True, slots=True)
class CapDisclosure:
    """What an analyst sees of one cap: spent ε (None if the cap's δ is too small to compute it) and what still fits.

    left    the largest ε of one more charge; it can exceed `rest`, because charges may compose to less than their sum
    exact   whether nothing was rounded
    """

    spent: Fraction | None
    left: Fraction
    delta_left: Fraction
    exact: bool

    def rest(self, budget: Budget) -> Fraction:
        """Give the part of the cap that is not spent: with `spent` it adds up to the cap, or to less."""
        return self.left if self.spent is None else min(self.left, max(Fraction(0), budget.epsilon - self.spent))


def disclose(cap: Cap, total: PrivacyCost, own: PrivacyCost, show: CapDisplay) -> CapDisclosure | None:
    """Give what an analyst who spent `own` on the dataset sees of a cap; None if the cap is hidden.

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
    unshared = cap.scope in ("query", "analyst", "share") or (
        cap.scope == "dataset" and cap.per is None and total == own
    )
    if unshared or show == "exact":
        rest = max(Fraction(0), limits_for(cap.budget, total).delta - total.delta)
        return CapDisclosure(epsilon_under(cap.budget, total), remaining(cap.budget, total), rest, exact=True)
    if show == "hidden":
        return None
    lifetime = cap.scope == "dataset" and cap.per is None
    epsilon, most = cap.budget.epsilon, limits_for(cap.budget, total).delta
    mine = own if lifetime else ZERO
    delta = max(Fraction(0), most - min(most, mine.delta + _up(total.delta - mine.delta, most)))
    pure = total.pure is not None and own.pure is not None and not total.delta
    if lifetime and pure and total.pure is not None and own.pure is not None:
        spent = min(epsilon, own.pure + _up(total.pure - own.pure, epsilon))
        return CapDisclosure(spent, epsilon - spent, delta, exact=False)
    spent_total = epsilon_under(cap.budget, total)
    down = epsilon - _up(epsilon - remaining(cap.budget, total), epsilon)
    rounded = None if spent_total is None else min(epsilon, _up(spent_total, epsilon))
    return CapDisclosure(rounded, max(Fraction(0), down), delta, exact=False)


def epsilon_under(budget: Budget, price: PrivacyCost) -> Fraction | None:
    """Express a cost as ε under a cap; None if the cap's δ is too small for that."""
    limits = limits_for(budget, price)
    failures = limits.gaussian[2] if price.gaussian is not None else -1
    by_variance = price.gaussian is not None and gaussian_filter.failure(price.gaussian) <= failures
    if price.pure is None and not by_variance and all(most < 0 for most in limits.renyi):
        return None
    return spent_epsilon(budget, price)


def approximate_cost(cost: PrivacyCost, *, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Express a cost as (ε, δ): its pure loss, or for a curve the least ε, rounded up, at this δ besides its own."""
    if cost.pure is not None:
        return cost.pure, cost.delta
    curve = zip(ORDERS, cost.renyi, strict=True)
    return min(renyi_epsilon(order, value * RENYI_UNIT, delta) for order, value in curve), cost.delta + delta


def own_totals(caps: Sequence[tuple[Cap, PrivacyCost]]) -> Mapping[tuple[str, str | None], PrivacyCost]:
    """Give what an analyst spent on each dataset or block, from the caps that apply to a charge."""
    return {(cap.dataset, cap.block): total for cap, total in caps if cap.scope == "analyst"}


def _up(value: Fraction, whole: Fraction) -> Fraction:
    """Round up to tenths of a budget.

    >>> _up(Fraction(1, 100), Fraction(2)), _up(Fraction(0), Fraction(2))
    (Fraction(1, 5), Fraction(0, 1))
    """
    return Fraction(0) if not whole else ceil(value * STEPS / whole) * whole / STEPS
