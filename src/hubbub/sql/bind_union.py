"""Bind UNION, INTERSECT and EXCEPT of relations that have the same owner.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import replace

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_scope import BoundRelation, Context, VisibleColumn
from hubbub.sql.expressions import Col, Expr, Facts, Literal, facts
from hubbub.sql.ranges import common_step
from hubbub.sql.relations import Filter, PerUnit, Project, Union, UnitAggregate, columns
from hubbub.sql.text import quote


def bind_set_operation(
    ctx: Context, node: exp.SetOperation, first: BoundRelation, second: BoundRelation
) -> BoundRelation:
    """Bind UNION ALL, or UNION, INTERSECT or EXCEPT of rows that contain their privacy ID.

    Duplicates are removed within a unit: with the privacy ID among the columns, rows of two units are never equal. For
    INTERSECT and EXCEPT the rows of both sides are united, and each distinct row keeps on which sides it was.
    """
    if node.args.get("by_name"):
        raise ctx.error(node, "HB519", "BY NAME is not supported.", "Select the columns of both sides in one order.")
    every = node.args.get("distinct") is False
    if isinstance(node, exp.Union) and every:
        return bind_union(ctx, node, first, second)
    if every:
        raise ctx.error(
            node, "HB743", "INTERSECT ALL and EXCEPT ALL are not supported.", "Remove ALL, or use EXISTS or NOT EXISTS."
        )
    sides = [(first, 0), (second, 1)]
    united = bind_union(ctx, node, *(_marked(ctx, side, number) for side, number in sides))
    if united.owner is not None and all(column.col is not None for column in united.columns):
        raise ctx.error(
            node,
            "HB743",
            f"{node.key.upper()} would compare rows of different people.",
            "Select the privacy ID column on both sides, or use UNION ALL.",
        )
    *visible, mark = united.columns
    if mark.col is None:
        raise AssertionError("the mark is a column")
    keys, shown = list[tuple[str, Expr]](), list[VisibleColumn]()
    for column in visible:
        col = column.col
        if col is not None:
            key = ctx.new_column("u", col.kind, col.facts, ctx.check_size(col, node))
            ctx.conditions.carry(key, col)
            keys.append((key.name, col))
            col = key
        shown.append(VisibleColumn(column.name, None, col))
    ends = [ctx.new_column(name, Kind.INTEGER, mark.col.facts, 1) for name in ("first", "last")]
    low, high = UnitAggregate("min", mark.col, None, ends[0]), UnitAggregate("max", mark.col, None, ends[1])
    grouped = PerUnit(united.rel, tuple(keys), ((ends[0].name, low), (ends[1].name, high)))
    if isinstance(node, exp.Union):
        return BoundRelation(grouped, tuple(shown), united.owner)
    here, there = (apply(ctx, node, "eq", [end, Literal(n, Kind.INTEGER)]) for end, n in zip(ends, (0, 1), strict=True))
    only = apply(ctx, node, "eq", [ends[1], Literal(0, Kind.INTEGER)])
    kept = only if isinstance(node, exp.Except) else apply(ctx, node, "and", [here, there])
    return BoundRelation(Filter(grouped, kept), tuple(shown), united.owner)


def _marked(ctx: Context, side: BoundRelation, number: int) -> BoundRelation:
    """Add a column with the number of a side."""
    mark = Literal(number, Kind.INTEGER)
    col = ctx.new_column("side", Kind.INTEGER, facts(mark), 1)
    kept = tuple((column.name, column) for column in columns(side.rel))
    return replace(
        side,
        rel=Project(side.rel, (*kept, (col.name, mark))),
        columns=(*side.columns, VisibleColumn(col.name, None, col)),
    )


def bind_union(ctx: Context, node: exp.SetOperation, first: BoundRelation, second: BoundRelation) -> BoundRelation:
    """Bind UNION ALL of two relations."""
    owner = first.owner
    ctx.check_same_owner(node, "HB519", owner, second.owner)
    if owner is not None and owner.others:
        raise ctx.error(
            node,
            "HB761",
            "UNION ALL is not supported where rows have two owners.",
            "Query each part separately and add the results.",
        )
    if owner is not None and owner.kind is None:
        raise ctx.error(
            node,
            "HB519",
            "UNION ALL cannot duplicate rows of a table with row-level privacy.",
            "Query each part separately and add the results.",
        )
    if len(first.columns) != len(second.columns):
        raise ctx.error(
            node,
            "HB519",
            "The two sides of UNION ALL have different numbers of columns.",
            "Select the same columns on both.",
        )
    visible, picked, cols = list[VisibleColumn](), (list[tuple[str, Expr]](), list[tuple[str, Expr]]()), list[Col]()
    for a, b in zip(first.columns, second.columns, strict=True):
        if a.is_unit and b.is_unit:
            visible.append(VisibleColumn(a.name, None, None))
            continue
        kinds = {c.kind for c in (a.col, b.col) if c is not None}
        if a.col is None or b.col is None or not (len(kinds) == 1 or kinds == {Kind.INTEGER, Kind.REAL}):
            raise ctx.error(
                node,
                "HB519",
                f"Column {quote(a.name)} has different types on the two sides of UNION ALL.",
                "CAST one of them.",
            )
        col = ctx.new_column(
            "u",
            a.col.kind if len(kinds) == 1 else Kind.REAL,
            common_facts(a.col, b.col),
            max(ctx.check_size(a.col, node), ctx.check_size(b.col, node)),
        )
        ctx.conditions.unite(col, (a.col, b.col))
        cols.append(col)
        for chosen, side in zip(picked, (a.col, b.col), strict=True):
            chosen.append((ctx.new_name("x"), side))
        visible.append(VisibleColumn(a.name, None, col))
    inputs = tuple(Project(part.rel, tuple(chosen)) for part, chosen in zip((first, second), picked, strict=True))
    return BoundRelation(Union(inputs, tuple(cols)), tuple(visible), owner)


def common_facts(a: Col, b: Col) -> Facts:
    """Return the facts that hold for values of both columns."""
    x, y = a.facts, b.facts
    bounds = None
    if x.bounds is not None and y.bounds is not None:
        bounds = Bounds(min(x.bounds.low, y.bounds.low), max(x.bounds.high, y.bounds.high))
    listed = None if x.values is None or y.values is None else tuple(dict.fromkeys((*x.values, *y.values)))
    return Facts(bounds, listed, common_step((x.step, y.step)))
