"""Selection of the pairs of columns to measure: those where the model's error exceeds the noise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.synthetic.columns import Levels
from hubbub.analyses.synthetic.junction_tree import Floats, Pair, cells
from hubbub.analyses.synthetic.model import Whole


@dataclass(frozen=True)
class Candidate:
    """A pair of columns with groupings: `groups` maps a level to its sum."""

    pair: Pair
    groups: tuple[Whole, Whole]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of groups of each column."""
        return int(self.groups[0].max()) + 1, int(self.groups[1].max()) + 1

    def sums(self, table: Whole) -> Whole:
        """Sum a table of the pair's levels by groups."""
        return added(added(table, self.groups[0], 0), self.groups[1], 1)


def added(table: Whole, groups: Whole, axis: int) -> Whole:
    """Sum the entries of each group along an axis."""
    along = np.moveaxis(table, axis, 0)
    found = np.zeros((int(groups.max()) + 1, *along.shape[1:]), dtype=table.dtype)
    np.add.at(found, groups, along)
    return np.moveaxis(found, 0, axis)


def candidates(columns: Sequence[Levels]) -> tuple[Candidate, ...]:
    """List every pair of columns with every combination of groupings."""
    ways = [each.groupings() for each in columns]
    return tuple(
        Candidate((i, j), (one, other))
        for i in range(len(columns))
        for j in range(i + 1, len(columns))
        for one in ways[i]
        for other in ways[j]
    )


def scores(
    true: Mapping[Pair, Whole],
    *,
    listed: Sequence[Candidate],
    model: Mapping[Pair, Floats],
    total: float,
    noise: float,
) -> Whole:
    """Score candidates by the total error of the model's sums, minus the expected error of the noise.

    Theorem (Scores of pairs). Let one unit move the counts of every pair of columns by at most D in L1. Then it moves
    every score by at most D, whatever the model.
    Proof    The score is Σ|s(x) − m| − c, with m and c told from noisy numbers alone and s(x) sums of disjoint cells;
             ||a| − |b|| ≤ |a − b|, and adding cells up never adds to the L1 distance.
    Assumes  integers: the model's sums and c are rounded before anything is taken from them.
    Tested   tests/analyses/synthetic/test_synthetic.py::test_neighbors_move_a_score_by_no_more_than_its_sensitivity
    """
    rounded = {pair: np.rint(table * total).astype(np.int64) for pair, table in model.items()}
    found = np.zeros(len(listed), dtype=np.int64)
    for place, each in enumerate(listed):
        off = each.sums(true[each.pair] - rounded[each.pair])
        found[place] = int(np.abs(off).sum()) - round(noise * off.size)
    return found


def forest(pairs: Sequence[Pair], more: Pair) -> bool:
    """Return whether a pair connects two columns that the pairs so far do not."""
    reached, grown = {more[0]}, True
    while grown:
        ahead = {c for pair in pairs for c in pair if reached & set(pair)} - reached
        grown = bool(ahead)
        reached |= ahead
    return more[1] not in reached


def small_enough(sizes: Sequence[int], chosen: Sequence[Pair], among: Iterable[Pair], most: int) -> set[Pair]:
    """Find the pairs that can be added to a model without exceeding a number of cells."""
    have = {*chosen}
    return {pair for pair in among if pair in have or cells(sizes, [*have, pair], most) <= most}
