"""Statements that run in parts, each with some of the units, give the integers of one statement over all of them.

Random worlds, as in tests/sql/test_groups_first.py. A part is a matter of memory alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.visits_table import AGE, COST, REGION, arrays, query, visits
from tests.sql.test_groups_first import SUMS, WORLD, WORLDS, YOUNG, table

from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.sql import partition_selection
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.expressions import Col
from hubbub.sql.finish import exact_results
from hubbub.sql.keys import DiscoveredCells
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Aggregate, Key, Query
from hubbub.sql.relations import Rel, Scan
from hubbub.sql.unit_parts import MAX_PARTS, expected_rows, part, predicted, small

SHAPES = {
    "sums": SUMS,
    "units": (Aggregate("u", "count_units"), Aggregate("w", "count_units", (), YOUNG), *SUMS),
    "histogram": (Aggregate("q", "quantile", (COST,), None, Fraction(1, 2)), Aggregate("n", "count")),
    "distinct values": (Aggregate("d", "count_distinct", (AGE,)), Aggregate("n", "count")),
}
UNITS = (
    PrivacyUnit("patient", groups=2, rows=3),
    PrivacyUnit("patient", groups=4, rows=4, rows_total=4),
    PrivacyUnit("patient", groups=1, rows=1),
)
DECLARED = (Key("world", WORLD), Key("region", REGION))
DISCOVERED = (Key("world", WORLD), Key("age", Col("age", Kind.INTEGER)))


@pytest.fixture(scope="module")
def worlds() -> duckdb.DuckDBPyConnection:
    """The table of all worlds."""
    return table(WORLDS)


def sized(asked: Query, rows: int | None) -> Query:
    """Declare a number of rows."""

    def declared(rel: Rel) -> Rel:
        if isinstance(rel, Scan):
            return replace(rel, table=replace(rel.table, expected_rows=rows))
        return replace(rel, input=declared(rel.input))  # type: ignore[union-attr, arg-type]

    return replace(asked, relation=declared(asked.relation))


def planned(
    shape: str, unit: PrivacyUnit, keys: Sequence[Key], rows: int | None, relation: Relation = Relation.ADD_REMOVE
) -> Plan:
    """Plan for 100 MB of memory."""
    asked = query(replace(visits(unit), relation=relation), SHAPES[shape], also=[WORLD], keys=keys)
    delta = Fraction(1, 10**6) if keys == DISCOVERED else Fraction(0)
    return plan(sized(asked, rows), epsilon=Fraction(1), delta=delta, salt="s", memory=100)


def run(worlds: duckdb.DuckDBPyConnection, made: Plan) -> dict[str, Mapping[str, NDArray[Any]]]:
    return {each.name: arrays(worlds, each.sql) for each in made.statements}


def by_group(columns: Mapping[str, NDArray[Any]]) -> list[tuple[str, ...]]:
    """Give the rows of a table in one order, with NULL and NaN as words."""
    names = sorted(columns)
    masked = [np.ma.getmaskarray(columns[name]) for name in names]
    data = [np.ma.getdata(columns[name]) for name in names]
    rows = zip(*(zip(m.tolist(), d.tolist(), strict=True) for m, d in zip(masked, data, strict=True)), strict=True)
    return sorted(tuple("null" if m or d is None or d != d else repr(float(d)) for m, d in row) for row in rows)


@pytest.mark.parametrize("unit", UNITS, ids=["2 × 3", "4 in all", "1 × 1"])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_add_up_to_the_whole(worlds: duckdb.DuckDBPyConnection, shape: str, unit: PrivacyUnit) -> None:
    """Neither bounds nor groups nor buckets change an integer, with declared groups."""
    whole, split = planned(shape, unit, DECLARED, None), planned(shape, unit, DECLARED, 3_000_000)
    assert split.work is not None
    assert split.work.parts > 3
    sums, histograms = exact_results(whole, run(worlds, whole))
    again, buckets = exact_results(split, run(worlds, split))
    assert [each.tolist() for each in again] == [each.tolist() for each in sums]
    assert [each.tolist() for each in buckets] == [each.tolist() for each in histograms]
    assert sum(int(np.abs(each).sum()) for each in sums) > WORLDS
    of_values = [each for each in split.statements if each.name.startswith("distinct")]
    assert len(split.statements) == split.work.parts + len(of_values) + (split.work.parts if buckets else 0)
    assert len(of_values) == (shape == "distinct values")


@pytest.mark.parametrize("shape", ["sums", "units", "histogram"])
def test_parts_add_up_to_the_whole_of_discovered_groups(worlds: duckdb.DuckDBPyConnection, shape: str) -> None:
    whole, split = (planned(shape, UNITS[0], DISCOVERED, rows) for rows in (None, 3_000_000))
    (cells,) = whole.groups
    assert isinstance(cells, DiscoveredCells)
    once, parts = run(worlds, whole), run(worlds, split)
    for statement in whole.statements:
        same = [parts[each.name] for each in split.statements if each.name.split(" part ")[0] == statement.name]
        assert len(same) > 3
        added = partition_selection.add_up(cells, same)
        assert by_group(added) == by_group(once[statement.name])
        assert len(added["k0"]) > WORLDS


def test_a_part_that_is_left_out_is_seen(worlds: duckdb.DuckDBPyConnection) -> None:
    whole, split = (planned("sums", UNITS[0], DECLARED, rows) for rows in (None, 3_000_000))
    tables = run(worlds, split)
    tables["sums0 part 2"] = {name: column[:0] for name, column in tables["sums0 part 2"].items()}
    honest, _ = exact_results(whole, run(worlds, whole))
    missing, _ = exact_results(split, tables)
    assert [each.tolist() for each in missing] != [each.tolist() for each in honest]


def test_no_part_is_where_neighbors_could_be_in_two_or_rows_have_no_unit() -> None:
    alone = planned("sums", UNITS[0], DECLARED, 3_000_000, Relation.REPLACE)
    assert alone.work is not None
    assert alone.work.parts == len(alone.statements) == 1
    by_row = planned("sums", PrivacyUnit(None), DECLARED, 3_000_000)
    assert by_row.work is not None
    assert by_row.work.parts == len(by_row.statements) == 1


def test_the_number_of_parts_grows_with_the_declared_rows_and_is_bounded() -> None:
    asked = query(visits(UNITS[0]), SUMS, keys=[Key("region", REGION)])
    parts = []
    for rows in (1, 10**6, 10**7, 10**12):
        work = predicted(sized(asked, rows).relation, numbers=3, keys=0, by_unit=True, memory=100)
        assert work is not None
        parts.append(work.parts)
    assert parts == sorted(parts)
    assert (parts[0], parts[-1]) == (1, MAX_PARTS)
    assert predicted(asked.relation, numbers=3, keys=0, by_unit=True, memory=100) is None


def test_nothing_but_declarations_decides(worlds: duckdb.DuckDBPyConnection) -> None:
    """The plan is made without a connection; other engines get no parts."""
    asked = sized(query(visits(UNITS[0]), SUMS, keys=[Key("region", REGION)]), 10**9)
    there = plan(asked, epsilon=Fraction(1), delta=Fraction(0), salt="s", memory=100, dialect=POSTGRES)
    assert (there.work, len(there.statements)) == (None, 1)
    assert worlds.execute("SELECT count(*) FROM visits").fetchone() != (10**9,)


def test_only_scans_of_units_get_a_part() -> None:
    asked = query(visits(UNITS[0]), SUMS, keys=[Key("region", REGION)])
    cut = part(asked.relation, 2, 5)
    assert cut != asked.relation
    assert expected_rows(cut) is None
    assert [small(sized(asked, rows).relation) for rows in (None, 20_000, 10**6)] == [False, True, False]
