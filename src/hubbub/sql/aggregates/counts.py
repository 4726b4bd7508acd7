"""COUNT(*), COUNT(x), COUNT(DISTINCT unit), COUNT(DISTINCT x)."""

from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Formula
from hubbub.sql.measures import Distinct, Rows, Units
from hubbub.sql.query import Aggregate


def count(aggregate: Aggregate) -> Formula:
    """Count rows, or rows where the argument is not NULL."""
    return of(Rows(aggregate.arguments, aggregate.where))


def count_units(aggregate: Aggregate) -> Formula:
    """Count the units that have a row."""
    return of(Units(aggregate.where))


def count_distinct(aggregate: Aggregate) -> Formula:
    """Count the different values of an argument."""
    (x,) = aggregate.arguments
    return of(Distinct(x, aggregate.where))


def of(measure: Rows | Units | Distinct) -> Formula:
    """Give a count as it was measured."""
    typical = float(TYPICAL_ROWS)
    place = None if isinstance(measure, Distinct) else 0
    return Formula(
        (measure,),
        lambda sums: sums[0],
        low=0.0,
        high=None,
        integer=True,
        linear=True,
        typical=(typical,),
        size=typical,
        count=place,
    )
