"""How far one edge can move triangle counts and spanning trees, at graphs that are few edges away."""

from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays
from hubbub.analyses.graphs.degrees import triangles
from hubbub.analyses.graphs.edges import EdgeTable, Graph
from hubbub.analyses.graphs.trees import forest_weights, tree_weight
from hubbub.analyses.local_sensitivity import LocalStatistic, local_order_statistic
from hubbub.core.schema import Kind
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.smooth import LocalValue

#: Declared nodes up to which all pairs are looked at: work that does not depend on the edges.
MAX_TRIANGLE_NODES, MAX_TREE_NODES = 4000, 300
#: Weights at which cuts are computed; bounds in between are rounded up.
_CUTS = 32


def by_unit(per_row: list[int], changes: int, distances: int) -> tuple[int, ...]:
    """Turn bounds for one changed pair at each distance in pairs into bounds for one unit of so many pairs.

    Theorem (From pairs to units). If one pair moves f by at most U₀ here, and U_k(x) ≤ U_k+1(x′) where one pair
    differs, then V_k = c·U_(k+1)c−1 are such bounds where a unit changes up to c pairs.
    Proof    Change the pairs one by one: f moves by at most U₀ + … + U_c−1 ≤ c·U_c−1, seen from the start; and
             V_k(x) = c·U_(k+1)c−1(x) ≤ c·U_(k+2)c−1(x′).
    Tested   tests/analyses/graphs/test_local_bounds.py::test_bounds_hold_for_all_graphs_of_five_nodes
    """
    return tuple(changes * per_row[min((k + 1) * changes, len(per_row)) - 1] for k in range(distances))


def changes_per_unit(edges: EdgeTable) -> int:
    """Give how many pairs of nodes one unit can change: a replaced unit takes rows away and brings others."""
    return edges.rows * (1 if edges.table.relation is Relation.ADD_REMOVE else 2)


def triangle_bounds(graph: Graph, distances: int) -> list[int]:
    """Bound how far one pair can move the number of triangles, 0, 1, 2, … pairs away.

    Theorem (Local sensitivity of triangles). Let a be the largest number of common neighbors of any two nodes. One
    pair moves the number of triangles by at most U₀ = a, and U_k = min(a + k, n − 2) bounds it k pairs away; and
    U_k(x) ≤ U_k+1(x′) (Nissim, Raskhodnikova and Smith 2007, who also use nodes joined to one of two).
    Proof    An edge is in as many triangles as its ends have common neighbors, of which there are at most n − 2. One
             pair changes the number of common neighbors of any two nodes by at most 1: an edge {u, v} makes u a
             common neighbor of v and w, or v one of u and w.
    Tested   tests/analyses/graphs/test_local_bounds.py::test_bounds_hold_for_all_graphs_of_five_nodes
    """
    joined = np.zeros((graph.nodes, graph.nodes), dtype=np.float32)  # counts up to 4,000 are exact
    joined[graph.a, graph.b] = joined[graph.b, graph.a] = 1
    most = 0
    for start in range(0, graph.nodes, 512):
        common = joined[start : start + 512] @ joined
        common[np.arange(len(common)), np.arange(start, start + len(common))] = 0
        most = max(most, int(common.max()))
    return [min(most + distance, graph.nodes - 2) for distance in range(distances)]


def tree_bounds(graph: Graph, most: int, distances: int) -> list[int]:
    """Bound how far one pair can move the weight of the minimum spanning tree, 0, 1, 2, … pairs away.

    Theorem (Local sensitivity of spanning trees). Let G_v have the pairs of weight below v, and U_k be the largest v
    for which some cut of G_v has at most k + 1 edges. One pair moves the tree's weight by at most U₀, and
    U_k(x) ≤ U_k+1(x′) where the weight of one pair differs.
    Proof    As a function of the weight w of one pair, the tree's weight is c + min(w, B), where B is the largest over
             cuts between its ends of the least weight of the other pairs in the cut. That cut has at most one pair
             lighter than B, the pair itself, so B ≤ U₀. Another weight of one pair changes every cut of G_v by at
             most one edge. Rounding all U_k up to a fixed grid keeps both inequalities.
    Tested   tests/analyses/graphs/test_local_bounds.py::test_bounds_hold_for_all_weights_of_four_nodes
    """
    grid = sorted({-(-most * i // _CUTS) for i in range(_CUTS)})
    cuts = []
    for bound in grid:
        light = graph.weight <= bound
        joined = np.zeros((graph.nodes, graph.nodes), dtype=np.int64)
        joined[graph.a[light], graph.b[light]] = joined[graph.b[light], graph.a[light]] = 1
        cuts.append(dense_cut(joined))
    # every cut of the pairs of weight at most g has more than k + 1 edges: no larger bound is needed
    return [
        next((bound for bound, cut in zip(grid, cuts, strict=True) if cut > distance + 1), most)
        for distance in range(distances)
    ]


def dense_cut(joined: NDArray[np.int64]) -> int:
    """Give the size of the minimum cut (Stoer and Wagner 1997), in work that depends on the number of nodes alone."""
    joined, nodes, least = joined.copy(), list(range(len(joined))), int(joined.sum(axis=0).min())
    while len(nodes) > 1:
        reach = joined[nodes[0]].copy()
        waiting = np.zeros(len(joined), dtype=np.bool_)
        waiting[nodes[1:]] = True
        before, last = nodes[0], nodes[0]
        for _ in range(len(nodes) - 1):
            before, last = last, int(np.argmax(np.where(waiting, reach, -1)))
            waiting[last] = False
            cut = int(reach[last])
            reach += joined[last]
        least = min(least, cut)
        joined[before] += joined[last]
        joined[:, before] += joined[:, last]
        joined[before, before] = 0
        joined[last] = joined[:, last] = 0
        nodes.remove(last)
    return least


def local_triangles(edges: EdgeTable) -> LocalStatistic:
    """Describe the number of triangles of a whole graph."""
    _limit(edges, MAX_TRIANGLE_NODES, "triangle_count with most => …")
    changes = changes_per_unit(edges)

    def compute(found: Arrays, distances: int) -> LocalValue:
        graph = edges.graph(found)
        return LocalValue(triangles(graph), by_unit(triangle_bounds(graph, distances * changes), changes, distances))

    largest = changes * (edges.nodes - 2)
    why = f"protected: {_pairs(changes)}; at worst one edge is in {edges.nodes - 2} triangles"
    return _statistic(edges, "triangles", comb(edges.nodes, 3), largest, compute, why, weights=0)


def local_tree(edges: EdgeTable) -> LocalStatistic:
    """Describe the weight of the minimum spanning tree."""
    _limit(edges, MAX_TREE_NODES, "spanning_tree without sensitivity")
    changes = changes_per_unit(edges)

    def compute(found: Arrays, distances: int) -> LocalValue:
        graph = edges.graph(found)
        bounds = by_unit(tree_bounds(graph, edges.most, distances * changes), changes, distances)
        return LocalValue(tree_weight(graph, edges.most), bounds)

    why = f"protected: {_pairs(changes)}; at worst one edge moves the tree's weight by the largest weight"
    count = edges.nodes - 1
    return _statistic(edges, "tree_weight", edges.most * count, changes * edges.most, compute, why, weights=count)


def local_merge(edges: EdgeTable, clusters: int) -> LocalStatistic:
    """Describe the weight at which single linkage, which joins the nearest clusters first, goes below so many clusters.

    Theorem (Order of merges). Let m₁ ≤ … ≤ m_n−1 be the weights of the minimum spanning tree, where a pair without an
    edge has the largest weight W. Single linkage leaves k clusters until the merge m_n−k+1. Another weight of one pair
    shifts the list of merges one way, by at most one place.
    Proof    The number of merges below v is n minus the components of the graph of all pairs lighter than v. A lighter
             pair joins at most two components, at the levels between its two weights, and parts none.
    Tested   tests/analyses/graphs/test_local_bounds.py::test_bounds_of_merges_hold_for_all_weights_of_four_nodes
    """
    changes = changes_per_unit(edges)

    def compute(found: Arrays, distances: int) -> LocalValue:
        merges = merge_weights(edges.graph(found), edges.most)
        return local_order_statistic(merges, edges.nodes - clusters, 0, edges.most, changes, distances)

    why = f"protected: {_pairs(changes)}; at worst one edge moves a merge from 0 to the largest weight"
    return _statistic(edges, "spacing", edges.most, edges.most, compute, why, weights=1)


def merge_weights(graph: Graph, most: int) -> NDArray[np.int64]:
    """Give the weights at which single linkage joins clusters, in order; missing pairs have the largest weight."""
    weights = np.sort(forest_weights(graph))
    return np.concatenate([weights, np.full(graph.nodes - 1 - len(weights), most, dtype=np.int64)])


def _statistic(
    edges: EdgeTable,
    name: str,
    high: int,
    largest: int,
    compute: Callable[[Arrays, int], LocalValue],
    why: str,
    *,
    weights: int,
) -> LocalStatistic:
    """Describe a number of a graph; `weights` of them add up to it, each of which is rounded to whole steps."""
    return LocalStatistic(
        name=name,
        step=edges.step,
        low=0,
        high=high,
        largest=largest,
        sql=edges.read.sql,
        compute=compute,
        protection=edges.protection,
        why=f"{edges.nodes} nodes are declared and public; {why}",
        rounding=weights * _rounding(edges),
        changes=changes_per_unit(edges),
    )


def _rounding(edges: EdgeTable) -> Fraction:
    """Bound how far the weight of a pair is from that of its rows, in steps."""
    weight = edges.weight
    if weight is None or weight.bounds is None:
        return Fraction(0)
    if edges.most * edges.step != weight.bounds.high:
        return Fraction(1)  # the weight of a pair without an edge is rounded up
    return Fraction(0) if weight.kind is Kind.INTEGER and edges.step.numerator == 1 else Fraction(1, 2)


def _pairs(count: int) -> str:
    return "one pair of nodes" if count == 1 else f"{count} pairs of nodes"


def _limit(edges: EdgeTable, most: int, instead: str) -> None:
    if not 3 <= edges.nodes <= most:
        raise QueryError(
            "HB680",
            f"Local sensitivity is computed for 3 to {most} nodes; {edges.nodes} are declared.",
            f"Declare fewer nodes, or use {instead}.",
        )
