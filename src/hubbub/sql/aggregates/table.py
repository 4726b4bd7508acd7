"""The table of aggregates, and which of a query's aggregates share."""

from collections.abc import Sequence

from hubbub.errors import QueryError
from hubbub.sql.aggregates import counts, moments, sums
from hubbub.sql.aggregates.formula import Formula, Grid
from hubbub.sql.aggregates.order import Choice, choice
from hubbub.sql.query import Aggregate

_COUNTED = {"count", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"}

_MOMENTS = {
    "var_pop": moments.variance,
    "var_samp": moments.variance,
    "stddev_pop": moments.variance,
    "stddev_samp": moments.variance,
    "covar_pop": moments.covariance,
    "covar_samp": moments.covariance,
    "corr": moments.correlation,
    "regr_r2": moments.correlation,
    "regr_slope": moments.regression,
    "regr_intercept": moments.regression,
}


_CHOSEN = {"quantile", "min", "max", "mode"}


def formulas(aggregates: Sequence[Aggregate], grid: Grid) -> dict[str, Formula]:
    """Give the formula of each aggregate that is added up, by its name."""
    return {a.name: _formula(a, aggregates, grid) for a in aggregates if a.function not in _CHOSEN}


def choices(aggregates: Sequence[Aggregate], cells: int) -> tuple[Choice, ...]:
    """Give the choice of each aggregate that is chosen."""
    return tuple(choice(a, cells) for a in aggregates if a.function in _CHOSEN)


def _formula(aggregate: Aggregate, others: Sequence[Aggregate], grid: Grid) -> Formula:
    match aggregate.function:
        case "count":
            return counts.count(aggregate)
        case "count_units":
            return counts.count_units(aggregate)
        case "count_distinct":
            return counts.count_distinct(aggregate)
        case "avg":
            return sums.avg(aggregate, grid)
        case "sum":
            # what counts the same rows is there anyway: then a sum about the middle of the bounds is the better one
            counted = any(
                other.function in _COUNTED and other.arguments == aggregate.arguments and other.where == aggregate.where
                for other in others
            )
            return sums.sum_shared(aggregate, grid) if counted else sums.sum_alone(aggregate, grid)
        case function if function in _MOMENTS:
            return _MOMENTS[function](aggregate, grid)
        case function:
            raise QueryError("HB559", f"{function} is not an aggregate that can be answered here.", "")
