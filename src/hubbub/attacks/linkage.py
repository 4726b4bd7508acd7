"""Linkage: a table without names, joined with what anybody may know, has names again.

A voters' register with birth date, sex and post code named a governor in a file of hospital stays; search logs named
their searchers (Sweeney 1997; Barbaro and Zeller 2006; Dwork 2011). `uniqueness` reports for any table how many people
are alone in columns that an outsider may know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Fact, Finding, Progress, Study, compared, listed, percent, unheard
from hubbub.attacks.game import Bits, flip, informed_at, scored, settled
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import Table
from hubbub.attacks.target import condition, countings
from hubbub.errors import AttackError

#: The column that holds the coins.
COIN = "hubbub_coin"
_COARSE, _MANY = 10, 20  # tens, of columns with more different numbers than twenty
_TOLD = 8


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """How well columns tell the rows of a table apart."""

    columns: tuple[str, ...]
    rows: int
    alone: int  #: rows that share their values with no other
    few: int  #: rows in groups of two to four
    groups: int
    largest: int

    @property
    def share(self) -> float:
        """The share of rows that are alone."""
        return self.alone / self.rows

    def facts(self) -> dict[str, Fact]:
        """Give the figures by name."""
        return {
            "rows": self.rows,
            "alone": self.alone,
            "among 2 to 4": self.few,
            "groups": self.groups,
            "largest group": self.largest,
        }


def uniqueness(table: Table, columns: Sequence[str]) -> Uniqueness:
    """Count the rows that are alone with their values of these columns."""
    return _counted(columns, table.codes(columns))


def _counted(columns: Sequence[str], codes: NDArray[np.int64]) -> Uniqueness:
    sizes = np.bincount(codes)
    few = int(sizes[(sizes > 1) & (sizes < 5)].sum())
    return Uniqueness(tuple(columns), len(codes), int(np.count_nonzero(sizes == 1)), few, len(sizes), int(sizes.max()))


def linked(codes: NDArray[np.int64], secrets: Bits, generator: np.random.Generator) -> Bits:
    """Guess everybody's secret by the rows that match what is known of them: that of most, or of either where even."""
    ones = np.bincount(codes, weights=secrets)
    return settled((2 * ones - np.bincount(codes))[codes], generator)


def study(
    table: Table | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    quasi: tuple[str, ...] = (),
) -> Study:
    """Join a table without names to what is known of people, column by column, and read their secrets off.

    A fair coin stands beside each row as its secret. `quasi` are the columns that an outsider may know (default: all);
    they are added one after the other, so that the report says which make people unique. Coarsening rounds numbers to
    tens. Against hubbub the same outsider asks for the count of everybody's own cell that has the secret, at ε a
    person, knowing all others in it.
    """
    table = clinic(2000, generator) if table is None else table
    known = tuple(dict.fromkeys(quasi)) or tuple(table.columns)
    table.keep(known)  # a column that is not there is said before the work begins
    if COIN in table.columns:
        raise AttackError("HB651", f"{table.name} has a column called {COIN}.", "Rename it.")
    secrets = flip(table.rows, generator)
    findings, reports = [], []
    codes = np.zeros(table.rows, dtype=np.int64)
    for upto in range(1, len(known) + 1):
        progress(upto / len(known) / 2, f"known: {', '.join(known[:upto])}")
        codes = table.refined(codes, known[upto - 1])
        reports.append(_counted(known[:upto], codes))
        score = scored(linked(codes, secrets, generator), secrets)
        findings.append(Finding(f"no names; known: {_short(known[:upto])}", None, score, None, reports[-1].facts()))
    told = len(findings) - 1
    blurred = _coarse(table.keep(known))
    score = scored(linked(blurred.codes(known), secrets, generator), secrets)
    coarse = uniqueness(blurred, known)
    findings.append(Finding("no names, numbers in tens; all of these known", None, score, None, coarse.facts()))
    others = np.bincount(codes, weights=secrets).astype(np.int64)[codes] - secrets
    cell = " AND ".join(condition(name, table.column(name)[0]) for name in known)
    progress(0.5, "hubbub")
    released = table.keep(known).where(**{COIN: secrets})
    noises = countings(released, f"{cell} AND {COIN}", epsilons=epsilons)
    findings += informed_at("hubbub, all others known", epsilons, noises, others, secrets)
    progress(1.0, "done")
    words = (*_words(reports, coarse), *compared(findings[told:]))
    return Study("linkage", f"Who is alone in {table.name}", words, tuple(findings))


def _words(reports: Sequence[Uniqueness], coarse: Uniqueness) -> tuple[str, ...]:
    last = reports[-1]
    return (
        f"{percent(last.share)} of the {last.rows:,} rows are alone in {listed(last.columns)}: whoever knows these of "
        "a person finds the row, and all else that stands in it.",
        *(
            f"Known {listed(each.columns)}, {percent(each.share)} are alone, and {percent(each.few / each.rows)} among "
            "two to four."
            for each in reports[:-1]
            if len(each.columns) <= _TOLD
        ),
        f"Numbers rounded to tens leave {percent(coarse.share)} alone.",
    )


def _short(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:2])} … {names[-1]} ({len(names)} columns)"


def _coarse(table: Table) -> Table:
    """Round numbers down to tens, as naive protection does."""
    return Table(
        table.name,
        {
            name: np.floor(values / _COARSE)
            if values.dtype.kind in "iuf" and len(np.unique(values)) > _MANY
            else values
            for name, values in table.columns.items()
        },
    )
