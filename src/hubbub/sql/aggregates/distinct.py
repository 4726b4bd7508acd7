"""SUM(DISTINCT x), AVG(DISTINCT x), VARIANCE(DISTINCT x) and STDDEV(DISTINCT x): each value of a group counts once.

Tested in tests/sql/test_aggregates.py.
"""

from dataclasses import dataclass, replace

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.aggregates.formula import Formula, FormulaAggregate, Resolution
from hubbub.sql.expressions import Expr, finds_bounds
from hubbub.sql.measures import BoundedSum, DistinctCount, DistinctSum, Measure, RowCount
from hubbub.sql.query import Aggregate

#: What is added to the name of an aggregate over rows.
SUFFIX = "_distinct"


@dataclass(frozen=True)
class OverDistinct(FormulaAggregate):
    """An aggregate of one argument over its distinct values instead of over rows."""

    over_rows: FormulaAggregate
    groups_by_value: bool = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the aggregate in a bound query."""
        return self.over_rows.name + SUFFIX

    def kind(self, aggregate: Aggregate) -> Kind:
        """Return the kind of the same aggregate over rows."""
        return self.over_rows.kind(aggregate)

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:  # noqa: ARG002
        """Compute it as over rows, from counts and sums of distinct values."""
        (x,) = aggregate.arguments
        if finds_bounds(x):
            raise QueryError(
                "HB512",
                "DISTINCT needs declared bounds here: bounds that a query finds would merge distinct values.",
                "Write WHERE x BETWEEN 0 AND 100, or GREATEST(0, LEAST(x, 100)), in which NULL counts as 100. The data "
                "owner can declare bounds instead.",
            )
        formula = self.over_rows.formula(aggregate, resolution, counted=False)
        return replace(formula, measures=tuple(_of_values(measure, x) for measure in formula.measures))


def _of_values(measure: Measure, x: Expr) -> Measure:
    """Return the measure over distinct values that corresponds to one over rows."""
    if isinstance(measure, RowCount):
        return DistinctCount(x, measure.where)
    if not isinstance(measure, BoundedSum):
        raise AssertionError("aggregates over distinct values are computed from counts and sums")
    return DistinctSum(x, measure)
