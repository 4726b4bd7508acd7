"""Attack on crowd sanitizers, compared with a differentially private table of the same rows (Chawla and others 2005).

Two measures: how often a guess isolates a person by the sanitizers' own definition, and how often an adversary who
knows all other rows can tell which of two rows is in the data. Differential privacy limits the latter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.release import Release
from hubbub.attacks.base import (
    AttackFinding,
    AttackStudy,
    Fact,
    Progress,
    ceiling,
    describe_findings,
    no_progress,
    percent,
)
from hubbub.attacks.game import Bits, flip, guess_from, score_guesses
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, laplace, open_protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.crowd.disclaimers import Kind
from hubbub.crowd.histogram import RecursiveHistogram, build_histogram
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.crowd.perturbation import perturb
from hubbub.crowd.points import Points, ScaledColumn, make_points
from hubbub.crowd.sanitizers import SanitizedData, bin_shares, category_shares, sanitize
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

#: Maximum columns, bins per column and cells of the contingency table for comparison.
MAX_COLUMNS, MAX_BINS, MAX_CELLS = 8, 10, 20_000
_MAX_ROWS = 500
_TARGETS: tuple[tuple[str, Kind], ...] = (
    ("recursive histogram", "histogram"),
    ("perturbed rows", "ball"),
    ("perturbed rows, shuffled", "ball"),
)


@dataclass(frozen=True, eq=False)
class PublishedCounts:
    """A published differentially private table of counts over bins of every column."""

    bins: int
    cells: NDArray[np.int64]

    @property
    def weighted(self) -> tuple[Floats, Floats]:
        """The midpoints of the bins, in the cube, with their counts."""
        middles = (np.arange(self.bins) + 0.5) / self.bins * 2 - 1
        centers = np.array(list(product(middles, repeat=self.cells.ndim)))
        return centers, np.maximum(self.cells.ravel(), 0).astype(np.float64)

    @property
    def guesses(self) -> Floats:
        """Guess the midpoint of every bin with a positive published count."""
        centers, counts = self.weighted
        return centers[counts >= 1]


@dataclass(frozen=True, slots=True)
class SanitizerComparison:
    """Utility, isolation and guarantee of one way to publish.

    means   error of a column's mean in standard deviations, averaged over the numeric columns; None without any
    shares  share of rows that a column's histogram (`bins_for`, or categories) counts wrongly, averaged over columns
    rates   share of each adversary's guesses that isolate a person
    """

    name: str
    epsilon: Fraction | None
    means: float | None
    shares: float
    rates: Mapping[str, Rate]


def bins_for(columns: int) -> int:
    """Return the number of bins per column in a table with this number of columns.

    >>> [bins_for(d) for d in (1, 4, 5, 8)]
    [10, 10, 7, 3]
    """
    return max(2, min(MAX_BINS, int(MAX_CELLS ** (1 / columns))))


def publish_counts(points: Points, *, epsilon: Fraction, singly: bool) -> tuple[PublishedCounts, Release]:
    """Publish the same points with hubbub: a contingency table of all columns in equal bins, at ε.

    With `singly`, each single column is also measured, at a share of ε; otherwise all cells have the same noise.
    """
    d = len(points.axes)
    if d > MAX_COLUMNS:
        raise AttackError("HB651", f"A comparison can have at most {MAX_COLUMNS} columns.", "Use fewer columns.")
    bins = bins_for(d)
    names = [f"c{index}" for index in range(d)]
    table = AttackTable("points", {name: points.values[:, index] for index, name in enumerate(names)})
    declared = {name: {"type": "real", "bounds": [-1, 1]} for name in names}
    axes = [{"column": name, "bins": bins} for name in names]
    with open_protected(table, epsilon=epsilon, declared=declared) as session:
        single = [[name] for name in names] if singly and d > 1 else []
        release = session.tabulate(TABLE, axes, marginals=[*single, names], epsilon=epsilon)
    cells = np.array(release.model["cells"], dtype=np.int64).reshape(release.model["shape"])
    return PublishedCounts(bins, cells), release


def compare(
    sanitized: SanitizedData, *, c: float, epsilons: Sequence[Fraction], progress: Progress = no_progress
) -> list[SanitizerComparison]:
    """Compare a sanitizer with differentially private tables of the same points."""
    points = sanitized.points
    progress(0.0, "guessing")
    crowd = NeighborIndex(points.values)
    comparisons = [_comparison(sanitized.kind, None, points, sanitized.weighted, sanitized.isolated(c=c))]
    for step, epsilon in enumerate(epsilons):
        progress((step + 1) / (len(epsilons) + 1), f"hubbub at ε = {brief(epsilon)}")
        table, _ = publish_counts(points, epsilon=epsilon, singly=True)
        rate = Rate.of(isolates_point(crowd, table.guesses, c=c, t=sanitized.t)) if len(table.guesses) else Rate(0, 0)
        comparisons.append(
            _comparison("hubbub, table of counts", epsilon, points, table.weighted, {"cell center": rate})
        )
    return comparisons


def _comparison(
    name: str, epsilon: Fraction | None, points: Points, weighted: tuple[Floats, Floats], rates: Mapping[str, Rate]
) -> SanitizerComparison:
    centers, weights = weighted
    total, bins = weights.sum(), bins_for(len(points.axes))
    off, wrong = [], []
    if not total:  # nothing was published: zero is as good a guess as any
        centers, weights, total = np.zeros((1, points.values.shape[1])), np.ones(1), 1.0
    for axis, at in points.spans:
        true, shown = points.values[:, at], centers[:, at]
        if isinstance(axis, ScaledColumn):
            mean = float(weights @ shown[:, 0] / total)
            off.append(abs(mean - true.mean()) / true.std())
            shares = [bin_shares(part, weight, bins) for part, weight in ((true, np.ones(len(true))), (shown, weights))]
        else:
            shares = [category_shares(part, weight) for part, weight in ((true, np.ones(len(true))), (shown, weights))]
        wrong.append(float(np.abs(shares[1] - shares[0]).sum() / 2))
    return SanitizerComparison(name, epsilon, float(np.mean(off)) if off else None, float(np.mean(wrong)), rates)


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    columns: tuple[str, ...] = (),
    people: int = 500,
    dimension: int = 3,
    crowd: int = 10,
    factor: float = 4.0,
    trials: int = 200,
) -> AttackStudy:
    """Publish data with a crowd sanitizer of 2005, then guess which of two people is in the data.

    Each trial takes two rows, adds one of them to the table by a coin flip, and lets an adversary who knows all other
    rows guess which. A recursive histogram publishes exact counts, which reveal it. Rows that are moved within their
    crowd (`crowd` is t) reveal it if they stay in order; shuffled rows hide better, but without a guarantee. hubbub's
    table of counts has noise and a maximum success rate. The study also reports the sanitizers' own measure: how many
    guesses are `factor` times nearer to a person than to a crowd, compared with blind guesses. Larger tables are
    sampled to 500 rows.
    """
    trials = numbers.integer(trials, "trials", 1, 10**5)
    crowd = numbers.integer(crowd, "crowd", 2, 10**6)
    points = _points(table, columns, people, dimension, generator)
    if len(points.values) < 4 * crowd:
        raise AttackError("HB651", f"The table has fewer than {4 * crowd} complete rows.", "Use a smaller crowd.")
    judge = NeighborIndex(points.values)
    blind = Rate.of(isolates_point(judge, generator.uniform(-1, 1, points.values.shape), c=factor, t=crowd))
    facts: dict[str, Fact] = {"isolated by blind guesses": percent(blind.share)}
    coins = flip(trials, generator)
    pairs = np.array([generator.choice(len(points.values), 2, replace=False) for _ in range(trials)])
    evidence = np.empty((len(_TARGETS), trials))
    for trial, (pair, coin) in enumerate(zip(pairs, coins, strict=True)):
        tables = _swapped(points.values, pair)
        evidence[0, trial] = _by_counts(tables, int(coin), crowd)
        evidence[1:, trial] = _by_position(tables, int(coin), crowd, generator)
        if trial % 10 == 0:
            progress(2 * trial / trials / 3, f"sanitizers, trial {trial + 1} of {trials}")
    findings = []
    for (name, kind), weighed in zip(_TARGETS, evidence, strict=True):
        rates = sanitize(points, kind, t=crowd, rng=generator).isolated(c=factor)
        shown = {f"isolated by {who}": percent(rate.share) for who, rate in rates.items()}
        findings.append(
            AttackFinding(name, None, score_guesses(guess_from(weighed, generator), coins), None, facts | shown)
        )
    for step, epsilon in enumerate(epsilons):
        progress((2 + step / len(epsilons)) / 3, f"hubbub at ε = {brief(epsilon)}")
        published, release = publish_counts(points, epsilon=epsilon, singly=False)
        rate = Rate.of(isolates_point(judge, published.guesses, c=factor, t=crowd))
        guesses = guess_from(
            _by_noise(_in_different_cells(points.values[pairs], published.bins), coins, laplace(release)), generator
        )
        shown = {"isolated by cell center": percent(rate.share)}
        findings.append(
            AttackFinding("hubbub", epsilon, score_guesses(guesses, coins), ceiling(epsilon), facts | shown)
        )
    progress(1.0, "done")
    return AttackStudy("isolation", "Isolation in crowd sanitizers", describe_findings(findings), tuple(findings))


def _points(
    table: AttackTable | None, columns: tuple[str, ...], people: int, dimension: int, generator: np.random.Generator
) -> Points:
    if table is None:
        people = numbers.integer(people, "people", 100, 20_000)
        d = numbers.integer(dimension, "dimension", 1, MAX_COLUMNS)
        given = {f"x{index + 1}": generator.uniform(0, 1, people) for index in range(d)}
        return make_points(given, list(given), rng=generator, bounds=dict.fromkeys(given, (0.0, 1.0)))
    table = table.take(generator.permutation(table.rows)[:_MAX_ROWS])
    numeric = [
        name for name, values in table.columns.items() if values.dtype.kind in "iuf" and len(np.unique(values)) > 2
    ]
    names = list(columns) or numeric[:4]
    if not names:
        raise AttackError("HB651", f"{table.name} has no numeric column.", "Use a table with numeric columns.")
    given = {name: table.column(name) for name in names}
    # spread integers over their steps, so that no two rows are equal
    steps = {name: 1.0 for name, values in given.items() if values.dtype.kind in "iu"}
    return make_points(given, names, rng=generator, steps=steps)


def _swapped(values: Floats, pair: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the table with only the first row of a pair, and the table with only the second."""
    others = np.delete(values, pair, axis=0)
    return np.vstack([others, values[pair[:1]]]), np.vstack([others, values[pair[1:]]])


def _by_counts(tables: tuple[Floats, Floats], truth: int, t: int) -> float:
    counts = [_published(build_histogram(each, t=t)) for each in tables]
    first, second = (float(np.array_equal(counts[truth], each)) for each in counts)
    return second - first


def _published(histogram: RecursiveHistogram) -> Floats:
    low, side, count = histogram.leaves
    cells = np.column_stack([low, side, count])
    return cells[np.lexsort(cells.T)]


def _by_position(
    tables: tuple[Floats, Floats], truth: int, t: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Compare the likelihood of the moved rows under the two tables: in order, and shuffled.

    In order, each row must lie in its own ball, and is likelier the smaller the ball. Shuffled, the balls of all rows
    form one density, and the rows are treated as samples from it: not the best evidence, but it needs no matching.
    """
    moved = perturb(tables[truth], "ball", t=t, rng=generator)
    ordered, shuffled = [], []
    for table in tables:
        radius = NeighborIndex(table).query(table, t=t).radius
        weight = -table.shape[1] * np.log(np.maximum(radius, 1e-12))
        in_ball = np.linalg.norm(moved - table, axis=1) <= radius * (1 + 1e-9)
        ordered.append(float(weight.sum()) if in_ball.all() else -np.inf)
        squares = np.square(moved).sum(axis=1)[:, None] + np.square(table).sum(axis=1) - 2 * moved @ table.T
        density = (squares <= np.square(radius) * (1 + 1e-9)) @ np.exp(weight)
        shuffled.append(float(np.log(density).sum()) if density.all() else -np.inf)
    return _difference(ordered), _difference(shuffled)


def _difference(logs: list[float]) -> float:
    """Return the second minus the first, or 0 if both are impossible because of rounding."""
    return 0.0 if logs[0] == logs[1] else logs[1] - logs[0]


def _in_different_cells(pairs: Floats, bins: int) -> Bits:
    """Return which pairs lie in two different cells."""
    at = np.clip(((pairs + 1) / 2 * bins).astype(np.int64), 0, bins - 1)
    return np.asarray((at[:, 0] != at[:, 1]).any(axis=1))


def _by_noise(different: Bits, coins: Bits, noise: Laplace) -> NDArray[np.int64]:
    """Compare the noisy counts of the two cells after subtracting everyone else; no other cell carries information.

    A count of 1 or more is evidence of 1/scale for the row, a count of 0 or less is as much against it.
    """
    truth = np.column_stack([~coins, coins]).astype(np.int64)
    left = noise.sample(truth.ravel(), system()).reshape(truth.shape) >= 1
    return np.where(different, left[:, 1].astype(np.int64) - left[:, 0].astype(np.int64), 0)
