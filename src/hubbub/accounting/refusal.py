"""The error for a query that exceeds the budget.

It depends only on the request, the policy and earlier charges, so it reveals nothing about the data.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from hubbub.accounting.cost import ZERO, PrivacyCost
from hubbub.accounting.disclosure import CapDisclosure, disclose, epsilon_under, own_totals
from hubbub.accounting.filters import limits_for
from hubbub.accounting.policy import Cap
from hubbub.answers import budget as overview
from hubbub.answers.budget import CapDisplay
from hubbub.core.numbers import DELTA_MIN, brief, round_down
from hubbub.errors import BudgetError

_HIDDEN = "Use a smaller ε, or ask the data owner. The remaining shared budget is not shown."

_THREE = Context(prec=3, rounding=ROUND_FLOOR)

#: A cap and its total so far.
Spent = tuple[Cap, PrivacyCost]


class CapError(BudgetError):
    """A cap would be exceeded; `largest` is the largest ε that fits under all of them (0 if none does)."""

    largest: Fraction = Fraction(0)


def budget_error(
    cap: Cap,
    spent: PrivacyCost,
    price: PrivacyCost,
    all_caps: Sequence[Spent],
    analyst: str,
    show: Mapping[str, CapDisplay],
) -> CapError:
    """Make the error for `cap`, which does not admit `price` after `spent`.

    `show` says how much of each dataset's budget the analyst sees. If a cap is hidden, no ε that would fit is named.
    """
    own = own_totals(all_caps)
    states = [_disclosed(other, total, own, show) for other, total in all_caps]
    refusing = _disclosed(cap, spent, own, show)
    largest = min((Fraction(0) if state is None else state.left for state in states), default=Fraction(0))
    error = CapError(
        "HB201",
        f"Not enough budget: {_why(cap, refusing, spent, price, analyst)}. Nothing was run or charged.",
        _HIDDEN if None in states else _remedy(cap, spent, price, [state for state in states if state is not None]),
    )
    error.largest = largest
    return error


def _disclosed(
    cap: Cap, total: PrivacyCost, own: Mapping[tuple[str, str | None], PrivacyCost], show: Mapping[str, CapDisplay]
) -> CapDisclosure | None:
    return disclose(cap, total, own.get((cap.dataset, cap.block), ZERO), show.get(cap.dataset, "rounded"))


def cap_label(cap: Cap, analyst: str) -> str:
    """Describe a cap."""
    described = overview.describe_cap(cap.scope, cap.name, cap.per, analyst=analyst, dataset=cap.dataset)
    return f"{described} in {cap.block}" if cap.block else described


def _why(cap: Cap, state: CapDisclosure | None, spent: PrivacyCost, price: PrivacyCost, analyst: str) -> str:
    epsilon, own = epsilon_under(cap.budget, price), limits_for(cap.budget, spent).delta
    if epsilon is None or (price.delta and not own):
        return f"this query needs a δ, but the budget {cap_label(cap, analyst)} has none, or too small a one"
    short = _lacks_delta(cap, spent, price)
    costs = f"this query costs δ={brief(price.delta)}" if short else f"this query costs ε={brief(epsilon)}"
    if state is None:
        return f"{costs}, but less is left {cap_label(cap, analyst)}"
    rest = f"δ={_small(state.delta_left)}" if short else round_down(state.left)
    verb = "is allowed" if cap.scope == "query" else "is left"
    return f"{costs}, but {'' if state.exact else 'possibly '}only {rest} {verb} {cap_label(cap, analyst)}"


def _lacks_delta(cap: Cap, spent: PrivacyCost, price: PrivacyCost) -> bool:
    return bool(price.delta) and spent.delta + price.delta > limits_for(cap.budget, spent).delta


def _remedy(cap: Cap, spent: PrivacyCost, price: PrivacyCost, states: Sequence[CapDisclosure]) -> str:
    largest = min((state.left for state in states), default=Fraction(0))
    if _lacks_delta(cap, spent, price) and limits_for(cap.budget, spent).delta and largest:
        return _remedy_for_delta(min(state.delta_left for state in states))
    if not largest and not all(state.exact for state in states):
        return "Less than a tenth of a shared budget is left. Use a smaller ε, or ask the data owner to raise it."
    if not largest and cap.block:
        return f"The budget of this block is exhausted. Ask about other blocks than {cap.block}."
    if not largest:
        return "This budget is exhausted. Ask the data owner to raise it."
    if price.pure is None or (price.delta and not limits_for(cap.budget, spent).delta):
        return f"Without δ (Laplace noise, declared keys), up to ε={round_down(largest)} fits."
    return f"Use at most ε={round_down(largest)}: --epsilon {round_down(largest)}"


def _small(value: Fraction) -> str:
    """Format a δ with three digits, rounded down.

    >>> _small(Fraction(205999, 10**15)), _small(Fraction(0))
    ('2.05e-10', '0')
    """
    return str(_THREE.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()).lower()


def _remedy_for_delta(left: Fraction) -> str:
    """Offer a hundredth of the remaining δ: groups are selected with a tenth of a query's δ."""
    offer = Fraction(f"{float(left / 10):.0e}")
    declare = "declare the values of the grouping keys, or ask the data owner to raise δ"
    if not offer >= DELTA_MIN:
        return f"The remaining δ is too small to select groups: {declare}."
    return f"Pass a smaller δ, for which a group needs more people: --delta {float(offer):.0e}. Or {declare}."
