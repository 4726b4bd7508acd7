"""The analyses as methods, the same for a curator in this process and for a server: each writes the text of a call."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypedDict, TypeVar, Unpack

from hubbub.answers.options import Options
from hubbub.core.call import AnalysisCall
from hubbub.core.numbers import Number

R = TypeVar("R", covariant=True)


class Price(TypedDict, total=False):
    """What may be said about every analysis: what to spend, and what one unit may contribute at most."""

    epsilon: Number
    delta: Number | None
    groups: int | None
    rows: int | None
    key: str | None


class Analyses(Generic[R]):
    """Methods that ask for an analysis; `call` asks for any of them by name.

    Where a method is called decides what it gives: a release (`h.kmeans(…)`), or what that would cost
    (`h.estimates.kmeans(…)`, free).
    """

    @abstractmethod
    def _called(self, text: str, key: str | None, options: Options) -> R:
        """Ask for what the text says."""

    def call(self, name: str, /, arguments: dict[str, object], **price: Unpack[Price]) -> R:
        """Ask for an analysis by its name. Arguments that are None are left to their defaults."""
        given = {argument: value for argument, value in arguments.items() if value is not None}
        options: Options = {"epsilon": price.get("epsilon"), "delta": price.get("delta")}
        options |= {"groups": price.get("groups"), "rows": price.get("rows")}
        return self._called(AnalysisCall(name, given).text(), price.get("key"), options)

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
        **price: Unpack[Price],
    ) -> R:
        """Ask for a contingency table over declared columns, with marginals that agree with each other."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "count": count,
            "where": where,
            "whole": whole,
            "noise": noise,
            "marginals": None if marginals is None else [list(each) for each in marginals],
        }
        return self.call("tabulate", arguments, **price)

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
        **price: Unpack[Price],
    ) -> R:
        """Ask for a histogram from which all ranges, or with workload='prefixes' all running totals, are told well."""
        arguments: dict[str, object] = {
            "table": table,
            "column": column,
            "workload": workload,
            "strategy": strategy,
            "count": count,
            "where": where,
            "noise": noise,
        }
        return self.call("ranges", arguments, **price)

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
        **price: Unpack[Price],
    ) -> R:
        """Ask for the counts of places inside places: whole, not negative, and adding up at every level."""
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
        return self.call("geography", arguments, **price)

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
        **price: Unpack[Price],
    ) -> R:
        """Ask for synthetic rows: pairs of columns are selected and measured, rows drawn from what was measured."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "size": size,
            "pairs": pairs,
            "rounds": rounds,
            "noise": noise,
            "where": where,
        }
        return self.call("synthetic", arguments, **price)

    def mwem(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, object]],
        *,
        ways: int | None = None,
        rounds: int | None = None,
        size: int | None = None,
        where: str | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for synthetic rows over few cells by multiplicative weights, with a pure ε."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "ways": ways,
            "rounds": rounds,
            "size": size,
            "where": where,
        }
        return self.call("mwem", arguments, **price)

    def small_database(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, object]],
        *,
        size: int | None = None,
        ways: int | None = None,
        total: int | None = None,
        where: str | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for a database of a few rows that answers all conjunctions nearly as the data does."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "size": size,
            "ways": ways,
            "total": total,
            "where": where,
        }
        return self.call("small_database", arguments, **price)

    def min_cut(
        self,
        table: str,
        ends: Sequence[str],
        *,
        weight: str | None = None,
        step: Number | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for the weight of the lightest cut of a graph whose edges are the rows of a table."""
        return self.call("min_cut", {"table": table, "ends": list(ends), "weight": weight, "step": step}, **price)

    def spanning_tree(
        self,
        table: str,
        ends: Sequence[str],
        *,
        weight: str | None = None,
        step: Number | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for the weight of the lightest spanning tree."""
        return self.call("spanning_tree", {"table": table, "ends": list(ends), "weight": weight, "step": step}, **price)

    def graph_distance(self, table: str, ends: Sequence[str], *, property: str, **price: Unpack[Price]) -> R:  # noqa: A002
        """Ask how many edges would have to come or go for a property to hold: "connected", "acyclic", "tree", …"""
        return self.call("graph_distance", {"table": table, "ends": list(ends), "property": property}, **price)

    def degree_histogram(
        self, table: str, ends: Sequence[str], *, most: int, protects: str = "edge", **price: Unpack[Price]
    ) -> R:
        """Ask how many nodes have which degree, up to a bound; `protects="node"` hides all edges of a node at once."""
        arguments = {"table": table, "ends": list(ends), "most": most, "protects": protects}
        return self.call("degree_histogram", arguments, **price)

    def triangle_count(self, table: str, ends: Sequence[str], *, most: int, **price: Unpack[Price]) -> R:
        """Ask for the number of triangles among the first `most` edges of each node."""
        return self.call("triangle_count", {"table": table, "ends": list(ends), "most": most}, **price)

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
        **price: Unpack[Price],
    ) -> R:
        """Pay for a stream of a dataset, once, for all that it will say; `hubbub stream` begins and feeds it."""
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
        return self.call("stream", arguments, **price)

    def kmeans(
        self,
        table: str,
        columns: Sequence[str],
        k: int,
        *,
        rounds: int | None = None,
        method: str | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for k centres; method='classic' is that of the papers, with rounds=None for unknown rounds by halving."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "k": k,
            "rounds": rounds,
            "method": method,
        }
        return self.call("kmeans", arguments, **price)

    def moments(self, table: str, columns: Sequence[str], **price: Unpack[Price]) -> R:
        """Ask for the mean vector and the covariance matrix of some columns."""
        return self.call("moments", {"table": table, "columns": list(columns)}, **price)

    def pca(
        self,
        table: str,
        columns: Sequence[str],
        *,
        components: int | None = None,
        scaled: bool | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for principal components; scaled=True in units of each column's declared range."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "components": components,
            "scaled": scaled,
        }
        return self.call("pca", arguments, **price)

    def linear_regression(self, table: str, columns: Sequence[str], target: str, **price: Unpack[Price]) -> R:
        """Ask for a linear regression of a target on some columns."""
        arguments: dict[str, object] = {"table": table, "columns": list(columns), "target": target}
        return self.call("linear_regression", arguments, **price)

    def logistic_regression(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        positive: object = None,
        rounds: int | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for a logistic regression of a target of two values, or of one value against all others."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "positive": positive,
            "rounds": rounds,
        }
        return self.call("logistic_regression", arguments, **price)

    def decision_tree(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        depth: int | None = None,
        bins: int | None = None,
        score: str | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for a decision tree over declared columns; score is 'gini' or 'max'."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "depth": depth,
            "bins": bins,
            "score": score,
        }
        return self.call("decision_tree", arguments, **price)

    def frequent_itemsets(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        *,
        item: str | None = None,
        support: Number | None = None,
        size: int | None = None,
        candidates: int | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for sets of items that many baskets hold: of columns of a row, or of one column's values of a unit."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": None if columns is None else list(columns),
            "item": item,
            "support": support,
            "size": size,
            "candidates": candidates,
        }
        return self.call("frequent_itemsets", arguments, **price)

    def hyperplane(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        positive: object = None,
        bins: int | None = None,
        slopes: int | None = None,
        **price: Unpack[Price],
    ) -> R:
        """Ask for a hyperplane that tells two classes apart, of a finite grid of them."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "positive": positive,
            "bins": bins,
            "slopes": slopes,
        }
        return self.call("hyperplane", arguments, **price)


class Estimates(Analyses[R]):
    """What each analysis would cost: `h.estimates.kmeans(…)`."""

    def __init__(self, estimate: Callable[..., R]) -> None:
        """Use `h.estimates`."""
        self._estimate = estimate

    def _called(self, text: str, key: str | None, options: Options) -> R:  # noqa: ARG002 - nothing is kept
        return self._estimate(text, **options)
