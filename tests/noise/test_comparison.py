"""A uniform real is compared with a real threshold exactly, whatever words it begins with."""

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hubbub.errors import MechanismError
from hubbub.noise.comparison import Fixed, below, exp_minus, fixed, locate, logistic, rational, threshold
from hubbub.noise.source import ReplaySource

Exp = Callable[[Fraction], Fraction]
Expansion = Callable[[Fraction, int], list[int]]

TOP = 2**64 - 1
WORDS = st.lists(st.one_of(st.integers(0, TOP), st.sampled_from([0, 1, 2**63, TOP - 1, TOP])), min_size=1, max_size=4)
EXPONENTS = [Fraction(1, 10**12), Fraction(1, 3), Fraction(1), Fraction(40), Fraction(100), Fraction(1000)]


def uniform(words: list[int]) -> tuple[Fraction, Fraction]:
    """Give the interval of U that these leading words leave."""
    n = sum(word << (64 * i) for i, word in enumerate(reversed(words)))
    return Fraction(n, 2 ** (64 * len(words))), Fraction(n + 1, 2 ** (64 * len(words)))


@given(st.fractions(0, 1), WORDS)
@example(Fraction(1, 2), [2**63])
@example(Fraction(1, 2), [2**63 - 1])
@example(Fraction(0), [0])
@example(Fraction(1), [TOP])
@example(Fraction(1, 3), [TOP // 3, TOP // 3, TOP // 3])
def test_a_rational_threshold_decides_as_exact_arithmetic_does(p: Fraction, words: list[int]) -> None:
    low, high = uniform(words)
    source = ReplaySource(words[1:])
    try:
        decided = below(rational(p), words[0], source)
    except MechanismError:  # the words ran out, which is right only where they leave it open
        assert low < p < high
        return
    used = words[: len(words) - source.left]
    low, high = uniform(used)
    assert high <= p if decided else p <= low
    if len(used) > 1:  # and no word was taken without need
        low, high = uniform(used[:-1])
        assert low < p < high


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("x", EXPONENTS)
def test_refinement_follows_the_true_expansion_to_either_side(
    x: Fraction, depth: int, true_exp: Exp, expansion: Expansion
) -> None:
    for real, p in (
        (exp_minus(x), true_exp(-x)),
        (logistic(x), 1 / (1 + true_exp(x))),
        (logistic(-x), 1 / (1 + true_exp(-x))),
    ):
        first, *rest = expansion(p, depth)
        head, last = ([first, *rest][:-1], [first, *rest][-1])
        for word, outcome in ((last - 1, True), (last + 1, False)):
            if 0 <= word <= TOP:
                words = [*head, word]
                source = ReplaySource(words[1:])
                assert below(real, words[0], source) is outcome
                assert source.left == 0


@pytest.mark.parametrize("x", EXPONENTS)
def test_thresholds_are_the_floor_of_the_closed_form(x: Fraction, true_exp: Exp) -> None:
    assert threshold(exp_minus(x)) == int(true_exp(-x) * 2**64)
    assert threshold(logistic(x)) == int(2**64 / (1 + true_exp(x)))
    assert threshold(logistic(-x)) == min(int(2**64 / (1 + true_exp(-x))), TOP)


@given(st.fractions(0, 1))
def test_the_threshold_of_a_rational_is_its_floor(p: Fraction) -> None:
    assert threshold(rational(p)) == min(int(p * 2**64), TOP)


@pytest.mark.parametrize("bits", [1, 64, 200, 1000])
@pytest.mark.parametrize("x", [*EXPONENTS, Fraction(0)])
def test_enclosures_enclose_and_are_narrow(x: Fraction, bits: int, true_exp: Exp) -> None:
    slack = Fraction(2**bits, 10**130)
    for real, p in ((exp_minus(x), true_exp(-x)), (logistic(x), 1 / (1 + true_exp(x)))):
        low, high = real(bits)
        assert low <= p * 2**bits + slack
        assert p * 2**bits - slack <= high
        assert high - low <= 4


def test_a_power_of_astronomical_exponent_costs_nothing_and_is_almost_never_true() -> None:
    real = exp_minus(Fraction(10**40))
    assert threshold(real) == 0
    assert not below(real, 1, ReplaySource([]))
    assert not below(real, 0, ReplaySource([0, 0, 1]))
    assert threshold(logistic(Fraction(-(10**40)))) == TOP
    assert below(logistic(Fraction(-(10**40))), TOP - 1, ReplaySource([]))


@pytest.mark.parametrize("bad", [Fraction(-1, 10**9), Fraction(10**9 + 1, 10**9)])
def test_what_is_no_probability_is_refused(bad: Fraction) -> None:
    with pytest.raises(ValueError, match="probability"):
        rational(bad)
    with pytest.raises(ValueError, match="x >= 0"):
        exp_minus(-abs(bad))


def test_a_threshold_that_enclosures_cannot_part_from_a_word_is_refused_and_not_guessed() -> None:
    def half(bits: int) -> Fixed:
        return (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1

    with pytest.raises(MechanismError) as refusal:
        threshold(half)
    assert refusal.value.code == "HB602"


@given(st.fractions(0, 1), WORDS, st.integers(0, 2**90), st.integers(0, 2**90))
def test_a_wide_enclosure_takes_more_words_and_never_decides_wrongly(
    p: Fraction, words: list[int], under: int, over: int
) -> None:
    def wide(bits: int) -> Fixed:
        low, high = fixed(p, p, bits)
        return max(0, low - under), min(1 << bits, high + over)

    def row(bits: int) -> tuple[list[int], list[int]]:
        low, high = wide(bits)
        return [low, 1 << bits], [high, 1 << bits]

    source, again = ReplaySource([*words[1:], *[1 << 63] * 9]), ReplaySource([*words[1:], *[1 << 63] * 9])
    try:
        decided, place = below(wide, words[0], source), locate(row, words[0], again)
    except MechanismError:
        return
    used = [*words, *[1 << 63] * 9][: len(words) + 9 - source.left]
    low, high = uniform(used)
    assert high <= p if decided else p <= low
    assert place == (0 if decided else 1)


@given(st.lists(st.fractions(0, 10), min_size=1, max_size=6).filter(sum), WORDS)
@example([Fraction(1), Fraction(1)], [2**63])
@example([Fraction(1), Fraction(0), Fraction(1)], [2**63])
@example([Fraction(0), Fraction(1)], [0])
def test_a_row_is_searched_as_exact_arithmetic_does(weights: list[Fraction], words: list[int]) -> None:
    row = [c / sum(weights) for c in accumulate(weights)]

    def at(bits: int) -> tuple[list[int], list[int]]:
        both = [fixed(c, c, bits) for c in row]
        return [low for low, _ in both], [high for _, high in both]

    source = ReplaySource(words[1:])
    try:
        place = locate(at, words[0], source)
    except MechanismError:
        low, high = uniform(words)
        assert any(low < c < high for c in row)
        return
    low, high = uniform(words[: len(words) - source.left])
    assert place == bisect_right(row, low)
    assert high <= row[place]
    assert weights[place] > 0
