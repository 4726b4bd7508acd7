"""List the items of a SELECT, and rewrite DISTINCT ON.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Sequence

from sqlglot import exp

from hubbub.sql.bind_names import expand_aliases, resolve_item
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, VisibleColumn, matches


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


def is_distinct_on(ctx: Context, node: exp.Select) -> bool:
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


def distinct_on(ctx: Context, node: exp.Select, rows: BoundRelation) -> exp.Select:
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
