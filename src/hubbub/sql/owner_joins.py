"""Find the owner of each row once: where a query joins along references itself, a scan need not follow them again.

Tested in tests/sql/test_owner_joins.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hubbub.core.schema import Kind, OwnerPath
from hubbub.sql.expressions import Col, Expr
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
    owner_columns,
)

#: A table and the column with the privacy IDs of the owners that exist.
_Owners = tuple[str, str]


def with_owners_once(rel: Rel) -> Rel:
    """Return the same rows with the same owners, without joins inside of scans that the relation's own joins repeat.

    Theorem (Owners found once). The result has the rows of `rel`, each as often and with the same owner.
    Proof    Two changes are made to joins of private relations, which compare the owners.
             1. Along keys (`_along`). The pairs of a join compare all columns of a reference c of the child's scan with
             the key of the scan p that it refers to. The child's scan then gives no owner, and the join compares the
             exact values of reference and key instead of the owners. If these are equal, then the child's row has the
             owner of p's row ("One owner through keys"), which is that of the joined row, and the pairs are equal as
             well, because they are read from equal values by the same cast: the row was in the join before. Conversely,
             let a row be in the join before. Its child refers to one row p' by exact values; p and p' are read as equal
             keys, so they are the same row. A left join keeps its left side in both cases; the child is never there.
             2. Owners that exist (`_checked_elsewhere`). Where the last reference of a path holds the privacy ID, its
             last step only checks that the ID exists. Without it a scan has the same rows and further ones, of owners
             that do not exist. Every operator computes the rows of an owner from that owner's rows and public data, so
             the same holds of each relation above. The step is left out on one side of a join only if all owners of
             the other side exist and none of its own rows is kept without a match: the further rows match nothing.
    Assumes  keys are unique, also as queries read them: integers as doubles. Privacy needs the former alone: by it, a
             row of 1 that is joined belongs to its owner, and 2 is the same relation.
    Charges  nothing.
    Tested   tests/sql/test_owner_joins.py::test_owners_found_once_are_the_owners_of_the_relation_as_it_stands
             tests/sql/test_owner_joins.py::test_taking_an_owner_away_takes_its_rows_away_and_changes_no_other
             tests/sql/test_owner_joins.py::test_a_path_that_is_dropped_though_the_join_is_on_another_column_is_noticed
    """
    return rel if len(owner_columns(rel)) != 1 else _simplified(rel, frozenset())


def follows_references(rel: Rel) -> bool:
    """Tell whether a relation reads a table whose owners are found along references."""
    match rel:
        case Scan():
            return rel.table.unit is not None and rel.table.unit.path is not None
        case Join():
            return follows_references(rel.left) or follows_references(rel.right)
        case Union():
            return any(map(follows_references, rel.inputs))
        case _:
            return follows_references(rel.input)


def _simplified(rel: Rel, exist: frozenset[_Owners]) -> Rel:
    """Simplify a relation; rows of owners that are not in all of `exist` do not matter."""
    match rel:
        case Scan():
            return _checked_elsewhere(rel, exist)
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return replace(rel, input=_simplified(rel.input, exist))
        case Union():
            return replace(rel, inputs=tuple(_simplified(part, exist) for part in rel.inputs))
        case Join():
            if not rel.unit:
                return replace(rel, left=_simplified(rel.left, exist))
            return _along(rel, exist) or _on_unit(rel, exist)


# --- joins along keys ----------------------------------------------------------------------------------------------


def _along(rel: Join, exist: frozenset[_Owners]) -> Join | None:
    """Compare a reference with the key that it refers to instead of the owners, if the join compares them anyway."""
    match = _match(rel)
    if match is None:
        return None
    child, pairs = match
    sides = [_simplified(rel.left, exist), _simplified(rel.right, exist)]
    for place in (0, 1):
        names = [_scanned(sides[place], pair[place]) for pair in pairs]
        sides[place] = _changed(sides[place], tuple(dict.fromkeys(names)), joined=place == child)
    along = tuple((_scanned(rel.left, a), _scanned(rel.right, b)) for a, b in pairs)
    rest = tuple(pair for pair in rel.on if _named(pair) not in pairs)
    return replace(rel, left=sides[0], right=sides[1], on=rest, along=along)


def _match(rel: Join) -> tuple[int, list[tuple[str, str]]] | None:
    """Return which side's owner a join along keys gives (0: left, 1: right), and the pairs that compare the key."""
    named = [names for names in map(_named, rel.on) if names is not None]
    swapped = _compared(rel.right, rel.left, [(b, a) for a, b in named])
    if swapped is not None:
        return 1, [(a, b) for b, a in swapped]
    pairs = _compared(rel.left, rel.right, named) if rel.kind == "inner" else None
    return None if pairs is None else (0, pairs)


def _named(pair: tuple[Expr, Expr]) -> tuple[str, str] | None:
    return (pair[0].name, pair[1].name) if isinstance(pair[0], Col) and isinstance(pair[1], Col) else None


def _compared(child: Rel, parent: Rel, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """Return the pairs that compare all columns of the child's reference with the key of one scan of the parent."""
    scan = _alone(child)
    path = None if scan is None or scan.table.unit is None else scan.table.unit.path
    if scan is None or path is None or scan.table.others or _owners(scan) is None:
        return None
    step = path.steps[0]
    for target in _scans(parent):
        if target.table.name != step.table or target.table.others or _owners(target) != _owners(scan):
            continue
        wanted = {
            pair: place
            for pair in pairs
            for place, (column, key, kind) in enumerate(zip(step.columns, step.key, step.kinds, strict=True))
            if _reads(child, pair[0], scan, column, kind) and _reads(parent, pair[1], target, key, kind)
        }
        if set(wanted.values()) == set(range(len(step.key))):
            return list(wanted)
    return None


def _reads(rel: Rel, name: str, scan: Scan, source: str, kind: Kind) -> bool:
    """Tell whether a column of a relation is a column of a table as it is: neither clamped nor looked up in a list."""
    traced = _traced(rel, name)
    if traced is None or traced[0] != scan:
        return False
    column = scan.table.column(source)
    bound = scan.sources[[col.name for col in scan.columns].index(traced[1])]
    return bound == source and column is not None and column.kind is kind and not (column.bounds or column.values)


def _traced(rel: Rel, name: str) -> tuple[Scan, str] | None:
    """Return the scan of a column and its name there, if each operator between passes on the scan's own rows."""
    match rel:
        case Scan():
            return (rel, name) if name in {col.name for col in rel.columns} else None
        case Filter():
            return _traced(rel.input, name)
        case Project():
            expr = dict(rel.outputs).get(name)
            return _traced(rel.input, expr.name) if isinstance(expr, Col) else None
        case Join():
            return _traced(rel.left, name) or _traced(rel.right, name)
        case _:
            return None


def _scans(rel: Rel) -> Iterator[Scan]:
    """List the scans whose columns `_traced` can find."""
    match rel:
        case Scan():
            yield rel
        case Filter() | Project():
            yield from _scans(rel.input)
        case Join():
            yield from _scans(rel.left)
            yield from _scans(rel.right)


def _alone(rel: Rel) -> Scan | None:
    """Return the only scan that gives the owners of a relation, if they are only passed on."""
    match rel:
        case Scan():
            return rel
        case Filter() | Project():
            return _alone(rel.input)
        case Join():
            if not rel.unit:
                return _alone(rel.left)
            match = _match(rel) if rel.kind == "inner" else None
            return None if match is None else _alone(rel.left if match[0] else rel.right)
        case _:
            return None


def _scanned(rel: Rel, name: str) -> str:
    """Return the name of a column in its scan."""
    traced = _traced(rel, name)
    if traced is None:
        raise AssertionError("the column was traced before")
    return traced[1]


def _changed(rel: Rel, names: tuple[str, ...], *, joined: bool) -> Rel:
    """Let the scan with these columns give their exact values."""
    match rel:
        case Scan():
            if names[0] not in {col.name for col in rel.columns}:
                return rel
            return replace(rel, exact=tuple(dict.fromkeys((*rel.exact, *names))), joined=rel.joined or joined)
        case Filter() | Project():
            return replace(rel, input=_changed(rel.input, names, joined=joined))
        case Join():
            left, right = (_changed(side, names, joined=joined) for side in (rel.left, rel.right))
            return replace(rel, left=left, right=right)
        case _:
            return rel


# --- owners that exist ---------------------------------------------------------------------------------------------


def _on_unit(rel: Join, exist: frozenset[_Owners]) -> Join:
    """Check on one side only that owners exist: on the side that is kept, or that reads their table anyway."""
    if rel.kind == "inner" and _reads_owners(rel.right) and not _reads_owners(rel.left):
        left = _simplified(rel.left, exist | _existing(rel.right))
        return replace(rel, left=left, right=_simplified(rel.right, exist))
    right = _simplified(rel.right, exist | _existing(rel.left))
    return replace(rel, left=_simplified(rel.left, exist), right=right)


def _checked_elsewhere(rel: Scan, exist: frozenset[_Owners]) -> Scan:
    """Leave out the last step of a path that only checks whether the owner exists."""
    unit = rel.table.unit
    if unit is None or unit.path is None or not unit.path.steps or _owners(rel) not in exist:
        return rel
    path, last = unit.path, unit.path.steps[-1]
    if last.key != (path.column,) or last.kinds != (path.kind,):
        return rel
    shorter = OwnerPath(path.steps[:-1], last.columns[0], path.kind)
    return replace(rel, table=replace(rel.table, unit=replace(unit, path=shorter)))


def _owners(scan: Scan) -> _Owners | None:
    """Return the table and column that all owners of a scan are in, if it is known."""
    unit = scan.table.unit
    if unit is None or unit.column is None or unit.period is not None:
        return None
    return (scan.table.name, unit.column) if unit.path is None else (unit.path.tables[-1], unit.path.column)


def _existing(rel: Rel) -> frozenset[_Owners]:
    """List the columns that all owners of a relation are in."""
    match rel:
        case Scan():
            owners = _owners(rel)
            return frozenset() if owners is None else frozenset({owners})
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return _existing(rel.input)
        case Union():
            return frozenset.intersection(*map(_existing, rel.inputs))
        case Join():
            both = rel.unit and rel.kind == "inner"
            return _existing(rel.left) | (_existing(rel.right) if both else frozenset())


def _reads_owners(rel: Rel) -> bool:
    """Tell whether the owners of a relation are known to exist without a path: it reads their table itself."""
    match rel:
        case Scan():
            return rel.table.unit is not None and rel.table.unit.path is None
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return _reads_owners(rel.input)
        case Union():
            return all(map(_reads_owners, rel.inputs))
        case Join():
            both = rel.unit and rel.kind == "inner"
            return _reads_owners(rel.left) or (both and _reads_owners(rel.right))
