"""Partition selection by weights, for units that have many keys."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.distributions import blocks_of_keys, least, weight_of_key, weighted_slip
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Approximate
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import independent
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.partition_selection import Selected, distribution_of_key, noisy_above
from hubbub.mechanisms.sensitivity import check_relation
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSelection:
    """Add Gaussian noise to the total weight of every key; release the keys that reach the threshold, with weights.

    Theorem (Weighted keys). Let each unit choose n ≤ k keys by its own data alone and add ⌊W/√n⌋ to each, and let the
    noise keep the loss L for vectors that differ by W² in squared L2, or 2W² under replace. Then showing the noisy
    weights that reach τ, of the keys of positive weight, keeps L but for events of probability δ on each side, where
    δ is the maximum of 1 − (1 − Pr[⌊W/√n⌋ + Z ≥ τ])ⁿ over n ≤ k (Gopi and others 2020).
    Proof    A unit's vector v has n entries of at most W/√n, so ‖v‖² ≤ W². One unit more or less changes the weights by
             its own vector, as the weights of others do not depend on it. Another unit in its place changes them by
             v − w, and ‖v − w‖² ≤ ‖v‖² + ‖w‖² as no entry is negative. So on the keys K that both neighbors have, the
             noise keeps L. A key outside K belongs to the unit that the other lacks. If that unit has m keys, n of them
             outside K, each weighs ⌊W/√m⌋ ≤ ⌊W/√n⌋, so that one is shown with probability at most
             1 − (1 − Pr[⌊W/√n⌋ + Z ≥ τ])ⁿ ≤ δ. The rest is the proof for thresholded keys (`PartitionSelection`).
    Assumes  a unit's keys are chosen, and its weights computed, from its own rows; a key of weight 0 does not occur.
    Charges  Approximate(L, δ); δ is bounded over blocks of n and rounded up to 30 places.
    Error    that of the noise, on the weights that are shown.
    Tested   tests/mechanisms/test_weighted_selection.py::test_delta_covers_every_number_of_own_keys
             tests/mechanisms/test_weighted_selection.py::test_weights_of_neighbors_differ_by_no_more_than_stated
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    keys: int
    weight: int
    relation: Relation
    noise: Gaussian
    threshold: int

    def __post_init__(self) -> None:
        needed = _sensitivity_squared(self.keys, self.weight, self.relation)
        if not isinstance(self.noise, Gaussian):
            raise ParameterError("HB155", "The noise is not Gaussian.", "Pass a Gaussian mechanism.")
        if not self.noise.sensitivity_squared >= needed:
            raise ParameterError(
                "HB156",
                "The noise is calibrated to a smaller sensitivity than these weights require.",
                f"Calibrate the noise to a squared sensitivity of {needed}.",
            )
        numbers.integer(self.threshold, "threshold", self.weight + 1, 10**18)
        if not self.delta <= numbers.DELTA_MAX:
            raise ParameterError("HB103", "The threshold is so low that δ exceeds ½.", "Choose a larger threshold.")

    @classmethod
    def from_rho(
        cls, *, keys: int, weight: int, relation: Relation, rho: numbers.Number, delta: numbers.Number
    ) -> "WeightedSelection":
        """Calibrate the noise to ρ, and choose the least threshold that satisfies δ, to a thousandth of the weight.

        >>> WeightedSelection.from_rho(
        ...     keys=16, weight=1000, relation=Relation.ADD_REMOVE, rho="0.5", delta="1e-6"
        ... ).threshold
        5754
        """
        noise = Gaussian.from_rho(sensitivity_squared=_sensitivity_squared(keys, weight, relation), rho=rho)
        return cls.least(keys=keys, weight=weight, relation=relation, noise=noise, delta=delta)

    @classmethod
    def least(
        cls, *, keys: int, weight: int, relation: Relation, noise: Gaussian, delta: numbers.Number
    ) -> "WeightedSelection":
        """Choose the least threshold that satisfies δ under a given noise, to a thousandth of the weight."""
        _sensitivity_squared(keys, weight, relation)
        goal, distribution, grain = numbers.delta(delta), noise.noise, max(1, weight // 1000)

        def satisfies(steps: int) -> bool:
            return weighted_slip(distribution, weight + 1 + steps * grain, weight, keys) <= goal

        guess = max(
            weight_of_key(weight, first) + distribution.guess(float(goal / last))
            for first, last in blocks_of_keys(keys)
        )
        threshold = weight + 1 + least(satisfies, (guess - weight) // grain) * grain
        return cls(keys=keys, weight=weight, relation=relation, noise=noise, threshold=threshold)

    @property
    def delta(self) -> Fraction:
        """A bound on the probability that a key of a single unit is released."""
        return weighted_slip(self.noise.noise, self.threshold, self.weight, self.keys)

    @property
    def event(self) -> events.WeightedThresholdEvent:
        """The event that the ledger records."""
        return events.WeightedThresholdEvent(self.noise.event, self.keys, self.weight, self.threshold)

    @property
    def loss(self) -> Approximate:
        """The loss of the noise, with failure probability δ."""
        return Approximate(self.noise.loss, self.delta)

    def people(self, keys: int) -> int:
        """Return the number of units with so many keys each that bring a key to the threshold, without the noise."""
        return -(-self.threshold // weight_of_key(self.weight, min(keys, self.keys)))

    def sample(self, value: NDArray[np.int64], source: RandomSource) -> Selected:
        """Return the positions of the released keys and their noisy weights; keys of weight 0 do not occur."""
        return noisy_above(self.noise, self.threshold, value, source)

    def distribution(
        self, value: tuple[int, ...], ceiling: int | None = None
    ) -> FiniteDistribution[tuple[int | None, ...]]:
        """List the distribution for a few keys: the noisy weight or None; those above a ceiling are merged into it."""
        return independent([distribution_of_key(self.noise.noise, self.threshold, each, ceiling) for each in value])

    def error(self, level: Fraction) -> Fraction:
        """Return the half-width of the noise on one weight (whether or not it is released)."""
        return self.noise.error(level)


def _sensitivity_squared(keys: int, weight: int, relation: Relation) -> int:
    numbers.integer(keys, "keys", 1, 10**6)
    weight = numbers.integer(weight, "weight", 1, 10**9)
    check_relation(relation)
    return weight * weight * relation.units_changed
