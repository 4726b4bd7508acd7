"""Bind what runs on noisy results: LIMIT, top-k, and an outer query over an aggregated subquery.

This is post-processing, so it has no privacy cost.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import replace

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_names import distinct_names, output_name, resolve_item, strip_alias
from hubbub.sql.bind_scope import Context, NameScope, VisibleColumn
from hubbub.sql.bind_select import select_items
from hubbub.sql.bind_tables import CteScope
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.functions import build
from hubbub.sql.query import OrderTerm, Query

MAX_LIMIT = 1_000_000


def bind_limit(ctx: Context, node: exp.Expr) -> int | None:
    """Bind LIMIT n or FETCH FIRST n ROWS ONLY."""
    clause = node.args.get("limit")
    if clause is None:
        return None
    amount = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.args.get("expression")
    count = scalar(ctx, NameScope((), "LIMIT"), amount) if amount is not None else Literal(1, Kind.INTEGER)
    if not (isinstance(count, Literal) and type(count.value) is int and 0 <= count.value <= MAX_LIMIT):
        raise ctx.error(clause, "HB508", f"LIMIT must be a whole number from 0 to {MAX_LIMIT:,}.", "Change the number.")
    return count.value


def is_top(query: Query) -> bool:
    """Recognize a query that returns only the keys of the largest counts."""
    if len(query.aggregates) != 1 or len(query.order) != 1 or len(query.sets) != 1 or not query.limit or not query.keys:
        return False
    aggregate, by = query.aggregates[0], query.order[0]
    names = {key.name for key in query.keys}
    return (
        aggregate.function in ("count", "count_units")
        and by.descending
        and by.expr == Col(aggregate.name, Kind.INTEGER)
        and query.having is None
        and len(query.sets[0]) == len(query.keys)
        and all(isinstance(expr, Col) and expr.name in names for _, expr in query.select)
    )


def only_subquery(node: exp.Select, ctes: CteScope) -> tuple[exp.Expr, CteScope, str | None] | None:
    """Return the only subquery that a query reads, with its CTE scope and its name."""
    clause = node.args.get("from_")
    if clause is None or node.args.get("joins"):
        return None
    read = clause.this
    alias = read.args.get("alias")
    name = None if alias is None or alias.this is None else str(alias.this.this)
    if alias is not None and alias.args.get("columns"):
        return None
    if isinstance(read, exp.Subquery):
        return read.this, ctes, name
    if isinstance(read, exp.Table) and isinstance(read.this, exp.Identifier):
        match = ctes.find(read.this)
        if match is not None and not match[0].args["alias"].args.get("columns"):
            return match[0].this, match[1], name or str(read.this.this)
    return None


def bind_outer(ctx: Context, node: exp.Select, inner: Query, name: str | None) -> Query:
    """Bind SELECT … WHERE … ORDER BY … LIMIT over an aggregated query, and merge the two into one query."""
    columns = tuple(VisibleColumn(label, name, Col(f"${i}", expr.kind)) for i, (label, expr) in enumerate(inner.select))
    answers = {f"${i}": expr for i, (_, expr) in enumerate(inner.select)}
    scope = NameScope(columns, "the subquery")

    def answer(part: exp.Expr) -> Expr:
        return _substitute(scalar(ctx, scope, part), answers)

    items = select_items(ctx, node, columns)
    where, order, count = node.args.get("where"), node.args.get("order"), bind_limit(ctx, node)
    if inner.limit is not None and (where is not None or order is not None):
        raise ctx.error(
            where or order,
            "HB517",
            "This clause would apply after the LIMIT of the subquery, which is not supported.",
            "Put WHERE, ORDER BY and LIMIT in the same query.",
        )
    having = inner.having
    if where is not None:
        condition(ctx, scope, where.this)
        added = answer(where.this)
        both = added if having is None else build("and", (having, added))
        having = added if both is None else both
    terms = [
        OrderTerm(
            answer(resolve_item(ctx, scope, term.this, items, alias_first=True)),
            bool(term.args.get("desc")),
            bool(term.args.get("nulls_first")),
        )
        for term in ([] if order is None else order.expressions)
    ]
    labels = distinct_names(ctx, [(output_name(item), isinstance(item, exp.Alias), item) for item in items])
    query = replace(
        inner,
        select=tuple(zip(labels, [answer(strip_alias(item)) for item in items], strict=True)),
        having=having,
        order=tuple(terms) or inner.order,
        limit=count if inner.limit is None else inner.limit if count is None else min(count, inner.limit),
    )
    return replace(query, top=is_top(query))


def _substitute(expr: Expr, answers: dict[str, Expr]) -> Expr:
    if isinstance(expr, Col):
        return answers.get(expr.name, expr)
    return (
        replace(expr, args=tuple(_substitute(arg, answers) for arg in expr.args))
        if isinstance(expr, FunctionCall)
        else expr
    )
