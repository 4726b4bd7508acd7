"""Graph statistics, such as CALL min_cut(table => 'links', ends => ['a', 'b']).

The edges are read into this process as a secret (`hubbub.analyses.rows`); exact integers are computed from them, and
only noisy integers are released. The privacy unit is one edge (a row), the rows of a declared unit, or a node with
`protects => 'node'`. Nodes are declared, so they are public.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.graphs.cuts import minimum_cut
from hubbub.analyses.graphs.degrees import at_least, capped_stars, falling, projected, triangles, truncated
from hubbub.analyses.graphs.edges import EdgeTable, Graph, edge_table
from hubbub.analyses.graphs.local_bounds import local_merge, local_tree, local_triangles
from hubbub.analyses.graphs.node_counts import (
    NodeCount,
    check_stars,
    node_count,
    require_rows,
    star_levels,
    triangle_levels,
)
from hubbub.analyses.graphs.properties import PROPERTIES, Property
from hubbub.analyses.graphs.small_graphs import WITH_THRESHOLD
from hubbub.analyses.graphs.trees import tree_weight
from hubbub.analyses.local_sensitivity import ProposedStatistic, SmoothStatistic, local_statistic
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace

LEVEL = Fraction(95, 100)

Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class GraphStatistic(PreparedAnalysis):
    """One or more integers computed from a graph, with Laplace noise; ready to be charged and run.

    Theorem (Numbers of a graph). Integers that a unit moves by at most D in L1, with independent Laplace noise of scale
    D/ε on each, are ε-private.
    Proof    The Laplace mechanism; what follows (clamping, a falling sequence) is a function of the noisy integers.
    Assumes  D by the theorem of each function, for edges or for nodes.
    Charges  Pure(ε).
    Tested   tests/analyses/graphs/test_answers.py::test_an_answer_is_the_exact_integers_with_the_noise_that_was_charged
             tests/analyses/graphs/test_sensitivity.py::test_brute_force_stays_within_what_is_declared
    """

    edges: EdgeTable
    mechanism: Laplace
    compute: Callable[[Graph], Numbers]
    publish: Callable[[Numbers, float], Published]
    half_width: float

    def run(self, run: Run) -> Published:
        """Read the edges, compute, add noise."""
        run.progress(0.0, "reading edges")
        secret = run.ask(self.edges.read.sql)
        noisy: Numbers = secret.through(
            lambda found: self.mechanism.sample(self.compute(self.edges.graph(found)), run.source)
        )
        return self.publish(noisy, self.half_width)


def min_cut(
    setting: Setting, *, table: str, ends: list[str], weight: str | None = None, step: Any = None
) -> GraphStatistic:
    """Prepare the weight of the minimum cut."""
    edges = edge_table(setting, table=table, ends=ends, weight=weight, step=step)
    return _number(
        setting,
        edges,
        "min_cut",
        edges.sensitivity(edges.most, one_way=True),
        minimum_cut,
        edges.step,
        "{whose}; a cut moves by at most the largest weight with one edge",
    )


def spanning_tree(
    setting: Setting,
    *,
    table: str,
    ends: list[str],
    weight: str | None = None,
    step: Any = None,
    sensitivity: Literal["global", "smooth", "propose"] = "global",
    bound: Fraction | None = None,
) -> GraphStatistic | SmoothStatistic | ProposedStatistic:
    """Prepare the weight of the minimum spanning tree; a pair without an edge has the maximum weight.

    More rows may lower the weight (the first row of a pair) or raise it (a heavier row of a pair), so replacing a unit
    changes it by up to twice as much as adding or removing one.
    """
    edges = edge_table(setting, table=table, ends=ends, weight=weight, step=step)
    if sensitivity != "global":
        return local_statistic(setting, local_tree(edges), sensitivity, bound)
    return _number(
        setting,
        edges,
        "tree_weight",
        edges.sensitivity(edges.most, one_way=False),
        lambda graph: tree_weight(graph, edges.most),
        edges.step,
        "{whose}; a tree's weight moves by at most the largest weight with one edge",
    )


def single_linkage(
    setting: Setting,
    *,
    table: str,
    ends: list[str],
    weight: str,
    clusters: int,
    step: Any = None,
    sensitivity: Literal["smooth", "propose"] = "smooth",
    bound: Fraction | None = None,
) -> SmoothStatistic | ProposedStatistic:
    """Prepare how far apart the clusters are that single linkage leaves: the weight of the next merge."""
    edges = edge_table(setting, table=table, ends=ends, weight=weight, step=step)
    parts = numbers.integer(clusters, "clusters", 2, edges.nodes)
    return local_statistic(setting, local_merge(edges, parts), sensitivity, bound)


def graph_distance(
    setting: Setting,
    *,
    table: str,
    ends: list[str],
    property: object,  # noqa: A002
    threshold: Fraction | None = None,
    most: int | None = None,
) -> GraphStatistic:
    """Prepare the number of edges that must be added or removed for a property to hold."""
    edges = edge_table(setting, table=table, ends=ends)
    chosen = _property(edges, property, threshold, most)
    return _number(
        setting,
        edges,
        "distance",
        edges.sensitivity(1, one_way=chosen.one_way),
        chosen.distance,
        Fraction(1),
        f"{{whose}}; a distance moves by at most 1 with one edge (the property: {chosen.means})",
    )


def _property(edges: EdgeTable, name: object, threshold: Fraction | None, most: int | None) -> Property:
    """Find a property by its name; some need a threshold."""
    if isinstance(name, str) and name in WITH_THRESHOLD:
        if threshold is None or not threshold >= 0:
            raise QueryError(
                "HB681", f"{name} needs a threshold of 0 or more.", f"Use property => '{name}', threshold => 0.5."
            )
        return WITH_THRESHOLD[name](edges.nodes, threshold, most)
    if threshold is not None or most is not None:
        known = ", ".join(WITH_THRESHOLD)
        raise QueryError("HB681", f"threshold and most are for these properties: {known}.", "Leave them out.")
    if not isinstance(name, str) or name not in PROPERTIES:
        raise QueryError(
            "HB595",
            f"There is no property called {name!r}.",
            f"Available: {', '.join((*PROPERTIES, *WITH_THRESHOLD))}."
            " In the data owner's process, DistanceFrom accepts any property.",
        )
    return PROPERTIES[name]


def triangle_count(
    setting: Setting,
    *,
    table: str,
    ends: list[str],
    most: int | None = None,
    sensitivity: Literal["global", "smooth", "propose"] = "global",
    bound: Fraction | None = None,
    protects: str = "edge",
) -> GraphStatistic | SmoothStatistic | ProposedStatistic | NodeCount:
    """Prepare the number of triangles: of the first `most` edges of a node, by local sensitivity, or for nodes."""
    edges = edge_table(setting, table=table, ends=ends)
    if _protects_node(protects):
        if most is not None or sensitivity != "global" or bound is not None:
            raise QueryError(
                "HB680",
                "With node privacy, triangle_count chooses itself how many triangles of each node count.",
                "Leave out most, sensitivity and bound.",
            )
        if edges.nodes < 3:
            raise QueryError("HB680", "Two nodes have no triangle.", "Declare at least 3 nodes.")
        return node_count(setting, edges, "triangles", triangle_levels(edges.nodes))
    if (most is None) == (sensitivity == "global"):
        raise QueryError(
            "HB680",
            "triangle_count needs most, or sensitivity => 'smooth' or 'propose', and not both.",
            "Pass most => 50 to truncate degrees, or sensitivity => 'smooth' to count all triangles.",
        )
    if sensitivity != "global":
        return local_statistic(setting, local_triangles(edges), sensitivity, bound)
    degree = numbers.integer(most, "most", 2, edges.nodes)
    salt = setting.render_options.salt
    return _number(
        setting,
        edges,
        "triangles",
        edges.sensitivity(2 * (degree - 1), one_way=False),
        lambda graph: triangles(truncated(graph, degree, salt)),
        Fraction(1),
        f"{{whose}}; with degrees of at most {degree}, one edge puts in {degree - 1} triangles or takes out twice that",
    )


def star_count(
    setting: Setting, *, table: str, ends: list[str], k: int, most: int | None = None, protects: str = "edge"
) -> GraphStatistic | NodeCount:
    """Prepare the number of k-stars: the ways to choose a node and k of its neighbors."""
    edges = edge_table(setting, table=table, ends=ends)
    leaves = numbers.integer(k, "k", 2, edges.nodes - 1)
    if _protects_node(protects):
        degree = edges.nodes - 1 if most is None else numbers.integer(most, "most", leaves, edges.nodes - 1)
        levels = star_levels(edges.nodes, leaves, degree, setting.render_options.salt)
        return node_count(setting, edges, "stars", levels)
    if most is None:
        raise QueryError(
            "HB680",
            "star_count needs most, the largest number of edges of one node that counts.",
            "Pass most => 50, or protects => 'node', which chooses it privately.",
        )
    degree = numbers.integer(most, "most", leaves, edges.nodes - 1)
    check_stars(edges.nodes, leaves, degree)
    return _number(
        setting,
        edges,
        "stars",
        edges.sensitivity(2 * comb(degree - 1, leaves - 1), one_way=True),
        lambda graph: capped_stars(graph, leaves, degree),
        Fraction(1),
        f"{{whose}}; with {degree} edges of each node, one puts in {comb(degree - 1, leaves - 1)} stars at each end",
    )


def _protects_node(protects: str) -> bool:
    if protects not in ("edge", "node"):
        raise QueryError("HB595", f"protects cannot be {protects!r}.", "Use 'edge' or 'node'.")
    return protects == "node"


def degree_histogram(
    setting: Setting, *, table: str, ends: list[str], most: int, protects: str = "edge"
) -> GraphStatistic:
    """Prepare the number of nodes of each degree, up to `most`, with edge or node privacy."""
    edges = edge_table(setting, table=table, ends=ends)
    bound = numbers.integer(most, "most", 1, min(10_000, edges.nodes))
    salt = setting.render_options.salt
    if not _protects_node(protects):
        moved, why = edges.sensitivity(2, one_way=bound == 1), "{whose}; one edge moves two nodes by one degree each"

        def compute(graph: Graph) -> Numbers:
            return at_least(graph, bound)
    else:
        require_rows(edges)
        moved = 2 * bound
        why = f"one node with all its edges; {bound} edges of each node are kept, in an order that a salt fixes"

        def compute(graph: Graph) -> Numbers:
            return at_least(projected(graph, bound, salt), bound)

    def publish(noisy: Numbers, half: float) -> Published:
        return _histogram(noisy, half, edges.nodes)

    return _statistic(setting, edges, "at_least", moved, compute, publish, Fraction(1), why)


def _number(
    setting: Setting, edges: EdgeTable, name: str, moved: int, compute: Callable[[Graph], int], step: Fraction, why: str
) -> GraphStatistic:
    def vector(graph: Graph) -> Numbers:
        return np.array([compute(graph)], dtype=np.int64)

    def publish(noisy: Numbers, half: float) -> Published:
        value = int(noisy[0]) * step
        kind = "integer" if step == 1 else "real"
        cell = max(int(noisy[0]), 0) if step == 1 else max(float(value), 0.0)
        return Published((Output(name, kind, [cell], [float(value) - half], [float(value) + half]),))

    return _statistic(setting, edges, name, moved, vector, publish, step, why)


def _statistic(
    setting: Setting,
    edges: EdgeTable,
    name: str,
    sensitivity: int,
    compute: Callable[[Graph], Numbers],
    publish: Callable[[Numbers, float], Published],
    step: Fraction,
    why: str,
) -> GraphStatistic:
    mechanism = Laplace.from_epsilon(sensitivity=sensitivity, epsilon=setting.epsilon)
    half_width = float(mechanism.error(LEVEL) * step)
    whose = "one row, an edge" if edges.by_row else f"up to {edges.rows} edges of one unit"
    weights = "" if edges.weight is None else f", weights in steps of {numbers.brief(edges.step)}"
    return GraphStatistic(
        protection=edges.protection,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(((mechanism.event, 1),)),
        noise="laplace",
        derivation=(
            f"{edges.nodes} nodes are declared and public{weights}; rows are read into the curator's memory",
            f"protected: {why.format(whose=whose)}",
            f"neighbors are up to {mechanism.sensitivity} steps apart in L1 ({edges.table.relation.value})",
            f"Laplace noise of scale {numbers.brief(mechanism.scale)} steps costs ε = {setting.epsilon}",
        ),
        expected=(Expected(name, half_width, None, 0.0),),
        edges=edges,
        mechanism=mechanism,
        compute=compute,
        publish=publish,
        half_width=half_width,
    )


def _histogram(noisy: Numbers, half: float, nodes: int) -> Published:
    """Give the counts of degrees from 0 to the bound, whose count includes larger degrees."""
    fitted = np.rint(np.clip(falling(noisy), 0, nodes)).astype(np.int64)
    counts = np.r_[nodes, fitted, 0]
    low, high = (np.r_[nodes, np.clip(noisy + end, 0, nodes)] for end in (-half, half))
    return Published(
        (
            Output("degree", "integer", list(range(len(noisy) + 1))),
            Output("nodes", "integer", (counts[:-1] - counts[1:]).tolist()),
            Output("at_least", "integer", counts[:-1].tolist(), low.tolist(), high.tolist()),
        )
    )
