"""Membership inference from published sums: enough exact sums reveal who is in the data (Homer et al. 2008).

The attack knows a person's row and the frequency of each trait in the population, and tests whether the published sums
lean towards that row. Each sum reveals a little; hundreds reveal membership (Dwork, Smith, Steinke, Ullman and Vadhan
2015).
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, Score, ceiling, describe_findings, no_progress
from hubbub.attacks.bits import share
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, count_noise, open_protected
from hubbub.core import numbers
from hubbub.errors import AttackError
from hubbub.noise.source import system

Floats = NDArray[np.float64]
Bits = NDArray[np.int64]

#: Maximum columns per query, and values per column that get their own sum.
_MAX_COLUMNS = 100
_MAX_VALUES = 20
#: Traits rarer (or more common) than this are dropped: one of them would decide on its own.
_RAREST = 0.02
_STEP = 5


def traced(sums: Floats, rows: Floats, common: Floats) -> Floats:
    """Return how much the sums of a group lean towards each row: about 0 for outsiders, and over about 1 for members.

    sums     number of group members with each trait
    rows     traits of each person (0 or 1)
    common   frequency of each trait in the population
    """
    weight = 1 / (common * (1 - common))
    # estimate the size of the group from the sums
    size = float((sums * common * weight).sum() / (common**2 * weight).sum())
    excess = (sums - size * common) * weight
    leaning: Floats = (rows - common) @ excess / len(common)
    return leaning


def guessed(sums: Floats, rows: Floats, common: Floats) -> Bits:
    """Guess the members: rows that the sums lean to by more than half of a row's own contribution."""
    own = ((rows - common) ** 2 / (common * (1 - common))).mean(axis=1)
    guess: Bits = (traced(sums, rows, common) > own / 2).astype(np.int64)
    return guess


def simulate_people(people: int, traits: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Simulate people with independent traits; also return the frequency of each trait."""
    common = generator.uniform(0.1, 0.9, traits)
    return (generator.random((people, traits)) < common).astype(np.float64), common


def indicators(table: AttackTable, people: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Sample rows of a table, with one trait per common value of a column; numbers are cut into deciles."""
    masks = []
    for values in table.columns.values():
        if values.dtype.kind in "iuf" and len(np.unique(values)) > _MAX_VALUES:
            codes = np.searchsorted(np.nanquantile(values, np.linspace(0.1, 0.9, 9)), values)
        else:
            codes = np.unique(values, return_inverse=True)[1]
        counts = np.bincount(codes)
        often = np.argsort(-counts)[:_MAX_VALUES]
        masks += [codes == code for code in often if _RAREST < counts[code] / table.rows < 1 - _RAREST]
    if len(masks) < 2 or table.rows < 2 * people:
        raise AttackError(
            "HB651",
            f"{table.name} has too few rows or values: the attack needs {2 * people} rows and two traits that vary.",
            "Use a smaller number of people.",
        )
    whole = np.stack(masks, axis=1)
    rows = generator.permutation(table.rows)[:people]
    return whole[rows].astype(np.float64), np.asarray(whole.mean(axis=0), dtype=np.float64)


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    people: int = 24,
    traits: int = 200,
    groups: int = 12,
) -> AttackStudy:
    """Publish sums over a random half of some people, and guess for each whether they are in it.

    people   number of people to choose from
    traits   number of yes-or-no facts to sum (for a table: one per common value of each column)
    groups   number of groups
    """
    count = numbers.integer(people, "people", 8, 1000)
    if table is None:
        rows, common = simulate_people(count, numbers.integer(traits, "traits", 2, 2000), generator)
    else:
        rows, common = indicators(table, count, generator)
    inside = list(generator.integers(0, 2, (numbers.integer(groups, "groups", 1, 100), count)))
    exact = [rows.T @ each for each in inside]
    findings = [
        _finding("exact sums", None, exact, inside, rows, common),
        _finding(
            f"sums rounded to {_STEP}", None, [np.rint(each / _STEP) * _STEP for each in exact], inside, rows, common
        ),
    ]
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"hubbub's sums at ε = {float(epsilon):g} in total")
        answers = [_query_sums(rows[inside[0] == 1].astype(np.int64), epsilon), *_sample_sums(exact[1:], epsilon)]
        findings.append(_finding("hubbub", epsilon, answers, inside, rows, common))
    intro = f"Only {len(common)} sums over a group of about {count // 2} people are published."
    return AttackStudy(
        "membership", "Membership in published sums", (intro, *describe_findings(findings)), tuple(findings)
    )


def _query_sums(rows: Bits, epsilon: Fraction) -> Floats:
    """Query every sum at ε in total. Adding or removing a person changes all of them."""
    width = rows.shape[1]
    names = [f"t{index}" for index in range(width)]
    members = AttackTable("people", dict(zip(names, rows.T, strict=True)))
    declared = {name: {"type": "integer", "bounds": [0, 1]} for name in names}
    per_sum = share(epsilon, width)
    answers: list[object] = []
    with open_protected(members, epsilon=epsilon, declared=declared, relation="add_remove") as session:
        for start in range(0, width, _MAX_COLUMNS):
            part = names[start : start + _MAX_COLUMNS]
            sums = ", ".join(f"sum({name}) AS {name}" for name in part)
            text = f"SELECT {sums} FROM {TABLE}"  # noqa: S608
            release = session.query(text, epsilon=per_sum * len(part), raw=True, fresh=True)
            answers += list(release.rows[0])
    return np.array(answers, dtype=np.float64)


def _sample_sums(exact: Sequence[Floats], epsilon: Fraction) -> list[Floats]:
    """Answer for further groups with the noise of a hubbub count at the same share of ε."""
    if not exact:
        return []
    some = AttackTable("people", {"t": np.array([0, 1])})
    noise = count_noise(some, "t = 1", epsilon=share(epsilon, len(exact[0])))
    return [noise.sample(np.rint(each).astype(np.int64), system()).astype(np.float64) for each in exact]


def _finding(
    target: str, epsilon: Fraction | None, sums: Sequence[Floats], inside: Sequence[Bits], rows: Floats, common: Floats
) -> AttackFinding:
    guesses = [guessed(each, rows, common) for each in sums]
    right = sum(int((guess == truth).sum()) for guess, truth in zip(guesses, inside, strict=True))
    errors = [np.abs(answer - rows.T @ truth).mean() for answer, truth in zip(sums, inside, strict=True)]
    return AttackFinding(
        target,
        epsilon,
        Score(right, sum(map(len, inside)), 0.5),
        None if epsilon is None else ceiling(epsilon),
        {"sums": len(common), "error": float(np.mean(errors))},
    )
