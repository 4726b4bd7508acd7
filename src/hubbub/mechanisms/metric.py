"""Noise on a finite metric space, with probabilities that decay exponentially with the distance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ZERO, Interval, exp, total
from hubbub.core.loss import BoundedRange, Pure
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.exponential import softmax
from hubbub.noise.choice import choose
from hubbub.noise.source import RandomSource

_MAX_POINTS = 2000
_MAX_UNITS = 1 << 60
_LIMIT = Fraction(numbers.SENSITIVITY_MAX)


@dataclass(frozen=True)
class Space:
    """A finite metric space whose distances are whole multiples of one unit.

    The constructor checks the axioms: zero exactly on the diagonal, symmetry and the triangle inequality.
    """

    unit: Fraction
    distances: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        integral = all(type(d) is int and 0 <= d <= _MAX_UNITS for row in self.distances for d in row)
        square = all(len(row) == len(self.distances) for row in self.distances)
        if not integral or not square or not 1 <= len(self.distances) <= _MAX_POINTS:
            raise ParameterError(
                "HB158", "The distances are not a square table of whole numbers.", "Create the space with Space.of."
            )
        object.__setattr__(self, "unit", _positive(self.unit, "unit"))
        table = self.table
        points = len(table)
        off_diagonal = ~np.eye(points, dtype=np.bool_)
        is_metric = (
            bool((np.diagonal(table) == 0).all())
            and bool((table[off_diagonal] > 0).all())
            and bool((table == table.T).all())
            and all(bool((table <= table[:, k, None] + table[None, k, :]).all()) for k in range(points))
        )
        if not is_metric:
            raise ParameterError(
                "HB158", "The distances do not form a metric space.", "Check symmetry and the triangle inequality."
            )

    @classmethod
    def of(cls, distances: Sequence[Sequence[numbers.Number]]) -> "Space":
        """Create a space from a square table of exact distances.

        >>> Space.of([[0, "0.5"], ["0.5", 0]])
        Space(unit=Fraction(1, 2), distances=((0, 1), (1, 0)))
        """
        exact = [[numbers.in_range(d, "distance", Fraction(0), _LIMIT) for d in row] for row in distances]
        unit = Fraction(1, math.lcm(1, *(d.denominator for row in exact for d in row)))
        return cls(unit, tuple(tuple(int(d / unit) for d in row) for row in exact))

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """The distances in units, as an array."""
        return np.array(self.distances, dtype=np.int64)

    @cached_property
    def uniform(self) -> bool:
        """Whether all points have the same multiset of distances: exactly then the normalizer is constant.

        Theorem (Constant normalizer). Σ_y exp(−rate·d(z, y)) is the same for all z if and only if all z have the same
        multiset of distances, for rational rate > 0 and rational distances.
        Proof    e^a for distinct rational a are linearly independent over the rationals (Lindemann and Weierstrass),
                 and the sums have whole coefficients.
        Tested   tests/mechanisms/test_metric.py::test_factor_two_drops_only_where_the_normaliser_is_constant
        """
        ordered = np.sort(self.table, axis=1)
        return bool((ordered == ordered[0]).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Choose a point y with probability proportional to exp(−rate·d(f(x), y)).

    Theorem (Metric space mechanism). If f moves by at most S between neighbors, the choice is 2·rate·S-private, and
    rate·S-private where the normalizer is constant (Dwork, McSherry, Nissim and Smith 2006, Theorem 2 and Remark 1,
    with the minus sign in the exponent that equation 4 lacks, and dividing by S once). So rate = ε/(2S), or ε/S.
    Proof    d(f(x), y) and d(f(x′), y) differ by at most S, by the triangle inequality; so do the terms of the
             normalizer, which costs the same again unless it is constant.
    Assumes  a finite metric space with rational distances; S for the relation of the unit; the choice is exact.
    Charges  BoundedRange(2·rate·S) (it is an exponential mechanism with scores −d), or Pure(rate·S).
    Error    `error` is the exact quantile of the distance, at the worst point.
    Tested   tests/mechanisms/test_metric.py::test_printed_exponent_moves_away_from_the_truth
             tests/mechanisms/test_metric.py::test_factor_two_drops_only_where_the_normaliser_is_constant
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    space: Space
    sensitivity: Fraction
    rate: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise ParameterError("HB158", "The space is not a finite metric space.", "Pass a Space.")
        object.__setattr__(self, "sensitivity", _positive(self.sensitivity, "sensitivity"))
        object.__setattr__(self, "rate", _positive(self.rate, "rate"))

    @classmethod
    def from_epsilon(cls, *, space: Space, sensitivity: numbers.Number, epsilon: numbers.Number) -> "Metric":
        """Calibrate the rate to ε/(2S), or to ε/S where the normalizer is constant."""
        distance = _positive(sensitivity, "sensitivity")
        factor = 1 if space.uniform else 2
        return cls(space=space, sensitivity=distance, rate=numbers.epsilon(epsilon) / (distance * factor))

    @property
    def event(self) -> events.MetricEvent:
        """The event that the ledger records."""
        return events.MetricEvent(self.sensitivity, self.rate, self.space.uniform)

    @property
    def loss(self) -> Pure | BoundedRange:
        """Pure(rate·S) with a constant normalizer, else bounded range of twice that."""
        loss = self.rate * self.sensitivity
        return Pure(loss) if self.space.uniform else BoundedRange(2 * loss)

    def sample(self, value: int, source: RandomSource) -> int:
        """Sample the index of a point near the point with the given index."""
        return choose(scores=-self.space.table[self._point(value)], rate=self.rate * self.space.unit, source=source)

    def distribution(self, value: int) -> FiniteDistribution[int]:
        """List the probability of each point."""
        row = self.space.distances[self._point(value)]
        shares = softmax(self.rate * self.space.unit, [-distance for distance in row])
        return FiniteDistribution(dict(enumerate(share.enclosure for share in shares)))

    def error(self, level: Fraction) -> Fraction:
        """Return the least r such that from every point the choice is within r with probability at least `level`."""
        goal = numbers.confidence(level)
        profiles = {tuple(row) for row in np.sort(self.space.table, axis=1).tolist()}
        distances = {distance for profile in profiles for distance in profile}
        weights = {distance: exp(-self.rate * self.space.unit * distance) for distance in distances}
        return max(_quantile(profile, weights, goal) for profile in profiles) * self.space.unit

    def _point(self, value: int) -> int:
        if not 0 <= value < len(self.space.distances):
            raise MechanismError("HB612", "The value is not the index of a point.", "Number the points from 0.")
        return value


def _quantile(distances: tuple[int, ...], weights: dict[int, Interval], goal: Fraction) -> int:
    """Return the least of increasing distances within which a share of at least `goal` surely lies."""
    needed = goal * total(weights[distance] for distance in distances)
    covered = ZERO
    for distance in distances:
        covered += weights[distance]
        if covered.low >= needed.high:
            return distance
    return distances[-1]


def _positive(value: numbers.Number, name: str) -> Fraction:
    return numbers.in_range(value, name, 1 / _LIMIT, _LIMIT)
