"""Widen intervals by what contribution bounds leave out, where the bounds were found privately.

Tested in tests/sql/test_auto_bounds.py.
"""

import itertools
from collections.abc import Sequence
from math import prod

import numpy as np

from hubbub.sql.aggregates.formula import Floats, Formula, Value
from hubbub.sql.auto_bounds import ChosenBound
from hubbub.sql.measures import BoundedSum, RowCount
from hubbub.sql.plan import Plan


def missing(plan: Plan, place: int) -> tuple[float, float]:
    """Return how much less and how much more a measure could be without its bound, as allowed for in intervals."""
    chosen, measure = plan.left_out.get(place), plan.measures[place].measure
    down = up = 0.0
    if chosen is not None:
        low, high = plan.adds[place]
        down, up = chosen.most * min(low, 0) if low < 0 else 0.0, chosen.most * high if high > 0 else 0.0
    if isinstance(measure, BoundedSum):
        for i, term in enumerate(measure.terms):
            # beside the other factor at its largest
            others = [float(other.reach) for j, other in enumerate(measure.terms) if j != i]
            clipped = plan.clipped.get(term.expr, 0.0) * _clipped_rows(plan, chosen, measure)
            cut = clipped * prod(others) / float(measure.step)
            down, up = down - cut, up + cut
    return down, up


def _clipped_rows(plan: Plan, chosen: ChosenBound | None, measure: BoundedSum) -> float:
    """Return the most clipped rows of a unit in a cell; how much is clipped is known for one row of each."""
    if chosen is None:
        return 1.0 if plan.limits is None else float(plan.limits.rows)
    if chosen.contribution == "sum":
        # a clipped row adds as much as any row can
        return max(1.0, chosen.bound / max(-measure.low, measure.high, 1))
    return float(chosen.bound)


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
    with np.errstate(all="ignore"):
        middle = core(sums)
        for shift in itertools.product(*(dict.fromkeys(pair) for pair in ends)):
            moved = core([each + by for each, by in zip(sums, shift, strict=True)]) - middle
            down, up = np.fmin(down, moved), np.fmax(up, moved)
    return down, up
