"""Marginals of a released cube, as groups that other queries are derived from.

A cube released, for each subset of its columns, sums with independent noise that tell how their values differ
(contrasts). A cell of a marginal is a fixed rational combination of them, so cells share draws, and the noise of a
group of cells is computed from the independent parts. Nothing here reads a noisy number but `ResidualMarginal.values`.

Tested in tests/sql/test_residual_views.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, lcm, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.events import Event, to_facts
from hubbub.sql.allocation import LEVEL
from hubbub.sql.coarser import SourceView, view
from hubbub.sql.expressions import Col
from hubbub.sql.keys import Domain
from hubbub.sql.measured import CUBE_FORMAT, Described, Undescribed, described_rows, key_form, measure_form, parsed
from hubbub.sql.measures import Measure
from hubbub.sql.noise import AnyNoise, half_width
from hubbub.sql.prune import names
from hubbub.sql.query import Query

#: The most numbers of a cube that is a source, the most cells of a marginal, and of all its groups together.
MOST_NUMBERS, MOST_CELLS, MOST_WORK = 200_000, 20_000, 20_000_000
#: Values of cells are rounded to so many parts of a step: far less than any noise.
_PARTS = 1 << 40

Floats = NDArray[np.float64]


def measured_cube(
    query: Query,
    domains: Sequence[Domain],
    scales: Sequence[Sequence[int]],
    order: int,
    measures: Sequence[Measure],
    noises: Sequence[Sequence[Event]],
) -> dict[str, Any] | None:
    """Return what a receipt says about the sums behind a cube; None if it says nothing.

    The cube adds `sums`: for each measure, the noisy integers of all subsets of columns, the empty one first.

    scales  for each column the factors of its contrasts: the first j values against the next one
    noises  for each measure, for each subset, the event of the noise of one number
    """
    try:
        rows = described_rows(query.relation)
        keys = [key_form(rows.resolved(each.key.expr), each) for each in domains]
        forms = [measure_form(each, rows, by_row=True) for each in measures]
    except Undescribed:
        return None
    columns = [key | {"scales": list(own)} for key, own in zip(keys, scales, strict=True)]
    sizes = [len(own) for own in scales]
    numbers = sum(prod(each) for size in range(order + 1) for each in combinations(sizes, size))
    if numbers * len(forms) > MOST_NUMBERS:
        return None
    return {
        "form": CUBE_FORMAT,
        "of": rows.of,
        "where": sorted(rows.where),
        "given": [None, None],
        "bounds": None,
        "columns": columns,
        "order": order,
        "measures": forms,
        "noises": [[to_facts(event) for event in each] for each in noises],
        "shared": True,
    }


@dataclass(frozen=True, eq=False)
class ResidualMarginal:
    """One marginal of a cube.

    places  its columns
    scales  for each column of the cube the factors of its contrasts
    order   how many columns a marginal has at most
    """

    places: tuple[int, ...]
    scales: tuple[tuple[int, ...], ...]
    order: int

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each column."""
        return tuple(len(self.scales[place]) + 1 for place in self.places)

    @cached_property
    def number(self) -> int:
        """The place of this subset among all of the cube."""
        return _position(self.places, len(self.scales))

    @cached_property
    def subsets(self) -> tuple[tuple[int, ...], ...]:
        """The subsets of its columns, by their places among these."""
        axes = range(len(self.places))
        return tuple(each for size in range(len(axes) + 1) for each in combinations(axes, size))

    def positions(self) -> list[int]:
        """Give the place of each subset among all of the cube."""
        return [_position([self.places[axis] for axis in each], len(self.scales)) for each in self.subsets]

    @cached_property
    def _firsts(self) -> list[int]:
        """Give where the numbers of each subset of the cube begin."""
        firsts, first = [], 0
        for size in range(self.order + 1):
            for each in combinations(range(len(self.scales)), size):
                firsts.append(first)
                first += prod(len(self.scales[place]) for place in each)
        return firsts

    def values(self, sums: Sequence[int]) -> list[Fraction]:
        """Compute the noisy cells from the released sums, rounded to far less than any noise."""
        wholes = [
            lcm(size, *(scale * j * (j + 1) for j, scale in enumerate(self.scales[place], start=1)))
            for place, size in zip(self.places, self.shape, strict=True)
        ]
        total = np.zeros(self.shape, dtype=object)
        for subset, position in zip(self.subsets, self.positions(), strict=True):
            sizes = [len(self.scales[self.places[axis]]) for axis in subset]
            first = self._firsts[position]
            part = np.array([int(each) for each in sums[first : first + prod(sizes)]], dtype=object).reshape(sizes)
            for place, axis in enumerate(subset):
                part = self._spread_out(part, place, self.places[axis], wholes[axis])
            others = [axis for axis in range(len(self.places)) if axis not in subset]
            factor = prod(wholes[axis] // self.shape[axis] for axis in others)
            at = [1 if axis in others else size for axis, size in enumerate(self.shape)]
            total = total + np.array(part * factor, dtype=object).reshape(at)
        whole = prod(wholes)
        cells = np.array(total, dtype=object).reshape(-1).tolist()
        return [Fraction((2 * _PARTS * each + whole) // (2 * whole), _PARTS) for each in cells]

    def _spread_out(self, part: NDArray[Any], axis: int, column: int, whole: int) -> NDArray[Any]:
        """Apply the pseudo-inverse of the contrasts along an axis, times `whole`: rows are orthogonal."""
        factors = [whole // (scale * j * (j + 1)) for j, scale in enumerate(self.scales[column], start=1)]
        moved = np.moveaxis(part, axis, 0)
        terms = [each * factor for each, factor in zip(moved, factors, strict=True)]
        found, rest = [], 0 * moved.sum(axis=0)
        for j in range(len(terms), 0, -1):  # the last value is in the last contrast alone
            found.append(rest - j * terms[j - 1])
            rest = rest + terms[j - 1]
        found.append(rest)
        spread = np.empty((len(found), *moved.shape[1:]), dtype=object)
        for place, each in enumerate(reversed(found)):
            spread[place] = each
        return np.moveaxis(spread, 0, axis)

    def squares(self, groups: NDArray[np.int64]) -> Floats:
        """Give, for each subset and each group of cells, the sum of the squared weights of the subset's numbers.

        Theorem (Groups of a cube's cells). Let f say which cells are in a group. The group's noise is Σ_B ⟨w_B, Z_B⟩
        over the subsets B of the marginal's columns, w_B = (⊗_{i∈B} (Hᵢ⁺)ᵀ ⊗_{i∉B} 1ᵀ/mᵢ) f, with independent Z_B: its
        variance is Σ_B V_B·‖w_B‖², whatever cells have in common.
        Proof    By "Residual bases" the marginal is Σ_B (⊗ Hᵢ⁺ ⊗ 1/mᵢ) y_B; the group is its product with f. Numbers
                 of one subset, and those of different ones, have noise of their own.
        Charges  nothing: no noisy number is read.
        Tested   tests/sql/test_residual_views.py::test_variances_are_those_of_the_joint_law_by_matrices
        """
        size = int(groups.max()) + 1
        if np.bincount(groups[groups >= 0]).max() == 1:
            cells = np.empty(size, dtype=np.int64)
            cells[groups[groups >= 0]] = np.flatnonzero(groups >= 0)
            return np.stack([self._of_cells(subset)[cells] for subset in self.subsets])
        found = np.empty((len(self.subsets), size))
        step = max(1, MOST_WORK // 10 // groups.size)
        for start in range(0, size, step):
            own = np.arange(start, min(size, start + step))
            chosen = (groups[None, :] == own[:, None]).astype(np.float64).reshape(len(own), *self.shape)
            for row, subset in enumerate(self.subsets):
                weights = chosen
                for axis, place in enumerate(self.places, start=1):
                    if axis - 1 in subset:
                        weights = _weighed(weights, axis, self.scales[place])
                    else:
                        weights = weights.mean(axis=axis, keepdims=True)
                found[row, own] = (weights**2).reshape(len(own), -1).sum(axis=1)
        return found

    def _of_cells(self, subset: Sequence[int]) -> Floats:
        found = np.ones(1)
        for axis, size in enumerate(self.shape):
            own = (_weighed(np.eye(size), 1, self.scales[self.places[axis]]) ** 2).sum(axis=1)
            found = np.multiply.outer(found, own if axis in subset else np.full(size, size**-2.0)).reshape(-1)
        return found

    def noises(self, noises: Sequence[AnyNoise], squares: Floats) -> tuple[tuple[AnyNoise, Fraction, int], ...]:
        """Return the noise of the least exact group of one measure as a sum of independent ones; weights round up."""
        own = [noises[position] for position in self.positions()]
        widths = np.array([half_width(each, LEVEL) ** 2 for each in own])
        worst = squares[:, int(np.argmax(widths @ squares))]
        weights = [Fraction(int(sqrt(each) * (1 + 1e-9) * _PARTS) + 1, _PARTS) for each in worst.tolist()]
        return tuple((noise, weight, 1) for noise, weight in zip(own, weights, strict=True))


def _weighed(chosen: Floats, axis: int, scales: Sequence[int]) -> Floats:
    """Apply the transposed pseudo-inverse of the contrasts along an axis."""
    moved = np.moveaxis(chosen, axis, -1)
    j = np.arange(1, moved.shape[-1], dtype=np.float64)
    found = (np.cumsum(moved, axis=-1)[..., :-1] - j * moved[..., 1:]) / (np.array(scales) * j * (j + 1))
    return np.moveaxis(found, -1, axis)


def _position(places: Sequence[int], columns: int) -> int:
    """Give the place of a subset in the order of its size and then of its columns."""
    smaller = sum(comb(columns, size) for size in range(len(places)))
    return smaller + list(combinations(range(columns), len(places))).index(tuple(places))


def residual_view(
    described: Described, facts: Mapping[str, Any], noises: Sequence[Sequence[AnyNoise]], source: int
) -> SourceView | None:
    """Return how the groups of a query consist of cells of a cube's marginal; None if it has none for them.

    The marginal is that of the columns that the keys and the further conditions of the query read: larger ones tell no
    more, because what they add sums to 0 over the other columns.

    Theorem (Cubes as sources). Let each row be a unit. Then each row of the table is in exactly one cell of every
    marginal of a cube, and "Groups as sums" holds for these cells.
    Proof    A cube's cells are all combinations of declared values and NULL, which unlisted values are read as. Keys
             with decimals, which may be beside their values, are refused.
    Assumes  what "Groups as sums" assumes.
    Charges  nothing: it reads descriptions alone.
    Tested   tests/audit/test_receipt_cube.py::test_groups_of_a_cube_are_those_of_the_engine
    """
    (groups,) = described.plan.cells
    more = [expr for name, expr in described.rows.where.items() if name not in facts["where"]]
    read = frozenset[str]().union(*map(names, [*more, *(described.keys[place] for place in groups.places)]))
    columns = [parsed(key["of"]) for key in facts["columns"]]
    known = {each.name: place for place, each in enumerate(columns) if isinstance(each, Col)}
    if not read <= known.keys() or len(read) > facts["order"]:
        return None
    places = tuple(sorted(known[name] for name in read))
    keys = [facts["columns"][place] for place in places]
    marginal = ResidualMarginal(places, tuple(tuple(key["scales"]) for key in facts["columns"]), facts["order"])
    if prod(marginal.shape) > MOST_CELLS or not all(key["whole"] and key["null"] for key in keys):
        return None
    if any(len(key["values"]) != len(key["scales"]) for key in keys):
        raise AssertionError("NULL is a value of each column of a cube")
    found = view(described, {**facts, "sets": [{"keys": keys}]}, source, 0, 0)
    if found is None or (found.most > 1 and groups.size * len(found.cells) > MOST_WORK):
        return None
    squares = marginal.squares(found.cells)
    spread = tuple(marginal.noises(each, squares) for each in noises)
    return replace(found, part=marginal.number, same=False, made=marginal, spread=spread)
