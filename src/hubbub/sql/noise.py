"""Noise calibration: measures with their additive noise, and choices with their private selections.

Tested in tests/sql/test_aggregates.py.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import log, sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers, reals
from hubbub.core.events import Composed, Event
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
from hubbub.sql.split import gaussian_variance

Noise = Literal["laplace", "gaussian"]
Selection = PermuteAndFlip | Exponential | JointExponential

#: A million Laplace noises with a scale below 1/18 are all 0 with 96% or more.
_ALL_ZERO = 18


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
class LinearNoise:
    """The noise of a weighted sum of noisy integers that were released before: it was charged then.

    terms  each noise, the absolute value of its weight, and how many independent copies of it there are at most
    """

    terms: tuple[tuple["Laplace | Gaussian | NoNoise", Fraction, int], ...]

    @property
    def event(self) -> Event:
        """The event of post-processing: nothing is drawn."""
        return Composed(())

    @cached_property
    def variance(self) -> Fraction:
        """An upper bound on the variance: noises of separate draws are independent."""
        copies = Counter[tuple[int, int, int]]()  # of releases of one query, many are equal
        variances = {
            id(noise): variance_of(noise) for noise in {id(noise): noise for noise, _, _ in self.terms}.values()
        }
        for noise, weight, count in self.terms:
            copies[id(noise), weight.numerator, weight.denominator] += count
        parts = (count * Fraction(top, low) ** 2 * variances[noise] for (noise, top, low), count in copies.items())
        return sum(parts, Fraction(0))

    def sample(self, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:  # noqa: ARG002
        """Refuse to draw: the noise is in the released numbers already."""
        raise AssertionError("derived sums are never drawn")

    def half_width(self, level: Fraction) -> float:
        """Return the half width of an interval that holds with at least this probability.

        Theorem (Sums of noises). Let Z = Σ wᵢZᵢ with independent Zᵢ that are Laplace or Gaussian, and hᵢ their half
        widths at a level of at least 95%. Then |Z| ≤ √Σ(wᵢhᵢ)² with at least that probability.
        Proof    A Laplace variable is a Gaussian one with a random variance, exponentially distributed, so Z is a
                 Gaussian with a random variance of the same mean whose spread is largest for a single Laplace noise;
                 at these levels the tail of a Laplace noise is the larger one, and more terms lie between both
                 (`answers.combine` has two noises in closed form). Discrete noises add at most ½ each to hᵢ.
                 A test computes the exact distribution of sums of discrete noises, for many weights and scales.
        Assumes  the noises are drawn by separate draws; no draw is in two terms.   Charges  nothing.
        Tested   tests/sql/test_derived.py::test_intervals_of_sums_cover_by_exact_convolution
        """
        widths = [sqrt(count) * float(weight) * half_width_in_sums(noise, level) for noise, weight, count in self.terms]
        return sqrt(sum(width**2 for width in widths))


@dataclass(frozen=True)
class NoisyMeasure:
    """A measure over all cells of all grouping sets, with its noise."""

    measure: Measure
    sensitivity: Sensitivity
    portion: Fraction  #: of ε, or of ρ where the noise is Gaussian
    mechanism: "AnyNoise"

    @property
    def event(self) -> Event | None:
        """What its noise is charged as; None if it is public."""
        return None if isinstance(self.mechanism, NoNoise) else self.mechanism.event

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of its noise, in steps."""
        return standard_deviation(self.mechanism)


#: What makes a measure noisy.
AnyNoise = Laplace | Gaussian | NoNoise | LinearNoise


def standard_deviation(mechanism: AnyNoise) -> float:
    """Return the standard deviation of a noise, in steps."""
    return sqrt(variance_of(mechanism))


def variance_of(mechanism: AnyNoise) -> Fraction:
    """Return the variance of a noise, or an upper bound close to it."""
    variance = mechanism.variance
    return variance[1] if isinstance(variance, tuple) else variance


@lru_cache(maxsize=4096)
def half_width(mechanism: AnyNoise, level: Fraction) -> float:
    """Return the half width of an interval for one noise: exact for Laplace; for Gaussian, continuous plus ½."""
    if isinstance(mechanism, NoNoise):
        return 0.0
    if isinstance(mechanism, LinearNoise):
        return mechanism.half_width(level)
    if isinstance(mechanism, Laplace):
        return float(mechanism.error(level))
    return NormalDist().inv_cdf((1 + float(level)) / 2) * sqrt(mechanism.variance) + 0.5


def half_width_in_sums(mechanism: AnyNoise, level: Fraction) -> float:
    """Return a ± of one noise whose squares may be added up for a sum of many.

    The exact half width of discrete Laplace noise is no multiple of its deviation: it is 0 where one noise is 0 with
    95%, though among a hundred of them several are not. So this is that of continuous noise, plus ½ as for Gaussian
    noise, unless even a million noises are likely all 0.
    """
    exact = half_width(mechanism, level)
    if not isinstance(mechanism, Laplace) or float(mechanism.scale) * _ALL_ZERO < 1:
        return exact
    return max(exact, -log(1 - float(level)) * float(mechanism.scale) + 0.5)


def calibrate_noise(kind: Noise, moved: Sensitivity, portion: Fraction) -> Laplace | Gaussian:
    """Calibrate the noise of a measure to its share of ε or ρ."""
    if kind == "laplace":
        l1 = max(1, moved.l1)
        return Laplace(sensitivity=l1, scale=max(l1 / portion, numbers.SCALE_MIN))
    squared = max(1, moved.l2_squared)
    return Gaussian(sensitivity_squared=squared, variance=gaussian_variance(squared, portion))


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
    is that of G selections whose scores move by r·s under add/remove, and by r·t under replace: t = 2s in general, and
    t = s for counts; where there is one cell only, t = s for extremes, and t = b for a quantile of level a/b.
    Proof    Cells are independent given the data, and only those that the unit reaches have another distribution. Under
             replace a cell that both units reach moves by 2rs, others by rs: there are at most G − k others on each
             side where k are shared. In pure losses two cells that move by rs cost as much as one that moves by 2rs; in
             squares, which bounded range is made of, they cost less. So the worst case is G cells that move by 2rs.
             A count moves by at most r in a shared cell, where some fall and others rise, so its range is 2r; in a cell
             that is not shared it moves one way, so its range is r, and two of them cost no more. A single cell is
             shared: an extreme is scored by counts of rows on one side, which move by at most r; the slack of a
             quantile, a·n − b·#{x < c}, is Σ(a or a − b) over rows, from −(b−a)r to ar for each unit, so it moves by
             at most br, and so does the other slack.
             With at most T rows in all cells together, ⌈T/r⌉ full cells cost at least as much: the cost of a cell is
             convex in its rows, and 0 without rows.
    Assumes  scores of a cell depend on its rows alone. Scores that are counts move one way under add/remove.
    Charges  G times the event of one selection. An interval is selected with its estimate and costs nothing more.
    Tested   tests/sql/test_scores.py::test_scores_move_by_no_more_than_their_sensitivity
             tests/sql/test_scores.py::test_a_replaced_unit_moves_scores_by_no_more_than_is_charged
    """
    times = sum(contribution.full_cells for contribution in contributions)
    rows = max(contribution.rows for contribution in contributions)
    # see `zcdp_budget`: the Gaussian filter charges (11/7)·ε²/4 for a range of ε
    loss = portion / times if kind == "laplace" else reals.sqrt(Fraction(56, 11) * portion / times)[0]
    score, mechanism = calibrate_selection(
        choice,
        kind=kind,
        loss=loss,
        rows=rows,
        relation=relation,
        interval=intervals,
        alone=sum(contribution.cells for contribution in contributions) == 1,
    )
    return CellSelections(choice, histogram, portion, times, score, mechanism)


def calibrate_selection(
    choice: Choice, *, kind: Noise, loss: Fraction, rows: int, relation: Relation, interval: bool, alone: bool
) -> tuple[ScoreFunction, Selection]:
    """Calibrate one selection to a pure loss, if one unit has at most this many rows in the cell.

    Permute-and-flip is more accurate at the same pure loss. The exponential mechanism has bounded range, so that its
    pure loss may be twice as large where ρ is spent.
    """
    aggregate = choice.aggregate
    if relation is Relation.ADD_REMOVE:
        moved = aggregate.row_sensitivity(choice) * rows
    else:
        moved = aggregate.replaced_sensitivity(choice, alone=alone) * rows
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
