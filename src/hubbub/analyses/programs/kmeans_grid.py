"""k-means that starts from a noisy histogram, so that separated clusters are found.

grid    the rows are located; their number in every cell of a grid around them is measured once. All else about the
        start is post-processing: cells that stand out of the noise are clustered by k-means++ with several starts.
rounds  a few noisy sums of the difference between a row and its nearest center, clipped to the size of a cluster:
        their noise scales with the clusters, not with the table.

With more than five columns the grid lies over the five principal axes of a noisy covariance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.clusters import (
    clustered,
    nearest,
    nearest_center,
    noisy_sums,
    public_generator,
    publish_centers,
)
from hubbub.analyses.programs.clusters import expected_centers as expected
from hubbub.analyses.programs.inputs import ProgramInput, added, call, numbered_cells, real, whole
from hubbub.analyses.programs.moments import (
    Z95,
    RowLocation,
    clipping_units,
    find,
    location_requests,
    measure,
    moment_requests,
)
from hubbub.analyses.programs.vectors import STEPS, Box, Floats, boxed, clipped, of_sums, on_grid
from hubbub.core.schema import Kind
from hubbub.sql.expressions import Col, Expr
from hubbub.sql.measures import RowCount, sensitivity
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise
from hubbub.sql.relations import Project, Rel

ROUNDS = 2
MAX_CELLS = 1 << 14
MAX_AXES = 5

# Chosen on made-up families in docs/decisions/0122-kmeans-grid.md, none of which a benchmark reports.
_LOCATION = 0.06  #: share of the budget for the location of the rows, and again for their covariance if it is needed
_GRID = 0.6  #: share of what is left
_COUNTS = 0.2  #: share of a round for its counts
_WIDE = 3.0  #: the grid ends as many standard deviations from the mean; rows beyond are in its outermost cells
_ROWS = 5.0  #: rows in a cell, in scales of the noise, if rows were evenly spread over as many cells
_SHOWN = 0.5  #: expected number of empty cells whose noise looks like rows
_MASS = 0.7  #: share of rows in the cells that are kept; with less, cells are merged
_MOVED = 0.02  #: assumed squared movement of a center in a round, in radii
_WORK = 3e6  #: cells times centers that are clustered, over all starts


@dataclass(frozen=True, slots=True)
class HistogramGrid:
    """A grid of cubes over chosen axes through the mean of the rows."""

    origin: Floats
    axes: Floats  #: a column for each axis
    low: Floats
    step: Floats
    sides: NDArray[np.int64]  #: cells along each axis

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(np.prod(self.sides))

    def rows(self, inputs: ProgramInput, shape: Box) -> tuple[Rel, Col]:
        """Write rows as (cell): the number of the cell that a row lies in, or is nearest to."""
        rows, zs = boxed(inputs, shape)
        moved = [call("sub", z, real(on_grid(at))) for z, at in zip(zs, self.origin, strict=True)]
        number: list[Expr] = []
        stride = self.size
        for j, axis in enumerate(self.axes.T):
            terms: list[Expr] = [
                call("mul", each, real(on_grid(weight))) for each, weight in zip(moved, axis, strict=True) if weight
            ]
            steps = call("mul", call("sub", added(terms), real(on_grid(self.low[j]))), real(on_grid(1 / self.step[j])))
            inside = call("least", call("greatest", call("floor", steps), real(0)), real(int(self.sides[j]) - 1))
            stride //= int(self.sides[j])
            number.append(call("mul", inside, real(stride)))
        cell = call("to_integer", added(number), whole(64))
        return Project(rows, (("cell", cell),)), Col("cell", Kind.INTEGER, cell.facts)

    def merged(self, counts: Floats, factor: int) -> tuple[Floats, Floats, Floats]:
        """Merge cubes of `factor` cells along each axis: centers of the cells, sums of the counts, cells in each."""
        places = np.stack(np.unravel_index(np.arange(self.size), self.sides), axis=1)
        sides = -(-self.sides // factor)
        cell = np.ravel_multi_index(tuple((places // factor).T), tuple(sides))
        size = int(np.prod(sides))
        parts = np.bincount(cell, minlength=size).astype(float)
        middle = [np.bincount(cell, weights=place + 0.5, minlength=size) / parts for place in places.T]
        points = self.low + np.stack(middle, axis=1) * self.step
        return np.asarray(points), np.asarray(np.bincount(cell, weights=counts, minlength=size)), np.asarray(parts)


@dataclass(frozen=True, slots=True)
class Start:
    """Centers in the box's coordinates, and the radius that most rows are within of the nearest."""

    centres: Floats
    radius: float


@dataclass(frozen=True, kw_only=True)
class GridKMeans(PreparedAnalysis):
    """Prepared k-means that starts from a noisy histogram."""

    inputs: ProgramInput
    box: Box
    k: int
    rounds: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Locate the rows, cluster the cells that stand out, and move the centers to noisy means."""
        noises = self.allocation.noises
        found = find(run, self.inputs, self.box, noises[:3])
        steps = self.rounds + 2
        run.progress(1 / steps, "found where the rows lie")
        grid, rest = self._grid(run, found)
        rows, cell = grid.rows(self.inputs, self.box)
        exact = self.inputs.integers(run, rows, numbered_cells(cell, range(grid.size)), [RowCount()])
        counts = exact.through(lambda sums: noises[-3].sample(sums[0], run.source)).astype(float)
        start = start_of(grid, counts, noises[-3], found.count, self.k, rest, public_generator(run))
        run.progress(2 / steps, "found where the clusters lie")
        centres = start.centres
        for place in range(self.rounds):
            rows, columns, cell = differences(self.inputs, self.box, centres, start.radius)
            sizes, sums = noisy_sums(run, self.inputs, rows, columns, cell, self.k, (noises[-2], noises[-1]))
            held = np.maximum(sizes, 1.0)[:, None]
            error = standard_deviation(noises[-1]) / STEPS / held
            # between the noisy mean and the old center, weighted by their errors
            trust = np.where(sizes[:, None] > 1, _MOVED / (_MOVED + len(self.box.names) * error**2), 0.0)
            centres = np.clip(centres + start.radius * trust * sums / held, -1.0, 1.0)
            run.progress((place + 3) / steps, f"round {place + 1} of {self.rounds}")
        errors = Z95 * error * start.radius * self.box.widths
        return publish_centers(self.box, centres, sizes, Z95 * standard_deviation(noises[-2]), errors)

    def _grid(self, run: Run, found: RowLocation) -> tuple[HistogramGrid, float]:
        """Choose the grid, and give the variance that its axes leave out."""
        size, noises = len(self.box.names), self.allocation.noises
        if size <= MAX_AXES:
            axes, spread, rest = np.eye(size), found.spread, 0.0
            low = np.maximum(-_WIDE * spread, -1 - found.mean)
            high = np.minimum(_WIDE * spread, 1 - found.mean)
        else:
            about = measure(run, self.inputs, self.box, noises[3:6], origin=found.mean, units=clipping_units(found))
            values, vectors = np.linalg.eigh(about.covariance * np.outer(about.units, about.units))
            axes, spread = vectors[:, ::-1][:, :MAX_AXES], np.sqrt(np.maximum(values[::-1][:MAX_AXES], 1e-9))
            rest = float(max(0.0, np.sum(found.spread**2) - np.sum(spread**2)))
            low, high = -_WIDE * spread, _WIDE * spread
        wide = np.maximum(high - low, 1e-3)
        scale = standard_deviation(noises[-3]) / sqrt(2)
        dimensions = len(wide)
        # the number of cells that makes bias and noise of a uniform grid alike, as found by Su and others (2016)
        cells = (found.count / scale / _ROWS) ** (2 * dimensions / (2 + dimensions))
        sides = _sides(wide, min(max(cells, 4.0 * self.k), MAX_CELLS))
        return HistogramGrid(found.mean, axes, low, wide / sides, sides), rest


def _sides(wide: Floats, cells: float) -> NDArray[np.int64]:
    """Divide a box into at most so many cubes: the number along each axis."""
    side = float(np.prod(wide) / cells) ** (1 / len(wide))
    while True:
        sides: NDArray[np.int64] = np.maximum(1, np.floor(wide / side)).astype(np.int64)
        if np.prod(sides.astype(float)) <= cells:
            return sides
        side *= 1.05


def start_of(
    grid: HistogramGrid,
    counts: Floats,
    noise: AdditiveNoise,
    rows: float,
    k: int,
    rest: float,
    generator: np.random.Generator,
) -> Start:
    """Cluster the cells that stand out of the noise; a function of noisy counts alone.

    Where rows are spread so thinly that few cells stand out, cells are merged first.
    """
    deviation = standard_deviation(noise)
    for factor in range(1, int(max(grid.sides)) + 1):
        points, sums, parts = grid.merged(counts, factor)
        # Laplace noise has the heavier tail: so many scales are passed by the stated number of empty cells
        least = max(1.5, log(max(len(sums) / 2 / _SHOWN, 1.0)) / sqrt(2)) * deviation * np.sqrt(parts)
        weights = np.where(sums > least, sums, 0.0)
        if weights.sum() >= _MASS * rows or len(sums) <= 2 * k:
            break
    kept = weights > 0
    if kept.sum() < k:  # too little is seen: take the largest cells, whatever they hold
        kept = np.zeros(len(sums), dtype=bool)
        kept[np.argsort(sums)[-4 * k :]] = True
        weights = np.maximum(sums, 1e-3 * deviation)
    points, weights = points[kept], weights[kept]
    starts = int(np.clip(_WORK / (len(points) * k), 1, 10))
    centres = clustered(points, k, generator, weights=weights, starts=starts)
    away = np.sum((points - centres[nearest_center(points, centres)]) ** 2, axis=1)
    inside = float(weights @ away / weights.sum()) + float(np.sum((grid.step * factor) ** 2)) / 12
    radius = sqrt(inside + rest) * (1 + 1.4 / sqrt(len(grid.origin)))
    return Start(np.clip(grid.origin + centres @ grid.axes.T, -1.0, 1.0), max(radius, 1e-4))


def differences(inputs: ProgramInput, shape: Box, centres: Floats, radius: float) -> tuple[Rel, Sequence[Col], Col]:
    """Write rows as (y…, cell): the difference to the nearest center in radii, clipped to norm 1, and its number."""
    rows, zs, cell = nearest(inputs, shape, centres)
    tests = [call("eq", cell, whole(i)) for i in range(len(centres) - 1)]
    shifted = []
    for j, z in enumerate(zs):
        places = [real(on_grid(each)) for each in centres[:, j]]
        pairs: list[Expr] = []
        for test, place in zip(tests, places[:-1], strict=True):
            pairs += [test, place]
        own = call("case", *pairs, places[-1]) if pairs else places[-1]
        shifted.append((f"d{j}", call("sub", z, own)))
    rows = Project(rows, (*shifted, ("cell", cell)))
    columns = [Col(name, Kind.REAL, each.facts) for name, each in shifted]
    size, unit = len(zs), on_grid(radius)
    near, pulled = clipped(rows, columns, origin=[Fraction(0)] * size, units=[unit] * size, kept=["cell"])
    return near, pulled, cell


def with_grid(setting: Setting, inputs: ProgramInput, shape: Box, k: int, rounds: int) -> GridKMeans:
    """Prepare k-means from a grid.

    Theorem (k-means from a noisy histogram). The centres and counts are functions of noisy sums that locate the rows
    (with more than five columns also of their noisy moments), of one noisy histogram, and in each round of noisy counts
    and noisy sums of clipped vectors: they cost what these noises cost, whatever grid and cells earlier answers chose.
    Proof    Each row lies in exactly one cell of the grid, so a unit changes counts as `contribution_bounds` states for
             the most cells that a grid can have. In a round each row lies in exactly one cell, and adds 1 to its count
             and a vector of norm at most 1 to its sum, as vectors are clipped after a center is taken off ("Clipped
             rows on a grid" holds about any origin, and the center is a function of the row and of noisy answers). The
             grid, the threshold, the starts and the radius are functions of noisy answers and of public randomness.
    Charges  Together of all noises.
    Error    a centre's noise is the radius of a cluster times the noise of a sum, over the cluster's count.
    Tested   tests/analyses/programs/test_kmeans_grid.py::test_what_is_drawn_is_what_is_charged
             tests/analyses/programs/test_kmeans_grid.py::test_engine_sums_of_neighbors_are_within_the_sensitivities
             tests/analyses/programs/test_kmeans_grid.py::test_separated_clusters_are_found
    """
    size = len(shape.names)
    projected = size > MAX_AXES
    left = 1 - _LOCATION * (2 if projected else 1)
    moves = left * (1 - _GRID)
    contribution, relation = inputs.contribution_bounds(k), inputs.relation
    cells = sensitivity(RowCount(), (inputs.contribution_bounds(MAX_CELLS),), relation)
    needs = [
        *location_requests(inputs, size, _LOCATION),
        *(moment_requests(inputs, size, _LOCATION) if projected else []),
        NoiseRequest(cells, left * _GRID),
        NoiseRequest(sensitivity(RowCount(), (contribution,), relation), moves * _COUNTS, rounds),
        NoiseRequest(of_sums(size, contribution, relation), moves * (1 - _COUNTS), rounds),
    ]
    allocation = allocate_budget(setting, needs)
    labels = ["rows", "sums", "squares", *(("rows", "sums", "products") if projected else ())]
    labels += ["rows in each cell of the grid", "counts of each round", "sums of each round"]
    axes = f"the {MAX_AXES} principal axes of a noisy covariance ({_LOCATION:.0%})" if projected else "the columns"
    lines = [
        *inputs.lines(),
        f"where the rows lie ({_LOCATION:.0%}), and a histogram over a grid of at most {MAX_CELLS:,} cells along {axes}"
        f" ({left * _GRID:.0%}); the start is a k-means of the cells that stand out of the noise",
        f"{rounds} rounds; each asks for counts in {k} cells, and for sums of rows from their nearest center, clipped "
        "to the radius of a cluster",
        *(f"{label}: {describe_noise(noise)}" for label, noise in zip(labels, allocation.noises, strict=True)),
    ]
    return GridKMeans(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        # a cluster's radius is assumed to be a sixth of that of the box
        expected=expected(shape, standard_deviation(allocation.noises[-1]) / STEPS * sqrt(size) / 6),
        box=shape,
        k=k,
        rounds=rounds,
        allocation=allocation,
    )
