"""Groups that nobody declared: a key is shown only where its noisy number of units passes a threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.core.schema import Kind
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import Source
from hubbub.sql.expressions import facts
from hubbub.sql.keys import Found
from hubbub.sql.measures import Reach, Units
from hubbub.sql.noise import Noised
from hubbub.sql.query import Query

#: The name of the answer that stands for the keys in the split of ε.
KEYS = "$keys"
UNITS = Units()
Columns = Mapping[str, NDArray[Any]]
#: As many groups as leave the fewest candidates for a choice in each: how many will be shown is not known in advance.
CELLS = 1 << 13
#: How much the keys matter beside an answer: the less noise, the smaller the groups that are found.
WEIGHT = 2


def needed(query: Query) -> bool:
    """Say whether a key's values are not known in advance."""
    return any(not facts(key.expr).values for key in query.keys)


def groups(query: Query) -> Found:
    """Give the groups to be found, or refuse."""
    if len(query.sets) != 1:
        raise QueryError("HB564", "several grouping sets cannot be discovered at once.", "Ask for one at a time.")
    return Found(tuple(query.keys[place] for place in query.sets[0]))


def threshold(noised: Noised, reach: Reach, relation: Relation, delta: Fraction) -> PartitionSelection:
    """Take the least threshold for half of δ; the ledger's filter keeps the other half for its conversions.

    Theorem (Discovered groups). Let each unit be counted once in at most G groups. Showing the groups whose noisy
    number of units reaches the threshold, with that number, and noisy sums and selections for the groups that are
    shown, costs what noises and selections cost, and δ = 1 − (1 − p)^G besides, p being the chance that one unit's own
    group passes.
    Proof    By the theorem on thresholded keys the shown groups and their numbers keep the first loss but for δ. They
             are public from then on, so sums and selections over them are a further question about fixed groups, which
             a unit moves no further than it moves all groups: adaptive composition. A group without rows has a sum of 0
             and scores of no rows, so the further question is defined for every set of groups, on both neighbors.
    Assumes  a unit's groups are bounded in the engine.
    Charges  Threshold(noise, keys, how far the threshold is above one) and the noise of every other measure.
    Tested   tests/sql/test_plan.py::test_discovered_groups_are_those_with_enough_people
             tests/sql/test_plan.py::test_discovered_groups_move_no_further_than_stated
    """
    return PartitionSelection.least(
        keys=reach.touched,
        contribution=1,
        relation=relation,
        noise=noised.mechanism,
        delta=max(delta / 2, numbers.DELTA_MIN),
    )


@dataclass(frozen=True)
class Shown:
    """The groups that passed, in the order of their keys; `positions` are their rows in the table they came from.

    Numbers are doubles, as the engine compares them: whole numbers that 64 bits do not hold stay apart.
    """

    columns: tuple[NDArray[Any], ...]
    positions: NDArray[np.int64]
    units: NDArray[np.int64]  #: their noisy numbers of units

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.positions)

    def places(self, found: Found, table: Columns) -> NDArray[np.int64]:
        """Say, for each row of another table, which of the groups it belongs to; −1 where to none that is shown."""
        codes = np.zeros(self.size + len(table["k0"]), dtype=np.int64)
        for j, (key, column) in enumerate(zip(found.keys, self.columns, strict=True)):
            both = np.concatenate([column, _canonical(table[f"k{j}"], key.expr.kind)])
            # numbered anew after each key, so that products stay small
            codes = _ranks(codes * len(both) + _ranks(both))
        own, others = codes[: self.size], codes[self.size :]
        order = np.argsort(own)
        if not self.size:
            return np.full(len(others), -1)
        near = order[np.minimum(np.searchsorted(own, others, sorter=order), self.size - 1)]
        return np.where(own[near] == others, near, -1)


def sample(found: Found, rule: PartitionSelection, table: Columns, units: str, source: Source) -> Shown:
    """Choose which groups are shown: by the column of their numbers of units."""
    columns = [_canonical(table[f"k{j}"], key.expr.kind) for j, key in enumerate(found.keys)]
    # before the noise, not after it: engines give groups in any order, and a retry must draw the same for each of them
    order = np.lexsort([_ranks(column) for column in reversed(columns)])
    passed, counts = rule.sample(np.asarray(table[units], dtype=np.int64)[order], source)
    positions = order[passed]
    return Shown(tuple(column[positions] for column in columns), positions, counts)


def shown_key(column: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Give a key as it is shown: a whole number as such, and at the ends of 64 bits where it is beyond them."""
    if kind is not Kind.INTEGER:
        return column
    ends = np.iinfo(np.int64)
    inside = np.clip(column, -(2.0**63), np.nextafter(2.0**63, 0))
    return np.where(column >= 2.0**63, ends.max, inside.astype(np.int64))


def _canonical(column: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Give the keys in the form that stands for all that are equal, whatever the engine kept: −0 + 0 is 0."""
    filled = np.ma.getdata(column)
    return filled.astype(np.float64) + 0.0 if kind.numeric else filled


def _ranks(column: NDArray[Any]) -> NDArray[np.int64]:
    _, ranks = np.unique(column, return_inverse=True)
    return np.asarray(ranks, dtype=np.int64)
