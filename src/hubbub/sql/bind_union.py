"""Bind UNION ALL of relations that have the same owner.

Tested in tests/sql/test_bind.py.
"""

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.bind_scope import BoundRelation, Context, VisibleColumn
from hubbub.sql.expressions import Col, Expr, Facts
from hubbub.sql.ranges import common_step
from hubbub.sql.relations import Project, Union
from hubbub.sql.text import quote


def check_union(ctx: Context, node: exp.Union) -> None:
    """Raise unless a union keeps duplicates."""
    if node.args.get("distinct") is not False or node.args.get("by_name"):
        raise ctx.error(
            node,
            "HB519",
            "UNION without ALL is not supported: it removes duplicates across people.",
            "Write UNION ALL. To remove duplicates, use SELECT DISTINCT with the privacy ID column.",
        )


def bind_union(ctx: Context, node: exp.Union, first: BoundRelation, second: BoundRelation) -> BoundRelation:
    """Bind UNION ALL of two relations."""
    owner = first.owner
    ctx.check_same_owner(node, "HB519", owner, second.owner)
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
        if a.col is None and b.col is None:
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
            _common_facts(a.col, b.col),
            max(ctx.check_size(a.col, node), ctx.check_size(b.col, node)),
        )
        ctx.conditions.unite(col, (a.col, b.col))
        cols.append(col)
        for chosen, side in zip(picked, (a.col, b.col), strict=True):
            chosen.append((ctx.new_name("x"), side))
        visible.append(VisibleColumn(a.name, None, col))
    inputs = tuple(Project(part.rel, tuple(chosen)) for part, chosen in zip((first, second), picked, strict=True))
    return BoundRelation(Union(inputs, tuple(cols)), tuple(visible), owner)


def _common_facts(a: Col, b: Col) -> Facts:
    """Return the facts that hold for values of both columns."""
    x, y = a.facts, b.facts
    bounds = None
    if x.bounds is not None and y.bounds is not None:
        bounds = Bounds(min(x.bounds.low, y.bounds.low), max(x.bounds.high, y.bounds.high))
    listed = None if x.values is None or y.values is None else tuple(dict.fromkeys((*x.values, *y.values)))
    return Facts(bounds, listed, common_step((x.step, y.step)))
