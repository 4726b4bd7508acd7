"""MEDIAN, PERCENTILE, QUANTILE, MIN, MAX and MODE: one of a finite list of candidates, selected by integer scores.

Candidates come from the declared bounds or values, never from the data. Scores come from the exact number of rows that
are nearest to each candidate.

Tested in tests/sql/test_aggregates.py.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, lcm

import numpy as np

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.noise.joint_choice import MAX_PARTS
from hubbub.sql.aggregates.formula import AggregateFunction, Argument, Floats, bounded
from hubbub.sql.aggregates.scores import (
    Counts,
    CountScore,
    ExtremeScore,
    IntervalScore,
    JointScore,
    QuantileScore,
    ScoreFunction,
    depth,
    margin,
)
from hubbub.sql.candidates import Candidates
from hubbub.sql.expressions import Expr, facts
from hubbub.sql.query import Aggregate

#: Maximum number of counts (candidates times cells) in memory at once.
MAX_COUNTS = 1 << 22
#: Maximum number of candidates of one choice; more would cost time without improving accuracy.
MAX_CANDIDATES = 1 << 12
#: Quantiles are selected together from this number on; up to this number of scores; and up to this factor of scores.
_FEWEST_SHARED, _MAX_WORK, _MAX_FACTOR = 3, 1 << 25, 1 << 20
_FINE = 1 << 16
_FINE_ENOUGH = 512
_FEWEST = 64


@dataclass(frozen=True, slots=True)
class Choice:
    """One aggregate of a query that is selected from candidates, or several that are selected together."""

    names: tuple[str, ...]
    aggregate: "SelectionAggregate"
    candidates: Candidates
    levels: tuple[Fraction, ...] = ()  #: of quantiles, one for each name

    @property
    def function(self) -> str:
        """The name of the aggregate function."""
        return self.aggregate.name


class SelectionAggregate(AggregateFunction):
    """An aggregate that is selected from candidates."""

    monotone: bool = False  #: whether one more row never lowers a score

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
        levels = () if aggregate.level is None else (aggregate.level,)
        return Choice((aggregate.name,), self, self.candidates(aggregate, room), levels)

    @abstractmethod
    def candidates(self, aggregate: Aggregate, room: int) -> Candidates:
        """Return at most `room` candidates, or raise an error."""

    def row_sensitivity(self, choice: Choice) -> int:  # noqa: ARG002
        """Return the largest change of a score when one row is added."""
        return 1

    def replaced_sensitivity(self, choice: Choice, *, alone: bool) -> int:  # noqa: ARG002
        """Return what a score of a cell counts as moving when one row takes the place of another.

        `alone` says that there is only one cell. Otherwise the rows may be in two cells, which move each by one row.
        """
        return 2 * self.row_sensitivity(choice)

    @abstractmethod
    def score(self, choice: Choice, rate: Fraction, *, interval: bool) -> ScoreFunction:
        """Return the score function of a selection at this rate, with or without an interval."""

    @abstractmethod
    def interval(self, score: ScoreFunction, candidates: Candidates, outcomes: Counts) -> tuple[Floats, Floats] | None:
        """Return the ends of the interval of each selected outcome; None if it has none."""


@dataclass(frozen=True)
class Quantile(SelectionAggregate):
    """MEDIAN, PERCENTILE and QUANTILE of x. It is selected together with its interval, if one is wanted."""

    name: str = "quantile"

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
        """Return the sensitivity at these levels."""
        return lcm(*(QuantileScore(level).sensitivity for level in choice.levels))

    def replaced_sensitivity(self, choice: Choice, *, alone: bool) -> int:
        """Return the denominators of the levels, in units of the common sensitivity, for a cell that is alone."""
        if not alone:
            return 2 * self.row_sensitivity(choice)
        common = self.row_sensitivity(choice)
        return max(level.denominator * (common // QuantileScore(level).sensitivity) for level in choice.levels)

    def score(self, choice: Choice, rate: Fraction, *, interval: bool) -> ScoreFunction:
        """Score each quantile, alone or with its interval."""
        common, count = self.row_sensitivity(choice), choice.candidates.count
        parts: list[QuantileScore | IntervalScore] = []
        for level in choice.levels:
            alone = QuantileScore(level)
            own = margin(level, count, rate * (common // alone.sensitivity), len(choice.levels))
            parts.append(IntervalScore(level, own) if interval else alone)
        return parts[0] if len(parts) == 1 else JointScore(tuple(parts))

    def interval(self, score: ScoreFunction, candidates: Candidates, outcomes: Counts) -> tuple[Floats, Floats] | None:
        """Return the ends that were selected, or the whole range."""
        none = np.zeros_like(outcomes)
        _, low, high = (
            score.ends(outcomes, candidates.count)
            if isinstance(score, IntervalScore)
            else (outcomes, none, none + candidates.count - 1)
        )
        return _ends(candidates, low, high)


@dataclass(frozen=True)
class Extreme(SelectionAggregate):
    """MIN and MAX of x."""

    name: str
    largest: bool

    def candidates(self, aggregate: Aggregate, room: int) -> Candidates:
        """Return evenly spaced numbers within the bounds."""
        return _spaced(aggregate.arguments[0], aggregate.where, room, self.name.upper())

    def replaced_sensitivity(self, choice: Choice, *, alone: bool) -> int:  # noqa: ARG002
        """Return 1 for a cell that is alone: each count moves by at most one row."""
        return 1 if alone else 2

    def score(self, choice: Choice, rate: Fraction, *, interval: bool) -> ScoreFunction:  # noqa: ARG002
        """Score the extreme at the depth that an empty candidate rarely passes."""
        return ExtremeScore(self.largest, depth(choice.candidates.count, rate))

    def interval(
        self,
        score: ScoreFunction,  # noqa: ARG002
        candidates: Candidates,
        outcomes: Counts,
    ) -> tuple[Floats, Floats] | None:
        """Return an interval that is open toward the extreme."""
        none = np.zeros_like(outcomes)
        last = none + candidates.count - 1
        return _ends(candidates, outcomes, last) if self.largest else _ends(candidates, none, outcomes)


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
            return Candidates(x, aggregate.where, len(values), values=tuple(values))
        if x.kind is Kind.INTEGER or (x.kind is Kind.REAL and facts(x).step is not None):
            return _spaced(x, aggregate.where, room, "MODE")
        raise QueryError(
            "HB563",
            "MODE needs a finite list of values to choose from.",
            "Declare the values of the column, or its bounds and step.",
        )

    def replaced_sensitivity(self, choice: Choice, *, alone: bool) -> int:  # noqa: ARG002
        """Return 1: one count falls and another rises; in two cells, each moves one way."""
        return 1

    def score(self, choice: Choice, rate: Fraction, *, interval: bool) -> ScoreFunction:  # noqa: ARG002
        """Score by the count."""
        return CountScore()

    def interval(self, score: ScoreFunction, candidates: Candidates, outcomes: Counts) -> None:
        """Return no interval."""


def share(selected: Sequence[Choice], cells: int) -> tuple[Choice, ...]:
    """Join quantiles of the same rows into one choice, if there are several and it is not too much work.

    Two are better off alone: the intervals of choices that are made together are wider.
    """
    shared: dict[object, list[Choice]] = {}
    for choice in selected:
        alone = not isinstance(choice.aggregate, Quantile)
        shared.setdefault((choice.names if alone else None, choice.candidates), []).append(choice)
    joined = []
    for choices in shared.values():
        levels = tuple(level for choice in choices for level in choice.levels)
        first = choices[0]
        common = lcm(*(QuantileScore(level).sensitivity for level in levels))
        work = cells * len(levels) * IntervalScore(Fraction(1, 2), 1).outcomes(first.candidates.count)
        if _FEWEST_SHARED <= len(levels) <= MAX_PARTS and common <= _MAX_FACTOR and work <= _MAX_WORK:
            names = tuple(name for choice in choices for name in choice.names)
            joined.append(replace(first, names=names, levels=levels))
        else:
            joined += choices
    return tuple(joined)


def _ends(candidates: Candidates, low: Counts, high: Counts) -> tuple[Floats, Floats]:
    """Return the numbers that round to a candidate between two others, within the bounds of the values."""
    half, shown, bounds = float(candidates.step) / 2, candidates.shown(), facts(candidates.expr).bounds
    first, last = (shown[0] - half, shown[-1] + half) if bounds is None else (float(bounds.low), float(bounds.high))
    from_range = np.where(low == 0, first, shown[low] - half)
    to_range = np.where(high == candidates.count - 1, last, shown[high] + half)
    return np.maximum(from_range, first), np.minimum(to_range, last)


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
