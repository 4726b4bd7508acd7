"""Marginals: counts over the cells of some axes, as secret integer vectors.

Each marginal has its own contribution bounds, like a grouping set of a query; several are computed by one statement.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, Protection, Run, Setting, needs_bounds
from hubbub.analyses.tables.axes import Axis
from hubbub.core.secret import Secret, combine_secrets
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.allocation import unit_contribution
from hubbub.sql.bind import bind
from hubbub.sql.bounding import ContributionBounds, RenderOptions
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Literal as Constant
from hubbub.sql.keys import cells
from hubbub.sql.measures import Sensitivity, sensitivity
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Query

Counts = NDArray[np.int64]
CountKind = Literal["rows", "units"]

#: Maximum number of marginals in one statement.
AT_ONCE = 16


@dataclass(frozen=True)
class Marginal:
    """The counts over all combinations of some axes (none: the total), the last axis varying fastest."""

    axes: tuple[Axis, ...]
    plan: Plan

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each axis."""
        return tuple(each.size for each in self.axes)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(each.name for each in self.axes)

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of the counts, for the table's relation and contribution bounds."""
        return self.plan.measures[0].sensitivity

    @property
    def contribution(self) -> int:
        """The most that one unit adds to all cells together."""
        noised, (each,) = self.plan.measures[0], self.plan.cells
        return sensitivity(noised.measure, (unit_contribution(each, self.limits),), Relation.ADD_REMOVE).l1

    def part(self, size: int) -> Sensitivity:
        """Bound the sensitivity of `size` sums of cells, where every cell is part of exactly one sum.

        Theorem (Sums of bounded cells). Let every cell be part of exactly one of k sums, and let a unit add u ≥ 0 to
        the cells, Σu ≤ D. Then one unit more or less moves the sums by at most D in L1 and D² in squared L2; another
        in its place by at most 2D and 2D², and by D and D² where k = 1.
        Proof    The sums of u are v ≥ 0 with Σv ≤ D, so Σv² ≤ D². Of two such vectors no product of coordinates is
                 negative, so ‖v − w‖₂² ≤ ‖v‖₂² + ‖w‖₂²; two numbers in [0, D] differ by at most D.
        Tested   tests/analyses/tables/test_marginals.py::test_neighbors_move_sums_of_cells_by_no_more_than_stated
        """
        own, whole = self.contribution, self.sensitivity
        if size == self.size:
            return whole
        times = 1 if self.relation is Relation.ADD_REMOVE or size == 1 else 2
        return Sensitivity(min(times * own, whole.l1), times * own**2)

    @property
    def relation(self) -> Relation:
        """Which datasets are neighbors."""
        return self.plan.relation

    @property
    def limits(self) -> ContributionBounds | None:
        """The contribution bounds; None if the unit is the row."""
        return self.plan.limits

    @property
    def protection(self) -> Protection:
        """The tables, the relation and the contribution bounds."""
        return Protection(self.plan.query.tables, self.relation, self.limits)


def marginal(
    setting: Setting,
    table: str,
    axes: Sequence[Axis],
    *,
    count: CountKind = "rows",
    where: str | None = None,
    source: str | None = None,
) -> Marginal:
    """Plan one marginal of rows, or of the units with a row in a cell, optionally with a condition.

    The rows are those of the table, or of `source`, the text of a subquery with the columns of the axes.

    Theorem (Counts of a marginal). The vector of a marginal moves by at most `sensitivity` between neighbors: it is
    the vector of COUNT(*), or of COUNT(DISTINCT unit), of one grouping set, whatever the condition.
    Proof    "Sensitivity of bounded cells", for one grouping set. The condition is bound and checked with the whole
             text like any query's, and what is counted is taken from the bound query.
    Tested   tests/analyses/tables/test_marginals.py::test_neighbors_move_a_marginal_by_no_more_than_its_sensitivity
    """
    unit = setting.table(table).unit
    if count not in ("rows", "units"):
        raise QueryError("HB587", "count must be 'rows' or 'units'.", "Use count => 'units' or omit it.")
    if where is not None and not isinstance(where, str):
        raise QueryError("HB587", "where must be a string.", "Use where => 'age >= 18'.")
    by_unit = count == "units" and unit is not None and unit.column is not None
    name = setting.table(table).privacy_id
    if by_unit and name is None:
        raise QueryError("HB587", f"No visible column of {table} names its privacy unit.", "Use count => 'rows'.")
    asked = f"COUNT(DISTINCT {DUCKDB.identifier(name or '')})" if by_unit else "COUNT(*)"
    # a name that no column has, so that every column can be a group key
    names = [*(each.name for each in setting.table(table).columns), *(each.name for each in axes)]
    named = max(names, key=len) + "_"
    read = DUCKDB.identifier(table) if source is None else f"({source}) AS {DUCKDB.identifier(named)}"
    text = f"SELECT {asked} AS {DUCKDB.identifier(named)} FROM {read}"  # noqa: S608 - bound and checked
    # on separate lines, so that a comment in it ends there
    text += "" if where is None else f" WHERE (\n{where}\n)"
    text += f" GROUP BY {', '.join(each.key for each in axes)}" if axes else ""
    query = _without_nulls(bind(text, tables=setting.tables))
    found = cells(query)
    values = tuple(domain.values for domain in found[0].domains)
    if len(found) != 1 or len(query.aggregates) != 1 or values != tuple(each.codes for each in axes):
        named = ", ".join(each.name for each in axes)
        raise QueryError("HB587", f"Some categories of {named} cannot occur.", "Remove them or widen the bins.")
    private = [each for each in query.tables if each.unit is not None and each.unit.auto]
    if private:
        # a condition may read other tables
        raise needs_bounds(private[0].name)
    options: RenderOptions = setting.render_options
    planned = plan(
        query,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        salt=options.salt,
        groups=setting.groups,
        rows=setting.rows,
        noise="laplace",
        hashing=options.hashing,
        dialect=options.dialect,
    )
    return Marginal(tuple(axes), planned)


def _without_nulls(query: Query) -> Query:
    """Leave out rows without a category: the categories of an axis are those that were named."""
    keys = tuple(
        key
        if isinstance(key.expr, Constant)
        else replace(key, expr=replace(key.expr, facts=replace(key.expr.facts, null=False)))
        for key in query.keys
    )
    return replace(query, keys=keys)


def counts(run: Run, marginals: Sequence[Marginal]) -> Secret[tuple[Counts, ...]]:
    """Compute the exact counts of several marginals, as a secret."""
    asked = {
        str(start): run.ask(_text(marginals[start : start + AT_ONCE])) for start in range(0, len(marginals), AT_ONCE)
    }

    def scattered(found: dict[str, Arrays]) -> tuple[Counts, ...]:
        out = [np.zeros(each.size, dtype=np.int64) for each in marginals]
        for start, table in found.items():
            which = np.asarray(table["marginal"], dtype=np.int64)
            cell, count = (np.asarray(table[name], dtype=np.int64) for name in ("cell", "m0"))
            for place in range(int(start), min(int(start) + AT_ONCE, len(marginals))):
                own = which == place - int(start)
                np.add.at(out[place], cell[own], count[own])
        return tuple(out)

    return Secret(combine_secrets(asked).through(scattered))


def _text(marginals: Sequence[Marginal]) -> str:
    return " UNION ALL ".join(
        f"SELECT {place} AS marginal, cell, m0 FROM ({statement.sql}) AS t{place}"  # noqa: S608 - rendered texts
        for place, each in enumerate(marginals)
        for statement in each.plan.statements
    )
