"""Relations after binding. Every row is owned by one unit and is computable from that unit's rows and public data.

This is the invariant on which the sensitivity of everything rests: removing one unit from the data removes exactly the
rows that it owns, from every relation here, and changes no other row. No operator that breaks it has a class. A
relation over private data carries the owner in the column `UNIT` (for a table whose unit is the row, the row itself is
the owner, and no operator may make two rows of one).
"""

from dataclasses import dataclass, field
from typing import Literal as Choice

from hubbub.core.schema import Kind, Table
from hubbub.core.unit import Hash
from hubbub.sql.expressions import Col, Expr, facts

#: The owner's column in a relation over private data. Analysts cannot type it: their names are renamed at binding.
UNIT = "$unit"


@dataclass(frozen=True, slots=True)
class Scan:
    """A table's visible columns with the declared facts made true: clamped, NaN to NULL, rows without a unit left out.

    A value outside a declared list is the declared `other`, or NULL. Columns in `loose` are used as keys of the whole
    query alone, whose cells leave such values out by themselves; there the scan saves the look at the list.
    Texts in `short` are cut to `LONGEST` characters. A plan sets it; the bound query, which is written into the key of
    a charge, does not have it.
    """

    table: Table
    columns: tuple[Col, ...]  #: named by binding; the table's own column is `sources[i]`
    sources: tuple[str, ...]
    loose: frozenset[str] = frozenset()  #: bound names
    short: frozenset[str] = field(default=frozenset(), repr=False)  #: bound names


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows where the predicate is true."""

    input: "Rel"
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Project:
    """New columns computed row by row; the owner is kept."""

    input: "Rel"
    outputs: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Rows that match on equal columns, with either a public right side or two private sides joined on the unit.

    left joins keep rows of the left side, which is never the public one of a mixed pair. `on` are pairs (left, right).
    With `unit` the owners are equal as well. Where the unit is the row, the right side is public and unique on the
    right columns of `on`.
    """

    left: "Rel"
    right: "Rel"
    kind: Choice["inner", "left"]
    on: tuple[tuple[Expr, Expr], ...]
    unit: bool


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of several relations of one entity with the same columns, by position."""

    inputs: tuple["Rel", ...]
    columns: tuple[Col, ...]


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit and combination of keys: a sub-query grouped by the unit. Aggregates see one unit's rows.

    With no aggregates this is DISTINCT within the unit.
    """

    input: "Rel"
    keys: tuple[tuple[str, Expr], ...]
    aggregates: tuple[tuple[str, "Inner"], ...]


@dataclass(frozen=True, slots=True)
class Inner:
    """An exact aggregate inside one unit: count, count_distinct, sum, avg, min, max; total on every input."""

    function: Choice["count", "count_distinct", "sum", "avg", "min", "max"]
    argument: Expr | None
    where: Expr | None
    column: Col  #: its result, with kind and facts


@dataclass(frozen=True, slots=True)
class Cut:
    """At most `rows` rows of each unit, in the order of a salted hash of that unit's own rows. Plans alone have it."""

    input: "Rel"
    rows: int
    salt: str = field(repr=False)
    hashing: Hash


Rel = Scan | Filter | Project | Join | Union | PerUnit | Cut

#: Characters of a text that functions look at: longer ones are cut at the scan.
LONGEST = 4_096


def columns(rel: Rel) -> tuple[Col, ...]:
    """Give a relation's columns, the owner's aside."""
    match rel:
        case Scan() | Union():
            return rel.columns
        case Filter() | Cut():
            return columns(rel.input)
        case Project():
            return tuple(Col(name, expr.kind, facts(expr)) for name, expr in rel.outputs)
        case Join():
            return columns(rel.left) + columns(rel.right)
        case PerUnit():
            keys = tuple(Col(name, expr.kind, facts(expr)) for name, expr in rel.keys)
            return keys + tuple(inner.column for _, inner in rel.aggregates)


def owned(rel: Rel) -> bool:
    """Say whether rows carry their owner in the column UNIT: not in public data, nor where each row is its own unit."""
    match rel:
        case Scan():
            return rel.table.unit is not None and rel.table.unit.column is not None
        case Filter() | Project() | Cut():
            return owned(rel.input)
        case Join():
            return owned(rel.left)
        case Union():
            return owned(rel.inputs[0])
        case PerUnit():
            return True


def public(rel: Rel) -> bool:
    """Say whether a relation is made of public data alone: a public side of a join with private data is the right."""
    match rel:
        case Scan():
            return rel.table.unit is None
        case Filter() | Project() | Cut():
            return public(rel.input)
        case Join():
            return public(rel.left)
        case Union():
            return public(rel.inputs[0])
        case PerUnit():
            return False


def owner_kind(rel: Rel) -> Kind:
    """Give the kind of the column UNIT, which is the same in all tables of one entity."""
    match rel:
        case Scan():
            unit = rel.table.unit
            named = None if unit is None or unit.column is None else rel.table.column(unit.column)
            # a unit that is hidden without a declaration is told apart as text
            return Kind.TEXT if named is None else named.kind
        case Join():
            return owner_kind(rel.left)
        case Union():
            return owner_kind(rel.inputs[0])
        case Filter() | Project() | PerUnit() | Cut():
            return owner_kind(rel.input)
