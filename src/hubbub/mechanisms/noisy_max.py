"""Report noisy max, which adds noise to every score and returns the position of the largest."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from hubbub.core import numbers
from hubbub.core.distributions import DiscreteLaplace, half_width
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ONE, ZERO, Interval
from hubbub.core.loss import Pure
from hubbub.mechanisms.additive import check_size
from hubbub.mechanisms.selection import Scores, Selection
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax(Selection):
    """Add two-sided geometric noise of scale 1/rate to each score; return the position of the largest, first on ties.

    Theorem (Report noisy max on integers). If each score moves by at most D between neighbors, the position is
    2·rate·D-private, and rate·D-private where all scores move one way. Ties are broken by position, and cost nothing.
    Proof    Fix the noises of all candidates but i. Candidate i is given exactly where u_i + Z_i is above the noisy
             scores before it and not below those after it: where Z_i ≥ t for an integer t that depends on the others.
             For a neighbor the others rise by at most D and u_i falls by at most D, so Z_i ≥ t + 2D suffices (t + D
             where scores move one way), and Pr[Z ≥ t + k] ≥ e^(−rate·k)·Pr[Z ≥ t], as Pr[Z = z + 1] ≥ e^(−rate)·Pr[Z
             = z]. Any fixed order of equals gives such a t. With Lap(1/ε) the loss is ε for monotone counts under
             add/remove only; under replace it tends to 2ε.
    Assumes  integer scores; D for the relation of the unit; noise sampled exactly.
    Charges  Pure(2·rate·D), or half that.
    Error    regret at most twice the half width of all noises at once.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_selection.py::test_printed_noise_of_report_noisy_max_costs_twice_under_replace
    """

    rule: ClassVar[Literal["exponential", "permute_and_flip", "noisy_max"]] = "noisy_max"

    @property
    def loss(self) -> Pure:
        """Pure, reached in the limit of many candidates."""
        return Pure(self.epsilon)

    @property
    def noise(self) -> DiscreteLaplace:
        """The distribution of the noise on each score."""
        return DiscreteLaplace(1 / self.rate)

    def sample(self, value: Scores, source: RandomSource) -> int:
        """Choose the position of a candidate from an int64 array of scores."""
        noise = discrete_laplace(scale=1 / self.rate, count=self.candidates, source=source)
        return int(np.argmax(self.scores(value) + noise))

    def distribution(self, value: Sequence[int]) -> FiniteDistribution[int]:
        """List the probability of each position, summed over the noisy score v with which it wins."""
        scores, noise = self.listed(value), self.noise
        best = max(scores)
        # far enough that the omitted mass is small relative to the probability of the worst candidate
        reach = noise.guess(1e-40) + best - min(scores)
        check_size(2 * reach * len(scores))
        chances = [ZERO] * len(scores)
        for v in range(best - reach, best + reach + 1):
            # Pr[score + Z ≤ v] = Pr[Z ≥ score − v], by symmetry; candidates before i must be below v
            at_most = {score: noise.tail(score - v) for score in set(scores)}
            below = {score: noise.tail(score - v + 1) for score in set(scores)}
            exactly = {score: noise.mass(v - score) for score in set(scores)}
            after = [ONE]
            for score in reversed(scores[1:]):
                after.append(after[-1] * at_most[score])
            before = ONE
            for i, score in enumerate(scores):
                chances[i] += before * exactly[score] * after[-1 - i]
                before *= below[score]
        none_above = ONE
        for score in scores:
            none_above *= noise.tail(score - (best - reach - 1))
        return FiniteDistribution(
            {
                i: Interval(chance.low, (chance + none_above + noise.tail(best + reach + 1 - scores[i])).high).enclosure
                for i, chance in enumerate(chances)
            }
        )

    def error(self, level: Fraction) -> Fraction:
        """Bound the regret by 2w, where all noises are within ±w with probability at least `level`."""
        return Fraction(2 * half_width(self.noise, numbers.confidence(level), self.candidates))
