"""MEDIAN, PERCENTILE, QUANTILE, MIN, MAX and MODE: one of a finite list of candidates, chosen by integer scores.

Candidates come from the declared bounds or values, never from the data. Scores come from exact counts of how many rows
lie nearest to each candidate.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.aggregates.formula import bounded
from hubbub.sql.candidates import Candidates
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.query import Aggregate

Counts = NDArray[np.int64]

#: Counts of candidates over all cells that are held at once.
MOST_COUNTS = 1 << 22
#: Candidates of one choice, and over all cells: finer ones would cost more time than they give.
MOST_CANDIDATES = 1 << 12
_FINE = 1 << 16
_FINE_ENOUGH = 512
_FEWEST = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Which candidate is wanted: the one with a share of `level` of the rows below it, moved by `shift` rows.

    With level a/b the loss of candidate c is the largest of 0, b·#{x < c} − (a·n + b·shift) and
    b·#{x > c} − ((b − a)·n − b·shift): zero exactly for a quantile.
    """

    level: Fraction
    shift: int = 0

    @property
    def sensitivity(self) -> int:
        """How far one row more moves any score: a row below it by b − a or −a, so by at most max(a, b − a)."""
        return max(self.level.numerator, self.level.denominator - self.level.numerator)

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate, cell by cell (the last axis runs over candidates)."""
        a, b = self.level.numerator, self.level.denominator
        up_to = np.cumsum(counts, axis=-1)
        n = up_to[..., -1:]
        below, above = up_to - counts, n - up_to
        first = b * below - a * n - b * self.shift
        second = b * above - (b - a) * n + b * self.shift
        found: Counts = np.minimum(0, np.minimum(-first, -second))
        return found


@dataclass(frozen=True, slots=True)
class Extreme:
    """The largest (or least) value with `depth` rows at or beyond it.

    The loss of c is max(0, depth − #{x ≥ c}, #{x > c} − depth + 1): at depth 1 it is zero for the largest candidate
    with a row, alone. A depth of more than one keeps the choice from empty candidates beyond all rows.
    """

    largest: bool
    depth: int

    @property
    def sensitivity(self) -> int:
        """One row more moves each count by 0 or 1, and the loss by at most as much."""
        return 1

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate."""
        up_to = np.cumsum(counts, axis=-1)
        outside = up_to[..., -1:] - up_to if self.largest else up_to - counts
        found: Counts = np.minimum(0, np.minimum(outside + counts - self.depth, self.depth - 1 - outside))
        return found


@dataclass(frozen=True, slots=True)
class Mode:
    """The candidate with most rows: the score is the count."""

    @property
    def sensitivity(self) -> int:
        """One row more adds 1 to one count."""
        return 1

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate."""
        return counts


Aim = Target | Extreme | Mode


@dataclass(frozen=True, slots=True)
class Choice:
    """One aggregate that is chosen, not added up."""

    name: str
    function: Literal["quantile", "min", "max", "mode"]
    candidates: Candidates
    level: Fraction | None


def choice(aggregate: Aggregate, cells: int) -> Choice:
    """Give the candidates of an aggregate, or refuse."""
    (x,) = aggregate.arguments
    function = aggregate.function
    room = min(MOST_CANDIDATES, MOST_COUNTS // cells, max(_FINE_ENOUGH, _FINE // cells))
    if room < _FEWEST:
        raise QueryError(
            "HB560",
            f"{function.upper()} over {cells:,} groups would leave fewer than {_FEWEST} candidates for each.",
            "Group by fewer keys.",
        )
    if function == "mode":
        return Choice(aggregate.name, "mode", _listed(x, aggregate.where, room), None)
    if function == "quantile":
        level = aggregate.level
        if level is None or not 0 <= level <= 1 or level.denominator > 10_000:
            raise QueryError("HB561", "a quantile's level is between 0 and 1, with at most four places.", "Round it.")
        return Choice(aggregate.name, "quantile", _spaced(x, aggregate.where, room, "a quantile"), level)
    if function in ("min", "max"):
        return Choice(aggregate.name, function, _spaced(x, aggregate.where, room, function.upper()), None)  # type: ignore[arg-type]
    raise AssertionError(function)


def _spaced(x: Expr, where: Expr | None, room: int, function: str) -> Candidates:
    if not x.kind.numeric:
        raise QueryError("HB562", f"{function} is answered for numbers only.", "MODE and COUNT take other kinds.")
    bounds = bounded(x, function)
    span = bounds.high - bounds.low
    step = facts(x).step
    if step is None or step <= 0:
        step = span / (room - 1) if span else Fraction(1)
    first = ceil(bounds.low / step) * step if facts(x).step else bounds.low
    coarse = -int(-(span / step + 1) // room)  # whole multiples of the step, so that candidates stay on its grid
    step *= max(1, coarse)
    count = int((bounds.high - first) / step) + 1
    return Candidates(x, where, max(1, min(count, room)), first, step)


def _listed(x: Expr, where: Expr | None, room: int) -> Candidates:
    values = facts(x).values
    if values is not None and len(values) <= room:
        return Candidates(x, where, len(values), values=values)
    if x.kind is Kind.INTEGER or (x.kind is Kind.REAL and facts(x).step is not None):
        return _spaced(x, where, room, "MODE")
    raise QueryError(
        "HB563",
        "MODE needs a finite list of values to choose from.",
        "Declare the column's values, or its bounds and step.",
    )


def beyond(candidates: int, rate: Fraction, slip: Fraction) -> int:
    """Give the loss that all bad candidates must have, so that one of them is chosen with at most that probability.

    They are chosen with odds of at most candidates·e^(−rate·loss) against one candidate without loss.
    """
    return max(1, ceil(log(candidates * float((1 - slip) / slip)) / float(rate)))
