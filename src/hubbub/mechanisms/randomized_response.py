"""Randomized response, which keeps each person's answer with known odds."""

from dataclasses import dataclass
from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers, reals
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import Interval, exp, sqrt
from hubbub.core.loss import Pure
from hubbub.core.reals import Enclosure
from hubbub.errors import MechanismError
from hubbub.mechanisms.additive import check_size
from hubbub.noise.bernoulli import bernoulli_real
from hubbub.noise.comparison import Fixed, Real, exp_minus
from hubbub.noise.source import RandomSource
from hubbub.noise.uniform import uniform_below

_MAX_ANSWERS = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Keep an answer out of k with odds e^ε against each other answer.

    Theorem (Randomized response). Giving the true one of k answers with probability e^ε/(e^ε + k − 1) and each other
    with 1/(e^ε + k − 1) is ε-private for every pair of true answers (Warner 1965; k-ary and optimal: Kairouz, Oh and
    Viswanath 2014). Coins of ¾ and ¼ are ln 3.
    Proof    Two probabilities occur, and their ratio is e^ε.
    Assumes  one answer per person; an array holds one answer of each of many people.
    Charges  Pure(ε).
    Error    the estimate of how many of n gave an answer has a standard deviation of the order √n, where central noise
             has a constant one: see `deviation`.
    Tested   tests/mechanisms/test_randomized_response.py::test_coin_flips_of_three_quarters_lose_ln_3
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    answers: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        numbers.integer(self.answers, "answers", 2, _MAX_ANSWERS)
        object.__setattr__(self, "epsilon", numbers.epsilon(self.epsilon))

    @classmethod
    def from_truth(cls, *, answers: int, probability: numbers.Number) -> "RandomizedResponse":
        """Use the ε at which the true answer is given with this probability, rounded down to 30 places.

        >>> float(RandomizedResponse.from_truth(answers=2, probability="0.75").epsilon)
        1.0986122886681098
        """
        others = numbers.integer(answers, "answers", 2, _MAX_ANSWERS) - 1
        truth = numbers.in_range(probability, "probability", Fraction(1, 10**9), 1 - Fraction(1, 10**9))
        odds = truth * others / (1 - truth)
        return cls(answers=answers, epsilon=reals.floor_to(reals.log(odds)[0], numbers.MAX_PLACES))

    @property
    def event(self) -> events.ResponseEvent:
        """The event that the ledger records."""
        return events.ResponseEvent(self.answers, self.epsilon)

    @property
    def loss(self) -> Pure:
        """Pure(ε), attained by any two answers."""
        return Pure(self.epsilon)

    @property
    def _other(self) -> Interval:
        """The probability of each answer that is not true."""
        low = exp(-self.epsilon)
        return low / (1 + (self.answers - 1) * low)

    @property
    def _truth(self) -> Interval:
        return 1 / (1 + (self.answers - 1) * exp(-self.epsilon))

    @overload
    def sample(self, value: int, source: RandomSource) -> int: ...
    @overload
    def sample(self, value: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]: ...
    def sample(self, value: int | NDArray[np.int64], source: RandomSource) -> int | NDArray[np.int64]:
        """Answer for one person, or for each of many; answers are 0, …, k−1, and anything else is taken modulo k."""
        if isinstance(value, np.ndarray) and value.dtype == np.int64:
            truth = value % self.answers
            lies = bernoulli_real(probability=_lie(self.answers, self.epsilon), count=value.size, source=source)
            # a lie is uniform among the k−1 other answers: the truth shifted by 1, …, k−1
            shift = 1 + uniform_below(bound=self.answers - 1, count=value.size, source=source)
            return np.where(lies.reshape(value.shape), (truth + shift.reshape(value.shape)) % self.answers, truth)
        if isinstance(value, int):
            return int(self.sample(np.array([value], dtype=np.int64), source)[0])
        raise MechanismError("HB612", "The value is not an int or an int64 array.", "Number the answers 0, 1, ….")

    def distribution(self, value: int) -> FiniteDistribution[int]:
        """List the distribution of one person's answer."""
        check_size(self.answers)
        other, truth = self._other.enclosure, self._truth.enclosure
        return FiniteDistribution({answer: truth if answer == value else other for answer in range(self.answers)})

    def error(self, level: Fraction) -> Fraction:
        """Return 0 if one answer is true with probability at least `level`, else 1."""
        return Fraction(0 if self._truth.low >= numbers.confidence(level) else 1)

    def estimate(self, answers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Estimate, without bias, the number of people with each true answer: (count − n·q)/(p − q)."""
        counts = np.bincount(answers, minlength=self.answers).astype(np.float64)
        p, q = float(self._truth.low), float(self._other.low)
        estimated: NDArray[np.float64] = (counts - answers.size * q) / (p - q)
        return estimated

    def deviation(self, respondents: int) -> Enclosure:
        """Enclose the estimate's standard deviation at its worst: √(n·max(p(1−p), q(1−q)))/(p − q); exact for k = 2."""
        p, q = self._truth, self._other
        one, other = p * (1 - p), q * (1 - q)
        worst = Interval(max(one.low, other.low), max(one.high, other.high)) * respondents
        return (sqrt(worst) / (p - q)).enclosure


def _lie(answers: int, epsilon: Fraction) -> Real:
    """Enclose (k−1)·e^−ε/(1 + (k−1)·e^−ε), the probability of any answer but the true one."""
    power, others = exp_minus(epsilon), answers - 1

    def at(bits: int) -> Fixed:
        finer = bits + others.bit_length() + 2
        low, high = power(finer)
        one = 1 << finer
        return (low * others << bits) // (one + low * others), -(-(high * others << bits) // (one + high * others))

    return at
