"""FROM: tables, sub-queries, joins and unions → relations in which every row keeps its one owner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from hubbub.core.schema import Bounds, Column, Kind, Table
from hubbub.sql.bind_aggregates import Inside, has_aggregate
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_join import join
from hubbub.sql.bind_names import grouped, output_name, rewritten
from hubbub.sql.bind_scope import MAX_SCANS, Context, Owner, Scope, Source, Visible, conjuncts, is_unit, matches
from hubbub.sql.domains import FEW_COMBINATIONS, with_values
from hubbub.sql.expressions import Col, Expr, Facts, facts
from hubbub.sql.parse import quote
from hubbub.sql.ranges import common_step
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Union

Named = Mapping[str, exp.CTE]
_WHOLE = Bounds(-(Fraction(2) ** 128), Fraction(2) ** 128)


@dataclass(frozen=True, slots=True)
class Around:
    """The WITH clauses around a query: each name with its definition and what that itself can see."""

    names: tuple[tuple[exp.CTE, "Around | None"], ...] = ()

    def find(self, identifier: exp.Identifier) -> "tuple[exp.CTE, Around] | None":
        """Find the nearest definition of a name."""
        for cte, inside in reversed(self.names):
            if matches(str(cte.args["alias"].this.this), identifier):
                return cte, inside or Around()
        return None


def with_clause(ctx: Context, query: exp.Expr, around: Around) -> Around:
    """Add a query's WITH clause to what it can see; each part sees those before it."""
    clause = query.args.get("with_")
    if clause is None:
        return around
    if clause.args.get("recursive"):
        raise ctx.refusal(
            clause, "HB503", "A recursive WITH can go on for as long as the data says.", "Leave RECURSIVE out."
        )
    names = list(around.names)
    for cte in clause.expressions:
        name = cte.args["alias"].this
        if sum(1 for table in query.find_all(exp.Table) if matches(str(name.this), table.this)) == 0:
            raise ctx.refusal(cte, "HB503", f"{quote(str(name.this))} is defined and never used.", "Remove it.")
        if any(matches(str(other.args["alias"].this.this), name) for other, _ in names[len(around.names) :]):
            raise ctx.refusal(cte, "HB507", f"{quote(str(name.this))} is defined twice.", "Give them different names.")
        names.append((cte, Around(tuple(names))))
    return Around(tuple(names))


# --- tables ------------------------------------------------------------------------------------------------------


def source(ctx: Context, node: exp.Expr, around: Around) -> Source:
    """Bind what stands after FROM or JOIN."""
    alias = node.args.get("alias")
    name = None if alias is None or alias.this is None else str(alias.this.this)
    if isinstance(node, exp.Subquery):
        found = relation(ctx, node.this, around)
        return _renamed(ctx, node, replace(found, columns=found.named(name)))
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise ctx.refusal(node, "HB503", "After FROM stands a table or a sub-query.", "Name a declared table.")
    if node.args.get("db") is not None or node.args.get("catalog") is not None:
        raise ctx.refusal(
            node, "HB505", f"There is no table {quote(node.sql())}.", "Name a declared table, without a schema."
        )
    defined = around.find(node.this)
    if defined is not None:
        cte, inside = defined
        found = relation(ctx, cte.this, inside)
        own = _renamed(ctx, cte, replace(found, columns=found.named(name or str(node.this.this))))
        return _renamed(ctx, node, own)
    table = _table(ctx, node)
    return _renamed(ctx, node, _scan(ctx, node, table, name or table.name))


def _renamed(ctx: Context, node: exp.Expr, found: Source) -> Source:
    """Apply the column names of an alias such as t(a, b)."""
    alias = node.args.get("alias")
    names = [] if alias is None else alias.args.get("columns") or []
    if not names:
        return found
    if len(names) != len(found.columns):
        raise ctx.refusal(
            node, "HB506", f"{len(names)} names are given for {len(found.columns)} columns.", "Name every column."
        )
    return replace(
        found, columns=tuple(Visible(str(n.this), c.table, c.col) for n, c in zip(names, found.columns, strict=True))
    )


def _table(ctx: Context, node: exp.Table) -> Table:
    found = [table for table in ctx.tables.values() if matches(table.name, node.this)]
    exact = [table for table in found if table.name == str(node.this.this)]
    if len(exact or found) != 1:
        known = ", ".join(sorted(table.name for table in ctx.tables.values())[:12])
        raise ctx.refusal(
            node,
            "HB505" if not found else "HB507",
            f"There is no table {quote(str(node.this.this))}." if not found else "This could mean several tables.",
            f"Tables: {known[:300]}." if not found else "Quote the exact name.",
        )
    return (exact or found)[0]


def _scan(ctx: Context, node: exp.Expr, table: Table, name: str) -> Source:
    ctx.scans += 1
    if ctx.scans > MAX_SCANS:
        raise ctx.refusal(
            node,
            "HB518",
            f"More than {MAX_SCANS} tables are read in one query, WITH clauses counted at each use.",
            "Ask in several queries.",
        )
    if table not in ctx.used:
        ctx.used.append(table)
    unit = table.unit.column if table.unit is not None else None
    cols, sources, visible = list[Col](), list[str](), list[Visible]()
    for column in table.columns:
        if column.hidden:
            continue
        if unit is not None and column.name == unit:
            visible.append(Visible(column.name, name, None))
            continue
        col = ctx.col(column.name, column.kind, declared(column), 1)
        cols.append(col)
        sources.append(column.name)
        visible.append(Visible(column.name, name, col))
    return Source(Scan(table, tuple(cols), tuple(sources)), tuple(visible), _owner(table))


def _owner(table: Table) -> Owner | None:
    if table.unit is None:
        return None
    if table.unit.column is None:
        return Owner(table.name, None, table.relation)
    kind = next((c.kind for c in table.columns if c.name == table.unit.column), Kind.TEXT)
    return Owner(table.unit.entity, kind, table.relation, table="" if table.unit.entity else table.name)


def declared(column: Column) -> Facts:
    """Give the facts that the scan makes true for a column."""
    listed = None if column.values is None else (*column.values, *([] if column.other is None else [column.other]))
    values = None if listed is None else tuple(dict.fromkeys(listed))
    if column.kind in (Kind.DATE, Kind.TIMESTAMP):
        return Facts(column.bounds, values)
    if not column.kind.numeric:
        return Facts(None, values)
    whole = column.kind is Kind.INTEGER
    numbers = [Fraction(v) for v in values or () if isinstance(v, int | Fraction)]
    spread = Bounds(min(numbers), max(numbers)) if numbers else _WHOLE if whole else None
    return Facts(column.bounds or spread, values, column.step or (Fraction(1) if whole else None))


# --- sub-queries -------------------------------------------------------------------------------------------------


def relation(ctx: Context, node: exp.Expr, around: Around) -> Source:
    """Bind a query whose rows are used by another: each row must have one owner."""
    if isinstance(node, exp.Subquery):
        return relation(ctx, node.this, around)
    if isinstance(node, exp.Union):
        return _union(ctx, node, around)
    if not isinstance(node, exp.Select):
        raise ctx.refusal(node, "HB503", "A sub-query is a SELECT or a UNION ALL.", "Write SELECT … FROM … .")
    around = with_clause(ctx, node, around)
    _no_limit(ctx, node)
    rows = rows_of(ctx, node, around)
    aggregated = node.args.get("group") is not None or any(has_aggregate(e) for e in node.expressions)
    if aggregated or node.args.get("having") is not None or node.args.get("distinct") is not None:
        return _per_unit(ctx, node, rows)
    return _project(ctx, node, rows)


def _no_limit(ctx: Context, node: exp.Expr) -> None:
    for name in ("limit", "offset", "order"):
        clause = node.args.get(name)
        if clause is not None:
            raise ctx.refusal(
                clause,
                "HB517",
                f"{name.upper()} inside a sub-query chooses rows by looking at other people's rows.",
                "Put ORDER BY and LIMIT at the end of the whole query, where they act on the noisy answers.",
            )


def rows_of(ctx: Context, node: exp.Select, around: Around) -> Source:
    """Bind FROM, JOIN and WHERE."""
    clause = node.args.get("from_")
    if clause is None:
        raise ctx.refusal(node, "HB505", "The query reads no table.", "Add FROM and a declared table.")
    found = source(ctx, clause.this, around)
    for joined in node.args.get("joins") or []:
        found = join(ctx, found, source(ctx, joined.this, around), joined)
    where = node.args.get("where")
    if where is None:
        return found
    scope, rest = Scope(found.columns, "WHERE"), list[exp.Expr]()
    for part in conjuncts(where.this):
        if isinstance(part, exp.In) and part.args.get("query") is not None and is_unit(ctx, scope, part.this):
            found = _semi_join(ctx, found, part, around)
        else:
            rest.append(part)
    predicates = [condition(ctx, scope, part) for part in rest]
    if not predicates:
        return found
    whole = predicates[0] if len(predicates) == 1 else apply(ctx, where, "and", predicates)
    return replace(found, rel=Filter(found.rel, whole))


def _semi_join(ctx: Context, found: Source, node: exp.In, around: Around) -> Source:
    """Keep the units that another private table has: unit IN (SELECT unit FROM …)."""
    others = relation(ctx, node.args["query"], around)
    if len(others.columns) != 1 or others.columns[0].col is not None:
        raise ctx.refusal(
            node,
            "HB514",
            "A unit can be IN a sub-query that selects the unit of the same entity and nothing else.",
            "Write unit IN (SELECT unit FROM … WHERE …).",
        )
    ctx.one_owner(node, "HB514", found.owner, others.owner)
    return replace(found, rel=Join(found.rel, PerUnit(others.rel, (), ()), "inner", (), unit=True))


def select_items(ctx: Context, node: exp.Select, rows: Source) -> list[exp.Expr]:
    """List the items of SELECT, with stars written out."""
    items: list[exp.Expr] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        place = ctx.text.offset(item)
        if not isinstance(star, exp.Star):
            items.append(item)
            continue
        table = item.args.get("table") if isinstance(item, exp.Column) else None
        wanted = [c for c in rows.columns if table is None or (c.table is not None and matches(c.table, table))]
        if not wanted:
            raise ctx.refusal(item, "HB506", "This star stands for no columns.", "Name the table as in FROM.")
        items.extend(_reference(c, place) for c in wanted)
    return items


def _reference(column: Visible, place: int | None) -> exp.Expr:
    table = exp.to_identifier(column.table, quoted=True)
    found = exp.column(exp.to_identifier(column.name, quoted=True), table)
    found.meta["start"] = place
    return found


def _project(ctx: Context, node: exp.Select, rows: Source) -> Source:
    scope = Scope(rows.columns, "FROM")
    outputs, visible = list[tuple[str, Expr]](), list[Visible]()
    for item in select_items(ctx, node, rows):
        inner = item.this if isinstance(item, exp.Alias) else item
        if is_unit(ctx, scope, inner):
            visible.append(Visible(output_name(item), None, None))
            continue
        expr = scalar(ctx, scope, inner)
        col = _new(ctx, inner, expr)
        outputs.append((col.name, with_values(expr, FEW_COMBINATIONS)))
        visible.append(Visible(output_name(item), None, col))
    return Source(Project(rows.rel, tuple(outputs)), tuple(visible), rows.owner)


def _new(ctx: Context, node: exp.Expr, expr: Expr) -> Col:
    return ctx.col("x", expr.kind, facts(with_values(expr, FEW_COMBINATIONS)), ctx.weigh(expr, node))


def _per_unit(ctx: Context, node: exp.Select, rows: Source) -> Source:
    """Bind a sub-query that is grouped by the unit: one row for each unit and combination of the other keys."""
    scope = Scope(rows.columns, "FROM")
    items = select_items(ctx, node, rows)
    distinct = node.args.get("distinct")
    if distinct is not None and (distinct.expressions or distinct.args.get("on") or node.args.get("group")):
        raise ctx.refusal(
            distinct, "HB503", "DISTINCT ON, or DISTINCT beside GROUP BY, is not answered.", "Use GROUP BY."
        )
    if distinct is not None:
        keys = [item.this if isinstance(item, exp.Alias) else item for item in items]
    else:
        keys = grouped(ctx, scope, node, items)
    if rows.owner is None or rows.owner.kind is None or not any(is_unit(ctx, scope, key) for key in keys):
        _mixes(ctx, node, rows)
    bound: dict[Expr, str] = {}
    for key in keys:
        if not is_unit(ctx, scope, key):
            expr = scalar(ctx, scope, key)
            bound.setdefault(expr, _new(ctx, key, expr).name)
    inside = Inside(ctx, scope)
    over = Scope(rows.columns, "FROM", inside)
    outputs, visible = list[tuple[str, Expr]](), list[Visible]()
    keyed = {expr: Col(name, expr.kind, facts(with_values(expr, FEW_COMBINATIONS))) for expr, name in bound.items()}
    for item in items:
        inner = item.this if isinstance(item, exp.Alias) else item
        if is_unit(ctx, scope, inner):
            visible.append(Visible(output_name(item), None, None))
            continue
        expr = rewritten(ctx, inner, scalar(ctx, over, inner), keyed, inside.asked)
        col = _new(ctx, inner, expr)
        outputs.append((col.name, expr))
        visible.append(Visible(output_name(item), None, col))
    having = node.args.get("having")
    kept = None if having is None else condition(ctx, over, having.this)
    group = PerUnit(
        rows.rel,
        tuple((name, with_values(expr, FEW_COMBINATIONS)) for expr, name in bound.items()),
        tuple(inside.asked),
    )
    rel: Rel = group
    if having is not None and kept is not None:
        rel = Filter(rel, rewritten(ctx, having, kept, keyed, inside.asked))
    return Source(Project(rel, tuple(outputs)), tuple(visible), rows.owner)


def _mixes(ctx: Context, node: exp.Select, rows: Source) -> NoReturn:
    place = node.args.get("group") or node.args.get("distinct") or (node.expressions or [node])[0]
    if rows.owner is None:
        raise ctx.refusal(
            place,
            "HB514",
            "A grouped sub-query over public tables alone is not computed here.",
            "Ask the owner to declare the grouped table as public.",
        )
    if rows.owner.kind is None:
        raise ctx.refusal(
            place,
            "HB514",
            "In this table every row is a unit by itself, so a grouped sub-query mixes units.",
            "Aggregate in the outermost SELECT.",
        )
    unit = next((c.name for c in rows.columns if c.col is None), None)
    raise ctx.refusal(
        place,
        "HB514",
        "This sub-query is grouped over several people, so its rows belong to nobody.",
        f"Add {unit} to its GROUP BY (or to SELECT DISTINCT), or aggregate in the outermost SELECT."
        if unit
        else "Select the unit's column in the inner query and group by it.",
    )


# --- unions ------------------------------------------------------------------------------------------------------


def _union(ctx: Context, node: exp.Union, around: Around) -> Source:
    around = with_clause(ctx, node, around)
    _no_limit(ctx, node)
    if node.args.get("distinct") is not False or node.args.get("by_name"):
        raise ctx.refusal(
            node,
            "HB519",
            "UNION removes duplicates across people.",
            "Write UNION ALL, or SELECT DISTINCT with the unit.",
        )
    parts = [relation(ctx, node.this, around), relation(ctx, node.expression, around)]
    first, second = parts
    owner = first.owner
    ctx.one_owner(node, "HB519", owner, second.owner)
    if owner is not None and owner.kind is None:
        raise ctx.refusal(
            node,
            "HB519",
            "Where each row is a unit by itself, UNION ALL would make two rows of one.",
            "Ask each part by itself and add the answers.",
        )
    if len(first.columns) != len(second.columns):
        raise ctx.refusal(
            node, "HB519", "The two sides of this UNION ALL have different numbers of columns.", "Match them."
        )
    visible, picked, cols = list[Visible](), (list[tuple[str, Expr]](), list[tuple[str, Expr]]()), list[Col]()
    for a, b in zip(first.columns, second.columns, strict=True):
        if a.col is None and b.col is None:
            visible.append(Visible(a.name, None, None))
            continue
        kinds = {c.kind for c in (a.col, b.col) if c is not None}
        if a.col is None or b.col is None or not (len(kinds) == 1 or kinds == {Kind.INTEGER, Kind.REAL}):
            raise ctx.refusal(
                node, "HB519", f"Column {quote(a.name)} is of different kinds on the two sides.", "CAST one of them."
            )
        col = ctx.col(
            "u",
            a.col.kind if len(kinds) == 1 else Kind.REAL,
            _either(a.col, b.col),
            max(ctx.weigh(a.col, node), ctx.weigh(b.col, node)),
        )
        cols.append(col)
        for chosen, side in zip(picked, (a.col, b.col), strict=True):
            chosen.append((ctx.name("x"), side))
        visible.append(Visible(a.name, None, col))
    inputs = tuple(Project(part.rel, tuple(chosen)) for part, chosen in zip(parts, picked, strict=True))
    return Source(Union(inputs, tuple(cols)), tuple(visible), owner)


def _either(a: Col, b: Col) -> Facts:
    """Give what is known of a value that comes from either side."""
    x, y = a.facts, b.facts
    bounds = None
    if x.bounds is not None and y.bounds is not None:
        bounds = Bounds(min(x.bounds.low, y.bounds.low), max(x.bounds.high, y.bounds.high))
    listed = None if x.values is None or y.values is None else tuple(dict.fromkeys((*x.values, *y.values)))
    return Facts(bounds, listed, common_step((x.step, y.step)))
