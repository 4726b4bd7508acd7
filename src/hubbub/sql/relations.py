"""Bound relations. One privacy unit owns each row, which is computed from that unit's rows and public data alone.

All sensitivities rest on this invariant: removing one unit from the data removes exactly the rows that it owns from
every relation, and changes no other row. No operator here breaks it. A relation over private data has its owner in the
column `UNIT`. In a table with row-level privacy each row owns itself, and no operator may duplicate it.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import assert_never

from hubbub.core.schema import Kind, Table
from hubbub.core.unit import Hash
from hubbub.sql.expressions import Col, Expr, Literal, facts

#: The owner's column in a relation over private data. Analysts cannot name it, because binding renames their columns.
UNIT = "$unit"
#: The columns of the owners of a row, if it has two: every owner is protected.
OWNERS = (UNIT, "$unit2")
#: How the names of columns start that are NULL where one side of an outer join has no match.
PRESENT = "$present"


@dataclass(frozen=True, slots=True)
class Scan:
    """The visible columns of a table with the declared facts enforced: clamped, NaN to NULL, no rows without an owner.

    Where rows belong to the owner of a row of another table, the scan finds that owner (`sql.owner_path`).

    A value outside a declared list becomes the declared `other`, or NULL. Columns in `loose` are only keys of the whole
    query, whose cells drop such values anyway, so the scan does not check their lists. Texts in `short` are truncated
    to `MAX_TEXT_LENGTH` characters; planning sets it. Only rendering sets `exact`, columns that are also given in
    the exact form in which owners are compared (`exact_name`), and `joined`: a join finds the owner, not the scan.
    Statements that run in parts set `part` (`sql.unit_parts`).
    """

    table: Table
    columns: tuple[Col, ...]  #: named by binding; `sources[i]` is the table's column
    sources: tuple[str, ...]
    loose: frozenset[str] = frozenset()  #: bound names
    short: frozenset[str] = field(default=frozenset(), repr=False)  #: bound names
    exact: tuple[str, ...] = field(default=(), repr=False)  #: bound names
    joined: bool = field(default=False, repr=False)
    part: tuple[int, int] | None = field(default=None, repr=False)  #: only the units of one part, of so many


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which a predicate is true."""

    input: "Rel"
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Project:
    """New columns computed from each row, which keeps its owner."""

    input: "Rel"
    outputs: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """An equality join: with a public right side, or of two private sides on the privacy ID.

    A left join keeps the rows of the left side, which is private if either side is. `on` has pairs (left, right). With
    `unit` the owners are equal too. Under row-level privacy, the right side is public and unique on its columns of
    `on`. Where rows of the left side have two owners, `place` tells which of them the right side has. With `along`,
    which only rendering sets, exact columns are equal instead of the owners (`sql.owner_joins`).
    """

    left: "Rel"
    right: "Rel"
    kind: Choice["inner", "left"]
    on: tuple[tuple[Expr, Expr], ...]
    unit: bool
    place: int = 0
    along: tuple[tuple[str, str], ...] = field(default=(), repr=False)  #: pairs of columns in `Scan.exact`


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of several relations of one entity with the same columns, by position.

    With `exclusive`, all rows of a unit come from one of them.
    """

    inputs: tuple["Rel", ...]
    columns: tuple[Col, ...]
    exclusive: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row per privacy unit and combination of keys. Its aggregates read the rows of one unit.

    Without aggregates this is DISTINCT within the unit. Of a public relation, one row per combination of keys; `whole`:
    an aggregation without GROUP BY, which has one row even where there is none to read, named by a constant key.
    """

    input: "Rel"
    keys: tuple[tuple[str, Expr], ...]
    aggregates: tuple[tuple[str, "UnitAggregate"], ...]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class UnitAggregate:
    """An exact aggregate over the rows of one unit, total on every input."""

    function: Choice["count", "count_distinct", "sum", "avg", "min", "max"]
    argument: Expr | None
    where: Expr | None
    column: Col  #: the result, with kind and facts


@dataclass(frozen=True, slots=True)
class SortTerm:
    """A term of the ORDER BY of a window."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function of the rows of one unit around each of them.

    Rows that tie in the order are ordered by all their columns, except where ties have a meaning: in the functions of
    `PEERS`, and in an aggregate without `frame`.

    partition  besides the unit
    frame      the first and last row that are read, counted from the current one (None: all); without a frame, an
               aggregate reads the rows up to the current one and its peers, or all rows if there is no order
    number     the offset of lag and lead, the place of nth_value, the number of buckets of ntile
    default    of lag and lead where there is no such row
    distance   the frame counts values of the order instead of rows
    """

    function: str
    argument: Expr | None
    partition: tuple[Expr, ...]
    order: tuple[SortTerm, ...]
    column: Col  #: the result, with kind and facts
    frame: tuple[int | None, int | None] | None = None
    number: int = 1
    default: Literal | None = None
    distance: bool = False


#: Functions in which rows that tie in the order have the same value.
PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


@dataclass(frozen=True, slots=True)
class UnitWindow:
    """All rows, each with new columns that are computed from the rows of its unit. It reads all rows of a unit."""

    input: "Rel"
    functions: tuple[tuple[str, WindowFunction], ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """At most `rows` rows of each unit, in the order of a salted hash of its rows. Only plans contain it."""

    input: "Rel"
    rows: int
    salt: str = field(repr=False)
    hashing: Hash


Rel = Scan | Filter | Project | Join | Union | PerUnit | UnitWindow | Truncate

#: Maximum length of texts that functions read; the scan truncates longer ones.
MAX_TEXT_LENGTH = 4_096


def window_expressions(function: WindowFunction) -> tuple[Expr, ...]:
    """Return the expressions that a window function reads."""
    argument = () if function.argument is None else (function.argument,)
    return (*argument, *function.partition, *(term.expr for term in function.order))


def filtered_scans(rel: Rel) -> Iterator[tuple[Scan, Expr | None]]:
    """List the scans of a relation, each with the condition directly above it."""
    match rel:
        case Filter() if isinstance(rel.input, Scan):
            yield rel.input, rel.predicate
        case Scan():
            yield rel, None
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            yield from filtered_scans(rel.input)
        case Join():
            yield from filtered_scans(rel.left)
            yield from filtered_scans(rel.right)
        case Union():
            for each in rel.inputs:
                yield from filtered_scans(each)
        case _:
            assert_never(rel)


def scans(rel: Rel) -> Iterator[Scan]:
    """List the scans of a relation."""
    return (scan for scan, _ in filtered_scans(rel))


def columns(rel: Rel) -> tuple[Col, ...]:
    """Return the columns of a relation, without the owner's."""
    match rel:
        case Scan() | Union():
            return rel.columns
        case Filter() | Truncate():
            return columns(rel.input)
        case Project():
            return tuple(Col(name, expr.kind, facts(expr)) for name, expr in rel.outputs)
        case Join():
            return columns(rel.left) + columns(rel.right)
        case PerUnit():
            keys = tuple(Col(name, expr.kind, facts(expr)) for name, expr in rel.keys)
            return keys + tuple(inner.column for _, inner in rel.aggregates)
        case UnitWindow():
            return columns(rel.input) + tuple(each.column for _, each in rel.functions)


def owned(rel: Rel) -> bool:
    """Tell whether a relation has the column UNIT: not if it is public, nor under row-level privacy."""
    match rel:
        case Scan():
            return rel.table.unit is not None and rel.table.unit.column is not None
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return owned(rel.input)
        case Join():
            return owned(rel.left)
        case Union():
            return owned(rel.inputs[0])


def owner_columns(rel: Rel) -> tuple[str, ...]:
    """Return the columns of the owners of each row: none, UNIT, or two."""
    match rel:
        case Scan():
            return OWNERS[: len(rel.table.owners)] if owned(rel) and not rel.joined else ()
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return owner_columns(rel.input)
        case Join():
            return owner_columns(rel.left) or (owner_columns(rel.right) if rel.along else ())
        case Union():
            return owner_columns(rel.inputs[0])


def exact_name(name: str) -> str:
    """Return the name of a column in the exact form in which owners are compared."""
    return f"$exact_{name}"


def exact_columns(rel: Rel) -> tuple[str, ...]:
    """Return the names of the exact columns of a relation, which only some operators pass on."""
    match rel:
        case Scan():
            return tuple(map(exact_name, rel.exact))
        case Filter() | Project():
            return exact_columns(rel.input)
        case Join():
            return exact_columns(rel.left) + exact_columns(rel.right)
        case _:
            return ()


def public(rel: Rel) -> bool:
    """Tell whether a relation contains only public data: a join with private data has the public side on the right."""
    match rel:
        case Scan():
            return rel.table.unit is None
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return public(rel.input)
        case Join():
            return public(rel.left)
        case Union():
            return public(rel.inputs[0])


def owner_kind(rel: Rel, place: int = 0) -> Kind:
    """Return the kind of the column UNIT, or of another owner; it is the same in all tables of one entity."""
    match rel:
        case Scan():
            unit = rel.table.owners[place] if rel.table.owners else None
            if unit is not None and unit.path is not None:
                return unit.path.kind
            if unit is not None and unit.period is not None:
                return Kind.TEXT
            named = None if unit is None or unit.column is None else rel.table.column(unit.column)
            # a privacy ID column without a declared type is compared as text
            return Kind.TEXT if named is None else named.kind
        case Join():
            return owner_kind(rel.left, place)
        case Union():
            return owner_kind(rel.inputs[0], place)
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return owner_kind(rel.input, place)
