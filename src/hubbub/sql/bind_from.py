"""Bind FROM: tables, subqueries, joins and unions → relations in which every row has one owner.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.sql.bind_aggregate_call import has_aggregate
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_comma import FromItem, combine, is_comma
from hubbub.sql.bind_expr import condition
from hubbub.sql.bind_join import bind_join, padded_error
from hubbub.sql.bind_per_unit import group_by_unit, project
from hubbub.sql.bind_scan import bind_scan
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, conjuncts
from hubbub.sql.bind_select import distinct_on, is_distinct_on
from hubbub.sql.bind_subqueries import Correlation, SubqueryBinder
from hubbub.sql.bind_tables import CteScope, bind_with, find_table, rename_columns
from hubbub.sql.bind_union import bind_set_operation
from hubbub.sql.relations import Filter
from hubbub.sql.text import quote

_CLAUSES = {"limit": "LIMIT", "offset": "OFFSET", "order": "ORDER BY"}

# --- tables ------------------------------------------------------------------------------------------------------


def bind_source(ctx: Context, node: exp.Expr, ctes: CteScope) -> BoundRelation:
    """Bind a table or subquery after FROM or JOIN."""
    alias = node.args.get("alias")
    name = None if alias is None or alias.this is None else str(alias.this.this)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and _is_join(node.this):
        rows = _joined(ctx, node.this, node.this.args.get("joins") or [], ctes)
        return rows if name is None else rename_columns(ctx, node, replace(rows, columns=rows.with_table(name)))
    if isinstance(node, exp.Subquery):
        rows = bind_subquery(ctx, node.this, ctes)
        return rename_columns(ctx, node, replace(rows, columns=rows.with_table(name)))
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise ctx.error(
            node, "HB503", "FROM must be followed by a table or a subquery.", "Use the name of a declared table."
        )
    if node.args.get("db") is not None or node.args.get("catalog") is not None:
        raise ctx.error(
            node,
            "HB505",
            f"There is no table {quote(node.sql())}.",
            "Use the name of a declared table, without a schema.",
        )
    definition = ctes.find(node.this)
    if definition is not None:
        cte, visible = definition
        rows = bind_subquery(ctx, cte.this, visible)
        rows = rename_columns(ctx, cte, replace(rows, columns=rows.with_table(name or str(node.this.this))))
        return rename_columns(ctx, node, rows)
    table = find_table(ctx, node)
    return rename_columns(ctx, node, bind_scan(ctx, node, table, name or table.name))


def _is_join(node: exp.Expr) -> bool:
    """Tell whether parentheses contain tables instead of a query."""
    return isinstance(node, exp.Table) or bool(node.args.get("joins")) or _is_join(node.this)


def _joined(ctx: Context, first: exp.Expr, joins: Sequence[exp.Join], ctes: CteScope) -> BoundRelation:
    """Bind a table and its joins; commas between them bind last."""
    return combine(ctx, _items(ctx, first, joins, ctes, None), None)[0]


def _items(
    ctx: Context, first: exp.Expr, joins: Sequence[exp.Join], ctes: CteScope, where: exp.Expr | None
) -> list[FromItem]:
    """Bind what stands between commas: a table, or tables joined with conditions of their own.

    A condition of WHERE may be tested before the joins that follow, unless one of them adds rows.
    """
    items: list[FromItem] = [(bind_source(ctx, first, ctes), first)]
    tests = [] if where is None else conjuncts(where)
    for place, joined in enumerate(joins):
        source = bind_source(ctx, joined.this, ctes)
        if is_comma(joined):
            items.append((source, joined.this))
        else:
            ctx.values = {}
            adds = any(str(each.args.get("side") or "").upper() in ("RIGHT", "FULL") for each in joins[place + 1 :])
            items[-1] = bind_join(ctx, items[-1][0], source, joined, [] if adds else tests), joined.this
    return items


# --- subqueries --------------------------------------------------------------------------------------------------


def bind_subquery(ctx: Context, node: exp.Expr, ctes: CteScope) -> BoundRelation:
    """Bind a subquery, in which each row must have one owner."""
    if isinstance(node, exp.Subquery):
        return bind_subquery(ctx, node.this, ctes)
    if isinstance(node, exp.SetOperation):
        ctes = bind_with(ctx, node, ctes)
        _reject_limit(ctx, node)
        first, second = (bind_subquery(ctx, side, ctes) for side in (node.this, node.expression))
        return bind_set_operation(ctx, node, first, second)
    if not isinstance(node, exp.Select):
        raise ctx.error(node, "HB503", "A subquery must be a SELECT or a UNION ALL.", "Write SELECT … FROM ….")
    ctes = bind_with(ctx, node, ctes)
    first_rows = is_distinct_on(ctx, node)
    _reject_limit(ctx, node, *(["order"] if first_rows else []))
    rows = bind_rows(ctx, node, ctes)
    if rows.padded is not None:
        raise padded_error(ctx, rows.padded)
    if first_rows:
        return project(ctx, distinct_on(ctx, node, rows), rows)
    aggregated = node.args.get("group") is not None or any(has_aggregate(e) for e in node.expressions)
    if aggregated or node.args.get("having") is not None or node.args.get("distinct") is not None:
        return group_by_unit(ctx, node, rows)
    return project(ctx, node, rows)


def _reject_limit(ctx: Context, node: exp.Expr, *allowed: str) -> None:
    for name in _CLAUSES:
        clause = node.args.get(name)
        if clause is not None and name not in allowed:
            raise ctx.error(
                clause,
                "HB517",
                f"{_CLAUSES[name]} in a subquery is not supported: it would choose rows by other people's rows.",
                "Put ORDER BY and LIMIT at the end of the outermost query, where they apply to the noisy results.",
            )


def bind_rows(ctx: Context, node: exp.Select, ctes: CteScope, correlation: Correlation | None = None) -> BoundRelation:
    """Bind FROM, JOIN and WHERE, and the subqueries in SELECT and GROUP BY.

    Conditions that name columns of an outer query go to the correlation.
    """
    clause = node.args.get("from_")
    if clause is None:
        raise ctx.error(node, "HB505", "The query reads no table.", "Add FROM with a declared table.")
    ctx.spend(node)
    where, rest = node.args.get("where"), list[exp.Expr]()
    items = _items(ctx, clause.this, node.args.get("joins") or [], ctes, None if where is None else where.this)
    ctx.values = {}
    rows, conditions = combine(ctx, items, None if where is None else where.this)
    binder = SubqueryBinder(
        ctx,
        lambda inner, query: bind_rows(ctx, query, bind_with(ctx, query, ctes), inner),
        lambda query: bind_subquery(ctx, query, ctes),
        lambda rows, query: ctx.release_value and ctx.release_value(ctx, query, ctes, rows, conditions),
    )
    scope = NameScope(rows.columns, "WHERE")
    for part in conditions:
        if correlation is not None and correlation.takes(ctx, scope, part):
            continue
        restricted = binder.restrict(rows, part)
        if restricted is None:
            rest.append(part)
        else:
            rows = restricted
    grouped = node.args.get("group")
    rows, values = binder.attach(rows, [*rest, *node.expressions, *([] if grouped is None else [grouped])])
    ctx.values = values
    predicates = [condition(ctx, scope, part) for part in rest]
    if not predicates:
        return rows
    predicate = predicates[0] if len(predicates) == 1 else apply(ctx, where or node, "and", predicates)
    ctx.conditions.add(predicate)
    return replace(rows, rel=Filter(rows.rel, predicate))
