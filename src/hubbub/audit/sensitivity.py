"""How far two neighbors are apart before noise, and whether that is within what the plan states."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hubbub.sql.finish import Tables, exact
from hubbub.sql.plan import Plan

Exact = tuple[tuple[Any, ...], tuple[Any, ...]]  #: measures by cell, histograms by cell and bucket


def check_sensitivity(plan: Plan, one: Tables, two: Tables, *, nothing: bool = False, units: int = 1) -> list[str]:
    """Say where two tables that differ in so many units are further apart than is stated, or (`nothing`) at all.

    Theorem (What noise must cover). A query's noise covers neighbors if and only if for each of its vectors the exact
    integers of the two are within the sensitivity that its noise was made for; k units move them at most k times as
    far.
    Proof    The loss of each mechanism is attained at its sensitivity and grows with the distance; the triangle
             inequality along k steps, one unit each.
    Tested   tests/audit/test_sensitivity.py::test_neighbors_within_the_stated_sensitivity_are_not_complained_of
             tests/audit/test_sensitivity.py::test_a_sensitivity_that_is_halved_is_complained_of
    """
    if plan.threshold is not None:
        return _found_apart(plan, one, two, nothing=nothing, units=units)
    a, b = exact(plan, one), exact(plan, two)
    if nothing:
        return _different(a, b)
    if plan.top is not None:
        moved = np.abs(a[0][0] - b[0][0]).max(initial=0)
        # one unit more on either side: counts move one way, and which way is not told
        rises, falls = (a[0][0] <= b[0][0]).all(), (a[0][0] >= b[0][0]).all()
        one_way = rises or falls or units > 1 or not plan.top.one.monotone
        return [] if moved <= units * plan.top.one.sensitivity and one_way else [f"counts moved by {moved}"]
    return excess(plan, a, b, units=units)


def excess(plan: Plan, one: Exact, two: Exact, *, units: int = 1) -> list[str]:
    """Say where the integers of two neighbors are further apart than the plan states."""
    found = []
    for noised, a, b in zip(plan.measures, one[0], two[0], strict=True):
        moved = [abs(int(x) - int(y)) for x, y in zip(a[a != b], b[a != b], strict=True)]
        stated = noised.sensitivity
        if sum(moved) > units * stated.l1 or sum(m * m for m in moved) > units**2 * stated.l2_squared:
            found.append(f"{noised.measure}: moved {moved}, stated {stated}")
    for each in plan.choices:
        a, b = one[1][each.histogram], two[1][each.histogram]
        for pick in each.picks:
            far = np.abs(pick.aim.scores(a) - pick.aim.scores(b)).max(axis=1)
            # a cell may move by more than one unit's part under replace only where fewer cells move
            allowed = units * pick.mechanism.sensitivity
            cost = far.sum() / allowed
            if far.max(initial=0) > allowed or cost > each.times:
                found.append(f"{each.choice.name}: scores moved {far}, stated {allowed} in {each.times} cells")
    return found


def _different(one: Exact, two: Exact) -> list[str]:
    pairs = zip((*one[0], *one[1]), (*two[0], *two[1]), strict=True)
    return [f"place {i} differs" for i, (x, y) in enumerate(pairs) if not np.array_equal(x, y)]


def _found_apart(plan: Plan, one: Tables, two: Tables, *, nothing: bool, units: int) -> list[str]:
    """Compare groups by their keys, all that occur on either side; one that is missing counts as zeros."""
    keys = [f"k{j}" for j in range(len(plan.groups[0].keys))]

    def names(table: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return list(zip(*(np.ma.getdata(table[key]).tolist() for key in keys), strict=True))

    every = {name for side in (one, two) for each in plan.statements for name in names(side[each.name])}
    cells = {name: i for i, name in enumerate(sorted(every, key=repr))}

    def dense(tables: Tables) -> Exact:
        measures = [np.zeros(len(cells), dtype=np.int64) for _ in plan.measures]
        histograms = [np.zeros((len(cells), each.count), dtype=np.int64) for each in plan.histograms]
        for statement in plan.statements:
            table = tables[statement.name]
            at = np.array([cells[name] for name in names(table)], dtype=np.int64)
            for column, target in enumerate(statement.targets):
                found = np.asarray(table[f"m{column}"], dtype=np.int64)
                if statement.fills == "measures":
                    np.add.at(measures[target], at, found)
                else:
                    np.add.at(histograms[target], (at, np.asarray(table["bucket"], dtype=np.int64)), found)
        return tuple(measures), tuple(histograms)

    a, b = dense(one), dense(two)
    return _different(a, b) if nothing else excess(plan, a, b, units=units)
