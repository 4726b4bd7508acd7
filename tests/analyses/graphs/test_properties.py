"""Distances from properties: any checker moves by at most one, and the named ones are what their checkers say."""

from collections.abc import Callable
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from hubbub.analyses.graphs.edges import Graph, graph
from hubbub.analyses.graphs.properties import PROPERTIES, Checker, DistanceFrom, Pair, pairs_of
from hubbub.errors import QueryError

NODES = 4
PAIRS = list(combinations(range(NODES), 2))
GRAPHS = [
    frozenset(pair for pair, bit in zip(PAIRS, bits, strict=True) if bit) for bits in product((0, 1), repeat=len(PAIRS))
]


def library(test: "Callable[[nx.Graph[int]], bool]") -> Checker:
    def check(edges: frozenset[Pair]) -> bool:
        made: nx.Graph[int] = nx.Graph(list(edges))
        made.add_nodes_from(range(NODES))
        return test(made)

    return check


CHECKERS: dict[str, Checker] = {
    "connected": library(nx.is_connected),
    "disconnected": library(lambda made: not nx.is_connected(made)),
    "acyclic": library(nx.is_forest),
    "tree": library(nx.is_tree),
    "empty": library(lambda made: made.number_of_edges() == 0),
    "complete": library(lambda made: made.number_of_edges() == len(PAIRS)),
    "even": library(lambda made: all(degree % 2 == 0 for _, degree in made.degree())),
}
OTHERS: dict[str, Checker] = {
    "bipartite": library(nx.is_bipartite),
    "planar star": lambda edges: edges == frozenset({(0, 1), (0, 2), (0, 3)}),
    "an odd number of edges": lambda edges: len(edges) % 2 == 1,
}


@pytest.mark.row(50)
@pytest.mark.parametrize("name", [*CHECKERS, *OTHERS])
def test_distance_from_any_property_moves_by_at_most_one(name: str) -> None:
    distance = DistanceFrom(checker=(CHECKERS | OTHERS)[name], nodes=NODES, most=len(PAIRS))
    found = {edges: distance(edges) for edges in GRAPHS}
    assert min(found.values()) == 0 < max(found.values())
    moved = [abs(found[edges] - found[edges ^ {pair}]) for edges in GRAPHS for pair in PAIRS]
    assert max(moved) == 1


@pytest.mark.row(50)
@pytest.mark.parametrize("name", PROPERTIES)
def test_named_distances_are_those_of_their_checkers(name: str) -> None:
    distance = DistanceFrom(checker=CHECKERS[name], nodes=NODES, most=len(PAIRS))
    for edges in GRAPHS:
        ends = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
        made = graph(NODES, ends[:, 0], ends[:, 1], np.full(len(ends), 3))
        assert PROPERTIES[name].distance(made) == distance(edges)


@pytest.mark.row(50)
def test_what_is_no_distance_may_move_by_more() -> None:
    """The planted error: the number of parts, squared, is no distance, and one edge moves it by more than one."""
    moved = [
        abs(
            PROPERTIES["connected"].distance(made(edges)) ** 2
            - PROPERTIES["connected"].distance(made(edges ^ {p})) ** 2
        )
        for edges in GRAPHS
        for p in PAIRS
    ]
    assert max(moved) > 1


def made(edges: frozenset[Pair]) -> Graph:
    ends = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    return graph(NODES, ends[:, 0], ends[:, 1], np.ones(len(ends), dtype=np.int64))


def test_a_distance_is_cut_off_where_it_is_no_longer_searched() -> None:
    near = DistanceFrom(checker=lambda edges: not edges, nodes=30, most=3)
    assert near(frozenset()) == 0
    assert near(frozenset({(0, 1), (2, 3)})) == 2
    assert near(frozenset((i, i + 1) for i in range(20))) == 3


def test_a_search_that_would_never_end_is_refused() -> None:
    with pytest.raises(QueryError, match="HB596"):
        DistanceFrom(checker=bool, nodes=30, most=6)


def test_columns_become_pairs_and_what_is_no_node_is_left_out() -> None:
    first, second = np.array([2.0, 0.0, np.nan, 9.0, 1.0]), np.array([0.0, 2.0, 1.0, 1.0, 1.0])
    assert pairs_of(3, first, second) == {(0, 2)}
