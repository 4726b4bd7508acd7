"""Noise calibration: measures with their additive noise, and choices with their private selections.

Tested in tests/sql/test_aggregates.py.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers, reals
from hubbub.core.events import Event
from hubbub.core.unit import Relation
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.joint_exponential import JointExponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.noise.source import RandomSource
from hubbub.sql.aggregates.order_statistics import Choice
from hubbub.sql.aggregates.scores import JointScore, ScoreFunction
from hubbub.sql.measures import Measure, Sensitivity, UnitContribution

Noise = Literal["laplace", "gaussian"]
Selection = PermuteAndFlip | Exponential | JointExponential


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Releases a public number as it is: see `public_rows`. It has no event, because it costs nothing."""

    @property
    def variance(self) -> Fraction:
        """The variance of no noise."""
        return Fraction(0)

    def sample(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the numbers."""
        return values


@dataclass(frozen=True)
class NoisyMeasure:
    """A measure over all cells of all grouping sets, with its noise."""

    measure: Measure
    sensitivity: Sensitivity
    portion: Fraction  #: of ε, or of ρ where the noise is Gaussian
    mechanism: Laplace | Gaussian | NoNoise

    @property
    def event(self) -> Event | None:
        """What its noise is charged as; None if it is public."""
        return None if isinstance(self.mechanism, NoNoise) else self.mechanism.event

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of its noise, in steps."""
        return standard_deviation(self.mechanism)


def standard_deviation(mechanism: Laplace | Gaussian | NoNoise) -> float:
    """Return the standard deviation of a noise, in steps."""
    variance = mechanism.variance
    return sqrt(variance[1] if isinstance(variance, tuple) else variance)


def half_width(mechanism: Laplace | Gaussian | NoNoise, level: Fraction) -> float:
    """Return the half width of an interval for one noise: exact for Laplace; for Gaussian, continuous plus ½."""
    if isinstance(mechanism, NoNoise):
        return 0.0
    if isinstance(mechanism, Laplace):
        return float(mechanism.error(level))
    return NormalDist().inv_cdf((1 + float(level)) / 2) * sqrt(mechanism.variance) + 0.5


def calibrate_noise(kind: Noise, moved: Sensitivity, portion: Fraction) -> Laplace | Gaussian:
    """Calibrate the noise of a measure to its share of ε or ρ."""
    if kind == "laplace":
        l1 = max(1, moved.l1)
        return Laplace(sensitivity=l1, scale=max(l1 / portion, numbers.SCALE_MIN))
    squared = max(1, moved.l2_squared)
    return Gaussian(sensitivity_squared=squared, variance=max(squared / (2 * portion), numbers.SCALE_MIN**2))


@dataclass(frozen=True, slots=True)
class CellSelections:
    """The selection of one choice in every cell.

    `times` is the number of cells that one unit can touch over all grouping sets. The selection is charged that often.
    """

    choice: Choice
    histogram: int
    portion: Fraction
    times: int
    score: ScoreFunction
    mechanism: Selection

    @property
    def events(self) -> tuple[tuple[Event, int], ...]:
        """The events to charge, with their multiplicities."""
        return ((self.mechanism.event, self.times),)


def calibrate_selections(
    choice: Choice,
    histogram: int,
    *,
    kind: Noise,
    portion: Fraction,
    contributions: tuple[UnitContribution, ...],
    relation: Relation,
    intervals: bool,
) -> CellSelections:
    """Calibrate the selection of a choice.

    Theorem (Selections in bounded cells). Let a unit reach at most G cells over all grouping sets, with at most r rows
    in each, and let a row move each score of its cell by at most s. With one selection in every cell, the loss of all
    is that of G selections whose scores move by r·s under add/remove, and by 2·r·s under replace.
    Proof    Cells are independent given the data, and only those that the unit reaches have another distribution. Under
             replace a cell that both units reach moves by 2rs, others by rs: there are at most G − k others on each
             side where k are shared. In pure losses two cells that move by rs cost as much as one that moves by 2rs; in
             squares, which bounded range is made of, they cost less. So the worst case is G cells that move by 2rs.
             With at most T rows in all cells together, ⌈T/r⌉ full cells cost at least as much: the cost of a cell is
             convex in its rows, and 0 without rows.
    Assumes  scores of a cell depend on its rows alone. Scores that are counts move one way under add/remove.
    Charges  G times the event of one selection. An interval is selected with its estimate and costs nothing more.
    Tested   tests/sql/test_scores.py::test_scores_move_by_no_more_than_their_sensitivity
    """
    times = sum(contribution.full_cells for contribution in contributions)
    rows = max(contribution.rows for contribution in contributions)
    loss = portion / times if kind == "laplace" else reals.sqrt(8 * portion / times)[0]
    score, mechanism = calibrate_selection(
        choice, kind=kind, loss=loss, rows=rows, relation=relation, interval=intervals
    )
    return CellSelections(choice, histogram, portion, times, score, mechanism)


def calibrate_selection(
    choice: Choice, *, kind: Noise, loss: Fraction, rows: int, relation: Relation, interval: bool
) -> tuple[ScoreFunction, Selection]:
    """Calibrate one selection to a pure loss, if one unit has at most this many rows in the cell.

    Permute-and-flip is more accurate at the same pure loss. The exponential mechanism has bounded range, so that its
    pure loss may be twice as large where ρ is spent.
    """
    aggregate = choice.aggregate
    moved = aggregate.row_sensitivity(choice) * rows * relation.units_changed
    one_way = aggregate.monotone and relation is Relation.ADD_REMOVE
    # round down to a decimal, so that the total loss is exact and at most the portion
    rate = reals.floor_to(loss, numbers.MAX_PLACES) / (moved * (1 if one_way else 2))
    rate = min(rate, 1 / numbers.SCALE_MIN)
    score = aggregate.score(choice, rate, interval=interval)
    outcomes = score.outcomes(choice.candidates.count)
    if isinstance(score, JointScore):
        sizes = tuple(part.outcomes(choice.candidates.count) for part in score.parts)
        return score, JointExponential(candidates=outcomes, sensitivity=moved, monotone=False, rate=rate, sizes=sizes)
    rule = PermuteAndFlip if kind == "laplace" else Exponential
    return score, rule(candidates=outcomes, sensitivity=moved, monotone=one_way, rate=rate)
