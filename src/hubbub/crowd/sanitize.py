"""One call for every crowd sanitizer: from points to the tables that are published, in the units of the columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hubbub.crowd import adversaries
from hubbub.crowd.disclaimers import KINDS, PROMISES, Kind, Promise
from hubbub.crowd.histogram import Histogram, recursive
from hubbub.crowd.isolation import Rate, demanded, point
from hubbub.crowd.neighbors import Crowd, Floats, Indices
from hubbub.crowd.perturb import around
from hubbub.crowd.points import Points
from hubbub.crowd.training import CrossTrained, cross_trained
from hubbub.errors import CrowdError

Progress = Callable[[float, str], None]
Columns = Mapping[str, Floats | Indices]


@dataclass(frozen=True, eq=False)
class Sanitized:
    """What a sanitizer made of points. Not differentially private: `promise.warnings` says what it does not promise.

    tables   what is published: columns by name, "cells" with counts, "points" with moved rows, in a random order
    weighted places of the cube with weights, which stand for the data in estimates
    guesses  what each adversary makes of it, by name
    """

    kind: Kind
    t: int
    points: Points
    tables: Mapping[str, Columns]
    weighted: tuple[Floats, Floats]
    guesses: Mapping[str, Floats]

    @property
    def promise(self) -> Promise:
        """What it does, and does not promise."""
        return PROMISES[self.kind]

    def isolated(self, *, c: float) -> dict[str, Rate]:
        """Say how many guesses of each adversary single somebody out of the true points."""
        crowd = Crowd(self.points.values)
        return {name: Rate.of(point(crowd, guesses, c=c, t=self.t)) for name, guesses in self.guesses.items()}

    def means(self) -> dict[str, float]:
        """Estimate the mean of each column from what is published."""
        places, weights = self.weighted
        columns = _plain(self.points, places)
        return {name: float(np.average(values, weights=weights)) for name, values in columns.items()}

    def shares(self, bins: int) -> Floats:
        """Estimate, for each column, the share of rows in each of so many equal bins (rows: columns)."""
        places, weights = self.weighted
        return binned(places, weights, bins)


def binned(places: Floats, weights: Floats, bins: int) -> Floats:
    """Give the share of weight in equal bins of each coordinate; what left the cube counts in the last bin."""
    at = np.clip(((places + 1) / 2 * bins).astype(np.int64), 0, bins - 1)
    found = np.array([np.bincount(column, weights=weights, minlength=bins) for column in at.T])
    return np.asarray(found / weights.sum(), dtype=np.float64)


def sanitize(
    points: Points, kind: Kind, *, t: int, rng: np.random.Generator, progress: Progress | None = None
) -> Sanitized:
    """Sanitize points."""
    demanded(c=1, t=t)
    say = progress or (lambda _, __: None)
    if kind not in KINDS:
        raise CrowdError(
            "HB624", f"there is no sanitizer called {str(kind)[:40]!r}.", f"There are: {', '.join(KINDS)}."
        )
    if kind == "histogram":
        say(0.0, "cutting the cube")
        return _of_cells(points, recursive(points.values, t=t), t)
    if kind == "cross":
        say(0.0, "cutting the cube by one half")
        return _of_training(points, cross_trained(points.values, t=t, rng=rng), t, rng)
    if len(points.values) < t:
        raise CrowdError("HB622", f"there are fewer rows than t = {t}.", "Take a smaller t.")
    reach = Crowd(points.values).reach(points.values, t=t, progress=lambda done: say(done, "looking for neighbors"))
    moved = rng.permutation(around(points.values, reach.radius, kind, rng))
    guesses = {"the point itself": moved, "posterior mean": adversaries.of_round_noise(moved, t=t)}
    return Sanitized(kind, t, points, {"points": points.columns(moved)}, (moved, np.ones(len(moved))), guesses)


def _of_cells(points: Points, histogram: Histogram, t: int) -> Sanitized:
    low, side, count = histogram.leaves
    centres = histogram.centres
    tables = {"cells": _cells(points, low, side, {"count": count})}
    return Sanitized("histogram", t, points, tables, (centres, count.astype(np.float64)), {"cell centre": centres})


def _of_training(points: Points, given: CrossTrained, t: int, rng: np.random.Generator) -> Sanitized:
    low, side, count = given.histogram.leaves
    places = given.places
    corners = np.vstack([np.column_stack([low, side]), np.column_stack([places.low, places.side])])
    cells, which = np.unique(corners, axis=0, return_inverse=True)
    which = which.reshape(-1)
    counts = {
        "count_b": np.bincount(which[: len(low)], weights=count, minlength=len(cells)).astype(np.int64),
        "count_a": np.bincount(which[len(low) :], minlength=len(cells)),
    }
    moved = rng.permutation(given.moved)
    tables = {"points": points.columns(moved), "cells": _cells(points, cells[:, :-1], cells[:, -1], counts)}
    weighted = np.vstack([moved, given.histogram.centres]), np.concatenate([np.ones(len(moved)), count])
    guesses = {"posterior mean": adversaries.of_cross_training(given), "cell centre": given.histogram.centres}
    return Sanitized("cross", t, points, tables, weighted, guesses)


def _cells(points: Points, low: Floats, side: Floats, counts: Columns) -> Columns:
    order = np.lexsort(low.T[::-1])
    ends = low + side[:, None]
    edges: dict[str, Floats | Indices] = {}
    for place, axis in enumerate(points.axes):
        edges[f"{axis.name}_from"] = points.unscaled(low[order, place], place)
        edges[f"{axis.name}_to"] = points.unscaled(ends[order, place], place)
    return edges | {name: values[order] for name, values in counts.items()}


def _plain(points: Points, places: Floats) -> dict[str, Floats]:
    return {axis.name: points.unscaled(places[:, place], place) for place, axis in enumerate(points.axes)}
