"""Where units are cut to a number of rows, bounds that this implies are not enforced again: the integers stay equal.

Random worlds, as in tests/sql/test_groups_first.py; the reference is the statement that enforces every bound.
"""

from collections.abc import Sequence
from fractions import Fraction

import duckdb
import pytest
from tests.fixtures.visits_table import AGE, COST, REGION, arrays, query, visits
from tests.sql.test_groups_first import SUMS, WORLD, WORLDS, YOUNG, table

from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.sql import bounding
from hubbub.sql.expressions import Col
from hubbub.sql.plan import plan
from hubbub.sql.query import Aggregate, Key

SHAPES = {
    "sums": SUMS,
    "sums and units": (*SUMS, Aggregate("u", "count_units"), Aggregate("w", "count_units", (), YOUNG)),
    "distinct values": (Aggregate("d", "count_distinct", (AGE,)), Aggregate("n", "count")),
    "histogram": (Aggregate("q", "quantile", (COST,), None, Fraction(1, 2)),),
}
DISCOVERED = (Key("world", WORLD), Key("age", Col("age", Kind.INTEGER)))


@pytest.fixture(scope="module")
def worlds() -> duckdb.DuckDBPyConnection:
    """The table of all worlds."""
    return table(WORLDS)


def found(
    worlds: duckdb.DuckDBPyConnection, shape: str, unit: PrivacyUnit, keys: Sequence[Key], delta: Fraction
) -> tuple[dict[str, list[tuple[object, ...]]], int]:
    """Return the rows of every statement, and the characters of all."""
    asked = query(visits(unit), SHAPES[shape], also=[WORLD], keys=keys)
    made = plan(asked, epsilon=Fraction(1), delta=delta, salt="s")
    rows = {}
    for each in made.statements:
        columns = arrays(worlds, each.sql)
        rows[each.name] = sorted(zip(*(column.tolist() for column in columns.values()), strict=True), key=repr)
    return rows, sum(len(each.sql) for each in made.statements)


@pytest.mark.parametrize("discovered", [False, True])
@pytest.mark.parametrize(("groups", "rows", "total"), [(4, 4, 4), (2, 4, 4), (4, 2, 4), (9, 9, 7), (2, 2, 3)])
@pytest.mark.parametrize("shape", SHAPES)
def test_bounds_that_a_cut_implies_change_no_integer(
    worlds: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
    groups: int,
    rows: int,
    total: int,
    discovered: bool,  # noqa: FBT001
) -> None:
    unit = PrivacyUnit("patient", groups=groups, rows=rows, rows_total=total)
    keys = DISCOVERED if discovered else (Key("world", WORLD), Key("region", REGION))
    delta = Fraction(1, 10**6) if discovered else Fraction(0)
    short, length = found(worlds, shape, unit, keys, delta)
    monkeypatch.setattr(bounding, "_within_cut", lambda _, __: False)
    every, longest = found(worlds, shape, unit, keys, delta)
    assert short == every
    assert all(len(each) > WORLDS for each in short.values())
    assert length < longest if min(groups, rows) >= total else length <= longest


def test_a_bound_below_the_cut_taken_for_implied_is_seen(
    worlds: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = PrivacyUnit("patient", groups=2, rows=2, rows_total=3)
    keys = (Key("world", WORLD), Key("region", REGION))
    honest, _ = found(worlds, "sums", unit, keys, Fraction(0))
    monkeypatch.setattr(bounding, "_within_cut", lambda _, __: True)
    assert found(worlds, "sums", unit, keys, Fraction(0))[0] != honest
