"""Refusals: what an analyst is told when a cap would be passed.

A refusal is a function of the request, the policy and what was charged before; so an analyst could compute it, and it
says nothing about the data.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from hubbub.accounting.cost import ZERO, PrivacyCost
from hubbub.accounting.disclosure import Shown, cost, own_totals, shown
from hubbub.accounting.filters import limits
from hubbub.accounting.policy import Cap
from hubbub.answers import budget as overview
from hubbub.answers.budget import CapDisplay
from hubbub.core.numbers import brief, round_down
from hubbub.errors import BudgetError

_HIDDEN = "Ask for less, or ask the data owner: what is left of the shared budget is not shown."

#: A cap and what was charged to it so far.
Spent = tuple[Cap, PrivacyCost]


class CapError(BudgetError):
    """A cap would be passed; `largest` is the largest ε that would pass all of them (0 where none would)."""

    largest: Fraction = Fraction(0)


def refuse(
    cap: Cap, spent: PrivacyCost, price: PrivacyCost, all_caps: Sequence[Spent], analyst: str, show: Mapping[str, CapDisplay]
) -> CapError:
    """Make the refusal by `cap`, which does not admit `price` after `spent`; `show` says what is told of each dataset.

    Where a cap is hidden, no ε is named that would pass, since nobody could promise it.
    """
    own = own_totals(all_caps)
    told = [_told(each, before, own, show) for each, before in all_caps]
    refusing = _told(cap, spent, own, show)
    largest = min((each.left if each is not None else Fraction(0) for each in told), default=Fraction(0))
    error = CapError(
        "HB201",
        f"budget: {_why(cap, refusing, spent, price, analyst)}. Nothing was run or charged.",
        _HIDDEN
        if None in told
        else _remedy(cap, price, largest, exact=all(each is None or each.exact for each in told)),
    )
    error.largest = largest
    return error


def _told(cap: Cap, total: PrivacyCost, own: Mapping[str, PrivacyCost], show: Mapping[str, CapDisplay]) -> Shown | None:
    return shown(cap, total, own.get(cap.dataset, ZERO), show.get(cap.dataset, "rounded"))


def whose(cap: Cap, analyst: str) -> str:
    """Name a cap as a person would."""
    return overview.describe_cap(cap.scope, cap.name, cap.per, analyst=analyst, dataset=cap.dataset)


def _why(cap: Cap, told: Shown | None, spent: PrivacyCost, price: PrivacyCost, analyst: str) -> str:
    epsilon, own = cost(cap.budget, price), limits(cap.budget).delta
    if epsilon is None or (price.delta and not own):
        return f"this query needs a δ, and the cap {whose(cap, analyst)} has none or too small a one"
    short = spent.delta + price.delta > own
    costs = f"this query costs δ={brief(price.delta)}" if short else f"this query costs ε={brief(epsilon)}"
    if told is None:
        return f"{costs}, and less is left {whose(cap, analyst)}"
    rest = round_down(told.delta_left if short else told.left)
    room = f"{rest} is {'allowed' if cap.scope == 'query' else 'left'}"
    return f"{costs} and {'' if told.exact else 'at least '}{room} {whose(cap, analyst)}"


def _remedy(cap: Cap, price: PrivacyCost, largest: Fraction, *, exact: bool) -> str:
    if not largest and not exact:
        return "Less than a tenth of a shared budget is left. Ask for a smaller ε, or ask the data owner to raise it."
    if not largest:
        return "Nothing more can be asked under this cap; the owner of the data decides whether to raise it."
    if price.delta or cost(cap.budget, price) is None:
        return f"Without a δ (Laplace noise, declared keys), up to ε={round_down(largest)} would pass."
    return f"Up to ε={round_down(largest)} would pass: --epsilon {round_down(largest)}"
