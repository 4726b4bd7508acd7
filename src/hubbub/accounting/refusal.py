"""Refusals: what an analyst is told when a cap would be passed.

A refusal is a function of the request, the policy and what was charged before; so an analyst could compute it, and it
says nothing about the data.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from hubbub.accounting.filters import Budget, headroom, limits, spent_epsilon
from hubbub.accounting.policy import Cap
from hubbub.accounting.price import Price
from hubbub.core import overview
from hubbub.core.numbers import brief, down
from hubbub.errors import BudgetError

#: A cap and what was charged to it so far.
Spent = tuple[Cap, Price]


class CapError(BudgetError):
    """A cap would be passed; `largest` is the largest ε that would pass all of them (0 where none would)."""

    largest: Fraction = Fraction(0)


#: The largest pure ε that a cap still admits; kept, since a refused analyst tends to ask again.
left: Callable[[Budget, Price], Fraction] = lru_cache(maxsize=4096)(headroom)


def cost(budget: Budget, price: Price) -> Fraction | None:
    """Say what a price amounts to as ε under a cap, or None where the cap's δ is too small for it to be said."""
    if price.pure is None and all(most < 0 for most in limits(budget).renyi):
        return None
    return spent_epsilon(budget, price)


def refuse(cap: Cap, spent: Price, price: Price, all_caps: Sequence[Spent], analyst: str) -> CapError:
    """Make the refusal by `cap`, which does not admit `price` after `spent`."""
    largest = min(left(each.budget, before) for each, before in all_caps)
    error = CapError(
        "HB201",
        f"budget: {_why(cap, spent, price, analyst)}. Nothing was run or charged.",
        _remedy(cap, price, largest),
    )
    error.largest = largest
    return error


def whose(cap: Cap, analyst: str) -> str:
    """Name a cap as a person would."""
    return overview.whose(cap.scope, cap.name, cap.per, analyst=analyst, dataset=cap.dataset)


def _why(cap: Cap, spent: Price, price: Price, analyst: str) -> str:
    epsilon, own = cost(cap.budget, price), limits(cap.budget).delta
    if epsilon is None or (price.delta and not own):
        return f"this query needs a δ, and the cap {whose(cap, analyst)} has none or too small a one"
    if spent.delta + price.delta > own:
        rest = down(max(Fraction(0), own - spent.delta))
        return f"this query costs δ={brief(price.delta)} and {rest} is left {whose(cap, analyst)}"
    room = f"{down(left(cap.budget, spent))} is {'allowed' if cap.scope == 'query' else 'left'}"
    return f"this query costs ε={brief(epsilon)} and {room} {whose(cap, analyst)}"


def _remedy(cap: Cap, price: Price, largest: Fraction) -> str:
    if not largest:
        return "Nothing more can be asked under this cap; the owner of the data decides whether to raise it."
    if price.delta or cost(cap.budget, price) is None:
        return f"Without a δ (Laplace noise, declared keys), up to ε={down(largest)} would pass."
    return f"Up to ε={down(largest)} would pass: --epsilon {down(largest)}"
