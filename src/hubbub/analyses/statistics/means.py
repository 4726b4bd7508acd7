"""Compare the means of groups: a difference of two (an A/B test), or several at once (ANOVA).

CALL difference_of_means(table => 'visits', outcome => 'cost', group => 'region', between => ['North', 'South'])
CALL anova(table => 'visits', outcome => 'cost', group => 'region')
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.inputs import (
    ProgramInput,
    call,
    column_bounds,
    column_values,
    equals,
    program_input,
    real,
    value_cells,
)
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.regression import json_value, positive_last
from hubbub.analyses.programs.vectors import STEPS
from hubbub.analyses.statistics.mean_null import (
    GroupSums,
    MeanNoise,
    compare_means,
    difference_interval,
    mean_intervals,
)
from hubbub.analyses.statistics.null import Floats, noncentrality, one_row_each
from hubbub.answers.arrow import library
from hubbub.answers.estimate import TYPICAL_ROWS, Expected
from hubbub.answers.release import Output, Release
from hubbub.core.schema import Bounds, Kind, Value
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, Facts
from hubbub.sql.measures import BoundedSum, Sensitivity, Term
from hubbub.sql.relations import Project
from hubbub.sql.release_size import NUMBER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of groups of an ANOVA.
MAX_GROUPS = 50
#: Share of the budget for sums of squares, which say how far outcomes spread.
_SQUARES = 0.2
_SIDE = Bounds(Fraction(-1), Fraction(1))
#: What the intervals of these answers state.
INTERVALS = "95% confidence intervals for the population that the rows are a sample of: noise and sampling together"


@dataclass(frozen=True, kw_only=True)
class MeansAnalysis(PreparedAnalysis):
    """A prepared comparison of means.

    paired        whether the difference of two groups is published
    middle, half  the outcome is middle + half·y, y in [−1, 1]
    positive      the value that counts as 1, if outcomes are 0 or 1
    """

    inputs: ProgramInput
    groups: tuple[Value, ...]
    paired: bool
    middle: float
    half: float
    positive: Value | None
    allocation: BudgetAllocation

    @property
    def mean_noise(self) -> MeanNoise:
        """The noise of the sums."""
        squares = None if self.positive is not None else self.allocation.noises[1]
        return MeanNoise(self.allocation.noises[0], squares, STEPS)

    def run(self, run: Run) -> Published:
        """Add up the outcomes of each group with noise, and compare them."""
        run.progress(0.1, "adding up")
        sums = self._sums(run)
        run.progress(0.4, "simulating")
        some = np.random.default_rng(run.source.words(4).tolist())  # privacy does not depend on it
        groups, statistic, p, critical = compare_means(sums, self.mean_noise, some)
        run.progress(0.9, "writing")
        return self._published(groups, statistic, p, critical)

    def _sums(self, run: Run) -> Floats:
        """Give the noisy sums of each group: of (1 + y)/2, of (1 − y)/2, and of y² unless outcomes are 0 or 1."""
        outcome, group = self.inputs.columns
        if self.positive is not None:
            written = call("case", equals(outcome, self.positive), real(1), real(-1))
        else:
            middle, half = Fraction(self.middle), Fraction(self.half)
            written = call("mul", call("sub", outcome, real(middle)), real(1 / half))
        rows = Project(self.inputs.rows, (("y", written), (group.name, group)))
        y = Term(Col("y", Kind.REAL, Facts(_SIDE)), _SIDE, Fraction(0))
        width = Fraction(2, STEPS)
        measures = [
            BoundedSum((y,), (), None, Fraction(-1), width, 0, STEPS),
            BoundedSum((y,), (), None, Fraction(1), width, -STEPS, 0),
        ]
        if self.positive is None:
            measures.append(BoundedSum((y, y), (), None, Fraction(0), Fraction(1, STEPS), 0, STEPS))
        exact = self.inputs.integers(run, rows, value_cells((group, self.groups)), measures)
        size, noises = len(self.groups), self.allocation.noises

        def noisy(found: Any) -> Floats:
            both = noises[0].sample(np.concatenate([found[0], -found[1]]), run.source).reshape(2, size)
            if self.positive is not None:
                return np.asarray(both / STEPS)
            return np.concatenate([both, noises[1].sample(found[2], run.source).reshape(1, size)]) / STEPS

        return exact.through(noisy)

    def _published(self, groups: GroupSums, statistic: float, p: float, critical: float) -> Published:
        binary, half, names = self.positive is not None, self.half, [str(each) for each in self.groups]
        low, high = mean_intervals(groups, critical, binary=binary)
        at = [self.middle + half * each for each in (groups.means, low, high)]
        outputs = [Output("p_value", "real", [round(p, 6)]), Output("statistic", "real", [round(statistic, 6)])]
        difference: dict[str, float] = {}
        if self.paired:
            ends = difference_interval(groups, critical, binary=binary)
            value = float(groups.means[0] - groups.means[1])
            difference = {"value": half * value, "low": half * ends[0], "high": half * ends[1]}
            value, least, most = (round(each, 6) for each in difference.values())
            outputs.append(Output(f"{names[0]} minus {names[1]}", "real", [value], [least], [most]))
        for place, name in enumerate(names):
            mean, least, most = (float(each[place]) for each in at)
            outputs.append(Output(f"mean of {name}", "real", [mean], [min(least, mean)], [max(most, mean)]))
        model = {
            "outcome": self.inputs.names[0],
            "group": self.inputs.names[1],
            "groups": names,
            "positive": None if self.positive is None else json_value(self.positive),
            "rows": groups.rows.tolist(),
            "means": at[0].tolist(),
            "low": at[1].tolist(),
            "high": at[2].tolist(),
            "difference": difference,
            "statistic": statistic,
            "p_value": p,
            "intervals": INTERVALS,
        }
        return Published(tuple(outputs), model)


def difference_of_means(
    setting: Setting,
    *,
    table: str,
    outcome: str,
    group: str,
    between: list[object] | None = None,
    positive: Value | None = None,
) -> MeansAnalysis:
    """Prepare a comparison of two groups by the mean of a bounded or two-valued outcome, such as an A/B test.

    outcome   a numeric column with bounds, a boolean, or a column with declared values of which `positive` counts as 1
    group     a column with declared values
    between   the two values of `group` to compare, if it has more

    Theorem (Comparison of noisy means). Everything that is published follows from the noisy sums of each group and the
    public law of their noise, and costs what the noise costs. A row adds k to one sum and l to another,
    k, l ≥ 0 and k + l ≤ S + 1 in steps of 1/S, and to the sum of squares at most S.
    Proof    (1 + y)/2 and (1 − y)/2 add up to 1, and each integer is within ½ of its share of S. The rest is
             post-processing.
    Assumes  independent rows: each unit counts with one ("Independent rows", "Sums of one row").
    Charges  the noise of both sums together, and of the squares where outcomes are numbers.
    Error    where the (clamped) outcomes have the same mean, p ≤ α with probability at most α: simulated for groups of
             3 to 2,000 rows, ε of 0.1 to 20, and six shapes of outcomes; also where one group has rare large
             outcomes that the other lacks.
    Tested   tests/analyses/statistics/test_means.py::test_equal_means_are_rejected_no_more_than_stated
             tests/analyses/statistics/test_means.py::test_a_group_that_did_not_show_its_rare_outcomes_is_not_different
             tests/analyses/statistics/test_means.py::test_intervals_hold_for_few_rows_and_rare_outcomes
             tests/analyses/statistics/test_means.py::test_rows_move_the_sums_by_no_more_than_stated
             tests/analyses/statistics/test_means.py::test_intervals_hold_the_true_difference
    """
    return _prepared(setting, table, outcome, group, between, positive, most=2)


def anova(setting: Setting, *, table: str, outcome: str, group: str, positive: Value | None = None) -> MeansAnalysis:
    """Prepare a one-way analysis of variance: whether all groups have the same mean outcome. Spreads may differ.

    outcome   a numeric column with bounds, a boolean, or a column with declared values of which `positive` counts as 1
    group     a column with declared values
    """
    return _prepared(setting, table, outcome, group, None, positive, most=MAX_GROUPS)


def _prepared(
    setting: Setting,
    table: str,
    outcome: str,
    group: str,
    between: Sequence[object] | None,
    positive: Value | None,
    *,
    most: int,
) -> MeansAnalysis:
    setting = one_row_each(setting)
    inputs = program_input(setting, table, [outcome, group])
    groups = _compared(column_values(inputs, group), between, group, most)
    middle, half, one = _outcome(inputs, outcome, positive)
    setting.fits(1, [NUMBER] * (3 + len(groups)))
    requests = [NoiseRequest(of_one_row(STEPS + 1, inputs), 1.0 if one is not None else 1 - _SQUARES)]
    if one is None:
        requests.append(NoiseRequest(of_one_row(STEPS, inputs), _SQUARES))
    allocation = allocate_budget(setting, requests)
    lines = [
        *inputs.lines(),
        f"sums of (1 + y)/2 and (1 − y)/2 of {len(groups)} groups, y the outcome in [−1, 1]:"
        f" {describe_noise(allocation.noises[0])}",
    ]
    if one is None:
        lines.append(f"sums of y²: {describe_noise(allocation.noises[1])}")
    lines.append("the p-value is simulated: groups with equal means, with this noise; post-processing")
    noise = MeanNoise(allocation.noises[0], None, STEPS)
    size = half * detectable(len(groups), 1.0 if one is not None else 1 / 3, noise)
    named = "difference of means" if most == 2 else "difference of the two most different means"
    return MeansAnalysis(
        protection=inputs.protection,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=(
            Expected(f"{named} that is found with probability 0.8 at p ≤ 0.05", size, TYPICAL_ROWS, size / (2 * half)),
        ),
        inputs=inputs,
        groups=groups,
        paired=most == 2,
        middle=middle,
        half=half,
        positive=one,
        allocation=allocation,
    )


def of_one_row(most: int, inputs: ProgramInput) -> Sensitivity:
    """Bound the sums to which each unit adds one row.

    Theorem (Sums of one row). Let a unit add integers u ≥ 0 to some sums, Σu ≤ D. One unit more or less moves them by
    at most D in L1 and D² in squared L2; another in its place by at most 2D and 2D².
    Proof    Σu² ≤ (Σu)². No product of coordinates of two such vectors is negative, so ‖u − v‖₂² ≤ ‖u‖₂² + ‖v‖₂².
    Assumes  one row in one cell for each unit.
    Tested   tests/contract/test_contract.py::test_neighbors_stay_within_what_each_noise_was_bought_for_and_reach_it
    """
    bounds = inputs.contribution_bounds(MAX_GROUPS)
    if inputs.limits is not None and (bounds.touched, bounds.rows) != (1, 1):
        raise AssertionError("a unit counts with more than one row")
    changed = inputs.relation.units_changed
    return Sensitivity(changed * most, changed * most**2)


def detectable(groups: int, variance: float, noise: MeanNoise, rows: int = TYPICAL_ROWS) -> float:
    """Give the difference, in half ranges, between two of some groups of equal size that a test at 5% finds with 0.8.

    The noncentrality of two groups that are ±d/2 from the others is (n·d)²/(2·(n·v + noise)), n rows each.
    """
    each = rows / groups
    return min(2.0, sqrt(2 * noncentrality(groups - 1) * (each * variance + 2 * noise.variance)) / each)


def _compared(values: tuple[Value, ...], between: Sequence[object] | None, group: str, most: int) -> tuple[Value, ...]:
    if between is not None:
        chosen = [each for each in between if isinstance(each, bool | int | str | Fraction)]
        if len(chosen) != 2 or len(set(chosen)) != 2 or not all(each in values for each in chosen):
            raise QueryError(
                "HB587",
                f"between must list two different values of {group}.",
                f"Available: {', '.join(map(str, values))}.",
            )
        return tuple(chosen)
    if not 2 <= len(values) <= most:
        limit = "two values" if most == 2 else f"2 to {most} values"
        raise QueryError(
            "HB587",
            f"The groups of this test are {limit}, and {group} has {len(values)}.",
            "Pass between with two of them, or use anova." if most == 2 else "Choose another column.",
        )
    return values


def _outcome(inputs: ProgramInput, name: str, positive: Value | None) -> tuple[float, float, Value | None]:
    """Give the middle and half range of an outcome, and the value that counts as 1 if it is not a number."""
    col = inputs.column(name)
    if positive is None and col.kind.numeric:
        bounds = column_bounds(inputs, name)
        # as the query computes it
        return float((bounds.low + bounds.high) / 2), float((bounds.high - bounds.low) / 2), None
    return 0.5, 0.5, positive_last(column_values(inputs, name), positive)[1]


@dataclass(frozen=True, slots=True)
class DifferenceOfMeans:
    """The result of a comparison of means; `rows`, `means`, `low` and `high` have an entry for each group."""

    ANALYSIS: ClassVar[str] = "difference_of_means"
    pvalue: float
    statistic: float
    outcome: str
    groups: tuple[str, ...]
    rows: Floats
    means: Floats
    low: Floats
    high: Floats
    difference: float | None = None
    interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, cls.ANALYSIS)
        rows, means, low, high = (np.array(model[key]) for key in ("rows", "means", "low", "high"))
        own = model["difference"]
        return cls(
            model["p_value"],
            model["statistic"],
            model["outcome"],
            tuple(model["groups"]),
            rows,
            means,
            low,
            high,
            own.get("value"),
            (own["low"], own["high"]) if own else None,
        )

    def plot(self) -> "Axes":
        """Plot the mean of each group with its interval."""
        pyplot: Any = library("matplotlib.pyplot")
        _, axes = pyplot.subplots()
        places = range(len(self.groups))
        below, above = np.maximum(self.means - self.low, 0), np.maximum(self.high - self.means, 0)
        axes.errorbar(self.means, places, xerr=[below, above], fmt="o", capsize=4)
        axes.set_yticks(places, self.groups)
        axes.invert_yaxis()
        axes.set_xlabel(f"mean of {self.outcome}, with 95% intervals (p = {self.pvalue:.3g})")
        return axes  # type: ignore[no-any-return]


class Anova(DifferenceOfMeans):
    """The result of an analysis of variance."""

    ANALYSIS: ClassVar[str] = "anova"
