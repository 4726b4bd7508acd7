"""Survival curves (Kaplan-Meier) by group, medians, and the log-rank test.

CALL survival(table => 'trial', time => {'column': 'day', 'bins': 52}, event => 'died', group => 'arm')
"""

from dataclasses import dataclass
from functools import partial
from math import exp, sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.statistics.kaplan_meier import TimeNoise, band, median_time
from hubbub.analyses.statistics.log_rank import log_rank_p
from hubbub.analyses.statistics.means import INTERVALS
from hubbub.analyses.statistics.null import Floats, noncentrality, one_row_each
from hubbub.analyses.tables.axes import Axis, axis
from hubbub.analyses.tables.marginals import Marginal, counts, marginal
from hubbub.analyses.tables.product_strategies import ProductStrategy
from hubbub.analyses.tables.strategies import best, identity
from hubbub.analyses.tables.table_release import (
    TableRelease,
    noise_line,
    opening_lines,
    table_budgets,
    table_release,
)
from hubbub.answers.arrow import library
from hubbub.answers.estimate import TYPICAL_ROWS, Expected
from hubbub.answers.release import Output, Release
from hubbub.core.schema import Table, Value
from hubbub.errors import QueryError
from hubbub.sql.noise_budget import NoiseBudget
from hubbub.sql.release_size import NUMBER, labels_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_TIMES, MAX_GROUPS = 400, 10
_BANDS = f"{INTERVALS}; a band holds the whole curve of a group at once"


@dataclass(frozen=True)
class _Design:
    """What is counted: the groups, which event counts, and the times with their ends as numbers."""

    asked: Marginal
    groups: tuple[str, ...]
    event: int
    time: Axis
    ends: tuple[float, ...]
    noise: TimeNoise
    budget: NoiseBudget


def survival(
    setting: Setting,
    *,
    table: str,
    time: object,
    event: str,
    group: str | None = None,
    positive: Value | None = None,
    where: str | None = None,
    noise: str | None = None,
) -> TableRelease:
    """Prepare survival curves: the share of people to whom an event has not happened yet, over time.

    time      when a person was last observed: an integer column with bounds, or {'column': 'day', 'bins': 52}
    event     whether the event happened then (otherwise the person is censored): a boolean, or a column with two
              declared values of which `positive` is the event
    group     a column with declared values: one curve for each, and the log-rank test of all

    Theorem (Survival curves from noisy counts). Curves, bands, medians and the log-rank test are functions of noisy
    sums of one vector of counts, by group, kind (event or censored) and time. They cost what the noise on the sums
    costs.
    Proof    A row is in one cell, so a unit adds at most 1 to all cells together; "Product strategies" bounds the sums,
             which are those for running totals ("Integer strategies"): events up to a time and people at risk are
             running totals. The rest is post-processing of noisy numbers and the public law of the noise.
    Assumes  independent rows: each unit counts with one ("Independent rows"). Censoring does not depend on the event.
    Charges  the noise of the sums, once.
    Error    bands hold whole curves with 95% and the log-rank test rejects a true null hypothesis with at most α, in
             simulations with 50 to 5,000 people and ε of 0.1 to 20.
    Tested   tests/analyses/statistics/test_survival.py::test_bands_hold_the_whole_curve
             tests/analyses/statistics/test_survival.py::test_equal_hazards_are_rejected_no_more_than_stated
             tests/analyses/statistics/test_survival.py::test_curves_and_log_rank_are_exact_where_noise_is_negligible
    """
    setting = one_row_each(setting)
    source = setting.table(table)
    on, ends = _time(source, time)
    kinds = axis(source, event)
    by = [] if group is None else [axis(source, group)]
    _check(on, kinds, by)
    asked = marginal(setting, table, [*by, kinds, on], where=where)
    groups = tuple(str(label) for each in by for label in each.labels) or ("all",)
    setting.fits(len(groups) * on.size, [*(labels_width(each.labels) for each in (*by, on)), NUMBER, NUMBER])
    designs = []
    for budget in table_budgets(setting, noise):
        factors = (identity(2 * len(groups)), best(on.size, "prefixes", budget.noise))
        strategy = ProductStrategy(factors)
        moved = strategy.sensitivity(contribution=asked.contribution, relation=asked.relation)
        (mechanism,) = budget.mechanisms([moved], [1.0])
        designs.append(
            _Design(asked, groups, _event(kinds, positive), on, ends, TimeNoise(strategy, mechanism), budget)
        )
    design = min(designs, key=lambda each: float(each.noise.running.max()))
    chosen = design.noise
    moved = chosen.strategy.sensitivity(contribution=asked.contribution, relation=asked.relation)
    return table_release(
        setting,
        asked,
        design.budget,
        (chosen.mechanism,),
        derivation=(
            *opening_lines(asked, "rows"),
            noise_line(f"sums for running totals ({chosen.strategy.factors[-1].name})", moved, chosen.mechanism),
            "curves, bands and the log-rank test are simulated with this noise; post-processing",
        ),
        expected=_expected(design),
        publish=partial(_publish, design),
    )


def _time(source: Table, time: object) -> tuple[Axis, tuple[float, ...]]:
    """Give the times, and when each of them has passed."""
    on = axis(source, time)
    column = source.column(on.name)
    if column is None or not column.kind.numeric or None in on.labels:
        raise QueryError("HB587", f"{on.name} is not a number.", "Use the time since a person's start, as a number.")
    if on.edges is not None:
        return on, tuple(float(each) for each in on.edges[1:])
    values = [float(each) for each in on.labels if isinstance(each, int | float)]
    if values != sorted(values):
        raise QueryError("HB587", f"The values of {on.name} are not in increasing order.", "Use 'bins'.")
    return on, tuple(values)


def _check(on: Axis, kinds: Axis, by: list[Axis]) -> None:
    if not 2 <= on.size <= MAX_TIMES:
        raise QueryError(
            "HB587",
            f"{on.name} has {on.size:,} different times, and survival curves have 2 to {MAX_TIMES}.",
            "Use {'column': …, 'bins': 52}.",
        )
    if kinds.size != 2 or None in kinds.labels:
        raise QueryError("HB587", f"{kinds.name} does not have two values.", "Use a boolean column.")
    if by and not 2 <= by[0].size <= MAX_GROUPS:
        raise QueryError("HB587", f"{by[0].name} does not have 2 to {MAX_GROUPS} values.", "Choose another column.")
    if len({on.name, kinds.name, *(each.name for each in by)}) < 2 + len(by):
        raise QueryError("HB587", "A column is listed twice.", "List each column once.")


def _event(kinds: Axis, positive: Value | None) -> int:
    """Give which of two categories is the event."""
    if positive is None and kinds.kind.value == "boolean":
        return 1
    if positive not in kinds.labels:
        raise QueryError(
            "HB548",
            f"Which value of {kinds.name} is the event was not given.",
            f"Pass positive, one of: {', '.join(map(str, kinds.labels))}.",
        )
    return kinds.labels.index(positive)


def _expected(design: _Design) -> tuple[Expected, ...]:
    """State the noise of a curve where everybody is at risk, and the hazard ratio that is found with 0.8."""
    noise, half = design.noise, design.budget.half_width(float(design.noise.running.max())) / TYPICAL_ROWS
    found = [Expected("noise of a survival probability", half, TYPICAL_ROWS, half)]
    if len(design.groups) > 1:
        events, groups = TYPICAL_ROWS / 2, len(design.groups)
        # Schoenfeld (1981): between two of the groups, half of whose people have the event
        own = events / groups
        variance = own / 2 + float(noise.running[-1]) ** 2 / 2
        ratio = min(50.0, sqrt(noncentrality(groups - 1) * variance) / (own / 2))
        name = f"hazard ratio that is found with probability 0.8 at p ≤ 0.05: {exp(ratio):.2f}; its logarithm"
        found.append(Expected(name, ratio, TYPICAL_ROWS, ratio))
    return tuple(found)


def _publish(design: _Design, run: Run) -> Published:
    run.progress(0.1, "counting")
    strategy, size = design.noise.strategy, len(design.groups)
    noisy = counts(run, [design.asked]).through(
        lambda exact: design.noise.mechanism.sample(strategy.measured(exact[0]), run.source)
    )
    cells = strategy.estimated(noisy).reshape(size, 2, design.time.size)
    cells = cells if design.event == 1 else cells[:, ::-1]
    run.progress(0.4, "simulating")
    some = np.random.default_rng(run.source.words(4).tolist())  # privacy does not depend on it
    found = [band(own, design.noise, some) for own in cells]
    test = log_rank_p(cells, design.noise, some) if size > 1 else None
    run.progress(0.9, "writing")
    curves = [
        {
            "survival": curve.survival.tolist(),
            "low": np.minimum(low, curve.survival).tolist(),
            "high": np.maximum(high, curve.survival).tolist(),
            "at_risk": np.maximum(curve.at_risk, 0).round(1).tolist(),
            "reached": int(curve.reached.sum()),
        }
        for curve, low, high in found
    ]
    model = {
        "groups": list(design.groups),
        "time": design.time.name,
        "binned": design.time.edges is not None,
        "ends": list(design.ends),
        "curves": curves,
        "log_rank": None if test is None else {"statistic": test[0], "p_value": test[1]},
        "intervals": _BANDS,
    }
    return Published(_outputs(design, curves, test), model)


def _outputs(design: _Design, curves: list[dict[str, Any]], test: tuple[float, float] | None) -> tuple[Output, ...]:
    times = design.time.size
    values, low, high = (
        [round(value, 6) for each in curves for value in each[key]] for key in ("survival", "low", "high")
    )
    outputs = [Output(design.time.name, design.time.kind.value, list(design.time.labels) * len(curves))]
    if test is not None:
        names = [axis.name for axis in design.asked.axes]
        outputs.insert(0, Output(names[0], "text", [name for name in design.groups for _ in range(times)]))
        outputs.append(Output("log_rank_p", "real", [round(test[1], 6)] * len(values)))
    return (*outputs, Output("survival", "real", values, low, high))


@dataclass(frozen=True)
class SurvivalCurves:
    """Survival curves: `survival`, `low`, `high` and `at_risk` have a row for each group and a column for each time.

    times    when each step is over; the curve of a bin is that at its end
    pvalue   of the log-rank test, if there are several groups
    """

    groups: tuple[str, ...]
    times: Floats
    survival: Floats
    low: Floats
    high: Floats
    at_risk: Floats
    time: str
    pvalue: float | None

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read them from a release."""
        model = model_of(release, "survival")
        arrays = [np.array([each[key] for each in model["curves"]]) for key in ("survival", "low", "high", "at_risk")]
        test, times = model["log_rank"], np.array(model["ends"])
        p = None if test is None else test["p_value"]
        return cls(tuple(model["groups"]), times, arrays[0], arrays[1], arrays[2], arrays[3], model["time"], p)

    def predict(self, times: Floats, group: str | None = None) -> Floats:
        """Give the share that survives each of some times."""
        place = 0 if group is None else self.groups.index(group)
        steps = np.concatenate([[1.0], self.survival[place]])
        return np.asarray(steps[np.searchsorted(self.times, np.asarray(times, dtype=float), side="right")])

    def median(self, group: str | None = None) -> tuple[float | None, float | None, float | None]:
        """Give the median time and its 95% interval; None where it is later than all times."""
        place = 0 if group is None else self.groups.index(group)
        ends = median_time(self.survival[place], self.low[place], self.high[place])
        found = [None if each is None else float(self.times[each]) for each in ends]
        return found[0], found[1], found[2]

    def plot(self) -> "Axes":
        """Plot the curves as steps, each with its band."""
        pyplot: Any = library("matplotlib.pyplot")
        _, axes = pyplot.subplots()
        at = np.concatenate([[min(0.0, float(self.times[0]))], self.times])
        for place, name in enumerate(self.groups):
            curve, low, high = (np.concatenate([[1.0], each[place]]) for each in (self.survival, self.low, self.high))
            (line,) = axes.step(at, curve, where="post", label=name)
            axes.fill_between(at, low, high, step="post", alpha=0.2, color=line.get_color())
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(self.time)
        axes.set_ylabel("surviving share, with 95% bands")
        if self.pvalue is not None:
            axes.set_title(f"log-rank p = {self.pvalue:.3g}")
            axes.legend()
        return axes  # type: ignore[no-any-return]
