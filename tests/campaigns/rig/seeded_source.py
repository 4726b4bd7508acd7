"""A reproducible random source for tests."""

import numpy as np

from hubbub.noise.source import Words


class SeededSource:
    """Words of a seeded generator, counted; reproducible, and useless for privacy."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))
        self.used = 0

    def words(self, count: int) -> Words:
        self.used += count
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)
