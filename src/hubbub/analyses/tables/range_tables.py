"""Ranges over several columns at once: age ranges by sex and month, or rectangles of two axes.

CALL ranges(table => 'visits', columns => [{'column': 'age', 'bins': 50}, 'sex', {'column': 'cost', 'bins': 64}])

Every column has its own queries: all ranges (or prefixes) of a column with an order, and otherwise each category and
all of them together. The workload is every product of these, so it contains all marginals and their ranges.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import prod, sqrt
from typing import Any, Self

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.tables.axes import Axis, axes
from hubbub.analyses.tables.consistency import Floats, ends, non_negative, round_from_total
from hubbub.analyses.tables.marginals import CountKind, Marginal, counts, marginal
from hubbub.analyses.tables.product_strategies import ProductStrategy, product_strategy
from hubbub.analyses.tables.strategies import GRAMS, Strategy
from hubbub.analyses.tables.table_release import (
    TableRelease,
    expected,
    free,
    noise_line,
    opening_lines,
    table_budgets,
    table_release,
)
from hubbub.answers.release import Output, Release
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.allocation import deviations_at_level
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget
from hubbub.sql.release_size import NUMBER, labels_width

#: Most columns, bins of a column, and cells of all columns together.
MAX_AXES, MAX_BINS, MAX_CELLS = 4, 256, 65_536
COUNT = "count"
#: The queries of a column without an order.
CATEGORIES = "categories"


def range_table(
    setting: Setting,
    *,
    table: str,
    columns: object,
    workload: str,
    noise: str | None,
    count: CountKind,
    where: str | None,
) -> TableRelease:
    """Prepare a table for products of ranges."""
    on = axes(setting.table(table), columns)
    if len(on) > MAX_AXES or max(each.size for each in on) > MAX_BINS or prod(each.size for each in on) > MAX_CELLS:
        raise QueryError(
            "HB589",
            f"These are {' × '.join(str(each.size) for each in on)} bins.",
            f"Use at most {MAX_AXES} columns, {MAX_BINS} bins of each and {MAX_CELLS:,} of all together.",
        )
    setting.fits(prod(each.size for each in on), [*(labels_width(each.labels) for each in on), NUMBER])
    asked = marginal(setting, table, on, count=count, where=where)
    workloads = tuple(workload if each.ordered and None not in each.labels else CATEGORIES for each in on)
    options = [_TableNoise(asked, workloads, each) for each in table_budgets(setting, noise)]
    chosen = min(options, key=lambda each: each.rmse)
    sums = f"{chosen.strategy.sums:,} weighted sums of cells"
    named = " × ".join(f"{kind} of {each.name}" for kind, each in zip(workloads, on, strict=True))
    alone = chosen.budget.deviation(asked.sensitivity) * chosen.alone
    return table_release(
        setting,
        asked,
        chosen.budget,
        (chosen.mechanism,),
        derivation=(
            *opening_lines(asked, count),
            noise_line(sums, chosen.moved, chosen.mechanism),
            f"all {named} have a root mean squared error of {chosen.rmse:.4g}; cells measured one by one would have "
            f"{alone:.4g}",
        ),
        expected=(expected(named, chosen.budget.half_width(chosen.rmse)),),
        publish=partial(_publish, chosen),
    )


@lru_cache(maxsize=8)
def _strategy(kinds: tuple[tuple[str, int], ...], noise: Noise) -> ProductStrategy:
    return product_strategy([_gram(kind, size) for kind, size in kinds], noise)


def _gram(kind: str, size: int) -> Floats:
    """Give how often two bins are in one query of a column, over the number of its queries."""
    if kind == CATEGORIES:
        return np.asarray((np.eye(size) + 1) / (size + 1))
    return GRAMS["prefixes" if kind == "prefixes" else "ranges"](size).matrix


@dataclass(frozen=True)
class _TableNoise:
    """A product strategy with its noise."""

    asked: Marginal
    workloads: tuple[str, ...]
    budget: NoiseBudget

    @cached_property
    def strategy(self) -> ProductStrategy:
        return _strategy(tuple(zip(self.workloads, self.asked.shape, strict=True)), self.budget.noise)

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

    @property
    def _grams(self) -> list[Floats]:
        return [_gram(kind, size) for kind, size in zip(self.workloads, self.asked.shape, strict=True)]

    @cached_property
    def rmse(self) -> float:
        pairs = zip(self.strategy.factors, self._grams, strict=True)
        return sqrt(prod(float(np.sum(each.covariance * gram)) for each, gram in pairs)) * self.deviation

    @cached_property
    def alone(self) -> float:
        """The root mean squared error of cells measured one by one, for noise of standard deviation 1."""
        return sqrt(prod(float(np.trace(gram)) for gram in self._grams))


def _publish(measured: _TableNoise, run: Run) -> Published:
    on, plan = measured.asked.axes, measured.strategy
    run.progress(0.1, "counting")
    noisy = counts(run, [measured.asked]).through(
        lambda found: measured.mechanism.sample(plan.measured(found[0]), run.source)
    )
    run.progress(0.4, "fitting")
    middle = plan.estimated(noisy)
    pulls = [each.matrix.T.astype(np.float64) @ each.matrix for each in plan.factors]
    steepest = prod(float(np.linalg.eigvalsh(each)[-1]) for each in pulls)
    fitted = non_negative(middle, lambda x: _along(pulls, x - middle), steepest, total=float(middle.sum()))
    whole = round_from_total(fitted)
    run.progress(0.9, "writing")
    spread = np.ones(())
    for each in plan.factors:
        spread = np.multiply.outer(spread, np.maximum(np.diag(each.covariance), 0))
    half = measured.budget.half_width(measured.deviation) * np.sqrt(spread)
    places = np.indices(whole.shape).reshape(len(on), -1)
    outputs = [
        Output(each.name, each.kind.value, np.array([*each.labels, None], dtype=object)[own].tolist())
        for each, own in zip(on, places, strict=True)
    ]
    taken = {each.name for each in on}
    counted = Output(
        free(COUNT, taken), "integer", whole.ravel().tolist(), *ends(whole.ravel(), middle.ravel(), half.ravel())
    )
    return Published((*outputs, counted), _model(measured, whole, middle))


def _along(matrices: Sequence[Floats], values: Floats) -> Floats:
    """Multiply along each axis."""
    for axis, matrix in enumerate(matrices):
        values = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
    return values


def _model(measured: _TableNoise, whole: Any, middle: Floats) -> dict[str, Any]:
    return {
        "axes": [
            {
                "name": each.name,
                "labels": _texts(each),
                "queries": kind,
                # with the release, so that its errors can be told by every later version
                "sums": None if factor.name == "identity" else factor.matrix.tolist(),
            }
            for each, kind, factor in zip(
                measured.asked.axes, measured.workloads, measured.strategy.factors, strict=True
            )
        ],
        "counts": whole.ravel().tolist(),
        "estimates": np.round(middle.ravel(), 3).tolist(),
        "noise": measured.budget.noise,
        "deviation": measured.deviation,
    }


def _texts(on: Axis) -> list[str | None]:
    return [None if label is None else str(label) for label in on.labels]


class RangeTable:
    """The model of ranges over several columns: answers products of ranges with their errors, without data or budget.

    Tested in tests/analyses/tables/test_range_tables.py.
    """

    def __init__(self, model: Mapping[str, Any]) -> None:
        """Use `hubbub.model`."""
        self.columns: dict[str, list[str | None]] = {each["name"]: list(each["labels"]) for each in model["axes"]}
        self._ordered = {each["name"] for each in model["axes"] if each["queries"] != CATEGORIES}
        shape = [len(labels) for labels in self.columns.values()]
        self.counts = np.array(model["counts"], dtype=np.int64).reshape(shape)
        self._estimates = np.array(model["estimates"], dtype=np.float64).reshape(shape)
        matrices = [
            np.eye(size, dtype=np.int64) if each["sums"] is None else np.array(each["sums"], dtype=np.int64)
            for each, size in zip(model["axes"], shape, strict=True)
        ]
        self._covariances = [Strategy("", each).covariance for each in matrices]
        self._half = deviations_at_level(model["noise"]) * float(model["deviation"])

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read a release of `ranges` over several columns."""
        return cls(release.model)

    def between(self, **wanted: object) -> tuple[int, float, float]:
        """Give a count and its 95% confidence interval.

        For each column give one label, or the first and the last label of a range: between(age=("18–19", "64–65"),
        sex="F"). Columns that are not named are summed over.
        """
        unknown = sorted(set(wanted) - set(self.columns))
        if unknown:
            raise ParameterError(
                "HB171", f"The table has no column {unknown[0]!r}.", f"Available: {', '.join(self.columns)}."
            )
        slices = [self._slice(name, wanted[name]) if name in wanted else slice(None) for name in self.columns]
        value, middle = self.counts[tuple(slices)].sum(), float(self._estimates[tuple(slices)].sum())
        spread = prod(
            max(float(each[own, own].sum()), 0.0) for each, own in zip(self._covariances, slices, strict=True)
        )
        low, high = ends(np.array([value]), np.array([middle]), self._half * sqrt(spread))
        return int(value), low[0], high[0]

    def _slice(self, name: str, wanted: object) -> slice:
        first, last = wanted if isinstance(wanted, tuple) and len(wanted) == 2 else (wanted, wanted)
        labels = self.columns[name]
        places = [_place(name, labels, each) for each in (first, last)]
        if places[0] > places[1] or (places[0] < places[1] and name not in self._ordered):
            problem = "ends before it starts" if name in self._ordered else "is of a column without an order"
            raise ParameterError("HB171", f"The range of {name} {problem}.", "Give one label, or first and last.")
        return slice(places[0], places[1] + 1)

    def __repr__(self) -> str:
        return f"RangeTable({' × '.join(self.columns)}, {self.counts.size:,} cells)"


def _place(name: str, labels: Sequence[str | None], wanted: object) -> int:
    text = None if wanted is None else str(wanted)
    if text not in labels:
        raise ParameterError("HB171", f"{name} has no bin {text!r}.", f"The first bin is {labels[0]!r}.")
    return labels.index(text)
