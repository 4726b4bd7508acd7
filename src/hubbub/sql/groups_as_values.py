"""Groups of everybody's rows beside private rows: rewritten to values for each key, which `bind_keyed` releases.

    FROM visits WHERE site IN (SELECT site FROM visits GROUP BY site HAVING COUNT(*) > 50)
    → FROM visits WHERE (SELECT COUNT(*) FROM visits AS g WHERE g.site = visits.site) > 50
    FROM visits v JOIN (SELECT site, AVG(cost) AS a FROM visits GROUP BY site) s ON s.site = v.site WHERE cost > s.a
    → FROM visits v WHERE cost > (SELECT AVG(cost) FROM visits AS g WHERE g.site = v.site)
    FROM visits, (SELECT AVG(cost) AS a FROM visits) AS s WHERE cost > s.a
    → FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)

A query that does not have such a form stays as it is, and the binder says why it is refused.

Tested in tests/sql/test_groups_as_values.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.sql.bind_aggregate_call import has_aggregate
from hubbub.sql.bind_names import strip_alias
from hubbub.sql.bind_scope import Context, conjuncts, fold_case
from hubbub.sql.bind_tables import CteScope, bind_with, find_table
from hubbub.sql.query_levels import Levels, has_window, nested_queries, plain_aggregates, sources

#: Clauses of a grouped subquery that is rewritten; others change which groups it has. ORDER BY alone does nothing.
_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "order")


def with_groups_as_values(ctx: Context, tree: exp.Expr) -> exp.Expr:
    """Return a query in which groups of everybody's rows are values for each key, where they stand beside private rows.

    The rewriting needs no proof of privacy: what it gives is a query, which the binder reads as if it had been written.
    """
    if (
        not any(_may_group(each) for each in tree.find_all(exp.Select))
        or tree.find(exp.Join, exp.In, exp.Exists) is None
    ):
        return tree
    copy = tree.copy()
    GroupsAsValues(ctx.trial(), Levels(ctx.trial())).rewrite(copy, CteScope())
    return tree if copy == tree else copy


def _may_group(node: exp.Select) -> bool:
    inner = node.parent is not None
    return inner and (node.args.get("group") is not None or any(map(has_aggregate, node.expressions)))


@dataclass
class GroupsAsValues:
    """Rewrites a statement; the tree is changed in place."""

    ctx: Context
    levels: Levels
    _count: int = field(default=0)

    def rewrite(self, node: exp.Expr, ctes: CteScope) -> None:
        """Rewrite a query and those within it."""
        try:
            scope = bind_with(self.ctx, node, ctes)
        except QueryError:
            return
        for cte, visible in scope.names[len(ctes.names) :]:
            self.rewrite(cte.this, visible or CteScope())
        if isinstance(node, exp.SetOperation):
            for side in (node.this, node.expression):
                self.rewrite(side, scope)
            return
        if not isinstance(node, exp.Select):
            return
        self._select(node, scope)
        for part in node.iter_expressions():
            if not isinstance(part, exp.With):
                for inner in list(nested_queries(part)):
                    self.rewrite(inner, scope)

    def _select(self, node: exp.Select, ctes: CteScope) -> None:
        with suppress(QueryError):  # what has no such form stays as it is, and binding says what is wrong
            if any(self.levels.of(each, ctes) == "rows" for each in sources(node)):
                self._joins(node, ctes)
                self._conditions(node, ctes)

    # --- joins -------------------------------------------------------------------------------------------------------

    def _joins(self, node: exp.Select, ctes: CteScope) -> None:
        """Replace joined groups of everybody's rows by values."""
        first = node.args["from_"].this
        joins = list(node.args.get("joins") or [])
        if any(join.args.get("side") in ("RIGHT", "FULL") for join in joins):
            return  # conditions move to WHERE, which would drop the rows that such a join adds
        if joins and self._grouped(first, ctes) is not None and _plain(joins[0]):
            # the groups stand first: an inner join is the same in the other order
            node.args["from_"].set("this", joins[0].this)
            joins[0].set("this", first)
        for join in joins:
            query = self._grouped(join.this, ctes)
            if query is not None and _plain(join):
                self._as_values(node, join, query)

    def _grouped(self, source: exp.Expr, ctes: CteScope) -> exp.Select | None:
        """Return the query of a source that aggregates everybody's rows in groups of columns, or in one row."""
        query: exp.Expr | None = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            found = ctes.find(source.this)
            query = None if found is None or found[0].args["alias"].args.get("columns") else found[0].this
        alias = source.args.get("alias")
        if not isinstance(query, exp.Select) or (alias is not None and alias.args.get("columns")):
            return None
        if _has_others(query) or self.levels.of(source, ctes) != "released":
            return None
        if not any(self.levels.of(each, ctes) == "rows" for each in sources(query)):
            return None
        return query if not any(has_window(item) for item in query.expressions) else None

    def _as_values(self, node: exp.Select, join: exp.Join, query: exp.Select) -> None:
        name = join.this.alias_or_name
        items = {fold_case(item.alias_or_name): strip_alias(item) for item in query.expressions}
        keys = _keys(query)
        on, where = join.args.get("on"), node.args.get("where")
        compared, rest, late = dict[str, exp.Expr](), list[exp.Expr](), list[exp.Expr]()
        for clause, others_of in ((on, rest), (None if where is None else where.this, late)):
            for part in [] if clause is None else conjuncts(clause):
                pair = _pair(part, name, items, keys or [])
                if pair is None or pair[0].sql() in compared:
                    others_of.append(part)
                else:
                    compared[pair[0].sql()] = self._outer(node, pair[1], join)
        if keys is None or set(compared) != {key.sql() for key in keys} or _captured(query, compared.values()):
            return
        others = [each for each in sources(node) if each is not join.this]
        if any(each.alias_or_name == name for each in others):
            return
        values = _Values(self, query, [(key, compared[key.sql()]) for key in keys])
        mentioned = [column for column in node.find_all(exp.Column) if self._reads(node, column, name, items, others)]
        if any(fold_case(column.name) not in items for column in mentioned):
            return
        if not self._in_groups(query, [*rest, *late], mentioned, items) and not _has_all(query, compared, keys, others):
            return
        tests = [*rest, *([] if query.args.get("having") is None else [query.args["having"].this.copy()])]
        node.set("joins", [each for each in node.args["joins"] if each is not join])
        for column in mentioned:
            if column.find_ancestor(exp.Join) is join and not any(column in set(part.walk()) for part in rest):
                continue
            item = items[fold_case(column.name)]
            column.replace(compared[item.sql()].copy() if item.sql() in compared else values.of(item))
        present = [exp.Not(this=exp.Is(this=other.copy(), expression=exp.Null())) for other in compared.values()]
        written = (
            present
            + [values.of(test, query) if place >= len(rest) else test for place, test in enumerate(tests)]
            + late
        )
        node.set("where", exp.Where(this=exp.and_(*written, copy=False)) if written else None)

    def _in_groups(
        self, query: exp.Select, tests: list[exp.Expr], mentioned: list[exp.Column], items: Mapping[str, exp.Expr]
    ) -> bool:
        """Tell whether conditions are true only of rows that are in a group; one row of everybody's is always there."""
        if not _keys(query):
            return True
        having = query.args.get("having")
        known = [] if having is None else conjuncts(_spelled_out(having.this, query))
        for part in tests:
            # a copy of the condition as it would read within the groups; columns of the outer row stay
            root = exp.Paren(this=part.copy())
            read = [any(column is each for each in mentioned) for column in part.find_all(exp.Column)]
            for column, mine in zip(list(root.find_all(exp.Column)), read, strict=True):
                if mine:
                    column.replace(items[fold_case(column.name)].copy())
            known.append(root.this)
        return any(map(_needs_rows, known))

    def _known(self, others: list[exp.Expr], column: exp.Column) -> bool:
        """Tell whether a name without a table may be a column of another source."""
        return any(not isinstance(each, exp.Table) or self._has(each, column.name) for each in others)

    def _has(self, source: exp.Table, name: str) -> bool:
        try:
            table = find_table(self.ctx, source)
        except QueryError:
            return True
        unit = {owner.column for owner in table.owners}
        return fold_case(name) in {fold_case(each) for each in (*(c.name for c in table.columns), *unit) if each}

    # --- conditions --------------------------------------------------------------------------------------------------

    def _conditions(self, node: exp.Select, ctes: CteScope) -> None:
        """Replace IN and EXISTS over groups by conditions on values for each key."""
        where = node.args.get("where")
        for part in [*node.expressions, *([] if where is None else [where])]:
            for each in list(part.find_all(exp.In, exp.Exists)):
                if each.find_ancestor(exp.Select) is not node:
                    continue
                written = self._in(node, each, ctes) if isinstance(each, exp.In) else self._exists(each)
                if written is not None:
                    each.replace(written)

    def _in(self, node: exp.Select, test: exp.In, ctes: CteScope) -> exp.Expr | None:
        source = test.args.get("query")
        query = None if source is None else self._grouped(source, ctes)
        having = None if query is None else query.args.get("having")
        if query is None or having is None or not isinstance(test.this, exp.Column) or len(query.expressions) != 1:
            return None
        key, keys = strip_alias(query.expressions[0]), _keys(query)
        if keys is None or [each.sql() for each in keys] != [key.sql()]:
            return None
        outer = self._outer(node, test.this, None)
        if _captured(query, [outer]) or not (
            any(map(_needs_rows, conjuncts(having.this))) or _has_all(query, {key.sql(): outer}, keys, sources(node))
        ):
            return None
        met = _Values(self, query, [(key, outer)]).of(having.this.copy(), query)
        # IN is NULL for NULL, and false where no group has the value
        null = exp.If(this=exp.Is(this=outer.copy(), expression=exp.Null()), true=exp.Null())
        true = exp.If(this=met, true=exp.Boolean(this=True))
        return exp.Case(ifs=[null, true], default=exp.Boolean(this=False))

    def _exists(self, test: exp.Exists) -> exp.Expr | None:
        query = test.this.unnest() if isinstance(test.this, exp.Subquery) else test.this
        if not isinstance(query, exp.Select):
            return None
        having, where = query.args.get("having"), query.args.get("where")
        keys = _keys(query) if having is not None else None
        if having is None or where is None or not keys or _has_others(query):
            return None
        equal = [part for part in conjuncts(where.this) if isinstance(part, exp.EQ)]
        sides = [pair for part in equal for pair in ((part.this, part.expression), (part.expression, part.this))]
        if not all(any(_same(key, mine) and self._is_outer(query, other) for mine, other in sides) for key in keys):
            return None
        values = _Values(self, query, [])
        met = values.of(having.this.copy(), query)
        tests = [met]
        if not any(map(_needs_rows, conjuncts(having.this))):  # there is no group without rows
            some = exp.GT(this=values.of(exp.Count(this=exp.Star())), expression=exp.Literal.number(0))
            tests.append(some)
        true = exp.If(this=exp.and_(*tests, copy=False), true=exp.Boolean(this=True))
        return exp.Case(ifs=[true], default=exp.Boolean(this=False))

    def _is_outer(self, query: exp.Select, side: exp.Expr) -> bool:
        """Tell whether a side of a comparison is the same for all rows of a subquery: a constant or an outer column."""
        if not isinstance(side, exp.Column):
            return isinstance(side, exp.Literal)
        inner = sources(query)
        if side.table:
            return all(fold_case(each.alias_or_name) != fold_case(side.table) for each in inner)
        return not self._known(inner, side)

    def _reads(
        self, node: exp.Select, column: exp.Column, name: str, items: Mapping[str, exp.Expr], others: list[exp.Expr]
    ) -> bool:
        """Tell whether a column of a query, or of one within it, is one of the joined groups with this name."""
        if column.table and fold_case(column.table) != fold_case(name):
            return False
        if not column.table and (fold_case(column.name) not in items or self._known(others, column)):
            return False
        for inner in _between(column, node):
            if column.table and any(fold_case(each.alias_or_name) == fold_case(name) for each in sources(inner)):
                return False
            if not column.table and self._known(sources(inner), column):
                return False
        return True

    def _outer(self, node: exp.Select, column: exp.Expr, join: exp.Join | None) -> exp.Expr:
        """Return a column of the outer row with its table."""
        if not isinstance(column, exp.Column) or column.table:
            return column.copy()
        others = [each for each in sources(node) if join is None or each is not join.this]
        having = [each for each in others if not isinstance(each, exp.Table) or self._has(each, column.name)]
        source = having[0] if len(having) == 1 else None
        if source is None or not source.alias_or_name:
            raise self.ctx.error(
                column, "HB507", "Several tables may have this column.", "Name it by its table: table.column."
            )
        return exp.column(column.this.copy(), table=exp.to_identifier(source.alias_or_name, quoted=True))

    def new_name(self) -> str:
        """Return a name for the rows of a subquery."""
        self._count += 1
        return f"$groups{self._count}"


@dataclass(frozen=True)
class _Values:
    """The aggregates of a grouped query, each as a subquery over the rows of one group."""

    owner: GroupsAsValues
    query: exp.Select
    pairs: list[tuple[exp.Expr, exp.Expr]]

    def of(self, expr: exp.Expr, named: exp.Select | None = None) -> exp.Expr:
        """Write an expression over aggregates as one over values; `named` has the aliases that it may use."""
        root = exp.Paren(this=expr.copy())
        if named is not None:
            root.set("this", _spelled_out(expr, named))
        outer: Mapping[str, exp.Expr] = {key.sql(): other for key, other in self.pairs}
        for aggregate in list(plain_aggregates(root)):
            aggregate.replace(self._value(aggregate))
        for column in [each for each in root.find_all(exp.Column) if each.sql() in outer]:
            if column.find_ancestor(exp.Select) is None:
                column.replace(outer[column.sql()].copy())
        return root

    def _value(self, aggregate: exp.Expr) -> exp.Expr:
        kept = {name: self.query.args[name].copy() for name in ("from_", "where") if self.query.args.get(name)}
        joins = [join.copy() for join in self.query.args.get("joins") or []]
        select = exp.Select(expressions=[aggregate.copy()], joins=joins, **kept)
        pairs = [(key.copy(), other.copy()) for key, other in self.pairs]
        source = select.args["from_"].this
        if pairs and not joins and isinstance(source, exp.Table):
            name, old = self.owner.new_name(), source.alias_or_name
            source.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
            for column in [*_own_columns(select, old), *(key for key, _ in pairs)]:
                column.set("table", exp.to_identifier(name, quoted=True))
        if pairs:
            where = select.args.get("where")
            tests = [exp.EQ(this=key, expression=other) for key, other in pairs]
            select.set("where", exp.Where(this=exp.and_(*([] if where is None else [where.this]), *tests, copy=False)))
        return exp.Subquery(this=select)


_AGGREGATES = (exp.AggFunc,)


def _keys(query: exp.Select) -> list[exp.Expr] | None:
    """Return the columns by which a query groups; None if it groups by anything else."""
    group = query.args.get("group")
    parts = [] if group is None else group.expressions
    keys = list(_resolved(query, parts))
    return keys if len(keys) == len(parts) and not (group is not None and group.args.get("all")) else None


def _resolved(query: exp.Select, parts: list[exp.Expr]) -> Iterator[exp.Expr]:
    for part in parts:
        item = part
        if isinstance(part, exp.Literal) and str(part.this).isdecimal() and int(part.this) <= len(query.expressions):
            item = strip_alias(query.expressions[int(part.this) - 1])
        if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
            yield item


def _has_others(query: exp.Select) -> bool:
    return any(part for name, part in query.args.items() if name not in _CLAUSES)


def _between(column: exp.Expr, node: exp.Select) -> Iterator[exp.Select]:
    """List the queries within a query around one of its columns, the innermost first."""
    around = column.find_ancestor(exp.Select)
    while around is not None and around is not node:
        yield around
        around = around.find_ancestor(exp.Select)


def _own_columns(select: exp.Select, name: str) -> list[exp.Column]:
    """List the columns of the only table of a query, also in queries within it where they are named by that table."""

    def own(column: exp.Column) -> bool:
        inner = list(_between(column, select))
        if not column.table:
            return not inner
        shadowed = any(fold_case(each.alias_or_name) == fold_case(name) for one in inner for each in sources(one))
        return fold_case(column.table) == fold_case(name) and not shadowed

    return [column for column in select.find_all(exp.Column) if own(column)]


def _captured(query: exp.Select, outer: Iterable[exp.Expr]) -> bool:
    """Tell whether a column of the outer row would be another one within the grouped query, whose tables keep names."""
    inner = sources(query)
    if len(inner) == 1 and isinstance(inner[0], exp.Table):
        return False  # it gets a name of its own
    names = {fold_case(each.alias_or_name) for each in inner}
    return any(fold_case(column.table) in names for each in outer for column in each.find_all(exp.Column))


def _spelled_out(test: exp.Expr, query: exp.Select) -> exp.Expr:
    """Return a condition of HAVING with the aggregates that its aliases stand for."""
    items = {fold_case(item.alias): item.this for item in query.expressions if isinstance(item, exp.Alias)}
    root = exp.Paren(this=test.copy())
    for column in [each for each in root.find_all(exp.Column) if not each.table]:
        if fold_case(column.name) in items and column.find_ancestor(*_AGGREGATES) is None:
            column.replace(items[fold_case(column.name)].copy())
    spelled: exp.Expr = root.this
    return spelled


def _has_all(query: exp.Select, compared: Mapping[str, exp.Expr], keys: list[exp.Expr], others: list[exp.Expr]) -> bool:
    """Tell whether every row of the outer table is in a group, because the groups are those of all its rows."""
    (source, *more), where = sources(query), query.args.get("where")
    if more or where is not None or not isinstance(source, exp.Table):
        return False
    same = {
        fold_case(each.alias_or_name)
        for each in others
        if isinstance(each, exp.Table) and exp.table_name(each) == exp.table_name(source)
    }
    outer = [compared[key.sql()] for key in keys]
    return all(isinstance(each, exp.Column) and fold_case(each.table) in same for each in outer) and all(
        fold_case(each.name) == fold_case(key.name) for each, key in zip(outer, keys, strict=True)
    )


def _needs_rows(test: exp.Expr) -> bool:
    """Tell whether a condition on a count is true only of groups that have rows.

    Other aggregates of a group without rows are noise, and not NULL.
    """
    test = test.unnest()
    leasts: dict[type[exp.Expr], int] = {exp.GT: 0, exp.GTE: 1, exp.EQ: 1}
    least = leasts.get(type(test))
    if least is None or not isinstance(test.this, exp.Count) or not isinstance(test.expression, exp.Literal):
        return False
    return str(test.expression.this).isdecimal() and int(str(test.expression.this)) >= least


def _same(key: exp.Expr, side: exp.Expr) -> bool:
    """Tell whether a key and a side of a comparison are one column, of which one may be named without its table."""
    if (
        not isinstance(key, exp.Column)
        or not isinstance(side, exp.Column)
        or fold_case(key.name) != fold_case(side.name)
    ):
        return False
    return not key.table or not side.table or fold_case(key.table) == fold_case(side.table)


def _plain(join: exp.Join) -> bool:
    """Tell whether a join is an inner join with a condition, a cross join or a comma."""
    args = join.args
    return (
        not args.get("side")
        and not args.get("method")
        and not args.get("using")
        and args.get("kind")
        in (
            None,
            "",
            "INNER",
            "CROSS",
        )
    )


def _pair(
    part: exp.Expr, name: str, items: Mapping[str, exp.Expr], keys: list[exp.Expr]
) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the key of the groups that a condition compares with the outer row, and what it is compared with."""
    if not isinstance(part, exp.EQ):
        return None
    for mine, other in ((part.this, part.expression), (part.expression, part.this)):
        if isinstance(mine, exp.Column) and isinstance(other, exp.Column) and fold_case(mine.table) == fold_case(name):
            item = items.get(fold_case(mine.name))
            if (
                item is not None
                and item.sql() in {key.sql() for key in keys}
                and fold_case(other.table) != fold_case(name)
            ):
                return item, other
    return None
