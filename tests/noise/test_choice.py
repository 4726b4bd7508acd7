"""One of many is chosen with exactly the stated probabilities, by work that does not depend on the scores."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from tests.fixtures.seeded_source import SeededSource

from hubbub.core import reals
from hubbub.core.reals import Enclosure
from hubbub.errors import MechanismError, ParameterError
from hubbub.noise import choice as room
from hubbub.noise import weights as powers_room
from hubbub.noise.choice import choose, choose_weighted
from hubbub.noise.comparison import Real
from hubbub.noise.source import RandomSource, ReplaySource, system

Exp = Callable[[Fraction], Fraction]
Expansion = Callable[[Fraction, int], list[int]]

TOP = 2**64 - 1


def int64(*scores: int) -> NDArray[np.int64]:
    return np.array(scores, dtype=np.int64)


def distribution(scores: NDArray[np.int64], rate: Fraction, monkeypatch: pytest.MonkeyPatch) -> dict[int, Fraction]:
    """Follow every path that `choose` can take and multiply the probabilities with which it decides."""
    mass: dict[int, Fraction] = {}
    pending: list[list[bool]] = [[]]
    while pending:
        script = pending.pop()
        taken: list[tuple[bool, Fraction]] = []

        def scripted(
            real: Real,
            _first: int,
            _source: RandomSource,
            script: list[bool] = script,
            taken: list[tuple[bool, Fraction]] = taken,
        ) -> bool:
            low, high = real(250)
            assert high - low <= 4
            decision = script[len(taken)] if len(taken) < len(script) else True
            taken.append((decision, Fraction(low + high, 2**251)))
            return decision

        with monkeypatch.context() as patch:
            patch.setattr(room, "BAND", float("inf"))
            patch.setattr(room, "below", scripted)
            chosen = choose(scores=scores, rate=rate, source=ReplaySource([0] * 64))
        probability = Fraction(1)
        for decision, p in taken:
            probability *= p if decision else 1 - p
        assert chosen not in mass
        mass[chosen] = probability
        decisions = [decision for decision, _ in taken]
        pending += [[*decisions[:i], False] for i in range(len(script), len(taken))]
    return mass


@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        (int64(0), Fraction(1)),
        (int64(0, 0), Fraction(1, 3)),
        (int64(5, 3, 4), Fraction(1)),
        (int64(*range(-7, 10)), Fraction(1, 10)),
        (int64(*(n * n % 37 for n in range(32))), Fraction(7, 11)),
        (int64(-(2**63), 2**63 - 1, 0, 2**63 - 2), Fraction(1, 10**19)),
        (int64(0, -100, 3, -250, 7), Fraction(1, 2)),
    ],
)
def test_probabilities_are_the_softmax_at_50_digits(
    scores: NDArray[np.int64], rate: Fraction, true_exp: Exp, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = max(scores.tolist())
    truth = [true_exp(rate * (score - best)) for score in scores.tolist()]
    mass = distribution(scores, rate, monkeypatch)
    assert sorted(mass) == list(range(len(scores)))
    assert all(abs(mass[i] - p / sum(truth)) < Fraction(1, 10**50) for i, p in enumerate(truth))


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.integers(-50, 50), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=33),
    st.fractions(Fraction(1, 10**20), 10**6),
    st.lists(st.one_of(st.integers(0, TOP), st.sampled_from([0, 1, TOP])), min_size=6, max_size=6),
)
def test_doubles_choose_as_enclosures_do(scores: list[int], rate: Fraction, words: list[int]) -> None:
    replay = [*words[: (len(scores) - 1).bit_length()], *[1 << 63] * 3000]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "BAND", float("inf"))
        exactly = choose(scores=int64(*scores), rate=rate, source=ReplaySource(replay))
    assert choose(scores=int64(*scores), rate=rate, source=ReplaySource(replay)) == exactly


def pair(gap: int, distance: int, true_exp: Exp) -> tuple[int, int]:
    """Choose between two scores with words that far (in 2⁻⁵³) below and above the threshold."""
    at = int(2**64 / (1 + true_exp(Fraction(-gap, 10))))
    under, over = max(0, at - (distance << 11)), min(TOP, at + (distance << 11))
    scores = int64(gap, 0)
    return (
        choose(scores=scores, rate=Fraction(1, 10), source=ReplaySource([under])),
        choose(scores=scores, rate=Fraction(1, 10), source=ReplaySource([over])),
    )


def perturbed(error: float) -> Callable[[powers_room.Powers, powers_room.Gaps], powers_room.Doubles]:
    real = powers_room.Powers.of
    return lambda tables, gaps: real(tables, gaps) * (1 + error * np.where(np.arange(len(gaps)) % 2, 1, -1))


@pytest.mark.parametrize("error", [-(2.0**-47), 2.0**-47])
def test_an_error_of_the_doubles_within_the_band_changes_no_choice(
    error: float, true_exp: Exp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(powers_room.Powers, "of", perturbed(error))
    for distance in (2, 20, 63, 200, 255, 257, 400):
        assert all(pair(gap, distance, true_exp) == (0, 1) for gap in range(30))


@pytest.mark.parametrize("error", [-(2.0**-40), 2.0**-40])
def test_an_error_beyond_the_band_would_change_choices(
    error: float, true_exp: Exp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(powers_room.Powers, "of", perturbed(error))
    assert any(pair(gap, 300, true_exp) != (0, 1) for gap in range(30))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_word_on_a_threshold_is_refined_along_the_true_expansion(
    depth: int, true_exp: Exp, expansion: Expansion
) -> None:
    p = 1 / (1 + true_exp(Fraction(-7, 10)))
    *head, last = expansion(p, depth)
    for word, chosen in ((last - 1, 0), (last + 1, 1)):
        source = ReplaySource([*head, word])
        assert choose(scores=int64(7, 0), rate=Fraction(1, 10), source=source) == chosen
        assert source.left == 0


@pytest.mark.parametrize("gap", [254, 255, 256, 300])
def test_candidates_too_light_for_doubles_are_still_chosen_as_they_should(gap: int) -> None:
    """Two candidates of e^(−gap) and 1/e of it beside two of 1: reached by words of all ones, then told apart at .731.

    From a gap of 256 on, the doubles have 0.
    """
    scores, p = int64(0, 0, -gap, -gap - 1), Fraction(731, 1000)
    for word, chosen in ((int(p * 2**64), 2), (int((p + Fraction(1, 1000)) * 2**64), 3)):
        # words[1] is for the upper node and words[0] for the lower one
        source = ReplaySource([word, TOP, *[TOP] * 6])
        assert choose(scores=scores, rate=Fraction(1), source=source) == chosen


def test_the_number_of_words_depends_on_the_number_of_candidates_alone() -> None:
    generator = np.random.default_rng()
    for size in (1, 2, 3, 1000, 4096, 4097):
        for scores in (
            np.zeros(size, dtype=np.int64),
            np.arange(size),
            generator.integers(-(2**62), 2**62, size),
        ):
            source = ReplaySource(system().words(100).tolist())
            choose(scores=scores, rate=Fraction(1, 7), source=source)
            assert 100 - source.left == (size - 1).bit_length()


def test_frequencies_fit_and_a_rate_wrong_by_a_twentieth_does_not() -> None:
    """χ² at 1e-6 over 7 candidates and 50,000 choices from fixed words, so there is no false alarm in a run."""
    scores = int64(0, 10, 20, 30, 5, 15, 25)
    source = SeededSource(20_260_101)
    chosen = [choose(scores=scores, rate=Fraction(1, 10), source=source) for _ in range(50_000)]
    counts = np.bincount(chosen, minlength=7)
    for rate, fits in ((0.1, True), (0.105, False), (0.095, False)):
        expected = np.exp(rate * scores)
        assert bool(stats.chisquare(counts, expected / expected.sum() * len(chosen)).pvalue > 1e-6) is fits


def test_many_candidates_are_chosen_from_as_few_are() -> None:
    """30,001 candidates of three scores: χ² of the score chosen and KS of its place, both at 1e-6."""
    size, draws = 30_001, 2000
    scores = np.arange(size) % 3
    chosen = np.array([choose(scores=scores, rate=Fraction(1), source=system()) for _ in range(draws)])
    expected = np.bincount(scores) * np.exp(np.arange(3))
    counts = np.bincount(scores[chosen], minlength=3)
    assert stats.chisquare(counts, expected / expected.sum() * draws).pvalue > 1e-6
    assert stats.kstest(chosen / size, "uniform").pvalue > 1e-6


@pytest.mark.parametrize(
    "scores", [np.array([], dtype=np.int64), np.array([0.5]), np.array([True]), np.array([1], np.int32)]
)
def test_what_are_no_scores_are_refused(scores: NDArray[np.int64]) -> None:
    with pytest.raises(ParameterError):
        choose(scores=scores, rate=Fraction(1), source=system())
    with pytest.raises(ParameterError):
        choose(scores=int64(1), rate=Fraction(0), source=system())


def exactly(*weights: Fraction | int) -> Callable[[int], Sequence[Enclosure]]:
    return lambda _digits: [(Fraction(w), Fraction(w)) for w in weights]


def powers(*exponents: Fraction | int) -> Callable[[int], Sequence[Enclosure]]:
    return lambda digits: [reals.exp(Fraction(x), digits) for x in exponents]


def test_weighted_choice_splits_the_words_exactly() -> None:
    for words, chosen in (([0], 0), ([2**62 - 1], 0), ([2**62], 2), ([TOP], 2)):
        assert choose_weighted(weights=exactly(1, 0, 3), source=ReplaySource(words)) == chosen


@pytest.mark.parametrize("shift", [0, -5000, 5000])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_weighted_choice_is_refined_along_the_true_expansion(
    depth: int, shift: int, true_exp: Exp, expansion: Expansion
) -> None:
    """Also where all weights are tiny or huge, for only their ratios matter."""
    e = [true_exp(Fraction(-k, 3)) for k in range(4)]
    weights = powers(*(Fraction(-k, 3) + shift for k in range(4)))
    for i in range(3):
        *head, last = expansion(sum(e[: i + 1], Fraction(0)) / sum(e), depth)
        for word, chosen in ((last - 1, i), (last + 1, i + 1)):
            source = ReplaySource([*head, word])
            assert choose_weighted(weights=weights, source=source) == chosen
            assert source.left == 0


@given(
    st.lists(st.fractions(0, 10, max_denominator=1000), min_size=1, max_size=5).filter(sum),
    st.lists(st.one_of(st.integers(0, TOP), st.sampled_from([0, 2**62, 2**63, TOP])), min_size=6, max_size=6),
    st.lists(st.sampled_from([0, 1, 10**25]), min_size=10, max_size=10),
)
@example([Fraction(1), Fraction(1)], [2**63 + 50, *[1] * 5], [0, 0, 10**25, 0, *[0] * 6])
@example([Fraction(1), Fraction(1)], [2**63 + 50, *[1] * 5], [0, 10**25, *[0] * 8])
@example([Fraction(1), Fraction(1)], [2**63 - 50, *[1] * 5], [0, 0, 0, 10**25, *[0] * 6])
@example([Fraction(1), Fraction(1)], [2**63 - 50, *[1] * 5], [10**25, 0, *[0] * 8])
def test_wide_enclosures_of_the_weights_never_decide_wrongly(
    weights: list[Fraction], words: list[int], slack: list[int]
) -> None:
    def wide(digits: int) -> Sequence[Enclosure]:
        step = Fraction(1, 10**digits)
        return [(max(Fraction(0), w - step * slack[2 * i]), w + step * slack[2 * i + 1]) for i, w in enumerate(weights)]

    source = ReplaySource(words)
    try:
        chosen = choose_weighted(weights=wide, source=source)
    except MechanismError:
        return
    used = words[: len(words) - source.left]
    u = sum((Fraction(word, 2 ** (64 * (i + 1))) for i, word in enumerate(used)), Fraction(0))
    before, total = sum(weights[:chosen], Fraction(0)), sum(weights)
    assert before <= u * total
    assert (u + Fraction(1, 2 ** (64 * len(used)))) * total <= before + weights[chosen]


def test_weighted_frequencies_fit() -> None:
    """χ² at 1e-6 over 20,000 choices; a rate wrong by a fifth is caught."""
    weights = powers(0, -1, -2, -3)
    counts = np.bincount([choose_weighted(weights=weights, source=system()) for _ in range(20_000)], minlength=4)
    for rate, fits in ((1.0, True), (1.2, False)):
        expected = np.exp(-rate * np.arange(4))
        assert bool(stats.chisquare(counts, expected / expected.sum() * 20_000).pvalue > 1e-6) is fits


def test_weights_that_cannot_be_told_from_zero_are_refused() -> None:
    for weights in (exactly(), exactly(0, 0), lambda _digits: [(Fraction(0), Fraction(1, 10))] * 3):
        with pytest.raises(ParameterError):
            choose_weighted(weights=weights, source=system())
    with pytest.raises(MechanismError):
        choose_weighted(weights=exactly(1, 1), source=ReplaySource([]))
