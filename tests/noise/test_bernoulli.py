"""Coins have exactly the bias they state."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from hubbub.errors import MechanismError, ParameterError
from hubbub.noise import bernoulli as coins
from hubbub.noise import weights
from hubbub.noise.bernoulli import bernoulli, bernoulli_exp, bernoulli_exp_each, bernoulli_logistic, bernoulli_real
from hubbub.noise.comparison import below, exp_minus, logistic
from hubbub.noise.source import ReplaySource, system

Exp = Callable[[Fraction], Fraction]
Expansion = Callable[[Fraction, int], list[int]]

TOP = 2**64 - 1


def one(words: list[int], draw: Callable[[ReplaySource], NDArray[np.bool_]]) -> bool:
    source = ReplaySource(words)
    (bit,) = draw(source)
    assert source.left == 0
    return bool(bit)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_word_on_the_threshold_is_refined_along_the_true_expansion(
    depth: int, true_exp: Exp, expansion: Expansion
) -> None:
    third, x = Fraction(1, 3), Fraction(7, 5)
    for p, draw in (
        (third, lambda s: bernoulli(probability=third, count=1, source=s)),
        (true_exp(-x), lambda s: bernoulli_exp(exponent=x, count=1, source=s)),
        (1 / (1 + true_exp(x)), lambda s: bernoulli_logistic(exponent=x, count=1, source=s)),
        (1 / (1 + true_exp(x)), lambda s: bernoulli_real(probability=logistic(x), count=1, source=s)),
    ):
        *head, last = expansion(p, depth)
        assert one([*head, last - 1], draw) is True
        assert one([*head, last + 1], draw) is False


def test_a_dyadic_probability_splits_the_words_exactly() -> None:
    for words, bit in (([2**62 - 1], True), ([2**62], False), ([0], True), ([TOP], False)):
        assert one(words, lambda s: bernoulli(probability=Fraction(1, 4), count=1, source=s)) is bit


@pytest.mark.parametrize("word", [0, 1, 2**63, TOP - 1, TOP])
def test_the_sure_and_the_impossible_need_no_luck(word: int) -> None:
    assert one([word], lambda s: bernoulli(probability=Fraction(1), count=1, source=s)) is True
    assert one([word], lambda s: bernoulli(probability=Fraction(0), count=1, source=s)) is False
    assert one([word], lambda s: bernoulli_exp(exponent=Fraction(0), count=1, source=s)) is True
    assert one([word], lambda s: bernoulli_exp_each(rate=Fraction(1), gaps=np.array([0]), source=s)) is True


def test_frequencies_fit() -> None:
    """Four binomial tests of 1 M coins at 2.5e-7 each: a false alarm has probability below 1e-6."""
    n, x = 10**6, Fraction(1, 3)
    for p, bits in (
        (1 / 3, bernoulli(probability=x, count=n, source=system())),
        (np.exp(-1 / 3), bernoulli_exp(exponent=x, count=n, source=system())),
        (1 / (1 + np.exp(1 / 3)), bernoulli_logistic(exponent=x, count=n, source=system())),
        (1 / (1 + np.exp(-1 / 3)), bernoulli_logistic(exponent=-x, count=n, source=system())),
    ):
        assert stats.binomtest(int(bits.sum()), n, p).pvalue > 2.5e-7
        assert stats.binomtest(int(bits.sum()), n, p * 1.03).pvalue < 2.5e-7


@given(
    st.fractions(Fraction(1, 10**12), 10**6),
    st.lists(st.one_of(st.integers(0, 2**62), st.integers(0, 100)), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_a_coin_for_each_gap_decides_as_enclosures_do(
    rate: Fraction, gaps: list[int], random: np.random.RandomState
) -> None:
    words, expected = [], []
    for gap in gaps:
        low, _ = exp_minus(rate * gap)(64)
        words.append(min(TOP, max(0, low + int(random.choice([-1, 1])) * int(2 ** random.uniform(0, 40)))))
    more = [2**63 + 1] * (3 * len(gaps))
    bits = bernoulli_exp_each(rate=rate, gaps=np.array(gaps), source=ReplaySource([*words, *more]))
    for gap, word in zip(gaps, words, strict=True):
        expected.append(below(exp_minus(rate * gap), word, ReplaySource(more)))
    assert bits.tolist() == expected


def near(rate: Fraction, gaps: NDArray[np.int64], distance: int) -> tuple[list[int], list[int]]:
    """Give words at a distance (in units of 2⁻⁵³) below and above each threshold."""
    at = [exp_minus(rate * int(gap))(64)[0] for gap in gaps]
    return [max(0, t - (distance << 11)) for t in at], [min(TOP, t + (distance << 11)) for t in at]


GAPS = np.arange(1, 400)
RATE = Fraction(1, 100)


def perturbed(error: float) -> Callable[[weights.Powers, weights.Gaps], weights.Doubles]:
    real = weights.Powers.of
    signs = np.where(np.arange(len(GAPS)) % 2, 1.0, -1.0)
    return lambda tables, gaps: real(tables, gaps) + signs * error


def test_an_error_of_the_doubles_within_the_band_changes_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    for distance in (2, 20, 31, 62, 64, 70, 200):
        under, over = near(RATE, GAPS, distance)
        with monkeypatch.context() as patch:
            patch.setattr(weights.Powers, "of", perturbed(31 * 2.0**-53))
            assert bernoulli_exp_each(rate=RATE, gaps=GAPS, source=ReplaySource(under)).all()
            assert not bernoulli_exp_each(rate=RATE, gaps=GAPS, source=ReplaySource(over)).any()


def test_an_error_beyond_the_band_would_change_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    under, over = near(RATE, GAPS, 100)
    monkeypatch.setattr(weights.Powers, "of", perturbed(300 * 2.0**-53))
    assert not bernoulli_exp_each(rate=RATE, gaps=GAPS, source=ReplaySource(under)).all()
    assert bernoulli_exp_each(rate=RATE, gaps=GAPS, source=ReplaySource(over)).any()


def test_without_the_band_doubles_would_decide_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coins, "BAND", -1.0)
    under, over = near(RATE, GAPS, 0)
    words = [*under, *[word + 1 for word in over]]
    gaps = np.concatenate([GAPS, GAPS])
    truth = [*[True] * len(GAPS), *[False] * len(GAPS)]
    assert bernoulli_exp_each(rate=RATE, gaps=gaps, source=ReplaySource(words)).tolist() != truth


def check_powers(rate: Fraction, gaps: list[int]) -> None:
    given_as = weights.powers(rate).of(np.array(gaps, dtype=np.uint64))
    for gap, power in zip(gaps, given_as, strict=True):
        low, high = exp_minus(rate * gap)(1100)
        if power == 0:
            assert Fraction(high, 2**1100) < Fraction(weights.CLIPPED)
        else:
            middle = Fraction(low + high, 2**1101)
            assert abs(Fraction(float(power)) - middle) <= middle * Fraction(weights.RELATIVE_ERROR)


@given(st.fractions(Fraction(1, 10**25), 10**9), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_powers_in_doubles_are_within_their_proven_error(rate: Fraction, gaps: list[int]) -> None:
    check_powers(rate, gaps)


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1), Fraction(1, 3), Fraction(7, 10**9), Fraction(1, 10**16)])
def test_powers_are_within_their_error_from_one_down_to_where_they_are_clipped(rate: Fraction) -> None:
    check_powers(rate, [int(x / rate) for x in range(600)])


def test_what_cannot_be_a_probability_or_a_gap_is_refused() -> None:
    for p in (Fraction(-1, 10), Fraction(11, 10)):
        with pytest.raises(ParameterError):
            bernoulli(probability=p, count=1, source=ReplaySource([0]))
    with pytest.raises(ParameterError):
        bernoulli_exp(exponent=Fraction(-1, 10**9), count=1, source=ReplaySource([0]))
    for rate in (Fraction(0), Fraction(-1)):
        with pytest.raises(ParameterError):
            bernoulli_exp_each(rate=rate, gaps=np.array([1]), source=ReplaySource([0]))
    for gaps in (np.array([1, -1]), np.array([0.5]), np.array([True])):
        with pytest.raises(ParameterError):
            bernoulli_exp_each(rate=Fraction(1), gaps=gaps, source=ReplaySource([0, 0]))


def test_no_coins_need_no_words() -> None:
    nothing = ReplaySource([])
    assert bernoulli(probability=Fraction(1, 3), count=0, source=nothing).tolist() == []
    assert bernoulli_exp_each(rate=Fraction(1), gaps=np.array([], dtype=np.int64), source=nothing).tolist() == []
    with pytest.raises(MechanismError):
        bernoulli(probability=Fraction(1, 3), count=1, source=nothing)
