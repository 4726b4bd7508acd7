"""How many rows of a unit a condition on ROW_NUMBER keeps: QUALIFY ROW_NUMBER() OVER (PARTITION BY id …) = 1 keeps one.

Tested in tests/sql/test_numbered.py.
"""

from collections.abc import Iterable

from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.relations import Filter, Project, Rel, Truncate, UnitWindow


def most_rows(rel: Rel) -> int | None:
    """Return how many rows of one unit a relation has at most, from conditions on their numbers; None: any number.

    Theorem (Numbered rows). A relation has no more rows of a unit than this says.
    Proof    ROW_NUMBER partitioned by the unit alone gives the rows of a unit different whole numbers from 1. Filters
             take rows away, and projections keep rows and pass the column on. A condition that is true only for k whole
             numbers from 1 on therefore keeps at most k rows of a unit.
    Assumes  nothing. Privacy does not rest on this: contributions are bounded by it in the engine.
    Charges  nothing.
    Tested   tests/sql/test_numbered.py::test_no_unit_has_more_rows_than_the_numbers_allow
    """
    match rel:
        case Filter():
            below, kept = most_rows(rel.input), _limit(rel.predicate, _numbers(rel.input))
            known = [limit for limit in (below, kept) if limit is not None]
            return min(known, default=None)
        case Project() | UnitWindow() | Truncate():
            return most_rows(rel.input)
        case _:
            return None


def _numbers(rel: Rel) -> frozenset[str]:
    """Return the columns that number the rows of each unit."""
    match rel:
        case UnitWindow():
            own = {name for name, each in rel.functions if each.function == "row_number" and not each.partition}
            return _numbers(rel.input) | own
        case Filter() | Truncate():
            return _numbers(rel.input)
        case Project():
            below = _numbers(rel.input)
            return frozenset(name for name, expr in rel.outputs if isinstance(expr, Col) and expr.name in below)
        case _:
            return frozenset()


def _limit(predicate: Expr, numbers: frozenset[str]) -> int | None:
    if not isinstance(predicate, FunctionCall) or not numbers:
        return None
    if predicate.function == "and":
        known = [limit for arg in predicate.args if (limit := _limit(arg, numbers)) is not None]
        return min(known, default=None)
    tested, *others = predicate.args
    if not isinstance(tested, Col) or tested.name not in numbers:
        return None
    constants = _whole(others)
    if constants is None:
        return None
    match predicate.function, constants:
        case "eq", _:
            return 1
        case "le", (most,):
            return max(most, 1)
        case "lt", (most,):
            return max(most - 1, 1)
        case "in", _:
            return max(len(constants), 1)
        case "between", (low, high):
            return max(high - max(low, 1) + 1, 1)
    return None


def _whole(exprs: Iterable[Expr]) -> list[int] | None:
    values = [expr.value if isinstance(expr, Literal) else None for expr in exprs]
    return [v for v in values if type(v) is int] if all(type(v) is int for v in values) else None
