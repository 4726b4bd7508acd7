"""Bind joins with public tables, and of private tables on the privacy ID column. Every row keeps its one owner.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import replace
from typing import Literal as Choice

from sqlglot import exp

from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, VisibleColumn, conjuncts, find, is_unit
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.relations import UNIT, Filter, Join, Project, Rel, Scan, columns


def bind_join(ctx: Context, left: BoundRelation, right: BoundRelation, node: exp.Join) -> BoundRelation:
    """Bind a join of two relations, one of which may be public."""
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if node.args.get("method") or kind not in ("", "INNER", "OUTER") or side not in ("", "LEFT", "RIGHT"):
        raise ctx.error(
            node,
            "HB513",
            "Only inner, left and right joins are supported.",
            "Use JOIN … ON, LEFT JOIN … ON or RIGHT JOIN … ON.",
        )
    names = {c.table for c in left.columns if c.table is not None}
    if any(c.table in names for c in right.columns if c.table is not None):
        raise ctx.error(node, "HB507", "Two tables in this query have the same name.", "Give them different aliases.")
    if node.args.get("on") is None and not node.args.get("using"):
        raise ctx.error(
            node,
            "HB513",
            "The join has no condition.",
            "Write JOIN … ON a.x = b.x, or JOIN … USING (x).",
        )
    pairs, unit, extra, merged = _conditions(ctx, left, right, node)
    if side == "RIGHT":
        left, right, pairs = right, left, [(b, a) for a, b in pairs]
    outer = side in ("LEFT", "RIGHT")
    if left.owner is None and right.owner is not None:
        if outer:
            raise ctx.error(
                node,
                "HB513",
                "An outer join cannot keep unmatched rows of a public table: they would belong to no person.",
                "Put the private table on the left of LEFT JOIN, or use an inner join.",
            )
        left, right, pairs = right, left, [(b, a) for a, b in pairs]
    _check_owners(ctx, node, left, right, pairs, unit=unit)
    if extra and outer:
        raise ctx.error(
            node,
            "HB513",
            "The condition of an outer join can only compare columns with =.",
            "Move other conditions to WHERE.",
        )
    _note(ctx, right, pairs, outer=outer)
    how: Choice["inner", "left"] = "left" if outer else "inner"
    joined = Join(left.rel, right.rel, how, tuple(pairs), unit)
    visible = _visible_columns(left, right, merged, outer=outer)
    result = BoundRelation(joined, visible, left.owner)
    for part in extra:
        kept = condition(ctx, NameScope((*left.columns, *right.columns), "a join condition"), part)
        ctx.conditions.add(kept)
        result = replace(result, rel=Filter(result.rel, kept))
    return result


def _note(ctx: Context, right: BoundRelation, pairs: "Pairs", *, outer: bool) -> None:
    """Take note of what a join says about its rows: an outer join binds neither side, and adds NULL on the right."""
    if outer:
        ctx.conditions.outer_join(c.col for c in right.columns if c.col is not None)
        return
    for a, b in pairs:
        ctx.conditions.equate(a, b)


def _visible_columns(
    left: BoundRelation, right: BoundRelation, merged: set[str], *, outer: bool
) -> tuple[VisibleColumn, ...]:
    """List the columns that can be named after a join.

    In an outer join the owner of the right side is NULL where nothing matched, so it is not the privacy ID any more.
    Of the columns in USING, the left one is kept.
    """
    kept = [c for c in right.columns if c.name.lower() not in merged and not (outer and c.col is None)]
    return (*left.columns, *kept)


Pairs = list[tuple[Expr, Expr]]


def _conditions(
    ctx: Context, left: BoundRelation, right: BoundRelation, node: exp.Join
) -> tuple[Pairs, bool, list[exp.Expr], set[str]]:
    """Split a join condition into pairs of equal columns, whether the privacy IDs are equal, and the rest."""
    a, b = NameScope(left.columns, "a join condition"), NameScope(right.columns, "a join condition")
    pairs, unit, extra, merged = Pairs(), False, list[exp.Expr](), set[str]()
    for name in node.args.get("using") or []:
        reference = exp.column(name.copy())
        merged.add(str(name.this).lower())
        if is_unit(ctx, a, reference) and is_unit(ctx, b, reference):
            unit = True
        else:
            operands = [_operand(ctx, side, other, reference) for side, other in ((left, right), (right, left))]
            pairs.append(_pair(ctx, node, *operands))
    on = node.args.get("on")
    both = NameScope((*left.columns, *right.columns), "a join condition")
    for inner in [] if on is None else conjuncts(on):
        if isinstance(inner, exp.EQ):
            if is_unit(ctx, both, inner.this) and is_unit(ctx, both, inner.expression):
                if _side(ctx, a, b, inner.this) * _side(ctx, a, b, inner.expression) != -1:
                    raise ctx.error(
                        inner,
                        "HB513",
                        "The privacy ID column is compared with itself.",
                        "Qualify it with both tables, as in a.id = b.id.",
                    )
                unit = True
                continue
            sides = _side(ctx, a, b, inner.this), _side(ctx, a, b, inner.expression)
            if sides in ((-1, 1), (1, -1)):
                first, second = (inner.this, inner.expression)[:: -sides[0]]
                pairs.append(_pair(ctx, inner, _operand(ctx, left, right, first), _operand(ctx, right, left, second)))
                continue
        extra.append(inner)
    return pairs, unit, extra, merged


def _operand(ctx: Context, side: BoundRelation, other: BoundRelation, node: exp.Expr) -> Expr:
    """Bind one side of an equality, which may be the privacy ID column if the other table is public.

    Which rows of a public table a private row matches depends only on its owner's rows and public data.
    """
    scope = NameScope(side.columns, "a join condition")
    if other.owner is None and side.owner is not None and side.owner.kind is not None and is_unit(ctx, scope, node):
        return Col(UNIT, side.owner.kind)
    return scalar(ctx, scope, node)


def _side(ctx: Context, a: NameScope, b: NameScope, node: exp.Expr) -> int:
    """Return the side that the columns of an expression come from: -1 left, 1 right, 0 both or neither."""
    sides = set()
    for column in node.find_all(exp.Column):
        in_a, in_b = find(ctx, a, column) is not None, find(ctx, b, column) is not None
        sides.add(0 if in_a == in_b else -1 if in_a else 1)
    return sides.pop() if len(sides) == 1 else 0


def _pair(ctx: Context, node: exp.Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    if a.kind is not b.kind and not (a.kind.numeric and b.kind.numeric):
        raise ctx.error(
            node,
            "HB508",
            f"The join compares a column of type {a.kind.value} with one of type {b.kind.value}.",
            "CAST one side to the type of the other.",
        )
    return a, b


def _check_owners(
    ctx: Context, node: exp.Join, left: BoundRelation, right: BoundRelation, pairs: Pairs, *, unit: bool
) -> None:
    """Check the rules by which every row keeps one owner."""
    if right.owner is not None and left.owner is not None:
        if left.owner.kind is None or right.owner.kind is None:
            raise ctx.error(
                node,
                "HB513",
                "A table with row-level privacy can be joined only with public tables.",
                "Query each table on its own.",
            )
        if not unit:
            raise ctx.error(
                node,
                "HB513",
                "This join would combine rows of different people.",
                "Join private tables on the privacy ID column, as in ON a.id = b.id.",
            )
        ctx.check_same_owner(node, "HB513", left.owner, right.owner)
    if left.owner is not None and left.owner.kind is None and not _unique(right.rel, [b for _, b in pairs]):
        raise ctx.error(
            node,
            "HB513",
            "A join cannot duplicate rows of a table with row-level privacy.",
            "Join a public table on columns that the data owner has declared unique.",
        )
    if not pairs and not unit:
        raise ctx.error(
            node,
            "HB513",
            "The join condition does not compare a column of one table with a column of the other.",
            "Write ON a.x = b.x.",
        )


def _unique(rel: Rel, on: list[Expr]) -> bool:
    """Tell whether no two rows of a public relation agree on the join columns."""
    names = {expr.name for expr in on if isinstance(expr, Col)}
    while not isinstance(rel, Scan):
        if isinstance(rel, Filter):
            rel = rel.input
        elif isinstance(rel, Project):
            names = {expr.name for name, expr in rel.outputs if name in names and isinstance(expr, Col)}
            rel = rel.input
        else:
            return False
    sources = {source for col, source in zip(columns(rel), rel.sources, strict=True) if col.name in names}
    return rel.table.unique is not None and set(rel.table.unique) <= sources
