"""A small private table, bound queries over it written by hand, and the exact integers that neighbours have."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np

from hubbub.core.schema import Bounds, Column, Kind, Table, Unit
from hubbub.core.unit import Relation
from hubbub.sql.expressions import Col, Expr, Facts
from hubbub.sql.finish import Tables, exact
from hubbub.sql.plan import Plan
from hubbub.sql.query import Aggregate, Key, Order, Query
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


def visits(unit: Unit, relation: Relation = Relation.ADD_REMOVE) -> Table:
    """The table as its owner declares it."""
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
    order: Sequence[Order] = (),
    limit: int | None = None,
    top: bool = False,
) -> Query:
    """A bound query that shows its keys and aggregates."""
    scan = Scan(table, COLUMNS, tuple(column.name for column in COLUMNS))
    shown = [(key.name, Col(key.name, key.expr.kind)) for key in keys]
    shown += [(aggregate.name, Col(aggregate.name, Kind.REAL)) for aggregate in aggregates]
    return Query(
        (table,), relation or scan, tuple(keys), tuple(sets) if sets is not None else (tuple(range(len(keys))),),
        tuple(aggregates), tuple(select or shown), having, tuple(order), limit, top,
    )  # fmt: skip


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """An engine in memory with an empty table."""
    connection = duckdb.connect(":memory:", config={"threads": threads})
    connection.execute("CREATE TABLE visits (patient BIGINT, region VARCHAR, cost DOUBLE, age BIGINT, flag BOOLEAN)")
    return connection


def fill(connection: duckdb.DuckDBPyConnection, rows: Iterable[Row]) -> None:
    """Put these rows, and no others, into the table."""
    listed = list(rows)
    connection.execute("DELETE FROM visits")
    if listed:
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", listed)


def arrays(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Run a text; none of our columns is an ENUM, which would come as something else than an array."""
    return dict(connection.execute(sql).fetchnumpy())


def run(connection: duckdb.DuckDBPyConnection, plan: Plan) -> Tables:
    """Run every statement of a plan."""
    return {each.name: arrays(connection, each.sql) for each in plan.statements}


def integers(connection: duckdb.DuckDBPyConnection, plan: Plan) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The exact integers before noise: measures and histograms."""
    return exact(plan, run(connection, plan))


def apart(plan: Plan, one: Tables, two: Tables, *, nothing: bool = False) -> list[str]:
    """Say where two neighbours are further apart than is stated or, with `nothing`, where they differ at all."""
    if plan.threshold is not None:
        return _found_apart(plan, one, two, nothing=nothing)
    a, b = exact(plan, one), exact(plan, two)
    if nothing:
        pairs = zip((*a[0], *a[1]), (*b[0], *b[1]), strict=True)
        return [f"place {i} differs" for i, (x, y) in enumerate(pairs) if not np.array_equal(x, y)]
    if plan.top is not None:
        moved = np.abs(a[0][0] - b[0][0]).max(initial=0)
        one_way = (a[0][0] >= b[0][0]).all() or not plan.top.one.monotone
        return [] if moved <= plan.top.one.sensitivity and one_way else [f"counts moved by {moved}"]
    return excess(plan, a, b)


def _found_apart(plan: Plan, one: Tables, two: Tables, *, nothing: bool) -> list[str]:
    """Compare groups by their keys, all that occur on either side; one that is missing counts as zeros."""
    keys = [f"k{j}" for j in range(len(plan.groups[0].keys))]

    def names(table: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return list(zip(*(np.ma.getdata(table[key]).tolist() for key in keys), strict=True))

    every = {name for side in (one, two) for each in plan.statements for name in names(side[each.name])}
    cells = {name: i for i, name in enumerate(sorted(every, key=repr))}

    def dense(tables: Tables) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        measures = [np.zeros(len(cells), dtype=np.int64) for _ in plan.measures]
        histograms = [np.zeros((len(cells), each.count), dtype=np.int64) for each in plan.histograms]
        for statement in plan.statements:
            table = tables[statement.name]
            at = np.array([cells[name] for name in names(table)], dtype=np.int64)
            for column, target in enumerate(statement.targets):
                found = np.asarray(table[f"m{column}"], dtype=np.int64)
                if statement.fills == "measures":
                    np.add.at(measures[target], at, found)
                else:
                    np.add.at(histograms[target], (at, np.asarray(table["bucket"], dtype=np.int64)), found)
        return tuple(measures), tuple(histograms)

    a, b = dense(one), dense(two)
    if nothing:
        pairs = zip((*a[0], *a[1]), (*b[0], *b[1]), strict=True)
        return [f"place {i} differs" for i, (x, y) in enumerate(pairs) if not np.array_equal(x, y)]
    return excess(plan, a, b)


def excess(
    plan: Plan, one: tuple[tuple[Any, ...], tuple[Any, ...]], two: tuple[tuple[Any, ...], tuple[Any, ...]]
) -> list[str]:
    """Say where two neighbours are further apart than the plan states."""
    found = []
    for noised, a, b in zip(plan.measures, one[0], two[0], strict=True):
        moved = [abs(int(x) - int(y)) for x, y in zip(a[a != b], b[a != b], strict=True)]
        if sum(moved) > noised.sensitivity.l1 or sum(m * m for m in moved) > noised.sensitivity.l2_squared:
            found.append(f"{noised.measure}: moved {moved}, stated {noised.sensitivity}")
    for each in plan.choices:
        a, b = one[1][each.histogram], two[1][each.histogram]
        for pick in each.picks:
            apart = np.abs(pick.aim.scores(a) - pick.aim.scores(b)).max(axis=1)
            # a cell may move by more than one unit's part under replace only where fewer cells move
            allowed = pick.mechanism.sensitivity
            cost = apart.sum() / allowed
            if apart.max(initial=0) > allowed or cost > each.times:
                found.append(f"{each.choice.name}: scores moved {apart}, stated {allowed} in {each.times} cells")
    return found
