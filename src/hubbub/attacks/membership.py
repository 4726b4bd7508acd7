"""Membership in published tables: enough sums that are exact tell who is in the data (Homer et al. 2008).

The attack knows a person's row and how common each answer is among everybody, and asks whether the published sums lean
towards that person. Each sum tells a little; hundreds tell all (Dwork, Smith, Steinke, Ullman and Vadhan 2015).
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Finding, Progress, Score, Study, ceiling, compared, unheard
from hubbub.attacks.bits import share
from hubbub.attacks.table import Table
from hubbub.attacks.target import TABLE, counting, protected
from hubbub.core import numbers
from hubbub.errors import AttackError
from hubbub.noise.source import system

Floats = NDArray[np.float64]
Bits = NDArray[np.int64]

#: Columns that one question may have; values of a column that get a sum of their own.
_MOST_COLUMNS = 100
_MOST_VALUES = 20
#: A yes that is rarer than this (or a no) is left out: it would decide by itself.
_RAREST = 0.02
_STEP = 5


def traced(sums: Floats, rows: Floats, common: Floats) -> Floats:
    """Say how much sums over a group lean towards each row: about 0 for who is not in it, and above 1 or so for who is.

    sums     how many of the group have each trait
    rows     who has which (0 or 1), one row each
    common   how common each trait is in the world
    """
    weight = 1 / (common * (1 - common))
    # the size of the group is told by the sums themselves
    size = float((sums * common * weight).sum() / (common**2 * weight).sum())
    apart = (sums - size * common) * weight
    leaning: Floats = (rows - common) @ apart / len(common)
    return leaning


def guessed(sums: Floats, rows: Floats, common: Floats) -> Bits:
    """Guess who is in the group: who it leans to by more than half of what one's own row adds."""
    own = ((rows - common) ** 2 / (common * (1 - common))).mean(axis=1)
    guess: Bits = (traced(sums, rows, common) > own / 2).astype(np.int64)
    return guess


def made_up(people: int, traits: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Make up people with independent traits, and say how common each trait is."""
    common = generator.uniform(0.1, 0.9, traits)
    return (generator.random((people, traits)) < common).astype(np.float64), common


def indicators(table: Table, people: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Take rows of a table, with one trait for each value that a column often has; numbers are cut into tenths."""
    found = []
    for values in table.columns.values():
        if values.dtype.kind in "iuf" and len(np.unique(values)) > _MOST_VALUES:
            codes = np.searchsorted(np.nanquantile(values, np.linspace(0.1, 0.9, 9)), values)
        else:
            codes = np.unique(values, return_inverse=True)[1]
        counts = np.bincount(codes)
        often = np.argsort(-counts)[:_MOST_VALUES]
        found += [codes == code for code in often if _RAREST < counts[code] / table.rows < 1 - _RAREST]
    if len(found) < 2 or table.rows < 2 * people:
        raise AttackError(
            "HB651",
            f"{table.name} has too few rows or values: {2 * people} rows and two values that vary are needed.",
            "Set people to fewer.",
        )
    whole = np.stack(found, axis=1)
    rows = generator.permutation(table.rows)[:people]
    return whole[rows].astype(np.float64), np.asarray(whole.mean(axis=0), dtype=np.float64)


def study(
    table: Table | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    people: int = 24,
    traits: int = 200,
    groups: int = 12,
) -> Study:
    """Publish sums over about half of some people, chosen by coins, and guess of each whether he is in it.

    people   how many there are to choose from
    traits   how many yes-or-no facts are summed (of a table: one for each common value of each column)
    groups   how often a group is chosen anew
    """
    count = numbers.integer(people, "people", 8, 1000)
    if table is None:
        rows, common = made_up(count, numbers.integer(traits, "traits", 2, 2000), generator)
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
        progress(step / len(epsilons), f"hubbub's sums at ε = {float(epsilon):g} in all")
        told = [_asked(rows[inside[0] == 1].astype(np.int64), epsilon), *_drawn(exact[1:], epsilon)]
        findings.append(_finding("hubbub", epsilon, told, inside, rows, common))
    said = f"{len(common)} sums are published over a group of about {count // 2} people, and nothing else."
    return Study("membership", "Who is in a published table", (said, *compared(findings)), tuple(findings))


def _asked(rows: Bits, epsilon: Fraction) -> Floats:
    """Ask hubbub for every sum, all for ε. One who comes or goes changes all: the relation is add or remove."""
    width = rows.shape[1]
    names = [f"t{place}" for place in range(width)]
    made = Table("people", dict(zip(names, rows.T, strict=True)))
    declared = {name: {"type": "integer", "bounds": [0, 1]} for name in names}
    each = share(epsilon, width)
    found = []
    with protected(made, epsilon=epsilon, declared=declared, relation="add_remove") as session:
        for start in range(0, width, _MOST_COLUMNS):
            part = names[start : start + _MOST_COLUMNS]
            sums = ", ".join(f"sum({name}) AS {name}" for name in part)
            release = session.query(f"SELECT {sums} FROM {TABLE}", epsilon=each * len(part), raw=True)  # noqa: S608
            found += list(release.rows[0])
    return np.array(found, dtype=np.float64)


def _drawn(exact: Sequence[Floats], epsilon: Fraction) -> list[Floats]:
    """Answer about further groups with the noise that hubbub gives a count at the same part of ε."""
    if not exact:
        return []
    some = Table("people", {"t": np.array([0, 1])})
    noise = counting(some, "t = 1", epsilon=share(epsilon, len(exact[0])))
    return [noise.sample(np.rint(each).astype(np.int64), system()).astype(np.float64) for each in exact]


def _finding(
    target: str, epsilon: Fraction | None, sums: Sequence[Floats], inside: Sequence[Bits], rows: Floats, common: Floats
) -> Finding:
    guesses = [guessed(each, rows, common) for each in sums]
    right = sum(int((guess == truth).sum()) for guess, truth in zip(guesses, inside, strict=True))
    errors = [np.abs(told - rows.T @ truth).mean() for told, truth in zip(sums, inside, strict=True)]
    return Finding(
        target,
        epsilon,
        Score(right, sum(map(len, inside)), 0.5),
        None if epsilon is None else ceiling(epsilon),
        {"sums": len(common), "error": float(np.mean(errors))},
    )
