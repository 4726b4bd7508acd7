"""Uniform integers and uniform permutations."""

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.noise.source import Source

_SPARE = 8  # trials made beyond the expected number, so that one round nearly always is enough


def uniform_below(*, bound: int, count: int, source: Source) -> NDArray[np.int64]:
    """Draw `count` independent integers, each uniform on 0, …, bound − 1, for 1 ≤ bound ≤ 2⁶³.

    A word is kept when it is below the largest multiple of `bound` that 2⁶⁴ holds, and reduced. Kept words are
    uniform on a whole number of periods, and whether a trial is kept says nothing of its remainder, so the number of
    trials is independent of the values. More than half of all trials are kept, nearly all for a bound below 2³².
    """
    numbers.integer(bound, "bound", 1, 1 << 63)
    drawn = np.empty(count, dtype=np.int64)
    last = np.uint64((1 << 64) // bound * bound - 1)
    kept = bound / (1 << 64) * ((1 << 64) // bound)  # decides only how many trials to make
    done = 0
    while done < count:
        words = source.words(int((count - done) / kept) + _SPARE)
        values = (words[words <= last] % np.uint64(bound))[: count - done]
        drawn[done : done + len(values)] = values.astype(np.int64)
        done += len(values)
    return drawn


def permutation(*, size: int, source: Source) -> NDArray[np.int64]:
    """Draw a permutation of 0, …, size − 1, each with probability exactly 1/size!.

    The order of independent 64-bit keys, all drawn again where two are equal: given that the keys differ, every order
    of them is equally likely, by exchangeability. Two of a million keys agree with probability below 2⁻²⁵.
    """
    numbers.integer(size, "size", 0, 1 << 32)
    while True:
        keys = source.words(size)
        order = np.argsort(keys).astype(np.int64)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order
