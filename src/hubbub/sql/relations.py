"""Bound relations. One privacy unit owns each row, which is computed from that unit's rows and public data alone.

All sensitivities rest on this invariant: removing one unit from the data removes exactly the rows that it owns from
every relation, and changes no other row. No operator here breaks it. A relation over private data has its owner in the
column `UNIT`. In a table with row-level privacy each row owns itself, and no operator may duplicate it.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import dataclass, field
from typing import Literal as Choice

from hubbub.core.schema import Kind, Table
from hubbub.core.unit import Hash
from hubbub.sql.expressions import Col, Expr, facts

#: The owner's column in a relation over private data. Analysts cannot name it, because binding renames their columns.
UNIT = "$unit"


@dataclass(frozen=True, slots=True)
class Scan:
    """The visible columns of a table with the declared facts enforced: clamped, NaN to NULL, no rows without an owner.

    A value outside a declared list becomes the declared `other`, or NULL. Columns in `loose` are only keys of the whole
    query, whose cells drop such values anyway, so the scan does not check their lists. Texts in `short` are truncated
    to `MAX_TEXT_LENGTH` characters; planning sets it.
    """

    table: Table
    columns: tuple[Col, ...]  #: named by binding; `sources[i]` is the table's column
    sources: tuple[str, ...]
    loose: frozenset[str] = frozenset()  #: bound names
    short: frozenset[str] = field(default=frozenset(), repr=False)  #: bound names


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
    `on`.
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
    """One row per privacy unit and combination of keys. Its aggregates read the rows of one unit.

    Without aggregates this is DISTINCT within the unit.
    """

    input: "Rel"
    keys: tuple[tuple[str, Expr], ...]
    aggregates: tuple[tuple[str, "UnitAggregate"], ...]


@dataclass(frozen=True, slots=True)
class UnitAggregate:
    """An exact aggregate over the rows of one unit, total on every input."""

    function: Choice["count", "count_distinct", "sum", "avg", "min", "max"]
    argument: Expr | None
    where: Expr | None
    column: Col  #: the result, with kind and facts


@dataclass(frozen=True, slots=True)
class Truncate:
    """At most `rows` rows of each unit, in the order of a salted hash of its rows. Only plans contain it."""

    input: "Rel"
    rows: int
    salt: str = field(repr=False)
    hashing: Hash


Rel = Scan | Filter | Project | Join | Union | PerUnit | Truncate

#: Maximum length of texts that functions read; the scan truncates longer ones.
MAX_TEXT_LENGTH = 4_096


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


def owned(rel: Rel) -> bool:
    """Tell whether a relation has the column UNIT: not if it is public, nor under row-level privacy."""
    match rel:
        case Scan():
            return rel.table.unit is not None and rel.table.unit.column is not None
        case Filter() | Project() | Truncate():
            return owned(rel.input)
        case Join():
            return owned(rel.left)
        case Union():
            return owned(rel.inputs[0])
        case PerUnit():
            return True


def public(rel: Rel) -> bool:
    """Tell whether a relation contains only public data: a join with private data has the public side on the right."""
    match rel:
        case Scan():
            return rel.table.unit is None
        case Filter() | Project() | Truncate():
            return public(rel.input)
        case Join():
            return public(rel.left)
        case Union():
            return public(rel.inputs[0])
        case PerUnit():
            return False


def owner_kind(rel: Rel) -> Kind:
    """Return the kind of the column UNIT, which is the same in all tables of one entity."""
    match rel:
        case Scan():
            unit = rel.table.unit
            named = None if unit is None or unit.column is None else rel.table.column(unit.column)
            # a privacy ID column without a declared type is compared as text
            return Kind.TEXT if named is None else named.kind
        case Join():
            return owner_kind(rel.left)
        case Union():
            return owner_kind(rel.inputs[0])
        case Filter() | Project() | PerUnit() | Truncate():
            return owner_kind(rel.input)
