"""Choosing the groups of a unit before or after its rows gives the same integers, whatever the rows are.

The table holds many worlds of a few units each; the world is a group key, so that each is compared by itself.
`HUBBUB_CAMPAIGN=full` compares 10,000 worlds in each of the shapes.
"""

import os
import random
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

import duckdb
import pytest
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.visits_table import AGE, COST, REGION, REGIONS, arrays, query, visits

from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.core.unit import Hash
from hubbub.sql.dialects.duckdb import DUCKDB, DuckDBDialect
from hubbub.sql.expressions import Col, Facts, FunctionCall, Literal
from hubbub.sql.plan import plan
from hubbub.sql.query import Aggregate, Key

WORLDS = 10_000 if os.environ.get("HUBBUB_CAMPAIGN") == "full" else 300
WORLD = Col("world", Kind.INTEGER, Facts(values=range(WORLDS)))
YOUNG = FunctionCall("lt", (AGE, Literal(40, Kind.INTEGER)), Kind.BOOLEAN)
COSTS: tuple[float | None, ...] = (None, float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e300, 5e-324, 0.1, 7.0)
AGES: tuple[int | None, ...] = (None, 0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), 39, 40)
SUMS = (Aggregate("n", "count"), Aggregate("s", "sum", (COST,)), Aggregate("a", "avg", (AGE,), YOUNG))
SHAPES = {
    "sums": SUMS,
    "sums and units": (*SUMS, Aggregate("u", "count_units"), Aggregate("w", "count_units", (), YOUNG)),
    "squares": (Aggregate("v", "var_samp", (COST,)), Aggregate("r", "corr", (COST, AGE))),
}


class GroupsLast(DuckDBDialect):
    """DuckDB's SQL as other engines write it: rows first."""

    groups_first = False


def table(worlds: int) -> duckdb.DuckDBPyConnection:
    """Units with few rows and with many, copies of rows, ties, NULL, and values at the ends of their types."""
    rng = random.Random(20261118)
    connection = duckdb.connect(":memory:", config={"threads": 2})
    connection.execute(
        "CREATE TABLE visits (patient BIGINT, region VARCHAR, cost DOUBLE, age BIGINT, flag BOOLEAN, world BIGINT)"
    )
    rows: list[tuple[object, ...]] = []
    for world in range(worlds):
        for unit in range(rng.randrange(1, 4)):
            for _ in range(rng.choice((0, 1, 2, 6, 15))):
                cost = rng.choice(COSTS) if rng.random() < 0.5 else rng.uniform(-80, 250)
                age = rng.choice(AGES) if rng.random() < 0.5 else rng.randrange(100)
                owner = None if rng.random() < 0.02 else world * 10 + unit
                row = (owner, rng.choice((*REGIONS[:3], None, "elsewhere")), cost, age, True, world)
                rows += [row] * rng.choice((1, 1, 1, 4))
    rng.shuffle(rows)
    insert_rows(connection, "visits", rows)
    return connection


@pytest.fixture(scope="module")
def worlds() -> duckdb.DuckDBPyConnection:
    """The table of all worlds."""
    return table(WORLDS)


def found(
    connection: duckdb.DuckDBPyConnection,
    dialect: DuckDBDialect,
    aggregates: Sequence[Aggregate],
    unit: PrivacyUnit,
    hashing: Hash,
) -> dict[str, list[tuple[int, ...]]]:
    asked = query(visits(unit), aggregates, also=[WORLD], keys=[Key("world", WORLD), Key("region", REGION)])
    made = plan(asked, epsilon=Fraction(1), delta=Fraction(0), salt="s", hashing=hashing, dialect=dialect)
    tables = {each.name: arrays(connection, each.sql) for each in made.statements}
    return {
        name: sorted(zip(*(column.tolist() for column in columns.values()), strict=True))
        for name, columns in tables.items()
    }


@pytest.mark.parametrize("hashing", ["engine", "portable"])
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (2, 3), (3, 1), (9, 2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_groups_or_rows_first_gives_the_same_integers(
    worlds: duckdb.DuckDBPyConnection, shape: str, groups: int, rows: int, hashing: Hash
) -> None:
    unit = PrivacyUnit("patient", groups=groups, rows=rows)
    before = found(worlds, GroupsLast(), SHAPES[shape], unit, hashing)
    assert found(worlds, DUCKDB, SHAPES[shape], unit, hashing) == before
    assert len(before["sums0"]) > WORLDS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"p < ([0-9.e]+)", lambda least: f"p < {float(least[1]) * 4 / 3!r}"),
        (r"place <= 2\)", "place <= 3)"),
        (r"WHERE u IS NOT NULL", "WHERE FALSE"),
        (r", i\) AS place", ") AS place"),
    ],
    ids=["a light pair with a row too many", "a row or a group too many", "no rows of heavy pairs", "honest"],
)
def test_planted_differences_are_seen(
    worlds: duckdb.DuckDBPyConnection, old: str, new: str | Callable[[re.Match[str]], str]
) -> None:
    """Only the order of equal hashes is free to change, as there are none."""
    asked = query(
        visits(PrivacyUnit("patient", groups=2, rows=2)), SUMS, also=[WORLD], keys=[Key("w", WORLD), Key("r", REGION)]
    )
    (statement,) = plan(asked, epsilon=Fraction(1), delta=Fraction(0), salt="s").statements
    planted, times = re.subn(old, new, statement.sql)
    assert times
    honest = sorted(worlds.execute(statement.sql).fetchall())
    changed = sorted(worlds.execute(planted).fetchall())
    assert (honest == changed) == (new == ") AS place")
