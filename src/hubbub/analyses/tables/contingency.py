"""Contingency tables over declared domains, with consistent marginals.

CALL tabulate(table => 'visits', columns => ['region', {'column': 'age', 'bins': 10}])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod, sqrt
from typing import Any, Self

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.tables.axes import Axis, axes
from hubbub.analyses.tables.consistency import Whole, ends, non_negative, round_from_total
from hubbub.analyses.tables.lattice import Axes, Floats, Lattice, closure, shares, subsets
from hubbub.analyses.tables.marginals import CountKind, Counts, Marginal, counts, marginal
from hubbub.analyses.tables.table_release import (
    TableRelease,
    expected,
    free,
    noise_line,
    opening_lines,
    table_budgets,
    table_release,
)
from hubbub.answers.cell_text import Cell
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.keys import Cells
from hubbub.sql.measured import WHOLE, describe, measured_views
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget
from hubbub.sql.public_rows import never_null
from hubbub.sql.release_size import NUMBER, labels_width

#: Maximum number of axes of a table, and of its marginals.
MAX_AXES = 8
MAX_MARGINALS = 256
#: The columns of the answer besides the axes.
TABLE, COUNT = "table", "count"
#: The name of the marginal without axes.
TOTAL = "total"


def tabulate(
    setting: Setting,
    *,
    table: str,
    columns: list[object],
    marginals: list[list[str]] | None = None,
    noise: str | None = None,
    count: CountKind = "rows",
    where: str | None = None,
    whole: bool = True,
) -> TableRelease:
    """Prepare a contingency table.

    columns    axes: names of columns, or {'column': 'age', 'bins': 10}
    marginals  the tables to publish, by their columns ([] is the total); by default all of them, or, with more than
               three columns, those of one and two columns and the full table
    whole      publish integers; otherwise real numbers, which are slightly closer to the measurements
    """
    on = axes(setting.table(table), columns)
    if len(on) > MAX_AXES:
        raise QueryError(
            "HB587", f"A table can have at most {MAX_AXES} columns.", "Use fewer columns, or CALL synthetic(…)."
        )
    if not isinstance(whole, bool):
        raise QueryError("HB587", "whole must be TRUE or FALSE.", "Omit it to publish whole numbers.")
    wanted = _wanted(on, marginals)
    widths = [labels_width([_named(on, each) for each in wanted]), *(labels_width(each.labels) for each in on), NUMBER]
    setting.fits(sum(prod(on[i].size for i in each) for each in wanted), widths)
    asked = marginal(setting, table, on, count=count, where=where)
    options = [_measured(asked, wanted, each) for each in table_budgets(setting, noise)]
    chosen = min(options, key=lambda each: sum(each.lattice.variance(axes) for axes in wanted))
    lines = [
        noise_line(f"{share:.1%} for {_named(on, each)}", asked.part(prod(on[i].size for i in each)), mechanism)
        for (each, share), mechanism in zip(chosen.shares.items(), chosen.mechanisms, strict=True)
    ]
    return table_release(
        setting,
        asked,
        chosen.budget,
        chosen.mechanisms,
        derivation=(*opening_lines(asked, count), *lines, "what is published is told from these by least squares"),
        expected=chosen.expected,
        publish=partial(_publish, chosen, whole),
    )


def _wanted(on: Sequence[Axis], marginals: object) -> tuple[Axes, ...]:
    """Give the marginals to publish, the smallest first."""
    every = tuple(range(len(on)))
    if marginals is None:
        return tuple(each for each in subsets(every) if len(on) <= 3 or len(each) <= 2 or each == every)
    names = [each.name for each in on]
    if not isinstance(marginals, Sequence) or isinstance(marginals, str) or not marginals:
        raise QueryError("HB587", "marginals must be a list of lists of columns.", "Use marginals => [['region'], []].")
    found = set()
    for each in marginals:
        if not isinstance(each, Sequence) or isinstance(each, str) or not all(name in names for name in each):
            raise QueryError(
                "HB587", "A marginal lists a column that the table does not have.", f"Available: {', '.join(names)}."
            )
        found.add(tuple(sorted({names.index(name) for name in each})))
    if len(closure(found)) > MAX_MARGINALS:
        raise QueryError(
            "HB587", f"More than {MAX_MARGINALS} marginals would have to be measured.", "Use fewer columns."
        )
    return tuple(sorted(found, key=lambda each: (len(each), each)))


@dataclass(frozen=True)
class _MarginalNoise:
    """The marginals that are measured, with their noise."""

    asked: Marginal
    wanted: tuple[Axes, ...]
    budget: NoiseBudget
    shares: Mapping[Axes, float]
    mechanisms: tuple[AdditiveNoise, ...]
    lattice: Lattice

    @property
    def expected(self) -> tuple[Expected, ...]:
        on = self.asked.axes
        return tuple(
            expected(_named(on, each), self.budget.half_width(sqrt(self.lattice.variance(each))))
            for each in self.wanted
        )


def _measured(asked: Marginal, wanted: tuple[Axes, ...], budget: NoiseBudget) -> _MarginalNoise:
    sizes = asked.shape
    moved = {each: asked.part(prod(sizes[i] for i in each)) for each in closure(wanted)}
    spreads = {each: budget.deviation(s) for each, s in moved.items()}
    chosen = shares(sizes, wanted, spreads, power=2 if budget.noise == "laplace" else 1)
    mechanisms = budget.mechanisms([moved[each] for each in chosen], list(chosen.values()))
    variances = {each: budget.deviation(moved[each], share) ** 2 for each, share in chosen.items()}
    return _MarginalNoise(asked, wanted, budget, chosen, mechanisms, Lattice(sizes, variances))


def _named(on: Sequence[Axis], each: Axes) -> str:
    return " × ".join(on[i].name for i in each) or TOTAL


def _sums(table: Floats | Counts, each: Axes) -> Any:
    return table.sum(axis=tuple(i for i in range(table.ndim) if i not in each))


def _publish(measured: _MarginalNoise, whole: bool, run: Run) -> Published:  # noqa: FBT001 - bound by name above
    asked = measured.asked
    run.progress(0.1, "counting")

    def drawn(found: tuple[Counts, ...]) -> dict[Axes, Floats]:
        cells = found[0].reshape(asked.shape)
        sums = [np.asarray(_sums(cells, each), dtype=np.int64) for each in measured.shares]
        noisy = [m.sample(s, run.source) for m, s in zip(measured.mechanisms, sums, strict=True)]
        return {each: table.astype(np.float64) for each, table in zip(measured.shares, noisy, strict=True)}

    noisy = counts(run, [asked]).through(drawn)
    sums = _released(measured, noisy)
    run.progress(0.4, "fitting")
    every = tuple(range(len(asked.shape)))
    told = measured.lattice.estimate(noisy, sorted({*measured.wanted, every}, key=len))
    fitted = _fitted(measured, noisy, told[every])
    cells: Floats | Whole = round_from_total(fitted) if whole else np.round(fitted, 6)
    run.progress(0.9, "writing")
    return Published(_outputs(measured, cells, told, whole=whole), _model(measured, cells), measured=sums)


def _released(measured: _MarginalNoise, noisy: Mapping[Axes, Floats]) -> dict[str, Any] | None:
    """Describe the noisy marginals as sums that queries can be derived from: those that leave out no row.

    A row without a category in one axis is in no cell, and in no marginal over the other axes either.
    """
    plan = measured.asked.plan
    described, (cells,) = describe(plan, (None, None)), plan.cells
    if described is None or cells.kept is not None:
        return None
    always = [
        domain.kind in WHOLE and never_null(key) for domain, key in zip(cells.domains, described.keys, strict=True)
    ]
    usable = [each for each in noisy if all(always[i] or i in each for i in range(len(always)))]
    sets = [Cells(each, tuple(cells.domains[i] for i in each)) for each in usable]
    events = dict(zip(measured.shares, (each.event for each in measured.mechanisms), strict=True))
    form = measured_views(described, sets, [plan.measures[0].measure], [[events[each] for each in usable]])
    if form is None or not usable:
        return None
    return form | {"sums": [[int(value) for each in usable for value in noisy[each].ravel()]]}


def _fitted(measured: _MarginalNoise, noisy: Mapping[Axes, Floats], start: Floats) -> Floats:
    """Find the non-negative table with the estimated total that is nearest to all measurements."""
    sizes, variances = measured.asked.shape, measured.lattice.variances
    steepest = sum(start.size / prod(sizes[i] for i in each) / variances[each] for each in noisy)

    def slope(table: Floats) -> Floats:
        total = np.zeros_like(table)
        for each, seen in noisy.items():
            shape = [sizes[i] if i in each else 1 for i in range(len(sizes))]
            total += ((_sums(table, each) - seen) / variances[each]).reshape(shape)
        return total

    return non_negative(start, slope, steepest, total=float(start.sum()))


def _outputs(
    measured: _MarginalNoise, cells: Floats | Whole, told: Mapping[Axes, Floats], *, whole: bool
) -> tuple[Output, ...]:
    on = measured.asked.axes
    names: list[Cell] = []
    labels: list[list[Cell]] = [[] for _ in on]
    values: list[Cell] = []
    low: list[float | None] = []
    high: list[float | None] = []
    for each in measured.wanted:
        table = np.asarray(_sums(cells, each))
        half = measured.budget.half_width(sqrt(measured.lattice.variance(each)))
        lower, upper = ends(table.ravel(), told[each].ravel(), half)
        names += [_named(on, each)] * table.size
        places = np.indices(table.shape).reshape(len(each), table.size)
        for i, axis in enumerate(on):
            named = np.array([*axis.labels, None], dtype=object)
            labels[i] += named[places[each.index(i)]].tolist() if i in each else [None] * table.size
        values += table.ravel().tolist()
        low += lower
        high += upper
    taken = {axis.name for axis in on}
    keys = [Output(axis.name, axis.kind.value, own) for axis, own in zip(on, labels, strict=True)]
    return (
        Output(free(TABLE, taken), "text", names),
        *keys,
        Output(free(COUNT, taken), "integer" if whole else "real", values, low, high),
    )


def _model(measured: _MarginalNoise, cells: Floats | Whole) -> dict[str, Any]:
    on = measured.asked.axes
    return {
        "columns": [axis.name for axis in on],
        "published": [[on[i].name for i in each] for each in measured.wanted],
        "measured": [
            {"columns": [on[i].name for i in each], "share": share, "deviation": sqrt(measured.lattice.variances[each])}
            for each, share in measured.shares.items()
        ],
        "noise": measured.budget.noise,
        "error": {
            _named(on, each): measured.budget.half_width(sqrt(measured.lattice.variance(each)))
            for each in measured.wanted
        },
        "shape": list(cells.shape),
        "cells": cells.ravel().tolist(),
    }


class ContingencyTable:
    """The model of a contingency table: an array with its marginals."""

    def __init__(self, columns: tuple[str, ...], cells: Floats | Whole, error: Mapping[str, float]) -> None:
        self.columns = columns
        self.cells = cells
        self.error = dict(error)

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read a release of `tabulate`."""
        model = release.model
        return cls(tuple(model["columns"]), np.array(model["cells"]).reshape(model["shape"]), model["error"])

    def marginal(self, *columns: str) -> Any:
        """Give the counts over some columns, in their order: sums of the published cells."""
        if not set(columns) <= set(self.columns):
            raise ParameterError(
                "HB171", "The table does not have this column.", f"Available: {', '.join(self.columns)}."
            )
        each = tuple(sorted(self.columns.index(name) for name in columns))
        order = [sorted(columns, key=self.columns.index).index(name) for name in columns]
        return np.transpose(_sums(self.cells, each), order)

    def __repr__(self) -> str:
        return f"Table({' × '.join(self.columns)}, {self.cells.size:,} cells)"
