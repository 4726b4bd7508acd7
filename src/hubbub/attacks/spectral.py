"""Spectral filtering: independent noise on correlated columns can be removed (Chawla et al. 2005, § 5).

Noise sampled independently for each number spreads evenly over all directions, while correlated data lies in few.
Projecting the noisy rows on the directions where they vary more than noise could keeps the data and removes most of the
noise (Kargupta, Datta, Wang and Sivakumar 2003).
"""

from collections.abc import Sequence
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, Score, ceiling, describe_findings, no_progress
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, open_protected
from hubbub.core import numbers
from hubbub.errors import AttackError

Floats = NDArray[np.float64]

#: Numbers are clipped to this many standard deviations before they are published or queried.
_REACH = 3.0
#: Integer steps per standard deviation in hubbub's sums.
_STEPS = 16


def filtered(noisy: Floats, deviation: float) -> Floats:
    """Project noisy rows on the directions in which they vary more than independent noise of this deviation does.

    For large n, the covariance of pure noise has no eigenvalue above σ²(1 + √(d/n))² (Marchenko and Pastur); larger
    eigenvalues come from the data. Along each kept direction the rows are shrunk to the share that is not noise.
    """
    mean = noisy.mean(axis=0)
    centered = noisy - mean
    rows, columns = centered.shape
    values, vectors = np.linalg.eigh(centered.T @ centered / rows)
    edge = deviation**2 * (1 + sqrt(columns / rows)) ** 2
    kept = values > edge
    share = np.where(kept, 1 - deviation**2 / np.where(kept, values, 1.0), 0.0)
    estimates: Floats = mean + (centered @ vectors * share) @ vectors.T
    return estimates


def simulate_rows(people: int, columns: int, factors: int, generator: np.random.Generator) -> Floats:
    """Simulate rows whose columns depend on a few factors, with mean 0 and standard deviation 1."""
    loads = generator.normal(size=(factors, columns))
    loads /= np.sqrt((loads**2).sum(axis=0))
    common = 0.95 * generator.normal(size=(people, factors)) @ loads
    return np.asarray(common + sqrt(1 - 0.95**2) * generator.normal(size=(people, columns)))


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    people: int = 300,
    columns: int = 32,
    traits: int = 2,
    noise: float = 2.0,
) -> AttackStudy:
    """Guess for each person whether the first column is above its median, from rows with noise on every number.

    people    number of rows (for a given table: at most this many random rows)
    columns   number of columns (for a given table: at most this many numeric columns)
    traits    number of factors behind the columns (simulated rows only)
    noise     naive noise, in standard deviations of a column
    """
    count = numbers.integer(people, "people", 20, 5000)
    width = numbers.integer(columns, "columns", 2, 50)
    if not 0 < noise <= 100:
        raise AttackError("HB643", "noise must be between 0 and 100.", "Use a value such as the default, 2.")
    truth = (
        simulate_rows(count, width, numbers.integer(traits, "traits", 1, width), generator)
        if table is None
        else _numeric(table, count, width, generator)
    )
    truth = np.clip(truth, -_REACH, _REACH)
    # simulated columns are symmetric about 0: a fair coin for each person
    side = truth[:, 0] > (0.0 if table is None else np.median(truth[:, 0]))
    published = truth + generator.normal(0, noise, truth.shape)
    findings = [
        AttackFinding(
            "independent noise, as published", None, _scored(published, side), None, _error(published, truth)
        ),
        _filtered("independent noise, filtered", published, truth, side, noise),
    ]
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"querying hubbub for everyone's numbers at ε = {float(epsilon):g}")
        answers, deviation = _query_rows(truth, epsilon)
        raw = AttackFinding("hubbub", epsilon, _scored(answers, side), ceiling(epsilon), _error(answers, truth))
        clean = _filtered("hubbub, filtered", answers, truth, side, deviation)
        findings += [raw, AttackFinding(clean.target, epsilon, clean.score, ceiling(epsilon), clean.facts)]
    sentences = (
        f"Noise of {noise:g} standard deviations on each of {truth.shape[1]} numbers hides less than it seems:"
        f" filtering reduces the mean error from {findings[0].facts['error']:.2f} to {findings[1].facts['error']:.2f}"
        " standard deviations.",
        "hubbub calibrates its noise to a person's whole row, so filtering does not defeat it.",
    )
    return AttackStudy("spectral", "Spectral filtering", (*sentences, *describe_findings(findings)), tuple(findings))


def _numeric(table: AttackTable, count: int, width: int, generator: np.random.Generator) -> Floats:
    names = [
        name
        for name, values in table.columns.items()
        if values.dtype.kind in "iuf" and np.isfinite(values).all() and float(np.std(values)) > 0
    ][:width]
    if len(names) < 2 or table.rows < 20:
        raise AttackError("HB651", f"{table.name} has fewer than 2 numeric columns or 20 rows.", "Use another table.")
    rows = generator.permutation(table.rows)[:count]
    chosen = np.stack([table.column(name)[rows].astype(np.float64) for name in names], axis=1)
    spread = chosen.std(axis=0)
    if not (spread > 0).all():
        raise AttackError("HB651", f"A column of {table.name} is constant in the sampled rows.", "Use more people.")
    return np.asarray((chosen - chosen.mean(axis=0)) / spread)


def _query_rows(truth: Floats, epsilon: Fraction) -> tuple[Floats, float]:
    """Query every person's numbers, one sum each, at ε in total; also return the standard deviation of the noise."""
    count, width = truth.shape
    steps = np.rint(truth * _STEPS).astype(np.int64)
    limit = int(_REACH * _STEPS)
    names = [f"c{index}" for index in range(width)]
    people_table = AttackTable("people", {"person": np.arange(count)} | dict(zip(names, steps.T, strict=True)))
    declared = {name: {"type": "integer", "bounds": [-limit, limit]} for name in names}
    sums = ", ".join(f"sum({name}) AS {name}" for name in names)
    with open_protected(people_table, epsilon=epsilon, declared=declared) as session:
        release = session.query(f"SELECT person, {sums} FROM {TABLE} GROUP BY person", epsilon=epsilon, raw=True)  # noqa: S608
    rows = np.array(release.rows, dtype=np.float64)
    answers = rows[np.argsort(rows[:, 0]), 1:] / _STEPS
    # from the confidence interval: 95% of Laplace noise is within 2.996 scales; its standard deviation is √2 scales
    output = next(each for each in release.outputs if each.name == names[0])
    low, high = (float(str((ends or ("nan",))[0])) for ends in (output.low, output.high))
    return answers, sqrt(2) * (high - low) / 2 / -log(0.05) / _STEPS


def _scored(rows: Floats, side: NDArray[np.bool_]) -> Score:
    guess = rows[:, 0] > np.median(rows[:, 0])
    return Score(int((guess == side).sum()), len(side), 0.5)


def _error(rows: Floats, truth: Floats) -> dict[str, float | int | str]:
    return {"columns": truth.shape[1], "error": float(np.abs(rows - truth).mean())}


def _filtered(target: str, rows: Floats, truth: Floats, side: NDArray[np.bool_], deviation: float) -> AttackFinding:
    estimates = filtered(rows, deviation)
    return AttackFinding(target, None, _scored(estimates, side), None, _error(estimates, truth))
