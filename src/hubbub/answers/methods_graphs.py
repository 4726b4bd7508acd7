"""The methods of analyses of graphs, and of others with noise by local sensitivity.

Tested in tests/analyses/test_registry.py.
"""

from collections.abc import Sequence
from typing import Unpack

from hubbub.answers.methods_base import AnalysisCalls, AnalysisOptions, R
from hubbub.core.numbers import Number


class GraphMethods(AnalysisCalls[R]):
    """Graphs whose edges are rows, and the median."""

    def min_cut(
        self,
        table: str,
        ends: Sequence[str],
        *,
        weight: str | None = None,
        step: Number | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release the weight of the minimum cut of a graph whose edges are the rows of a table."""
        return self.call("min_cut", {"table": table, "ends": list(ends), "weight": weight, "step": step}, **options)

    def spanning_tree(
        self,
        table: str,
        ends: Sequence[str],
        *,
        weight: str | None = None,
        step: Number | None = None,
        sensitivity: str | None = None,
        bound: Number | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release the weight of the minimum spanning tree; `sensitivity="smooth"` lets the noise follow the data."""
        arguments: dict[str, object] = {"table": table, "ends": list(ends), "weight": weight, "step": step}
        return self.call("spanning_tree", {**arguments, "sensitivity": sensitivity, "bound": bound}, **options)

    def median(
        self,
        table: str,
        column: str,
        *,
        level: Number | None = None,
        step: Number | None = None,
        sensitivity: str | None = None,
        bound: Number | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a median, or the quantile at `level`, with noise by smooth sensitivity or propose-test-release."""
        arguments: dict[str, object] = {"table": table, "column": column, "level": level, "step": step}
        return self.call("median", {**arguments, "sensitivity": sensitivity, "bound": bound}, **options)

    def single_linkage(
        self,
        table: str,
        ends: Sequence[str],
        weight: str,
        clusters: int,
        *,
        step: Number | None = None,
        sensitivity: str | None = None,
        bound: Number | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release how far apart the clusters are that single linkage leaves, with noise by local sensitivity."""
        arguments: dict[str, object] = {"table": table, "ends": list(ends), "weight": weight, "clusters": clusters}
        return self.call(
            "single_linkage", {**arguments, "step": step, "sensitivity": sensitivity, "bound": bound}, **options
        )

    def graph_distance(
        self,
        table: str,
        ends: Sequence[str],
        *,
        property: str,  # noqa: A002
        threshold: Number | None = None,
        most: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release how many edges must be added or removed for a property to hold: "connected", "non_expansive", …"""
        arguments: dict[str, object] = {"table": table, "ends": list(ends), "property": property}
        return self.call("graph_distance", {**arguments, "threshold": threshold, "most": most}, **options)

    def degree_histogram(
        self, table: str, ends: Sequence[str], *, most: int, protects: str = "edge", **options: Unpack[AnalysisOptions]
    ) -> R:
        """Release the degree distribution up to a bound; `protects="node"` protects all edges of a node at once."""
        arguments = {"table": table, "ends": list(ends), "most": most, "protects": protects}
        return self.call("degree_histogram", arguments, **options)

    def triangle_count(
        self,
        table: str,
        ends: Sequence[str],
        *,
        most: int | None = None,
        sensitivity: str | None = None,
        bound: Number | None = None,
        protects: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release the number of triangles, by truncated degrees, by local sensitivity, or with `protects="node"`."""
        arguments: dict[str, object] = {"table": table, "ends": list(ends), "most": most, "protects": protects}
        return self.call("triangle_count", {**arguments, "sensitivity": sensitivity, "bound": bound}, **options)

    def star_count(
        self,
        table: str,
        ends: Sequence[str],
        k: int,
        *,
        most: int | None = None,
        protects: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release the number of k-stars, the ways to choose a node and k of its neighbors; see `triangle_count`."""
        arguments = {"table": table, "ends": list(ends), "k": k, "most": most, "protects": protects}
        return self.call("star_count", arguments, **options)
