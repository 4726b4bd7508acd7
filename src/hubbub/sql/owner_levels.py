"""Bounds for rows with two owners, found privately: how much of one owner counts.

A query adds up integers over rows that have two owners each. For a bound τ the rows are truncated so that no owner
counts for more than τ in a cell (`owner_truncation`); then noise of a scale in proportion to τ covers every owner. The
bound is one of τ_max, τ_max/2, τ_max/4, …, chosen by what it leaves out and by the noise that it needs.

Tested in tests/sql/test_owner_levels.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reals import floor_to
from hubbub.core.unit import Relation
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.noise.source import RandomSource
from hubbub.sql.auto_bounds import ChosenBound
from hubbub.sql.bounding import SATURATION
from hubbub.sql.keys import Cells
from hubbub.sql.measures import Additive, RowCount
from hubbub.sql.owner_truncation import Integers, OwnedWeights, exact_sums, totals, truncate

#: Scores are whole numbers of this fraction of the change that one owner can cause.
RESOLUTION = 1 << 20
#: The share of the budget of a sum that chooses its bound, how much noise weighs against what is left out, and by how
#: much the log-odds of each bound are below those of the bound before it, whatever the data is: scores of bounds that
#: are far too large hardly differ. They decide accuracy alone, and were chosen on made-up tables and on two of the four
#: queries of `benchmarks/several_owners.py` (Q5, Q8).
SHARE, CAUTION, PRIOR = Fraction(1, 2), 2, Fraction(7, 10)
#: The lowest bound is this fraction of the most that one row can add.
_LOWEST = 8
_PLACES = 24


def bounds_up_to(maximum: int, row: int) -> tuple[int, ...]:
    """Return the bounds that can be chosen, in increasing order: halves of the maximum, down to a part of a row.

    >>> bounds_up_to(100, 1)
    (1, 2, 4, 7, 13, 25, 50, 100)
    """
    lowest = max(1, row // _LOWEST)
    halves = [-(-maximum >> k) for k in range(maximum.bit_length() + 1)]
    return tuple(sorted({bound for bound in halves if bound >= lowest} | {maximum}))


def _numbered(first: NDArray[Any], second: NDArray[Any], *, one_entity: bool) -> tuple[Integers, Integers]:
    """Number owners; equal values are one owner only if both columns name the same kind of people."""
    if one_entity:
        # in their own types: numpy would turn integers with and without a sign into doubles, which are rounded
        parts = [first, second] if first.dtype == second.dtype else [first.astype(object), second.astype(object)]
        both = _distinct(np.concatenate(parts))
        return both[: len(first)], both[len(first) :]
    one = _distinct(first)
    return one, _distinct(second) + (int(one.max(initial=-1)) + 1)


def _distinct(values: NDArray[Any]) -> Integers:
    if values.dtype == object:
        place = {value: i for i, value in enumerate(dict.fromkeys(values.tolist()))}
        return np.fromiter((place[value] for value in values.tolist()), dtype=np.int64, count=len(values))
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def level_scores(costs: Sequence[int], moved: Callable[[int, int], int], rate: Fraction) -> Integers:
    """Score bounds for a choice at a rate: minus by how much the best other bound is better, of what can be moved.

    costs  what each bound leaves out, and what its noise weighs, up to a number that is the same for all
    moved  how far one owner more can move the difference of the costs at two places
    """
    places = range(len(costs))
    worst = [max((costs[a] - costs[b]) * RESOLUTION // moved(a, b) for b in places) for a in places]
    less = [floor(place * PRIOR / rate) for place in places]
    return np.array([-min(a + b, 1 << 61) for a, b in zip(worst, less, strict=True)], dtype=np.int64)


@dataclass(frozen=True)
class OwnerLevels:
    """The choice of one bound.

    Theorem (Bounds for several owners). Let T_τ be the sums of C cells, each truncated to τ for every owner. Choosing
    τ by permute-and-flip with the scores −r_τ − max_τ′ (p_τ − ΣT_τ − p_τ′ + ΣT_τ′)/(C·max(τ, τ′)), for constants p_τ
    and r_τ, and adding noise of scale C·τ/ε₂ to T_τ costs ε₁ + ε₂, for one owner of either kind with all its rows.
    Proof    One owner more raises each sum of a cell at τ by between 0 and τ (`owner_truncation`), so ΣT_τ by between 0
             and C·τ, and the difference of two such totals changes by at most C times the larger bound: each quotient
             changes by at most 1, and so does the largest of them. (Generalized exponential mechanism: Raskhodnikova
             and Smith 2016, who divide by the sum of both, since their totals may move apart.) Under replace each cell
             changes by between −τ and τ, and a quotient by at most 2. Rounding down to whole parts keeps a change by
             a whole number of parts. Noise on C sums that change by at most τ each is C·τ in L1; as for all bounds
             that are found, it costs what noise at the bound 1 does.
    Assumes  sums of rows that the same owners have are functions of these rows; their order is fixed before the data.
    Charges  a selection of sensitivity 1 (2 under replace), and Laplace noise at the bound 1 on C cells.
    Tested   tests/sql/test_owner_levels.py::test_one_owner_moves_scores_by_at_most_their_sensitivity
             tests/sql/test_owner_levels.py::test_the_enumerated_loss_of_choice_and_noise_is_within_the_charge
    """

    name: str
    targets: tuple[int, ...]  #: the position of the measure that the bound is for
    column: str  #: of the statement
    levels: tuple[int, ...]
    cells: Cells
    one_entity: bool
    portion: Fraction  #: its share of ε
    penalties: tuple[int, ...]  #: what the noise at each bound weighs against what is left out
    mechanism: PermuteAndFlip
    sql: str
    contribution: Literal["owners"] = "owners"

    @property
    def typical(self) -> int:
        """A hundredth of the maximum, for which errors are estimated before the data is read."""
        return max((level for level in self.levels if level <= self.levels[-1] / 100), default=self.levels[0])

    def exact(self, table: Mapping[str, NDArray[Any]]) -> Integers:
        """Return the score of each bound."""
        return self.scores(totals(self._rows(table)[0], self.levels))

    def scores(self, sums: Sequence[int]) -> Integers:
        """Return the score of each bound from the total at each: minus by how much the best other bound is better."""
        costs = [penalty - total for penalty, total in zip(self.penalties, sums, strict=True)]
        size, levels = self.cells.size, self.levels
        return level_scores(costs, lambda a, b: size * max(levels[a], levels[b]), self.mechanism.rate)

    def moved(self, one: Mapping[str, NDArray[Any]], two: Mapping[str, NDArray[Any]]) -> int:
        """Return how far the scores of two datasets are apart."""
        return int(np.abs(self.exact(one) - self.exact(two)).max(initial=0))

    def choose(self, table: Mapping[str, NDArray[Any]], source: RandomSource) -> ChosenBound:
        """Choose the bound. Nothing is known of what it leaves out, so no upper end of an interval allows for it."""
        bound = self.levels[self.mechanism.sample(self.exact(table), source)]
        return ChosenBound(bound, 0.0, float("inf"), 1.0, 1.0, self.contribution)

    def truncated(self, table: Mapping[str, NDArray[Any]], bound: int) -> Integers:
        """Return the sum of each cell at a bound."""
        rows, cells = self._rows(table)
        sums = exact_sums(truncate(rows, bound), cells, self.cells.size)
        return np.array([min(each, SATURATION) for each in sums], dtype=np.int64)

    def _rows(self, table: Mapping[str, NDArray[Any]]) -> tuple[OwnedWeights, Integers]:
        """Read the rows (owner, owner, cell, sum) of a statement in their order; return them and the cell of each.

        Owners of different cells have different numbers, so that cells are truncated one by one.
        """
        cells = self.cells.positions(np.asarray(table["cell"], dtype=np.int64))
        known = cells >= 0
        weights = np.clip(np.asarray(table[self.column], dtype=np.int64), 0, self.levels[-1])
        names = [np.asarray(np.ma.getdata(table[name])) for name in ("u", "w")]
        first, second = _numbered(*names, one_entity=self.one_entity)
        count = int(max(first.max(initial=-1), second.max(initial=-1))) + 1
        if self.cells.size > 1:
            first, second = _numbered(cells * count + first, cells * count + second, one_entity=True)
        return OwnedWeights(first, second, weights).only(known), cells[known]


def owner_levels(
    measure: Additive,
    target: int,
    *,
    maximum: int,
    cells: Cells,
    one_entity: bool,
    portion: Fraction,
    relation: Relation,
    sql: str,
) -> tuple[OwnerLevels, Fraction]:
    """Plan the choice of the bound of one measure; return it and the rest of the budget for the noise."""
    chosen_by = floor_to(portion * SHARE, _PLACES)
    left = floor_to(portion * (1 - SHARE), _PLACES)
    row = 1 if isinstance(measure, RowCount) else max(1, measure.high)
    levels = bounds_up_to(maximum * row, row)
    mechanism = PermuteAndFlip.from_epsilon(
        candidates=len(levels),
        sensitivity=RESOLUTION * relation.units_changed,
        monotone=False,
        relation=relation,
        epsilon=chosen_by,
    )
    # the noise of each of the cells is of scale cells·bound/ε
    penalties = tuple(ceil(CAUTION * cells.size**2 * level / left) for level in levels)
    name = f"owners{target}"
    choice = OwnerLevels(name, (target,), f"m{target}", levels, cells, one_entity, chosen_by, penalties, mechanism, sql)
    return choice, left
