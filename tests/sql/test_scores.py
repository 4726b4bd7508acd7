"""Scores move no further than stated, and intervals and extremes miss no more often than stated, by enumeration."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hubbub.core.schema import Kind
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.sql.aggregates.missing_rows import allowing_for
from hubbub.sql.aggregates.order_statistics import Choice, Extreme, Mode, Quantile, SelectionAggregate
from hubbub.sql.aggregates.scores import (
    MISS,
    CountScore,
    ExtremeScore,
    IntervalScore,
    JointScore,
    QuantileScore,
    ScoreFunction,
    depth,
    margin,
    reaches,
)
from hubbub.sql.candidates import Candidates
from hubbub.sql.expressions import Col

AIMS: dict[str, ScoreFunction] = {
    "median": QuantileScore(Fraction(1, 2)),
    "third": QuantileScore(Fraction(1, 3)),
    "least": QuantileScore(Fraction(0)),
    "median with its interval": IntervalScore(Fraction(1, 2), 2),
    "third with its interval": IntervalScore(Fraction(1, 3), 4),
    "upper tenth with its interval": IntervalScore(Fraction(9, 10), 7),
    "least with its interval": IntervalScore(Fraction(0), 1),
    "median and third together": JointScore((QuantileScore(Fraction(1, 2)), IntervalScore(Fraction(1, 3), 4))),
    "max": ExtremeScore(largest=True, depth=1),
    "max with depth": ExtremeScore(largest=True, depth=3),
    "min": ExtremeScore(largest=False, depth=2),
    "mode": CountScore(),
}
LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)]
#: Every definition of a quantile that numpy knows.
DEFINITIONS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)
Mechanism = type[PermuteAndFlip] | type[Exponential]


def table(*counts: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array([counts], dtype=np.int64)


@pytest.mark.parametrize("name", AIMS)
def test_scores_move_by_no_more_than_their_sensitivity(name: str) -> None:
    aim = AIMS[name]
    moved: set[int] = set()
    for counts in product(range(4), repeat=4):
        before = aim.scores(table(*counts))
        assert before.shape == (1, aim.outcomes(4))
        for place in range(4):
            after = list(counts)
            after[place] += 1
            change = aim.scores(table(*after)) - before
            moved |= set(change.ravel().tolist())
            if isinstance(aim, CountScore):
                assert (change >= 0).all()
    assert max(abs(step) for step in moved) == aim.sensitivity


REPLACED = [
    (Quantile(), (Fraction(1, 2),), 2, 2),
    (Quantile(), (Fraction(9, 10),), 10, 18),
    (Quantile(), (Fraction(1, 4), Fraction(9, 10)), 12, 18),
    (Extreme("max", largest=True), (), 1, 2),
    (Extreme("min", largest=False), (), 1, 2),
    (Mode(), (), 1, 1),
]


@pytest.mark.parametrize("shape", ["value", "interval"])
@pytest.mark.parametrize(("aggregate", "levels", "alone", "among"), REPLACED, ids=str)
def test_a_replaced_unit_moves_scores_by_no_more_than_is_charged(
    aggregate: SelectionAggregate, levels: tuple[Fraction, ...], alone: int, among: int, shape: str
) -> None:
    """All pairs of a table and one with up to two rows taken out and up to two put in, in one cell and in two."""
    choice = Choice(("x",), aggregate, Candidates(Col("x", Kind.INTEGER), None, 4), levels)
    row = aggregate.row_sensitivity(choice)
    assert aggregate.replaced_sensitivity(choice, alone=False) == among
    assert aggregate.replaced_sensitivity(choice, alone=True) == alone
    score = aggregate.score(choice, Fraction(1, 4), interval=shape == "interval")
    moves = [each for each in product(range(3), repeat=4) if sum(each) <= 2]
    whole, ranges = 0, 0
    for counts in product(range(0, 7, 2), repeat=4):
        before = np.array(counts, dtype=np.int64)
        gone = [np.array(each, dtype=np.int64) for each in moves if (before - each >= 0).all()]
        tables = np.array([before - each for each in gone])
        base = score.scores(before[np.newaxis])
        # in two cells: each loses or gains the rows of one unit
        steps = score.scores(tables) - base
        assert np.abs(steps).max() <= 2 * row
        for after in moves:
            change = score.scores(tables + np.array(after)) - base
            whole = max(whole, int(np.abs(change).max()))
            ranges = max(ranges, int((change.max(axis=1) - change.min(axis=1)).max()))
    assert whole <= 2 * alone
    assert ranges <= 4 * alone
    if shape == "value":
        assert whole == 2 * alone, "it is attained"


def test_cells_are_scored_alone() -> None:
    cells = np.array(list(product(range(3), repeat=3)), dtype=np.int64)
    for aim in AIMS.values():
        alone = [aim.scores(cell[np.newaxis])[0] for cell in cells]
        assert np.array_equal(aim.scores(cells), alone)


def test_a_target_has_no_loss_exactly_at_quantiles() -> None:
    for counts in product(range(3), repeat=4):
        n = sum(counts)
        (scores,) = QuantileScore(Fraction(1, 3)).scores(table(*counts))
        for place in range(4):
            below, above = sum(counts[:place]), sum(counts[place + 1 :])
            assert (scores[place] == 0) == (3 * below <= n and 3 * above <= 2 * n)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("reserve", [1, 4, 20])
def test_every_candidate_has_an_interval_without_further_loss(level: Fraction, reserve: int) -> None:
    for counts in product((0, 1, 3, 8), repeat=4):
        (alone,) = QuantileScore(level).scores(table(*counts))
        pairs = IntervalScore(level, reserve).scores(table(*counts)).reshape(-1, 4)
        assert (pairs <= alone).all()
        assert (pairs.max(axis=0) == alone).all()


def test_an_interval_is_as_short_as_its_margin_allows() -> None:
    """Ten rows at each of nine candidates: the median is the fifth, each further one adds ten rows of slack."""
    counts = table(*[10] * 9)
    for rows, ends in ((5, (4, 4)), (6, (3, 5)), (15, (3, 5)), (24, (2, 6)), (26, (0, 8)), (46, (0, 8))):
        score = IntervalScore(Fraction(1, 2), 2 * rows)
        scores = score.scores(counts)[0]
        best = np.flatnonzero(scores == 0)
        place, low, high = score.ends(best, 9)
        assert (place == 4).all()
        assert set(zip(low.tolist(), high.tolist(), strict=True)) == {ends}


def first_heads(coins: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Compute how often each coin is the first to show heads in random order: q_i·∫₀¹ ∏_{j≠i} (1 − q_j·u) du.

    Gauss-Legendre with n nodes is exact for polynomials of degree 2n − 1.
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(coins))
    tails = 1 - np.outer(coins, (nodes + 1) / 2)
    return np.array([coin * (weights / 2 * np.delete(tails, i, 0).prod(axis=0)).sum() for i, coin in enumerate(coins)])


def test_first_heads_is_the_distribution_of_permute_and_flip() -> None:
    scores, rate = [0, -1, -1, -4, -9], Fraction(1, 3)
    chosen = PermuteAndFlip(candidates=5, sensitivity=1, monotone=False, rate=rate).distribution(scores)
    stated = [float(chosen.mass[i][0]) for i in range(5)]
    assert first_heads(np.exp(float(rate) * np.array(scores))) == pytest.approx(stated, rel=1e-9)


def misses(
    score: IntervalScore,
    counts: Sequence[int],
    mechanism: Mechanism,
    rate: Fraction,
    whole: Sequence[int] | None = None,
) -> float:
    """Compute the largest probability of missing the quantile, over its definitions; counts may lack some rows."""
    (scores,) = score.scores(table(*counts))
    coins = np.exp(float(rate) * (scores - scores.max()))
    chances = coins / coins.sum() if mechanism is Exponential else first_heads(coins)
    _, low, high = score.ends(np.arange(len(scores)), len(counts))
    rows = np.repeat(np.arange(len(counts)), counts if whole is None else whole)
    truths = {float(np.quantile(rows, float(score.level), method=name)) for name in DEFINITIONS}  # type: ignore[call-overload]
    return max(float(chances[(truth < low - 0.5) | (truth > high + 0.5)].sum()) for truth in truths)


def small_tables() -> Iterator[tuple[int, ...]]:
    """Yield tables of few and of many rows, with gaps, atoms and rows far away."""
    yield from (counts for counts in product((0, 1, 4, 20), repeat=4) if any(counts))


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, Exponential])
@pytest.mark.parametrize("level", LEVELS)
def test_intervals_miss_no_more_often_than_stated_on_all_small_tables(level: Fraction, mechanism: Mechanism) -> None:
    rate = Fraction(1, 2)
    score = IntervalScore(level, margin(level, 4, rate))
    assert max(misses(score, counts, mechanism, rate) for counts in small_tables()) <= MISS


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, Exponential])
def test_planted_intervals_with_half_the_margin_miss_too_often(mechanism: Mechanism) -> None:
    rate = Fraction(1, 8)
    score = IntervalScore(Fraction(1, 2), margin(Fraction(1, 2), 4, rate) // 4)
    assert (
        max(misses(score, counts, mechanism, rate) for counts in product((0, 20, 21), repeat=4) if any(counts)) > MISS
    )


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, Exponential])
@pytest.mark.parametrize("level", LEVELS)
def test_intervals_of_counts_that_lack_rows_cover_the_quantile_of_all(level: Fraction, mechanism: Mechanism) -> None:
    """Up to 24 rows are missing, all at one place or on two sides. Without the allowance for them, intervals miss."""
    rate, lacking = Fraction(2), [(24, 0, 0, 0), (0, 24, 0, 0), (0, 0, 0, 24), (5, 0, 0, 19)]
    narrow = IntervalScore(level, margin(level, 4, rate))
    wide = allowing_for(narrow, 24)
    assert isinstance(wide, IntervalScore)

    def worst(score: IntervalScore) -> float:
        return max(
            misses(score, counts, mechanism, rate, np.add(counts, missing).tolist())
            for counts in product((0, 20), repeat=4)
            for missing in lacking
        )

    assert worst(wide) <= MISS < worst(narrow)


def test_extremes_and_modes_need_no_allowance_and_all_rows_are_the_whole_range() -> None:
    for name in ("median", "max with depth", "mode"):
        assert allowing_for(AIMS[name], 100.0) == AIMS[name]
    alone, third = IntervalScore(Fraction(9, 10), 7), IntervalScore(Fraction(1, 3), 4)
    joint = allowing_for(JointScore((alone, third, third)), math.inf)
    assert isinstance(joint, JointScore)
    for part in (allowing_for(alone, math.inf), *joint.parts):
        assert isinstance(part, IntervalScore)
        scores = part.scores(table(*[10**8] * 4))[0]
        assert (scores == 0).any()
        _, low, high = part.ends(np.flatnonzero(scores == 0), 4)
        assert (low == 0).all()
        assert (high == 3).all()


@pytest.mark.parametrize("planted", [False, True])
def test_joint_intervals_miss_no_more_often_than_stated(*, planted: bool) -> None:
    """Enumerate all pairs of outcomes of two quantiles over three candidates; without their margins they miss often."""
    levels, rate = (Fraction(1, 4), Fraction(1, 2)), Fraction(1, 4)
    parts = tuple(
        IntervalScore(level, 1 if planted else margin(level, 3, rate * factor, together=2))
        for level, factor in zip(levels, (1, 3), strict=True)
    )
    score = JointScore(parts)
    assert score.sensitivity == 3
    worst = 0.0
    for counts in product((0, 1, 10, 11, 60), repeat=3):
        if not any(counts):
            continue
        first, second = np.split(score.scores(table(*counts))[0], 2)
        weights = np.exp(float(rate) * np.minimum(first[:, np.newaxis], second[np.newaxis]))
        rows = np.repeat(np.arange(3), counts)
        for axis, part in enumerate(parts):
            chances = weights.sum(axis=1 - axis) / weights.sum()
            _, low, high = part.ends(np.arange(len(chances)), 3)
            for name in DEFINITIONS:
                truth = float(np.quantile(rows, float(part.level), method=name))  # type: ignore[call-overload]
                worst = max(worst, float(chances[(truth < low - 0.5) | (truth > high + 0.5)].sum()))
    assert (worst > MISS) == planted


def test_the_margin_is_that_of_the_theorem() -> None:
    """With reaches 0, 1, 2, 4 and 8, e^(−rate·(margin − 2b))·2·5 is at most 1/20, and one less would not do."""
    assert reaches(8) == (0, 1, 2, 4, 8)
    assert reaches(1) == (0, 1)
    rate = Fraction(1, 10)
    least = margin(Fraction(1, 2), 8, rate) - 4
    assert 10 * math.exp(-0.1 * least) <= 0.05 < 10 * math.exp(-0.1 * (least - 1))
    # three together: t with 128³·e^(−rate·t) ≤ 1/40 for the others, and 1/40 for its own 10 images
    least = margin(Fraction(1, 2), 8, rate, together=3) - 4
    assert 128**3 * 10 * math.exp(-0.1 * least) <= 0.025**2 < 128**3 * 10 * math.exp(-0.1 * (least - 1))


def test_an_extreme_of_depth_one_is_the_extreme() -> None:
    for counts in product(range(3), repeat=4):
        for largest in (True, False):
            (scores,) = ExtremeScore(largest=largest, depth=1).scores(table(*counts))
            if any(counts):
                ends = [place for place, count in enumerate(counts) if count]
                assert np.flatnonzero(scores == 0).tolist() == [max(ends) if largest else min(ends)]


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, Exponential])
def test_extremes_pass_all_rows_no_more_often_than_stated(mechanism: Mechanism) -> None:
    rate = Fraction(1, 3)
    for largest in (True, False):
        score = ExtremeScore(largest, depth(4, rate))
        worst = 0.0
        for counts in product((0, 1, 5, 30), repeat=4):
            if any(counts):
                (scores,) = score.scores(table(*counts))
                chosen = mechanism(candidates=4, sensitivity=1, monotone=False, rate=rate).distribution(scores.tolist())
                rows = [place for place, count in enumerate(counts) if count]
                beyond = [place for place in range(4) if (place > max(rows) if largest else place < min(rows))]
                worst = max(worst, sum(float(chosen.mass[place][1]) for place in beyond))
        assert 0.001 < worst <= MISS
