"""Names of outputs, the expressions of GROUP BY, and what may stand in SELECT beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.sql.bind_aggregates import has_aggregate
from hubbub.sql.bind_scope import Context, Scope, find, folded, matches
from hubbub.sql.expressions import Call, Col, Expr, Literal
from hubbub.sql.parse import quote


def output_name(item: exp.Expr) -> str:
    """Give the name of an item of SELECT: its alias, its column's name, or its function's with its column.

    >>> from sqlglot import parse_one
    >>> [output_name(e) for e in parse_one("SELECT a AS x, t.b, count(*), avg(t.c), avg(c + 1), c + 1").expressions]
    ['x', 'b', 'count_star()', 'avg(c)', 'avg', 'col']
    """
    if isinstance(item, exp.Alias):
        return str(item.alias)
    inner = item.unnest() if isinstance(item, exp.Paren) else item
    if isinstance(inner, exp.Column):
        return str(inner.name)
    while isinstance(inner, exp.Filter | exp.WithinGroup):
        inner = inner.this
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star):
        return "count_star()"
    if not isinstance(inner, exp.Func) or isinstance(inner, exp.And | exp.Or):
        return "col"
    name = str(inner.name).lower()[:60] if isinstance(inner, exp.Anonymous) else inner.sql_name().lower()
    return f"{name}({inner.this.name})" if isinstance(inner.this, exp.Column) else name


def distinct_names(ctx: Context, items: Sequence[tuple[str, bool, exp.Expr]]) -> list[str]:
    """Give every output a name of its own; two that were given by hand must differ."""
    taken: dict[str, int] = {}
    given = [folded(name) for name, by_hand, _ in items if by_hand]
    found = []
    for name, by_hand, part in items:
        if by_hand and given.count(folded(name)) > 1:
            raise ctx.refusal(
                part, "HB507", f"Two columns of the answer are called {quote(name)}.", "Give them different names."
            )
        tried, n = name, 0
        while folded(tried) in taken or (not by_hand and folded(tried) in given):
            n += 1
            tried = f"{name}_{n}"
        taken[folded(tried)] = 1
        found.append(tried)
    return found


def expanded(scope: Scope, node: exp.Expr, items: Sequence[exp.Expr], ctx: Context) -> exp.Expr:
    """Write out aliases of SELECT inside an expression of HAVING or ORDER BY, where no column has that name."""
    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        if isinstance(column.this, exp.Star) or column.args.get("table") is not None or find(ctx, scope, column):
            continue
        aliased = [i for i in items if isinstance(i, exp.Alias) and matches(str(i.alias), column.this)]
        if len(aliased) == 1:
            target = exp.Paren(this=unaliased(aliased[0]).copy())
            if column is copy:
                return target
            column.replace(target)
    return copy


def unaliased(item: exp.Expr) -> exp.Expr:
    """Give an item of SELECT without its alias."""
    return item.this if isinstance(item, exp.Alias) else item


def referred(ctx: Context, scope: Scope, node: exp.Expr, items: Sequence[exp.Expr], *, alias_first: bool) -> exp.Expr:
    """Follow a position (GROUP BY 1) or an alias of SELECT to the expression that it stands for."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        text = str(node.this)
        place = int(text) if text.isdecimal() and len(text) < 6 else 0
        if not 1 <= place <= len(items):
            raise ctx.refusal(
                node, "HB506", f"There is no item {quote(text)} in SELECT.", f"Count from 1 to {len(items)}."
            )
        return unaliased(items[place - 1])
    if not isinstance(node, exp.Column) or node.args.get("table") is not None or isinstance(node.this, exp.Star):
        return node
    aliased = [i for i in items if isinstance(i, exp.Alias) and matches(str(i.alias), node.this)]
    if not aliased:
        return node
    column = find(ctx, scope, node)
    if len(aliased) > 1:
        raise ctx.refusal(
            node, "HB507", f"{quote(node.name)} names several items of SELECT.", "Give them different aliases."
        )
    if column is None or alias_first:
        return unaliased(aliased[0])
    target = unaliased(aliased[0])
    same = (
        isinstance(target, exp.Column) and not isinstance(target.this, exp.Star) and find(ctx, scope, target) == column
    )
    if not same:
        raise ctx.refusal(
            node,
            "HB507",
            f"{quote(node.name)} is both a column and an item of SELECT here.",
            "Give the item another alias, or write the expression itself.",
        )
    return node


def grouped(ctx: Context, scope: Scope, node: exp.Select, items: Sequence[exp.Expr]) -> list[exp.Expr]:
    """List the expressions of a plain GROUP BY."""
    clause = node.args.get("group")
    if clause is None:
        return []
    if clause.args.get("all") and not clause.expressions:
        return [unaliased(item) for item in items if not has_aggregate(item)]
    keys = []
    for part in clause.expressions:
        if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            raise ctx.refusal(
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
    raise ctx.refusal(
        place,
        "HB511",
        f"{quote(str(place.name) if isinstance(place, exp.Column) else expr.name)} stands in SELECT,"
        " HAVING or ORDER BY and is neither grouped by nor inside an aggregate: it would show single rows.",
        "Add it to GROUP BY, or put it into an aggregate such as AVG or COUNT.",
    )
