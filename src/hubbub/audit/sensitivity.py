"""Compare exact results on two neighboring datasets with the sensitivity that the plan states."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.auto_bounds import ChosenBound
from hubbub.sql.finish import Tables, exact_results
from hubbub.sql.plan import Plan, settle

Exact = tuple[tuple[Any, ...], tuple[Any, ...]]  #: measures per cell, histograms per cell and bucket


def at_random_bounds(plan: Plan, chance: random.Random) -> Plan:
    """Return a plan at bounds that it could find, with its levels: its noise must cover neighbors at all of them."""
    if not plan.levels:
        return plan
    chosen = [ChosenBound(chance.choice(each.levels), 0.0, 0.0, 1.0, 1.0, each.contribution) for each in plan.levels]
    return replace(settle(plan, chosen), levels=plan.levels)


def queries(plan: Plan) -> dict[str, str]:
    """Return the SQL of all levels and statements of a plan, by name."""
    return plan.sql


def check_sensitivity(plan: Plan, one: Tables, two: Tables, *, nothing: bool = False, units: int = 1) -> list[str]:
    """List where results on data that differs in `units` units exceed the sensitivity, or (`nothing`) differ at all.

    Theorem (What noise must cover). A query's noise covers neighbors if and only if for each of its vectors the exact
    integers of the two are within the sensitivity that its noise was made for; k units move them at most k times as
    far.
    Proof    The loss of each mechanism is attained at its sensitivity and grows with the distance; the triangle
             inequality along k steps, one unit each.
    Tested   tests/audit/test_sensitivity.py::test_neighbors_within_the_stated_sensitivity_are_not_complained_of
             tests/audit/test_sensitivity.py::test_a_sensitivity_that_is_halved_is_complained_of
    """
    levels = _compare_levels(plan, one, two, nothing=nothing, units=units)
    if plan.threshold is not None:
        return levels + _compare_groups(plan, one, two, nothing=nothing, units=units)
    a, b = exact_results(plan, one), exact_results(plan, two)
    if nothing:
        return levels + _differences(a, b)
    if plan.top is not None:
        moved = np.abs(a[0][0] - b[0][0]).max(initial=0)
        # the added unit may be on either side: counts all rise or all fall
        rises, falls = (a[0][0] <= b[0][0]).all(), (a[0][0] >= b[0][0]).all()
        one_way = rises or falls or units > 1 or not plan.top.one.monotone
        return [] if moved <= units * plan.top.one.sensitivity and one_way else [f"Counts changed by {moved}."]
    return levels + excess(plan, a, b, units=units)


def _compare_levels(plan: Plan, one: Tables, two: Tables, *, nothing: bool, units: int) -> list[str]:
    """Compare how many units are at each level of contribution."""
    problems = []
    for each in plan.levels:
        moved = each.moved(one[each.name], two[each.name])
        if moved > (0 if nothing else units * each.mechanism.sensitivity):
            problems.append(f"{each.name}: changed by {moved}; stated sensitivity {each.mechanism.sensitivity}.")
    return problems


def excess(plan: Plan, one: Exact, two: Exact, *, units: int = 1) -> list[str]:
    """List where the exact integers of two neighbors exceed the sensitivity."""
    problems = []
    for noised, a, b in zip(plan.measures, one[0], two[0], strict=True):
        moved = [abs(int(x) - int(y)) for x, y in zip(a[a != b], b[a != b], strict=True)]
        bound = noised.sensitivity
        if sum(moved) > units * bound.l1 or sum(m * m for m in moved) > units**2 * bound.l2_squared:
            problems.append(f"{noised.measure}: changed by {moved}; stated sensitivity {bound}.")
        if isinstance(noised.mechanism, Laplace) and noised.mechanism.sensitivity < bound.l1:
            problems.append(f"{noised.measure}: its noise is for {noised.mechanism.sensitivity}, not for {bound}.")
    for each in plan.choices:
        a, b = one[1][each.histogram], two[1][each.histogram]
        moves = each.score.scores(b) - each.score.scores(a)
        # what a selection loses is its rate times the range of these moves, and a shift of all scores changes nothing:
        # two cells whose scores move one way cost as much as one in which some rise and others fall
        ranges = np.maximum(moves.max(axis=1), 0) - np.minimum(moves.min(axis=1), 0)
        stated = units * each.mechanism.sensitivity
        allowed = stated * (1 if each.mechanism.monotone else 2)
        within = ranges.max(initial=0) <= allowed and ranges.sum() <= allowed * each.times
        if not (within and (ranges.astype(float) ** 2).sum() <= float(allowed) ** 2 * each.times):
            problems.append(
                f"{each.choice.names[0]}: the ranges of changes of scores are {ranges}; stated {stated} in"
                f" {each.times} cells."
            )
    return problems


def _differences(one: Exact, two: Exact) -> list[str]:
    pairs = zip((*one[0], *one[1]), (*two[0], *two[1]), strict=True)
    return [f"Result {i} differs." for i, (x, y) in enumerate(pairs) if not np.array_equal(x, y)]


def _compare_groups(plan: Plan, one: Tables, two: Tables, *, nothing: bool, units: int) -> list[str]:
    """Compare groups by their keys; a group that is missing on one side counts as zeros."""
    keys = [f"k{j}" for j in range(len(plan.groups[0].keys))]

    def names(table: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        # with None for NULL, which is a group beside that of 0 or of an empty text
        return list(zip(*(np.ma.asarray(table[key]).tolist() for key in keys), strict=True))

    every = {name for side in (one, two) for each in plan.statements for name in names(side[each.name])}
    cells = {name: i for i, name in enumerate(sorted(every, key=repr))}

    def dense(tables: Tables) -> Exact:
        measures = [np.zeros(len(cells), dtype=np.int64) for _ in plan.measures]
        histograms = [np.zeros((len(cells), each.count), dtype=np.int64) for each in plan.histograms]
        for statement in plan.statements:
            table = tables[statement.name]
            at = np.array([cells[name] for name in names(table)], dtype=np.int64)
            for column, target in enumerate(statement.targets):
                values = np.asarray(table[f"m{column}"], dtype=np.int64)
                if statement.fills == "measures":
                    np.add.at(measures[target], at, values)
                else:
                    np.add.at(histograms[target], (at, np.asarray(table["bucket"], dtype=np.int64)), values)
        return tuple(measures), tuple(histograms)

    a, b = dense(one), dense(two)
    return _differences(a, b) if nothing else excess(plan, a, b, units=units)
