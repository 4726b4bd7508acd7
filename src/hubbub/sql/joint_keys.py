"""Keys that occur together in a public table: only the combinations of its rows are cells.

`GROUP BY title, author` over loans joined to a public table of 100 books has 100 groups, not 100 titles times 80
authors; and with `WHERE year > 2000` only those of books that meet the condition.

Tested in tests/sql/test_joint_keys.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Table
from hubbub.sql.evaluate import UnknownValueError, evaluate, exact, scalar
from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.keys import MAX_LISTED, Cells, Domain, checked, grouping_sets
from hubbub.sql.prune import names
from hubbub.sql.query import Query
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, UnitWindow
from hubbub.sql.restrictions import same_value

#: Beyond this number of combinations of all keys, they are not numbered.
MAX_SPAN = 1 << 62


@dataclass(frozen=True, slots=True)
class PublicColumn:
    """A column that holds, in every row, a value of one row of a public table, or NULL if a left join may find none."""

    scan: int  #: the position of the table in the query
    table: Table
    source: str
    optional: bool


@dataclass(frozen=True, slots=True)
class PublicCondition:
    """A condition that the row of a public table meets; `columns` are the table's columns by their names in it.

    With `matched`, rows that a left join does not match need not meet it.
    """

    scan: int
    predicate: Expr
    columns: Mapping[str, str]
    matched: bool = False


def joint_cells(query: Query) -> tuple[Cells, ...]:
    """Return the cells of every grouping set whose keys can occur together, or raise an error."""
    return checked(tuple(occurring(each, query.relation) for each in grouping_sets(query)))


def occurring(cells: Cells, relation: Rel) -> Cells:
    """Keep the cells whose keys can occur together.

    Theorem (Joint keys). A row of the relation is in one of the cells that are kept, or in no cell.
    Proof    A row of a join has one row of each public table that it reads, or NULL in all columns of a table that a
             left join does not match. Filters and projections of plain columns keep this, and an inner join on a = b
             gives a the value of b. So all keys that are functions of one public table are those of one of its rows
             (or of NULLs), which are listed and evaluated as the engine does; all combinations with others are kept.
             A condition of a filter that reads one public table alone is true of that row, so rows of which it is not
             true have no cell; below a left join it says nothing about rows without a match. A condition that cannot
             be evaluated here keeps all rows.
    Assumes  a public table has the rows that were read when it was opened. A row that is not among them would be in no
             group; the sensitivity holds all the same, as a unit touches no more cells than are kept.
    Charges  nothing.
    Tested   tests/sql/test_joint_keys.py::test_keys_of_one_public_table_are_joint
             tests/sql/test_joint_keys.py::test_a_planted_wrong_origin_is_seen
    """
    origins = public_columns(relation)
    groups: dict[int, list[int]] = {}
    for j, domain in enumerate(cells.domains):
        columns = [origins.get(name) for name in names(domain.key.expr)]
        scans = {column.scan for column in columns if column is not None}
        if columns and None not in columns and len(scans) == 1:
            groups.setdefault(scans.pop(), []).append(j)
    conditions = public_conditions(relation)
    narrowed = {each.scan for each in conditions}
    joint = [places for scan, places in groups.items() if len(places) > 1 or scan in narrowed]
    if not joint or cells.span >= MAX_SPAN:
        return cells
    alone = [j for j in range(len(cells.domains)) if not any(j in places for places in joint)]
    axes = [np.arange(cells.domains[j].size) * cells.strides[j] for j in alone]
    try:
        axes += [_joint_numbers(cells, places, origins, conditions) for places in joint]
    except UnknownValueError:
        return cells
    if not 0 < prod(len(axis) for axis in axes) <= MAX_LISTED:
        return cells
    numbers = np.zeros(1, dtype=np.int64)
    for axis in axes:
        numbers = (numbers[:, None] + axis).ravel()
    return replace(cells, kept=tuple(np.sort(numbers).tolist()))


def _joint_numbers(
    cells: Cells,
    places: Sequence[int],
    origins: Mapping[str, PublicColumn],
    conditions: Sequence[PublicCondition],
) -> NDArray[np.int64]:
    """Return what the keys at these places add to the number of a cell, for each combination that occurs."""
    domains = [cells.domains[j] for j in places]
    columns = {name: origins[name] for domain in domains for name in names(domain.key.expr)}
    first = next(iter(columns.values()))
    own = [each for each in conditions if each.scan == first.scan]
    lists = [first.table.rows[column.source] for column in columns.values()]
    count = len(next(iter(first.table.rows.values())))
    kept = [place for place in range(count) if all(_met(each, first.table, place) for each in own)]
    rows = [tuple(column[place] for column in lists) for place in kept]
    if first.optional and all(each.matched or _met(each, first.table, None) for each in own):
        rows.append((None,) * len(columns))
    indices = [_indices(domain) for domain in domains]
    numbers = set()
    for row in rows:
        values = dict(zip(columns, map(scalar, row), strict=True))
        keys = [exact(evaluate(domain.key.expr, values), domain.kind) for domain in domains]
        at = [index.get(same_value(key)) for index, key in zip(indices, keys, strict=True)]
        if None not in at:
            numbers.add(sum(n * cells.strides[j] for n, j in zip(at, places, strict=True) if n is not None))
    return np.array(sorted(numbers), dtype=np.int64)


def _met(condition: PublicCondition, table: Table, place: int | None) -> bool:
    """Tell whether a row of a public table may meet a condition; None is the row of NULLs."""
    values = {
        name: scalar(None if place is None else table.rows[source][place]) for name, source in condition.columns.items()
    }
    try:
        return evaluate(condition.predicate, values) is True
    except UnknownValueError:
        return True


def public_conditions(rel: Rel) -> list[PublicCondition]:
    """List the conditions of a relation that each read columns of one public table alone."""
    found = list[PublicCondition]()
    _public_columns(rel, [0], found)
    return found


def _noted(rel: Filter, columns: Mapping[str, PublicColumn], found: list[PublicCondition] | None) -> None:
    parts = [rel.predicate]
    while found is not None and parts:
        part = parts.pop()
        if isinstance(part, FunctionCall) and part.function == "and":
            parts += part.args
            continue
        read = {name: columns.get(name) for name in names(part)}
        known = {name: column for name, column in read.items() if column is not None}
        scans = {column.scan for column in known.values()}
        if len(scans) == 1 and len(known) == len(read):
            found.append(PublicCondition(scans.pop(), part, {name: each.source for name, each in known.items()}))


def _indices(domain: Domain) -> dict[object, int]:
    """Return the index of each value; equal values have the first one."""
    indices: dict[object, int] = {None: len(domain.values)} if domain.null else {}
    for i, value in enumerate(domain.values):
        indices.setdefault(same_value(value), i)
    return indices


def public_columns(rel: Rel) -> dict[str, PublicColumn]:
    """Return the columns of a relation that come from a row of a public table whose rows are known."""
    return _public_columns(rel, [0])


def _public_columns(rel: Rel, count: list[int], found: list[PublicCondition] | None = None) -> dict[str, PublicColumn]:
    match rel:
        case Scan():
            count[0] += 1
            known = rel.table.public and rel.table.rows
            pairs = zip(rel.columns, rel.sources, strict=True) if known else ()
            return {col.name: PublicColumn(count[0], rel.table, source, optional=False) for col, source in pairs}
        case Filter():
            columns = _public_columns(rel.input, count, found)
            _noted(rel, columns, found)
            return columns
        case UnitWindow() | Truncate():
            return _public_columns(rel.input, count, found)
        case Project():
            return _renamed(rel.outputs, _public_columns(rel.input, count, found))
        case PerUnit():
            return _renamed(rel.keys, _public_columns(rel.input, count, found))
        case Join():
            left, before = _public_columns(rel.left, count, found), len(found or ())
            right = _public_columns(rel.right, count, found)
            if rel.kind == "left":
                if found is not None:
                    found[before:] = [replace(each, matched=True) for each in found[before:]]
                return left | {name: replace(column, optional=True) for name, column in right.items()}
            equal = {
                a.name: right[b.name]
                for a, b in rel.on
                if isinstance(a, Col) and isinstance(b, Col) and b.name in right and a.name not in left
            }
            return left | right | equal
        case _:
            return {}


def _renamed(outputs: Sequence[tuple[str, object]], below: Mapping[str, PublicColumn]) -> dict[str, PublicColumn]:
    return {name: below[expr.name] for name, expr in outputs if isinstance(expr, Col) and expr.name in below}
