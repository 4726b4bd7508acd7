"""The rows of a subquery that match a row of the outer query, as a join with at most one match for each row.

Tested in tests/sql/test_subqueries.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal as Choice

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_scope import BoundRelation, Context
from hubbub.sql.expressions import Col, Expr, Facts, Literal, facts
from hubbub.sql.relations import Join, PerUnit, UnitAggregate

_FALSE = Literal(False, Kind.BOOLEAN)  # noqa: FBT003
_ZERO = Literal(0, Kind.INTEGER)
#: The extremes of a group that show whether one of its values compares so with another value.
_ENDS: dict[str, tuple[Choice["min", "max"], ...]] = {
    "lt": ("min",),
    "le": ("min",),
    "gt": ("max",),
    "ge": ("max",),
    "ne": ("min", "max"),
}


@dataclass(frozen=True, slots=True)
class Match:
    """How the rows of a subquery match a row of the outer query.

    pairs       (outer, inner) expressions that are equal; the last ones are those of IN, also in `compared`
    unit        whether the privacy IDs are equal
    tests       (comparison, inner, outer): at most one that is not an equality
    conditions  on the outer row alone
    along_key   whether the privacy IDs are equal because IN compares a key, not because the query says so

    Theorem (A subquery about one unit). Let `Match` join a relation with a subquery over private data. Then removing a
    unit removes its rows from the result and changes no others; and no row of the relation is multiplied.
    Proof    The subquery is grouped by the unit and by all its columns that are compared by =, which the join compares,
             too. So a row meets at most one group, of its own unit; and the group is computed from that unit's rows
             alone ("One owner for each row"). Some row r of the group has r.x < y if and only if their minimum has;
             likewise for > and the maximum, and r.x <> y if and only if the minimum or the maximum has.
    Assumes  as "One owner for each row".
    Charges  nothing by itself.
    Tested   tests/sql/test_subqueries.py::test_removing_a_unit_removes_its_rows_and_changes_no_others
             tests/sql/test_subqueries.py::test_answers_are_those_of_the_engine
    """

    inner: BoundRelation
    pairs: list[tuple[Expr, Expr]] = field(default_factory=list)
    unit: bool = False
    tests: list[tuple[str, Expr, Expr]] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    compared: list[tuple[Expr, Expr]] = field(default_factory=list)
    along_key: bool = False

    def group(
        self,
        ctx: Context,
        rows: BoundRelation,
        kind: Choice["inner", "left"],
        aggregates: Iterable[tuple[str, UnitAggregate]],
    ) -> BoundRelation:
        """Join rows with the groups of the subquery, of which each row has at most one."""
        keys, on = list[tuple[str, Expr]](), list[tuple[Expr, Expr]]()
        # a public subquery that compares nothing is the same for all rows: a group of its own, named by a constant
        for outer, inner in self.pairs or ([] if self.unit else [(_ZERO, _ZERO)]):
            col = ctx.new_column("k", inner.kind, facts(inner), 1)
            keys.append((col.name, inner))
            on.append((outer, col))
            ctx.conditions.carry(col, inner)
        computed = tuple(aggregates)
        grouped = PerUnit(self.inner.rel, tuple(keys), computed)
        if kind == "left":
            columns = [*(col for _, col in on), *(each.column for _, each in computed)]
            ctx.conditions.outer_join([col for col in columns if isinstance(col, Col)])
        else:
            for outer, key in on:
                ctx.conditions.equate(outer, key)
        return replace(rows, rel=Join(rows.rel, grouped, kind, tuple(on), self.unit))

    def join(
        self, ctx: Context, node: exp.Expr, rows: BoundRelation, kind: Choice["inner", "left"]
    ) -> tuple[BoundRelation, Expr | None]:
        """Join rows with their matches, and return what else must be true of a match; None: nothing."""
        aggregates, tests = list[tuple[str, UnitAggregate]](), list(self.conditions)
        for name, inner, outer in self.tests:
            compared = []
            for end in _ENDS[name]:
                extreme, column = _aggregate(ctx, end, inner)
                aggregates.append(extreme)
                compared.append(apply(ctx, node, name, [column, outer]))
            tests.append(compared[0] if len(compared) == 1 else apply(ctx, node, "or", compared))
        if kind == "left" and not self.tests:
            count, column = _aggregate(ctx, "count", None)
            aggregates.append(count)
            tests.append(apply(ctx, node, "not", [apply(ctx, node, "is_null", [column])]))
        joined = self.group(ctx, rows, kind, aggregates)
        return joined, None if not tests else tests[0] if len(tests) == 1 else apply(ctx, node, "and", tests)

    def mark(self, ctx: Context, node: exp.Expr, rows: BoundRelation) -> tuple[BoundRelation, Expr]:
        """Join rows with their matches, and return whether a row has one: true or false, never NULL."""
        rows, test = self.join(ctx, node, rows, "left")
        if test is None:
            raise AssertionError("a left join is always tested")
        return rows, apply(ctx, node, "coalesce", [test, _FALSE])

    def nulls(self, ctx: Context, node: exp.Expr, rows: BoundRelation, value: Expr) -> tuple[BoundRelation, Expr, Expr]:
        """Return whether a row has a match at all, and whether a value of one of its matches is NULL."""
        where = apply(ctx, node, "is_null", [value])
        count, whole = _aggregate(ctx, "count", None)
        some, column = _aggregate(ctx, "count", None, where)
        rows = self.group(ctx, rows, "left", [count, some])
        present = apply(ctx, node, "not", [apply(ctx, node, "is_null", [whole])])
        return rows, present, apply(ctx, node, "gt", [apply(ctx, node, "coalesce", [column, _ZERO]), _ZERO])


def _aggregate(
    ctx: Context, function: Choice["count", "min", "max"], argument: Expr | None, where: Expr | None = None
) -> tuple[tuple[str, UnitAggregate], Col]:
    kind, known = (Kind.INTEGER, Facts()) if argument is None else (argument.kind, facts(argument))
    size = 1 if argument is None else ctx.check_size(argument, None)
    col = ctx.new_column(function, kind, replace(known, null=True), size)
    return (col.name, UnitAggregate(function, argument, where, col)), col
