"""Bind ARG_MIN and ARG_MAX within a unit: the value of one column in the row where another is least or largest.

They are a window and a minimum: FIRST_VALUE over the rows of the group gives each of them the value, and the minimum of
equal values is that value. So no engine needs such an aggregate, and all break ties in the same way.

Tested in tests/sql/test_arg_extremes.py.
"""

from dataclasses import replace

from sqlglot import exp

from hubbub.sql.bind_apply import NULL, apply
from hubbub.sql.bind_scope import Context
from hubbub.sql.conditions import Conditions
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.nulls import nullable
from hubbub.sql.relations import SortTerm, WindowFunction

#: Rows in which either is NULL do not count; in those with _null, only the column in the order must have a value.
ARG_EXTREMES = ("arg_min", "arg_max", "arg_min_null", "arg_max_null")


def first_by(
    ctx: Context, conditions: Conditions, node: exp.Expr, function: str, arguments: tuple[Expr, ...], where: Expr | None
) -> WindowFunction:
    """Return the window that gives all rows of a group the value; its partition is that of the group.

    Of rows that tie, the one with the least value counts, so that the result is a function of the rows alone. It is
    NULL where no row counts: such rows have NULL in the order, which comes last, and as their value.
    """
    value, by = (conditions.bounded(argument) for argument in arguments)
    # NULL only where a column can be NULL, or no row meets the filter
    null = where is not None or any(nullable(conditions.shadow(part)) for part in (value, by))
    known = replace(facts(value), null=null, required=False)
    needed = [by] if function.endswith("_null") else [value, by]
    tests = [] if where is None else [where]
    tests += [apply(ctx, node, "not", [apply(ctx, node, "is_null", [part])]) for part in needed]
    counts = tests[0] if len(tests) == 1 else apply(ctx, node, "and", tests)
    value, by = (apply(ctx, node, "case", [counts, part, NULL]) for part in (value, by))
    order = (
        SortTerm(by, descending=function.startswith("arg_max"), nulls_first=False),
        SortTerm(value, descending=False, nulls_first=False),
    )
    size = ctx.check_size(value, node) + ctx.check_size(by, node)
    column = ctx.new_column("first", value.kind, known, size)
    return WindowFunction("first_value", value, (), order, column, (None, None))
