"""Rows in cells: the nearest center of each row, noisy sums in every cell, and k-means of public points.

Tested in tests/analyses/programs/test_kmeans.py and test_kmeans_grid.py.
"""

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Published, Run
from hubbub.analyses.programs.inputs import ProgramInput, added, call, numbered_cells, real, whole
from hubbub.analyses.programs.moments import Z95, interval_column
from hubbub.analyses.programs.vectors import STEPS, Box, Floats, boxed, on_grid, totals
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core.schema import Kind
from hubbub.sql.aggregates.formula import TYPICAL_ROWS
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.measures import RowCount
from hubbub.sql.noise_budget import AdditiveNoise
from hubbub.sql.relations import Project, Rel

_LLOYD = 15  #: rounds on public points


def nearest(inputs: ProgramInput, shape: Box, centres: Floats) -> tuple[Rel, tuple[Col, ...], Col]:
    """Write rows as (z…, cell): their coordinates and the number of the nearest center, the first of several.

    The nearest center is that with the largest c·z − ‖c‖²/2.
    """
    rows, zs = boxed(inputs, shape)
    kept = tuple((z.name, z) for z in zs)
    scores = []
    for i, centre in enumerate(centres):
        terms: list[Expr] = [call("mul", z, real(on_grid(c))) for z, c in zip(zs, centre, strict=True)]
        scores.append((f"s{i}", call("add", added(terms), real(on_grid(-float(centre @ centre) / 2)))))
    rows = Project(rows, (*kept, *scores))
    columns = [Col(name, Kind.REAL, each.facts) for name, each in scores]
    best = call("greatest", *columns)
    rows = Project(rows, (*kept, *((col.name, col) for col in columns), ("best", best)))
    top = Col("best", Kind.REAL, best.facts)
    tests: list[Expr] = []
    for i, col in enumerate(columns[:-1]):
        tests += [call("ge", col, top), whole(i)]
    number: Expr = call("case", *tests, whole(len(columns) - 1)) if tests else whole(0)
    rows = Project(rows, (*kept, ("cell", number)))
    return rows, zs, Col("cell", Kind.INTEGER)


def noisy_sums(
    run: Run,
    inputs: ProgramInput,
    rows: Rel,
    columns: Sequence[Col],
    cell: Col,
    k: int,
    noises: tuple[AdditiveNoise, AdditiveNoise],
) -> tuple[Floats, Floats]:
    """Get noisy counts and sums in every cell with one query."""
    exact = inputs.integers(run, rows, numbered_cells(cell, k), [RowCount(), *totals(columns)])
    counts, sums = exact.through(
        lambda found: (noises[0].sample(found[0], run.source), noises[1].sample(found[1:], run.source))
    )
    return counts.astype(float), sums.T / STEPS


def publish_centers(shape: Box, centres: Floats, counts: Floats, wide: float, errors: Floats) -> Published:
    """Make the release: a row for each center."""
    outside = shape.outside(centres)
    half = np.full(len(counts), wide)
    outputs = [
        Output("cluster", "integer", list(range(len(centres)))),
        Output("rows", "integer", [round(c) for c in counts], (counts - half).tolist(), (counts + half).tolist()),
        *(interval_column(name, outside[:, j], errors[:, j]) for j, name in enumerate(shape.names)),
    ]
    model: dict[str, object] = {
        "columns": list(shape.names),
        "centres": outside.tolist(),
        "counts": [round(c) for c in counts],
    }
    model["scale"] = (shape.widths / shape.widths[0]).tolist()
    return Published(tuple(outputs), model)


def expected_centers(shape: Box, noise: float) -> tuple[Expected, ...]:
    """Give the expected error of the center of a typical number of rows, for noise on sums in the box's coordinates."""
    half = Z95 * noise / TYPICAL_ROWS
    pairs = zip(shape.names, shape.widths, strict=True)
    return tuple(Expected(f"centre, {name}", half * float(width), TYPICAL_ROWS, half) for name, width in pairs)


def public_generator(run: Run) -> np.random.Generator:
    """Give randomness that privacy does not depend on: it simulates points from a public distribution."""
    return np.random.default_rng([int(word) for word in run.source.words(4)])


def nearest_center(points: Floats, centres: Floats) -> NDArray[np.int64]:
    """Give the number of the nearest center of each point."""
    return np.asarray(np.argmax(points @ centres.T - np.sum(centres**2, axis=1) / 2, axis=1), dtype=np.int64)


def clustered(
    points: Floats, k: int, generator: np.random.Generator, *, weights: Floats | None = None, starts: int = 1
) -> Floats:
    """Cluster public points by their weights: greedy k-means++ and Lloyd's algorithm, the best of several starts."""
    weights = np.ones(len(points)) if weights is None else weights
    tries = [_lloyd(points, weights, _seeds(points, weights, k, generator)) for _ in range(starts)]
    return min(tries, key=lambda centres: _cost(points, weights, centres))


def _cost(points: Floats, weights: Floats, centres: Floats) -> float:
    away = np.sum((points - centres[nearest_center(points, centres)]) ** 2, axis=1)
    return float(weights @ away)


def _seeds(points: Floats, weights: Floats, k: int, generator: np.random.Generator) -> Floats:
    """Choose points with probabilities by squared distance, the best of 2 + ln k candidates for each center."""
    centres = points[generator.choice(len(points), 1, p=weights / weights.sum())]
    away = np.sum((points - centres[0]) ** 2, axis=1)
    for _ in range(k - 1):
        chances = (away + 1e-12) * weights  # never all 0
        candidates = points[generator.choice(len(points), 2 + int(log(k)), p=chances / chances.sum())]
        left = np.stack([np.minimum(away, np.sum((points - each) ** 2, axis=1)) for each in candidates])
        best = int(np.argmin(left @ weights))
        centres, away = np.vstack([centres, candidates[best]]), left[best]
    return centres


def _lloyd(points: Floats, weights: Floats, centres: Floats) -> Floats:
    k = len(centres)
    for _ in range(_LLOYD):
        labels = nearest_center(points, centres)
        mass = np.bincount(labels, weights=weights, minlength=k)
        sums = np.stack([np.bincount(labels, weights=weights * column, minlength=k) for column in points.T], axis=1)
        centres = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centres)
    return centres
