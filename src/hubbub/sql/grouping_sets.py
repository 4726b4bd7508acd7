"""Several grouping sets of which some have groups that nobody declared: one release for each set.

    SELECT dest, COUNT(*) FROM flights GROUP BY ROLLUP (dest)
    → the releases  SELECT dest, COUNT(*) FROM flights GROUP BY dest
    → and           SELECT NULL, COUNT(*) FROM flights

Groups are selected for one set at a time, so each set is a query of its own, with an equal share of the budget.

Tested in tests/sql/test_grouping_sets.py.
"""

from collections.abc import Mapping
from dataclasses import replace

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.keys import MAX_CELLS
from hubbub.sql.partition_selection import needed
from hubbub.sql.query import Queries, Query, Together, grouping_name

#: How the names of columns start that only decide the order of the rows.
ORDER = "$order"
#: Maximum number of sets that are released one by one.
MAX_SETS = 16


def by_set(query: Query | Queries) -> Query | Queries:
    """Return a query with one release for each grouping set, if groups have to be selected for some of them.

    Theorem (Grouping sets one by one). The rows of a query with several grouping sets are those of one query for each
    set, in which the keys that the set lacks are NULL and their GROUPING is 1. Released one by one they cost what all
    of them cost together.
    Proof    SQL defines grouping sets as this union. HAVING and the outputs are expressions over one group, so they
             are the same in both forms; ORDER BY and LIMIT apply to the united rows. Each part is a query that is
             planned and charged by itself ("Releases together").
    Charges  the events of all parts.
    Tested   tests/sql/test_grouping_sets.py::test_each_set_is_a_query_of_its_own
             tests/curator/test_grouping_sets.py::test_the_answer_is_that_of_sql
    """
    if isinstance(query, Query):
        return query if len(query.sets) == 1 or not needed(query) else _parts(query, ())
    *values, last = query.parts
    if query.after is not None or len(last.sets) == 1 or not needed(last):
        return query
    return _parts(last, tuple(values))


def _parts(query: Query, values: tuple[Query, ...]) -> Queries:
    if len(query.sets) + len(values) > MAX_SETS:
        raise QueryError(
            "HB754",
            f"The query has {len(query.sets)} grouping sets, and groups are selected for each of them by itself; the "
            f"maximum is {MAX_SETS} releases.",
            "List the sets that you need in GROUPING SETS, or ask the data owner to declare the values of the keys.",
        )
    labels = {expr: label for label, expr in query.select}
    hidden = [term.expr for term in query.order if term.expr not in labels]
    labels |= {expr: f"{ORDER}{place}" for place, expr in enumerate(dict.fromkeys(hidden))}
    kinds = {expr: expr.kind for expr in labels}
    order = tuple(replace(term, expr=Col(labels[term.expr], kinds[term.expr])) for term in query.order)
    select = (*query.select, *((label, expr) for expr, label in labels.items() if label.startswith(ORDER)))
    parts = tuple(_part(replace(query, select=select), places) for places in query.sets)
    return Queries((*values, *parts), None, len(values), Together(len(parts), len(query.select), order, query.limit))


def _part(query: Query, places: tuple[int, ...]) -> Query:
    """Return the query of one set: other keys are NULL."""
    values: dict[str, Expr] = {}
    for place, key in enumerate(query.keys):
        values[grouping_name(key.name)] = Literal(int(place not in places), Kind.INTEGER)
        if place not in places:
            values[key.name] = Literal(None, key.expr.kind)
    return replace(
        query,
        keys=tuple(query.keys[place] for place in places),
        sets=(tuple(range(len(places))),),
        select=tuple((label, _with(expr, values)) for label, expr in query.select),
        having=None if query.having is None else _with(query.having, values),
        order=(),
        # a limit leaves out declared groups that may be empty; the rows are counted when they are united
        limit=None if query.limit is None else MAX_CELLS,
    )


def _with(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    if isinstance(expr, Col):
        return values.get(expr.name, expr)
    return (
        replace(expr, args=tuple(_with(arg, values) for arg in expr.args)) if isinstance(expr, FunctionCall) else expr
    )


def visible(name: str) -> bool:
    """Tell whether a column of a part is a column of the answer."""
    return not name.startswith(ORDER)
