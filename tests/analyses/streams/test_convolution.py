"""Exact sums: by products, and by transforms modulo primes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from hubbub.analyses.streams import convolution
from hubbub.errors import QueryError


@given(
    some.lists(some.integers(0, 1000), min_size=1, max_size=70),
    some.lists(some.integers(0, 2**40), min_size=1, max_size=70),
    some.integers(1, 70),
)
def test_sums_are_those_of_exact_integers(signal: list[int], kernel: list[int], count: int) -> None:
    count = min(count, len(signal))
    wanted = [sum(kernel[k] * signal[i - k] for k in range(min(i + 1, len(kernel)))) for i in range(len(signal))][
        -count:
    ]
    kept = convolution._DIRECT
    for direct in (kept, 0):
        convolution._DIRECT = direct
        try:
            found = convolution.latest_sums(np.array(signal, dtype=np.int64), np.array(kernel, dtype=np.int64), count)
        finally:
            convolution._DIRECT = kept
        assert found.tolist() == wanted


def test_a_long_row_is_the_same_both_ways() -> None:
    random = np.random.default_rng(5)
    signal, kernel = random.integers(0, 5, 20_000), random.integers(0, 2**20, 20_000)
    by_transform = convolution.latest_sums(signal, kernel, 20_000)
    assert (by_transform[[0, 777, 19_999]] == [np.dot(signal[: i + 1], kernel[i::-1]) for i in (0, 777, 19_999)]).all()
    assert (convolution.latest_sums(signal, kernel, 3) == by_transform[-3:]).all()


def test_sums_that_would_not_fit_are_refused() -> None:
    with pytest.raises(QueryError):
        convolution.latest_sums(np.full(3, 2**31), np.full(3, 2**31), 1)
    with pytest.raises(QueryError):
        convolution.latest_sums(np.array([-1]), np.array([1]), 1)
