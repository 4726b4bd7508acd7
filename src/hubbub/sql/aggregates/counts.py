"""COUNT(*), COUNT(x), COUNT(DISTINCT unit) and COUNT(DISTINCT x).

Tested in tests/sql/test_aggregates.py.
"""

from abc import abstractmethod
from dataclasses import dataclass

from hubbub.core.schema import Kind
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Argument, Formula, FormulaAggregate, Resolution
from hubbub.sql.measures import DistinctCount, RowCount, UnitCount
from hubbub.sql.query import Aggregate


class CountAggregate(FormulaAggregate):
    """An aggregate that is one count."""

    argument: Argument = "any"

    @abstractmethod
    def measure(self, aggregate: Aggregate) -> RowCount | UnitCount | DistinctCount:
        """Return the measure that is the count."""

    def kind(self, aggregate: Aggregate) -> Kind:  # noqa: ARG002
        """Return the kind of a count."""
        return Kind.INTEGER

    def formula(self, aggregate: Aggregate, resolution: Resolution, *, counted: bool) -> Formula:  # noqa: ARG002
        """Return the count as it was measured."""
        return count_formula(self.measure(aggregate))


@dataclass(frozen=True)
class Count(CountAggregate):
    """COUNT(*) and COUNT(x): the rows, or the rows where the argument is not NULL."""

    name: str = "count"
    counts_rows: bool = True

    def measure(self, aggregate: Aggregate) -> RowCount:
        """Count rows."""
        return RowCount(aggregate.arguments, aggregate.where)


@dataclass(frozen=True)
class CountUnits(CountAggregate):
    """COUNT(DISTINCT unit): the privacy units that have a row."""

    name: str = "count_units"

    def measure(self, aggregate: Aggregate) -> UnitCount:
        """Count units."""
        return UnitCount(aggregate.where)


@dataclass(frozen=True)
class CountDistinct(CountAggregate):
    """COUNT(DISTINCT x): the distinct values of the argument."""

    name: str = "count_distinct"
    groups_by_value: bool = True

    def measure(self, aggregate: Aggregate) -> DistinctCount:
        """Count distinct values."""
        (x,) = aggregate.arguments
        return DistinctCount(x, aggregate.where)


def count_formula(measure: RowCount | UnitCount | DistinctCount) -> Formula:
    """Return the formula of a count."""
    typical = float(TYPICAL_ROWS)
    return Formula(
        (measure,),
        lambda sums: sums[0],
        low=0.0,
        high=None,
        integer=True,
        linear=True,
        typical=(typical,),
        size=typical,
        count=None if isinstance(measure, DistinctCount) else 0,
    )
