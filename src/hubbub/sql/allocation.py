"""Allocate the budget of a query to its measures and choices, and predict the error of each result.

Tested in tests/sql/test_plan.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql import partition_selection
from hubbub.sql.aggregates.counts import count_formula
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats, Formula, Resolution, secant, spread
from hubbub.sql.aggregates.order_statistics import Choice
from hubbub.sql.aggregates.table import choices, formulas
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.candidates import Candidates
from hubbub.sql.keys import DiscoveredCells, Groups
from hubbub.sql.measures import Measure, RowCount, UnitContribution, sensitivity
from hubbub.sql.noise import CellSelections, Noise, NoisyMeasure, calibrate_noise, calibrate_selections, half_width
from hubbub.sql.query import Query
from hubbub.sql.split import portions, shares

#: The confidence level of every interval and every ±.
LEVEL = Fraction(95, 100)

#: Maximum number of steps that a row adds to a sum of reals. Rounding errors are then far below any noise.
_MAX_STEPS = 1 << 30

#: The weight of the row count of a choice. The count only decides whether there is an interval.
_SELECTION_COUNT_WEIGHT = 0.2


def unit_contribution(groups: Groups, limits: ContributionBounds | None) -> UnitContribution:
    """Return how many cells and rows one unit can touch in one grouping set."""
    if limits is None:
        return UnitContribution(groups.size, 1, 1)
    return UnitContribution(groups.size, min(limits.groups, groups.size), limits.rows)


@dataclass(frozen=True, slots=True)
class Workload:
    """What a query has to compute, before its budget is allocated."""

    query: Query
    groups: tuple[Groups, ...]
    contributions: tuple[UnitContribution, ...]
    relation: Relation
    weights: dict[str, Fraction]
    intervals: bool

    @property
    def selects_groups(self) -> bool:
        """Whether groups are selected privately."""
        return any(isinstance(each, DiscoveredCells) for each in self.groups)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Measures and choices with their budgets and mechanisms; `worst` is the largest weighted relative error.

    `derived` maps measures to the histograms whose sums they are. These measures need no statement of their own.
    """

    formulas: dict[str, Formula]
    measures: tuple[NoisyMeasure, ...]
    choices: tuple[CellSelections, ...]
    histograms: tuple[Candidates, ...]
    derived: dict[int, int]
    worst: float


def allocate(workload: Workload, kind: Noise, budget: Fraction) -> Allocation:
    """Allocate a budget (ε, or ρ for Gaussian noise) to the measures and choices of a query."""
    aggregates = workload.query.aggregates
    table = formulas(aggregates, _resolution(workload.contributions, budget, kind, len(aggregates)))
    if workload.selects_groups:
        table[partition_selection.KEYS] = count_formula(partition_selection.UNITS)
    selected = choices(
        aggregates,
        partition_selection.CELLS if workload.selects_groups else sum(each.cells for each in workload.contributions),
    )
    names = [*table, *(choice.name for choice in selected)]
    unknown = set(workload.weights) - set(names)
    if unknown:
        raise ParameterError(
            "HB558", f"The query has no aggregate named {min(unknown)!r}.", f"Use one of: {', '.join(sorted(names))}."
        )
    measures: list[Measure] = [m for formula in table.values() for m in formula.measures]
    measures = list(dict.fromkeys([*measures, *(selection_count(choice) for choice in selected)]))
    errors = _errors(workload, kind, table, selected, measures)
    weights = [
        float(workload.weights.get(name, partition_selection.WEIGHT if name == partition_selection.KEYS else 1))
        for name in names
    ]
    amounts = portions(budget, shares(errors, weights, power=1.0 if kind == "laplace" else 0.5))
    sensitivities = [sensitivity(measure, workload.contributions, workload.relation) for measure in measures]
    noised = tuple(
        NoisyMeasure(measure, s, part, calibrate_noise(kind, s, part))
        for measure, s, part in zip(measures, sensitivities, amounts, strict=False)
    )
    histograms = tuple(dict.fromkeys(choice.candidates for choice in selected))
    calibrated = tuple(
        calibrate_selections(
            choice,
            histograms.index(choice.candidates),
            kind=kind,
            portion=part,
            contributions=workload.contributions,
            relation=workload.relation,
            intervals=workload.intervals,
        )
        for choice, part in zip(selected, amounts[len(measures) :], strict=True)
    )
    spent = np.array([float(part) for part in amounts]) ** (-1.0 if kind == "laplace" else -0.5)
    worst = float(np.max(np.sqrt(((errors * spent) ** 2).sum(axis=1)) * np.array(weights)))
    summed = {measure for formula in table.values() for measure in formula.measures}
    # histograms of selected groups are read in batches, so their rows need a count of their own
    derived = {
        measures.index(selection_count(each.choice)): each.histogram
        for each in calibrated
        if selection_count(each.choice) not in summed and not workload.selects_groups
    }
    return Allocation(table, noised, calibrated, histograms, derived, worst)


def selection_count(choice: Choice) -> RowCount:
    """Return the count of the rows behind a choice."""
    return RowCount((choice.candidates.expr,), choice.candidates.where)


def _resolution(
    contributions: Sequence[UnitContribution], budget: Fraction, kind: Noise, aggregates: int
) -> Resolution:
    """Choose the resolution of sums, so that every noise scale stays in the range of the samplers."""
    touched = 2 * sum(each.touched * each.rows for each in contributions)
    # the smallest share is at least 1/50 of the largest, and an aggregate has at most six measures
    least = budget / (500 * max(1, aggregates))
    if kind == "laplace":
        most = numbers.SCALE_MAX * least / touched
    else:
        # the variance is at most (steps·touched)²/(2·portion)
        most = Fraction(int(float(numbers.SCALE_MAX) * sqrt(2 * least))) / touched
    if not most >= 1:
        raise QueryError(
            "HB557", "At this ε the result would be almost entirely noise.", "Increase ε or tighten the column bounds."
        )
    return Resolution(min(_MAX_STEPS, int(most), max(1, numbers.SENSITIVITY_MAX // touched)))


def _errors(
    workload: Workload,
    kind: Noise,
    table: Mapping[str, Formula],
    selected: Sequence[Choice],
    measures: Sequence[Measure],
) -> NDArray[np.float64]:
    """Return the relative error (standard deviation) of each result at a typical group, for ε = 1 or ρ = 1.

    Rows are results. Columns are measures, then choices.
    """
    sensitivities = [sensitivity(measure, workload.contributions, workload.relation) for measure in measures]
    # the standard deviation is √2 times the sensitivity at ε = 1, and 1/√2 times the sensitivity at ρ = 1
    noise = [sqrt(2) * s.l1 if kind == "laplace" else sqrt(s.l2_squared / 2) for s in sensitivities]
    errors = np.zeros((len(table) + len(selected), len(measures) + len(selected)))
    for j, formula in enumerate(table.values()):
        sums = typical(formula)
        for i, measure in enumerate(formula.measures):
            place = measures.index(measure)
            (moves,) = secant(formula.value, sums, i, noise[place] * 1e-4)
            errors[j, place] = abs(float(moves)) * 1e4 / formula.size
    for j, choice in enumerate(selected):
        place = measures.index(selection_count(choice))
        errors[len(table) + j, place] = _SELECTION_COUNT_WEIGHT * noise[place] / TYPICAL_ROWS
        unit = calibrate_selections(
            choice,
            0,
            kind=kind,
            portion=Fraction(1),
            contributions=workload.contributions,
            relation=workload.relation,
            intervals=workload.intervals,
        )
        errors[len(table) + j, len(measures) + j] = rank_error(unit) / 2 / TYPICAL_ROWS
    return errors


def rank_error(selections: CellSelections) -> float:
    """Bound the error of a selection in rows, at the confidence level, if there are enough rows."""
    selection = selections.selections[0]
    odds = float(LEVEL / (1 - LEVEL))
    return log(selections.choice.candidates.count * odds) / float(selection.mechanism.rate) / selection.score.scale


def typical(formula: Formula) -> list[Floats]:
    """Return the typical sums as vectors of one cell."""
    return [np.array([value]) for value in formula.typical]


def deviations_at_level(kind: Noise) -> float:
    """Return the half width of an interval in standard deviations: exact for Gaussian and for single Laplace noise.

    A sum of independent Laplace noises is closer to a Gaussian, so its half width is at most that of a single one.
    """
    return log(20.0) / sqrt(2.0) if kind == "laplace" else 1.959964


def expected_errors(allocation: Allocation, kind: Noise) -> tuple[Expected, ...]:
    """Return the expected error of each aggregate."""
    by_measure = {n.measure: n for n in allocation.measures}
    out = []
    for name, formula in allocation.formulas.items():
        if name == partition_selection.KEYS:
            continue
        noisy = [by_measure[measure] for measure in formula.measures]
        # use the slope at the typical group: a secant as wide as a large noise would leave the domain of a root
        small = [n.deviation * 1e-4 for n in noisy]
        half = deviations_at_level(kind) * 1e4 * float(spread(formula.value, typical(formula), small)[0])
        if formula.linear and len(noisy) == 1:
            half = linear_half_width(formula, noisy[0])
        if formula.low is not None and formula.high is not None:
            half = min(half, formula.high - formula.low)
        out.append(Expected(name, half, None if formula.linear else TYPICAL_ROWS, half / formula.size))
    for each in allocation.choices:
        half = rank_error(each)
        out.append(Expected(each.choice.name, half, None, half / TYPICAL_ROWS, "rank"))
    return tuple(out)


def linear_half_width(formula: Formula, noised: NoisyMeasure) -> float:
    """Return the exact ± of a result that is one measure times a constant."""
    one = float((formula.value([np.array([1.0])]) - formula.value([np.array([0.0])]))[0])
    return abs(one) * half_width(noised.mechanism, LEVEL)
