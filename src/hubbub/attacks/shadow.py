"""Membership in synthetic data by shadow models (Shokri et al. 2017; Stadler, Oprisanu and Troncoso 2022).

The attack generates synthetic data itself, from data with and without one person, learns to distinguish the two, and
then guesses which of the two a published table was made from. It knows everyone else, and the person is the most
unusual one: the worst case, which a guarantee must cover.
"""

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.release import Release
from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, ceiling, describe_findings, no_progress
from hubbub.attacks.game import flip, score_guesses
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, open_protected
from hubbub.core import numbers
from hubbub.curator.session import Session
from hubbub.errors import AttackError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

_RELEASES = ("mwem", "small_database", "counts")
#: Number of codes per column of a given table: the most common values, and one for all others.
_LEVELS = 4


def most_unusual(rows: Codes) -> int:
    """Return the row whose values are jointly the rarest."""
    rare = [-np.log(np.bincount(column)[column] / len(rows)) for column in rows.T]
    return int(np.argmax(np.sum(rare, axis=0)))


def features(rows: Codes, target: Codes) -> Floats:
    """Count the rows that equal the target in each subset of the columns; the last feature is the number of rows."""
    like = rows == target
    width = len(target)
    return np.array(
        [
            like[:, list(some)].all(axis=1).sum()
            for size in range(1, width + 1)
            for some in itertools.combinations(range(width), size)
        ]
        + [len(rows)],
        dtype=np.float64,
    )


def learned(shadows: Floats, inside: NDArray[np.bool_]) -> Callable[[Floats], NDArray[np.bool_]]:
    """Learn to distinguish features with and without the person: a linear discriminant with a small ridge."""
    middle, spread = shadows.mean(axis=0), shadows.std(axis=0) + 1e-9
    scaled = (shadows - middle) / spread
    within = sum(np.cov(scaled[inside == side].T, bias=True) for side in (False, True)) / 2
    shift = scaled[inside].mean(axis=0) - scaled[~inside].mean(axis=0)
    direction = np.linalg.solve(within + 0.1 * np.eye(len(shift)), shift)
    threshold = (scaled[inside].mean(axis=0) + scaled[~inside].mean(axis=0)) @ direction / 2

    def classify(features: Floats) -> NDArray[np.bool_]:
        return np.asarray((features - middle) / spread @ direction > threshold)

    return classify


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    people: int = 60,
    columns: int = 3,
    release: str = "mwem",
    shadows: int = 40,
    trials: int = 60,
) -> AttackStudy:
    """Guess from a synthetic table whether the most unusual person was in the data that it was made from.

    people    number of other people (for a given table: random rows)
    columns   number of columns (for a given table: its first ones)
    release   hubbub release to attack: mwem, small_database, or counts of all cells
    shadows   number of tables that the attack generates to learn from
    trials    number of published tables to attack
    """
    count = numbers.integer(people, "people", 10, 10_000)
    width = numbers.integer(columns, "columns", 2, 4)
    numbers.integer(shadows, "shadows", 10, 10_000)
    numbers.integer(trials, "trials", 1, 10_000)
    if release not in _RELEASES:
        raise AttackError("HB643", f"Unknown release {release[:40]!r}.", f"Use one of: {', '.join(_RELEASES)}.")
    rows = _simulate_rows(count + 1, width, generator) if table is None else _coded(table, count + 1, width, generator)
    index = most_unusual(rows)
    target, others = rows[index], np.delete(rows, index, axis=0)
    sides = np.arange(shadows) % 2 == 1, flip(trials, generator)

    def attacked(publish: Callable[[bool], Codes], target_name: str, epsilon: Fraction | None) -> AttackFinding:
        learning, trying = (np.array([features(publish(bool(side)), target) for side in each]) for each in sides)
        score = score_guesses(learned(learning, sides[0])(trying), sides[1])
        return AttackFinding(
            target_name,
            epsilon,
            score,
            None if epsilon is None else ceiling(epsilon),
            {
                "people": count,
                "shadow tables": shadows,
                "rows equal to the target": int((others == target).all(axis=1).sum()),
            },
        )

    both = [others, np.concatenate([others, target[None]])]
    findings = [
        attacked(lambda side: both[side], "original rows", None),
        # the same number of rows in both cases: the number must not reveal the secret
        attacked(lambda side: generator.choice(both[side], count), "resampled rows", None),
    ]
    names = [f"c{index}" for index in range(rows.shape[1])]
    highs = {name: max(1, int(column.max())) for name, column in zip(names, rows.T, strict=True)}
    declared = {name: {"type": "integer", "bounds": [0, high]} for name, high in highs.items()}
    without, within = (AttackTable("people", dict(zip(names, each.T, strict=True))) for each in both)
    total = shadows + trials
    for step, epsilon in enumerate(epsilons):
        report = _report_progress(progress, step, len(epsilons), total, f"{release} at ε = {float(epsilon):g}")
        budget = epsilon * total
        with (
            open_protected(without, epsilon=budget, declared=declared, relation="add_remove") as first,
            open_protected(within, epsilon=budget, declared=declared, relation="add_remove") as second,
        ):
            publish = _publisher((first, second), release, names, epsilon, report)
            findings.append(attacked(publish, f"hubbub's {release}", epsilon))
    intro = (
        f"The attack knows all {count} others and the row of the most unusual person. It attacks {trials} tables after"
        f" learning from {shadows} of its own."
    )
    return AttackStudy("shadow", "Membership in synthetic data", (intro, *describe_findings(findings)), tuple(findings))


def _report_progress(progress: Progress, step: int, steps: int, total: int, words: str) -> Callable[[int], None]:
    return lambda number: progress((step + number / total) / steps, words)


def _publisher(
    sessions: tuple[Session, Session],
    release: str,
    columns: list[str],
    epsilon: Fraction,
    report: Callable[[int], None],
) -> Callable[[bool], Codes]:
    """Return a function that publishes the data with or without the person, sampled and charged afresh."""
    numbers_used = itertools.count()

    def publish(side: bool) -> Codes:  # noqa: FBT001
        number = next(numbers_used)
        report(number)
        return _published(sessions[side], release, columns, epsilon, f"draw {number}")

    return publish


def _published(session: Session, release: str, columns: list[str], epsilon: Fraction, key: str) -> Codes:
    if release == "mwem":
        return _rows(session.mwem(TABLE, columns, rounds=2, epsilon=epsilon, key=key), len(columns))
    if release == "small_database":
        return _rows(session.small_database(TABLE, columns, size=2, epsilon=epsilon, key=key), len(columns))
    by = ", ".join(columns)
    text = f"SELECT {by}, count(*) AS n FROM {TABLE} GROUP BY {by}"  # noqa: S608
    counted = _rows(session.query(text, epsilon=epsilon, key=key), len(columns) + 1)
    return np.repeat(counted[:, :-1], np.maximum(counted[:, -1], 0), axis=0)


def _rows(release: Release, width: int) -> Codes:
    rows = np.array([[-1 if cell is None else cell for cell in row[:width]] for row in release.rows], dtype=np.float64)
    return rows.astype(np.int64).reshape(-1, width)


def _simulate_rows(count: int, width: int, generator: np.random.Generator) -> Codes:
    """Simulate people with common values, and one with the rarest value in every column."""
    rows = np.asarray(generator.choice(3, (count, width), p=[0.5, 0.3, 0.2]))
    rows[0] = 3
    return rows.astype(np.int64)


def _coded(table: AttackTable, count: int, width: int, generator: np.random.Generator) -> Codes:
    """Encode the first columns of some rows: the most common values as 0, 1, …, all others as one further code."""
    names = list(table.columns)[:width]
    if len(names) < 2 or table.rows < count:
        raise AttackError(
            "HB651", f"{table.name} has fewer than {count} rows or only one column.", "Use a smaller number of people."
        )
    rows = generator.permutation(table.rows)[:count]
    columns = []
    for name in names:
        codes = np.unique(table.column(name)[rows], return_inverse=True)[1]
        order = np.argsort(-np.bincount(codes), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        columns.append(np.minimum(rank[codes], _LEVELS - 1))
    return np.stack(columns, axis=1)
