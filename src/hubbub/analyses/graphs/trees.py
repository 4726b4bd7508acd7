"""Minimum spanning forests and trees."""

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.graphs.edges import Graph

Numbers = NDArray[np.int64]


def forest(graph: Graph) -> tuple[int, int]:
    """Give the weight of the minimum spanning forest, in steps, and the number of connected components."""
    weights = forest_weights(graph)
    return int(weights.sum()), graph.nodes - len(weights)


def forest_weights(graph: Graph) -> Numbers:
    """Give the weights of the edges of the minimum spanning forest, in steps.

    Each round connects every component to another by its lightest edge (Borůvka), so there are few rounds; ties are
    broken by position, which does not change the weight of the forest.
    """
    part: Numbers = np.arange(graph.nodes, dtype=np.int64)
    order = np.argsort(graph.weight, kind="stable")
    a, b, weight = graph.a[order], graph.b[order], graph.weight[order]
    weights: list[Numbers] = []
    while True:
        one, other = part[a], part[b]
        apart = np.flatnonzero(one != other)
        if not len(apart):
            return np.concatenate([*weights, np.zeros(0, dtype=np.int64)])
        lightest = np.full(graph.nodes, len(a), dtype=np.int64)
        np.minimum.at(lightest, one[apart], apart)
        np.minimum.at(lightest, other[apart], apart)
        joining = np.flatnonzero(lightest < len(a))
        edges = lightest[joining]
        weights.append(weight[np.unique(edges)])
        part = _joined(part, joining, one[edges] + other[edges] - joining)


def _joined(part: Numbers, joining: Numbers, to: Numbers) -> Numbers:
    """Give all connected components one number: let each component follow the one that it joins."""
    parent = np.arange(len(part), dtype=np.int64)
    parent[joining] = to
    # two components that chose one edge point at each other; the order of edges allows no longer cycle
    both = (parent[parent] == np.arange(len(part))) & (np.arange(len(part)) < parent)
    parent[both] = np.flatnonzero(both)
    while not np.array_equal(parent, parent[parent]):
        parent = parent[parent]
    return parent[part]


def tree_weight(graph: Graph, most: int) -> int:
    """Give the weight of the minimum spanning tree, where a pair without an edge has the maximum weight.

    Theorem (Spanning tree). With weights in [0, W], and W for a pair that has no row, one row more or less moves the
    weight of the lightest spanning tree by at most W (Dwork, McSherry, Nissim and Smith 2006), and another row in its
    place by at most 2W; both are attained. Where the graph is connected, it is the weight of its own lightest tree;
    else W more for each gap.
    Proof    One row more or less changes the weight of one pair, between two numbers in [0, W], so each tree's weight
             moves by at most W, and so does the least of them. It may go either way: the first row of a pair lowers
             the pair's weight from W, a heavier row beside it raises it, as a pair has the largest weight of its rows.
             So the steps of a replacement add up: take away the heavier of two rows of one pair, and put the first row
             of another pair, both of weight 0. A pair of weight W can be put last in the order of edges, so it is used
             only between parts that no row joins.
    Charges  nothing by itself: its value is a secret.
    Tested   tests/analyses/graphs/test_algorithms.py::test_spanning_tree_and_parts_are_those_of_networkx
             tests/analyses/graphs/test_sensitivity.py::test_perturbing_any_edge_moves_cut_and_tree_by_at_most_one
             tests/analyses/graphs/test_sensitivity.py::test_tables_with_weights_and_several_rows_a_pair_stay_within_the_declared
    """
    weight, parts = forest(graph)
    return weight + most * (parts - 1)
