"""The distance of a graph from a property: the number of edges to add or remove."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from hubbub.analyses.graphs.cuts import minimum_cut
from hubbub.analyses.graphs.edges import Graph, graph
from hubbub.analyses.graphs.trees import forest
from hubbub.core import numbers
from hubbub.errors import QueryError

#: The maximum number of graphs that are checked for one distance.
MAX_CHECKS = 2_000_000

Pair = tuple[int, int]
Checker = Callable[[frozenset[Pair]], bool]


@dataclass(frozen=True, slots=True)
class Property:
    """A property with its distance; `one_way` means that the distance is monotone in the edges."""

    means: str
    distance: Callable[[Graph], int]
    one_way: bool


def _parts(graph: Graph) -> int:
    return forest(graph)[1]


def _unweighted(graph: Graph) -> Graph:
    return Graph(graph.nodes, graph.a, graph.b, np.ones(graph.size, dtype=np.int64))


#: The properties that a CALL can name. Each distance is exact.
#:
#: connected      one edge connects two components
#: disconnected   the minimum cut
#: acyclic        every edge beyond a spanning forest closes a cycle
#: tree           connect all components, and remove what closes a cycle
#: empty, complete   remove, or add, all edges
#: even           changing a pair fixes two nodes of odd degree, and their number is even
PROPERTIES: Mapping[str, Property] = {
    "connected": Property("every node reaches every other", lambda g: _parts(g) - 1, one_way=True),
    "disconnected": Property("some node does not reach another", lambda g: minimum_cut(_unweighted(g)), one_way=True),
    "acyclic": Property("there is no circle", lambda g: g.size - g.nodes + _parts(g), one_way=True),
    "tree": Property("connected, without a circle", lambda g: g.size - g.nodes + 2 * _parts(g) - 1, one_way=False),
    "empty": Property("there is no edge", lambda g: g.size, one_way=True),
    "complete": Property("every pair has an edge", lambda g: comb(g.nodes, 2) - g.size, one_way=True),
    "even": Property("every degree is even", lambda g: int((g.degrees() % 2).sum()) // 2, one_way=False),
}


@dataclass(frozen=True)
class DistanceFrom:
    """The distance of a graph from a property that a function checks, for a user-defined release.

    Theorem (Distance from a property). For any set S of datasets, the number of entries of x that must change to reach
    S moves by at most 1 when one entry changes (Dwork, McSherry, Nissim and Smith 2006); so does the lesser of it and a
    bound. As entries are pairs of nodes here, one row more or less changes one entry, another row in its place two.
    Proof    From x′ one may go back to x and on from there: d(x′) ≤ d(x) + 1; the triangle inequality. Cutting off at
             a bound brings no two values further apart.
    Assumes  the checker says the same of the same graph each time. It is asked about graphs that lie near the private
             one, so it is the owner's code, and sees what its owner may see.
    Tested   tests/analyses/graphs/test_properties.py::test_distance_from_any_property_moves_by_at_most_one
             tests/analyses/graphs/test_properties.py::test_named_distances_are_those_of_their_checkers

    checker   says of a set of pairs (a, b), a < b, whether the graph has the property
    most      farther is as far as this: all graphs within so many changes are tried, the nearest first
    """

    checker: Checker
    nodes: int
    most: int

    def __post_init__(self) -> None:
        numbers.integer(self.nodes, "nodes", 2, 10_000)
        numbers.integer(self.most, "most", 1, comb(self.nodes, 2))
        checks = sum(comb(comb(self.nodes, 2), changes) for changes in range(self.most))
        if checks > MAX_CHECKS:
            raise QueryError(
                "HB596",
                f"Up to {checks} graphs would have to be checked.",
                f"Use a smaller `most`: the limit is {MAX_CHECKS} graphs.",
            )

    def __call__(self, edges: frozenset[Pair]) -> int:
        """Give the distance of a graph, or `most` if it is larger."""
        pairs = list(combinations(range(self.nodes), 2))
        for changes in range(self.most):
            if any(self.checker(edges.symmetric_difference(flipped)) for flipped in combinations(pairs, changes)):
                return changes
        return self.most


def pairs_of(nodes: int, first: object, second: object) -> frozenset[Pair]:
    """Make the pairs of a graph from two columns of integers from 0; values that are not nodes are ignored.

    >>> sorted(pairs_of(3, [0, 1, 2, 7], [1, 0, 1, 0]))
    [(0, 1), (1, 2)]
    """
    columns = (np.nan_to_num(np.asarray(each, dtype=np.float64), nan=-1.0) for each in (first, second))
    a, b = (np.where((each >= 0) & (each < nodes), np.floor(each), -1).astype(np.int64) for each in columns)
    there = (a >= 0) & (b >= 0)
    found = graph(nodes, a[there], b[there], np.ones(int(there.sum()), dtype=np.int64))
    return frozenset(zip(found.a.tolist(), found.b.tolist(), strict=True))
