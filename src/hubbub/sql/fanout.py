"""How many rows one unit can make: cuts before joins, and a bound on what comes out of them.

A join multiplies. Whoever brings five rows to a table that is joined with itself sixteen times makes 5¹⁶ of them, and
whether the engine bears that is an answer without noise. So each side of a join that multiplies keeps at most so many
rows of a unit (`Cut`), and a plan in which the product is still too large is refused before anything is charged.
Filters on one side are applied before its cut. A side that has at most one row of a unit multiplies nothing, and what
it is joined with needs no cut.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from hubbub.core.schema import Kind, Table
from hubbub.core.unit import Hash
from hubbub.errors import QueryError
from hubbub.sql.expressions import Call, Col, Expr
from hubbub.sql.prune import names
from hubbub.sql.relations import Cut, Filter, Join, PerUnit, Project, Rel, Scan, Union, columns

#: The most rows that one unit may make in a join: every engine sorts so many in seconds, in less than 200 MB.
MOST_JOINED = 1 << 20
#: The most rows of a join of public tables that multiplies: whether an engine computes it at all may depend on whether
#: anybody's row is there to meet it.
MOST_PUBLIC = 1 << 22


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a plan keeps of a unit's rows in each table, and how it chooses."""

    groups: int | None  #: what the query asks for, where it tightens the owner's bounds
    rows: int | None
    salt: str
    hashing: Hash

    def of(self, table: Table) -> int:
        """Give the most rows of one unit that count in a table: so many groups, so many rows in each."""
        unit = table.unit
        if unit is None:
            raise TypeError("a public table has no units")
        return min(unit.groups, self.groups or unit.groups) * min(unit.rows, self.rows or unit.rows)


@dataclass(frozen=True, slots=True)
class Part:
    """A relation, and what bounds the number of its rows of one unit: a product. None: as many as the data has.

    `joins` are the joins in it that multiply, each with the most rows of one unit.
    """

    rel: Rel
    factors: tuple[tuple[str, int], ...] | None
    joins: tuple[tuple[Join, int], ...] = ()

    @property
    def most(self) -> int | None:
        """The bound."""
        return None if self.factors is None else prod(size for _, size in self.factors)


def bounded(rel: Rel, bounds: Bounds) -> Part:
    """Put cuts before the joins that multiply, or refuse the relation; one that does not multiply stays as it is.

    Theorem (Joined rows of a unit). No join of the relation gives more than `MOST_JOINED` rows of one unit, or else it
    gives no more than one for each row that the unit has on one of its sides.
    Proof    By induction over the relation. A filter, a projection and a grouping have no more rows of a unit than what
             they read; a grouping by the unit alone has one. Two private sides meet on the unit, so their rows of one
             unit multiply: where one side has at most one, the other's number stays; else both are bounded, by a cut
             where nothing else bounds them, and the product is checked. A public side has at most `fan_out` rows for
             one row: with 1 the number stays, else the private side is bounded likewise.
    Assumes  A public table is as it was when it was opened.
    Tested   tests/sql/test_truncation.py::test_no_unit_makes_more_rows_than_the_plan_states
    """
    part = _bounded(rel, bounds)
    return part if part.rel is rel else _bounded(_pushed(rel, []), bounds)


def _bounded(rel: Rel, bounds: Bounds) -> Part:
    match rel:
        case Scan():
            return Part(rel, None)
        case Filter() | Project():
            return _over(rel, _bounded(rel.input, bounds))
        case PerUnit():
            part = _bounded(rel.input, bounds)
            return replace(_over(rel, part), factors=part.factors if rel.keys else (("one row a unit", 1),))
        case Union():
            parts = [_bounded(each, bounds) for each in rel.inputs]
            same = all(part.rel is each for part, each in zip(parts, rel.inputs, strict=True))
            sizes = [part.most for part in parts]
            known = [size for size in sizes if size is not None]
            factors = (("rows of a union", sum(known)),) if len(known) == len(sizes) else None
            joins = tuple(join for part in parts for join in part.joins)
            return Part(rel if same else replace(rel, inputs=tuple(part.rel for part in parts)), factors, joins)
        case Join():
            return _join(rel, bounds)
        case Cut():
            raise TypeError("cuts are placed once")


def _over(rel: Filter | Project | PerUnit, part: Part) -> Part:
    return replace(part, rel=rel if part.rel is rel.input else replace(rel, input=part.rel))


def _join(rel: Join, bounds: Bounds) -> Part:
    left = _bounded(rel.left, bounds)
    if not rel.unit:
        rows(rel.right)
        fan = fan_out(rel.right, [b for _, b in rel.on])
        if fan <= 1:
            return replace(left, rel=rel if left.rel is rel.left else replace(rel, left=left.rel))
        left = _cut(left, bounds)
        factors = (*(left.factors or ()), (f"matches of one row in {_named(rel.right)}", fan))
        return _checked(replace(rel, left=left.rel), factors, left.joins)
    right = _bounded(rel.right, bounds)
    if 1 in (left.most, right.most):
        # a left join of one row with others keeps one where there are none
        stays = right if left.most == 1 else left
        same = left.rel is rel.left and right.rel is rel.right
        whole = rel if same else replace(rel, left=left.rel, right=right.rel)
        return Part(whole, stays.factors, left.joins + right.joins)
    left, right = _cut(left, bounds), _cut(right, bounds)
    factors = (left.factors or ()) + (right.factors or ())
    return _checked(replace(rel, left=left.rel, right=right.rel), factors, left.joins + right.joins)


def _cut(part: Part, bounds: Bounds) -> Part:
    if part.factors is not None:
        return part
    size = _size(part.rel, bounds)
    label = f"rows of {_named(part.rel)}"
    return replace(part, rel=Cut(_strict(part.rel), size, bounds.salt, bounds.hashing), factors=((label, size),))


def _size(rel: Rel, bounds: Bounds) -> int:
    """Give what a relation that nothing else bounds is cut to: the bound of its table, for a union the sum."""
    match rel:
        case Scan():
            return bounds.of(rel.table)
        case Union():
            return sum(_size(each, bounds) for each in rel.inputs)
        case Join():
            # one side has one row of a unit, so the other's number stays; a public one is on the right
            sides = [rel.left, rel.right] if rel.unit else [rel.left]
            return max(_size(each, bounds) for each in sides)
        case Cut():
            return rel.rows
        case PerUnit():
            return _size(rel.input, bounds) if rel.keys else 1
        case _:
            return _size(rel.input, bounds)


def _strict(rel: Rel) -> Rel:
    """Look at the declared values in the scan itself: what is not declared shall not be kept as it is."""
    match rel:
        case Scan():
            return replace(rel, loose=frozenset())
        case Union():
            return replace(rel, inputs=tuple(map(_strict, rel.inputs)))
        case Join():
            return replace(rel, left=_strict(rel.left), right=_strict(rel.right))
        case _:
            return replace(rel, input=_strict(rel.input))


def _checked(rel: Join, factors: tuple[tuple[str, int], ...], joins: tuple[tuple[Join, int], ...]) -> Part:
    most = prod(size for _, size in factors)
    if most <= MOST_JOINED:
        return Part(rel, factors, (*joins, (rel, most)))
    largest = max(factors, key=lambda factor: factor[1])
    shown = " × ".join(f"{size:,}" for _, size in factors)
    raise QueryError(
        "HB524",
        f"one unit could make {most:,} rows by this join ({shown}); at most {MOST_JOINED:,} can be. The largest factor "
        f"is {largest[1]:,} {largest[0]}.",
        "Pass smaller rows= or groups=, join fewer tables, or first group a table by the unit in a sub-query.",
    )


def _named(rel: Rel) -> str:
    """Name the tables of a relation."""
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
    """Bound how many rows of a public relation agree on what is joined on; what is no bare column tells nothing."""
    return _fan(rel, {expr.name for expr in on if isinstance(expr, Col)})


def rows(rel: Rel) -> int | None:
    """Bound how many rows a public relation has, where its tables were counted; refuse it where they are too many.

    Theorem (Work of public data). Let a private relation meet a public one. What the engine may leave undone where
    nobody's row is there (the joins inside the public relation, and functions of its columns) is at most `MOST_PUBLIC`
    rows for each join that multiplies, and at most `work.MOST_PUBLIC` characters for each condition.
    Proof    A join has for each row on the left at most `fan_out` rows on the right; the product is checked where a row
             has more than one. Conditions on public columns are weighed by `work.weighed`, with the rows of the
             relation that the columns are of, wherever they stand: an engine moves them to the table.
    Assumes  A public table is as it was when it was opened.
    Tested   tests/sql/test_truncation.py::test_public_tables_that_make_too_many_rows_are_refused
             tests/sql/test_row_cost.py::test_too_much_work_on_a_public_table_is_refused
    """
    match rel:
        case Scan():
            return rel.table.size
        case Filter() | Project():
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
            if left * fan > MOST_PUBLIC:
                raise QueryError(
                    "HB524",
                    f"the public tables {_named(rel)} can make {left * fan:,} rows by this join ({left:,} × {fan:,}); "
                    f"at most {MOST_PUBLIC:,} can be.",
                    "Join them on `unique` columns, join each with the private table, or leave one out.",
                )
            return left * fan
        case _:
            raise TypeError("public relations are neither grouped nor cut")


def _uncounted(name: str) -> QueryError:
    return QueryError(
        "HB525",
        f"it is not known how many rows of the public table {name} one row can meet.",
        "Declare `unique` columns of that table, or open it with hubbub.open, which counts them.",
    )


def _fan(rel: Rel, on: set[str]) -> int:
    match rel:
        case Scan():
            return _repeats(rel, on)
        case Filter():
            return _fan(rel.input, on)
        case Project():
            return _fan(rel.input, {expr.name for name, expr in rel.outputs if name in on and isinstance(expr, Col)})
        case Join():
            mine = {column.name for column in columns(rel.left)}
            joined = {expr.name for _, expr in rel.on if isinstance(expr, Col)}
            matches = _fan(rel.right, joined | (on - mine))
            return _fan(rel.left, on & mine) * (max(1, matches) if rel.kind == "left" else matches)
        case Union():
            places = [place for place, column in enumerate(rel.columns) if column.name in on]
            return sum(_fan(each, {columns(each)[place].name for place in places}) for each in rel.inputs)
        case _:
            raise TypeError("public relations are neither grouped nor cut")


def _repeats(rel: Scan, on: set[str]) -> int:
    table = rel.table
    sources = {source for column, source in zip(rel.columns, rel.sources, strict=True) if column.name in on}
    if table.unique is not None and set(table.unique) <= sources:
        # values outside a declared list are read as one
        return max(1, table.repeats.get(table.unique[0], 1)) if len(table.unique) == 1 else 1
    if table.size is None:
        raise _uncounted(table.name)
    return min([table.size, *(table.repeats[source] for source in sources if source in table.repeats)])


# --- filters -----------------------------------------------------------------------------------------------------


def _pushed(rel: Rel, predicates: Sequence[Expr]) -> Rel:
    """Apply conditions as early as the columns that they name are there, so that cuts keep rows that count."""
    match rel:
        case Filter():
            return _pushed(rel.input, [*predicates, *_conjuncts(rel.predicate)])
        case Project():
            bare = {name: expr for name, expr in rel.outputs if isinstance(expr, Col)}
            below = [each for each in predicates if names(each) <= bare.keys()]
            rest = [each for each in predicates if not names(each) <= bare.keys()]
            return _filtered(replace(rel, input=_pushed(rel.input, [_renamed(each, bare) for each in below])), rest)
        case Join():
            mine, theirs = ({column.name for column in columns(side)} for side in (rel.left, rel.right))
            first = [each for each in predicates if names(each) <= mine]
            second = [
                each for each in predicates if rel.kind == "inner" and each not in first and names(each) <= theirs
            ]
            rest = [each for each in predicates if each not in first and each not in second]
            return _filtered(replace(rel, left=_pushed(rel.left, first), right=_pushed(rel.right, second)), rest)
        case Union():
            return _filtered(replace(rel, inputs=tuple(_pushed(each, []) for each in rel.inputs)), predicates)
        case PerUnit():
            return _filtered(replace(rel, input=_pushed(rel.input, [])), predicates)
        case Scan() | Cut():
            return _filtered(rel, predicates)


def _filtered(rel: Rel, predicates: Sequence[Expr]) -> Rel:
    if not predicates:
        return rel
    whole = predicates[0] if len(predicates) == 1 else Call("and", tuple(predicates), Kind.BOOLEAN)
    return Filter(rel, whole)


def _conjuncts(expr: Expr) -> Iterable[Expr]:
    if isinstance(expr, Call) and expr.function == "and":
        for arg in expr.args:
            yield from _conjuncts(arg)
    else:
        yield expr


def _renamed(expr: Expr, known: dict[str, Col]) -> Expr:
    if isinstance(expr, Col):
        return known[expr.name]
    return replace(expr, args=tuple(_renamed(arg, known) for arg in expr.args)) if isinstance(expr, Call) else expr
