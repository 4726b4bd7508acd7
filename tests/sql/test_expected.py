"""The expected error of an expression over aggregates is that of the expression, whatever its shape."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.visits_table import bounds

from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.noise.source import system
from hubbub.sql import expected
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats
from hubbub.sql.bind import bind
from hubbub.sql.epsilon_search import solve
from hubbub.sql.plan import Plan, plan

TABLE = Table(
    "t",
    (
        Column("x", Kind.INTEGER, bounds=bounds(0, 10)),
        Column("y", Kind.INTEGER, bounds=bounds(0, 100)),
        Column("k", Kind.INTEGER, values=(1, 2, 4)),
    ),
    PrivacyUnit(None),
)


def planned(select: str, *, epsilon: Fraction = Fraction(1, 2), by: str = "") -> Plan:
    return plan(bind(f"SELECT {select} FROM t {by}", tables={"t": TABLE}), epsilon=epsilon, delta=Fraction(0), salt="s")


#: Each shape with its function of (number of rows, sum of x, sum of y), and a tolerance. The typical group has 1,000
#: rows; its SUM(x) alone is 5,000, and beside COUNT(x) it is counted from the middle, where it is 7,500.
SHAPES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "SUM(x) / 1000": lambda _, s: s / 1000,
    "SUM(x) / 1000 + 7": lambda _, s: s / 1000 + 7,
    "3 - 2 * COUNT(*)": lambda n, _: 3 - 2 * n,
    "COUNT(*) * COUNT(*)": lambda n, _: n * n,
    "100.0 * SUM(x) / COUNT(*)": lambda n, s: 100 * s / n,
    "SUM(x) * COUNT(*)": lambda n, s: s * n,
    "SUM(x) - 5 * COUNT(*)": lambda n, s: s - 5 * n,
    "SQRT(COUNT(*))": lambda n, _: np.sqrt(np.maximum(n, 0)),
    "CASE WHEN COUNT(*) > 10 THEN SUM(x) / COUNT(*) ELSE 0 END": lambda n, s: np.where(n > 10, s / n, 0),
    "ROUND(SUM(x) / 7)": lambda _, s: np.round(s / 7),
    "CAST(SUM(x) / 7 AS INTEGER)": lambda _, s: np.round(s / 7),
    "CAST(COUNT(*) AS DOUBLE) / 3": lambda n, _: n / 3,
    "COALESCE(SUM(x), 0) * 2": lambda _, s: 2 * s,
    "GREATEST(SUM(x), 1) / 10": lambda _, s: np.maximum(s, 1) / 10,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_expected_error_is_that_of_simulated_noise(shape: str) -> None:
    """40,000 draws of the plan's own noises at the typical group: a 95% quantile is known to 1.5% (one standard error).

    A tolerance of 25% for sums of several noises, which are stated as if they were one, covers 5 of them: < 1e-6.
    """
    made = planned(f"{shape} AS e")
    (error,) = made.outputs
    truth = {
        measure: value for f in made.formulas.values() for measure, value in zip(f.measures, f.typical, strict=True)
    }
    draws = {
        noised.measure: (truth[noised.measure] + noised.mechanism.sample(np.zeros(40_000, np.int64), system())).astype(
            np.float64
        )
        for noised in made.measures
    }
    values = {a.function: made.formulas[a.name] for a in made.query.aggregates}
    zero = np.zeros(40_000)
    n, s = (values[f].value([draws[m] for m in values[f].measures]) if f in values else zero for f in ("count", "sum"))
    fixed = [
        values[f].value([np.array([truth[m]]) for m in values[f].measures]) if f in values else zero[:1]
        for f in ("count", "sum")
    ]
    off = np.abs(SHAPES[shape](n, s) - SHAPES[shape](*fixed))
    assert error.name == "e"
    assert error.plus_minus == pytest.approx(float(np.quantile(off, 0.95)), rel=0.25)


def test_a_thousandth_of_a_sum_has_a_thousandth_of_its_error() -> None:
    (whole,), (part,) = planned("SUM(x) AS s").outputs, planned("SUM(x) / 1000 AS s").outputs
    assert part.plus_minus == pytest.approx(whole.plus_minus / 1000, rel=1e-6)
    assert part.relative == pytest.approx(whole.relative, rel=1e-6)
    assert part.rows is None


def test_expressions_over_keys_take_the_largest_error_of_all_groups() -> None:
    (whole,), (scaled,) = (planned(f"{each} AS n", by="GROUP BY k").outputs for each in ("COUNT(*)", "COUNT(*) * k"))
    assert scaled.plus_minus == pytest.approx(4 * whole.plus_minus, rel=1e-6)


def test_parts_are_named_as_parts_where_the_whole_has_no_error() -> None:
    """A median moves in rank, and a comparison is no number."""
    names = [each.name for each in planned("MEDIAN(x) / COUNT(*) AS m, COUNT(*) > 5 AS b").outputs]
    assert names == ["m (part 1)", "m (part 2)", "in b"]


def test_a_target_margin_is_that_of_the_result() -> None:
    """±0.01 of SUM(x)/1000 needs the ε of ±10 of SUM(x)."""
    by_thousands = solve(bind("SELECT SUM(x) / 1000 FROM t", tables={"t": TABLE}), within="0.1", delta=Fraction(0))
    whole = solve(bind("SELECT SUM(x) FROM t", tables={"t": TABLE}), within=100, delta=Fraction(0))
    assert abs(by_thousands - whole) <= whole / 50


def test_errors_without_the_coefficient_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error of old: the error of the aggregate inside."""
    monkeypatch.setattr(expected, "_expression_error", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_thousandth_of_a_sum_has_a_thousandth_of_its_error()


def test_the_typical_group_is_stated() -> None:
    (error,) = planned("SUM(x) / COUNT(*) AS a").outputs
    assert error.rows == TYPICAL_ROWS
