"""Set aside a part of a query's budget for contribution bounds that are found privately.

Tested in tests/sql/test_auto_bounds.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hubbub.core.reals import floor_to
from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import contribution_levels
from hubbub.sql.allocation import Allocation, Workload
from hubbub.sql.auto_bounds import Contribution, LevelHistogram, levels_up_to
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.measures import BoundedSum, KeyWeight, Sensitivity, UnitCount
from hubbub.sql.noise import NoisyMeasure, calibrate_noise, calibrate_selections
from hubbub.sql.owner_levels import OwnerLevels
from hubbub.sql.relations import Rel

#: One measure leaves a third of its budget to the histogram of levels; several that share one leave less each.
_MORE = 2
_PLACES = 24


def add_histograms(
    workload: Workload, allocation: Allocation, relation: Rel, options: RenderOptions
) -> tuple[Allocation, tuple[LevelHistogram, ...]]:
    """Return the allocation without the part for histograms, at the bound 1, and the histograms with that part."""
    parts = [noised.portion for noised in allocation.measures] + [each.portion for each in allocation.choices]
    left = list(parts)
    histograms = []
    for contribution, targets in _targets(workload, allocation):
        share = Fraction(1, len(targets) + _MORE)
        # rounded down to decimals, so that the losses of all draws add up exactly to at most the whole
        portion = floor_to(sum((parts[i] for i in targets), Fraction(0)) * share, _PLACES)
        for i in targets:
            left[i] = floor_to(parts[i] * (1 - share), _PLACES)
        rate = float(sum((left[i] for i in targets), Fraction(0)) / len(targets))
        histograms.append(_histogram(workload, allocation, contribution, targets, portion, rate, relation, options))
    measures = tuple(
        _at_one(noised, part, workload, histograms, i)
        for i, (noised, part) in enumerate(zip(allocation.measures, left, strict=False))
    )
    choices = tuple(
        calibrate_selections(
            each.choice,
            each.histogram,
            kind="laplace",
            portion=part,
            contributions=workload.contributions,
            relation=workload.relation,
            intervals=workload.intervals,
        )
        for each, part in zip(allocation.choices, left[len(allocation.measures) :], strict=True)
    )
    return replace(allocation, measures=measures, choices=choices), tuple(histograms)


def at_bounds(
    workload: Workload,
    allocation: Allocation,
    histograms: Sequence[LevelHistogram | OwnerLevels],
    bounds: Sequence[int],
) -> Allocation:
    """Return an allocation at the bound 1 at other bounds, one for each histogram: every loss stays the same."""
    if not histograms:
        return allocation  # the bounds are declared
    bound = {i: b for each, b in zip(histograms, bounds, strict=True) for i in each.targets}
    count = len(allocation.measures)
    choices = tuple(
        calibrate_selections(
            each.choice,
            each.histogram,
            kind="laplace",
            portion=each.portion,
            contributions=tuple(replace(one, rows=bound.get(count + i, 1)) for one in workload.contributions),
            relation=workload.relation,
            intervals=workload.intervals,
        )
        for i, each in enumerate(allocation.choices)
    )
    measures = tuple(_scaled(noised, bound.get(i, 1)) for i, noised in enumerate(allocation.measures))
    return replace(allocation, measures=measures, choices=choices)


def _targets(workload: Workload, allocation: Allocation) -> list[tuple[Contribution, tuple[int, ...]]]:
    """Return which measures and choices share a bound: sums that stand alone have one each."""
    formulas = allocation.formulas.values()
    together = {measure for formula in formulas if len(formula.measures) > 1 for measure in formula.measures}
    rows, cells, sums = [], [], []
    for i, noised in enumerate(allocation.measures):
        measure = noised.measure
        if isinstance(measure, KeyWeight):
            continue  # groups are selected by weights, which need no bound
        if isinstance(measure, UnitCount):
            if any(each.size > 1 for each in workload.groups):
                cells.append(i)
        elif isinstance(measure, BoundedSum) and measure not in together and len(workload.groups) == 1:
            sums.append(i)
        else:
            rows.append(i)
    rows += range(len(allocation.measures), len(allocation.measures) + len(allocation.choices))
    shared: list[tuple[Contribution, tuple[int, ...]]] = [("rows", tuple(rows)), ("cells", tuple(cells))]
    alone: list[tuple[Contribution, tuple[int, ...]]] = [("sum", (i,)) for i in sums]
    return [(contribution, targets) for contribution, targets in shared + alone if targets]


def _histogram(
    workload: Workload,
    allocation: Allocation,
    contribution: Contribution,
    targets: tuple[int, ...],
    portion: Fraction,
    rate: float,
    relation: Rel,
    options: RenderOptions,
) -> LevelHistogram:
    maximum = workload.maximum
    place = max(range(len(workload.groups)), key=lambda i: workload.groups[i].size)
    if contribution == "rows":
        levels = levels_up_to(maximum)
        text = contribution_levels.rows_by_level(relation, levels, options)
    elif contribution == "cells":
        levels = levels_up_to(min(maximum, workload.groups[place].size))
        text = contribution_levels.cells_by_level(relation, workload.groups[place], levels, options)
    else:
        (measure,) = (allocation.measures[i].measure for i in targets)
        if not isinstance(measure, BoundedSum):
            raise AssertionError("only sums have a bound of their own")
        levels = levels_up_to(maximum * max(-measure.low, measure.high, 1))
        text = contribution_levels.sums_by_level(relation, workload.groups[place], measure, levels, options)
    mechanism = calibrate_noise("laplace", _steps(workload.relation), portion)
    if not isinstance(mechanism, Laplace):
        raise AssertionError("Laplace noise was asked for")
    return LevelHistogram(f"levels{targets[0]}", contribution, place, targets, levels, portion, rate, mechanism, text)


def _at_one(
    noised: NoisyMeasure, portion: Fraction, workload: Workload, histograms: Sequence[LevelHistogram], i: int
) -> NoisyMeasure:
    """Return a measure with its noise at the bound 1: one row, one cell, or one step of a sum."""
    if isinstance(noised.measure, KeyWeight):
        return noised
    alone = any(each.contribution == "sum" and i in each.targets for each in histograms)
    moved = _steps(workload.relation) if alone else noised.sensitivity
    return NoisyMeasure(noised.measure, moved, portion, calibrate_noise("laplace", moved, portion))


def _steps(relation: Relation) -> Sensitivity:
    steps = relation.units_changed
    return Sensitivity(steps, steps * steps)


def _scaled(noised: NoisyMeasure, bound: int) -> NoisyMeasure:
    """Return a measure with its noise at a bound, which is that at the bound 1 times as large."""
    if bound == 1:
        return noised
    moved = Sensitivity(noised.sensitivity.l1 * bound, noised.sensitivity.l2_squared * bound**2)
    mechanism = noised.mechanism
    if not isinstance(mechanism, Laplace):
        raise AssertionError("bounds are found with Laplace noise")
    larger = Laplace(sensitivity=mechanism.sensitivity * bound, scale=mechanism.scale * bound)
    return NoisyMeasure(noised.measure, moved, noised.portion, larger)


def adds_at_one(
    allocation: Allocation, histograms: Sequence[LevelHistogram | OwnerLevels]
) -> tuple[tuple[int, int], ...]:
    """Return what a unit adds to each measure at the bound 1, from the least to the most."""
    alone = {i for each in histograms if each.contribution in ("sum", "owners") for i in each.targets}
    measures = [noised.measure for noised in allocation.measures]
    return tuple(
        (-1 if each.low < 0 else 0, 1 if each.high > 0 else 0) if i in alone else (each.low, each.high)
        for i, each in enumerate(measures)
    )
