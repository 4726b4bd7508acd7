"""Junction trees of pairs of columns, and the marginals of a distribution that factors over one.

Everything here follows from the numbers of levels and from the selected pairs alone, in one fixed order, so that the
same pairs give the same floats.

Tested in tests/analyses/synthetic/test_junction_tree.py.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Clique = tuple[int, ...]
Pair = tuple[int, int]

#: Products below this are taken for 0, so that no quotient overflows.
_LEAST = 1e-290


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns such that the cliques with a column in common are connected.

    links   parent and child in an order in which parents come first; cliques of different trees share no column
    """

    cliques: tuple[Clique, ...]
    links: tuple[tuple[int, int], ...]


def junction_tree(sizes: Sequence[int], pairs: Iterable[Pair]) -> JunctionTree:
    """Build a junction tree in which every column and every pair is in a clique.

    >>> junction_tree([2, 2, 2, 2], [(0, 1), (1, 2)])
    JunctionTree(cliques=((0, 1), (1, 2), (3,)), links=((0, 1),))
    """
    cliques = _cliques(sizes, pairs)
    nearest = dict.fromkeys(range(1, len(cliques)), (0, -1))  # columns in common, and −parent
    links, last = [], 0
    while nearest:
        # Prim's algorithm: a spanning tree with the largest intersections is a junction tree
        for place in nearest:
            nearest[place] = max(nearest[place], (len({*cliques[place]} & {*cliques[last]}), -last))
        last = max(nearest, key=lambda place: (nearest[place][0], -place))
        common, parent = nearest.pop(last)
        if common:
            links.append((-parent, last))
    return JunctionTree(cliques, tuple(links))


def cells(sizes: Sequence[int], pairs: Iterable[Pair], most: float = math.inf) -> int:
    """Count the cells of the junction tree of these pairs; once there are more than `most`, the count stops.

    >>> cells([10, 10, 10], [(0, 1), (1, 2)]), cells([10, 10, 10], [(0, 1), (1, 2), (0, 2)])
    (200, 1000)
    """
    return sum(math.prod(sizes[c] for c in clique) for clique in _cliques(sizes, pairs, most))


def _cliques(sizes: Sequence[int], pairs: Iterable[Pair], most: float = math.inf) -> tuple[Clique, ...]:
    """List the maximal cliques after a greedy elimination: columns whose neighbors are all neighbors come first."""
    near = [0] * len(sizes)  # sets of columns, as bits
    for one, other in pairs:
        near[one] |= 1 << other
        near[other] |= 1 << one
    left, total = list(range(len(sizes))), 0
    found: list[int] = []
    while left:
        _, cost, column = min(_cost(sizes, near, column) for column in left)
        clique = near[column] | 1 << column
        if not any(clique & ~other == 0 for other in found):
            found.append(clique)
            total += cost
            if total > most:
                break
        for each in _members(near[column]):
            near[each] = (near[each] | near[column]) & ~(1 << each | 1 << column)
        left.remove(column)
    return tuple(sorted(tuple(_members(clique)) for clique in found))


def _cost(sizes: Sequence[int], near: Sequence[int], column: int) -> tuple[bool, int, int]:
    members = _members(near[column])
    fills = any(near[column] & ~(near[each] | 1 << each) for each in members)
    return fills, sizes[column] * math.prod(sizes[each] for each in members), column


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def calibrated(tree: JunctionTree, factors: Sequence[Floats]) -> tuple[tuple[Floats, ...], float]:
    """Give the marginals of the normalized product of all factors, one for each clique, and the log of its sum.

    Messages are passed up and down the tree. The sum is 0, and its logarithm −∞, where the product underflows.
    """
    tables = list(factors)
    sent: dict[int, Floats] = {}
    scale = 0.0
    shared = {child: {*tree.cliques[parent]} & {*tree.cliques[child]} for parent, child in tree.links}
    for parent, child in reversed(tree.links):
        sent[child] = _over(tables[child], tree.cliques[child], shared[child])
        top = float(sent[child].max())
        if not top > 0:
            return tuple(tables), -math.inf
        scale += math.log(top)
        tables[parent] = tables[parent] * _laid(sent[child] / top, shared[child], tree.cliques[parent])
    for root in sorted({*range(len(tables))} - {child for _, child in tree.links}):
        total = float(tables[root].sum())
        if not total > 0:
            return tuple(tables), -math.inf
        scale += math.log(total)
        tables[root] = tables[root] / total
    for parent, child in tree.links:
        wanted = _over(tables[parent], tree.cliques[parent], shared[child])
        ratio = np.divide(wanted, sent[child], out=np.zeros_like(wanted), where=sent[child] > _LEAST)
        tables[child] = tables[child] * _laid(ratio, shared[child], tree.cliques[child])
    return tuple(tables), scale


def _over(table: Floats, clique: Clique, kept: set[int]) -> Floats:
    """Sum a clique's table over all columns that are not kept."""
    return np.asarray(table.sum(axis=tuple(axis for axis, c in enumerate(clique) if c not in kept)))


def _laid(table: Floats, columns: set[int], clique: Clique) -> Floats:
    """Align a table over some columns of a clique, in order, with the clique's axes."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if c in columns else 1 for c in clique])
