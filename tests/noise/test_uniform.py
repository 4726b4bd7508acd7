"""Integers and permutations are exactly uniform."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.noise import uniform as room
from hubbub.noise.source import ReplaySource, system
from hubbub.noise.uniform import permutation, uniform_below, uniform_below_each

TOP = 2**64 - 1


@given(st.integers(1, 2**63))
def test_words_are_kept_up_to_a_whole_number_of_periods(bound: int) -> None:
    periods = 2**64 // bound
    last = periods * bound - 1
    beyond = [word for word in (last + 1, TOP) if last < word <= TOP]
    words = [*beyond, last, 0, bound - 1, bound, *[5] * 50]
    kept = [bound - 1, 0, bound - 1, 0 if bound < 2**64 else bound]
    drawn = uniform_below(bound=bound, count=4, source=ReplaySource(words))
    assert drawn.tolist() == kept
    assert 2 * periods * bound > 2**64  # more than half of all words are kept


def test_rejected_trials_are_made_up_for_by_further_rounds() -> None:
    bound = 2**63 - 1
    rejected = [TOP] * 100
    drawn = uniform_below(bound=bound, count=1, source=ReplaySource([*rejected, *[7] * 20]))
    assert drawn.tolist() == [7]


@pytest.mark.parametrize("bound", [1, 2, 3, 6, 100, 1000])
def test_frequencies_are_uniform(bound: int) -> None:
    """χ² at 1e-6; a value that is twice as frequent is caught."""
    n = 10**6
    counts = np.bincount(uniform_below(bound=bound, count=n, source=system()), minlength=bound)
    assert len(counts) == bound
    if bound > 1:
        assert stats.chisquare(counts).pvalue > 1e-6
        counts[0] *= 2
        assert stats.chisquare(counts, np.full(bound, counts.sum() / bound)).pvalue < 1e-6


def test_a_large_bound_is_uniform_from_end_to_end() -> None:
    """KS at 1e-6 for a bound at which nearly half of all trials are rejected."""
    bound = 2**62 + 2**61 + 1
    drawn = uniform_below(bound=bound, count=200_000, source=system())
    assert drawn.min() >= 0
    assert drawn.max() < bound
    assert stats.kstest(drawn / bound, "uniform").pvalue > 1e-6
    assert stats.chisquare(np.bincount(drawn & 63)).pvalue > 1e-6


@pytest.mark.parametrize("bad", [0, -1, 2**63 + 1, 1.0, True])
def test_a_bound_out_of_range_is_refused(bad: int) -> None:
    with pytest.raises(ParameterError):
        uniform_below(bound=bad, count=1, source=system())


def test_all_orders_of_four_are_equally_likely() -> None:
    """χ² over 24 orders at 1e-6."""
    place = {order: i for i, order in enumerate(permutations(range(4)))}
    drawn = [place[tuple(permutation(size=4, source=system()).tolist())] for _ in range(24_000)]
    assert stats.chisquare(np.bincount(drawn, minlength=24)).pvalue > 1e-6


def test_a_tie_draws_all_keys_again() -> None:
    """Else the order of equal keys would be that of the sort, and not uniform."""
    assert permutation(size=3, source=ReplaySource([5, 9, 5, 3, 2, 1])).tolist() == [2, 1, 0]
    assert permutation(size=3, source=ReplaySource([5, 9, 4])).tolist() == [2, 0, 1]


def test_a_permutation_holds_each_place_once() -> None:
    for size in (0, 1, 2, 1000):
        assert sorted(permutation(size=size, source=system()).tolist()) == list(range(size))
    with pytest.raises(ParameterError):
        permutation(size=-1, source=system())


def test_trials_for_one_value_are_a_fixed_number() -> None:
    source = ReplaySource([1] * 100)
    uniform_below(bound=6, count=1, source=source)
    assert 100 - source.left == 1 + room._SPARE


def test_each_bound_keeps_a_whole_number_of_periods() -> None:
    """Words below the largest multiple of the bound are kept; the first word beyond is rejected."""
    for bound in (1, 2, 3, 7, 1 << 20, (1 << 62) + 1):
        last = (1 << 64) // bound * bound - 1
        bounds = np.array([bound], dtype=np.int64)
        assert uniform_below_each(bounds=bounds, source=ReplaySource([last])).tolist() == [bound - 1]
        if last < (1 << 64) - 1:
            assert uniform_below_each(bounds=bounds, source=ReplaySource([last + 1, 5])).tolist() == [5 % bound]


def test_bounds_below_one_are_refused() -> None:
    with pytest.raises(ParameterError):
        uniform_below_each(bounds=np.array([1, 0]), source=system())
