"""The minimum cut of a graph."""

from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.graphs.edges import Graph

Numbers = NDArray[np.int64]


def minimum_cut(graph: Graph) -> int:
    """Give the weight of the minimum edge cut, in steps; 0 if the graph is not connected.

    Theorem (Minimum cut). One row of weight at most W more or less moves the minimum cut by at most W (Dwork, McSherry,
    Nissim and Smith 2006), and more rows never lower it.
    Proof    The weight of each fixed cut rises by 0 to W when the weight of one pair does; so does the least of them.
    Charges  nothing by itself: its value is a secret.
    Error    none: integers, and an exact algorithm (Nagamochi, Ono and Ibaraki 1994: after a scan in the order of
             maximal adjacency, an edge whose end had reached a weight of λ or more joins nodes that no cut below λ
             parts, so they become one; the last two nodes of a scan always do).
    Tested   tests/analyses/graphs/test_algorithms.py::test_minimum_cut_is_that_of_stoer_and_wagner
             tests/analyses/graphs/test_sensitivity.py::test_perturbing_any_edge_moves_cut_and_tree_by_at_most_one
    """
    a, b, weight, nodes = graph.a, graph.b, graph.weight, graph.nodes
    least = -1
    while nodes > 1:
        heavy = weight > 0
        a, b, weight = a[heavy], b[heavy], weight[heavy]
        total = np.bincount(a, weight, nodes).astype(np.int64) + np.bincount(b, weight, nodes).astype(np.int64)
        least = int(total.min()) if least < 0 else min(least, int(total.min()))
        if least == 0:
            return 0
        least, merged = _scan(a, b, weight, total, least)
        if least == 0:
            return 0
        a, b, weight, nodes = _contracted(a, b, weight, merged)
    return max(least, 0)


def _scan(a: Numbers, b: Numbers, weight: Numbers, total: Numbers, least: int) -> tuple[int, Numbers]:
    """Visit all nodes, each time the one with the largest weight to the visited ones; return the nodes to merge.

    Each step depends on the ones before, so this is a Python loop with one step per edge.
    """
    nodes = len(total)
    order = np.argsort(np.concatenate([a, b]), kind="stable")
    neighbors = np.concatenate([b, a])[order].tolist()
    weights = np.concatenate([weight, weight])[order].tolist()
    starts = np.r_[0, np.cumsum(np.bincount(np.concatenate([a, b]), minlength=nodes))].tolist()
    ranges, whole = list(pairwise(starts)), total.tolist()
    reached, visited, parent = [0] * nodes, [False] * nodes, list(range(nodes))
    queue = [(0, 0)]
    heapify(queue)
    cut, seen = 0, 0
    while queue:
        _, node = heappop(queue)
        if visited[node]:
            continue
        visited[node] = True
        seen += 1
        cut += whole[node] - 2 * reached[node]
        if seen < nodes:
            least = min(least, cut)
        for place in range(*ranges[node]):
            other = neighbors[place]
            if visited[other]:
                continue
            reached[other] += weights[place]
            heappush(queue, (-reached[other], other))
            if reached[other] >= least:
                _join(parent, node, other)
    if seen < nodes:
        return 0, np.zeros(nodes, dtype=np.int64)
    return least, np.unique([_root(parent, node) for node in range(nodes)], return_inverse=True)[1].astype(np.int64)


def _root(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def _join(parent: list[int], one: int, other: int) -> None:
    parent[_root(parent, one)] = _root(parent, other)


def _contracted(a: Numbers, b: Numbers, weight: Numbers, merged: Numbers) -> tuple[Numbers, Numbers, Numbers, int]:
    nodes = int(merged.max()) + 1
    one, other = merged[a], merged[b]
    apart = one != other
    codes = np.minimum(one, other)[apart] * nodes + np.maximum(one, other)[apart]
    pairs, places = np.unique(codes, return_inverse=True)
    sums = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(sums, places, weight[apart])
    return pairs // nodes, pairs % nodes, sums, nodes
