"""FROM: tables, sub-queries, joins and unions → relations in which every row keeps its one owner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal as Choice

from sqlglot import exp

from hubbub.core.schema import Bounds, Column, Kind, Table
from hubbub.sql import dates
from hubbub.sql.bind_aggregates import Inside, has_aggregate
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_names import grouped, output_name, rewritten
from hubbub.sql.bind_scope import MAX_SCANS, Context, Owner, Scope, Source, Visible, find, is_unit, matches
from hubbub.sql.domains import with_values
from hubbub.sql.expressions import Col, Expr, Facts, facts
from hubbub.sql.parse import quote
from hubbub.sql.ranges import common_step
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Union, columns

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
        ctx.refuse(clause, "HB503", "A recursive WITH can go on for as long as the data says.", "Leave RECURSIVE out.")
    names = list(around.names)
    for cte in clause.expressions:
        name = cte.args["alias"].this
        if sum(1 for table in query.find_all(exp.Table) if matches(str(name.this), table.this)) == 0:
            ctx.refuse(cte, "HB503", f"{quote(str(name.this))} is defined and never used.", "Remove it.")
        if any(matches(str(other.args["alias"].this.this), name) for other, _ in names[len(around.names) :]):
            ctx.refuse(cte, "HB507", f"{quote(str(name.this))} is defined twice.", "Give them different names.")
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
        ctx.refuse(node, "HB503", "After FROM stands a table or a sub-query.", "Name a declared table.")
    if node.args.get("db") is not None or node.args.get("catalog") is not None:
        ctx.refuse(node, "HB505", f"There is no table {quote(node.sql())}.", "Name a declared table, without a schema.")
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
        ctx.refuse(
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
        ctx.refuse(
            node, "HB505" if not found else "HB507",
            f"There is no table {quote(str(node.this.this))}." if not found else "This could mean several tables.",
            f"Tables: {known[:300]}." if not found else "Quote the exact name.",
        )  # fmt: skip
    return (exact or found)[0]


def _scan(ctx: Context, node: exp.Expr, table: Table, name: str) -> Source:
    ctx.scans += 1
    if ctx.scans > MAX_SCANS:
        ctx.refuse(
            node, "HB518", f"More than {MAX_SCANS} tables are read in one query, WITH clauses counted where they are used.",
            "Ask in several queries.",
        )  # fmt: skip
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
    return Owner(table.unit.entity or table.unit.column, kind, table.relation)


def declared(column: Column) -> Facts:
    """Give the facts that the scan makes true for a column."""
    listed = None if column.values is None else (*column.values, *([] if column.other is None else [column.other]))
    values = None if listed is None else tuple(dict.fromkeys(listed))
    if column.kind in (Kind.DATE, Kind.TIMESTAMP):
        return Facts(column.bounds or dates.all_time(column.kind), values)
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
        ctx.refuse(node, "HB503", "A sub-query is a SELECT or a UNION ALL.", "Write SELECT … FROM … .")
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
            ctx.refuse(
                clause, "HB517", f"{name.upper()} inside a sub-query chooses rows by looking at other people's rows.",
                "Put ORDER BY and LIMIT at the end of the whole query, where they act on the noisy answers.",
            )  # fmt: skip


def rows_of(ctx: Context, node: exp.Select, around: Around) -> Source:
    """Bind FROM, JOIN and WHERE."""
    clause = node.args.get("from_")
    if clause is None:
        ctx.refuse(node, "HB505", "The query reads no table.", "Add FROM and a declared table.")
    found = source(ctx, clause.this, around)
    for join in node.args.get("joins") or []:
        found = _join(ctx, found, join, around)
    where = node.args.get("where")
    if where is None:
        return found
    predicate = condition(ctx, Scope(found.columns, "WHERE"), where.this)
    return replace(found, rel=Filter(found.rel, predicate))


def select_items(ctx: Context, node: exp.Select, rows: Source) -> list[exp.Expr]:
    """List the items of SELECT, with stars written out."""
    items: list[exp.Expr] = []
    for item in node.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if not isinstance(star, exp.Star):
            items.append(item)
            continue
        table = item.args.get("table") if isinstance(item, exp.Column) else None
        wanted = [c for c in rows.columns if table is None or (c.table is not None and matches(c.table, table))]
        if not wanted:
            ctx.refuse(item, "HB506", "This star stands for no columns.", "Name the table as in FROM.")
        items.extend(_reference(c) for c in wanted)
    return items


def _reference(column: Visible) -> exp.Expr:
    return exp.column(exp.to_identifier(column.name, quoted=True), exp.to_identifier(column.table, quoted=True))


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
        outputs.append((col.name, with_values(expr)))
        visible.append(Visible(output_name(item), None, col))
    return Source(Project(rows.rel, tuple(outputs)), tuple(visible), rows.owner)


def _new(ctx: Context, node: exp.Expr, expr: Expr) -> Col:
    return ctx.col("x", expr.kind, facts(with_values(expr)), ctx.weigh(expr, node))


def _per_unit(ctx: Context, node: exp.Select, rows: Source) -> Source:
    """Bind a sub-query that is grouped by the unit: one row for each unit and combination of the other keys."""
    scope = Scope(rows.columns, "FROM")
    items = select_items(ctx, node, rows)
    distinct = node.args.get("distinct")
    if distinct is not None and (distinct.expressions or distinct.args.get("on") or node.args.get("group")):
        ctx.refuse(distinct, "HB503", "DISTINCT ON, or DISTINCT beside GROUP BY, is not answered.", "Use GROUP BY.")
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
    keyed = {expr: Col(name, expr.kind, facts(with_values(expr))) for expr, name in bound.items()}
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
    group = PerUnit(rows.rel, tuple((name, with_values(expr)) for expr, name in bound.items()), tuple(inside.asked))
    rel: Rel = group
    if having is not None and kept is not None:
        rel = Filter(rel, rewritten(ctx, having, kept, keyed, inside.asked))
    return Source(Project(rel, tuple(outputs)), tuple(visible), rows.owner)


def _mixes(ctx: Context, node: exp.Select, rows: Source) -> None:
    place = node.args.get("group") or node.args.get("distinct") or (node.expressions or [node])[0]
    if rows.owner is None:
        ctx.refuse(
            place, "HB514", "A grouped sub-query over public tables alone is not computed here.",
            "Ask the owner to declare the grouped table as public.",
        )  # fmt: skip
    if rows.owner.kind is None:
        ctx.refuse(
            place, "HB514", "In this table every row is a unit by itself, so a grouped sub-query mixes units.",
            "Aggregate in the outermost SELECT.",
        )  # fmt: skip
    unit = next((c.name for c in rows.columns if c.col is None), None)
    ctx.refuse(
        place, "HB514", "This sub-query is grouped over several people, so its rows belong to nobody.",
        f"Add {unit} to its GROUP BY (or to SELECT DISTINCT), or aggregate in the outermost SELECT."
        if unit else "Select the unit's column in the inner query and group by it.",
    )  # fmt: skip


# --- unions ------------------------------------------------------------------------------------------------------


def _union(ctx: Context, node: exp.Union, around: Around) -> Source:
    around = with_clause(ctx, node, around)
    _no_limit(ctx, node)
    if node.args.get("distinct") is not False or node.args.get("by_name"):
        ctx.refuse(
            node, "HB519", "UNION removes duplicates across people.", "Write UNION ALL, or SELECT DISTINCT with the unit.",
        )  # fmt: skip
    parts = [relation(ctx, node.this, around), relation(ctx, node.expression, around)]
    first, second = parts
    owner = first.owner
    if owner != second.owner:
        ctx.refuse(
            node, "HB519", "The two sides of this UNION ALL do not belong to the same kind of unit.",
            "Unite tables whose rows belong to the same people, under the same relation.",
        )  # fmt: skip
    if owner is not None and owner.kind is None:
        ctx.refuse(
            node, "HB519", "Where each row is a unit by itself, UNION ALL would make two rows of one.",
            "Ask each part by itself and add the answers.",
        )  # fmt: skip
    if len(first.columns) != len(second.columns):
        ctx.refuse(node, "HB519", "The two sides of this UNION ALL have different numbers of columns.", "Match them.")
    visible, picked, cols = list[Visible](), (list[tuple[str, Expr]](), list[tuple[str, Expr]]()), list[Col]()
    for a, b in zip(first.columns, second.columns, strict=True):
        if a.col is None and b.col is None:
            visible.append(Visible(a.name, None, None))
            continue
        kinds = {c.kind for c in (a.col, b.col) if c is not None}
        if a.col is None or b.col is None or not (len(kinds) == 1 or kinds == {Kind.INTEGER, Kind.REAL}):
            ctx.refuse(
                node, "HB519", f"Column {quote(a.name)} is of different kinds on the two sides.", "CAST one of them."
            )
        col = ctx.col(
            "u", a.col.kind if len(kinds) == 1 else Kind.REAL, _either(a.col, b.col),
            max(ctx.weigh(a.col, node), ctx.weigh(b.col, node)),
        )  # fmt: skip
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


# --- joins -------------------------------------------------------------------------------------------------------


def _join(ctx: Context, left: Source, node: exp.Join, around: Around) -> Source:
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if node.args.get("method") or kind not in ("", "INNER", "OUTER") or side not in ("", "LEFT", "RIGHT"):
        ctx.refuse(
            node, "HB513", "Only inner, left and right joins are answered.",
            "A full, cross, natural or lateral join keeps or makes rows that belong to nobody: use JOIN … ON.",
        )  # fmt: skip
    right = source(ctx, node.this, around)
    names = {c.table for c in left.columns if c.table is not None}
    if any(c.table in names for c in right.columns if c.table is not None):
        ctx.refuse(node, "HB507", "Two tables of this query go by the same name.", "Give them different aliases.")
    if node.args.get("on") is None and not node.args.get("using"):
        ctx.refuse(
            node, "HB513", "A join needs a condition; without one every row meets every other.",
            "Write JOIN … ON a.x = b.x, or USING (x).",
        )  # fmt: skip
    pairs, unit, extra, merged = _conditions(ctx, left, right, node)
    if side == "RIGHT":
        left, right, pairs = right, left, [(b, a) for a, b in pairs]
    outer = side in ("LEFT", "RIGHT")
    if left.owner is None and right.owner is not None:
        if outer:
            ctx.refuse(
                node, "HB513", "An outer join that keeps the rows of a public table makes rows that belong to nobody.",
                "Keep the private side: put it on the left of LEFT JOIN.",
            )  # fmt: skip
        left, right, pairs = right, left, [(b, a) for a, b in pairs]
    _may_meet(ctx, node, left, right, pairs, unit=unit)
    if extra and outer:
        ctx.refuse(node, "HB513", "An outer join is on equal columns alone.", "Move other conditions into WHERE.")
    how: Choice["inner", "left"] = "left" if outer else "inner"
    joined = Join(left.rel, right.rel, how, tuple(pairs), unit)
    visible = _after(left, right, merged, outer=outer)
    found = Source(joined, visible, left.owner)
    for part in extra:
        found = replace(
            found, rel=Filter(found.rel, condition(ctx, Scope((*left.columns, *right.columns), "ON"), part))
        )
    return found


def _after(left: Source, right: Source, merged: set[str], *, outer: bool) -> tuple[Visible, ...]:
    """List what can be named after a join.

    The owner of the right side of an outer join is NULL where nothing matched, so it is not the unit any more. Of the
    columns of USING, the left one stays.
    """
    stays = [c for c in right.columns if not (c.name.lower() in merged) and not (outer and c.col is None)]
    return (*left.columns, *stays)


Pairs = list[tuple[Expr, Expr]]


def _conditions(
    ctx: Context, left: Source, right: Source, node: exp.Join
) -> tuple[Pairs, bool, list[exp.Expr], set[str]]:
    """Sort the parts of a join's condition: equal columns, equal units, and the rest."""
    a, b = Scope(left.columns, "the left side"), Scope(right.columns, "the right side")
    pairs, unit, extra, merged = Pairs(), False, list[exp.Expr](), set[str]()
    for name in node.args.get("using") or []:
        reference = exp.column(name.copy())
        merged.add(str(name.this).lower())
        if is_unit(ctx, a, reference) and is_unit(ctx, b, reference):
            unit = True
        else:
            pairs.append(_pair(ctx, node, scalar(ctx, a, reference), scalar(ctx, b, reference)))
    on = node.args.get("on")
    both = Scope((*left.columns, *right.columns), "ON")
    for part in [] if on is None else on.flatten() if isinstance(on, exp.And) else [on]:
        inner = part.unnest() if isinstance(part, exp.Paren) else part
        if isinstance(inner, exp.EQ):
            if is_unit(ctx, both, inner.this) and is_unit(ctx, both, inner.expression):
                if _side(ctx, a, b, inner.this) * _side(ctx, a, b, inner.expression) != -1:
                    ctx.refuse(inner, "HB513", "The unit is compared with itself here.", "Name both tables: a.u = b.u.")
                unit = True
                continue
            sides = _side(ctx, a, b, inner.this), _side(ctx, a, b, inner.expression)
            if sides in ((-1, 1), (1, -1)):
                ends = [scalar(ctx, both, side) for side in (inner.this, inner.expression)]
                pairs.append(_pair(ctx, inner, *(ends if sides == (-1, 1) else reversed(ends))))
                continue
        extra.append(part)
    return pairs, unit, extra, merged


def _side(ctx: Context, a: Scope, b: Scope, node: exp.Expr) -> int:
    """Say from which side the columns of an expression come: -1 left, 1 right, 0 both or neither."""
    found = set()
    for column in node.find_all(exp.Column):
        in_a, in_b = find(ctx, a, column) is not None, find(ctx, b, column) is not None
        found.add(0 if in_a == in_b else -1 if in_a else 1)
    return found.pop() if len(found) == 1 else 0


def _pair(ctx: Context, node: exp.Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    if a.kind is not b.kind and not (a.kind.numeric and b.kind.numeric):
        ctx.refuse(
            node, "HB508", f"A {a.kind.value} is joined to a {b.kind.value} here.", "CAST one side to the other's kind."
        )
    return a, b


def _may_meet(ctx: Context, node: exp.Join, left: Source, right: Source, pairs: Pairs, *, unit: bool) -> None:
    """Hold the rules that keep every row with one owner."""
    if right.owner is not None and left.owner is not None:
        if left.owner.kind is None or right.owner.kind is None:
            ctx.refuse(
                node, "HB513", "Where each row is a unit by itself, a private table can be joined with public ones alone.",
                "Ask each table by itself.",
            )  # fmt: skip
        if not unit:
            ctx.refuse(
                node, "HB513", "This join would mix the rows of different people.",
                "Join private tables on the unit's column: ON a.unit = b.unit (and more, if you like).",
            )  # fmt: skip
        if left.owner != right.owner:
            ctx.refuse(
                node, "HB513", "The two tables protect different kinds of units, or under different relations.",
                "Join tables that the owner declared with one entity, column type and relation.",
            )  # fmt: skip
    if left.owner is not None and left.owner.kind is None and not _unique(right.rel, [b for _, b in pairs]):
        ctx.refuse(
            node, "HB513", "Where each row is a unit by itself, a join must not make two rows of one.",
            "Join with a public table on columns that the owner declared unique.",
        )  # fmt: skip
    if not pairs and not unit:
        ctx.refuse(
            node, "HB513", "This join compares no column of one side with one of the other.", "Write ON a.x = b.x."
        )


def _unique(rel: Rel, on: list[Expr]) -> bool:
    """Say whether no two rows of a public relation agree on the columns that are joined on."""
    names = {expr.name for expr in on if isinstance(expr, Col)}
    while not isinstance(rel, Scan):
        if isinstance(rel, Filter):
            rel = rel.input
        elif isinstance(rel, Project):
            names = {expr.name for name, expr in rel.outputs if name in names and isinstance(expr, Col)}
            rel = rel.input
        else:
            return False
    sources = {source for col, source in zip(columns(rel), rel.sources, strict=True) if col.name in names}
    return rel.table.unique is not None and set(rel.table.unique) <= sources
