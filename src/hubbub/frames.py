"""Columns and aggregates for frames: `from hubbub.frames import avg, col, count`."""

from hubbub.answers.frame_expressions import (
    avg,
    col,
    count,
    max_,
    median,
    min_,
    n_unique,
    quantile,
    stddev,
    sum_,
    variance,
)
from hubbub.answers.frames import QueryFrame, ibis_sql

__all__ = [
    "QueryFrame",
    "avg",
    "col",
    "count",
    "ibis_sql",
    "max_",
    "median",
    "min_",
    "n_unique",
    "quantile",
    "stddev",
    "sum_",
    "variance",
]
