"""A distribution over several columns, estimated from noisy tables by Private-PGM, and rows sampled from it.

This is post-processing of noisy numbers, so it costs nothing. The package mbi does the estimation (McKenna, Sheldon and
Miklau 2019); its result is stored as numpy tables over the cliques of a junction tree.

Tested in tests/analyses/synthetic/test_synthetic.py.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Clique = tuple[int, ...]
Pair = tuple[int, int]

#: Steps of the estimation between two selections, and at the end.
STEPS, LAST_STEPS = 1_000, 2_500


@dataclass(frozen=True)
class NoisyMarginal:
    """Noisy sums of a table's cells over one or two columns; `groups[k]` maps a category of column k to its sum.

    deviation   the standard deviation of the noise of each sum
    """

    columns: Clique
    groups: tuple[tuple[int, ...], ...]
    noisy: Floats
    deviation: float


@dataclass(frozen=True)
class _MarginalSums:
    """The sums of a table's cells by groups; compared by value, so that equal ones compile once."""

    groups: tuple[tuple[int, ...], ...]

    def __call__(self, factor: Any) -> Any:
        import jax.numpy as jnp

        table = factor.datavector(flatten=False)
        for axis, groups in enumerate(self.groups):
            if len(groups) > max(groups) + 1:
                choice = np.zeros((max(groups) + 1, len(groups)))
                choice[np.array(groups), np.arange(len(groups))] = 1.0
                table = jnp.moveaxis(jnp.tensordot(jnp.asarray(choice), table, axes=(1, axis)), 0, axis)
        return table.ravel()

    def op_norm_sq(self) -> float:
        """Give the largest eigenvalue of the sums' matrix: the largest number of cells in one sum."""
        return float(math.prod(int(np.bincount(np.array(groups)).max()) for groups in self.groups))


@dataclass(frozen=True)
class Model:
    """A distribution that factors over a junction tree: the table of each clique adds up to 1.

    links   parent and child in an order in which parents come first; cliques of different trees are independent
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    tables: tuple[Floats, ...]
    links: tuple[tuple[int, int], ...]
    potentials: Any = None  # mbi's, to go on from

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


def cells(sizes: Sequence[int], cliques: Sequence[Clique]) -> int:
    """Count the cells of the junction tree of a model over these cliques."""
    with private_pgm() as mbi:
        domain = mbi.Domain(range(len(sizes)), sizes)
        tree, _ = mbi.junction_tree.make_junction_tree(domain, list(cliques))
        return sum(math.prod(sizes[c] for c in clique) for clique in tree.nodes)


def fit(
    sizes: Sequence[int], measured: Sequence[NoisyMarginal], total: float, *, steps: int, start: Model | None = None
) -> Model:
    """Find the maximum-entropy distribution among those that are nearest to the measurements."""
    import networkx

    with private_pgm() as mbi:
        domain = mbi.Domain(range(len(sizes)), sizes)
        found = [
            mbi.LinearMeasurement(each.noisy, each.columns, each.deviation, _MarginalSums(each.groups))
            for each in measured
        ]
        cliques = [(column,) for column in range(len(sizes))] + [each.columns for each in measured]
        estimated = mbi.estimation.MirrorDescent().estimate(
            domain,
            found,
            known_total=float(total),
            iters=steps,
            warm_start=None if start is None else start.potentials,
        )
        tree, _ = mbi.junction_tree.make_junction_tree(domain, cliques)
        nodes = sorted(tuple(sorted(node)) for node in tree.nodes)
        places = {frozenset(node): place for place, node in enumerate(nodes)}
        links = [
            (places[frozenset(one)], places[frozenset(other)])
            for part in networkx.connected_components(tree)
            for one, other in networkx.bfs_edges(tree, min(part, key=sorted))
        ]
        logs = [np.zeros([sizes[c] for c in node]) for node in nodes]
        for clique in estimated.potentials.cliques:
            place = next(i for i, node in enumerate(nodes) if set(clique) <= set(node))
            values = np.asarray(estimated.potentials[clique].values, dtype=np.float64)
            logs[place] += _spanned(values, tuple(clique), nodes[place])
    return Model(tuple(sizes), tuple(nodes), calibrated(nodes, logs, links), tuple(links), estimated.potentials)


def calibrated(
    cliques: Sequence[Clique], logs: Sequence[Floats], links: Sequence[tuple[int, int]]
) -> tuple[Floats, ...]:
    """Pass messages up and down a tree, so that every clique's table is the marginal of the product of all."""
    logs = list(logs)
    up: dict[int, Floats] = {}
    for parent, child in reversed(links):
        between = tuple(c for c in cliques[child] if c in cliques[parent])
        up[child] = _summed(logs[child], cliques[child], between)
        logs[parent] = logs[parent] + _spanned(up[child], between, cliques[parent])
    for parent, child in links:
        between = tuple(c for c in cliques[child] if c in cliques[parent])
        down = _summed(logs[parent], cliques[parent], between) - up[child]
        logs[child] = logs[child] + _spanned(down, between, cliques[child])
    tables = [np.exp(each - each.max()) for each in logs]
    return tuple(each / each.sum() for each in tables)


def _spanned(values: Floats, columns: Clique, clique: Clique) -> Floats:
    """Align a table over some columns of a clique with the clique's axes."""
    order = sorted(range(len(columns)), key=lambda i: clique.index(columns[i]))
    laid = np.transpose(values, order)
    sizes = iter(laid.shape)
    return laid.reshape([next(sizes) if c in columns else 1 for c in clique])


def _summed(logs: Floats, clique: Clique, wanted: Clique) -> Floats:
    """Sum logarithms over all columns but the wanted ones, which keep the clique's order."""
    over = tuple(i for i, c in enumerate(clique) if c not in wanted)
    top = logs.max(axis=over, keepdims=True)
    return np.asarray(np.squeeze(top, axis=over) + np.log(np.exp(logs - top).sum(axis=over)))


@contextmanager
def private_pgm() -> Iterator[Any]:
    """Give the package mbi in double precision, without its warnings about the setup of JAX."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jax
            import mbi
    except ImportError:
        raise ParameterError(
            "HB173", "Synthetic data of several columns requires Private-PGM.", 'Run: pip install "hubbub[synth]"'
        ) from None
    with warnings.catch_warnings(), jax.enable_x64(True):  # noqa: FBT003 - as JAX has it
        warnings.simplefilter("ignore")
        yield mbi
