"""Window frames by distance: RANGE with an offset, over whole numbers and days.

Tested in tests/sql/test_windows.py.
"""

from collections.abc import Sequence
from datetime import date

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_scope import Context
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.relations import SortTerm

#: Days in each unit of an interval that always has the same number of days.
_DAYS = {"day": 1, "days": 1, "week": 7, "weeks": 7}
_FIRST = Literal(date(1970, 1, 1), Kind.DATE)
REWRITING = "Count in whole days: ORDER BY CAST(t AS DATE) RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW."
Ends = tuple[int | None, int | None]


def days(bound: exp.Expr) -> int | None:
    """Return the days of an interval, such as INTERVAL 2 WEEK; None if it is not a constant number of days."""
    unit = bound.args.get("unit")
    size = bound.this.unnest() if isinstance(bound.this, exp.Expr) else None
    factor = None if unit is None else _DAYS.get(str(unit.name or unit.key).lower())
    text = str(size.this) if isinstance(size, exp.Literal) else ""
    return int(text) * factor if factor is not None and text.isdecimal() and text.isascii() and len(text) < 9 else None


def by_distance(ctx: Context, node: exp.Expr, order: Sequence[SortTerm], ends: Ends) -> tuple[SortTerm, Ends]:
    """Write the order of a frame as whole numbers that increase, and turn a frame that ends with the last row.

    Theorem (Work of a frame by distance). A moving frame of n values reads each row of a unit at most n times.
    Proof    The order is one whole number for each row. Rows with one number have one frame, which engines compute
             once. A frame holds the numbers from d + low to d + high for its own number d, so a number is in the
             frames of at most high - low + 1 = n numbers. A frame that is open on one side grows with the order,
             since one that is open after the current row is turned: the negative numbers have the opposite order, in
             which the distance of two rows is the same.
    Assumes  integers and days are whole numbers; the three engines keep the frame of rows that tie.
    Charges  nothing by itself.
    Tested   tests/sql/test_windows.py::test_values_are_those_of_the_engine
             tests/sql/test_windows.py::test_a_frame_by_distance_has_few_values
    """
    if len(order) != 1:
        raise ctx.error(
            node, "HB742", "A RANGE frame with an offset needs one expression in its ORDER BY.", "Order by one column."
        )
    (term,) = order
    number = term.expr
    if number.kind is Kind.DATE:
        number = apply(ctx, node, "days_between", [number, _FIRST])
    if number.kind is not Kind.INTEGER:
        raise ctx.error(
            node,
            "HB742",
            "A RANGE frame with an offset needs whole numbers or dates in its ORDER BY: of other values, any number "
            "could lie in one frame.",
            REWRITING if number.kind is Kind.TIMESTAMP else "Round them: ORDER BY CAST(x AS INTEGER).",
        )
    low, high = ends
    turned = high is None
    if low is not None and high is None:
        high = -low
        low = None
    falls = term.descending != turned
    ordered: Expr = apply(ctx, node, "neg", [number]) if falls else number
    return SortTerm(ordered, descending=False, nulls_first=term.nulls_first != turned), (low, high)
