"""Apply a minimum frequency and rounding to a result: post-processing of its noisy numbers.

Tested in tests/sql/test_disclosure.py.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.disclosure import DisclosureRule
from hubbub.sql.estimates import ColumnEstimate, mentioned
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.plan import Plan
from hubbub.sql.sampling import SamplingError

if TYPE_CHECKING:
    from hubbub.sql.presentation import Answer

Floats = NDArray[np.float64]


def rule_of(plan: Plan) -> DisclosureRule:
    """Combine the rules of the private tables that a plan reads."""
    return DisclosureRule.strictest(table.disclosure for table in plan.tables if table.unit is not None)


def disclosed(plan: Plan, answer: "Answer", sums: Sequence[Floats], shown: NDArray[np.int64]) -> "Answer":
    """Suppress and round the numbers of an answer as the rules of its tables say; `shown` are its cells, row by row.

    Theorem (Rules beside the noise). The answer is a function of the noisy integers, so its rules cost no privacy. An
    interval that is shown still holds the true value with the probability that it states.
    Proof    Only noisy sums and numbers made of them are read: post-processing. Each end of an interval moves outwards
             or stays. Which rows are suppressed depends on a noisy count alone: of all intervals, shown or not, each
             holds with its probability, whatever is then left out.
             What is suppressed in a row is every output that reads an aggregate with noise, of whatever type.
    Assumes  statements are about one interval before it is known whether it is shown.
    Charges  nothing.
    Tested   tests/sql/test_disclosure.py::test_small_groups_are_suppressed_by_their_noisy_counts
             tests/sql/test_disclosure.py::test_rounding_moves_ends_outwards
             tests/sql/test_disclosure.py::test_nothing_that_is_computed_from_a_suppressed_number_is_shown
    """
    rule = rule_of(plan)
    if not rule.form:
        return answer
    has_noise = [
        not bool(np.all(np.isnan(low) & np.isnan(high))) for low, high in zip(answer.low, answer.high, strict=True)
    ]
    answer = replace(answer, kept=frozenset(place for place, noisy in enumerate(has_noise) if noisy))
    answer = _rounded(plan, answer, rule)
    hidden = _hidden(plan, rule, sums)
    if hidden is None or not hidden[shown].any():
        return answer
    exact = {place for place, (_, expr) in enumerate(plan.query.select) if without_noise(plan, expr)}
    return _suppressed(answer, hidden[shown], exact)


def as_shown(
    plan: Plan, estimates: Mapping[str, ColumnEstimate], sums: Sequence[Floats]
) -> Mapping[str, ColumnEstimate]:
    """Give aggregates as the rules show them: HAVING, ORDER BY and computed numbers read no more than is shown.

    A suppressed number is NULL, and a count is rounded.

    Tested   tests/sql/test_disclosure.py::test_conditions_and_orders_read_what_is_shown
    """
    rule = rule_of(plan)
    hidden = _hidden(plan, rule, sums)
    if hidden is None and rule.round_to is None:
        return estimates
    seen = {}
    for name, each in estimates.items():
        value = each.value
        if rule.round_to is not None and name in _counts(plan):
            value = _to(np.full(len(value), float(rule.round_to)), value, np.round)
        if hidden is not None and not without_noise(plan, Col(name, each.kind)):
            value = np.ma.array(np.ma.getdata(value), mask=np.ma.getmaskarray(value) | hidden)
        seen[name] = replace(each, value=value)
    return seen


def rounds_counts_of(plan: Plan, expr: Expr) -> bool:
    """Whether an output is computed from a count that a rule rounds: then it has no interval, which would tell it."""
    return rule_of(plan).round_to is not None and not isinstance(expr, Col) and bool(mentioned(expr) & _counts(plan))


def without_noise(plan: Plan, expr: Expr) -> bool:
    """Return whether an output has no noise: it reads keys and public counts alone."""
    names = mentioned(expr)
    selected = {name for each in plan.choices for name in each.choice.names}
    measures = [m for name, formula in plan.formulas.items() if name in names for m in formula.measures]
    return not names & selected and all(plan.measures[plan.place(m)].event is None for m in measures)


def _hidden(plan: Plan, rule: DisclosureRule, sums: Sequence[Floats]) -> NDArray[np.bool_] | None:
    """Give the cells whose noisy count is below the threshold; None if the query has no count, or no rule applies."""
    places = {plan.place(f.measures[f.count]) for f in plan.formulas.values() if f.count is not None}
    if rule.suppress_below is None or not places:
        return None
    hidden: NDArray[np.bool_] = np.min([sums[place] for place in sorted(places)], axis=0) < rule.suppress_below
    return hidden


def _suppressed(answer: "Answer", hidden: NDArray[np.bool_], exact: Set[int]) -> "Answer":
    """Remove all noisy numbers of some rows, with everything that tells them."""

    def blank(numbers: Floats) -> Floats:
        return np.where(hidden, np.nan, numbers)

    columns: list[NDArray[Any]] = []
    for place, values in enumerate(answer.values):
        if place in exact:
            columns.append(values)
            continue
        plain = np.ma.getdata(values).copy()
        # a mask may be lost, and then nothing is beneath it
        plain[hidden] = None if plain.dtype == object else np.zeros(1, dtype=plain.dtype)[0]
        columns.append(np.ma.array(plain, mask=np.ma.getmaskarray(values) | hidden))
    return replace(
        answer,
        values=tuple(columns),
        low=tuple(map(blank, answer.low)),
        high=tuple(map(blank, answer.high)),
        ratio=blank(answer.ratio),
        sampling=tuple(
            None if each is None else SamplingError(blank(each.half), each.at_most) for each in answer.sampling
        ),
        joint=tuple((blank(low), blank(high)) for low, high in answer.joint),
        # numbers computed from what is left are not those of the query, so they get no intervals
        noise=tuple(None for _ in answer.noise),
    )


def _rounded(plan: Plan, answer: "Answer", rule: DisclosureRule) -> "Answer":
    if rule.round_to is None and not rule.round_by_noise:
        return answer
    values, low, high, joint = list(answer.values), list(answer.low), list(answer.high), list(answer.joint)
    for place in answer.kept:
        column: NDArray[Any] = values[place]
        if column.dtype.kind not in "iuf":
            continue
        step = np.ones(len(column)) if column.dtype.kind in "iu" else np.zeros(len(column))
        if rule.round_by_noise:
            step = np.maximum(step, _step(low[place], high[place]))
        if rule.round_to is not None and _is_count(plan, place):
            step = np.maximum(step, rule.round_to)
        values[place] = _to(step, column, np.round)
        low[place], high[place] = _to(step, low[place], np.floor), _to(step, high[place], np.ceil)
        if joint:
            joint[place] = (_to(step, joint[place][0], np.floor), _to(step, joint[place][1], np.ceil))
    answer = replace(answer, values=tuple(values), low=tuple(low), high=tuple(high), joint=tuple(joint))
    if rule.round_to is None:
        return answer
    # sampling errors tell the counts that they are computed from, and so do the intervals of computed numbers
    return replace(
        answer,
        ratio=np.full_like(answer.ratio, np.nan),
        sampling=tuple(None for _ in answer.sampling),
        noise=tuple(None for _ in answer.noise),
    )


def _step(low: Floats, high: Floats) -> Floats:
    """Give a power of ten between a twentieth and a half of each margin; 0 where there is no margin."""
    half = np.where(np.isfinite(high - low), (high - low) / 2, 0.0)
    return np.where(half > 0, 10.0 ** np.floor(np.log10(np.maximum(half, 1e-300) / 2)), 0.0)


def _to(step: Floats, numbers: NDArray[Any], rounding: Any) -> NDArray[Any]:
    """Round to multiples of a step; a step of 0 changes nothing."""
    known = np.where(step > 0, step, 1.0)
    moved = np.where(step > 0, rounding(np.ma.getdata(numbers) / known) * known, np.ma.getdata(numbers))
    moved = moved.astype(numbers.dtype)
    return np.ma.array(moved, mask=np.ma.getmaskarray(numbers)) if isinstance(numbers, np.ma.MaskedArray) else moved


def _is_count(plan: Plan, place: int) -> bool:
    """Whether an output is a count."""
    expr = plan.query.select[place][1]
    return isinstance(expr, Col) and expr.name in _counts(plan)


def _counts(plan: Plan) -> frozenset[str]:
    return frozenset(each.name for each in plan.query.aggregates if each.function.startswith("count"))
