"""The text of a query → a bound query or a `QueryError`. This is free and never reads the data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from hubbub.core.schema import Table, Value
from hubbub.errors import QueryError
from hubbub.sql import partition_selection
from hubbub.sql.after import after
from hubbub.sql.after_intervals import Trait, with_replicas
from hubbub.sql.bind_after import Split, in_order, merges
from hubbub.sql.bind_aggregate_call import split_levels
from hubbub.sql.bind_aggregates import AggregateBinder
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_from import bind_rows
from hubbub.sql.bind_groups import bind_groups, key_values
from hubbub.sql.bind_keyed import KeyedBinder
from hubbub.sql.bind_names import distinct_names, expand_aliases, output_name, resolve_item, rewrite, strip_alias
from hubbub.sql.bind_padded import check_padded
from hubbub.sql.bind_postprocess import bind_limit, bind_outer, is_top, only_subquery
from hubbub.sql.bind_released import ReleasedValues
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, is_unit
from hubbub.sql.bind_select import select_items
from hubbub.sql.bind_tables import CteScope, bind_with
from hubbub.sql.conditions import Conditions
from hubbub.sql.expressions import Col, Expr, facts
from hubbub.sql.grouping_sets import by_set
from hubbub.sql.groups_as_values import with_groups_as_values
from hubbub.sql.lists import with_lists
from hubbub.sql.ordinary_sql import with_parameters
from hubbub.sql.parse import check_nodes, parse
from hubbub.sql.postprocess_cost import query_cost
from hubbub.sql.prune import names as mentions
from hubbub.sql.prune import prune
from hubbub.sql.query import Key, OrderTerm, Queries, Query, ReleasedTable
from hubbub.sql.query_levels import Levels, aggregates
from hubbub.sql.several_owners import refuse_two_owners
from hubbub.sql.spellings import settle
from hubbub.sql.written_values import all_without_written, with_values_as_tables, without_written

MAX_COLUMNS = 100


def bind(text: str, *, tables: Mapping[str, Table], parameters: Sequence[Value] = (), dialect: str = "duckdb") -> Query:
    """Parse a query and bind it to the declared tables; reject one that needs several releases, or has two owners."""
    query = _bound_releases(text, tables, parameters, dialect)
    if isinstance(query, Queries):
        raise QueryError(
            "HB754",
            f"This query needs {len(query.parts)} releases, which is not supported here.",
            "Write it as one aggregation, or run its parts as queries of their own.",
        )
    for table in query.tables:
        refuse_two_owners(table)
    return query


def bind_releases(
    text: str, *, tables: Mapping[str, Table], parameters: Sequence[Value] = (), dialect: str = "duckdb"
) -> Query | Queries:
    """Parse a query and bind it to the declared tables: one release, or several with the query over their results."""
    return by_set(_bound_releases(text, tables, parameters, dialect))


def _bound_releases(
    text: str, tables: Mapping[str, Table], parameters: Sequence[Value], dialect: str
) -> Query | Queries:
    """Bind a query whose grouping sets are still together."""
    tree, source = parse(text, dialect=dialect, released=True)
    ctx = Context(source, tables, tuple(parameters), dialect)
    try:
        ctx, tree = with_values_as_tables(ctx, with_lists(ctx, tree))
        tree = with_groups_as_values(ctx, tree)
        levels = Levels(ctx)
        released = ReleasedValues(levels, partial(_bound, ctx), KeyedBinder(levels, partial(_bound, ctx)))
        ctx.release_value = released.value
        is_released = levels.of(tree, CteScope(), outermost=True) == "released"
        if is_released and not merges(ctx, tree, CteScope(), levels):
            query = _split(ctx, tree.copy(), released)
        else:
            if not is_released:  # otherwise `merges` has checked them
                check_nodes(source, tree)
            query = released.before(prune(_query(ctx, tree, CteScope())))
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
    return all_without_written(query)


def _bound(ctx: Context, node: exp.Select, ctes: CteScope, written: Mapping[str, Table] | None = None) -> Query:
    """Bind one of several releases, which may also read tables that the statement writes itself."""
    tables = {**ctx.tables, **(written or {})}
    inner = replace(ctx, tables=tables, used=[], sizes={}, mentions={}, conditions=Conditions(), values={}, scans=0)
    query = prune(_query(inner, node, ctes))
    return without_written(query)


def _split(ctx: Context, tree: exp.Expr, values: ReleasedValues) -> Query | Queries:
    """Bind the releases of a query, and check the query over their results."""
    levels, bind = Levels(ctx), partial(_bound, ctx)
    split = Split(ctx, levels, bind, KeyedBinder(levels, bind))
    outer = settle(split.rewrite(tree, CteScope()), ctx.dialect, ctx.text)
    outer, used = with_parameters(in_order(outer), ctx.parameters, ctx.text)
    ctx.parameters_used |= used
    released = [
        ReleasedTable(name, tuple((label, expr.kind) for label, expr in query.select))
        for name, query in split.releases.items()
    ]
    public = tuple(split.public.values())
    queries, replicas = tuple(split.releases.values()), None
    if len(queries) == 1 and not public:
        chosen = _chosen_by_noise(queries[0])
        outer, replicas = with_replicas(outer, released[0].name, _traits(queries[0]), ctx.text, chosen=chosen)
    after_query = after(outer, released, public, ctx.text, replicas)
    if len(queries) > 1:
        return values.before(Queries(queries, after_query))
    (query,) = queries
    tables = (*query.tables, *(t for t in public if t not in query.tables))
    return values.before(replace(query, tables=tables, after=after_query))


def _chosen_by_noise(query: Query) -> bool:
    """Tell whether noise decides which groups are released."""
    return query.having is not None or query.limit is not None or query.top or partition_selection.needed(query)


def _traits(query: Query) -> dict[str, Trait]:
    """Tell which columns of a release are keys, and which have noise of their own."""
    linear = {each.name for each in query.aggregates if each.function in ("count", "count_units", "sum")}
    noisy = {each.name for each in query.aggregates}

    def trait(expr: Expr) -> Trait:
        if isinstance(expr, Col) and expr.name in linear:
            return "linear"
        return "rough" if mentions(expr) & noisy else "exact"

    return {label: trait(expr) for label, expr in query.select}


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
    inner = None if aggregates(node) else only_subquery(node, ctes)
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
    return _bind_aggregation(ctx, _grouped(node), rows)


def _grouped(node: exp.Select) -> exp.Select:
    """Return SELECT DISTINCT as the same query with GROUP BY ALL."""
    if node.args.get("distinct") is None:
        return node
    copy = node.copy()
    copy.set("distinct", None)
    copy.set("group", exp.Group(all=True))
    return copy


def _check_outermost(ctx: Context, node: exp.Select) -> None:
    distinct = node.args.get("distinct")
    if distinct is not None and (distinct.args.get("on") is not None or aggregates(node)):
        raise ctx.error(
            distinct,
            "HB503",
            "SELECT DISTINCT ON, and SELECT DISTINCT with aggregates, are not supported in the outermost query.",
            "Use GROUP BY with an aggregate such as COUNT(*).",
        )
    if node.args.get("qualify") is not None:
        raise ctx.error(
            node.args["qualify"],
            "HB742",
            "QUALIFY is not supported in the outermost query.",
            "Move it into a subquery, or use HAVING to choose groups.",
        )
    if node.args.get("offset") is not None:
        raise ctx.error(node.args["offset"], "HB503", "OFFSET is not supported.", "Remove it, or use LIMIT.")


def _bind_aggregation(ctx: Context, node: exp.Select, rows: BoundRelation) -> Query:
    scope = NameScope(rows.columns, "GROUP BY or in another aggregate")
    items = _items(ctx, node, rows)
    keys, sets = bind_groups(ctx, scope, node, items)
    shared = rows.owner is not None and bool(rows.owner.others)
    binder = AggregateBinder(ctx, scope, {expr: name for name, expr in keys}, shared=shared)
    over = NameScope(rows.columns, "SELECT", binder)
    bound = {expr: Col(name, expr.kind) for name, expr in keys}

    def answer(part: exp.Expr) -> Expr:
        return rewrite(ctx, part, scalar(ctx, over, part), bound, binder.names())

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
    check_padded(ctx, node, rows, [key.expr for key in query.keys])
    if not query.aggregates and all(facts(key.expr).values is not None for key in query.keys):
        raise ctx.error(
            node.args.get("group") or node,
            "HB510",
            "This query only lists groups, and these are declared, so the list says nothing about the data.",
            "Add an aggregate such as COUNT(*). The declared values are in the description of the dataset.",
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
        if is_unit(ctx, scope, inner) or not aggregates(node):
            for call in inner.find_all(exp.Anonymous):
                scalar(ctx, scope, call)  # refuses an unknown function by its name: it may be meant as an aggregate
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
