"""The exponential mechanism over combinations of candidates, scored by the worst of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise, product
from math import prod
from typing import ClassVar, Literal

import numpy as np

from hubbub.core import numbers
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import BoundedRange
from hubbub.errors import ParameterError
from hubbub.mechanisms.exponential import regret, softmax
from hubbub.mechanisms.selection import Scores, Selection
from hubbub.noise.joint_choice import choose_jointly
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class JointExponential(Selection):
    """Choose a candidate of each part together, with probability ∝ exp(rate·the lowest of their scores).

    The scores of all parts are in one array, so many of each as `sizes` says.

    Theorem (Joint selection). If each score moves by at most D between neighbors, all choices together cost what one
    choice by the exponential mechanism costs at this rate, however many they are.
    Proof    It is the exponential mechanism whose candidates are the combinations and whose score is the lowest score
             of a combination, and the lowest of several numbers that move by at most D moves by at most D.
    Assumes  as for the exponential mechanism; the choice is exact (`hubbub.noise.joint_choice`).
    Charges  BoundedRange(2·rate·D), or of half that.
    Error    that of the exponential mechanism with as many candidates as there are combinations. Among dense candidates
             the error of each of k choices is √((k + 1)(k + 2)/6) times that of one choice.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    rule: ClassVar[Literal["exponential", "permute_and_flip", "noisy_max"]] = "exponential"

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        Selection.__post_init__(self)
        for size in self.sizes:
            numbers.integer(size, "sizes", 1, self.candidates)
        if sum(self.sizes) != self.candidates:
            raise ParameterError("HB101", "The sizes do not add up to the candidates.", "Pass the size of each part.")

    @property
    def loss(self) -> BoundedRange:
        """Bounded range, as for one choice."""
        return BoundedRange(self.epsilon)

    def sample(self, value: Scores, source: RandomSource) -> tuple[int, ...]:
        """Choose the position of a candidate in each part."""
        return tuple(self.sample_each(self.scores(value)[np.newaxis], source)[0].tolist())

    def sample_each(self, value: Scores, source: RandomSource) -> Scores:
        """Choose for each row of scores; the result has one column for each part."""
        return choose_jointly(scores=self.rows(value), sizes=self.sizes, rate=self.rate, source=source)

    def distribution(self, value: Sequence[int]) -> FiniteDistribution[tuple[int, ...]]:
        """List the probability of each combination of positions."""
        scores = self.listed(value)
        parts = [scores[start:end] for start, end in pairwise([0, *accumulate(self.sizes)])]
        combinations = list(product(*(range(size) for size in self.sizes)))
        worst = [min(part[i] for part, i in zip(parts, each, strict=True)) for each in combinations]
        shares = softmax(self.rate, worst)
        return FiniteDistribution({each: share.enclosure for each, share in zip(combinations, shares, strict=True)})

    def error(self, level: Fraction) -> Fraction:
        """Return the least r: with probability at least `level`, no choice is more than r below the best."""
        return Fraction(regret(self.rate, prod(self.sizes), numbers.confidence(level)))
