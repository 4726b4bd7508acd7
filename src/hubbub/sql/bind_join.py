"""Joins: with public tables, and between private tables on the unit. Every row keeps its one owner."""

from dataclasses import replace
from typing import Literal as Choice

from sqlglot import exp

from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_scope import Context, Scope, Source, Visible, conjuncts, find, is_unit
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.relations import UNIT, Filter, Join, Project, Rel, Scan, columns


def join(ctx: Context, left: Source, right: Source, node: exp.Join) -> Source:
    """Bind a join of two sources, one of which may be public."""
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if node.args.get("method") or kind not in ("", "INNER", "OUTER") or side not in ("", "LEFT", "RIGHT"):
        raise ctx.refusal(
            node,
            "HB513",
            "Only inner, left and right joins are answered.",
            "A full, cross, natural or lateral join keeps or makes rows that belong to nobody: use JOIN … ON.",
        )
    names = {c.table for c in left.columns if c.table is not None}
    if any(c.table in names for c in right.columns if c.table is not None):
        raise ctx.refusal(
            node, "HB507", "Two tables of this query go by the same name.", "Give them different aliases."
        )
    if node.args.get("on") is None and not node.args.get("using"):
        raise ctx.refusal(
            node,
            "HB513",
            "A join needs a condition; without one every row meets every other.",
            "Write JOIN … ON a.x = b.x, or USING (x).",
        )
    pairs, unit, extra, merged = _conditions(ctx, left, right, node)
    if side == "RIGHT":
        left, right, pairs = right, left, [(b, a) for a, b in pairs]
    outer = side in ("LEFT", "RIGHT")
    if left.owner is None and right.owner is not None:
        if outer:
            raise ctx.refusal(
                node,
                "HB513",
                "An outer join that keeps the rows of a public table makes rows that belong to nobody.",
                "Keep the private side: put it on the left of LEFT JOIN.",
            )
        left, right, pairs = right, left, [(b, a) for a, b in pairs]
    _may_meet(ctx, node, left, right, pairs, unit=unit)
    if extra and outer:
        raise ctx.refusal(
            node, "HB513", "An outer join is on equal columns alone.", "Move other conditions into WHERE."
        )
    how: Choice["inner", "left"] = "left" if outer else "inner"
    joined = Join(left.rel, right.rel, how, tuple(pairs), unit)
    visible = _after(left, right, merged, outer=outer)
    found = Source(joined, visible, left.owner)
    for part in extra:
        found = replace(
            found, rel=Filter(found.rel, condition(ctx, Scope((*left.columns, *right.columns), "ON"), part))
        )
    return found


def _after(left: Source, right: Source, merged: set[str], *, outer: bool) -> tuple[Visible, ...]:
    """List what can be named after a join.

    The owner of the right side of an outer join is NULL where nothing matched, so it is not the unit any more. Of the
    columns of USING, the left one stays.
    """
    stays = [c for c in right.columns if c.name.lower() not in merged and not (outer and c.col is None)]
    return (*left.columns, *stays)


Pairs = list[tuple[Expr, Expr]]


def _conditions(
    ctx: Context, left: Source, right: Source, node: exp.Join
) -> tuple[Pairs, bool, list[exp.Expr], set[str]]:
    """Sort the parts of a join's condition: equal columns, equal units, and the rest."""
    a, b = Scope(left.columns, "the left side"), Scope(right.columns, "the right side")
    pairs, unit, extra, merged = Pairs(), False, list[exp.Expr](), set[str]()
    for name in node.args.get("using") or []:
        reference = exp.column(name.copy())
        merged.add(str(name.this).lower())
        if is_unit(ctx, a, reference) and is_unit(ctx, b, reference):
            unit = True
        else:
            ends = [_end(ctx, side, other, reference) for side, other in ((left, right), (right, left))]
            pairs.append(_pair(ctx, node, *ends))
    on = node.args.get("on")
    both = Scope((*left.columns, *right.columns), "ON")
    for inner in [] if on is None else conjuncts(on):
        if isinstance(inner, exp.EQ):
            if is_unit(ctx, both, inner.this) and is_unit(ctx, both, inner.expression):
                if _side(ctx, a, b, inner.this) * _side(ctx, a, b, inner.expression) != -1:
                    raise ctx.refusal(
                        inner, "HB513", "The unit is compared with itself here.", "Name both tables: a.u = b.u."
                    )
                unit = True
                continue
            sides = _side(ctx, a, b, inner.this), _side(ctx, a, b, inner.expression)
            if sides in ((-1, 1), (1, -1)):
                first, second = (inner.this, inner.expression)[:: -sides[0]]
                pairs.append(_pair(ctx, inner, _end(ctx, left, right, first), _end(ctx, right, left, second)))
                continue
        extra.append(inner)
    return pairs, unit, extra, merged


def _end(ctx: Context, side: Source, other: Source, node: exp.Expr) -> Expr:
    """Bind one end of an equality; the unit may stand there if the other side is public, such as a register of units.

    What a row meets in a public table by its owner's name depends on its owner's rows and public data alone.
    """
    scope = Scope(side.columns, "this side of the join")
    if other.owner is None and side.owner is not None and side.owner.kind is not None and is_unit(ctx, scope, node):
        return Col(UNIT, side.owner.kind)
    return scalar(ctx, scope, node)


def _side(ctx: Context, a: Scope, b: Scope, node: exp.Expr) -> int:
    """Say from which side the columns of an expression come: -1 left, 1 right, 0 both or neither."""
    found = set()
    for column in node.find_all(exp.Column):
        in_a, in_b = find(ctx, a, column) is not None, find(ctx, b, column) is not None
        found.add(0 if in_a == in_b else -1 if in_a else 1)
    return found.pop() if len(found) == 1 else 0


def _pair(ctx: Context, node: exp.Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    if a.kind is not b.kind and not (a.kind.numeric and b.kind.numeric):
        raise ctx.refusal(
            node, "HB508", f"A {a.kind.value} is joined to a {b.kind.value} here.", "CAST one side to the other's kind."
        )
    return a, b


def _may_meet(ctx: Context, node: exp.Join, left: Source, right: Source, pairs: Pairs, *, unit: bool) -> None:
    """Hold the rules that keep every row with one owner."""
    if right.owner is not None and left.owner is not None:
        if left.owner.kind is None or right.owner.kind is None:
            raise ctx.refusal(
                node,
                "HB513",
                "Where each row is a unit by itself, a table can be joined with public ones alone.",
                "Ask each table by itself.",
            )
        if not unit:
            raise ctx.refusal(
                node,
                "HB513",
                "This join would mix the rows of different people.",
                "Join private tables on the unit's column: ON a.unit = b.unit (and more, if you like).",
            )
        ctx.one_owner(node, "HB513", left.owner, right.owner)
    if left.owner is not None and left.owner.kind is None and not _unique(right.rel, [b for _, b in pairs]):
        raise ctx.refusal(
            node,
            "HB513",
            "Where each row is a unit by itself, a join must not make two rows of one.",
            "Join with a public table on columns that the owner declared unique.",
        )
    if not pairs and not unit:
        raise ctx.refusal(
            node, "HB513", "This join compares no column of one side with one of the other.", "Write ON a.x = b.x."
        )


def _unique(rel: Rel, on: list[Expr]) -> bool:
    """Say whether no two rows of a public relation agree on the columns that are joined on."""
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
