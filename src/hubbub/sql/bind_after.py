"""Split a query into releases, which read private rows, and a query over their noisy results, which may be any SQL.

    SELECT region, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY region
    → the release   SELECT region, COUNT(*) AS n FROM visits GROUP BY region
    → and after it  SELECT region, n / SUM(n) OVER () AS share FROM released

Tested in tests/sql/test_after.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from sqlglot import exp

from hubbub.core.schema import Table
from hubbub.errors import QueryError
from hubbub.sql.after_intervals import ROW
from hubbub.sql.bind_from import bind_rows
from hubbub.sql.bind_keyed import KeyedBinder
from hubbub.sql.bind_postprocess import only_subquery
from hubbub.sql.bind_scope import BoundRelation, Context, conjuncts
from hubbub.sql.bind_tables import CteScope, bind_with, find_table
from hubbub.sql.decompose import Decomposition
from hubbub.sql.expressions import released_name
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.parse import check_nodes
from hubbub.sql.query import Query
from hubbub.sql.query_levels import (
    Levels,
    aggregates,
    clauses,
    has_window,
    nested_queries,
    only_rows,
    plain_aggregates,
    sources,
)
from hubbub.sql.text import quote

#: Maximum number of releases in one query.
MAX_RELEASES = 16

Bind = Callable[[exp.Select, CteScope], Query]


@dataclass
class Split:
    """A query over released tables, while it is built: the releases by name, and the public tables that it reads."""

    ctx: Context
    levels: Levels
    bind: Bind
    keyed: KeyedBinder
    releases: dict[str, Query] = field(default_factory=dict)
    public: dict[str, Table] = field(default_factory=dict)
    _names: dict[tuple[object, ...], str] = field(default_factory=dict)

    def rewrite(self, node: exp.Expr, ctes: CteScope) -> exp.Expr:
        """Return a query in which every release is a table. The tree is changed in place."""
        if isinstance(node, exp.SetOperation):
            scope = self._rewrite_with(node, ctes)
            for side in (node.this, node.expression):
                self._rewrite_inner(side, scope)
            return node
        if not isinstance(node, exp.Select):
            raise self.ctx.error(node, "HB503", "A subquery must be a SELECT.", "Write SELECT … FROM ….")
        scope = bind_with(self.ctx, node, ctes)
        if any(self.levels.of(source, scope) == "rows" for source in sources(node)):
            return self._release(node, scope)
        released = list(self._release_by_key(node, scope))
        self._rewrite_with(node, ctes)
        for source in sources(node):
            self._rewrite_inner(source, scope)
        for part in clauses(node):
            for inner in list(nested_queries(part)):
                if not any(inner is each for each in released):
                    self._rewrite_inner(inner, scope)
        return node

    def _release_by_key(self, node: exp.Select, ctes: CteScope) -> Iterator[exp.Select]:
        """Release the subqueries of a query over public rows that aggregate private rows for each key of its rows.

        Gives what stands in their places: queries over the released tables.
        """
        where = node.args.get("where")
        conditions = [] if where is None else conjuncts(where.this)
        for inner in [query for part in clauses(node) for query in nested_queries(part)]:
            if not isinstance(inner, exp.Select) or not isinstance(inner.parent, exp.Subquery):
                continue
            if self.levels.of(inner, ctes) != "released" or self.levels.stands_alone(inner, ctes):
                continue
            rows = public_rows(self.ctx, node, ctes)
            compared = None if rows is None else self.keyed.pairs(self.ctx, inner, ctes, rows)
            if rows is None or compared is None or len(inner.expressions) != 1 or inner.args.get("group"):
                continue
            check_nodes(self.ctx.text, inner)
            release = self.keyed.release(self.ctx, inner, ctes, rows, conditions, compared, ordinary=True)
            name = self._named(inner, release.identity, partial(_itself, release.query))
            lookup = release.lookup(name)
            inner.replace(lookup)
            yield lookup

    def _rewrite_with(self, node: exp.Expr, ctes: CteScope) -> CteScope:
        """Rewrite the released CTEs of a query, and remove those of private rows, which only releases read."""
        scope, clause = bind_with(self.ctx, node, ctes), node.args.get("with_")
        if clause is None:
            return scope
        for cte, visible in scope.names[len(ctes.names) :]:
            if self.levels.of_cte(cte, visible or CteScope()) == "rows":
                cte.pop()
            else:
                self._rewrite_inner(cte.this, visible or CteScope())
        if not clause.expressions:
            clause.pop()
        return scope

    def _rewrite_inner(self, node: exp.Expr, ctes: CteScope) -> None:
        if isinstance(node, exp.Subquery):
            self._rewrite_inner(node.this, ctes)
        elif isinstance(node, exp.Table):
            self._note_public(node, ctes)
        else:
            rewritten = self.rewrite(node, ctes)
            if rewritten is not node:
                node.replace(rewritten)

    def _note_public(self, node: exp.Table, ctes: CteScope) -> None:
        if ctes.find(node.this) is not None:
            return
        table = find_table(self.ctx, node)
        if not table.public:
            raise AssertionError("private rows are read by releases alone")
        if not table.rows and table.size != 0:
            raise self.ctx.error(
                node,
                "HB755",
                f"The public table {quote(table.name)} is too large to be joined with noisy results.",
                "Join it with the private table inside the aggregated subquery.",
            )
        node.set("this", exp.to_identifier(table.name, quoted=True))
        self.public[table.name] = table
        if table not in self.ctx.used:
            self.ctx.used.append(table)

    def _release(self, node: exp.Select, ctes: CteScope) -> exp.Expr:
        """Bind an aggregation of private rows as a release, and return the query that reads its noisy result."""
        if not needs_after(node, ctes, self.levels):
            name, query = self._bound(node, ctes)
            columns = [exp.column(exp.to_identifier(label, quoted=True)) for label, _ in query.select]
            return exp.select(*columns).from_(exp.Table(this=exp.to_identifier(name, quoted=True)))
        return Decomposition.of(self.ctx.trial(), node, ctes).over(
            lambda release: self._bound(release, ctes)[0], lambda inner: self._rewrite_inner(inner, ctes)
        )

    def _bound(self, node: exp.Select, ctes: CteScope) -> tuple[str, Query]:
        """Bind a release under a new name; the same text is released once."""

        def bound() -> Query:
            self._check_listed(node, ctes, set())
            return self.bind(node, ctes)

        identity = (duckdb_sql(node, self.ctx.text), hash(tuple(id(cte) for cte, _ in ctes.names)))
        name = self._named(node, identity, bound)
        return name, self.releases[name]

    def _named(self, node: exp.Expr, identity: tuple[object, ...], bind: Callable[[], Query]) -> str:
        """Return the name of a release, which is bound if there is none of this identity yet."""
        if identity not in self._names:
            if len(self.releases) == MAX_RELEASES:
                raise self.ctx.error(
                    node,
                    "HB754",
                    f"The query needs more than {MAX_RELEASES} releases.",
                    "Run some of its parts as queries of their own.",
                )
            query = bind()
            name = self._names[identity] = released_name(len(self.releases))
            self.releases[name] = query
        return self._names[identity]

    def _check_listed(self, node: exp.Select, ctes: CteScope, seen: set[int]) -> None:
        """Check the nodes of a release, and of the WITH items that it reads, against the allow-list of private queries.

        The binder ignores options that are not on it.
        """
        check_nodes(self.ctx.text, node)
        for table in node.find_all(exp.Table):
            found = ctes.find(table.this) if isinstance(table.this, exp.Identifier) else None
            if found is not None and id(found[0]) not in seen and self.levels.of_cte(*found) != "released":
                seen.add(id(found[0]))
                inner = exp.select("*").from_(exp.Subquery(this=found[0].this.copy()))
                self._check_listed(inner, found[1], seen)


def public_rows(ctx: Context, node: exp.Select, ctes: CteScope) -> BoundRelation | None:
    """Bind the rows of a query over public tables, with its conditions that have no subquery; None if that fails."""
    rows = only_rows(node)
    where = rows.args.get("where")
    plain = (
        [] if where is None else [part for part in conjuncts(where.this) if next(nested_queries(part), None) is None]
    )
    rows.set("where", exp.Where(this=exp.and_(*plain, wrap=False)) if plain else None)
    try:
        return bind_rows(ctx.trial(), rows, ctes)
    except QueryError:
        return None


def _itself(query: Query) -> Query:
    return query


def in_order(tree: exp.Expr) -> exp.Expr:
    """Complete the order of a query's rows, so that equal releases give equal answers: ties go by all columns."""
    order = tree.args.get("order")
    if order is None:
        tree.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Var(this="ALL"))]))
        return tree
    if isinstance(tree, exp.Select) and not _is_row(order) and tree.args.get("distinct") is None:
        stars = any(isinstance(item, exp.Star) or item.is_star for item in tree.expressions)
        ties = [] if stars else [exp.Literal.number(place) for place in range(1, len(tree.expressions) + 1)]
        order.set("expressions", [*order.expressions, *(exp.Ordered(this=tie, nulls_first=False) for tie in ties)])
    return tree


def _is_row(order: exp.Expr) -> bool:
    return all(isinstance(term, exp.Column) and term.name == ROW for term in order.expressions)


def needs_after(node: exp.Select, ctes: CteScope, levels: Levels) -> bool:
    """Tell whether an aggregation has parts that run on its noisy result as a whole: windows, DISTINCT, subqueries.

    A subquery inside an aggregate, or one that reads the outer row, belongs to the private rows.
    """
    if any(node.args.get(name) is not None for name in ("qualify", "distinct", "offset")):
        return True
    parts = [part for part in clauses(node) if not isinstance(part, exp.Where)]
    return any(has_window(part) or any(levels.stands_alone(q, ctes) for q in _outside(part)) for part in parts)


def _outside(part: exp.Expr) -> list[exp.Expr]:
    """List the subqueries of an expression that are not inside an aggregate."""
    inside = {id(query) for each in plain_aggregates(part) for query in nested_queries(each)}
    return [query for query in nested_queries(part) if id(query) not in inside]


def merges(ctx: Context, node: exp.Expr, ctes: CteScope, levels: Levels) -> bool:
    """Tell whether what is outside of a release is part of its own query: expressions over single groups."""
    if not isinstance(node, exp.Select):
        return False
    try:
        check_nodes(ctx.text, node)
    except QueryError:
        return False
    ctes = bind_with(ctx, node, ctes)
    if needs_after(node, ctes, levels):
        return False
    if aggregates(node):
        return any(levels.of(source, ctes) == "rows" for source in sources(node))
    where = node.args.get("where")
    if where is not None and next(nested_queries(where), None) is not None:
        return False
    inner = only_subquery(node, ctes)
    cut = inner is not None and isinstance(inner[0], exp.Select) and inner[0].args.get("limit") is not None
    late = where is not None or node.args.get("order") is not None
    return inner is not None and not (cut and late) and merges(ctx, inner[0], inner[1], levels)
