"""A distribution over several columns, estimated from noisy tables, and rows sampled from it.

This is post-processing of noisy numbers, so it costs nothing. The distribution is a graphical model, as in Private-PGM
(McKenna, Sheldon and Miklau 2019), stored as tables over the cliques of a junction tree.

Tested in tests/analyses/synthetic/test_synthetic.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.synthetic.estimation import NoisyMarginal, estimate
from hubbub.analyses.synthetic.junction_tree import Clique, Floats, Pair

Whole = NDArray[np.int64]

#: Steps of the estimation between two selections, and at the end.
STEPS, LAST_STEPS = 100, 400
#: The weight of the entropy between two selections, and at the end: a larger one needs fewer steps.
WEIGHT, LAST_WEIGHT = 0.02, 0.004


@dataclass(frozen=True)
class Model:
    """A distribution that factors over a junction tree: the table of each clique adds up to 1.

    links   parent and child in an order in which parents come first; cliques of different trees are independent
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    tables: tuple[Floats, ...]
    links: tuple[tuple[int, int], ...]
    potentials: tuple[Floats, ...] = ()  #: of the estimation, to go on from

    @cached_property
    def neighbors(self) -> Mapping[int, tuple[int, ...]]:
        """Give the neighbors of each clique."""
        found: dict[int, list[int]] = {place: [] for place in range(len(self.cliques))}
        for one, other in self.links:
            found[one].append(other)
            found[other].append(one)
        return {place: tuple(each) for place, each in found.items()}

    def one(self, column: int) -> Floats:
        """Give the distribution of one column."""
        place = next(i for i, clique in enumerate(self.cliques) if column in clique)
        return marginal(self.tables[place], self.cliques[place], (column,))

    def pairs(self) -> dict[Pair, Floats]:
        """Give the distribution of every two columns, the smaller one first."""
        ones = [self.one(column) for column in range(len(self.sizes))]
        found = {
            (i, j): np.outer(ones[i], ones[j]) for i, j in combinations(range(len(self.sizes)), 2)
        }  # columns in different trees are independent
        for column in range(len(self.sizes)):
            found |= {(min(column, j), max(column, j)): table for j, table in self._with(column) if column < j}
        return found

    def _with(self, column: int) -> Iterator[tuple[int, Floats]]:
        """Traverse the tree from a column, with its joint distribution with the separators of the cliques."""
        start = next(i for i, clique in enumerate(self.cliques) if column in clique)
        ahead: list[tuple[int, int, Clique, Floats]] = [(-1, start, (), self.one(column))]
        while ahead:
            before, place, between, carried = ahead.pop()
            clique, table = self.cliques[place], self.tables[place]
            for other in clique:
                if other != column and other not in between:
                    yield other, _joined(table, clique, column, between, carried, (other,))
            for each in self.neighbors[place]:
                if each != before:
                    onward = tuple(c for c in clique if c in self.cliques[each] and c != column)
                    ahead.append((place, each, onward, _joined(table, clique, column, between, carried, onward)))

    def rows(self, count: int, some: np.random.Generator) -> Whole:
        """Sample rows, column after column, each as close to its conditional distribution as possible."""
        found = np.zeros((count, len(self.sizes)), dtype=np.int64)
        drawn: set[int] = set()
        roots = set(range(len(self.cliques))) - {child for _, child in self.links}
        for place in (*sorted(roots), *(child for _, child in self.links)):
            clique, table = self.cliques[place], self.tables[place]
            for column in (c for c in clique if c not in drawn):
                known = tuple(c for c in clique if c in drawn)
                shares = marginal(table, clique, (*known, column)).reshape(-1, self.sizes[column])
                at = np.zeros(count, dtype=np.int64)
                for other in known:
                    at = at * self.sizes[other] + found[:, other]
                found[:, column] = spread(shares, at, some)
                drawn.add(column)
        return found


def marginal(table: Floats, clique: Clique, wanted: Clique) -> Floats:
    """Sum a clique's table to some of its columns, in the given order."""
    left = [c for c in clique if c in wanted]
    summed = table.sum(axis=tuple(i for i, c in enumerate(clique) if c not in wanted))
    return np.transpose(summed, [left.index(c) for c in wanted])


def _joined(table: Floats, clique: Clique, column: int, between: Clique, carried: Floats, wanted: Clique) -> Floats:
    """Give the joint distribution of a column with columns of a clique, through their separator."""
    if column in clique:
        return marginal(table, clique, (column, *wanted))
    both = (*between, *(c for c in wanted if c not in between))
    shares = marginal(table, clique, both)
    given = marginal(table, clique, between).reshape([*carried.shape[1:], *[1] * (len(both) - len(between))])
    shares = np.divide(shares, given, out=np.zeros_like(shares), where=shares > 0)
    terms: list[Any] = [carried, [column, *between], shares, list(both), [column, *wanted]]
    return np.asarray(np.einsum(*terms, optimize=True))


def spread(shares: Floats, at: Whole, some: np.random.Generator) -> Whole:
    """Give each row a category by the shares of its group (a row of `shares`), with stratified sampling.

    Each of the k rows of a group takes one point from one of k equal parts of [0, 1], in random order, so the counts of
    the group's categories are off by less than 1, where independent sampling would be off by √k.
    """
    order = np.lexsort((some.random(len(at)), at))
    sizes = np.bincount(at, minlength=len(shares))
    first = np.cumsum(sizes) - sizes
    rank = np.arange(len(at)) - first[at[order]]
    points = (rank + some.random(len(at))) / sizes[at[order]]
    totals = shares.sum(axis=1, keepdims=True)
    even = np.full_like(shares, 1.0 / shares.shape[1])
    upto = np.cumsum(np.divide(shares, totals, out=even, where=totals > 0), axis=1)
    upto[:, -1] = 1.0
    # one sorted list for all groups: group g has the interval from g to g + 1
    line = (np.minimum(upto, 1.0) + np.arange(len(shares))[:, None]).ravel()
    chosen = np.searchsorted(line, points + at[order], side="right") - at[order] * shares.shape[1]
    found = np.empty(len(at), dtype=np.int64)
    found[order] = np.clip(chosen, 0, shares.shape[1] - 1)
    return found


def independent(sizes: Sequence[int], ones: Sequence[Floats]) -> Model:
    """Make the model in which all columns are independent."""
    return Model(tuple(sizes), tuple((i,) for i in range(len(sizes))), tuple(each / each.sum() for each in ones), ())


def fit(
    sizes: Sequence[int], measured: Sequence[NoisyMarginal], total: float, *, last: bool, start: Model | None = None
) -> Model:
    """Find the most probable distribution, given the measurements."""
    found = estimate(
        sizes,
        measured,
        total,
        steps=LAST_STEPS if last else STEPS,
        prior=LAST_WEIGHT if last else WEIGHT,
        start=() if start is None else start.potentials,
    )
    return Model(tuple(sizes), found.tree.cliques, found.tables, found.tree.links, found.potentials)
