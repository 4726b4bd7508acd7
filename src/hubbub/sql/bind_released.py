"""Bind subqueries over everybody's rows inside a private query: releases of their own, whose noisy values it reads.

    SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)
    → the release   SELECT AVG(cost) FROM visits
    → and then      SELECT COUNT(*) FROM visits WHERE cost > 41.7

A subquery that compares keys of the outer row has one number for each key (`bind_keyed`).

Tested in tests/sql/test_released_values.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from hubbub.core.schema import Kind, Table
from hubbub.sql.bind_after import MAX_RELEASES, merges
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_keyed import KeyedBinder
from hubbub.sql.bind_match import Match
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, VisibleColumn
from hubbub.sql.bind_tables import CteScope
from hubbub.sql.expressions import Col, Expr, Facts, released_name, released_value
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.query import Queries, Query
from hubbub.sql.query_levels import Levels
from hubbub.sql.relations import Scan, UnitAggregate
from hubbub.sql.released_tables import released_table


@dataclass
class ReleasedValues:
    """The subqueries of a statement that are releases of one number each, in the order in which they run."""

    levels: Levels
    bind: Callable[[exp.Select, CteScope], Query]
    keyed: KeyedBinder
    parts: list[Query] = field(default_factory=list)
    _places: dict[tuple[object, ...], int] = field(default_factory=dict)

    def value(
        self, ctx: Context, node: exp.Subquery, ctes: CteScope, rows: BoundRelation, conditions: Sequence[exp.Expr]
    ) -> tuple[BoundRelation, Expr] | None:
        """Bind a subquery as a release if it aggregates everybody's rows, for each key that it compares if it does.

        Theorem (Noisy values in queries). A statement whose queries read noisy values of its earlier releases costs
        what all of its releases cost together, and its plan, cost and refusals are the same for all values.
        Proof    A value is a column without facts (`released_value`, or that of a public table of which only the keys
                 are known): planning sees neither its number nor a bound of it. Its text has one length. Given the
                 values, each row of a relation is a function of one unit's rows and public data, as with a parameter or
                 a public table with one row for each key, so the theorem of one owner for each row holds, and the
                 events of the plan hold for every value; adaptive composition adds them up.
        Assumes  the theorems of `plan` for each part.
        Charges  the events of all parts, before the first of them runs.
        Tested   tests/sql/test_released_values.py::test_the_plan_is_the_same_for_all_values
                 tests/curator/test_released_values.py::test_the_composed_distribution_keeps_the_charged_loss
                 tests/curator/test_keyed_releases.py::test_the_composed_distribution_keeps_the_charged_loss
        """
        query = node.unnest()
        if not isinstance(query, exp.Select) or self.levels.of(query, ctes) != "released":
            return None
        if not self.levels.stands_alone(query, ctes):
            return self._for_each_key(ctx, node, query, ctes, rows, conditions)
        if ctx.is_trial:
            return rows, released_value(0, Kind.REAL)
        if len(query.expressions) != 1 or query.args.get("group") or not merges(ctx, query, ctes, self.levels):
            raise self._refusal(ctx, node)
        identity = (duckdb_sql(query, ctx.text), hash(tuple(id(cte) for cte, _ in ctes.names)))
        if identity not in self._places:
            part = self.bind(query, ctes)
            if part.keys or not part.select[0][1].kind.numeric:
                raise self._refusal(ctx, node)
            self._places[identity] = self._add(ctx, node, part)
        place = self._places[identity]
        return rows, released_value(place, self.parts[place].select[0][1].kind)

    def _for_each_key(
        self,
        ctx: Context,
        node: exp.Subquery,
        query: exp.Select,
        ctes: CteScope,
        rows: BoundRelation,
        conditions: Sequence[exp.Expr],
    ) -> tuple[BoundRelation, Expr] | None:
        """Bind a subquery that compares keys of the outer row; None if it is about the outer row's own unit."""
        if len(query.expressions) != 1 or query.args.get("group"):
            return None
        compared = self.keyed.pairs(ctx, query, ctes, rows)
        if compared is None:
            return None
        if ctx.is_trial:
            return rows, released_value(0, Kind.REAL)
        if not merges(ctx, query, ctes, self.levels):
            raise self._refusal(ctx, node)
        release = self.keyed.release(ctx, query, ctes, rows, conditions, compared)
        if release.identity not in self._places:
            self._places[release.identity] = self._add(ctx, node, release.query)
        place = self._places[release.identity]
        table = released_table(released_name(place), release.keys, release.query.select[-1][1].kind)
        inner, (*keys, number) = _scan(ctx, table)
        scope = NameScope(rows.columns, "a subquery's condition")
        with ctx.without_values():
            pairs = [(scalar(ctx, scope, outer), key) for outer, key in zip(release.outer, keys, strict=True)]
        column = ctx.new_column("max", number.kind, Facts(null=True), 1)
        largest = (column.name, UnitAggregate("max", number, None, column))
        rows = Match(inner, list(pairs)).group(ctx, rows, "left", [largest])
        if release.empty is None:
            return rows, column
        return rows, apply(ctx, node, "coalesce", [column, scalar(ctx, NameScope((), "this subquery"), release.empty)])

    def _add(self, ctx: Context, node: exp.Expr, part: Query) -> int:
        if len(self.parts) == MAX_RELEASES - 1:
            raise ctx.error(
                node,
                "HB754",
                f"The query needs more than {MAX_RELEASES} releases.",
                "Run some of its parts as queries of their own.",
            )
        self.parts.append(part)
        return len(self.parts) - 1

    def _refusal(self, ctx: Context, node: exp.Expr) -> Exception:
        return ctx.error(
            node,
            "HB785",
            "A subquery over everybody's rows, used as a value, must be one number: an aggregate without GROUP BY.",
            "Write (SELECT AVG(x) FROM …). For another value, run that query first and pass its noisy result as a "
            "parameter.",
        )

    def before(self, query: Query | Queries) -> Query | Queries:
        """Return a query together with the releases whose values it reads, if there are some."""
        if not self.parts:
            return query
        if isinstance(query, Query):
            return Queries((*self.parts, query), None, len(self.parts))
        return replace(query, parts=(*self.parts, *query.parts), values=len(self.parts))


def _scan(ctx: Context, table: Table) -> tuple[BoundRelation, tuple[Col, ...]]:
    """Bind the table of a release's noisy numbers, of which nothing is known; no dataset is read."""
    cols = tuple(ctx.new_column(column.name, column.kind, Facts(null=True), 1) for column in table.columns)
    names = tuple(column.name for column in table.columns)
    visible = tuple(VisibleColumn(name, None, col) for name, col in zip(names, cols, strict=True))
    return BoundRelation(Scan(table, cols, names), visible, None), cols
