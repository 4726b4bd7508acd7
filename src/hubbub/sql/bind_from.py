"""Bind FROM: tables, subqueries, joins and unions → relations in which every row has one owner.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from sqlglot import exp

from hubbub.core.schema import Table
from hubbub.sql.bind_aggregates import UnitAggregateBinder, has_aggregate
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_join import bind_join
from hubbub.sql.bind_names import group_keys, output_name, rewrite, strip_alias
from hubbub.sql.bind_scan import bind_scan
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, VisibleColumn, conjuncts, is_unit, matches
from hubbub.sql.bind_union import bind_union, check_union
from hubbub.sql.domains import MAX_SUBQUERY_COMBINATIONS, with_values
from hubbub.sql.expressions import Col, Expr, facts
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel
from hubbub.sql.text import quote

_CLAUSES = {"limit": "LIMIT", "offset": "OFFSET", "order": "ORDER BY"}


@dataclass(frozen=True, slots=True)
class CteScope:
    """The common table expressions that a query can see, each with the ones that it can see itself."""

    names: tuple[tuple[exp.CTE, "CteScope | None"], ...] = ()

    def find(self, identifier: exp.Identifier) -> "tuple[exp.CTE, CteScope] | None":
        """Return the nearest definition of a name."""
        for cte, visible in reversed(self.names):
            if matches(str(cte.args["alias"].this.this), identifier):
                return cte, visible or CteScope()
        return None


def bind_with(ctx: Context, query: exp.Expr, ctes: CteScope) -> CteScope:
    """Add the WITH clause of a query to its CTE scope; each CTE sees the ones before it."""
    clause = query.args.get("with_")
    if clause is None:
        return ctes
    if clause.args.get("recursive"):
        raise ctx.error(
            clause,
            "HB503",
            "WITH RECURSIVE is not supported: its running time can depend on the data.",
            "Remove RECURSIVE.",
        )
    names = list(ctes.names)
    for cte in clause.expressions:
        name = cte.args["alias"].this
        if sum(1 for table in query.find_all(exp.Table) if matches(str(name.this), table.this)) == 0:
            raise ctx.error(
                cte,
                "HB503",
                f"The WITH clause defines {quote(str(name.this))}, which is never used.",
                "Remove the definition.",
            )
        if any(matches(str(other.args["alias"].this.this), name) for other, _ in names[len(ctes.names) :]):
            raise ctx.error(
                cte, "HB507", f"The WITH clause defines {quote(str(name.this))} twice.", "Use different names."
            )
        names.append((cte, CteScope(tuple(names))))
    return CteScope(tuple(names))


# --- tables ------------------------------------------------------------------------------------------------------


def bind_source(ctx: Context, node: exp.Expr, ctes: CteScope) -> BoundRelation:
    """Bind a table or subquery after FROM or JOIN."""
    alias = node.args.get("alias")
    name = None if alias is None or alias.this is None else str(alias.this.this)
    if isinstance(node, exp.Subquery):
        rows = bind_subquery(ctx, node.this, ctes)
        return _rename_columns(ctx, node, replace(rows, columns=rows.with_table(name)))
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
        rows = _rename_columns(ctx, cte, replace(rows, columns=rows.with_table(name or str(node.this.this))))
        return _rename_columns(ctx, node, rows)
    table = _table(ctx, node)
    return _rename_columns(ctx, node, bind_scan(ctx, node, table, name or table.name))


def _rename_columns(ctx: Context, node: exp.Expr, rows: BoundRelation) -> BoundRelation:
    """Apply the column names of an alias such as t(a, b)."""
    alias = node.args.get("alias")
    names = [] if alias is None else alias.args.get("columns") or []
    if not names:
        return rows
    if len(names) != len(rows.columns):
        raise ctx.error(
            node,
            "HB506",
            f"The alias names {len(names)} columns, but there are {len(rows.columns)}.",
            "Name every column.",
        )
    return replace(
        rows,
        columns=tuple(VisibleColumn(str(n.this), c.table, c.col) for n, c in zip(names, rows.columns, strict=True)),
    )


def _table(ctx: Context, node: exp.Table) -> Table:
    candidates = [table for table in ctx.tables.values() if matches(table.name, node.this)]
    exact = [table for table in candidates if table.name == str(node.this.this)]
    if len(exact or candidates) != 1:
        known = ", ".join(sorted(table.name for table in ctx.tables.values())[:12])
        raise ctx.error(
            node,
            "HB507" if candidates else "HB505",
            f"The table name {quote(str(node.this.this))} is ambiguous."
            if candidates
            else f"There is no table {quote(str(node.this.this))}.",
            "Quote the exact name." if candidates else f"Tables: {known[:300]}.",
        )
    return (exact or candidates)[0]


# --- subqueries --------------------------------------------------------------------------------------------------


def bind_subquery(ctx: Context, node: exp.Expr, ctes: CteScope) -> BoundRelation:
    """Bind a subquery, in which each row must have one owner."""
    if isinstance(node, exp.Subquery):
        return bind_subquery(ctx, node.this, ctes)
    if isinstance(node, exp.Union):
        ctes = bind_with(ctx, node, ctes)
        _reject_limit(ctx, node)
        check_union(ctx, node)
        return bind_union(ctx, node, bind_subquery(ctx, node.this, ctes), bind_subquery(ctx, node.expression, ctes))
    if not isinstance(node, exp.Select):
        raise ctx.error(node, "HB503", "A subquery must be a SELECT or a UNION ALL.", "Write SELECT … FROM ….")
    ctes = bind_with(ctx, node, ctes)
    _reject_limit(ctx, node)
    rows = bind_rows(ctx, node, ctes)
    aggregated = node.args.get("group") is not None or any(has_aggregate(e) for e in node.expressions)
    if aggregated or node.args.get("having") is not None or node.args.get("distinct") is not None:
        return _per_unit(ctx, node, rows)
    return _project(ctx, node, rows)


def _reject_limit(ctx: Context, node: exp.Expr) -> None:
    for name in _CLAUSES:
        clause = node.args.get(name)
        if clause is not None:
            raise ctx.error(
                clause,
                "HB517",
                f"{_CLAUSES[name]} in a subquery is not supported: it would choose rows by other people's rows.",
                "Put ORDER BY and LIMIT at the end of the outermost query, where they apply to the noisy results.",
            )


def bind_rows(ctx: Context, node: exp.Select, ctes: CteScope) -> BoundRelation:
    """Bind FROM, JOIN and WHERE."""
    clause = node.args.get("from_")
    if clause is None:
        raise ctx.error(node, "HB505", "The query reads no table.", "Add FROM with a declared table.")
    rows = bind_source(ctx, clause.this, ctes)
    for joined in node.args.get("joins") or []:
        rows = bind_join(ctx, rows, bind_source(ctx, joined.this, ctes), joined)
    where = node.args.get("where")
    if where is None:
        return rows
    scope, rest = NameScope(rows.columns, "WHERE"), list[exp.Expr]()
    for part in conjuncts(where.this):
        if isinstance(part, exp.In) and part.args.get("query") is not None and is_unit(ctx, scope, part.this):
            rows = _semi_join(ctx, rows, part, ctes)
        else:
            rest.append(part)
    predicates = [condition(ctx, scope, part) for part in rest]
    if not predicates:
        return rows
    predicate = predicates[0] if len(predicates) == 1 else apply(ctx, where, "and", predicates)
    ctx.conditions.add(predicate)
    return replace(rows, rel=Filter(rows.rel, predicate))


def _semi_join(ctx: Context, rows: BoundRelation, node: exp.In, ctes: CteScope) -> BoundRelation:
    """Bind id IN (SELECT id FROM …): keep the privacy units that occur in another private relation."""
    others = bind_subquery(ctx, node.args["query"], ctes)
    if len(others.columns) != 1 or others.columns[0].col is not None:
        raise ctx.error(
            node,
            "HB514",
            "The subquery must select only the privacy ID column of the same entity.",
            "Write id IN (SELECT id FROM … WHERE …).",
        )
    ctx.check_same_owner(node, "HB514", rows.owner, others.owner)
    return replace(rows, rel=Join(rows.rel, PerUnit(others.rel, (), ()), "inner", (), unit=True))


def select_items(ctx: Context, node: exp.Select, columns: Sequence[VisibleColumn]) -> list[exp.Expr]:
    """List the SELECT items, with `*` expanded."""
    items: list[exp.Expr] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        offset = ctx.text.offset(item)
        if not isinstance(star, exp.Star):
            items.append(item)
            continue
        table = item.args.get("table") if isinstance(item, exp.Column) else None
        matched = [c for c in columns if table is None or (c.table is not None and matches(c.table, table))]
        if not matched:
            raise ctx.error(
                item, "HB506", "`*` matches no columns.", "Use the table name or alias from the FROM clause."
            )
        items.extend(_reference(c, offset) for c in matched)
    return items


def _reference(column: VisibleColumn, offset: int | None) -> exp.Expr:
    table = exp.to_identifier(column.table, quoted=True)
    node = exp.column(exp.to_identifier(column.name, quoted=True), table)
    node.meta["start"] = offset
    return node


def _project(ctx: Context, node: exp.Select, rows: BoundRelation) -> BoundRelation:
    scope = NameScope(rows.columns, "SELECT")
    outputs, visible = list[tuple[str, Expr]](), list[VisibleColumn]()
    for item in select_items(ctx, node, rows.columns):
        inner = strip_alias(item)
        if is_unit(ctx, scope, inner):
            visible.append(VisibleColumn(output_name(item), None, None))
            continue
        expr = scalar(ctx, scope, inner)
        col = _new_column(ctx, inner, expr)
        ctx.conditions.carry(col, expr)
        outputs.append((col.name, with_values(expr, MAX_SUBQUERY_COMBINATIONS)))
        visible.append(VisibleColumn(output_name(item), None, col))
    return BoundRelation(Project(rows.rel, tuple(outputs)), tuple(visible), rows.owner)


def _new_column(ctx: Context, node: exp.Expr, expr: Expr) -> Col:
    return ctx.new_column(
        "x", expr.kind, facts(with_values(expr, MAX_SUBQUERY_COMBINATIONS)), ctx.check_size(expr, node)
    )


def _per_unit(ctx: Context, node: exp.Select, rows: BoundRelation) -> BoundRelation:
    """Bind a subquery that groups by the privacy ID column: one row per unit and combination of other keys."""
    scope = NameScope(rows.columns, "GROUP BY or in another aggregate")
    items = select_items(ctx, node, rows.columns)
    distinct = node.args.get("distinct")
    if distinct is not None and (distinct.expressions or distinct.args.get("on") or node.args.get("group")):
        raise ctx.error(
            distinct,
            "HB503",
            "DISTINCT ON, and DISTINCT together with GROUP BY, are not supported.",
            "Use only GROUP BY.",
        )
    keys = group_keys(ctx, scope, node, items) if distinct is None else [strip_alias(item) for item in items]
    if rows.owner is None or rows.owner.kind is None or not any(is_unit(ctx, scope, key) for key in keys):
        _reject_mixed_units(ctx, node, rows)
    bound: dict[Expr, str] = {}
    for key in keys:
        if not is_unit(ctx, scope, key):
            expr = scalar(ctx, scope, key)
            bound.setdefault(expr, _new_column(ctx, key, expr).name)
    binder = UnitAggregateBinder(ctx, scope)
    over = NameScope(rows.columns, "SELECT", binder)
    outputs, visible = list[tuple[str, Expr]](), list[VisibleColumn]()
    keyed = {
        expr: Col(name, expr.kind, facts(with_values(expr, MAX_SUBQUERY_COMBINATIONS))) for expr, name in bound.items()
    }
    for expr, key_column in keyed.items():
        ctx.conditions.carry(key_column, expr)
    computed = list[tuple[Col, Expr]]()
    for item in items:
        inner = strip_alias(item)
        if is_unit(ctx, scope, inner):
            visible.append(VisibleColumn(output_name(item), None, None))
            continue
        expr = rewrite(ctx, inner, scalar(ctx, over, inner), keyed, binder.aggregates)
        col = _new_column(ctx, inner, expr)
        computed.append((col, expr))
        outputs.append((col.name, expr))
        visible.append(VisibleColumn(output_name(item), None, col))
    having = node.args.get("having")
    predicate = None if having is None else condition(ctx, over, having.this)
    rel: Rel = PerUnit(
        rows.rel,
        tuple((name, with_values(expr, MAX_SUBQUERY_COMBINATIONS)) for expr, name in bound.items()),
        tuple(binder.aggregates),
    )
    if having is not None and predicate is not None:
        kept = rewrite(ctx, having, predicate, keyed, binder.aggregates)
        ctx.conditions.add(kept)
        rel = Filter(rel, kept)
    for col, expr in computed:
        ctx.conditions.carry(col, expr)
    return BoundRelation(Project(rel, tuple(outputs)), tuple(visible), rows.owner)


def _reject_mixed_units(ctx: Context, node: exp.Select, rows: BoundRelation) -> NoReturn:
    clause = node.args.get("group") or node.args.get("distinct") or (node.expressions or [node])[0]
    if rows.owner is None:
        raise ctx.error(
            clause,
            "HB514",
            "Grouped subqueries over public tables are not supported.",
            "Ask the data owner to publish the grouped result as a public table.",
        )
    if rows.owner.kind is None:
        raise ctx.error(
            clause,
            "HB514",
            "A grouped subquery is not supported on a table with row-level privacy.",
            "Aggregate in the outermost query.",
        )
    unit = next((c.name for c in rows.columns if c.col is None), None)
    raise ctx.error(
        clause,
        "HB514",
        "This subquery groups rows of several people, so its rows belong to no single person.",
        f"Add {unit} to its GROUP BY or SELECT DISTINCT, or aggregate in the outermost query."
        if unit
        else "Select the privacy ID column in the inner query and group by it.",
    )
