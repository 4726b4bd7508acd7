"""Two draws of one question, combined."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from hubbub.answers.combine import combine, refinable, refine, repeat_query
from hubbub.answers.release import Output, Release
from hubbub.errors import ParameterError

L95, G95 = math.log(20), 1.959963984540054


def receipt(sequence: int, **other: Any) -> dict[str, Any]:
    return {
        "receipt": 1,
        "query": "SELECT COUNT(*) AS n FROM t",
        "data": [{"dataset": "t", "unit": "p", "version": "1"}],
        "bounds": {"groups": 1, "rows": 1},
        "cells": [3],
        "draws": [{"kind": "sum"}],
        "ledger": [{"sequence": sequence}],
    } | other


def release(
    sequence: int, middles: list[float], half: float, *, epsilon: str = "0.1", least: float = 0.0, **other: Any
) -> Release:
    """Counts as the curator shows them: cut at zero, rounded to whole numbers."""
    values = [round(max(middle, least)) for middle in middles]
    low, high = [max(m - half, least) for m in middles], [max(m + half, least) for m in middles]
    keys = Output("k", "text", [str(place) for place in range(len(middles))])
    counts = Output("n", "integer", values, low, high)
    paper = receipt(sequence, **other)
    return Release((keys, counts), [0.6] * len(middles), Fraction(epsilon), Fraction(0), paper, Fraction(1))


def laplace_tail(r: float) -> float:
    """Pr[|X + rY| > ln 20·√(1 + r²)] for standard Laplace X and Y."""
    t = L95 * math.sqrt(1 + r * r)
    return (math.exp(-t) - r * r * math.exp(-t / r)) / (1 - r * r)


def mixed_tail(r: float) -> float:
    """Pr[|X + rZ| > √((ln 20)² + (1.96r)²)] for standard Laplace X and normal Z."""
    t = math.hypot(L95, G95 * r)
    z = t / r
    right, left = (0.5 * math.exp(r * r / 2 - sign * t + log_ndtr(sign * z - r)) for sign in (1, -1))
    return 2 * float(ndtr(-z) + right - left)


def test_two_laplace_draws_combine_to_at_least_95_percent() -> None:
    """The closed form of the tail along every ratio of scales, for two Laplace draws and for one of each."""
    assert max(laplace_tail(r) for r in np.geomspace(1e-3, 1 - 1e-6, 20_000).tolist()) < 0.05
    assert max(mixed_tail(r) for r in np.geomspace(1e-3, 1e3, 20_000).tolist()) < 0.05 + 1e-12
    assert laplace_tail(1 - 1e-6) == pytest.approx(0.0451, abs=1e-4)


def test_the_closed_form_of_the_mixed_tail_is_that_of_an_integral() -> None:
    x = np.linspace(-60, 60, 400_001)
    for r in (0.3, 1.0, 4.0):
        t = math.hypot(L95, G95 * r)
        density = 0.5 * np.exp(-np.abs(x))
        beyond = np.trapezoid(density * (ndtr((x - t) / r) + ndtr((-x - t) / r)), x)
        assert mixed_tail(r) == pytest.approx(float(beyond), abs=1e-6)


@given(st.floats(0.1, 1000), st.floats(0.1, 1000), st.floats(0, 1))
def test_the_weights_are_the_best_unbiased_ones(h: float, k: float, other: float) -> None:
    """What is shown has the variance 1/(1/a + 1/b), and another weight has no less."""
    a, b = release(1, [10_000.0], h), release(2, [11_000.0], k)
    output = combine(a, b).outputs[1]
    assert output.low is not None
    assert output.high is not None
    low, high = output.low[0], output.high[0]
    assert low is not None
    assert high is not None
    half = (high - low) / 2
    assert half == pytest.approx(1 / math.sqrt(1 / h**2 + 1 / k**2))
    assert half**2 <= (other**2 * h**2 + (1 - other) ** 2 * k**2) * (1 + 1e-9)
    weight = k**2 / (h**2 + k**2)
    assert (low + high) / 2 == pytest.approx(weight * 10_000 + (1 - weight) * 11_000)


@pytest.mark.parametrize("truth", [0, 3, 40])
def test_coverage_of_combined_counts_by_enumeration(truth: int) -> None:
    """Every pair of geometric noises, with its exact weight: at least 95% of the intervals hold the truth.

    A second cell, far from zero, shows the width of those that are cut at zero, as in a real answer.
    """
    covered = total = 0.0
    scales = (8.0, 4.0)
    halves = [math.ceil(L95 * scale) for scale in scales]
    reach = [range(-12 * int(scale), 12 * int(scale) + 1) for scale in scales]
    for one in reach[0]:
        for other in reach[1]:
            weight = math.exp(-abs(one) / scales[0] - abs(other) / scales[1])
            a = release(1, [truth + one, 1e6], halves[0])
            b = release(2, [truth + other, 1e6], halves[1])
            low, high = combine(a, b).intervals[0][1]
            assert low is not None
            assert high is not None
            covered += weight * (low <= truth <= high)
            total += weight
    assert covered / total >= 0.95


def test_cut_cells_are_combined_as_if_they_had_not_been() -> None:
    """-20 ± 50 and 30 ± 50 are shown as 0 (0 to 30) and 30 (0 to 80); together they are 5 ± 35, not 15."""
    a, b = release(1, [-20, 500], 50), release(2, [30, 500], 50, epsilon="0.2")
    assert a.rows[0] == ("0", 0)
    found = combine(a, b)
    assert found.rows == [("0", 5), ("1", 500)]
    low, high = found.intervals[0][1]
    assert low == 0
    assert high == pytest.approx(5 + 50 / math.sqrt(2))
    assert found.epsilon == Fraction("0.3")
    assert found.ratio[0] == pytest.approx(0.6 / math.sqrt(2))


def test_where_the_middle_cannot_be_told_the_dearer_answer_stays() -> None:
    a, b = release(1, [-20], 50), release(2, [30], 40, epsilon="0.2")
    for found in (combine(a, b), combine(b, a)):
        assert found.rows == [("0", 30)]
        assert found.intervals[0][1] == (0, 70)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"query": "SELECT SUM(x) AS n FROM t"}, "different queries"),
        ({"bounds": {"groups": 2, "rows": 1}}, "different queries"),
        ({"data": [{"dataset": "t", "unit": "p", "version": "2"}]}, "changed in between"),
        ({"ledger": [{"sequence": 1}]}, "the same answer"),
        ({"draws": [{"kind": "sum"}, {"kind": "selection"}]}, "selected its keys"),
        ({"cells": [None]}, "selected its keys"),
        ({"draws": []}, "selected its keys"),
    ],
)
def test_what_does_not_belong_together_is_refused(change: dict[str, Any], why: str) -> None:
    a, b = release(1, [100], 5), release(2, [101], 5, **change)
    with pytest.raises(ParameterError, match=why):
        combine(a, b)


def test_other_rows_or_columns_are_refused() -> None:
    with pytest.raises(ParameterError, match="rows differ"):
        combine(release(1, [100], 5), release(2, [100, 100], 5))
    a = release(1, [100], 5)
    renamed = Release((a.outputs[0], Output("m", "integer", [1], [0.0], [2.0])), [0.1], a.epsilon, a.delta, receipt(2))
    with pytest.raises(ParameterError, match="columns differ"):
        combine(a, renamed)


def test_a_combined_answer_names_both_charges_and_is_not_combined_again() -> None:
    found = combine(release(1, [100], 5), release(2, [101], 5))
    assert [each["sequence"] for each in found.receipt["ledger"]] == [1, 2]
    assert found.receipt["charge"] == {"epsilon": "1/5", "delta": "0"}
    assert not refinable(found.receipt)
    with pytest.raises(ParameterError, match="is itself a combination"):
        combine(found, release(3, [100], 5))


@pytest.mark.parametrize(
    ("query", "sql", "options"),
    [
        ("SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM t", {}),
        ("SELECT COUNT(*) FROM t -- groups = 2", "SELECT COUNT(*) FROM t", {"groups": 2}),
        ("SELECT COUNT(*) FROM t -- groups = 2, rows = 31", "SELECT COUNT(*) FROM t", {"groups": 2, "rows": 31}),
        ("SELECT COUNT(*) FROM t -- rows = 1, raw", "SELECT COUNT(*) FROM t", {"rows": 1, "raw": True}),
        ("SELECT COUNT(*) FROM t -- raw", "SELECT COUNT(*) FROM t", {"raw": True}),
        ("SELECT COUNT(*) FROM t WHERE a = ' -- rows = 1'", "SELECT COUNT(*) FROM t WHERE a = ' -- rows = 1'", {}),
    ],
)
def test_a_receipt_says_how_to_ask_once_more(query: str, sql: str, options: dict[str, Any]) -> None:
    assert repeat_query(receipt(1, query=query), epsilon="0.2") == (sql, {"epsilon": "0.2", **options})


@pytest.mark.parametrize("said", ["$1 = 7", "weight of n = 2", "groups = 1, rows = 2, weight of n = 2", "$1 = 7, raw"])
def test_what_a_receipt_does_not_hold_is_not_guessed(said: str) -> None:
    with pytest.raises(ParameterError, match="HB145"):
        repeat_query(receipt(1, query=f"SELECT COUNT(*) AS n FROM t -- {said}"), epsilon=1)
    with pytest.raises(ParameterError, match="Nothing was charged"):
        repeat_query(receipt(1, draws=[{"kind": "top"}]), epsilon=1)


def test_after_a_change_of_the_data_the_second_draw_stands_alone() -> None:
    first, second = release(1, [100], 5), release(2, [101], 5, data=[{"dataset": "t", "unit": "p", "version": "2"}])
    assert refine(first, second) is second
    assert refine(first, release(3, [101], 5)).epsilon == Fraction("0.2")
