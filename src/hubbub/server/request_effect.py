"""What a request for more budget would buy, and what it would do to the promise, in words.

Tested in tests/server/test_request_effect.py.
"""

from collections.abc import Sequence
from fractions import Fraction

from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import Policy
from hubbub.answers.budget import PastCharge
from hubbub.config.summary import guarantee
from hubbub.core.numbers import brief


def request_effect(
    policy: Policy, analyst: str, dataset: str, epsilon: Fraction, past: Sequence[PastCharge]
) -> tuple[str, ...]:
    """Describe a request: what it buys, the analyst's promise before and after, and that of the whole dataset.

    `past` are earlier charges of the analyst; only those on the dataset count.
    """
    lines = []
    prices = sorted(charge.epsilon for charge in past if charge.dataset == dataset and charge.epsilon > 0)
    if prices:
        usual = prices[len(prices) // 2]
        lines.append(
            f"It buys about {int(epsilon / usual):,} more queries at ε = {brief(usual)}, the median price of "
            f"{analyst}'s last {len(prices):,}."
        )
    cap = policy.analysts.get(analyst, {}).get(dataset)
    if cap is not None:
        after = Budget(cap.budget.epsilon + epsilon, cap.budget.delta)
        lines.append(
            f"{analyst} may then spend ε = {brief(after.epsilon)} instead of {brief(cap.budget.epsilon)} on {dataset}. "
            f"Someone 50% sure of a fact about one person can end up this sure from {analyst}'s answers: "
            f"{guarantee(after)} (now: {guarantee(cap.budget)})."
        )
    most = _whole(policy, dataset)
    if most is not None:
        lines.append(
            f"The promise for all analysts together does not change: ε = {brief(most.epsilon)}, {guarantee(most)}."
        )
        if cap is not None and cap.budget.epsilon + epsilon > most.epsilon:
            left = max(Fraction(0), most.epsilon - cap.budget.epsilon)
            lines.append(f"It passes the cap of the dataset: at most ε = {brief(left)} can be approved.")
    groups = [name for name, (members, own) in policy.groups.items() if analyst in members and dataset in own]
    if groups:
        lines.append(f"The caps of {' and '.join(groups)} hold as well, and do not change.")
    return tuple(lines)


def _whole(policy: Policy, dataset: str) -> Budget | None:
    """Give the lasting cap of a dataset, if it has one."""
    caps = policy.datasets.get(dataset, ())
    return next((cap.budget for cap in caps if cap.scope == "dataset" and cap.per is None and cap.block is None), None)
