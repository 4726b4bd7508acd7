"""Which columns of a relation refer to rows by their keys: joins along keys match the owners, and add no rows.

Tested in tests/sql/test_references.py.
"""

from collections.abc import Iterable, Iterator, Sequence

from hubbub.sql.expressions import Col, Expr
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow, columns, public

#: A table and its key, names of columns, one for each column of the key, that refer to it, and which owner of the row
#: (0 unless rows have two) owns the row that they refer to.
_Reference = tuple[tuple[str, tuple[str, ...]], tuple[str, ...], int]


def owners_agree(left: Rel, right: Rel, pairs: Sequence[tuple[Expr, Expr]]) -> bool:
    """Tell whether rows of two private relations with equal values in these pairs always have the same owner."""
    return common_owner(left, right, pairs) is not None


def common_owner(left: Rel, right: Rel, pairs: Sequence[tuple[Expr, Expr]]) -> int | None:
    """Return which owner of the left side the right side has wherever these pairs are equal; None: it is not known.

    Theorem (Joins along keys). Let this function accept the pairs. Then rows that agree on them have the same owner,
    so a join that compares the owners as well has the same rows: its answer is that of the join as it was written.
    Proof    Both sides have columns that refer to the same key of the same table: their own key, or a reference to
             another table's. Where such columns are not NULL, the row belongs to the owner of the row of that key
             (by "One owner through keys" in a scan; the operators here pass values and owners on together, and NULL
             where a left join found no match). Rows that agree on the key refer to the same row, so to one owner. Where
             rows of the left side have two, a column that a join added belongs to the owner whom that join compared.
    Assumes  keys are unique, as for "One owner through keys". Privacy does not rest on this: every join of two private
             relations compares the owners, or exact keys in their place ("Owners found once").
    Charges  nothing.
    Tested   tests/sql/test_references.py::test_a_join_along_keys_has_the_rows_of_the_join_as_written
             tests/sql/test_several_owners.py::test_a_join_along_keys_compares_the_owner_whom_the_key_is_of
    """
    named = {(a.name, b.name) for a, b in pairs if isinstance(a, Col) and isinstance(b, Col)}
    there = list(_references(right))
    places = (
        place
        for key, mine, place in _references(left)
        for other, theirs, _ in there
        if key == other and set(zip(mine, theirs, strict=True)) <= named
    )
    return next(places, None)


def names_owner(rel: Rel, on: Iterable[Expr]) -> bool:
    """Tell whether rows of a private relation that agree on these columns have the same owner.

    Theorem (Groups of a key). Let this function accept the columns. Then rows that agree on them have one owner, so to
    group by them and by the owner gives the groups of the query as it was written, except that rows without a key of
    their own form one group for each owner.
    Proof    The columns contain a reference to a key, or a key. A row whose reference is NULL has no owner and is in no
             scan. Filters, projections and groups pass such columns on unchanged; the right side of a left join may be
             NULL and does not count. Rows that agree on a reference refer to one row, so to one owner ("One owner
             through keys"), and rows that agree on a key, without NULL, are one row.
    Assumes  keys are unique. Privacy does not rest on this: groups are formed by the owner in any case.
    Charges  nothing.
    Tested   tests/sql/test_references.py::test_groups_of_a_key_are_those_of_the_query_as_written
             tests/sql/test_references.py::test_a_reference_that_can_be_null_names_no_owner
             tests/sql/test_references.py::test_rows_without_a_key_form_one_group_for_each_owner
    """
    names = {expr.name for expr in on if isinstance(expr, Col)}
    return any(set(columns) <= names for columns in _present(rel))


def _present(rel: Rel) -> Iterator[tuple[str, ...]]:
    """List columns that refer to a key or are one, and are read as they are: neither clamped nor looked up."""
    match rel:
        case Scan():
            table = rel.table
            whole = {c.name for c in table.columns if not (c.bounds or c.values)}
            bound = {name: col.name for col, name in zip(rel.columns, rel.sources, strict=True) if name in whole}
            known = list[tuple[str, ...]]()
            if table.unit is not None and table.unit.path is not None:
                known.append(table.unit.path.steps[0].columns)
            if table.unique is not None and not table.public:
                known.append(table.unique)
            yield from (tuple(bound[name] for name in names) for names in known if all(n in bound for n in names))
        case Filter() | UnitWindow() | Truncate():
            yield from _present(rel.input)
        case Project():
            yield from _passed(rel.input, rel.outputs)
        case PerUnit():
            yield from _passed(rel.input, rel.keys)
        case Join():
            yield from _present(rel.left)
            if rel.kind == "inner" and not public(rel.right):
                yield from _present(rel.right)


def _passed(rel: Rel, outputs: Iterable[tuple[str, Expr]]) -> Iterator[tuple[str, ...]]:
    passed = {expr.name: name for name, expr in outputs if isinstance(expr, Col)}
    yield from (tuple(passed[n] for n in names) for names in _present(rel) if all(n in passed for n in names))


def _references(rel: Rel) -> Iterator[_Reference]:
    match rel:
        case Scan():
            bound = {source: col.name for col, source in zip(rel.columns, rel.sources, strict=True)}
            table = rel.table
            known = [] if table.unique is None or table.public else [((table.name, table.unique), table.unique)]
            if table.unit is not None and table.unit.path is not None:
                step = table.unit.path.steps[0]
                known.append(((step.table, step.key), step.columns))
            yield from (
                (key, tuple(bound[name] for name in names), 0) for key, names in known if all(n in bound for n in names)
            )
        case Filter() | UnitWindow() | Truncate():
            yield from _references(rel.input)
        case Project():
            yield from _renamed(rel.input, rel.outputs)
        case PerUnit():
            yield from _renamed(rel.input, rel.keys)
        case Join():
            yield from _references(rel.left)
            if not public(rel.right):
                yield from ((key, names, rel.place) for key, names, _ in _references(rel.right))
        case Union():
            shared = [set(_renumbered(each)) for each in rel.inputs]
            for key, places in set.intersection(*shared):
                yield key, tuple(rel.columns[place].name for place in places), 0


def _renamed(rel: Rel, outputs: Iterable[tuple[str, Expr]]) -> Iterator[_Reference]:
    passed: dict[str, str] = {expr.name: name for name, expr in outputs if isinstance(expr, Col)}
    for key, names, place in _references(rel):
        if all(name in passed for name in names):
            yield key, tuple(passed[name] for name in names), place


def _renumbered(rel: Rel) -> Iterator[tuple[tuple[str, tuple[str, ...]], tuple[int, ...]]]:
    places = {column.name: place for place, column in enumerate(columns(rel))}
    for key, names, _ in _references(rel):
        yield key, tuple(places[name] for name in names)


def matches_once(rel: Rel, on: Sequence[Expr]) -> bool:
    """Tell whether a private relation has at most one row of an owner for each value of these columns.

    Theorem (One match). Let a join of two private relations compare the owners, and these columns of one of them. If
    this function is true for that side, then each row of the other matches at most one row of it.
    Proof    By induction. A scan has one row for a value of its key, whose columns are in `on` (the privacy ID among
             them is the owner, who is given). Filters and cuts take rows away; projections and windows keep their
             number. A grouping by the unit has one row for an owner and a value of all its keys. In a join, the value
             decides the row of one side, and that row the row of the other.
    Assumes  keys are unique as queries read them: clamped, and integers as doubles.
    Tested   tests/sql/test_references.py::test_no_row_matches_twice_where_the_plan_says_once
    """
    return _once(rel, {expr.name for expr in on if isinstance(expr, Col)})


def _once(rel: Rel, names: set[str]) -> bool:
    match rel:
        case Scan():
            table = rel.table
            if table.public or table.unique is None:
                return False
            given = {source for col, source in zip(rel.columns, rel.sources, strict=True) if col.name in names}
            narrowed = {column.name for column in table.columns if column.bounds or column.values}
            unit = {table.unit.column} if table.unit is not None else set()
            return set(table.unique) <= (given - narrowed) | unit
        case Filter() | UnitWindow() | Truncate():
            return _once(rel.input, names)
        case Project():
            return _once(rel.input, {e.name for name, e in rel.outputs if name in names and isinstance(e, Col)})
        case PerUnit():
            return {name for name, _ in rel.keys} <= names
        case Join():
            if not rel.unit:
                return False
            here, there = ({c.name for c in columns(side)} & names for side in (rel.left, rel.right))
            on_left, on_right = ([pair[place] for pair in rel.on] for place in (0, 1))
            if _once(rel.left, here) and matches_once(rel.right, on_right):
                return True
            return rel.kind == "inner" and _once(rel.right, there) and matches_once(rel.left, on_left)
        case Union():
            return False
