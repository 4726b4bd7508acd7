"""Names of output columns, references to them, and expressions allowed next to GROUP BY.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.sql.bind_aggregate_call import has_aggregate
from hubbub.sql.bind_scope import Context, NameScope, find, fold_case, matches
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, released_place
from hubbub.sql.text import quote


def output_name(item: exp.Expr) -> str:
    """Return the name of a SELECT item: its alias, its column, or its function with its column.

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
    """Give every output column a distinct name; two equal aliases are an error."""
    taken: set[str] = set()
    aliases = [fold_case(name) for name, aliased, _ in items if aliased]
    names = []
    for name, aliased, part in items:
        if aliased and aliases.count(fold_case(name)) > 1:
            raise ctx.error(
                part, "HB507", f"Two output columns are named {quote(name)}.", "Give them different aliases."
            )
        candidate, n = name, 0
        while fold_case(candidate) in taken or (not aliased and fold_case(candidate) in aliases):
            n += 1
            candidate = f"{name}_{n}"
        taken.add(fold_case(candidate))
        names.append(candidate)
    return names


def expand_aliases(scope: NameScope, node: exp.Expr, items: Sequence[exp.Expr], ctx: Context) -> exp.Expr:
    """Replace SELECT aliases in an expression of HAVING or ORDER BY, unless a column has that name."""
    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        if isinstance(column.this, exp.Star) or column.args.get("table") is not None or find(ctx, scope, column):
            continue
        aliased = [i for i in items if isinstance(i, exp.Alias) and matches(str(i.alias), column.this)]
        if len(aliased) == 1:
            target = exp.Paren(this=strip_alias(aliased[0]).copy())
            if column is copy:
                return target
            column.replace(target)
    return copy


def strip_alias(item: exp.Expr) -> exp.Expr:
    """Return a SELECT item without its alias."""
    return item.this if isinstance(item, exp.Alias) else item


def resolve_item(
    ctx: Context, scope: NameScope, node: exp.Expr, items: Sequence[exp.Expr], *, alias_first: bool
) -> exp.Expr:
    """Resolve a position (GROUP BY 1) or a SELECT alias to its expression."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        text = str(node.this)
        position = int(text) if text.isdecimal() and len(text) < 6 else 0
        if not 1 <= position <= len(items):
            raise ctx.error(
                node, "HB506", f"SELECT has no item {quote(text)}.", f"Use a position from 1 to {len(items)}."
            )
        return strip_alias(items[position - 1])
    if not isinstance(node, exp.Column) or node.args.get("table") is not None or isinstance(node.this, exp.Star):
        return node
    aliased = [i for i in items if isinstance(i, exp.Alias) and matches(str(i.alias), node.this)]
    if not aliased:
        return node
    column = find(ctx, scope, node)
    if len(aliased) > 1:
        raise ctx.error(
            node, "HB507", f"{quote(node.name)} is the alias of several SELECT items.", "Give them different aliases."
        )
    # in GROUP BY a column hides an alias of its name, in ORDER BY the alias hides the column
    return strip_alias(aliased[0]) if column is None or alias_first else node


def group_keys(ctx: Context, scope: NameScope, node: exp.Select, items: Sequence[exp.Expr]) -> list[exp.Expr]:
    """List the expressions of GROUP BY in a subquery."""
    clause = node.args.get("group")
    if clause is None:
        return []
    if clause.args.get("all") and not clause.expressions:
        return [strip_alias(item) for item in items if not has_aggregate(item)]
    keys = []
    for part in clause.expressions:
        if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            raise ctx.error(
                part,
                "HB503",
                "Grouping sets are supported only in the outermost query.",
                "Use a plain GROUP BY in the subquery.",
            )
        keys.append(resolve_item(ctx, scope, part, items, alias_first=False))
    return keys


def rewrite(
    ctx: Context, node: exp.Expr, expr: Expr, keys: Mapping[Expr, Col], aggregates: Sequence[tuple[str, object]]
) -> Expr:
    """Express an expression over rows in keys and aggregates; raise if another column is left."""
    if expr in keys:
        return keys[expr]
    if isinstance(expr, Literal):
        return expr
    if isinstance(expr, FunctionCall):
        return replace(expr, args=tuple(rewrite(ctx, node, arg, keys, aggregates) for arg in expr.args))
    if any(name == expr.name for name, _ in aggregates):
        return expr
    if released_place(expr.name) is not None:
        raise ctx.error(
            node,
            "HB786",
            "A value about everybody cannot be compared with an aggregate of one person's rows.",
            "Compare it one level further out: SELECT … FROM (SELECT id, SUM(x) AS s FROM … GROUP BY id) AS t WHERE s "
            "> (SELECT …).",
        )
    mention = ctx.mentions.get(expr.name, node)
    raise ctx.error(
        mention,
        "HB511",
        f"{quote(str(mention.name) if isinstance(mention, exp.Column) else expr.name)} must appear in GROUP BY or"
        " inside an aggregate.",
        "Add it to GROUP BY, or use it in an aggregate such as AVG or COUNT.",
    )
