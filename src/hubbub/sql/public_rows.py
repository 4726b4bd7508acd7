"""The number of rows that is public: that of a whole table with row-level privacy under the replace relation.

Tested in tests/sql/test_public_rows.py.
"""

from dataclasses import replace

from hubbub.sql.aggregates.formula import Formula
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.measures import Measure, RowCount
from hubbub.sql.query import Query
from hubbub.sql.relations import Project, Scan

#: Counts every row of a cell.
ALL_ROWS = RowCount()


def rows_are_public(query: Query) -> bool:
    """Return whether the number of rows of a query is public: it reads one whole table whose neighbors have as many.

    Theorem (Public size). Let neighbors differ in the contents of one row. The number of rows of the table is then the
    same for both, and may be used and shown without noise.
    Proof    Replacing a row adds none and removes none. The count is COUNT(*) over the table itself: no condition, key,
             join or NULL decides which rows are in it.
    Assumes  the privacy unit is the row. With a privacy ID column not even the number of units is public: the unit that
             replaces another may have no rows. A new version of the data has a new number of rows, which is public too.
    Charges  nothing.
    Tested   tests/sql/test_public_rows.py::test_no_neighbor_has_another_number_of_rows
    """
    rel = query.relation
    while isinstance(rel, Project):
        rel = rel.input
    if not isinstance(rel, Scan) or query.keys or query.sets != ((),) or query.top:
        return False
    return rel.table.public_rows


def exact_and_free(query: Query) -> bool:
    """Return whether every aggregate of a query is the public number of rows."""
    if not rows_are_public(query) or not query.aggregates:
        return False
    return all(
        each.function == "count" and each.where is None and all(map(never_null, each.arguments))
        for each in query.aggregates
    )


def with_public_count(formula: Formula) -> Formula:
    """Let a formula read the public number of rows where it counts every row anyway.

    The count of a column is never taken from the data: if a column that is declared `required` has a NULL after all,
    its count would not be public.
    """
    measures = tuple(ALL_ROWS if _counts_every_row(each) else each for each in formula.measures)
    return replace(formula, measures=measures)


def _counts_every_row(measure: Measure) -> bool:
    return isinstance(measure, RowCount) and measure.where is None and all(map(never_null, measure.present))


def never_null(expr: Expr) -> bool:
    """Return whether an expression has a value in every row: by declaration, or because COALESCE gives it one."""
    match expr:
        case Col():
            return expr.facts.required
        case Literal():
            return expr.value is not None
        case FunctionCall():
            return expr.function == "coalesce" and any(map(never_null, expr.args))
