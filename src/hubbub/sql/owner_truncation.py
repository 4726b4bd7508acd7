"""Truncate rows that have two owners each, so that every owner counts at most a bound.

Tested in tests/sql/test_owner_truncation.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: More than the relative error of a sum of doubles over as many rows as fit into memory.
_ROUNDING = 1e-6

#: Rounds that are always made. In a random order 46 sufficed for a million rows in the worst of many shapes.
_ROUNDS = 128


@dataclass(frozen=True, slots=True)
class OwnedWeights:
    """Weights that two owners share, in the order in which they are truncated.

    first, second  the numbers of the owners, from 0; equal numbers are one owner, who has the row alone
    weights        integers of at least 0
    """

    first: Integers
    second: Integers
    weights: Integers

    def loads(self) -> NDArray[np.float64]:
        """Return the total of each owner, up to rounding errors."""
        size = int(max(self.first.max(initial=-1), self.second.max(initial=-1))) + 1
        weights = self.weights.astype(np.float64)
        others = np.where(self.first == self.second, 0.0, weights)
        loads: NDArray[np.float64] = np.zeros(size)
        loads += np.bincount(self.first, weights, size)
        loads += np.bincount(self.second, others, size)
        return loads

    def only(self, kept: NDArray[np.bool_]) -> "OwnedWeights":
        """Return the selected rows, in their order."""
        return OwnedWeights(self.first[kept], self.second[kept], self.weights[kept])


def truncate(rows: OwnedWeights, bound: int) -> Integers:
    """Return what is kept of each weight: in order, as much as both owners have room for.

    Theorem (Truncation of shared rows). Visit rows in an order that is fixed before the data is seen, and keep of the
    weight of each row as much as neither owner exceeds the bound τ with. Taking out one owner with all its rows lowers
    the total that is kept by no less than 0 and no more than τ; another owner in its place moves it by at most τ.
    Proof    Go through both datasets at once; x is the owner who is in the first alone, and Φ the sum over all other
             owners of how far what they used differs. A row of x is kept with some amount a, which raises Φ by at most
             a: for its other owner. Any other row is in both. Let a be kept of it in one dataset and a′ < a in the
             other. Then a′ is all the room that one owner u has there, so u had used more there, by at least a − a′,
             and the difference at u falls by a − a′; at the other owner it rises by at most that. So Φ never rises
             there, and in the end it is at most what x used, which is at most τ. Twice the total is the sum over all
             owners of what they used, where a row with one owner has a second one of its own without a bound. So the
             totals differ by half of what x used, plus or minus at most half of Φ: between 0 and what x used. For
             another owner in the place of x, both are between the total without either and that plus τ.
    Assumes  a weight is a function of the rows that both owners have in common, so no other owner changes it.
    Tested   tests/sql/test_owner_truncation.py::test_one_owner_moves_the_total_by_at_most_the_bound
             tests/sql/test_owner_truncation.py::test_rounds_keep_what_one_row_after_another_keeps
    """
    kept = rows.weights.copy()
    # an owner within the bound never runs out of room, so only rows of the others are decided; one that is taken for
    # another by a rounding error costs work and changes nothing
    heavy = rows.loads() > bound * (1 - _ROUNDING)
    undecided = heavy[rows.first] | heavy[rows.second]
    kept[undecided] = _decide(rows.only(undecided), heavy, bound)
    return kept


def _decide(rows: OwnedWeights, heavy: NDArray[np.bool_], bound: int) -> Integers:
    """Decide all rows at once, in rounds: from too much at first, what is kept is bounded from below, then from above.

    What is kept of a row falls where more is kept of the rows before it. So rows kept in full give a lower bound on
    each, and lower bounds give upper bounds. Each round decides at least the first row that was not decided before.
    The order is random, so a few dozen rounds decide a million rows. A fixed number of rounds is always made, and those
    after the last decision have nothing to do: what is done does not show how rows depend on each other. If these do
    not suffice, the rest takes as many more as it needs.
    """
    state = _Undecided(rows, _OwnerLists(rows, heavy), bound)
    for number in range(_ROUNDS):
        state.round()
        if number % 2:
            state.drop()
    while len(state.places):
        state.round()
        state.drop()
    return state.result


class _Undecided:
    """Bounds on what is kept of the rows that are not decided yet."""

    def __init__(self, rows: OwnedWeights, lists: "_OwnerLists", bound: int) -> None:
        self.result = np.zeros(len(rows.weights), dtype=np.int64)
        self.places = np.arange(len(rows.weights))
        self._lists, self._bound = lists, bound
        self._low, self._high = np.zeros_like(self.result), rows.weights.copy()

    def round(self) -> None:
        """Raise the lower bounds and lower the upper bounds."""
        self._low = self._lists.kept(self._high, self._bound)
        self._high = self._lists.kept(self._low, self._bound)
        self.result[self.places] = self._low

    def drop(self) -> None:
        """Leave out rows that are kept with nothing, which change nothing; and all rows once all are decided."""
        left = (self._high > 0) & bool((self._low != self._high).any())
        self.places, self._high = self.places[left], self._high[left]
        self._lists = self._lists.only(left)


class _OwnerLists:
    """The rows of each owner who can run out of room, in order."""

    def __init__(self, rows: OwnedWeights, heavy: NDArray[np.bool_]) -> None:
        self.weights = rows.weights
        alone = rows.first == rows.second
        ends = [(rows.first, heavy[rows.first]), (rows.second, heavy[rows.second] & ~alone)]
        row = np.concatenate([np.flatnonzero(has) for _, has in ends])
        owner = np.concatenate([side[has] for side, has in ends])
        order = np.argsort(owner * (len(self.weights) + 1) + row, kind="stable")
        self.row, self.owner = row[order], owner[order]
        self._mark()

    def _mark(self) -> None:
        starts = np.flatnonzero(np.r_[True, self.owner[1:] != self.owner[:-1]]) if len(self.owner) else np.zeros(0, int)
        self.starts = starts
        self.lengths = np.diff(np.r_[starts, len(self.owner)])

    def only(self, kept: NDArray[np.bool_]) -> "_OwnerLists":
        """Return the lists of the selected rows."""
        part = object.__new__(_OwnerLists)
        part.weights = self.weights[kept]
        numbers = np.cumsum(kept) - 1
        stays = kept[self.row]
        part.row, part.owner = numbers[self.row[stays]], self.owner[stays]
        part._mark()
        return part

    def kept(self, amounts: Integers, bound: int) -> Integers:
        """Return what can be kept of each row if these amounts are kept of the rows before it."""
        # more than the bound leaves no room anyway
        listed = np.minimum(amounts[self.row], bound)
        if bound * (len(listed) + 1) >= 1 << 62:
            # where far more than the bound comes before a row, the sum may stay as it is: there is no room either way
            listed[self._before(listed.astype(np.float64)) > 4.0 * bound] = 0
        room = np.maximum(bound - self._before(listed), 0)
        result = self.weights.copy()
        np.minimum.at(result, self.row, room)
        return result

    def _before(self, listed: NDArray[Any]) -> NDArray[Any]:
        """Add up what comes before each row in the list of its owner; whole numbers are modulo 2⁶⁴ in between."""
        before: NDArray[Any] = np.cumsum(listed) - listed
        before -= np.repeat(before[self.starts], self.lengths)
        return before


def exact_sums(values: Integers, cells: Integers, size: int) -> list[int]:
    """Add up integers of at least 0 in each of some cells, however large the sums are."""
    high, low = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    np.add.at(high, cells, values >> 32)
    np.add.at(low, cells, values & 0xFFFFFFFF)
    return [(a << 32) + b for a, b in zip(high.tolist(), low.tolist(), strict=True)]


def totals(rows: OwnedWeights, bounds: Sequence[int]) -> list[int]:
    """Return the total that is kept at each bound."""
    one = np.zeros(len(rows.weights), dtype=np.int64)
    return [exact_sums(truncate(rows, bound), one, 1)[0] for bound in bounds]
