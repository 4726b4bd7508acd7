"""Crowd sanitizers under attack, beside a differentially private table of the same rows (Chawla and others 2005).

Two questions. Does a guess single somebody out, as the sanitizers' own definition has it? And which of two rows is in
the data, to somebody who knows all the others: the question that differential privacy bounds, and that exact counts
answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.release import Release
from hubbub.attacks.base import Fact, Finding, Progress, Study, ceiling, compared, percent, unheard
from hubbub.attacks.game import Bits, flip, scored, settled
from hubbub.attacks.table import Table
from hubbub.attacks.target import TABLE, laplace, protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.crowd.disclaimers import Kind
from hubbub.crowd.histogram import Histogram, recursive
from hubbub.crowd.isolation import Rate, point
from hubbub.crowd.neighbors import Crowd, Floats
from hubbub.crowd.perturb import perturbed
from hubbub.crowd.points import Points, points
from hubbub.crowd.sanitize import Sanitized, binned, sanitize
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

#: A contingency table beside a sanitizer has at most so many columns, bins a column and cells.
MOST_COLUMNS, MOST_BINS, MOST_CELLS = 8, 10, 20_000
_MOST_ROWS = 500
_TARGETS: tuple[tuple[str, Kind], ...] = (
    ("recursive histogram", "histogram"),
    ("rows moved in their crowd", "ball"),
    ("the same, shuffled", "ball"),
)


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A differentially private table of counts over bins of every column, as it was published."""

    bins: int
    cells: NDArray[np.int64]

    @property
    def weighted(self) -> tuple[Floats, Floats]:
        """The middles of the bins, in the cube, with their counts."""
        middles = (np.arange(self.bins) + 0.5) / self.bins * 2 - 1
        places = np.array(list(product(middles, repeat=self.cells.ndim)))
        return places, np.maximum(self.cells.ravel(), 0).astype(np.float64)

    @property
    def guesses(self) -> Floats:
        """Guess the middle of every bin that is said to hold somebody."""
        places, counts = self.weighted
        return places[counts >= 1]


@dataclass(frozen=True, slots=True)
class Beside:
    """One way to publish, and what it is worth: how exact, who is singled out, and what it promises.

    means   error of the mean of a column, in its standard deviations, on average over the columns
    shares  share of rows that a column's histogram (`bins_for`) counts in the wrong bin, on average over the columns
    rates   share of guesses of each adversary that single somebody out
    """

    name: str
    epsilon: Fraction | None
    means: float
    shares: float
    rates: Mapping[str, Rate]


def bins_for(columns: int) -> int:
    """Give how many bins a column gets in a table of so many columns.

    >>> [bins_for(d) for d in (1, 4, 5, 8)]
    [10, 10, 7, 3]
    """
    return max(2, min(MOST_BINS, int(MOST_CELLS ** (1 / columns))))


def tabulated(made: Points, *, epsilon: Fraction, singly: bool) -> tuple[Tabulated, Release]:
    """Publish the same points by hubbub: a contingency table of all columns in equal bins, at the whole of ε.

    With `singly` each column by itself is measured, too, at a share of ε; without, all cells have one noise.
    """
    d = len(made.axes)
    if d > MOST_COLUMNS:
        raise AttackError(
            "HB651", f"a table beside a sanitizer has at most {MOST_COLUMNS} columns.", "Compare on fewer of them."
        )
    bins = bins_for(d)
    names = [f"c{place}" for place in range(d)]
    table = Table("points", {name: made.values[:, place] for place, name in enumerate(names)})
    declared = {name: {"type": "real", "bounds": [-1, 1]} for name in names}
    axes = [{"column": name, "bins": bins} for name in names]
    with protected(table, epsilon=epsilon, declared=declared) as session:
        single = [[name] for name in names] if singly and d > 1 else []
        release = session.tabulate(TABLE, axes, marginals=[*single, names], epsilon=epsilon)
    cells = np.array(release.model["cells"], dtype=np.int64).reshape(release.model["shape"])
    return Tabulated(bins, cells), release


def beside(
    sanitized: Sanitized, *, c: float, epsilons: Sequence[Fraction], progress: Progress = unheard
) -> list[Beside]:
    """Put a sanitizer beside differentially private tables of the same points."""
    made = sanitized.points
    progress(0.0, "guessing")
    crowd = Crowd(made.values)
    found = [_judged(sanitized.kind, None, made, sanitized.weighted, sanitized.isolated(c=c))]
    for place, epsilon in enumerate(epsilons):
        progress((place + 1) / (len(epsilons) + 1), f"hubbub at ε = {brief(epsilon)}")
        table, _ = tabulated(made, epsilon=epsilon, singly=True)
        rate = Rate.of(point(crowd, table.guesses, c=c, t=sanitized.t)) if len(table.guesses) else Rate(0, 0)
        found.append(_judged("hubbub, table of counts", epsilon, made, table.weighted, {"cell centre": rate}))
    return found


def _judged(
    name: str, epsilon: Fraction | None, made: Points, weighted: tuple[Floats, Floats], rates: Mapping[str, Rate]
) -> Beside:
    places, weights = weighted
    total = weights.sum()
    if total:
        mean = weights @ places / total
        bins = bins_for(len(made.axes))
        truth = binned(made.values, np.ones(len(made.values)), bins)
        wrong = np.abs(binned(places, weights, bins) - truth).sum(axis=1) / 2
    else:
        mean, wrong = np.zeros(len(made.axes)), np.ones(len(made.axes))
    off = np.abs(mean - made.values.mean(axis=0)) / made.values.std(axis=0)
    return Beside(name, epsilon, float(off.mean()), float(wrong.mean()), rates)


def study(
    table: Table | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    columns: tuple[str, ...] = (),
    people: int = 500,
    dimension: int = 3,
    crowd: int = 10,
    factor: float = 4.0,
    trials: int = 200,
) -> Study:
    """Publish by a crowd sanitizer of 2005, then say which of two people is in the data.

    Each trial takes two rows, puts one of them into the table by a coin, and lets somebody who knows all the other rows
    guess which. A recursive histogram publishes exact counts, so they read it off. Rows that were moved within their
    crowd (`crowd` is t) betray it where they stay in order; shuffled they hide better, and nothing says how well.
    hubbub's table of counts has noise, and a ceiling. Beside it stands the sanitizers' own measure: how many guesses
    are `factor` times nearer to somebody than to a crowd; blind guesses at random places are, too, in few columns. Of a
    larger table 500 random rows are taken.
    """
    trials = numbers.integer(trials, "trials", 1, 10**5)
    crowd = numbers.integer(crowd, "crowd", 2, 10**6)
    made = _points(table, columns, people, dimension, generator)
    if len(made.values) < 4 * crowd:
        raise AttackError(
            "HB651", f"the table has fewer than {4 * crowd} rows with all numbers.", "Take a smaller crowd."
        )
    judge = Crowd(made.values)
    blind = Rate.of(point(judge, generator.uniform(-1, 1, made.values.shape), c=factor, t=crowd))
    facts: dict[str, Fact] = {"singled out by blind guesses": percent(blind.share)}
    coins = flip(trials, generator)
    pairs = np.array([generator.choice(len(made.values), 2, replace=False) for _ in range(trials)])
    evidence = np.empty((len(_TARGETS), trials))
    for trial, (pair, coin) in enumerate(zip(pairs, coins, strict=True)):
        tables = _swapped(made.values, pair)
        evidence[0, trial] = _by_counts(tables, int(coin), crowd)
        evidence[1:, trial] = _by_place(tables, int(coin), crowd, generator)
        if trial % 10 == 0:
            progress(2 * trial / trials / 3, f"sanitizers, trial {trial + 1} of {trials}")
    findings = []
    for (name, kind), weighed in zip(_TARGETS, evidence, strict=True):
        told = sanitize(made, kind, t=crowd, rng=generator).isolated(c=factor)
        shown = {f"singled out by {who}": percent(rate.share) for who, rate in told.items()}
        findings.append(Finding(name, None, scored(settled(weighed, generator), coins), None, facts | shown))
    for place, epsilon in enumerate(epsilons):
        progress((2 + place / len(epsilons)) / 3, f"hubbub at ε = {brief(epsilon)}")
        published, release = tabulated(made, epsilon=epsilon, singly=False)
        rate = Rate.of(point(judge, published.guesses, c=factor, t=crowd))
        guesses = settled(_by_noise(_apart(made.values[pairs], published.bins), coins, laplace(release)), generator)
        shown = {"singled out by cell centre": percent(rate.share)}
        findings.append(Finding("hubbub", epsilon, scored(guesses, coins), ceiling(epsilon), facts | shown))
    progress(1.0, "done")
    return Study("isolation", "Blending in with the crowd is no promise", compared(findings), tuple(findings))


def _points(
    table: Table | None, columns: tuple[str, ...], people: int, dimension: int, generator: np.random.Generator
) -> Points:
    if table is None:
        people = numbers.integer(people, "people", 100, 20_000)
        d = numbers.integer(dimension, "dimension", 1, MOST_COLUMNS)
        given = {f"x{place + 1}": generator.uniform(0, 1, people) for place in range(d)}
        return points(given, list(given), rng=generator, bounds=dict.fromkeys(given, (0.0, 1.0)))
    table = table.take(generator.permutation(table.rows)[:_MOST_ROWS])
    numeric = [
        name for name, values in table.columns.items() if values.dtype.kind in "iuf" and len(np.unique(values)) > 2
    ]
    names = list(columns) or numeric[:4]
    if not names:
        raise AttackError("HB651", f"no column of {table.name} holds numbers.", "This attack is about numbers.")
    given = {name: table.column(name) for name in names}
    # whole numbers are spread over their steps, so that no two rows are one point
    steps = {name: 1.0 for name, values in given.items() if values.dtype.kind in "iu"}
    return points(given, names, rng=generator, steps=steps)


def _swapped(values: Floats, pair: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Give the table with the first of a pair in it, and the one with the second: all others stay."""
    others = np.delete(values, pair, axis=0)
    return np.vstack([others, values[pair[:1]]]), np.vstack([others, values[pair[1:]]])


def _by_counts(tables: tuple[Floats, Floats], truth: int, t: int) -> float:
    counts = [_published(recursive(each, t=t)) for each in tables]
    first, second = (float(np.array_equal(counts[truth], each)) for each in counts)
    return second - first


def _published(histogram: Histogram) -> Floats:
    low, side, count = histogram.leaves
    cells = np.column_stack([low, side, count])
    return cells[np.lexsort(cells.T)]


def _by_place(tables: tuple[Floats, Floats], truth: int, t: int, generator: np.random.Generator) -> tuple[float, float]:
    """Weigh where moved rows lie, for each of the two tables: first in their order, then shuffled.

    In order, each row must lie in its own ball, and is the likelier the smaller that is. Shuffled, the balls of all
    rows make one density, and the rows are taken as draws from it: not the best evidence, but it needs no matching.
    """
    moved = perturbed(tables[truth], "ball", t=t, rng=generator)
    ordered, shuffled = [], []
    for table in tables:
        radius = Crowd(table).reach(table, t=t).radius
        weight = -table.shape[1] * np.log(np.maximum(radius, 1e-12))
        own = np.linalg.norm(moved - table, axis=1) <= radius * (1 + 1e-9)
        ordered.append(float(weight.sum()) if own.all() else -np.inf)
        squares = np.square(moved).sum(axis=1)[:, None] + np.square(table).sum(axis=1) - 2 * moved @ table.T
        density = (squares <= np.square(radius) * (1 + 1e-9)) @ np.exp(weight)
        shuffled.append(float(np.log(density).sum()) if density.all() else -np.inf)
    return _more(ordered), _more(shuffled)


def _more(logs: list[float]) -> float:
    """Give the second less the first; where both are impossible (rounding), nothing."""
    return 0.0 if logs[0] == logs[1] else logs[1] - logs[0]


def _apart(pairs: Floats, bins: int) -> Bits:
    """Say which pairs lie in two cells."""
    at = np.clip(((pairs + 1) / 2 * bins).astype(np.int64), 0, bins - 1)
    return np.asarray((at[:, 0] != at[:, 1]).any(axis=1))


def _by_noise(apart: Bits, coins: Bits, noise: Laplace) -> NDArray[np.int64]:
    """Weigh, with everybody else subtracted, the noisy counts of the two cells: no other cell tells anything.

    A count of 1 or more speaks for the row by 1/scale, one of 0 or less against it by as much.
    """
    truth = np.column_stack([~coins, coins]).astype(np.int64)
    left = noise.sample(truth.ravel(), system()).reshape(truth.shape) >= 1
    return np.where(apart, left[:, 1].astype(np.int64) - left[:, 0].astype(np.int64), 0)
