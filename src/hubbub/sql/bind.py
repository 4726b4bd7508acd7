"""The text of a query → a bound query or a `QueryError`. This is free and never reads the data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.core.schema import Table, Value
from hubbub.sql.bind_aggregates import AggregateBinder, has_aggregate, split_levels
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_from import CteScope, bind_rows, bind_with, select_items
from hubbub.sql.bind_groups import bind_groups, key_values
from hubbub.sql.bind_names import distinct_names, expand_aliases, output_name, resolve_item, rewrite, strip_alias
from hubbub.sql.bind_postprocess import bind_limit, bind_outer, is_top, only_subquery
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, is_unit
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.parse import parse
from hubbub.sql.postprocess_cost import query_cost
from hubbub.sql.prune import prune
from hubbub.sql.query import Key, OrderTerm, Query

MAX_COLUMNS = 100


def bind(text: str, *, tables: Mapping[str, Table], parameters: Sequence[Value] = (), dialect: str = "duckdb") -> Query:
    """Parse a query and bind it to the declared tables."""
    tree, source = parse(text, dialect=dialect)
    ctx = Context(source, tables, tuple(parameters), dialect)
    try:
        query = _query(ctx, tree, CteScope())
    except RecursionError:
        raise source.error(
            None, "HB500", "The query is nested too deeply.", "Move the inner parts into a WITH clause."
        ) from None
    unused = len(ctx.parameters) - len(ctx.parameters_used)
    if unused:
        raise source.error(
            None,
            "HB509",
            f"{unused} of the parameters are not used in the query.",
            "Pass one value for each parameter.",
        )
    return prune(query)


def _query(ctx: Context, node: exp.Expr, ctes: CteScope) -> Query:
    if not isinstance(node, exp.Select):
        raise ctx.error(
            node,
            "HB519",
            "The outermost query cannot be a UNION: each part would be a separate release.",
            "Run each part as a separate query, or aggregate over the union: SELECT … FROM (… UNION ALL …).",
        )
    ctes = bind_with(ctx, node, ctes)
    _check_outermost(ctx, node)
    inner = None if _aggregates(node) else only_subquery(node, ctes)
    if inner is not None:
        query = bind_outer(ctx, node, _query(ctx, *inner[:2]), inner[2])
        query_cost(query)  # at every level, because the next level may double the cost
        return query
    rows = bind_rows(ctx, node, ctes)
    if rows.owner is None:
        raise ctx.error(
            node.args["from_"],
            "HB520",
            "This query reads only public tables, which need no privacy protection.",
            "Leave out ε: such a query is answered exactly and for free.",
        )
    return _bind_aggregation(ctx, node, rows)


def _aggregates(node: exp.Select) -> bool:
    """Tell whether a query itself aggregates or groups."""
    if node.args.get("group") is not None or node.args.get("having") is not None:
        return True
    return any(has_aggregate(part) for part in (*node.expressions, node.args.get("order")) if part is not None)


def _check_outermost(ctx: Context, node: exp.Select) -> None:
    if node.args.get("distinct") is not None:
        raise ctx.error(
            node.args["distinct"],
            "HB503",
            "SELECT DISTINCT in the outermost query would list values of individual rows.",
            "Use GROUP BY with an aggregate such as COUNT(*).",
        )
    if node.args.get("offset") is not None:
        raise ctx.error(node.args["offset"], "HB503", "OFFSET is not supported.", "Remove it, or use LIMIT.")


def _bind_aggregation(ctx: Context, node: exp.Select, rows: BoundRelation) -> Query:
    scope = NameScope(rows.columns, "GROUP BY or in another aggregate")
    items = _items(ctx, node, rows)
    keys, sets = bind_groups(ctx, scope, node, items)
    binder = AggregateBinder(ctx, scope)
    over = NameScope(rows.columns, "SELECT", binder)
    bound = {expr: Col(name, expr.kind) for name, expr in keys}

    def answer(part: exp.Expr) -> Expr:
        return rewrite(ctx, part, scalar(ctx, over, part), bound, [(a.name, a) for a in binder.aggregates])

    names = [(output_name(item), isinstance(item, exp.Alias), item) for item in items]
    select = tuple(zip(distinct_names(ctx, names), [answer(strip_alias(item)) for item in items], strict=True))
    having = node.args.get("having")
    bound_having = None
    if having is not None:
        predicate = expand_aliases(scope, having.this, items, ctx)
        condition(ctx, over, predicate)
        bound_having = answer(predicate)
    order = tuple(_order(ctx, scope, items, answer, term) for term in _terms(node))
    query = Query(
        tuple(ctx.used),
        rows.rel,
        tuple(Key(name, key_values(ctx, node, expr)) for name, expr in keys),
        sets,
        tuple(binder.aggregates),
        select,
        bound_having,
        order,
        bind_limit(ctx, node),
        top=False,
    )
    if not query.aggregates:
        raise ctx.error(
            node.args.get("group") or node,
            "HB510",
            "This query lists groups without an aggregate.",
            "Add an aggregate such as COUNT(*).",
        )
    return replace(query, top=is_top(query))


def _terms(node: exp.Select) -> Sequence[exp.Expr]:
    clause = node.args.get("order")
    return () if clause is None else clause.expressions


def _order(
    ctx: Context, scope: NameScope, items: Sequence[exp.Expr], answer: Callable[[exp.Expr], Expr], term: exp.Expr
) -> OrderTerm:
    target = resolve_item(ctx, scope, term.this, items, alias_first=True)
    expression = expand_aliases(scope, target, items, ctx) if target is term.this else target
    if isinstance(expression, exp.Literal):
        raise ctx.error(term, "HB508", "ORDER BY a constant has no effect.", "Order by a column name or position.")
    return OrderTerm(answer(expression), bool(term.args.get("desc")), bool(term.args.get("nulls_first")))


def _items(ctx: Context, node: exp.Select, rows: BoundRelation) -> list[exp.Expr]:
    """List the output columns; a list of quantile levels becomes one column per level."""
    scope = NameScope(rows.columns, "SELECT")
    columns: list[exp.Expr] = []
    for item in select_items(ctx, node, rows.columns):
        inner = strip_alias(item)
        if is_unit(ctx, scope, inner) or not _aggregates(node):
            raise ctx.error(
                item,
                "HB510",
                "This query selects individual rows, which cannot be released with differential privacy.",
                "Use aggregates, as in SELECT region, COUNT(*), AVG(x) FROM … GROUP BY region.",
            )
        parts = split_levels(inner)
        if len(parts) == 1:
            columns.append(item)
        else:
            columns.extend(exp.alias_(part, f"{output_name(item)}_{level}", quoted=True) for level, part in parts)
    if len(columns) > MAX_COLUMNS:
        raise ctx.error(node, "HB518", f"The query returns more than {MAX_COLUMNS} columns.", "Select fewer columns.")
    return columns
