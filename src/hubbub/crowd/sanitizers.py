"""Apply a crowd sanitizer to points and return the tables to publish, in the units of the columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd import adversaries
from hubbub.crowd.cross_training import CrossTrainedData, cross_train
from hubbub.crowd.disclaimers import KINDS, SANITIZERS, Kind, SanitizerDescription
from hubbub.crowd.histogram import RecursiveHistogram, build_histogram
from hubbub.crowd.isolation import Rate, check_parameters, isolates_point
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import sample_around
from hubbub.crowd.points import Points, ScaledColumn
from hubbub.errors import CrowdError

Progress = Callable[[float, str], None]
Columns = Mapping[str, NDArray[Any]]
#: Shown in the cell of a histogram that was not split: any category.
ANY = "*"


@dataclass(frozen=True, eq=False)
class SanitizedData:
    """The output of a sanitizer. Not differentially private: see `description.warnings`.

    tables    the published tables: "cells" with counts, "points" with perturbed rows in random order
    weighted  positions in the cube with weights, which represent the data in estimates
    guesses   the guesses of each adversary, by name
    """

    kind: Kind
    t: int
    points: Points
    tables: Mapping[str, Columns]
    weighted: tuple[Floats, Floats]
    guesses: Mapping[str, Floats]

    @property
    def description(self) -> SanitizerDescription:
        """What it does, and its weaknesses."""
        return SANITIZERS[self.kind]

    def isolated(self, *, c: float) -> dict[str, Rate]:
        """Return the share of each adversary's guesses that isolate one of the true points."""
        crowd = NeighborIndex(self.points.values)
        return {name: Rate.of(isolates_point(crowd, guesses, c=c, t=self.t)) for name, guesses in self.guesses.items()}

    def means(self) -> dict[str, float]:
        """Estimate the mean of each numeric column from the published tables."""
        positions, weights = self.weighted
        return {
            axis.name: float(np.average(axis.plain(positions[:, at]), weights=weights))
            for axis, at in self.points.spans
            if isinstance(axis, ScaledColumn)
        }

    def shares(self, bins: int) -> Floats:
        """Estimate, for each column (rows of the result), the share of rows in each of `bins` equal bins."""
        return bin_shares(*self.weighted, bins)


def bin_shares(positions: Floats, weights: Floats, bins: int) -> Floats:
    """Return the share of weight in equal bins of each coordinate; positions outside the cube count in the end bins."""
    index = np.clip(((positions + 1) / 2 * bins).astype(np.int64), 0, bins - 1)
    totals = np.array([np.bincount(column, weights=weights, minlength=bins) for column in index.T])
    return np.asarray(totals / weights.sum(), dtype=np.float64)


def category_shares(positions: Floats, weights: Floats) -> Floats:
    """Return the share of weight of each category of a text column: that of the largest coordinate."""
    totals = np.bincount(positions.argmax(axis=1), weights=weights, minlength=positions.shape[1])
    return np.asarray(totals / weights.sum(), dtype=np.float64)


def sanitize(
    points: Points, kind: Kind, *, t: int, rng: np.random.Generator, progress: Progress | None = None
) -> SanitizedData:
    """Sanitize points with one of `KINDS`."""
    check_parameters(c=1, t=t)
    report = progress or (lambda _, __: None)
    if kind not in KINDS:
        raise CrowdError("HB624", f"Unknown sanitizer {str(kind)[:40]!r}.", f"Use one of: {', '.join(KINDS)}.")
    if kind == "histogram":
        report(0.0, "building the histogram")
        return _of_cells(points, build_histogram(points.values, t=t), t)
    if kind == "cross":
        report(0.0, "building the histogram of one half")
        return _of_training(points, cross_train(points.values, t=t, rng=rng), t, rng)
    if len(points.values) < t:
        raise CrowdError("HB622", f"There are fewer rows than t = {t}.", "Use a smaller t.")
    neighbors = NeighborIndex(points.values).query(
        points.values, t=t, progress=lambda done: report(done, "searching neighbors")
    )
    moved = rng.permutation(sample_around(points.values, neighbors.radius, kind, rng))
    guesses = {"the point itself": moved, "posterior mean": adversaries.posterior_of_perturbation(moved, t=t)}
    return SanitizedData(kind, t, points, {"points": points.columns(moved)}, (moved, np.ones(len(moved))), guesses)


def _of_cells(points: Points, histogram: RecursiveHistogram, t: int) -> SanitizedData:
    low, side, count = histogram.leaves
    centers = histogram.centers
    tables = {"cells": _cells(points, low, side, {"count": count})}
    return SanitizedData("histogram", t, points, tables, (centers, count.astype(np.float64)), {"cell center": centers})


def _of_training(points: Points, given: CrossTrainedData, t: int, rng: np.random.Generator) -> SanitizedData:
    low, side, count = given.histogram.leaves
    corners = np.vstack([np.column_stack([low, side]), np.column_stack([given.cells.low, given.cells.side])])
    cells, which = np.unique(corners, axis=0, return_inverse=True)
    which = which.reshape(-1)
    counts = {
        "count_b": np.bincount(which[: len(low)], weights=count, minlength=len(cells)).astype(np.int64),
        "count_a": np.bincount(which[len(low) :], minlength=len(cells)),
    }
    moved = rng.permutation(given.moved)
    tables = {"points": points.columns(moved), "cells": _cells(points, cells[:, :-1], cells[:, -1], counts)}
    weighted = np.vstack([moved, given.histogram.centers]), np.concatenate([np.ones(len(moved)), count])
    guesses = {"posterior mean": adversaries.posterior_of_cross_training(given), "cell center": given.histogram.centers}
    return SanitizedData("cross", t, points, tables, weighted, guesses)


def _cells(points: Points, low: Floats, side: Floats, counts: Columns) -> Columns:
    order = np.lexsort(low.T[::-1])
    ends = low + side[:, None]
    edges: dict[str, NDArray[Any]] = {}
    for axis, at in points.spans:
        if isinstance(axis, ScaledColumn):
            edges[f"{axis.name}_from"] = axis.plain(low[order, at])
            edges[f"{axis.name}_to"] = axis.plain(ends[order, at])
        else:  # halving once separates the categories
            split = side[order] < 2
            edges[axis.name] = np.where(split, axis.published(low[order, at]), ANY)
    return edges | {name: values[order] for name, values in counts.items()}
