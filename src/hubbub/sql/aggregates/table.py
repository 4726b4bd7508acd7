"""The table of aggregate functions, and the formulas and choices of a query.

Tested in tests/sql/test_aggregates.py.
"""

from collections.abc import Mapping, Sequence

from hubbub.errors import QueryError
from hubbub.sql.aggregates.counts import Count, CountDistinct, CountUnits
from hubbub.sql.aggregates.distinct import OverDistinct
from hubbub.sql.aggregates.formula import AggregateFunction, Formula, FormulaAggregate, Resolution
from hubbub.sql.aggregates.moments import Correlation, CovarianceAggregate, Regression, Variance
from hubbub.sql.aggregates.order_statistics import Choice, Extreme, Mode, Quantile, SelectionAggregate, share
from hubbub.sql.aggregates.sums import Average, Sum
from hubbub.sql.query import Aggregate

#: Every aggregate that can be used in a query, by name.
AGGREGATES: Mapping[str, AggregateFunction] = {
    function.name: function
    for function in (
        Count(),
        CountUnits(),
        CountDistinct(),
        Sum(),
        Average(),
        Variance("var_pop"),
        Variance("var_samp", sample=True),
        Variance("stddev_pop", root=True),
        Variance("stddev_samp", sample=True, root=True),
        OverDistinct(Sum()),
        OverDistinct(Average()),
        OverDistinct(Variance("var_pop")),
        OverDistinct(Variance("var_samp", sample=True)),
        OverDistinct(Variance("stddev_pop", root=True)),
        OverDistinct(Variance("stddev_samp", sample=True, root=True)),
        CovarianceAggregate("covar_pop"),
        CovarianceAggregate("covar_samp", sample=True),
        Correlation("corr"),
        Correlation("regr_r2", squared=True),
        Regression("regr_slope"),
        Regression("regr_intercept", intercept=True),
        Quantile(),
        Extreme("min", largest=False),
        Extreme("max", largest=True),
        Mode(),
    )
}


def formulas(aggregates: Sequence[Aggregate], resolution: Resolution, *, centred: bool = True) -> dict[str, Formula]:
    """Return the formula of each aggregate that is computed from sums, by its name; sums may be about a center."""
    return {
        aggregate.name: function.formula(aggregate, resolution, counted=centred and _counted(aggregate, aggregates))
        for aggregate in aggregates
        if isinstance(function := aggregate_function(aggregate.function), FormulaAggregate)
    }


def choices(aggregates: Sequence[Aggregate], cells: int) -> tuple[Choice, ...]:
    """Return the choices of the aggregates that are selected from candidates."""
    alone = [
        function.choice(aggregate, cells)
        for aggregate in aggregates
        if isinstance(function := aggregate_function(aggregate.function), SelectionAggregate)
    ]
    return share(alone, cells)


def aggregate_function(name: str) -> AggregateFunction:
    """Return an aggregate function, or raise an error."""
    if name not in AGGREGATES:
        raise QueryError("HB559", f"{name} is not a supported aggregate.", f"Use one of: {', '.join(AGGREGATES)}.")
    return AGGREGATES[name]


def _counted(aggregate: Aggregate, others: Sequence[Aggregate]) -> bool:
    """Whether the query counts the rows of an aggregate anyway."""
    return any(
        aggregate_function(other.function).counts_rows
        and other.arguments == aggregate.arguments
        and other.where == aggregate.where
        for other in others
    )
