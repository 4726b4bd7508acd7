"""Aggregates of everybody's rows for each key, inside another query: a subquery that compares public keys by =.

    SELECT SUM(price) FROM lines JOIN parts USING (part) WHERE brand = 'A' AND quantity <
      (SELECT 0.2 * AVG(quantity) FROM lines AS l WHERE l.part = parts.part)
    → the release   SELECT part, 0.2 * AVG(quantity) FROM lines JOIN (the parts of brand A) USING (part) GROUP BY part
    → and then      SELECT SUM(price) FROM lines JOIN parts USING (part) LEFT JOIN (its noisy numbers) USING (part)
                    WHERE brand = 'A' AND quantity < number

Tested in tests/sql/test_keyed_releases.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

from sqlglot import exp

from hubbub.core.schema import Table, Value
from hubbub.errors import QueryError
from hubbub.sql import partition_selection, render
from hubbub.sql.after import after, chosen_rows
from hubbub.sql.after_intervals import ROW
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_from import bind_rows
from hubbub.sql.bind_names import distinct_names, output_name, strip_alias
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, conjuncts, find, is_unit
from hubbub.sql.bind_subqueries import Correlation, named_columns
from hubbub.sql.bind_tables import CteScope, bind_with, find_table
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Col
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.joint_keys import PublicColumn, joint_cells, public_columns
from hubbub.sql.ordinary_sql import with_parameters
from hubbub.sql.query import Query
from hubbub.sql.query_levels import Levels, nested_queries, plain_aggregates
from hubbub.sql.references import owners_agree
from hubbub.sql.released_tables import MAX_KEYS, Keys, key_name, key_table, keys_name, short_enough
from hubbub.sql.restrictions import same_value
from hubbub.sql.spellings import settle

#: Binds a release that also reads tables which the statement writes itself.
BindKeyed = Callable[[exp.Select, CteScope, Mapping[str, Table]], Query]
#: A column of the subquery, and the column or expression of the outer row that equals it.
Pair = tuple[exp.Expr, exp.Expr]
#: Clauses that drop or order the rows of a release, each of which is the number of one key.
_SHAPES = {"having": "HAVING", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET", "distinct": "DISTINCT"}


@dataclass(frozen=True, slots=True)
class KeyedRelease:
    """The release of a subquery that has one number for each of its keys.

    query     its keys and its number, in this order
    keys      the values of each key, in the order of the released rows
    outer     what the outer query compares with each key
    empty     the value for a key without rows, if it is not NULL: what the subquery gives if all of its counts are 0
    identity  equal for two subqueries that need one release only
    """

    query: Query
    keys: Keys
    outer: tuple[exp.Expr, ...]
    empty: exp.Expr | None
    identity: tuple[object, ...]

    def lookup(self, name: str) -> exp.Select:
        """Write the number of the outer row's keys as a subquery over the released table of this name."""
        columns = [exp.to_identifier(f"${place}", quoted=True) for place in range(len(self.keys) + 1)]
        # names of its own, because a key and the outer column may have the same name
        alias = exp.TableAlias(this=exp.to_identifier("$numbers", quoted=True), columns=columns)
        table = exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias)
        *keys, number = (exp.column(column.copy(), alias.this.copy()) for column in columns)
        tests = [exp.EQ(this=key, expression=outer.copy()) for key, outer in zip(keys, self.outer, strict=True)]
        value: exp.Expr = exp.Max(this=number)
        value = value if self.empty is None else exp.Coalesce(this=value, expressions=[self.empty])
        return exp.select(value).from_(table).where(*tests)


@dataclass(frozen=True, slots=True)
class KeyedBinder:
    """Binds the subqueries of one text that are releases with keys."""

    levels: Levels
    bind: BindKeyed

    def pairs(
        self, ctx: Context, query: exp.Select, ctes: CteScope, outer: BoundRelation
    ) -> tuple[list[Pair], list[exp.Expr]] | None:
        """Return what a subquery over several people's rows compares with the outer row, and its other conditions.

        None if it compares privacy IDs, or something by other operators than =: then it is another kind of subquery.
        """
        trial, correlation = ctx.trial(), Correlation(outer)
        try:
            inner = bind_rows(trial, query, bind_with(trial, query, ctes), correlation)
        except QueryError:
            return None
        if inner.owner is None or inner.owner.others or not correlation.parts:
            return None
        here, there = NameScope(inner.columns, "WHERE"), NameScope(outer.columns, "WHERE")
        pairs = list[Pair]()
        for part in correlation.parts:
            sides = [
                {find(trial, here, column) is not None for column in named_columns(side)}
                for side in (part.this, part.expression)
                if isinstance(part, exp.EQ)
            ]
            if sides not in ([{True}, {False}], [{False}, {True}]):
                return None
            mine, theirs = (part.this, part.expression) if sides[0] == {True} else (part.expression, part.this)
            if is_unit(trial, here, mine) or is_unit(trial, there, theirs):
                return None
            pairs.append((mine, theirs))
        if inner.owner.kind is not None:
            with trial.without_values():
                bound = [(scalar(trial, there, theirs), scalar(trial, here, mine)) for mine, theirs in pairs]
            if owners_agree(outer.rel, inner.rel, bound):
                return None
        where = query.args.get("where")
        rest = [] if where is None else [each for each in conjuncts(where.this) if each not in correlation.parts]
        return pairs, rest

    def release(
        self,
        ctx: Context,
        query: exp.Select,
        ctes: CteScope,
        outer: BoundRelation,
        conditions: Sequence[exp.Expr],
        compared: tuple[list[Pair], list[exp.Expr]],
        *,
        ordinary: bool = False,
    ) -> KeyedRelease:
        """Bind a subquery as a release with the keys that it compares; `conditions` are those of the outer query.

        They are computed as the outer query computes them: as written, or as `ordinary` SQL of DuckDB.

        Theorem (Keys of a release). Which keys a release has, and how many, depends on the query, the declarations and
        the public tables alone, and there are at most `MAX_KEYS`.
        Proof    A key that equals a column of a public table has the values of its rows that meet the conditions of the
                 outer query on that table; every other key has declared values, or the query is refused. A row of the
                 outer query that meets no such condition is in no result, whatever number it would be compared with.
                 The numbers are in the order of the keys: a clause that drops or orders them is refused.
        Assumes  a public table has the rows that were read when it was opened.
        Charges  nothing by itself: the release is charged with its statement (`ReleasedValues.value`).
        Tested   tests/sql/test_keyed_releases.py::test_the_keys_are_those_of_public_rows_that_meet_the_conditions
                 tests/sql/test_keyed_releases.py::test_other_subqueries_are_refused_before_the_charge
                 tests/curator/test_keyed_releases.py::test_no_clause_drops_or_orders_the_numbers_of_keys
        """
        self._refuse_shapes(ctx, query)
        pairs, rest = compared
        copy, tables, keys = query.copy(), dict[str, Table](), list[exp.Expr]()
        tests, joins = list(rest), list(copy.args.get("joins") or [])
        for (mine, _), table, column in self._origins(ctx, ctes, outer, conditions, pairs, ordinary=ordinary):
            if table is None:
                keys.append(mine)
                continue
            if table.name not in tables:
                tables[table.name] = table
                self._refuse_own_name(ctx, query, ctes, table.name)
                joins.append(exp.Join(this=exp.Table(this=exp.to_identifier(table.name, quoted=True))))
            keys.append(exp.column(exp.to_identifier(column, quoted=True), exp.to_identifier(table.name, quoted=True)))
            tests.append(exp.EQ(this=mine.copy(), expression=keys[-1].copy()))
        (item,) = query.expressions
        names = distinct_names(ctx, [(output_name(each), False, each) for each in (*(mine for mine, _ in pairs), item)])
        shown = zip((*keys, strip_alias(item)), names, strict=True)
        copy.set("expressions", [exp.alias_(each.copy(), name, quoted=True) for each, name in shown])
        copy.set("joins", joins)
        copy.set("where", exp.Where(this=exp.and_(*tests, wrap=False)) if tests else None)
        copy.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        bound = self.bind(copy, ctes, tables)
        listed = self._keys(ctx, query, bound)
        scope = hash(tuple(id(cte) for cte, _ in ctes.names))
        identity = (duckdb_sql(query, ctx.text), scope, tuple(tuple(values) for _, values in listed))
        return KeyedRelease(bound, listed, tuple(theirs for _, theirs in pairs), self._empty(ctx, item), identity)

    def _origins(
        self,
        ctx: Context,
        ctes: CteScope,
        outer: BoundRelation,
        conditions: Sequence[exp.Expr],
        pairs: Sequence[Pair],
        *,
        ordinary: bool,
    ) -> Iterator[tuple[Pair, Table | None, str]]:
        """Give for each pair the table of public keys that it equals, if it does, and its column there."""
        scope, public = NameScope(outer.columns, "WHERE"), public_columns(outer.rel)

        def origin(node: exp.Expr) -> PublicColumn | None:
            column = find(ctx, scope, node) if isinstance(node, exp.Column) else None
            return None if column is None or column.col is None else public.get(column.col.name)

        found = [origin(theirs) for _, theirs in pairs]
        scans = {each.scan: each.table for each in found if each is not None}
        tables = dict[int, tuple[Table, list[str]]]()
        for place, (scan, table) in enumerate(scans.items()):
            sources = list(dict.fromkeys(each.source for each in found if each is not None and each.scan == scan))
            own = [
                part
                for part in conditions
                if all((at := origin(column)) is not None and at.scan == scan for column in named_columns(part))
                and all(self.levels.of(inner, ctes) == "public" for inner in nested_queries(part))
            ]
            tests = [self._named(part, origin) for part in own]
            rows = self._rows(ctx, table, sources, tests, ctes, ordinary=ordinary)
            kinds = [next(column.kind for column in table.columns if column.name == source) for source in sources]
            name = keys_name(place)
            tables[scan] = key_table(name, list(zip(kinds, zip(*rows, strict=True), strict=True))), sources
        for pair, each in zip(pairs, found, strict=True):
            if each is None:
                yield pair, None, ""
            else:
                table, sources = tables[each.scan]
                yield pair, table, key_name(sources.index(each.source))

    def _named(self, part: exp.Expr, origin: Callable[[exp.Expr], PublicColumn | None]) -> exp.Expr:
        """Write a condition with the names of the public table itself."""
        copy = part.copy()
        for column in list(named_columns(copy)):
            at = origin(column)
            if at is None:
                raise AssertionError("a condition on one public table names its columns")
            named = exp.column(exp.to_identifier(at.source, quoted=True))
            if column is copy:
                return named
            column.replace(named)
        return copy

    def _rows(
        self,
        ctx: Context,
        table: Table,
        sources: Sequence[str],
        conditions: Sequence[exp.Expr],
        ctes: CteScope,
        *,
        ordinary: bool,
    ) -> list[tuple[Value | None, ...]]:
        """List the distinct keys of the rows of a public table that meet conditions; at least one.

        A condition that cannot be computed from this table and other public tables is left out: more keys do no harm.
        """
        rows = list(zip(*(table.rows[source] for source in sources), strict=True))
        kept = [True] * len(rows)
        listed = [self._public_condition(ctx, condition, ctes, ordinary=ordinary) for condition in conditions]
        ready = [each for each in listed if each is not None]
        # all at once, and only if that fails one by one
        for group in (ready, *([each] for each in ready)) if ready else ():
            used = {other.name: other for _, others in group for other in others}
            others, tests = list(used.values()), [test for test, _ in group]
            select = partial(_selection, ctx, tests, others, ordinary=ordinary)
            chosen = chosen_rows(table, select, others, ctx.text)
            kept = kept if chosen is None else [a and b for a, b in zip(kept, chosen, strict=True)]
            if chosen is not None and group is ready:
                break
        present = [row for row in compress(rows, kept) if None not in row]
        distinct = {tuple(map(same_value, row)): row for row in reversed(present or rows[:1])}
        return list(reversed(distinct.values()))

    def _public_condition(
        self, ctx: Context, condition: exp.Expr, ctes: CteScope, *, ordinary: bool
    ) -> tuple[exp.Expr, list[Table]] | None:
        """Return a condition with the public tables that its subqueries read, or None if it reads others."""
        tables, copy = dict[str, Table](), condition.copy()
        try:
            for node in copy.find_all(exp.Table):
                known = isinstance(node.this, exp.Identifier) and ctes.find(node.this) is None
                table = find_table(ctx, node) if known else None
                if table is None or not table.rows:
                    return None
                node.set("this", exp.to_identifier(table.name, quoted=True))
                tables[table.name] = table
            if ordinary:
                copy, _ = with_parameters(settle(copy, ctx.dialect, ctx.text), ctx.parameters, ctx.text)
        except QueryError:
            return None
        return copy, list(tables.values())

    def _refuse_shapes(self, ctx: Context, node: exp.Select) -> None:
        for name, clause in _SHAPES.items():
            if node.args.get(name) is not None:
                raise ctx.error(
                    node,
                    "HB785",
                    f"A subquery that gives one number for each key cannot have {clause}.",
                    "Leave it out: an aggregate without GROUP BY is one row.",
                )

    def _refuse_own_name(self, ctx: Context, node: exp.Expr, ctes: CteScope, name: str) -> None:
        if ctes.find(exp.to_identifier(name, quoted=True)) is not None or node.find(exp.With) is not None:
            raise ctx.error(
                node,
                "HB785",
                "A subquery that gives one number for each key cannot have a WITH clause.",
                "Move its WITH clause to the beginning of the statement, and use names without $.",
            )

    def _keys(self, ctx: Context, node: exp.Select, query: Query) -> Keys:
        """List the keys of a release in the order of its rows, or raise."""
        if not query.select[-1][1].kind.numeric:
            raise ctx.error(
                node, "HB785", "A subquery over everybody's rows, used as a value, must be a number.", "Aggregate one."
            )
        if partition_selection.needed(query):
            raise ctx.error(
                node.expressions[0],
                "HB740",
                "This subquery gives one number about everybody for each key, and the keys are not known.",
                "Compare a column of a public table of at most 10,000 rows, or one with declared `values`. To compare "
                "rows of one person, compare the privacy IDs.",
            )
        (cells,) = joint_cells(query)
        if cells.size > MAX_KEYS:
            raise ctx.error(
                node,
                "HB785",
                f"This subquery gives {cells.size:,} numbers, one for each key; the maximum is {MAX_KEYS:,}.",
                "Restrict the keys by conditions on the public table, or compare a coarser key.",
            )
        listed = {}
        for j, domain in enumerate(cells.domains):
            values: list[Value | None] = [*domain.values, None]
            column = [values[code] for code in cells.codes(j)]
            if not short_enough(column):
                raise ctx.error(node, "HB785", "A key of this subquery is too long a text.", "Compare a shorter key.")
            listed[cells.keys[j].name] = domain.kind, column
        # a key that is compared twice is one key of the release, and two columns of its result
        return [listed[key.name] for _, key in query.select[:-1] if isinstance(key, Col)]

    def _empty(self, ctx: Context, item: exp.Expr) -> exp.Expr | None:
        """Return the value of a subquery that finds no row, or None for NULL; reject a mixture of both."""
        inner = strip_alias(item)
        counts = [isinstance(each, exp.Count | exp.CountIf) for each in plain_aggregates(inner)]
        if not any(counts):
            return None
        if not all(counts):
            raise ctx.error(
                item,
                "HB785",
                "This subquery computes with a count and another aggregate, of which only the count has a value where "
                "there are no rows.",
                "Write them as two subqueries.",
            )
        copy = exp.Paren(this=inner.copy())
        for node in list(plain_aggregates(copy)):
            node.replace(exp.Literal.number(0))
        return copy


def _selection(
    ctx: Context, conditions: Sequence[exp.Expr], others: Sequence[Table], table: Table, *, ordinary: bool
) -> str:
    """Write the query for the numbers of the rows of a numbered table that meet conditions."""
    tree = exp.select(exp.column(exp.to_identifier(ROW, quoted=True)))
    tree = tree.from_(exp.Table(this=exp.to_identifier(table.name, quoted=True))).where(*conditions)
    if ordinary:
        return after(tree, (), (*(each for each in others if each.name != table.name), table), ctx.text).sql
    trial = replace(ctx.trial(), tables={**ctx.tables, table.name: table})
    rows = bind_rows(trial, tree, CteScope())
    (number,) = (column.col for column in rows.columns if column.name == ROW and column.col is not None)
    shown = f"{render.expression(number, DUCKDB)} AS {DUCKDB.identifier(ROW)}"
    return f"SELECT {shown} FROM ({render.relation(rows.rel, DUCKDB)}) AS r"
