"""Queries over rows with two owners: what is supported, and the budget for the bounds that such a query finds.

Tested in tests/sql/test_several_owners.py.
"""

from dataclasses import replace

from hubbub.core.schema import Table
from hubbub.errors import QueryError
from hubbub.sql.allocation import Allocation, Workload
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.expressions import facts
from hubbub.sql.keys import Cells
from hubbub.sql.measures import BoundedSum, RowCount, Sensitivity
from hubbub.sql.noise import NoisyMeasure, calibrate_noise
from hubbub.sql.owner_levels import OwnerLevels, owner_levels
from hubbub.sql.query import Query
from hubbub.sql.relations import Filter, Join, Project, Rel, Scan, owned, owner_columns, public

_AGGREGATES = {"count", "sum"}


def has_two_owners(rel: Rel) -> bool:
    """Tell whether each row of a relation has two owners."""
    return len(owner_columns(rel)) > 1


def source(rel: Rel) -> Table:
    """Return the table that the owners of a relation come from: a scan on the left of all joins."""
    while not isinstance(rel, Scan):
        if not isinstance(rel, Filter | Project | Join):
            raise AssertionError("rows with two owners are only filtered, projected and joined")
        rel = rel.left if isinstance(rel, Join) else rel.input
    return rel.table


def limits(query: Query, groups: int | None, rows: int | None) -> ContributionBounds:
    """Return the maximum of the bounds that a query finds, or raise an error if the query is not supported.

    Theorem (Two owners for each row). Let a relation be made from one table whose rows have two owners by filters,
    projections, joins with public tables, and inner joins with private tables of one owner each on that owner. Taking
    one owner out of all tables takes out of the relation exactly the rows that have it among their owners, and leaves
    all others as they were.
    Proof    A scan reads row by row, and a row leaves the table with either of its owners. Filters and projections are
             functions of one row. A joined row consists of one row of the left side, public rows, and rows of one
             owner of that row: it is there if and only if all of them are, and its owners are those of the row on the
             left. So it leaves with them and with nobody else.
    Assumes  equal values in columns of one declared entity are one owner, who is taken out of all tables at once.
    Tested   tests/sql/test_several_owners.py::test_taking_an_owner_away_takes_its_rows_away_and_changes_no_other
    """
    _check_relation(query.relation)
    if groups is not None or rows is not None:
        raise QueryError(
            "HB764",
            "groups= and rows= are not used where rows have two owners: the query finds how much of each counts.",
            "Leave them out.",
        )
    names = {each.function for each in query.aggregates} - _AGGREGATES
    if names or query.top:
        what = "the keys of the largest counts" if query.top else sorted(names)[0].upper().replace("_", " ")
        raise QueryError(
            "HB763",
            f"Rows with two owners can be counted and added up; {what} is not supported.",
            "Use COUNT(*), COUNT(x), SUM(x) or AVG(x).",
        )
    if len(query.sets) != 1 or any(facts(key.expr).values is None for key in query.keys):
        raise _undeclared_groups()
    most = max(unit.rows for unit in source(query.relation).owners)
    return ContributionBounds(most, most, auto=True, owners=2)


def _check_relation(rel: Rel) -> None:
    """Raise an error unless the theorem above holds. Binding gives better messages; nothing else passes here."""
    match rel:
        case Scan():
            return
        case Filter() | Project():
            _check_relation(rel.input)
        case Join(left=left, right=right, kind=kind, unit=unit) if public(right) or (
            unit and kind == "inner" and owned(right) and not has_two_owners(right)
        ):
            _check_relation(left)
        case _:
            raise QueryError(
                "HB761",
                "Rows with two owners can only be filtered and joined.",
                "Aggregate in the outermost query.",
            )


def check_groups(workload: Workload) -> Cells:
    """Return the groups of a query, which must be declared, or raise an error."""
    groups = workload.groups
    if len(groups) != 1 or not isinstance(groups[0], Cells):
        raise _undeclared_groups()
    return groups[0]


def _undeclared_groups() -> QueryError:
    return QueryError(
        "HB763",
        "Rows with two owners can be grouped only once, by keys whose values are declared.",
        "Group by columns that have `values` in hubbub.yaml, without GROUPING SETS, ROLLUP or CUBE.",
    )


def add_owner_levels(
    workload: Workload, allocation: Allocation, sql: str
) -> tuple[Allocation, tuple[OwnerLevels, ...]]:
    """Return the allocation at the bound 1, without the part for choosing bounds, and the choices with that part."""
    cells, units = check_groups(workload), source(workload.query.relation).owners
    measures, levels = [], []
    for place, noised in enumerate(allocation.measures):
        measure = noised.measure
        if not isinstance(measure, RowCount | BoundedSum) or measure.low < 0:
            raise QueryError(
                "HB763",
                "Where rows have two owners, a sum needs values that are never negative.",
                "Declare bounds from 0 on, or split the sum: SUM(GREATEST(x, 0)) - SUM(GREATEST(-x, 0)).",
            )
        choice, left = owner_levels(
            measure,
            place,
            maximum=workload.maximum,
            cells=cells,
            one_entity=units[0].entity == units[1].entity,
            portion=noised.portion,
            relation=workload.relation,
            sql=sql,
        )
        moved = Sensitivity(cells.size, cells.size)
        measures.append(NoisyMeasure(measure, moved, left, calibrate_noise("laplace", moved, left)))
        levels.append(choice)
    return replace(allocation, measures=tuple(measures)), tuple(levels)


def refuse_two_owners(table: Table) -> None:
    """Raise an error for an analysis that protects one owner of each row, if a table has two."""
    if table.others:
        columns = " and ".join(str(unit.column) for unit in table.owners)
        raise QueryError(
            "HB765",
            f"Rows of {table.name} have two owners ({columns}), and this analysis protects only one.",
            "Use SELECT with COUNT or SUM, or ask the data owner for a view with one owner.",
        )
