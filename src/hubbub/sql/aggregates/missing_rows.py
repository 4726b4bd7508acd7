"""Intervals of quantiles that allow for rows that contribution bounds leave out.

Tested in tests/sql/test_scores.py.
"""

from dataclasses import replace
from math import ceil

from hubbub.sql.aggregates.scores import IntervalScore, JointScore, QuantileScore, ScoreFunction

#: More rows than a table has: an interval that allows for so many is the whole range.
_ALL_ROWS = 1 << 36


def allowing_for(score: ScoreFunction, rows: float) -> ScoreFunction:
    """Return a score whose interval also holds for data with up to so many rows more; extremes and modes stay.

    Theorem (Quantiles of all rows). Let an interval of the a/b quantile be selected from counts that lack up to L rows,
    with a margin that is 2·max(a, b − a)·L larger than `IntervalScore` asks for. It misses the quantile of all rows
    with probability at most β.
    Proof    A missing row changes the slack of an end by at most max(a, b − a). Let a pair miss from above: the slack s
             of its lower end is at most b among all rows, so at most b + e among those counted, e = max(a, b − a)·L.
             The candidate at that end loses at most |s|, because its two slacks add up to at least 0. So the pair
             loses more by at least (margin + 2e − s) − |s| ≥ margin − 2b, as in `IntervalScore`, and the rest of that
             proof, and of `JointScore`, stays.
             A missing row never lowers the largest value, so the interval of an extreme, which is open toward it, needs
             nothing.
    Assumes  no more than `rows` rows are missing from a cell.
    Charges  nothing: the margin is a constant, and scores move as far as before.
    Tested   tests/sql/test_scores.py::test_intervals_of_counts_that_lack_rows_cover_the_quantile_of_all
             tests/sql/test_all_rows.py::test_a_quantile_allows_for_the_rows_that_its_bound_leaves_out
    """
    match score:
        case IntervalScore():
            lacking = ceil(min(max(rows, 0.0), _ALL_ROWS))
            return replace(score, margin=score.margin + 2 * score.sensitivity * lacking)
        case JointScore():
            return JointScore(tuple(_part(part, rows) for part in score.parts))
    return score


def _part(part: QuantileScore | IntervalScore, rows: float) -> QuantileScore | IntervalScore:
    widened = allowing_for(part, rows)
    return widened if isinstance(widened, IntervalScore) else part
