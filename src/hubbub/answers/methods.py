"""The analyses as methods of a session, embedded or remote; each creates the text of a call.

Tested in tests/analyses/test_registry.py.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypedDict, TypeVar, Unpack

from hubbub.answers.options import Options
from hubbub.core.call import AnalysisCall
from hubbub.core.numbers import Number

R = TypeVar("R", covariant=True)


class AnalysisOptions(TypedDict, total=False):
    """Options of every analysis: its privacy cost and its contribution bounds."""

    epsilon: Number
    delta: Number | None
    groups: int | None
    rows: int | None
    key: str | None


class Analyses(Generic[R]):
    """One method per analysis; `call` runs any of them by name.

    `h.kmeans(…)` runs an analysis and returns a release; `h.estimates.kmeans(…)` returns an estimate for free.
    """

    @abstractmethod
    def _run_call(self, text: str, key: str | None, options: Options) -> R:
        """Run the call of this text."""

    def call(self, name: str, /, arguments: dict[str, object], **options: Unpack[AnalysisOptions]) -> R:
        """Run an analysis by name. Arguments that are None have their default values."""
        given = {argument: value for argument, value in arguments.items() if value is not None}
        query_options: Options = {"epsilon": options.get("epsilon"), "delta": options.get("delta")}
        query_options |= {"groups": options.get("groups"), "rows": options.get("rows")}
        return self._run_call(AnalysisCall(name, given).text(), options.get("key"), query_options)

    def tabulate(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, object]],
        *,
        marginals: Sequence[Sequence[str]] | None = None,
        count: str | None = None,
        where: str | None = None,
        whole: bool | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a contingency table over declared columns, with consistent marginals."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "count": count,
            "where": where,
            "whole": whole,
            "noise": noise,
            "marginals": None if marginals is None else [list(each) for each in marginals],
        }
        return self.call("tabulate", arguments, **options)

    def ranges(
        self,
        table: str,
        column: str | Mapping[str, object],
        *,
        workload: str | None = None,
        strategy: str | None = None,
        count: str | None = None,
        where: str | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a histogram optimized for range queries or, with workload='prefixes', for running totals."""
        arguments: dict[str, object] = {
            "table": table,
            "column": column,
            "workload": workload,
            "strategy": strategy,
            "count": count,
            "where": where,
            "noise": noise,
        }
        return self.call("ranges", arguments, **options)

    def geography(
        self,
        table: str,
        column: str,
        places: Mapping[str, object] | Sequence[int],
        *,
        columns: Sequence[str | Mapping[str, object]] | None = None,
        levels: Sequence[str] | None = None,
        weights: Sequence[Number] | None = None,
        count: str | None = None,
        where: str | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release the counts of a geographic hierarchy: whole, non-negative and consistent at every level."""
        arguments: dict[str, object] = {
            "table": table,
            "column": column,
            "places": places,
            "columns": None if columns is None else list(columns),
            "levels": None if levels is None else list(levels),
            "weights": None if weights is None else list(weights),
            "count": count,
            "where": where,
            "noise": noise,
        }
        return self.call("geography", arguments, **options)

    def synthetic(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, object]],
        *,
        size: int | None = None,
        pairs: int | None = None,
        rounds: int | None = None,
        noise: str | None = None,
        where: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release synthetic rows, sampled from a model of selected and measured pairs of columns."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "size": size,
            "pairs": pairs,
            "rounds": rounds,
            "noise": noise,
            "where": where,
        }
        return self.call("synthetic", arguments, **options)

    def mwem(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, object]],
        *,
        ways: int | None = None,
        rounds: int | None = None,
        size: int | None = None,
        where: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release synthetic rows over a small domain by multiplicative weights (MWEM), with pure DP."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "ways": ways,
            "rounds": rounds,
            "size": size,
            "where": where,
        }
        return self.call("mwem", arguments, **options)

    def small_database(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, object]],
        *,
        size: int | None = None,
        ways: int | None = None,
        total: int | None = None,
        where: str | None = None,
        predicates: Sequence[str] | None = None,
        accuracy: Number | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a small synthetic database that approximates the data on all conjunctions, or on given predicates."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "size": size,
            "ways": ways,
            "total": total,
            "where": where,
            "predicates": None if predicates is None else list(predicates),
            "accuracy": accuracy,
        }
        return self.call("small_database", arguments, **options)

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
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release the number of triangles: among the first `most` edges of each node, or all by local sensitivity."""
        arguments: dict[str, object] = {"table": table, "ends": list(ends), "most": most}
        return self.call("triangle_count", {**arguments, "sensitivity": sensitivity, "bound": bound}, **options)

    def profile(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        max_rows: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a profile of a dataset: rows and groups per unit, values, NULLs, and what bounds leave out."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": None if columns is None else list(columns),
            "max_rows": max_rows,
        }
        return self.call("profile", arguments, **options)

    def choose(
        self,
        candidates: Sequence[object] | str,
        score: str,
        *,
        method: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Choose the candidate with the largest score: SQL for one COUNT or SUM, in which $1 is the candidate."""
        listed = candidates if isinstance(candidates, str) else [_constant(each) for each in candidates]
        return self.call("choose", {"candidates": listed, "score": score, "method": method}, **options)

    def binomial_count(self, table: str, query: str, **options: Unpack[AnalysisOptions]) -> R:
        """Release a COUNT or SUM with binomial noise, whose error is never more than half of the coins."""
        return self.call("binomial_count", {"table": table, "query": query}, **options)

    def above_threshold(
        self,
        table: str,
        name: str,
        threshold: Number,
        *,
        hits: int | None = None,
        questions: int | None = None,
        sensitivity: Number | None = None,
        monotone: bool | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Open a session of questions that `compare` answers by whether they reach a threshold, with one charge."""
        arguments: dict[str, object] = {
            "table": table,
            "name": name,
            "threshold": threshold,
            "hits": hits,
            "questions": questions,
            "sensitivity": sensitivity,
            "monotone": monotone,
        }
        return self.call("above_threshold", arguments, **options)

    def compare(self, table: str, name: str, query: str, *, threshold: Number | None = None) -> R:
        """Answer whether a COUNT or SUM reaches the threshold of a session. Charges nothing more."""
        return self.call("compare", {"table": table, "name": name, "query": query, "threshold": threshold})

    def stream(
        self,
        table: str,
        name: str,
        *,
        kind: str,
        universe: tuple[int, int] | None = None,
        outputs: int | None = None,
        classic: bool | None = None,
        horizon: int | None = None,
        window: int | None = None,
        bins: Sequence[str] | None = None,
        bound: int | None = None,
        method: str | None = None,
        private_state: bool | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Buy a stream over a dataset, with one charge for all its releases; `hubbub stream` starts and feeds it."""
        arguments: dict[str, object] = {
            "table": table,
            "name": name,
            "kind": kind,
            "universe": None if universe is None else list(universe),
            "outputs": outputs,
            "classic": classic,
            "horizon": horizon,
            "window": window,
            "bins": None if bins is None else list(bins),
            "bound": bound,
            "method": method,
            "private_state": private_state,
        }
        return self.call("stream", arguments, **options)

    def kmeans(
        self,
        table: str,
        columns: Sequence[str],
        k: int,
        *,
        rounds: int | None = None,
        method: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release k cluster centers; method='classic' is Lloyd's algorithm, and rounds=None halves ε in each round."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "k": k,
            "rounds": rounds,
            "method": method,
        }
        return self.call("kmeans", arguments, **options)

    def mean_vector(
        self,
        table: str,
        columns: Sequence[str],
        *,
        gamma: Number | None = None,
        norm: str | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release the mean of vectors that are clipped to a norm of at most γ, which moves by 2γ/n."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "gamma": gamma,
            "norm": norm,
            "noise": noise,
        }
        return self.call("mean_vector", arguments, **options)

    def covariance(
        self, table: str, columns: Sequence[str], *, gamma: Number | None = None, **options: Unpack[AnalysisOptions]
    ) -> R:
        """Release the covariance matrix of vectors that are clipped to an L1 norm of at most γ."""
        return self.call("covariance", {"table": table, "columns": list(columns), "gamma": gamma}, **options)

    def moments(self, table: str, columns: Sequence[str], **options: Unpack[AnalysisOptions]) -> R:
        """Release the mean vector and the covariance matrix of some columns."""
        return self.call("moments", {"table": table, "columns": list(columns)}, **options)

    def pca(
        self,
        table: str,
        columns: Sequence[str],
        *,
        components: int | None = None,
        scaled: bool | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release principal components; with scaled=True, in units of the declared ranges of the columns."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "components": components,
            "scaled": scaled,
        }
        return self.call("pca", arguments, **options)

    def linear_regression(
        self, table: str, columns: Sequence[str], target: str, **options: Unpack[AnalysisOptions]
    ) -> R:
        """Release a linear regression of a target on some columns."""
        arguments: dict[str, object] = {"table": table, "columns": list(columns), "target": target}
        return self.call("linear_regression", arguments, **options)

    def logistic_regression(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        positive: object = None,
        rounds: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a logistic regression of a binary target, or of one value against all others."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "positive": positive,
            "rounds": rounds,
        }
        return self.call("logistic_regression", arguments, **options)

    def decision_tree(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        depth: int | None = None,
        bins: int | None = None,
        score: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a decision tree over declared columns; score is 'gini' or 'max'."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "depth": depth,
            "bins": bins,
            "score": score,
        }
        return self.call("decision_tree", arguments, **options)

    def frequent_itemsets(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        *,
        item: str | None = None,
        support: Number | None = None,
        size: int | None = None,
        candidates: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release frequent itemsets; a basket is the columns of a row, or the values of one column of a unit."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": None if columns is None else list(columns),
            "item": item,
            "support": support,
            "size": size,
            "candidates": candidates,
        }
        return self.call("frequent_itemsets", arguments, **options)

    def hyperplane(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        positive: object = None,
        bins: int | None = None,
        slopes: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a hyperplane that separates two classes, selected from a finite grid."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "positive": positive,
            "bins": bins,
            "slopes": slopes,
        }
        return self.call("hyperplane", arguments, **options)

    def perceptron(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        positive: object = None,
        rounds: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a perceptron, learned from noisy sums of misclassified rows."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "positive": positive,
            "rounds": rounds,
        }
        return self.call("perceptron", arguments, **options)


class Estimates(Analyses[R]):
    """The analyses as methods that return estimates: `h.estimates.kmeans(…)`."""

    def __init__(self, estimate: Callable[..., R]) -> None:
        """Use `h.estimates`."""
        self._estimate = estimate

    def _run_call(self, text: str, key: str | None, options: Options) -> R:  # noqa: ARG002 - an estimate has no key
        return self._estimate(text, **options)


def _constant(candidate: object) -> object:
    """Write a candidate with several values as a list."""
    return list(candidate) if isinstance(candidate, tuple) else candidate
