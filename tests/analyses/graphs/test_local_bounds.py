"""Bounds on the local sensitivity of triangles and spanning trees, for all small graphs."""

from fractions import Fraction
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from hubbub.analyses.graphs.cuts import minimum_cut
from hubbub.analyses.graphs.degrees import triangles
from hubbub.analyses.graphs.edges import Graph
from hubbub.analyses.graphs.local_bounds import by_unit, dense_cut, merge_weights, tree_bounds, triangle_bounds
from hubbub.analyses.graphs.trees import tree_weight
from hubbub.analyses.local_sensitivity import local_order_statistic

PAIRS = {nodes: list(combinations(range(nodes), 2)) for nodes in (4, 5)}
Weights = tuple[int, ...]


def graph(nodes: int, weights: Weights, absent: int) -> Graph:
    there = [(a, b, w) for (a, b), w in zip(PAIRS[nodes], weights, strict=True) if w != absent]
    a, b, w = (np.array(each, dtype=np.int64) for each in (zip(*there, strict=True) if there else ((), (), ())))
    return Graph(nodes, a, b, w)


def triangles_by_hand(bits: Weights) -> int:
    edges = {pair for pair, bit in zip(PAIRS[5], bits, strict=True) if bit}
    return sum(set(combinations(three, 2)) <= edges for three in combinations(range(5), 3))


@pytest.mark.row(113)
def test_bounds_hold_for_all_graphs_of_five_nodes() -> None:
    known = {}
    for bits in product((0, 1), repeat=10):
        each = graph(5, bits, absent=0)
        known[bits] = (
            triangles_by_hand(bits),
            by_unit(triangle_bounds(each, 4), 1, 4),
            by_unit(triangle_bounds(each, 8), 2, 4),
        )
        assert triangles(each) == known[bits][0]
    attained = 0
    for bits, (count, bounds, both) in known.items():
        for place in range(10):
            other = (*bits[:place], 1 - bits[place], *bits[place + 1 :])
            moved, there = abs(known[other][0] - count), known[other][1]
            assert moved <= bounds[0]
            attained += moved == bounds[0] > 0
            assert all(a <= b for a, b in zip(bounds[:-1], there[1:], strict=True))
            second = (*other[:-1], 1 - other[-1])
            assert abs(known[second][0] - count) <= both[0]
            assert all(a <= b for a, b in zip(both[:-1], known[second][2][1:], strict=True))
    assert attained > 1000


@pytest.mark.row(113)
def test_bounds_hold_for_all_weights_of_four_nodes() -> None:
    """Six pairs with weights 0, 1 or none, which counts as 2: all 729, and every other weight of every pair."""
    top = 2
    known = {}
    for weights in product(range(top + 1), repeat=6):
        each = graph(4, weights, absent=top)
        known[weights] = tree_weight(each, top), tree_bounds(each, top, 5)
    attained = 0
    for weights, (total, bounds) in known.items():
        for place, weight in product(range(6), range(top + 1)):
            moved, there = known[*weights[:place], weight, *weights[place + 1 :]]
            assert abs(moved - total) <= bounds[0]
            attained += abs(moved - total) == bounds[0] > 0
            assert all(a <= b for a, b in zip(bounds[:-1], there[1:], strict=True))
    assert attained > 500


@pytest.mark.row(113)
@pytest.mark.parametrize("clusters", [2, 3])
def test_bounds_of_merges_hold_for_all_weights_of_four_nodes(clusters: int) -> None:
    """Six pairs with weights 0, 1 or none, which counts as 2: merges by counting components, and all neighbors."""
    top = 2

    def components(weights: Weights, below: int) -> int:
        drawn: nx.Graph[int] = nx.Graph()
        drawn.add_nodes_from(range(4))
        drawn.add_edges_from(pair for pair, weight in zip(PAIRS[4], weights, strict=True) if weight < below)
        return int(nx.number_connected_components(drawn))

    known = {}
    for weights in product(range(top + 1), repeat=6):
        merges = merge_weights(graph(4, weights, absent=top), top)
        value = local_order_statistic(merges, 4 - clusters, 0, top, 1, 5)
        spacing = max(below for below in range(top + 1) if components(weights, below) >= clusters)
        assert value.value == spacing
        known[weights] = spacing, value.bounds
    attained = 0
    for weights, (spacing, bounds) in known.items():
        for place, weight in product(range(6), range(top + 1)):
            moved, there = known[*weights[:place], weight, *weights[place + 1 :]]
            assert abs(moved - spacing) <= bounds[0]
            attained += abs(moved - spacing) == bounds[0] > 0
            assert all(a <= b for a, b in zip(bounds[:-1], there[1:], strict=True))
    assert attained > 200


def test_dense_cuts_are_those_of_the_other_algorithm() -> None:
    """Forty random graphs of 3 to 20 nodes, from sparse to dense."""
    some = np.random.default_rng(9)
    for nodes in (*range(3, 21), *range(3, 21)):
        joined = np.triu(some.random((nodes, nodes)) < some.random(), 1).astype(np.int64)
        a, b = np.nonzero(joined)
        expected = minimum_cut(Graph(nodes, a, b, np.ones(len(a), dtype=np.int64)))
        assert dense_cut(joined + joined.T) == expected


def test_a_dense_graph_of_light_edges_has_small_bounds() -> None:
    """With 20 nodes and all weights at most a tenth of the largest, 17 pairs must change before one can do more."""
    some = np.random.default_rng(3)
    a, b = (np.array(each, dtype=np.int64) for each in zip(*combinations(range(20), 2), strict=True))
    dense = Graph(20, a, b, some.integers(0, 100, len(a)))
    bounds = tree_bounds(dense, 1024, 25)
    assert bounds[0] <= 100 < bounds[20] == 1024
    assert bounds[17] <= 128
    assert triangle_bounds(dense, 3) == [18, 18, 18]
    assert Fraction(bounds[0], 1024) < Fraction(1, 10)
