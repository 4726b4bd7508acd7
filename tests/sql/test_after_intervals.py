"""Intervals of what is computed from noisy results: against formulas by hand, and open or absent where none holds."""

from dataclasses import replace
from fractions import Fraction
from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.curator.after import answer_after
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.bind import bind
from hubbub.sql.noise import half_width_in_sums
from hubbub.sql.presentation import Answer

VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("region", Kind.TEXT, values=("a", "b", "c", "d")),
        Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(110))),
    ),
    PrivacyUnit("patient"),
)
VALUES, HALF = np.array([400.0, 300.0, 200.0, 100.0]), 10.0


def answered(sql: str, values: Any = VALUES, half: float = HALF) -> tuple[Answer, dict[str, Any]]:
    """Answer a query over counts by region with these values, which the answer shows clamped at 0."""
    query = bind(sql, tables={"visits": VISITS})
    assert query.after is not None
    size = len(values)
    columns, low, high = [], [], []
    noise: list[Any] = []
    for label, kind in query.after.released[0].columns:
        if kind is Kind.TEXT:
            columns.append(np.array(["a", "b", "c", "d"][:size], dtype=object))
            low.append(np.full(size, np.nan))
            high.append(np.full(size, np.nan))
            noise.append(None)
        else:
            assert label
            columns.append(np.maximum(values, 0))
            low.append(np.maximum(values - half, 0))
            high.append(np.maximum(values + half, 0))
            noise.append((np.asarray(values, dtype=np.float64), np.full(size, half)))
    names = tuple(label for label, _ in query.after.released[0].columns)
    inner = Answer(names, tuple(columns), tuple(low), tuple(high), np.full(size, np.nan), noise=tuple(noise))
    return answer_after(query.after, [inner], most=1000)


def halves(answer: Answer, name: str) -> list[float]:
    place = answer.columns.index(name)
    return [float(half) for half in (answer.high[place] - answer.low[place]) / 2]


N = "COUNT(*)"
TOTAL = float(VALUES.sum())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{N}", [HALF] * 4),
        (f"2 * {N} - 5", [2 * HALF] * 4),
        (f"SUM({N}) OVER ()", [HALF * sqrt(4)] * 4),
        (f"SUM({N}) OVER (ORDER BY region)", [HALF * sqrt(k) for k in (1, 2, 3, 4)]),
        (f"AVG({N}) OVER ()", [HALF / sqrt(4)] * 4),
        (f"{N} - AVG({N}) OVER ()", [HALF * sqrt(9 / 16 + 3 / 16)] * 4),
        (f"{N} - LAG({N}) OVER (ORDER BY region)", [np.nan, *[HALF * sqrt(2)] * 3]),
        (
            f"{N} * 1.0 / SUM({N}) OVER ()",
            [HALF / TOTAL * sqrt(1 - 2 * p + 4 * p * p) for p in (VALUES / TOTAL).tolist()],
        ),
    ],
)
def test_intervals_are_those_of_the_formula(expression: str, expected: list[float]) -> None:
    answer, model = answered(
        f"SELECT region, {expression} AS x, RANK() OVER (ORDER BY {N}) AS r FROM visits GROUP BY 1"
    )
    found = halves(answer, "x")
    assert found == pytest.approx(expected, rel=2e-3, nan_ok=True)
    assert np.isnan(halves(answer, "r")).all()
    assert model["without"] == ["r"]


@pytest.mark.parametrize(
    ("select", "expected"),
    [("SUM(n)", HALF * sqrt(4)), ("AVG(n)", HALF / sqrt(4)), ("SUM(n) / 2 + 7", HALF), ("AVG(n) - SUM(n)", 1.5 * HALF)],
)
def test_aggregates_of_results_have_intervals(select: str, expected: float) -> None:
    inner = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    answer, _ = answered(f"SELECT {select} AS x FROM ({inner}) AS t")
    assert halves(answer, "x") == pytest.approx([expected])
    answer, _ = answered(f"SELECT region < 'c' AS early, {select} AS x FROM ({inner}) AS t GROUP BY 1 ORDER BY 1")
    pairs = {"SUM(n)": sqrt(2), "AVG(n)": 1 / sqrt(2), "SUM(n) / 2 + 7": 1 / sqrt(2), "AVG(n) - SUM(n)": 1 / sqrt(2)}
    assert halves(answer, "x") == pytest.approx([HALF * pairs[select]] * 2)


@pytest.mark.parametrize(
    "expression",
    [
        "RANK() OVER (ORDER BY COUNT(*))",
        "MAX(COUNT(*)) OVER ()",
        "CASE WHEN COUNT(*) > 150 THEN 1 ELSE 0 END",
        "ROUND(COUNT(*) / 3, 0)",
        "SUM(COUNT(*)) OVER (ORDER BY COUNT(*))",
        "COUNT(*) FILTER (WHERE age > 3) / AVG(age)",
        "AVG(age) - AVG(AVG(age)) OVER ()",
    ],
)
def test_what_noise_decides_by_steps_has_no_interval(expression: str) -> None:
    answer, model = answered(
        f"SELECT region, {expression} AS x FROM visits GROUP BY region QUALIFY COUNT(*) OVER () > 0"
    )
    assert np.isnan(halves(answer, "x")).all()
    assert model["without"] == ["x"]


def test_sums_over_rows_that_noise_chooses_have_no_interval() -> None:
    answer, _ = answered(
        "SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY 1 HAVING COUNT(*) > 150"
    )
    assert answer.values[0].tolist() == ["a", "b", "c"]
    assert halves(answer, "n") == [HALF] * 3
    assert np.isnan(halves(answer, "s")).all()
    inner = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    answer, _ = answered(f"SELECT SUM(n) AS x, COUNT(*) AS c FROM ({inner}) AS t WHERE n > 150")
    assert np.isnan([*halves(answer, "x"), *halves(answer, "c")]).all()


@pytest.mark.parametrize("rest", [" HAVING COUNT(*) > 150", " ORDER BY n DESC LIMIT 2", " LIMIT 3"])
def test_sums_over_groups_that_noise_chose_before_have_no_interval(rest: str) -> None:
    inner = f"SELECT region, COUNT(*) AS n FROM visits GROUP BY region{rest}"
    answer, model = answered(f"SELECT SUM(n) AS x, COUNT(*) AS c FROM ({inner}) AS t")
    assert np.isnan([*halves(answer, "x"), *halves(answer, "c")]).all()
    assert model["without"] == ["x", "c"]


def test_numbers_of_selected_groups_are_not_called_exact() -> None:
    table = replace(VISITS, columns=(*VISITS.columns, Column("kind", Kind.TEXT)))
    inner = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
    query = bind(f"SELECT COUNT(*) AS c FROM ({inner}) AS t", tables={"visits": table})
    assert query.after is not None
    assert query.after.replicas is not None
    assert query.after.replicas.exact == ()


def test_renamed_columns_never_have_the_interval_of_another() -> None:
    inner = "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY region"
    for select in ("n, SUM(n) OVER () AS x", "SUM(n) AS n"):
        answer, _ = answered(f"SELECT {select} FROM ({inner}) AS t(region, s, n)")
        assert np.isnan(halves(answer, "n")).all()


def test_a_frame_that_noise_moves_has_no_interval() -> None:
    frame = "ORDER BY region ROWS BETWEEN CAST(n / 300 AS INTEGER) PRECEDING AND CURRENT ROW"
    inner = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    answer, model = answered(f"SELECT region, SUM(n) OVER ({frame}) AS x FROM ({inner}) AS t")
    assert np.isnan(halves(answer, "x")).all()
    assert model["without"] == ["x"]
    assert halves(answered(f"SELECT SUM(n) OVER ({frame.replace('n / 300', '1')}) AS x FROM ({inner}) AS t")[0], "x")


def test_a_divisor_within_its_noise_opens_the_interval() -> None:
    sql = "SELECT region, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY region"
    answer, _ = answered(sql, np.array([12.0, 9.0, 8.0, 9.0]), 20.0)
    assert answer.low[1].tolist() == [-np.inf] * 4
    assert answer.high[1].tolist() == [np.inf] * 4


def test_a_product_of_two_differences_near_zero_has_an_open_interval() -> None:
    difference = "(COUNT(*) - AVG(COUNT(*)) OVER ())"
    sql = f"SELECT region, {difference} * {difference} AS x, COUNT(*) * COUNT(*) AS y FROM visits GROUP BY region"
    answer, _ = answered(sql, np.array([400.0, 250.0, 252.0, 98.0]))
    assert np.isinf(answer.low[1]).tolist() == [False, True, True, False]
    assert np.isfinite(answer.low[2]).all()
    assert halves(answer, "y") == pytest.approx((2 * HALF * np.array([400.0, 250.0, 252.0, 98.0])).tolist())


def test_numbers_of_rows_that_noise_chooses_are_not_called_exact() -> None:
    sql = "SELECT region, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY region) AS r FROM visits GROUP BY 1"
    assert answered(sql)[1]["without"] == []
    assert answered(f"{sql} HAVING COUNT(*) > 150")[1]["without"] == ["r"]


def test_the_interval_of_a_sum_allows_for_clamped_counts() -> None:
    sql = "SELECT SUM(n) AS x FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) AS t"
    values = np.array([-30.0, -10.0, 5.0, 0.0])
    answer, _ = answered(sql, values)
    assert answer.values[0].tolist() == [5.0]
    assert answer.low[0].tolist() == pytest.approx([values.sum() - 2 * HALF])
    assert answer.high[0].tolist() == pytest.approx([5 + 2 * HALF])


def test_sums_of_laplace_noises_are_within_the_root_of_their_squared_margins() -> None:
    """Exact convolution of discrete Laplace noises, with equal and with falling weights; no sampling."""
    scale = 30
    points = np.arange(-1500, 1501)
    pmf = np.exp(-np.abs(points) / scale)
    pmf /= pmf.sum()
    margin = scale * log(20)
    for weights in ([1], [1, 1], [1] * 3, [1] * 8, [1] * 30, [3, 1], [5, 1, 1, 1], [4, 3, 2, 1], [8, 1] + [1] * 8):
        total = np.ones(1)
        for weight in weights:
            spread = np.zeros((len(points) - 1) * weight + 1)
            spread[::weight] = pmf
            total = np.convolve(total, spread)
        reach = margin * sqrt(sum(weight * weight for weight in weights))
        centered = np.abs(np.arange(len(total)) - len(total) // 2)
        assert total[centered <= np.ceil(reach)].sum() >= 0.95 - 1e-9
        assert total[centered <= reach * 1.7 / 2.118].sum() < 0.95  # a margin of 1.7 deviations would not do


@pytest.mark.parametrize("epsilon", ["0.7", "1.2", "1.8", "2.12", "3.7", "4.29", "5", "9", "17"])
def test_sums_of_small_discrete_noises_are_within_the_root_of_their_squared_margins(epsilon: str) -> None:
    """Where one noise is nearly always 0, a hundred of them are not; by exact convolution."""
    mechanism = Laplace(sensitivity=1, scale=1 / Fraction(epsilon))
    margin = half_width_in_sums(mechanism, Fraction(95, 100))
    points = np.arange(-60, 61)
    pmf = np.exp(-np.abs(points) * float(epsilon))
    pmf /= pmf.sum()
    total = np.ones(1)
    for count in range(1, 101):
        total = np.convolve(total, pmf)
        centered = np.abs(np.arange(len(total)) - len(total) // 2)
        assert total[centered <= margin * sqrt(count)].sum() >= 0.95
    assert half_width_in_sums(Laplace(sensitivity=1, scale=Fraction(1, 20)), Fraction(95, 100)) == 0
