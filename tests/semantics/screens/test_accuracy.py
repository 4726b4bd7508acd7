"""Errors of sampled pairs and of few queries, against formulas and enumeration of this file."""

import math
from fractions import Fraction
from itertools import combinations

import pytest

from hubbub.semantics.screens.accuracy import SCREENS, sampling_deviation
from hubbub.semantics.screens.figures import Curves

PAIRS, QUERIES = SCREENS


@pytest.mark.row(96)
@pytest.mark.parametrize(("n", "size", "ones"), [(6, 2, 3), (7, 3, 2), (8, 8, 4), (5, 1, 2)])
def test_the_error_of_sampled_pairs_is_that_of_all_samples(n: int, size: int, ones: int) -> None:
    """By enumeration of all samples; it is at most n/(2√m)."""
    bits = [1] * ones + [0] * (n - ones)
    errors = [Fraction(n * sum(bits[i] for i in chosen), size) - ones for chosen in combinations(range(n), size)]
    exact = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert sampling_deviation(n, size, ones) == pytest.approx(exact)
    assert exact <= n / (2 * math.sqrt(size)) + 1e-12


@pytest.mark.row(96)
def test_m_pairs_give_an_error_of_the_order_of_n_over_the_root_of_m() -> None:
    reading = PAIRS.read({})
    rows = {row[0]: row[1:] for row in reading.rows}
    assert rows["100"] == ("497.5", "1,000", "0.01", "∞")  # 10⁴·√(¼/100·9900/9999)
    assert rows["1"][0] == "5,000"
    assert float(rows["one private answer"][0]) == pytest.approx(math.sqrt(2 * math.e) / (math.e - 1), rel=1e-3)
    simulated = float(reading.sentences[0].partition("deviation; ")[2].split()[0])
    assert simulated == pytest.approx(497.5, rel=0.1)  # with a fixed seed


@pytest.mark.row(109)
def test_a_sublinear_number_of_queries_has_noise_below_the_root_of_n() -> None:
    """σ = 4.2247 at (1, 1e-6); noise below √n for n/σ² queries, and for ε√n/√2 without δ."""
    reading = QUERIES.read({})
    rows = {row[0]: row[1:] for row in reading.rows}
    assert float(rows["1"][0]) == pytest.approx(4.2247, abs=5e-4)
    assert rows["1,000"] == ("133.6", "1,414", "0.134")
    assert "56,028 queries with Gaussian noise and 707 with Laplace noise" in reading.sentences[1]
    assert pytest.approx(56_028, rel=1e-3) == 1e6 / 4.22475**2
    for n in ("1000", "1000000", "100000000"):
        # √n queries: noise grows with the fourth root of n, so its share of √n tends to 0
        queries = str(math.isqrt(int(n)))
        row = next(row for row in QUERIES.read({"n": n, "queries": queries}).rows if row[0] == f"{int(queries):,}")
        assert float(row[3]) == pytest.approx(4.22475 / int(n) ** 0.25, rel=0.02)


def test_curves_cross_the_root_of_n_where_the_text_says() -> None:
    figure = QUERIES.read({}).figure
    assert isinstance(figure, Curves)
    curve = dict(figure.series)["Gaussian noise"]
    assert max(x for x, y in curve if y <= 1) == pytest.approx(math.log10(56_028), abs=0.2)


def test_samples_of_the_noise_have_the_stated_deviation() -> None:
    """4,000 samples of the mechanism itself: a relative error of 10% has a probability below 1e-15."""
    sampled = float(
        QUERIES.read({"queries": "100"}).sentences[0].partition("standard deviation of ")[2].split("(")[1].split()[0]
    )
    assert sampled == pytest.approx(42.25, rel=0.1)
