"""Top-k selection, which peels candidates off one at a time by the exponential mechanism."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from hubbub.core import events, numbers
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ONE
from hubbub.core.loss import Pure
from hubbub.core.reals import floor_to
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import check_size
from hubbub.mechanisms.exponential import Exponential, regret, softmax
from hubbub.mechanisms.selection import MAX_CANDIDATES, Scores
from hubbub.noise.choice import choose
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """Choose k different candidates, each by the exponential mechanism among those that are left.

    Theorem (One-shot top k). Peeling has the distribution of the k largest of rate·u_i + G_i, G_i independent Gumbel
    noise (Durfee and Rogers 2019), so it is one shot of noise as well as k selections; it costs k bounded-range
    selections of one.
    Proof    By induction it is enough that the largest is i with probability e^(rate·u_i)/Σe^(rate·u_j) and that,
             given which i and its value, the order of the others is that of their own noisy scores. With X_j =
             e^(−rate·u_j − G_j), which are independent exponentials of rates e^(rate·u_j), the largest is the first
             arrival, which is i with that probability, and after it the others' remaining times are exponential as
             before, by lack of memory.
    Assumes  what `Exponential` assumes. Each selection depends on the answers before it: adaptive composition.
    Charges  k times the event of one; as a pure loss, k·ε, which is attained in the limit.
    Error    regret of the i-th choice against the i-th best score, for all i at once: `error`.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_selection.py::test_peeling_has_the_distribution_of_the_largest_gumbel_scores
    """

    k: int
    one: Exponential

    def __post_init__(self) -> None:
        if not isinstance(self.one, Exponential):
            raise ParameterError(
                "HB157", "The single selection is not an exponential mechanism.", "Pass an Exponential."
            )
        numbers.integer(self.k, "k", 1, self.one.candidates)

    @classmethod
    def from_epsilon(
        cls, *, k: int, candidates: int, sensitivity: int, monotone: bool, relation: Relation, epsilon: numbers.Number
    ) -> "TopK":
        """Allocate ε/k to each of the k selections (rounded down to 30 places)."""
        rounds = numbers.integer(k, "k", 1, MAX_CANDIDATES)
        share = floor_to(numbers.epsilon(epsilon) / rounds, numbers.MAX_PLACES)
        one = Exponential.from_epsilon(
            candidates=candidates, sensitivity=sensitivity, monotone=monotone, relation=relation, epsilon=share
        )
        return cls(k=k, one=one)

    @property
    def event(self) -> events.Composed:
        """The event that the ledger records: k selections."""
        return events.Composed(((self.one.event, self.k),))

    @property
    def loss(self) -> Pure:
        """The pure loss of all k; accounting composes the k bounded ranges more tightly."""
        return Pure(self.k * self.one.epsilon)

    def sample(self, value: Scores, source: RandomSource) -> NDArray[np.int64]:
        """Choose k positions, the first choice first."""
        scores = self.one.scores(value)
        left = np.arange(len(scores))
        chosen = np.empty(self.k, dtype=np.int64)
        for number in range(self.k):
            index = choose(scores=scores, rate=self.one.rate, source=source)
            chosen[number] = left[index]
            scores, left = np.delete(scores, index), np.delete(left, index)
        return chosen

    def distribution(self, value: Sequence[int]) -> FiniteDistribution[tuple[int, ...]]:
        """List the probability of each ordered choice."""
        scores = self.one.listed(value)
        size = 1
        for number in range(self.k):
            size *= len(scores) - number
        check_size(size)
        mass = {}
        for chosen in permutations(range(len(scores)), self.k):
            left, chance = list(range(len(scores))), ONE
            for candidate in chosen:
                chance *= softmax(self.one.rate, [scores[i] for i in left])[left.index(candidate)]
                left.remove(candidate)
            mass[chosen] = chance.enclosure
        return FiniteDistribution(mass)

    def error(self, level: Fraction) -> Fraction:
        """Return an r: with probability at least `level`, every i-th choice is within r of the i-th best score.

        Given all earlier choices, a choice is at most r below the best remaining candidate, except with the failure
        probability of `Exponential.error`; the best remaining candidate in round i is never below the i-th best. Each
        round gets a k-th of the failure probability.
        """
        goal = numbers.confidence(level)
        return Fraction(regret(self.one.rate, self.one.candidates, 1 - (1 - goal) / self.k))
