"""MEDIAN, PERCENTILE, QUANTILE, MIN, MAX and MODE: one of a finite list of candidates, selected by integer scores.

Candidates come from the declared bounds or values, never from the data. Scores come from the exact number of rows that
are nearest to each candidate.

Tested in tests/sql/test_aggregates.py.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.aggregates.formula import AggregateFunction, Argument, Floats, bounded
from hubbub.sql.candidates import Candidates
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.query import Aggregate

Counts = NDArray[np.int64]

#: Maximum number of counts (candidates times cells) in memory at once.
MAX_COUNTS = 1 << 22
#: Maximum number of candidates of one choice; more would cost time without improving accuracy.
MAX_CANDIDATES = 1 << 12
_FINE = 1 << 16
_FINE_ENOUGH = 512
_FEWEST = 64
#: Probability that one end of an interval misses.
MISS = Fraction(1, 50)


@dataclass(frozen=True, slots=True)
class QuantileScore:
    """Scores a quantile: the candidate with a fraction `level` of the rows below it, moved by `shift` rows.

    With level a/b the loss of candidate c is the largest of 0, b·#{x < c} − (a·n + b·shift) and
    b·#{x > c} − ((b − a)·n − b·shift): zero exactly for a quantile.
    """

    level: Fraction
    shift: int = 0

    @property
    def sensitivity(self) -> int:
        """The largest change of a score by one row: b − a or −a for a row below it, so at most max(a, b − a)."""
        return max(self.level.numerator, self.level.denominator - self.level.numerator)

    @property
    def scale(self) -> int:
        """The loss per row by which the quantile is missed."""
        return self.level.denominator

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate, cell by cell (the last axis runs over candidates)."""
        a, b = self.level.numerator, self.level.denominator
        up_to = np.cumsum(counts, axis=-1)
        n = up_to[..., -1:]
        below, above = up_to - counts, n - up_to
        first = b * below - a * n - b * self.shift
        second = b * above - (b - a) * n + b * self.shift
        scores: Counts = np.minimum(0, np.minimum(-first, -second))
        return scores


@dataclass(frozen=True, slots=True)
class ExtremeScore:
    """Scores an extreme: the largest (or smallest) value with `depth` rows at or beyond it.

    The loss of c is max(0, depth − #{x ≥ c}, #{x > c} − depth + 1): at depth 1 it is zero for the largest candidate
    with a row, alone. A depth above one keeps the selection away from empty candidates beyond all rows.
    """

    largest: bool
    depth: int

    @property
    def sensitivity(self) -> int:
        """One row changes each count by 0 or 1, and the loss by at most as much."""
        return 1

    @property
    def scale(self) -> int:
        """The loss per row by which the extreme is missed."""
        return 1

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate."""
        up_to = np.cumsum(counts, axis=-1)
        outside = up_to[..., -1:] - up_to if self.largest else up_to - counts
        scores: Counts = np.minimum(0, np.minimum(outside + counts - self.depth, self.depth - 1 - outside))
        return scores


@dataclass(frozen=True, slots=True)
class CountScore:
    """Scores by the count, for the most frequent value."""

    @property
    def sensitivity(self) -> int:
        """One row adds 1 to one count."""
        return 1

    @property
    def scale(self) -> int:
        """The loss per row by which the largest count is missed."""
        return 1

    def scores(self, counts: Counts) -> Counts:
        """Score each candidate."""
        return counts


ScoreFunction = QuantileScore | ExtremeScore | CountScore


@dataclass(frozen=True, slots=True)
class Choice:
    """One aggregate of a query that is selected from candidates."""

    name: str
    aggregate: "SelectionAggregate"
    candidates: Candidates
    level: Fraction | None

    @property
    def function(self) -> str:
        """The name of the aggregate function."""
        return self.aggregate.name


class SelectionAggregate(AggregateFunction):
    """An aggregate that is selected from candidates."""

    monotone: bool = False  #: whether one more row never lowers a score
    has_interval: bool = False  #: whether the ends of its interval are selected as well

    def kind(self, aggregate: Aggregate) -> Kind:
        """Return the kind of the argument."""
        return aggregate.arguments[0].kind

    def choice(self, aggregate: Aggregate, cells: int) -> Choice:
        """Return the choice of an aggregate for this number of cells, or raise an error."""
        room = min(MAX_CANDIDATES, MAX_COUNTS // cells, max(_FINE_ENOUGH, _FINE // cells))
        if room < _FEWEST:
            raise QueryError(
                "HB560",
                f"{self.name.upper()} over {cells:,} groups would leave fewer than {_FEWEST} candidates per group.",
                "Group by fewer keys.",
            )
        return Choice(aggregate.name, self, self.candidates(aggregate, room), aggregate.level)

    @abstractmethod
    def candidates(self, aggregate: Aggregate, room: int) -> Candidates:
        """Return at most `room` candidates, or raise an error."""

    def row_sensitivity(self, choice: Choice) -> int:  # noqa: ARG002
        """Return the largest change of a score when one row is added."""
        return 1

    @abstractmethod
    def scores(self, choice: Choice, rates: Sequence[Fraction]) -> list[ScoreFunction]:
        """Return the score function of each selection, given the rates at which they are made."""

    @abstractmethod
    def interval(
        self, scores: Sequence[ScoreFunction], candidates: Candidates, positions: Sequence[Counts], fewest: Floats
    ) -> tuple[Floats, Floats] | None:
        """Return the ends of the interval, given the selections and a lower bound on the rows; None if it has none."""


@dataclass(frozen=True)
class Quantile(SelectionAggregate):
    """MEDIAN, PERCENTILE and QUANTILE of x. Half of its budget goes to the ends of its interval, if wanted."""

    name: str = "quantile"
    has_interval: bool = True

    def kind(self, aggregate: Aggregate) -> Kind:  # noqa: ARG002
        """Return the kind of a quantile."""
        return Kind.REAL

    def candidates(self, aggregate: Aggregate, room: int) -> Candidates:
        """Return evenly spaced numbers within the bounds."""
        level = aggregate.level
        if level is None or not 0 <= level <= 1 or level.denominator > 10_000:
            raise QueryError(
                "HB561",
                "The level of a quantile must be between 0 and 1, with at most four decimal places.",
                "Round the level.",
            )
        return _spaced(aggregate.arguments[0], aggregate.where, room, "a quantile")

    def row_sensitivity(self, choice: Choice) -> int:
        """Return the sensitivity at this level."""
        return QuantileScore(_level(choice)).sensitivity

    def scores(self, choice: Choice, rates: Sequence[Fraction]) -> list[ScoreFunction]:
        """Score the quantile and, for an interval, the quantiles so far below and above it that a miss is unlikely."""
        level = _level(choice)
        scores: list[ScoreFunction] = [QuantileScore(level)]
        if len(rates) > 1:
            shift = -(-loss_of_a_miss(choice.candidates.count, rates[1], MISS) // level.denominator)
            scores += [QuantileScore(level, -shift), QuantileScore(level, shift)]
        return scores

    def interval(
        self, scores: Sequence[ScoreFunction], candidates: Candidates, positions: Sequence[Counts], fewest: Floats
    ) -> tuple[Floats, Floats] | None:
        """Return the selected ends where there are enough rows, else those of the candidates."""
        half, first, last = _span(candidates)
        if len(scores) == 1:
            return np.full(len(fewest), first), np.full(len(fewest), last)
        below, above = scores[1:]
        if not (isinstance(below, QuantileScore) and isinstance(above, QuantileScore)):
            raise AssertionError("the ends of a quantile are quantiles")
        shown = candidates.shown()
        low = np.where(fewest * float(below.level) >= -below.shift, shown[positions[1]] - half, first)
        high = np.where(fewest * float(1 - above.level) >= above.shift, shown[positions[2]] + half, last)
        return low, high


@dataclass(frozen=True)
class Extreme(SelectionAggregate):
    """MIN and MAX of x."""

    name: str
    largest: bool

    def candidates(self, aggregate: Aggregate, room: int) -> Candidates:
        """Return evenly spaced numbers within the bounds."""
        return _spaced(aggregate.arguments[0], aggregate.where, room, self.name.upper())

    def scores(self, choice: Choice, rates: Sequence[Fraction]) -> list[ScoreFunction]:
        """Score the extreme at the depth that an empty candidate rarely passes."""
        return [ExtremeScore(self.largest, loss_of_a_miss(choice.candidates.count, rates[0], 2 * MISS))]

    def interval(
        self, scores: Sequence[ScoreFunction], candidates: Candidates, positions: Sequence[Counts], fewest: Floats
    ) -> tuple[Floats, Floats] | None:
        """Return an interval that is open toward the extreme, where there are enough rows."""
        (score,) = scores
        if not isinstance(score, ExtremeScore):
            raise AssertionError("an extreme is scored by its depth")
        half, first, last = _span(candidates)
        value = candidates.shown()[positions[0]]
        low, high = np.full(len(value), first), np.full(len(value), last)
        sure = fewest >= score.depth
        if self.largest:
            return np.where(sure, value - half, first), high
        return low, np.where(sure, value + half, last)


@dataclass(frozen=True)
class Mode(SelectionAggregate):
    """MODE of x: its most frequent value."""

    name: str = "mode"
    argument: Argument = "listed"
    monotone: bool = True

    def candidates(self, aggregate: Aggregate, room: int) -> Candidates:
        """Return the declared values, or numbers on a declared grid."""
        (x,) = aggregate.arguments
        values = facts(x).values
        if values is not None and len(values) <= room:
            return Candidates(x, aggregate.where, len(values), values=values)
        if x.kind is Kind.INTEGER or (x.kind is Kind.REAL and facts(x).step is not None):
            return _spaced(x, aggregate.where, room, "MODE")
        raise QueryError(
            "HB563",
            "MODE needs a finite list of values to choose from.",
            "Declare the values of the column, or its bounds and step.",
        )

    def scores(self, choice: Choice, rates: Sequence[Fraction]) -> list[ScoreFunction]:  # noqa: ARG002
        """Score by the count."""
        return [CountScore()]

    def interval(
        self, scores: Sequence[ScoreFunction], candidates: Candidates, positions: Sequence[Counts], fewest: Floats
    ) -> None:
        """Return no interval."""


def _level(choice: Choice) -> Fraction:
    if choice.level is None:
        raise AssertionError("a quantile has a level")
    return choice.level


def _span(candidates: Candidates) -> tuple[float, float, float]:
    """Return half a step, and the ends of the numbers that round to a candidate."""
    half, shown = float(candidates.step) / 2, candidates.shown()
    return half, float(shown[0]) - half, float(shown[-1]) + half


def _spaced(x: Expr, where: Expr | None, room: int, function: str) -> Candidates:
    if not x.kind.numeric:
        raise QueryError("HB562", f"{function} needs a numeric argument.", "For other types, use MODE or COUNT.")
    bounds = bounded(x, function)
    span = bounds.high - bounds.low
    step = facts(x).step
    if step is None or step <= 0:
        step = span / (room - 1) if span else Fraction(1)
    first = ceil(bounds.low / step) * step if facts(x).step else bounds.low
    coarse = -int(-(span / step + 1) // room)  # a multiple of the step, so that candidates stay on its grid
    step *= max(1, coarse)
    count = int((bounds.high - first) / step) + 1
    return Candidates(x, where, max(1, min(count, room)), first, step)


def loss_of_a_miss(candidates: int, rate: Fraction, probability: Fraction) -> int:
    """Return the loss from which on candidates are selected with at most the given probability, all together.

    They are selected with odds of at most candidates·e^(−rate·loss) against one candidate without loss.
    """
    return max(1, ceil(log(candidates * float((1 - probability) / probability)) / float(rate)))
