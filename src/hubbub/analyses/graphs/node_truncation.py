"""The number of triangles, truncated so that one node with all its edges moves it by at most a bound.

A node x that is given the value y = 1 is as good as taken out, at a price of τ. So the least cost over all values
y in [0, 1] of the nodes, where a triangle costs 1 if all its nodes have y = 0 and nothing from Σ y = 1 on, is moved by
τ at most. (With linear costs it is the dual of the linear program of Kasiviswanathan, Nissim, Raskhodnikova and Smith
2013.) Here the costs are smooth, so that the minimum is found quickly: and how near it is, is computed in integers.

Tested in tests/analyses/graphs/test_node_truncation.py.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.graphs.degrees import listed_triangles
from hubbub.analyses.graphs.edges import Graph
from hubbub.errors import RunError

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]

#: The share of a bound that covers how far the computed minimum is above the true one: γ = Δ/16, τ = 15·Δ/16.
_SHARE = 16
#: In integers y is a whole number of this fraction.
_UNIT = 1 << 28
#: Triangles that are kept in memory; of more than these the list is made anew in every step.
_STORED = 1 << 24
_AT_ONCE = 1 << 20
#: Steps between two looks at how near the minimum is.
_LOOK = 10


def below(bound: int) -> int:
    """Return by how much the truncated number can fall where a node comes: what the computed minimum is not exact by.

    >>> below(1), below(16), below(17)
    (1, 1, 2)
    """
    return -(-bound // _SHARE)


class Triangles:
    """The triangles of a graph in parts, three rows of node numbers each."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes
        self.count = 0
        self.each: Numbers = np.zeros(graph.nodes, dtype=np.int64)  #: how many triangles each node is in
        self._graph = graph
        self._stored: list[NDArray[np.int32]] | None = []
        for part in listed_triangles(graph):
            self.count += part.shape[1]
            self.each += np.bincount(part.ravel(), minlength=graph.nodes)
            if self._stored is not None:
                self._stored.append(part.astype(np.int32))
            if self.count > _STORED:
                self._stored = None

    def parts(self) -> Iterator[NDArray[Any]]:
        """Go through all triangles, in the same order each time."""
        for part in listed_triangles(self._graph) if self._stored is None else self._stored:
            for start in range(0, part.shape[1], _AT_ONCE):
                yield part[:, start : start + _AT_ONCE]

    def slopes(self, y: Reals) -> Reals:
        """Return how fast the costs of the triangles of each node fall in its value."""
        falling = np.zeros(self.nodes)
        for part in self.parts():
            left = 1 - (y[part[0]] + y[part[1]] + y[part[2]])
            weights = np.clip(8 * left, 0, 1) * (16 / 15)
            for row in part:
                falling += np.bincount(row, weights, self.nodes)
        return falling


def truncated_triangles(graph: Graph, bounds: Sequence[int]) -> list[int]:
    """Return the number of triangles, truncated at each of some bounds, and never more than there are.

    Theorem (Triangles under node privacy). For a bound Δ let T be this number. Where a node comes with any edges, or
    one edge comes, T rises by no more than Δ and falls by no more than ⌈Δ/16⌉.
    Proof    Let τ = 15Δ/16, γ = Δ/16, and f(G) the least F(y) = Σ_p φ(y_a + y_b + y_c) + Σ_v ψ(y_v) over y ∈ [0, 1]^V,
             p = {a, b, c} over all triangles, where φ falls from φ(0) = 1 to φ(s) = 0 for s ≥ 1, and ψ rises from
             ψ(0) = 0 to ψ(1) = τ. Take out a node x: the best y for G, without y_x, costs no more than before, so
             f(G − x) ≤ f(G). The best y for G − x, with y_x = 1, costs τ more in G, since all triangles of x cost
             nothing: f(G) ≤ f(G − x) + τ. For an edge at x, f(G − x) ≤ f(G − e) ≤ f(G), as more triangles cost more.
             `_minimum` returns F(y) for some y, exactly, and f ≤ F(y) ≤ f + γ; f(G) is at most F(0), the number of all
             triangles, so the lesser of the two is as near. Two of these differ by at least −γ and at most τ + γ = Δ;
             rounded down, by at least −⌈γ⌉ and at most Δ.
    Assumes  nodes are public: a node that is taken out keeps its number.
    Tested   tests/analyses/graphs/test_node_truncation.py::test_a_node_or_an_edge_moves_the_number_by_at_most_the_bound
             tests/analyses/graphs/test_node_truncation.py::test_the_minimum_is_that_of_a_general_solver
    """
    triangles = Triangles(graph)
    start, found = np.zeros(graph.nodes), {}
    # from the largest bound down: each minimum is near the one before
    for bound in sorted(set(bounds), reverse=True):
        value, start = _minimum(triangles, bound, start)
        found[bound] = floor(min(value, Fraction(triangles.count)))
    return [found[bound] for bound in bounds]


def _minimum(triangles: Triangles, bound: int, y: Reals) -> tuple[Fraction, Reals]:
    """Return F(y), at most γ above the minimum, and y.

    ψ(y) = τ(7y + y²)/8 has curvature μ = τ/4. φ(s) is, with r = 1 − s, (16r − 1)/15 for r ≥ 1/8 and 64r²/15 below, so
    its curvature is at most 128/15, and that of F along u at most Σ L_v·u_v², L_v = 3·t_v·128/15 + μ, for a node in t_v
    triangles: (u_a + u_b + u_c)² ≤ 3(u_a² + u_b² + u_c²). Nesterov's method with steps 1/L_v, κ = max L_v/μ, brings
    F(y) − f down to 2·F(0)·(1 − 1/√κ)^k in k steps, from any y with F(y) ≤ F(0). `_excess` is at most κ times F(y) − f:
    L_v/μ times what a step by −g_v/L_v, or to the end of [0, 1], gains. So √κ·log(2κF(0)/γ) steps suffice. Rounding
    decides nothing but when this ends: the value and its excess are computed in integers. Sums are made in one order
    and by operations that every processor rounds alike, so a repeated run gives the same.
    """
    tau = float(bound * Fraction(_SHARE - 1, _SHARE))
    steps = triangles.each * (3 * 128 / 15) + tau / 4
    root = sqrt(float(steps.max()) / (tau / 4))
    most = ceil(root * log(4 * root * root * max(triangles.count, 1) * _SHARE / bound + 2))
    momentum = (root - 1) / (root + 1)
    ahead = y
    for step in range(2 * most + _LOOK + 1):
        if step % _LOOK == 0:
            whole = np.rint(np.clip(ahead, 0, 1) * _UNIT).astype(np.int64)
            value, excess = evaluate(triangles, bound, whole)
            if excess <= Fraction(bound, _SHARE):
                return value, whole / _UNIT
        slope = tau * (7 + 2 * ahead) / 8 - triangles.slopes(ahead)
        before, y = y, np.clip(ahead - slope / steps, 0, 1)
        ahead = y + momentum * (y - before)
    raise RunError  # not reached: twice the steps that suffice


def evaluate(triangles: Triangles, bound: int, y: Numbers) -> tuple[Fraction, Fraction]:
    """Return F(y), and a bound on how far that is above the minimum, both exactly; y in units of 2⁻²⁸.

    Theorem (Distance from the minimum). F(y) − f ≤ Σ_v min(g_v²/2μ, g_v·y_v if g_v > 0, −g_v·(1 − y_v) if g_v < 0), for
    the gradient g of F at y.
    Proof    F − μ/2·|y|² is convex, so F(y + d) ≥ F(y) + Σ_v (g_v·d_v + μ/2·d_v²). Each term is at least −g_v²/2μ; and
             at least g_v·d_v, where −y_v ≤ d_v ≤ 1 − y_v.
    Tested   tests/analyses/graphs/test_node_truncation.py::test_the_excess_bounds_the_distance_from_the_minimum
    """
    cost, falling = 0, np.zeros(triangles.nodes, dtype=np.int64)
    for part in triangles.parts():
        left = np.maximum(_UNIT - (y[part[0]] + y[part[1]] + y[part[2]]), 0)
        # 15·φ in units of 2⁻⁵⁶, which is at most 15·2⁵⁶
        cost += _total(np.where(8 * left <= _UNIT, 64 * left * left, (16 * left - _UNIT) * _UNIT))
        weights = np.minimum(8 * left, _UNIT)
        for row in part:
            np.add.at(falling, row, weights)
    value = Fraction(cost, 15 * _UNIT**2) + Fraction(15 * bound * _total(7 * y * _UNIT + y * y), 8 * _SHARE * _UNIT**2)
    # nodes that stay at y = 0, where the gradient is not negative, add nothing
    flat = 15 * 15 * bound * 7 * _UNIT // 2048
    active = (y > 0) | (falling > min(flat, (1 << 63) - 1))
    at, fall = y[active].astype(object), falling[active].astype(object)
    # g in units of 1/(1920·2²⁸): ψ′ = 15Δ/16·(7 + 2y)/8, and the triangles' 16/15
    gradient = 225 * bound * (7 * _UNIT + 2 * at) - 2048 * fall
    unit = 1920 * _UNIT
    curved = 32 * gradient * gradient
    linear = np.where(gradient > 0, gradient * at, -gradient * (_UNIT - at)) * (1920 * 15 * bound)
    return value, Fraction(int(np.minimum(curved, linear).sum()), unit * unit * 15 * bound)


def _total(values: Numbers) -> int:
    """Add up integers from 0 to 2⁶³ however many there are."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
