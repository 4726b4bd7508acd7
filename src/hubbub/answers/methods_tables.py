"""The methods of analyses that release tables, histograms and synthetic rows.

Tested in tests/analyses/test_registry.py.
"""

from collections.abc import Mapping, Sequence
from typing import Unpack

from hubbub.answers.methods_base import AnalysisCalls, AnalysisOptions, R
from hubbub.core.numbers import Number


class TableMethods(AnalysisCalls[R]):
    """Tables, histograms, synthetic rows and the profile of a dataset."""

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
        column: str | Mapping[str, object] | None = None,
        *,
        columns: Sequence[str | Mapping[str, object]] | None = None,
        workload: str | None = None,
        strategy: str | None = None,
        count: str | None = None,
        where: str | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a histogram optimized for range queries or, with workload='prefixes', for running totals.

        With `columns`, a table over several columns, optimized for all products of their ranges and categories.
        """
        arguments: dict[str, object] = {
            "table": table,
            "column": column,
            "columns": None if columns is None else list(columns),
            "workload": workload,
            "strategy": strategy,
            "count": count,
            "where": where,
            "noise": noise,
        }
        return self.call("ranges", arguments, **options)

    def cube(
        self,
        table: str,
        columns: Sequence[str],
        *,
        measures: Sequence[str] | None = None,
        order: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release all marginals of some columns up to an order, with the least sum of squared errors."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "measures": None if measures is None else list(measures),
            "order": order,
        }
        return self.call("cube", arguments, **options)

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

    def synthetic_tables(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, object]],
        *,
        child: str,
        child_columns: Sequence[str | Mapping[str, object]],
        size: int | None = None,
        pairs: int | None = None,
        child_pairs: int | None = None,
        child_rows: int | None = None,
        most: int | None = None,
        rounds: int | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release synthetic people with their rows in another table: two tables whose keys match."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "child": child,
            "child_columns": list(child_columns),
            "size": size,
            "pairs": pairs,
            "child_pairs": child_pairs,
            "child_rows": child_rows,
            "most": most,
            "rounds": rounds,
            "noise": noise,
        }
        return self.call("synthetic_tables", arguments, **options)

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
