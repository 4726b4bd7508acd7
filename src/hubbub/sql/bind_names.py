"""Names of outputs, the expressions of GROUP BY, and what may stand in SELECT beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.sql.bind_aggregates import has_aggregate
from hubbub.sql.bind_scope import Context, Scope, find, matches
from hubbub.sql.expressions import Call, Col, Expr, Literal
from hubbub.sql.parse import quote


def output_name(item: exp.Expr) -> str:
    """Give the name of an item of SELECT: its alias, its column's name, or its function's."""
    if isinstance(item, exp.Alias):
        return str(item.alias)
    inner = item.unnest() if isinstance(item, exp.Paren) else item
    if isinstance(inner, exp.Column):
        return str(inner.name)
    while isinstance(inner, exp.Filter | exp.WithinGroup):
        inner = inner.this
    if isinstance(inner, exp.Anonymous):
        return str(inner.name).lower()[:60]
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star):
        return "count_star()"
    return inner.sql_name().lower() if isinstance(inner, exp.Func) else "col"


def unaliased(item: exp.Expr) -> exp.Expr:
    """Give an item of SELECT without its alias."""
    return item.this if isinstance(item, exp.Alias) else item


def referred(ctx: Context, scope: Scope, node: exp.Expr, items: Sequence[exp.Expr], *, alias_first: bool) -> exp.Expr:
    """Follow a position (GROUP BY 1) or an alias of SELECT to the expression that it stands for."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        text = str(node.this)
        place = int(text) if text.isdecimal() and len(text) < 6 else 0
        if not 1 <= place <= len(items):
            ctx.refuse(node, "HB506", f"There is no item {quote(text)} in SELECT.", f"Count from 1 to {len(items)}.")
        return unaliased(items[place - 1])
    if not isinstance(node, exp.Column) or node.args.get("table") is not None or isinstance(node.this, exp.Star):
        return node
    aliased = [i for i in items if isinstance(i, exp.Alias) and matches(str(i.alias), node.this)]
    if not aliased:
        return node
    column = find(ctx, scope, node)
    if len(aliased) > 1:
        ctx.refuse(node, "HB507", f"{quote(node.name)} names several items of SELECT.", "Give them different aliases.")
    if column is None or alias_first:
        return unaliased(aliased[0])
    if unaliased(aliased[0]) != node:
        ctx.refuse(
            node, "HB507", f"{quote(node.name)} is both a column and an item of SELECT here.",
            "Give the item another alias, or write the expression itself.",
        )  # fmt: skip
    return node


def grouped(ctx: Context, scope: Scope, node: exp.Select, items: Sequence[exp.Expr]) -> list[exp.Expr]:
    """List the expressions of a plain GROUP BY."""
    clause = node.args.get("group")
    if clause is None:
        return []
    if clause.args.get("all"):
        return [unaliased(item) for item in items if not has_aggregate(item)]
    keys = []
    for part in clause.expressions:
        if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            ctx.refuse(
                part, "HB503", "Grouping sets stand in the outermost query alone.", "Use a plain GROUP BY in here."
            )
        keys.append(referred(ctx, scope, part, items, alias_first=False))
    return keys


def rewritten(
    ctx: Context, node: exp.Expr, expr: Expr, keys: Mapping[Expr, Col], aggregates: Sequence[tuple[str, object]]
) -> Expr:
    """Write an expression over rows in terms of keys and aggregates; refuse it if a bare column is left."""
    if expr in keys:
        return keys[expr]
    if isinstance(expr, Literal):
        return expr
    if isinstance(expr, Call):
        return replace(expr, args=tuple(rewritten(ctx, node, arg, keys, aggregates) for arg in expr.args))
    if any(name == expr.name for name, _ in aggregates):
        return expr
    place = ctx.places.get(expr.name, node)
    ctx.refuse(
        place, "HB511", f"{quote(str(place.name) if isinstance(place, exp.Column) else expr.name)} stands in SELECT,"
        " HAVING or ORDER BY and is neither grouped by nor inside an aggregate: it would show single rows.",
        "Add it to GROUP BY, or put it into an aggregate such as AVG or COUNT.",
    )  # fmt: skip
