"""Check that every column which a plan reads is there, before anything is charged.

Binding, pruning and the rewriting of relations each see to this on their own. Where one of them fails, the engine would
say so, but only after the charge.

Tested in tests/sql/test_check_columns.py.
"""

from collections.abc import Iterable

from hubbub.sql.expressions import Expr, released_place
from hubbub.sql.prune import names
from hubbub.sql.query import Query
from hubbub.sql.relations import (
    OWNERS,
    UNIT,
    Filter,
    Join,
    PerUnit,
    Project,
    Rel,
    Scan,
    Truncate,
    Union,
    UnitWindow,
    owner_columns,
    window_expressions,
)

#: Said of such a plan: a defect of hubbub, whatever the query is.
MESSAGE = "a plan reads a column that its relation does not have"


def check_columns(query: Query, rel: Rel) -> None:
    """Raise unless a relation has every column that its own operators, the keys and the aggregates of a query read."""
    inside: list[Expr | None] = [key.expr for key in query.keys]
    for aggregate in query.aggregates:
        inside += [*aggregate.arguments, aggregate.where]
    _require(inside, _columns(rel))


def _columns(rel: Rel) -> frozenset[str]:
    """Return the names of a relation's columns and owners, having checked those that it reads itself."""
    match rel:
        case Scan():
            found = _scan(rel)
        case Filter():
            found = _require([rel.predicate], _columns(rel.input))
        case Truncate():
            found = _columns(rel.input)
        case Project():
            _require((expr for _, expr in rel.outputs), _columns(rel.input))
            found = frozenset(name for name, _ in rel.outputs)
        case Join():
            found = _join(rel)
        case Union():
            found = _union(rel)
        case PerUnit():
            read = [expr for _, expr in rel.keys]
            parts = [part for _, inner in rel.aggregates for part in (inner.argument, inner.where)]
            _require([*read, *parts], _columns(rel.input))
            found = frozenset(name for name, _ in (*rel.keys, *rel.aggregates))
        case UnitWindow():
            below = _columns(rel.input)
            _require((expr for _, each in rel.functions for expr in window_expressions(each)), below)
            found = below | {name for name, _ in rel.functions}
    return found.union(owner_columns(rel))


def _join(rel: Join) -> frozenset[str]:
    left, right = _columns(rel.left), _columns(rel.right)
    _require((expr for expr, _ in rel.on), left)
    _require((expr for _, expr in rel.on), right)
    if rel.unit and (OWNERS[rel.place] not in left or UNIT not in right):
        raise AssertionError(MESSAGE)
    return left | right


def _scan(rel: Scan) -> frozenset[str]:
    declared = {column.name for column in rel.table.columns}
    if len(rel.columns) != len(rel.sources) or not declared.issuperset(rel.sources):
        raise AssertionError(MESSAGE)
    return frozenset(column.name for column in rel.columns)


def _union(rel: Union) -> frozenset[str]:
    if {len(_columns(each).difference(owner_columns(each))) for each in rel.inputs} != {len(rel.columns)}:
        raise AssertionError(MESSAGE)
    return frozenset(column.name for column in rel.columns)


def _require(exprs: Iterable[Expr | None], known: frozenset[str]) -> frozenset[str]:
    """Return the known columns if expressions read no others; noisy values of earlier releases are constants."""
    for expr in exprs:
        if any(name not in known and released_place(name) is None for name in names(expr)):
            raise AssertionError(MESSAGE)
    return known
