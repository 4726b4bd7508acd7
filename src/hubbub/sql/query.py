"""A bound query, ready for planning.

`select`, `having` and `order` are expressions over keys and aggregates only, so they are post-processing: they run on
the noisy results, outside the engine, and have no privacy cost.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.schema import Kind, Table
from hubbub.sql.expressions import Expr
from hubbub.sql.relations import Rel


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate over a group's rows.

    function  count, count_distinct, count_units, sum, avg, var_pop, var_samp, stddev_pop, stddev_samp, covar_pop,
              covar_samp, corr, regr_slope, regr_intercept, regr_r2, quantile, min, max, mode;
              sum_distinct, avg_distinct, var_pop_distinct and others are over the distinct values
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


def grouping_name(key: str) -> str:
    """Return the name of the column that tells, by 1 or 0, whether the grouping set of a row lacks a key."""
    return f"grouping:{key}"


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """A term of ORDER BY."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """The noisy result of a query as a table that another query reads."""

    name: str
    columns: tuple[tuple[str, Kind], ...]


@dataclass(frozen=True, slots=True)
class Replicas:
    """How the intervals of a query over one released table follow from copies of its rows.

    sql       gives for each copy and output row: the copy, the row, the smooth outputs, and the divisors in them
    copied    outputs that are released columns, by place, with the name of the column
    smooth    outputs that are smooth in the noise, by place, with the names of the columns that they read
    divisors  for each smooth output, the places of its divisors
    exact     outputs that read no noisy value, by place
    """

    sql: str
    copied: tuple[tuple[int, str], ...]
    smooth: tuple[tuple[int, frozenset[str]], ...]
    divisors: tuple[tuple[int, ...], ...]
    exact: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class After:
    """A query over released tables and small public ones, as text for DuckDB. It is post-processing.

    outputs   the names of its columns, and their types in DuckDB
    replicas  how its intervals are computed, if it has some; the last column is then the number of each row
    """

    sql: str
    released: tuple[ReleasedTable, ...]
    public: tuple[Table, ...]
    outputs: tuple[tuple[str, str], ...]
    replicas: Replicas | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A query over one relation of private data.

    sets    grouping sets, as indices of `keys`; a plain GROUP BY is one set with all keys
    top     returns only the keys of the k largest counts: a private selection instead of all counts
    after   the query over the result, if the result is not the answer itself
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
    after: After | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """How the results of several queries become one result: their rows, one query after the other.

    count    so many of the last queries
    columns  so many of their first columns are shown
    order    the order of all rows, over columns of the results
    limit    the number of rows that are kept
    """

    count: int
    columns: int
    order: tuple[OrderTerm, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Queries:
    """Several queries that are released together, and the query over their results that is the answer.

    after     None if the answer is the result of the last query
    values    so many of the first queries give one number each, which later ones read
    together  the last queries are the grouping sets of one query, whose result their results are together
    """

    parts: tuple[Query, ...]
    after: After | None
    values: int = 0
    together: Together | None = None
