"""The methods of statistics: tests whose p-values allow for the privacy noise.

Tested in tests/analyses/test_registry.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from hubbub.answers.methods_base import AnalysisCalls, AnalysisOptions, R
from hubbub.core.numbers import Number


class StatisticsMethods(AnalysisCalls[R]):
    """Tests and estimates about the population that the rows are a sample of."""

    def difference_of_means(
        self,
        table: str,
        outcome: str,
        group: str,
        *,
        between: Sequence[object] | None = None,
        positive: object = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Compare the mean outcome of two groups, as in an A/B test; the outcome is bounded or has two values."""
        arguments: dict[str, object] = {
            "table": table,
            "outcome": outcome,
            "group": group,
            "between": None if between is None else list(between),
            "positive": positive,
        }
        return self.call("difference_of_means", arguments, **options)

    def anova(
        self, table: str, outcome: str, group: str, *, positive: object = None, **options: Unpack[AnalysisOptions]
    ) -> R:
        """Test whether all groups have the same mean outcome (one-way analysis of variance)."""
        arguments: dict[str, object] = {"table": table, "outcome": outcome, "group": group, "positive": positive}
        return self.call("anova", arguments, **options)

    def chi_square(
        self,
        table: str,
        columns: Sequence[str | Mapping[str, Any]],
        *,
        shares: Sequence[Number] | None = None,
        where: str | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Test whether two columns are independent, or whether one has the shares that are expected."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "shares": None if shares is None else list(shares),
            "where": where,
            "noise": noise,
        }
        return self.call("chi_square", arguments, **options)

    def survival(
        self,
        table: str,
        time: str | Mapping[str, Any],
        event: str,
        *,
        group: str | None = None,
        positive: object = None,
        where: str | None = None,
        noise: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release survival curves (Kaplan-Meier) with bands, and the log-rank test of several groups."""
        arguments: dict[str, object] = {
            "table": table,
            "time": time if isinstance(time, str) else dict(time),
            "event": event,
            "group": group,
            "positive": positive,
            "where": where,
            "noise": noise,
        }
        return self.call("survival", arguments, **options)

    def poisson_regression(
        self,
        table: str,
        columns: Sequence[str],
        target: str,
        *,
        exposure: str | None = None,
        rounds: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Release a Poisson regression of a count on some columns, for each unit of exposure if there is one."""
        arguments: dict[str, object] = {
            "table": table,
            "columns": list(columns),
            "target": target,
            "exposure": exposure,
            "rounds": rounds,
        }
        return self.call("poisson_regression", arguments, **options)
