"""Allocate the budget of a query to its measures and choices, and predict the error of each result.

Tested in tests/sql/test_plan.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql import partition_selection
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats, Formula, Resolution, secant, spread
from hubbub.sql.aggregates.order_statistics import Choice
from hubbub.sql.aggregates.scores import CountScore, ExtremeScore, QuantileScore
from hubbub.sql.aggregates.table import choices, formulas
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.candidates import Candidates
from hubbub.sql.keys import DiscoveredCells, Groups
from hubbub.sql.measures import BoundedSum, KeyWeight, Measure, Sensitivity, UnitContribution, sensitivity
from hubbub.sql.noise import (
    CellSelections,
    Noise,
    NoisyMeasure,
    NoNoise,
    calibrate_noise,
    calibrate_selections,
    half_width,
)
from hubbub.sql.public_rows import ALL_ROWS, with_public_count
from hubbub.sql.query import Query
from hubbub.sql.split import portions, rho_beside_pure_losses, shares

#: The confidence level of every interval and every ±.
LEVEL = Fraction(95, 100)

#: Maximum number of steps that a row adds to a sum of reals. Rounding errors are then far below any noise.
MAX_STEPS = 1 << 30

#: The number of groups of a typical unit, if its contribution bounds allow so many.
_TYPICAL_GROUPS = 16

#: Groups and rows of a unit without a declared bound: more than any rule for few of them accepts.
_UNBOUNDED = 1 << 40


def unit_contribution(groups: Groups, limits: ContributionBounds | None) -> UnitContribution:
    """Return how many cells and rows one unit can touch in one grouping set."""
    if limits is not None and limits.owners > 1:
        return UnitContribution(groups.size, groups.size, 1)  # an owner is in all groups, each up to the bound
    if limits is None or limits.auto:
        # a bound that is found later multiplies everything: noise is planned for the bound 1
        return UnitContribution(groups.size, 1, 1)
    touched = min(limits.groups, groups.size)
    total = limits.total if limits.total is not None and limits.total < touched * limits.rows else None
    return UnitContribution(groups.size, touched, limits.rows, total)


@dataclass(frozen=True, slots=True)
class Workload:
    """What a query has to compute, before its budget is allocated."""

    query: Query
    groups: tuple[Groups, ...]
    contributions: tuple[UnitContribution, ...]
    relation: Relation
    weights: dict[str, Fraction]
    intervals: bool
    maximum: int = 1  #: the largest bound by which contributions may be multiplied when the query runs
    delta: Fraction = Fraction(0)
    public_rows: bool = False  #: whether the number of rows is public
    shared: bool = False  #: whether rows have two owners, so that no sum may have negative parts

    @property
    def keys_of_a_unit(self) -> UnitContribution:
        """How many groups and rows a unit has when groups are selected: many, where bounds are found later."""
        (contribution,) = self.contributions
        if self.maximum == 1:
            return contribution
        return replace(contribution, touched=_UNBOUNDED, rows=_UNBOUNDED)

    @property
    def selects_groups(self) -> bool:
        """Whether groups are selected privately."""
        return any(isinstance(each, DiscoveredCells) for each in self.groups)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Measures and choices with their budgets and mechanisms; `worst` is the largest weighted relative error."""

    formulas: dict[str, Formula]
    measures: tuple[NoisyMeasure, ...]
    choices: tuple[CellSelections, ...]
    histograms: tuple[Candidates, ...]
    worst: float
    keys: int | None  #: the position of the measure that selects the groups, if they are selected privately


def allocate(workload: Workload, kind: Noise, budget: Fraction) -> Allocation:
    """Allocate a budget (ε, or ρ for Gaussian noise) to the measures and choices of a query.

    Where bounds are found, the largest of them leaves few steps for a row. So the shares that are allocated at a first
    resolution tell how much finer it can be: each row is rounded to steps, which no interval allows for.
    """
    # the smallest share is at least 1/50 of the largest, and an aggregate has at most six measures
    least = Fraction(1, 500 * max(1, len(workload.query.aggregates)))
    first = _allocated(workload, kind, budget, least)
    if workload.maximum == 1 or kind != "laplace":
        return first
    second = _allocated(workload, kind, budget, max(least, _least_share(first, budget) * Fraction(9, 10)))
    return second if _least_share(second, budget) >= _least_share(first, budget) * Fraction(9, 10) else first


def _least_share(allocation: Allocation, budget: Fraction) -> Fraction:
    """Return the smallest share of the budget for the noise of a sum; choosing its bound takes at most half of it."""
    sums = [each.portion for each in allocation.measures if isinstance(each.measure, BoundedSum)]
    return min(sums, default=Fraction(0)) / budget / 2


def _allocated(workload: Workload, kind: Noise, budget: Fraction, least: Fraction) -> Allocation:
    """Allocate a budget at the resolution at which a sum may have as little as this share of it."""
    aggregates = workload.query.aggregates
    spendable = budget * Fraction(1 - partition_selection.SHARE) if workload.selects_groups else budget
    resolution = _resolution(workload, spendable * least, kind)
    table = formulas(aggregates, resolution, centred=not workload.shared)
    if workload.public_rows:
        table = {name: with_public_count(formula) for name, formula in table.items()}
    selected = choices(
        aggregates,
        partition_selection.CELLS if workload.selects_groups else sum(each.cells for each in workload.contributions),
    )
    names = [*table, *(name for choice in selected for name in choice.names)]
    unknown = set(workload.weights) - set(names)
    if unknown:
        raise ParameterError(
            "HB558", f"The query has no aggregate named {min(unknown)!r}.", f"Use one of: {', '.join(sorted(names))}."
        )
    measures: list[Measure] = [m for formula in table.values() for m in formula.measures]
    public = [ALL_ROWS] if workload.public_rows and ALL_ROWS in measures else []
    measures = [measure for measure in dict.fromkeys(measures) if measure not in public]
    keys, rho = None, Fraction(0)
    if workload.selects_groups:
        contribution = workload.keys_of_a_unit
        if kind == "laplace":
            rho = _key_rho(
                budget * Fraction(partition_selection.SHARE), min(contribution.touched, _TYPICAL_GROUPS), workload
            )
        by = partition_selection.selecting_measure(measures, contribution, kind, prefers_weights=rho > 0)
        measures = list(dict.fromkeys([*measures, by]))
        keys = measures.index(by)
    errors = _errors(workload, kind, table, selected, measures)
    weights = np.array([float(workload.weights.get(name, 1)) for name in names])
    amounts = portions(budget, _shares(errors, weights, kind, keys))
    if rho and keys is not None:
        # from the portion as it was rounded, so that all of them together are the budget
        rho = rho_beside_pure_losses(amounts[keys], workload.delta)
    sensitivities = [sensitivity(measure, workload.contributions, workload.relation) for measure in measures]
    noised = tuple(
        NoisyMeasure(measure, s, rho, calibrate_noise("gaussian", s, rho))
        if rho and isinstance(measure, KeyWeight)
        else NoisyMeasure(measure, s, part, calibrate_noise(kind, s, part))
        for measure, s, part in zip(measures, sensitivities, amounts, strict=False)
    )
    noised += tuple(NoisyMeasure(measure, Sensitivity(0, 0), Fraction(0), NoNoise()) for measure in public)
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
    worst = float(np.max(np.sqrt(((errors * spent) ** 2).sum(axis=1)) * weights, initial=0.0))
    return Allocation(table, noised, calibrated, histograms, worst, keys)


def _key_rho(epsilon: Fraction, groups: int, workload: Workload) -> Fraction:
    """Return the ρ of Gaussian noise that selects groups beside Laplace noise; 0 if votes need fewer people.

    Theorem (Weights beside pure losses). Let ρ-zCDP imply (ε₁, δ₁)-DP by the conversion at the order α, and let other
    draws have pure losses that sum to ε₂. Then all together are (ε₁ + ε₂, δ₁)-DP, and pass a filter for a cap of at
    least that ε that converts δ₁ at α.
    Proof    A pure loss of ε₂ has divergence at most ε₂ at every order, so at α all together have at most
             ρα + ε₂ ≤ ε₁ + ε₂ minus the slack of the conversion, which is the same for every ε.
    Tested   tests/sql/test_partition_selection.py::test_weights_beside_laplace_noise_pass_the_filter_of_their_budget
    """
    rho = rho_beside_pure_losses(epsilon, workload.delta)
    return rho if partition_selection.weights_need_fewer(groups, epsilon, rho, workload.delta) else Fraction(0)


def _shares(errors: NDArray[np.float64], weights: Floats, kind: Noise, keys: int | None) -> list[float]:
    """Split a budget over measures and choices; the measure that selects groups gets a fixed share, or all of it."""
    power = 1.0 if kind == "laplace" else 0.5
    if not errors.shape[1]:
        return []
    if keys is None or errors.shape[1] == 1:
        return shares(errors, weights.tolist(), power=power)
    others = np.delete(errors, keys, axis=1)
    served = others.any(axis=1)
    rest = shares(others[served], weights[served].tolist(), power=power)
    rest = [share * (1 - partition_selection.SHARE) for share in rest]
    return [*rest[:keys], partition_selection.SHARE, *rest[keys:]]


def selection_rule(
    workload: Workload, allocation: Allocation, delta: Fraction
) -> tuple[partition_selection.Rule | None, float]:
    """Return the rule that selects the groups of a query, and the relative error by which it is compared.

    The error is the number of people that a group needs, relative to a typical group; 0 if nothing is selected.
    """
    if allocation.keys is None:
        return None, 0.0
    noised, contribution = allocation.measures[allocation.keys], workload.keys_of_a_unit
    rule = partition_selection.threshold(noised, contribution, workload.relation, delta)
    groups = min(contribution.touched, _TYPICAL_GROUPS)
    return rule, partition_selection.needed_people(rule, noised.measure, groups) / TYPICAL_ROWS


def _resolution(workload: Workload, least: Fraction, kind: Noise) -> Resolution:
    """Choose the resolution of sums, so that noise at the least portion stays in the range of the samplers."""
    touched = 2 * workload.maximum * sum(each.touched * each.rows for each in workload.contributions)
    if kind == "laplace":
        most = numbers.SCALE_MAX * least / touched
    else:
        # the variance is at most (steps·touched)²/(2·portion)
        most = Fraction(int(float(numbers.SCALE_MAX) * sqrt(2 * least))) / touched
    if not most >= 1:
        raise QueryError(
            "HB557", "At this ε the result would be almost entirely noise.", "Increase ε or tighten the column bounds."
        )
    return Resolution(min(MAX_STEPS, int(most), max(1, numbers.SENSITIVITY_MAX // touched)))


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
    results = len(table) + sum(len(choice.names) for choice in selected)
    errors = np.zeros((results, len(measures) + len(selected)))
    for j, formula in enumerate(table.values()):
        sums = typical(formula)
        for i, measure in enumerate(formula.measures):
            if measure not in measures:
                continue  # it is public
            place = measures.index(measure)
            (moves,) = secant(formula.value, sums, i, noise[place] * 1e-4)
            errors[j, place] = abs(float(moves)) * 1e4 / formula.size
    row = len(table)
    for j, choice in enumerate(selected):
        unit = calibrate_selections(
            choice,
            0,
            kind=kind,
            portion=Fraction(1),
            contributions=workload.contributions,
            relation=workload.relation,
            intervals=workload.intervals,
        )
        errors[row : row + len(choice.names), len(measures) + j] = rank_error(unit) / 2 / TYPICAL_ROWS
        row += len(choice.names)
    return errors


def rank_error(selections: CellSelections) -> float:
    """Return the expected error of a selection in rows, at the confidence level, if there are enough rows.

    Among dense candidates the rank of a quantile has an error with a double exponential distribution, or, for one of k
    that are selected together, with √((k + 1)(k + 2)/6) times its standard deviation; intervals add 40% at most.
    An extreme lies as deep as empty candidates rarely pass.
    """
    mechanism, score, together = selections.mechanism, selections.score, len(selections.choice.names)
    loss = -log(float(1 - LEVEL)) * sqrt((together + 1) * (together + 2) / 6)
    if isinstance(score, ExtremeScore | CountScore):
        loss += log(mechanism.candidates)
    elif not isinstance(score, QuantileScore):
        loss *= 1.4
    return loss / float(mechanism.rate) / score.scale


def typical(formula: Formula) -> list[Floats]:
    """Return the typical sums as vectors of one cell."""
    return [np.array([value]) for value in formula.typical]


def deviations_at_level(kind: Noise, level: Fraction = LEVEL) -> float:
    """Return the half width of an interval in standard deviations: exact for Gaussian and for single Laplace noise.

    A sum of independent Laplace noises is closer to a Gaussian, so its half width is at most that of a single one.
    """
    if level == LEVEL:
        return log(20.0) / sqrt(2.0) if kind == "laplace" else 1.959964
    miss = float(1 - level)
    return -log(miss) / sqrt(2.0) if kind == "laplace" else -NormalDist().inv_cdf(miss / 2)


def expected_errors(allocation: Allocation, kind: Noise, level: Fraction = LEVEL) -> tuple[Expected, ...]:
    """Return the expected error of each aggregate, at a confidence level."""
    by_measure = {n.measure: n for n in allocation.measures}
    out = []
    for name, formula in allocation.formulas.items():
        noisy = [by_measure[measure] for measure in formula.measures]
        if not any(each.event for each in noisy):
            continue  # it is public
        # use the slope at the typical group: a secant as wide as a large noise would leave the domain of a root
        small = [n.deviation * 1e-4 for n in noisy]
        half = deviations_at_level(kind, level) * 1e4 * float(spread(formula.value, typical(formula), small)[0])
        if formula.linear and len(noisy) == 1:
            half = linear_half_width(formula, noisy[0], level)
        if formula.low is not None and formula.high is not None:
            half = min(half, formula.high - formula.low)
        rows, ends = None if formula.linear else TYPICAL_ROWS, (formula.low, formula.high)
        low, high = (None, None) if None in ends else ends
        out.append(Expected(name, half, rows, half / formula.size, low=low, high=high))
    for each in allocation.choices:
        half = rank_error(each)
        out += [Expected(name, half, None, half / TYPICAL_ROWS, "rank") for name in each.choice.names]
    return tuple(out)


def linear_half_width(formula: Formula, noised: NoisyMeasure, level: Fraction = LEVEL) -> float:
    """Return the exact ± of a result that is one measure times a constant."""
    one = float((formula.value([np.array([1.0])]) - formula.value([np.array([0.0])]))[0])
    return abs(one) * half_width(noised.mechanism, level)
