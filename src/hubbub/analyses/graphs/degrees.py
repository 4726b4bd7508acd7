"""Degrees and triangles after projections to bounded degree, which one edge or node changes little."""

from collections.abc import Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.graphs.edges import Graph
from hubbub.analyses.rows import first_of_each, salted_order
from hubbub.sql.owner_truncation import OwnedWeights, truncate

Numbers = NDArray[np.int64]


def at_least(graph: Graph, most: int) -> Numbers:
    """Count the nodes of degree at least 1, 2, …, most.

    Theorem (Degrees under edge privacy). One row more or less moves these counts by at most 2 in L1, whatever the
    degrees are.
    Proof    One edge more raises the degree of two nodes by one, from d to d + 1 say, which moves the count of those of
             degree at least d + 1 alone. (The histogram itself moves by 4: two nodes each leave one cell for another.)
    Tested   tests/analyses/graphs/test_sensitivity.py::test_brute_force_stays_within_what_is_declared
    """
    counts = np.bincount(np.minimum(graph.degrees(), most), minlength=most + 1)
    return np.cumsum(counts[::-1])[::-1][1:].astype(np.int64)


def projected(graph: Graph, most: int, salt: str) -> Graph:
    """Visit the edges in a salted order, and keep one if both its ends have fewer than `most` edges so far.

    Theorem (Degrees under node privacy). Let G′ be G without all edges of node x. After this projection the counts of
    nodes of degree at least 1, …, D differ by at most 2D in L1, also where x has other edges instead (Day, Li and Lyu
    2016, for degrees, with 3D for the latter; the proof here is for these counts).
    Proof    Go through both graphs at once, and look at the sum over nodes u ≠ x of |deg(u) − deg′(u)|. An edge of x is
             kept d ≤ D times in G and d′ ≤ D times in G′, and raises the sum by at most 1 each time. Any other edge is
             in both graphs. If it is kept in
             both or in none, nothing changes. If it is kept in G alone, then in G′ one of its ends, u, has D already
             and in G it has fewer: the difference at u falls by 1, and at the other end it rises by at most 1; so the
             sum never rises, and likewise the other way round. In the end it is at most d + d′. A difference of 1 in a
             degree moves one count by 1. The degree of x itself is d in G and d′ in G′, and adds |d − d′|: together
             d + d′ + |d − d′| = 2·max(d, d′).
    Assumes  the order is fixed for all pairs of nodes before the data is seen.
    Tested   tests/analyses/graphs/test_sensitivity.py::test_changing_all_edges_of_a_node_stays_within_the_bounds
             tests/sql/test_owner_truncation.py::test_rounds_keep_what_one_row_after_another_keeps
    """
    order = np.argsort(salted_order(graph.codes, salt))
    kept = np.zeros(graph.size, dtype=np.bool_)
    kept[order] = truncate(OwnedWeights(graph.a[order], graph.b[order], np.ones_like(graph.a)), most) > 0
    return graph.only(kept)


def stars(graph: Graph, leaves: int) -> int:
    """Count the k-stars: the ways to choose a node and k of its neighbors.

    Theorem (Stars under node privacy). Let S be the number of k-stars of a graph after `projected` to degrees of at
    most D ≥ k ≥ 2. Where a node comes with any edges, or one edge comes, S rises by no more than (k + 1)·C(D, k) and
    falls by no more than k·C(D, k).
    Proof    A node of degree d is the center of C(d, k) stars, and one edge more or less at it, with at most D, changes
             that by at most C(D − 1, k − 1) = k/D·C(D, k). By the theorem of `projected` all nodes but the one that
             comes move by at most D degrees together, so by k·C(D, k) stars in either direction; it is the center of
             at most C(D, k) itself. One edge that comes moves two degrees at its own ends if it is kept, and by the
             same argument the sum over all nodes of |deg − deg′| never rises after that: two degrees, 2k/D·C(D, k).
    Assumes  `projected` before; for a node that is replaced both apply, one after the other.
    Tested   tests/analyses/graphs/test_node_counts.py::test_a_node_or_an_edge_moves_stars_by_at_most_what_is_declared

    >>> stars(Graph(4, np.array([0, 0, 0]), np.array([1, 2, 3]), np.ones(3, dtype=np.int64)), 2)
    3
    """
    return capped_stars(graph, leaves, graph.nodes)


def capped_stars(graph: Graph, leaves: int, most: int) -> int:
    """Count the k-stars, as if each node had at most `most` neighbors.

    Theorem (Stars under edge privacy). One edge more raises the sum of C(min(deg, D), k) by at most 2·C(D − 1, k − 1),
    and never lowers it.
    Proof    It raises two degrees by one, and C(d, k) − C(d − 1, k) = C(d − 1, k − 1), which is largest at d = D.
    Tested   tests/analyses/graphs/test_sensitivity.py::test_brute_force_stays_within_what_is_declared
    """
    counts = np.bincount(np.minimum(graph.degrees(), most))
    return sum(comb(degree, leaves) * many for degree, many in enumerate(counts.tolist()))


def truncated(graph: Graph, most: int, salt: str) -> Graph:
    """Keep an edge if it is among the first `most` edges of both its ends, in a salted order.

    Theorem (Truncation of degrees). All degrees are then at most D; and one edge more puts in at most one edge (itself)
    and takes out at most two (one at each end). (Blocki, Blum, Datta and Sheffet 2013.)
    Proof    The edge takes its place in the lists of its two ends, where it pushes at most one other out of the first
             D each; the lists of other nodes do not change.
    Tested   tests/analyses/graphs/test_sensitivity.py::test_one_edge_moves_at_most_three_edges_of_a_truncated_graph
    """
    places = np.arange(graph.size)
    ends, edges = np.concatenate([graph.a, graph.b]), np.concatenate([places, places])
    first = first_of_each(ends, np.tile(salted_order(graph.codes, salt), 2), most)
    return graph.only(np.bincount(edges, first, graph.size) == 2)


def triangles(graph: Graph) -> int:
    """Count triangles.

    Theorem (Triangles of bounded degree). In graphs truncated to degrees of at most D, one row more or less moves the
    number of triangles by at most 2(D − 1).
    Proof    An edge of a graph with degrees of at most D is part of at most D − 1 triangles: its ends have that many
             other neighbors at most. At most one edge comes, with up to D − 1, and at most two go, with twice that.
    Assumes  `truncated` before.
    Tested   tests/analyses/graphs/test_sensitivity.py::test_brute_force_stays_within_what_is_declared
             tests/analyses/graphs/test_algorithms.py::test_triangles_are_those_of_networkx
    """
    return sum(chunk.shape[1] for chunk in listed_triangles(graph))


def listed_triangles(graph: Graph) -> Iterator[Numbers]:
    """List the triangles in parts of three rows, a triangle a column; nodes are numbered by their degree."""
    if not graph.size:
        return
    # each edge points to the end of higher degree, so no node has many outgoing edges
    rank = np.empty(graph.nodes, dtype=np.int64)
    rank[np.argsort(graph.degrees(), kind="stable")] = np.arange(graph.nodes)
    one, other = rank[graph.a], rank[graph.b]
    low, high = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    codes = low * graph.nodes + high
    starts = np.searchsorted(low, np.arange(graph.nodes + 1))
    # for each edge, all later edges that leave the same node: pairs whose other ends may be connected
    many = starts[low + 1] - np.arange(graph.size) - 1
    begin = 0
    sums = np.cumsum(many)
    while begin < graph.size:
        end = max(begin + 1, int(np.searchsorted(sums, (sums[begin - 1] if begin else 0) + _AT_ONCE)))
        first = np.repeat(np.arange(begin, end), many[begin:end])
        within = np.arange(len(first)) - np.repeat(np.cumsum(many[begin:end]) - many[begin:end], many[begin:end])
        second = first + 1 + within
        wanted = high[first] * graph.nodes + high[second]
        found = np.minimum(np.searchsorted(codes, wanted), graph.size - 1)
        closed = codes[found] == wanted
        first, second = first[closed], second[closed]
        yield np.stack([low[first], high[first], high[second]])
        begin = end


#: Pairs of edges that are checked at once, which bounds the memory.
_AT_ONCE = 10_000_000


def falling(noisy: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the nearest non-increasing sequence in least squares (pool adjacent violators).

    >>> falling(np.array([5, 7, 3])).tolist()
    [6.0, 6.0, 3.0]
    """
    levels: list[tuple[float, int]] = []
    for value in noisy.tolist():
        level, many = float(value), 1
        while levels and levels[-1][0] < level:
            before, count = levels.pop()
            level, many = (before * count + level * many) / (count + many), count + many
        levels.append((level, many))
    return np.repeat([level for level, _ in levels], [many for _, many in levels])
