"""k-means from noisy sums: each round is one query for the number of rows and the sum of vectors in every cell.

classic   the k-means of private programming (Dwork 2011): coordinates in [−1, 1], so a row changes counts and sums by
          d + 1 in total; N rounds with Laplace noise of (d + 1)·N/ε, or, if the number of rounds is unknown, ε/2, ε/4,
          … for one after the other. (The paper prints (d + 1)(ε/2), which is inverted.) The start is evenly spread.
moments   first the mean and covariance of all rows; the start is a k-means of points simulated from that normal
          distribution, and rows are clipped around that mean: a few rounds with much less noise.
grid      the start is a k-means of a noisy histogram: see `kmeans_grid`. The default for up to ten columns.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.clusters import (
    clustered,
    expected_centers,
    nearest,
    nearest_center,
    noisy_sums,
    public_generator,
    publish_centers,
)
from hubbub.analyses.programs.inputs import ProgramInput, program_input
from hubbub.analyses.programs.kmeans_grid import ROUNDS as GRID_ROUNDS
from hubbub.analyses.programs.kmeans_grid import GridKMeans, with_grid
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.moments import Z95, find, location_requests, measure, moment_requests
from hubbub.analyses.programs.vectors import STEPS, Box, Floats, box, clipped, of_box, of_sums, on_grid
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.reals import floor_to
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measures import RowCount, sensitivity
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

#: With more columns five axes show too little of the clusters, and the start from moments is better.
MAX_GRID_COLUMNS = 10
MAX_CENTRES = 1024
MAX_TERMS = 1 << 14  #: centers times columns, which the size of a round's SQL grows with
MAX_ROUNDS = 50
ROUNDS = 5  #: default of the variant with moments
HALVINGS = 8  #: later rounds would be almost entirely noise

_START = 0.06  #: share of the budget for the location of the rows, and again for their covariance
_MOVED = 0.01  #: assumed squared movement of a center in a round, in radii
_POINTS = 20_000


@dataclass(frozen=True, kw_only=True)
class ClassicKMeans(PreparedAnalysis):
    """Prepared classic k-means: the noise of each round is fixed, its cells are not."""

    inputs: ProgramInput
    box: Box
    k: int
    rounds: tuple[tuple[AdditiveNoise, AdditiveNoise], ...]  #: counts, sums
    halving: bool

    def run(self, run: Run) -> Published:
        """Start evenly spread and move centers to noisy means; by halving, while they move by more than the noise."""
        size = len(self.box.names)
        centres = _spread(self.k, size, public_generator(run))
        counts, halves = np.zeros(self.k), np.zeros(self.k)
        for place, noises in enumerate(self.rounds):
            rows, columns, cell = nearest(self.inputs, self.box, centres)
            counts, sums = noisy_sums(run, self.inputs, rows, columns, cell, self.k, noises)
            error = standard_deviation(noises[1]) / STEPS / np.maximum(counts, 1.0)
            held = counts > 2 * standard_deviation(noises[0])
            moved = np.where(held[:, None], sums / np.maximum(counts, 1.0)[:, None], centres)
            step = float(np.mean((moved - centres) ** 2))
            centres, halves = np.clip(moved, -1.0, 1.0), Z95 * error
            self._report(run, place)
            if self.halving and held.any() and step < 4 * float(np.mean(error[held] ** 2)):
                break  # the next round's noise has four times this variance
        for later in range(place + 1, len(self.rounds)):
            self._report(run, later)  # the visible steps follow from the call only, however early the rounds end
        return publish_centers(
            self.box, centres, counts, Z95 * standard_deviation(noises[0]), np.outer(halves, self.box.widths)
        )

    def _report(self, run: Run, place: int) -> None:
        run.progress((place + 1) / len(self.rounds), f"round {place + 1} of {len(self.rounds)}")


@dataclass(frozen=True, kw_only=True)
class MomentsKMeans(PreparedAnalysis):
    """Prepared k-means that starts from private moments."""

    inputs: ProgramInput
    box: Box
    k: int
    rounds: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Locate the rows, cluster simulated points like them, and move the centers to noisy means a few times."""
        size, noises = len(self.box.names), self.allocation.noises
        found = find(run, self.inputs, self.box, noises[:3])
        radius = float(np.sqrt(np.sum(found.spread**2))) * (1 + 1.4 / sqrt(size))
        units = np.full(size, radius)
        about = measure(run, self.inputs, self.box, noises[3:6], origin=found.mean, units=units)
        run.progress(1 / (self.rounds + 2), "found where the rows lie")
        generator = public_generator(run)
        points = _simulated(about.mean, about.covariance, max(2_000, min(_POINTS, 100 * self.k)), generator)
        points = np.clip(about.origin + about.units * points, -1.0, 1.0)
        centres = clustered(points, self.k, generator)
        counts = np.zeros(self.k)
        for place in range(self.rounds):
            rows, columns, cell = nearest(self.inputs, self.box, centres)
            near, pulled = clipped(
                rows, columns, origin=[on_grid(x) for x in about.origin], units=[on_grid(radius)] * size, kept=["cell"]
            )
            counts, sums = noisy_sums(run, self.inputs, near, pulled, cell, self.k, (noises[6], noises[7]))
            variance = (standard_deviation(noises[7]) / STEPS / np.maximum(counts, 1.0)) ** 2
            # between the noisy mean and the old center, weighted by their errors
            trust = np.where(counts > 1, _MOVED / (_MOVED + variance), 0.0)[:, None]
            before = (centres - about.origin) / radius
            moved = trust * (sums / np.maximum(counts, 1.0)[:, None]) + (1 - trust) * before
            centres = np.clip(about.origin + radius * moved, -1.0, 1.0)
            run.progress((place + 2) / (self.rounds + 2), f"round {place + 1} of {self.rounds}")
        errors = Z95 * np.sqrt(variance)[:, None] * radius * self.box.widths
        return publish_centers(self.box, centres, counts, Z95 * standard_deviation(noises[6]), errors)


def kmeans(
    setting: Setting, *, table: str, columns: list[str], k: int, rounds: int | None = None, method: str | None = None
) -> ClassicKMeans | MomentsKMeans | GridKMeans:
    """Prepare k-means.

    Theorem (k-means from noisy sums). With all noises fixed beforehand, the centres and counts of all rounds cost what
    the noises cost, whatever cells the rounds ask about.
    Proof    The cells of a round are a partition of the rows by earlier noisy answers. A row adds 1 to one cell's count
             and a vector to its sum: inside [−1, 1]^d (classic, L1 norm at most d, with the count d + 1 in all), or of
             norm at most 1 (moments). So every noise meets the sensitivity that it was made for, and fixed noises add
             up under adaptive choice of the cells.
    Charges  Together of all rounds' noises. With halving Σ ε/2ᵗ < ε, also where fewer rounds are run: they are paid.
    Error    a centre's noise is that of its sum over its count: (d + 1)·N/ε (classic) for each coordinate in [−1, 1].
    Tested   tests/analyses/programs/test_kmeans.py::test_classic_noise_has_the_scale_of_the_paper
             tests/analyses/programs/test_kmeans.py::test_what_is_drawn_is_what_is_charged
             tests/analyses/programs/test_kmeans.py::test_engine_sums_of_neighbors_are_within_the_sensitivities

    rounds   classic: NULL for an unknown number, by halving; moments: 5 by default; grid: 2 by default
    method   'grid', 'moments' or 'classic'; by default 'grid' for up to ten columns, and 'moments' for more
    """
    inputs = program_input(setting, table, columns)
    shape = box(inputs, inputs.names)
    size = len(shape.names)
    k = numbers.integer(k, "k", 1, MAX_CENTRES)
    if k * size > MAX_TERMS:
        raise QueryError("HB545", f"{k} centers of {size} columns are too many.", "Use fewer centers or columns.")
    if rounds is not None:
        rounds = numbers.integer(rounds, "rounds", 1, MAX_ROUNDS)
    if method == "classic":
        return _classic(setting, inputs, shape, k, rounds)
    if method not in (None, "grid", "moments"):
        raise QueryError("HB546", f"There is no method {method!r}.", "Use 'grid', 'moments' or 'classic'.")
    if method == "grid" or (method is None and size <= MAX_GRID_COLUMNS):
        return with_grid(setting, inputs, shape, k, rounds or GRID_ROUNDS)
    return _with_moments(setting, inputs, shape, k, rounds or ROUNDS)


def _classic(setting: Setting, inputs: ProgramInput, shape: Box, k: int, rounds: int | None) -> ClassicKMeans:
    size, contribution = len(shape.names), inputs.contribution_bounds(k)
    shares = [Fraction(1, 2**t) for t in range(1, HALVINGS + 1)] if rounds is None else [Fraction(1, rounds)] * rounds
    counted, summed_ = (
        sensitivity(RowCount(), (contribution,), inputs.relation),
        of_box(size, contribution, inputs.relation),
    )
    noises = []
    for share in shares:
        # each coordinate of a sum gets as much as the count: d + 1 equal parts
        most = min(Fraction(counted.l1), Fraction(summed_.l1, size)) / numbers.SCALE_MIN
        loss = _summable(min(setting.epsilon * share / (size + 1), most))  # at a huge ε, the least noise there is
        noises.append(
            (
                Laplace(sensitivity=counted.l1, scale=counted.l1 / loss),
                Laplace(sensitivity=summed_.l1, scale=summed_.l1 / (size * loss)),
            )
        )
    event: Event = Composed(tuple((noise.event, 1) for pair in noises for noise in pair))
    first = noises[0]
    how = f"{len(shares)} rounds" if rounds is not None else f"at most {HALVINGS} rounds, by halving"
    lines = [
        *inputs.lines(),
        f"{how}; each asks for counts and sums in {k} cells; coordinates in [−1, 1]: {size} + 1 moves in all",
        f"counts of the first round: {describe_noise(first[0])}",
        f"sums of the first round, in steps of 1/{STEPS}: {describe_noise(first[1])}",
    ]
    return ClassicKMeans(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=event,
        noise="laplace",
        derivation=tuple(lines),
        expected=expected_centers(shape, standard_deviation(noises[-1 if rounds else 0][1]) / STEPS),
        box=shape,
        k=k,
        rounds=tuple(noises),
        halving=rounds is None,
    )


def _with_moments(setting: Setting, inputs: ProgramInput, shape: Box, k: int, rounds: int) -> MomentsKMeans:
    """Split the budget: a center is sum/count, so its squared error is (d·σ² + ‖c‖²·τ²)/n² with noises σ and τ.

    With Gaussian noise of shares s and 1 − s that is least at s/(1 − s) = √d/‖c‖; a typical ‖c‖ is ¾ of the radius.
    """
    size, contribution = len(shape.names), inputs.contribution_bounds(k)
    rest = 1 - 2 * _START
    counts = rest / (1 + sqrt(size) / 0.75)
    needs = [
        *location_requests(inputs, size, _START),
        *moment_requests(inputs, size, _START),
        NoiseRequest(sensitivity(RowCount(), (contribution,), inputs.relation), counts, rounds),
        NoiseRequest(of_sums(size, contribution, inputs.relation), rest - counts, rounds),
    ]
    allocation = allocate_budget(setting, needs)
    labels = ("rows", "sums", "squares", "rows", "sums", "products", "counts of each round", "sums of each round")
    lines = [
        *inputs.lines(),
        f"start: where the rows lie, and their covariance ({_START:.0%} each); the start is a k-means of a crowd drawn "
        "from that normal law",
        f"{rounds} rounds; each asks for counts and sums in {k} cells, vectors pulled back to norm 1",
        *(f"{label}: {describe_noise(noise)}" for label, noise in zip(labels, allocation.noises, strict=True)),
    ]
    return MomentsKMeans(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=expected_centers(shape, standard_deviation(allocation.noises[7]) / STEPS * sqrt(size) / 3),
        box=shape,
        k=k,
        rounds=rounds,
        allocation=allocation,
    )


def _summable(loss: Fraction) -> Fraction:
    return loss if loss.denominator <= numbers.MAX_DENOMINATOR else floor_to(loss, 24)


def _simulated(mean: Floats, covariance: Floats, size: int, generator: np.random.Generator) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    drawn = generator.standard_normal((size, len(mean)))
    return np.asarray(mean + drawn @ (vectors * np.sqrt(np.maximum(values, 1e-9))).T)


def _spread(k: int, size: int, generator: np.random.Generator) -> Floats:
    """Spread centers evenly over the inner three quarters of the box."""
    return clustered(generator.uniform(-0.75, 0.75, (max(1_000, 20 * k), size)), k, generator)


@dataclass(frozen=True, slots=True)
class KMeans:
    """The model of published centers, with methods as in scikit-learn.

    Columns are clustered in units of their declared ranges. So distances are measured in the unit of the first column:
    those in another are divided by the ratio of its declared range to that of the first.
    """

    columns: tuple[str, ...]
    cluster_centers: Floats
    counts: tuple[int, ...]
    scale: Floats

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read them from a release."""
        model = model_of(release, "kmeans")
        scale = model.get("scale", [1.0] * len(model["columns"]))  # releases of older versions have none
        return cls(tuple(model["columns"]), np.array(model["centres"]), tuple(model["counts"]), np.array(scale))

    def predict(self, rows: Floats) -> NDArray[np.int64]:
        """Give the nearest center of each row."""
        return nearest_center(np.asarray(rows, dtype=float) / self.scale, self.cluster_centers / self.scale)

    def transform(self, rows: Floats) -> Floats:
        """Give the distance of each row from each center."""
        apart = (np.asarray(rows, dtype=float)[:, None, :] - self.cluster_centers) / self.scale
        return np.asarray(np.sqrt(np.sum(apart**2, axis=2)))

    def score(self, rows: Floats) -> float:
        """Give the negative mean squared distance from the nearest center."""
        points = np.asarray(rows, dtype=float)
        apart = (points - self.cluster_centers[self.predict(points)]) / self.scale
        return -float(np.mean(np.sum(apart**2, axis=1)))
