"""The permute-and-flip mechanism, which tosses a coin per candidate in random order and takes the first heads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from hubbub.core import numbers
from hubbub.core.distributions import least
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ONE, ZERO, Interval, exp, total
from hubbub.core.loss import Pure
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.selection import Scores, Selection
from hubbub.noise.bernoulli import bernoulli_exp_each
from hubbub.noise.source import RandomSource
from hubbub.noise.uniform import uniform_below_each


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(Selection):
    """Choose the first candidate, in random order, whose coin of probability exp(rate·(u_i − max u)) shows heads.

    Theorem (Permute-and-flip). If each score moves by at most D between neighbors, the choice is 2·rate·D-private, and
    rate·D-private where all scores move one way; its expected regret is never above that of the exponential mechanism
    at the same rate (McKenna and Sheldon 2020).
    Proof    It is the largest of u_i + E_i with independent exponential E_i of that rate (Ding et al. 2021): E_i passes
             max u − u_i with the coin's probability, and what it has beyond is exponential again, for all alike, so the
             largest is uniform among the heads; so is the first in random order. Now fix the noises of the others and
             let t be the largest of them: i is chosen with probability min(1, exp(−rate·(t − u_i))), and a neighbor
             changes t − u_i by at most 2D, or by D where scores move one way.
    Assumes  integer scores; D for the relation of the unit; the coins are exact.
    Charges  Pure(2·rate·D), or half that. (It is not known to be bounded-range, and is not charged as such.)
    Error    `error` is the exact worst case.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_selection.py::test_expected_regret_on_scores_ten_to_one
             tests/mechanisms/test_selection.py::test_permute_and_flip_never_regrets_more_than_the_exponential_mechanism
    """

    rule: ClassVar[Literal["exponential", "permute_and_flip", "noisy_max"]] = "permute_and_flip"

    @property
    def loss(self) -> Pure:
        """Pure, approached as the score of the only gaining candidate falls far below the others."""
        return Pure(self.epsilon)

    def sample(self, value: Scores, source: RandomSource) -> int:
        """Choose the position of a candidate from an int64 array of scores."""
        return int(self.sample_each(self.scores(value)[np.newaxis], source)[0])

    def sample_each(self, value: Scores, source: RandomSource) -> Scores:
        """Choose a position for each row of scores, by the same work whatever the scores are."""
        scores = self.rows(value)
        # the first head in random order is uniform among the heads; the best candidate's coin always shows heads
        gaps = scores.max(axis=1, keepdims=True) - scores
        heads = bernoulli_exp_each(rate=self.rate, gaps=gaps.ravel(), source=source).reshape(gaps.shape)
        ranks = np.cumsum(heads, axis=1)
        chosen = uniform_below_each(bounds=ranks[:, -1], source=source)
        positions: Scores = np.argmax(ranks > chosen[:, np.newaxis], axis=1).astype(np.int64)
        return positions

    def distribution(self, value: Sequence[int]) -> FiniteDistribution[int]:
        """List the probability of each position: q_i·E[1/(1+B)], B the number of heads among the others."""
        scores = self.listed(value)
        coins = [exp(self.rate * (score - max(scores))) for score in scores]
        chances: dict[int, Interval] = {}
        for i, score in enumerate(scores):
            if score not in chances:
                chances[score] = coins[i] * _mean_share(coins[:i] + coins[i + 1 :])
        return FiniteDistribution({i: chances[score].enclosure for i, score in enumerate(scores)})

    def error(self, level: Fraction) -> Fraction:
        """Return the least r such that the choice is at most r below the best score with probability at least `level`.

        A candidate beyond r is chosen most often with one best candidate and all m−1 others at r+1: any other scores
        make a good choice more likely. With q = e^(−rate·(r+1)) the best is then chosen with probability
        E[1/(1+B)] = (1 − (1−q)^m)/(mq) ≥ 1 − (m−1)q/2, B binomial.
        """
        goal, m = numbers.confidence(level), self.candidates

        def enough(r: int) -> bool:
            q = exp(-self.rate * (r + 1))
            if ((m - 1) * q.enclosure[1]) / 2 <= 1 - goal:
                return True
            best = (1 - (1 - q) ** m) / (m * q)
            return best.low >= goal

        slip = float((1 - goal) * 2 / max(1, m - 1))
        return Fraction(least(enough, math.ceil(max(0.0, -math.log(slip)) / float(self.rate)) - 1))


#: The rules in words.
RULES = {"exponential": "exponential mechanism", "permute_and_flip": "permute-and-flip"}


def selection_rule(delta: Fraction) -> type[PermuteAndFlip] | type[Exponential]:
    """Choose the rule of a selection by the δ of the caps that it is charged to.

    At the same pure loss permute-and-flip never regrets more, and up to 1.6 times less. The exponential mechanism has
    bounded range, which a cap with δ > 0 charges at two fifths of what it charges for the pure loss.

    >>> selection_rule(Fraction(0)).rule, selection_rule(Fraction(1, 10**6)).rule
    ('permute_and_flip', 'exponential')
    """
    return Exponential if delta else PermuteAndFlip


def _mean_share(coins: Sequence[Interval]) -> Interval:
    """Enclose E[1/(1+B)], B the number of heads among independent coins."""
    heads = [ONE]
    for coin in coins:
        tails = 1 - coin
        heads = [a * tails + b * coin for a, b in zip([*heads, ZERO], [ZERO, *heads], strict=True)]
    return total(chance / (count + 1) for count, chance in enumerate(heads))
