"""Mean vector and covariance matrix of bounded vectors, with the constants of Dwork, McSherry, Nissim and Smith (2006).

A row is a vector about the middle of its columns' bounds, clipped to a norm of at most γ. Where neighbors differ in the
contents of one row, the number of rows n is public: the mean moves by 2γ/n and the covariance by 6γ²/n. Elsewhere n is
measured with noise of its own. `moments` locates the rows first, and is more accurate where γ is much too large.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import NoiseRequest, allocate_budget
from hubbub.analyses.programs.inputs import ProgramInput, call, one_cell, program_input, real
from hubbub.analyses.programs.vectors import STEPS, Box, Floats, box, clipped, of_sums, over_cells, products, totals
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.reals import sqrt
from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.errors import QueryError
from hubbub.mechanisms.euclidean import MAX_DIMENSIONS, EuclideanNoise
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.aggregates.formula import TYPICAL_ROWS
from hubbub.sql.expressions import Col
from hubbub.sql.measures import Additive, RowCount, Sensitivity, sensitivity
from hubbub.sql.noise_budget import AdditiveNoise
from hubbub.sql.relations import Project, Scan
from hubbub.sql.split import portions

Norm = Literal["l1", "l2"]
VectorNoise = AdditiveNoise | EuclideanNoise
Integers = NDArray[np.int64]

_LEVEL = Fraction(95, 100)
#: How far the mean of rows is from that of their integers at most, in steps: all rows may be rounded one way. For a
#: covariance it is four times that at most: products once, the product of two means twice, and where n·C is rounded.
_ROUNDED = 0.501
_COUNTED = 0.1  #: share of the budget for the number of rows, where it is not public


def mean_sensitivity(*, size: int, gamma: Fraction) -> Fraction:
    """Bound how far the mean of n vectors of norm at most γ moves when one is replaced, in that norm.

    Theorem (Sensitivity of a mean vector). It is 2γ/n, attained by two opposite vectors of norm γ.
    Proof    The means differ by (w − v)/n, and ‖w − v‖ ≤ ‖w‖ + ‖v‖ ≤ 2γ.
    Tested   tests/analyses/programs/test_mean_vector.py::test_mean_vector_moves_by_two_gamma_over_n
    """
    return 2 * gamma / size


def covariance_sensitivity(*, size: int, gamma: Fraction, dimensions: int) -> Fraction:
    """Bound how far avg(v·vᵀ) − μ·μᵀ moves in L1 over its entries, when one of n vectors of L1 norm ≤ γ is replaced.

    Theorem (Sensitivity of a covariance matrix). It is 6γ²(n−1)/n² for two dimensions or more, and 4γ²(n−1)/n² for one;
    both are attained. So 6γ²/n always holds, and 8γ²/n, as first printed, is loose.
    Proof    n²·C = Σ_{i<j} (v_i − v_j)(v_i − v_j)ᵀ. Replacing v by w changes the n−1 terms with it, each by
             (w−u)(w−u)ᵀ − (v−u)(v−u)ᵀ = wwᵀ − vvᵀ − (w−v)uᵀ − u(w−v)ᵀ, whose L1 norm is at most 2γ² + 2γ·γ + 2γ·γ.
             In one dimension it is |(w−u)² − (v−u)²| ≤ (2γ)². Attained by u = −γe₁ for all others, w = γe₁ and
             v = γe₂, or v = −γ in one dimension.
    Tested   tests/analyses/programs/test_mean_vector.py::test_covariance_moves_by_six_gamma_squared_over_n
    """
    return (6 if dimensions > 1 else 4) * gamma * gamma * (size - 1) / Fraction(size * size)


def of_l1_sums(inputs: ProgramInput, dimensions: int) -> Sensitivity:
    """Bound the sums of vectors of L1 norm at most 1 in steps: roundings add at most ½ a coordinate."""
    most = STEPS + dimensions // 2 + 2
    return over_cells(most, most**2, inputs.contribution_bounds(1), inputs.relation)


def of_l1_products(inputs: ProgramInput, dimensions: int) -> Sensitivity:
    """Bound the sums of the products i ≤ j of such vectors: their L1 norm is at most ‖y‖₁² ≤ 1, and roundings."""
    most = STEPS + dimensions * (dimensions + 1) // 4 + 3
    return over_cells(most, most**2, inputs.contribution_bounds(1), inputs.relation)


def of_public_covariance(dimensions: int) -> int:
    """Bound how far n·C moves in L1, in steps, when one of n rows is replaced, whatever n is.

    Theorem (Covariance in steps). Let k be the integers of a row in steps of 1/S, ‖k‖₁ ≤ S + d/2 + 1, and p_ij the
    rounded products S·y_i·y_j. Then Σp − ⌊Σk·Σkᵀ/(nS)⌋ moves by at most f·(S + d + 4) + 2d² + 2d + 4, with f = 6, or
    4 for d = 1.
    Proof    With p = k·kᵀ/S exactly it moves by f·(S + d/2 + 1)²/S·(n−1)/n (Sensitivity of a covariance matrix, with
             γ = (S + d/2 + 1)/S), which is at most f·(S + d + 4) for d ≤ 64. Each p_ij is within ½ + (|y_i| +
             |k_j|/S)/2 of k_i·k_j/S, in all d² entries of two rows d² + 2d + 2 at most; rounding down adds at most 1
             to each entry. Only i ≤ j are released.
    Tested   tests/analyses/programs/test_mean_vector.py::test_engine_integers_of_neighbors_are_within_the_sensitivity
    """
    return (6 if dimensions > 1 else 4) * (STEPS + dimensions + 4) + 2 * dimensions**2 + 2 * dimensions + 4


@dataclass(frozen=True, kw_only=True)
class VectorAnalysis(PreparedAnalysis):
    """What mean and covariance share: the rows, γ, and the noises (that of the count first, if there is one)."""

    inputs: ProgramInput
    box: Box
    gamma: Fraction
    norm: Norm
    noises: tuple[VectorNoise, ...]

    @property
    def public(self) -> bool:
        """Whether the number of rows is public."""
        return self.inputs.table.public_rows

    def integers(self, run: Run, *, squares: bool) -> Secret[Integers]:
        """Ask for the exact number of rows, sums and products, in steps."""
        shifted = [
            call("sub", self.inputs.column(name), real(centre))
            for name, centre in zip(self.box.names, self.box.centre, strict=True)
        ]
        vector = tuple(Col(f"z{j}", Kind.REAL, each.facts) for j, each in enumerate(shifted))
        rows = Project(self.inputs.rows, tuple((col.name, each) for col, each in zip(vector, shifted, strict=True)))
        size = len(vector)
        rel, columns = clipped(rows, vector, origin=[Fraction(0)] * size, units=[self.gamma] * size, norm=self.norm)
        measures: list[Additive] = [RowCount(), *totals(columns), *(products(columns) if squares else ())]
        exact = self.inputs.integers(run, rel, one_cell(), measures)
        return Secret(exact.through(lambda found: found[:, 0]))

    def count(self, exact: int, run: Run) -> tuple[float, float]:
        """Give the number of rows and the half width of its interval at the level that is left for it."""
        if self.public:
            return max(1.0, float(exact)), 0.0
        noise = self.noises[0]
        assert isinstance(noise, Laplace | Gaussian)  # noqa: S101 - for the type checker
        noisy = noise.sample(np.array([exact], dtype=np.int64), run.source)
        return max(1.0, float(noisy[0])), float(noise.error(1 - (1 - _LEVEL) / 4))


class MeanAnalysis(VectorAnalysis):
    """A prepared mean vector."""

    def run(self, run: Run) -> Published:
        """Publish the mean vector."""
        level = _LEVEL if self.public else 1 - (1 - _LEVEL) / 2

        def noisy(found: Integers) -> tuple[tuple[float, float], Floats]:
            count = self.count(int(found[0]), run)
            return count, np.asarray(self.noises[-1].sample(found[1:], run.source), dtype=np.float64)

        (count, slack), sums = self.integers(run, squares=False).through(noisy)
        scale = float(self.gamma) / STEPS
        half = float(self.noises[-1].error(level))
        low, high = _quotients(sums - half, sums + half, count - slack, count + slack)
        low, high = low - _ROUNDED, high + _ROUNDED
        middle = self.box.middle
        mean, low, high = middle + sums / count * scale, middle + low * scale, middle + high * scale
        run.progress(1.0, "done")
        outputs = (
            Output("column", "text", list(self.box.names)),
            Output("mean", "real", mean.tolist(), low.tolist(), high.tolist()),
        )
        return Published(outputs, {"columns": list(self.box.names), "count": count, "mean": mean.tolist()})


class CovarianceAnalysis(VectorAnalysis):
    """A prepared covariance matrix."""

    def run(self, run: Run) -> Published:
        """Publish the covariance matrix."""
        size = len(self.box.names)
        values, low, high = self.integers(run, squares=True).through(
            lambda found: self._public(found, run) if self.public else self._noisy(found, run)
        )
        run.progress(1.0, "done")
        scale = float(self.gamma) ** 2
        full = [_symmetric(each * scale, size) for each in (values, low, high)]
        outputs = [
            Output("column", "text", list(self.box.names)),
            *(
                Output(f"covariance with {name}", "real", *(matrix[:, j].tolist() for matrix in full))
                for j, name in enumerate(self.box.names)
            ),
        ]
        return Published(tuple(outputs), {"columns": list(self.box.names), "covariance": full[0].tolist()})

    def _public(self, found: Integers, run: Run) -> tuple[Floats, Floats, Floats]:
        """Add noise to n·C, computed from exact integers."""
        size, n = len(self.box.names), max(1, int(found[0]))
        sums, upper = [int(each) for each in found[1 : size + 1]], [int(each) for each in found[size + 1 :]]
        pairs = [(i, j) for i in range(size) for j in range(i, size)]
        exact = [p - sums[i] * sums[j] // (n * STEPS) for p, (i, j) in zip(upper, pairs, strict=True)]
        noise = self.noises[-1]
        noisy = np.asarray(noise.sample(np.array(exact, dtype=np.int64), run.source), dtype=np.float64)
        half = float(noise.error(_LEVEL)) + 4 * _ROUNDED * n
        return noisy / STEPS / n, (noisy - half) / STEPS / n, (noisy + half) / STEPS / n

    def _noisy(self, found: Integers, run: Run) -> tuple[Floats, Floats, Floats]:
        """Add noise to count, sums and products, and bound what follows from all that they may be."""
        size, level = len(self.box.names), 1 - (1 - _LEVEL) / 4
        count, slack = self.count(int(found[0]), run)
        sums, upper = (
            np.asarray(noise.sample(part, run.source), dtype=np.float64) / STEPS
            for noise, part in zip(self.noises[1:], (found[1 : size + 1], found[size + 1 :]), strict=True)
        )
        wide, deep = (float(noise.error(level)) / STEPS for noise in self.noises[1:])
        rounded = _ROUNDED / STEPS
        rows, columns = np.triu_indices(size)
        means = sums / count
        low, high = _quotients(sums - wide, sums + wide, count - slack, count + slack)
        low, high = np.clip(low - rounded, -1, 1), np.clip(high + rounded, -1, 1)
        corners = [a[rows] * b[columns] for a in (low, high) for b in (low, high)]
        least, most = _quotients(upper - deep, upper + deep, count - slack, count + slack)
        values = upper / count - means[rows] * means[columns]
        return values, least - rounded - np.max(corners, axis=0), most + rounded - np.min(corners, axis=0)


def mean_vector(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    gamma: Fraction | None = None,
    norm: Norm = "l1",
    noise: Literal["laplace", "gaussian", "euclidean"] | None = None,
) -> MeanAnalysis:
    """Prepare the mean of vectors that are clipped to a norm.

    gamma  the largest norm of a row about the middle of its bounds (default: that of the bounds, which clips nothing)
    norm   l1 or l2
    noise  laplace, gaussian, or euclidean: noise that decays with the Euclidean distance, without δ (norm l2)

    Theorem (Noisy mean vector). The mean is a function of the noisy sum and of n, which is public where neighbors
    differ in the contents of one row and noisy elsewhere. It costs what these noises cost.
    Proof    A row adds integers of norm at most S + roundings, so one replaced row moves the sum by twice that: 2γ in
             the units of the columns, hence the mean by 2γ/n (Sensitivity of a mean vector).
    Assumes  with a public n, a NULL counts as the middle of its bounds; elsewhere rows with NULL are left out.
    Charges  the noise on the sum, and on n where it is not public.
    Error    stated intervals hold for the clipped rows, and contain the rounding of rows; what γ clips is not in them.
    Tested   tests/analyses/programs/test_mean_vector.py::test_answers_are_those_of_numpy_where_noise_is_negligible
             tests/analyses/programs/test_mean_vector.py::test_intervals_contain_the_rounding_of_many_equal_rows
    """
    inputs, shape, most = _vectors(setting, table, columns, gamma, norm)
    size = len(shape.names)
    summed = of_l1_sums(inputs, size) if norm == "l1" else of_sums(size, inputs.contribution_bounds(1), inputs.relation)
    counted = sensitivity(RowCount(), (inputs.contribution_bounds(1),), inputs.relation)
    noises: tuple[VectorNoise, ...]
    if noise == "euclidean":
        if norm != "l2" or size > MAX_DIMENSIONS:
            raise QueryError(
                "HB572",
                f"Euclidean noise needs norm => 'l2' and at most {MAX_DIMENSIONS} columns.",
                "Use norm => 'l2', or noise => 'laplace'.",
            )
        parts = portions(setting.epsilon, [1.0] if inputs.table.public_rows else [_COUNTED, 1 - _COUNTED])
        distance = -(-sqrt(Fraction(summed.l2_squared))[1] // 1)
        vector = EuclideanNoise.from_epsilon(dimensions=size, sensitivity=int(distance), epsilon=parts[-1])
        noises = (vector,)
        if not inputs.table.public_rows:
            noises = (Laplace.from_epsilon(sensitivity=counted.l1, epsilon=parts[0]), vector)
        event, kind, delta = _composed(noises), "euclidean", Fraction(0)
    else:
        public = inputs.table.public_rows
        requests = [NoiseRequest(summed, 1.0)] if public else [NoiseRequest(counted, 0.1), NoiseRequest(summed, 0.9)]
        allocation = allocate_budget(setting, requests, kind=noise)
        noises, event, kind, delta = allocation.noises, allocation.event, allocation.kind, allocation.delta
    half = float(noises[-1].error(_LEVEL)) * float(most) / STEPS / TYPICAL_ROWS
    return MeanAnalysis(
        protection=inputs.protection,
        epsilon=setting.epsilon,
        delta=delta,
        event=event,
        noise=kind,
        derivation=(*_lines(inputs, most, norm), f"mean vector: one row replaced moves it by 2γ/n, γ = {brief(most)}"),
        expected=tuple(Expected(f"mean of {name}", half, TYPICAL_ROWS, half / float(most)) for name in shape.names),
        inputs=inputs,
        box=shape,
        gamma=most,
        norm=norm,
        noises=noises,
    )


def covariance(
    setting: Setting, *, table: str, columns: list[str], gamma: Fraction | None = None
) -> CovarianceAnalysis:
    """Prepare the covariance matrix of vectors that are clipped to an L1 norm of at most γ.

    gamma  the largest L1 norm of a row about the middle of its bounds (default: that of the bounds: nothing is clipped)

    Theorem (Noisy covariance matrix). With a public n, Laplace noise for 6γ²/n (4γ²/n for one column) on the upper
    triangle is ε-private. Elsewhere number, sums and products of rows are measured, and cost what their noises cost.
    Proof    Covariance in steps; and for the other case the norms of sums and products of vectors of norm 1.
    Assumes  with a public n, a NULL counts as the middle of its bounds; elsewhere rows with NULL are left out.
    Charges  one noise with a public n; three elsewhere.
    Error    stated intervals hold for the clipped rows, and contain the rounding of rows; what γ clips is not in them.
    Tested   tests/analyses/programs/test_mean_vector.py::test_answers_are_those_of_numpy_where_noise_is_negligible
             tests/analyses/programs/test_mean_vector.py::test_intervals_contain_the_rounding_of_many_equal_rows
    """
    inputs, shape, most = _vectors(setting, table, columns, gamma, "l1")
    size = len(shape.names)
    noises: tuple[VectorNoise, ...]
    if inputs.table.public_rows:
        moved = of_public_covariance(size)
        noises = (Laplace.from_epsilon(sensitivity=moved, epsilon=setting.epsilon),)
        event, kind, delta = _composed(noises), "laplace", Fraction(0)
    else:
        counted = sensitivity(RowCount(), (inputs.contribution_bounds(1),), inputs.relation)
        needs = (counted, of_l1_sums(inputs, size), of_l1_products(inputs, size))
        requests = [NoiseRequest(each, part) for each, part in zip(needs, (0.1, 0.3, 0.6), strict=True)]
        allocation = allocate_budget(setting, requests)
        noises, event, kind, delta = allocation.noises, allocation.event, allocation.kind, allocation.delta
    half = float(noises[-1].error(_LEVEL)) * float(most) ** 2 / STEPS / TYPICAL_ROWS
    return CovarianceAnalysis(
        protection=inputs.protection,
        epsilon=setting.epsilon,
        delta=delta,
        event=event,
        noise=kind,
        derivation=(
            *_lines(inputs, most, "l1"),
            f"covariance matrix: one row replaced moves it by {6 if size > 1 else 4}γ²/n in L1, γ = {brief(most)}",
        ),
        expected=(Expected("covariance", half, TYPICAL_ROWS, half / float(most) ** 2),),
        inputs=inputs,
        box=shape,
        gamma=most,
        norm="l1",
        noises=noises,
    )


def _vectors(
    setting: Setting, table: str, names: Sequence[str], gamma: Fraction | None, norm: Norm
) -> tuple[ProgramInput, Box, Fraction]:
    """Prepare the rows, their box and γ; with a public n no row is left out."""
    inputs = program_input(setting, table, names)
    shape = box(inputs, inputs.names)
    if inputs.table.public_rows:
        filled = tuple(
            call("coalesce", call("mul", col, real(1)), real(centre))
            for col, centre in zip(inputs.columns, shape.centre, strict=True)
        )
        columns = tuple(Col(col.name, Kind.REAL, each.facts) for col, each in zip(inputs.columns, filled, strict=True))
        outputs = tuple((col.name, each) for col, each in zip(columns, filled, strict=True))
        scan = Scan(inputs.table, inputs.columns, inputs.names)
        inputs = replace(inputs, columns=columns, rows=Project(scan, outputs))
    largest = sum(shape.half, Fraction(0)) if norm == "l1" else sqrt(sum((h * h for h in shape.half), Fraction(0)))[1]
    most = largest if gamma is None else numbers.in_range(gamma, "gamma", Fraction(1, 10**9), Fraction(10**15))
    return inputs, shape, Fraction(ceil(most * 10**9), 10**9)  # not less, which would clip


def _lines(inputs: ProgramInput, gamma: Fraction, norm: Norm) -> list[str]:
    lines = inputs.lines()
    if inputs.table.public_rows:
        lines[0] = f"scan {inputs.table.name}: all rows; a NULL counts as the middle of its bounds"
        lines.append("n is public: neighbors have the same number of rows")
    return [*lines, f"each row, about the middle of its bounds, is clipped to {norm.upper()} norm γ = {brief(gamma)}"]


def _composed(noises: Sequence[VectorNoise]) -> Event:
    return Composed(tuple((noise.event, 1) for noise in noises))


def _quotients(low: Floats, high: Floats, fewest: float, most: float) -> tuple[Floats, Floats]:
    """Bound the quotients of numbers in [low, high] and a count in [fewest, most], of at least 1."""
    fewest, most = max(1.0, fewest), max(1.0, most)
    return np.where(low < 0, low / fewest, low / most), np.where(high > 0, high / fewest, high / most)


def _symmetric(upper: Floats, size: int) -> Floats:
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T
