"""Blocks: their numbers, names and sets follow from the calendar alone."""

from datetime import date, timedelta
from typing import get_args

import pytest

from hubbub.core.blocks import BlockLength, Blocks, BlockSet, block_name, block_number, number, start

#: Around ends of months, leap days, and weeks that begin in one year and end in the next.
DAYS = [date(1999, 12, 25) + timedelta(days=n) for n in range(800)] + [date(1969, 12, 28), date(1970, 1, 1)]


@pytest.mark.parametrize("by", get_args(BlockLength))
def test_each_day_is_in_the_block_that_begins_last_before_it(by: BlockLength) -> None:
    for day in DAYS:
        block = number(by, day)
        assert start(by, block) <= day < start(by, block + 1)


@pytest.mark.parametrize("by", get_args(BlockLength))
def test_a_name_is_that_of_one_block(by: BlockLength) -> None:
    named = {block_name(by, number(by, day)): number(by, day) for day in DAYS}
    assert len(named) == len(set(named.values()))
    assert all(block_number(by, name) == block for name, block in named.items())


@pytest.mark.parametrize(
    ("by", "name"),
    [("month", "2026-13"), ("month", "2026-1"), ("day", "2026-02-30"), ("week", "2025-W53"), ("year", "26")],
)
def test_other_texts_are_no_names(by: BlockLength, name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        block_number(by, name)


def test_sets_of_blocks_have_one_form() -> None:
    """Every set of up to six blocks: operations are those of plain sets, and equal sets have equal ranges."""
    worlds = [frozenset(n for n in range(6) if mask >> n & 1) for mask in range(64)]
    for mine in worlds:
        some = BlockSet.of("month", mine)
        assert set(some) == mine
        assert len(some) == len(mine)
        assert set(some.between(1, 3)) == mine & {1, 2, 3}
        if mine:
            assert BlockSet.from_json(some.to_json()) == some
        for other in worlds[::7]:
            assert some.union(BlockSet.of("month", other)) == BlockSet.of("month", mine | other)
            assert some.without(other) == BlockSet.of("month", mine - other)


@pytest.mark.parametrize("ranges", [((3, 2),), ((0, 1), (2, 3)), ((4, 5), (0, 1))])
def test_ranges_in_another_form_are_refused(ranges: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match="in order"):
        BlockSet("month", ranges)


def test_blocks_exist_by_the_calendar() -> None:
    blocks = Blocks("day", "month", first=number("month", date(2026, 1, 1)), last=number("month", date(2026, 6, 30)))
    assert blocks.existing(date(2026, 3, 1)).names() == ["2026-01", "2026-02", "2026-03"]
    assert blocks.existing(date(2027, 3, 1)).names()[-1] == "2026-06"
    assert not len(blocks.existing(date(2025, 12, 31)))
    assert Blocks.from_json(blocks.to_json()) == blocks
    read = blocks.reading(blocks.existing(date(2026, 3, 1)))
    assert Blocks.from_json(read.to_json()) == read
