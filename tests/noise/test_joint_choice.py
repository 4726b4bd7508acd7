"""Combinations are chosen with exactly the stated probabilities, by the score of the worst of them."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.noise import choice as room
from hubbub.noise import joint_choice
from hubbub.noise.comparison import Real
from hubbub.noise.joint_choice import choose_jointly
from hubbub.noise.source import RandomSource, ReplaySource, system

RATE = Fraction(1, 3)


def table(*scores: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array([scores], dtype=np.int64)


def paths(
    scores: tuple[int, ...], sizes: tuple[int, ...], patch: pytest.MonkeyPatch
) -> Iterator[tuple[list[int], Fraction]]:
    """Follow every path through the coins, and for each every result of the uniform draws."""
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

        bounds: list[int] = []

        def measured(*, bounds: object, source: RandomSource, seen: list[int] = bounds) -> object:
            del source
            seen.append(int(bounds[0]))  # type: ignore[index]
            return np.array([0])

        with patch.context() as inside:
            inside.setattr(room, "BAND", float("inf"))
            inside.setattr(room, "below", scripted)
            inside.setattr(joint_choice, "uniform_below_each", measured)
            choose_jointly(scores=table(*scores), sizes=sizes, rate=RATE, source=ReplaySource([0] * 64))
        chance = Fraction(1)
        for decision, p in taken:
            chance *= p if decision else 1 - p
        for drawn in product(*(range(bound) for bound in bounds)):
            left, again = list(drawn), [decision for decision, _ in taken]
            with patch.context() as inside:
                inside.setattr(room, "BAND", float("inf"))
                inside.setattr(room, "below", lambda *_, again=again: again.pop(0))
                inside.setattr(joint_choice, "uniform_below_each", lambda left=left, **_: np.array([left.pop(0)]))
                chosen = choose_jointly(scores=table(*scores), sizes=sizes, rate=RATE, source=ReplaySource([0] * 64))
            yield chosen[0].tolist(), chance / np.prod(bounds, dtype=object)
        decisions = [decision for decision, _ in taken]
        pending += [[*decisions[:i], False] for i in range(len(script), len(taken))]


@pytest.mark.parametrize(
    ("scores", "sizes"),
    [
        ((0, 0), (1, 1)),
        ((3, 1, 2, 2), (2, 2)),
        ((9, 9, 1, 4, 4), (2, 3)),
        ((0, -2, -1, -1, 0, -5), (2, 2, 2)),
        ((4, -4, 0), (3,)),
    ],
)
def test_combinations_have_exactly_the_stated_probabilities(
    scores: tuple[int, ...], sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, start = [], 0
    for size in sizes:
        parts.append(scores[start : start + size])
        start += size
    every = list(product(*(range(size) for size in sizes)))
    weights = [np.exp(float(RATE) * min(part[i] for part, i in zip(parts, each, strict=True))) for each in every]
    mass = dict.fromkeys(every, 0.0)
    for chosen, chance in paths(scores, sizes, monkeypatch):
        mass[tuple(chosen)] += float(chance)
    assert [mass[each] for each in every] == pytest.approx([w / sum(weights) for w in weights], rel=1e-12)


@settings(max_examples=40)
@given(
    st.lists(st.integers(-30, 30), min_size=6, max_size=6),
    st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3),
)
def test_doubles_choose_as_enclosures_do(scores: list[int], words: list[int]) -> None:
    replay = [*words, *[1 << 63] * 3000]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "BAND", float("inf"))
        exactly = choose_jointly(scores=table(*scores), sizes=(2, 4), rate=RATE, source=ReplaySource(replay))
    found = choose_jointly(scores=table(*scores), sizes=(2, 4), rate=RATE, source=ReplaySource(replay))
    assert np.array_equal(found, exactly)


def test_rows_are_chosen_alone_and_with_the_stated_frequencies() -> None:
    """Two different rows, 20,000 times each: a chi-squared test with a false-alarm rate of 1e-7 for each row.

    With a score that is planted one lower, the test fails.
    """
    rows = np.array([[0, -3, -1, 0, -6], [-2, 0, 0, -1, -1]], dtype=np.int64)
    chosen = choose_jointly(scores=np.repeat(rows, 20_000, axis=0), sizes=(2, 3), rate=RATE, source=system())
    for row, part in zip(rows, (chosen[:20_000], chosen[20_000:]), strict=True):
        seen = np.zeros((2, 3))
        np.add.at(seen, (part[:, 0], part[:, 1]), 1)
        for moved, fits in ((0, True), (1, False)):
            own = row.copy()
            own[0] -= moved
            worst = np.minimum(own[:2, np.newaxis], own[np.newaxis, 2:])
            expected = np.exp(float(RATE) * worst)
            test = stats.chisquare(seen.ravel(), (expected / expected.sum() * 20_000).ravel())
            assert (test.pvalue > 1e-7) == fits


@pytest.mark.parametrize("sizes", [(2, 2), (), (5, 0)])
def test_sizes_that_do_not_fit_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError) as refused:
        choose_jointly(scores=table(0, 0, 0, 0, 0), sizes=sizes, rate=RATE, source=system())
    assert refused.value.code == "HB103"
