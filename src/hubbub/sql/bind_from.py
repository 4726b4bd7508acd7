"""Bind FROM: tables, subqueries, joins and unions → relations in which every row has one owner.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from hubbub.core.schema import Kind, Table
from hubbub.sql.bind_aggregates import UnitAggregateBinder, has_aggregate
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_comma import FromItem, combine, is_comma
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_join import bind_join, padded_error
from hubbub.sql.bind_names import expand_aliases, group_keys, output_name, resolve_item, rewrite, strip_alias
from hubbub.sql.bind_scan import bind_scan
from hubbub.sql.bind_scope import (
    BoundRelation,
    Context,
    NameScope,
    VisibleColumn,
    conjuncts,
    is_unit,
    matches,
    missing_unit,
    owner_place,
)
from hubbub.sql.bind_subqueries import Correlation, SubqueryBinder
from hubbub.sql.bind_union import bind_set_operation
from hubbub.sql.bind_windows import WindowBinder
from hubbub.sql.domains import MAX_SUBQUERY_COMBINATIONS, with_values
from hubbub.sql.expressions import Col, Expr, Literal, facts
from hubbub.sql.natural_bounds import note
from hubbub.sql.references import names_owner
from hubbub.sql.relations import Filter, PerUnit, Project, Rel, UnitWindow
from hubbub.sql.text import quote

_ZERO = Literal(0, Kind.INTEGER)
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
            "For a list of numbers or days, write FROM generate_series(0, 23) AS t(hour). Otherwise remove RECURSIVE.",
        )
    names = list(ctes.names)
    for cte in clause.expressions:
        name = cte.args["alias"].this
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
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and _is_join(node.this):
        rows = _joined(ctx, node.this, node.this.args.get("joins") or [], ctes)
        return rows if name is None else _rename_columns(ctx, node, replace(rows, columns=rows.with_table(name)))
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
    table = find_table(ctx, node)
    return _rename_columns(ctx, node, bind_scan(ctx, node, table, name or table.name))


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
        columns=tuple(replace(c, name=str(n.this)) for n, c in zip(names, rows.columns, strict=True)),
    )


def find_table(ctx: Context, node: exp.Table) -> Table:
    """Return the declared table that a name refers to."""
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
    if isinstance(node, exp.SetOperation):
        ctes = bind_with(ctx, node, ctes)
        _reject_limit(ctx, node)
        first, second = (bind_subquery(ctx, side, ctes) for side in (node.this, node.expression))
        return bind_set_operation(ctx, node, first, second)
    if not isinstance(node, exp.Select):
        raise ctx.error(node, "HB503", "A subquery must be a SELECT or a UNION ALL.", "Write SELECT … FROM ….")
    ctes = bind_with(ctx, node, ctes)
    first_rows = _is_distinct_on(ctx, node)
    _reject_limit(ctx, node, *(["order"] if first_rows else []))
    rows = bind_rows(ctx, node, ctes)
    if rows.padded is not None:
        raise padded_error(ctx, rows.padded)
    if first_rows:
        return _project(ctx, _distinct_on(ctx, node, rows), rows)
    aggregated = node.args.get("group") is not None or any(has_aggregate(e) for e in node.expressions)
    if aggregated or node.args.get("having") is not None or node.args.get("distinct") is not None:
        return _per_unit(ctx, node, rows)
    return _project(ctx, node, rows)


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
        listed = [c for c in columns if not c.qualified and c.present is None]
        matched = [c for c in listed if table is None or (c.table is not None and matches(c.table, table))]
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
    items = select_items(ctx, node, rows.columns)
    binder = WindowBinder(ctx, scope, rows.owner, lambda _, expr: expr, rows.rel)
    qualify = _bind_windows(ctx, node, items, binder)
    rows = replace(rows, rel=_windowed(ctx, rows.rel, binder, qualify))
    outputs, visible = list[tuple[str, Expr]](), list[VisibleColumn]()
    for item in items:
        inner = strip_alias(item)
        if is_unit(ctx, scope, inner):
            visible.append(_owner_column(ctx, scope, item))
            continue
        mark = missing_unit(ctx, scope, inner)
        expr = scalar(ctx, scope, inner) if mark is None else mark
        col = _new_column(ctx, inner, expr)
        note(ctx.naturals, col, expr)
        ctx.conditions.carry(col, expr)
        outputs.append((col.name, with_values(expr, MAX_SUBQUERY_COMBINATIONS)))
        shown = VisibleColumn(output_name(item), None, col)
        visible.append(shown if mark is None else replace(shown, col=None, present=col))
    return BoundRelation(Project(rows.rel, tuple(outputs)), tuple(visible), rows.owner)


def _is_distinct_on(ctx: Context, node: exp.Select) -> bool:
    """Tell whether a SELECT is a DISTINCT ON, which must have no other clause that groups or selects rows."""
    distinct = node.args.get("distinct")
    if distinct is None or distinct.args.get("on") is None:
        return False
    for clause in ("group", "having", "qualify"):
        if node.args.get(clause) is not None:
            raise ctx.error(
                distinct, "HB503", "DISTINCT ON needs a SELECT of its own.", "Put the rest into a subquery."
            )
    return True


def _distinct_on(ctx: Context, node: exp.Select, rows: BoundRelation) -> exp.Select:
    """Rewrite DISTINCT ON as QUALIFY with ROW_NUMBER. As in ORDER BY, 2 is a position, and an alias hides a column."""
    distinct, order = node.args["distinct"], node.args.get("order")
    scope, items = NameScope(rows.columns, "DISTINCT ON"), select_items(ctx, node, rows.columns)

    def target(part: exp.Expr) -> exp.Expr:
        chosen = resolve_item(ctx, scope, part, items, alias_first=True)
        if chosen is part:
            chosen = expand_aliases(scope, part, items, ctx)
        if chosen.find(exp.Window) is not None:
            raise ctx.error(
                part,
                "HB742",
                "DISTINCT ON and its ORDER BY cannot use the value of a window function.",
                "Compute it in a subquery.",
            )
        return chosen.copy()

    on = distinct.args["on"]
    parts = [target(part) for part in (on.expressions if isinstance(on, exp.Tuple) else [on])]
    ordered = [] if order is None else [(term, target(term.this)) for term in order.expressions]
    terms = list[exp.Expr]()
    for term, chosen in ordered:
        if chosen not in parts:
            terms.append(term.copy())
            terms[-1].set("this", chosen)
    window = exp.Window(this=exp.RowNumber(), partition_by=parts, over="OVER")
    if terms:
        window.set("order", exp.Order(expressions=terms))
    window.meta["start"] = ctx.text.offset(distinct)
    copy = node.copy()
    for clause in ("distinct", "order"):
        copy.set(clause, None)
    copy.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return copy


def _bind_windows(ctx: Context, node: exp.Select, items: Sequence[exp.Expr], binder: WindowBinder) -> Expr | None:
    """Bind the window functions of SELECT and QUALIFY, and the condition of QUALIFY."""
    qualify = node.args.get("qualify")
    test = None if qualify is None else expand_aliases(binder.scope, qualify.this, items, ctx)
    ctx.values = {**ctx.values, **binder.values([*items, *([] if test is None else [test])])}
    return None if test is None else binder.finish(test, condition(ctx, binder.scope, test))


def _windowed(ctx: Context, rel: Rel, binder: WindowBinder, qualify: Expr | None) -> Rel:
    """Add window functions to rows, and keep the rows that meet a condition on them."""
    for functions in binder.stages():
        rel = UnitWindow(rel, functions)
    return _filtered(ctx, rel, qualify)


def _filtered(ctx: Context, rel: Rel, predicate: Expr | None) -> Rel:
    if predicate is None:
        return rel
    ctx.conditions.add(predicate)
    return Filter(rel, predicate)


def _owner_column(ctx: Context, scope: NameScope, item: exp.Expr) -> VisibleColumn:
    """Return a privacy ID column under the name of an output."""
    return VisibleColumn(output_name(item), None, None, owner_place(ctx, scope, strip_alias(item)))


def _new_column(ctx: Context, node: exp.Expr, expr: Expr) -> Col:
    return ctx.new_column(
        "x", expr.kind, facts(with_values(expr, MAX_SUBQUERY_COMBINATIONS)), ctx.check_size(expr, node)
    )


def _per_unit(ctx: Context, node: exp.Select, rows: BoundRelation) -> BoundRelation:
    """Bind a subquery that groups by the privacy ID column, or a public one: one row per unit and other keys."""
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
    bound: dict[Expr, str] = {}
    whole = rows.owner is None and not keys
    if whole:  # one row: a group that is named by a constant
        bound[_ZERO] = _new_column(ctx, node, _ZERO).name
    for key in keys:
        if not is_unit(ctx, scope, key):
            expr = scalar(ctx, scope, key)
            bound.setdefault(expr, _new_column(ctx, key, expr).name)
    _reject_mixed_units(ctx, node, rows, keys)
    binder = UnitAggregateBinder(ctx, scope, None if rows.owner is None else rows.rel)
    over = NameScope(rows.columns, "SELECT", binder)
    outputs, visible = list[tuple[str, Expr]](), list[VisibleColumn]()
    keyed = {
        expr: Col(name, expr.kind, facts(with_values(expr, MAX_SUBQUERY_COMBINATIONS))) for expr, name in bound.items()
    }
    for expr, key_column in keyed.items():
        ctx.conditions.carry(key_column, expr)
    computed = list[tuple[Col, Expr]]()

    def per_unit(part: exp.Expr, expr: Expr) -> Expr:
        return rewrite(ctx, part, expr, keyed, [*binder.aggregates, *windows.functions])

    windows = WindowBinder(ctx, over, rows.owner, per_unit, _keyed_by(rows.rel, bound))
    qualify = _bind_windows(ctx, node, items, windows)
    for item in items:
        inner = strip_alias(item)
        if is_unit(ctx, scope, inner):
            visible.append(_owner_column(ctx, scope, item))
            continue
        expr = per_unit(inner, scalar(ctx, over, inner))
        col = _new_column(ctx, inner, expr)
        note(ctx.naturals, col, expr)
        computed.append((col, expr))
        outputs.append((col.name, expr))
        visible.append(VisibleColumn(output_name(item), None, col))
    having = node.args.get("having")
    predicate = None if having is None else condition(ctx, over, having.this)
    kept = None if predicate is None else rewrite(ctx, having or node, predicate, keyed, binder.aggregates)
    rel: Rel = PerUnit(
        binder.rows(rows.rel, tuple(bound)),
        tuple((name, with_values(expr, MAX_SUBQUERY_COMBINATIONS)) for expr, name in bound.items()),
        tuple(binder.aggregates),
        whole,
    )
    rel = _windowed(ctx, _filtered(ctx, rel, kept), windows, qualify)
    for col, expr in computed:
        ctx.conditions.carry(col, expr)
    return BoundRelation(Project(rel, tuple(outputs)), tuple(visible), rows.owner)


def _keyed_by(rel: Rel, keys: Mapping[Expr, str]) -> Rel:
    """Return rows with the columns by which they are grouped."""
    return PerUnit(rel, tuple((name, expr) for expr, name in keys.items()), ())


def of_one_unit(ctx: Context, scope: NameScope, keys: Sequence[exp.Expr], rel: Rel) -> bool:
    """Tell whether each group is of one unit: the keys contain the privacy ID, or a key that names its owner."""
    if any(is_unit(ctx, scope, key) for key in keys):
        return True
    return names_owner(rel, [scalar(ctx, scope, key) for key in keys if isinstance(key, exp.Column)])


def _reject_mixed_units(ctx: Context, node: exp.Select, rows: BoundRelation, keys: Sequence[exp.Expr]) -> None:
    """Raise if a subquery groups rows of several people."""
    owner, scope = rows.owner, NameScope(rows.columns, "GROUP BY")
    alone = owner is not None and owner.kind is not None and not owner.others
    if owner is None or (alone and of_one_unit(ctx, scope, keys, rows.rel)):
        return
    clause = node.args.get("group") or node.args.get("distinct") or (node.expressions or [node])[0]
    if owner.kind is None:
        raise ctx.error(
            clause,
            "HB514",
            "A grouped subquery is not supported on a table with row-level privacy.",
            "Aggregate in the outermost query.",
        )
    if owner.others:
        raise ctx.error(
            clause,
            "HB761",
            "A grouped subquery is not supported where rows have two owners.",
            "Aggregate in the outermost query.",
        )
    unit = next((c.name for c in rows.columns if c.is_unit), None)
    raise ctx.error(
        clause,
        "HB514",
        "This subquery groups rows of several people, so its rows belong to no single person.",
        f"Add {unit} to its GROUP BY or SELECT DISTINCT, or aggregate in the outermost query. Whether a key has a "
        "row is not private; whether it has many is: WHERE k IN (SELECT k FROM … GROUP BY k HAVING COUNT(*) > 50)."
        if unit
        else "Select the privacy ID column in the inner query and group by it.",
    )
