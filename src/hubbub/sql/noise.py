"""What is drawn: a measure together with the noise that is added to it, a choice together with its selections."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from statistics import NormalDist
from typing import Literal

from hubbub.core import numbers, reals
from hubbub.core.events import Event
from hubbub.core.unit import Relation
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.aggregates.order import Aim, Choice, Extreme, Mode, Target, beyond
from hubbub.sql.measures import Measure, Reach, Sensitivity

Noise = Literal["laplace", "gaussian"]

#: How much of a quantile's portion goes to its estimate; the rest goes to the two ends of its interval.
ESTIMATE = Fraction(1, 2)
#: Each end of an interval may slip so often, and the count that says whether there is one at all half as often.
SLIP = Fraction(1, 50)


@dataclass(frozen=True)
class Noised:
    """A measure over all cells of all grouping sets, with its noise."""

    measure: Measure
    sensitivity: Sensitivity
    portion: Fraction  #: of ε, or of ρ where the noise is Gaussian
    mechanism: Laplace | Gaussian

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of its noise, in steps."""
        variance = self.mechanism.variance
        return sqrt(variance[1] if isinstance(variance, tuple) else variance)


def half_width(mechanism: Laplace | Gaussian, level: Fraction) -> float:
    """Give the half width of one noise: exact for Laplace noise; for Gaussian that of its continuous twin and ½."""
    if isinstance(mechanism, Laplace):
        return float(mechanism.error(level))
    return NormalDist().inv_cdf((1 + float(level)) / 2) * sqrt(mechanism.variance) + 0.5


def mechanism(kind: Noise, moved: Sensitivity, portion: Fraction) -> Laplace | Gaussian:
    """Calibrate the noise of a measure to its portion of ε, or of ρ."""
    if kind == "laplace":
        l1 = max(1, moved.l1)
        return Laplace(sensitivity=l1, scale=max(l1 / portion, numbers.SCALE_MIN))
    squared = max(1, moved.l2_squared)
    return Gaussian(sensitivity_squared=squared, variance=max(squared / (2 * portion), numbers.SCALE_MIN**2))


@dataclass(frozen=True, slots=True)
class Pick:
    """One selection, made in every cell."""

    aim: Aim
    mechanism: Exponential


@dataclass(frozen=True, slots=True)
class Chosen:
    """A choice in every cell: its estimate first, then the ends of its interval where it has two.

    `times` is how many cells of all grouping sets one unit reaches: so often the loss of one selection is paid.
    """

    choice: Choice
    histogram: int
    portion: Fraction
    times: int
    picks: tuple[Pick, ...]

    @property
    def events(self) -> tuple[tuple[Event, int], ...]:
        """The facts that are charged."""
        return tuple((pick.mechanism.event, self.times) for pick in self.picks)


def chosen(
    choice: Choice,
    histogram: int,
    *,
    kind: Noise,
    portion: Fraction,
    reaches: tuple[Reach, ...],
    relation: Relation,
    intervals: bool,
) -> Chosen:
    """Calibrate the selections of a choice.

    Theorem (Selections in bounded cells). Let a unit reach at most G cells over all grouping sets, with at most r rows
    in each, and let a row move each score of its cell by at most s. With one selection in every cell, the loss of all
    is that of G selections whose scores move by r·s under add/remove, and by 2·r·s under replace.
    Proof    Cells are independent given the data, and only those that the unit reaches have another law. Under replace
             a cell that both units reach moves by 2rs, others by rs: there are at most G − k others on each side where
             k are shared. In pure losses two cells that move by rs cost as much as one that moves by 2rs; in squares,
             which bounded range is made of, they cost less. So the worst case is G cells that move by 2rs.
    Assumes  scores of a cell depend on its rows alone. Scores that are counts move one way under add/remove.
    Charges  G times the event of one selection, for the estimate and for each end of the interval.
    Tested   tests/sql/test_aggregates.py::test_scores_move_by_no_more_than_their_sensitivity
    """
    times = sum(reach.touched for reach in reaches)
    rows = max(reach.rows for reach in reaches)
    ended = intervals and choice.function == "quantile"
    parts = [ESTIMATE, (1 - ESTIMATE) / 2, (1 - ESTIMATE) / 2] if ended else [Fraction(1)]
    level = choice.level if choice.level is not None else Fraction(1)
    per_row = Target(level).sensitivity if choice.function == "quantile" else 1
    moved = per_row * rows * relation.units_changed
    one_way = choice.function == "mode" and relation is Relation.ADD_REMOVE
    selections = [
        Exponential(
            candidates=choice.candidates.count,
            sensitivity=moved,
            monotone=one_way,
            rate=_rate(kind, portion * part, times, moved * (1 if one_way else 2)),
        )
        for part in parts
    ]
    aims: list[Aim]
    if choice.function == "quantile":
        aims = [Target(level)]
        if ended:
            # the end is aimed so far below (above) the quantile as it may miss
            shift = -(-beyond(choice.candidates.count, selections[1].rate, SLIP) // level.denominator)
            aims += [Target(level, -shift), Target(level, shift)]
    elif choice.function == "mode":
        aims = [Mode()]
    else:
        aims = [Extreme(choice.function == "max", beyond(choice.candidates.count, selections[0].rate, 2 * SLIP))]
    picks = tuple(Pick(aim, selection) for aim, selection in zip(aims, selections, strict=True))
    return Chosen(choice, histogram, portion, times, picks)


def _rate(kind: Noise, portion: Fraction, times: int, moved: int) -> Fraction:
    """Give the rate at which so many selections cost the portion: ε = times·e or ρ = times·e²/8, e = rate·moved."""
    each = portion / times if kind == "laplace" else reals.sqrt(8 * portion / times)[0]
    # floored to a decimal, so that the loss times `times` is exact and not above the portion
    return min(reals.floor_to(each, numbers.MAX_PLACES) / moved, 1 / numbers.SCALE_MIN)
