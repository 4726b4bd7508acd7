"""Tell what a query node reads: private rows of one owner each, noisy results of an aggregation, or public rows alone.

Tested in tests/sql/test_after.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.sql.bind_aggregate_call import is_aggregate
from hubbub.sql.bind_from import bind_rows
from hubbub.sql.bind_names import resolve_item, strip_alias
from hubbub.sql.bind_per_unit import of_one_unit
from hubbub.sql.bind_scope import Context, NameScope, fold_case
from hubbub.sql.bind_select import select_items
from hubbub.sql.bind_tables import CteScope, bind_with, find_table

Level = Literal["public", "rows", "released"]

_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def nested_queries(node: exp.Expr) -> Iterator[exp.Expr]:
    """List the subqueries directly in an expression or clause, from the left to the right."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, exp.Select | exp.SetOperation):
            yield current
        else:
            stack.extend(reversed(list(current.iter_expressions())))


def plain_aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """List the outermost aggregates of an expression, without those that a window computes and those of subqueries."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, exp.Select | exp.SetOperation):
            continue
        if isinstance(current, exp.Window):
            stack += reversed(window_operands(current))
        elif is_aggregate(current):
            yield current
        else:
            stack.extend(reversed(list(current.iter_expressions())))


def window_operands(window: exp.Window) -> list[exp.Expr]:
    """List the expressions that a window reads: arguments of its function, partition and order."""
    function, filters = window.this, list[exp.Expr]()
    while isinstance(function, _WRAPPERS):
        filters += [function.expression] if isinstance(function, exp.Filter) else []
        function = function.this
    order = window.args.get("order")
    return [
        *function.iter_expressions(),
        *filters,
        *(window.args.get("partition_by") or []),
        *([] if order is None else [order]),
    ]


def has_window(node: exp.Expr) -> bool:
    """Tell whether an expression has a window that is not inside an aggregate."""
    stack = [node]
    inside = {id(part) for aggregate in plain_aggregates(node) for part in aggregate.walk()}
    while stack:
        current = stack.pop()
        if isinstance(current, exp.Window) and id(current) not in inside:
            return True
        if not isinstance(current, exp.Select | exp.SetOperation):
            stack.extend(current.iter_expressions())
    return False


def aggregates(node: exp.Select) -> bool:
    """Tell whether a query itself aggregates or groups."""
    if node.args.get("group") is not None or node.args.get("having") is not None:
        return True
    parts = (*node.expressions, node.args.get("order"), node.args.get("qualify"))
    return any(next(plain_aggregates(part), None) is not None for part in parts if part is not None)


def sources(node: exp.Select) -> list[exp.Expr]:
    """List what a query has after FROM and JOIN."""
    clause = node.args.get("from_")
    return ([] if clause is None else [clause.this]) + [join.this for join in node.args.get("joins") or []]


def only_rows(node: exp.Select) -> exp.Select:
    """Return what a query reads: its FROM, JOIN and WHERE without what it selects."""
    kept = {name: node.args[name].copy() for name in ("from_", "where") if node.args.get(name) is not None}
    joins = [join.copy() for join in node.args.get("joins") or []]
    return exp.Select(expressions=[exp.Star()], joins=joins, **kept)


@dataclass
class Levels:
    """The level of every query of a text; each is computed once."""

    ctx: Context
    known: dict[int, tuple[exp.Expr, Level]] = field(default_factory=dict)  #: keeps nodes alive, so that no id recurs
    #: whether equal queries that see the same WITH items stand alone; a query is copied where it is bound in a trial
    alone: dict[tuple[exp.Expr, tuple[int, ...]], tuple[CteScope, bool]] = field(default_factory=dict)

    def of(self, node: exp.Expr, ctes: CteScope, *, outermost: bool = False) -> Level:
        """Return the level of a query, or of a table or subquery after FROM."""
        if id(node) not in self.known:
            self.known[id(node)] = (node, self._compute(node, ctes, outermost=outermost))
        return self.known[id(node)][1]

    def of_cte(self, cte: exp.CTE, ctes: CteScope) -> Level:
        """Return the level of a common table expression, which is computed before its query is rewritten."""
        if id(cte) not in self.known:
            self.known[id(cte)] = (cte, self.of(cte.this, ctes))
        return self.known[id(cte)][1]

    def stands_alone(self, query: exp.Expr, ctes: CteScope) -> bool:
        """Tell whether a subquery in an expression is a release or public: it reads no column of an outer row."""
        key = query, tuple(id(cte) for cte, _ in ctes.names)
        if key not in self.alone:
            self.alone[key] = ctes, self._stands_alone(query, ctes)
        return self.alone[key][1]

    def _stands_alone(self, query: exp.Expr, ctes: CteScope) -> bool:
        if self.of(query, ctes) == "rows":
            return False
        known = {fold_case(each.alias_or_name) for each in query.find_all(exp.Table, exp.Subquery)}
        tables = {column.args["table"].name for column in query.find_all(exp.Column) if column.args.get("table")}
        if not {fold_case(name) for name in tables} <= known:
            return False
        try:
            for select in query.find_all(exp.Select):
                if any(self.of(each, ctes) == "rows" for each in sources(select)):
                    bind_rows(self.ctx.trial(), only_rows(select), ctes)
        except QueryError:
            return False
        return True

    def _compute(self, node: exp.Expr, ctes: CteScope, *, outermost: bool) -> Level:
        if isinstance(node, exp.Subquery):
            return self.of(node.this, ctes)
        if isinstance(node, exp.Table):
            return self._table(node, ctes)
        if isinstance(node, exp.SetOperation):
            ctes = bind_with(self.ctx, node, ctes)
            return _joined([self.of(node.this, ctes), self.of(node.expression, ctes)])
        if not isinstance(node, exp.Select):
            return "rows"  # binding rejects it
        ctes = bind_with(self.ctx, node, ctes)
        read = [self.of(source, ctes) for source in sources(node)]
        if "rows" not in read:
            inner = [self.of(query, ctes) for part in clauses(node) for query in nested_queries(part)]
            return _joined(read + inner)
        return "released" if self._mixes_units(node, ctes, outermost=outermost) else "rows"

    def _table(self, node: exp.Table, ctes: CteScope) -> Level:
        if not isinstance(node.this, exp.Identifier):
            return "rows"
        definition = ctes.find(node.this)
        if definition is not None:
            return self.of_cte(*definition)
        return "public" if find_table(self.ctx, node).public else "rows"

    def _mixes_units(self, node: exp.Select, ctes: CteScope, *, outermost: bool) -> bool:
        """Tell whether a query over private rows aggregates those of several people."""
        if not aggregates(node) or any(self.of(source, ctes) == "released" for source in sources(node)):
            return False
        group = node.args.get("group")
        if outermost or group is None:
            return True
        trial = self.ctx.trial()
        rows = bind_rows(trial, only_rows(node), ctes)
        scope, items = NameScope(rows.columns, "GROUP BY"), select_items(trial, node, rows.columns)
        parts = group.expressions or [strip_alias(item) for item in items if next(plain_aggregates(item), None) is None]
        keys = [resolve_item(trial, scope, leaf, items, alias_first=False) for part in parts for leaf in _leaves(part)]
        return not of_one_unit(trial, scope, keys, rows.rel)


def _leaves(part: exp.Expr) -> list[exp.Expr]:
    if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return [leaf for inner in part.expressions for leaf in _leaves(inner)]
    return [part]


def clauses(node: exp.Select) -> list[exp.Expr]:
    """List the expressions of a query outside of FROM and WITH."""
    names = ("where", "having", "qualify", "order")
    return [*node.expressions, *(part for name in names if (part := node.args.get(name)) is not None)]


def _joined(levels: list[Level]) -> Level:
    if "rows" in levels:
        return "rows"
    return "released" if "released" in levels else "public"
