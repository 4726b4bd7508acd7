"""Randomized response on bit vectors: each bit is flipped independently (noise on the Hamming cube)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers, reals
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ZERO, Interval, exp
from hubbub.core.loss import Pure
from hubbub.errors import MechanismError
from hubbub.mechanisms.additive import check_size
from hubbub.noise.bernoulli import bernoulli_logistic
from hubbub.noise.source import RandomSource

Bits = NDArray[np.bool_]

_MAX_BITS = 10**8
_MAX_SUMMED = 10**5


@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlips:
    """Flip each bit independently with probability 1/(1 + e^rate).

    Theorem (Hamming cube). If the vectors of neighbors differ in at most S bits, flipping each bit with probability
    1/(1 + e^rate) is S·rate-private; so p = 1/(1 + e^(ε/S)) costs ε.
    Proof    Each bit that differs adds ±rate to the log-ratio, and the others nothing. (It is Pr ∝ exp(−rate·Hamming
             distance) on a space with a constant normalizer. The approximation ½ − ε/(2S) for p costs about 2ε.)
    Assumes  S for the relation of the unit. Two bits of one person are two bits: two coins of ¾ cost ln 9, not ln 3.
    Charges  Pure(S·rate).
    Error    the number of flipped bits is binomial; `error` is its exact quantile (a bound, for very many bits).
    Tested   tests/mechanisms/test_randomized_response.py::test_printed_flip_probability_costs_twice
             tests/mechanisms/test_randomized_response.py::test_and_of_two_randomized_bits_loses_ln_9
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    bits: int
    distance: int
    rate: Fraction

    def __post_init__(self) -> None:
        numbers.integer(self.bits, "bits", 1, _MAX_BITS)
        numbers.integer(self.distance, "distance", 1, self.bits)
        object.__setattr__(self, "rate", numbers.in_range(self.rate, "rate", Fraction(1, 10**18), Fraction(10**6)))

    @classmethod
    def from_epsilon(cls, *, bits: int, distance: int, epsilon: numbers.Number) -> "BitFlips":
        """Calibrate the rate to ε/S."""
        distance = numbers.integer(distance, "distance", 1, _MAX_BITS)
        return cls(bits=bits, distance=distance, rate=numbers.epsilon(epsilon) / distance)

    @property
    def event(self) -> events.FlipsEvent:
        """The event that the ledger records."""
        return events.FlipsEvent(self.distance, self.rate)

    @property
    def loss(self) -> Pure:
        """Pure(S·rate), attained at distance S."""
        return Pure(self.distance * self.rate)

    @property
    def _flip(self) -> Interval:
        low = exp(-self.rate)
        return low / (1 + low)

    def sample(self, value: Bits, source: RandomSource) -> Bits:
        """Flip the bits of one vector, or of each row of an array of vectors."""
        if value.dtype != np.bool_ or value.ndim == 0 or value.shape[-1] != self.bits:
            raise MechanismError(
                "HB612", f"The value is not a boolean vector of {self.bits} bits.", "Pass a bool array."
            )
        flips = bernoulli_logistic(exponent=self.rate, count=value.size, source=source)
        return value ^ flips.reshape(value.shape)

    def distribution(self, value: tuple[bool, ...]) -> FiniteDistribution[tuple[bool, ...]]:
        """List the distribution for a short vector."""
        check_size(1 << len(value))
        flip, stay = self._flip, 1 - self._flip
        chances = [(flip**flipped * stay ** (len(value) - flipped)).enclosure for flipped in range(len(value) + 1)]
        outcomes = product((False, True), repeat=len(value))
        return FiniteDistribution({y: chances[sum(a != b for a, b in zip(value, y, strict=True))] for y in outcomes})

    def error(self, level: Fraction) -> Fraction:
        """Return the least w such that at most w bits are flipped with probability at least `level`.

        Above 100,000 bits, where summing is slow, it is Hoeffding's bound: np + √(n·ln(1/(1−level))/2).
        """
        goal, flip = numbers.confidence(level), self._flip
        if self.bits > _MAX_SUMMED:
            beyond = reals.sqrt(reals.log(1 / (1 - goal))[1] * self.bits / 2)[1]
            return Fraction(min(self.bits, math.ceil(self.bits * flip.enclosure[1] + beyond)))
        odds, mass = flip / (1 - flip), (1 - flip) ** self.bits
        covered = ZERO
        for w in range(self.bits):
            covered += mass
            if covered.low >= goal:
                return Fraction(w)
            mass *= odds * Fraction(self.bits - w, w + 1)
        return Fraction(self.bits)
