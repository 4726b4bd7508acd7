"""Junction trees: they hold every pair, columns stay connected, and marginals are those of the whole product."""

import math
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from hubbub.analyses.synthetic.junction_tree import JunctionTree, Pair, calibrated, cells, junction_tree


def random_pairs(some: np.random.Generator, columns: int) -> list[Pair]:
    every = list(combinations(range(columns), 2))
    return [every[i] for i in some.permutation(len(every))[: some.integers(0, 2 * columns)]]


@pytest.mark.parametrize("seed", range(40))
def test_every_pair_is_in_a_clique_and_the_cliques_of_a_column_are_connected(seed: int) -> None:
    some = np.random.default_rng(seed)
    sizes = some.integers(2, 30, some.integers(1, 12)).tolist()
    pairs = random_pairs(some, len(sizes))
    tree = junction_tree(sizes, pairs)
    for wanted in [*pairs, *((c,) for c in range(len(sizes)))]:
        assert any({*wanted} <= {*clique} for clique in tree.cliques)
    for one, other in combinations(tree.cliques, 2):
        assert not {*one} <= {*other}
        assert not {*other} <= {*one}
    graph = nx.Graph()
    graph.add_nodes_from(range(len(tree.cliques)))
    graph.add_edges_from(tree.links)
    assert nx.is_forest(graph)
    for column in range(len(sizes)):
        assert nx.is_connected(graph.subgraph(i for i, clique in enumerate(tree.cliques) if column in clique))
    reached = {*range(len(tree.cliques))} - {child for _, child in tree.links}
    for parent, child in tree.links:
        assert parent in reached  # parents come first
        reached.add(child)
    count = sum(math.prod(sizes[c] for c in clique) for clique in tree.cliques)
    assert cells(sizes, pairs) == count
    assert cells(sizes, pairs, count - 1) > count - 1
    assert tree == junction_tree(sizes, reversed(pairs))


def test_a_tree_of_pairs_is_not_filled_in() -> None:
    """A small column in the middle of a chain is cheap to eliminate, but would join its neighbors."""
    chain = [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert junction_tree([1000, 2, 2, 2, 1000], chain).cliques == tuple(chain)


@pytest.mark.parametrize("seed", range(20))
def test_marginals_and_sum_are_those_of_the_product(seed: int) -> None:
    some = np.random.default_rng(seed)
    sizes = some.integers(1, 4, 6).tolist()
    tree = junction_tree(sizes, random_pairs(some, 6))
    factors = [some.random([sizes[c] for c in clique]) * (some.random() * 100) for clique in tree.cliques]
    factors[0] *= some.random(factors[0].shape) > 0.2  # zeros stay zeros
    factors[0].flat[0] = 0.5
    joint = np.ones(sizes)
    for clique, table in zip(tree.cliques, factors, strict=True):
        joint = joint * table.reshape([sizes[c] if c in clique else 1 for c in range(6)])
    tables, log_sum = calibrated(tree, factors)
    assert log_sum == pytest.approx(math.log(joint.sum()), rel=1e-12)
    for clique, table in zip(tree.cliques, tables, strict=True):
        whole = joint.sum(axis=tuple(c for c in range(6) if c not in clique)) / joint.sum()
        assert np.allclose(table, whole, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("links", [(), ((0, 1),)])
def test_a_product_that_underflows_has_no_sum(links: tuple[Pair, ...]) -> None:
    zeros = [np.zeros((2, 2)), np.ones((2, 2))]
    cliques = ((0, 1), (1, 2)) if links else ((0, 1), (2, 3))
    assert calibrated(JunctionTree(cliques, links), zeros)[1] == -math.inf
    assert calibrated(JunctionTree(cliques, links), zeros[::-1])[1] == -math.inf
