"""COUNT(*), COUNT(x), COUNT(DISTINCT unit)."""

from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Formula
from hubbub.sql.measures import Rows, Units
from hubbub.sql.query import Aggregate


def count(aggregate: Aggregate) -> Formula:
    """Count rows, or rows where the argument is not NULL."""
    return _of(Rows(aggregate.arguments, aggregate.where))


def count_units(aggregate: Aggregate) -> Formula:
    """Count the units that have a row."""
    return _of(Units(aggregate.where))


def _of(measure: Rows | Units) -> Formula:
    typical = float(TYPICAL_ROWS)
    return Formula((measure,), lambda sums: sums[0], 0.0, None, True, True, (typical,), typical, 0)
