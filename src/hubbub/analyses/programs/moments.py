"""Mean vector, covariance matrix and principal components.

A share of the budget first locates the rows: their number, and each column's sum and sum of squares within the declared
bounds. Then rows are centered at that mean, scaled by that spread and clipped, and their moments are measured: the
noise scales with the spread of the data, not with its declared bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any, Self

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.inputs import ProgramInput, one_cell, program_input
from hubbub.analyses.programs.model import flag, model_of
from hubbub.analyses.programs.vectors import (
    STEPS,
    Box,
    Floats,
    box,
    boxed,
    clipped,
    of_products,
    of_sums,
    on_grid,
    over_cells,
    products,
    totals,
)
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.sql.aggregates.formula import TYPICAL_ROWS
from hubbub.sql.measures import RowCount, Sensitivity, sensitivity
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

#: Half of a normal variable's 95% interval, in standard deviations.
Z95 = 1.96

#: Share of the budget for locating the rows, and its split over count, sums and squares.
FINDING = 0.2
_FOUND = (0.15, 0.45, 0.4)
_MOMENTS = (0.05, 0.25, 0.7)


@dataclass(frozen=True, slots=True)
class RowLocation:
    """Location of the rows in the box's coordinates, computed from noisy sums only."""

    count: float
    mean: Floats
    spread: Floats  #: standard deviation of each column, at least the resolution of the noise

    def origin(self) -> list[Fraction]:
        """The mean, rounded to the grid of constants."""
        return [on_grid(each) for each in self.mean]


#: How far the mean of vectors is from that of their integers at most: all rows may be rounded one way. For a
#: covariance it is four times that at most: products once, and the product of two means twice.
_ROUNDED = 0.501 / STEPS


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """Noisy moments of vectors centered at `origin` and scaled by `units` (in the box's coordinates)."""

    count: float
    origin: Floats
    units: Floats
    sums: Floats  #: in units of 1
    squares: Floats  #: the symmetric matrix of sums of products
    noises: tuple[float, float, float]  #: standard deviations of the noise on count, sums and products

    @property
    def mean(self) -> Floats:
        """The mean vector relative to the origin, in units."""
        return np.clip(self.sums / self.count, -1.0, 1.0)

    @property
    def covariance(self) -> Floats:
        """The covariance matrix in units, its eigenvalues clamped to [0, 1], the range of the true ones."""
        raw = self.squares / self.count - np.outer(self.mean, self.mean)
        values, vectors = np.linalg.eigh(raw)
        return np.asarray((vectors * np.clip(values, 0.0, 1.0)) @ vectors.T)


def location_requests(inputs: ProgramInput, dimensions: int, share: float = FINDING) -> list[NoiseRequest]:
    """List the noise for locating rows: on their number, sums, and sums of squares (of L1 and L2 norm at most 1)."""
    contribution, relation = inputs.contribution_bounds(1), inputs.relation
    rounding = (isqrt(dimensions) + 2) // 2 + 1
    squares = over_cells(STEPS + 1 + (dimensions + 1) // 2, (STEPS + rounding) ** 2, contribution, relation)
    moved = (sensitivity(RowCount(), (contribution,), relation), of_sums(dimensions, contribution, relation), squares)
    return [NoiseRequest(each, share * part) for each, part in zip(moved, _FOUND, strict=True)]


def moment_requests(inputs: ProgramInput, dimensions: int, share: float) -> list[NoiseRequest]:
    """List the noise for the moments of clipped vectors: on number, sums and products."""
    contribution, relation = inputs.contribution_bounds(1), inputs.relation
    moved: tuple[Sensitivity, ...] = (
        sensitivity(RowCount(), (contribution,), relation),
        of_sums(dimensions, contribution, relation),
        of_products(dimensions, contribution, relation),
    )
    return [NoiseRequest(each, share * part) for each, part in zip(moved, _MOMENTS, strict=True)]


def find(run: Run, inputs: ProgramInput, shape: Box, noises: Sequence[AdditiveNoise]) -> RowLocation:
    """Locate the rows with one query."""
    size = len(shape.names)
    wide = on_grid(sqrt(size) + 1e-6)
    inside, coordinates = boxed(inputs, shape)
    rows, columns = clipped(inside, coordinates, origin=[Fraction(0)] * size, units=[wide] * size)
    squares = [each for each in products(columns) if each.terms[0] == each.terms[1]]
    exact = inputs.integers(run, rows, one_cell(), [RowCount(), *totals(columns), *squares])
    count, sums, square = exact.through(
        lambda found: (
            noises[0].sample(found[0], run.source),
            noises[1].sample(found[1 : size + 1, 0], run.source),
            noises[2].sample(found[size + 1 :, 0], run.source),
        )
    )
    n = max(float(count[0]), 1.0, standard_deviation(noises[0]))
    mean = np.clip(sums * float(wide) / STEPS / n, -1.0, 1.0)
    variance = square * float(wide) ** 2 / STEPS / n - mean**2
    least = standard_deviation(noises[2]) * float(wide) ** 2 / STEPS / n
    return RowLocation(n, mean, np.sqrt(np.clip(variance, max(least, 1e-8), 1.0)))


def measure(
    run: Run, inputs: ProgramInput, shape: Box, noises: Sequence[AdditiveNoise], *, origin: Floats, units: Floats
) -> NoisyMoments:
    """Measure the moments of vectors that are centered, scaled and clipped to norm 1, with one query."""
    size = len(shape.names)
    at, steps = [on_grid(each) for each in origin], [max(on_grid(each), Fraction(1, 1 << 20)) for each in units]
    inside, coordinates = boxed(inputs, shape)
    rows, columns = clipped(inside, coordinates, origin=at, units=steps)
    exact = inputs.integers(run, rows, one_cell(), [RowCount(), *totals(columns), *products(columns)])
    count, sums, upper = exact.through(
        lambda found: (
            noises[0].sample(found[0], run.source),
            noises[1].sample(found[1 : size + 1, 0], run.source),
            noises[2].sample(found[size + 1 :, 0], run.source),
        )
    )
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = upper / STEPS
    scale = (
        standard_deviation(noises[0]),
        standard_deviation(noises[1]) / STEPS,
        standard_deviation(noises[2]) / STEPS,
    )
    return NoisyMoments(
        max(float(count[0]), 1.0, standard_deviation(noises[0])),
        np.array([float(each) for each in at]),
        np.array([float(each) for each in steps]),
        sums / STEPS,
        matrix + np.triu(matrix, 1).T,
        scale,
    )


def clipping_units(found: RowLocation) -> Floats:
    """Give units in which nearly all rows have norm at most 1: √d + 2 times each column's spread."""
    return found.spread * (sqrt(len(found.spread)) + 2.0)


@dataclass(frozen=True, kw_only=True)
class MomentsAnalysis(PreparedAnalysis):
    """Prepared moments."""

    inputs: ProgramInput
    box: Box
    allocation: BudgetAllocation

    def moments(self, run: Run) -> NoisyMoments:
        """Locate the rows, then measure their moments."""
        found = find(run, self.inputs, self.box, self.allocation.noises[:3])
        run.progress(0.5, "found where the rows lie")
        return measure(
            run, self.inputs, self.box, self.allocation.noises[3:], origin=found.mean, units=clipping_units(found)
        )

    def run(self, run: Run) -> Published:
        """Publish mean and covariance."""
        moments = self.moments(run)
        mean, matrix = in_column_units(self.box, moments)
        spread = self.box.widths * moments.units
        half = (Z95 * moments.noises[1] / moments.count + _ROUNDED) * spread
        errors = (Z95 * moments.noises[2] / moments.count + 4 * _ROUNDED) * np.outer(spread, spread)
        names = self.box.names
        outputs = [
            Output("column", "text", list(names)),
            interval_column("mean", mean, half),
            *(interval_column(f"covariance with {name}", matrix[:, j], errors[:, j]) for j, name in enumerate(names)),
        ]
        model = {
            "columns": list(names),
            "count": moments.count,
            "mean": mean.tolist(),
            "covariance": matrix.tolist(),
        }
        return Published(tuple(outputs), model)


def in_column_units(shape: Box, moments: NoisyMoments) -> tuple[Floats, Floats]:
    """Give mean and covariance in the units of the columns."""
    scale = shape.widths * moments.units
    mean = shape.outside(moments.origin + moments.units * moments.mean)
    return mean, moments.covariance * np.outer(scale, scale)


def interval_column(name: str, values: Floats, half: Floats) -> Output:
    """Make a column with symmetric intervals."""
    return Output(name, "real", values.tolist(), (values - half).tolist(), (values + half).tolist())


def prepare_moments(
    setting: Setting, table: object, columns: Sequence[object]
) -> tuple[ProgramInput, Box, BudgetAllocation, list[str]]:
    """Prepare what moments need: the input, the box, all noise and the derivation."""
    inputs = program_input(setting, table, columns)
    shape = box(inputs, inputs.names)
    size = len(shape.names)
    allocation = allocate_budget(
        setting, [*location_requests(inputs, size), *moment_requests(inputs, size, 1 - FINDING)]
    )
    labels = ("rows", "sums", "sums of squares", "rows", "sums", "sums of products")
    lines = [
        *inputs.lines(),
        f"where the rows lie ({FINDING:.0%}): their number, sums and sums of squares in the box of the bounds",
        "moments: rows from the noisy mean, in units of the noisy spread, pulled back to norm 1",
        *(f"{label}: {describe_noise(noise)}" for label, noise in zip(labels, allocation.noises, strict=True)),
    ]
    return inputs, shape, allocation, lines


def expected_means(shape: Box, allocation: BudgetAllocation) -> tuple[Expected, ...]:
    """Give the expected error of a mean if rows spread over a quarter of their bounds."""
    contribution = (sqrt(len(shape.names)) + 2) / 4
    half = Z95 * standard_deviation(allocation.noises[4]) / STEPS * contribution / TYPICAL_ROWS
    widths = shape.widths
    return tuple(
        Expected(f"mean of {name}", half * float(width), TYPICAL_ROWS, half)
        for name, width in zip(shape.names, widths, strict=True)
    )


def moments(setting: Setting, *, table: str, columns: list[str]) -> MomentsAnalysis:
    """Prepare the mean vector and the covariance matrix of some columns.

    Theorem (Private moments). The published mean and covariance are functions of six noisy vectors: counts, sums and
    squares over the box of the declared bounds, then counts, sums and products of vectors clipped to norm 1 about an
    origin and in units that the first three gave. They cost what the six noises cost.
    Proof    The noises are fixed beforehand; the clipped vectors have norm at most 1 whatever origin and units are
             (Clipped rows on a grid), so each noise meets the sensitivity that it was made for. The rest is
             post-processing.
    Charges  Together of six events.
    Error    of a mean: its noise times the spread found, over the count; of a covariance likewise. Rows beyond √d + 2
             spreads are pulled in, which is not in the intervals.
    Tested   tests/analyses/programs/test_moments.py::test_mean_and_covariance_are_near_the_truth
             tests/analyses/programs/test_moments.py::test_what_is_drawn_is_what_is_charged
    """
    inputs, shape, allocation, lines = prepare_moments(setting, table, columns)
    return MomentsAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=expected_means(shape, allocation),
        box=shape,
        allocation=allocation,
    )


@dataclass(frozen=True, kw_only=True)
class PCAAnalysis(MomentsAnalysis):
    """Prepared principal components."""

    keep: int
    scaled: bool

    def run(self, run: Run) -> Published:
        """Publish the components with the variance that they explain."""
        mean, matrix = in_column_units(self.box, self.moments(run))
        scale = self.box.widths if self.scaled else np.ones(len(mean))
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        order = np.argsort(values)[::-1][: self.keep]
        axes = vectors[:, order].T
        # both signs are equally good: make the largest loading positive
        axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
        whole = max(float(values.sum()), 1e-300)
        outputs = [
            Output("component", "integer", list(range(1, len(axes) + 1))),
            Output("variance", "real", values[order].tolist()),
            Output("share", "real", (values[order] / whole).tolist()),
            *(Output(name, "real", axes[:, j].tolist()) for j, name in enumerate(self.box.names)),
        ]
        model = {
            "columns": list(self.box.names),
            "mean": mean.tolist(),
            "scale": scale.tolist(),
            "components": axes.tolist(),
            "variance": values[order].tolist(),
            "share": (values[order] / whole).tolist(),
        }
        return Published(tuple(outputs), model)


def pca(
    setting: Setting, *, table: str, columns: list[str], components: int | None = None, scaled: bool = False
) -> PCAAnalysis:
    """Prepare principal components: the eigenvectors of the noisy covariance (see `moments`), at no additional cost.

    scaled   divide each column by half of its declared range, for columns with different units
    """
    inputs, shape, allocation, lines = prepare_moments(setting, table, columns)
    most = len(shape.names)
    keep = most if components is None else numbers.integer(components, "components", 1, most)
    lines.append(f"{keep} components: eigenvectors of the noisy covariance; post-processing")
    return PCAAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=expected_means(shape, allocation),
        box=shape,
        allocation=allocation,
        keep=keep,
        scaled=flag(scaled, "scaled"),
    )


@dataclass(frozen=True, slots=True)
class Covariance:
    """The model of a published mean and covariance."""

    columns: tuple[str, ...]
    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "moments")
        return cls(tuple(model["columns"]), np.array(model["mean"]), np.array(model["covariance"]))


@dataclass(frozen=True, slots=True)
class PCA:
    """The model of published principal components, with methods as in scikit-learn."""

    columns: tuple[str, ...]
    mean: Floats
    scale: Floats
    components: Floats
    explained_variance: Floats
    explained_variance_ratio: Floats

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model: Mapping[str, Any] = model_of(release, "pca")
        names = ("mean", "scale", "components", "variance", "share")
        return cls(tuple(model["columns"]), *(np.array(model[name]) for name in names))

    def transform(self, rows: Floats) -> Floats:
        """Give the components of some rows."""
        return np.asarray((np.asarray(rows, dtype=float) - self.mean) / self.scale @ self.components.T)

    def inverse_transform(self, scores: Floats) -> Floats:
        """Reconstruct rows from their components."""
        return np.asarray(np.asarray(scores, dtype=float) @ self.components * self.scale + self.mean)
