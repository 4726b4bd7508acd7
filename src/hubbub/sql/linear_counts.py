"""Counts that follow from the counts of one table's cells: whose cells they are sums of, column by column.

`SELECT region, COUNT(*) … WHERE age < 18 GROUP BY region` adds up cells of (region, age): for each column it reads, a
matrix of zeros and ones tells which of its values belong to which part of the answer.

Tested in tests/sql/test_linear_counts.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hubbub.core import deadline
from hubbub.core.schema import Table, Value
from hubbub.sql.domains import values
from hubbub.sql.evaluate import Scalar, UnknownValueError, evaluate, scalar
from hubbub.sql.expressions import Col, Expr, FunctionCall, Values
from hubbub.sql.keys import Cells
from hubbub.sql.measures import RowCount
from hubbub.sql.plan import Plan
from hubbub.sql.relations import Filter, Rel, Scan
from hubbub.sql.restrictions import same_value

Matrix = NDArray[np.float64]

#: Most values of a column.
MAX_VALUES = 2_000
#: Most parts of an answer along one column.
_MAX_PARTS = 2_000


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """All values of a column that its table declares, and NULL, which any column may have, as the last one."""

    name: str
    values: Values

    @property
    def size(self) -> int:
        """The number of values, with NULL."""
        return len(self.values) + 1

    def __iter__(self) -> Iterator[Value | None]:
        yield from self.values
        yield None


@dataclass(frozen=True, eq=False)
class LinearCount:
    """The counts of one grouping set: a matrix for each column that is read, keys first and in their order.

    The cells of the answer are numbered as those of a grouping set: the last key varies fastest.
    """

    matrices: dict[str, Matrix]

    @property
    def size(self) -> int:
        """The number of cells of the answer."""
        return prod(len(matrix) for matrix in self.matrices.values())


@dataclass(frozen=True, eq=False)
class LinearQuestion:
    """All counts of a query: for each measure, those of all grouping sets one after the other.

    Theorem (Linear counts). On rows as the scan gives them, the cells of a measure are sums of the cells of its
    table, by the columns in `columns`: the cell (i₁, i₂, …) of the answer is Σ over values v₁, v₂, … of
    M₁[i₁, v₁]·M₂[i₂, v₂]·…·x[v₁, v₂, …].
    Proof    A row has one of the listed values, or NULL, in each column. Each condition reads one column and is
             evaluated on each value with the engine's results, so whether a row counts is a product of factors of its
             columns; a key reads one column too, and a row is in the part of the answer that has its key's value.
             What cannot be evaluated, or reads two columns, makes no linear question.
    Assumes  a scan that checks lists (`fanout.strict`): what is not listed is NULL.
    Charges  nothing: no data is read.
    Tested   tests/sql/test_linear_counts.py::test_the_matrices_add_up_cells_to_what_the_engine_counts
    """

    table: Table
    columns: dict[str, ColumnValues]
    measures: tuple[tuple[LinearCount, ...], ...]


class _NotLinearError(Exception):
    """The query is not a list of linear counts."""


def linear_question(plan: Plan) -> LinearQuestion | None:
    """Return what a planned query counts; None if it is not made of counts of one table's cells."""
    query = plan.query
    special = query.top or query.after is not None or plan.threshold is not None or plan.levels or plan.inputs
    if special or plan.choices or not plan.measures or len(plan.cells) != len(plan.groups):
        return None
    if any(not isinstance(each.measure, RowCount) or each.event is None for each in plan.measures):
        return None
    try:
        reader = _Reader(*_scanned(query.relation))
        counts = tuple(
            tuple(reader.count(cells, each.measure) for cells in plan.cells)
            for each in plan.measures
            if isinstance(each.measure, RowCount)
        )
    except (_NotLinearError, UnknownValueError):
        return None
    return LinearQuestion(reader.scan.table, reader.known, counts)


def _scanned(relation: Rel) -> tuple[Scan, tuple[Expr, ...]]:
    """Return the scan below filters, and the conditions."""
    conditions: list[Expr] = []
    while isinstance(relation, Filter):
        conditions += _conjuncts(relation.predicate)
        relation = relation.input
    if not isinstance(relation, Scan) or relation.table.unit is None:
        raise _NotLinearError
    if relation.table.unit.auto or relation.table.others or relation.table.unit.path is not None:
        raise _NotLinearError
    return relation, tuple(conditions)


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, FunctionCall) and expr.function == "and":
        return [part for arg in expr.args for part in _conjuncts(arg)]
    return [expr]


class _Reader:
    """Reads the conditions and keys of one query, column by column."""

    def __init__(self, scan: Scan, conditions: tuple[Expr, ...]) -> None:
        self.scan = scan
        self.conditions = conditions
        self.known: dict[str, ColumnValues] = {}

    def count(self, cells: Cells, measure: RowCount) -> LinearCount:
        """Read one measure over one grouping set."""
        deadline.check()
        if cells.kept is not None:
            raise _NotLinearError
        wanted = [*self.conditions, *([] if measure.where is None else _conjuncts(measure.where))]
        masks: dict[str, NDArray[np.bool_]] = {}
        for condition in wanted:
            name, found = self._each(condition)
            true = np.array([value is True for value in found])
            masks[name] = masks[name] & true if name in masks else true
        for present in measure.present:
            name, found = self._each(present)
            there = np.array([value is not None for value in found])
            masks[name] = masks[name] & there if name in masks else there
        matrices: dict[str, Matrix] = {}
        for domain in cells.domains:
            name, found = self._each(domain.key.expr)
            if name in matrices or domain.size > _MAX_PARTS:
                raise _NotLinearError
            place = {same_value(value): i for i, value in reversed(list(enumerate(domain.values)))}
            matrix = np.zeros((domain.size, len(found)))
            for column, value in enumerate(found):
                row = len(domain.values) if value is None and domain.null else place.get(same_value(value), -1)
                if row >= 0 and (value is not None or domain.null):
                    matrix[row, column] = 1
            matrices[name] = matrix
        for name, mask in masks.items():
            matrices[name] = matrices[name] * mask if name in matrices else mask[None, :].astype(np.float64)
        return LinearCount(matrices)

    def _each(self, expr: Expr) -> tuple[str, list[Scalar]]:
        """Evaluate an expression of one column on each of its values."""
        read = {col.name: col for col in _columns(expr)}
        if len(read) != 1:
            raise _NotLinearError
        (name,) = read
        listed = self._values(name)
        return listed.name, [evaluate(expr, {name: scalar(value)}) for value in listed]

    def _values(self, bound: str) -> ColumnValues:
        place = next((i for i, col in enumerate(self.scan.columns) if col.name == bound), None)
        if place is None:
            raise _NotLinearError
        name, col = self.scan.sources[place], self.scan.columns[place]
        if name not in self.known:
            listed = values(col, MAX_VALUES)
            if listed is None or not 0 < len(listed) <= MAX_VALUES:
                raise _NotLinearError
            self.known[name] = ColumnValues(name, listed)
        return self.known[name]


def _columns(expr: Expr) -> Iterator[Col]:
    if isinstance(expr, Col):
        yield expr
    elif isinstance(expr, FunctionCall):
        for arg in expr.args:
            yield from _columns(arg)
