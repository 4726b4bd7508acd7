"""Partition selection: an undeclared group is shown only if its noisy count or weight reaches a threshold.

Tested in tests/sql/test_partition_selection.py.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, repeat
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.core.reals import floor_to
from hubbub.core.schema import Kind
from hubbub.core.shares import OWN
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.weighted_selection import WeightedSelection
from hubbub.noise.source import RandomSource
from hubbub.sql.bounding import SATURATION
from hubbub.sql.expressions import facts
from hubbub.sql.keys import DiscoveredCells
from hubbub.sql.measures import KeyWeight, Measure, RowCount, UnitContribution, UnitCount
from hubbub.sql.noise import LinearNoise, Noise, NoisyMeasure, NoNoise
from hubbub.sql.query import Query

UNITS = UnitCount()
Columns = Mapping[str, NDArray[Any]]
#: The number of groups for which candidates are chosen, because the real number is not known in advance.
CELLS = 1 << 13
#: The share of the budget for the selection of groups. A group is shown at some 20 to 40 times the noise's scale, and
#: its aggregates are read at 3 times theirs, so the selection is what keeps most groups from being seen.
SHARE = 0.5
#: The most groups of a unit that count in a selection by weights, and the weight that a unit distributes.
MAX_KEYS, WEIGHT = 256, 5040
#: Up to this many groups per unit, a count of units that the query returns anyway also selects the groups.
_SHARED_GROUPS = 2

Rule = PartitionSelection | WeightedSelection


def needed(query: Query) -> bool:
    """Return whether the values of some key are not declared."""
    return any(facts(query.keys[place].expr).values is None for places in query.sets for place in places)


def groups(query: Query) -> DiscoveredCells:
    """Return the undeclared cells of a query, or raise an error."""
    if len(query.sets) != 1:
        raise QueryError(
            "HB564",
            "Groups of several grouping sets cannot be selected privately in a part of a query.",
            "Write the grouping sets as the outermost query, or ask a query for each set: … GROUP BY ward and … "
            "GROUP BY ward, region.",
        )
    return DiscoveredCells(tuple(query.keys[place] for place in query.sets[0]))


def selecting_measure(
    measures: Sequence[Measure], contribution: UnitContribution, kind: Noise, *, prefers_weights: bool = False
) -> Measure:
    """Return the measure by which groups are selected.

    A count of units that the query returns selects them too, without further noise, if units are in few groups. With
    Laplace noise each unit otherwise votes for one of its groups: splitting its vote would not lower the threshold.
    With Gaussian noise it gives weight 1/√n to each of n groups, which lets much smaller groups be seen; so it does
    beside Laplace noise, if that `prefers_weights`. Neither needs a bound on the groups of a unit.
    """
    if contribution.touched <= _SHARED_GROUPS:
        for count in (UNITS, RowCount()):
            if count in measures and (count == UNITS or contribution.rows == 1):
                return count
    if contribution.touched == 1:
        return UNITS
    return KeyWeight(1, 1) if kind == "laplace" and not prefers_weights else KeyWeight(MAX_KEYS, WEIGHT)


def weights_need_fewer(groups: int, epsilon: Fraction, rho: Fraction, delta: Fraction) -> bool:
    """Estimate whether groups of units with so many groups each need fewer units by weights than by votes."""
    slip = float(max(delta * OWN, numbers.DELTA_MIN))
    if not rho > 0:
        return False
    votes = groups * (1 - log(2 * slip) / float(epsilon))
    return sqrt(groups) * (1 - NormalDist().inv_cdf(slip / MAX_KEYS) / sqrt(2 * float(rho))) < votes


def threshold(noised: NoisyMeasure, contribution: UnitContribution, relation: Relation, delta: Fraction) -> Rule:
    """Return the smallest threshold for a tenth of δ. The ledger's privacy filter needs the rest for conversions.

    Theorem (Discovered groups). Let each unit be counted once in at most G groups, or let it distribute weights over
    groups as in the theorem on weighted keys. Showing the groups whose noisy count or weight reaches the threshold,
    with that number, and noisy sums and selections for the groups that are shown, costs what noises and selections
    cost, and besides the δ of thresholded or weighted keys.
    Proof    By these theorems the shown groups and their numbers keep the first loss but for δ. They are public from
             then on, so sums and selections over them are a further question about fixed groups, which a unit moves no
             further than it moves all groups: adaptive composition. A group without rows has a sum of 0 and scores of
             no rows, so the further question is defined for every set of groups, on both neighbors.
    Assumes  a unit's groups are bounded in the engine.
    Charges  Threshold(noise, keys, how far the threshold is above one) or WeightedThreshold(noise, keys, weight,
             threshold), and the noise of every other measure.
    Tested   tests/sql/test_partition_selection.py::test_discovered_groups_are_those_with_enough_people
             tests/sql/test_partition_selection.py::test_discovered_groups_move_no_further_than_stated
    """
    own = delta * OWN
    # a third of a δ has a digit too many for the ledger
    own = own if own.denominator <= numbers.MAX_DENOMINATOR else floor_to(own)
    goal, noise, measure = max(own, numbers.DELTA_MIN), noised.mechanism, noised.measure
    if isinstance(measure, KeyWeight) and isinstance(noise, Gaussian):
        return WeightedSelection.least(
            keys=measure.keys, weight=measure.weight, relation=relation, noise=noise, delta=goal
        )
    if isinstance(noise, NoNoise | LinearNoise):
        raise AssertionError("groups are selected by a noisy measure")
    keys = measure.keys if isinstance(measure, KeyWeight) else contribution.touched
    return PartitionSelection.least(keys=keys, contribution=1, relation=relation, noise=noise, delta=goal)


def needed_people(rule: Rule, measure: Measure, groups: int) -> int:
    """Return how many units with so many groups each bring a group to the threshold, on average over the noise."""
    if isinstance(rule, WeightedSelection):
        return rule.people(groups)
    return rule.threshold * (groups if isinstance(measure, KeyWeight) else 1)


@dataclass(frozen=True)
class ReleasedGroups:
    """The groups that reached the threshold, ordered by key; `positions` are their rows in the engine's table.

    Numbers are doubles, as in the engine, so that integers beyond 64 bits stay distinct.
    """

    columns: tuple[NDArray[Any], ...]
    positions: NDArray[np.int64]
    counts: NDArray[np.int64]  #: the noisy count or weight of each

    @property
    def size(self) -> int:
        """The number of groups."""
        return len(self.positions)

    def places(self, cells: DiscoveredCells, table: Columns) -> NDArray[np.int64]:
        """Return the group of each row of another table; −1 for rows of groups that are not shown."""
        codes = np.zeros(self.size + len(table["k0"]), dtype=np.int64)
        for j, (key, column) in enumerate(zip(cells.keys, self.columns, strict=True)):
            numbers = _numbered(column, _canonical(table[f"k{j}"], key.expr.kind))
            # renumber after each key, so that products stay small
            codes = _ranks(codes * len(numbers) + numbers)
        shown, others = codes[: self.size], codes[self.size :]
        order = np.argsort(shown)
        if not self.size:
            return np.full(len(others), -1)
        near = order[np.minimum(np.searchsorted(shown, others, sorter=order), self.size - 1)]
        return np.where(shown[near] == others, near, -1)


def sample(cells: DiscoveredCells, rule: Rule, table: Columns, units: str, source: RandomSource) -> ReleasedGroups:
    """Select the groups to show, by the column with the number of units."""
    columns = [_canonical(table[f"k{j}"], key.expr.kind) for j, key in enumerate(cells.keys)]
    # sort before adding noise: engines return groups in any order, and a retry must draw the same noise for each group
    order = np.lexsort([_ranks(column) for column in reversed(columns)])
    passed, counts = rule.sample(np.asarray(table[units], dtype=np.int64)[order], source)
    positions = order[passed]
    return ReleasedGroups(tuple(column[positions] for column in columns), positions, counts)


def add_up(cells: DiscoveredCells, parts: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    """Add up the numbers of several tables by group, and by bucket where they are histograms."""
    keys = {
        f"k{j}": np.concatenate([_canonical(part[f"k{j}"], key.expr.kind) for part in parts])
        for j, key in enumerate(cells.keys)
    }
    if "bucket" in parts[0]:
        keys["bucket"] = np.concatenate([np.asarray(part["bucket"], dtype=np.int64) for part in parts])
    codes = np.zeros(sum(len(part["k0"]) for part in parts), dtype=np.int64)
    for column in keys.values():
        codes = _ranks(codes * (len(codes) + 1) + _ranks(column))
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    added = {name: column[first] for name, column in keys.items()}
    for name in (name for name in parts[0] if name.startswith("m")):
        sums, begin = np.zeros(len(first), dtype=np.int64), 0
        for part in parts:
            values = np.asarray(part[name], dtype=np.int64)
            np.add.at(sums, group[begin : begin + len(values)], values)
            # no more than what one statement gives, and below 64 bits
            np.clip(sums, -SATURATION, SATURATION, out=sums)
            begin += len(values)
        added[name] = sums
    return added


def shown_key(column: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Return a key as shown to analysts: integers as such, clamped to 64 bits."""
    if not kind.numeric:
        return column
    numbers = np.asarray(column, dtype=np.float64)
    null = np.isnan(numbers)
    shown: NDArray[Any] = np.where(null, 0.0, numbers)
    if kind is Kind.INTEGER:
        ends = np.iinfo(np.int64)
        inside = np.clip(shown, -(2.0**63), np.nextafter(2.0**63, 0))
        shown = np.where(shown >= 2.0**63, ends.max, inside.astype(np.int64))
    if not null.any():
        return shown
    named = shown.astype(object)
    named[null] = None
    return named


def _canonical(column: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Return the keys in canonical form: −0 becomes 0, and NULL is NaN, NaT or None, which no other key is."""
    null: NDArray[np.bool_] = np.ma.getmaskarray(column)
    plain: NDArray[Any] = np.ma.getdata(column)
    if kind.numeric:
        return np.where(null, np.nan, plain.astype(np.float64) + 0.0)
    if plain.dtype.kind == "M":
        return np.where(null, np.array("NaT", dtype=plain.dtype), plain)
    # by the same steps whether or not there is a NULL: the groups are not selected yet
    keys = plain.astype(object)
    keys[null] = None
    return keys


def _numbered(shown: NDArray[Any], others: NDArray[Any]) -> NDArray[np.int64]:
    """Number the keys of shown groups and of other rows: equal keys alike, and other keys otherwise."""
    if shown.dtype != object:
        return _ranks(np.concatenate([shown, others]))
    known = {key: number for number, key in enumerate(dict.fromkeys(shown))}  # few, so nothing has to be sorted
    every, unknown = chain(shown, others), repeat(len(known))
    return np.fromiter(map(known.get, every, unknown), dtype=np.int64, count=len(shown) + len(others))


def _ranks(column: NDArray[Any]) -> NDArray[np.int64]:
    if column.dtype == object:
        present = np.asarray(column != None, dtype=bool)  # noqa: E711 - in one step, whatever the number of groups
        texts = column[present]
        distinct = set(texts)
        ranks = np.full(len(column), len(distinct))  # NULL comes last, as NaN does
        ranks[present] = _text_ranks(texts, distinct)
        return ranks
    _, ranks = np.unique(column, return_inverse=True)
    return np.asarray(ranks, dtype=np.int64)


def _text_ranks(texts: NDArray[Any], distinct: Set[Any]) -> NDArray[np.int64]:
    """Rank texts as Python does, by code points."""
    if 2 * len(distinct) > len(texts):
        return np.unique(texts, return_inverse=True)[1]
    places = {text: place for place, text in enumerate(sorted(distinct))}
    return np.fromiter(map(places.__getitem__, texts), dtype=np.int64, count=len(texts))
