"""The input of a program: complete rows of chosen columns, contribution bounds, and exact sums over cells.

Tested in tests/analyses/programs/test_itemsets.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, Protection, Run, Setting
from hubbub.core.schema import Bounds, Column, Kind, Table, Value
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql import bounding
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.bounding import ContributionBounds, RenderOptions
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, facts
from hubbub.sql.functions import build
from hubbub.sql.keys import Cells, Domain
from hubbub.sql.measures import Additive, UnitContribution
from hubbub.sql.query import Key
from hubbub.sql.relations import Filter, Rel, Scan

MAX_COLUMNS = 64


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """The rows of one table in which no chosen column is NULL, with their contribution bounds."""

    table: Table
    columns: tuple[Col, ...]
    names: tuple[str, ...]
    rows: Rel
    limits: ContributionBounds | None
    render_options: RenderOptions

    @property
    def relation(self) -> Relation:
        """Which datasets are neighbors."""
        return self.table.relation

    @property
    def protection(self) -> Protection:
        """The table, the relation and the contribution bounds."""
        return Protection((self.table,), self.relation, self.limits)

    def contribution_bounds(self, cells: int) -> UnitContribution:
        """Bound in how many of the cells a unit has rows, and how many rows in each."""
        if self.limits is None:
            return UnitContribution(cells, 1, 1)
        return UnitContribution(cells, min(self.limits.groups, cells), self.limits.rows)

    def column(self, name: str) -> Col:
        """Find a chosen column by its name."""
        return self.columns[self.names.index(name)]

    def integers(self, run: Run, rows: Rel, cells: Cells, measures: Sequence[Additive]) -> Secret[NDArray[np.int64]]:
        """Compute all measures over all cells in one query: exact integers (measure, cell), as a secret."""
        text = bounding.sums(rows, cells, measures, limits=self.limits, options=self.render_options)
        return Secret(run.ask(text).through(lambda table: _scattered(table, len(measures), cells.size)))

    def lines(self) -> list[str]:
        """Give the first lines of the derivation."""
        verb = "added or removed" if self.relation is Relation.ADD_REMOVE else "replaced by another"
        scan = f"scan {self.table.name}: rows in which {', '.join(self.names)} are all there, clamped into their bounds"
        if self.limits is None:
            return [scan, f"neighbors: one row {verb}"]
        kept = f"each unit keeps at most {self.limits.groups} cells a query and {self.limits.rows} rows in each"
        return [scan, f"neighbors: all rows of one unit {verb}; {kept}"]


def program_input(setting: Setting, table: object, columns: Sequence[object]) -> ProgramInput:
    """Choose columns of a private table; rows in which one of them is NULL are ignored."""
    source = setting.table(table)
    names = tuple(_column(source, name).name for name in columns)
    if not 1 <= len(names) <= MAX_COLUMNS or len(set(names)) < len(names):
        raise QueryError("HB540", f"columns must list 1 to {MAX_COLUMNS} different columns.", "Correct the list.")
    chosen = [_column(source, name) for name in names]
    cols = tuple(Col(f"x{j}", column.kind, column_facts(column)) for j, column in enumerate(chosen))
    there = [call("not", call("is_null", col)) for col in cols]
    predicate = there[0] if len(there) == 1 else call("and", *there)
    return ProgramInput(
        source,
        cols,
        names,
        Filter(Scan(source, cols, names), predicate),
        limits(setting, source),
        setting.render_options,
    )


def limits(setting: Setting, table: Table) -> ContributionBounds | None:
    """Give the contribution bounds: the owner's, or tighter ones if the analyst requests them."""
    unit = table.unit
    if unit is None or unit.column is None:
        return None
    return ContributionBounds(unit.groups, unit.rows).tightened(setting.groups, setting.rows)


def _column(table: Table, name: object) -> Column:
    found = table.column(name) if isinstance(name, str) else None
    unit = None if table.unit is None else table.unit.column
    if found is None or found.name == unit:
        raise QueryError(
            "HB541",
            f"{table.name} has no column {name!r} that an analysis can use.",
            f"Available: {', '.join(c.name for c in table.columns if not c.hidden and c.name != unit)}.",
        )
    return found


def column_bounds(inputs: ProgramInput, name: str) -> Bounds:
    """Give the declared bounds of a numeric column, or reject it."""
    col = inputs.column(name)
    bounds = facts(col).bounds if col.kind.numeric else None
    if bounds is None or not bounds.low < bounds.high or bounds.high - bounds.low >= 1 << 52:
        raise QueryError(
            "HB542", f"{name!r} is not a numeric column with bounds.", "Declare its bounds or choose another column."
        )
    return bounds


def column_values(inputs: ProgramInput, name: str) -> tuple[Value, ...]:
    """Give the declared values of a column, or reject it."""
    col = inputs.column(name)
    values = (False, True) if col.kind is Kind.BOOLEAN else facts(col).values
    if not values:
        raise QueryError("HB543", f"The values of {name!r} are not declared.", "Declare them or choose another column.")
    return tuple(values)


def call(function: str, *args: Expr) -> FunctionCall:
    """Apply a function of the SQL allow-list."""
    made = build(function, args)
    if made is None:
        raise AssertionError(f"{function} does not accept these arguments")
    return made


def real(value: float | Fraction) -> Literal:
    """Write a public real number: a constant, or one computed from noisy answers."""
    return Literal(Fraction(value), Kind.REAL)


def whole(value: int) -> Literal:
    """Write an integer."""
    return Literal(value, Kind.INTEGER)


def equals(col: Col, value: Value) -> FunctionCall:
    """Test whether a column has a value."""
    return call("eq", col, Literal(value, col.kind))


def added(terms: Sequence[Expr]) -> Expr:
    """Add up expressions, from the left."""
    total = terms[0]
    for term in terms[1:]:
        total = call("add", total, term)
    return total


def one_cell() -> Cells:
    """Give the single cell of all rows."""
    return Cells((), ())


def numbered_cells(expr: Expr, count: int | range) -> Cells:
    """Give the cells of an expression whose values are 0, …, count − 1; those of a range are not listed."""
    return Cells((0,), (Domain(Key("cell", expr), count if isinstance(count, range) else tuple(range(count))),))


def value_cells(*keys: tuple[Expr, tuple[Value, ...]]) -> Cells:
    """Give the cells of several expressions over the values of each, the last varying fastest."""
    return Cells(
        tuple(range(len(keys))),
        tuple(Domain(Key(f"key{j}", expr), values) for j, (expr, values) in enumerate(keys)),
    )


def _scattered(table: Arrays, measures: int, cells: int) -> NDArray[np.int64]:
    out = np.zeros((measures, cells), dtype=np.int64)
    at = np.asarray(table["cell"], dtype=np.int64)
    for place in range(measures):
        np.add.at(out[place], at, np.asarray(table[f"m{place}"], dtype=np.int64))
    return out
