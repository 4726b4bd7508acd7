"""Choose the noise of a query that is asked by accuracy (`within=`) by what it costs the caps.

At equal standard deviation, one count with Gaussian noise has a larger ε of its own than one with Laplace noise; but
many of them cost a cap with δ > 0 about half as much, because the cap adds up variances. So where an analyst says how
exact an answer shall be, and not what it may cost, the noise is the one of which more such queries fit into the caps.
Where the price is given, the noise is the one with the smaller error at this price: Gaussian noise is then taken only
where its variance is smaller than that of Laplace noise at the same ε, and so it is the cheaper one for the cap too.

Tested in tests/curator/test_noise_choice.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import admits, how_often
from hubbub.accounting.policy import Cap, Policy
from hubbub.answers.budget import MANY
from hubbub.core.numbers import brief
from hubbub.curator.question import Question
from hubbub.errors import ParameterError
from hubbub.sql.epsilon_search import solve
from hubbub.sql.noise import Noise
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Query

#: How many times as many queries must fit before the noise with the larger ε is chosen. Beside Gaussian noise, pure
#: losses do not add up to ε any more. That makes the next large query dearer once; a dozen such queries make up for it.
_ENOUGH = 2


@dataclass(frozen=True, slots=True)
class NoiseChoice:
    """The kind of noise that was chosen, None for that of the plan with the least ε, and why."""

    noise: Noise | None
    reason: str = ""


#: The noise of the plan with the least ε.
AS_ASKED = NoiseChoice(None)


def shown_caps(policy: Policy, analyst: str, dataset: str) -> list[Cap]:
    """Give the caps on a dataset whose size the analyst is shown: all, or their own where others are hidden."""
    caps = policy.caps(analyst, dataset)
    hidden = policy.show.get(dataset) == "hidden"
    return [cap for cap in caps if not hidden or cap.scope in ("query", "analyst")]


def choose_noise(query: Query, question: Question, *, delta: Fraction, caps: Sequence[Cap]) -> NoiseChoice:
    """Choose the noise for a margin of error.

    Theorem (Noise by cost). The choice is a function of the query, its options, the declarations and the sizes of caps
    that the analyst is shown. It does not depend on data, on what anybody has spent, or on hidden caps, and the
    query is charged, planned again and checked as one with this noise.
    Proof    Both plans, their events and costs follow from the query, the declarations and δ, which is the least of the
             caps; the counts are of queries that fit into empty caps. The kind of noise becomes part of the text of
             the query, which receipt, ledger and replay key have.
    Assumes  that the size of a cap which is shown may be known.
    Charges  nothing: the chosen plan's event is charged as that of every other plan.
    Tested   tests/curator/test_noise_choice.py::test_the_choice_does_not_depend_on_data_spending_or_hidden_caps
             tests/curator/test_noise_choice.py::test_a_charge_is_planned_again_from_its_receipt
    """
    found = any(column.auto for table in query.tables for column in table.columns)
    if not delta or found or query.top:
        return AS_ASKED
    first = _planned(query, question, delta, None)
    other: Noise = "gaussian" if first.noise == "laplace" else "laplace"
    try:
        second = _planned(query, question, delta, other)
    except ParameterError as error:
        if error.code not in ("HB553", "HB566"):
            raise
        return AS_ASKED
    one, two = (_fitting(each, caps) for each in (first, second))
    if second.noise != other or not (two > one and two >= _ENOUGH * one):
        return AS_ASKED
    reason = (
        f"{_priced(second)} was chosen for this accuracy because it takes less of the budget: {_many(two)} such "
        f"queries fit into an unspent one, {_many(one)} with {_priced(first)}. δ = 0 asks for noise without δ."
    )
    return NoiseChoice(other, reason)


def _priced(planned: Plan) -> str:
    delta = f", δ = {brief(planned.delta)}" if planned.delta else ""
    return f"{planned.noise.capitalize()} noise (ε = {brief(planned.epsilon)}{delta})"


def _planned(query: Query, question: Question, delta: Fraction, noise: Noise | None) -> Plan:
    """Plan a query at the least ε that reaches its margin of error, with one kind of noise."""
    options = question.planner_options(query)
    epsilon = solve(query, within=question.within or 0, delta=delta, noise=noise, **options)
    return plan(query, epsilon=epsilon, delta=delta, salt="", noise=noise, sketch=True, **options)


def _fitting(planned: Plan, caps: Sequence[Cap]) -> int:
    """Count the queries of a plan's cost that fit into all caps while nothing is spent."""
    cost = privacy_cost(planned.event)
    counts = [
        how_often(cap.budget, ZERO, cost, MANY) if cap.scope != "query" else MANY * admits(cap.budget, ZERO, cost)
        for cap in caps
    ]
    return min(counts, default=0)


def _many(count: int) -> str:
    return f"more than {MANY:,}" if count >= MANY else f"{count:,}"
