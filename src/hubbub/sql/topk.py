"""Select the keys of the k largest counts. The number of groups per unit need not be bounded."""

from fractions import Fraction

from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.top_k import TopK
from hubbub.sql.aggregates.counts import CountAggregate
from hubbub.sql.aggregates.table import aggregate_function
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.keys import Cells
from hubbub.sql.measures import Additive, RowCount, UnitCount
from hubbub.sql.query import Query

MAX_K = 1000


def measure(query: Query) -> Additive:
    """Return the count by which the keys are ordered."""
    (aggregate,) = query.aggregates
    function = aggregate_function(aggregate.function)
    count = function.measure(aggregate) if isinstance(function, CountAggregate) else None
    if not isinstance(count, RowCount | UnitCount):
        raise AssertionError("keys are ordered by a count of rows or units")
    return count


def selection(
    query: Query, cells: Cells, limits: ContributionBounds | None, relation: Relation, epsilon: Fraction
) -> TopK:
    """Calibrate the selection of the k best cells.

    Theorem (Most liked). Let each unit add between 0 and D to each of the counts, to however many of them. Then the k
    largest, chosen one after the other with Pr ∝ exp(rate·count), are ε-private at rate ε/(k·D) under add/remove and at
    ε/(2·k·D) under replace. No bound on the number of counts that a unit adds to is needed.
    Proof    One unit more raises every count by 0 to D: all scores move one way, by at most D. In a replacement each
             count moves by at most D, in either direction. The rest is `hubbub.mechanisms.top_k`.
    Assumes  rows of one unit in one cell are bounded in the engine; a count of units has D = 1.
    Charges  k selections of ε/k.
    Tested   tests/sql/test_plan.py::test_the_most_liked_page_is_one_selection_whatever_people_like
    """
    k = min(query.limit or 1, cells.size)
    if k > MAX_K:
        raise QueryError(
            "HB565", f"LIMIT cannot exceed {MAX_K} here.", "Use a smaller LIMIT, or select the counts too."
        )
    most = 1 if limits is None or isinstance(measure(query), UnitCount) else limits.rows
    # a larger rate would not change the selection, so charge less than offered
    useful = k * most / numbers.SCALE_MIN
    return TopK.from_epsilon(
        k=k,
        candidates=cells.size,
        sensitivity=most,
        monotone=True,
        relation=relation,
        epsilon=min(epsilon, useful),
    )
