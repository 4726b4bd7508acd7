"""A bound query, ready for planning.

`select`, `having` and `order` are expressions over keys and aggregates only, so they are post-processing: they run on
the noisy results, outside the engine, and have no privacy cost.

Tested in tests/sql/test_bind.py.
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
    level     of a quantile (1/2 for the median)
    where     FILTER (WHERE …)
    """

    name: str
    function: str
    arguments: tuple[Expr, ...] = ()
    where: Expr | None = None
    level: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An expression of GROUP BY; without a finite list of values in its facts, it needs partition selection."""

    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """A term of ORDER BY."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query over one relation of private data.

    sets    grouping sets, as indices of `keys`; a plain GROUP BY is one set with all keys
    top     returns only the keys of the k largest counts: a private selection instead of all counts
    """

    tables: tuple[Table, ...]
    relation: Rel
    keys: tuple[Key, ...]
    sets: tuple[tuple[int, ...], ...]
    aggregates: tuple[Aggregate, ...]
    select: tuple[tuple[str, Expr], ...]
    having: Expr | None
    order: tuple[OrderTerm, ...]
    limit: int | None
    top: bool
