"""Continual counting by a binary tree: every running count is a sum of a few noisy blocks."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource

Integers = NDArray[np.int64]
Arrays = dict[str, NDArray[np.generic]]

#: Maximum horizon of a counter.
MAX_HORIZON = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCounter:
    """Count arrivals per bin, with an answer after every arrival.

    Theorem (Continual counting by a tree). Let one arrival add at most `sensitivity` to the bins (in L1, or in L2
    squared for Gaussian noise). Cut time into blocks ((k−1)·2ⁱ, k·2ⁱ] for each level i and odd k, and release the count
    of each block, when it ends, with independent noise calibrated to levels·sensitivity. All answers together have the
    loss of that noise, also if later arrivals depend on earlier answers (Dwork, Naor, Pitassi and Rothblum 2010; Chan,
    Shi and Song 2011).
    Proof    An arrival lies in at most one block of each level, so it moves the vector of all blocks by at most levels
             times what it adds. Each block's noise is independent, and how far an arrival moves a block is bounded
             whatever was answered before. An answer at time t is the sum of the blocks of t's binary digits.
    Error    deviation σ·√(number of ones in t), σ that of a block; twice the variance where the state is private.
    Tested   tests/analyses/streams/test_tree.py::test_answers_are_sums_of_the_blocks_of_the_binary_digits
             tests/analyses/streams/test_tree.py::test_every_pair_of_neighbors_moves_the_blocks_by_at_most_the_sensitivity

    Theorem (Counting that survives a look). Let each block also start with noise of its own, sampled when it opens and
    kept in its sum. Then all answers and one look into the state (sums of open blocks) have the same loss.
    Proof    Let a block open with noise η₁ and end with noise η₂. The look shows η₁ + (count so far), the end
             η₁ + η₂ + (whole count), or as well η₂ + (count since the look). An arrival before the look moves only the
             first of these two independent values, one after it only the second; in a block that is closed or not yet
             open at the look, only the one value that is ever seen. So a block moves by no more than without a look.
    Assumes  one look; two looks show the exact count between them. How many arrivals there were is public.
    Tested   tests/analyses/streams/test_tree.py::test_a_look_and_all_answers_keep_the_loss_exactly
             tests/analyses/streams/test_tree.py::test_a_look_at_a_state_without_noise_of_its_own_is_caught
    """

    horizon: int
    bins: int
    noise: Laplace | Gaussian
    private_state: bool

    def __post_init__(self) -> None:
        numbers.integer(self.horizon, "horizon", 1, MAX_HORIZON)
        numbers.integer(self.bins, "bins", 1, 10**6)

    @staticmethod
    def levels(horizon: int) -> int:
        """Return the number of levels of blocks for times up to `horizon`."""
        return horizon.bit_length()

    @property
    def depth(self) -> int:
        """The number of levels."""
        return self.levels(self.horizon)

    def start(self, source: RandomSource) -> Arrays:
        """Open the first block of each level."""
        opened = np.zeros((self.depth, self.bins), dtype=np.int64)
        return {
            "open": self._with_noise(opened, source),
            "closed": np.zeros((self.depth, self.bins), dtype=np.int64),
            "answers": np.zeros((0, self.bins), dtype=np.int64),
        }

    def take(self, state: Arrays, values: Integers, source: RandomSource) -> Arrays:
        """Add arrivals, one row each (what it adds to each bin), and answer after each of them."""
        opened, closed = state["open"].astype(np.int64), state["closed"].astype(np.int64)
        now, count = len(state["answers"]), len(values)
        total = np.concatenate([np.zeros((1, self.bins), dtype=np.int64), np.cumsum(values, axis=0, dtype=np.int64)])
        times = np.arange(now + 1, now + count + 1)
        answers = np.zeros((count, self.bins), dtype=np.int64)
        for level in range(self.depth):
            ended = np.arange(now // (1 << level) + 1, (now + count) // (1 << level) + 1)
            ended = ended[ended & 1 == 1]
            begins, ends = ((ended - 1) << level) - now, (ended << level) - now
            sums = total[ends] - total[np.maximum(begins, 0)]
            fresh = begins > 0
            sums[~fresh] += opened[level]  # at most one block was open before
            sums[fresh] = self._with_noise(sums[fresh], source)
            known = np.concatenate([closed[level][None], self.noise.sample(sums, source)])
            index = (times >> level) - (ended[0] if len(ended) else np.iinfo(np.int64).max)
            chosen = known[np.where(index >= 0, index // 2 + 1, 0)]
            answers += chosen * (times >> level & 1)[:, None]
            closed[level] = known[-1]
            opened[level] = self._open(level, opened[level], total, now, source)
        return {"open": opened, "closed": closed, "answers": np.concatenate([state["answers"], answers])}

    def _open(self, level: int, before: Integers, total: Integers, now: int, source: RandomSource) -> Integers:
        """Return the sum of the open block after these arrivals, or zeros if no block of this level is open."""
        block = (now + len(total) - 1) >> level
        if block & 1:
            return np.zeros(self.bins, dtype=np.int64)
        begins = (block << level) - now
        if begins <= 0:
            return np.asarray(before + total[-1], dtype=np.int64)
        return self._with_noise(total[-1] - total[begins], source)

    def _with_noise(self, sums: Integers, source: RandomSource) -> Integers:
        return self.noise.sample(sums, source) if self.private_state else sums

    def estimates(self, state: Arrays) -> NDArray[np.float64]:
        """Return the count after each arrival."""
        return state["answers"].astype(np.float64)

    def latest(self, state: Arrays) -> NDArray[np.float64]:
        """Return the latest count, 0 before the first arrival."""
        answers = state["answers"].astype(np.float64)
        return answers[-1] if len(answers) else np.zeros(self.bins)

    def deviation(self, start: int, end: int) -> float:
        """Return the standard deviation of the estimate at `end` minus that at `start` (0: of the one at `end`)."""
        shared = sum(1 for i in range(self.depth) if end >> i & 1 and start >> i & 1 and start >> i == end >> i)
        blocks = start.bit_count() + end.bit_count() - 2 * shared
        return float(np.sqrt(blocks * float(variance(self.noise)) * (2 if self.private_state else 1)))


def variance(noise: Laplace | Gaussian) -> Fraction:
    """Return (a bound on) the variance of one sample."""
    return noise.variance if isinstance(noise, Gaussian) else noise.variance[1]
