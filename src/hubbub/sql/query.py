"""A bound query: what is asked of the crowd, ready to be planned.

`select`, `having` and `order` are expressions over the names of keys and aggregates alone, so they are post-processing:
they run on the noisy answers, outside the engine, and cost nothing.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.schema import Table
from hubbub.sql.expressions import Expr
from hubbub.sql.relations import Rel


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate over a group's rows.

    function  count, count_distinct, count_units, sum, avg, var_pop, var_samp, stddev_pop, stddev_samp, covar_pop,
              covar_samp, corr, regr_slope, regr_intercept, regr_r2, quantile, min, max, mode
    level     the quantile asked for (median is one half)
    where     FILTER (WHERE …)
    """

    name: str
    function: str
    arguments: tuple[Expr, ...] = ()
    where: Expr | None = None
    level: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """One expression of GROUP BY; its facts hold a finite list of values, or it must be discovered privately."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class Order:
    """One term of ORDER BY."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query over one relation of private data.

    sets    grouping sets, as places in `keys`; a plain GROUP BY is one set with all of them
    top     asks only for the keys of the k largest counts: one selection instead of all the counts
    """

    tables: tuple[Table, ...]
    relation: Rel
    keys: tuple[Key, ...]
    sets: tuple[tuple[int, ...], ...]
    aggregates: tuple[Aggregate, ...]
    select: tuple[tuple[str, Expr], ...]
    having: Expr | None
    order: tuple[Order, ...]
    limit: int | None
    top: bool
