"""Triangles truncated for node privacy: all small graphs, an independent minimum, and what goes wrong without proof."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from hubbub.analyses.graphs import node_truncation
from hubbub.analyses.graphs.edges import Graph, graph
from hubbub.analyses.graphs.node_truncation import Triangles, below, evaluate, truncated_triangles

BOUNDS = (1, 2, 3, 5, 10)
UNIT = 1 << 28

Pairs = frozenset[tuple[int, int]]
Numbers = Callable[[Pairs], list[int]]


def made(nodes: int, pairs: Pairs) -> Graph:
    ends = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return graph(nodes, ends[:, 0], ends[:, 1], np.ones(len(ends), dtype=np.int64))


def small_graphs(most: int) -> Iterator[tuple[int, Pairs]]:
    """All graphs with a triangle of up to five nodes, one of each shape, and every fourth of six."""
    for number, each in enumerate(nx.graph_atlas_g()):
        if each.number_of_nodes() == 6 and number % 4:
            continue
        if each.number_of_nodes() <= most and any(nx.triangles(each).values()):
            yield each.number_of_nodes(), frozenset((min(a, b), max(a, b)) for a, b in each.edges())


def moves(numbers: Callable[[int, Pairs], list[int]], most: int = 6) -> tuple[list[int], list[int]]:
    """Return by how much a node or an edge that comes raises and lowers the number at each bound, at most."""
    rises, falls = [0] * len(BOUNDS), [0] * len(BOUNDS)
    for nodes, pairs in small_graphs(most):
        here = numbers(nodes, pairs)
        without = [frozenset(pair for pair in pairs if node not in pair) for node in range(nodes)]
        for less in (*without, *(pairs - {pair} for pair in pairs)):
            for place, (one, other) in enumerate(zip(here, numbers(nodes, less), strict=True)):
                rises[place] = max(rises[place], one - other)
                falls[place] = max(falls[place], other - one)
    return rises, falls


@cache
def truncated(nodes: int, pairs: Pairs) -> list[int]:
    return truncated_triangles(made(nodes, pairs), BOUNDS)


def test_a_node_or_an_edge_moves_the_number_by_at_most_the_bound() -> None:
    rises, falls = moves(truncated)
    assert all(rise <= bound for rise, bound in zip(rises, BOUNDS, strict=True))
    assert all(fall <= below(bound) for fall, bound in zip(falls, BOUNDS, strict=True))
    # the rest covers how far the computed minimum may be from the true one
    assert rises == [1, 2, 2, 4, 7]


def test_without_a_proof_of_nearness_a_node_moves_the_number_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: the first value is taken for the minimum, which is then the number of all triangles."""

    def near(triangles: Triangles, bound: int, y: NDArray[np.int64]) -> tuple[Fraction, Fraction]:
        return evaluate(triangles, bound, y)[0], Fraction(0)

    monkeypatch.setattr(node_truncation, "evaluate", near)
    rises, _ = moves(lambda nodes, pairs: truncated_triangles(made(nodes, pairs), BOUNDS), most=5)
    assert rises[0] > 1
    assert rises[1] > 2


def test_one_triangle_after_another_is_not_enough_for_three_owners() -> None:
    """What works for rows with two owners (keep a row if all its owners have room) fails here: the chain branches.

    Node 0 has one triangle. Taking it out lets in one at each of its two other nodes; each of these keeps out two.
    """
    order = [(0, 1, 2), (1, 3, 4), (2, 5, 6), (3, 7, 8), (4, 9, 10), (5, 11, 12), (6, 13, 14)]

    def kept(triangles: list[tuple[int, int, int]]) -> int:
        used: set[int] = set()
        for each in triangles:
            if used.isdisjoint(each):
                used.update(each)
        return len(used) // 3

    assert kept(order) == 5
    assert kept([each for each in order if 0 not in each]) == 2, "by three, with a bound of one"
    pairs = frozenset(pair for each in order for pair in combinations(each, 2))
    less = frozenset(pair for pair in pairs if 0 not in pair)
    whole, rest = (truncated_triangles(made(15, each), [1])[0] for each in (pairs, less))
    assert -1 <= whole - rest <= 1


def cost(triangles: NDArray[np.int64], bound: int, y: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """The cost that is to be minimized, and its gradient, written anew."""
    left = np.maximum(0, 1 - y[triangles].sum(axis=1))
    tau = bound * 15 / 16
    of_triangles = np.where(left < 1 / 8, 64 / 15 * left**2, (16 * left - 1) / 15)
    slope = np.where(left < 1 / 8, 128 / 15 * left, 16 / 15)
    gradient = tau * (7 + 2 * y) / 8
    np.subtract.at(gradient, triangles.ravel(), np.repeat(slope, 3))
    return float(of_triangles.sum() + (tau * (7 * y + y**2) / 8).sum()), gradient


def least_cost(triangles: NDArray[np.int64], bound: int) -> float:
    box = [(0, 1)] * 14
    return min(
        float(minimize(lambda y: cost(triangles, bound, y), start, jac=True, bounds=box, method="L-BFGS-B").fun)
        for start in (np.zeros(14), np.full(14, 0.3))
    )


def random_graph(seed: int, nodes: int = 14, edges: int = 60) -> tuple[Graph, NDArray[np.int64]]:
    """A graph whose nodes are numbered by degree already, and its triangles by networkx."""
    whole = nx.gnm_random_graph(nodes, edges, seed=seed)
    order = {node: place for place, (node, _) in enumerate(sorted(whole.degree(), key=lambda each: each[1]))}
    pairs = frozenset(tuple(sorted((order[a], order[b]))) for a, b in whole.edges())
    listed = [each for each in nx.enumerate_all_cliques(nx.Graph(list(pairs))) if len(each) == 3]
    return made(nodes, pairs), np.array(listed)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(2))
def test_the_minimum_is_that_of_a_general_solver(seed: int) -> None:
    whole, listed = random_graph(seed)
    bounds = (1, 5, 20, 60)
    for bound, number in zip(bounds, truncated_triangles(whole, bounds), strict=True):
        least = least_cost(listed, bound)
        linear = -float(
            linprog(
                -np.ones(len(listed)),
                A_ub=np.array([[node in each for each in listed] for node in range(14)], dtype=float),
                b_ub=np.full(14, bound * 15 / 16),
                bounds=(0, 1),
            ).fun
            or 0
        )
        assert least - 1 - 1e-3 <= number <= least + bound / 16 + 1e-3
        # smooth costs are below the linear ones, and not far
        assert number <= linear + bound / 16 + 1e-6
        assert number >= 0.8 * linear - 1


def test_the_excess_bounds_the_distance_from_the_minimum() -> None:
    random = np.random.default_rng(5)
    whole, listed = random_graph(7)
    triangles = Triangles(whole)
    for bound in (1, 4, 30):
        least = least_cost(listed, bound)
        for _ in range(20):
            y = random.integers(0, UNIT + 1, 14) * random.integers(0, 2, 14)
            value, excess = evaluate(triangles, bound, y)
            # within rounding errors of the formula in doubles
            assert float(value) == pytest.approx(cost(listed, bound, y / UNIT)[0], rel=1e-12)
            assert float(value - excess) <= least + 1e-9


def test_few_triangles_of_every_node_are_all_counted() -> None:
    ends = np.array([pair for i in range(0, 30, 3) for pair in combinations(range(i, i + 3), 2)])
    apart = graph(30, ends[:, 0], ends[:, 1], np.ones(len(ends), dtype=np.int64))
    assert truncated_triangles(apart, [2, 435]) == [10, 10]
    assert truncated_triangles(apart, [1])[0] in range(8, 11)
    assert truncated_triangles(graph(30, ends[:0, 0], ends[:0, 1], ends[:0, 0]), [1, 7]) == [0, 0]


def test_the_order_of_the_nodes_hardly_matters_and_that_of_the_bounds_does_not() -> None:
    pairs = frozenset({(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3), (3, 4), (2, 4)})
    for order in list(permutations(range(5)))[::20]:
        renamed = frozenset((min(order[a], order[b]), max(order[a], order[b])) for a, b in pairs)
        assert truncated_triangles(made(5, renamed), [3, 1])[0] in (2, 3)
    assert truncated_triangles(made(5, pairs), [3, 1]) == truncated_triangles(made(5, pairs), [1, 3])[::-1]


def test_triangles_that_do_not_fit_into_memory_are_listed_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = random_graph(3)
    expected = truncated_triangles(whole, BOUNDS)
    monkeypatch.setattr(node_truncation, "_STORED", 10)
    monkeypatch.setattr(node_truncation, "_AT_ONCE", 7)
    assert Triangles(whole)._stored is None
    assert truncated_triangles(whole, BOUNDS) == expected


@pytest.mark.parametrize("nodes", [40, 90])
def test_steps_suffice_for_a_complete_graph_and_for_a_book(nodes: int) -> None:
    """All nodes alike, or two nodes in all triangles; a step too few would raise an error."""
    complete = frozenset(combinations(range(nodes), 2))
    book = frozenset(pair for pair in complete if pair[0] in (0, 1))
    # each of n nodes adds at most τ, and a third of that is a triangle
    assert truncated_triangles(made(nodes, complete), [16])[0] <= 15 * nodes / 3 + 1
    assert truncated_triangles(made(nodes, book), [16])[0] <= 16
