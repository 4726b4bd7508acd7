"""Discrete Gaussian noise has exactly the distribution it states."""

from bisect import bisect_right
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.noise import gaussian as room
from hubbub.noise.comparison import below, exp_minus
from hubbub.noise.gaussian import discrete_gaussian
from hubbub.noise.source import ReplaySource, system

Exp = Callable[[Fraction], Fraction]
Expansion = Callable[[Fraction, int], list[int]]
Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Fit = Callable[[NDArray[np.int64], Cdf, float], float]

TOP = 2**64 - 1
TRIALS = 2  # made at once for a single draw, where a bucket is wider than one integer
WIDE = Fraction(2**40)  # a variance with buckets of 2^14, the widest there are for their standard deviation
CONTEXT = Context(prec=140)


def weight(square: int, variance: Fraction) -> Decimal:
    """Give e^(−square/2·variance) to 140 digits."""
    return CONTEXT.exp(CONTEXT.divide(Decimal(-square * variance.denominator), Decimal(2 * variance.numerator)))


@lru_cache(maxsize=16)
def shares(variance: Fraction, width: int) -> list[Decimal]:
    """Give Pr[bucket ≤ j] to 140 digits: buckets 0+, 0−, 1+, 1−, …, each with the weight of its least |x|."""
    weights: list[Decimal] = []
    with localcontext(CONTEXT):
        while len(weights) < 2 or weights[-1] > Decimal("1e-150"):
            h = len(weights) // 2
            weights += [weight((h << width) ** 2, variance), weight(((h << width) + 1) ** 2, variance)]
        total = sum(weights)
        return [c / total for c in accumulate(weights)]


def value(bucket: int, width: int, place: int) -> int:
    size = (bucket // 2 << width) + place
    return size if bucket % 2 == 0 else -1 - size


def gaussian_cdf(sigma: float) -> Cdf:
    if sigma > 50:  # the midpoint rule is right to 1e-6 and better
        return lambda z: stats.norm.cdf((z + 0.5) / sigma)
    x = np.arange(-600, 601)
    mass = np.exp(-(x**2) / (2 * sigma**2))
    running = np.cumsum(mass) / mass.sum()
    return lambda z: running[np.clip(z, -600, 600).astype(np.int64) + 600]


@pytest.mark.parametrize(
    "variance", [Fraction(9, 100), Fraction(1), Fraction(7, 3), Fraction(100), Fraction(130**2), Fraction(300**2)]
)
def test_distribution_from_boundaries_is_the_closed_form_at_100_digits(variance: Fraction) -> None:
    """Bucket by the code's boundaries, times place, times acceptance: for every x of mass above 1e-30."""
    buckets = room._buckets(variance)
    lows, highs = buckets.row(640)
    with localcontext(CONTEXT):
        unit = Decimal(2**640)
        ends = [Decimal(0), *((Decimal(low + high) / 2 / unit) for low, high in zip(lows, highs, strict=True))]
        assert all(high - low <= 2**80 for low, high in zip(lows, highs, strict=True))
        kept: dict[int, Decimal] = {}
        for bucket in range(len(lows)):
            taken = (ends[bucket + 1] - ends[bucket]) / 2**buckets.width
            if taken < Decimal("1e-35"):
                break
            for place in range(2**buckets.width):
                exponent = room._exponent(buckets, bucket, place)
                accepted = CONTEXT.exp(-Decimal(exponent.numerator) / Decimal(exponent.denominator))
                kept[room._value(buckets, bucket, place)] = taken * accepted
        closed = {x: weight(x * x, variance) for x in kept}
        constant = kept[0] / closed[0]
        assert all(abs(mass / (constant * closed[x]) - 1) < Decimal("1e-100") for x, mass in kept.items())
        assert set(range(-(len(kept) // 3), len(kept) // 3)) <= set(kept)  # no x is left out
        if not buckets.width:  # every trial is kept: the distribution is normalised by itself
            total = sum(weight(x * x, variance) for x in range(-len(kept), len(kept) + 1))
            assert abs(constant * total - 1) < Decimal("1e-60")


@pytest.mark.parametrize(
    "variance", [Fraction(1, 10**6), Fraction(1), Fraction(100), Fraction(127**2), WIDE, Fraction(10**24)]
)
def test_boundaries_are_the_floors_of_the_closed_form(variance: Fraction) -> None:
    buckets = room._buckets(variance)
    truth = [min(int(share * 2**64), TOP) for share in shares(variance, buckets.width)]
    at = buckets.at.tolist()
    assert at == truth[: len(at)]
    assert at[-1] == TOP
    assert TOP not in at[:-1]


@pytest.mark.parametrize("variance", [Fraction(1, 10**6), Fraction(9, 100), Fraction(100), Fraction(127**2)])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_word_on_a_boundary_is_refined_along_the_true_expansion(
    variance: Fraction, depth: int, expansion: Expansion
) -> None:
    truth = [Fraction(share) for share in shares(variance, 0)]
    last_known = len(room._buckets(variance).at)
    for bucket in {0, 1, 2, 3, last_known // 2, last_known - 2, last_known - 1}:
        if not 0 <= bucket < len(truth) or truth[bucket] == 1:
            continue
        *head, last = expansion(truth[bucket], depth)
        for word in (last - 1, last + 1):
            if not 0 <= word <= TOP:
                continue
            words = [*head, word]
            exact = Fraction(sum(w << 64 * (depth - 1 - i) for i, w in enumerate(words)), 2 ** (64 * depth))
            place = bisect_right(truth, exact)
            if place + 1 < len(truth) and truth[place] < exact + Fraction(1, 2 ** (64 * depth)):
                continue  # another boundary is as near: these words do not decide either
            source = ReplaySource(words)
            (z,) = discrete_gaussian(variance=variance, count=1, source=source)
            assert z == value(place, 0, 0)
            assert source.left == 0


@settings(max_examples=100)
@given(st.integers(0, TOP), st.integers(0, TOP))
def test_the_far_tail_is_drawn_from_its_true_distribution(second: int, third: int) -> None:
    """The first word is the largest: what it leaves, 2⁻⁶⁴ of all mass, is told apart by the next words."""
    variance = Fraction(100)
    truth, half = shares(variance, 0), 1 << 63
    with localcontext(Context(prec=200)):
        u = Decimal((TOP << 192) + (second << 128) + (third << 64) + half) / Decimal(2**256)
        place = bisect_right(truth, u)
    (z,) = discrete_gaussian(variance=variance, count=1, source=ReplaySource([TOP, second, third, half]))
    assert z == value(place, 0, 0)
    assert abs(z) > 85


def trial(bucket: int, place: int, acceptance: list[int]) -> tuple[list[int], int]:
    """Give the words of a single draw whose first trial is this one, and whose others surely give 0; and its value."""
    buckets = room._buckets(WIDE)
    at = [-1, *buckets.at.tolist()]
    words = [
        (at[bucket] + at[bucket + 1]) // 2,
        *[1] * (TRIALS - 1),
        place << (64 - buckets.width),
        *[0] * (TRIALS - 1),
        acceptance[0],
        *[0] * (TRIALS - 1),
        *acceptance[1:],
    ]
    return words, value(bucket, buckets.width, place)


def chance(bucket: int, place: int, true_exp: Exp) -> Fraction:
    least = (bucket // 2 << room._buckets(WIDE).width) + bucket % 2
    return true_exp(-Fraction((least + place) ** 2 - least**2) / (2 * WIDE))


CASES = [(2, 1), (3, 1), (100, 8000), (101, 16383), (700, 5000), (1100, 16383), (1101, 16383)]


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize(("bucket", "place"), CASES)
def test_acceptance_is_refined_along_the_true_expansion(
    bucket: int, place: int, depth: int, true_exp: Exp, expansion: Expansion
) -> None:
    *head, last = expansion(chance(bucket, place, true_exp), depth)
    for word, accepted in ((last - 1, True), (last + 1, False)):
        words, z = trial(bucket, place, [*head, word])
        source = ReplaySource(words)
        assert discrete_gaussian(variance=WIDE, count=1, source=source).tolist() == [z if accepted else 0]
        assert source.left == 0


@pytest.mark.parametrize("bucket", [0, 1, 2, 500, 1001])
def test_a_wide_bucket_on_its_boundary_is_refined_along_the_true_expansion(bucket: int, expansion: Expansion) -> None:
    width = room._buckets(WIDE).width
    *head, last = expansion(Fraction(shares(WIDE, width)[bucket]), 2)
    for word, found in ((last - 1, bucket), (last + 1, bucket + 1)):
        words, _ = trial(bucket, 0, [0])  # the first place of a bucket is always accepted
        source = ReplaySource([head[0], *words[1:], word])
        assert discrete_gaussian(variance=WIDE, count=1, source=source).tolist() == [value(found, width, 0)]
        assert source.left == 0


def draws_at(distance: int, true_exp: Exp) -> list[tuple[int, int]]:
    """Draw each case with an acceptance word that far (in 2⁻⁵³) below and above the truth; give what is wrong."""
    wrong = []
    for bucket, place in CASES:
        at = int(chance(bucket, place, true_exp) * 2**64)
        for word, accepted in ((at - (distance << 11), True), (at + (distance << 11), False)):
            words, z = trial(bucket, place, [max(0, min(TOP, word))])
            if at + (distance << 11) > TOP and not accepted:
                continue
            if discrete_gaussian(variance=WIDE, count=1, source=ReplaySource(words)).tolist() != [z if accepted else 0]:
                wrong.append((bucket, place))
    return wrong


@pytest.mark.parametrize("error", [-600, 600])
def test_an_error_of_the_series_within_the_band_changes_no_outcome(
    error: float, true_exp: Exp, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = room._powers
    monkeypatch.setattr(room, "_powers", lambda exponents: real(exponents) + error)
    for distance in (2, 100, 599, 601, 1400, 2000, 2047, 2049, 2600, 10_000):
        assert draws_at(distance, true_exp) == []


@pytest.mark.parametrize("error", [-9000, 9000])
def test_an_error_beyond_the_band_would_change_outcomes(
    error: float, true_exp: Exp, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = room._powers
    monkeypatch.setattr(room, "_powers", lambda exponents: real(exponents) + error)
    assert draws_at(5000, true_exp) != []


def test_without_the_band_the_series_would_decide_wrongly(true_exp: Exp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BAND", -1.0)
    assert draws_at(1, true_exp) != []


def test_the_series_is_within_its_proven_error_and_needs_nearly_all_of_it() -> None:
    exponents = np.concatenate([np.linspace(0, 5 / 32, 2000), 2.0 ** -np.arange(3, 60)])
    worst = 0.0
    for g, power in zip(exponents, room._powers(exponents.copy()), strict=True):
        low, _ = exp_minus(Fraction(float(g)))(120)
        worst = max(worst, abs(float(Fraction(float(power)) - Fraction(low, 2**67))))
    assert 1300 < worst < 1390


@pytest.mark.parametrize("variance", [WIDE, Fraction(128**2), Fraction(10**24)])
def test_doubles_decide_as_exact_arithmetic_on_the_same_words(variance: Fraction) -> None:
    count = 300
    words = system().words(3 * count)
    bucket_words, place_words, acceptance = words.reshape(3, count).tolist()
    buckets = room._buckets(variance)
    truth = shares(variance, buckets.width)
    expected = []
    for first, second, third in zip(bucket_words, place_words, acceptance, strict=True):
        with localcontext(CONTEXT):
            bucket = bisect_right(truth, Decimal(first) / Decimal(2**64))
        place = second >> (64 - buckets.width)
        least = (bucket // 2 << buckets.width) + bucket % 2
        if below(exp_minus(Fraction((least + place) ** 2 - least**2) / (2 * variance)), third, system()):
            expected.append(value(bucket, buckets.width, place))
    assert room._trials(buckets, count, ReplaySource(words.tolist())).tolist() == expected


@pytest.mark.parametrize(
    "sigma", [Fraction(3, 10), Fraction(10), Fraction(127), Fraction(128), Fraction(10**6), Fraction(10**12)]
)
def test_a_million_draws_fit_and_a_scale_wrong_by_a_twentieth_does_not(sigma: Fraction, fit: Fit) -> None:
    """A false alarm has probability at most 1e-6 for each scale."""
    cdf, n = gaussian_cdf(float(sigma)), 10**6
    assert fit(discrete_gaussian(variance=sigma**2, count=n, source=system()), cdf, float(sigma)) > 1e-6
    for wrong in {min(sigma * Fraction(21, 20), Fraction(10**12)), sigma * Fraction(19, 20)} - {sigma}:
        assert fit(discrete_gaussian(variance=wrong**2, count=n, source=system()), cdf, float(sigma)) < 1e-6


def test_the_smallest_scale_gives_zero_and_nothing_else() -> None:
    """Any other value has probability 2·e⁻⁵⁰⁰⁰⁰⁰."""
    assert not discrete_gaussian(variance=Fraction(1, 10**6), count=10**6, source=system()).any()


@pytest.mark.parametrize("sigma", [1, 10, 1000])
def test_moments_are_those_of_the_distribution(sigma: int) -> None:
    """Mean, variance and kurtosis within 6 standard errors: a false alarm has probability below 1e-8."""
    n = 10**6
    z = discrete_gaussian(variance=Fraction(sigma**2), count=n, source=system()) / sigma
    assert abs(z.mean()) < 6 / n**0.5
    assert abs((z**2).mean() - 1) < 6 * (2 / n) ** 0.5 + 1e-6
    assert abs((z**4).mean() - 3) < 6 * (96 / n) ** 0.5 + 1e-4


def opendp_gaussian(scale: float, count: int) -> NDArray[np.int64]:
    dp.enable_features("contrib")
    space: Any = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    measurement = dp.m.make_gaussian(*space, scale)
    return np.array(measurement([0] * count), dtype=np.int64)


@pytest.mark.parametrize("sigma", [10, 1000])
def test_opendp_draws_from_the_same_distribution(sigma: int) -> None:
    """χ² of two samples of 100,000, at 1e-6; a tenth is caught."""
    n, edges = 100_000, np.unique(np.round(np.linspace(-3, 3, 21) * sigma))
    theirs = np.bincount(np.searchsorted(edges, opendp_gaussian(float(sigma), n)), minlength=len(edges) + 1)

    def p_value(variance: Fraction) -> float:
        ours = discrete_gaussian(variance=variance, count=n, source=system())
        table = np.array([theirs, np.bincount(np.searchsorted(edges, ours), minlength=len(edges) + 1)])
        return float(stats.chi2_contingency(table).pvalue)

    assert p_value(Fraction(sigma) ** 2) > 1e-6
    assert p_value((sigma * Fraction(11, 10)) ** 2) < 1e-6


def test_a_single_draw_takes_the_same_words_whatever_it_gives() -> None:
    """But where both trials of a round are rejected, whatever their values: 3 times in 50 with chance 1e-9."""
    for variance, words in ((Fraction(100), 1), (WIDE, 3 * TRIALS)):
        used = []
        for _ in range(50):
            source = ReplaySource(system().words(100).tolist())
            discrete_gaussian(variance=variance, count=1, source=source)
            used.append(100 - source.left)
        assert sorted(used)[:-2] == [words] * 48


@pytest.mark.parametrize("variance", [Fraction(1, 10**6), Fraction(1), Fraction(127**2), WIDE])
def test_a_few_words_find_the_buckets_that_many_find(variance: Fraction) -> None:
    buckets = room._buckets(variance)
    words = np.concatenate([buckets.at, buckets.at - np.uint64(1), buckets.at + np.uint64(1), system().words(1000)])
    assert {0, TOP} <= set(words.tolist())
    index, undecided = buckets.find(words)
    parts = [buckets.find(words[start : start + room._FEW]) for start in range(0, len(words), room._FEW)]
    assert np.concatenate([found for found, _ in parts]).tolist() == index.tolist()
    assert np.concatenate([doubt for _, doubt in parts]).tolist() == undecided.tolist()
    assert undecided[: len(buckets.at)].all()


@pytest.mark.parametrize(
    "bad",
    [Fraction(0), Fraction(-1), Fraction(1, 10**6 + 1), Fraction(10**24) + 1, float("nan"), float("inf"), True, "x"],
)
def test_a_variance_out_of_range_is_refused_also_after_its_like_was_drawn(bad: Any) -> None:
    discrete_gaussian(variance=Fraction(1), count=1, source=system())
    with pytest.raises(ParameterError):
        discrete_gaussian(variance=bad, count=1, source=system())


def test_no_draws_need_no_words() -> None:
    assert discrete_gaussian(variance=WIDE, count=0, source=ReplaySource([])).tolist() == []
