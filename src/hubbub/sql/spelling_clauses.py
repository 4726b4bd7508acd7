"""Spellings of clauses that stand for others: LATERAL, subqueries in ON, DISTINCT of windows, INTERSECT and EXCEPT ALL.

    FROM people p CROSS JOIN LATERAL (SELECT day FROM visits v WHERE v.id = p.id ORDER BY day LIMIT 1) AS l
    → FROM people p JOIN (SELECT day, v.id AS "l$1" FROM visits v QUALIFY ROW_NUMBER() OVER (PARTITION BY v.id
      ORDER BY day) <= 1) AS l ON l."l$1" = p.id
    FROM visits v CROSS JOIN LATERAL (SELECT v.cost * 2 AS x) AS l → FROM visits v, with v.cost * 2 for l.x

What comes out is bound as if it had been written, so nothing here needs a proof of privacy.

Tested in tests/sql/test_spelling_clauses.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from hubbub.sql.nodes import Args, Node
from hubbub.sql.spelling_dates import Rewriter, repeat
from hubbub.sql.spelling_tables import has_name
from hubbub.sql.text import SourceText
from hubbub.sql.tokens import ONE_ROW_EACH

NODES: dict[Node, Args] = {
    exp.Lateral: {"this": None, "alias": None, "cross_apply": (True,), "view": (True,)},
}
#: Maximum number of rows that a LATERAL subquery gives for one row.
MAX_LIMIT = 1_000
_REMEDY = (
    "Compare the inner rows with the outer one by = alone, each column with the name of its table, as in LATERAL "
    "(SELECT v.day FROM visits v WHERE v.id = p.id ORDER BY v.day LIMIT 1)."
)


def select(node: exp.Expr, source: SourceText) -> None:
    """Rewrite the clauses of a SELECT in place."""
    _explosions(node, source)
    _laterals(node, source)
    _conditions(node)
    _distinct(node)
    _order_by_all(node, source)


def _order_by_all(node: exp.Expr, source: SourceText) -> None:
    """Write ORDER BY ALL as an order by each column, from the left to the right."""
    order = node.args.get("order")
    terms = [] if order is None else order.expressions
    if order is None or len(terms) != 1 or not isinstance(terms[0].this, exp.Var):
        return
    if any(item.is_star for item in node.expressions):
        raise source.error(order, "HB508", "ORDER BY ALL needs a list of columns.", "Name the columns in SELECT.")
    places = [exp.Literal.number(place) for place in range(1, len(node.expressions) + 1)]
    order.set("expressions", [exp.Ordered(**{**terms[0].args, "this": place}) for place in places])


# --- LATERAL -----------------------------------------------------------------------------------------------------


def _explosions(node: exp.Expr, source: SourceText) -> None:
    """Write LATERAL VIEW explode(x), LATERAL UNNEST(x) and unnest(x) in SELECT as joins with UNNEST."""
    for view in node.args.get("laterals") or []:
        node.append("joins", exp.Join(this=_unnested(view.this, view.args.get("alias"), source), kind="CROSS"))
    node.set("laterals", None)
    for join in node.args.get("joins") or []:
        lateral = join.this
        if isinstance(lateral, exp.Lateral) and isinstance(lateral.this, exp.Unnest | exp.Explode):
            join.set("this", _unnested(lateral.this, lateral.args.get("alias"), source))
    shown = [item for item in node.expressions if isinstance(item.unalias(), exp.Explode | exp.Unnest)]
    if len(shown) > 1:
        raise source.error(shown[1], "HB503", "Two lists side by side are not supported.", ONE_ROW_EACH)
    for item in shown:
        name = exp.to_identifier(item.alias or "unnest")
        alias = exp.TableAlias(this=exp.to_identifier("unnest$"), columns=[name.copy()])
        node.append("joins", exp.Join(this=_unnested(item.unalias(), alias, source), kind="CROSS"))
        item.replace(exp.Column(this=name, table=exp.to_identifier("unnest$")))


def _unnested(node: exp.Expr, alias: exp.Expr | None, source: SourceText) -> exp.Expr:
    read = node.expressions[0] if isinstance(node, exp.Unnest) else node.this
    if not isinstance(read, exp.Column):
        raise source.error(node, "HB503", "UNNEST in this place reads a column.", ONE_ROW_EACH)
    unnested = exp.Unnest(expressions=[read.copy()], alias=None if alias is None else alias.copy())
    unnested.meta.update(node.meta)
    return unnested


def _laterals(node: exp.Expr, source: SourceText) -> None:
    for join in list(node.args.get("joins") or []):
        if not isinstance(join.this, exp.Lateral):
            continue
        lateral, on = join.this, join.args.get("on")
        query = lateral.this.this if isinstance(lateral.this, exp.Subquery) else None
        name = str(lateral.alias)
        always = on is None or (isinstance(on, exp.Boolean) and on.this is True)
        if not isinstance(query, exp.Select) or not name or not always or join.args.get("side") in ("RIGHT", "FULL"):
            raise source.error(lateral, "HB503", "This form of LATERAL is not supported.", ONE_ROW_EACH)
        if not all(map(has_name, query.expressions)):
            raise source.error(query, "HB503", "A column of a LATERAL subquery has no name.", "Name each with AS.")
        one_row = query.args.get("from_") is None or _is_one_row(query)
        if one_row:
            _as_values(node, join, query, name, source)
        else:
            _as_join(join, query, name, source)


def _is_one_row(query: exp.Select) -> bool:
    others = ("group", "having", "limit", "distinct", "qualify", "offset")
    return not any(query.args.get(clause) for clause in others) and all(
        item.find(exp.AggFunc) is not None and item.find(exp.Window) is None for item in query.expressions
    )


def _as_values(node: exp.Expr, join: exp.Join, query: exp.Select, name: str, source: SourceText) -> None:
    """Write each column of a subquery with one row where it is read."""
    items = {item.alias_or_name.lower(): item.unalias() for item in query.expressions}
    for clause in ("where", "joins"):
        if query.args.get("from_") is None and query.args.get(clause):
            raise source.error(join, "HB503", "This form of LATERAL is not supported.", _REMEDY)
    node.set("joins", [each for each in node.args["joins"] if each is not join])
    for column in list(node.find_all(exp.Column)):
        near = column.find_ancestor(exp.Select) is node
        if column.name.lower() not in items or not (column.table == name or (near and not column.table)):
            continue
        value = repeat(items[column.name.lower()], source)
        if query.args.get("from_") is not None:
            copy = query.copy()
            copy.set("expressions", [value])
            copy.set("order", None)
            value = exp.Subquery(this=copy)
        else:
            value = exp.Paren(this=value)
        shown = column.parent is node and column.arg_key == "expressions"
        column.replace(exp.alias_(value, column.this.copy()) if shown else value)


@dataclass(frozen=True)
class _Correlation:
    inner: exp.Expr
    outer: exp.Expr


def _as_join(join: exp.Join, query: exp.Select, name: str, source: SourceText) -> None:
    """Write a subquery that has several rows as a join with the first of each group of correlated rows."""
    lateral, inner = join.this, {each.alias_or_name.lower() for each in _sources(query)}
    pairs, local = list[_Correlation](), list[exp.Expr]()
    where = query.args.get("where")
    for part in [] if where is None else _conjuncts(where.this):
        names = {column.table.lower() for column in part.find_all(exp.Column)}
        if names <= inner | {""}:
            local.append(part.copy())
            continue
        sides = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
        reads = [{column.table.lower() for column in side.find_all(exp.Column)} for side in sides]
        if len(reads) == 2 and reads[0] <= inner and reads[0] and not reads[1] & (inner | {""}) and reads[1]:
            pairs.append(_Correlation(*sides))
        elif len(reads) == 2 and reads[1] <= inner and reads[1] and not reads[0] & (inner | {""}) and reads[0]:
            pairs.append(_Correlation(*reversed(sides)))
        else:
            raise source.error(lateral, "HB503", "This LATERAL subquery compares rows in another way.", _REMEDY)
    limit, order = query.args.get("limit"), query.args.get("order")
    grouped = any(query.args.get(clause) for clause in ("group", "having", "distinct", "qualify", "offset"))
    if not pairs or grouped:
        raise source.error(lateral, "HB503", "This form of LATERAL is not supported.", _REMEDY)
    query.set("where", exp.Where(this=exp.and_(*local, copy=False)) if local else None)
    if limit is not None:
        count = limit.expression
        most = str(count.this) if isinstance(count, exp.Literal) else ""
        if not most.isdecimal() or int(most) > MAX_LIMIT or order is None:
            raise source.error(
                lateral, "HB503", "LIMIT in LATERAL needs a constant and an ORDER BY.", "Write ORDER BY v.day LIMIT 1."
            )
        ranked = exp.Window(
            this=exp.RowNumber(), partition_by=[pair.inner.copy() for pair in pairs], order=order.copy(), over="OVER"
        )
        query.set("qualify", exp.Qualify(this=exp.LTE(this=ranked, expression=exp.Literal.number(most))))
        query.set("limit", None)
    query.set("order", None)
    conditions = list[exp.Expr]()
    for place, pair in enumerate(pairs, start=1):
        key = f"{name}${place}"
        query.append("expressions", exp.alias_(pair.inner.copy(), key, quoted=True))
        column = exp.column(exp.to_identifier(key, quoted=True), exp.to_identifier(name, quoted=True))
        conditions.append(exp.EQ(this=column, expression=pair.outer.copy()))
    join.set("this", exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name))))
    join.set("on", exp.and_(*conditions, copy=False))
    join.set("kind", None)


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.flatten()) if isinstance(node, exp.And) else [node]


def _sources(query: exp.Select) -> Iterator[exp.Expr]:
    yield query.args["from_"].this
    yield from (join.this for join in query.args.get("joins") or [])


def _left(node: exp.Expr, _: str, source: SourceText) -> None:
    if node.parent is None or not (isinstance(node.parent, exp.Join) or node.arg_key == "laterals"):
        raise source.error(node, "HB503", "LATERAL is supported in joins alone.", ONE_ROW_EACH)
    if node.args.get("cross_apply") is False:  # OUTER APPLY
        node.parent.set("side", "LEFT")


# --- subqueries in ON --------------------------------------------------------------------------------------------


def _conditions(node: exp.Expr) -> None:
    """Move conditions with subqueries from ON to WHERE, where the join is an inner one and none adds rows later."""
    joins = node.args.get("joins") or []
    if any(join.args.get("side") in ("RIGHT", "FULL") for join in joins):
        return
    for join in joins:
        on = join.args.get("on")
        parts = [] if on is None else _conjuncts(on)
        moved = [part for part in parts if part.find(exp.Select) is not None]
        if not moved or join.args.get("kind") in ("SEMI", "ANTI"):
            continue
        kept = [part.copy() for part in parts if part not in moved]
        if join.args.get("side") == "LEFT":
            if not _restrict(join, moved):
                continue
        else:
            where = node.args.get("where")
            all_parts = [*([] if where is None else [where.this.copy()]), *(part.copy() for part in moved)]
            node.set("where", exp.Where(this=exp.and_(*all_parts, copy=False)))
        join.set("on", exp.and_(*kept, copy=False) if kept else exp.Boolean(this=True))


def _restrict(join: exp.Join, moved: list[exp.Expr]) -> bool:
    """Apply conditions that read the joined table alone before the join."""
    table = join.this
    name = table.alias_or_name
    node, read = join.parent, [column for part in moved for column in part.find_all(exp.Column)]
    others = (
        {each.alias_or_name for each in _sources(node) if each is not table} if isinstance(node, exp.Select) else {}
    )
    outside = [column.table for column in read if column.find_ancestor(exp.Select) is node]
    if not isinstance(table, exp.Table) or any(each != name for each in outside):
        return False
    if any(column.table in others for column in read):
        return False
    query = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=table.copy()),
        where=exp.Where(this=exp.and_(*(part.copy() for part in moved), copy=False)),
    )
    join.set("this", exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name))))
    return True


# --- DISTINCT and set operations ---------------------------------------------------------------------------------


def _distinct(node: exp.Expr) -> None:
    """Write DISTINCT over windows in two steps: the windows in a subquery, and DISTINCT around it."""
    distinct, items = node.args.get("distinct"), node.expressions
    plain = distinct is not None and distinct.args.get("on") is None and not distinct.expressions
    if not plain or not any(item.find(exp.Window) is not None for item in items):
        return
    names = [item.alias_or_name for item in items]
    later = any(node.args.get(clause) for clause in ("order", "limit", "offset", "with_"))
    if later or not all(map(has_name, items)) or len(set(names)) < len(names):
        return
    inner = exp.Select(**{name: value for name, value in node.args.items() if value})
    inner = inner.copy()
    inner.set("distinct", None)
    for name in list(node.args):
        if name not in ("expressions", "distinct"):
            node.set(name, None)
    node.set("expressions", [exp.column(exp.to_identifier(name, quoted=True)) for name in names])
    node.set("from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("w")))))


def _all_rows(node: exp.Expr, _: str, __: SourceText) -> exp.Expr | None:
    """Write INTERSECT ALL and EXCEPT ALL as INTERSECT and EXCEPT of rows that are numbered among their equals."""
    sides = (node.this, node.expression)
    queries = [side.this if isinstance(side, exp.Subquery) else side for side in sides]
    if node.args.get("distinct") is not False or not all(isinstance(query, exp.Select) for query in queries):
        return None
    names = [item.alias_or_name for item in queries[0].expressions]
    unnamed = any(item.is_star for query in queries for item in query.expressions)
    if unnamed or not all(map(has_name, queries[0].expressions)) or len({*names}) < len(names):
        return None
    others = any(node.args.get(clause) for clause in ("order", "limit", "with_", "by_name"))
    if len(names) != len(queries[1].expressions) or others:
        return None
    united = type(node)(this=_numbered(queries[0], names), expression=_numbered(queries[1], names), distinct=True)
    alias = exp.TableAlias(this=exp.to_identifier("s"))
    return exp.Select(expressions=_columns(names), from_=exp.From(this=exp.Subquery(this=united, alias=alias)))


def _numbered(query: exp.Expr, names: list[str]) -> exp.Select:
    number = exp.Window(this=exp.RowNumber(), partition_by=_columns(names), over="OVER")
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    source = exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier("s"), columns=columns))
    return exp.Select(
        expressions=[*_columns(names), exp.alias_(number, "$among", quoted=True)], from_=exp.From(this=source)
    )


def _columns(names: list[str]) -> list[exp.Expr]:
    return [exp.column(exp.to_identifier(name, quoted=True)) for name in names]


REWRITERS: dict[Node, Rewriter] = {exp.Lateral: _left, exp.Intersect: _all_rows, exp.Except: _all_rows}
