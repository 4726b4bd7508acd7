"""Solve for the sums of a query from releases that overlap: differences, several marginals, conditions on either side.

Nothing here reads a noisy number but `Solved.sums`. Tested in tests/sql/test_overlaps.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.chunked_json import dumps
from hubbub.sql.allocation import LEVEL
from hubbub.sql.atoms import Atoms, Grouping, TooManyAtomsError, atoms, columns_form, expression_columns
from hubbub.sql.coarser import query_grouping
from hubbub.sql.least_squares import least_squares
from hubbub.sql.measured import Described
from hubbub.sql.noise import AnyNoise, half_width, variance_of
from hubbub.sql.terms import Source, ViewTerm, fits, from_view, weighted

#: The most cells of sources in one system of equations, and the most sets that they belong to.
MOST_ROWS, MOST_SETS = 256, 48
#: The most weights that a receipt has for one measure.
MOST_WEIGHTS = 20_000


@dataclass(frozen=True)
class CellTerm:
    """A noisy sum of a source: the place of its measure, the place of its cell, and its weight."""

    source: int
    place: int
    cell: int
    weight: Fraction


@dataclass(frozen=True)
class Solved:
    """A measure of a query as weighted sums of released ones.

    rows     for each group of the query
    noise    that of the least exact group
    draws    the sources, grouping sets and measures that are used
    columns  one value of each class of the columns that conditions and keys read, for the receipt
    """

    rows: tuple[tuple[CellTerm, ...], ...]
    noise: AnyNoise
    draws: frozenset[tuple[int, int, int]]
    columns: list[dict[str, Any]]

    def sums(self, released: Mapping[int, Sequence[Sequence[int]]]) -> list[Fraction]:
        """Compute the sums exactly."""
        found = []
        for row in self.rows:
            whole = lcm(*(term.weight.denominator for term in row))
            total = sum(int(t.weight * whole) * int(released[t.source][t.place][t.cell]) for t in row)
            found.append(Fraction(total, whole))
        return found


@dataclass(frozen=True)
class _Block:
    """One grouping set of a source. `first` is where its cells begin."""

    source: int
    part: int
    first: int
    grouping: Grouping


class Overlaps:
    """The releases that may overlap with a query, and what follows from all of them together."""

    def __init__(self, described: Described, sources: Sequence[Source]) -> None:
        self._sources = sources
        (groups,) = described.plan.cells
        keys = [described.keys[place] for place in groups.places]
        self._wanted = query_grouping(described.rows.where.values(), keys, groups)
        (table,) = described.plan.tables
        self._columns = expression_columns(table.columns)
        self._solved: dict[str, Solved | None] = {}
        self._blocks = [
            block
            for place, source in enumerate(sources)
            if fits(described, source) and not source.shared
            for block in _blocks(place, source)
            if block.grouping.size <= MOST_ROWS
        ]

    def solve(self, form: Mapping[str, Any], *, converting: bool) -> Solved | None:
        """Solve for one measure; None if it does not follow, or from too many cells.

        Theorem (Overlapping releases). For every group of the query the weights give an unbiased estimate of its sum
        from independent noisy sums, whatever the data, with the least variance, up to rounding.
        Proof    By "Atoms", the sum of a group and of every cell is the sum over its atoms, as each row is in one atom;
                 where each row is a unit, no bound leaves out a row. "Exact least squares" then applies. The cells of
                 sources have draws of their own; where a sum about another center takes a count too, both draws are in
                 one row, with the sum of their variances.
        Assumes  rows are units; the sources are of the same data and declarations.
        Charges  nothing: post-processing.
        Tested   tests/sql/test_overlaps.py::test_what_overlapping_releases_determine_is_solved_for
                 tests/sql/test_overlaps.py::test_solved_sums_are_an_independent_least_squares_solution
        """
        key = dumps([form, converting], sort_keys=True)
        if key not in self._solved:
            self._solved[key] = self._solve(form, converting=converting)
        return self._solved[key]

    def _solve(self, form: Mapping[str, Any], *, converting: bool) -> Solved | None:
        able: list[tuple[_Block, tuple[ViewTerm, ...], Fraction]] = []
        if self._wanted.size > MOST_ROWS or form["kind"] not in ("rows", "sum"):
            return None
        by_measures: dict[str, tuple[ViewTerm, ...]] = {}
        for block in self._blocks:
            source = self._sources[block.source]
            terms = by_measures.get(source.measures)
            if terms is None:
                terms = from_view(form, 0, source.facts["measures"], converting=converting)
                by_measures[source.measures] = terms
            variance = self._variance(block, terms) if terms else Fraction(0)
            if variance:
                able.append((block, terms, variance))
        own = self._wanted.columns
        able.sort(key=lambda each: (len(each[0].grouping.columns - own), each[2], each[0].grouping.size))
        chosen, left = list[tuple[_Block, tuple[ViewTerm, ...], Fraction]](), MOST_ROWS
        for each in able:
            left -= each[0].grouping.size
            if left < 0 or len(chosen) == MOST_SETS:
                break
            chosen.append(each)
        while chosen:
            try:
                whole = atoms([self._wanted, *(block.grouping for block, _, _ in chosen)], self._columns)
            except TooManyAtomsError:
                chosen = chosen[: len(chosen) // 2]
            else:
                return self._weighted(whole, chosen)
        return None

    def _variance(self, block: _Block, terms: Sequence[ViewTerm]) -> Fraction:
        source = self._sources[block.source]
        if len(terms) == 1 and terms[0].weight == 1:
            return source.variances[terms[0].place][block.part]
        return variance_of(weighted([(source.noises[t.place][block.part], abs(t.weight), 1) for t in terms]))

    def _weighted(self, whole: Atoms, chosen: Sequence[tuple[_Block, tuple[ViewTerm, ...], Fraction]]) -> Solved | None:
        signature = np.vstack([whole.cells(self._wanted), *(whole.cells(block.grouping) for block, _, _ in chosen)])
        signature = np.unique(signature[:, (signature >= 0).any(axis=0)], axis=1)
        told = np.unique(signature[1:], axis=1)
        if told.shape[1] < signature.shape[1] or (signature[1:] < 0).all(axis=0).any():
            return None  # atoms that no release tells apart, or none has, and the query does
        wanted = _indicator(signature[0], range(self._wanted.size))
        rows: list[tuple[int, int]] = []
        parts: list[NDArray[np.int64]] = []
        for place, codes in enumerate(signature[1:]):
            present = np.unique(codes[codes >= 0]).tolist()
            rows += [(place, cell) for cell in present]
            parts.append(_indicator(codes, present))
        if not rows or not wanted.any(axis=1).all():
            return None
        weights = least_squares(np.vstack(parts), [chosen[place][2] for place, _ in rows], wanted)
        if weights is None or sum(map(len, weights.rows)) > MOST_WEIGHTS:
            return None
        found: list[tuple[CellTerm, ...]] = []
        noises: list[AnyNoise] = []
        draws = set[tuple[int, int, int]]()
        for row in weights.rows:
            terms: list[CellTerm] = []
            noisy: dict[tuple[AnyNoise, Fraction], int] = {}
            for number, weight in row:
                (block, measured, _), cell = chosen[rows[number][0]], rows[number][1]
                for term in measured:
                    terms.append(CellTerm(block.source, term.place, block.first + cell, weight * term.weight))
                    draws.add((block.source, block.part, term.place))
                    noise = self._sources[block.source].noises[term.place][block.part], abs(weight * term.weight)
                    noisy[noise] = noisy.get(noise, 0) + 1
            found.append(tuple(terms))
            noises.append(weighted([(*noise, count) for noise, count in noisy.items()]))
        worst = max(noises, key=lambda noise: half_width(noise, LEVEL))
        return Solved(tuple(found), worst, frozenset(draws), columns_form(whole, self._columns))


def _blocks(place: int, source: Source) -> list[_Block]:
    first, found = 0, []
    for part, each in enumerate(source.groupings):
        found.append(_Block(place, part, first, each))
        first += each.size
    return found


def _indicator(codes: NDArray[np.int64], values: Sequence[int]) -> NDArray[np.int64]:
    """Say which atoms are in which cell."""
    found: NDArray[np.int64] = (codes[None, :] == np.array(list(values))[:, None]).astype(np.int64)
    return found
