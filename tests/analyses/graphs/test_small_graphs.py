"""Non-expansive and poorly clustered graphs: distances by brute force, and what a user sees."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.analyses.graphs import small_graphs
from hubbub.analyses.graphs.edges import Graph
from hubbub.analyses.graphs.small_graphs import WITH_THRESHOLD, non_expansive, poorly_clustered
from hubbub.curator.session import Session
from hubbub.errors import QueryError

NODES = 5
PAIRS = list(combinations(range(NODES), 2))
Graphs = NDArray[np.bool_]
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def graph_of(bits: tuple[int, ...]) -> Graph:
    there = [pair for pair, bit in zip(PAIRS, bits, strict=True) if bit]
    ends = np.array(there, dtype=np.int64).reshape(-1, 2)
    return Graph(NODES, ends[:, 0], ends[:, 1], np.ones(len(there), dtype=np.int64))


def library(bits: tuple[int, ...]) -> "nx.Graph[int]":
    drawn: nx.Graph[int] = nx.Graph()
    drawn.add_nodes_from(range(NODES))
    drawn.add_edges_from(pair for pair, bit in zip(PAIRS, bits, strict=True) if bit)
    return drawn


def expands_little(bits: tuple[int, ...], threshold: Fraction) -> bool:
    drawn = library(bits)
    sets = [nodes for size in (1, 2) for nodes in combinations(range(NODES), size)]
    return any(nx.cut_size(drawn, nodes) <= threshold * len(nodes) for nodes in sets)


def clusters_little(bits: tuple[int, ...], threshold: Fraction) -> bool:
    return bool(nx.transitivity(library(bits)) <= float(threshold) + 1e-12)


def by_brute_force(
    check: Callable[[tuple[int, ...], Fraction], bool], threshold: Fraction
) -> dict[tuple[int, ...], int]:
    """Walk outwards from the graphs that have the property, one pair at a time."""
    everything = list(product((0, 1), repeat=len(PAIRS)))
    distance = {bits: 0 for bits in everything if check(bits, threshold)}
    edge = list(distance)
    while edge:
        nearby = []
        for bits in edge:
            for place in range(len(PAIRS)):
                other = (*bits[:place], 1 - bits[place], *bits[place + 1 :])
                if other not in distance:
                    distance[other] = distance[bits] + 1
                    nearby.append(other)
        edge = nearby
    return distance


@pytest.mark.row(50, 116)
@pytest.mark.parametrize(
    ("name", "check", "threshold"),
    [
        ("non_expansive", expands_little, HALF),
        ("non_expansive", expands_little, Fraction(0)),
        ("poorly_clustered", clusters_little, THIRD),
    ],
)
def test_distances_are_those_of_brute_force_over_all_graphs(
    name: str, check: Callable[[tuple[int, ...], Fraction], bool], threshold: Fraction
) -> None:
    described = WITH_THRESHOLD[name](NODES, threshold, None)
    expected = by_brute_force(check, threshold)
    assert max(expected.values()) >= 3
    for bits in list(expected)[::7]:
        assert described.distance(graph_of(bits)) == expected[bits]
    steps = [
        expected[(*bits[:place], 1, *bits[place + 1 :])] - expected[(*bits[:place], 0, *bits[place + 1 :])]
        for bits in expected
        for place in range(len(PAIRS))
    ]
    assert {abs(step) for step in steps} == {0, 1}
    # one_way: an edge never lowers the distance
    assert (min(steps) == 0) == described.one_way


def test_a_distance_beyond_the_limit_is_the_limit() -> None:
    complete = graph_of((1,) * len(PAIRS))
    whole = poorly_clustered(NODES, Fraction(0), None).distance(complete)
    assert whole == 4  # the fewest edges that meet all ten triangles of five nodes
    assert poorly_clustered(NODES, Fraction(0), 2).distance(complete) == 2


def test_what_would_take_too_long_is_refused_before_the_charge() -> None:
    with pytest.raises(QueryError, match=r"HB681.*24 nodes; 25"):
        non_expansive(25, HALF, None)
    with pytest.raises(QueryError, match="computed up to 2"):
        poorly_clustered(34, HALF, 3)
    with pytest.raises(QueryError, match="HB681"):
        poorly_clustered(1500, HALF, None)


def test_twenty_four_nodes_are_within_reach() -> None:
    """Two complete graphs of twelve joined by three edges: with at most a quarter of an edge a node, none must go."""
    halves = [pair for start in (0, 12) for pair in combinations(range(start, start + 12), 2)]
    ends = np.array([*halves, (0, 12), (1, 13), (2, 14), (3, 15)], dtype=np.int64)
    joined = Graph(24, ends[:, 0], ends[:, 1], np.ones(len(ends), dtype=np.int64))
    assert non_expansive(24, Fraction(1, 4), None).distance(joined) == 1
    assert non_expansive(24, Fraction(1, 3), None).distance(joined) == 0


@pytest.mark.row(116)
@pytest.mark.parametrize(("name", "truth"), [("non_expansive", 2), ("poorly_clustered", 1)])
def test_both_are_released_with_noise_and_charged(town: Callable[..., Session], name: str, truth: int) -> None:
    """At ε = 60, noise of 1 or more has probability below 1e-25. By hand: node 4 has two edges, and without
    its diagonal the square has no triangle."""
    session = town()
    release = session.graph_distance("links", ["a", "b"], property=name, threshold="0.4", epsilon=60)
    assert release.outputs[0].values == [truth]
    assert release.epsilon == 60
    with pytest.raises(QueryError, match="HB681"):
        session.graph_distance("links", ["a", "b"], property=name, epsilon=1)
    with pytest.raises(QueryError, match="HB681"):
        session.graph_distance("links", ["a", "b"], property="tree", threshold=1, epsilon=1)


def test_the_work_does_not_depend_on_the_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many graphs are tested for an empty graph, at distance 0, as for a complete one, which is far away."""
    tested: list[int] = []
    check_of = small_graphs._transitivity_at_most

    def counted(nodes: int, share: Fraction) -> Callable[[Graphs], Graphs]:
        check = check_of(nodes, share)

        def count(graphs: Graphs) -> Graphs:
            tested.append(len(graphs))
            return check(graphs)

        return count

    monkeypatch.setattr(small_graphs, "_transitivity_at_most", counted)
    work = set()
    for bits, distance in ((0,) * 10, 0), ((1,) * 10, 4):
        tested.clear()
        assert poorly_clustered(NODES, Fraction(0), 4).distance(graph_of(bits)) == distance
        work.add(sum(tested))
    assert work == {1 + 10 + 45 + 120}
