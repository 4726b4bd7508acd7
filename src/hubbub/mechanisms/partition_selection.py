"""Partition selection, which releases a key only if its noisy count reaches a threshold."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.distributions import NoiseDistribution, least, slip
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Approximate
from hubbub.core.reals import Enclosure
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import UNLISTED, check_size, independent
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.sensitivity import check_relation
from hubbub.noise.source import RandomSource

Selected = tuple[NDArray[np.int64], NDArray[np.int64]]  #: positions of the released keys, and their noisy counts


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection:
    """Add noise to the count of every key that occurs; release the keys that reach the threshold, with noisy counts.

    Theorem (Thresholded keys). Let each unit add to at most k keys, between 1 and c to each, let the noise keep the
    loss L for the counts of a fixed set of keys, and let p = Pr[c + Z ≥ τ]. Then showing the noisy counts that reach
    τ, of the keys that occur, keeps L but for events of probability δ = 1 − (1−p)^k on each side; with Pure(ε) it is
    (ε, δ)-private.
    Proof    Let x, x′ be neighbors, K the keys of both, and E the event that no key outside K is shown. A key of x
             outside K is owned by the one unit that x′ lacks: there are at most k of them, each of true count at most
             c, their noises are independent, so Pr[E | x] ≥ (1−p)^k, and the same for x′. Given E, the answer is that
             of the noise on the fixed keys K (of which showing those that reach τ is a function), as it does not
             depend on the other noises: so it keeps L between x and x′. Then x = (1−δ)·P + δ·P″ and x′ = (1−δ)·Q +
             δ·Q″ with P, Q keeping L, and for L = Pure(ε): (1−δ)P(S) + δP″(S) ≤ e^ε(1−δ)Q(S) + δ ≤ e^ε·Pr[x′ ∈ S] + δ.
    Assumes  counts are bounded by k and c for each unit; under replace both units move the counts (sensitivity
             doubles), and each side has its own k slips (δ does not double); a key that occurs has a count of at
             least 1.
    Charges  Approximate(L, δ), δ rounded up to 30 places.   Error  that of the noise, on the keys that are shown.
    Tested   tests/mechanisms/test_partition_selection.py::test_slips_have_exactly_the_stated_probability
             tests/mechanisms/test_partition_selection.py::test_printed_rule_for_one_contribution_fails_for_two
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    keys: int
    contribution: int
    relation: Relation
    noise: Laplace | Gaussian
    threshold: int

    def __post_init__(self) -> None:
        needed = _sensitivity(type(self.noise), self.keys, self.contribution, self.relation)
        noise = self.noise
        given = noise.sensitivity if isinstance(noise, Laplace) else noise.sensitivity_squared
        if not given >= needed:
            raise ParameterError(
                "HB156",
                "The noise is calibrated to a smaller sensitivity than these keys and contributions require.",
                f"Calibrate the noise to a sensitivity of {needed} (squared, if Gaussian).",
            )
        numbers.integer(self.threshold, "threshold", self.contribution + 1, 10**18)
        if not self.delta <= numbers.DELTA_MAX:
            raise ParameterError("HB103", "The threshold is so low that δ exceeds ½.", "Choose a larger threshold.")

    @classmethod
    def from_epsilon(
        cls, *, keys: int, contribution: int, relation: Relation, epsilon: numbers.Number, delta: numbers.Number
    ) -> "PartitionSelection":
        """Calibrate Laplace noise to ε, and choose the least threshold that satisfies δ.

        >>> one = {"keys": 1, "contribution": 1, "relation": Relation.ADD_REMOVE}
        >>> t = PartitionSelection.from_epsilon(**one, epsilon=1, delta="1e-6")
        >>> t.threshold, float(t.delta)
        (15, 6.078962034778829e-07)
        """
        needed = _sensitivity(Laplace, keys, contribution, relation)
        noise = Laplace.from_epsilon(sensitivity=needed, epsilon=epsilon)
        return cls.least(keys=keys, contribution=contribution, relation=relation, noise=noise, delta=delta)

    @classmethod
    def least(
        cls, *, keys: int, contribution: int, relation: Relation, noise: Laplace | Gaussian, delta: numbers.Number
    ) -> "PartitionSelection":
        """Choose the least threshold that satisfies δ under a given noise."""
        goal = numbers.delta(delta)
        keys = numbers.integer(keys, "keys", 1, numbers.SENSITIVITY_MAX)
        distribution = noise.noise

        def satisfies(above: int) -> bool:
            return slip(distribution, above, keys) <= goal

        # about the distance above the contribution at which one key is released with probability δ/k
        above = least(satisfies, distribution.guess(float(goal / keys)) + 1)
        threshold = numbers.integer(contribution, "contribution", 1, numbers.SENSITIVITY_MAX) + above
        return cls(keys=keys, contribution=contribution, relation=relation, noise=noise, threshold=threshold)

    @property
    def delta(self) -> Fraction:
        """The probability that a key of a single unit is released, rounded up."""
        return slip(self.noise.noise, self.threshold - self.contribution, self.keys)

    @property
    def event(self) -> events.ThresholdEvent:
        """The event that the ledger records."""
        return events.ThresholdEvent(self.noise.event, self.keys, self.threshold - self.contribution)

    @property
    def loss(self) -> Approximate:
        """The loss of the noise, with failure probability δ."""
        return Approximate(self.noise.loss, self.delta)

    def sample(self, value: NDArray[np.int64], source: RandomSource) -> Selected:
        """Return the positions of the released keys and their noisy counts; keys of count 0 do not occur."""
        return noisy_above(self.noise, self.threshold, value, source)

    def distribution(
        self, value: tuple[int, ...], ceiling: int | None = None
    ) -> FiniteDistribution[tuple[int | None, ...]]:
        """List the distribution for a few keys: the noisy count or None; counts above a ceiling are merged into it."""
        return independent([distribution_of_key(self.noise.noise, self.threshold, count, ceiling) for count in value])

    def error(self, level: Fraction) -> Fraction:
        """Return the half-width of the noise on one key (whether or not it is released)."""
        return self.noise.error(level)


def noisy_above(noise: Laplace | Gaussian, threshold: int, value: NDArray[np.int64], source: RandomSource) -> Selected:
    """Add noise to the positive entries; return the positions and the noisy values that reach the threshold."""
    occurs = np.flatnonzero(value > 0)
    noisy = noise.sample(value[occurs].astype(np.int64), source)
    released = noisy >= threshold
    return occurs[released], noisy[released]


def distribution_of_key(
    distribution: NoiseDistribution, threshold: int, count: int, ceiling: int | None
) -> FiniteDistribution[int | None]:
    """List the distribution of what is shown of one key: a noisy count from the threshold on, or None."""
    if count <= 0:
        return FiniteDistribution({None: (Fraction(1), Fraction(1))})
    # the noise is symmetric: Pr[count + Z < τ] = Pr[Z ≥ count − τ + 1]
    mass: dict[int | None, Enclosure] = {None: distribution.tail(count - threshold + 1).enclosure}
    if ceiling is None:
        reach = least(lambda w: distribution.tail(w + 1).high <= UNLISTED, distribution.guess(float(UNLISTED)))
        end, unlisted = max(threshold, count) + reach + 1, UNLISTED
    else:
        end, unlisted = ceiling, Fraction(0)
        mass[ceiling] = distribution.tail(ceiling - count).enclosure
    check_size(end - threshold)
    for shown in range(threshold, end):
        mass[shown] = distribution.mass(shown - count).enclosure
    return FiniteDistribution(mass, unlisted)


def _sensitivity(kind: type[Laplace] | type[Gaussian], keys: int, contribution: int, relation: Relation) -> int:
    keys = numbers.integer(keys, "keys", 1, numbers.SENSITIVITY_MAX)
    contribution = numbers.integer(contribution, "contribution", 1, numbers.SENSITIVITY_MAX)
    check_relation(relation)
    if kind is Laplace:
        return numbers.sensitivity(keys * contribution * relation.units_changed)
    if kind is Gaussian:
        # two units on different keys: 2k changes of c; on one key they differ by less than c
        return keys * contribution * contribution * relation.units_changed
    raise ParameterError("HB155", "The noise is not Laplace or Gaussian.", "Pass a Laplace or a Gaussian mechanism.")
