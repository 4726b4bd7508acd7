"""The exponential mechanism, which chooses a candidate with probability ∝ exp(rate·score)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from hubbub.core import numbers
from hubbub.core.distributions import least
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import Interval, exp, total
from hubbub.core.loss import BoundedRange
from hubbub.mechanisms.selection import Scores, Selection
from hubbub.noise.choice import choose, choose_each
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Selection):
    """Choose candidate i with probability proportional to exp(rate·u_i).

    Theorem (Exponential mechanism). If each score moves by at most D between neighbors, the log-ratio of the choice
    lies in one interval of length 2·rate·D that holds 0, and of length rate·D where all scores move one way. So the
    choice is private with that loss, and bounded-range (McSherry and Talwar 2007; Durfee and Rogers 2019).
    Proof    ln(P(i)/P′(i)) = rate·(u_i − u′_i) − ln(Z/Z′). The first term ranges over an interval of length 2·rate·D
             (or rate·D); the second is one number for all i. P and P′ both add up to 1, so neither exceeds the other
             everywhere: the interval holds 0.
    Assumes  integer scores; D for the relation of the unit; the choice is exact (`hubbub.noise.choice`).
    Charges  BoundedRange(2·rate·D), or of half that. So exp(u·ε/D) costs 2ε in general, and exp(u·ε/2D) costs ε.
    Error    regret at most ln((m−1)·level/(1−level))/rate for m candidates; `error` is the exact worst case.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_selection.py::test_expected_regret_on_scores_ten_to_one
             tests/mechanisms/test_selection.py::test_printed_rate_of_the_exponential_mechanism_costs_twice
    """

    rule: ClassVar[Literal["exponential", "permute_and_flip", "noisy_max"]] = "exponential"

    @property
    def loss(self) -> BoundedRange:
        """Bounded range, approached as the score of the only gaining candidate falls far below the others."""
        return BoundedRange(self.epsilon)

    def sample(self, value: Scores, source: RandomSource) -> int:
        """Choose the position of a candidate from an int64 array of scores."""
        return choose(scores=self.scores(value), rate=self.rate, source=source)

    def sample_each(self, value: Scores, source: RandomSource) -> Scores:
        """Choose a position for each row of scores."""
        return choose_each(scores=self.rows(value), rate=self.rate, source=source)

    def distribution(self, value: Sequence[int]) -> FiniteDistribution[int]:
        """List the probability of each position."""
        return FiniteDistribution(dict(enumerate(share.enclosure for share in softmax(self.rate, self.listed(value)))))

    def error(self, level: Fraction) -> Fraction:
        """Return the least r: with probability at least `level`, the choice is at most r below the best score."""
        return Fraction(regret(self.rate, self.candidates, numbers.confidence(level)))


def softmax(rate: Fraction, scores: Sequence[int]) -> list[Interval]:
    """Enclose exp(rate·u_i)/Σ_j exp(rate·u_j) for each i."""
    best = max(scores)
    weights = [exp(rate * (score - best)) for score in scores]
    whole = total(weights)
    return [weight / whole for weight in weights]


def regret(rate: Fraction, candidates: int, level: Fraction) -> int:
    """Return the least r such that the exponential mechanism's regret is at most r with probability at least `level`.

    The share of those beyond r is largest with one best candidate and the m−1 others at r+1: with w = e^(−rate·(r+1))
    it is (m−1)w/(1 + (m−1)w), which is at most 1−level where (m−1)w ≤ (1−level)/level.
    """
    odds = (1 - level) / level

    def enough(r: int) -> bool:
        return ((candidates - 1) * exp(-rate * (r + 1))).high <= odds

    return least(enough, math.ceil(math.log(max(1.0, float((candidates - 1) / odds))) / float(rate)) - 1)
