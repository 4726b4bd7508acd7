"""The keys of the k largest counts, as one selection: nobody's number of groups has to be bounded for it."""

from fractions import Fraction

from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.top_k import TopK
from hubbub.sql.bounding import Limits
from hubbub.sql.keys import Cells
from hubbub.sql.measures import Additive, Rows, Units
from hubbub.sql.query import Query

MOST_TURNS = 1000


def measure(query: Query) -> Additive:
    """Give the count by which the keys are ordered."""
    (asked,) = query.aggregates
    return Units(asked.where) if asked.function == "count_units" else Rows(asked.arguments, asked.where)


def selection(query: Query, cells: Cells, limits: Limits | None, relation: Relation, epsilon: Fraction) -> TopK:
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
    turns = min(query.limit or 1, cells.size)
    if turns > MOST_TURNS:
        raise QueryError("HB565", f"at most the {MOST_TURNS} largest can be chosen.", "Ask for the counts themselves.")
    most = 1 if limits is None or isinstance(measure(query), Units) else limits.rows
    # at a larger rate nothing but the largest is ever chosen, and less is charged than is offered
    useful = turns * most / numbers.SCALE_MIN
    return TopK.from_epsilon(
        k=turns,
        candidates=cells.size,
        sensitivity=most,
        monotone=True,
        relation=relation,
        epsilon=min(epsilon, useful),
    )
