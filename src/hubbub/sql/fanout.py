"""Bound the number of rows that one unit can produce in joins.

Joins multiply rows: a unit with five rows in a table that is joined with itself sixteen times produces 5¹⁶ rows, and
whether the engine can handle that is a result without noise. Each side of a join that multiplies is therefore truncated
to a maximum number of rows per unit (`Cut`), and a plan whose product is still too large is rejected before anything is
charged. Filters on one side are applied before its truncation. A side with at most one row per unit multiplies nothing,
so the other side needs no truncation.

Tested in tests/sql/test_truncation.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal as Choice

from hubbub.core.schema import Table
from hubbub.core.unit import Hash
from hubbub.errors import QueryError
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.filter_pushdown import pushed_down
from hubbub.sql.numbered import most_rows
from hubbub.sql.references import matches_once
from hubbub.sql.relations import (
    Filter,
    Join,
    PerUnit,
    Project,
    Rel,
    Scan,
    Truncate,
    Union,
    UnitWindow,
    columns,
    owned,
    owner_columns,
)
from hubbub.sql.released_tables import is_written

#: Maximum number of joined rows per unit. Every engine sorts them in seconds, in less than 200 MB.
MAX_JOINED_ROWS = 1 << 20
#: Maximum number of rows per unit on each side of a join that multiplies, where the owner declares no bound.
MAX_AUTO_ROWS = 1 << 10
#: Maximum number of rows of a join of public tables that multiplies. An engine may skip such a join if no private row
#: matches it.
MAX_PUBLIC_ROWS = 1 << 22


@dataclass(frozen=True, slots=True)
class TruncationBounds:
    """How many rows of a unit a plan keeps in each table, and how they are chosen."""

    groups: int | None  #: the query's own bounds, if tighter than the owner's
    rows: int | None
    salt: str
    hashing: Hash

    def of(self, table: Table) -> int:
        """Return the maximum number of rows per unit in a table: groups times rows per group."""
        unit = table.unit
        if unit is None:
            raise TypeError("a public table has no units")
        if unit.auto:
            given = unit.rows if self.rows is None else self.rows * (self.groups or 1)
            return min(unit.rows, MAX_AUTO_ROWS, given)
        most = min(unit.groups, self.groups or unit.groups) * min(unit.rows, self.rows or unit.rows)
        return most if unit.rows_total is None else min(most, unit.rows_total)


@dataclass(frozen=True, slots=True)
class BoundedRelation:
    """A relation and the factors whose product bounds its number of rows per unit. None: unbounded.

    `joins` are its joins that multiply, each with the maximum number of rows per unit.
    """

    rel: Rel
    factors: tuple[tuple[str, int], ...] | None
    joins: tuple[tuple[Join, int], ...] = ()

    @property
    def most(self) -> int | None:
        """The bound."""
        return None if self.factors is None else prod(size for _, size in self.factors)


def contribution(rel: Rel) -> ContributionBounds:
    """Return how many groups and rows in each one unit has in a relation, from the bounds of its tables.

    In a join of private tables both multiply; a public table multiplies the rows by its matches of one row, and a list
    of values that the query writes the groups as well.
    """
    match rel:
        case Scan():
            unit = rel.table.unit
            if unit is None:
                raise TypeError("a public table has no units")
            # with a maximum of one row there is nothing to find
            return ContributionBounds(unit.groups, unit.rows, unit.auto and unit.rows > 1, unit.rows_total)
        case Filter():
            return _numbered(contribution(rel.input), most_rows(rel))
        case Project() | UnitWindow() | Truncate():
            return contribution(rel.input)
        case PerUnit():
            return contribution(rel.input) if rel.keys else ContributionBounds(1, 1)
        case Union():
            parts = [contribution(each) for each in rel.inputs]
            auto = any(part.auto for part in parts)
            most = [_total(part) for part in parts] if any(part.total for part in parts) else None
            joined = max if rel.exclusive else sum
            groups, rows = max(part.groups for part in parts), joined(part.rows for part in parts)
            return _joint(groups, rows, None if most is None else joined(most), parts, auto=auto)
        case Join():
            return _joined(rel)


def _joined(rel: Join) -> ContributionBounds:
    left = contribution(rel.left)
    if not rel.unit:
        fan = max(1, fan_out(rel.right, [b for _, b in rel.on]))
        total = None if left.total is None else left.total * fan
        rows = min(left.rows * fan, MAX_JOINED_ROWS)
        if fan > 1 and isinstance(rel.right, Scan) and is_written(rel.right.table) and not left.auto:
            # the elements of a list are often groups: one row is then in as many, with no more rows in all of them
            groups = min(left.groups * fan, MAX_JOINED_ROWS)
            return ContributionBounds(groups, rows, total=_total(left) * fan).within_total()
        return left if left.auto else ContributionBounds(left.groups, rows, total=total)
    kept = _kept_side(rel)
    if kept == "left":
        return left
    right = contribution(rel.right)
    if 1 in (left.groups * left.rows, right.groups * right.rows):
        return right if left.groups * left.rows == 1 else left
    if kept == "right":
        return right
    parts = [left, right]
    auto = left.auto or right.auto
    both = _total(left) * _total(right) if left.total or right.total else None
    return _joint(left.groups * right.groups, left.rows * right.rows, both, parts, auto=auto)


def _kept_side(rel: Join) -> Choice["left", "right"] | None:
    """Return the side of a join of private relations whose rows match at most one row of the other; None: neither.

    A left join also keeps unmatched rows of its left side, so that only the left side can be such a side.
    """
    if matches_once(rel.right, [b for _, b in rel.on]):
        return "left"
    return "right" if rel.kind == "inner" and matches_once(rel.left, [a for a, _ in rel.on]) else None


def _numbered(bounds: ContributionBounds, most: int | None) -> ContributionBounds:
    """Return closer bounds where the query keeps rows by their number within the unit."""
    if most is None or most >= _total(bounds):
        return bounds
    return ContributionBounds(min(bounds.groups, most), min(bounds.rows, most), total=None if most == 1 else most)


def _total(bounds: ContributionBounds) -> int:
    return bounds.groups * bounds.rows if bounds.total is None else bounds.total


def _joint(
    groups: int, rows: int, total: int | None, parts: Sequence[ContributionBounds], *, auto: bool
) -> ContributionBounds:
    """Return the bounds of several relations together; the maximum of bounds that are found is the largest."""
    if not auto:
        return ContributionBounds(min(groups, MAX_JOINED_ROWS), min(rows, MAX_JOINED_ROWS), total=total)
    most = max(part.rows for part in parts if part.auto)
    return ContributionBounds(most, most, auto=True)


def bound_joins(rel: Rel, bounds: TruncationBounds) -> BoundedRelation:
    """Truncate the inputs of joins that multiply, or raise an error; other relations stay unchanged.

    Theorem (Joined rows of a unit). No join of the relation gives more than `MAX_JOINED_ROWS` rows of one unit, or else
    it gives no more than one for each row that the unit has on one of its sides.
    Proof    By induction over the relation. A filter, a projection and a grouping have no more rows of a unit than what
             they read; a grouping by the unit alone has one. Two private sides meet on the unit, so their rows of one
             unit multiply: where one side has at most one, the other's number stays; else both are bounded, by a cut
             where nothing else bounds them, and the product is checked. Where the columns that the join compares decide
             the row of one side ("One match"), the other's number stays. A public side has at most `fan_out` rows for
             one row: with 1 the number stays, and where each row is a unit, because the join then drops keys that occur
             twice; else the private side is bounded likewise.
    Assumes  A public table is as it was when it was opened.
    Tested   tests/sql/test_truncation.py::test_no_unit_makes_more_rows_than_the_plan_states
    """
    part = _bounded(rel, bounds)
    return part if part.rel is rel else _bounded(pushed_down(rel, []), bounds)


def undeclared_cut(rel: Rel) -> int | None:
    """Return how many rows of a unit a join keeps of a table without a declared bound; None if it cuts none."""
    return min(_cuts(bound_joins(rel, TruncationBounds(None, None, "", "engine")).rel), default=None)


def _cuts(rel: Rel) -> Iterator[int]:
    match rel:
        case Truncate():
            if contribution(rel.input).auto:
                yield rel.rows
        case Union():
            for each in rel.inputs:
                yield from _cuts(each)
        case Join():
            yield from _cuts(rel.left)
            yield from _cuts(rel.right)
        case Filter() | Project() | PerUnit() | UnitWindow():
            yield from _cuts(rel.input)


def _bounded(rel: Rel, bounds: TruncationBounds) -> BoundedRelation:
    match rel:
        case Scan():
            return BoundedRelation(rel, None)
        case Filter() | Project() | UnitWindow():
            part, most = _over(rel, _bounded(rel.input, bounds)), most_rows(rel)
            if most is None or (part.most is not None and part.most <= most):
                return part
            return replace(part, factors=(("numbered rows", most),))
        case PerUnit():
            part = _bounded(rel.input, bounds)
            return replace(_over(rel, part), factors=part.factors if rel.keys else (("one row a unit", 1),))
        case Union():
            parts = [_bounded(each, bounds) for each in rel.inputs]
            same = all(part.rel is each for part, each in zip(parts, rel.inputs, strict=True))
            sizes = [part.most for part in parts]
            known = [size for size in sizes if size is not None]
            most = max(known, default=0) if rel.exclusive else sum(known)
            factors = (("rows of a union", most),) if len(known) == len(sizes) else None
            joins = tuple(join for part in parts for join in part.joins)
            return BoundedRelation(
                rel if same else replace(rel, inputs=tuple(part.rel for part in parts)), factors, joins
            )
        case Join():
            return _join(rel, bounds)
        case Truncate():
            raise TypeError("the relation is already truncated")


def _over(rel: Filter | Project | PerUnit | UnitWindow, part: BoundedRelation) -> BoundedRelation:
    return replace(part, rel=rel if part.rel is rel.input else replace(rel, input=part.rel))


def _join(rel: Join, bounds: TruncationBounds) -> BoundedRelation:
    left = _bounded(rel.left, bounds)
    if len(owner_columns(rel.left)) > 1:
        return _with_two_owners(rel, left, bounds)
    if not rel.unit:
        rows(rel.right)
        fan = fan_out(rel.right, [b for _, b in rel.on])
        # where each row is a unit, the rendered join drops keys that occur twice
        if fan <= 1 or not owned(rel.left):
            return replace(left, rel=rel if left.rel is rel.left else replace(rel, left=left.rel))
        left = _cut(left, bounds)
        factors = (*(left.factors or ()), (f"matches of one row in {_named(rel.right)}", fan))
        return _checked(replace(rel, left=left.rel), factors, left.joins)
    right = _bounded(rel.right, bounds)
    kept = _kept_side(rel)
    if kept is not None:
        same = left.rel is rel.left and right.rel is rel.right
        joined = rel if same else replace(rel, left=left.rel, right=right.rel)
        return BoundedRelation(joined, (left if kept == "left" else right).factors, left.joins + right.joins)
    # a side that is cut to one row multiplies nothing, so the other stays whole
    left, right = (_cut(side, bounds) if _size(side.rel, bounds) == 1 else side for side in (left, right))
    if 1 in (left.most, right.most):
        # a left join of one row keeps it even without a match
        stays = right if left.most == 1 else left
        same = left.rel is rel.left and right.rel is rel.right
        joined = rel if same else replace(rel, left=left.rel, right=right.rel)
        return BoundedRelation(joined, stays.factors, left.joins + right.joins)
    left, right = _cut(left, bounds), _cut(right, bounds)
    factors = (left.factors or ()) + (right.factors or ())
    return _checked(replace(rel, left=left.rel, right=right.rel), factors, left.joins + right.joins)


def _with_two_owners(rel: Join, left: BoundedRelation, bounds: TruncationBounds) -> BoundedRelation:
    """Bound the matches of one row. Rows with two owners are not cut: the cut of one owner would move the other's."""
    if rel.unit:
        right, once = _bounded(rel.right, bounds), matches_once(rel.right, [b for _, b in rel.on])
        right = right if once else _cut(right, bounds)
        fan, joined = 1 if once else right.most or 1, replace(rel, left=left.rel, right=right.rel)
    else:
        rows(rel.right)
        fan, joined = fan_out(rel.right, [b for _, b in rel.on]), replace(rel, left=left.rel)
    factors = (*(left.factors or ()), (f"matches of one row in {_named(rel.right)}", max(1, fan)))
    most = prod(size for _, size in factors)
    if most > MAX_AUTO_ROWS:
        raise QueryError(
            "HB762",
            f"One row could match {most:,} rows in this join; the maximum is {MAX_AUTO_ROWS:,} where rows have two "
            "owners.",
            "Join fewer tables, or join on columns with fewer equal values.",
        )
    return BoundedRelation(joined, factors, left.joins)


def _cut(part: BoundedRelation, bounds: TruncationBounds) -> BoundedRelation:
    if part.factors is not None:
        return part
    size = _size(part.rel, bounds)
    label = f"rows of {_named(part.rel)}"
    return replace(part, rel=Truncate(strict(part.rel), size, bounds.salt, bounds.hashing), factors=((label, size),))


def _size(rel: Rel, bounds: TruncationBounds) -> int:
    """Return the number of rows per unit to which a relation is truncated: the bound of its table."""
    match rel:
        case Scan():
            return bounds.of(rel.table)
        case Union():
            return sum(_size(each, bounds) for each in rel.inputs)
        case Join():
            # one side has one row per unit, so the other side determines the number; a public side is on the right
            kept = _kept_side(rel) if rel.unit else "left"
            sides = [side for side, name in ((rel.left, "left"), (rel.right, "right")) if kept in (name, None)]
            return max(_size(each, bounds) for each in sides)
        case Truncate():
            return rel.rows
        case PerUnit():
            return _size(rel.input, bounds) if rel.keys else 1
        case _:
            return _size(rel.input, bounds)


def strict(rel: Rel) -> Rel:
    """Apply the declared values in the scan itself, so that undeclared values do not reach the truncation."""
    match rel:
        case Scan():
            return replace(rel, loose=frozenset())
        case Union():
            return replace(rel, inputs=tuple(map(strict, rel.inputs)))
        case Join():
            return replace(rel, left=strict(rel.left), right=strict(rel.right))
        case _:
            return replace(rel, input=strict(rel.input))


def _checked(rel: Join, factors: tuple[tuple[str, int], ...], joins: tuple[tuple[Join, int], ...]) -> BoundedRelation:
    most = prod(size for _, size in factors)
    if most <= MAX_JOINED_ROWS:
        return BoundedRelation(rel, factors, (*joins, (rel, most)))
    largest = max(factors, key=lambda factor: factor[1])
    shown = " × ".join(f"{size:,}" for _, size in factors)
    raise QueryError(
        "HB524",
        f"One unit could produce {most:,} rows in this join ({shown}); the maximum is {MAX_JOINED_ROWS:,}. The largest "
        f"factor is {largest[1]:,} {largest[0]}.",
        "Pass a smaller rows= or groups=, join fewer tables, or first group a table by the unit in a subquery.",
    )


def _named(rel: Rel) -> str:
    """Return the names of the tables of a relation."""
    match rel:
        case Scan():
            return rel.table.name
        case Join():
            return f"{_named(rel.left)} and {_named(rel.right)}"
        case Union():
            return " and ".join(dict.fromkeys(map(_named, rel.inputs)))
        case _:
            return _named(rel.input)


# --- public tables -----------------------------------------------------------------------------------------------


def fan_out(rel: Rel, on: Sequence[Expr]) -> int:
    """Bound the number of rows of a public relation that share a join key; only plain columns narrow the bound."""
    return _fan(rel, {expr.name for expr in on if isinstance(expr, Col)})


def rows(rel: Rel) -> int | None:
    """Bound the number of rows of a public relation whose tables were counted, or raise an error if it is too large.

    Theorem (Work of public data). Let a private relation meet a public one. What the engine may leave undone where
    nobody's row is there (the joins inside the public relation, and functions of its columns) is at most
    `MAX_PUBLIC_ROWS` rows for each join that multiplies, and at most `row_cost.MAX_PUBLIC_WORK` characters for each
    condition.
    Proof    A join has for each row on the left at most `fan_out` rows on the right; the product is checked where a row
             has more than one. Conditions on public columns are weighed by `row_cost.check_row_cost`, with the rows
             of the relation that the columns are of, wherever they stand: an engine moves them to the table.
    Assumes  A public table is as it was when it was opened.
    Tested   tests/sql/test_truncation.py::test_public_tables_that_make_too_many_rows_are_refused
             tests/sql/test_row_cost.py::test_too_much_work_on_a_public_table_is_refused
    """
    match rel:
        case Scan():
            return rel.table.size
        case Filter() | Project() | PerUnit() | UnitWindow():
            return rows(rel.input)
        case Union():
            sizes = [rows(each) for each in rel.inputs]
            known = [size for size in sizes if size is not None]
            return sum(known) if len(known) == len(sizes) else None
        case Join():
            left, fan = rows(rel.left), fan_out(rel.right, [b for _, b in rel.on])
            rows(rel.right)
            if fan <= 1:
                return left
            if left is None:
                raise _uncounted(_named(rel.left))
            if left * fan > MAX_PUBLIC_ROWS:
                raise QueryError(
                    "HB524",
                    f"The public tables {_named(rel)} could produce {left * fan:,} rows in this join "
                    f"({left:,} × {fan:,}); the maximum is {MAX_PUBLIC_ROWS:,}.",
                    "Join them on `unique` columns, join each with the private table, or remove one.",
                )
            return left * fan
        case Truncate():
            raise TypeError("public relations are not cut")


def _uncounted(name: str) -> QueryError:
    return QueryError(
        "HB525",
        f"The number of rows of the public table {name} that match one row is unknown.",
        "Declare its `unique` columns, or open it with hubbub.open, which counts its rows.",
    )


def _fan(rel: Rel, on: set[str]) -> int:
    match rel:
        case Scan():
            return _repeats(rel, on)
        case Filter() | UnitWindow():
            return _fan(rel.input, on)
        case Project():
            return _fan(rel.input, {expr.name for name, expr in rel.outputs if name in on and isinstance(expr, Col)})
        case PerUnit():
            if {name for name, _ in rel.keys} <= on:
                return 1
            return _fan(rel.input, {expr.name for name, expr in rel.keys if name in on and isinstance(expr, Col)})
        case Join():
            left_names = {column.name for column in columns(rel.left)}
            joined = {expr.name for _, expr in rel.on if isinstance(expr, Col)}
            matches = _fan(rel.right, joined | (on - left_names))
            return _fan(rel.left, on & left_names) * (max(1, matches) if rel.kind == "left" else matches)
        case Union():
            places = [place for place, column in enumerate(rel.columns) if column.name in on]
            return sum(_fan(each, {columns(each)[place].name for place in places}) for each in rel.inputs)
        case Truncate():
            raise TypeError("public relations are not cut")


def _repeats(rel: Scan, on: set[str]) -> int:
    table = rel.table
    sources = {source for column, source in zip(rel.columns, rel.sources, strict=True) if column.name in on}
    if table.unique is not None and set(table.unique) <= sources:
        # all values outside a declared list are read as one value
        return max(1, table.repeats.get(table.unique[0], 1)) if len(table.unique) == 1 else 1
    if table.size is None:
        raise _uncounted(table.name)
    return min([table.size, *(table.repeats[source] for source in sources if source in table.repeats)])
