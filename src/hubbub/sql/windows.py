"""SQL of window functions over the rows of one privacy unit.

Tested in tests/sql/test_windows.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Expr
from hubbub.sql.relations import PEERS, UNIT, SortTerm, UnitAggregate, UnitWindow, WindowFunction, columns, owned

#: Aggregates that a window can compute.
AGGREGATES = ("count", "sum", "avg", "min", "max")
_OPPOSITE = {"first_value": "last_value", "last_value": "first_value"}


@dataclass(frozen=True, slots=True)
class Writers:
    """How expressions, keys in one form, and aggregates with an OVER clause are written."""

    expression: Callable[[Expr], str]
    key: Callable[[Expr], str]
    aggregate: Callable[[UnitAggregate, str], str]


def render_windows(rel: UnitWindow, rows: str, dialect: Dialect, write: Writers) -> str:
    """Write all rows with the values of the window functions.

    Theorem (Windows within a unit). Removing one unit from the data removes its rows and changes no other row.
    Proof    By "One owner for each row" this holds of the rows that are read. Every window is partitioned by the unit,
             so each value is a function of one unit's rows and their order. Rows are ordered by the terms of the query,
             then by all their columns, in one form for each value. Rows that still tie are the same row, so whichever
             the engine puts first, the rows with their values are the same. Functions that give peers one value, and
             aggregates of peers, do not depend on the order of ties at all; sums are sums of integers.
    Assumes  as "One owner for each row".
    Charges  nothing by itself.
    Tested   tests/sql/test_windows.py::test_removing_a_unit_removes_its_rows_and_changes_no_others
             tests/sql/test_windows.py::test_a_window_over_other_units_would_be_seen
             tests/sql/test_windows.py::test_ties_do_not_depend_on_the_order_of_rows
    """
    owner = [dialect.identifier(UNIT)] if owned(rel) else []
    names = [dialect.identifier(column.name) for column in columns(rel.input)]
    one_form = [
        f"{dialect.one_zero(name)} AS {name}" if column.kind.numeric else name
        for name, column in zip(names, columns(rel.input), strict=True)
    ]
    ties = [f"{name} NULLS LAST" for name in names], [f"{name} DESC NULLS FIRST" for name in names]
    values = [
        f"{_value(function, owner, ties, dialect, write)} AS {dialect.identifier(name)}"
        for name, function in rel.functions
    ]
    whole = f"SELECT {', '.join([*owner, *one_form]) or '1'} FROM ({rows}) AS i"
    return f"SELECT {', '.join([*owner, *names, *values])} FROM ({whole}) AS w{dialect.computed_once}"


def _value(
    function: WindowFunction,
    owner: Sequence[str],
    ties: tuple[Sequence[str], Sequence[str]],
    dialect: Dialect,
    write: Writers,
) -> str:
    # a frame that ends with the last row is read backwards, so that no engine starts anew at each row
    start, end = function.frame or (None, None)
    backwards = start is not None and end is None  # of frames by distance the binder has turned these
    name = _OPPOSITE.get(function.function, function.function) if backwards else function.function
    over = _over(function, owner, ties[backwards], dialect.unordered, write, backwards=backwards)
    if name in AGGREGATES:
        inner = UnitAggregate(name, function.argument, None, function.column)  # type: ignore[arg-type]
        return write.aggregate(inner, over)
    argument = "" if function.argument is None else write.expression(function.argument)
    match name:
        case "lag" | "lead":
            last = "" if function.default is None else f", {write.expression(function.default)}"
            return f"{name}({argument}, {function.number}{last}){over}"
        case "nth_value":
            return f"nth_value({argument}, {function.number}){over}"
        case "ntile":
            return dialect.as_double(f"ntile({function.number}){over}")
        case "percent_rank" | "cume_dist":
            return f"{name}(){over}"
        case "first_value" | "last_value":
            return f"{name}({argument}){over}"
    return dialect.as_double(f"{name}(){over}")


def _over(
    function: WindowFunction,
    owner: Sequence[str],
    ties: Sequence[str],
    unordered: str,
    write: Writers,
    *,
    backwards: bool,
) -> str:
    parts = [*owner, *(write.key(expr) for expr in function.partition)]
    partition = f"PARTITION BY {', '.join(parts)}" if parts else ""
    peers = function.function in PEERS or (
        function.function in AGGREGATES and (function.frame is None or function.distance)
    )
    terms = [_term(term, write, backwards=backwards) for term in function.order] + ([] if peers else [*ties])
    order = f" ORDER BY {', '.join(terms)}" if terms else "" if peers else unordered
    return f" OVER ({partition}{order}{_frame(function, backwards=backwards)})"


def _term(term: SortTerm, write: Writers, *, backwards: bool) -> str:
    direction = " DESC" if term.descending != backwards else ""
    nulls = "FIRST" if term.nulls_first != backwards else "LAST"
    return f"{write.key(term.expr)}{direction} NULLS {nulls}"


def _frame(function: WindowFunction, *, backwards: bool) -> str:
    if function.frame is None:
        return ""
    first, last = function.frame
    start, end = (first, last) if first is None or not backwards else (None, -first)
    opening = "UNBOUNDED PRECEDING" if start is None else _bound(start)
    closing = "UNBOUNDED FOLLOWING" if end is None else _bound(end)
    return f" {'RANGE' if function.distance else 'ROWS'} BETWEEN {opening} AND {closing}"


def _bound(rows: int) -> str:
    return "CURRENT ROW" if rows == 0 else f"{-rows} PRECEDING" if rows < 0 else f"{rows} FOLLOWING"
