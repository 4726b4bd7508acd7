"""Rows with two owners are truncated so that one owner moves the total by at most the bound; on all small datasets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations, product

import numpy as np
import pytest

from hubbub.sql.owner_truncation import OwnedWeights, exact_sums, truncate

#: A row: its two owners and its weight.
Row = tuple[int, int, int]
Keep = Callable[[Sequence[Row], int], list[int]]


def rows_of(rows: Sequence[Row]) -> OwnedWeights:
    first, second, weights = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    return OwnedWeights(first, second, weights)


def kept_one_by_one(rows: Sequence[Row], bound: int) -> list[int]:
    """Keep of each row what both owners have room for, one row after the other."""
    used: dict[int, int] = {}
    kept = []
    for first, second, weight in rows:
        owners = {first, second}
        amount = min(weight, *(bound - used.get(owner, 0) for owner in owners))
        for owner in owners:
            used[owner] = used.get(owner, 0) + amount
        kept.append(amount)
    return kept


def first_of_both(rows: Sequence[Row], bound: int) -> list[int]:
    """Keep what is within the bound in the lists of both owners: rows that one owner drops push out others."""
    before: dict[int, int] = {}
    kept = []
    for first, second, weight in rows:
        owners = {first, second}
        room = min(max(0, bound - before.get(owner, 0)) for owner in owners)
        for owner in owners:
            before[owner] = before.get(owner, 0) + weight
        kept.append(min(weight, room))
    return kept


def datasets(pairs: Sequence[tuple[int, int]], most: int) -> Iterator[list[Row]]:
    """Give every choice of weights for some pairs of owners, in some of their orders."""
    orders = list(permutations(pairs))
    for weights in product(range(most + 1), repeat=len(pairs)):
        by_pair = dict(zip(pairs, weights, strict=True))
        for order in orders[:: max(1, len(orders) // 6)]:
            yield [(*pair, by_pair[pair]) for pair in order]


TWO_SIDES = [(a, b) for a in (0, 1) for b in (2, 3)]
ONE_ENTITY = [(a, b) for a in (0, 1, 2) for b in (0, 1, 2) if a <= b]


def check_rounds(chosen: Iterable[Sequence[Row]]) -> None:
    for rows in chosen:
        for bound in (1, 2, 4):
            assert truncate(rows_of(rows), bound).tolist() == kept_one_by_one(rows, bound)


@pytest.mark.parametrize(("pairs", "most"), [(TWO_SIDES, 2), (ONE_ENTITY, 1)])
def test_rounds_keep_what_one_row_after_another_keeps(
    pairs: Sequence[tuple[int, int]], most: int, request: pytest.FixtureRequest
) -> None:
    check_rounds(list(datasets(pairs, most))[::20])
    request.getfixturevalue("few_rounds")
    check_rounds(datasets(pairs, most))


def test_rounds_keep_the_same_of_many_rows() -> None:
    generator = np.random.default_rng(7)
    for bound in (1, 3, 20, 1 << 45):
        for _ in range(3):
            size = 2_000
            columns = (generator.integers(0, 30, size), generator.integers(0, 30, size) + 20)
            weights = generator.integers(0, 9 if bound < 100 else 1 << 44, size)
            rows = list(zip(*(each.tolist() for each in (*columns, weights)), strict=True))
            assert truncate(rows_of(rows), bound).tolist() == kept_one_by_one(rows, bound)


def test_rows_that_depend_on_each_other_in_a_long_chain_are_all_decided() -> None:
    """In this order each row waits for the one before, so the fixed number of rounds does not suffice."""
    rows = [(owner, owner + 1, 1) for owner in range(1_001)]
    assert truncate(rows_of(rows), 1).tolist() == kept_one_by_one(rows, 1) == [1, 0] * 500 + [1]


def moves(keep: Keep, pairs: Sequence[tuple[int, int]], most: int, bound: int) -> tuple[int, int]:
    """Return the least and the most by which one owner with all its rows raises the total, over all datasets."""
    raised = {
        sum(keep(rows, bound)) - sum(keep([row for row in rows if owner not in row[:2]], bound))
        for rows in datasets(pairs, most)
        for owner in {owner for pair in pairs for owner in pair}
    }
    return min(raised), max(raised)


@pytest.mark.parametrize(("pairs", "most"), [(TWO_SIDES, 2), (ONE_ENTITY, 1)])
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_one_owner_moves_the_total_by_at_most_the_bound(
    pairs: Sequence[tuple[int, int]], most: int, bound: int
) -> None:
    """`truncate` keeps the same (the test above), and one row after another is faster on small datasets."""
    assert moves(kept_one_by_one, pairs, most, bound) == (0, min(bound, most * 2 if pairs is TWO_SIDES else 3))


def test_a_truncation_of_each_list_alone_is_caught() -> None:
    """Owner 0 keeps one row, and all three of its rows push out those of others."""
    pairs = [(0, b) for b in range(1, 4)] + [(b, b + 3) for b in range(1, 4)]
    assert moves(first_of_both, pairs, 1, 1)[0] < -1
    assert moves(kept_one_by_one, pairs, 1, 1) == (0, 1)


def test_sums_of_cells_are_exact_beyond_64_bits() -> None:
    values = np.array([(1 << 62) - 1, (1 << 62) - 1, (1 << 62) - 1, 5], dtype=np.int64)
    assert exact_sums(values, np.array([0, 0, 0, 1]), 3) == [3 * ((1 << 62) - 1), 5, 0]
