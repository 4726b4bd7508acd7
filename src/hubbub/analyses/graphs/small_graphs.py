"""Distances from properties that no fast algorithm decides: all cuts, or all nearby graphs, are tried.

Their work follows from the declared nodes alone, and more than the limit is refused before the charge.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.graphs.edges import Graph
from hubbub.analyses.graphs.properties import Property
from hubbub.core import numbers
from hubbub.errors import QueryError

#: Declared nodes up to which all 2^(n−1) cuts are computed.
MAX_CUT_NODES = 24
#: Limit on nearby graphs times triples of nodes.
MAX_WORK = 200_000_000
_AT_ONCE = 1 << 22

Numbers = NDArray[np.int64]


def non_expansive(nodes: int, threshold: Fraction, most: int | None) -> Property:
    """Describe graphs in which some set S of at most half the nodes has at most threshold·|S| edges to the others.

    Theorem (Distance from non-expansion). The distance is the least over such S of max(0, e(S) − ⌊threshold·|S|⌋),
    where e(S) counts the edges between S and the others. One edge moves it by at most 1, and more edges never lower it
    (a distance from a property: Dwork, McSherry, Nissim and Smith 2006).
    Proof    To make S sparse, remove that many of its edges; no fewer changes do. An edge raises each e(S) by 0 or 1.
    Tested   tests/analyses/graphs/test_small_graphs.py::test_distances_are_those_of_brute_force_over_all_graphs
    """
    if most is not None:
        raise QueryError("HB681", "non_expansive does not use most.", "Leave out most.")
    if nodes > MAX_CUT_NODES:
        raise QueryError(
            "HB681",
            f"Expansion is computed for at most {MAX_CUT_NODES} nodes; {nodes} are declared.",
            "Declare fewer nodes, or use property => 'disconnected', which is fast for graphs of any size.",
        )
    allowed = [int(threshold * size) for size in range(nodes // 2 + 1)]

    def distance(graph: Graph) -> int:
        sizes = np.zeros(1 << (nodes - 1), dtype=np.int16)
        for node in range(nodes - 1):
            sizes[1 << node : 2 << node] = sizes[: 1 << node] + 1
        # the last node is in the complement: count the smaller side
        spare = np.minimum(np.array([allowed[min(size, nodes - size)] for size in range(nodes)]), 1 << 14)
        return max(0, int((_cuts(graph) - spare.astype(np.int16)[sizes])[1:].min()))

    return Property(f"some cut has at most {numbers.brief(threshold)} edges a node", distance, one_way=True)


def poorly_clustered(nodes: int, threshold: Fraction, most: int | None) -> Property:
    """Describe graphs in which at most a share `threshold` of the paths of two edges is closed by a third edge.

    Theorem (Distance from poor clustering). The least number of pairs that must change for the transitivity to be at
    most the threshold, or `most` if it is larger, moves by at most 1 with one edge; it may go either way.
    Proof    It is the lesser of a distance from a property and a constant: see `DistanceFrom`. All graphs within
             `most` − 1 changes are tested, whatever the distance is, so the work is the same for all data.
    Tested   tests/analyses/graphs/test_small_graphs.py::test_distances_are_those_of_brute_force_over_all_graphs
             tests/analyses/graphs/test_small_graphs.py::test_the_work_does_not_depend_on_the_edges
    """
    pairs, triples = comb(nodes, 2), comb(nodes, 3)

    largest, work = 0, max(triples, 1)
    while largest < pairs and work <= MAX_WORK:
        largest += 1
        work += comb(pairs, largest) * max(triples, 1)
    chosen = largest if most is None else most
    if not 1 <= chosen <= largest:
        raise QueryError(
            "HB681",
            f"With {nodes} nodes, distances from poor clustering are computed up to {largest}.",
            f"Use most => 1 to {largest}." if largest else "Declare fewer nodes, or use triangle_count.",
        )
    share = numbers.in_range(threshold, "threshold", Fraction(0), Fraction(1))
    check = _transitivity_at_most(nodes, share)

    def distance(graph: Graph) -> int:
        edges = np.zeros(pairs, dtype=np.bool_)
        edges[_place(graph.a, graph.b, nodes)] = True
        least = chosen
        # all of them, also beyond the least: the time must not tell the distance
        for changes in range(chosen):
            flips = combinations(range(pairs), changes)
            while chunk := list(islice(flips, max(1, _AT_ONCE // max(triples, 1)))):
                nearby = np.tile(edges, (len(chunk), 1))
                if changes:
                    places = np.array(chunk, dtype=np.int64)
                    nearby[np.arange(len(chunk))[:, np.newaxis], places] ^= True
                least = min(least, changes) if check(nearby).any() else least
        return least

    means = f"at most {numbers.brief(share)} of all paths of two edges are closed; farther than {chosen} is {chosen}"
    return Property(means, distance, one_way=False)


#: Properties with a threshold, by name: made from the number of nodes, the threshold, and the largest distance.
WITH_THRESHOLD: Mapping[str, Callable[[int, Fraction, int | None], Property]] = {
    "non_expansive": non_expansive,
    "poorly_clustered": poorly_clustered,
}


def _cuts(graph: Graph) -> NDArray[np.int16]:
    """Count the edges that leave each set of nodes without the last node; bit v of a set's number is node v."""
    joined = np.zeros((graph.nodes, graph.nodes), dtype=np.int16)
    joined[graph.a, graph.b] = joined[graph.b, graph.a] = 1
    cuts = np.zeros(1 << (graph.nodes - 1), dtype=np.int16)
    for node in range(graph.nodes - 1):
        within = np.zeros(1 << node, dtype=np.int16)  # edges between the node and each set of earlier nodes
        for earlier in range(node):
            np.add(within[: 1 << earlier], joined[node, earlier], out=within[1 << earlier : 2 << earlier])
        cuts[1 << node : 2 << node] = cuts[: 1 << node] - 2 * within + joined[node].sum(dtype=np.int16)
    return cuts


def _place(a: Numbers, b: Numbers, nodes: int) -> Numbers:
    """Number the pairs a < b in the order of `combinations`."""
    return a * (2 * nodes - a - 1) // 2 + b - a - 1


def _transitivity_at_most(nodes: int, share: Fraction) -> Callable[[NDArray[np.bool_]], NDArray[np.bool_]]:
    three = np.array(list(combinations(range(nodes), 3)), dtype=np.int64).reshape(-1, 3)
    sides = [_place(three[:, i], three[:, j], nodes) for i, j in ((0, 1), (0, 2), (1, 2))]
    ends = np.zeros((comb(nodes, 2), nodes), dtype=np.int64)
    for place, (a, b) in enumerate(combinations(range(nodes), 2)):
        ends[place, [a, b]] = 1

    def check(graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        closed = 3 * (graphs[:, sides[0]] & graphs[:, sides[1]] & graphs[:, sides[2]]).sum(axis=1)
        degrees = graphs.astype(np.int64) @ ends
        paths = (degrees * (degrees - 1) // 2).sum(axis=1)
        result: NDArray[np.bool_] = closed * share.denominator <= share.numerator * paths
        return result

    return check
