"""Bind what a subquery selects: its columns, windows and groups, of which each belongs to one unit.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_names import expand_aliases, group_keys, output_name, rewrite, strip_alias
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, VisibleColumn, is_unit, missing_unit, owner_place
from hubbub.sql.bind_select import select_items
from hubbub.sql.bind_unit_aggregates import UnitAggregateBinder
from hubbub.sql.bind_windows import WindowBinder
from hubbub.sql.domains import MAX_SUBQUERY_COMBINATIONS, with_values
from hubbub.sql.expressions import Col, Expr, Literal, facts
from hubbub.sql.natural_bounds import note
from hubbub.sql.references import names_owner
from hubbub.sql.relations import Filter, PerUnit, Project, Rel, UnitWindow

_ZERO = Literal(0, Kind.INTEGER)


def project(ctx: Context, node: exp.Select, rows: BoundRelation) -> BoundRelation:
    """Bind a subquery without groups: its columns and windows."""
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


def group_by_unit(ctx: Context, node: exp.Select, rows: BoundRelation) -> BoundRelation:
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
