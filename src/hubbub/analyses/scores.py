"""Scores: one COUNT or SUM in SQL as an exact integer, with the sensitivity that the planner gives it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.analyses.base import Arrays, Protection, Run, Setting, needs_bounds
from hubbub.core.schema import Value
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.bind import bind
from hubbub.sql.explain import describe
from hubbub.sql.expressions import Col
from hubbub.sql.keys import Cells
from hubbub.sql.measures import BoundedSum, KeyWeight
from hubbub.sql.plan import plan
from hubbub.sql.query import Query


@dataclass(frozen=True, slots=True)
class Score:
    """A count, or a sum in whole steps, that SQL computes over bounded rows.

    Theorem (Scores). Between neighbors the integer of a score moves by at most `sensitivity`. If `monotone`, one unit
    more never lowers it, so that under add/remove all such scores move one way.
    Proof    A score is the one measure of a planned query with one cell, whose L1 sensitivity is that of the theorem
             "Sensitivity of bounded cells". A unit adds to it between rows·low and rows·high: nothing negative if
             low ≥ 0.
    Assumes  the engine bounds the rows of each unit (`bounding`).
    Charges  nothing by itself.
    Tested   tests/analyses/test_scores.py::test_neighbors_move_a_score_by_its_sensitivity_and_no_more
             tests/contract/test_contract.py::test_neighbors_stay_within_what_each_noise_was_bought_for_and_reach_it

    step         what one step of the integer stands for
    sensitivity  in steps
    row          the most that one row adds, in absolute value
    """

    protection: Protection
    sql: str
    step: Fraction
    sensitivity: int
    monotone: bool
    row: Fraction
    measured: str

    def integer(self, run: Run) -> Secret[int]:
        """Compute the exact integer, as a secret."""
        return Secret(run.ask(self.sql).through(_total))


def _total(table: Arrays) -> int:
    return sum(int(each) for each in np.asarray(np.ma.filled(table["m0"], 0)).tolist())


def plan_score(setting: Setting, sql: str, parameters: Sequence[Value] = (), *, what: str = "score") -> Score:
    """Plan SQL that returns one COUNT or SUM, at the contribution bounds of the setting."""
    query = bind(sql, tables=setting.tables, parameters=parameters)
    for table in query.tables:
        if table.unit is not None and table.unit.auto:
            raise needs_bounds(table.name)
    if not _is_scalar(query):
        raise _not_a_score(what)
    options = setting.render_options
    planned = plan(
        query,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        salt=options.salt,
        groups=setting.groups,
        rows=setting.rows,
        noise="laplace",
        hashing=options.hashing,
        dialect=options.dialect,
    )
    shape = [each.size if isinstance(each, Cells) else 0 for each in planned.groups]
    if len(planned.measures) != 1 or len(planned.statements) != 1 or planned.choices or shape != [1]:
        raise _not_a_score(what)
    (noised,) = planned.measures
    if isinstance(noised.measure, KeyWeight):
        raise _not_a_score(what)
    step = noised.measure.step if isinstance(noised.measure, BoundedSum) else Fraction(1)
    return Score(
        Protection(planned.tables, planned.relation, planned.limits),
        planned.statements[0].sql,
        step,
        max(1, noised.sensitivity.l1),
        noised.measure.low >= 0,
        max(1, -noised.measure.low, noised.measure.high) * step,
        describe(noised.measure),
    )


def joint_protection(scores: Sequence[Score]) -> Protection:
    """Give what several scores read and protect; all of them have the same private tables."""
    tables = {table.name: table for each in scores for table in each.protection.tables}
    private = {tuple(table.name for table in each.protection.tables if table.unit is not None) for each in scores}
    if len(private) != 1:
        raise QueryError("HB670", "The scores read different private tables.", "Use the same tables for every score.")
    relations = {each.protection.relation for each in scores}
    relation = Relation.REPLACE if Relation.REPLACE in relations else Relation.ADD_REMOVE
    return Protection(tuple(tables.values()), relation, scores[0].protection.limits)


def _is_scalar(query: Query) -> bool:
    """Return whether a query is one bare COUNT or SUM over all rows."""
    if query.keys or query.top or query.having is not None or query.limit is not None or len(query.select) != 1:
        return False
    (_, expr), names = query.select[0], [each.name for each in query.aggregates]
    return len(names) == 1 and isinstance(expr, Col) and expr.name == names[0]


def _not_a_score(what: str) -> QueryError:
    return QueryError(
        "HB670",
        f"The {what} is not a single COUNT or SUM.",
        "Write SELECT COUNT(*) FROM … WHERE …, COUNT(DISTINCT …) or SUM(…): one output, without GROUP BY, HAVING, "
        "LIMIT or arithmetic on the result.",
    )
