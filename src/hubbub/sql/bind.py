"""A query's text → a bound query, or a refusal with code, place, reason and remedy. Free of charge, and free of data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.core.schema import Kind, Table, Value
from hubbub.sql.bind_aggregates import Crowd, has_aggregate, levels
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_from import Around, rows_of, select_items, with_clause
from hubbub.sql.bind_groups import groups
from hubbub.sql.bind_names import output_name, referred, rewritten, unaliased
from hubbub.sql.bind_scope import Context, Scope, Source, is_unit
from hubbub.sql.domains import with_values
from hubbub.sql.expressions import Col, Expr, Literal
from hubbub.sql.parse import parse
from hubbub.sql.prune import pruned
from hubbub.sql.query import Key, Order, Query

MAX_COLUMNS = 100
MAX_LIMIT = 1_000_000


def bind(text: str, *, tables: Mapping[str, Table], parameters: Sequence[Value] = (), dialect: str = "duckdb") -> Query:
    """Read a query and bind it to the declared tables."""
    tree, source = parse(text, dialect=dialect)
    ctx = Context(source, tables, tuple(parameters))
    try:
        query = _query(ctx, tree, Around())
    except RecursionError:
        source.refuse(None, "HB500", "The query is nested too deeply.", "Name inner parts in a WITH clause.")
    unused = len(ctx.parameters) - len(ctx.parameters_used)
    if unused:
        source.refuse(
            None, "HB509", f"{unused} of the parameters handed in are not used.", "Hand in one value for each."
        )
    return pruned(query)


def _query(ctx: Context, node: exp.Expr, around: Around) -> Query:
    if not isinstance(node, exp.Select):
        ctx.refuse(
            node, "HB519", "The outermost query is a UNION; its parts would be released one by one.",
            "Ask each part by itself, or aggregate over the union: SELECT … FROM (… UNION ALL …).",
        )  # fmt: skip
    around = with_clause(ctx, node, around)
    rows = rows_of(ctx, node, around)
    if rows.owner is None:
        ctx.refuse(
            node.args["from_"], "HB520", "This query reads public tables alone, which need no privacy.",
            "Read the public file directly, or join it with a private table.",
        )  # fmt: skip
    _outermost(ctx, node)
    return _aggregated(ctx, node, rows)


def _outermost(ctx: Context, node: exp.Select) -> None:
    if node.args.get("distinct") is not None:
        ctx.refuse(
            node.args["distinct"], "HB503", "SELECT DISTINCT at the outermost level lists values of rows.",
            "Use GROUP BY with an aggregate such as COUNT(*).",
        )  # fmt: skip
    if node.args.get("offset") is not None:
        ctx.refuse(node.args["offset"], "HB503", "OFFSET is not answered.", "Take the whole answer, or use LIMIT.")


def _aggregated(ctx: Context, node: exp.Select, rows: Source) -> Query:
    scope = Scope(rows.columns, "FROM")
    items = _items(ctx, node, rows)
    keys, sets = groups(ctx, scope, node, items)
    crowd = Crowd(ctx, scope)
    over = Scope(rows.columns, "FROM", crowd)
    bound = {expr: Col(name, expr.kind) for name, expr in keys}

    def answer(part: exp.Expr, found: Expr) -> Expr:
        return rewritten(ctx, part, found, bound, [(a.name, a) for a in crowd.asked])

    select = tuple((name, answer(part, scalar(ctx, over, part))) for name, part in items)
    having = node.args.get("having")
    kept = None if having is None else answer(having, condition(ctx, over, having.this))
    named = [exp.alias_(part.copy(), name, quoted=True) for name, part in items]
    order = []
    for term in node.args["order"].expressions if node.args.get("order") is not None else ():
        target = referred(ctx, scope, term.this, named, alias_first=True)
        order.append(
            Order(
                answer(target, scalar(ctx, over, target)),
                bool(term.args.get("desc")),
                bool(term.args.get("nulls_first")),
            )
        )
    query = Query(
        tuple(ctx.used), rows.rel, tuple(Key(name, with_values(expr)) for name, expr in keys), sets, tuple(crowd.asked),
        select, kept, tuple(order), _limit(ctx, node), top=False,
    )  # fmt: skip
    return _checked(ctx, node, replace(query, top=_is_top(query)))


def _items(ctx: Context, node: exp.Select, rows: Source) -> list[tuple[str, exp.Expr]]:
    """List the outputs with their names; several quantiles at once become one output each."""
    scope = Scope(rows.columns, "FROM")
    found: list[tuple[str, exp.Expr]] = []
    for item in select_items(ctx, node, rows):
        inner = unaliased(item)
        if is_unit(ctx, scope, inner) or not has_aggregate(node) and node.args.get("group") is None:
            _row_level(ctx, item)
        parts = levels(inner)
        for part in parts:
            suffix = "" if len(parts) == 1 else f"_{_level(part)}"
            found.append((output_name(item) + suffix, part))
    if len(found) > MAX_COLUMNS:
        ctx.refuse(node, "HB518", f"The answer has more than {MAX_COLUMNS} columns.", "Ask for fewer at once.")
    return found


def _level(node: exp.Expr) -> str:
    return next((str(n.this) for n in node.find_all(exp.Literal) if not n.args.get("is_string")), "")


def _row_level(ctx: Context, item: exp.Expr) -> None:
    ctx.refuse(
        item, "HB510", "This asks for single rows, and no noise can make a single person's row private.",
        "Ask about groups: SELECT region, COUNT(*), AVG(x) FROM … GROUP BY region.",
    )  # fmt: skip


def _limit(ctx: Context, node: exp.Select) -> int | None:
    clause = node.args.get("limit")
    if clause is None:
        return None
    amount = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.args.get("expression")
    found = scalar(ctx, Scope((), "LIMIT"), amount) if amount is not None else Literal(1, Kind.INTEGER)
    if not (isinstance(found, Literal) and type(found.value) is int and 0 <= found.value <= MAX_LIMIT):
        ctx.refuse(clause, "HB508", f"LIMIT is a whole number up to {MAX_LIMIT}.", "Write the number.")
    return found.value


def _is_top(query: Query) -> bool:
    """Recognise a question for the keys of the largest counts, and nothing else about them."""
    if len(query.aggregates) != 1 or len(query.order) != 1 or len(query.sets) != 1 or not query.limit or not query.keys:
        return False
    asked, by = query.aggregates[0], query.order[0]
    names = {key.name for key in query.keys}
    return (
        asked.function in ("count", "count_units")
        and by.descending
        and by.expr == Col(asked.name, Kind.INTEGER)
        and query.having is None
        and len(query.sets[0]) == len(query.keys)
        and all(isinstance(expr, Col) and expr.name in names for _, expr in query.select)
    )


def _checked(ctx: Context, node: exp.Select, query: Query) -> Query:
    if not query.aggregates:
        ctx.refuse(
            node.args.get("group") or node, "HB510", "This lists groups and asks nothing about them.",
            "Add an aggregate, such as COUNT(*).",
        )  # fmt: skip
    return query
