"""A query's text → a bound query, or a refusal with code, place, reason and remedy. Free, and blind to the data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.core.schema import Table, Value
from hubbub.sql.bind_aggregates import Crowd, has_aggregate, levels
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_from import Around, rows_of, select_items, with_clause
from hubbub.sql.bind_groups import groups
from hubbub.sql.bind_names import distinct_names, expanded, output_name, referred, rewritten, unaliased
from hubbub.sql.bind_released import derived, is_top, limit, over_released
from hubbub.sql.bind_scope import Context, Scope, Source, is_unit
from hubbub.sql.domains import with_values
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.parse import parse
from hubbub.sql.prune import pruned
from hubbub.sql.query import Key, Order, Query
from hubbub.sql.released_cost import weigh

MAX_COLUMNS = 100


def bind(text: str, *, tables: Mapping[str, Table], parameters: Sequence[Value] = (), dialect: str = "duckdb") -> Query:
    """Read a query and bind it to the declared tables."""
    tree, source = parse(text, dialect=dialect)
    ctx = Context(source, tables, tuple(parameters), dialect)
    try:
        query = _query(ctx, tree, Around())
    except RecursionError:
        raise source.refusal(
            None, "HB500", "The query is nested too deeply.", "Name inner parts in a WITH clause."
        ) from None
    unused = len(ctx.parameters) - len(ctx.parameters_used)
    if unused:
        raise source.refusal(
            None, "HB509", f"{unused} of the parameters handed in are not used.", "Hand in one value for each."
        )
    return pruned(query)


def _query(ctx: Context, node: exp.Expr, around: Around) -> Query:
    if not isinstance(node, exp.Select):
        raise ctx.refusal(
            node,
            "HB519",
            "The outermost query is a UNION; its parts would be released one by one.",
            "Ask each part by itself, or aggregate over the union: SELECT … FROM (… UNION ALL …).",
        )
    around = with_clause(ctx, node, around)
    _outermost(ctx, node)
    inner = None if _aggregates(node) else derived(node, around)
    if inner is not None:
        query = over_released(ctx, node, _query(ctx, *inner[:2]), inner[2])
        weigh(query)  # at every level: the next one may double it
        return query
    rows = rows_of(ctx, node, around)
    if rows.owner is None:
        raise ctx.refusal(
            node.args["from_"],
            "HB520",
            "This query reads public tables alone, which need no privacy.",
            "Read the public file directly, or join it with a private table.",
        )
    return _checked(ctx, node, _aggregated(ctx, node, rows))


def _aggregates(node: exp.Select) -> bool:
    """Say whether a query has aggregates or groups of its own."""
    if node.args.get("group") is not None or node.args.get("having") is not None:
        return True
    return any(has_aggregate(part) for part in (*node.expressions, node.args.get("order")) if part is not None)


def _outermost(ctx: Context, node: exp.Select) -> None:
    if node.args.get("distinct") is not None:
        raise ctx.refusal(
            node.args["distinct"],
            "HB503",
            "SELECT DISTINCT at the outermost level lists values of rows.",
            "Use GROUP BY with an aggregate such as COUNT(*).",
        )
    if node.args.get("offset") is not None:
        raise ctx.refusal(
            node.args["offset"], "HB503", "OFFSET is not answered.", "Take the whole answer, or use LIMIT."
        )


def _aggregated(ctx: Context, node: exp.Select, rows: Source) -> Query:
    scope = Scope(rows.columns, "an aggregate, GROUP BY or WHERE")
    items = _items(ctx, node, rows)
    keys, sets = groups(ctx, scope, node, items)
    crowd = Crowd(ctx, scope)
    over = Scope(rows.columns, "FROM", crowd)
    bound = {expr: Col(name, expr.kind) for name, expr in keys}

    def answer(part: exp.Expr) -> Expr:
        return rewritten(ctx, part, scalar(ctx, over, part), bound, [(a.name, a) for a in crowd.asked])

    names = [(output_name(item), isinstance(item, exp.Alias), item) for item in items]
    select = tuple(zip(distinct_names(ctx, names), [answer(unaliased(item)) for item in items], strict=True))
    having = node.args.get("having")
    kept = None
    if having is not None:
        whole = expanded(scope, having.this, items, ctx)
        condition(ctx, over, whole)
        kept = answer(whole)
    order = tuple(_order(ctx, scope, items, answer, term) for term in _terms(node))
    query = Query(
        tuple(ctx.used),
        rows.rel,
        tuple(Key(name, with_values(expr)) for name, expr in keys),
        sets,
        tuple(crowd.asked),
        select,
        kept,
        order,
        limit(ctx, node),
        top=False,
    )
    return replace(query, top=is_top(query))


def _terms(node: exp.Select) -> Sequence[exp.Expr]:
    clause = node.args.get("order")
    return () if clause is None else clause.expressions


def _order(
    ctx: Context, scope: Scope, items: Sequence[exp.Expr], answer: Callable[[exp.Expr], Expr], term: exp.Expr
) -> Order:
    target = referred(ctx, scope, term.this, items, alias_first=True)
    whole = expanded(scope, target, items, ctx) if target is term.this else target
    if isinstance(whole, exp.Literal):
        raise ctx.refusal(term, "HB508", "To order by a constant has no effect.", "Order by a name or a position.")
    return Order(answer(whole), bool(term.args.get("desc")), bool(term.args.get("nulls_first")))


def _items(ctx: Context, node: exp.Select, rows: Source) -> list[exp.Expr]:
    """List the outputs; several quantiles at once become one output each, named by their levels."""
    scope = Scope(rows.columns, "FROM")
    found: list[exp.Expr] = []
    for item in select_items(ctx, node, rows):
        inner = unaliased(item)
        if is_unit(ctx, scope, inner) or not _aggregates(node):
            raise ctx.refusal(
                item,
                "HB510",
                "This asks for single rows, and no noise can make a single person's row private.",
                "Ask about groups: SELECT region, COUNT(*), AVG(x) FROM … GROUP BY region.",
            )
        parts = levels(inner)
        if len(parts) == 1:
            found.append(item)
        else:
            found.extend(exp.alias_(part, f"{output_name(item)}_{level}", quoted=True) for level, part in parts)
    if len(found) > MAX_COLUMNS:
        raise ctx.refusal(node, "HB518", f"The answer has more than {MAX_COLUMNS} columns.", "Ask for fewer at once.")
    return found


def _checked(ctx: Context, node: exp.Select, query: Query) -> Query:
    if not query.aggregates:
        raise ctx.refusal(
            node.args.get("group") or node,
            "HB510",
            "This lists groups and asks nothing about them.",
            "Add an aggregate, such as COUNT(*).",
        )
    return query
