"""Ranges over several columns: what is drawn, what comes out, and how far it is off."""

from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Published, Setting
from hubbub.analyses.tables.range_tables import RangeTable
from hubbub.analyses.tables.ranges import Ranges, ranges
from hubbub.answers.release import Release
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import RenderOptions

#: 900 people: ages 0 to 29, of whom those below 10 are women; every third lives in the north.
PEOPLE = """
    SELECT i AS who, i % 30 AS age, CASE WHEN i % 30 < 10 THEN 'F' ELSE 'M' END AS sex, i % 3 = 0 AS north
    FROM range(900) AS t(i)
"""
AGES: list[object] = [{"column": "age", "bins": 15}, "sex"]


def setting(epsilon: str = "1", delta: str = "0") -> Setting:
    columns = (
        Column("who", Kind.INTEGER),
        Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(29))),
        Column("sex", Kind.TEXT, values=("F", "M")),
        Column("north", Kind.BOOLEAN),
    )
    table = Table("people", columns, PrivacyUnit("who", 1, 1))
    return Setting({"people": table}, Fraction(epsilon), Fraction(delta), RenderOptions("salt"))


def model(published: Published) -> RangeTable:
    found = Ranges.of(Release(published.outputs, [], Fraction(1), Fraction(0), {}, None, model=published.model))
    assert isinstance(found, RangeTable)
    return found


@pytest.mark.parametrize(("delta", "noise"), [("0", "laplace"), ("1/1000000", "gaussian")])
def test_products_of_ranges_are_near_at_a_large_epsilon(bench: Any, delta: str, noise: str) -> None:
    """At ε = 1000 no count is off by more than ten deviations, with a chance below 1e-9 that it is."""
    prepared = ranges(setting("1000", delta), table="people", columns=[*AGES, "north"], noise=noise)
    published = prepared.run(bench({"people": PEOPLE}))
    age, sex, north, count = published.outputs
    assert (age.name, sex.name, north.name, count.name) == ("age", "sex", "north", "count")
    assert len(count.values) == 15 * 2 * 2
    assert count.values[:4] == [30, 30, 0, 0]  # ages 0 and 1: 60 women, and those with age 0 are in the north
    found = model(published)
    for wanted, exact in (
        ({}, 900),
        ({"sex": "F"}, 300),
        ({"age": ("0–1", "8–9")}, 300),
        ({"age": ("4–5", "18–19"), "sex": "M"}, 300),
        ({"age": ("4–5", "18–19"), "north": True}, 150),  # 6, 9, 12, 15, 18: five ages of 30 people
    ):
        value, low, high = found.between(**wanted)
        assert low <= value <= high
        assert value == pytest.approx(exact, abs=1)


def _queries() -> Any:
    """Give all ranges of 15 bins by each sex and both."""
    of_age = [[first <= i <= last for i in range(15)] for first in range(15) for last in range(first, 15)]
    return np.kron(np.array(of_age, dtype=float), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))


def _variances(prepared: Any) -> Any:
    """Compute the variance of each query from the whole matrix of measured sums, without products."""
    factors = prepared.publish.args[0].strategy.factors
    measured = np.kron(factors[0].matrix, factors[1].matrix).astype(float)
    covariance = np.linalg.inv(measured.T @ measured) * prepared.publish.args[0].deviation ** 2
    return np.einsum("ij,jk,ik->i", _queries(), covariance, _queries())


def test_estimates_are_as_far_off_as_is_stated(bench: Any) -> None:
    """The mean square over all queries of 30 tables has about 100 degrees of freedom: it is between 0.4 and 2.5 times
    its mean but for a chance below 1e-6. Deviations that are too small by half make it four times as large."""
    prepared = ranges(setting("1"), table="people", columns=AGES)
    run = bench({"people": PEOPLE})
    exact = np.zeros((15, 2))
    for i in range(900):
        exact[i % 30 // 2, int(i % 30 >= 10)] += 1
    off = [np.array(prepared.run(run).model["estimates"]) - exact.ravel() for _ in range(30)]
    ratio = float(np.mean((_queries() @ np.array(off).T) ** 2)) / float(np.mean(_variances(prepared)))
    assert 0.4 < ratio < 2.5


def test_intervals_are_those_of_the_whole_matrix(bench: Any) -> None:
    """Every query's interval is its estimate ± the 97.5% quantile of the normal times the deviation."""
    prepared = ranges(setting("1", "1/1000000"), table="people", columns=AGES, noise="gaussian")
    published = prepared.run(bench({"people": PEOPLE}))
    found, middle = model(published), _queries() @ np.array(published.model["estimates"])
    halves = iter(zip(middle, 1.959964 * np.sqrt(_variances(prepared)), strict=True))
    labels = found.columns["age"]
    for first in range(15):
        for last in range(first, 15):
            for sex in ({"sex": "F"}, {"sex": "M"}, {}):
                value, low, high = found.between(age=(labels[first], labels[last]), **sex)
                estimate, half = next(halves)
                assert low == pytest.approx(min(value, max(0, estimate - half)), rel=1e-3, abs=0.1)
                assert high == pytest.approx(max(value, estimate + half, 0), rel=1e-3, abs=0.1)


def test_the_stated_error_is_that_of_the_whole_matrix() -> None:
    prepared: Any = ranges(setting("1"), table="people", columns=AGES)
    assert prepared.publish.args[0].rmse ** 2 == pytest.approx(float(np.mean(_variances(prepared))), rel=1e-9)


def test_rectangles_have_a_fraction_of_the_error_of_single_cells() -> None:
    """All rectangles of 64 × 64 bins; the error of cells one by one is √(22·22) = 22 deviations of the noise."""
    columns = tuple(Column(name, Kind.INTEGER, Bounds(Fraction(0), Fraction(63))) for name in ("x", "y"))
    table = Table("points", columns, PrivacyUnit(None, 1, 1))
    for delta, noise, most in (("0", "laplace", 0.72), ("1/1000000", "gaussian", 0.25)):
        known = Setting({"points": table}, Fraction(1), Fraction(delta), RenderOptions("salt"), max_cells=100_000)
        prepared: Any = ranges(known, table="points", columns=["x", "y"], noise=noise)
        chosen = prepared.publish.args[0]
        assert chosen.alone == pytest.approx(22)
        assert chosen.rmse <= most * 22 * chosen.budget.deviation(chosen.asked.sensitivity)


def test_the_price_is_what_was_asked() -> None:
    pure = ranges(setting("0.3"), table="people", columns=AGES)
    assert privacy_cost(pure.event).pure == Fraction(3, 10)
    assert ranges(setting("1", "1/1000000"), table="people", columns=AGES, noise="gaussian").delta == Fraction(1, 10**6)


def test_each_column_has_its_own_queries() -> None:
    for workload in ("prefixes", "ranges"):
        prepared = ranges(setting(), table="people", columns=AGES, workload=workload)
        assert f"all {workload} of age × categories of sex have" in prepared.derivation[-1]


def test_missing_values_are_a_category(bench: Any) -> None:
    prepared = ranges(
        setting("1000"), table="people", columns=[{"column": "sex", "missing": True}, {"column": "age", "bins": 3}]
    )
    some = f"SELECT who, age, CASE WHEN age > 0 THEN sex END AS sex, north FROM ({PEOPLE})"
    found = model(prepared.run(bench({"people": some})))
    assert found.between(sex=None)[0] == pytest.approx(30, abs=1)
    assert prod(found.counts.shape) == 9
    assert list(pairwise(found.columns)) == [("sex", "age")]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"column": "age"}, "HB589"),
        ({"columns": None}, "HB589"),
        ({"strategy": "tree"}, "HB589"),
        ({"columns": ["age", {"column": "age", "bins": 2}]}, "HB587"),
        ({"columns": [{"column": "who", "bins": 2}]}, "HB588"),
        ({"workload": "pairs"}, "HB589"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], says: str) -> None:
    with pytest.raises(QueryError, match=says):
        ranges(setting(), **({"table": "people", "columns": AGES} | how))


def test_too_many_bins_are_refused() -> None:
    wide = Column("x", Kind.INTEGER, Bounds(Fraction(0), Fraction(299)))
    known = Setting(
        {"t": Table("t", (wide,), PrivacyUnit(None, 1, 1))}, Fraction(1), Fraction(0), RenderOptions("salt")
    )
    with pytest.raises(QueryError, match=r"HB589.*300 bins"):
        ranges(known, table="t", columns=["x"])


def test_a_model_refuses_what_it_does_not_tell(bench: Any) -> None:
    found = model(ranges(setting("9"), table="people", columns=AGES).run(bench({"people": PEOPLE})))
    assert "age × sex, 30 cells" in repr(found)
    for wrong in ({"town": "x"}, {"age": "0–3"}, {"age": ("4–5", "0–1")}, {"sex": ("F", "M")}):
        with pytest.raises(ParameterError, match="HB171"):
            found.between(**wrong)
