"""Linkage attack: re-identify the rows of a table without names by joining it with public information.

A voter list with birth date, sex and ZIP code identified a governor in hospital records; search logs identified their
users (Sweeney 1997; Barbaro and Zeller 2006; Dwork 2011). `uniqueness` reports for any table how many rows are unique
in columns that an outsider may know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import (
    AttackFinding,
    AttackStudy,
    Fact,
    Progress,
    describe_findings,
    join_words,
    no_progress,
    percent,
)
from hubbub.attacks.game import Bits, flip, guess_from, informed_at, score_guesses
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import condition, count_noises
from hubbub.errors import AttackError

#: Column with the secret coins.
COIN = "hubbub_coin"
_COARSE, _MANY = 10, 20  # round to tens in columns with more than twenty distinct numbers
_MAX_LISTED = 8


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """How well some columns identify the rows of a table."""

    columns: tuple[str, ...]
    rows: int
    unique: int  #: rows with a unique combination of values
    few: int  #: rows in groups of two to four
    groups: int
    largest: int

    @property
    def share(self) -> float:
        """The share of unique rows."""
        return self.unique / self.rows

    def facts(self) -> dict[str, Fact]:
        """Return the figures by name."""
        return {
            "rows": self.rows,
            "unique rows": self.unique,
            "rows in groups of 2 to 4": self.few,
            "groups": self.groups,
            "largest group": self.largest,
        }


def uniqueness(table: AttackTable, columns: Sequence[str]) -> Uniqueness:
    """Count the rows with a unique combination of values in these columns."""
    return _counted(columns, table.codes(columns))


def _counted(columns: Sequence[str], codes: NDArray[np.int64]) -> Uniqueness:
    sizes = np.bincount(codes)
    few = int(sizes[(sizes > 1) & (sizes < 5)].sum())
    return Uniqueness(tuple(columns), len(codes), int(np.count_nonzero(sizes == 1)), few, len(sizes), int(sizes.max()))


def linked(codes: NDArray[np.int64], secrets: Bits, generator: np.random.Generator) -> Bits:
    """Guess each person's secret by the majority of the rows that match their public values."""
    ones = np.bincount(codes, weights=secrets)
    return guess_from((2 * ones - np.bincount(codes))[codes], generator)


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    quasi: tuple[str, ...] = (),
) -> AttackStudy:
    """Join a table without names with public information, column by column, to learn people's secrets.

    Each row gets a fair coin as its secret. `quasi` are the columns that an outsider may know (default: all); they are
    added one after the other, so that the report shows which make people unique. Coarsening rounds numbers to tens.
    Against hubbub, the same outsider queries the count of secrets in each person's cell, at ε per person, knowing all
    other rows in it.
    """
    table = clinic(2000, generator) if table is None else table
    known = tuple(dict.fromkeys(quasi)) or tuple(table.columns)
    table.keep(known)  # report a missing column before the work begins
    if COIN in table.columns:
        raise AttackError("HB651", f"{table.name} has a column named {COIN}.", "Rename the column.")
    secrets = flip(table.rows, generator)
    findings, reports = [], []
    codes = np.zeros(table.rows, dtype=np.int64)
    for upto in range(1, len(known) + 1):
        progress(upto / len(known) / 2, f"known: {', '.join(known[:upto])}")
        codes = table.refined(codes, known[upto - 1])
        reports.append(_counted(known[:upto], codes))
        score = score_guesses(linked(codes, secrets, generator), secrets)
        findings.append(
            AttackFinding(f"names removed; known: {_short(known[:upto])}", None, score, None, reports[-1].facts())
        )
    all_known = len(findings) - 1
    blurred = _coarse(table.keep(known))
    score = score_guesses(linked(blurred.codes(known), secrets, generator), secrets)
    coarse = uniqueness(blurred, known)
    findings.append(AttackFinding("names removed, numbers in tens; all known", None, score, None, coarse.facts()))
    others = np.bincount(codes, weights=secrets).astype(np.int64)[codes] - secrets
    cell = " AND ".join(condition(name, table.column(name)[0]) for name in known)
    progress(0.5, "hubbub")
    released = table.keep(known).where(**{COIN: secrets})
    noises = count_noises(released, f"{cell} AND {COIN}", epsilons=epsilons)
    findings += informed_at("hubbub, everyone else known", epsilons, noises, others, secrets)
    progress(1.0, "done")
    words = (*_words(reports, coarse), *describe_findings(findings[all_known:]))
    return AttackStudy("linkage", f"Linkage of {table.name}", words, tuple(findings))


def _words(reports: Sequence[Uniqueness], coarse: Uniqueness) -> tuple[str, ...]:
    last = reports[-1]
    return (
        f"{percent(last.share)} of the {last.rows:,} rows are unique in {join_words(last.columns)}: anyone who knows "
        "these values of a person can find the row and read the rest of it.",
        *(
            f"In {join_words(each.columns)}, {percent(each.share)} are unique, and {percent(each.few / each.rows)} are "
            "in groups of two to four."
            for each in reports[:-1]
            if len(each.columns) <= _MAX_LISTED
        ),
        f"With numbers rounded to tens, {percent(coarse.share)} are unique.",
    )


def _short(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:2])} … {names[-1]} ({len(names)} columns)"


def _coarse(table: AttackTable) -> AttackTable:
    """Round numbers down to tens, a naive protection."""
    return AttackTable(
        table.name,
        {
            name: np.floor(values / _COARSE)
            if values.dtype.kind in "iuf" and len(np.unique(values)) > _MANY
            else values
            for name, values in table.columns.items()
        },
    )
