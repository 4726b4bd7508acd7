"""Bind subqueries in expressions: EXISTS, IN and scalar subqueries become joins with one row for each match.

A subquery over private data must compare the privacy IDs of both rows. Its rows are grouped by the privacy ID and by
the columns that the outer query compares, so a row of the outer query has at most one match and is never multiplied.

Tested in tests/sql/test_subqueries.py.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_aggregate_call import has_aggregate
from hubbub.sql.bind_apply import NULL, apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_join import padded_error
from hubbub.sql.bind_match import Match
from hubbub.sql.bind_names import strip_alias
from hubbub.sql.bind_scope import BoundRelation, Context, NameScope, find, is_unit, owner_place, resolve
from hubbub.sql.bind_unit_aggregates import UnitAggregateBinder
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.references import owners_agree
from hubbub.sql.relations import OWNERS, Filter

_FALSE = Literal(False, Kind.BOOLEAN)  # noqa: FBT003
_TRUE = Literal(True, Kind.BOOLEAN)  # noqa: FBT003
_ZERO = Literal(0, Kind.INTEGER)
#: The comparison with its operands swapped.
_SWAPPED: dict[type[exp.Expr], str] = {exp.LT: "gt", exp.LTE: "ge", exp.GT: "lt", exp.GTE: "le", exp.NEQ: "ne"}
_WRITTEN: dict[type[exp.Expr], str] = {exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge", exp.NEQ: "ne"}
_PLAIN = ("group", "having", "distinct", "limit", "offset", "order", "qualify")

#: Binds FROM, JOIN and WHERE of a SELECT; conditions that name columns of the outer query go to the correlation.
BindRows = Callable[["Correlation", exp.Select], BoundRelation]
#: Binds a whole subquery that names no column of the outer query.
BindSubquery = Callable[[exp.Expr], BoundRelation]
#: Binds a subquery over everybody's rows as a release of its own, and returns the rows with its value, or None.
BindValue = Callable[[BoundRelation, exp.Subquery], tuple[BoundRelation, Expr] | None]


@dataclass
class Correlation:
    """The conditions of a subquery that name columns of the outer query."""

    outer: BoundRelation
    parts: list[exp.Expr] = field(default_factory=list)

    def takes(self, ctx: Context, inner: NameScope, part: exp.Expr) -> bool:
        """Keep a condition that names a column of the outer query and no column of the subquery has that name."""
        names = [column for column in named_columns(part) if find(ctx, inner, column) is None]
        outer = NameScope(self.outer.columns, "WHERE")
        if not any(find(ctx, outer, column) is not None for column in names):
            return False
        self.parts.append(part)
        return True


@dataclass(frozen=True, slots=True)
class SubqueryBinder:
    """Binds the subqueries in the expressions of one SELECT, and adds the joins that they need to its rows."""

    ctx: Context
    bind_rows: BindRows
    bind_subquery: BindSubquery
    bind_value: BindValue

    def attach(self, rows: BoundRelation, parts: Iterable[exp.Expr]) -> tuple[BoundRelation, dict[exp.Expr, Expr]]:
        """Add the joins of all subqueries in some expressions, and return the value of each subquery."""
        values: dict[exp.Expr, Expr] = {}
        for node in [node for part in parts for node in subqueries(part)]:
            if node not in values:
                rows, values[node] = self._value(rows, node)
        return rows, values

    def restrict(self, rows: BoundRelation, part: exp.Expr) -> BoundRelation | None:
        """Keep the rows for which EXISTS or IN is true; None for another condition."""
        if isinstance(part, exp.Exists):
            matched = self._exists(rows, part)
        elif isinstance(part, exp.In) and part.args.get("query") is not None:
            matched = self._in(rows, part)
        else:
            return None
        rows, test = matched.join(self.ctx, part, rows, "inner")
        if test is None:
            return rows
        self.ctx.conditions.add(test)
        return replace(rows, rel=Filter(rows.rel, test))

    def _value(self, rows: BoundRelation, node: exp.Expr) -> tuple[BoundRelation, Expr]:
        if isinstance(node, exp.Subquery):
            return self.bind_value(rows, node) or self._scalar(rows, node)
        if isinstance(node, exp.Exists):
            return self._exists(rows, node).mark(self.ctx, node, rows)
        if not isinstance(node, exp.In):
            raise TypeError("not a subquery")
        matched = self._in(rows, node)
        if matched.along_key:
            raise self.ctx.error(
                node,
                "HB739",
                "NOT IN cannot compare a key: it would be NULL for everybody if one row had no key.",
                "Write NOT EXISTS (SELECT 1 FROM b WHERE b.key = a.key).",
            )
        rows, found = matched.mark(self.ctx, node, rows)
        if not matched.compared:
            return rows, found
        if len(matched.compared) > 1 or matched.tests or matched.conditions:
            raise self._unsupported(node)
        # IN is NULL if nothing equals the value but something could: the value is NULL, or the subquery has a NULL
        ((value, selected),) = matched.compared
        everything = replace(matched, pairs=matched.pairs[:-1], compared=[])
        rows, present, unknown = everything.nulls(self.ctx, node, rows, selected)
        if not (isinstance(value, Col) and value.name in OWNERS):
            unknown = apply(self.ctx, node, "or", [unknown, apply(self.ctx, node, "is_null", [value])])
        null = apply(self.ctx, node, "and", [present, unknown])
        return rows, apply(self.ctx, node, "case", [found, _TRUE, null, NULL, _FALSE])

    # --- the three forms -----------------------------------------------------------------------------------------

    def _exists(self, rows: BoundRelation, node: exp.Expr) -> Match:
        query = node.this.unnest() if isinstance(node.this, exp.Subquery) else node.this
        if (
            not isinstance(query, exp.Select)
            or _shaped(query, but="distinct")
            or any(map(has_aggregate, query.selects))
        ):
            raise self.ctx.error(
                node,
                "HB739",
                "EXISTS takes a plain SELECT … FROM … WHERE.",
                "Move GROUP BY and HAVING into a subquery in its FROM clause.",
            )
        match = self._correlated(rows, query, node)
        here, there = (NameScope(each.columns, "SELECT") for each in (match.inner, rows))
        for column in [column for item in query.expressions for column in named_columns(item)]:
            if find(self.ctx, there, column) is None:
                resolve(self.ctx, here, column)
        return match

    def _in(self, rows: BoundRelation, node: exp.In) -> Match:
        query = node.args["query"].unnest()
        tested = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        scope = NameScope(rows.columns, "IN")
        if isinstance(query, exp.Select) and not _shaped(query, but="distinct"):
            match, items = self._correlated(rows, query, node, unit_later=True), query.expressions
            inner = NameScope(match.inner.columns, "SELECT")
            selected = [(is_unit(self.ctx, inner, strip_alias(item)), item) for item in items]
            values = [None if unit else scalar(self.ctx, inner, strip_alias(item)) for unit, item in selected]
        else:
            match = Match(self.bind_subquery(query))
            values = [column.col for column in match.inner.columns]
        if len(values) != len(tested):
            raise self.ctx.error(
                node,
                "HB514",
                f"IN compares {len(tested)} values with {len(values)} columns of a subquery.",
                "Select as many columns as there are values before IN.",
            )
        compared, unit = list[tuple[Expr, Expr]](), match.unit
        pairs = list(match.pairs)
        for value, item in zip(values, tested, strict=True):
            if value is None and is_unit(self.ctx, scope, item):
                unit = True
                continue
            if value is None or (is_unit(self.ctx, scope, item) and match.inner.owner is not None):
                raise self.ctx.error(
                    node,
                    "HB514",
                    "The privacy ID column can only be compared with the privacy ID column of the same entity.",
                    "Write id IN (SELECT id FROM … WHERE …).",
                )
            with self.ctx.without_values():
                outer = self._outer(rows, item)
            pairs.append(_pair(self.ctx, node, outer, value))
            compared.append(pairs[-1])
        match = self._checked(rows, replace(match, pairs=pairs, unit=unit, compared=compared), node)
        return replace(match, along_key=match.unit and not unit)

    def _outer(self, rows: BoundRelation, item: exp.Expr) -> Expr:
        """Bind a value of the outer query that is compared; the privacy ID may be compared with public columns."""
        scope = NameScope(rows.columns, "a subquery's condition")
        if is_unit(self.ctx, scope, item) and rows.owner is not None and rows.owner.kind is not None:
            place = owner_place(self.ctx, scope, item)
            return Col(OWNERS[place], rows.owner.each[place].kind or Kind.TEXT)
        return scalar(self.ctx, scope, item)

    def _scalar(self, rows: BoundRelation, node: exp.Subquery) -> tuple[BoundRelation, Expr]:
        query = node.unnest()
        if not isinstance(query, exp.Select) or _shaped(query) or len(query.expressions) != 1:
            raise self.ctx.error(
                node,
                "HB739",
                "A subquery used as a value must be one aggregate without GROUP BY.",
                "Write (SELECT MAX(x) FROM b WHERE b.id = a.id).",
            )
        (item,) = query.expressions
        match = self._correlated(rows, query, node)
        if not has_aggregate(item) or match.tests:
            raise self.ctx.error(
                node,
                "HB739",
                "A subquery used as a value must aggregate, and can compare its rows with the outer row only by =.",
                "Write (SELECT MAX(x) FROM b WHERE b.id = a.id).",
            )
        private = match.inner.rel if match.inner.owner is not None else None
        binder = UnitAggregateBinder(self.ctx, NameScope(match.inner.columns, "another aggregate"), private)
        value = scalar(self.ctx, NameScope((), "the SELECT of this subquery", binder), strip_alias(item))
        inner = replace(match.inner, rel=binder.rows(match.inner.rel, [inner for _, inner in match.pairs]))
        rows = replace(match, inner=inner).group(self.ctx, rows, "left", binder.aggregates)
        counts = {name for name, inner in binder.aggregates if inner.function.startswith("count")}
        kept = self._where(node, match, value)
        return rows, _counted(self.ctx, node, kept, counts)

    def _where(self, node: exp.Expr, match: Match, value: Expr) -> Expr:
        """Return a value that is read only if the conditions on the outer row alone are true."""
        if not match.conditions:
            return value
        raise self.ctx.error(
            node,
            "HB739",
            "A condition of this subquery reads only the outer row.",
            "Use CASE WHEN … THEN (SELECT …) END instead.",
        )

    # --- correlation ---------------------------------------------------------------------------------------------

    def _correlated(self, rows: BoundRelation, query: exp.Select, node: exp.Expr, *, unit_later: bool = False) -> Match:
        correlation = Correlation(rows)
        inner = self.bind_rows(correlation, query)
        if inner.padded is not None:
            raise padded_error(self.ctx, inner.padded)
        match = Match(inner)
        for part in correlation.parts:
            match = self._compare(rows, match, part)
        return match if unit_later else self._checked(rows, match, node)

    def _compare(self, rows: BoundRelation, match: Match, part: exp.Expr) -> Match:
        """Add a condition that compares the row of the subquery with the outer row."""
        ctx = self.ctx
        here, there = NameScope(match.inner.columns, "WHERE"), NameScope(rows.columns, "WHERE")
        sides = {find(ctx, here, column) is not None for column in named_columns(part)}
        if sides == {False}:
            with ctx.without_values():
                return replace(match, conditions=[*match.conditions, condition(ctx, there, part)])
        if isinstance(part, exp.EQ) or type(part) in _SWAPPED:
            left, right = part.this, part.expression
            inside = [{find(ctx, here, c) is not None for c in named_columns(side)} for side in (left, right)]
            if inside in ([{True}, {False}], [{False}, {True}]):
                swapped = inside[0] == {False}
                inner, outer = (right, left) if swapped else (left, right)
                units = is_unit(ctx, here, inner), is_unit(ctx, there, outer)
                if isinstance(part, exp.EQ) and all(units):
                    return replace(match, unit=True)
                public = isinstance(part, exp.EQ) and match.inner.owner is None
                with ctx.without_values():
                    first = self._outer(rows, outer) if public else scalar(ctx, there, outer)
                second = scalar(ctx, here, inner)
                if isinstance(part, exp.EQ):
                    return replace(match, pairs=[*match.pairs, _pair(ctx, part, first, second)])
                name = (_SWAPPED if swapped else _WRITTEN)[type(part)]
                return replace(match, tests=[*match.tests, (name, second, first)])
        raise self._unsupported(part)

    def _unsupported(self, node: exp.Expr) -> Exception:
        return self.ctx.error(
            node,
            "HB738",
            "This condition between the row of a subquery and the outer row is not supported.",
            "Compare one column of each with =, and at most one with <, <=, >, >= or <>. For the previous or next row "
            "of a person, use LAG or LEAD.",
        )

    def _checked(self, rows: BoundRelation, match: Match, node: exp.Expr) -> Match:
        """Check that the rows which a subquery compares have one owner, or are public."""
        if len(match.tests) > 1:
            raise self._unsupported(node)
        if match.inner.owner is None:
            return match
        self.ctx.check_same_owner(node, "HB514", rows.owner, match.inner.owner)
        if match.inner.owner.others:
            why, remedy = match.inner.owner.mismatch(match.inner.owner)
            raise self.ctx.error(node, "HB514", why, remedy)
        unit = match.unit or owners_agree(rows.rel, match.inner.rel, match.pairs)
        if match.inner.owner.kind is None or not unit:
            raise self._uncorrelated(node, match.inner)
        return replace(match, unit=unit)

    def _uncorrelated(self, node: exp.Expr, inner: BoundRelation) -> Exception:
        if inner.owner is not None and inner.owner.kind is None:
            return self.ctx.error(
                node,
                "HB738",
                "A subquery over a table with row-level privacy would compare a row with other rows.",
                "Use a subquery over public tables.",
            )
        unit = next((c.name for c in inner.columns if c.is_unit), "id")
        return self.ctx.error(
            node,
            "HB740",
            "This subquery would compare one person's row with other people's rows.",
            f"Compare the privacy IDs, as in … WHERE b.{unit} = a.{unit}. For a value about everybody, leave out "
            "conditions on the outer row, as in … > (SELECT AVG(x) FROM b), or run that query first and pass its noisy "
            "result as a parameter.",
        )


def _counted(ctx: Context, node: exp.Expr, value: Expr, counts: set[str]) -> Expr:
    """Read the counts of a person without rows as 0."""
    if isinstance(value, Col) and value.name in counts:
        return apply(ctx, node, "coalesce", [value, _ZERO])
    if isinstance(value, FunctionCall):
        return replace(value, args=tuple(_counted(ctx, node, arg, counts) for arg in value.args))
    return value


def _pair(ctx: Context, node: exp.Expr, outer: Expr, inner: Expr) -> tuple[Expr, Expr]:
    if outer.kind is not inner.kind and not (outer.kind.numeric and inner.kind.numeric):
        raise ctx.error(
            node,
            "HB508",
            f"A value of type {outer.kind.value} is compared with one of type {inner.kind.value}.",
            "CAST one side to the type of the other.",
        )
    return outer, inner


def _shaped(query: exp.Select, but: str = "") -> bool:
    """Tell whether a SELECT has a clause that changes which rows it has."""
    chosen = query.args.get("distinct")
    several = chosen is not None and chosen.args.get("on") is not None
    return several or any(query.args.get(name) is not None for name in _PLAIN if name != but)


def named_columns(part: exp.Expr) -> Iterator[exp.Column]:
    """List the columns in an expression, without those of nested subqueries."""
    for node in part.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            yield node


def subqueries(part: exp.Expr) -> Iterator[exp.Expr]:
    """List the outermost subqueries in an expression, with the EXISTS or IN around each."""
    for node in part.walk(prune=_is_subquery):
        if _is_subquery(node):
            yield node


def _is_subquery(node: exp.Expr) -> bool:
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Exists | exp.Subquery)
