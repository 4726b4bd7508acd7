"""A small private table, hand-written bound queries on it, and their exact integers."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import duckdb

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.sql.expressions import Col, Expr, Facts
from hubbub.sql.finish import Tables, exact_results
from hubbub.sql.plan import Plan
from hubbub.sql.query import Aggregate, Key, OrderTerm, Query
from hubbub.sql.relations import Rel, Scan

REGIONS = ("North", "South", "Ça\u0301 va", "")


Row = tuple[object, ...]  #: patient, region, cost, age, flag


def bounds(low: int | Fraction, high: int | Fraction) -> Bounds:
    return Bounds(Fraction(low), Fraction(high))


REGION = Col("region", Kind.TEXT, Facts(values=REGIONS))
COST = Col("cost", Kind.REAL, Facts(bounds=bounds(-50, 200)))
AGE = Col("age", Kind.INTEGER, Facts(bounds=bounds(0, 110), step=Fraction(1)))
FLAG = Col("flag", Kind.BOOLEAN, Facts(values=(False, True)))
COLUMNS = (REGION, COST, AGE, FLAG)


def visits(unit: PrivacyUnit, relation: Relation = Relation.ADD_REMOVE) -> Table:
    """Return the declared table."""
    return Table(
        "visits",
        (
            Column("patient", Kind.INTEGER),
            Column("region", Kind.TEXT, values=REGIONS),
            Column("cost", Kind.REAL, bounds=COST.facts.bounds),
            Column("age", Kind.INTEGER, bounds=AGE.facts.bounds),
            Column("flag", Kind.BOOLEAN),
        ),
        unit,
        relation,
    )


def query(
    table: Table,
    aggregates: Sequence[Aggregate],
    *,
    keys: Sequence[Key] = (),
    sets: Sequence[tuple[int, ...]] | None = None,
    relation: Rel | None = None,
    select: Sequence[tuple[str, Expr]] | None = None,
    having: Expr | None = None,
    order: Sequence[OrderTerm] = (),
    limit: int | None = None,
    top: bool = False,
) -> Query:
    """Return a bound query that outputs its keys and aggregates."""
    scan = Scan(table, COLUMNS, tuple(column.name for column in COLUMNS))
    shown = [(key.name, Col(key.name, key.expr.kind)) for key in keys]
    shown += [(aggregate.name, Col(aggregate.name, Kind.REAL)) for aggregate in aggregates]
    return Query(
        (table,),
        relation or scan,
        tuple(keys),
        tuple(sets) if sets is not None else (tuple(range(len(keys))),),
        tuple(aggregates),
        tuple(select or shown),
        having,
        tuple(order),
        limit,
        top,
    )


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB with an empty table."""
    connection = duckdb.connect(":memory:", config={"threads": threads})
    connection.execute("CREATE TABLE visits (patient BIGINT, region VARCHAR, cost DOUBLE, age BIGINT, flag BOOLEAN)")
    return connection


def fill(connection: duckdb.DuckDBPyConnection, rows: Iterable[Row]) -> None:
    """Replace the rows of the table."""
    listed = list(rows)
    connection.execute("DELETE FROM visits")
    if listed:
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", listed)


def arrays(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Run SQL and return arrays (no column is an ENUM, which would not be an array)."""
    return dict(connection.execute(sql).fetchnumpy())


def run(connection: duckdb.DuckDBPyConnection, plan: Plan) -> Tables:
    """Run all statements of a plan."""
    return {each.name: arrays(connection, each.sql) for each in plan.statements}


def integers(connection: duckdb.DuckDBPyConnection, plan: Plan) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the exact integers before noise: measures and histograms."""
    return exact_results(plan, run(connection, plan))
