"""The methods of private programs: clustering, regression, classification, itemsets.

Tested in tests/analyses/test_registry.py.
"""

from collections.abc import Sequence
from typing import Unpack

from hubbub.answers.methods_base import AnalysisCalls, AnalysisOptions, R
from hubbub.core.numbers import Number


class ProgramMethods(AnalysisCalls[R]):
    """Programs that learn from rows."""

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
        """Release k cluster centers; method: 'grid', 'moments' or 'classic' (where rounds=None halves ε each round)."""
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
        """Release a logistic regression: of each class, or of the value `positive` against all others."""
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

    def explainable_boosting(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        positive: object = None,
        bins: int | None = None,
        rounds: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release one shape function for each column, whose sum is the log-odds of a binary target."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "positive": positive,
            "bins": bins,
            "rounds": rounds,
        }
        return self.call("explainable_boosting", arguments, **options)

    def naive_bayes(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        bins: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release naive Bayes: counts of each class in each bucket of each column."""
        arguments: dict[str, object] = {"table": table, "columns": list(columns), "target": target, "bins": bins}
        return self.call("naive_bayes", arguments, **options)

    def random_forest(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        trees: int | None = None,
        leaves: int | None = None,
        bins: int | None = None,
        seed: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a random forest: trees with random splits, and noisy counts of each class in their leaves."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "trees": trees,
            "leaves": leaves,
            "bins": bins,
            "seed": seed,
        }
        return self.call("random_forest", arguments, **options)

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
