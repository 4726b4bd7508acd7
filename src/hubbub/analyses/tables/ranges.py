"""Histograms for range queries or prefix sums: the matrix mechanism on one axis.

CALL ranges(table => 'visits', column => {'column': 'age', 'bins': 100}, workload => 'ranges')
CALL ranges(table => 'visits', columns => [{'column': 'age', 'bins': 100}, 'sex'])
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import sqrt
from typing import Any

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.tables.axes import axis
from hubbub.analyses.tables.consistency import Floats, ends, non_negative, round_running_totals
from hubbub.analyses.tables.marginals import CountKind, Marginal, counts, marginal
from hubbub.analyses.tables.range_tables import RangeTable, range_table
from hubbub.analyses.tables.strategies import GRAMS, Strategy, Workload, best
from hubbub.analyses.tables.strategies import strategy as by_name
from hubbub.analyses.tables.table_release import (
    TableRelease,
    expected,
    noise_line,
    opening_lines,
    table_budgets,
    table_release,
)
from hubbub.answers.release import Output, Release
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.allocation import deviations_at_level
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget

#: The columns of the answer besides the bins.
COUNT, UP_TO = "count", "up_to"


def ranges(
    setting: Setting,
    *,
    table: str,
    column: object = None,
    columns: list[object] | None = None,
    workload: Workload = "ranges",
    strategy: str | None = None,
    noise: str | None = None,
    count: CountKind = "rows",
    where: str | None = None,
) -> TableRelease:
    """Prepare a histogram for ranges or prefixes.

    column    an axis: a column's name, or {'column': 'age', 'bins': 100}
    columns   several axes instead: all products of their ranges, and of the categories of those without an order
    workload  'ranges' for all sums of adjacent bins, or 'prefixes' for all running totals
    strategy  identity, tree, groups, root or dense; by default the one with the smallest error
    """
    if workload not in GRAMS:
        raise QueryError("HB589", "workload must be 'ranges' or 'prefixes'.", "Use one of them.")
    if (column is None) == (columns is None):
        raise QueryError(
            "HB589", "Give either column or columns.", "Use column => 'age', or columns => ['age', 'sex']."
        )
    if columns is not None:
        if strategy is not None:
            raise QueryError("HB589", "A strategy can be chosen for a single column only.", "Omit strategy.")
        return range_table(
            setting, table=table, columns=columns, workload=workload, noise=noise, count=count, where=where
        )
    on = axis(setting.table(table), column)
    if None in on.labels:
        raise QueryError("HB589", "A range cannot include missing values.", "Remove 'missing'.")
    asked = marginal(setting, table, [on], count=count, where=where)
    options = [_measured(asked, workload, strategy, each) for each in table_budgets(setting, noise)]
    chosen = min(options, key=lambda each: each.rmse)
    sums = f"{len(chosen.strategy.matrix):,} weighted sums of bins (strategy {chosen.strategy.name})"
    alone = chosen.budget.deviation(asked.sensitivity)
    lines = (
        *opening_lines(asked, count),
        noise_line(sums, chosen.moved, chosen.mechanism),
        f"all {workload} have a root mean squared error of {chosen.rmse:.4g}; bins measured one by one would have "
        f"{alone * chosen.alone:.4g}",
    )
    half = chosen.budget.half_width(chosen.rmse)
    return table_release(
        setting,
        asked,
        chosen.budget,
        (chosen.mechanism,),
        derivation=lines,
        expected=(expected(workload, half),),
        publish=partial(_publish, chosen),
    )


@dataclass(frozen=True)
class _StrategyNoise:
    """A strategy with its noise."""

    asked: Marginal
    workload: Workload
    strategy: Strategy
    budget: NoiseBudget

    @cached_property
    def moved(self) -> Sensitivity:
        return self.strategy.sensitivity(contribution=self.asked.contribution, relation=self.asked.relation)

    @cached_property
    def mechanism(self) -> AdditiveNoise:
        return self.budget.mechanisms([self.moved], [1.0])[0]

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a measured sum."""
        return self.budget.deviation(self.moved)

    @cached_property
    def rmse(self) -> float:
        return sqrt(self.strategy.variance(self.workload)) * self.deviation

    @property
    def alone(self) -> float:
        """The root mean squared error of bins measured one by one, for noise of standard deviation 1."""
        return sqrt(float(GRAMS[self.workload](self.strategy.size).diagonal.sum()))


def _measured(asked: Marginal, workload: Workload, name: object, budget: NoiseBudget) -> _StrategyNoise:
    if name is None:
        return _StrategyNoise(asked, workload, best(asked.size, workload, budget.noise), budget)
    return _StrategyNoise(asked, workload, by_name(str(name), asked.size, workload), budget)


def _publish(measured: _StrategyNoise, run: Run) -> Published:
    on, plan = measured.asked.axes[0], measured.strategy
    run.progress(0.1, "counting")
    noisy = counts(run, [measured.asked]).through(
        lambda found: measured.mechanism.sample(plan.measured(found[0]), run.source)
    )
    run.progress(0.6, "fitting")
    middle = plan.estimated(noisy)
    weights = plan.matrix.astype(np.float64)
    pull = weights.T @ weights
    # the total is kept: with many empty bins, noise below zero would be cut off and noise above it would stay
    steepest, total = float(np.linalg.eigvalsh(pull)[-1]), float(middle.sum())
    fitted = non_negative(middle, lambda x: pull @ (x - middle), steepest, total=total)
    whole = round_running_totals(fitted)
    up_to = np.cumsum(whole)
    deviation, covariance = measured.deviation, plan.covariance
    own = measured.budget.half_width(deviation) * np.sqrt(np.diag(covariance))
    sums = measured.budget.half_width(deviation) * np.sqrt(
        np.maximum(np.diag(np.cumsum(np.cumsum(covariance, axis=0), axis=1)), 0)
    )
    return Published(
        (
            Output(on.name, on.kind.value, list(on.labels)),
            Output(COUNT, "integer", whole.tolist(), *ends(whole, middle, own)),
            Output(UP_TO, "integer", up_to.tolist(), *ends(up_to, np.cumsum(middle), sums)),
        ),
        {
            "column": on.name,
            "edges": None if on.edges is None else [float(edge) for edge in on.edges],
            "counts": whole.tolist(),
            "estimates": np.round(middle, 3).tolist(),
            "workload": measured.workload,
            "strategy": plan.name,
            "noise": measured.budget.noise,
            "deviation": deviation,
        },
    )


class Ranges:
    """The model of a histogram: answers ranges with their errors, without data or budget."""

    def __init__(self, labels: tuple[Any, ...], model: Mapping[str, Any]) -> None:
        self.labels = labels
        self.counts = np.array(model["counts"], dtype=np.int64)
        self._estimates: Floats = np.array(model["estimates"], dtype=np.float64)
        self._edges = model["edges"]
        used = by_name(model["strategy"], len(self.counts), model["workload"])
        self._covariance = used.covariance * float(model["deviation"]) ** 2
        self._factor = deviations_at_level(model["noise"])

    @classmethod
    def of(cls, release: Release) -> "Ranges | RangeTable":
        """Read a release of `ranges`, of one column or of several."""
        if "axes" in release.model:
            return RangeTable.of(release)
        return cls(tuple(release.outputs[0].values), release.model)

    def between(self, first: object, last: object) -> tuple[int, float, float]:
        """Give the count from one bin to another, both included, and its 95% confidence interval."""
        start, stop = self._place(first), self._place(last)
        if not start <= stop:
            raise ParameterError("HB171", "The range ends before it starts.", "Swap its ends.")
        return self._range(start, stop + 1)

    def _range(self, start: int, stop: int) -> tuple[int, float, float]:
        value = self.counts[start:stop].sum(keepdims=True)
        half = self._factor * sqrt(max(float(self._covariance[start:stop, start:stop].sum()), 0.0))
        low, high = ends(value, self._estimates[start:stop].sum(keepdims=True), half)
        return int(value[0]), low[0], high[0]

    def quantile(self, level: float) -> Any:
        """Give the bin of a quantile, or a linearly interpolated number if bins have edges."""
        if not 0 <= level <= 1:
            raise ParameterError("HB171", "The level of a quantile must be between 0 and 1.", "Use 0.5 for the median.")
        totals = np.cumsum(self.counts)
        wanted = level * float(totals[-1])
        place = min(bisect_left(totals.tolist(), wanted), len(totals) - 1)
        if self._edges is None:
            return self.labels[place]
        before = float(totals[place] - self.counts[place])
        share = (wanted - before) / max(float(self.counts[place]), 1.0)
        return self._edges[place] + share * (self._edges[place + 1] - self._edges[place])

    def _place(self, label: object) -> int:
        if label not in self.labels:
            raise ParameterError("HB171", f"There is no bin {label!r}.", f"The first bin is {self.labels[0]!r}.")
        return self.labels.index(label)

    def __repr__(self) -> str:
        return f"Ranges({len(self.labels)} bins, {self.counts.sum():,} in all)"
