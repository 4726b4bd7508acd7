"""Outer joins of private tables: the privacy ID of a side that may have no match, full joins, rows without a match.

Tested in tests/sql/test_outer_joins.py.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_match import Match
from hubbub.sql.bind_scope import MAX_SCANS, BoundRelation, Context, NameScope, VisibleColumn, find, fold_case
from hubbub.sql.bind_union import common_facts
from hubbub.sql.expressions import Col, Expr, Literal, facts
from hubbub.sql.relations import PRESENT, Filter, Join, Project, Rel, Union, columns, scans

_ONE = Literal(1, Kind.INTEGER)
_NULL = Literal(None, Kind.INTEGER)
Pairs = list[tuple[Expr, Expr]]
#: The columns of one side of an outer join, each with how it can be named after it.
Shown = dict[VisibleColumn, VisibleColumn]


def mark_column(ctx: Context) -> Col:
    """Return a new mark: 1 in the rows of a side that is there, and NULL elsewhere."""
    ctx.marks += 1
    mark = Col(f"{PRESENT}{ctx.marks}", Kind.INTEGER, replace(facts(_ONE), null=True))
    ctx.sizes[mark.name] = 1
    return mark


def with_mark(side: BoundRelation, mark: Col) -> Rel:
    """Add a column to one side of an outer join that is NULL where the side has no match.

    Pruning takes the projection away where no expression reads the mark.
    """
    kept = tuple((column.name, column) for column in columns(side.rel))
    return Project(side.rel, (*kept, (mark.name, _ONE)))


def marked(ctx: Context, side: BoundRelation) -> tuple[BoundRelation, Shown]:
    """Mark the rows of the side of an outer join that may have no match, and return how its privacy ID is named."""
    mark = mark_column(ctx)
    shown = {column: absent(column, mark) if column.col is None else column for column in side.columns}
    return replace(side, rel=with_mark(side, mark)), shown


def absent(column: VisibleColumn, mark: Col, cover: Iterable[str] = ()) -> VisibleColumn:
    """Return a privacy ID column of a side that may have no match."""
    return replace(column, present=column.present or mark, cover=frozenset(cover))


def told_apart(shown: Sequence[VisibleColumn]) -> tuple[VisibleColumn, ...]:
    """Let privacy IDs that may be missing be named by their table alone where another column has the same name."""
    times = Counter(fold_case(column.name) for column in shown)
    return tuple(
        replace(column, qualified=True) if column.present is not None and times[fold_case(column.name)] > 1 else column
        for column in shown
    )


# --- rows without a match ------------------------------------------------------------------------------------------


def tests_for_no_match(
    ctx: Context, left: BoundRelation, right: BoundRelation, pairs: Pairs, where: Sequence[exp.Expr]
) -> bool:
    """Tell whether a condition is true only of rows without a match: a column that the join compares IS NULL."""
    compared = {b.name for _, b in pairs if isinstance(b, Col)}
    other, scope = NameScope(left.columns, "WHERE"), NameScope(right.columns, "WHERE")
    for part in where:
        tested = part.this if isinstance(part, exp.Is) and not part.args.get("negate") else None
        if not isinstance(tested, exp.Column) or not isinstance(part.expression, exp.Null):
            continue
        column = None if isinstance(tested.this, exp.Star) else find(ctx, scope, tested)
        if column is not None and tested.args.get("table") is None and find(ctx, other, tested) is not None:
            continue
        if column is not None and column.present is None and (column.col is None or column.col.name in compared):
            return True
    return False


def with_nulls(ctx: Context, rel: Rel, right: BoundRelation) -> tuple[Rel, Shown]:
    """Add the columns of a side that none of the rows matches: all NULL."""
    mark = mark_column(ctx)
    outputs: list[tuple[str, Expr]] = [*((column.name, column) for column in columns(rel)), (mark.name, _NULL)]
    shown: Shown = {}
    for column in right.columns:
        changed = absent(column, mark)
        if column.col is not None:
            known = replace(facts(column.col), null=True, required=False)
            col = ctx.new_column("x", column.col.kind, known, 1)
            outputs.append((col.name, Literal(None, column.col.kind)))
            changed = replace(column, col=col)
        shown[column] = changed
    return Project(rel, tuple(outputs)), shown


# --- full joins ----------------------------------------------------------------------------------------------------


def full_join(
    ctx: Context,
    node: exp.Join,
    left: BoundRelation,
    right: BoundRelation,
    pairs: Pairs,
    merged: set[str],
    *,
    unit: bool,
) -> BoundRelation:
    """Bind a full join: the rows of a left join, and the rows of the right side that match no row of the left side.

    Theorem (Full join within a unit). Removing one unit from the data removes its rows from a full join of two private
    relations on the unit, and changes no other row.
    Proof    It is the union of a left join on the unit and of the right side's rows whose group in "A subquery about
             one unit" is empty. Each has the property, and so has their union ("One owner for each row"). A row of the
             right side that matches is in the left join and not in the second part, and conversely. Where the join
             compares nothing but the unit, a unit with rows on the left has none in the second part, so that the rows
             of a unit come from one of the two parts (`exclusive`).
    Assumes  as "One owner for each row".
    Charges  nothing by itself.
    Tested   tests/sql/test_outer_joins.py::test_removing_a_unit_removes_its_rows_and_changes_no_others
             tests/sql/test_outer_joins.py::test_rows_are_those_of_the_engine
             tests/sql/test_outer_joins.py::test_no_unit_has_more_rows_than_the_plan_states
    """
    ctx.scans += len([*scans(left.rel), *scans(right.rel)])
    if ctx.scans > MAX_SCANS:
        raise ctx.error(
            node,
            "HB518",
            f"The query reads more than {MAX_SCANS} tables; a full join reads each of its tables twice.",
            "Split it into several queries.",
        )
    here, there = mark_column(ctx), mark_column(ctx)
    matched = Join(with_mark(left, here), with_mark(right, there), "left", tuple(pairs), unit)
    rest, found = Match(left, [(b, a) for a, b in pairs], unit).mark(ctx, node, right)
    alone = Filter(rest.rel, apply(ctx, node, "not", [found]))
    united = United(ctx)
    marks = united.column(here, _NULL, here), united.column(there, _ONE, there)
    shown = list[VisibleColumn]()
    for side, mark in zip((left, right), marks, strict=True):
        moved = {mark.name: mark} | {
            c.present.name: united.of(c.present, first=side is left) for c in side.columns if c.present is not None
        }
        for visible in side.columns:
            twice = fold_case(visible.name) in merged
            if twice and side is left and not visible.qualified:
                shown.append(_merged(united, visible, pairs))
            if visible.col is not None:
                col = united.of(visible.col, first=side is left)
                shown.append(replace(visible, col=col, qualified=visible.qualified or twice))
            elif visible.present is None:
                shown.append(absent(visible, mark, (each.name for each in marks)))
            else:
                cover = {moved[name].name if name in moved else name for name in visible.cover}
                other = {marks[side is left].name} if cover else set[str]()
                shown.append(replace(visible, present=moved[visible.present.name], cover=frozenset(cover | other)))
    parts = Project(matched, tuple(united.values[0])), Project(alone, tuple(united.values[1]))
    rel = Union(parts, tuple(united.columns), exclusive=unit and not pairs)
    return BoundRelation(rel, told_apart(shown), left.owner)


@dataclass
class United:
    """The columns of both parts of an outer join, and what they are in each part."""

    ctx: Context
    columns: list[Col] = field(default_factory=list)
    values: tuple[list[tuple[str, Expr]], list[tuple[str, Expr]]] = field(default_factory=lambda: ([], []))

    def column(self, first: Expr, second: Expr, known: Col) -> Col:
        """Add a column with its value in each part and the facts of another one; it can be NULL."""
        shadow = facts(self.ctx.conditions.shadow(known))
        col = self.ctx.new_column("u", known.kind, replace(shadow, null=True, required=False), 1)
        self.columns.append(col)
        for values, value in zip(self.values, (first, second), strict=True):
            values.append((self.ctx.new_name("x"), value))
        return col

    def kept(self, col: Col) -> Col:
        """Add a column of the side that is in both parts, with the facts that it has."""
        shadow = facts(self.ctx.conditions.shadow(col))
        same = self.ctx.new_column("u", col.kind, shadow, 1)
        self.columns.append(same)
        for values in self.values:
            values.append((self.ctx.new_name("x"), col))
        return same

    def of(self, col: Col, *, first: bool) -> Col:
        """Add a column of the first or the second side, which has no rows of the first side in the second part."""
        return self.column(col, Literal(None, col.kind) if first else col, col)


def _merged(united: United, visible: VisibleColumn, pairs: Pairs) -> VisibleColumn:
    """Return a column in USING: the value of the side that is there, and the privacy ID in every row."""
    if visible.col is None:
        return VisibleColumn(visible.name, None, None, visible.place)
    a, b = next(pair for pair in pairs if pair[0] == visible.col)
    if not isinstance(a, Col) or not isinstance(b, Col):
        raise TypeError("USING names columns")
    kind = a.kind if a.kind is b.kind else Kind.REAL
    shadows = [Col("", kind, facts(united.ctx.conditions.shadow(each))) for each in (a, b)]
    return VisibleColumn(visible.name, None, united.column(a, b, Col("", kind, common_facts(*shadows))))
