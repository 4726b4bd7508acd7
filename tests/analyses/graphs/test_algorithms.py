"""Exact algorithms against those of an independent library, and on graphs with known figures."""

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from hubbub.analyses.graphs.cuts import minimum_cut
from hubbub.analyses.graphs.degrees import at_least, falling, triangles
from hubbub.analyses.graphs.edges import Graph, graph
from hubbub.analyses.graphs.trees import forest, tree_weight

Made = Callable[..., tuple[Graph, "nx.Graph[int]"]]


@pytest.fixture
def random_graph() -> Made:
    def make(seed: int, *, nodes: int, rows: int, heaviest: int) -> "tuple[Graph, nx.Graph[int]]":
        random = np.random.default_rng(seed)
        a, b = random.integers(0, nodes, rows), random.integers(0, nodes, rows)
        made = graph(nodes, a, b, random.integers(1, heaviest + 1, rows))
        other: nx.Graph[int] = nx.Graph()
        other.add_nodes_from(range(nodes))
        other.add_weighted_edges_from(zip(made.a.tolist(), made.b.tolist(), made.weight.tolist(), strict=True))
        return made, other

    return make


@pytest.fixture
def karate() -> Graph:
    edges = np.array(nx.karate_club_graph().edges())
    return graph(34, edges[:, 0], edges[:, 1], np.ones(len(edges), dtype=np.int64))


@pytest.mark.row(51)
def test_minimum_cut_of_the_karate_club_is_one(karate: Graph) -> None:
    assert (karate.nodes, karate.size) == (34, 78)
    assert minimum_cut(karate) == 1


@pytest.mark.row(52)
def test_spanning_tree_of_the_karate_club_weighs_33(karate: Graph) -> None:
    assert tree_weight(karate, 1) == 33


def test_triangles_of_the_karate_club_are_45(karate: Graph) -> None:
    assert triangles(karate) == 45


@pytest.mark.parametrize(("nodes", "rows", "heaviest"), [(2, 3, 5), (6, 9, 1), (9, 30, 4), (40, 120, 1000)])
def test_minimum_cut_is_that_of_stoer_and_wagner(random_graph: Made, nodes: int, rows: int, heaviest: int) -> None:
    connected = 0
    for seed in range(25):
        made, other = random_graph(seed, nodes=nodes, rows=rows, heaviest=heaviest)
        joined = nx.is_connected(other)
        connected += joined
        assert minimum_cut(made) == (nx.stoer_wagner(other)[0] if joined else 0)
    assert connected > 0


def test_minimum_cut_between_clusters_is_that_of_stoer_and_wagner() -> None:
    """Two clusters and some nodes between, so that no node's own edges are the cut; a contraction too many shows."""
    random = np.random.default_rng(3)
    for _ in range(60):
        size = int(random.integers(3, 6))
        nodes = 2 * size + int(random.integers(0, 3))
        inside = [(i + base, j + base) for base in (0, size) for i in range(size) for j in range(i)]
        pairs = [pair for pair in inside if random.random() < 0.95]
        pairs += [
            (int(random.integers(0, size)), int(random.integers(size, 2 * size)))
            for _ in range(int(random.integers(1, size + 1)))
        ]
        pairs += [(node, int(random.integers(0, 2 * size))) for node in range(2 * size, nodes) for _ in range(size)]
        ends = random.permutation(nodes)[np.array(pairs)]
        made = graph(nodes, ends[:, 0], ends[:, 1], random.integers(1, 3, len(ends)))
        other: nx.Graph[int] = nx.Graph()
        other.add_nodes_from(range(nodes))
        other.add_weighted_edges_from(zip(made.a.tolist(), made.b.tolist(), made.weight.tolist(), strict=True))
        assert minimum_cut(made) == (nx.stoer_wagner(other)[0] if nx.is_connected(other) else 0)


def test_minimum_cut_between_two_cliques_is_the_bridge() -> None:
    clique = [(i, j) for i in range(12) for j in range(i)]
    edges = np.array(clique + [(i + 12, j + 12) for i, j in clique] + [(0, 12), (1, 13)])
    weight = np.full(len(edges), 7)
    weight[-2:] = 3
    assert minimum_cut(graph(24, edges[:, 0], edges[:, 1], weight)) == 6


@pytest.mark.parametrize("rows", [0, 5, 20, 60])
def test_spanning_tree_and_parts_are_those_of_networkx(random_graph: Made, rows: int) -> None:
    for seed in range(25):
        made, other = random_graph(seed, nodes=15, rows=rows, heaviest=6)
        lightest = sum(facts["weight"] for *_, facts in nx.minimum_spanning_edges(other, data=True))
        parts = nx.number_connected_components(other)
        assert forest(made) == (lightest, parts)
        whole: nx.Graph[int] = nx.complete_graph(15)
        nx.set_edge_attributes(whole, 6, "weight")
        whole.add_weighted_edges_from(other.edges(data="weight"))
        assert tree_weight(made, 6) == nx.minimum_spanning_tree(whole).size(weight="weight")


@pytest.mark.parametrize("rows", [0, 10, 80])
def test_triangles_are_those_of_networkx(random_graph: Made, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(25):
        made, other = random_graph(seed, nodes=14, rows=rows, heaviest=1)
        expected = sum(nx.triangles(other).values()) // 3
        assert triangles(made) == expected
        monkeypatch.setattr("hubbub.analyses.graphs.degrees._AT_ONCE", 3)
        assert triangles(made) == expected, "in parts too"
        monkeypatch.undo()


def test_numbers_of_nodes_by_degree_are_those_of_the_histogram(karate: Graph) -> None:
    degrees = karate.degrees()
    assert at_least(karate, 20).tolist() == [int((degrees >= k).sum()) for k in range(1, 21)]


def test_a_falling_sequence_is_the_nearest_one() -> None:
    """By the mean of minima of maxima, the textbook formula of isotonic regression."""
    noisy = np.random.default_rng(3).integers(0, 30, 12)
    found = falling(noisy)
    for k in range(12):
        means = [[noisy[i : j + 1].mean() for j in range(k, 12)] for i in range(k + 1)]
        assert found[k] == pytest.approx(min(max(row) for row in means))


def test_a_pair_has_the_largest_weight_of_its_rows_and_no_loop_counts() -> None:
    made = graph(4, np.array([1, 0, 0, 2]), np.array([0, 1, 1, 2]), np.array([2, 9, 4, 1]))
    assert (made.a.tolist(), made.b.tolist(), made.weight.tolist()) == ([0], [1], [9])
