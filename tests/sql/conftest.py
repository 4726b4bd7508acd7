"""Fixtures for tests of SQL: the clinic's tables, their data, and exact SQL of a bound query."""

from collections.abc import Callable, Mapping

import duckdb
import pytest
from tests.sql.corpus import clinic as corpus

from hubbub.core.schema import Table
from hubbub.sql import render
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.query import Aggregate, Query


@pytest.fixture(scope="session")
def clinic() -> Mapping[str, Table]:
    """Declared tables: two of one entity, one with row-level privacy, one of another entity, and a public one."""
    return corpus.tables()


@pytest.fixture(scope="session")
def furnish() -> Callable[[duckdb.DuckDBPyConnection, int], None]:
    """Return a function that fills a connection with random data of a seed."""
    return corpus.furnish


def _aggregate(aggregate: Aggregate) -> str:
    args = [render.expression(argument) for argument in aggregate.arguments]
    where = "" if aggregate.where is None else f" FILTER (WHERE {render.expression(aggregate.where)})"
    match aggregate.function:
        case "count":
            return f"count({args[0] if args else '*'}){where}"
        case "count_units":
            return f"count(DISTINCT {DUCKDB.identifier('$unit')}){where}"
        case "count_distinct":
            return f"count(DISTINCT {args[0]}){where}"
        case "quantile":
            return f"quantile_cont({args[0]}, {float(aggregate.level or 0)}){where}"
    return f"{aggregate.function}({', '.join(args)}){where}"


@pytest.fixture(scope="session")
def without_noise() -> Callable[[Query], str]:
    """Write a bound query as one SQL text: no contribution bounds, no noise, existing groups."""

    def text(query: Query) -> str:
        named = [f"{render.expression(key.expr)} AS {DUCKDB.identifier(key.name)}" for key in query.keys]
        aggregates = [f"{_aggregate(a)} AS {DUCKDB.identifier(a.name)}" for a in query.aggregates]
        keys = [DUCKDB.identifier(key.name) for key in query.keys]
        rows = f"SELECT {', '.join(['*', *named])} FROM ({render.relation(query.relation)}) AS r"
        sets = ", ".join(f"({', '.join(keys[i] for i in chosen)})" for chosen in query.sets)
        grouped = f" GROUP BY GROUPING SETS ({sets})" if keys else ""
        answers = f"SELECT {', '.join([*keys, *aggregates])} FROM ({rows}) AS g{grouped}"
        shown = ", ".join(f"{render.expression(expr)} AS {DUCKDB.identifier(name)}" for name, expr in query.select)
        where = "" if query.having is None else f" WHERE {render.expression(query.having)}"
        ways = [("DESC" if o.descending else "ASC", "FIRST" if o.nulls_first else "LAST") for o in query.order]
        terms = zip((render.expression(o.expr) for o in query.order), ways, strict=True)
        order = ", ".join(f"{expr} {way} NULLS {nulls}" for expr, (way, nulls) in terms)
        limit = "" if query.limit is None else f" LIMIT {query.limit}"
        return f"SELECT {shown} FROM ({answers}) AS a{where}{f' ORDER BY {order}' if order else ''}{limit}"

    return text
