"""Outer joins of private tables that also compare by <, <=, >, >= or <>.

    FROM deaths d LEFT JOIN visits v ON v.id = d.id AND v.day > d.day

Tested in tests/sql/test_outer_joins.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_match import Match
from hubbub.sql.bind_outer import Pairs, United, absent, mark_column, told_apart, with_mark
from hubbub.sql.bind_scope import MAX_SCANS, BoundRelation, Context, NameScope, VisibleColumn
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.relations import Filter, Join, Project, Rel, Union, scans

#: Comparisons of (left, right) as one of (right, left): the left row is the outer one.
_COMPARED: dict[type[exp.Expr], str] = {exp.LT: "gt", exp.LTE: "ge", exp.GT: "lt", exp.GTE: "le", exp.NEQ: "ne"}
_SWAPPED: dict[type[exp.Expr], str] = {exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge", exp.NEQ: "ne"}


@dataclass(frozen=True, slots=True)
class RangeCondition:
    """The conditions of an outer join besides its equalities: on the left row alone, and one that compares both."""

    parts: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    tests: tuple[tuple[str, Expr, Expr], ...]


def range_condition(
    ctx: Context, left: BoundRelation, right: BoundRelation, parts: Sequence[tuple[exp.Expr, tuple[int, int]]]
) -> RangeCondition | None:
    """Bind such conditions, each with the sides of its operands; None if there is a second comparison, or another."""
    here, there = (NameScope(side.columns, "a join condition") for side in (left, right))
    both = NameScope((*left.columns, *right.columns), "a join condition")
    bound, conditions, tests = list[Expr](), list[Expr](), list[tuple[str, Expr, Expr]]()
    for part, sides in parts:
        bound.append(condition(ctx, both, part))
        if sides == (-1, -1):
            conditions.append(condition(ctx, here, part))
        elif type(part) in _COMPARED and sides in ((-1, 1), (1, -1)):
            names, outer, inner = (
                (_COMPARED, part.this, part.expression) if sides == (-1, 1) else (_SWAPPED, part.expression, part.this)
            )
            tests.append((names[type(part)], scalar(ctx, there, inner), scalar(ctx, here, outer)))
        else:
            return None
    return RangeCondition(tuple(bound), tuple(conditions), tuple(tests)) if len(tests) < 2 else None


def matches_of(right: BoundRelation, pairs: Pairs, where: RangeCondition | None) -> Match:
    """Return how rows of the right side match a row of the left side."""
    tests, conditions = ([], []) if where is None else (list(where.tests), list(where.conditions))
    return Match(right, list(pairs), unit=True, tests=tests, conditions=conditions)


def range_join(
    ctx: Context,
    node: exp.Join,
    left: BoundRelation,
    right: BoundRelation,
    pairs: Pairs,
    where: RangeCondition,
    written: Sequence[VisibleColumn],
) -> BoundRelation:
    """Bind a left join of two private relations on the unit and a comparison; `written` has the columns in order.

    Theorem (Left join with a comparison). Removing one unit from the data removes its rows from such a join, and
    changes no other row.
    Proof    It is the union of an inner join on the unit, of which a filter keeps rows, and of the left side's rows
             whose group in "A subquery about one unit" has no row that meets the comparison. Each has the property,
             and so has their union ("One owner for each row"). A row of the left side that has a match is in the first
             part, once for each, and not in the second, and conversely.
    Assumes  as "One owner for each row".
    Charges  nothing by itself.
    Tested   tests/sql/test_outer_joins.py::test_removing_a_unit_removes_its_rows_and_changes_no_others
             tests/sql/test_outer_joins.py::test_rows_are_those_of_the_engine
    """
    ctx.scans += len([*scans(left.rel), *scans(right.rel)])
    if ctx.scans > MAX_SCANS:
        raise ctx.error(
            node,
            "HB518",
            f"The query reads more than {MAX_SCANS} tables; a left join with a comparison reads its tables twice.",
            "Split it into several queries.",
        )
    mark = mark_column(ctx)
    matched: Rel = Join(left.rel, with_mark(right, mark), "inner", tuple(pairs), unit=True)
    for part in where.parts:
        matched = Filter(matched, part)
    rest, some = matches_of(right, pairs, where).mark(ctx, node, left)
    alone = Filter(rest.rel, apply(ctx, node, "not", [some]))
    united = United(ctx)
    there = united.column(mark, Literal(None, mark.kind), mark)
    shown = dict[int, VisibleColumn]()
    for side in (left, right):
        for visible in side.columns:
            moved = visible
            if visible.present is not None:
                moved = replace(moved, present=united.kept(visible.present))
            if visible.col is not None:
                moved = replace(
                    moved, col=united.kept(visible.col) if side is left else united.of(visible.col, first=True)
                )
            elif side is right and visible.present is None:
                moved = absent(visible, there)
            shown[id(visible)] = moved
    parts = Project(matched, tuple(united.values[0])), Project(alone, tuple(united.values[1]))
    return BoundRelation(
        Union(parts, tuple(united.columns)), told_apart([shown[id(each)] for each in written]), left.owner
    )
