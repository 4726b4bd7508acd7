"""Widen intervals by what contribution bounds leave out, where the bounds were found privately.

Tested in tests/sql/test_auto_bounds.py and tests/sql/test_all_rows.py.
"""

import itertools
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from hubbub.sql.aggregates.formula import Floats, Formula, Value
from hubbub.sql.auto_bounds import ChosenBound
from hubbub.sql.measures import BoundedSum, RowCount
from hubbub.sql.plan import Plan


def missing(plan: Plan, place: int) -> tuple[float, float]:
    """Return how much less and how much more a measure could be without its bounds, as allowed for in intervals."""
    (down, up), clipped = _missing_rows(plan, place), _clipped(plan, place)
    return down - clipped, up + clipped


def _missing_rows(plan: Plan, place: int) -> tuple[float, float]:
    """Return the same for rows that are left out."""
    chosen = plan.left_out.get(place)
    if chosen is None:
        return 0.0, 0.0
    low, high = plan.adds[place]
    return chosen.most * low if low < 0 else 0.0, chosen.most * high if high > 0 else 0.0


def _clipped(plan: Plan, place: int) -> float:
    """Return how far a sum could move without bounds of values that were found.

    Factors rᵢ + cᵢ that are clipped to rᵢ lack ∏(rᵢ + cᵢ) − ∏rᵢ, and over all units no more than with the sums of
    their cᵢ, as a product of sums is at least the sum of the products.
    """
    measure = plan.measures[place].measure
    if not isinstance(measure, BoundedSum):
        return 0.0
    amounts = [plan.clipped.get(term.expr, 0.0) for term in measure.terms]
    if not any(amounts):
        return 0.0
    reaches = [float(term.reach) for term in measure.terms]
    lacking = prod(map(sum, zip(reaches, amounts, strict=True))) - prod(reaches)
    return lacking * _clipped_rows(plan, plan.left_out.get(place), measure) / float(measure.step)


def _clipped_rows(plan: Plan, chosen: ChosenBound | None, measure: BoundedSum) -> float:
    """Return the most clipped rows of a unit in a cell; how much is clipped is known for one row of each."""
    if chosen is None:
        return 1.0 if plan.limits is None else float(plan.limits.rows)
    if chosen.contribution == "sum":
        # a clipped row adds as much as any row can
        return max(1.0, chosen.bound / max(-measure.low, measure.high, 1))
    return float(chosen.bound)


def finds_values(plan: Plan, formula: Formula) -> bool:
    """Return whether the query found bounds of values that a result is computed from."""
    sums = (measure for measure in formula.measures if isinstance(measure, BoundedSum))
    return any(term.expr in plan.clipped for measure in sums for term in measure.terms)


def margins(plan: Plan, formula: Formula, core: Value, sums: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return how far what is left out could move a result down and up: the extremes over what its measures lack.

    Rows that are left out of a count are left out of the sums over the same rows, too.
    """
    down = up = np.zeros_like(sums[0])
    places = [plan.place(measure) for measure in formula.measures]
    ends = [missing(plan, place) for place in places]
    if not any(low or high for low, high in ends):
        return down, up
    if np.isinf(ends).any():
        # units above the public maximum were seen: nothing bounds what they would add
        whole = np.full_like(down, np.inf)
        alone = formula.linear and len(places) == 1
        return (down if alone and ends[0][0] == 0 else -whole), (up if alone and ends[0][1] == 0 else whole)
    if len(places) > 1:
        ends = [
            (high, high) if isinstance(measure, RowCount) else pair
            for measure, pair, high in zip(formula.measures, ends, (pair[1] for pair in ends), strict=True)
        ]
    clips = [(-amount, amount) for amount in (_clipped(plan, place) for place in places)]
    with np.errstate(all="ignore"):
        middle = core(sums)
        # all rows that may be left out, and none of them
        for shift in (*_corners(ends), *_corners(clips)):
            moved = core([each + by for each, by in zip(sums, shift, strict=True)]) - middle
            down, up = np.fmin(down, moved), np.fmax(up, moved)
    return down, up


def _corners(ends: Sequence[tuple[float, float]]) -> Iterator[tuple[float, ...]]:
    return itertools.product(*(dict.fromkeys(pair) for pair in ends))
