"""Exact samplers of uniform integers and permutations."""

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.errors import ParameterError
from hubbub.noise.source import RandomSource

_SPARE = 8  # trials beyond the expected number, so that one round is nearly always enough


def uniform_below(*, bound: int, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Sample `count` independent integers, each uniform on 0, …, bound − 1, for 1 ≤ bound ≤ 2⁶³.

    Theorem (Uniform integers by rejection). A word below the largest multiple of `bound` in 2⁶⁴ is kept and reduced;
    the remainder is uniform, and the number of trials is independent of it.
    Proof    Kept words are uniform on a whole number of periods; trials are independent.
    Error    more than half of all trials are kept, and nearly all for a bound below 2³².
    Tested   tests/noise/test_uniform.py::test_words_are_kept_up_to_a_whole_number_of_periods
    """
    numbers.integer(bound, "bound", 1, 1 << 63)
    samples = np.empty(count, dtype=np.int64)
    last = np.uint64((1 << 64) // bound * bound - 1)
    kept = bound / (1 << 64) * ((1 << 64) // bound)  # affects only the number of trials
    done = 0
    while done < count:
        words = source.words(int((count - done) / kept) + _SPARE)
        values = (words[words <= last] % np.uint64(bound))[: count - done]
        samples[done : done + len(values)] = values.astype(np.int64)
        done += len(values)
    return samples


def uniform_below_each(*, bounds: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
    """Sample one integer for each bound, uniform on 0, …, bound − 1, by rejection as in `uniform_below`.

    Tested   tests/noise/test_uniform.py::test_each_bound_keeps_a_whole_number_of_periods
    """
    if not (bounds.dtype == np.int64 and (bounds >= 1).all()):
        raise ParameterError("HB103", "The bounds are not positive int64 values.", "Pass bounds of 1 or more.")
    periods = bounds.astype(np.uint64)
    # 2⁶⁴ mod bound, in arithmetic modulo 2⁶⁴: the words of the last, incomplete period are rejected
    last = ~((np.uint64(0) - periods) % periods)
    words = source.words(len(bounds)).copy()
    while (rejected := words > last).any():
        words[rejected] = source.words(int(rejected.sum()))
    return (words % periods).astype(np.int64)


def permutation(*, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Sample a permutation of 0, …, size − 1, each with probability exactly 1/size!.

    Theorem (Uniform order of keys). The order of independent 64-bit keys, all sampled again where two are equal, is
    uniform.
    Proof    Given that the keys differ, every order of them is equally likely, by exchangeability.
    Error    two of a million keys agree with probability below 2⁻²⁵.
    Tested   tests/noise/test_uniform.py::test_a_tie_draws_all_keys_again
             tests/noise/test_uniform.py::test_all_orders_of_four_are_equally_likely
    """
    numbers.integer(size, "size", 0, 1 << 32)
    while True:
        keys = source.words(size)
        order = np.argsort(keys).astype(np.int64)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order
