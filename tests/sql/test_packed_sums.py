"""One double carries the number of rows and several sums: exact up to the bound, and more rows are always seen."""

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pytest

from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.packed_sums import PackedSums, packed

Row = tuple[int | None, ...]
#: By name: the range of each measure, and the bound on rows. The last two leave no bit of the 53 unused, or too few.
SHAPES: dict[str, tuple[dict[int, tuple[int, int]], int]] = {
    "rows alone": ({}, 3),
    "one bit": ({0: (0, 1)}, 1),
    "signed": ({0: (-7, 5), 1: (0, 1), 2: (-3, -1), 3: (2, 9)}, 5),
    "full": ({0: (-(2**20), 2**20), 1: (0, 2**20 - 1)}, 15),
    "too wide": ({0: (-(2**52), 2**52), 1: (0, 1)}, 4),
}


def fields_of(shape: str) -> PackedSums:
    """Pack the sums of a shape, which always has room for the rows."""
    found = packed(*SHAPES[shape])
    assert found is not None
    return found


def pairs(shape: str) -> list[list[Row]]:
    """Pairs with up to three rows more than the bound, each row the least, the most, nothing or 1 for each measure."""
    ranges, bound = SHAPES[shape]
    kinds: list[Row] = [
        tuple(low for low, _ in ranges.values()),
        tuple(high for _, high in ranges.values()),
        tuple(None for _ in ranges),
        tuple(min(high, max(low, 1)) for low, high in ranges.values()),
    ]
    some = [[kinds[(i * step) % 4] for i in range(n)] for n in range(1, bound + 4) for step in (1, 3)]
    return some + [[kind] * n for kind in kinds for n in (*range(1, bound + 4), 3000)]


def added_up(fields: PackedSums, rows: Sequence[Sequence[Row]], measures: int) -> list[tuple[int | None, ...]]:
    """Add up each pair in the engine: the number of rows and the sums that were packed, or NULL above the threshold."""
    names = [f"v{i}" for i in range(measures)]
    columns = "".join(f", {name}" for name in names)
    listed = ", ".join(
        str((place, *each)).replace("None", "NULL").replace(",)", ")")
        for place, pair in enumerate(rows)
        for each in pair
    )
    light = f"p < {DUCKDB.number(fields.threshold)}"
    values = ", ".join([fields.count("b"), *(fields.sum(i, "b") for i in fields.fields)])
    added = f"SELECT pair, sum({fields.row(DUCKDB)}) AS p FROM (VALUES {listed}) AS t(pair{columns}) GROUP BY pair"
    whole = f"SELECT pair, CAST(CASE WHEN {light} THEN p END AS BIGINT) AS b FROM ({added})"
    with duckdb.connect(":memory:") as engine:
        return engine.execute(f"SELECT {values} FROM ({whole}) ORDER BY pair").fetchall()


def expected(rows: Sequence[Row], bound: int, places: Sequence[int]) -> tuple[int | None, ...]:
    """Add up one pair by hand."""
    if len(rows) > bound:
        return (None,) * (1 + len(places))
    return (len(rows), *(sum(row[place] or 0 for row in rows) for place in places))


@pytest.mark.parametrize("shape", SHAPES)
def test_fields_are_exact_up_to_the_bound_and_more_rows_are_seen(shape: str) -> None:
    fields, (ranges, bound) = fields_of(shape), SHAPES[shape]
    rows = pairs(shape)
    assert fields.threshold <= 2**53
    assert added_up(fields, rows, len(ranges)) == [expected(each, bound, list(fields.fields)) for each in rows]


def test_what_does_not_fit_stays_alone() -> None:
    assert list(fields_of("too wide").fields) == [1]
    assert list(fields_of("full").fields) == [0, 1]
    assert packed({}, 2**53 - 1) is not None
    assert packed({}, 2**53) is None


def test_fields_that_are_too_small_are_seen() -> None:
    fields, (ranges, bound) = fields_of("signed"), SHAPES["signed"]
    rows = pairs("signed")
    honest = [expected(each, bound, list(fields.fields)) for each in rows]
    for place, field in fields.fields.items():
        for wrong in (replace(field, bits=field.bits - 1), replace(field, raised=field.raised - 1)):
            changed = replace(fields, fields={**fields.fields, place: wrong})
            assert added_up(changed, rows, len(ranges)) != honest
    assert added_up(replace(fields, top=fields.top - 1), rows, len(ranges)) != honest
