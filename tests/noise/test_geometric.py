"""Geometric and discrete Laplace noise has exactly the distribution it states."""

from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from hubbub.core import numbers
from hubbub.errors import ParameterError
from hubbub.noise import geometric as room
from hubbub.noise.geometric import discrete_laplace, geometric
from hubbub.noise.source import ReplaySource, system

Exp = Callable[[Fraction], Fraction]
Expansion = Callable[[Fraction, int], list[int]]
Fit = Callable[[NDArray[np.int64], Callable[[NDArray[np.float64]], NDArray[np.float64]], float], float]

TOP = 2**64 - 1
BITS = 640
SCALES = [
    Fraction(1, 1000),
    Fraction(3, 10),
    Fraction(1),
    Fraction(7, 3),
    Fraction(10),
    Fraction(10**6),
    Fraction(10**12),
]


def laplace_cdf(scale: float) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    q = np.exp(-1 / scale)
    return lambda z: np.where(z >= 0, 1 - q ** (np.maximum(z, 0) + 1) / (1 + q), q ** np.maximum(-z, 0) / (1 + q))


@pytest.fixture
def _decimals() -> Iterator[None]:
    with localcontext(Context(prec=140)):
        yield


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def probability(scale: Fraction, row: int) -> Decimal:
    """Give the probability with which the code decides a row of its digits, to 600 bits."""
    low, high = room._digits(scale).reals[row](BITS)
    assert high - low <= 4
    return Decimal(low + high) / Decimal(2 ** (BITS + 1))


@pytest.mark.usefixtures("_decimals")
@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(100)])
def test_distribution_from_thresholds_is_the_closed_form_at_100_digits(scale: Fraction, true_exp: Exp) -> None:
    """Every outcome that one word a digit can decide, and the mass of all others."""
    digits = room._digits(scale)
    q = decimal(true_exp(-1 / scale))
    ones = [probability(scale, row) for row in range(digits.low)]
    high, negative = probability(scale, digits.low), probability(scale, digits.low + 1)
    tolerance = Decimal("1e-100")
    for k in range(1 << digits.low):
        mass = 1 - high
        for i, p in enumerate(ones):
            mass *= p if k >> i & 1 else 1 - p
        assert abs(mass / ((1 - q) * q**k) - 1) < tolerance
        assert abs(mass * (1 - negative) / ((1 - q) / (1 + q) * q**k) - 1) < tolerance
        assert abs(mass * negative / ((1 - q) / (1 + q) * q ** (k + 1)) - 1) < tolerance
    assert abs(high / q ** (1 << digits.low) - 1) < tolerance


@pytest.mark.parametrize("scale", SCALES)
def test_thresholds_are_the_floors_of_the_closed_form(scale: Fraction, true_exp: Exp) -> None:
    digits = room._digits(scale)
    truth = [int(2**64 / (1 + true_exp((1 << i) / scale))) for i in range(digits.low)]
    truth += [int(2**64 * true_exp(-(1 << digits.low) / scale)), int(2**64 / (1 + true_exp(1 / scale)))]
    assert digits.at[:, 0].tolist() == truth
    assert truth[digits.low] == 0  # so that only the word 0 leaves open whether there are higher digits
    assert digits.low == 0 or int(2**64 * true_exp(-(1 << (digits.low - 1)) / scale)) > 0
    assert digits.weights.tolist() == [2.0**i for i in range(digits.low)]
    assert sum(digits.weights) < 2**53


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_digit_is_refined_along_its_true_expansion(
    scale: Fraction, depth: int, true_exp: Exp, expansion: Expansion
) -> None:
    digits = room._digits(scale)
    truths = [1 / (1 + true_exp((1 << i) / scale)) for i in range(digits.low)]
    truths += [true_exp(-(1 << digits.low) / scale), 1 / (1 + true_exp(1 / scale))]
    for row, p in enumerate(truths):
        *head, last = expansion(p, depth)
        for word, one in ((last - 1, True), (last + 1, False)):
            if not 0 <= word <= TOP:
                continue
            decided = [*head, word]
            words = [TOP] * len(truths)
            words[row] = decided[0]
            more = decided[1:]
            if row == digits.low and one:
                more.append(TOP)  # "are there even higher digits?" no
            source = ReplaySource([*words, *more])
            (z,) = discrete_laplace(scale=scale, count=1, source=source)
            value = 1 << row if one and row <= digits.low else 0
            assert z == (-1 - value if row == digits.low + 1 and one else value)
            assert source.left == 0


def test_the_tail_goes_on_as_long_as_the_words_say_so() -> None:
    scale = Fraction(10)
    low = room._digits(scale).low
    surely_more = [0, 0]  # the probability is below 2^-64 and above 2^-128
    for times in (1, 2, 3):
        rest = surely_more * times
        source = ReplaySource([*[0] * low, rest[0], 0, *rest[1:], TOP])
        (z,) = discrete_laplace(scale=scale, count=1, source=source)
        assert z == -1 - ((1 << low) * times + (1 << low) - 1)
        assert source.left == 0


@settings(max_examples=50)
@given(st.fractions(Fraction(1, 1000), 10**12), st.data())
def test_a_draw_is_the_digits_that_its_words_say(scale: Fraction, data: st.DataObject) -> None:
    digits = room._digits(scale)
    rows = digits.low + 2
    words = data.draw(st.lists(st.integers(1, TOP), min_size=rows, max_size=rows))
    at = digits.at[:, 0].tolist()
    if any(word == t for word, t in zip(words, at, strict=True)):
        return
    value = sum((words[i] < at[i]) << i for i in range(digits.low))
    (z,) = discrete_laplace(scale=scale, count=1, source=ReplaySource(words))
    (g,) = geometric(scale=scale, count=1, source=ReplaySource(words[:-1]))
    assert g == value
    assert z == (-1 - value if words[-1] < at[-1] else value)


def test_a_vector_is_drawn_as_its_parts_are() -> None:
    """Chunks and columns are put together in order, also where one column of many is undecided."""
    scale = Fraction(10)
    rows = room._digits(scale).low + 2
    width = room._CHUNK // rows
    words = system().words(rows * (width + 5)).copy()
    at = int(room._digits(scale).at[2, 0])
    words[2 * width + 17] = at  # digit 2 of draw 17 does not decide; the source's next word is taken on the spot
    replayed = words.tolist()
    drawn = discrete_laplace(
        scale=scale, count=width + 5, source=ReplaySource([*replayed[: rows * width], 0, *replayed[rows * width :]])
    )
    first = np.array(replayed[: rows * width], dtype=np.uint64).reshape(rows, width)
    second = np.array(replayed[rows * width :], dtype=np.uint64).reshape(rows, 5)
    columns = [*first.T.tolist(), *second.T.tolist()]
    singly = [
        int(discrete_laplace(scale=scale, count=1, source=ReplaySource([*column, *([0] if i == 17 else [])]))[0])
        for i, column in enumerate(columns)
    ]
    assert drawn.tolist() == singly


@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(10), Fraction(10**6), Fraction(10**12)])
def test_a_million_draws_fit_and_a_scale_wrong_by_a_twentieth_does_not(scale: Fraction, fit: Fit) -> None:
    """A false alarm has probability at most 1e-6 for each scale; both wrong scales are caught with certainty nearly."""
    cdf, n = laplace_cdf(float(scale)), 10**6
    assert fit(discrete_laplace(scale=scale, count=n, source=system()), cdf, float(scale)) > 1e-6
    for wrong in {min(scale * Fraction(21, 20), numbers.SCALE_MAX), scale * Fraction(19, 20)} - {scale}:
        assert fit(discrete_laplace(scale=wrong, count=n, source=system()), cdf, float(scale)) < 1e-6


def test_a_wrong_last_digit_is_caught(fit: Fit) -> None:
    scale = 1e6
    z = discrete_laplace(scale=Fraction(10**6), count=10**6, source=system())
    z[::50] &= ~1
    assert fit(z, laplace_cdf(scale), scale) < 1e-6


def test_the_smallest_scale_gives_zero_and_nothing_else() -> None:
    """Any other value has probability 2·e⁻¹⁰⁰⁰."""
    assert not discrete_laplace(scale=Fraction(1, 1000), count=10**6, source=system()).any()
    assert not geometric(scale=Fraction(1, 1000), count=10**6, source=system()).any()


@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(10), Fraction(10**6)])
def test_one_sided_draws_fit(scale: Fraction, fit: Fit) -> None:
    """False alarm at most 1e-6 for each scale; a twentieth more is caught."""
    q, n = np.exp(-1 / float(scale)), 10**6

    def cdf(z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(z >= 0, 1 - q ** (np.maximum(z, -1) + 1), 0.0)

    assert fit(geometric(scale=scale, count=n, source=system()), cdf, float(scale)) > 1e-6
    assert fit(geometric(scale=scale * Fraction(21, 20), count=n, source=system()), cdf, float(scale)) < 1e-6


def opendp_laplace(scale: float, count: int) -> NDArray[np.int64]:
    dp.enable_features("contrib")
    space: Any = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale)
    return np.array(measurement([0] * count), dtype=np.int64)


def test_opendp_draws_from_the_same_distribution() -> None:
    """χ² of two samples of 100,000 at scale 10, at 1e-6; a tenth is caught."""
    n, edges = 100_000, np.arange(-40, 41, 2)
    theirs = np.bincount(np.searchsorted(edges, opendp_laplace(10.0, n)), minlength=len(edges) + 1)

    def p_value(scale: Fraction) -> float:
        ours = discrete_laplace(scale=scale, count=n, source=system())
        table = np.array([theirs, np.bincount(np.searchsorted(edges, ours), minlength=len(edges) + 1)])
        return float(stats.chi2_contingency(table).pvalue)

    assert p_value(Fraction(10)) > 1e-6
    assert p_value(Fraction(11)) < 1e-6


@pytest.mark.row(24)
@pytest.mark.usefixtures("_decimals")
def test_spread_and_tail_are_those_of_the_laplace_distribution(true_exp: Exp) -> None:
    """The discrete distribution's variance is 2q/(1 − q)², 1.841 at scale 1; at large scales, 2b² and e^(−t).

    The variance of the printed distribution is 2b², so the standard deviation is √2·b, not b. KS at 1 M draws and 1e-6.
    """
    q = decimal(true_exp(Fraction(-1)))
    variance = 2 * q / (1 - q) ** 2
    assert round(variance, 3) == Decimal("1.841")
    distribution = [(k, (1 - q) / (1 + q) * q ** abs(k)) for k in range(-400, 401)]
    assert abs(sum(k * k * p for k, p in distribution) - variance) < Decimal("1e-100")

    n, b = 10**6, 10**6
    for scale, sd in ((1, float(variance) ** 0.5), (b, 2**0.5 * b)):
        spread = discrete_laplace(scale=Fraction(scale), count=n, source=system()).std()
        # the fourth moment is 6 times the squared variance (6.5 at scale 1): 0.007 is 6 standard errors
        assert abs(spread / sd - 1) < 0.007
        assert spread / scale > 1.3  # so not the b that is printed
    z = discrete_laplace(scale=Fraction(b), count=n, source=system())
    assert stats.kstest(z / b, "laplace").pvalue > 1e-6
    assert stats.kstest(z / b * 1.05, "laplace").pvalue < 1e-6
    for t in (0.5, 1, 3, 6):
        assert stats.binomtest(int((abs(z) >= b * t).sum()), n, float(np.exp(-t))).pvalue > 1e-7


@pytest.mark.parametrize(
    "bad", [Fraction(0), Fraction(-1), Fraction(1, 1001), Fraction(10**12) + 1, float("nan"), True]
)
def test_a_scale_out_of_range_is_refused_also_after_its_like_was_drawn(bad: Any) -> None:
    discrete_laplace(scale=Fraction(1), count=1, source=system())
    for draw in (discrete_laplace, geometric):
        with pytest.raises(ParameterError):
            draw(scale=bad, count=1, source=system())


def test_no_draws_need_no_words() -> None:
    assert discrete_laplace(scale=Fraction(10), count=0, source=ReplaySource([])).tolist() == []
